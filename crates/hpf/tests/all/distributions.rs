//! Small distributions through a translated program: what each process has read is what it owns,
//! whatever it was written as.

use std::fmt::Write;

use hpf::Options;
use pario_fortran::compiler;
use system_tests::{ServiceOptions, TempDir};

use crate::programs::{built, run};

/// The coordinate that owns index `i`, from 0 on.
fn owner_naive(format: &str, extent: usize, processors: usize, i: usize) -> usize {
    let number = || {
        format[format.find('(').unwrap() + 1..]
            .trim_end_matches(')')
            .parse::<usize>()
            .unwrap()
    };
    match format {
        "*" => 0,
        "BLOCK" => i / extent.div_ceil(processors),
        "CYCLIC" => i % processors,
        _ if format.starts_with("BLOCK(") => i / number(),
        _ if format.starts_with("CYCLIC(") => i / number() % processors,
        _ => {
            let list = format[format.find("(/").unwrap() + 2..].trim_end_matches("/))");
            let list: Vec<usize> = list.split(',').map(|n| n.parse().unwrap()).collect();
            if format.starts_with("INDIRECT") {
                return list[i] - 1;
            }
            let mut end = 0;
            let mut ends = list.iter().map(|n| {
                end += n;
                end
            });
            ends.position(|end| i < end).unwrap()
        }
    }
}

/// Formats that suit an extent.
fn formats(extent: usize, processors: usize) -> Vec<String> {
    let mut all = vec![
        "BLOCK".to_owned(),
        "CYCLIC".into(),
        "CYCLIC(2)".into(),
        "CYCLIC(3)".into(),
    ];
    all.push(format!("BLOCK({})", extent.div_ceil(processors) + 1));
    let words = |list: Vec<usize>| {
        list.iter()
            .map(usize::to_string)
            .collect::<Vec<_>>()
            .join(",")
    };
    let lengths: Vec<usize> = (0..processors)
        .map(|p| {
            if p == 1 {
                extent - extent / 2
            } else if p == 0 {
                extent / 2
            } else {
                0
            }
        })
        .collect();
    all.push(format!("GEN_BLOCK((/{}/))", words(lengths)));
    let owners = (0..extent).map(|i| (i * i + 1) % processors + 1).collect();
    all.push(format!("INDIRECT((/{}/))", words(owners)));
    all
}

#[test]
fn seed004_s72_small_distributions_hold_through_the_translator() {
    if let Err(why) = compiler() {
        return testkit::skipped(&why);
    }
    let service = ServiceOptions::new(2).start();
    for processes in [2, 3] {
        let (mut calls, mut text, mut cases) = (String::new(), String::new(), Vec::new());
        for extent in [1, 5, 8] {
            let all = formats(extent, processes);
            for (number, read) in all.iter().enumerate() {
                // Another one to write, each in its turn.
                let written = &all[(number * 3 + 1) % all.len()];
                let case = cases.len();
                cases.push((vec![(extent, read.clone(), processes)], read.clone()));
                writeln!(calls, "call case{case}()").unwrap();
                write!(
                    text,
                    "subroutine case{case}()\ninteger :: a({extent}), b({extent}), i\n!HPF$ DISTRIBUTE a({written}) ONTO p({processes})\n\
                     !HPF$ DISTRIBUTE b({read}) ONTO p({processes})\na = [(i, i=1, {extent})]\nb = 0\n\
                     open (10, status='scratch', form='unformatted')\nwrite (10) a\nrewind (10)\nread (10) b\nclose (10)\n\
                     print '(*(i0,1x))', b\nend subroutine\n"
                )
                .unwrap();
            }
        }
        let pairs = [("BLOCK", "*"), ("*", "CYCLIC(2)"), ("*", "BLOCK")];
        for (first, second) in pairs {
            let case = cases.len();
            cases.push((
                vec![
                    (4, first.to_owned(), processes),
                    (5, second.to_owned(), processes),
                ],
                format!("{first},{second}"),
            ));
            writeln!(calls, "call case{case}()").unwrap();
            write!(
                text,
                "subroutine case{case}()\ninteger :: a(4,5), b(4,5), i\n!HPF$ DISTRIBUTE a(CYCLIC,*) ONTO p({processes})\n\
                 !HPF$ DISTRIBUTE b({first},{second}) ONTO p({processes})\na = reshape([(i, i=1, 20)], [4, 5])\nb = 0\n\
                 open (10, status='scratch', form='unformatted')\nwrite (10) a\nrewind (10)\nread (10) b\nclose (10)\n\
                 print '(*(i0,1x))', b\nend subroutine\n"
            )
            .unwrap();
        }
        let whole = format!("program all\nimplicit none\n{calls}contains\n{text}end program\n");
        let dir = TempDir::new();
        let (_, program) = built(
            &whole,
            &Options::default(),
            dir.path(),
            &format!("all{processes}"),
            &[],
        );
        for (rank, printed) in run(&program, &service, processes).iter().enumerate() {
            let lines: Vec<&str> = printed.lines().collect();
            assert_eq!(lines.len(), cases.len(), "rank {rank}");
            for (line, (dimensions, name)) in lines.iter().zip(&cases) {
                let count: usize = dimensions.iter().map(|(extent, ..)| extent).product();
                let expected = (0..count).map(|entry| {
                    let mut rest = entry;
                    let is_own = dimensions.iter().all(|(extent, format, processors)| {
                        let i = rest % extent;
                        rest /= extent;
                        format == "*" || owner_naive(format, *extent, *processors, i) == rank
                    });
                    if is_own { entry + 1 } else { 0 }
                });
                let found: Vec<usize> = line
                    .split_whitespace()
                    .map(|n| n.parse().unwrap())
                    .collect();
                assert_eq!(
                    found,
                    expected.collect::<Vec<_>>(),
                    "{name}, extents of {dimensions:?}, rank {rank} of {processes}"
                );
            }
        }
    }
}
