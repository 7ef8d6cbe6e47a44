//! The golden cases of `testdata/falls.json` that lie in this crate: constructors and lengths, one
//! test per operation.
//!
//! Results are compared as byte sets, or as byte sequences where order counts; `testdata/README.md`
//! explains the schema. `PARIO_VECTORS` names another file of the same schema. A test of `falls`
//! checks that every operation of the file is run by some crate.

use falls::{FallsSet, MAX_OFFSET, Periodic, Segment};
use layout::mpi::{Datatype, Distribute, FileView};
use layout::sequence::Run;
use layout::{
    AccessDesc, ArrayType, BasicBlock, ChunkGrid, Distribution, ElementType, FileOffset, Grid, Hpf,
    Order, Partition, Pattern, Servers, Slice, Stripe,
};
use serde_json::Value;
use testkit::golden::{Case, list, number, numbers, run, set, signed};

fn order(value: &Value) -> Order {
    match value.as_str() {
        Some("C") => Order::C,
        Some("F") => Order::Fortran,
        _ => panic!("an order, not {value}"),
    }
}

/// Inclusive pairs, as sets and sequences are written in the file.
fn pairs(value: &Value) -> Vec<(i64, i64)> {
    list(value)
        .iter()
        .map(|p| (signed(&p[0]), signed(&p[1])))
        .collect()
}

fn signed_list(value: &Value) -> Vec<i64> {
    list(value).iter().map(signed).collect()
}

fn inclusive(segments: impl Iterator<Item = Segment>) -> Vec<(i64, i64)> {
    segments
        .map(|s| (s.start() as i64, s.last() as i64))
        .collect()
}

fn segments(set: &FallsSet) -> Vec<(i64, i64)> {
    inclusive(set.segments(0..MAX_OFFSET))
}

fn runs(runs: impl Iterator<Item = Run>) -> Vec<(i64, i64)> {
    runs.map(|r| (r.start, r.end() - 1)).collect()
}

fn array(case: &Case, order: Order) -> ArrayType {
    let element = ElementType::Bytes(number(&case.input["elem"]));
    ArrayType::new(element, numbers(&case.input["shape"]), order).unwrap()
}

#[test]
fn vector_hpf() {
    run("hpf", |case| {
        let array = array(case, order(&case.input["order"]));
        let distributions: Vec<Distribution> = list(&case.input["dists"])
            .iter()
            .map(|d| match (d[0].as_str(), d[1].as_u64()) {
                (Some("block"), None) => Distribution::Block,
                (Some("block"), Some(n)) => Distribution::BlockOf(n),
                (Some("cyclic"), None) => Distribution::Cyclic,
                (Some("cyclic"), Some(n)) => Distribution::CyclicOf(n),
                (Some("*"), _) => Distribution::Collapsed,
                _ => panic!("a distribution, not {d}"),
            })
            .collect();
        let grid = Grid::new(
            numbers(&case.input["grid"]),
            order(&case.input["grid_order"]),
        );
        let elements = Hpf::new(distributions, grid.unwrap())
            .and_then(|hpf| hpf.on(&array)?.elements())
            .unwrap();
        assert_eq!(elements.period, number(&case.output["total"]), "period");
        let sizes: Vec<u64> = elements.sets.iter().map(FallsSet::size).collect();
        assert_eq!(sizes, numbers(&case.output["sizes"]));
        let ranks = list(&case.output["ranks"]);
        assert_eq!(elements.sets.len(), ranks.len(), "ranks");
        for (rank, (set, expected)) in elements.sets.iter().zip(ranks).enumerate() {
            assert_eq!(segments(set), pairs(expected), "rank {rank}");
        }
        if elements.period > 0 {
            Pattern::new(elements.period, elements.sets).expect("a partition of the array");
        }
    });
}

#[test]
fn vector_slice() {
    run("slice", |case| {
        let array = array(case, order(&case.input["order"]));
        let slice = Slice::counted(
            &numbers(&case.input["starts"]),
            &numbers(&case.input["counts"]),
            &signed_list(&case.input["steps"]),
        );
        let set = slice.and_then(|s| s.on(&array)).unwrap();
        assert_eq!(segments(&set), pairs(&case.output["segs"]));
    });
}

