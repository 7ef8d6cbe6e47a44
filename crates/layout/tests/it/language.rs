//! The layout language: what is read, how it prints, where errors point, what it means, and that no
//! text upsets the parser.

use falls::FallsSet;
use falls::bytes_naive::bytes_naive;
use layout::{
    Alignment, ArrayType, BlockMap, ChunkAxis, ChunkGrid, Distribution, ElementType, FileOffset,
    Grid, Hpf, Layout, LayoutForm, NestedStride, Order, OwnerRuns, Pattern, Servers, Slice,
    SliceAxis, StridedRequest, Stripe, TemplateAxis, VestaCut, VestaFile, View,
};
use proptest::prelude::*;

/// Reads `text` and prints it as `canonical`, which reads as the same.
#[track_caller]
fn prints(text: &str, canonical: &str) {
    let layout: Layout = text.parse().unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(layout.to_string(), canonical);
    assert_eq!(canonical.parse::<Layout>().unwrap(), layout);
}

#[test]
fn every_form_prints_back() {
    for text in [
        "(block, cyclic(64)) onto 2x4",
        "(block, *) onto 8",
        "(block(4), cyclic) onto 2x2:fortran",
        "(gen_block(10,7,154), *) onto 3",
        "(indirect(0,1,0,3*1)) onto 2",
        "(*, *) onto 1",
        "align(2*i+1, j) template(100,64) (block, cyclic(4)) onto 2x2",
        "align(*, i6+3, 5) template(2,9,8) (block, *, cyclic) onto 2x3:fortran",
        "striped(1MiB) over 4 from 2",
        "striped(64KiB) over [0,2,5] from 1",
        "striped(1000) over 1",
        "chunks(256,256)",
        "chunks(256,256) over 4",
        "chunks([3,5,2],[4,4]) over [7,1] from 1",
        "blocks(4KiB: 2*0,1,2,1)",
        "blocks(512: 0,2) over 5",
        "vesta(4KiB, 8)",
        "vesta(4KiB, 8: 2,2,1,4)",
        "strided(1, 2: 3x4, 2x20)",
        "strided(0, 8: 4x32) period 1KiB",
        "strided(5, 7)",
        "slice[:10:2, 3:7]",
        "slice[:, 5, 3:, ::4, [0,3,9]]",
        "falls{(0,3,8,2,{(0,0,2,2)})}",
        "falls{(0,1,-,1); (2,3,-,1); (4,5,-,1)}",
        "falls{(0,1,-,1); ; (2,3,-,1),(6,7,-,1)} period 4KiB",
        "whole",
        "whole[0]",
        "(block, *) onto 8[7]",
        "striped(1MiB) over 4 from 2[3]",
        "chunks(256,256)[1000000]",
        "slice[5][0]",
        "(block, *) onto 3 at [4,0,4]",
        "(block, *) onto 3 at [4,0,4][1]",
        "blocks(512: 0,2) over 4 at [7,7,1,0]",
        "chunks(2,2) at [1,0,1,0]",
    ] {
        prints(text, text);
    }
}

#[test]
fn words_blanks_and_units_are_read_freely() {
    prints(
        " ( BLOCK ,CYCLIC( 3 ) )ONTO 2 X 4 ",
        "(block, cyclic(3)) onto 2x4",
    );
    prints(
        "(block,block) onto 2x2 fortran",
        "(block, block) onto 2x2:fortran",
    );
    prints("(block,block) onto 2x2:C", "(block, block) onto 2x2");
    prints("(block) onto 2:fortran", "(block) onto 2");
    prints("(*,*)", "(*, *) onto 1");
    prints("striped(1024KiB)over 2", "striped(1MiB) over 2");
    prints("striped(2 gib) over [3]", "striped(2GiB) over [3]");
    prints("striped(8B) over 3 from 0", "striped(8) over 3");
    prints("slice[0:10:2,0:1,2:3:1]", "slice[:10:2, 0, 2]");
    prints("blocks(4KiB:0,0,1,2,1)", "blocks(4KiB: 2*0,1,2,1)");
    prints(
        "(indirect(0,0,1,0*1,1*0)) onto 2",
        "(indirect(2*0,1,0)) onto 2",
    );
    prints(
        "align(1*i0+0) template(5) (block) onto 2",
        "align(i) template(5) (block) onto 2",
    );
    prints("falls{ (0,1) } period 2", "falls{(0,1,-,1)}");
    prints("falls{} period 8", "falls{} period 8");
}

