//! What a server does for one message each, as far as the message is not of a subject with a module of its own.
//!
//! The dispatch (`service`) has checked who sends it, and names a function for each kind. A verb gets the parts of the
//! server that it needs, decides, and returns an answer or a refusal; only [`lock()`] answers by itself.
//!
//! | messages | file |
//! |---|---|
//! | `Hello`, `Beat`, `Goodbye`, `Statistics`, `Shutdown` | of their names |
//! | `SetView`, `SetViewPart`, `DropView`, `HoldRange`, `LetGo` | of their names |
//! | `Sync`, `Preallocate`, `KeepAhead`, `Punch`, `Allocation`, `Scrub`, `TakeLayout` | of their names |
//! | `ListSubfiles`, `Discard`, `ListDisks`, `ClearFailed` | of their names |
//! | `Lock`, `Unlock` | of their names |
//! | `Size`, `Grow`, `Truncate`, ... to the owner of a file | `ask_owner`, which finds the client; the function is the [owner](crate::owner)'s |
//!
//! Of a subject: `READ`, `WRITE` (`access`, `gateway`), `ChooseServer` (`gateway`), `Attach`, `Map` (`direct`), `Lead`, `Follow`,
//! `Deposit`, `Confirm` (`directed`), `FenceWindows`, `PullWindows`, `Lend` (`moving`), `ApplyTruncate`, `AskEnd`, `AskNumber`, `Fence`,
//! `Tell`, `Redomain` (`files`), `TakePointers`, `TakeServer` (`owner`), `ReadAhead` (`ahead`), `MakeBuffers` (`buffers`).

mod allocated;
mod ask_owner;
mod clear_failed;
mod discard;
mod drop_view;
mod goodbye;
mod hello;
mod hold_range;
mod keep_ahead;
mod let_go;
mod list_disks;
mod list_subfiles;
mod lock;
mod preallocate;
mod punch;
mod scrub;
mod set_view;
mod set_view_part;
mod shutdown;
mod statistics;
mod sync;
mod take_layout;
mod unlock;

pub(crate) use allocated::allocated;
pub(crate) use ask_owner::{ask_owner, with_asker};
pub(crate) use clear_failed::clear_failed;
pub(crate) use discard::discard;
pub(crate) use drop_view::drop_view;
pub(crate) use goodbye::{Departures, goodbye};
pub(crate) use hello::recognise;
pub(crate) use hold_range::{Hold, hold_range, holder, release};
pub(crate) use keep_ahead::keep_ahead;
pub(crate) use let_go::let_go;
pub(crate) use list_disks::list_disks;
pub(crate) use list_subfiles::list_subfiles;
pub(crate) use lock::lock;
pub(crate) use preallocate::preallocate;
pub(crate) use punch::punch;
pub(crate) use scrub::scrub;
pub(crate) use set_view::{Permit, set_view};
pub(crate) use set_view_part::set_view_part;
pub(crate) use shutdown::shutdown;
pub(crate) use statistics::statistics;
pub(crate) use sync::sync;
pub(crate) use take_layout::take_layout;
pub(crate) use unlock::unlock;
