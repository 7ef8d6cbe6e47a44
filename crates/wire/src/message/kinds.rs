//! The table of kinds: which number stands for which request, and what answers it.
//!
//! A number is never used for something else. Accesses to bytes have their own numbers in [`super::access`].

use super::ahead::{Confirm, Deposit, ReadAhead};
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
use super::team::*;
use crate::layout_state::LayoutState;
use crate::{ServerId, SizeState};

kinds! {
    0x01 Hello => Welcome;
    0x02 Prove => Welcome;
    0x03 Ping => ();
    0x04 Goodbye => ();
    0x05 Statistics => Vec<Counter>;
    0x06 Shutdown => ();
    0x0e GetSupervisor => Option<String>;

    0x10 Open => Opened;
    0x11 Reopen => Opened;
    0x12 Close => Closed;
    0x13 RenewCapability => Bytes;
    0x14 Create => Created;
    0x15 Mkdir => ();
    0x16 Unlink => ();
    0x17 Rmdir => ();
    0x18 Rename => ();
    0x19 Stat => StatAnswer;
    0x1a List => Listing;
    0x1b Chmod => ();
    0x1c Chown => ();
    0x1d Utimes => ();
    0x1e SetLayout => LayoutState;
    0x1f GetLayout => LayoutAnswer;
    0x20 GetState => LayoutState;
    0x21 PutView => ();
    0x22 GetView => NamedView;
    0x23 RemoveView => ();
    0x24 ListViews => Vec<ViewName>;
    0x25 Members => Vec<Member>;
    0x26 Count => Counts;
    0x27 Check => Vec<Finding>;
    0x28 Relayout => Progress;
    0x29 RelayoutProgress => Progress;
    0x2a Gather => Gathered;
    0x2b LeaveTeam => ();
    0x2c LayOutByViews => LaidOut;
    0x2d ControlRelayout => Progress;
    0x2e ListMoves => Vec<MoveIs>;
    0x2f Drain => Draining;
    0x30 DrainProgress => Draining;
    0x31 Rebalance => Vec<SubfileMove>;
    0x34 PutCalibration => ();
    0x35 GetCalibrations => Vec<Calibration>;
    0x36 PutProfile => ();
    0x37 GetProfile => ProfileIs;
    0x38 SetProfile => ();
    0x39 ReportUse => ();

    0x3a SetHints => ();
    0x3b GetHints => HintsAre;
    0x3c DiskFailed => ();
    0x3d ClearFailed => ();
    0x3e ListFailed => Vec<FailedServer>;
    0x3f MakeBuffers => u64;

    0x40 Join => Joined;
    0x41 Report => Reported;
    0x42 FileState => FileStateIs;
    0x43 ReportSize => SizeState;
    0x44 BeginTruncate => SizeState;
    0x45 FinishTruncate => SizeState;
    0x46 ApplyTruncate => ();
    0x47 AskEnd => EndIs;
    0x48 Fence => ();
    0x49 Tell => ();
    0x4a AskNumber => u64;
    // 0x4b was `Freeze`.
    0x4c Thaw => ();
    0x4f Redomain => ();
    0x50 FenceWindows => Fenced;
    0x51 PullWindows => u64;
    0x52 Lend => Lent;
    0x53 TakePointers => ();
    0x54 TakeServer => Taken;

    0x70 SetView => ();
    0x71 SetViewPart => ();
    0x72 DropView => Verifiers;
    0x73 Size => SizeIs;
    0x74 Grow => SizeIs;
    0x75 Truncate => SizeIs;
    0x76 Preallocate => ();
    0x77 Sync => Synced;
    0x78 Release => ();
    0x79 Allocated => u64;
    0x7a Reserve => Reserved;
    0x7b Appended => SizeIs;
    0x7c JoinPointer => ();
    0x7d LeavePointer => ();
    0x7e MovePointer => u64;
    0x7f Admit => Admitted;
    0x80 LeaveAtomic => ();
    0x81 Lock => ();
    0x82 Unlock => ();
    0x83 Scrub => Scrubbed;
    0x84 ListSubfiles => SubfileList;
    0x85 Attach => Attached;
    0x86 Map => Mapped;
    0x87 Verify => Verifiers;
    0x88 ListDisks => DiskList;

    0x89 ChooseServer => Chosen;
    0x8a Assign => ServerId;
    0x8b Buddy => BuddyIs;

    0x94 Lead => Directed;
    0x95 Follow => Directed;
    0x96 Packet => Directed;
    0x97 HoldRange => u64;
    0x98 LetGo => ();
    0x9b ReadAhead => ();
    0x9c Deposit => bool;
    0x9d Confirm => bool;
}
