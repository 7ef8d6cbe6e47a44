//! What clients ask of the metadata manager: names, attributes, layouts, named views, members.
//!
//! A slice keeps one name: `Rename` here is `rename` in the client, in the manager and in the
//! catalogue. Paths are absolute, with `/` between names of any UTF-8.

use layout::View;

use super::field::Bytes;
use super::hints::GivenHint;
use super::stamps::StampList;
use crate::layout_state::{LayoutState, Place};
use crate::reader::{DecodeError, Reader, put_number};
use crate::{FileId, HandleId, Rights, ServerId, Time};

record! {
    /// What a file holds and how it is cut, in the users' words.
    #[derive(Default)]
    pub struct LayoutSpec {
        /// Such as `f64[4096,4096]`; nothing for plain bytes.
        pub array: Option<String>,
        /// Such as `(block, *) onto 4`; nothing for the default rule.
        pub layout: Option<String>,
    }

    /// How a new file will be used, as far as its creator knows: what a file without a layout is
    /// placed by.
    #[derive(Default)]
    pub struct Expectation {
        /// Bytes it will have.
        pub size: Option<u64>,
        /// Processes that will use it.
        pub clients: Option<u64>,
        /// Bytes of one access.
        pub access_bytes: Option<u64>,
        /// The server that the creator is nearest to.
        pub near: Option<ServerId>,
    }

    /// How a file is created.
    #[derive(Default)]
    pub struct CreateOptions {
        /// Permission bits; the client has applied its mask.
        pub mode: u32,
        /// Refuse if the name is taken.
        pub exclusive: bool,
        /// What it holds and how it is laid out.
        pub layout: LayoutSpec,
        /// How it will be used.
        pub expected: Expectation,
        /// Hints of the program and of its compiler about a new file.
        pub hints: Vec<GivenHint>,
        /// Named values that a new file has from the beginning.
        pub values: Vec<NamedValue>,
    }

    /// How a file is opened.
    #[derive(Default)]
    pub struct OpenOptions {
        /// What the handle is for.
        pub rights: Rights,
        /// Create it if it is not there (or refuse if it is, when exclusive).
        pub create: Option<CreateOptions>,
        /// Every write goes to the end; needs the right to write.
        pub append: bool,
        /// Refuse if anybody has it open, and refuse others while this handle is open. Handles with the same
        /// number are one opening; 0 is the number of nobody else.
        pub unique: Option<u64>,
        /// The file goes with its last handle.
        pub delete_on_close: bool,
    }

    /// Opens a file.
    pub struct Open {
        /// Which.
        pub path: String,
        /// How.
        pub options: OpenOptions,
    }

    /// Opens a file again that was open before the metadata manager was restarted.
    pub struct Reopen {
        /// The capability that came with the handle; says which file and for what.
        pub capability: Bytes,
        /// Whether it was opened for this client, or those with this number, alone.
        pub unique: Option<u64>,
    }

    /// An open file.
    pub struct OpenAnswer {
        /// The handle.
        pub handle: HandleId,
        /// What it is for.
        pub rights: Rights,
        /// Whether the file was created by this.
        pub is_new: bool,
        /// Its attributes, with the durable size.
        pub attributes: Attributes,
        /// Where its bytes are.
        pub layout: LayoutState,
        /// What to show to I/O servers.
        pub capability: Bytes,
        /// Hints kept with it and the directories above it that count for clients that have it open.
        pub hints: Vec<GivenHint>,
    }

    /// Closes a handle.
    pub struct Close {
        /// Which.
        pub handle: HandleId,
        /// All that was written through it is in the size that the catalogue has: its owner has said so, or nothing was.
        pub is_counted: bool,
    }

    /// A handle is closed.
    pub struct CloseAnswer {
        /// Whether the file went with it.
        pub is_removed: bool,
    }

    /// Asks for a fresh capability of a handle whose old one has expired.
    pub struct RenewCapability {
        /// Which handle.
        pub handle: HandleId,
    }

    /// Creates a file without opening it.
    pub struct Create {
        /// Its path.
        pub path: String,
        /// How.
        pub options: CreateOptions,
    }

