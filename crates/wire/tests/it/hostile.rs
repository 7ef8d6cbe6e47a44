//! Bytes that nobody vouches for: noise and damaged golden frames, through every decoder.
//!
//! None panics, none accepts bytes that its encoder would not write, and none allocates more than
//! its input pays for. The seed is fixed; `PROPTEST_CASES` makes the runs longer.

use allocation_counter::measure;
use falls::{Falls, FallsSet};
use proptest::prelude::*;
use proptest::sample::Index;
use testkit::laws::check;
use wire::message::{KINDS, Kind};
use wire::{DecodeError, LayoutState, Reader, describe, put_number};

/// What a byte of input may cost in memory. The dearest is an empty element of a partition: one
/// byte, a set of its own.
const FACTOR: u64 = 400;
/// What any input may cost: texts of errors, and the smallest set.
const FIXED: u64 = 4096;

/// An input of the harness: kind, control part.
fn inputs() -> Vec<Vec<u8>> {
    crate::samples::all()
        .iter()
        .map(|s| [&s.header.kind.to_le_bytes()[..], &s.control].concat())
        .collect()
}

#[derive(Clone, Debug)]
enum Damage {
    Flip(Index, u8),
    Remove(Index),
    Insert(Index, u8),
    Cut(Index),
    Append(Vec<u8>),
    /// Puts a piece of another sample in.
    Splice(Index, Index, Index),
}

fn any_damage() -> impl Strategy<Value = Damage> {
    let at = any::<Index>;
    prop_oneof![
        (at(), any::<u8>()).prop_map(|(i, b)| Damage::Flip(i, b)),
        at().prop_map(Damage::Remove),
        (at(), any::<u8>()).prop_map(|(i, b)| Damage::Insert(i, b)),
        at().prop_map(Damage::Cut),
        proptest::collection::vec(any::<u8>(), 1..9).prop_map(Damage::Append),
        (at(), at(), at()).prop_map(|(i, j, k)| Damage::Splice(i, j, k)),
    ]
}

fn damage(bytes: &mut Vec<u8>, what: &Damage, all: &[Vec<u8>]) {
    let place = |index: &Index, bytes: &Vec<u8>| index.index(bytes.len() + 1);
    match what {
        Damage::Flip(i, b) if !bytes.is_empty() => {
            let i = i.index(bytes.len());
            bytes[i] = *b;
        }
        Damage::Remove(i) if !bytes.is_empty() => drop(bytes.remove(i.index(bytes.len()))),
        Damage::Flip(..) | Damage::Remove(_) => {}
        Damage::Insert(i, b) => bytes.insert(place(i, bytes), *b),
        Damage::Cut(i) => bytes.truncate(place(i, bytes)),
        Damage::Append(more) => bytes.extend(more),
        Damage::Splice(i, j, k) => {
            let other = &all[j.index(all.len())];
            let from = k.index(other.len());
            let i = place(i, bytes);
            bytes.splice(i..i, other[from..].iter().copied());
        }
    }
}

fn damaged() -> impl Strategy<Value = (Index, Vec<Damage>)> {
    (
        any::<Index>(),
        proptest::collection::vec(any_damage(), 1..4),
    )
}

#[test]
fn golden_frames_pass_the_harness() {
    for sample in crate::samples::all() {
        let kind = sample.header.kind.to_le_bytes();
        crate::harness::messages(&[&kind[..], &sample.control].concat());
        crate::harness::messages(&[&kind[..], &sample.frame()].concat());
    }
}

#[test]
fn damaged_frames_are_refused_or_have_one_form() {
    let all = inputs();
    check(20_000, damaged(), |(which, damages)| {
        let mut bytes = all[which.index(all.len())].clone();
        for what in &damages {
            damage(&mut bytes, what, &all);
        }
        crate::harness::messages(&bytes);
        Ok(())
    });
}

