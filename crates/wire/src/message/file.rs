//! What clients ask of I/O servers about a file: views, size, locks, pointers, durability.
//!
//! Everything goes through a *registered view*: a client chooses a number, shows the capability of
//! the file once, and the number stands for (file, rights, view) from then on. A server that was
//! restarted does not know it and says `UnknownView`; the client registers again and repeats.
//!
//! Requests marked *owner* go to the server that the layout state names as the file's owner; any other
//! refuses them with `StaleLayout` and the present state.

use super::field::Bytes;
use crate::{FileId, HandleId};

record! {
    /// Registers a view. A description longer than one message announces its length here and
    /// follows in [`SetViewPart`]s.
    pub struct SetView {
        /// The number, chosen by the client; one that is in use is replaced.
        pub view: u64,
        /// Of which file.
        pub file: FileId,
        /// What the client may do with it.
        pub capability: Bytes,
        /// Bytes of the whole description; 0 stands for the whole file.
        pub description_bytes: u64,
        /// The description ([`crate::describe::put_view`]), or the first part of it.
        pub description: Bytes,
    }

    /// The next part of a long description.
    pub struct SetViewPart {
        /// Of which view.
        pub view: u64,
        /// The part.
        pub part: Bytes,
    }

    /// Forgets a view.
    pub struct DropView {
        /// Which.
        pub view: u64,
        /// The number of the last map of its file that the client needs no more, with all before it; 0 if it keeps them.
        pub maps: u64,
    }

    /// Asks for the verifiers of a server.
    pub struct Verify {}

    /// What bytes that were written here and not synced live and die with. Every answer to a write has one of these
    /// numbers as it was then; if the server still has that number, it still has the bytes. Numbers are compared only with
    /// others of the same server.
    #[derive(Copy, Default)]
    pub struct Verifiers {
        /// Of bytes that the system of the host has: they die with its boot, not with the server.
        pub kept: u64,
        /// Of bytes in the memory of the server: they die with this start of it.
        pub life: u64,
    }

    /// Asks for the size. *Owner.*
    pub struct Size {
        /// A view of the file.
        pub view: u64,
    }

    /// The size of a file.
    pub struct SizeIs {
        /// Bytes.
        pub size: u64,
        /// Counts truncates; travels in every access.
        pub epoch: u64,
    }

    /// A write has ended here: the size is at least that from now on. *Owner.*
    pub struct Grow {
        /// A view of the file, with the right to write.
        pub view: u64,
        /// The epoch the write was made in.
        pub epoch: u64,
        /// One past its last byte, in file space.
        pub end: u64,
    }

    /// Sets the size. *Owner.*
    pub struct Truncate {
        /// A view of the file, with the right to write.
        pub view: u64,
        /// The handle, which the catalogue checks again.
        pub handle: HandleId,
        /// The new size.
        pub to: u64,
        /// The client's number for it, that of no other request to anybody: asked twice it cuts once.
        pub request: u64,
    }

    /// Commits space for the bytes of the file below `size` that lie here.
    pub struct Preallocate {
        /// A view of the file, with the right to write.
        pub view: u64,
        /// The epoch.
        pub epoch: u64,
        /// File bytes below this get space.
        pub size: u64,
    }

    /// Takes space for the bytes of the file below `size` that lie here, ahead of what is written; the size stays. It is taken for as
    /// long as the view is registered, or until less is asked for with it.
    pub struct KeepAhead {
        /// A view of the file, with the right to write.
        pub view: u64,
        /// The epoch.
        pub epoch: u64,
        /// File bytes below this have space.
        pub size: u64,
    }

    /// Makes a range of the file zero, as far as its bytes lie here, and gives their space back. The size stays. Asked
    /// twice it is done twice.
    pub struct Punch {
        /// A view of the file, with the right to write.
        pub view: u64,
        /// First byte of the file.
        pub lo: u64,
        /// One past the last byte.
        pub hi: u64,
        /// The epoch.
        pub epoch: u64,
        /// Lease or lock number of an atomic handle, else 0.
        pub number: u64,
        /// Whether the answer comes when the zeros are in the data files.
        pub is_through: bool,
        /// The layout state that says which servers have to be asked.
        pub version: Bytes,
    }

