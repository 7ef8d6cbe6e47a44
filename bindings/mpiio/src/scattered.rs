//! Accesses through views whose bytes do not ascend: piece by piece, in the order of the view.
//!
//! Correct for every view and slow for small pieces, since each is an access of its own. Such views are rare:
//! see `view`.

use std::ops::Range;

use layout::mpi::FileView;

use crate::entry::Outcome;
use crate::operation::Operation;

/// Bytes that are moved in one go.
const PORTION: u64 = 1 << 20;

/// Moves the bytes of an operation through a scattered view; how many were moved before the end of the file.
pub(crate) fn run(operation: &Operation, view: &FileView) -> Outcome<u64> {
    let memory = &operation.memory;
    let pieces = pieces(view, operation.at..operation.at + memory.size())?;
    let memory = memory.of_request(operation.direction)?;
    Ok(operation.file.file.access_in_pieces(pieces, memory)?)
}

/// Ranges of the file that bytes of a view are, in order, none longer than a portion.
fn pieces(view: &FileView, range: Range<u64>) -> Outcome<impl Iterator<Item = Range<u64>>> {
    let sequence = view.sequence(range)?;
    Ok(sequence.runs().flat_map(|run| {
        // A filetype without negative displacements leads to none in the file.
        let (start, end) = (run.start.unsigned_abs(), run.start.unsigned_abs() + run.len);
        (start..end)
            .step_by(PORTION as usize)
            .map(move |at| at..end.min(at + PORTION))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use layout::mpi::Datatype;

    #[test]
    fn pieces_follow_the_order_of_the_view() {
        let int = Datatype::basic(4).unwrap();
        // Two values 14 apart, tiles every 4: they lie into each other and never meet.
        let far = Datatype::hindexed(&[1, 1], &[0, 14], &Datatype::basic(2).unwrap()).unwrap();
        let filetype = Datatype::resized(0, 4, &far).unwrap();
        let view = FileView::new(100, &int, &filetype).unwrap();
        let got: Vec<_> = pieces(&view, 2..8).unwrap().collect();
        assert_eq!(got, [114..116, 104..106, 118..120]);
        assert_eq!(pieces(&view, 3..3).unwrap().count(), 0);
        let long = FileView::new(0, &int, &Datatype::contiguous(1 << 20, &int).unwrap()).unwrap();
        let got: Vec<_> = pieces(&long, 8..8 + 2 * PORTION).unwrap().collect();
        assert_eq!(got, [8..8 + PORTION, 8 + PORTION..8 + 2 * PORTION]);
    }
}