    /// A file that exists now.
    pub struct CreateAnswer {
        /// Its number.
        pub file: FileId,
        /// Whether it is new.
        pub is_new: bool,
    }

    /// Creates a directory.
    pub struct Mkdir {
        /// Its path.
        pub path: String,
        /// Permission bits; the client has applied its mask.
        pub mode: u32,
    }

    /// Removes the name of a file.
    pub struct Unlink {
        /// Which.
        pub path: String,
        /// What to do if a client has it open.
        pub how: UnlinkHow,
    }

    /// Removes an empty directory.
    pub struct Rmdir {
        /// Which.
        pub path: String,
    }

    /// Gives a file or directory another name; what has that name is replaced.
    pub struct Rename {
        /// The name it has.
        pub from: String,
        /// The name it gets.
        pub to: String,
    }

    /// Asks for attributes.
    pub struct Stat {
        /// Of what.
        pub path: String,
        /// Whether the latest size is wanted, not the durable one: the manager asks the owner of the file if it has to.
        pub with_latest_size: bool,
        /// Whether the client can tell for how long the answer is so.
        pub wants_stamps: bool,
    }

    /// What `stat` shows.
    pub struct Attributes {
        /// The number.
        pub file: FileId,
        /// File or directory.
        pub kind: Kind,
        /// User number of the owner.
        pub owner: u32,
        /// Group number.
        pub group: u32,
        /// The twelve permission bits.
        pub mode: u32,
        /// Last access, as set by `utimes`.
        pub accessed: Time,
        /// Last change of bytes or entries.
        pub modified: Time,
        /// Last change of attributes.
        pub changed: Time,
        /// Durable size; 0 for directories. While a truncate is under way, the one before it.
        pub size: u64,
        /// Counts truncates, up to the one that made the size; the size of an earlier epoch says nothing about this one.
        pub epoch: u64,
        /// A truncate that is under way leads to this size.
        pub truncate_to: Option<u64>,
        /// The array a file holds, as its creator wrote it.
        pub array: Option<String>,
        /// The layout of a file, as its creator or the default rule wrote it.
        pub layout: Option<String>,
        /// The highest generation of its layout that was given out; 0 for directories.
        pub generation: u64,
        /// Whether it still has a name.
        pub is_linked: bool,
        /// Whether it goes with its last handle.
        pub delete_on_close: bool,
    }

    /// What was found, and for how long that is so.
    pub struct StatAnswer {
        /// What is there. Nothing is answered only to who wants stamps; others are refused.
        pub found: Option<StatEntry>,
        /// For how long; nothing if that is not known, or was not asked.
        pub stamped: Option<StampList>,
    }

    /// Attributes, and whom to ask for the latest size.
    pub struct StatEntry {
        /// The attributes.
        pub attributes: Attributes,
        /// Whether the size is the latest; if not, it is the durable one.
        pub is_latest: bool,
        /// The server that owns the file; nothing for directories.
        pub owner: Option<Place>,
    }

    /// Asks for the names in a directory, a part at a time.
    pub struct List {
        /// Which directory.
        pub path: String,
        /// Only names behind this one.
        pub after: Option<String>,
        /// At most so many; the manager may give fewer.
        pub limit: u32,
        /// Whether attributes are wanted too, with the latest sizes as far as the owners of the files can be asked.
        pub with_attributes: bool,
        /// Whether the client can tell for how long the answer is so.
        pub wants_stamps: bool,
    }

    /// A name in a directory.
    pub struct Entry {
        /// The name.
        pub name: String,
        /// What has it.
        pub file: FileId,
        /// File or directory.
        pub kind: Kind,
        /// Its attributes, if they were asked for. The size is the latest, or the durable one if the owner could not be asked.
        pub attributes: Option<Attributes>,
    }

    /// Part of a directory.
    pub struct Listing {
        /// Names in ascending order of their bytes.
        pub entries: Vec<Entry>,
        /// Whether there are more behind the last.
        pub has_more: bool,
        /// For how long this is so; nothing if that is not known, or was not asked.
        pub stamped: Option<StampList>,
    }

    /// Sets the permission bits.
    pub struct Chmod {
        /// Of what.
        pub path: String,
        /// The bits.
        pub mode: u32,
    }

