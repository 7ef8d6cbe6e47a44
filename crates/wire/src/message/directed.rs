//! Collective accesses that servers direct: one request for all ranks, and transfers in the order of the store.
//!
//! ```text
//!  rank 0   Lead (views and ranges of all ranks)  -->  server   accesses its blocks in the order of the store,
//!  rank r   Follow (which operation, which rank)  -->           each at most once
//!  read     every rank  <--  MORE: Portion + payload            as often as the server has something for it
//!  write    every rank  <--  WANT: Portion                      Packet + payload  -->
//!           every rank  <--  DirectedAnswer                     when all of it is done here
//! ```
//!
//! An operation is named by the client of rank 0 and a number of it. A rank comes only to servers that have
//! bytes of it; rank 0 comes to all. Answers in between have the kind of the frame that came last and a flag.
//!
//! A range is locked against all other writers by [`HoldRange`], until it is let go of, its holder dies or its
//! time is over.

use super::field::Bytes;
use crate::ClientId;
use layout::View;

/// Flag of an answer: a portion with its bytes; the answer is still to come.
pub const MORE: u16 = 4;
/// Flag of an answer: the bytes of this portion are wanted; the answer is still to come.
pub const WANT: u16 = 8;

/// The subfile of a part that has all bytes of the rank in its range, in the order of the view.
pub const IN_VIEW: u32 = u32::MAX;

record! {
    /// Rank 0, to every I/O server that has bytes of a collective access: what all ranks access.
    pub struct Lead {
        /// A registered view of the file that allows it.
        pub view: u64,
        /// Number of the operation at this client.
        pub operation: u64,
        /// Whether bytes are written.
        pub writes: bool,
        /// Whether every piece of the file travels by itself.
        pub by_record: bool,
        /// Bytes of a block.
        pub block_bytes: u64,
        /// Blocks from which a packet is built.
        pub blocks: u64,
        /// The truncate epoch it was planned with.
        pub epoch: u64,
        /// The version of the layout state it was planned with.
        pub version: Bytes,
        /// What each rank accesses.
        pub ranks: Vec<RankRange>,
        /// The views of the ranks.
        pub views: Vec<View>,
    }

    /// What a rank accesses.
    #[derive(Copy)]
    pub struct RankRange {
        /// Who it is.
        pub client: ClientId,
        /// Index of its view.
        pub view: u32,
        /// First byte, in view space.
        pub lo: u64,
        /// One past the last byte, in view space; the first for none.
        pub hi: u64,
    }

    /// Any other rank, to the I/O servers that have bytes of it.
    pub struct Follow {
        /// A registered view of the file that allows it.
        pub view: u64,
        /// The client of rank 0.
        pub leader: ClientId,
        /// Number of the operation there.
        pub operation: u64,
        /// Which rank this is.
        pub rank: u64,
    }

    /// Bytes that a server wanted; the payload follows.
    pub struct Packet {
        /// How many were sent before.
        pub number: u64,
    }

    /// Which bytes a packet has: the parts one after the other, each in the order of the file.
    #[derive(Default)]
    pub struct Portion {
        /// What it was put together from.
        pub parts: Vec<PortionPart>,
    }

    /// The bytes of a rank that one subfile has in a range of the file.
    #[derive(Copy)]
    pub struct PortionPart {
        /// Index of the subfile, or [`IN_VIEW`].
        pub subfile: u32,
        /// First byte of the file.
        pub start: u64,
        /// One past the last byte of the file.
        pub end: u64,
        /// Bytes.
        pub bytes: u64,
    }

    /// How a collective access went at a server.
    #[derive(Copy, Default)]
    pub struct DirectedAnswer {
        /// Blocks that it accessed.
        pub blocks: u64,
        /// Times that buffers were changed.
        pub rounds: u64,
        /// Packets of all ranks.
        pub packets: u64,
        /// Nanoseconds from the request to the end.
        pub served_ns: u64,
        /// What bytes that were written live and die with until they are synced.
        pub verifier: u64,
    }

    /// Nobody else writes in a range of the file from the answer on, whichever way.
    pub struct HoldRange {
        /// A registered view that allows to write.
        pub view: u64,
        /// First byte of the file.
        pub lo: u64,
        /// One past the last byte.
        pub hi: u64,
        /// The layout state that says which servers have to be asked.
        pub version: Bytes,
    }

    /// The range is let go of.
    pub struct LetGo {
        /// The view it was held through.
        pub view: u64,
        /// What the answer said.
        pub number: u64,
    }
}