/// Position and sentence of a refusal.
#[track_caller]
fn refused(text: &str) -> (usize, String) {
    let error = text.parse::<Layout>().unwrap_err();
    (error.at(), error.message().to_string())
}

#[test]
fn errors_point_at_the_character() {
    for (text, at, words) in [
        ("", 0, "expected a layout"),
        ("blok", 0, "found 'blok'"),
        ("(block", 6, "expected ')' or ',', found the end"),
        ("(block, cyclc) onto 2x2", 8, "expected a distribution"),
        ("(block, *)", 10, "expected 'onto'"),
        (
            "(block, *) onto",
            15,
            "expected a number of processors, found the end",
        ),
        ("(block, *) onto 2x2", 16, "2 dimensions for 1 distributed"),
        ("(block, *) onto 0", 16, "0 processors"),
        (
            "(block, *) onto 4 extra",
            18,
            "expected the end after the layout, found 'extra'",
        ),
        ("(block(0)) onto 2", 7, "a block length is 0"),
        ("(cyclic(-2)) onto 2", 8, "is negative"),
        ("(block(x)) onto 2", 7, "expected a block length, found 'x'"),
        (
            "(*, gen_block(1,2)) onto 3",
            4,
            "lengths of GEN_BLOCK number 2, the processors 3",
        ),
        ("(indirect(0,5)) onto 3", 1, "names processor 5"),
        ("(block) onto 99999999999999999999", 13, "reaches 2^63"),
        ("(block,block) onto 4000000000x4000000000", 19, "2^63"),
        ("(block,block) onto 2x2:f", 23, "c or fortran"),
        (
            "align(2*i+1) template(5) onto 2",
            25,
            "the distribution of the template",
        ),
        (
            "align(-1*i+4) template(5) (block) onto 2",
            6,
            "negative stride",
        ),
        ("align(0*i) template(5) (block) onto 2", 6, "a stride of 0"),
        (
            "align(i-1) template(5) (block) onto 2",
            7,
            "'+' and an offset",
        ),
        (
            "align(q) template(5) (block) onto 2",
            6,
            "a dimension of the array",
        ),
        (
            "align(i, i) template(5,5) (block, *) onto 2",
            0,
            "aligned twice",
        ),
        ("striped(0) over 4", 0, "0 bytes"),
        ("striped(1MB) over 4", 9, "KiB, MiB"),
        ("striped(9000000000GiB) over 4", 8, "2^63"),
        ("striped(4)", 10, "expected 'over'"),
        ("striped(4) over 0", 16, "is 0"),
        (
            "striped(4) over 4 from 4",
            16,
            "index 4, but the servers number 4",
        ),
        ("striped(4) over [1,2,1]", 16, "server 1 is listed twice"),
        ("chunks(4,0)", 9, "a chunk length is 0"),
        ("chunks([3,0])", 10, "a chunk length is 0"),
        ("blocks(4KiB 0,1)", 12, "expected ':'"),
        ("blocks(4KiB: 0,3) over 3", 0, "names element 3"),
        ("blocks(4: )", 0, "none"),
        ("vesta(4KiB, 8: 2,2,1)", 15, "give four"),
        ("vesta(4KiB, 8: 2,2,0,1)", 15, "horizontal_block: 0"),
        ("vesta(4KiB, 0)", 0, "cells: 0"),
        ("strided(1, 2: 3y4)", 15, "'x' and the stride"),
        ("strided(1, 2: 3x1)", 0, "levels[0]"),
        ("strided(1, 0)", 13, "'period'"),
        ("slice[9:2]", 6, "lies before the start"),
        ("slice[9:2:-1]", 10, "reverse it in the caller"),
        ("slice[0:9:0]", 10, "give 1 or more"),
        ("slice[-1]", 6, "negative"),
        ("slice[[3,1]]", 6, "must ascend"),
        ("slice[0:", 8, "found the end"),
        ("falls{(0,3,8,2)", 15, "'}' to close"),
        ("falls{(0,3);(4,x)}", 15, "found 'x'"),
        (
            "falls{(0,3,8,2,{(0,0,2,2)}); (5,4)}",
            29,
            "ends at 4 before",
        ),
        ("falls{(0,3),(2,5)}", 12, "already in the member before"),
        ("falls{(0,3)} period 3", 20, "beyond the period"),
        ("falls{}", 7, "'period'"),
        ("whole[1]", 6, "only element 0"),
        ("(block) onto 3[3]", 15, "numbered 0 to 2"),
        ("whole[0", 7, "expected ']'"),
        ("whole é", 6, "found 'é'"),
    ] {
        let (found, message) = refused(text);
        assert!(message.contains(words), "{text}: {message}");
        assert_eq!(found, at, "{text}: {message}");
    }
}

