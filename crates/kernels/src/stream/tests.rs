//! Streams against the byte-by-byte meaning of their sets: membership decides which bytes there
//! are, and counting decides where they lie in the packet.

use falls::{Falls, FallsSet, Periodic, Segment};
use proptest::prelude::*;

use super::Stream;
use crate::program::Side;
use crate::property_tests::{config, pattern};

/// Offsets of the bytes below `limit` above the displacement, one by one.
fn offsets_naive(periodic: &Periodic, limit: u64) -> Vec<u64> {
    let start = periodic.displacement();
    (start..start + limit)
        .filter(|&x| periodic.contains(x))
        .collect()
}

/// Runs a range every way there is and compares. `slack` bytes of memory lie before the first byte
/// and behind the last, `skew` bytes before the packet.
fn check(stream: &Stream, offsets: &[u64], range: std::ops::Range<usize>, slack: u64, skew: usize) {
    let places = &offsets[range.clone()];
    let positions = range.start as u64..range.end as u64;
    let (Some(&first), Some(&last)) = (places.first(), places.last()) else {
        return;
    };
    let base = first - slack.min(first);
    let len = (last + 1 - base + slack) as usize;
    let told = || format!("{:?} {positions:?} base {base}", stream.periodic());
    let index = |x: &u64| (x - base) as usize;
    let one_run = last - first == places.len() as u64 - 1;
    assert_eq!(
        stream.contiguous(positions.clone()),
        one_run.then_some(first)
    );

    let memory = pattern(len, 1);
    let blank = pattern(skew + places.len() + 5, 2);
    let mut expected = blank.clone();
    for (byte, x) in expected[skew..].iter_mut().zip(places) {
        *byte = memory[index(x)];
    }
    let mut packed = blank;
    stream
        .gather(
            positions.clone(),
            memory[..].into(),
            base,
            &mut packed[skew..],
        )
        .expect("in bounds");
    assert!(packed == expected, "gather {}", told());

    let packet = pattern(skew + places.len(), 3);
    let packet = &packet[skew..];
    let mut expected = memory.clone();
    for (byte, x) in packet.iter().zip(places) {
        expected[index(x)] = *byte;
    }
    let mut target = memory.clone();
    stream
        .scatter(positions.clone(), packet, target[..].as_mut().into(), base)
        .expect("in bounds");
    assert!(target == expected, "scatter {}", told());

    for x in places {
        expected[index(x)] = 0;
    }
    stream
        .fill_zeros(positions.clone(), target[..].as_mut().into(), base)
        .expect("in bounds");
    assert!(target == expected, "zeros {}", told());

    // One byte less on any side is refused, and nothing is written.
    let short = &memory[..index(&last)];
    let refused = stream
        .gather(positions.clone(), short.into(), base, &mut packed[skew..])
        .expect_err("short");
    assert_eq!(
        (refused.side, refused.span.end),
        (Side::Source, (last + 1 - base) as i64)
    );
    let late = stream.fill_zeros(positions.clone(), target[..].as_mut().into(), first + 1);
    assert_eq!(late.expect_err("late").span.start, -1);
    let less = &packet[1..];
    assert!(
        stream
            .scatter(positions.clone(), less, target[..].as_mut().into(), base)
            .is_err()
    );
    assert!(target == expected, "refused, but written: {}", told());
}

/// A member of a set in the making: distances, so that every value is well formed.
#[derive(Clone, Debug)]
struct Shape {
    gap: u64,
    len: u64,
    extra: u64,
    count: u64,
    inner: Vec<Shape>,
}

fn build(shapes: &[Shape]) -> FallsSet {
    let mut end = 0;
    let mut members = Vec::new();
    for shape in shapes {
        let start = end + shape.gap;
        let member = if shape.inner.is_empty() {
            Falls::family(start, shape.len, shape.len + shape.extra, shape.count)
        } else {
            let inner = build(&shape.inner);
            let len = inner.end() + shape.len - 1;
            Falls::nested(start, len, len + shape.extra, shape.count, inner)
        };
        let member = member.expect("well formed");
        end = member.end();
        members.push(member);
    }
    FallsSet::new(members).expect("ascending")
}

