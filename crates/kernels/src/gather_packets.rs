//! Owns gathering into many packets at once: one pass over the source fills them all.
//!
//! Packets stand in one buffer at the cache-conflict-free stride (`packets`). If they have the
//! same shape and their sources are equally far apart, as when a matrix or a cyclic array is
//! dealt out, the packet becomes one more loop level and the compiler tiles the whole.
//! Otherwise the packets' programs run slice by slice, so that they stay together on their way
//! through the source:
//!
//! ```text
//!  source   |--- slice 0 ---|--- slice 1 ---|
//!  packet 0   part 0           part 0
//!  packet 1   part 1           part 1          all parts of a slice before the next slice
//! ```
//!
//! Invariants: every packet is contiguous and starts at its place; places do not overlap.

use std::ops::Range;

use crate::copy::PackError;
use crate::nest::{Body, Nest, NestError};
use crate::packets::{CacheLevel, cache_optimal_stride};
use crate::program::{BoundsError, Program, Side};
use crate::run;
use crate::shared::{SharedBytes, SharedBytesMut};

/// Source bytes that the packets go through together: they stay in the second cache meanwhile.
const SLICE: u64 = 128 << 10;

/// A compiled gather into packets.
#[derive(Clone, Debug)]
pub struct PacketGather {
    form: Form,
    places: Vec<Range<usize>>,
    buffer_len: usize,
}

#[derive(Clone, Debug)]
enum Form {
    /// The packet is a loop level.
    Together(Program),
    /// One program per packet, and the number of slices.
    Sliced(Vec<Program>, u64),
}

impl PacketGather {
    /// Compiles packets, each given by nests whose targets fill the packet from 0 on without
    /// holes. Packets may be empty.
    ///
    /// ```
    /// use kernels::{Nest, PacketGather, gather_packets};
    /// // Deal six bytes to two packets.
    /// let even = vec![Nest::strided(0, 0, 3, 2, 1, 1)?];
    /// let odd = vec![Nest::strided(1, 0, 3, 2, 1, 1)?];
    /// let gather = PacketGather::compile(&[even, odd])?;
    /// let mut buffer = vec![0; gather.buffer_len()];
    /// gather_packets(&gather, b"abcdef", &mut buffer)?;
    /// assert_eq!(&buffer[gather.places()[0].clone()], b"ace");
    /// assert_eq!(&buffer[gather.places()[1].clone()], b"bdf");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn compile(packets: &[Vec<Nest>]) -> Result<PacketGather, PackError> {
        let programs: Vec<Program> = packets
            .iter()
            .map(|nests| Program::compile(nests))
            .collect();
        for program in &programs {
            if program.bytes() > 0 && (!program.fills_target() || program.target_span().start != 0)
            {
                return Err(PackError::NotContiguous);
            }
        }
        let longest = programs.iter().map(Program::bytes).max().unwrap_or(0);
        let copy_bytes = packets
            .iter()
            .flatten()
            .map(shortest_run)
            .min()
            .unwrap_or(1);
        let stride = cache_optimal_stride(
            longest,
            packets.len() as u64,
            copy_bytes,
            CacheLevel::second(),
        )
        .bytes;
        let too_large = || {
            PackError::Bounds(BoundsError {
                side: Side::Target,
                span: widest(&programs),
                len: 0,
            })
        };
        let end = stride
            .checked_mul(packets.len() as u64)
            .filter(|end| i64::try_from(*end).is_ok());
        end.ok_or_else(too_large)?;
        let place = |(slot, program): (usize, &Program)| {
            let start = slot * stride as usize;
            start..start + program.bytes() as usize
        };
        let places: Vec<Range<usize>> = programs.iter().enumerate().map(place).collect();
        let buffer_len = places.last().map_or(0, |place| place.end);
        let form = match together(packets, stride as i64) {
            Some(Ok(nest)) => Form::Together(Program::compile(&[nest])),
            _ => {
                let spans = programs
                    .iter()
                    .filter(|program| program.bytes() > 0)
                    .map(Program::source_span);
                let span = spans
                    .reduce(|one, other| one.join(other))
                    .map_or(0, |span| span.len());
                Form::Sliced(programs, span.div_ceil(SLICE).max(1))
            }
        };
        Ok(PacketGather {
            form,
            places,
            buffer_len,
        })
    }

    /// Where every packet lies in the buffer.
    pub fn places(&self) -> &[Range<usize>] {
        &self.places
    }

    /// Bytes of the buffer: up to the end of the last packet.
    pub fn buffer_len(&self) -> usize {
        self.buffer_len
    }
}

fn widest(programs: &[Program]) -> crate::nest::Span {
    let spans = programs.iter().map(Program::target_span);
    spans
        .reduce(|one, other| one.join(other))
        .unwrap_or(crate::nest::Span { start: 0, end: 0 })
}

/// The shortest contiguous run of a nest.
fn shortest_run(nest: &Nest) -> u64 {
    match nest.body() {
        Body::Bytes(len) => *len,
        Body::Nested(children) => children.iter().map(shortest_run).min().unwrap_or(1),
    }
}

/// All packets as one nest, if they have one shape and equal source distances.
fn together(packets: &[Vec<Nest>], stride: i64) -> Option<Result<Nest, NestError>> {
    let (first, rest) = packets.split_first()?;
    let step = shift(first, rest.first()?)?;
    for pair in packets.windows(2) {
        if shift(&pair[0], &pair[1])? != step {
            return None;
        }
    }
    Some(Nest::nested(
        0,
        0,
        packets.len() as u64,
        step,
        stride,
        first.clone(),
    ))
}