#[test]
fn the_caret_stands_below_the_character() {
    let error = "striped(4MB) over 3".parse::<Layout>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "expected a unit of B, KiB, MiB, GiB or TiB, found 'MB' (character 10)\n  striped(4MB) over 3\n           ^"
    );
}

#[test]
fn arrays_read_and_print() {
    for text in [
        "f64[6,8]",
        "u8[0]",
        "c128[2,3,4]:fortran",
        "bytes(12)[100]",
        "i32[]",
        "bool[1]",
    ] {
        assert_eq!(text.parse::<ArrayType>().unwrap().to_string(), text);
    }
    let fifteen = format!("f32[{}]", ["2"; 15].join(","));
    assert_eq!(fifteen.parse::<ArrayType>().unwrap().bytes(), 4 << 15);
    assert_eq!(
        "F64 [ 6 , 8 ] : C"
            .parse::<ArrayType>()
            .unwrap()
            .to_string(),
        "f64[6,8]"
    );
    for (text, at) in [
        ("", 0),
        ("f65[3]", 0),
        ("f64", 3),
        ("f64[3", 5),
        ("f64[3,]", 6),
        ("f64[-3]", 4),
        ("f64[3]x", 6),
        ("f64[3]:x", 7),
        ("bytes[3]", 5),
        ("f64[4294967296,4294967296]", 3),
    ] {
        assert_eq!(text.parse::<ArrayType>().unwrap_err().at(), at, "{text}");
    }
    let many = format!("u8[{}]", ["1"; 33].join(","));
    assert!(
        many.parse::<ArrayType>()
            .unwrap_err()
            .message()
            .contains("33 dimensions")
    );
}

/// Which element owns each byte of one period, as digits and letters; `.` is none.
#[track_caller]
fn picture(layout: &str, array: &str) -> String {
    let layout: Layout = layout.parse().unwrap_or_else(|e| panic!("{e}"));
    let applied = match array {
        "" => layout.on_bytes(),
        text => layout.on_array(&text.parse().unwrap_or_else(|e| panic!("{e}"))),
    };
    let elements = applied
        .unwrap_or_else(|e| panic!("{e}"))
        .elements()
        .unwrap();
    let mut picture = vec!['.'; elements.period as usize];
    for (e, set) in elements.sets.iter().enumerate() {
        for byte in bytes_naive(set) {
            assert_eq!(picture[byte as usize], '.', "byte {byte} has two owners");
            picture[byte as usize] = char::from_digit(e as u32, 36).unwrap();
        }
    }
    picture.into_iter().collect()
}

