//! Moves compared with a plain table of bytes: who governs each.
//!
//! Every byte of a small file space has a home; random walks of begin, advance, cut, cancel and finish must
//! give the same homes, and never a step back.

use layout::{FileOffset, FileSpan, Partition, Pattern};
use proptest::prelude::*;
use wire::{LayoutState, Piece, Place};

use super::*;

const SPACE: u64 = 64;

fn partition(count: usize) -> Partition {
    let sets = (0..count as u64).map(|i| falls::FallsSet::segment(i, 1).unwrap());
    let pattern = Pattern::new(count as u64, sets.collect()).unwrap();
    Partition::new(FileOffset(0), pattern).unwrap()
}

fn piece(generation: u64, count: usize, first_server: u64) -> Piece {
    let place = |i: usize| Place {
        server: first_server + i as u64,
        incarnation: 1,
    };
    let places = (0..count).map(|i| vec![place(i)]).collect();
    Piece::whole(generation, partition(count), places)
}

fn settled() -> LayoutState {
    let owner = Place {
        server: 0,
        incarnation: 1,
    };
    LayoutState::new(owner, piece(1, 2, 0))
}

/// The generation of each byte, and of everything behind.
fn homes(state: &LayoutState) -> Vec<u64> {
    let home = |byte: u64| {
        let of = |p: &&Piece| p.ranges.iter().any(|r| r.contains(&byte));
        let mut found = state.pieces.iter().filter(of);
        let home = found.next().expect("every byte has a home").generation;
        assert!(found.next().is_none(), "and only one");
        home
    };
    (0..=SPACE).chain([u64::MAX - 1]).map(home).collect()
}

#[derive(Clone, Debug)]
enum Act {
    Advance(u64, u64),
    Cut(u64),
    Cancel(u64),
    Finish,
}

fn any_act() -> impl Strategy<Value = Act> {
    prop_oneof![
        6 => (0..20u64, 1..20u64).prop_map(|(lane, len)| Act::Advance(lane, len)),
        1 => (0..SPACE).prop_map(Act::Cut),
        1 => (0..SPACE).prop_map(Act::Cancel),
        1 => Just(Act::Finish),
    ]
}

/// Generations and bytes in the order in which a server that has all subfiles sends them.
fn travels(state: &LayoutState, file: Range<u64>) -> Vec<(u64, u64)> {
    let mut out = Vec::new();
    for piece in &state.pieces {
        for range in &piece.ranges {
            for index in 0..piece.places.len() {
                let bytes = piece.partition.subfile(index);
                let inside = file
                    .clone()
                    .filter(|b| range.contains(b) && bytes.rank(*b) < bytes.rank(b + 1));
                out.extend(inside.map(|b| (piece.generation, b)));
            }
        }
    }
    out
}

#[test]
fn a_lane_that_begins_inside_of_a_request_changes_it() {
    let before = settled();
    let after = begin(&before, piece(2, 4, 5), vec![0..10, 10..20]).unwrap();
    let (a, b) = (before.plan_pieces(), after.plan_pieces());
    assert!(
        a.is_same_within(&b, FileSpan::from_raw(0..10))
            && a.is_same_within(&b, FileSpan::from_raw(12..20))
    );
    assert!(
        !a.is_same_within(&b, FileSpan::from_raw(5..15)),
        "the same homes in another order"
    );
    assert!(
        !a.is_same_within(&b, FileSpan::from_raw(15..25)),
        "another home"
    );
}

