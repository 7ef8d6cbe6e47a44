//! Reading catalogues of version 1: layout states without steps.
//!
//! Their rows are written anew when such a catalogue is opened; everything else is as it was, or ends
//! earlier, which the readers of those records know. A file that was between two layouts goes on from the
//! beginning: in version 1 nothing was served from the second one.

use wire::{DecodeError, LayoutState, Piece, Place, Reader, describe};

use super::record::{decode, key, put_layout_state};
use super::rows::{Rows, RowsTransaction};
use crate::FileId;
use crate::error::MetaError;

/// Writes the layout states in the present form.
pub(super) fn rewrite(rows: &mut RowsTransaction<'_>) -> Result<(), MetaError> {
    let mut states = Vec::new();
    rows.for_each(&key::layouts(), &mut |key, bytes| {
        let file = FileId(key::number(key, 0).unwrap_or(0));
        states.push((file, decode(key, bytes, read)?));
        Ok(())
    })?;
    for (file, state) in states {
        put_layout_state(rows, file, &state);
    }
    Ok(())
}

/// Whether a layout state of version 1 can be read.
pub(super) fn check(key: &[u8], value: &[u8]) -> Result<(), MetaError> {
    decode(key, value, read).map(drop)
}

fn place(r: &mut Reader<'_>) -> Result<Place, DecodeError> {
    Ok(Place {
        server: r.number()?,
        incarnation: r.number()?,
    })
}

fn read(r: &mut Reader<'_>) -> Result<LayoutState, DecodeError> {
    let owner = place(r)?;
    let _size_at_start = r.number()?;
    for _frontier in 0..r.length(1)? {
        r.number()?;
    }
    let mut pieces = Vec::new();
    for _ in 0..r.length(1)? {
        let generation = r.number()?;
        let mut ranges = Vec::new();
        for _ in 0..r.length(2)? {
            ranges.push(r.number()?..r.number()?);
        }
        let partition = describe::partition(r)?;
        let mut places = Vec::new();
        for _ in 0..partition.len() {
            let count = r.length(2)?;
            places.push((0..count).map(|_| place(r)).collect::<Result<_, _>>()?);
        }
        pieces.push(Piece {
            ranges,
            ..Piece::whole(generation, partition, places)
        });
    }
    Ok(LayoutState {
        owner,
        step: 1,
        pieces,
    })
}
