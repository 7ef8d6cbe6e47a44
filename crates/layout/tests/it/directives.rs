//! HPF directives and run-time descriptors against owners that are worked out index by index,
//! and texts that are refused, with the place of the error.

use layout::{ArrayType, Directives, ElementType, Order, RunTimeDescriptor};

/// A distribution as it is written, and as the numbers of a run-time descriptor: kind, argument, list.
#[derive(Clone, Debug)]
struct DistFormat {
    text: String,
    kind: i64,
    argument: i64,
    list: Vec<i64>,
}

fn dealt(text: &str, kind: i64, argument: i64, list: &[i64]) -> DistFormat {
    let (text, list) = (text.to_owned(), list.to_vec());
    DistFormat {
        text,
        kind,
        argument,
        list,
    }
}

/// The coordinate that owns index `i`, by the words of the standard.
fn owner_naive(dealt: &DistFormat, extent: i64, processors: i64, i: i64) -> i64 {
    match (dealt.kind, dealt.argument) {
        (0, _) => 0,
        (1, 0) => i / ((extent + processors - 1) / processors),
        (1, n) => i / n,
        (2 | 3, n) => i / n.max(1) % processors,
        (4, _) => {
            let mut end = 0;
            let ends = dealt.list.iter().map(|len| {
                end += len;
                end
            });
            ends.collect::<Vec<_>>()
                .iter()
                .position(|end| i < *end)
                .unwrap() as i64
        }
        _ => dealt.list[i as usize],
    }
}

/// All distributions of a dimension that suit it.
fn all_dealt(extent: i64, processors: i64) -> Vec<DistFormat> {
    let mut all = vec![dealt("*", 0, 0, &[])];
    all.push(dealt("BLOCK", 1, 0, &[]));
    all.push(dealt("CYCLIC", 2, 0, &[]));
    for n in 1..=extent.max(1) + 1 {
        if n * processors >= extent {
            all.push(dealt(&format!("BLOCK({n})"), 1, n, &[]));
        }
        all.push(dealt(&format!("CYCLIC({n})"), 3, n, &[]));
    }
    let mut lengths = vec![0; processors as usize];
    lengths[0] = extent;
    let listed = |list: &[i64], by: i64| {
        let words: Vec<String> = list.iter().map(|n| (n + by).to_string()).collect();
        words.join(",")
    };
    loop {
        all.push(dealt(
            &format!("GEN_BLOCK((/{}/))", listed(&lengths, 0)),
            4,
            0,
            &lengths,
        ));
        // The next way to write the extent as a sum.
        let Some(from) = lengths[..lengths.len() - 1].iter().rposition(|n| *n > 0) else {
            break;
        };
        let last = lengths.len() - 1;
        let rest = std::mem::take(&mut lengths[last]);
        lengths[from] -= 1;
        lengths[from + 1] = rest + 1;
    }
    if extent > 0 && extent <= 4 {
        for number in 0..processors.pow(extent as u32) {
            let owners: Vec<i64> = (0..extent)
                .map(|i| number / processors.pow(i as u32) % processors)
                .collect();
            all.push(dealt(
                &format!("INDIRECT([{}])", listed(&owners, 1)),
                5,
                0,
                &owners,
            ));
        }
    }
    all
}

/// What the program says of one array: its dimensions as (extent, distribution, processors).
struct Case<'a>(&'a [(i64, DistFormat, i64)]);

const WIDTH: u64 = 4;

