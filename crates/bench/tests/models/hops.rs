//! Messages of a client through a network to a cluster of servers: equations 5.1 to 5.5 of the MEMFS thesis,
//! with 6.7 to 6.9 for what the contacted server has of the bytes.
//!
//! The model looks at one client alone: no pipelining, no collisions, the same processing in every hop. It
//! guides decisions and is no objective to be minimised.

use advise::mapping::Hop;

/// The network between the clients' cluster and that of the servers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Backbone {
    /// Latency in seconds.
    pub(crate) latency_s: f64,
    /// Bandwidth.
    pub(crate) bytes_per_s: f64,
}

impl Backbone {
    /// `a_I = l_I + d/b_I` (5.3).
    pub(crate) fn seconds(&self, bytes: u64) -> f64 {
        self.latency_s + bytes as f64 / self.bytes_per_s
    }
}

/// A message: its bytes, and which share of them is at the server it goes to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Message {
    /// Bytes.
    pub(crate) bytes: u64,
    /// 1 when all are there (6.7, 6.9), less when the rest is a hop further (6.8).
    pub(crate) matching: f64,
}

/// `t = a_I + h (l + d/b + pt)` (5.2, 5.4) for a number of hops.
pub(crate) fn message_s(between: &Backbone, hop: &Hop, bytes: u64, hops: f64) -> f64 {
    between.seconds(bytes) + hops * hop.once_s(bytes)
}

/// Time of a client: the sum over its messages (5.5), hops by matching (6.8).
///
/// ```
/// use advise::mapping::Hop;
/// use bench::models::hops::{Backbone, Message, client_s, message_s};
/// let between = Backbone { latency_s: 1e-4, bytes_per_s: 1e8 };
/// let hop = Hop { latency_s: 1e-5, bytes_per_s: 1e9, fixed_s: 1e-5, per_byte_s: 1e-10 };
/// let all_there = Message { bytes: 1000, matching: 1.0 };
/// let half = Message { matching: 0.5, ..all_there };
/// let once = message_s(&between, &hop, 1000, 1.0);
/// assert_eq!(client_s(&between, &hop, &[all_there]), once);
/// assert!((client_s(&between, &hop, &[half]) - once - 0.5 * hop.once_s(1000)).abs() < 1e-15);
/// ```
pub(crate) fn client_s(between: &Backbone, hop: &Hop, messages: &[Message]) -> f64 {
    let time = |m: &Message| between.seconds(m.bytes) + hop.forwarded_s(m.bytes, m.matching);
    messages.iter().map(time).sum()
}
