//! The golden cases of `testdata/falls.json` that lie in this crate, one test per operation.
//!
//! Expected values come from a brute-force oracle over explicit byte sets; `testdata/README.md`
//! explains the schema. Results are compared as bytes, never as trees. `PARIO_VECTORS` names another
//! file of the same schema. What the crate refuses to hold as it is written (interleaved or
//! overlapping members) goes through NORMALISE first, so that every case gets its answer.

use falls::notation::Term;
use falls::{Budget, FallsSet, Flaw, Meeting, Overlay, Periodic, Pitfalls, Segment, lcm};
use serde_json::Value;
use testkit::golden::{
    all_cases, element, hex, list, maybe_numbers, number, numbers, pairs, run, set, terms,
};

/// Operations tested here.
const IN_FALLS: &[&str] = &[
    "align",
    "between",
    "bytes",
    "contiguous",
    "cut",
    "gather",
    "huge_intersect",
    "huge_map",
    "intersect",
    "intersect_sets",
    "map",
    "owner",
    "partition",
    "pitfalls",
    "project",
    "same",
    "scatter",
    "unmap",
    "validate",
];

/// Operations of constructors and lengths, tested in `layout`.
const IN_LAYOUT: &[&str] = &[
    "access_desc",
    "chunks",
    "hpf",
    "lengths",
    "mpi_type",
    "mpi_view",
    "slice",
    "stripe",
];

/// Operations that move data between partitions, tested in `plan`.
const IN_PLAN: &[&str] = &["read", "redistribute", "write"];

fn inclusive(segments: impl Iterator<Item = Segment>) -> Vec<(u64, u64)> {
    segments.map(|s| (s.start(), s.last())).collect()
}

fn segments(set: &FallsSet) -> Vec<(u64, u64)> {
    inclusive(set.segments(0..falls::MAX_OFFSET))
}

/// Both forms of a meeting: as it comes, and with cursors only.
fn meetings(a: &Periodic, b: &Periodic) -> [Meeting; 2] {
    [Meeting::new(a, b), Meeting::with_budget(a, b, Budget(0))]
}

/// File segments of a meeting in `lo..=hi`, joined where they touch.
fn file_segments(meeting: &Meeting, lo: u64, hi: u64) -> Vec<(u64, u64)> {
    joined(
        meeting
            .runs(lo..hi + 1)
            .map(|r| (r.file, r.file + r.len - 1)),
    )
}

/// Inclusive segments, joined where they touch.
fn joined(segments: impl Iterator<Item = (u64, u64)>) -> Vec<(u64, u64)> {
    let mut out: Vec<(u64, u64)> = Vec::new();
    for (l, r) in segments {
        match out.last_mut() {
            Some(last) if last.1 + 1 == l => last.1 = r,
            _ => out.push((l, r)),
        }
    }
    out
}

#[test]
fn seed000_s03_every_vector_operation_has_a_home() {
    let (cases, own) = all_cases();
    let homes = [IN_FALLS, IN_LAYOUT, IN_PLAN].concat();
    let mut met = vec![0; homes.len()];
    for case in &cases {
        let op = case["op"].as_str().expect("an operation");
        let home = homes.iter().position(|h| *h == op);
        met[home.unwrap_or_else(|| panic!("case {}: no test runs {op}", case["id"]))] += 1;
    }
    for (op, cases) in homes.iter().zip(met) {
        assert!(!own || cases > 0, "no case of {op}");
    }
    // A home is a test that runs the operation, not a line in a list.
    for (place, ops) in [
        ("falls/tests/it", IN_FALLS),
        ("layout/tests/it", IN_LAYOUT),
        ("plan/tests", IN_PLAN),
    ] {
        let path = format!("{}/../{place}/vectors.rs", env!("CARGO_MANIFEST_DIR"));
        let tests = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
        for op in ops {
            assert!(
                tests.contains(&format!("run(\"{op}\"")),
                "{path} has no test of {op}"
            );
        }
    }
}

