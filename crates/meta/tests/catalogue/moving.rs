//! Whole moves of files in one go, for tests that are about something else.
//!
//! A move begins with everything below an end, and ends with everything moved, or back.

use meta::catalogue::{Batch, Caller, MoveRecord, MoveTarget, Removal};
use meta::{FileId, MetaError, Time};

/// Begins to move what is below `end`, in two lanes.
pub(crate) fn begin_move(
    b: &mut Batch<'_>,
    c: &Caller<'_>,
    path: &str,
    text: &str,
    end: u64,
) -> Result<(), MetaError> {
    let file = b.find(c, path)?;
    let target = MoveTarget {
        layout: text.to_owned(),
        ..MoveTarget::default()
    };
    b.begin_relayout(file, &target, end, MoveRecord::default(), Time(8))
        .map(drop)
}

/// Moves what is below `left` and ends; or, with a size, moves everything back.
pub(crate) fn end_move(
    b: &mut Batch<'_>,
    file: FileId,
    mut step: u64,
    left: u64,
    back: Option<u64>,
) -> Result<(), MetaError> {
    let mut left = Vec::from_iter(std::iter::once(0..left).filter(|r| !r.is_empty()));
    if let Some(size) = back {
        let state = b.cancel_relayout(file, step, size)?.decode()?;
        step += 1;
        left = state.pieces[0].ranges.clone();
    }
    if !left.is_empty() {
        assert!(matches!(
            b.finish_relayout(file, step),
            Err(MetaError::InUse { .. } | MetaError::NoSuchFile(_) | MetaError::WrongStep { .. })
        ));
        b.advance_relayout(file, step, &left)?;
        step += 1;
    }
    b.finish_relayout(file, step).map(drop)
}

pub(crate) fn removed(file: u64, generation: u64) -> Removal {
    Removal {
        file: FileId(file),
        generation,
        incarnation: 0,
        subfiles: Vec::new(),
    }
}
