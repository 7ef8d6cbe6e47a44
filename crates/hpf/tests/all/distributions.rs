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
    let first = if processors == 1 { extent } else { extent / 2 };
    let lengths: Vec<usize> = (0..processors)
        .map(|p| match p {
            0 => first,
            1 => extent - first,
            _ => 0,
        })
        .collect();
    all.push(format!("GEN_BLOCK((/{}/))", words(lengths)));
    let owners = (0..extent).map(|i| (i * i + 1) % processors + 1).collect();
    all.push(format!("INDIRECT((/{}/))", words(owners)));
    all
}

/// An array that is written under one distribution, and read under another.
struct Case {
    extents: Vec<usize>,
    /// Processors of each dimension; 1 where it is not distributed.
    grid: Vec<usize>,
    written: Vec<String>,
    read: Vec<String>,
}

impl Case {
    /// Whether a process has an entry, the first dimension fastest in both.
    fn is_own_naive(&self, entry: usize, rank: usize) -> bool {
        let (mut entry, mut rank) = (entry, rank);
        (0..self.extents.len()).all(|d| {
            let (i, coordinate) = (entry % self.extents[d], rank % self.grid[d]);
            entry /= self.extents[d];
            rank /= self.grid[d];
            owner_naive(&self.read[d], self.extents[d], self.grid[d], i) == coordinate
        })
    }

    /// A procedure that writes, reads, and prints what it has read.
    fn procedure(&self, number: usize) -> String {
        let list = |all: &[usize]| {
            let words: Vec<String> = all.iter().map(usize::to_string).collect();
            words.join(",")
        };
        let distributed = |formats: &[String]| {
            let grid = self.grid.iter().zip(formats).filter(|(_, f)| *f != "*");
            let grid: Vec<usize> = grid.map(|(n, _)| *n).collect();
            format!("({}) ONTO p({})", formats.join(","), list(&grid))
        };
        let extents = list(&self.extents);
        let count: usize = self.extents.iter().product();
        format!(
            "subroutine case{number}()\ninteger :: a({extents}), b({extents}), i\n!HPF$ DISTRIBUTE a{} \n!HPF$ DISTRIBUTE b{}\n\
             a = reshape([(i, i=1, {count})], [{extents}])\nb = 0\n\
             open (10, status='scratch', form='unformatted')\nwrite (10) a\nrewind (10)\nread (10) b\nclose (10)\n\
             print '(*(i0,1x))', b\nend subroutine\n",
            distributed(&self.written),
            distributed(&self.read),
        )
    }
}

/// All of one dimension, and all pairs of formats of two on every grid; of three, each format once.
fn cases(processes: usize) -> Vec<Case> {
    let mut all = Vec::new();
    // What is written has other formats, each in its turn.
    let mut add =
        |extents: &[usize], grid: &[usize], choices: &[Vec<String>], numbers: &[usize]| {
            let chosen = |turn: usize| {
                let one = |(d, list): (usize, &Vec<String>)| match list.len() {
                    1 => list[0].clone(),
                    n => list[(numbers[d] + turn * (2 * d + 3)) % n].clone(),
                };
                choices.iter().enumerate().map(one).collect()
            };
            all.push(Case {
                extents: extents.to_vec(),
                grid: grid.to_vec(),
                written: chosen(1),
                read: chosen(0),
            });
        };
    for extent in [1, 5, 8] {
        let choices = [formats(extent, processes)];
        for number in 0..choices[0].len() {
            add(&[extent], &[processes], &choices, &[number]);
        }
    }
    let collapsed = || vec!["*".to_owned()];
    for first in (1..=processes).filter(|n| processes.is_multiple_of(*n)) {
        let grid = [first, processes / first];
        let choices = [formats(3, grid[0]), formats(4, grid[1])];
        for i in 0..choices[0].len() {
            for j in 0..choices[1].len() {
                add(&[3, 4], &grid, &choices, &[i, j]);
            }
        }
        let choices = [formats(2, grid[0]), collapsed(), formats(3, grid[1])];
        for i in 0..choices[0].len() {
            add(&[2, 2, 3], &[grid[0], 1, grid[1]], &choices, &[i, 0, i + 2]);
        }
    }
    for number in 0..formats(5, processes).len() {
        let choices = [formats(5, processes), collapsed()];
        add(&[5, 2], &[processes, 1], &choices, &[number, 0]);
        let choices = [collapsed(), formats(5, processes)];
        add(&[2, 5], &[1, processes], &choices, &[0, number]);
    }
    all
}

#[test]
fn seed004_s72_small_distributions_hold_through_the_translator() {
    if let Err(why) = compiler() {
        return testkit::skipped(&why);
    }
    let service = ServiceOptions::new(2).start();
    for processes in [2, 3, 4] {
        let cases = cases(processes);
        let (mut calls, mut text) = (String::new(), String::new());
        for (number, case) in cases.iter().enumerate() {
            writeln!(calls, "call case{number}()").unwrap();
            text += &case.procedure(number);
        }
        let whole = format!("program all\nimplicit none\n{calls}contains\n{text}end program\n");
        let dir = TempDir::new();
        let name = format!("all{processes}");
        let (_, program) = built(&whole, &Options::default(), dir.path(), &name, &[]);
        for (rank, printed) in run(&program, &service, processes).iter().enumerate() {
            let lines: Vec<&str> = printed.lines().collect();
            assert_eq!(lines.len(), cases.len(), "rank {rank}");
            for (line, case) in lines.iter().zip(&cases) {
                let count: usize = case.extents.iter().product();
                let expected = (0..count).map(|entry| match case.is_own_naive(entry, rank) {
                    true => entry + 1,
                    false => 0,
                });
                let found: Vec<usize> = line
                    .split_whitespace()
                    .map(|n| n.parse().unwrap())
                    .collect();
                assert_eq!(
                    found,
                    expected.collect::<Vec<_>>(),
                    "{:?}, extents {:?}, grid {:?}, rank {rank} of {processes}",
                    case.read,
                    case.extents,
                    case.grid
                );
            }
        }
    }
}