#[test]
fn vector_bytes() {
    run("bytes", |case| {
        let out = &case.output;
        let terms = terms(&case.input["set"]);
        let written = falls::bytes_naive::term_bytes_naive(&terms);
        assert_eq!(written.len() as u64, number(&out["size"]), "as written");
        let ascending = written.windows(2).all(|w| w[0] < w[1]);
        assert_eq!(ascending, out["ordered"] == true, "order as written");
        match Term::to_set(&terms) {
            Ok(set) => {
                assert!(out["ordered"] == true && out["nesting"] == true, "accepted");
                assert_eq!(segments(&set), pairs(&out["segs"]));
                assert_eq!(set.size(), number(&out["count"]), "size");
                assert_eq!(
                    falls::bytes_naive::bytes_naive(&set).len() as u64,
                    set.size()
                );
            }
            Err(error) if out["nesting"] == false => {
                assert_eq!(error.reason().word(), "nesting");
            }
            Err(_) => {
                let (set, twice) = Term::normalise(&terms).unwrap();
                assert_eq!(segments(&set), pairs(&out["segs"]));
                assert_eq!(set.size(), number(&out["count"]), "size");
                assert_eq!(twice, out["overlap"] == true, "a byte twice");
            }
        }
    });
}

#[test]
fn vector_validate() {
    run("validate", |case| {
        let reason = match Term::to_set(&terms(&case.input["set"])) {
            Ok(_) => "",
            Err(error) => error.reason().word(),
        };
        assert_eq!(reason, case.output["reason"]);
        assert_eq!(reason.is_empty(), case.output["ok"] == true);
    });
}

#[test]
fn vector_same() {
    run("same", |case| {
        let (a, b) = (set(&case.input["a"]), set(&case.input["b"]));
        assert!(a.same_bytes(&b) && b.same_bytes(&a));
        let expected = pairs(&case.output["segs"]);
        for s in [&a, &b, &a.simplify(), &b.simplify()] {
            assert_eq!(segments(s), expected, "{s}");
        }
    });
}

#[test]
fn vector_contiguous() {
    run("contiguous", |case| {
        let set = set(&case.input["set"]);
        let queries = pairs(&case.input["queries"]);
        for ((l, r), expected) in queries.into_iter().zip(list(&case.output["answers"])) {
            assert_eq!(set.is_contiguous(l..r + 1), *expected == true, "{l}..={r}");
        }
    });
}

#[test]
fn vector_partition() {
    run("partition", |case| {
        let period = number(&case.input["period"]);
        let out = &case.output;
        let sets: Vec<FallsSet> = list(&case.input["sets"]).iter().map(set).collect();
        let sizes: Vec<u64> = sets.iter().map(FallsSet::size).collect();
        assert_eq!(sizes, numbers(&out["sizes"]));
        let overlaps = pairs(&out["overlap"]);
        let (union, twice) = FallsSet::union(&sets).unwrap();
        assert_eq!(twice, !overlaps.is_empty());
        let holes = pairs(&out["holes"]);
        let found = union.cut(0..period).complement(period).unwrap();
        assert_eq!(segments(&found), holes, "holes");
        let outside = union.segments(period..falls::MAX_OFFSET);
        assert_eq!(inclusive(outside), pairs(&out["outside"]), "outside");
        let valid = match Overlay::new(&sets) {
            Ok(overlay) => {
                assert_eq!(overlaps, [], "no overlap was found");
                let gap = overlay.first_gap(period);
                assert_eq!(gap, holes.first().map(|h| h.0), "first hole");
                gap.is_none() && union.end() <= period
            }
            Err(Flaw::Overlap {
                first,
                second,
                byte,
            }) => {
                assert_eq!(Some(byte), overlaps.first().map(|o| o.0), "first overlap");
                assert!(sets[first].contains(byte) && sets[second].contains(byte));
                assert!(first < second);
                false
            }
            Err(flaw) => panic!("{flaw:?}"),
        };
        assert_eq!(valid, out["valid"] == true);
    });
}

#[test]
fn vector_owner() {
    run("owner", |case| {
        let (disp, period) = (number(&case.input["disp"]), number(&case.input["period"]));
        let sets: Vec<FallsSet> = list(&case.input["sets"]).iter().map(set).collect();
        let overlay = Overlay::new(&sets).unwrap();
        for (x, expected) in numbers(&case.input["xs"])
            .into_iter()
            .zip(list(&case.output["owner"]))
        {
            let found = x
                .checked_sub(disp)
                .and_then(|y| overlay.owner(y % period))
                .map(|label| {
                    let element = Periodic::new(disp, period, sets[label].clone()).unwrap();
                    (
                        label as u64,
                        element.map(x).expect("the owner has the byte"),
                    )
                });
            let expected =
                (!expected.is_null()).then(|| (number(&expected[0]), number(&expected[1])));
            assert_eq!(found, expected, "byte {x}");
        }
    });
}

