//! `pario bench redistribute`: an array of doubles changes its distribution in the memory of MPI processes, against
//! `MPI_Alltoallw` with types that were made before.
//!
//! ```text
//!  MPI/P=PROCESSES/MIBMiB/FROM/TO      rows, cols, blocks, cyc8, cyc1; pencils x and z of three dimensions
//! ```
//!
//! One program does all of it (`yardsticks/redistribute.c`), in processes that are new for every size: contestants take
//! turns, every source is written again before each turn, and targets are compared byte by byte. The value is the rate
//! of `pario_redistribute_to` from ordinary memory; `common` is the same from memory of `pario_alloc`, relative to it.
//! `alltoallw` and `memcpy` (every process copies its part) are above 1 where Pario is faster; `common-alltoallw` is the
//! first of them from `pario_alloc`. `run` is the longest run of bytes that is one on both sides.

use clap::Args;
use console::{Error, output};

use super::mpi::{self, Mpi, MpiProgram};
use super::site::SharedFile;
use super::{Row, Sheet};

/// Arguments of `pario bench redistribute`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Arguments {
    /// The MPI libraries
    #[arg(
        long,
        value_enum,
        value_name = "NAME,...",
        value_delimiter = ',',
        default_value = "openmpi,mpich"
    )]
    mpi: Vec<Mpi>,

    /// Sizes of the array in MiB [default: 1,32,256, with --quick 1,32]
    #[arg(long, value_name = "MIB,...", value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1..=4096))]
    sizes: Vec<u64>,

    /// Numbers of processes
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "2,4", value_parser = clap::value_parser!(u64).range(1..=64))]
    processes: Vec<u64>,

    /// Turns per contestant [default: 7, with 1 MiB 41]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    turns: Option<u64>,
}

/// From what to what. Blocks of two processes are rows.
const PAIRS: [&str; 14] = [
    "rows/cols",
    "cols/rows",
    "rows/cyc8",
    "rows/cyc1",
    "cyc1/rows",
    "x/z",
    "z/x",
    "cyc8/rows",
    "cols/cyc8",
    "cols/cyc1",
    "cyc8/cyc1",
    "cyc1/cyc8",
    "rows/blocks",
    "blocks/cols",
];

/// With `--quick`.
const QUICK_PAIRS: usize = 6;

/// What is wanted against `MPI_Alltoallw`: in every cell, and where runs are short.
const GOAL: f64 = 1.2;
const SHORT_GOAL: f64 = 3.0;
const SHORT_RUN: u64 = 64;

/// One line of the program.
#[derive(Clone, Debug)]
struct Line {
    pair: String,
    run: u64,
    bytes: f64,
    target: String,
    best: f64,
    median: f64,
    first: f64,
}

impl Line {
    fn parse(text: &str) -> Option<Line> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let [pair, run, bytes, target, best, median, first] = words[..] else {
            return None;
        };
        Some(Line {
            pair: pair.into(),
            run: run.parse().ok()?,
            bytes: bytes.parse().ok()?,
            target: target.into(),
            best: best.parse().ok()?,
            median: median.parse().ok()?,
            first: first.parse().ok()?,
        })
    }
}

/// Runs the benchmark.
pub(crate) fn run(arguments: &Arguments, sheet: &mut Sheet) -> Result<(), Error> {
    let sizes: &[u64] = match &arguments.sizes[..] {
        [] if sheet.is_quick() => &[1, 32],
        [] => &[1, 32, 256],
        given => given,
    };
    sheet.begin("redistribute", "GB/s", "best of the turns");
    for &mpi in &arguments.mpi {
        let program = mpi.compile(&mpi::REDISTRIBUTE)?;
        sheet.fact(&format!("{}_progress", mpi.word()), mpi.progress());
        for &processes in &arguments.processes {
            for &mib in sizes {
                let cell = format!("{}/P={processes}/{mib}MiB", mpi.word());
                let pairs = pairs(sheet, &cell, processes);
                if !pairs.is_empty() {
                    let lines = arguments.measure(&program, processes, mib, &pairs)?;
                    sheet.extend(rows(&cell, &lines))?;
                }
            }
        }
    }
    for line in summary(&sheet.rows) {
        output::note(&line);
    }
    Ok(())
}

/// The pairs that are wanted.
fn pairs(sheet: &Sheet, cell: &str, processes: u64) -> Vec<&'static str> {
    let many = match sheet.step(2) {
        1 => PAIRS.len(),
        _ => QUICK_PAIRS,
    };
    let wanted = PAIRS[..many].iter().copied();
    wanted
        .filter(|pair| processes > 2 || !pair.contains("blocks"))
        .filter(|pair| sheet.wants(&format!("{cell}/{pair}")))
        .collect()
}