    /// What a punch leaves to be synced.
    pub struct PunchAnswer {
        /// The start of the server.
        pub start: u64,
        /// What the zeros live and die with until they are synced.
        pub verifier: u64,
    }

    /// Makes everything that was written here to the file durable, where the store can; the owner
    /// makes the size durable too.
    pub struct Sync {
        /// A view of the file.
        pub view: u64,
    }

    /// What a sync has done.
    pub struct SyncAnswer {
        /// Whether the bytes survive the death of the server.
        pub is_durable: bool,
        /// Bytes with another verifier are not among them: they were lost before.
        pub verifiers: Verifiers,
    }

    /// A handle is about to be closed: its size is made durable. *Owner.*
    pub struct Release {
        /// A view of the file.
        pub view: u64,
    }

    /// Asks for the space that the file takes here.
    pub struct Allocation {
        /// A view of the file; any rights.
        pub view: u64,
    }

    /// Reserves a place behind the end. *Owner.*
    pub struct Reserve {
        /// A view of the file, with the right to write.
        pub view: u64,
        /// A number that rises from request to request of this client.
        pub request: u64,
        /// Bytes.
        pub len: u64,
    }

    /// A place was reserved.
    pub struct ReserveAnswer {
        /// Its first byte, in file space.
        pub offset: u64,
        /// The epoch.
        pub epoch: u64,
    }

    /// A reserved place is written, or given up when `end` is its start. *Owner.*
    pub struct FinishAppend {
        /// A view of the file, with the right to write.
        pub view: u64,
        /// The request that reserved it.
        pub request: u64,
        /// The epoch.
        pub epoch: u64,
        /// One past the last byte that was written.
        pub end: u64,
    }

    /// Takes part in a shared pointer. *Owner.*
    pub struct JoinPointer {
        /// A view of the file.
        pub view: u64,
        /// Which pointer.
        pub group: u64,
        /// Where it stands if it is new.
        pub position: u64,
    }

    /// Takes part no more. *Owner.*
    pub struct LeavePointer {
        /// A view of the file.
        pub view: u64,
        /// Which pointer.
        pub group: u64,
    }

    /// Moves a shared pointer and says where it stood before. *Owner.*
    pub struct MovePointer {
        /// A view of the file.
        pub view: u64,
        /// Which pointer.
        pub group: u64,
        /// A number that rises from request to request of this client.
        pub request: u64,
        /// How.
        pub how: PointerMove,
        /// By how much, or where to.
        pub amount: u64,
    }

    /// Enters atomic mode with a view, or asks again after `StaleLease`. *Owner.*
    pub struct Admit {
        /// The view.
        pub view: u64,
        /// The handle.
        pub handle: HandleId,
    }

    /// A handle is in atomic mode.
    pub struct AdmitAnswer {
        /// Travels in its accesses.
        pub number: u64,
        /// Whether every access takes a lock first. If not, only one that goes in more than one message
        /// does: the lease may end between two of them, and others would see half of it.
        pub use_locks: bool,
    }

    /// Leaves atomic mode. *Owner.*
    pub struct LeaveAtomic {
        /// The view it was admitted with.
        pub view: u64,
        /// The handle.
        pub handle: HandleId,
    }

    /// Waits for a range of the view. *Owner.* If an access under it is refused with `StaleLease`, the
    /// lock is kept while the handle is admitted again and the access repeated; releasing it before
    /// would show others half of it.
    pub struct Lock {
        /// The view it was admitted with.
        pub view: u64,
        /// The handle.
        pub handle: HandleId,
        /// A number that this client does not use twice at a time.
        pub request: u64,
        /// First byte, in view space.
        pub lo: u64,
        /// One past the last, in view space.
        pub hi: u64,
        /// Whether it is for writing.
        pub is_exclusive: bool,
    }

    /// Releases a lock, or waits for it no longer. *Owner.*
    pub struct Unlock {
        /// The view it was admitted with.
        pub view: u64,
        /// The number of the lock.
        pub request: u64,
    }

    /// Compares everything that is stored here of the file with its checksums.
    pub struct Scrub {
        /// A view of the file, with the right to read.
        pub view: u64,
    }

    /// What was found.
    pub struct ScrubAnswer {
        /// Blocks read.
        pub blocks: u64,
        /// Blocks that are damaged.
        pub damaged: u64,
    }