fn check_map(element: &Periodic, xs: &[u64], out: &Value) {
    let map: Vec<_> = xs.iter().map(|&x| element.map(x)).collect();
    assert_eq!(map, maybe_numbers(&out["map"]), "map of {xs:?}");
    let next: Vec<_> = xs.iter().map(|&x| element.map_next(x)).collect();
    assert_eq!(next, maybe_numbers(&out["next"]), "next of {xs:?}");
    let previous: Vec<_> = xs.iter().map(|&x| element.map_previous(x)).collect();
    assert_eq!(previous, maybe_numbers(&out["prev"]), "previous of {xs:?}");
}

#[test]
fn vector_map() {
    run("map", |case| {
        let xs = numbers(&case.input["xs"]);
        check_map(&element(&case.input["elem"]), &xs, &case.output);
    });
}

#[test]
fn vector_unmap() {
    run("unmap", |case| {
        let element = element(&case.input["elem"]);
        let xs: Vec<_> = numbers(&case.input["ks"])
            .into_iter()
            .map(|k| element.select(k))
            .collect();
        assert_eq!(xs, maybe_numbers(&case.output["xs"]));
    });
}

#[test]
fn vector_between() {
    run("between", |case| {
        let (v, s) = (element(&case.input["v"]), element(&case.input["s"]));
        let xs: Vec<u64> = numbers(&case.input["ks"])
            .into_iter()
            .map(|k| v.select(k).unwrap())
            .collect();
        assert_eq!(xs, numbers(&case.output["xs"]));
        check_map(&s, &xs, &case.output);
    });
}

#[test]
fn vector_cut() {
    run("cut", |case| {
        let (a, b) = (number(&case.input["a"]), number(&case.input["b"]));
        let cut = set(&case.input["set"]).cut(a..b + 1);
        assert_eq!(segments(&cut), pairs(&case.output["segs"]));
    });
}

#[test]
fn vector_intersect_sets() {
    run("intersect_sets", |case| {
        let (a, b) = (set(&case.input["a"]), set(&case.input["b"]));
        let expected = pairs(&case.output["segs"]);
        assert_eq!(segments(&a.intersect(&b)), expected);
        assert_eq!(segments(&b.intersect(&a)), expected, "the other way round");
    });
}

#[test]
fn vector_align() {
    run("align", |case| {
        let (a, b) = (element(&case.input["a"]), element(&case.input["b"]));
        let start = a.displacement().max(b.displacement());
        let period = lcm(a.period(), b.period()).unwrap();
        assert_eq!(start, number(&case.output["disp"]));
        assert_eq!(period, number(&case.output["period"]));
        for (side, expected) in [(a, "a_segs"), (b, "b_segs")] {
            let expected = pairs(&case.output[expected]);
            let aligned = side.align(start).unwrap();
            assert_eq!(aligned.displacement(), start);
            let one = Periodic::new(0, side.period(), aligned.set().clone()).unwrap();
            assert_eq!(inclusive(one.segments(0..period)), expected, "rotated");
            let moved = |(l, r): (u64, u64)| (l - start, r - start);
            let window = inclusive(side.segments(start..start + period));
            let window: Vec<_> = window.into_iter().map(moved).collect();
            assert_eq!(window, expected, "by window");
        }
    });
}

#[test]
fn vector_intersect() {
    run("intersect", |case| {
        let (a, b) = (element(&case.input["a"]), element(&case.input["b"]));
        let (lo, hi) = (number(&case.input["lo"]), number(&case.input["hi"]));
        let expected = pairs(&case.output["segs"]);
        for meeting in meetings(&a, &b) {
            assert_eq!(file_segments(&meeting, lo, hi), expected);
            let count: u64 = expected.iter().map(|(l, r)| r - l + 1).sum();
            assert_eq!(meeting.count(lo..hi + 1), count);
            if let Some(file) = meeting.file() {
                assert_eq!(file.displacement(), number(&case.output["disp"]));
                assert_eq!(file.period(), number(&case.output["period"]));
                assert_eq!(file.size(), number(&case.output["per_period"]));
                assert_eq!(inclusive(file.segments(lo..hi + 1)), expected);
            }
        }
        assert!(Meeting::new(&a, &b).is_symbolic());
    });
}

#[test]
fn vector_huge_map() {
    run("huge_map", |case| {
        let element = element(&case.input["elem"]);
        check_map(&element, &numbers(&case.input["xs"]), &case.output);
        let xs: Vec<_> = numbers(&case.input["ks"])
            .into_iter()
            .map(|k| element.select(k))
            .collect();
        assert_eq!(xs, maybe_numbers(&case.output["xs_of_ks"]));
    });
}

