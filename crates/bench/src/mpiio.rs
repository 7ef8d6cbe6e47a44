//! `pario bench mpiio`: an N x N array through `MPI_File_*`, by four processes, against the MPI library's own
//! implementation on local file systems.
//!
//! ```text
//!  rows|cols|blocks|cyc64|cyc1|darray3d|holes / write|read / indep|coll / TYPE BYTES / N=N
//! ```
//!
//! The program is one and the same for all (`yardsticks/mpiio.c`): Pario's file is `pario:...`, the others are paths.
//! They take turns in one run. `romio-*` and `ompio-*` are the peers of the MPI library that ran, on tmpfs and in the
//! page cache of a disk; with Open MPI each of its two implementations has a run of its own, and a ratio is always
//! taken within a run. `pwrite-tmpfs` is one contiguous part per process without MPI-IO. `holes` is `rows` from memory
//! of which every second 8 bytes are used; its ratio `contiguous-memory` is against `rows`.
//!
//! A peer that would take longer than 4 seconds for a call is left out of that cell.

use std::collections::BTreeMap;
use std::fs;

use clap::Args;
use console::{Error, output};

use super::mpi::{self, Mpi, MpiProgram};
use super::site::{ServiceSpec, SharedFile, Site};
use super::{Row, Sheet, rounded};

/// Arguments of `pario bench mpiio`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Arguments {
    /// The MPI library
    #[arg(long, value_enum, default_value = "openmpi")]
    mpi: Mpi,

    /// Edges of the array [default: 1024,4096, with --quick 256]
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(64..=16384))]
    sizes: Vec<u32>,

    /// Who has what
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_values_t = PATTERNS.map(String::from), value_parser = PATTERNS)]
    patterns: Vec<String>,

    /// Processes
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=64))]
    processes: u64,

    /// I/O servers
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=64))]
    servers: u64,

    /// Turns per contestant, at least 7
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = clap::value_parser!(u64).range(7..=60))]
    turns: u64,

    /// Leave the files on a disk out
    #[arg(long)]
    no_disk: bool,
}

/// The patterns of the table; `holes` needs `rows` before it.
const PATTERNS: [&str; 7] = [
    "rows", "cols", "blocks", "cyc64", "cyc1", "darray3d", "holes",
];

/// What is wanted of Pario against the best peer, by pattern.
const GOALS: [(&str, f64); 6] = [
    ("rows", 1.5),
    ("cols", 3.0),
    ("blocks", 3.0),
    ("cyc64", 10.0),
    ("cyc1", 20.0),
    ("darray3d", 3.0),
];

/// Names of ratios and who is behind them.
const PEERS: [(&str, &str); 4] = [
    ("romio", "romio-tmpfs"),
    ("romio", "romio-ext4"),
    ("ompio", "ompio-tmpfs"),
    ("ompio", "ompio-ext4"),
];

/// One line of the program.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    /// Pattern, operation, way, bytes of the type, edge.
    pub(crate) cell: (String, String, String, u32, u32),
    pub(crate) target: String,
    turns: u64,
    best: f64,
    pub(crate) median: f64,
    pub(crate) first: f64,
    view: f64,
}

impl Line {
    fn parse(text: &str) -> Option<Line> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let [
            pattern,
            op,
            how,
            bytes,
            n,
            target,
            _calls,
            turns,
            best,
            median,
            first,
            view,
        ] = words.as_slice()
        else {
            return None;
        };
        Some(Line {
            cell: (
                (*pattern).into(),
                (*op).into(),
                (*how).into(),
                bytes.parse().ok()?,
                n.parse().ok()?,
            ),
            target: (*target).into(),
            turns: turns.parse().ok()?,
            best: best.parse().ok()?,
            median: median.parse().ok()?,
            first: first.parse().ok()?,
            view: view.parse().ok()?,
        })
    }
}

