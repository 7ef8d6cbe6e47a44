//! What a server does for one message each, as far as it is no subject of its own.
//!
//! The dispatch (`service`) has checked who sends it. A verb gets the parts of the server that it needs, decides, and
//! returns an answer or a refusal; only [`lock`] answers by itself.
//!
//! | messages | file |
//! |---|---|
//! | `Hello`, `Beat`, `Goodbye` and the death of a client | `hello`, `leave` |
//! | `SetView`, `SetViewPart`, `DropView` | `set_view` |
//! | `HoldRange`, `LetGo` | `hold_range` |
//! | `Size`, `Grow`, `Lock`, ... to the owner of a file | `ask_owner` |
//! | `Sync`, `Preallocate`, `Thaw`, `Statistics` | of their names |
//! | `Allocated`, `Scrub`, `ListSubfiles` | `inspect` |
//!
//! Elsewhere: `READ`, `WRITE` (`access`, `gateway`), `Attach`, `Map` (`direct`), `Lead`, `Follow` (`directed`),
//! `FenceWindows`, `PullWindows`, `Lend` (`moving`), `ApplyTruncate`, `AskEnd` (`files`), `ReadAhead` (`ahead`).

mod ask_owner;
mod hello;
mod hold_range;
mod inspect;
mod leave;
mod preallocate;
mod set_view;
mod statistics;
mod sync;
mod thaw;

pub(crate) use ask_owner::{ask_owner, lock, with_asker};
pub(crate) use hello::recognise;
pub(crate) use hold_range::{Hold, hold, holder, let_go, release};
pub(crate) use inspect::{allocated, list_subfiles, scrub};
pub(crate) use leave::{Departures, goodbye};
pub(crate) use preallocate::preallocate;
pub(crate) use set_view::{Permit, drop_view, set_view, set_view_part};
pub(crate) use statistics::statistics;
pub(crate) use sync::sync;
pub(crate) use thaw::thaw;