#[test]
fn vector_chunks() {
    run("chunks", |case| {
        let array = array(case, Order::C);
        let grid = ChunkGrid::regular(&numbers(&case.input["chunks"]));
        let chunks = grid.on(&array).unwrap();
        let expected = list(&case.output["chunks"]);
        assert_eq!(chunks.count(), expected.len() as u64);
        for (i, chunk) in (0..).zip(expected) {
            assert_eq!(
                chunks.index(i).unwrap(),
                numbers(&chunk["index"]),
                "chunk {i}"
            );
            let inside = chunks.element(i).unwrap();
            assert_eq!(segments(&inside), pairs(&chunk["array_segs"]), "chunk {i}");
            let padded = chunks.padded(i).unwrap().set;
            assert_eq!(segments(&padded), pairs(&chunk["padded_segs"]), "chunk {i}");
        }
    });
}

#[test]
fn vector_stripe() {
    run("stripe", |case| {
        let servers = Servers::listed(
            numbers(&case.input["servers"]),
            number(&case.input["start"]),
        );
        let stripe = Stripe::new(number(&case.input["block"]), servers.unwrap()).unwrap();
        let len = number(&case.input["file_len"]);
        let expected = list(&case.output["segs"]);
        assert_eq!(stripe.count(), expected.len() as u64);
        for (i, segs) in (0..).zip(expected) {
            let set = stripe.element(i).unwrap();
            let server = Periodic::new(0, stripe.period(), set).unwrap();
            assert_eq!(
                inclusive(server.segments(0..len)),
                pairs(segs),
                "server {i}"
            );
            assert_eq!(server.rank(len), numbers(&case.output["sizes"])[i as usize]);
        }
    });
}

#[test]
fn vector_lengths() {
    run("lengths", |case| {
        let input = &case.input;
        let sets: Vec<FallsSet> = list(&input["sets"]).iter().map(set).collect();
        let pattern = Pattern::new(number(&input["period"]), sets).unwrap();
        let displacement = FileOffset(number(&input["disp"]));
        let partition = Partition::new(displacement, pattern).unwrap();
        let expected = list(&case.output["sub_lens"]);
        for (len, expected) in numbers(&input["file_lens"]).into_iter().zip(expected) {
            let lens: Vec<u64> = (0..partition.len())
                .map(|i| partition.subfile_len(i, len))
                .collect();
            assert_eq!(lens, numbers(expected), "file of {len} bytes");
            // The shortest file with these subfiles is the file itself, unless it ends before the
            // displacement.
            if len > displacement.get() {
                assert_eq!(partition.file_len(&lens), Some(len));
            }
        }
    });
}

fn datatype(value: &Value) -> Datatype {
    let v = |name: &str| signed(&value[name]);
    let vs = |name: &str| signed_list(&value[name]);
    let old = || datatype(&value["old"]);
    let made = match value["t"].as_str() {
        Some("basic") => Datatype::basic(v("size")),
        Some("contiguous") => Datatype::contiguous(v("count"), &old()),
        Some("vector") => Datatype::vector(v("count"), v("blocklen"), v("stride"), &old()),
        Some("hvector") => Datatype::hvector(v("count"), v("blocklen"), v("stride"), &old()),
        Some("indexed") => Datatype::indexed(&vs("blocklens"), &vs("displs"), &old()),
        Some("hindexed") => Datatype::hindexed(&vs("blocklens"), &vs("displs"), &old()),
        Some("indexed_block") => Datatype::indexed_block(v("blocklen"), &vs("displs"), &old()),
        Some("hindexed_block") => Datatype::hindexed_block(v("blocklen"), &vs("displs"), &old()),
        Some("struct") => {
            let olds: Vec<Datatype> = list(&value["olds"]).iter().map(datatype).collect();
            Datatype::structure(&vs("blocklens"), &vs("displs"), &olds)
        }
        Some("subarray") => Datatype::subarray(
            &vs("sizes"),
            &vs("subsizes"),
            &vs("starts"),
            order(&value["order"]),
            &old(),
        ),
        Some("darray") => {
            let arguments = list(&value["dargs"]).iter().map(Value::as_i64);
            let distribs: Vec<Distribute> = list(&value["distribs"])
                .iter()
                .zip(arguments)
                .map(|(kind, argument)| match kind.as_str() {
                    Some("block") => Distribute::Block(argument),
                    Some("cyclic") => Distribute::Cyclic(argument),
                    Some("none") => Distribute::None,
                    _ => panic!("a distribution, not {kind}"),
                })
                .collect();
            let (size, rank) = (v("size"), v("rank"));
            let (gsizes, psizes) = (vs("gsizes"), vs("psizes"));
            let order = order(&value["order"]);
            Datatype::darray(size, rank, &gsizes, &distribs, &psizes, order, &old())
        }
        Some("resized") => Datatype::resized(v("lb"), v("extent"), &old()),
        Some("dup") => Datatype::dup(&old()),
        _ => panic!("a type, not {value}"),
    };
    made.unwrap_or_else(|e| panic!("{value}: {e}"))
}