#[test]
fn layouts_mean_what_they_say() {
    assert_eq!(
        picture("(block, cyclic) onto 2x2", "u8[4,4]"),
        "0101010123232323"
    );
    assert_eq!(
        picture("(block, cyclic) onto 2x2:fortran", "u8[4,4]"),
        "0202020213131313"
    );
    assert_eq!(picture("(block, *) onto 2", "u8[2,3]:fortran"), "010101");
    assert_eq!(
        picture("(gen_block(1,3), *) onto 2", "u16[4,1]"),
        "00111111"
    );
    assert_eq!(picture("(indirect(1,0,2*1)) onto 2", "u8[4]"), "1011");
    assert_eq!(
        picture("align(2*i+1) template(8) (block) onto 4", "u8[4]"),
        "0123"
    );
    assert_eq!(picture("striped(2) over 3 from 1", ""), "112200");
    assert_eq!(picture("striped(2) over [5,9] from 1", "f64[100]"), "1100");
    assert_eq!(picture("chunks(2,2)", "u8[3,3]"), "001001223");
    assert_eq!(picture("chunks(2,2) over 3 from 1", "u8[3,3]"), "112112001");
    assert_eq!(picture("chunks([1,2],[2,1])", "u8[3,3]"), "001223223");
    assert_eq!(picture("blocks(2: 0,0,1,2,1)", ""), "0000112211");
    assert_eq!(picture("vesta(1, 3)", ""), "012");
    assert_eq!(picture("vesta(1, 3: 1,2,2,2)", ""), "001223");
    assert_eq!(picture("strided(1, 2: 2x3) period 9", ""), ".00.00...");
    assert_eq!(picture("slice[0:2, ::2]", "u8[3,3]"), "0.00.0...");
    assert_eq!(picture("falls{(0,0,2,2); (1,1); (3,3)}", ""), "0102");
    assert_eq!(picture("falls{(0,0)} period 3", ""), "0..");
    assert_eq!(picture("whole", "u8[2,2]"), "0000");
    assert_eq!(picture("whole", ""), "0");
    assert_eq!(
        picture("(block, cyclic) onto 2x2[3]", "u8[4,4]"),
        ".........0.0.0.0"
    );
    assert_eq!(picture("(block) onto 2", "u8[0]"), "");
}

#[test]
fn application_errors_name_the_argument() {
    let message = |layout: &str, array: &str| {
        let layout: Layout = layout.parse().unwrap();
        match array {
            "" => layout.on_bytes().unwrap_err().to_string(),
            text => layout
                .on_array(&text.parse().unwrap())
                .unwrap_err()
                .to_string(),
        }
    };
    assert_eq!(
        message("(block, *) onto 4", "u8[4]"),
        "distributions: 2 for an array of 1 dimension; give one for each, `*` where it is not distributed"
    );
    assert_eq!(
        message("chunks(4)", ""),
        "array: `chunks(4)` cuts an array; say which, as in f64[4096,4096]"
    );
    assert_eq!(
        message("chunks(2)[2]", "u8[4]"),
        "element: 2, but elements are numbered 0 to 1"
    );
    assert!(message("(block(2)) onto 3", "u8[7]").starts_with("distributions[0]: BLOCK(2)"));
    assert!(message("slice[0:9]", "u8[7]").starts_with("slice[0]: "));
}

#[test]
fn huge_numbers_cost_nothing_until_elements_are_listed() {
    let text = "(cyclic, *, indirect(4000000000*0,4000000000*1)) onto 3000000000x2";
    let layout: Layout = text.parse().unwrap();
    let applied = layout
        .on_array(&"u8[1000000000,1,8000000000]".parse().unwrap())
        .unwrap();
    assert_eq!(applied.count(), 6_000_000_000);
    assert_eq!(applied.element(1).unwrap().size(), 4_000_000_000);
    assert!(
        applied
            .elements()
            .unwrap_err()
            .to_string()
            .contains("too many to list")
    );
    let stripes: Layout = "striped(1) over 9000000000000000000".parse().unwrap();
    assert_eq!(stripes.on_bytes().unwrap().element(17).unwrap().size(), 1);
    let chunks: Layout = "chunks(1,1,1) over 4000000007".parse().unwrap();
    let applied = chunks
        .on_array(&"u8[1000000,1000000,1000000]".parse().unwrap())
        .unwrap();
    assert_eq!(applied.count(), 4_000_000_007);
    let error = applied.element(5).unwrap_err().to_string();
    assert!(error.contains("choose fewer servers"), "{error}");
    let line: Layout = "chunks(1) over 4000000007".parse().unwrap();
    let applied = line
        .on_array(&"u8[1000000000000]".parse().unwrap())
        .unwrap();
    assert_eq!(applied.element(3).unwrap().size(), 250);
}