fn shapes() -> impl Strategy<Value = Vec<Shape>> {
    let len = prop_oneof![4 => 1u64..10, 2 => prop::sample::select(vec![1u64, 2, 4, 8, 16, 32, 64]), 1 => 1u64..300];
    let leaf = (
        0u64..5,
        len,
        0u64..20,
        prop_oneof![3 => 1u64..6, 1 => 1u64..90],
    )
        .prop_map(|(gap, len, extra, count)| Shape {
            gap,
            len,
            extra,
            count,
            inner: Vec::new(),
        });
    let tree = leaf.prop_recursive(4, 12, 3, |inner| {
        (
            0u64..5,
            1u64..4,
            0u64..9,
            1u64..5,
            prop::collection::vec(inner, 1..4),
        )
            .prop_map(|(gap, len, extra, count, inner)| Shape {
                gap,
                len,
                extra,
                count,
                inner,
            })
    });
    prop::collection::vec(tree, 1..5)
}

/// A range of positions by two numbers from 0 to 1000.
fn between(count: usize, (a, b): (usize, usize)) -> std::ops::Range<usize> {
    let (a, b) = (count * a.min(b) / 1000, count * a.max(b) / 1000);
    a..b.max(a + 1).min(count)
}

proptest! {
    #![proptest_config(config(1024))]

    #[test]
    fn streams_mean_what_their_sets_mean(
        shapes in shapes(),
        tail in prop_oneof![Just(0u64), 0u64..40],
        displacement in prop_oneof![Just(0u64), 0u64..50, Just(1u64 << 62)],
        periods in prop_oneof![1u64..4, 1u64..200],
        ranges in prop::collection::vec((0usize..=1000, 0usize..=1000), 6),
        slack in 0u64..40,
        skew in 0usize..9,
    ) {
        let set = build(&shapes);
        let period = set.end() + tail;
        let periodic = Periodic::new(displacement, period, set).expect("valid");
        let stream = Stream::new(&periodic);
        prop_assert_eq!((stream.period(), stream.bytes_per_period()), (period, periodic.size()));
        let limit = (period * periods).min(30_000).max(period.min(60_000));
        let offsets = offsets_naive(&periodic, limit);
        for (position, &x) in offsets.iter().enumerate().step_by(7) {
            prop_assert_eq!(stream.select(position as u64), Some(x));
            prop_assert_eq!(stream.rank(x), position as u64);
        }
        for ends in ranges {
            check(&stream, &offsets, between(offsets.len(), ends), slack, skew);
        }
        check(&stream, &offsets, 0..offsets.len(), slack, skew);
    }

    #[test]
    fn irregular_segments_mean_what_they_say(
        pieces in prop::collection::vec((0u64..30, 1u64..40), 1..200),
        equal in prop::option::of(prop_oneof![1u64..140, prop::sample::select(vec![1u64, 2, 4, 8, 16, 32, 64])]),
        tail in 0u64..20,
        ranges in prop::collection::vec((0usize..=1000, 0usize..=1000), 6),
        skew in 0usize..9,
    ) {
        let mut end = 0;
        let segments: Vec<Segment> = pieces
            .iter()
            .map(|&(gap, len)| {
                let segment = Segment::new(end + gap, equal.unwrap_or(len)).expect("valid");
                end = segment.end();
                segment
            })
            .collect();
        let set = FallsSet::from_segments(&segments).expect("ascending");
        let periodic = Periodic::new(3, end + tail, set).expect("valid");
        let offsets = offsets_naive(&periodic, 3 * (end + tail));
        let stream = Stream::new(&periodic);
        for ends in ranges {
            check(&stream, &offsets, between(offsets.len(), ends), 2, skew);
        }
    }
}

