//! What servers ask of each other.
//!
//! An I/O server joins at the metadata manager and reports from then on; the end of that connection is
//! the end of its membership. The owner of a file asks its other servers; the metadata manager asks
//! all of them during a re-layout. Every connection between servers is made with the seal of the
//! cluster ([`Role::Server`](super::session::Role)).

use super::catalogue::{LocalAddress, Member, StoreKind};
use super::direct::SegmentIs;
use super::field::Bytes;
use crate::layout_state::LayoutState;
use crate::{ClientId, FileId, HandleId, ServerId, SizeState, Time};

/// What a server [resumes](Join::resumes) that has noted no start yet and has lost nothing: whatever was bound to it
/// since its first join, it has. No start has this number.
pub const NO_START: u64 = 0;

record! {
    /// A server that starts, to the metadata manager.
    pub struct Join {
        /// Its number if it was here before and knows it; otherwise its identity tells.
        pub server: Option<ServerId>,
        /// The last incarnation that its store recorded, if it found one; [`NO_START`] if the store is sound and none
        /// was recorded. A server records its incarnation durably before it serves.
        pub resumes: Option<u64>,
        /// This very process is this incarnation already: it has lost the metadata manager, not its
        /// bytes. Once it is a member again it serves every file whose duties were being handed over, with the state
        /// that the metadata manager has then.
        pub continues: Option<u64>,
        /// Where it listens.
        pub address: String,
        /// Where processes of its own host reach it, if that is another address.
        pub local: Option<LocalAddress>,
        /// Where it keeps bytes.
        pub store: StoreKind,
        /// Room in all; 0 is unknown.
        pub capacity_bytes: u64,
        /// Room taken.
        pub used_bytes: u64,
        /// How far it is from the clients.
        pub distance: u64,
        /// What only this server knows: 32 random bytes that it made before its first join. A process that wants
        /// its number later has to show the same. On a connection that others could read it is wrapped
        /// (see `docs/formats/wire.md`).
        pub identity: Bytes,
    }

    /// A server is a member.
    pub struct JoinAnswer {
        /// As the catalogue knows it now.
        pub member: Member,
        /// The key of the cluster; on a connection that others could read it is wrapped.
        pub key: Bytes,
        /// All members.
        pub members: Vec<Member>,
    }

    /// A member says that it is there, and what room it has. Sent on the connection of the join.
    pub struct Report {
        /// Room in all; 0 is unknown.
        pub capacity_bytes: u64,
        /// Room taken.
        pub used_bytes: u64,
        /// How much it had to do since the last report, in units that only compare.
        pub load: u64,
        /// Removals that were done since the last report.
        pub removed: Vec<Removal>,
    }

    /// What a member has to know.
    pub struct ReportAnswer {
        /// Bytes to remove; the next report confirms them.
        pub removals: Vec<Removal>,
        /// All members.
        pub members: Vec<Member>,
    }

    /// Bytes that a server is to remove.
    pub struct Removal {
        /// Of which file.
        pub file: FileId,
        /// Of which generation of its layout.
        pub generation: u64,
        /// Bound to which start of the server.
        pub incarnation: u64,
        /// Only these subfiles, ascending; empty is all.
        pub subfiles: Vec<u32>,
    }

    /// Asks the metadata manager what is durable about a file.
    pub struct FileState {
        /// Which.
        pub file: FileId,
    }

    /// What is durable about a file.
    pub struct FileStateIs {
        /// Where its bytes are.
        pub layout: LayoutState,
        /// Its size.
        pub size: SizeState,
        /// User number of the owner.
        pub owner: u32,
        /// Group number.
        pub group: u32,
        /// The twelve permission bits.
        pub mode: u32,
        /// The directory it is in.
        pub directory: FileId,
        /// What a server leaves in the header of the subfile: path, array and layout, so that a
        /// directory can be rebuilt from the stores.
        pub note: Bytes,
    }

