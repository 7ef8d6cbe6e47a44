//! The order of bytes, compared with a walk over single bytes: which subfile has each, and where it stands in the
//! message. The layout state is that of a file that moves, with ranges that begin anywhere.

use super::*;
use layout::{ArrayType, Layout, View};
use std::ops::Range;

fn partition(text: &str) -> Partition {
    let layout: Layout = text.parse().unwrap();
    let array: ArrayType = "u8[12,10]".parse().unwrap();
    let elements = layout.on_array(&array).unwrap().elements().unwrap();
    Partition::from_start(layout::Pattern::new(elements.period, elements.sets).unwrap())
}

fn piece(generation: u64, text: &str, ranges: &[Range<u64>]) -> Piece {
    Piece {
        generation,
        ranges: ranges.iter().cloned().map(FileSpan::from_raw).collect(),
        partition: partition(text),
    }
}

/// A file that moves, as far as `frontier`.
fn pieces(frontier: u64) -> Pieces {
    Pieces::new([
        piece(1, "(block, *) onto 3", &[frontier..600, 700..900]),
        piece(
            2,
            "(*, cyclic(3)) onto 2",
            &[0..frontier, 600..700, 900..u64::MAX],
        ),
    ])
}

fn view() -> View {
    let layout: Layout = "(cyclic(2), block) onto 2x2 [1]".parse().unwrap();
    let array: ArrayType = "u8[12,10]".parse().unwrap();
    let applied = layout.on_array(&array).unwrap();
    View::new(FileOffset(5), applied.period(), applied.element(0).unwrap()).unwrap()
}

fn plan_of(view: &View, pieces: &Pieces) -> AccessPlan {
    let shares = Shares::new(view.bytes(), pieces, None);
    AccessPlan::new(pieces.clone(), Arc::new(shares))
}

fn parts_of(plan: &AccessPlan, file: Range<u64>) -> Vec<Part> {
    let mut parts = Vec::new();
    plan.parts(FileSpan::from_raw(file), |part| parts.push(part));
    parts
}

#[test]
fn every_byte_of_a_file_that_moves_has_one_home() {
    let view = view();
    let plan = plan_of(&view, &pieces(130));
    for file in [0..1000, 100..140, 595..905, 130..131, 899..2000] {
        let parts = parts_of(&plan, file.clone());
        for x in file.clone().filter(|x| view.bytes().contains(*x)) {
            let has = |part: &&Part| {
                part.file.contains(FileOffset(x)) && plan.share(part).count(x..x + 1) == 1
            };
            let homes: Vec<&Part> = parts.iter().filter(has).collect();
            assert_eq!(homes.len(), 1, "homes of byte {x}");
            assert!(plan.range(homes[0]).contains(FileOffset(x)));
            let is_old = (130..600).contains(&x) || (700..900).contains(&x);
            assert_eq!(homes[0].home.piece, if is_old { 0 } else { 1 });
        }
        let bytes: u64 = parts.iter().map(|part| part.bytes).sum();
        let shown = view.bytes().rank(file.end) - view.bytes().rank(file.start);
        assert_eq!(bytes, shown);
        assert!(parts.iter().all(|part| part.bytes > 0));
        // Pieces, ranges, subfiles.
        assert!(parts.windows(2).all(|w| w[0].home < w[1].home));
    }
}

#[test]
fn the_next_step_of_a_move_compiles_nothing_again() {
    let whole = View::whole_file();
    let first = plan_of(&whole, &pieces(130));
    parts_of(&first, 0..2000);
    let next = Shares::new(whole.bytes(), &pieces(400), Some(first.shares()));
    for (piece, subfiles) in [(0, 3), (1, 2)] {
        assert_eq!(next.subfiles(piece), subfiles);
        for subfile in 0..subfiles {
            let shared = next.compiled(piece, subfile).expect("taken over");
            assert!(std::ptr::eq(shared, first.shares().with(piece, subfile)));
        }
    }
    let other = Shares::new(whole.bytes(), &pieces(400), None);
    assert!(other.compiled(0, 0).is_none());
}