impl Case<'_> {
    fn grid(&self) -> Vec<i64> {
        self.0
            .iter()
            .filter(|(_, d, _)| d.kind != 0)
            .map(|(_, _, p)| *p)
            .collect()
    }

    fn ranks(&self) -> u64 {
        self.grid().iter().product::<i64>() as u64
    }

    /// Bytes of a rank in their order, and its extents.
    fn naive(&self, rank: u64) -> (Vec<u64>, Vec<u64>) {
        let mut rest = rank as i64;
        let coordinates = self.0.iter().map(|(_, d, p)| {
            let c = if d.kind == 0 { 0 } else { rest % p };
            rest /= if d.kind == 0 { 1 } else { *p };
            c
        });
        let coordinates: Vec<i64> = coordinates.collect();
        let is_owned = |at: &[i64]| {
            let mut all = self.0.iter().zip(&coordinates).zip(at);
            all.all(|(((extent, d, p), c), i)| owner_naive(d, *extent, *p, *i) == *c)
        };
        let mut bytes = Vec::new();
        let count: i64 = self.0.iter().map(|(extent, ..)| *extent).product();
        for entry in 0..count {
            let mut rest = entry;
            let at = self.0.iter().map(|(extent, ..)| {
                let i = rest % extent;
                rest /= extent;
                i
            });
            if is_owned(&at.collect::<Vec<_>>()) {
                bytes.extend((0..WIDTH).map(|b| entry as u64 * WIDTH + b));
            }
        }
        let extents = self.0.iter().zip(&coordinates).map(|((extent, d, p), c)| {
            (0..*extent)
                .filter(|i| owner_naive(d, *extent, *p, *i) == *c)
                .count() as u64
        });
        (bytes, extents.collect())
    }

    fn run_time(&self, rank: u64) -> Vec<i64> {
        let (grid, (_, local)) = (self.grid(), self.naive(rank));
        let mut list = vec![grid.len() as i64];
        list.extend(&grid);
        list.extend([8, WIDTH as i64, self.0.len() as i64]);
        for ((extent, d, _), local) in self.0.iter().zip(local) {
            list.extend([*extent, local as i64, d.kind, d.argument]);
        }
        list.extend(self.0.iter().flat_map(|(_, d, _)| d.list.iter().copied()));
        list
    }

    fn check(&self) {
        let formats: Vec<&str> = self.0.iter().map(|(_, d, _)| d.text.as_str()).collect();
        let extents: Vec<u64> = self.0.iter().map(|(extent, ..)| *extent as u64).collect();
        let grid: Vec<String> = self.grid().iter().map(i64::to_string).collect();
        let mut text = format!("!HPF$ DISTRIBUTE A({})", formats.join(","));
        if !grid.is_empty() {
            text += &format!(" ONTO P({})", grid.join(","));
        }
        let directives = Directives::parse(&text).unwrap_or_else(|e| panic!("{e}"));
        let layout = directives
            .layout("A", &extents, None)
            .unwrap_or_else(|e| panic!("{e}"));
        let array = ArrayType::new(ElementType::I32, extents, Order::Fortran).unwrap();
        let applied = layout.on_array(&array).unwrap();
        assert_eq!(applied.count(), self.ranks(), "{text}");
        for rank in 0..self.ranks() {
            let (bytes, local) = self.naive(rank);
            let element = applied.element(rank).unwrap();
            let found: Vec<u64> = element
                .segments(0..array.bytes())
                .flat_map(|s| s.start()..s.end())
                .collect();
            assert_eq!(found, bytes, "{text}, rank {rank}");
            let numbers = self.run_time(rank);
            let descriptor =
                RunTimeDescriptor::parse(&numbers).unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!(descriptor.local(), local);
            assert_eq!(
                descriptor.extents(rank).unwrap(),
                local,
                "{text}, rank {rank}"
            );
            assert_eq!(descriptor.layout(), layout, "{text}");
            let access = descriptor.access_desc(rank).unwrap();
            let found: Vec<u64> = access
                .walk()
                .flat_map(|r| r.start as u64..r.end() as u64)
                .collect();
            assert_eq!(found, bytes, "{text}, rank {rank}: {numbers:?}");
            assert_eq!(access.extent() as u64, array.bytes(), "{text}, rank {rank}");
            if bytes.is_empty() {
                assert!(access.blocks().is_empty(), "an empty transfer");
            }
        }
    }
}

#[test]
fn seed004_s69_descriptors_of_a_dimension_are_what_a_rank_owns() {
    for extent in 0..=14 {
        for processors in 1..=5 {
            for d in all_dealt(extent, processors) {
                Case(&[(extent, d, processors)]).check();
            }
        }
    }
    // Longer ones, for the formulas of CYCLIC.
    for extent in 15..60 {
        for processors in 1..6 {
            for k in 1..8 {
                Case(&[(
                    extent,
                    dealt(&format!("CYCLIC({k})"), 3, k, &[]),
                    processors,
                )])
                .check();
            }
        }
    }
}