    /// Gives something to another owner or group.
    pub struct Chown {
        /// What.
        pub path: String,
        /// The new owner, if he changes.
        pub owner: Option<u32>,
        /// The new group, if it changes.
        pub group: Option<u32>,
    }

    /// Sets times.
    pub struct Utimes {
        /// Of what.
        pub path: String,
        /// Of the last access.
        pub accessed: SetTime,
        /// Of the last change of bytes.
        pub modified: SetTime,
    }

    /// Gives a file without bytes another layout.
    pub struct SetLayout {
        /// Which file.
        pub path: String,
        /// The layout.
        pub spec: LayoutSpec,
    }

    /// Asks for the layout of a file.
    pub struct GetLayout {
        /// Which.
        pub path: String,
    }

    /// Cuts a file without bytes and without a layout of its users by the views of those who opened
    /// it together.
    pub struct LayOutByViews {
        /// The caller's handle, which is for writing.
        pub handle: HandleId,
        /// Handles of all who opened it together; nobody else may have it open for writing.
        pub handles: Vec<HandleId>,
        /// Their views, by rank.
        pub views: Vec<View>,
    }

    /// How a file is cut now, by views or as before.
    pub struct LayOutAnswer {
        /// Whether its subfiles are the views.
        pub is_by_views: bool,
        /// Which distribution it has, and why.
        pub distribution: String,
        /// Where its bytes are.
        pub state: LayoutState,
    }

    /// Asks for the layout of a file by its number; the caller has it open.
    pub struct GetState {
        /// Which handle.
        pub handle: HandleId,
    }

    /// Asks what one subfile of a file is; the caller has the file open, and operates the service.
    pub struct GetSubfile {
        /// Which handle.
        pub handle: HandleId,
        /// Which subfile, from 0 on.
        pub index: u64,
    }

    /// What a subfile is.
    pub struct SubfileIs {
        /// The layout it belongs to.
        pub generation: u64,
        /// Subfiles in all.
        pub count: u64,
        /// Its bytes in the file.
        pub view: View,
        /// Servers that hold it.
        pub places: Vec<Place>,
    }

    /// The layout of a file.
    pub struct LayoutAnswer {
        /// The file.
        pub file: FileId,
        /// The array it holds.
        pub array: Option<String>,
        /// The layout, as it was written.
        pub text: String,
        /// Where its bytes are.
        pub state: LayoutState,
        /// Places whose bytes are lost.
        pub lost: Vec<Place>,
        /// Which distribution was chosen, and why.
        pub distribution: String,
    }

    /// A view that is kept with a file.
    pub struct NamedView {
        /// As the user wrote it.
        pub text: String,
        /// What it selects.
        pub view: View,
    }

    /// Keeps a view; one of the same name is replaced.
    pub struct PutView {
        /// With which file.
        pub path: String,
        /// Under which name.
        pub name: String,
        /// The view.
        pub view: NamedView,
    }

    /// Asks for a view.
    pub struct GetView {
        /// Of which file.
        pub path: String,
        /// Its name.
        pub name: String,
    }

    /// Removes a view.
    pub struct RemoveView {
        /// Of which file.
        pub path: String,
        /// Its name.
        pub name: String,
    }

    /// Asks for the names of the views of a file.
    pub struct ListViews {
        /// Which file.
        pub path: String,
        /// Only names behind this one.
        pub after: Option<String>,
        /// At most so many; the manager may give fewer, and an empty answer is the end.
        pub limit: u32,
    }

    /// A view without what it selects.
    pub struct ViewName {
        /// Its name.
        pub name: String,
        /// As the user wrote it.
        pub text: String,
    }

    /// A value with a name, which a program keeps with a file. The service does not look into it.
    pub struct NamedValue {
        /// Its name.
        pub name: String,
        /// The value.
        pub value: Bytes,
    }

    /// Keeps values with a file and removes others, all or nothing. Values of the same name are replaced; removing what is
    /// not there is no mistake.
    pub struct ChangeValues {
        /// Which file.
        pub path: String,
        /// To be kept.
        pub put: Vec<NamedValue>,
        /// Names of those to be removed, before the others are kept.
        pub remove: Vec<String>,
    }

