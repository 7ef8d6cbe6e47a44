//! What a request costs among servers: the model of section 5 and equations 6.7 to 6.9, in a small form.
//!
//! A hop takes latency, transfer and processing. All at the contacted server: one hop. Nothing there:
//! two. In between it goes linearly with the data matching of the server that is *really* contacted
//! (D-17). The model compares choices; it is no prediction of time.

/// One hop inside the cluster of the servers.
///
/// ```
/// use advise::mapping::Hop;
/// let hop = Hop { latency_s: 1e-4, bytes_per_s: 1e9, fixed_s: 1e-5, per_byte_s: 0.0 };
/// let once = hop.once_s(1_000_000);
/// assert!((once - 1.11e-3).abs() < 1e-9);
/// assert_eq!(hop.forwarded_s(1_000_000, 1.0), once);
/// assert_eq!(hop.forwarded_s(1_000_000, 0.0), 2.0 * once);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hop {
    /// Latency, in seconds.
    pub latency_s: f64,
    /// Bandwidth.
    pub bytes_per_s: f64,
    /// The part of processing that does not depend on the size, in seconds.
    pub fixed_s: f64,
    /// The part that does, in seconds.
    pub per_byte_s: f64,
}

impl Hop {
    /// `l + d/b + pt`: a request that is served where it arrives (6.7, and each part of 6.9).
    pub fn once_s(&self, bytes: u64) -> f64 {
        let bytes = bytes as f64;
        self.latency_s + bytes / self.bytes_per_s + self.fixed_s + bytes * self.per_byte_s
    }

    /// Equation 6.8 for a matching of `g` at the contacted server: `(2 - g)` hops.
    pub fn forwarded_s(&self, bytes: u64, g: f64) -> f64 {
        (2.0 - g.clamp(0.0, 1.0)) * self.once_s(bytes)
    }
}