#[test]
fn long_and_deep_texts_are_refused_or_read() {
    let deep = format!("falls{}", "{(0,1,-,1,".repeat(100_000));
    assert!(deep.parse::<Layout>().is_err());
    let closed = format!(
        "falls{}(0,1){}",
        "{(0,1,-,1,{".repeat(500),
        "})}".repeat(500)
    );
    assert!(closed.parse::<Layout>().is_err());
    let dims = format!("({}) onto 2", ["*"; 100].join(","));
    assert!(
        dims.parse::<Layout>()
            .unwrap_err()
            .message()
            .contains("more than 32 entries")
    );
    let long = " ".repeat(layout::MAX_TEXT + 1);
    assert!(
        long.parse::<Layout>()
            .unwrap_err()
            .message()
            .contains("longer than")
    );
    let map: Vec<String> = (0..300_000u64)
        .map(|i| (i * i % 7 % 3).to_string())
        .collect();
    let text = format!("(indirect({})) onto 3", map.join(","));
    let layout: Layout = text.parse().unwrap();
    assert_eq!(layout.to_string().parse::<Layout>().unwrap(), layout);
}

fn distribution(processors: u64) -> impl Strategy<Value = Distribution> {
    prop_oneof![
        Just(Distribution::Block),
        (1u64..99).prop_map(Distribution::BlockOf),
        Just(Distribution::Cyclic),
        (1u64..99).prop_map(Distribution::CyclicOf),
        proptest::collection::vec(0u64..9, processors as usize)
            .prop_map(|lengths| Distribution::gen_block(&lengths).unwrap()),
        proptest::collection::vec(0..processors, 0..12)
            .prop_map(|owners| Distribution::indirect(&owners)),
    ]
}

fn order() -> impl Strategy<Value = Order> {
    prop_oneof![Just(Order::C), Just(Order::Fortran)]
}

fn hpf(dimensions: std::ops::Range<usize>) -> impl Strategy<Value = Hpf> {
    let axis = (1u64..5, any::<bool>()).prop_flat_map(|(p, star)| {
        let distribution = match star {
            true => Just(Distribution::Collapsed).boxed(),
            false => distribution(p).boxed(),
        };
        (distribution, Just(p))
    });
    (proptest::collection::vec(axis, dimensions), order()).prop_map(|(axes, order)| {
        let grid: Vec<u64> = axes
            .iter()
            .filter(|(d, _)| d.is_distributed())
            .map(|a| a.1)
            .collect();
        let dists: Vec<Distribution> = axes.into_iter().map(|a| a.0).collect();
        Hpf::new(dists, Grid::new(grid, order).unwrap()).unwrap()
    })
}

fn servers() -> impl Strategy<Value = Servers> {
    let listed = proptest::collection::btree_set(0u64..40, 1..6)
        .prop_map(|set| set.into_iter().collect::<Vec<_>>())
        .prop_shuffle();
    prop_oneof![
        (1u64..9, 0u64..9).prop_map(|(n, start)| Servers::first(n, start % n).unwrap()),
        (listed, 0u64..9).prop_map(|(list, start)| {
            let start = start % list.len() as u64;
            Servers::listed(list, start).unwrap()
        }),
    ]
}

fn size() -> impl Strategy<Value = u64> {
    prop_oneof![
        1u64..5000,
        (1u64..2000).prop_map(|n| n << 10),
        (1u64..2000).prop_map(|n| n << 20)
    ]
}

fn alignment() -> impl Strategy<Value = Alignment> {
    let axis = (0u8..4, 1u64..5, 0u64..5);
    (
        hpf(1..4),
        proptest::collection::vec(axis, 3),
        Just([7usize, 0, 12]).prop_shuffle(),
    )
        .prop_map(|(onto, axes, dimensions)| {
            // Extents that suit the distributions of their own.
            let extents: Vec<u64> = onto
                .distributions()
                .iter()
                .map(|d| match d {
                    Distribution::GenBlock(lengths) => lengths.total(),
                    Distribution::Indirect(map) => map.len(),
                    Distribution::BlockOf(n) => *n,
                    _ => 100,
                })
                .collect();
            let axes: Vec<TemplateAxis> = (0..extents.len())
                .map(|t| match axes[t] {
                    (0, ..) => TemplateAxis::Replicated,
                    (1, _, at) if at < extents[t] => TemplateAxis::At(at),
                    (_, stride, offset) => TemplateAxis::Along {
                        dimension: dimensions[t],
                        stride,
                        offset,
                    },
                })
                .collect();
            Alignment::new(extents, onto, axes).unwrap()
        })
}