#[test]
fn noise_is_refused_or_has_one_form() {
    let noise = (
        any::<Index>(),
        proptest::collection::vec(prop_oneof![any::<u8>(), 0u8..4], 0..120),
    );
    check(20_000, noise, |(which, bytes)| {
        crate::harness::control(&KINDS[which.index(KINDS.len())], &bytes);
        Ok(())
    });
}

/// Most memory held at a time while `bytes` are decoded as anything.
fn most_bytes(kind: &Kind, bytes: &[u8]) -> u64 {
    let decoders: [&dyn Fn(); 5] = [
        &|| drop((kind.check_request)(bytes)),
        &|| drop((kind.check_answer)(bytes)),
        &|| drop(describe::view(&mut Reader::new(bytes))),
        &|| drop(describe::partition(&mut Reader::new(bytes))),
        &|| drop(LayoutState::read(&mut Reader::new(bytes))),
    ];
    let peaks = decoders.map(|decode| measure(decode).bytes_max);
    peaks.into_iter().max().unwrap_or(0)
}

#[test]
fn nothing_is_allocated_that_the_input_does_not_pay_for() {
    let all = inputs();
    let cases = (
        damaged(),
        proptest::collection::vec(prop_oneof![any::<u8>(), 0u8..4], 0..300),
        any::<bool>(),
    );
    check(5_000, cases, |((which, damages), noise, is_noise)| {
        let mut bytes = all[which.index(all.len())].clone();
        for what in &damages {
            damage(&mut bytes, what, &all);
        }
        let bytes = if is_noise { &noise } else { &bytes };
        let most = most_bytes(&KINDS[which.index(KINDS.len())], bytes);
        prop_assert!(
            most <= FIXED + FACTOR * bytes.len() as u64,
            "{most} bytes for {} bytes of input",
            bytes.len()
        );
        Ok(())
    });
}

/// Inputs that are cheap to write and would be dear to believe.
#[test]
fn large_claims_cost_nothing() {
    let mut claims: Vec<Vec<u8>> = Vec::new();
    // Lengths of every size in front of nothing, at every depth of a set.
    for bits in 0..64 {
        for lead in [&[][..], &[0], &[0, 1], &[0, 8, 1], &[0, 0, 0, 0, 1, 0]] {
            let mut claim = lead.to_vec();
            wire::put_number(&mut claim, 1 << bits);
            claim.extend([0; 40]);
            claims.push(claim);
        }
    }
    // As many empty elements as fit, and a nest as deep as allowed in each of many members.
    claims.push([vec![0, 1, 0xff, 0x7f], vec![0; 16_383]].concat());
    let deep = [[2, 0, 0, 1].repeat(63), vec![2, 0, 0, 0]].concat();
    claims.push([vec![0, 1], deep].concat());
    for claim in &claims {
        for kind in KINDS {
            let most = most_bytes(kind, claim);
            let bound = FIXED + FACTOR * claim.len() as u64;
            assert!(
                most <= bound,
                "{most} bytes for {} as {}: {:02x?}...",
                claim.len(),
                kind.name,
                &claim[..claim.len().min(16)]
            );
        }
    }
}

/// Whether elements share a byte is found out by merging them, in a number of steps that has a limit;
/// without it this would list a common period of a billion bytes.
#[test]
fn a_partition_that_is_hard_to_check_is_given_up() {
    let mut bytes = vec![0];
    let period = 1 << 45;
    wire::put_number(&mut bytes, period);
    let strides = [3, 5, 7, 11, 13, 17].map(|prime| 32 * prime);
    wire::put_number(&mut bytes, strides.len() as u64);
    for (start, stride) in (0..).zip(strides) {
        let family = Falls::family(start, 1, stride, period / stride - 1).unwrap();
        describe::put_set(&mut bytes, &FallsSet::new(vec![family]).unwrap());
    }
    let mut found = Ok(());
    let seen = measure(|| found = describe::partition(&mut Reader::new(&bytes)).map(drop));
    let error = found.unwrap_err();
    assert!(matches!(error, DecodeError::Layout(_)), "{error}");
    assert!(seen.bytes_max < 64 << 20, "{} bytes", seen.bytes_max);
}