/// How much further in the source the second list reads than the first, if that is all.
fn shift(one: &[Nest], other: &[Nest]) -> Option<i64> {
    let step = other.first()?.source().checked_sub(one.first()?.source())?;
    let moved = |(one, other): (&Nest, &Nest)| {
        one.source().checked_add(step) == Some(other.source()) && alike(one, other)
    };
    (one.len() == other.len() && one.iter().zip(other).all(moved)).then_some(step)
}

/// Equal but for the source offset. Trees of many nodes are not worth comparing further than
/// their sharing shows.
fn alike(one: &Nest, other: &Nest) -> bool {
    let head = |nest: &Nest| {
        (
            nest.target(),
            nest.count(),
            nest.source_stride(),
            nest.target_stride(),
            nest.bytes(),
        )
    };
    head(one) == head(other)
        && match (one.body(), other.body()) {
            (Body::Bytes(one), Body::Bytes(other)) => one == other,
            (Body::Nested(one), Body::Nested(other)) => {
                std::sync::Arc::ptr_eq(one, other)
                    || (one.len() <= 4 && shift(one, other) == Some(0))
            }
            _ => false,
        }
}

/// Fills all packets in one pass over the source.
pub fn gather_packets(
    gather: &PacketGather,
    source: &[u8],
    buffer: &mut [u8],
) -> Result<(), BoundsError> {
    gather_packets_shared(gather, source.into(), buffer.into())
}

/// As [`gather_packets`], on shared ranges.
pub fn gather_packets_shared(
    gather: &PacketGather,
    source: SharedBytes,
    mut buffer: SharedBytesMut,
) -> Result<(), BoundsError> {
    let (programs, slices) = match &gather.form {
        Form::Together(program) => return crate::copy::copy_shared(program, source, buffer),
        Form::Sliced(programs, slices) => (programs, *slices),
    };
    for (program, place) in programs.iter().zip(&gather.places) {
        program.check(source.len(), buffer.len().saturating_sub(place.start))?;
    }
    let target = buffer.as_mut_ptr();
    for slice in 0..slices {
        for (program, place) in programs.iter().zip(&gather.places) {
            let cut = |index: u64| {
                (u128::from(program.bytes()) * u128::from(index) / u128::from(slices)) as u64
            };
            let to = target.wrapping_add(place.start);
            // SAFETY: the program's spans lie in the source and in the buffer from its place
            // on, checked above.
            unsafe { run::run_window(program, source.as_ptr(), to, cut(slice)..cut(slice + 1)) };
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nest::copy_naive;

    fn check(packets: &[Vec<Nest>], expect_together: bool) {
        let gather = PacketGather::compile(packets).expect("contiguous");
        assert_eq!(matches!(gather.form, Form::Together(_)), expect_together);
        let source_len = packets
            .iter()
            .flatten()
            .map(|nest| nest.source_span().end)
            .max()
            .unwrap_or(0);
        let source: Vec<u8> = (0..source_len).map(|i| (i * 7 % 253) as u8).collect();
        let mut buffer = vec![0xee; gather.buffer_len()];
        gather_packets(&gather, &source, &mut buffer).expect("in bounds");
        for (nests, place) in packets.iter().zip(gather.places()) {
            let mut expected = vec![0; place.len()];
            copy_naive(nests, &source, &mut expected);
            assert!(buffer[place.clone()] == expected);
        }
        let short = gather_packets(&gather, &source[..source.len() - 1], &mut buffer);
        assert!(short.is_err());
        let mut short = vec![0; gather.buffer_len() - 1];
        assert!(gather_packets(&gather, &source, &mut short).is_err());
    }

    #[test]
    fn equal_packets_are_gathered_together() {
        for (packets, len, count) in [(7, 1, 1000), (16, 4, 77), (64, 8, 33), (3, 100, 5)] {
            let nest = |k: i64| {
                Nest::strided(k * len, 0, count, packets * len, len, len as u64).expect("small")
            };
            check(
                &(0..packets).map(|k| vec![nest(k)]).collect::<Vec<_>>(),
                true,
            );
        }
    }

    #[test]
    fn unequal_packets_are_gathered_slice_by_slice() {
        let block = |source, target, len| Nest::block(source, target, len).expect("small");
        let strided = |source, count, stride, len: u64| {
            Nest::strided(source, 0, count, stride, len as i64, len).expect("small")
        };
        check(
            &[
                vec![strided(0, 40_000, 10, 3)],
                vec![strided(3, 39_999, 10, 4)],
                vec![],
                vec![block(7, 0, 3), block(399_990, 3, 5), block(17, 8, 3)],
            ],
            false,
        );
    }

    #[test]
    fn packets_with_holes_are_refused() {
        let holes = vec![Nest::strided(0, 0, 4, 2, 2, 1).expect("small")];
        assert_eq!(
            PacketGather::compile(&[holes]).err(),
            Some(PackError::NotContiguous)
        );
        let late = vec![Nest::block(0, 1, 4).expect("small")];
        assert_eq!(
            PacketGather::compile(&[late]).err(),
            Some(PackError::NotContiguous)
        );
    }
}
