//! What the fuzz targets do with their input, shared with a plain test that feeds the same functions
//! from a fixed generator (`harness_runs.rs`), so that `cargo test` exercises them too.
//!
//! Two harnesses: [`notation`] reads any text, [`intersect_project`] makes two small elements out of
//! any bytes. Both panic when something is wrong and return when the input is fine or refused.

use falls::bytes_naive::{bytes_naive, element_bytes_naive};
use falls::notation::parse_terms;
use falls::{Budget, Falls, FallsSet, Meeting, Overlay, Periodic};

/// Reads a text. What parses comes back as it went and answers questions; what does not is refused
/// at a character of the text.
pub(crate) fn notation(text: &str) {
    let characters = text.chars().count();
    if let Err(error) = parse_terms(text) {
        assert!(error.at() <= characters, "{error}");
    }
    let set: FallsSet = match text.parse() {
        Ok(set) => set,
        Err(error) => {
            assert!(error.at() <= characters, "{error}");
            assert!(!error.to_string().is_empty() && !error.message().is_empty());
            return;
        }
    };
    let printed = set.to_string();
    let again: FallsSet = printed.parse().expect("what was printed can be read");
    assert_eq!(again, set, "{printed}");
    assert_eq!(again.to_string(), printed);
    answers(&set);
}

/// Questions about a set of any size, none of which may take long.
fn answers(set: &FallsSet) {
    let (size, end) = (set.size(), set.end());
    assert_eq!(set.rank(end), size);
    assert_eq!(set.rank(u64::MAX), size);
    for k in [
        0,
        1,
        size / 3,
        size / 2,
        size.saturating_sub(1),
        size,
        u64::MAX,
    ] {
        match set.select(k) {
            Some(x) => {
                assert!(k < size && set.contains(x) && x < end);
                assert_eq!((set.rank(x), set.rank(x + 1)), (k, k + 1));
                let run = set.segments(x..u64::MAX).next().expect("byte x");
                assert!(run.start() == x && set.is_contiguous(x..run.end()));
                assert!(!set.contains(run.end()));
            }
            None => assert!(k >= size),
        }
    }
    let simple = set.simplify();
    assert_eq!(simple.size(), size);
    assert!(simple.node_count() <= set.node_count());
    let (a, b) = (end / 3, end - end / 5);
    assert_eq!(set.cut(a..b).size(), set.rank(b) - set.rank(a));
    if let Ok(rest) = set.complement(end) {
        assert_eq!(rest.size(), end - size);
        let overlay = Overlay::new(&[set.clone(), rest.clone()]);
        if let Ok(overlay) = overlay {
            assert_eq!(overlay.first_gap(end), None);
            assert_eq!(
                overlay.owner(a),
                (a < end).then_some(usize::from(!set.contains(a)))
            );
        }
        if let Some(common) = set.intersect_within(&rest, Budget::DEFAULT) {
            assert!(common.is_empty(), "{set} meets its complement");
        }
    }
    if let Some(own) = set.intersect_within(&simple, Budget::DEFAULT) {
        assert_eq!(own.size(), size);
    }
}

/// Numbers out of bytes; zeros when they run out, so that every input means something.
struct Source<'a>(&'a [u8]);

impl Source<'_> {
    fn below(&mut self, bound: u64) -> u64 {
        let Some((&first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        u64::from(first) % bound
    }

    fn set(&mut self, depth: u32) -> FallsSet {
        let mut at = 0;
        let mut members = Vec::new();
        for _ in 0..1 + self.below(3) {
            let start = at + self.below(4);
            let inner = (depth > 1 && self.below(2) == 1).then(|| self.set(depth - 1));
            let len = inner.as_ref().map_or(1, FallsSet::end) + self.below(4);
            let (hole, count) = (self.below(6), 1 + self.below(4));
            let falls = match inner {
                None => Falls::family(start, len, len + hole, count),
                Some(set) => Falls::nested(start, len, len + hole, count, set),
            };
            let falls = falls.expect("gaps and lengths give well-formed trees");
            at = falls.end();
            members.push(falls);
        }
        FallsSet::new(members).expect("gaps and lengths give well-formed trees")
    }

    fn element(&mut self) -> Periodic {
        let set = self.set(3);
        let (room, displacement) = (self.below(9), self.below(40));
        Periodic::new(displacement, set.end() + room, set).expect("the period holds the set")
    }
}

/// Two elements out of any bytes: intersection and projections, symbolic and by cursors, against
/// explicit bytes.
pub(crate) fn intersect_project(data: &[u8]) {
    let mut source = Source(data);
    let (a, b) = (source.element(), source.element());
    let (lo, len) = (source.below(200), source.below(256) * 2);
    let limit = a.displacement().max(b.displacement()) + 700;
    let (x, y) = (
        element_bytes_naive(&a, limit),
        element_bytes_naive(&b, limit),
    );
    // Position on either side and byte in the file, for every common byte.
    let common: Vec<[u64; 3]> = x
        .iter()
        .enumerate()
        .filter_map(|(i, byte)| {
            let j = y.binary_search(byte).ok()?;
            Some([i as u64, j as u64, *byte])
        })
        .collect();
    for budget in [Budget(60_000), Budget(300), Budget(0)] {
        let meeting = Meeting::with_budget(&a, &b, budget);
        for range in [0..limit, lo..(lo + len).min(limit)] {
            let inside: Vec<[u64; 3]> = common
                .iter()
                .copied()
                .filter(|c| range.contains(&c[2]))
                .collect();
            let runs: Vec<[u64; 3]> = meeting
                .runs(range.clone())
                .flat_map(|r| (0..r.len).map(move |i| [r.left + i, r.right + i, r.file + i]))
                .collect();
            assert_eq!(runs, inside, "{a:?} {b:?} {range:?}");
            assert_eq!(meeting.count(range.clone()), inside.len() as u64);
            let joint = meeting.joint(range);
            let sides = [joint.left_set(), joint.right_set(), joint.file_set()];
            for (side, set) in sides.iter().enumerate() {
                let expected: Vec<u64> = inside.iter().map(|c| c[side]).collect();
                assert_eq!(bytes_naive(set), expected, "{a:?} {b:?} side {side}");
            }
        }
        let first = common.first().map(|c| c[2]);
        assert_eq!(meeting.next_byte(0).filter(|&x| x < limit), first);
        assert!(!meeting.is_empty() || common.is_empty());
    }
}