#[test]
fn a_state_without_a_place_for_a_subfile_is_refused() {
    // Owner, step, one piece: generation, no ranges, one whole element; store, places.
    let state = |places: &[u8]| [&[1, 1, 3, 1, 7, 0, 0, 1, 1, 2, 0, 0, 0, 7][..], places].concat();
    let read = |bytes: &[u8]| LayoutState::read(&mut Reader::new(bytes)).map(|s| s.pieces.len());
    assert_eq!(read(&state(&[1, 4, 5])), Ok(1));
    assert_eq!(read(&state(&[0, 0])), Err(DecodeError::BadTag(0)));
}

#[test]
fn ranges_of_a_piece_ascend_and_have_bytes() {
    // Owner, step, one piece: generation, two ranges, one whole element; store, a place.
    let state = |ranges: [u8; 4]| {
        let (before, behind) = ([1, 1, 3, 1, 7, 2], [0, 1, 1, 2, 0, 0, 0, 7, 1, 4, 5]);
        [&before[..], &ranges, &behind].concat()
    };
    let read = |ranges| LayoutState::read(&mut Reader::new(&state(ranges))).map(|s| s.pieces.len());
    assert_eq!(read([0, 3, 4, 5]), Ok(1));
    assert_eq!(read([0, 3, 3, 5]), Ok(1), "one ends where the next begins");
    for bad in [[0, 3, 2, 5], [4, 5, 0, 3], [0, 3, 4, 4], [3, 2, 4, 5]] {
        assert_eq!(read(bad), Err(DecodeError::BadNumber), "{bad:?}");
    }
}

#[test]
fn layout_state_has_one_piece_or_two() {
    // Owner and step, then how many pieces.
    for count in [0, 3, 100] {
        let mut bytes = Vec::new();
        for number in [1, 1, 1, count] {
            put_number(&mut bytes, number);
        }
        // Enough to read them from.
        bytes.resize(bytes.len() + 200, 0);
        let read = wire::LayoutState::read(&mut Reader::new(&bytes));
        assert_eq!(read, Err(DecodeError::BadTag(count)), "{count} pieces");
    }
}

#[test]
fn failures_of_a_link_say_whether_waiting_was_in_vain() {
    use std::io::ErrorKind;
    use wire::Status;
    use wire::link::LinkError;
    for (kind, status) in [
        (ErrorKind::TimedOut, Status::TimedOut),
        (ErrorKind::WouldBlock, Status::TimedOut),
        (ErrorKind::ConnectionReset, Status::Unreachable),
        (ErrorKind::BrokenPipe, Status::Unreachable),
    ] {
        assert_eq!(LinkError::Io(kind.into()).status(), status, "{kind:?}");
    }
    assert_eq!(LinkError::Closed.status(), Status::Unreachable);
    assert_eq!(LinkError::Damaged.status(), Status::Damaged);
}

#[test]
fn accesses_of_no_bytes_or_of_more_than_their_range_are_refused() {
    use wire::message::access::Access;
    let mut version = Vec::new();
    wire::StateVersion { step: 3 }.put(&mut version);
    let good = Access {
        view: 1,
        lo: 10,
        hi: 20,
        bytes: 10,
        epoch: 0,
        number: 0,
        end: 0,
        version: &version,
    };
    let read = |access: &Access<'_>| {
        let mut bytes = Vec::new();
        access.encode(&mut bytes);
        Access::decode(&bytes).map(drop)
    };
    assert_eq!(read(&good), Ok(()));
    for (lo, hi, bytes) in [
        (10, 10, 1),
        (11, 10, 1),
        (10, falls::MAX_OFFSET + 1, 1),
        (10, 20, 0),
        (10, 20, 11),
    ] {
        let bad = Access {
            lo,
            hi,
            bytes,
            ..good
        };
        assert_eq!(
            read(&bad),
            Err(DecodeError::BadNumber),
            "{lo}..{hi}, {bytes}"
        );
    }
}
