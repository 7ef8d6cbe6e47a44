//! Any row at all: which decoder reads it.
//!
//! For tests and fuzzers. Rows come from a disk: whatever bytes they have, reading them ends in a value or in a typed
//! error, and takes memory in proportion to their length.

use wire::LayoutState;
use wire::message::Field;

use super::record::{self, decode, read_distribution, read_entry, read_member, read_move};
use super::{NamedView, answered, calibration, hints, profiles, remove_tree, version1};
use crate::error::MetaError;

/// Reads one row with the decoder of its kind. A key of no known kind is read by nobody.
pub fn read_row(key: &[u8], value: &[u8]) -> Result<(), MetaError> {
    match key.first() {
        Some(&record::FORMAT) => decode(key, value, |r| {
            r.text()?;
            r.number()?;
            r.take(r.left()).map(drop)
        }),
        Some(&record::NODE) => record::read_node(key, value).map(drop),
        Some(&record::ENTRY) => read_entry(key, value).map(drop),
        Some(&record::VIEW) => decode(key, value, NamedView::read).map(drop),
        Some(&record::MEMBER) => read_member(key, value).map(drop),
        Some(&record::REMOVAL) => record::read_removal(key, value).map(drop),
        Some(&record::COUNTER) => decode(key, value, |r| r.number()).map(drop),
        Some(&record::LAYOUT) => {
            // Of the present version, or of the first.
            let now = decode(key, value, LayoutState::read).map(drop);
            now.or_else(|_| version1::check(key, value))
        }
        Some(&record::DISTRIBUTION) => read_distribution(key, value).map(drop),
        Some(&record::MOVING) => read_move(key, value).map(drop),
        Some(&record::CALIBRATION) => calibration::read_row(key, value),
        Some(&record::PROFILE) => profiles::read_kept(key, value).map(drop),
        Some(&record::HINTS) => hints::read_notes(key, value).map(drop),
        Some(&record::ANSWER) => answered::read_row(key, value),
        Some(&record::TREE) => remove_tree::read_row(key, value).map(drop),
        Some(&record::FAILED) => hints::read_failed(key, value).map(drop),
        _ => Ok(()),
    }
}
