//! What a client will access next, from what it accessed before.
//!
//! A [`Predictor`] watches (offset, size) of one client in one view, in view bytes, and says what comes
//! next. What it keeps are *runs*: equal steps in a row.
//!
//! ```text
//!  offsets   0 10 20   100 110 120   200 210 ...        sizes 4
//!  steps      +10 +10   +80 +10 +10   +80 +10           (as gaps from end to start: 6 6 76 6 6 76 6)
//!  runs       (6 x2)    (76 x1) (6 x2) (76 x1) (6 x1)   next: 6 once more, then 76
//! ```
//!
//! | pattern | what is seen | what is said |
//! |---|---|---|
//! | consecutive | gap 0, sizes may differ | from the end on, with the last size |
//! | strided, reverse | one gap, forwards or backwards | the same gap and size again |
//! | nested strided | runs that repeat with a period of runs | the step at the same place one period before |
//! | a profile of an earlier run | the steps of that run | its next step, until one differs |
//! | nothing yet | a view that was just set | the first byte of the view |
//!
//! **How many steps are enough** (n). *Confidence* goes from 0 to 255 and begins at 96. A prediction that
//! came true adds a quarter of what is missing to 255; one that did not halves it. A pattern counts after
//! 1 step from 192 on, after 2 from 96 on, after 3 from 40 on, after 5 below. So a client that is regular is
//! trusted sooner, and one that is not has to be regular for longer.
//!
//! Invariants
//! - The same observations give the same predictions; no clock, no randomness.
//! - At most [`MOST_RUNS`] runs are kept, however long the history: memory and time are constant.
//! - A prediction never leaves the view: it begins at or behind its first byte, and [`Predictor::next_in`]
//!   cuts it at the end of what the view shows of the file.
//! - A change of the view begins a new predictor; a change of the server does not:
//!   [`Predictor::export`] travels with the client.
//!
//! Left to others: which server follows from a prediction (`mapping`), prefetching.
//!
//! Section 2.8 (M4) and 2.15 of the specification of source 001, with its corrections D-21.

mod predictor;
mod profile;
mod reach;
pub(crate) mod travel;

pub use predictor::{MOST_RUNS, NextAccess, Pattern, Predictor};
pub use profile::{Profile, ProfileError};
pub use reach::{Ahead, Reach};