/// Runs the benchmark.
pub(crate) fn run(arguments: &Arguments, sheet: &mut Sheet) -> Result<(), Error> {
    let sizes: &[u32] = match &arguments.sizes[..] {
        [] if sheet.is_quick() => &[256],
        [] => &[1024, 4096],
        given => given,
    };
    let program = arguments.mpi.compile(&mpi::ARRAY)?;
    sheet.begin("mpiio", "GB/s", format!("best of {}", arguments.turns));
    sheet.fact("mpi", arguments.mpi.word());
    sheet.fact("mpi_progress", arguments.mpi.progress());
    sheet.fact("processes", arguments.processes);

    let most = u64::from(sizes.iter().copied().max().unwrap_or(4096));
    let site = Site::start(
        &ServiceSpec::memory(arguments.servers as usize, (most * most * 16).max(1 << 30)),
        None,
    )?;
    let runs: &[(&str, &[&str])] = match arguments.mpi {
        Mpi::Mpich => &[("romio", &[])],
        Mpi::Openmpi => &[
            ("ompio", &["--mca", "io", "ompio"]),
            ("romio", &["--mca", "io", "romio321"]),
        ],
    };
    let mut lines: Vec<(&str, Vec<Line>)> = Vec::new();
    for (peer, options) in runs {
        let measured = arguments.measure(&site, sizes, &program, (peer, options))?;
        lines.push((peer, measured));
    }
    sheet.extend(arguments.rows(&lines))?;
    for line in summary(&sheet.rows) {
        output::note(&line);
    }
    Ok(())
}

impl Arguments {
    /// Rows of an array of bytes, by as many processes as there are servers, beside one MPI library.
    pub(crate) fn rows_of_bytes(mpi: Mpi, processes: u64, turns: u64) -> Arguments {
        Arguments {
            mpi,
            sizes: Vec::new(),
            patterns: vec!["rows".into()],
            processes,
            servers: processes,
            turns,
            no_disk: false,
        }
    }

    /// One run of the program: Pario, one peer on two file systems, and plain writes.
    pub(crate) fn measure(
        &self,
        site: &Site,
        sizes: &[u32],
        program: &MpiProgram,
        (peer, options): (&str, &[&str]),
    ) -> Result<Vec<Line>, Error> {
        let shared = |name: &str| {
            SharedFile::in_memory(name).ok_or("/dev/shm is not there; the yardsticks need it")
        };
        // The files are made anew under these names with endings, and removed when they are closed.
        let (sync, plain, on_tmpfs) = (shared("sync")?, shared("plain")?, shared("peer")?);
        let mut command = program.command(self.processes, options, site.url());
        command
            .arg(self.turns.to_string())
            .arg(&sync.0)
            .arg(self.patterns.join(","))
            .arg(
                sizes
                    .iter()
                    .map(u32::to_string)
                    .collect::<Vec<_>>()
                    .join(","),
            )
            .arg(format!("pario=pario:/bench-{peer}"))
            .arg(format!("{peer}-tmpfs={}", on_tmpfs.0.display()))
            .arg(format!("pwrite={}", plain.0.display()));
        if !self.no_disk {
            let on_disk = site.scratch(&format!("{peer}-disk"));
            command.arg(format!("{peer}-ext4={}", on_disk.display()));
        }
        let text = program.output(command, &format!("the benchmark under {peer}"))?;
        let lines: Vec<Line> = text.lines().filter_map(Line::parse).collect();
        // What a peer leaves beside its files.
        if let Some(folder) = on_tmpfs.0.parent() {
            let prefix = on_tmpfs
                .0
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                if entry.file_name().to_string_lossy().starts_with(&prefix) {
                    let _ = fs::remove_file(entry.path());
                }
            }
        }
        Ok(lines)
    }

    /// Rows of all cells, in the order of the first run.
    fn rows(&self, runs: &[(&str, Vec<Line>)]) -> Vec<Row> {
        let mut rows = Vec::new();
        let Some((_, first_run)) = runs.first() else {
            return rows;
        };
        // Best time of `rows` from plain memory, by the rest of the cell.
        let mut plain: BTreeMap<(String, String, u32), f64> = BTreeMap::new();
        for pario in first_run.iter().filter(|line| line.target == "pario") {
            let (pattern, op, how, bytes, n) = &pario.cell;
            let volume = f64::from(*n) * f64::from(*n) * f64::from(*bytes);
            let case = format!("{pattern}/{op}/{how}/{bytes}/N={n}");
            let mut row = Row::new(case, volume / pario.best / 1e9, "GB/s")
                .spread(pario.median / pario.best - 1.0)
                .first(Some(volume / pario.first / 1e9))
                .column("set_view_us", rounded(pario.view * 1e6));
            for (peer, lines) in runs {
                let of = |target: &str| {
                    let mut found = lines.iter();
                    found.find(|line| line.cell == pario.cell && line.target == target)
                };
                let Some(ours) = of("pario") else { continue };
                for (who, name) in PEERS.iter().filter(|(who, _)| who == peer) {
                    let _ = who;
                    if let Some(theirs) = of(name) {
                        row.ratios.push((*name, theirs.best / ours.best));
                        if theirs.turns < self.turns {
                            row.set(&format!("{name}_turns"), theirs.turns);
                        }
                        if name.ends_with("tmpfs") {
                            row.set(&format!("{peer}_set_view_us"), rounded(theirs.view * 1e6));
                        }
                    }
                }
            }
            let mut lines = first_run.iter();
            if let Some(theirs) = lines.find(|l| l.cell == pario.cell && l.target == "pwrite") {
                row.ratios.push(("pwrite-tmpfs", theirs.best / pario.best));
            }
            let key = (op.clone(), how.clone(), *n);
            match pattern.as_str() {
                "rows" => drop(plain.insert(key, pario.best)),
                "holes" => {
                    if let Some(contiguous) = plain.get(&key) {
                        row.ratios
                            .push(("contiguous-memory", contiguous / pario.best));
                    }
                }
                _ => {}
            }
            rows.push(row);
        }
        rows
    }
}