    /// The owner of a file reports its size to the metadata manager.
    pub struct ReportSize {
        /// Of which file.
        pub file: FileId,
        /// Of which epoch.
        pub epoch: u64,
        /// The size.
        pub size: u64,
        /// When a byte was last written.
        pub modified: Time,
    }

    /// The owner records the intent to truncate at the metadata manager.
    pub struct BeginTruncate {
        /// Who asked.
        pub client: ClientId,
        /// With which handle.
        pub handle: HandleId,
        /// The new size.
        pub to: u64,
        /// The client's number for it. One that was begun before is answered with its epoch.
        pub request: u64,
    }

    /// All servers have applied a truncate.
    pub struct FinishTruncate {
        /// Of which file.
        pub file: FileId,
        /// Of which epoch.
        pub epoch: u64,
    }

    /// The owner, to another server of the file: cut at this size.
    pub struct ApplyTruncate {
        /// The file.
        pub file: FileId,
        /// The epoch that begins.
        pub epoch: u64,
        /// The new size.
        pub to: u64,
    }

    /// A server, to the owner of a file: from now on bytes are written here behind the end of the file without a report to the owner, which
    /// asks ([`AskEnd`]) before it tells a client the size.
    pub struct Announce {
        /// The file.
        pub file: FileId,
    }

    /// The owner, to a server that may have grown the file: how far do your bytes of the file reach?
    pub struct AskEnd {
        /// The file.
        pub file: FileId,
    }

    /// How far they reach.
    pub struct EndIs {
        /// The last epoch that was applied here.
        pub epoch: u64,
        /// One past the last byte of the file that was written here, in file space.
        pub end: u64,
        /// Whether it may reach further later without a report; if not, the server announces itself before that.
        pub grows: bool,
    }

    /// The metadata manager, to the owner of files that a client asks about: how long are they?
    pub struct AskSizes {
        /// Which.
        pub files: Vec<FileId>,
    }

    /// Refuse this client from now on; answered when nothing of it runs here.
    pub struct Fence {
        /// The client.
        pub client: ClientId,
    }

    /// Refuse lower lease numbers of this file from now on; answered when nothing older runs here.
    pub struct Tell {
        /// The file.
        pub file: FileId,
        /// The number.
        pub number: u64,
    }

    /// The owner, after a restart: what number were you told?
    pub struct AskNumber {
        /// The file.
        pub file: FileId,
    }

    /// How big a file is that nothing changes at this moment.
    pub struct SizeAtRest {
        /// Bytes, as the owner knows it; 0 at all others.
        pub size: u64,
        /// Epoch, as the owner knows it; 0 at all others.
        pub epoch: u64,
        /// One past the last byte of the file that was written here, in file space: beyond the size
        /// while a write has not told its end to the owner.
        pub end: u64,
    }

    /// Serve the file again, with the state that the metadata manager has now.
    pub struct TakeLayout {
        /// The file.
        pub file: FileId,
    }

    /// From the metadata manager to a server of a file that is moved: the state of the file is of this step,
    /// so let go of what was fenced; then keep accesses out of `windows` until the next of these.
    /// Answered when nothing runs in them.
    pub struct FenceWindows {
        /// The file.
        pub file: FileId,
        /// Counts up; an earlier one that comes late is refused.
        pub round: u64,
        /// Who has this step learns `moved` and has the next one; others ask.
        pub from: u64,
        /// The step that is durable.
        pub step: u64,
        /// What went from the first piece to the second between the two.
        pub moved: Vec<ByteRange>,
        /// What is moved next; empty if nothing is.
        pub windows: Vec<ByteRange>,
        /// Bytes that the first piece has no use for any more: give their space back.
        pub frees: Vec<ByteRange>,
        /// The set of servers has changed: the owner tells those who are new what they have to know.
        pub is_settling: bool,
        /// Also says how big the file is.
        pub asks_size: bool,
        /// Another server is to be the owner: the one that is lets no locks and places be taken until the next of
        /// these, and counts what was given away.
        pub hands_over: bool,
    }

