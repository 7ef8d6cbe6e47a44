//! What a client says about reads to come, so that servers can begin before they are asked.
//!
//! Nothing here changes what anybody reads: a server that knows better, lacks memory or is told nonsense does
//! as if it had not been told.

use super::field::Bytes;
use super::mapping::Upcoming;
use crate::{ClientId, FileId, ServerId};

choice! {
    /// What a server does about the next collective read while nobody asks for it.
    pub enum Collective {
        /// Nothing.
        Nothing = 0,
        /// It reads the blocks.
        Disk = 1,
        /// It reads the blocks and builds the packets of the ranks.
        Packets = 2,
        /// Servers build packets and exchange them, so that one of them has all of a rank.
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

    /// A server, to the one that sends all bytes of a rank: a packet of a collective read to come.
    pub struct Deposit {
        /// The file.
        pub file: FileId,
        /// What all servers call the read.
        pub key: u64,
        /// The owner of the bytes.
        pub from: ServerId,
        /// Which preparation of the owner it belongs to.
        pub serial: u64,
        /// Whose bytes they are.
        pub rank: u64,
        /// Which bytes: a portion.
        pub portion: Bytes,
        /// The bytes.
        pub bytes: Bytes,
    }

    /// Asked when the read has come: what was deposited is still good.
    pub struct Confirm {
        /// The file.
        pub file: FileId,
        /// What all servers call the read.
        pub key: u64,
        /// The owner of the bytes.
        pub from: ServerId,
        /// Which preparation of the owner it is.
        pub serial: u64,
        /// Packets of it that were kept; 0 if they are no longer good.
        pub packets: u64,
        /// The client of rank 0.
        pub leader: ClientId,
        /// The operation there.
        pub operation: u64,
    }
}