    /// Asks for the values that are kept with a file, by ascending names.
    pub struct GetValues {
        /// Which file.
        pub path: String,
    }

    /// Gives the array of a file another extent along its slowest dimension, if it is still the one that the caller
    /// knows. No byte moves; those behind the end of a shorter array stay until the file is cut.
    pub struct ChangeArray {
        /// Which file.
        pub path: String,
        /// The array as the caller knows it.
        pub from: String,
        /// The array it becomes.
        pub to: String,
    }

    /// The array of a file after it was to be changed.
    pub struct ArrayIs {
        /// Whether it was changed by this.
        pub is_changed: bool,
        /// The array.
        pub array: String,
    }

    /// Asks for all servers that joined.
    pub struct Members {}

    /// An address that is good on one host only.
    pub struct LocalAddress {
        /// The host: equal texts mean that the address can be connected to.
        pub host: String,
        /// A Unix socket.
        pub address: String,
    }

    /// A server that joined at some time.
    pub struct Member {
        /// Its number, over all starts.
        pub server: ServerId,
        /// Where it listens.
        pub address: String,
        /// Where processes of its own host reach it, if that is another address and it is connected.
        pub local: Option<LocalAddress>,
        /// Its latest start.
        pub incarnation: u64,
        /// The earliest start whose bytes it still has.
        pub kept_since: u64,
        /// Where it keeps bytes.
        pub store: StoreKind,
        /// Room in all; 0 is unknown, and counts as enough.
        pub capacity_bytes: u64,
        /// Room taken, as last reported.
        pub used_bytes: u64,
        /// How far it is from the clients, in units that only compare.
        pub distance: u64,
        /// Whether it takes part.
        pub state: MemberState,
        /// It gets nothing new, and what it has is moved away.
        pub is_draining: bool,
    }

    /// Asks what there is in all.
    pub struct Count {}

    /// What there is in all.
    pub struct Counts {
        /// Files, those included that are open but have no name.
        pub files: u64,
        /// Directories, the root included.
        pub directories: u64,
        /// Removals that wait for servers.
        pub removals: u64,
        /// When the backup was made that the catalogue was restored from, in seconds since 1970; 0 if it never was.
        pub restored_from_s: u64,
        /// Trees that were removed and are not cleared yet. What they had counts as file or directory until it is.
        pub trees: u64,
        /// Names below them that are gone for good.
        pub tree_names: u64,
        /// Directories of them that were met and are not empty yet.
        pub tree_directories: u64,
    }

    /// Looks for contradictions in the catalogue. Only for the user who runs the service, and root.
    pub struct Check {}

    /// Something that does not fit.
    pub struct Finding {
        /// How bad it is.
        pub severity: Severity,
        /// What it is.
        pub text: String,
    }

    /// Moves a file into another layout.
    pub struct Relayout {
        /// Which file.
        pub path: String,
        /// The new layout; empty for the one it has, with other servers.
        pub layout: String,
        /// By subfile, its server; begun again when there are more subfiles. Empty leaves it to the rule, and
        /// with an empty layout moves every subfile that is on a server which takes nothing new.
        pub servers: Vec<u64>,
        /// How to move.
        pub options: MoveOptions,
    }

    /// How a file is moved.
    pub struct MoveOptions {
        /// Most bytes a second; 0 is no limit.
        pub limit_bytes: u64,
        /// Bytes that move at a time, over all lanes; 0 lets the service find it.
        pub window_bytes: u64,
        /// Parts of the file that move at once; 0 lets the service choose.
        pub lanes: u64,
        /// Uses little extra space: one lane and short windows, where they are not given.
        pub in_place: bool,
    }

    /// Asks how far the move of a file has come.
    pub struct RelayoutProgress {
        /// Which file.
        pub file: FileId,
    }

    /// Changes how a move goes on. Pausing a paused move is no mistake, and neither is resuming one that
    /// goes on.
    pub struct ControlRelayout {
        /// Which file.
        pub file: FileId,
        /// What to do.
        pub what: MoveControl,
        /// The new limit in bytes a second, for [`MoveControl::Limit`]; 0 is none.
        pub limit_bytes: u64,
    }

