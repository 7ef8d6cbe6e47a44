//! Round robin: clients take servers in turn, and the next file goes on where the last one ended.
//!
//! `f(c_j) = s_i` with `i = (1 + x + j) mod |S|`, clients and servers counted from 0, x the server at
//! which the last file ended (equation 6.5 with the base of D-3). The counter is one: a manager that assigns
//! concurrently asks its owner (D-20), which is the metadata manager.

/// The counter.
///
/// ```
/// use advise::mapping::RoundRobin;
/// let mut counter = RoundRobin::default();
/// assert_eq!(counter.file(3, 2).collect::<Vec<_>>(), [0, 1, 0]);
/// assert_eq!(counter.file(3, 2).collect::<Vec<_>>(), [1, 0, 1], "the next file goes on");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoundRobin {
    /// One past x; 0 before the first assignment, which is the same as x = |S| - 1.
    next: u64,
}

impl RoundRobin {
    /// The servers of `clients` clients that open a file together, by index below `servers`.
    pub fn file(&mut self, clients: u64, servers: u64) -> impl Iterator<Item = u64> + use<> {
        let servers = servers.max(1);
        let first = self.next % servers;
        self.next = (first + clients) % servers;
        (0..clients).map(move |j| (first + j) % servers)
    }

    /// The server of one more client: a file whose clients come one by one gets the same sequence.
    pub fn one(&mut self, servers: u64) -> u64 {
        let servers = servers.max(1);
        let index = self.next % servers;
        self.next = (index + 1) % servers;
        index
    }
}