    /// Nothing runs in the windows.
    pub struct FenceAnswer {
        /// Accesses of clients that were served here since the last of these, messages and direct ones.
        pub accesses: u64,
        /// What was asked about the size; 0 unless it was.
        pub size: SizeAtRest,
        /// Shared pointers of an owner that hands its duties over, while nothing else runs.
        pub pointers: Vec<PointerIs>,
    }

    /// A shared pointer on its way to another owner.
    pub struct PointerIs {
        /// The group of handles that it belongs to.
        pub group: u64,
        /// Where it stands.
        pub position: u64,
        /// Who takes part.
        pub members: Vec<PointerMember>,
    }

    /// One who takes part in a shared pointer.
    pub struct PointerMember {
        /// Who.
        pub client: ClientId,
        /// Its last question, 0 if it has none; it may be repeated.
        pub request: u64,
        /// The answer to it.
        pub answer: u64,
    }

    /// From the metadata manager to the server that is about to own a file: with these shared pointers it begins,
    /// in place of any that it was told before.
    pub struct TakePointers {
        /// The file.
        pub file: FileId,
        /// All of them.
        pub pointers: Vec<PointerIs>,
    }

    /// From a server that has got a part of a file by a move, or was started again, to the owner: take me among the
    /// servers of the file. The answer has what it has to know before it serves; from then on it is told whatever
    /// changes.
    pub struct TakeServer {
        /// The file.
        pub file: FileId,
        /// The start of the server, if an earlier one had bytes of the file.
        pub start: Option<u64>,
    }

    /// What a server has to know of a file before it serves.
    pub struct TakeServerAnswer {
        /// Lower lease numbers are refused.
        pub number: u64,
        /// Clients that were declared dead.
        pub fenced: Vec<ClientId>,
    }

    /// Bytes of a file.
    pub struct ByteRange {
        /// First byte.
        pub start: u64,
        /// One past the last.
        pub end: u64,
    }

    /// Fetch your bytes of these ranges from the servers of the first piece into your subfiles of the second,
    /// and make them durable. The ranges are fenced at all servers of both. Answered with the bytes fetched.
    pub struct PullWindows {
        /// The file.
        pub file: FileId,
        /// The round in which they were fenced.
        pub round: u64,
        /// The step of its state.
        pub step: u64,
        /// Which.
        pub windows: Vec<ByteRange>,
    }

    /// A server of the second piece to one of the first on its host: where are your bytes of these ranges in
    /// memory? They stay there until the windows are unfenced. Over a Unix socket; segments that the
    /// connection was not given yet come with the answer, for reading.
    pub struct Lend {
        /// The file.
        pub file: FileId,
        /// The round in which they were fenced.
        pub round: u64,
        /// The step of its state.
        pub step: u64,
        /// Which.
        pub windows: Vec<ByteRange>,
    }

    /// Where bytes are. What is missing between them was never written.
    pub struct LendAnswer {
        /// Ascending by store, subfile and offset.
        pub extents: Vec<LentExtent>,
        /// Segments whose descriptors come with this answer, in this order.
        pub segments: Vec<SegmentIs>,
        /// Segments that this connection was given and that no longer hold anything.
        pub gone: Vec<u64>,
    }

    /// A run of a subfile in shared memory.
    pub struct LentExtent {
        /// The generation under which it is stored.
        pub store: u64,
        /// Index in the layout.
        pub subfile: u32,
        /// First subfile byte.
        pub offset: u64,
        /// Bytes.
        pub len: u64,
        /// The segment.
        pub segment: u64,
        /// Where it begins there.
        pub at: u64,
    }

    /// Owner, group, mode or directory of the file have changed: keep its bytes apart from those of
    /// others accordingly, with what the metadata manager says now. Answered when that is done.
    pub struct Redomain {
        /// The file.
        pub file: FileId,
    }
}