#[test]
fn messages_that_are_cut_carry_every_byte_once_and_no_more_than_they_may() {
    let view = view();
    let plan = plan_of(&view, &pieces(130));
    let all = parts_of(&plan, 3..950);
    // What one server gets: any parts, in order.
    let chosen: Vec<Vec<Part>> = vec![
        all.clone(),
        all.iter().step_by(2).copied().collect(),
        vec![all[1]],
    ];
    for (parts, most) in chosen
        .iter()
        .flat_map(|p| [1, 3, 7, 40, 5000].map(|m| (p, m)))
    {
        let total: u64 = parts.iter().map(|p| p.bytes).sum();
        let (mut rest, mut sum) = (FileSpan::from_raw(3..950), 0);
        while !rest.is_empty() {
            let message = plan.cut(parts, rest, most);
            let clipped = parts.iter().filter_map(|part| plan.clip(part, message));
            let bytes: u64 = clipped.map(|part| part.bytes).sum();
            assert!(bytes <= most, "{bytes} bytes in a message of {most}");
            assert!(bytes == most || message.end == rest.end);
            assert!(message.end > rest.start, "no progress at {rest:?}");
            sum += bytes;
            rest.start = message.end;
        }
        assert_eq!(sum, total);
    }
}

#[test]
fn the_first_byte_of_parts_is_the_lowest_of_all() {
    let view = view();
    let plan = plan_of(&view, &pieces(130));
    let parts = parts_of(&plan, 0..1000);
    for start in (0..1000).step_by(13) {
        let file = FileSpan::from_raw(start..(start + 50).min(1000));
        let naive = file.raw().find(|&x| view.bytes().contains(x));
        assert_eq!(plan.first(&parts, file), naive.map(FileOffset));
    }
}

#[test]
fn two_states_have_the_same_order_where_their_ranges_are_the_same() {
    let (a, b) = (pieces(130), pieces(140));
    for (file, is_same) in [
        (0..130, true),
        (0..131, false),
        (129..141, false),
        (140..2000, true),
        (139..141, false),
    ] {
        assert_eq!(
            a.is_same_within(&b, FileSpan::from_raw(file.clone())),
            is_same,
            "{file:?}"
        );
    }
    // The same homes, but a range that begins inside: other bytes come first.
    let cut = Pieces::new([piece(1, "(block, *) onto 3", &[0..50, 50..u64::MAX])]);
    let whole = std::slice::from_ref(&(0..u64::MAX));
    let one = Pieces::new([piece(1, "(block, *) onto 3", whole)]);
    assert!(!cut.is_same_within(&one, FileSpan::from_raw(40..60)));
    assert!(cut.is_same_within(&one, FileSpan::from_raw(0..50)));
}

#[test]
fn a_table_of_many_subfiles_is_made_where_it_is_used() {
    let bytes: Vec<falls::FallsSet> = (0..1000)
        .map(|i| falls::FallsSet::segment(i, 1).unwrap())
        .collect();
    let pieces = Pieces::new([Piece {
        generation: 1,
        ranges: vec![FileSpan::from_raw(0..u64::MAX)],
        partition: Partition::from_start(layout::Pattern::new(1000, bytes).unwrap()),
    }]);
    let plan = plan_of(&View::whole_file(), &pieces);
    let parts = parts_of(&plan, 640..642);
    let homes: Vec<usize> = parts.iter().map(|p| p.home.subfile).collect();
    assert_eq!(homes, [640, 641]);
    let Places::Many(chunks) = &plan.shares().tables[0].places else {
        panic!("a thousand are many");
    };
    let made = chunks.iter().filter(|chunk| chunk.get().is_some());
    assert_eq!(made.count(), 1);
}
