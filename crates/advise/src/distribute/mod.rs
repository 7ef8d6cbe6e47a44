//! Where the bytes of a new file go.
//!
//! | | what decides | module |
//! |---|---|---|
//! | D1 | nothing: blocks of one size over all servers, from the first on | [`Striping`] |
//! | D2 | what is known about servers and about the use of the file | [`choose()`] |
//! | D3 | the views of those who open it together | [`by_views`] |
//!
//! Sections 2.9 and 2.10 of the specification of source 001, with its formulas corrected (statements
//! 53, 55). Invariants: every byte has exactly one home, whichever way is taken; equal knowledge gives
//! equal decisions; nothing takes time in proportion to the file.
//!
//! Left to others: gathering the knowledge, and which server an index means (`meta`).

mod choose;
mod stripe;
mod views;

pub use choose::{
    Choice, Knowledge, LARGE_BYTES, MOST_STRIPE, STRIPE, ServerKnowledge, WHOLE_BYTES, choose,
};
pub use stripe::Striping;
pub use views::{ByViews, DeclineReason, Subfile, ViewRule, by_views};