#[test]
fn vector_huge_intersect() {
    run("huge_intersect", |case| {
        let (a, b) = (element(&case.input["a"]), element(&case.input["b"]));
        let (lo, hi) = (number(&case.input["lo"]), number(&case.input["hi"]));
        let out = &case.output;
        for meeting in meetings(&a, &b) {
            assert_eq!(file_segments(&meeting, lo, hi), pairs(&out["segs"]));
            assert_eq!(meeting.joint(lo..hi + 1).size(), meeting.count(lo..hi + 1));
        }
        assert_eq!(a.displacement().max(b.displacement()), number(&out["disp"]));
        let common = lcm(a.period(), b.period());
        assert_eq!(common.is_some(), out["lcm_fits_i64"] == true);
        if let Some(common) = common {
            assert_eq!(common.to_string(), out["lcm"].as_str().unwrap());
        }
    });
}

#[test]
fn vector_project() {
    run("project", |case| {
        let (v, s) = (element(&case.input["v"]), element(&case.input["s"]));
        let (lo, hi) = (number(&case.input["lo"]), number(&case.input["hi"]));
        let out = &case.output;
        let expected: Vec<[u64; 4]> = list(&out["runs"])
            .iter()
            .map(|r| [0, 1, 2, 3].map(|i| number(&r[i])))
            .collect();
        for meeting in meetings(&v, &s) {
            let runs: Vec<[u64; 4]> = meeting
                .runs(lo..hi + 1)
                .map(|r| [r.file, r.left, r.right, r.len])
                .collect();
            assert_eq!(runs, expected);
            let joint = meeting.joint(lo..hi + 1);
            assert_eq!(segments(&joint.left_set()), pairs(&out["v_segs"]), "on v");
            assert_eq!(segments(&joint.right_set()), pairs(&out["s_segs"]), "on s");
            let file = joined(expected.iter().map(|r| (r[0], r[0] + r[3] - 1)));
            assert_eq!(segments(&joint.file_set()), file, "in the file");
            // The stream range of the file window, by rank, on both projections.
            if let (Some(f), Some(l), Some(r)) =
                (meeting.file(), meeting.on_left(), meeting.on_right())
            {
                let stream = f.rank(lo)..f.rank(hi + 1);
                for (side, set) in [(l, "v_segs"), (r, "s_segs")] {
                    let found = stream.clone().map(|j| side.select(j).unwrap());
                    assert_eq!(joined(found.map(|x| (x, x))), pairs(&out[set]), "{set}");
                }
            }
        }
    });
}

#[test]
fn vector_gather() {
    run("gather", |case| {
        let set = set(&case.input["set"]);
        let (m, last) = (number(&case.input["m"]), number(&case.input["M"]));
        let source = hex(&case.input["src"]);
        let mut gathered = Vec::new();
        for s in set.segments(m..last + 1) {
            gathered.extend_from_slice(&source[s.start() as usize..s.end() as usize]);
        }
        assert_eq!(gathered, hex(&case.output["dest"]));
    });
}

#[test]
fn vector_scatter() {
    run("scatter", |case| {
        let set = set(&case.input["set"]);
        let (m, last) = (number(&case.input["m"]), number(&case.input["M"]));
        let (source, mut target) = (hex(&case.input["src"]), hex(&case.input["dest"]));
        let mut at = 0;
        for s in set.segments(m..last + 1) {
            let len = s.len() as usize;
            target[s.start() as usize..s.end() as usize].copy_from_slice(&source[at..at + len]);
            at += len;
        }
        assert_eq!(target, hex(&case.output["dest"]));
    });
}

fn pitfalls(value: &Value) -> Vec<Pitfalls> {
    list(value)
        .iter()
        .map(|p| Pitfalls {
            start: number(&p[0]),
            len: number(&p[1]) - number(&p[0]) + 1,
            stride: number(&p[2]),
            count: number(&p[3]),
            distance: number(&p[4]),
            processors: number(&p[5]),
            inner: pitfalls(&p[6]),
        })
        .collect()
}

#[test]
fn vector_pitfalls() {
    run("pitfalls", |case| {
        let family = pitfalls(&case.input["pitfalls"]);
        let expected = list(&case.output["elements"]);
        assert_eq!(Pitfalls::elements(&family).unwrap(), expected.len() as u64);
        for (i, segs) in expected.iter().enumerate() {
            let element = Pitfalls::element(&family, i as u64).unwrap();
            assert_eq!(segments(&element), pairs(segs), "element {i}");
        }
    });
}