/// How the goals are met, a line per pattern.
fn summary(rows: &[Row]) -> Vec<String> {
    let mut lines = Vec::new();
    for (pattern, goal) in GOALS {
        let of_pattern = rows
            .iter()
            .filter(|row| row.case.starts_with(&format!("{pattern}/")));
        // A peer of the cell: the best of those that ran, so the least ratio.
        let cells: Vec<(f64, &str)> = of_pattern
            .filter_map(|row| {
                let peers = row.ratios.iter().filter(|(name, _)| name.contains("io-"));
                let least = peers.map(|(_, ratio)| *ratio).fold(f64::INFINITY, f64::min);
                least.is_finite().then_some((least, row.case.as_str()))
            })
            .collect();
        let Some(worst) = cells.iter().min_by(|a, b| a.0.total_cmp(&b.0)) else {
            continue;
        };
        let met = cells.iter().filter(|(ratio, _)| *ratio >= goal).count();
        lines.push(format!(
            "{pattern}: {met} of {} cells reach {goal}x the best peer; worst {:.2} ({})",
            cells.len(),
            worst.0,
            worst.1
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_program_are_read_and_others_left_out() {
        let line = Line::parse("cols write coll 1 1024 pario 12 9 0.0005 0.0006 0.01 0.0001");
        let line = line.expect("a line");
        assert_eq!(line.cell.0, "cols");
        assert_eq!((line.target.as_str(), line.turns), ("pario", 9));
        assert!(Line::parse("warning: something else").is_none());
    }

    #[test]
    fn ratios_are_taken_within_a_run() {
        let text = "rows write indep 1 1024 pario 1 9 0.001 0.001 0.001 0.0001\n\
                    rows write indep 1 1024 ompio-tmpfs 1 9 0.003 0.003 0.003 0.0001";
        let slow = "rows write indep 1 1024 pario 1 9 0.002 0.002 0.002 0.0001\n\
                    rows write indep 1 1024 romio-tmpfs 1 9 0.003 0.003 0.003 0.0001";
        let read = |text: &str| text.lines().filter_map(Line::parse).collect::<Vec<_>>();
        let arguments = Arguments {
            mpi: Mpi::Openmpi,
            sizes: vec![1024],
            patterns: vec!["rows".into()],
            processes: 4,
            servers: 4,
            turns: 9,
            no_disk: true,
        };
        let rows = arguments.rows(&[("ompio", read(text)), ("romio", read(slow))]);
        assert_eq!(rows.len(), 1);
        assert!((rows[0].ratio("ompio-tmpfs").expect("ran") - 3.0).abs() < 1e-9);
        assert!((rows[0].ratio("romio-tmpfs").expect("ran") - 1.5).abs() < 1e-9);
        let goals = summary(&rows);
        assert!(
            goals[0].contains("rows: 1 of 1 cells reach 1.5x"),
            "{goals:?}"
        );
    }
}