#[test]
fn vector_mpi_type() {
    run("mpi_type", |case| {
        let datatype = datatype(&case.input["type"]);
        let out = &case.output;
        let bounds = [
            datatype.lb(),
            datatype.extent(),
            datatype.true_lb(),
            datatype.true_extent(),
        ];
        let expected = ["lb", "extent", "true_lb", "true_extent"].map(|name| signed(&out[name]));
        assert_eq!(bounds, expected, "lb, extent, true lb, true extent");
        assert_eq!(datatype.size(), number(&out["size"]), "size");
        let sequence = datatype.to_sequence();
        assert_eq!(runs(sequence.runs()), pairs(&out["runs"]));
        let monotone = out["monotone"] == true;
        assert_eq!(datatype.is_monotone(), monotone, "ascending");
        assert_eq!(
            sequence.has_overlap(),
            out["overlap"] == true,
            "a byte twice"
        );
        match datatype.to_set() {
            Ok((base, set)) => {
                assert!(monotone, "a set has no order but the ascending one");
                let moved = segments(&set)
                    .into_iter()
                    .map(|(l, r)| (l + base, r + base));
                assert_eq!(moved.collect::<Vec<_>>(), pairs(&out["runs"]), "as a set");
            }
            Err(error) => assert!(!monotone, "{error}"),
        }
    });
}

#[test]
fn vector_mpi_view() {
    run("mpi_view", |case| {
        let input = &case.input;
        let filetype = datatype(&input["filetype"]);
        let byte = Datatype::basic(1).unwrap();
        let view = FileView::new(signed(&input["disp"]), &byte, &filetype).unwrap();
        let (k0, k1) = (number(&input["k0"]), number(&input["k1"]));
        let expected = pairs(&case.output["runs"]);
        let sequence = view.sequence(k0..k1 + 1).unwrap();
        assert_eq!(runs(sequence.runs()), expected);
        for (i, k) in (k0..=k1).enumerate().step_by(7) {
            let x = sequence.select(i as u64);
            assert_eq!(view.select(k), x, "byte {k}");
        }
        match view.to_periodic() {
            Ok(element) if !element.is_empty() => {
                assert_eq!(case.output["monotone"], true);
                let (lo, hi) = (element.select(k0).unwrap(), element.select(k1).unwrap());
                assert_eq!(inclusive(element.segments(lo..hi + 1)), expected);
            }
            Ok(_) => assert_eq!(expected, []),
            // The window of the case may lie in one tile; two tiles show why it was refused.
            Err(error) => {
                let two = view.sequence(0..2 * filetype.size()).unwrap();
                assert!(!two.is_monotone(), "{error}");
            }
        }
    });
}

fn access_desc(value: &Value) -> AccessDesc {
    let block = |b: &Value| {
        let n = |name: &str| signed(&b[name]);
        let (offset, repeat, count, stride) = (n("offset"), n("repeat"), n("count"), n("stride"));
        if b["sub"].is_null() {
            BasicBlock::bytes(offset, repeat, count, stride)
        } else {
            BasicBlock::nested(offset, repeat, count, stride, access_desc(&b["sub"]))
        }
    };
    let blocks = list(&value["blocks"]).iter().map(block).collect();
    AccessDesc::new(signed(&value["skip"]), blocks).unwrap()
}

#[test]
fn vector_access_desc() {
    run("access_desc", |case| {
        let desc = access_desc(&case.input["desc"]);
        let out = &case.output;
        assert_eq!(desc.extent(), signed(&out["extent"]), "extent");
        assert_eq!(desc.actual(), number(&out["actual"]), "bytes");
        assert_eq!(runs(desc.walk()), pairs(&out["runs"]));
        assert_eq!(desc.is_monotone(), out["monotone"] == true, "ascending");
        let offsets = numbers(&case.input["offsets"]);
        let positions: Vec<_> = offsets.iter().map(|&k| desc.position(k)).collect();
        let expected: Vec<_> = list(&out["positions"]).iter().map(Value::as_i64).collect();
        assert_eq!(positions, expected, "positions of {offsets:?}");
        if let Ok(set) = desc.to_set() {
            assert_eq!(segments(&set), pairs(&out["runs"]), "as a set");
            let element = desc.to_periodic(0).unwrap();
            let selected: Vec<_> = offsets
                .iter()
                .map(|&k| element.select(k).map(|x| x as i64))
                .collect();
            assert_eq!(selected, expected, "used circularly");
        }
    });
}