    /// Asks for the subfiles of a server, ascending, some at a time. Only for the user who runs the service, and root.
    pub struct ListSubfiles {
        /// Those behind this one.
        pub after: Option<SubfileName>,
        /// At most so many; a server gives 4096 at most.
        pub most: u64,
    }

    /// Names a subfile.
    #[derive(Copy)]
    pub struct SubfileName {
        /// The file.
        pub file: FileId,
        /// Generation of the layout.
        pub generation: u64,
        /// Index in it.
        pub index: u32,
    }

    /// Some subfiles of a server.
    pub struct SubfileList {
        /// What was asked for.
        pub entries: Vec<SubfileEntry>,
        /// Whether more follow.
        pub has_more: bool,
    }

    /// Takes a subfile away that no file has; the server asks the metadata manager whether one has it. Only for the user who runs
    /// the server, and root. The answer says where its bytes are now; nothing if they are nowhere.
    pub struct Discard {
        /// Which.
        pub subfile: SubfileName,
        /// Its bytes are removed; else they are put aside, on the disk where they are.
        pub is_removed: bool,
    }

    /// Asks for the disks of a server. Only for the user who runs the service, and root.
    pub struct ListDisks {}

    /// The disks of a server.
    pub struct DiskList {
        /// Those that belong to it.
        pub disks: Vec<DiskEntry>,
        /// Data files that were put aside.
        pub quarantined: Vec<String>,
        /// Subfiles with several data files that contradict each other, as sentences with what to do.
        pub conflicts: Vec<String>,
    }

    /// A disk as its server sees it.
    pub struct DiskEntry {
        /// Its number.
        pub id: u64,
        /// Its directory.
        pub place: String,
        /// What it is like.
        pub state: DiskState,
        /// What was found in its place, if it is missing.
        pub why: String,
        /// Subfiles on it.
        pub subfiles: u64,
        /// Room that is left.
        pub free_bytes: u64,
        /// Room in all.
        pub total_bytes: u64,
    }

    /// A subfile as its server sees it.
    pub struct SubfileEntry {
        /// The file.
        pub file: FileId,
        /// Generation of the layout.
        pub generation: u64,
        /// Index in it.
        pub index: u32,
        /// End of what was ever written.
        pub len: u64,
        /// Space it takes.
        pub allocated_bytes: u64,
        /// What there is of it.
        pub state: SubfileState,
    }
}

/// A request about the file of a registered view.
pub trait ThroughView: super::Request {
    /// The number of the view.
    fn view(&self) -> u64;
}

macro_rules! through_view {
    ($($request:ty),* $(,)?) => {$(
        impl ThroughView for $request {
            fn view(&self) -> u64 {
                self.view
            }
        }
    )*};
}

through_view!(
    Size,
    Grow,
    Truncate,
    Release,
    Reserve,
    FinishAppend,
    JoinPointer,
    LeavePointer,
    MovePointer,
    Admit,
    LeaveAtomic,
    Lock,
    Unlock,
    Preallocate,
    KeepAhead,
    Punch,
    Sync,
    Allocation,
    Scrub,
);

choice! {
    /// What there is of a subfile.
    pub enum SubfileState {
        /// Its bytes are here.
        Here = 0,
        /// They are on a disk that is missing.
        Missing = 1,
        /// They are lost.
        Lost = 2,
        /// Several data files contradict each other.
        Conflict = 3,
    }
}

choice! {
    /// What a disk is like.
    pub enum DiskState {
        /// In use.
        Used = 0,
        /// Reading or writing it failed: it takes no new subfiles.
        Failed = 1,
        /// It is absent, or something else is in its place.
        Missing = 2,
        /// The administrator has declared it lost.
        Lost = 3,
    }
}

choice! {
    /// How a shared pointer moves.
    pub enum PointerMove {
        /// Forward by an amount.
        Add = 0,
        /// To a position.
        To = 1,
        /// Not at all.
        Stay = 2,
    }
}

impl Verifiers {
    /// Whether bytes with this verifier are still there.
    pub fn keep(&self, verifier: u64) -> bool {
        verifier == self.kept || verifier == self.life
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_there_under_the_verifier_of_the_host_or_of_the_process() {
        let now = Verifiers { kept: 3, life: 8 };
        assert_eq!(
            [3, 8, 0, 4].map(|v| now.keep(v)),
            [true, true, false, false]
        );
    }
}