    /// How far a move has come.
    pub struct Progress {
        /// The file.
        pub file: FileId,
        /// The generation it moves to.
        pub generation: u64,
        /// Bytes moved.
        pub moved_bytes: u64,
        /// Bytes to move.
        pub total_bytes: u64,
        /// Bytes a second, lately.
        pub rate_bytes: u64,
        /// Lanes that have bytes left.
        pub lanes: u64,
        /// Most bytes a second; 0 is no limit.
        pub limit_bytes: u64,
        /// Whether it goes on.
        pub state: MoveState,
        /// Why it failed, is paused or waits, if it does.
        pub failure: String,
    }

    /// Asks which files are being moved.
    pub struct ListMoves {}

    /// A move under way.
    pub struct MoveIs {
        /// The path of the file; empty if it has lost its name.
        pub path: String,
        /// How far it has come.
        pub progress: Progress,
    }

    /// Takes all bytes and duties away from a server, which gets nothing new from now on; or lets it take
    /// part again. Only for the user who runs the service, and root.
    pub struct Drain {
        /// Which.
        pub server: ServerId,
        /// It takes part again; what has moved stays where it is.
        pub is_over: bool,
        /// How to move.
        pub options: MoveOptions,
    }

    /// Asks how far the draining of a server has come.
    pub struct DrainProgress {
        /// Which.
        pub server: ServerId,
    }

    /// How far the draining of a server has come.
    pub struct DrainAnswer {
        /// Which.
        pub server: ServerId,
        /// Whether it is being drained, or was.
        pub is_draining: bool,
        /// Files that have a part there or are owned by it.
        pub files: u64,
        /// Bytes of them that the server still has to hand over, as far as known.
        pub bytes: u64,
        /// Moves under way because of it.
        pub moves: u64,
        /// What keeps it from going on, if anything.
        pub failure: String,
    }

    /// Moves single subfiles to servers that have fewer bytes. Only for who may write the file; without a path
    /// for the user who runs the service, and root.
    pub struct Rebalance {
        /// The file; empty for all files.
        pub path: String,
        /// Only says what would be moved.
        pub is_trial: bool,
        /// How to move.
        pub options: MoveOptions,
    }

    /// A subfile that goes to another server.
    pub struct SubfileMove {
        /// Of which file.
        pub file: FileId,
        /// Its path.
        pub path: String,
        /// Index in the layout.
        pub subfile: u32,
        /// Where it is.
        pub from: ServerId,
        /// Where it goes.
        pub to: ServerId,
        /// Bytes of it, as far as known.
        pub bytes: u64,
    }
}

choice! {
    /// What a node is.
    pub enum Kind {
        /// Has entries.
        Directory = 0,
        /// Has bytes.
        File = 1,
    }

    /// What to do with a file that a client has open.
    pub enum UnlinkHow {
        /// Take its name; the bytes go with the last close.
        EvenIfOpen = 0,
        /// Refuse.
        UnlessOpen = 1,
    }

    /// Where a server keeps bytes.
    pub enum StoreKind {
        /// In memory: gone with the process.
        Memory = 0,
        /// On disks: found again.
        Disk = 1,
    }

    /// Whether a server takes part.
    pub enum MemberState {
        /// Serves, and takes new subfiles.
        Alive = 0,
        /// Was declared dead; may join again.
        Dead = 1,
        /// Serves what it has, but takes nothing new, or has gone on purpose.
        Left = 2,
    }

    /// How bad a finding is.
    pub enum Severity {
        /// The catalogue contradicts itself.
        Broken = 0,
        /// Bytes are gone, as happens when memory servers die.
        Lost = 1,
    }

    /// Whether a move goes on.
    pub enum MoveState {
        /// It does.
        Moving = 0,
        /// All bytes are in the new layout.
        Done = 1,
        /// It cannot go on; the file stays as it is, in one layout or two.
        Failed = 2,
        /// A user has paused it, or there is no space.
        Paused = 3,
        /// It waits for a server that is away.
        Waiting = 4,
        /// Everything moves back.
        Cancelling = 5,
        /// Everything is back in the layout it came from.
        Cancelled = 6,
    }

    /// What to do with a move.
    pub enum MoveControl {
        /// Rest until further notice; the file is used as it is.
        Pause = 0,
        /// Go on.
        Resume = 1,
        /// Move everything back.
        Cancel = 2,
        /// Change the limit.
        Limit = 3,
    }
}