#[test]
fn seed004_s69_descriptors_nest_with_the_last_dimension_outermost() {
    for (rows, columns) in [(1, 4), (3, 3), (4, 2), (5, 3)] {
        for (p, q) in [(1, 3), (2, 2), (3, 2)] {
            for first in all_dealt(rows, p) {
                // Every fourth: all pairs with lists would be millions.
                for second in all_dealt(columns, q).into_iter().step_by(4) {
                    Case(&[(rows, first.clone(), p), (columns, second, q)]).check();
                }
            }
        }
    }
    let block = |n| dealt(&format!("BLOCK({n})"), 1, n, &[]);
    let cyclic = |n| dealt(&format!("CYCLIC({n})"), 3, n, &[]);
    let star = || dealt("*", 0, 0, &[]);
    Case(&[(14, cyclic(3), 3), (17, dealt("BLOCK", 1, 0, &[]), 4)]).check();
    Case(&[(4, block(2), 2), (5, cyclic(3), 2), (6, cyclic(2), 2)]).check();
    Case(&[
        (4, star(), 1),
        (5, cyclic(3), 2),
        (3, star(), 1),
        (6, cyclic(4), 3),
    ])
    .check();
}

#[test]
fn seed004_s70_ranks_that_own_nothing_transfer_nothing() {
    // 5 indices in blocks of 2 on 5 processors: ranks 3 and 4 have none.
    let list = [1, 5, 8, 4, 1, 5, 0, 1, 2];
    let descriptor = RunTimeDescriptor::parse(&list).unwrap();
    for (rank, count) in [(2, 4), (3, 0), (4, 0)] {
        let access = descriptor.access_desc(rank).unwrap();
        assert_eq!(
            (access.actual(), access.extent()),
            (count, 20),
            "rank {rank}"
        );
    }
}

/// Processors 3 and 5 of the source's example are ranks 2 and 4.
#[test]
fn seed004_s69_the_examples_of_the_source_hold() {
    let list = [2, 3, 4, 8, 4, 2, 14, 3, 3, 3, 17, 5, 1, 5];
    let descriptor = RunTimeDescriptor::parse(&list).unwrap();
    let third = descriptor.access_desc(2).unwrap();
    let outer = &third.blocks()[0];
    assert_eq!(
        (
            outer.offset,
            outer.repeat,
            outer.count,
            outer.stride,
            third.skip()
        ),
        (0, 1, 5, 0, 672)
    );
    let inner = outer.subtype.as_ref().unwrap();
    let block = &inner.blocks()[0];
    assert_eq!(
        (block.offset, block.repeat, block.count, inner.skip()),
        (24, 1, 12, 20)
    );
    let fifth = descriptor.access_desc(4).unwrap();
    let outer = &fifth.blocks()[0];
    assert_eq!(
        (outer.offset, outer.count, fifth.skip(), fifth.extent()),
        (280, 5, 392, 952)
    );
    let inner = outer.subtype.as_ref().unwrap();
    let blocks: Vec<_> = inner.blocks().iter().map(|b| (b.offset, b.count)).collect();
    assert_eq!((blocks, inner.skip()), (vec![(12, 12), (24, 8)], 0));
}

/// Elements of an array of bytes, rank by rank.
fn owned(text: &str, array: &str, extents: &[u64]) -> Vec<Vec<u64>> {
    let layout = Directives::parse(text).unwrap_or_else(|e| panic!("{e}"));
    let layout = layout
        .layout(array, extents, Some(4))
        .unwrap_or_else(|e| panic!("{e}"));
    let array = ArrayType::new(ElementType::U8, extents, Order::Fortran).unwrap();
    let applied = layout.on_array(&array).unwrap();
    let bytes = |rank| {
        let element = applied.element(rank).unwrap();
        element
            .segments(0..array.bytes())
            .flat_map(|s| s.start()..s.end())
            .collect()
    };
    (0..applied.count()).map(bytes).collect()
}

