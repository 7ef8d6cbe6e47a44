//! The matrix of the demo: what every byte of it is, and which part of it a process has.
//!
//! The value of an element follows from its place alone, so that a process that reads it, through whatever
//! view, knows every byte it has to find.

use layout::ArrayType;

use crate::commands::Error;

/// How a square matrix is cut into four parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    Rows,
    Columns,
    Squares,
}

impl Cut {
    /// All, as in the paper's tables.
    pub(crate) const ALL: [Cut; 3] = [Cut::Columns, Cut::Squares, Cut::Rows];

    /// The paper's letter.
    pub(crate) fn letter(self) -> &'static str {
        match self {
            Cut::Rows => "r",
            Cut::Columns => "c",
            Cut::Squares => "b",
        }
    }

    /// By its letter.
    pub(crate) fn of(letter: &str) -> Option<Cut> {
        Cut::ALL.into_iter().find(|cut| cut.letter() == letter)
    }

    /// In words.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Cut::Rows => "row blocks",
            Cut::Columns => "column blocks",
            Cut::Squares => "2 x 2 blocks",
        }
    }

    /// As a layout.
    pub(crate) fn layout(self) -> &'static str {
        match self {
            Cut::Rows => "(block, *) onto 4",
            Cut::Columns => "(*, block) onto 4",
            Cut::Squares => "(block, block) onto 2x2",
        }
    }
}

/// One part of a square matrix, row by row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MatrixPart {
    /// Rows and columns of the matrix.
    side: u64,
    /// Bytes of an element, at most 8.
    element: usize,
    rows: (u64, u64),
    columns: (u64, u64),
}

impl MatrixPart {
    /// The part that has this number.
    pub(crate) fn new(array: &ArrayType, cut: Cut, rank: u64) -> Result<MatrixPart, Error> {
        let &[side, other] = array.extents() else {
            return Err(format!("{array} is no matrix").into());
        };
        let element = array.element().size();
        if side != other || side == 0 || element > 8 || rank > 3 {
            return Err(format!("{array}: the demo needs a square matrix of numbers").into());
        }
        let block = |count: u64, index: u64| {
            let len = side.div_ceil(count);
            ((index * len).min(side), ((index + 1) * len).min(side))
        };
        let all = (0, side);
        let (rows, columns) = match cut {
            Cut::Rows => (block(4, rank), all),
            Cut::Columns => (all, block(4, rank)),
            Cut::Squares => (block(2, rank / 2), block(2, rank % 2)),
        };
        Ok(MatrixPart {
            side,
            element: element as usize,
            rows,
            columns,
        })
    }

    /// Its bytes.
    pub(crate) fn bytes(&self) -> usize {
        let count = (self.rows.1 - self.rows.0) * (self.columns.1 - self.columns.0);
        count as usize * self.element
    }

    fn values(&self) -> impl Iterator<Item = [u8; 8]> + '_ {
        (self.rows.0..self.rows.1).flat_map(move |row| {
            (self.columns.0..self.columns.1).map(move |column| value(row * self.side + column))
        })
    }

    /// Its bytes as they have to be.
    pub(crate) fn fill(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.bytes());
        for value in self.values() {
            bytes.extend_from_slice(&value[..self.element]);
        }
        bytes
    }

    /// How many bytes are not as they have to be; missing ones are wrong.
    pub(crate) fn wrong(&self, found: &[u8]) -> u64 {
        let mut pieces = found.chunks(self.element);
        let mut wrong = 0;
        for value in self.values() {
            let expected = &value[..self.element];
            let piece = pieces.next().unwrap_or(&[]);
            if piece != expected {
                let right = piece.iter().zip(expected).filter(|(a, b)| a == b).count();
                wrong += (self.element - right) as u64;
            }
        }
        wrong
    }
}

/// The element at a place: all its bytes depend on all of the place.
fn value(place: u64) -> [u8; 8] {
    random::mix(place.wrapping_add(0x9e37_79b9_7f4a_7c15)).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(array: &str, cut: Cut, rank: u64) -> MatrixPart {
        MatrixPart::new(&array.parse().expect("an array"), cut, rank).expect("a part")
    }

    #[test]
    fn parts_of_every_cut_make_up_the_matrix() {
        for array in ["f64[10,10]", "u8[7,7]"] {
            let whole: ArrayType = array.parse().expect("an array");
            for cut in Cut::ALL {
                let sum: usize = (0..4).map(|rank| part(array, cut, rank).bytes()).sum();
                assert_eq!(sum as u64, whole.bytes(), "{array} {cut:?}");
            }
        }
    }

    #[test]
    fn every_wrong_and_missing_byte_is_counted() {
        let part = part("f64[8,8]", Cut::Squares, 3);
        let mut bytes = part.fill();
        assert_eq!(part.wrong(&bytes), 0);
        bytes[5] ^= 1;
        bytes[77] ^= 0x80;
        assert_eq!(part.wrong(&bytes), 2);
        bytes.truncate(bytes.len() - 3);
        assert_eq!(part.wrong(&bytes), 5);
        assert_eq!(part.wrong(&[]), part.bytes() as u64);
    }

    #[test]
    fn other_shapes_are_refused() {
        for array in ["f64[8]", "f64[8,9]", "c128[4,4]"] {
            let Ok(array) = array.parse::<ArrayType>() else {
                continue;
            };
            assert!(MatrixPart::new(&array, Cut::Rows, 0).is_err(), "{array}");
        }
    }
}
