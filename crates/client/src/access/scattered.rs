//! Views of MPI whose bytes do not ascend: accessed piece by piece, in the order of the view.
//!
//! ```text
//!  filetype as it is in the file --ascends--> periodic set of bytes      seen as one stream, as any view
//!                                --else-----> scattered                  piece by piece, in view order
//! ```
//!
//! Correct for every view and slow for small pieces, since each is an access of its own. Such views are rare: the standard wants
//! displacements that do not descend, so what remains beyond sets are filetypes that show a byte twice, for reading, and tiles
//! that lie into each other.

use std::ops::Range;

use layout::mpi::{Datatype, FileView};
use layout::{LayoutError, LayoutErrorKind, Sequence, View};

/// Bytes that are moved in one go.
const PORTION: u64 = 1 << 20;

/// Blocks of a type map that are looked at to see whether they descend.
const MOST_RUNS: usize = 1 << 20;

/// A view of MPI that is no set: it shows bytes twice, or not in the order of the file.
#[derive(Clone, Debug)]
pub struct ScatteredView(FileView);

impl ScatteredView {
    /// Nothing for a view whose bytes ascend, which is given back as a set. Refused: copies of the filetype that would lie before
    /// the displacement.
    pub fn unless_ascending(view: &FileView) -> Result<(View, Option<Self>), LayoutError> {
        match view.to_periodic() {
            Ok(bytes) => Ok((bytes.into(), None)),
            Err(error) if *error.kind() != LayoutErrorKind::NotMonotone => Err(error),
            Err(_) if view.filetype().extent() < 0 => Err(LayoutError::argument(
                "filetype",
                "has a negative extent; its copies would lie before the displacement",
            )),
            Err(_) => Ok((View::whole_file(), Some(ScatteredView(view.clone())))),
        }
    }

    /// Where a byte of the view is in the file.
    pub fn to_file(&self, byte: u64) -> Option<u64> {
        u64::try_from(self.0.select(byte)?).ok()
    }

    /// Bytes of the view before the first that is not below `file_len`. Copies at one place count once.
    pub fn len_within(&self, file_len: u64) -> u64 {
        let filetype = self.0.filetype();
        let reach = i128::from(filetype.true_lb()) + i128::from(filetype.true_extent());
        let room = i128::from(file_len) - i128::from(self.0.displacement()) - reach;
        let whole = match i128::from(filetype.extent()) {
            _ if room < 0 => 0,
            0 => 1,
            extent => u64::try_from(room / extent + 1).unwrap_or(u64::MAX),
        };
        let before = whole.saturating_mul(filetype.size());
        if filetype.extent() == 0 && whole == 1 {
            return before;
        }
        // Displacements do not descend, so bytes of the next copy lie within up to one of them.
        let is_within = |k: u64| self.to_file(before + k).is_some_and(|at| at < file_len);
        let (mut low, mut high) = (0, filetype.size());
        while low < high {
            let middle = low + (high - low) / 2;
            match is_within(middle) {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        before.saturating_add(low)
    }

    /// Ranges of the file that bytes of the view are, in order, none longer than a portion: what
    /// [`File::access_in_pieces`](crate::File::access_in_pieces) takes, of a handle that sees the whole file.
    pub fn pieces(
        &self,
        range: Range<u64>,
    ) -> Result<impl Iterator<Item = Range<u64>>, LayoutError> {
        let sequence = self.0.sequence(range)?;
        Ok(sequence.runs().flat_map(|run| {
            // A filetype without negative displacements leads to none in the file.
            let (start, end) = (run.start.unsigned_abs(), run.start.unsigned_abs() + run.len);
            (start..end)
                .step_by(PORTION as usize)
                .map(move |at| at..end.min(at + PORTION))
        }))
    }
}

/// Whether a block of a type map begins before the one before it.
pub fn type_map_descends(datatype: &Datatype) -> bool {
    !datatype.is_monotone() && blocks_descend(&datatype.to_sequence())
}

fn blocks_descend(sequence: &Sequence) -> bool {
    let starts = sequence.runs().take(MOST_RUNS).map(|run| run.start);
    !starts.is_sorted()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two values 14 apart, in tiles of some bytes: those of 4 lie into each other and never meet.
    fn far_apart(displacement: i64, extent: i64) -> ScatteredView {
        let short = Datatype::basic(2).unwrap();
        let far = Datatype::hindexed(&[1, 1], &[0, 14], &short).unwrap();
        let tile = Datatype::resized(0, extent, &far).unwrap();
        let view = FileView::new(displacement, &short, &tile).unwrap();
        let (_, scattered) = ScatteredView::unless_ascending(&view).unwrap();
        scattered.unwrap()
    }

    #[test]
    fn pieces_follow_the_order_of_the_view() {
        let view = far_apart(100, 4);
        let got: Vec<_> = view.pieces(2..8).unwrap().collect();
        assert_eq!(got, [114..116, 104..106, 118..120]);
        assert_eq!(view.pieces(3..3).unwrap().count(), 0);
        let int = Datatype::basic(4).unwrap();
        let long = FileView::new(0, &int, &Datatype::contiguous(1 << 20, &int).unwrap()).unwrap();
        let long = ScatteredView(long);
        let got: Vec<_> = long.pieces(8..8 + 2 * PORTION).unwrap().collect();
        assert_eq!(got, [8..8 + PORTION, 8 + PORTION..8 + 2 * PORTION]);
    }

    #[test]
    fn a_file_holds_the_bytes_of_a_scattered_view_up_to_the_first_beyond_it() {
        let view = far_apart(100, 4);
        for (file_len, bytes) in [
            (0, 0),
            (100, 0),
            (101, 1),
            (102, 2),
            (115, 3),
            (116, 6),
            (119, 7),
            (120, 10),
        ] {
            let is_within = |k: &u64| view.to_file(*k).unwrap() < file_len;
            let naive = (0..).take_while(is_within).count();
            assert_eq!(view.len_within(file_len), bytes, "{file_len}");
            assert_eq!(naive as u64, bytes, "{file_len}");
        }
        let still = far_apart(0, 0);
        assert_eq!(still.len_within(16), 4);
        assert_eq!(still.len_within(15), 3);
    }

    #[test]
    fn blocks_that_overlap_do_not_descend() {
        let sequence =
            |blocks: &[(i64, u64)]| Sequence::from_blocks(blocks.iter().copied()).unwrap();
        assert!(!blocks_descend(&sequence(&[(0, 4), (2, 4), (2, 1)])));
        assert!(blocks_descend(&sequence(&[(8, 4), (0, 4)])));
    }
}