#[test]
fn alignments_follow_their_templates() {
    // Every place of a one-dimensional array in a template, by brute force.
    for (stride, offset) in [(1, 0), (1, 2), (2, -1), (3, 1)] {
        for (format, kind) in [("BLOCK", 1), ("CYCLIC", 2), ("CYCLIC(2)", 3)] {
            let (count, extent, processors) = (4i64, 13i64, 3i64);
            let text = format!(
                "!HPF$ TEMPLATE T({extent})\n!HPF$ DISTRIBUTE T({format}) ONTO P({processors})\n!HPF$ ALIGN A(I) WITH T({stride}*I+{offset})"
            );
            let d = dealt(format, kind, if kind == 3 { 2 } else { 0 }, &[]);
            let expected: Vec<Vec<u64>> = (0..processors)
                .map(|c| {
                    (1..=count)
                        .filter(|i| {
                            owner_naive(&d, extent, processors, stride * i + offset - 1) == c
                        })
                        .map(|i| i as u64 - 1)
                        .collect()
                })
                .collect();
            assert_eq!(owned(&text, "A", &[count as u64]), expected, "{text}");
        }
    }
    // Transposed, collapsed, at one index, as copies, by colons, with bounds that do not begin at 1, through another array.
    let on = "PROCESSORS P(2)\nTEMPLATE T(4,4)\nDISTRIBUTE T(BLOCK,*) ONTO P\n";
    assert_eq!(
        owned(&format!("{on}ALIGN A(I,J) WITH T(J,I)"), "A", &[2, 4]),
        [[0, 1, 2, 3], [4, 5, 6, 7]]
    );
    assert_eq!(
        owned(&format!("{on}ALIGN A(*,J) WITH T(J,1)"), "A", &[2, 4]),
        [[0, 1, 2, 3], [4, 5, 6, 7]]
    );
    assert_eq!(
        owned(&format!("{on}ALIGN A(I) WITH T(3,I)"), "A", &[4]),
        [vec![], vec![0, 1, 2, 3]]
    );
    assert_eq!(
        owned(&format!("{on}ALIGN A(I) WITH T(*,I)"), "A", &[3]),
        [[0, 1, 2], [0, 1, 2]]
    );
    assert_eq!(
        owned(&format!("{on}ALIGN A(:,:) WITH T(:,1:3:2)"), "A", &[4, 2]),
        [[0, 1, 4, 5], [2, 3, 6, 7]]
    );
    let text = "TEMPLATE, DISTRIBUTE(BLOCK) ONTO P(2) :: T(0:7)\nDIMENSION A(-1:2), B(4)\nALIGN A(I) WITH T(2*I+2)\nALIGN (I) WITH A(I-2) :: B";
    assert_eq!(owned(text, "A", &[4]), [[0, 1], [2, 3]]);
    assert_eq!(owned(text, "B", &[4]), [[0, 1], [2, 3]]);
    assert_eq!(
        owned("DISTRIBUTE (BLOCK,CYCLIC) :: A, B", "B", &[2, 2]),
        [[0], [1], [2], [3]]
    );
}

#[test]
fn what_is_wrong_with_directives_is_said_at_its_character() {
    let place = |text: &str, extents: &[u64]| {
        let made = Directives::parse(text).and_then(|d| d.layout("A", extents, None).map(drop));
        let error = made.expect_err(text);
        (error.line(), error.character(), error.message().to_owned())
    };
    for (text, extents, line, character, part) in [
        (
            "!HPF$ DISTRIBUTE A(CYCLC)",
            &[4][..],
            1,
            20,
            "CYCLC is no distribution",
        ),
        (
            "!HPF$ DISTRIBUTE A(BLOCK ONTO P",
            &[4],
            1,
            26,
            "expected ')'",
        ),
        (
            "!HPF$ DISTRIBUTE A(BLOCK(0)) ONTO P(2)",
            &[4],
            1,
            26,
            "0 is no length",
        ),
        (
            "!HPF$ DISTRIBUTE A(BLOCK(1)) ONTO P(2)",
            &[4],
            1,
            20,
            "holds 2 of 4",
        ),
        (
            "!HPF$ DISTRIBUTE A(BLOCK, &\n!HPF$& CYCLIC) ONTO P(2)",
            &[4, 4],
            2,
            21,
            "the dimensions of the processors number 1",
        ),
        (
            "!HPF$ DISTRIBUTE A(BLOCK) ONTO P",
            &[4],
            1,
            32,
            "processors P are not declared",
        ),
        ("!HPF$ DISTRIBUTE A(BLOCK)", &[4], 1, 18, "has no ONTO"),
        (
            "!HPF$ DISTRIBUTE A(BLOCK,*) ONTO P(2)",
            &[4],
            1,
            26,
            "2 distributions",
        ),
        (
            "!HPF$ DISTRIBUTE A(GEN_BLOCK((/1,2/))) ONTO P(2)",
            &[4],
            1,
            20,
            "add up to 3",
        ),
        (
            "!HPF$ DISTRIBUTE A(INDIRECT([1,3])) ONTO P(2)",
            &[2],
            1,
            20,
            "names processor 2",
        ),
        (
            "!HPF$ DISTRIBUTE A(INDIRECT(MAP)) ONTO P(2)",
            &[2],
            1,
            29,
            "the values of MAP are not known",
        ),
        (
            "!HPF$ TEMPLATE T(4)\n!HPF$ DISTRIBUTE T(BLOCK) ONTO P(2)\n!HPF$ ALIGN A(I) WITH T(I+1)",
            &[4],
            3,
            25,
            "index 5 is outside",
        ),
        (
            "!HPF$ TEMPLATE T(4)\n!HPF$ ALIGN A(I) WITH T(K)",
            &[4],
            2,
            25,
            "K is no dimension",
        ),
        ("!HPF$ ALIGN A(I) WITH T(-I)", &[4], 1, 25, "steps of -1"),
        (
            "!HPF$ ALIGN A(I) WITH B(I)",
            &[4],
            1,
            23,
            "the bounds of B are not known",
        ),
        (
            "!HPF$ DIMENSION B(4), A(4)\n!HPF$ ALIGN A(I) WITH B(I)\n!HPF$ ALIGN B(I) WITH A(I)",
            &[4],
            3,
            23,
            "in a ring",
        ),
        ("!HPF$ REDISTRIBUTE A(BLOCK)", &[4], 1, 7, "moves an array"),
        (
            "!HPF$ DISTRIBUTE A(BLOCK) ONTO P(2)\n!HPF$ DISTRIBUTE A(CYCLIC) ONTO P(2)",
            &[4],
            2,
            18,
            "before",
        ),
        (
            "!HPF$ PROCESSORS P(N)",
            &[4],
            1,
            20,
            "the value of N is not known",
        ),
        (
            "!HPF$ PROCESSORS P(99999999999999999999)",
            &[4],
            1,
            20,
            "too large",
        ),
        ("", &[4], 1, 1, "no array is"),
    ] {
        let found = place(text, extents);
        assert_eq!((found.0, found.1), (line, character), "{text}: {}", found.2);
        assert!(found.2.contains(part), "{text}: {}", found.2);
    }
}