/// Shapes with all distances `scale` times as long.
fn scaled(shapes: &[Shape], scale: u64) -> Vec<Shape> {
    let grow = |shape: &Shape| Shape {
        gap: shape.gap * scale,
        len: shape.len * scale,
        extra: shape.extra * scale,
        count: shape.count,
        inner: scaled(&shape.inner, scale),
    };
    shapes.iter().map(grow).collect()
}

proptest! {
    #![proptest_config(config(2048))]

    /// The compiled periods agree with the set up to the last offset there is, however long the
    /// period: bounds are taken from the one, and promised for the other.
    #[test]
    fn compiled_places_are_those_of_the_set(
        shapes in shapes(),
        bits in 0u32..62,
        tail in prop_oneof![Just(0u64), 0u64..1 << 20],
        displacement in prop_oneof![Just(0u64), any::<u64>().prop_map(|d| d >> 2)],
        asked in prop::collection::vec(any::<u64>(), 20),
    ) {
        let room = build(&shapes).end().leading_zeros().saturating_sub(3);
        let set = build(&scaled(&shapes, 1 << bits.min(room)));
        let period = set.end() + tail;
        let periodic = Periodic::new(displacement, period, set).expect("valid");
        let stream = Stream::new(&periodic);
        let (size, end) = (periodic.size(), periodic.rank(i64::MAX as u64));
        let edges = [0, size - 1, size, end - 1, end, end + 1, end / size * size, u64::MAX];
        let inside = asked.iter().map(|position| position % end);
        for position in edges.into_iter().chain(inside).chain(asked.iter().copied()) {
            prop_assert_eq!(stream.place(position), periodic.select(position), "{}", position);
        }
    }
}

/// Every set of a period of up to 7 bytes, every range of three periods.
#[test]
fn small_sets_exhaustively() {
    for period in 1..=7u64 {
        for bits in 1..1u64 << period {
            let segments: Vec<Segment> = (0..period)
                .filter(|x| bits >> x & 1 == 1)
                .map(|x| Segment::new(x, 1).expect("valid"))
                .collect();
            let set = FallsSet::from_segments(&segments).expect("ascending");
            let periodic = Periodic::new(bits % 3, period, set).expect("valid");
            let stream = Stream::new(&periodic);
            let offsets = offsets_naive(&periodic, 3 * period);
            for start in 0..offsets.len() {
                for end in start + 1..=offsets.len() {
                    check(&stream, &offsets, start..end, bits % 4, 1);
                }
            }
        }
    }
}

/// Every block length at dense and sparse strides, all the kernels there are.
#[test]
fn every_block_length_is_moved_exactly() {
    for len in (1..=130u64).chain([255, 256, 257, 300, 5000]) {
        for extra in [1, 3, 8, 60] {
            for rows in [1, 3] {
                let inner =
                    FallsSet::new(vec![Falls::family(2, len, len + extra, 21).expect("valid")])
                        .expect("valid");
                let rows_len = inner.end() + 5;
                let nested = Falls::nested(0, rows_len, rows_len + 1, rows, inner).expect("valid");
                let set = FallsSet::new(vec![nested]).expect("valid");
                let periodic = Periodic::new(7, set.end() + 9, set).expect("valid");
                let offsets = offsets_naive(&periodic, 2 * periodic.period());
                let stream = Stream::new(&periodic);
                check(&stream, &offsets, 0..offsets.len(), 0, 0);
                check(
                    &stream,
                    &offsets,
                    1..offsets.len() - 1,
                    1,
                    (len % 9) as usize,
                );
                let middle = offsets.len() / 2;
                check(&stream, &offsets, middle - 1..middle + 1, 1, 3);
            }
        }
    }
}

