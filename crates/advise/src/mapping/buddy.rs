//! The buddy of a client: the server that it begins with.
//!
//! Same host first, then the shortest declared distance, then the lowest load, then the lowest number
//! (section 3.10 of the specification of source 004, which names the criteria and no formula). Load is
//! the number of connected clients that a server is buddy of: known exactly where buddies are chosen,
//! also while many clients connect at once.

/// A server that may become the buddy of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its number.
    pub server: u64,
    /// Whether it runs on the client's host.
    pub is_same_host: bool,
    /// How far it says it is.
    pub distance: u64,
    /// How many clients it is buddy of.
    pub load: u64,
}

/// The best of them; `None` only if there are none.
///
/// ```
/// use advise::mapping::{Candidate, choose_buddy};
/// let far = Candidate { server: 1, is_same_host: false, distance: 1, load: 0 };
/// let here = Candidate { server: 2, is_same_host: true, distance: 9, load: 5 };
/// assert_eq!(choose_buddy(&[far, here]), Some(2));
/// assert_eq!(choose_buddy(&[far]), Some(1));
/// assert_eq!(choose_buddy(&[]), None);
/// ```
pub fn choose_buddy(candidates: &[Candidate]) -> Option<u64> {
    let order = |c: &&Candidate| (!c.is_same_host, c.distance, c.load, c.server);
    candidates.iter().min_by_key(order).map(|c| c.server)
}