impl MoveOptions {
    /// Everything left to the service.
    pub const DEFAULT: MoveOptions = MoveOptions {
        limit_bytes: 0,
        window_bytes: 0,
        lanes: 0,
        in_place: false,
    };
}

impl Default for MoveOptions {
    fn default() -> Self {
        MoveOptions::DEFAULT
    }
}

impl MoveState {
    /// Whether nothing more happens.
    pub fn is_over(self) -> bool {
        matches!(
            self,
            MoveState::Done | MoveState::Failed | MoveState::Cancelled
        )
    }
}

impl Member {
    /// Whether what was bound to this incarnation of it still exists.
    pub fn keeps(&self, incarnation: u64) -> bool {
        (self.kept_since..=self.incarnation).contains(&incarnation)
    }

    /// Where a process of this host connects to.
    pub fn address_from(&self, host: &str) -> &str {
        match &self.local {
            Some(local) if local.host == host => &local.address,
            _ => &self.address,
        }
    }

    /// Whether it takes new subfiles: more than a 64th of its room is free.
    pub fn has_room(&self) -> bool {
        let free = self.capacity_bytes.saturating_sub(self.used_bytes);
        self.capacity_bytes == 0 || free > self.capacity_bytes / 64
    }

    /// The present start of it.
    pub fn place(&self) -> Place {
        Place {
            server: self.server.0,
            incarnation: self.incarnation,
        }
    }
}

/// A time to set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetTime {
    /// Leave it.
    Keep,
    /// The time of the request; a user who may write may do that.
    Now,
    /// This one; only the owner may.
    To(Time),
}

impl super::Field for SetTime {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            SetTime::Keep => put_number(out, 0),
            SetTime::Now => put_number(out, 1),
            SetTime::To(time) => {
                put_number(out, 2);
                time.put(out);
            }
        }
    }

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(match r.number()? {
            0 => SetTime::Keep,
            1 => SetTime::Now,
            2 => SetTime::To(super::Field::read(r)?),
            other => return Err(DecodeError::BadTag(other)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member() -> Member {
        Member {
            server: ServerId(1),
            address: "tcp:far:1".into(),
            local: Some(LocalAddress {
                host: "here".into(),
                address: "unix:near".into(),
            }),
            incarnation: 17,
            kept_since: 5,
            store: StoreKind::Memory,
            capacity_bytes: 6400,
            used_bytes: 0,
            distance: 0,
            state: MemberState::Alive,
            is_draining: false,
        }
    }

    #[test]
    fn members_say_where_they_are_what_they_keep_and_whether_they_are_full() {
        let mut member = member();
        assert_eq!(member.address_from("here"), "unix:near");
        assert_eq!(member.address_from("elsewhere"), "tcp:far:1");
        member.local = None;
        assert_eq!(member.address_from("here"), "tcp:far:1");
        let kept = [4, 5, 17, 18].map(|start| member.keeps(start));
        assert_eq!(kept, [false, true, true, false]);
        assert_eq!((member.place().server, member.place().incarnation), (1, 17));
        for (used, has_room) in [
            (0, true),
            (6299, true),
            (6300, false),
            (6400, false),
            (9999, false),
        ] {
            member.used_bytes = used;
            assert_eq!(member.has_room(), has_room, "{used} of 6400");
        }
        // One that does not say how much it has takes everything.
        member.capacity_bytes = 0;
        assert!(member.has_room());
    }

    #[test]
    fn moves_are_over_when_nothing_more_happens() {
        for (state, is_over) in [
            (MoveState::Done, true),
            (MoveState::Failed, true),
            (MoveState::Cancelled, true),
            (MoveState::Moving, false),
            (MoveState::Paused, false),
        ] {
            assert_eq!(state.is_over(), is_over, "{state:?}");
        }
    }
}
