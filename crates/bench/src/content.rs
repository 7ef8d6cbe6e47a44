//! What benchmarks write: bytes that follow from their place in the file alone, so that a process that reads
//! them, through whatever view, knows every byte that has to be there.
//!
//! A [`WorkerBytes`] is what one process writes and reads of an array. Before each write its bytes are
//! *stamped* with a number, in view order, so that a read that finds an older write is noticed.

use client::View;
use layout::{ArrayType, FileOffset, Layout};

use console::Error;

/// Bytes between two stamps.
const STAMPED: usize = 64 << 10;

/// What one process writes and reads.
#[derive(Clone, Debug)]
pub(crate) struct WorkerBytes {
    view: View,
    array_bytes: u64,
    salt: u32,
}

impl WorkerBytes {
    /// The bytes of an array that a view in the layout language shows; `salt` tells files apart.
    pub(crate) fn new(array: &ArrayType, view: &str, salt: u32) -> Result<WorkerBytes, Error> {
        let layout: Layout = view.parse().map_err(|e| format!("view: {e}"))?;
        let applied = layout.on_array(array).map_err(|e| format!("view: {e}"))?;
        let element = applied.element(0).map_err(|e| format!("view: {e}"))?;
        let view = View::new(FileOffset(0), applied.period(), element)?;
        Ok(WorkerBytes {
            view,
            array_bytes: array.bytes(),
            salt,
        })
    }

    /// Its bytes in the first array of the file, which may be many periods of the view.
    pub(crate) fn len(&self) -> usize {
        self.view.len_within(self.array_bytes) as usize
    }

    /// Its bytes as they have to be, unstamped.
    pub(crate) fn fill(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.len()];
        let mut rest = &mut bytes[..];
        for run in self.view.bytes().segments(0..self.array_bytes) {
            let (piece, behind) = rest.split_at_mut(run.len() as usize);
            fill(piece, run.start(), self.salt);
            rest = behind;
        }
        bytes
    }
}

/// Fills memory with the bytes that belong at a place of the file.
pub(crate) fn fill(bytes: &mut [u8], place: u64, salt: u32) {
    let head = ((4 - place % 4) % 4).min(bytes.len() as u64) as usize;
    let (unaligned, rest) = bytes.split_at_mut(head);
    for (i, byte) in unaligned.iter_mut().enumerate() {
        *byte = byte_at(place + i as u64, salt);
    }
    let first = (place + head as u64) / 4;
    let mut words = rest.chunks_exact_mut(4);
    let mut index = first as u32;
    for word in &mut words {
        word.copy_from_slice(&mixed(index, salt).to_le_bytes());
        index = index.wrapping_add(1);
    }
    for (i, byte) in words.into_remainder().iter_mut().enumerate() {
        *byte = mixed(index, salt).to_le_bytes()[i];
    }
}

fn byte_at(place: u64, salt: u32) -> u8 {
    mixed((place / 4) as u32, salt).to_le_bytes()[(place % 4) as usize]
}

fn mixed(index: u32, salt: u32) -> u32 {
    random::mix(u64::from(salt) << 32 | u64::from(index)) as u32
}

/// Marks bytes as those of one write; 0 leaves them as they are.
pub(crate) fn stamp(bytes: &mut [u8], number: u32) {
    if number == 0 {
        return;
    }
    for block in bytes.chunks_mut(STAMPED) {
        let n = block.len().min(4);
        block[..n].copy_from_slice(&number.to_le_bytes()[..n]);
    }
}

/// How many bytes differ; missing ones do.
pub(crate) fn wrong(found: &[u8], expected: &[u8]) -> u64 {
    if found == expected {
        return 0;
    }
    let differing = found.iter().zip(expected).filter(|(a, b)| a != b).count();
    (differing + found.len().abs_diff(expected.len())) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_what_a_filled_file_shows() {
        let array: ArrayType = "i32[4,6,10]".parse().expect("an array");
        let mut file = vec![0; array.bytes() as usize];
        fill(&mut file, 0, 7);
        let views: [(usize, &dyn Fn(usize) -> String); 2] = [
            (8, &|rank| {
                format!("(block, block, block) onto 2x2x2 [{rank}]")
            }),
            // Many periods in the array, the last one cut.
            (3, &|rank| format!("striped(28) over 3 [{rank}]")),
        ];
        for (ranks, view) in views {
            let mut sum = 0;
            for rank in 0..ranks {
                let part = WorkerBytes::new(&array, &view(rank), 7).expect("a part");
                let expected: Vec<u8> = (0..part.len() as u64)
                    .map(|k| file[part.view.bytes().select(k).expect("shown") as usize])
                    .collect();
                assert!(part.fill() == expected, "{}", view(rank));
                sum += part.len();
            }
            assert_eq!(sum, file.len());
        }
    }

    #[test]
    fn pieces_that_begin_anywhere_fit_together() {
        let mut whole = vec![0; 100];
        fill(&mut whole, 0, 1);
        for cut in 0..100 {
            let mut piece = vec![0; 100 - cut];
            fill(&mut piece, cut as u64, 1);
            assert!(piece == whole[cut..], "{cut}");
        }
        let mut other = vec![0; 100];
        fill(&mut other, 0, 2);
        assert!(wrong(&other, &whole) > 80);
    }

    #[test]
    fn old_and_missing_bytes_are_wrong() {
        let mut bytes = vec![9; STAMPED + 2];
        let before = bytes.clone();
        stamp(&mut bytes, 0x0102_0304);
        assert_eq!(wrong(&before, &bytes), 6);
        assert_eq!(wrong(&bytes[..10], &bytes), STAMPED as u64 - 8);
        assert_eq!(wrong(&bytes, &bytes), 0);
    }
}
