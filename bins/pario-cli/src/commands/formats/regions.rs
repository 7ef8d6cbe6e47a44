//! Boxes of an array of the service, as views: how chunks of other formats are written and read.
//!
//! Entries of a box lie in the order of the array; a chunk is whole also where its array ends.

use client::{File, View};
use falls::FallsSet;
use layout::{ArrayType, FileOffset, Order, SliceAxis};

use crate::commands::Error;
use crate::commands::connection::refused;

/// First index and number of indices in one dimension.
pub(crate) type Span = (u64, u64);

fn view(array: &ArrayType, region: &[Span]) -> Result<View, Error> {
    let axes = region.iter().zip(array.extents());
    let sets: Result<Vec<FallsSet>, _> = axes
        .map(|(&(first, count), &extent)| {
            SliceAxis::counted(first, count, 1).and_then(|axis| axis.owned(extent))
        })
        .collect();
    let set = sets.and_then(|sets| array.cross(&sets));
    let set = set.map_err(|e| e.to_string())?;
    Ok(View::new(FileOffset(0), array.bytes(), set).map_err(|e| e.to_string())?)
}

/// Writes a box, whose entries lie in the order of the array.
pub(crate) fn write(
    file: &File,
    array: &ArrayType,
    region: &[Span],
    bytes: &[u8],
) -> Result<(), Error> {
    file.set_view(&view(array, region)?).map_err(refused)?;
    let mut done = 0;
    while done < bytes.len() {
        match file
            .write_at(done as u64, &bytes[done..])
            .map_err(refused)?
        {
            0 => return Err("the file takes no more bytes".into()),
            written => done += written,
        }
    }
    Ok(())
}

/// Reads a box in the order of the array; what nobody wrote is zero.
pub(crate) fn read(
    file: &File,
    array: &ArrayType,
    region: &[Span],
    bytes: &mut [u8],
) -> Result<(), Error> {
    file.set_view(&view(array, region)?).map_err(refused)?;
    let mut done = 0;
    while done < bytes.len() {
        match file
            .read_at(done as u64, &mut bytes[done..])
            .map_err(refused)?
        {
            0 => break,
            read => done += read,
        }
    }
    bytes[done..].fill(0);
    Ok(())
}

/// Which side of a chunk has only the entries that the array has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// From a whole chunk into the box.
    Take,
    /// From the box into a whole chunk.
    Put,
}

/// Copies between a chunk, which is whole also at the edge of its array, and the box of it that the array has.
pub(crate) fn copy(
    cut: Cut,
    (chunk, grid): (&mut [u8], &[u64]),
    (part, region): (&mut [u8], &[Span]),
    order: Order,
    entry_bytes: usize,
) {
    // The dimension that varies fastest last.
    let dimensions: Vec<usize> = match order {
        Order::C => (0..grid.len()).collect(),
        Order::Fortran => (0..grid.len()).rev().collect(),
    };
    let Some((&fastest, outer)) = dimensions.split_last() else {
        match cut {
            Cut::Take => part.copy_from_slice(chunk),
            Cut::Put => chunk.copy_from_slice(part),
        }
        return;
    };
    let run = region[fastest].1 as usize * entry_bytes;
    if run == 0 || region.iter().any(|&(_, count)| count == 0) {
        return;
    }
    let mut at = vec![0; outer.len()];
    for row in part.chunks_exact_mut(run) {
        let line = outer
            .iter()
            .zip(&at)
            .fold(0, |line, (&d, &index)| line * grid[d] + index);
        let first = (line * grid[fastest]) as usize * entry_bytes;
        let inside = &mut chunk[first..first + run];
        match cut {
            Cut::Take => row.copy_from_slice(inside),
            Cut::Put => inside.copy_from_slice(row),
        }
        for (index, &d) in at.iter_mut().zip(outer).rev() {
            *index += 1;
            if *index < region[d].1 {
                break;
            }
            *index = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_are_cut_out_and_put_back() {
        // A chunk of 3 by 4, of which the array has 2 by 3.
        let mut chunk: Vec<u8> = (0..12).collect();
        let region = [(6, 2), (4, 3)];
        let mut part = vec![0; 6];
        let order = Order::C;
        copy(
            Cut::Take,
            (&mut chunk, &[3, 4]),
            (&mut part, &region),
            order,
            1,
        );
        assert_eq!(part, [0, 1, 2, 4, 5, 6]);
        let mut whole = vec![9; 12];
        copy(
            Cut::Put,
            (&mut whole, &[3, 4]),
            (&mut part, &region),
            order,
            1,
        );
        assert_eq!(whole, [0, 1, 2, 9, 4, 5, 6, 9, 9, 9, 9, 9]);
        let order = Order::Fortran;
        copy(
            Cut::Take,
            (&mut chunk, &[3, 4]),
            (&mut part, &region),
            order,
            1,
        );
        assert_eq!(part, [0, 1, 3, 4, 6, 7]);
        let (mut one, mut same) = (vec![1, 2], vec![0, 0]);
        copy(Cut::Take, (&mut one, &[]), (&mut same, &[]), order, 2);
        assert_eq!(same, [1, 2]);
    }
}