#[test]
fn a_hundred_thousand_segments_are_found_by_descent() {
    for equal in [true, false] {
        let mut at = 0;
        let segments: Vec<Segment> = (0..100_000u64)
            .map(|i| {
                at += 12 + i * 2_654_435_761 % 11;
                let len = if equal { 8 } else { 1 + i % 9 };
                Segment::new(at - 10, len).expect("valid")
            })
            .collect();
        let set = FallsSet::from_segments(&segments).expect("ascending");
        let periodic = Periodic::new(5, set.end() + 3, set).expect("valid");
        let offsets = offsets_naive(&periodic, periodic.period() + 1000);
        let stream = Stream::new(&periodic);
        check(&stream, &offsets, 0..offsets.len(), 0, 0);
        for start in (0..offsets.len() - 40).step_by(77_777) {
            check(&stream, &offsets, start..start + 40, 3, 1);
        }
    }
}

#[test]
fn blocks_join_across_periods() {
    // 0-1 and 6-7 of 8: four bytes around every border, two at the beginning.
    let periodic = Periodic::new(10, 8, "{(0,1),(6,7)}".parse().expect("set")).expect("valid");
    let stream = Stream::new(&periodic);
    assert_eq!(stream.contiguous(0..2), Some(10));
    assert_eq!(stream.contiguous(2..6), Some(16));
    assert_eq!(stream.contiguous(2..7), None);
    let offsets = offsets_naive(&periodic, 800);
    for start in 0..9 {
        check(&stream, &offsets, start..offsets.len() - start, 3, start);
    }
    assert!(matches!(
        &stream.periods.ops[..],
        [super::compile::Op { body: super::compile::Body::Nest(nest), .. }]
            if nest.len == 4 && nest.levels.len() == 1
    ));
    // Everything is one block, however it is written.
    for (period, text) in [
        (1, "{(0,0)}"),
        (12, "{(0,2),(3,5,3,2,{(0,0),(1,2)}),(9,11)}"),
    ] {
        let periodic = Periodic::new(0, period, text.parse().expect("set")).expect("valid");
        assert!(periodic.is_everything());
        let stream = Stream::new(&periodic);
        assert_eq!(stream.contiguous(5..1 << 40), Some(5));
        check(&stream, &offsets_naive(&periodic, 100), 3..90, 1, 1);
    }
    // A family that goes on at its stride in the next period is one family.
    let family = Periodic::new(0, 64, "{(0,7,16,4)}".parse().expect("set")).expect("valid");
    assert!(matches!(
        &Stream::new(&family).periods.ops[..],
        [super::compile::Op { body: super::compile::Body::Nest(nest), .. }]
            if nest.levels.len() == 1 && nest.levels[0].stride == 16
    ));
}

#[test]
fn distant_bytes_and_extreme_numbers_are_served_or_refused() {
    // A period no memory holds: windows within it are reached all the same.
    let text = "{(0,7,16,1000000),(1099511627776,1099511628799)}";
    let periodic = Periodic::new(3, 1 << 50, text.parse().expect("set")).expect("valid");
    let stream = Stream::new(&periodic);
    let position = 5 * stream.bytes_per_period() + 8_000_100;
    let offset = stream.select(position).expect("there");
    assert_eq!(stream.contiguous(position..position + 900), Some(offset));
    let memory = pattern(2000, 4);
    let mut packed = vec![0; 900];
    stream
        .gather(
            position..position + 900,
            memory[..].into(),
            offset - 17,
            &mut packed,
        )
        .expect("in bounds");
    assert_eq!(packed, memory[17..917]);
    let far = 5 * stream.bytes_per_period() - 4;
    assert!(
        stream
            .gather(far..far + 8, memory[..].into(), offset, &mut packed)
            .is_err()
    );

    let everything = Stream::new(&Periodic::everything());
    let huge = Periodic::new(i64::MAX as u64, i64::MAX as u64, FallsSet::empty()).expect("valid");
    let nothing = Stream::new(&huge);
    for stream in [&everything, &nothing, &stream] {
        for range in [u64::MAX - 1..u64::MAX, 0..u64::MAX, 1 << 63..(1 << 63) + 4] {
            for base in [0, 5, u64::MAX] {
                let zeros = stream.fill_zeros(range.clone(), packed[..].as_mut().into(), base);
                assert!(zeros.is_err(), "{range:?} {base}");
                let gathered =
                    stream.gather(range.clone(), memory[..].into(), base, &mut packed[..]);
                assert!(gathered.is_err());
                let scattered =
                    stream.scatter(range.clone(), &memory, packed[..].as_mut().into(), base);
                assert!(scattered.is_err());
            }
        }
        // Nothing of nothing is fine anywhere.
        assert!(
            stream
                .fill_zeros(9..9, packed[..0].as_mut().into(), 77)
                .is_ok()
        );
        #[allow(clippy::reversed_empty_ranges)]
        let reversed = 9..3;
        assert!(
            stream
                .gather(reversed, memory[..0].into(), 77, &mut [])
                .is_ok()
        );
    }
    assert_eq!(nothing.contiguous(0..0), None);
    assert_eq!(everything.contiguous(4..4), Some(4));
    let last = Periodic::new(0, i64::MAX as u64, "{(0,0)}".parse().expect("set")).expect("valid");
    assert_eq!(Stream::new(&last).contiguous(0..2), None);
}