impl Arguments {
    /// New processes for one size.
    fn measure(
        &self,
        program: &MpiProgram,
        processes: u64,
        mib: u64,
        pairs: &[&str],
    ) -> Result<Vec<Line>, Error> {
        let turns = self.turns.unwrap_or(match mib {
            1 => 41,
            _ => 7,
        });
        let sync = SharedFile::in_memory("redistribute").ok_or("/dev/shm is not there")?;
        let mut command = program.command(processes, &[], "");
        command
            .arg(&sync.0)
            .args([mib.to_string(), turns.to_string()])
            .args(pairs);
        let text = program.output(command, &format!("{mib} MiB among {processes} processes"))?;
        Ok(text.lines().filter_map(Line::parse).collect())
    }
}

/// Rows of one run of the program.
fn rows(cell: &str, lines: &[Line]) -> Vec<Row> {
    let of_pario = lines.iter().filter(|line| line.target == "pario");
    let row = |pario: &Line| {
        let of = |target: &str| {
            let mut found = lines.iter();
            found.find(|line| line.pair == pario.pair && line.target == target)
        };
        let case = format!("{cell}/{}", pario.pair);
        let mut row = Row::new(case, pario.bytes / pario.best / 1e9, "GB/s")
            .spread(pario.median / pario.best - 1.0)
            .first(Some(pario.bytes / pario.first / 1e9))
            .column("run", pario.run);
        for name in ["alltoallw", "memcpy"] {
            if let Some(theirs) = of(name) {
                row.ratios.push((name, theirs.best / pario.best));
            }
        }
        if let (Some(common), Some(theirs)) = (of("common"), of("alltoallw")) {
            let ratio = theirs.best / common.best;
            row.ratios.push(("common-alltoallw", ratio));
        }
        row
    };
    of_pario.map(row).collect()
}

/// How the goals are met.
fn summary(rows: &[Row]) -> Vec<String> {
    let run_of = |row: &Row| {
        let run = row.columns.iter().find(|(name, _)| name.as_str() == "run");
        run.and_then(|(_, value)| value.as_u64()).unwrap_or(0)
    };
    let mut lines = Vec::new();
    for (what, name) in [
        ("ordinary memory", "alltoallw"),
        ("pario_alloc", "common-alltoallw"),
    ] {
        for (runs, goal, is_short) in [("longer", GOAL, false), ("shorter", SHORT_GOAL, true)] {
            let cells = rows
                .iter()
                .filter(|row| (run_of(row) < SHORT_RUN) == is_short);
            let cells: Vec<(f64, &str)> = cells
                .filter_map(|row| Some((row.ratio(name)?, row.case.as_str())))
                .collect();
            let Some(worst) = cells.iter().min_by(|a, b| a.0.total_cmp(&b.0)) else {
                continue;
            };
            let met = cells.iter().filter(|(ratio, _)| *ratio >= goal).count();
            lines.push(format!(
                "{what}, runs {runs} than {SHORT_RUN} bytes: {met} of {} cells reach {goal}x MPI_Alltoallw; worst {:.2} ({})",
                cells.len(),
                worst.0,
                worst.1
            ));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_the_same_pair_and_goals_go_by_its_runs() {
        let text = "rows/cols 4096 1000000 pario 0.001 0.002 0.004\n\
                    rows/cols 4096 1000000 common 0.0005 0.001 0.001\n\
                    a warning of the library\n\
                    rows/cols 4096 1000000 alltoallw 0.003 0.003 0.003\n\
                    rows/cols 4096 1000000 memcpy 0.0005 0.003 0.003\n\
                    rows/cyc1 8 1000000 pario 0.001 0.001 0.001\n\
                    rows/cyc1 8 1000000 alltoallw 0.002 0.003 0.003";
        let lines: Vec<Line> = text.lines().filter_map(Line::parse).collect();
        let rows = rows("openmpi/P=2/1MiB", &lines);
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0].case, "openmpi/P=2/1MiB/rows/cols");
        assert!((rows[0].value - 1.0).abs() < 1e-9);
        assert!((rows[0].ratio("alltoallw").expect("ran") - 3.0).abs() < 1e-9);
        assert!((rows[0].ratio("memcpy").expect("ran") - 0.5).abs() < 1e-9);
        assert!((rows[0].ratio("common-alltoallw").expect("ran") - 6.0).abs() < 1e-9);
        let goals = summary(&rows);
        assert!(goals[0].contains("ordinary memory, runs longer than 64 bytes: 1 of 1"));
        assert!(
            goals[1].contains("runs shorter than 64 bytes: 0 of 1"),
            "{goals:?}"
        );
    }
}
