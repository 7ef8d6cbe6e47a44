//! The table of kinds: which number stands for which request, who sends it to whom, and what answers it.
//!
//! A number is never used for something else. Accesses to bytes have their own numbers in [`super::access`].

use super::ahead::{Confirm, Deposit, ReadAhead};
use super::backup::*;
use super::calibration::*;
use super::catalogue::*;
use super::cluster::*;
use super::direct::*;
use super::directed::*;
use super::field::Bytes;
use super::file::*;
use super::hints::*;
use super::mapping::*;
use super::profile::*;
use super::session::*;
use super::stamps::*;
use super::team::*;
use super::trees::RemoveTree;
use crate::layout_state::LayoutState;
use crate::{ServerId, SizeState};

kinds! {
    0x01 Anyone to AnyServer: Hello => Welcome;
    0x02 Anyone to AnyServer: Prove => Welcome;
    0x03 Anyone to AnyServer: Ping => ();
    0x04 Client to AnyServer: Goodbye => ();
    0x05 Anyone to AnyServer: Statistics => Vec<Counter>;
    0x06 Anyone to AnyServer: Shutdown => ();
    0x07 Client to IoServer: Beat => u64;
    0x08 Client to Manager: Backup => BackupPart;
    0x09 Client to IoServer: Discard => String;
    0x0e Client to Manager: GetSupervisor => Option<String>;

    0x10 Client to Manager: Open => OpenAnswer;
    0x11 Client to Manager: Reopen => OpenAnswer;
    0x12 Client to Manager: Close => CloseAnswer;
    0x13 Client to Manager: RenewCapability => Bytes;
    0x14 Client to Manager: Create => CreateAnswer;
    0x15 Client to Manager: Mkdir => ();
    0x16 Client to Manager: Unlink => ();
    0x17 Client to Manager: Rmdir => ();
    0x18 Client to Manager: Rename => ();
    0x19 Client to Manager: Stat => StatAnswer;
    0x1a Client to Manager: List => Listing;
    0x1b Client to Manager: Chmod => ();
    0x1c Client to Manager: Chown => ();
    0x1d Client to Manager: Utimes => ();
    0x1e Client to Manager: SetLayout => LayoutState;
    0x1f Client to Manager: GetLayout => LayoutAnswer;
    0x20 Client to Manager: GetState => LayoutState;
    0x21 Client to Manager: PutView => ();
    0x22 Client to Manager: GetView => NamedView;
    0x23 Client to Manager: RemoveView => ();
    0x24 Client to Manager: ListViews => Vec<ViewName>;
    0x25 Client to Manager: Members => Vec<Member>;
    0x26 Client to Manager: Count => Counts;
    0x27 Client to Manager: Check => Vec<Finding>;
    0x28 Client to Manager: Relayout => Progress;
    0x29 Client to Manager: RelayoutProgress => Progress;
    0x2a Client to Manager: Gather => GatherAnswer;
    0x2b Client to Manager: LeaveTeam => ();
    0x2c Client to Manager: LayOutByViews => LayOutAnswer;
    0x2d Client to Manager: ControlRelayout => Progress;
    0x2e Client to Manager: ListMoves => Vec<MoveIs>;
    0x2f Client to Manager: Drain => DrainAnswer;
    0x30 Client to Manager: DrainProgress => DrainAnswer;
    0x31 Client to Manager: Rebalance => Vec<SubfileMove>;
    0x32 Client to Manager: WatchTeam => ();
    0x33 Client to Manager: ChangeArray => ArrayIs;
    0x34 Client to Manager: PutCalibration => ();
    0x35 Client to Manager: GetCalibrations => Vec<Calibration>;
    0x36 Client to Manager: PutProfile => ();
    0x37 Client to Manager: GetProfile => ProfileIs;
    0x38 Client to Manager: SetProfile => ();
    0x39 Server to Manager: ReportUse => ();

    0x3a Client to Manager: SetHints => ();
    0x3b Client to Manager: GetHints => HintsAre;
    0x3c Anyone to Manager: DiskFailed => ();
    0x3d Client to AnyServer: ClearFailed => ();
    0x3e Client to Manager: ListFailed => Vec<FailedServer>;
    0x3f Client to IoServer: MakeBuffers => u64;

    0x40 Server to Manager: Join => JoinAnswer;
    0x41 Server to Manager: Report => ReportAnswer;
    0x42 Server to Manager: FileState => FileStateIs;
    0x43 Server to Manager: ReportSize => SizeState;
    0x44 Server to Manager: BeginTruncate => SizeState;
    0x45 Server to Manager: FinishTruncate => SizeState;
    0x46 Server to IoServer: ApplyTruncate => ();
    0x47 Server to IoServer: AskEnd => EndIs;
    0x48 Server to IoServer: Fence => ();
    0x49 Server to IoServer: Tell => ();
    0x4a Server to IoServer: AskNumber => u64;
    // 0x4b was `Freeze`.
    0x4c Manager to IoServer: TakeLayout => ();
    0x4f Manager to IoServer: Redomain => ();
    0x50 Manager to IoServer: FenceWindows => FenceAnswer;
    0x51 Manager to IoServer: PullWindows => u64;
    0x52 Server to IoServer: Lend => LendAnswer;
    0x53 Manager to IoServer: TakePointers => ();
    0x54 Server to IoServer: TakeServer => TakeServerAnswer;
    0x55 Server to IoServer: Announce => ();
    0x56 Manager to IoServer: AskSizes => Vec<Option<SizeIs>>;

    0x57 Client to Manager: RemoveTree => ();
    0x60 Client to Manager: AttachStamps => StampsAre;
    0x61 Client to Manager: AwaitRecalls => RecallsAre;

    0x70 Anyone to IoServer: SetView => ();
    0x71 Anyone to IoServer: SetViewPart => ();
    0x72 Anyone to IoServer: DropView => Verifiers;
    0x73 Client to IoServer: Size => SizeIs;
    0x74 Client to IoServer: Grow => SizeIs;
    0x75 Client to IoServer: Truncate => SizeIs;
    0x76 Client to IoServer: Preallocate => ();
    0x77 Client to IoServer: Sync => SyncAnswer;
    0x78 Client to IoServer: Release => ();
    0x79 Client to IoServer: Allocation => u64;
    0x7a Client to IoServer: Reserve => ReserveAnswer;
    0x7b Client to IoServer: FinishAppend => SizeIs;
    0x7c Client to IoServer: JoinPointer => ();
    0x7d Client to IoServer: LeavePointer => ();
    0x7e Client to IoServer: MovePointer => u64;
    0x7f Client to IoServer: Admit => AdmitAnswer;
    0x80 Client to IoServer: LeaveAtomic => ();
    0x81 Client to IoServer: Lock => ();
    0x82 Client to IoServer: Unlock => ();
    0x83 Client to IoServer: Scrub => ScrubAnswer;
    0x84 Client to IoServer: ListSubfiles => SubfileList;
    0x85 Client to IoServer: Attach => AttachAnswer;
    0x86 Client to IoServer: Map => MapAnswer;
    0x87 Client to IoServer: Verify => Verifiers;
    0x88 Client to IoServer: ListDisks => DiskList;

    0x89 Client to IoServer: ChooseServer => ServerChoice;
    0x8a Client to Manager: Assign => ServerId;
    0x8b Client to Manager: Buddy => BuddyIs;
    0x8c Client to Manager: GetSubfile => SubfileIs;
    0x8d Client to Manager: ChangeValues => ();
    0x8e Client to Manager: GetValues => Vec<NamedValue>;
    0x8f Client to IoServer: Punch => PunchAnswer;

    0x94 Rank to IoServer: Lead => DirectedAnswer;
    0x95 Rank to IoServer: Follow => DirectedAnswer;
    0x96 Rank to IoServer: Packet => DirectedAnswer;
    0x97 Client to IoServer: HoldRange => u64;
    0x98 Client to IoServer: LetGo => ();
    0x9b Client to IoServer: ReadAhead => ();
    0x9c Server to IoServer: Deposit => bool;
    0x9d Server to IoServer: Confirm => bool;
    0x9e Client to IoServer: KeepAhead => ();
}