#[test]
fn fixed_form_comments_and_continuations_are_read() {
    let text = "CHPF$ PROCESSORS P(2) ! two\n! nothing\n\n*hpf$ distribute a( &\nchpf$& block) &\n!HPF$ onto P; DIMENSION A(0:3)\r\n!HPF$ INDEPENDENT, NEW(I)\n!HPF$ DYNAMIC A";
    let directives = Directives::parse(text).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(directives.arrays().collect::<Vec<_>>(), ["A"]);
    assert_eq!(
        directives.layout("a", &[4], None).unwrap().to_string(),
        "(block) onto 2"
    );
    // Any cut of a text is refused or read, never a panic.
    let long = "!HPF$ TEMPLATE, DISTRIBUTE(GEN_BLOCK((/1,2/)),CYCLIC(3)) ONTO P(2,2) :: T(0:2,(4+2)/2)\n!HPF$ ALIGN A(I,*,:) WITH T(2*I-1,1:3:2)";
    for end in 0..long.len() {
        for start in [0, end / 2] {
            let _ =
                Directives::parse(&long[start..end]).map(|d| d.layout("A", &[1, 2, 2], Some(4)));
        }
    }
}

#[test]
fn seed004_s24_run_time_descriptors_that_make_no_sense_are_refused() {
    for (list, part) in [
        (&[][..], "dimensions of the grid is missing"),
        (&[1, 0], "processors of a dimension"),
        (&[40], "at most 32"),
        (&[1, 2, 8, 4, 1, 5, 3, 9, 0], "has 9 as distribution"),
        (
            &[1, 2, 8, 4, 1, 5, 3, 4, 2, 3],
            "a length of GEN_BLOCK is missing",
        ),
        (&[1, 2, 8, 4, 1, 5, 3, 1, 1], "holds 2 of 5"),
        (
            &[2, 2, 2, 8, 4, 1, 5, 3, 1, 0],
            "2 dimensions for 1 distributed",
        ),
        (&[2, 2, 2, 8, 4, 2, 5, 3, 1, 0, 5, 5, 0, 0], "give 1"),
        (&[1, 2, 8, 0, 1, 5, 3, 1, 0], "bytes of an entry"),
    ] {
        let error = RunTimeDescriptor::parse(list).expect_err(part).to_string();
        assert!(error.contains(part), "{list:?}: {error}");
    }
}