fn slice_axis() -> impl Strategy<Value = SliceAxis> {
    prop_oneof![
        (0u64..20, proptest::option::of(0u64..20), 1i64..5).prop_map(|(start, len, step)| {
            SliceAxis::range(start, len.map(|len| start + len), step).unwrap()
        }),
        proptest::collection::btree_set(0u64..50, 0..6)
            .prop_map(|set| SliceAxis::indices(&set.into_iter().collect::<Vec<_>>()).unwrap()),
    ]
}

fn set() -> impl Strategy<Value = FallsSet> {
    let segments = proptest::collection::vec((0u64..5, 1u64..5, 1u64..4, 0u64..3), 0..40);
    segments.prop_map(|list| {
        let (mut members, mut end) = (Vec::new(), 0);
        for (gap, len, count, more) in list {
            let falls = falls::Falls::family(end + gap, len, len + more, count).unwrap();
            end = falls.end();
            members.push(falls);
        }
        FallsSet::new(members).unwrap()
    })
}

fn layout() -> impl Strategy<Value = Layout> {
    let chunk_axis = prop_oneof![
        (1u64..999).prop_map(ChunkAxis::Regular),
        proptest::collection::vec(1u64..9, 1..6).prop_map(|l| ChunkAxis::lengths(&l).unwrap()),
    ];
    let chunks = (
        proptest::collection::vec(chunk_axis, 1..4),
        proptest::option::of(servers()),
    );
    let blocks = (size(), proptest::collection::vec(0u64..4, 1..20), 4u64..6);
    let sets = (proptest::collection::vec(set(), 1..5), 0u64..3);
    let levels = proptest::collection::vec((0u64..4, 0u64..4), 0..4);
    let strided = (0u64..99, 0u64..9, levels, 0u64..3);
    let form = prop_oneof![
        hpf(0..5).prop_map(LayoutForm::Hpf),
        alignment().prop_map(LayoutForm::Aligned),
        (size(), servers()).prop_map(|(b, s)| LayoutForm::Striped(Stripe::new(b, s).unwrap())),
        chunks.prop_map(|(axes, s)| LayoutForm::Chunks(ChunkGrid::new(axes), s)),
        blocks.prop_map(|(size, owners, count)| {
            LayoutForm::Blocks(BlockMap::new(size, OwnerRuns::new(&owners), count).unwrap())
        }),
        (
            1u64..5000,
            1u64..9,
            proptest::option::of((1u64..5, 1u64..5, 1u64..5, 1u64..5))
        )
            .prop_map(|(unit, cells, cut)| {
                let cut = cut.map(|(vbs, vn, hbs, hn)| VestaCut {
                    vertical_block: vbs,
                    vertical_groups: vn,
                    horizontal_block: hbs,
                    horizontal_groups: hn,
                });
                LayoutForm::Vesta(VestaFile::new(unit, cells).unwrap(), cut)
            },),
        strided.prop_map(|(start, quantity, levels, more)| {
            let (mut span, mut real) = (quantity, Vec::new());
            for (count, gap) in levels {
                let stride = span + gap;
                real.push(NestedStride { count, stride });
                span += count.saturating_sub(1) * stride;
            }
            let request = StridedRequest::new(start, quantity, &real).unwrap();
            let period = (request.set().end() + more).max(1);
            LayoutForm::Strided(request, period)
        }),
        proptest::collection::vec(slice_axis(), 0..5)
            .prop_map(|axes| LayoutForm::Slice(Slice::new(axes))),
        sets.prop_map(|(sets, more)| {
            let end = sets.iter().map(FallsSet::end).max().unwrap_or(0);
            let period = (end + more).max(1);
            LayoutForm::Falls {
                period,
                sets: sets.into(),
            }
        }),
        Just(LayoutForm::Whole),
    ];
    (form, proptest::option::of(0u64..3)).prop_map(|(form, pick)| {
        let layout = Layout::from(form);
        match pick {
            Some(k) => layout.clone().pick(k).unwrap_or(layout),
            None => layout,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn what_prints_reads_back_as_the_same(layout in layout()) {
        let text = layout.to_string();
        let read: Layout = text.parse().map_err(|e| TestCaseError::fail(format!("{text}: {e}")))?;
        prop_assert_eq!(&read, &layout);
        prop_assert_eq!(read.to_string(), text);
    }

    #[test]
    fn array_types_read_back(
        extents in proptest::collection::vec(0u64..99, 0..16), order in order(),
        element in prop_oneof![
            Just(ElementType::F64), Just(ElementType::Bool), Just(ElementType::C64),
            Just(ElementType::I16), (0u64..99).prop_map(ElementType::Bytes),
        ],
    ) {
        if let Ok(array) = ArrayType::new(element, extents, order) {
            prop_assert_eq!(array.to_string().parse::<ArrayType>().unwrap(), array);
        }
    }

    /// Texts with one character changed, dropped or doubled are read or refused within the text.
    #[test]
    fn damaged_texts_do_not_upset_the_parser(
        layout in layout(), at in any::<prop::sample::Index>(), kind in 0u8..4,
        other in prop_oneof![
            proptest::sample::select("()[]{},;:*x+-0123456789 abfilnoprtuw".chars().collect::<Vec<_>>()),
            any::<char>(),
        ],
    ) {
        let mut chars: Vec<char> = layout.to_string().chars().collect();
        let at = at.index(chars.len());
        match kind {
            0 => { chars.remove(at); }
            1 => chars.insert(at, other),
            2 => chars[at] = other,
            _ => chars.truncate(at),
        }
        let text: String = chars.iter().collect();
        match text.parse::<Layout>() {
            Ok(read) => prop_assert_eq!(read.to_string().parse::<Layout>().unwrap(), read),
            Err(error) => {
                prop_assert!(error.at() <= chars.len());
                prop_assert!(!error.to_string().is_empty());
            }
        }
    }

    /// Whatever is read can be applied, or is refused; nothing panics and elements partition.
    #[test]
    fn whatever_is_read_can_be_applied(
        layout in layout(), extents in proptest::collection::vec(0u64..7, 1..4), order in order(),
    ) {
        let array = ArrayType::new(ElementType::U16, extents, order).unwrap();
        let Ok(applied) = layout.on_array(&array) else { return Ok(()) };
        let elements = applied.elements().unwrap();
        prop_assert_eq!(elements.sets.len() as u64, applied.count());
        prop_assert!(elements.sets.iter().all(|set| set.end() <= elements.period));
        let partition = !matches!(layout.form(), LayoutForm::Falls { .. });
        if partition && !layout.is_view() && elements.period > 0 {
            Pattern::new(elements.period, elements.sets).unwrap();
        }
    }
}

#[test]
fn a_layout_says_which_server_has_which_element() {
    let layout: Layout = "(block) onto 2 at [5, 3]".parse().unwrap();
    assert_eq!(layout.places(), Some(&[5, 3][..]));
    assert_eq!(
        layout.clone().without_places().to_string(),
        "(block) onto 2"
    );
    assert_eq!(layout.without_places().places(), None);
    let listed: Layout = "striped(4) over [2,0] from 1".parse().unwrap();
    assert_eq!(listed.places(), Some(&[2, 0][..]));
    // One for each element, and no more; where the array says how many there are, it is asked.
    let error = "(block) onto 2 at [5]".parse::<Layout>().unwrap_err();
    assert!(
        error.message().contains("1 servers for 2 elements"),
        "{error}"
    );
    assert!("(block) onto 2 at []".parse::<Layout>().is_err());
    let chunks: Layout = "chunks(2) at [0,1,0]".parse().unwrap();
    assert!(chunks.on_array(&"u8[4]".parse().unwrap()).is_err());
    assert!(chunks.on_array(&"u8[5]".parse().unwrap()).is_ok());
}

/// An element that is a choice of indices in every dimension has as many entries as the product of its extents.
#[test]
fn the_shape_of_an_element_has_its_entries() {
    let array: ArrayType = "f64[5,7]".parse().unwrap();
    let shaped = [
        "(block, *) onto 3",
        "(cyclic(2), block) onto 2x2",
        "(block, *) onto 9",
        "chunks(2,3)",
        "slice[1:5:2, 3]",
        "slice[[0,3], 2:2]",
        "whole",
    ];
    // Rows 2, 5, 8 and so on of a template; all columns at one index of it; nothing at all for most.
    let aligned = [
        "!HPF$ TEMPLATE T(20,9)\n!HPF$ DISTRIBUTE T(CYCLIC(3),BLOCK) ONTO P(2,2)\n!HPF$ ALIGN A(I,J) WITH T(3*I-1,J+2)",
        "!HPF$ TEMPLATE T(8,3)\n!HPF$ DISTRIBUTE T(BLOCK,CYCLIC) ONTO P(3,2)\n!HPF$ ALIGN A(I,*) WITH T(I,2)",
        "!HPF$ TEMPLATE T(4)\n!HPF$ DISTRIBUTE T(BLOCK) ONTO P(4)\n!HPF$ ALIGN A(*,*) WITH T(3)",
        "!HPF$ TEMPLATE T(7,2)\n!HPF$ DISTRIBUTE T(CYCLIC,BLOCK) ONTO P(2,2)\n!HPF$ ALIGN A(*,J) WITH T(J,*)",
    ];
    let layouts = shaped.map(|text| (text, text.parse::<Layout>().unwrap()));
    let directives = aligned.map(|text| {
        let read = layout::Directives::parse(text).unwrap();
        (text, read.layout("A", &[5, 7], None).unwrap())
    });
    for (text, layout) in layouts.into_iter().chain(directives) {
        let applied = layout.on_array(&array).unwrap();
        for element in 0..applied.count() {
            let extents = applied.extents(element).unwrap().expect(text);
            let entries: u64 = extents.iter().product();
            let bytes = applied.element(element).unwrap().size();
            assert_eq!(
                (extents.len(), entries * 8),
                (2, bytes),
                "{text} [{element}]"
            );
        }
        assert!(applied.extents(applied.count()).is_err());
    }
    let chunk: Layout = "chunks(2,3) [5]".parse().unwrap();
    let chunk = chunk.on_array(&array).unwrap();
    assert_eq!(chunk.extents(0).unwrap(), Some(vec![2, 1]));
    for text in ["striped(16) over 2", "chunks(2,3) over 2", "falls{(0,7)}"] {
        let applied = text.parse::<Layout>().unwrap().on_array(&array).unwrap();
        assert_eq!(applied.extents(0), Ok(None), "{text}");
    }
}

/// Views by bytes may cut the entries of an array; those by indices never do.
#[test]
fn a_view_says_whether_it_cuts_entries() {
    let array: ArrayType = "f64[5,7]".parse().unwrap();
    let is_whole = |text: &str| {
        let applied = text.parse::<Layout>().unwrap().on_array(&array).unwrap();
        let set = applied.element(0).unwrap();
        let view = View::new(FileOffset(0), applied.period(), set).unwrap();
        view.has_whole_units(8)
    };
    for text in [
        "(cyclic, cyclic) onto 2x2",
        "slice[1:5:2, 0:7:3]",
        "striped(24) over 2",
        "striped(3) over 1",
        "falls{(0,0,1,8)} period 16",
        "whole",
    ] {
        assert!(is_whole(text), "{text}");
    }
    for text in [
        "striped(12) over 2",
        "falls{(4,11)} period 16",
        "falls{(0,7)} period 20",
        "strided(0, 8: 3x12) period 64",
        "falls{(0,15,16,2,{(0,3,8,2)})} period 32",
    ] {
        assert!(!is_whole(text), "{text}");
    }
}
