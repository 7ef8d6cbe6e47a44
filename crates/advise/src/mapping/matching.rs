//! Data matching: how many bytes of a request lie at each server.
//!
//! `g(r, s)` is the share of the bytes of request r that server s stores. Counted exactly, for any view
//! and any layout. Without replicas the shares of all servers sum up to 1.
//!
//! Left to others: where the counts come from when a server keeps its intersections ([`Matching::add`]).

use layout::{Partition, View, ViewOffset};

/// The bytes of one request at each server.
///
/// ```
/// use advise::mapping::Matching;
/// use layout::{Partition, Pattern, View};
/// // Stripes of 4 bytes over servers 7 and 9.
/// let pattern = Pattern::new(8, vec!["{(0,3)}".parse()?, "{(4,7)}".parse()?])?;
/// let partition = Partition::from_start(pattern);
/// let request = Matching::of(&View::whole_file(), &partition, &[7, 9], 2, 8);
/// assert_eq!((request.bytes(7), request.bytes(9)), (4, 4));
/// assert_eq!(request.g(7), 0.5);
/// assert_eq!(request.best(), [7, 9]);
/// assert_eq!(request.choose(None), Some(7));
/// assert_eq!(request.choose(Some(9)), Some(9), "who is there already stays");
/// assert_eq!(request.bytes_between(7), 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matching {
    /// Ascending by server, each with at least one byte.
    at: Vec<(u64, u64)>,
    total: u64,
}

impl Matching {
    /// Counts a request of `len` view bytes from `offset` on. `servers` names the server of each subfile.
    /// What lies beyond the largest offset, or in no subfile, is not counted.
    pub fn of(
        view: &View,
        partition: &Partition,
        servers: &[u64],
        offset: u64,
        len: u64,
    ) -> Matching {
        let mut matching = Matching::default();
        let range = ViewOffset(offset)..ViewOffset(offset.saturating_add(len));
        let Some(file) = view.file_range(range) else {
            return matching;
        };
        let range = file.start.0..file.end.0;
        partition.visit_meeting(file, |element| {
            if let Some(&server) = servers.get(element) {
                let meeting = falls::Meeting::new(view.bytes(), &partition.subfile(element));
                matching.add(server, meeting.count(range.clone()));
            }
        });
        matching
    }

    /// Adds bytes that lie at a server.
    pub fn add(&mut self, server: u64, bytes: u64) {
        if bytes == 0 {
            return;
        }
        self.total += bytes;
        match self.at.binary_search_by_key(&server, |(s, _)| *s) {
            Ok(i) => self.at[i].1 += bytes,
            Err(i) => self.at.insert(i, (server, bytes)),
        }
    }

    /// Forgets everything, to be filled again.
    pub fn clear(&mut self) {
        self.at.clear();
        self.total = 0;
    }

    /// Bytes in all: the size of the request.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Servers that have bytes of it, ascending, each with how many.
    pub fn servers(&self) -> &[(u64, u64)] {
        &self.at
    }

    /// Bytes at a server.
    pub fn bytes(&self, server: u64) -> u64 {
        let found = self.at.binary_search_by_key(&server, |(s, _)| *s);
        found.map_or(0, |i| self.at[i].1)
    }

    /// The share of a server, from 0 to 1; 0 for a request without bytes.
    pub fn g(&self, server: u64) -> f64 {
        match self.total {
            0 => 0.0,
            total => self.bytes(server) as f64 / total as f64,
        }
    }

    fn most(&self) -> u64 {
        self.at.iter().map(|(_, n)| *n).max().unwrap_or(0)
    }

    /// All servers with the largest share, ascending; none for a request without bytes.
    pub fn best(&self) -> Vec<u64> {
        let most = self.most();
        let best = self.at.iter().filter(|(_, n)| *n == most);
        best.map(|(s, _)| *s).collect()
    }

    /// One server with the largest share: the present one if it is among them, else the one with the
    /// lowest number. A tie therefore never makes a client change its server.
    pub fn choose(&self, present: Option<u64>) -> Option<u64> {
        let most = self.most();
        if let Some(server) = present
            && most > 0
            && self.bytes(server) == most
        {
            return present;
        }
        self.at.iter().find(|(_, n)| *n == most).map(|(s, _)| *s)
    }

    /// Bytes that travel between servers when this one is asked for the whole request.
    pub fn bytes_between(&self, contacted: u64) -> u64 {
        self.total - self.bytes(contacted)
    }

    /// The fewest that must travel, whichever server is asked. Exact, where the thesis has a bound (D-4).
    pub fn least_bytes_between(&self) -> u64 {
        self.total - self.most()
    }

    /// The bound of equation 7.6 for stripes of `stripe` bytes over `servers`: what `rs` bytes from
    /// `offset` on cost at least between servers. Never above [`Matching::least_bytes_between`].
    ///
    /// ```
    /// use advise::mapping::Matching;
    /// // Stripes of 4 over 2: bytes 2..10 touch 3 blocks, of which one server has 2 at most.
    /// assert_eq!(Matching::striped_bound(4, 2, 2, 8), 0);
    /// assert_eq!(Matching::striped_bound(4, 2, 0, 16), 8);
    /// ```
    pub fn striped_bound(stripe: u64, servers: u64, offset: u64, rs: u64) -> u64 {
        if rs == 0 || stripe == 0 || servers == 0 {
            return 0;
        }
        // The corrected number of blocks (D-1, statement 53).
        let blocks = (offset + rs - 1) / stripe - offset / stripe + 1;
        rs.saturating_sub(blocks.div_ceil(servers) * stripe)
    }
}