/// Memory between two pages that fault.
struct Guarded {
    mapping: *mut u8,
    len: usize,
}

const PAGE: usize = 4096;

impl Guarded {
    fn new(pages: usize) -> Guarded {
        let len = pages * PAGE;
        // SAFETY: an anonymous mapping at an address of the system's choice, whose inner pages
        // are then made accessible.
        unsafe {
            let mapping = libc::mmap(
                std::ptr::null_mut(),
                len + 2 * PAGE,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            assert_ne!(mapping, libc::MAP_FAILED);
            let inner = mapping.cast::<u8>().add(PAGE);
            let access = libc::PROT_READ | libc::PROT_WRITE;
            assert_eq!(libc::mprotect(inner.cast(), len, access), 0);
            Guarded {
                mapping: mapping.cast(),
                len,
            }
        }
    }

    /// The first `len` bytes, or the last.
    fn edge(&mut self, len: usize, last: bool) -> &mut [u8] {
        assert!(len <= self.len);
        let start = PAGE + if last { self.len - len } else { 0 };
        // SAFETY: within the accessible pages, which are zero or written since.
        unsafe { std::slice::from_raw_parts_mut(self.mapping.add(start), len) }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own.
        unsafe { libc::munmap(self.mapping.cast(), self.len + 2 * PAGE) };
    }
}

/// No kernel reads or writes a byte beside the first and the last one: both sides touch pages
/// that fault.
#[test]
fn nothing_beside_the_range_is_touched() {
    let (mut spread, mut packed) = (Guarded::new(16), Guarded::new(4));
    let shapes = [
        "{(0,L)}",
        "{(0,L,S,5)}",
        "{(0,L),(M,M)}",
        "{(0,L,S,3),(N,N)}",
    ];
    for len in (1..=20u64).chain([31, 32, 33, 63, 64, 65, 100, 128, 129]) {
        for stride in [len + 1, len + 2, len + 7, 2 * len + 5, 16 + len] {
            for shape in shapes {
                let text = shape
                    .replace('L', &(len - 1).to_string())
                    .replace('S', &stride.to_string())
                    .replace('M', &(len + 1).to_string())
                    .replace('N', &(3 * stride).to_string());
                let set: FallsSet = text.parse().expect("set");
                let period = set.end() + stride - len;
                let stream = Stream::new(&Periodic::new(0, period, set).expect("valid"));
                for bytes in [1, 7, 8, 31, 64, 65, 200, 1000] {
                    let range = 3..3 + bytes;
                    let first = stream.select(range.start).expect("there");
                    let last = stream.select(range.end - 1).expect("there");
                    let span = (last - first + 1) as usize;
                    for at_end in [false, true] {
                        let memory = spread.edge(span, at_end);
                        let packet = packed.edge(bytes as usize, at_end);
                        stream
                            .gather(range.clone(), (&*memory).into(), first, packet)
                            .expect("in bounds");
                        stream
                            .scatter(range.clone(), packet, memory.into(), first)
                            .expect("in bounds");
                        let memory = spread.edge(span, at_end);
                        stream
                            .fill_zeros(range.clone(), memory.into(), first)
                            .expect("in bounds");
                    }
                }
            }
        }
    }
}

/// Families on both sides, of equal lengths, of lengths that divide each other and of others, copied
/// byte by byte and as streams.
#[test]
fn two_streams_are_copied_into_each_other() {
    let elements = [
        "{(0,0,2,8)}",
        "{(0,7,16,4)}",
        "{(0,1,4,16)}",
        "{(0,2,5,12)}",
        "{(0,23,32,2,{(0,3,8,3)})}",
        "{(0,99)}",
        "{(1,2),(5,9),(12,12),(20,63)}",
        "{(0,149,200,3)}",
    ];
    let streams = elements.map(|text| {
        let set: FallsSet = text.parse().unwrap();
        let period = set.end() + 3;
        Stream::new(&Periodic::new(2, period, set).unwrap())
    });
    let memory: Vec<u8> = (0..4000u32).map(|i| (i % 251) as u8 + 1).collect();
    for source in &streams {
        for target in &streams {
            for range in [0..1, 0..90, 3..200, 17..18, 64..64, 100..353] {
                let mut expected = vec![0u8; 4000];
                for j in range.clone() {
                    let (from, to) = (source.select(j).unwrap(), target.select(j).unwrap());
                    expected[to as usize] = memory[from as usize];
                }
                let mut copied = vec![0u8; 4000];
                source
                    .copy_to(
                        range.clone(),
                        memory[..].into(),
                        0,
                        target,
                        copied[..].as_mut().into(),
                        0,
                    )
                    .unwrap();
                assert!(copied == expected, "{source:?} {target:?}");
                if range.is_empty() {
                    continue;
                }
                // Memory that begins with the first byte of the range, in the middle of a block.
                let first = (
                    source.select(range.start).unwrap(),
                    target.select(range.start).unwrap(),
                );
                let mut part = vec![0u8; 4000 - first.1 as usize];
                let from = &memory[first.0 as usize..];
                source
                    .copy_to(
                        range,
                        from.into(),
                        first.0,
                        target,
                        part[..].as_mut().into(),
                        first.1,
                    )
                    .unwrap();
                assert!(part == expected[first.1 as usize..]);
            }
        }
    }
}

/// Rows long enough for the kernels of large jobs, in all directions and at odd places.
#[test]
fn copies_past_the_caches_move_the_same_bytes() {
    let elements = [
        "{(0,8191,16384,1)}",
        "{(0,7,16,1)}",
        "{(3,4102,9000,1)}",
        "{(0,599,700,3)}",
        "{(0,99,100,1)}",
        "{(0,63,128,1)}",
    ];
    let streams = elements.map(|text| {
        let set: FallsSet = text.parse().unwrap();
        let period = match text {
            "{(0,8191,16384,1)}" => 16384,
            "{(0,7,16,1)}" => 16,
            "{(0,63,128,1)}" => 128,
            _ => set.end() + 5,
        };
        Stream::new(&Periodic::new(1, period, set).unwrap())
    });
    let memory: Vec<u8> = (0..1_600_000u32).map(|i| (i % 251) as u8 + 1).collect();
    for source in &streams {
        for target in &streams {
            for range in [0..300_000, 17..210_003] {
                let mut expected = vec![0u8; 1_600_000];
                let copy = |to: &mut Vec<u8>, past: bool| {
                    let (from, to) = (memory[..].into(), to[..].as_mut().into());
                    match past {
                        true => source.copy_past(range.clone(), from, 0, target, to, 0),
                        false => source.copy_to(range.clone(), from, 0, target, to, 0),
                    }
                    .unwrap();
                };
                copy(&mut expected, false);
                let mut copied = vec![0u8; 1_600_000];
                copy(&mut copied, true);
                assert!(copied == expected, "{source:?} {target:?}");
            }
        }
    }
}
