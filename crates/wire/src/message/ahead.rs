//! What a client says about reads to come, so that servers can begin before they are asked.
//!
//! Nothing here changes what anybody reads: a server that knows better, lacks memory or is told nonsense does
//! as if it had not been told.

use super::mapping::Upcoming;

choice! {
    /// What a server does about the next collective read while nobody asks for it.
    pub enum Collective {
        /// Nothing.
        Nothing = 0,
        /// It reads the blocks.
        Disk = 1,
        /// It reads the blocks and builds the packets of the ranks.
        Packets = 2,
        /// The same, and servers exchange packets so that one of them has all of a rank.
        Exchanged = 3,
    }
}

record! {
    /// A client, to an I/O server: how reads through a view are to be seen ahead, and what comes next.
    pub struct ReadAhead {
        /// The registered view.
        pub view: u64,
        /// Accesses to read ahead: none at all for 0, the largest number to leave it to the server.
        pub depth: u64,
        /// What is going to be read, in view space.
        pub upcoming: Option<Upcoming>,
        /// What is done about collective reads.
        pub collective: Collective,
        /// Most bytes that a server prefetches for collective reads of the file; 0 to leave it to the server.
        pub bytes: u64,
    }
}