proptest! {
    #[test]
    fn homes_are_those_of_a_plain_table(
        end in 0..SPACE, count in 1..20usize, align in 1..9u64, acts in proptest::collection::vec(any_act(), 0..60),
    ) {
        let before = settled();
        let mut state = begin(&before, piece(2, 3, 5), lanes(end, count, align)).unwrap();
        prop_assert!(begin(&state, piece(3, 1, 0), Vec::new()).is_none());
        let mut table: Vec<u64> = (0..SPACE + 2).map(|i| if i < end { 1 } else { 2 }).collect();
        prop_assert_eq!(&homes(&state), &table);
        for act in acts {
            let (source, target) = (state.pieces[0].generation, state.pieces[1].generation);
            let next = match act {
                Act::Advance(lane, len) => {
                    let ranges = &state.pieces[0].ranges;
                    let Some(range) = ranges.get(lane as usize % ranges.len().max(1)) else { continue };
                    let moved = range.start..range.end.min(range.start + len);
                    for byte in moved.clone() {
                        table[byte as usize] = target;
                    }
                    let list: Vec<Range<u64>> = std::iter::once(moved).collect();
                    let next = advance(&state, &list).unwrap();
                    prop_assert!(advance(&next, &list).is_none(), "nothing moves twice");
                    Some(next)
                }
                Act::Cut(to) => {
                    let changes = (to..SPACE).any(|b| table[b as usize] == source);
                    for byte in to..SPACE + 2 {
                        table[byte as usize] = target;
                    }
                    let next = cut(&state, to);
                    prop_assert_eq!(next.is_some(), changes);
                    next
                }
                Act::Cancel(at) => {
                    let at = at.max(table.iter().rposition(|&g| g == source).map_or(0, |b| b as u64 + 1));
                    match cancel(&state, at) {
                        None => {
                            prop_assert!(is_cancelled(&state));
                            None
                        }
                        Some(next) => {
                            for byte in at..SPACE + 2 {
                                table[byte as usize] = source;
                            }
                            prop_assert!(is_cancelled(&next));
                            Some(next)
                        }
                    }
                }
                Act::Finish => {
                    let is_done = table.iter().all(|&g| g != source);
                    match finish(&state) {
                        Some(next) => {
                            prop_assert!(is_done);
                            prop_assert_eq!(&homes(&next), &table);
                            prop_assert_eq!(next.pieces.len(), 1);
                            prop_assert_eq!(next.step, state.step + 1);
                            let owns = next.pieces[0].places.iter().flatten().any(|p| *p == next.owner);
                            prop_assert!(owns, "an owner holds a part");
                            return Ok(());
                        }
                        None => {
                            prop_assert!(!is_done);
                            None
                        }
                    }
                }
            };
            if let Some(next) = next {
                prop_assert_eq!(next.step, state.step + 1);
                // Whatever is served under a later step travels as it was planned.
                let pieces = (state.plan_pieces(), next.plan_pieces());
                for (lo, hi) in [(0, 1), (0, 9), (5, 30), (17, 18), (11, SPACE), (29, 40)] {
                    if pieces.0.is_same_within(&pieces.1, FileSpan::from_raw(lo..hi)) {
                        prop_assert_eq!(travels(&state, lo..hi), travels(&next, lo..hi));
                    } else {
                        let differs = travels(&state, lo..hi) != travels(&next, lo..hi);
                        prop_assert!(differs || hi - lo > 1, "byte {} stays where it is", lo);
                    }
                }
                prop_assert!(next.pieces[0].ranges.len() <= MOST_LANES + 1);
                prop_assert!(next.pieces[1].ranges.len() <= MOST_LANES + 2);
                state = next;
            }
            prop_assert_eq!(&homes(&state), &table);
            let mut bytes = Vec::new();
            state.put(&mut bytes);
            prop_assert_eq!(&LayoutState::read(&mut wire::Reader::new(&bytes)).unwrap(), &state);
        }
    }

    #[test]
    fn ranges_are_sets(a in any_ranges(), b in any_ranges()) {
        let has = |list: &[Range<u64>], x: u64| list.iter().any(|r| r.contains(&x));
        let (both, rest, all) = (meeting(&a, &b), without(&a, &b), normal([a.clone(), b.clone()].concat()));
        for x in 0..SPACE {
            prop_assert_eq!(has(&both, x), has(&a, x) && has(&b, x));
            prop_assert_eq!(has(&rest, x), has(&a, x) && !has(&b, x));
            prop_assert_eq!(has(&all, x), has(&a, x) || has(&b, x));
        }
        prop_assert_eq!(meets(&a, &b), !both.is_empty());
        prop_assert!(all.windows(2).all(|w| w[0].end < w[1].start));
    }

    #[test]
    fn windows_hold_what_they_are_asked_for(start in 0..40u64, len in 1..60u64, most in 1..30u64, some in any::<bool>()) {
        let mut state = begin(&settled(), piece(2, 4, 5), lanes(SPACE, 1, 1)).unwrap();
        if some {
            // Of four subfiles one goes elsewhere.
            state.pieces[0] = Piece { ranges: state.pieces[0].ranges.clone(), ..piece(1, 4, 0) };
            let mut target = Piece { ranges: state.pieces[1].ranges.clone(), ..piece(1, 4, 0) };
            target.generation = 2;
            target.stores[2] = 2;
            target.places[2][0].server = 9;
            state.pieces[1] = target;
            prop_assert_eq!(moving_subfiles(&state), Some(vec![2]));
        }
        let counting = CopyCounter::new(&state);
        let moves = |x: u64| !some || x % 4 == 2;
        let range = start..start + len;
        let count = |r: &Range<u64>| r.clone().filter(|&x| moves(x)).count() as u64;
        prop_assert_eq!(counting.count(&range), count(&range));
        let behind = range.end + 3..range.end + 20;
        let both = [range.clone(), behind.clone()];
        prop_assert_eq!(counting.count_all(&both), count(&range) + count(&behind));
        prop_assert_eq!(counting.count_all(&[]), 0);
        let window = counting.window(&range, most);
        prop_assert!(window.start == start && window.end > start && window.end <= range.end);
        prop_assert!(count(&window) <= most);
        prop_assert!(window.end == range.end || count(&(start..window.end + 1)) > most);
    }
}

fn any_ranges() -> impl Strategy<Value = Vec<Range<u64>>> {
    proptest::collection::vec((0..SPACE, 0..12u64), 0..8)
        .prop_map(|list| normal(list.into_iter().map(|(s, n)| s..s + n).collect()))
}

#[test]
fn every_change_of_a_layout_is_a_step() {
    let before = LayoutState {
        step: 5,
        ..settled()
    };
    let begun = begin(&before, piece(2, 4, 5), lanes(SPACE, 1, 1)).unwrap();
    let first = 0..4;
    let advanced = advance(&begun, std::slice::from_ref(&first)).unwrap();
    assert_eq!((begun.step, advanced.step), (6, 7));
    assert_eq!(cut(&advanced, 1).map(|state| state.step), Some(8));
    assert_eq!(cancel(&advanced, 4).map(|state| state.step), Some(8));
}

#[test]
fn a_move_of_nothing_is_over_at_once() {
    let state = begin(&settled(), piece(2, 1, 4), lanes(0, 4, 1)).unwrap();
    let done = finish(&state).unwrap();
    assert_eq!((done.pieces[0].generation, done.owner.server), (2, 4));
    let back = cancel(&state, 0).unwrap();
    let done = finish(&back).unwrap();
    assert_eq!((done.pieces[0].generation, done.owner.server), (1, 0));
}
