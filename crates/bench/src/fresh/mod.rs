//! `pario bench fresh`: files that were not there before, as most programs write them.
//!
//! ```text
//!  memory|disk / sequential|interleaved|random / t=BYTES / p=PROCESSES / indep|coll / new|again|reopened / write|read
//! ```
//!
//! Every turn of a cell is a program of its own, with new processes: they make a file and write it (`new`), read it, write
//! other bytes to the same places and read them (`again`), close, open, read what the next process wrote and write
//! once more (`reopened`). Pario and its yardstick do the same in one program, on new files on the same medium, and take
//! turns in who is first. Every byte that is read is compared. `write+sync` in place of `write`: a sync is part of the
//! time.
//!
//! The interface is a column: `openmpi` and `mpich` are one C program (`yardsticks/fresh.c`), `client` is the Rust client
//! in processes of this program. `own-tmpfs` (memory store) and `own-ext4` (disk store) are the MPI library's own
//! implementation, or pwrite and pread for the client; `memcpy` copies the same transfers between two places in the
//! memory of the same processes. A row is the median of its turns: the best would hide that ready memory ran out.
//!
//! `pool` is `inside` for files that ready memory of the servers is meant to hold, `beyond` for those far larger.

mod cell;
mod clients;
mod goals;
mod programs;
mod share;

use clap::{Args, ValueEnum};
use console::{Error, output};

use super::contest::Outcome;
use super::mpi::Mpi;
use super::parallel::free_memory;
use super::site::{SharedDirectory, Site, Store, wanted};
use super::{Row, Sheet, claims, digits};
use cell::{Cell, Pattern, Pledge, Reach, Side, Turn};
use clients::Clients;
use programs::Programs;

pub(crate) use share::Share;

/// Arguments of `pario bench fresh`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Arguments {
    /// Where servers keep bytes
    #[arg(long, value_name = "STORE,...", value_delimiter = ',', default_values = ["memory", "disk"], value_parser = ["memory", "disk"])]
    stores: Vec<String>,

    /// Which processes have which transfers
    #[arg(long, value_name = "PATTERN,...", value_delimiter = ',', default_values = ["sequential", "interleaved", "random"])]
    patterns: Vec<Pattern>,

    /// Bytes of a transfer, multiples of 8
    #[arg(long, value_name = "BYTES,...", value_delimiter = ',', default_values_t = [4096, 47008, 65536, 1 << 20], value_parser = transfer)]
    transfers: Vec<u64>,

    /// Processes that access one file
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_values_t = [1, 2, 4], value_parser = clap::value_parser!(u64).range(1..=64))]
    processes: Vec<u64>,

    /// Through what programs access files
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_values = ["openmpi", "mpich", "client"])]
    interfaces: Vec<Interface>,

    /// When servers on disks answer a write
    #[arg(long, value_name = "WHEN", default_value = "behind", value_parser = ["behind", "through"])]
    writes: String,

    /// I/O servers [default: as many as processors, 4 at most]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=64))]
    servers: Option<u64>,

    /// Turns per cell [default: 7, with --quick 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(3..))]
    turns: Option<u64>,

    /// Megabytes of a file [default: 64, with --quick 16]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 14))]
    megabytes: Option<u64>,

    /// Megabytes of a file beyond what is ready [default: 1024, with --quick 512]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 14))]
    beyond: Option<u64>,
}

fn transfer(text: &str) -> Result<u64, String> {
    let bytes = text.parse::<u64>().map_err(|e| e.to_string())?;
    match (8..=1 << 26).contains(&bytes) && bytes.is_multiple_of(8) {
        true => Ok(bytes),
        false => Err("a multiple of 8 up to 64 MiB is wanted".to_owned()),
    }
}

/// Through what programs access files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Interface {
    /// `MPI_File_*` of Open MPI, own is OMPIO
    Openmpi,
    /// `MPI_File_*` of Open MPI, own is ROMIO
    OpenmpiRomio,
    /// `MPI_File_*` of MPICH, own is ROMIO
    Mpich,
    /// The Rust client, own is pwrite and pread
    Client,
}

/// What can run turns of cells.
trait Runner {
    /// As it stands in the column `interface`.
    fn word(&self) -> &'static str;
    /// Whether it has collective accesses.
    fn has_collectives(&self) -> bool;
    /// One turn of a cell in new processes.
    fn turn(
        &self,
        place: &Place<'_>,
        cell: &Cell,
        pledge: Pledge,
        turn: u64,
    ) -> Result<Turn, Error>;
}

/// Where a turn happens.
struct Place<'a> {
    site: &'a Site,
    /// A directory on the medium of the store.
    own: &'a std::path::Path,
    /// One in memory, for what processes share.
    shared: &'a std::path::Path,
}

impl Interface {
    fn runner(self) -> Result<Box<dyn Runner>, Error> {
        Ok(match self {
            Interface::Openmpi => Box::new(Programs::new(
                "openmpi",
                Mpi::Openmpi,
                &["--mca", "io", "ompio"],
            )?),
            Interface::OpenmpiRomio => Box::new(Programs::new(
                "openmpi-romio",
                Mpi::Openmpi,
                &["--mca", "io", "romio321"],
            )?),
            Interface::Mpich => Box::new(Programs::new("mpich", Mpi::Mpich, &[])?),
            Interface::Client => Box::new(Clients),
        })
    }
}

/// Runs the benchmark.
pub(crate) fn run(arguments: &Arguments, sheet: &mut Sheet) -> Result<(), Error> {
    let quick = |given: Option<u64>, all: u64, quickly: u64| {
        given.unwrap_or(if sheet.is_quick() { quickly } else { all })
    };
    let turns = quick(arguments.turns, 7, 3);
    let (inside, beyond) = (
        quick(arguments.megabytes, 64, 16) << 20,
        quick(arguments.beyond, 1024, 512) << 20,
    );
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let servers = arguments.servers.map_or(cores.min(4), |n| n as usize);
    let mut runners = Vec::new();
    for interface in &arguments.interfaces {
        match interface.runner() {
            Ok(runner) => runners.push(runner),
            Err(error) => {
                let word = interface.to_possible_value();
                let word = word.map_or_else(String::new, |value| value.get_name().to_owned());
                output::note(&format!("rows through {word} are absent: {error}"));
            }
        }
    }
    sheet.begin("fresh", "GB/s", format!("median of {turns}"));
    sheet.fact("servers", servers);
    let shared = SharedDirectory::in_memory("fresh")
        .ok_or("/dev/shm is not there; the yardsticks need it")?;
    for store in [Store::Memory, Store::Disk] {
        if !arguments.stores.iter().any(|word| word == store.word()) {
            continue;
        }
        let cells = arguments.cells(store, inside, beyond, sheet);
        if cells.is_empty() {
            continue;
        }
        let most = cells.iter().map(Cell::bytes).max().unwrap_or(inside);
        let mut wanted = wanted(store, servers, 2 * most);
        if store == Store::Disk {
            let writes = ["--writes".to_owned(), arguments.writes.clone()];
            wanted.options.extend(writes);
        }
        let site = Site::start(&wanted, None)?;
        let on_disk = site.scratch("own");
        std::fs::create_dir_all(&on_disk)?;
        let place = Place {
            site: &site,
            own: match store {
                Store::Memory => &shared.0,
                Store::Disk => &on_disk,
            },
            shared: &shared.0,
        };
        for cell in &cells {
            for runner in &runners {
                measure(runner.as_ref(), &place, cell, turns, sheet)?;
            }
        }
    }
    claims::print(&goals::judge(&sheet.rows));
    Ok(())
}

impl Arguments {
    /// The cells of a store that are wanted.
    fn cells(&self, store: Store, inside: u64, beyond: u64, sheet: &Sheet) -> Vec<Cell> {
        let mut cells = Vec::new();
        let has_room = free_memory() / 8 > beyond;
        if store == Store::Memory && !has_room {
            output::note("rows beyond the pool are absent: there is not enough memory");
        }
        for &pattern in &self.patterns {
            for &transfer in &self.transfers {
                for &processes in &self.processes {
                    for together in [false, true] {
                        for reach in [Reach::Inside, Reach::Beyond] {
                            let cell = Cell {
                                store,
                                pattern,
                                transfer,
                                processes,
                                together,
                                reach,
                                count: match reach {
                                    Reach::Inside => inside,
                                    Reach::Beyond => beyond,
                                } / transfer
                                    / processes,
                            };
                            let is_kind =
                                reach == Reach::Inside || cell.is_beyond_wanted() && has_room;
                            let is_chosen = sheet.step(2) == 1 || cell.is_glance();
                            if is_kind && is_chosen && cell.count > 0 {
                                cells.push(cell);
                            }
                        }
                    }
                }
            }
        }
        cells
    }
}

/// All turns of a cell through one interface, as far as its cases are wanted.
fn measure(
    runner: &dyn Runner,
    place: &Place<'_>,
    cell: &Cell,
    turns: u64,
    sheet: &mut Sheet,
) -> Result<(), Error> {
    if cell.together && !runner.has_collectives() {
        return Ok(());
    }
    for pledge in [Pledge::None, Pledge::Sync] {
        let cases = cell::cases(pledge);
        let is_wanted = cases
            .iter()
            .any(|(step, op)| sheet.wants(&cell.case(step, op, pledge)));
        if !is_wanted || pledge == Pledge::Sync && !cell.is_synced() {
            continue;
        }
        let taken: Vec<Turn> = (0..turns)
            .map(|turn| {
                let taken = runner.turn(place, cell, pledge, turn);
                taken.map_err(|e| format!("{} through {}: {e}", cell.name(), runner.word()).into())
            })
            .collect::<Result<_, Error>>()?;
        for (step, op) in cases {
            if let Some(row) = row(runner, cell, pledge, (step, op), &taken) {
                sheet.push(row)?;
            }
        }
    }
    Ok(())
}

/// What all turns gave for one step.
fn row(
    runner: &dyn Runner,
    cell: &Cell,
    pledge: Pledge,
    (step, op): (&'static str, &'static str),
    turns: &[Turn],
) -> Option<Row> {
    let of = |side: Side, step: &str, op: &str| {
        let times = turns.iter().filter_map(|turn| turn.get(side, step, op));
        Outcome::of(times.map(|seconds| seconds * 1e9).collect())
    };
    let reached = of(Side::Pario, step, op)?;
    let bytes = cell.bytes() as f64;
    let first = turns
        .first()
        .and_then(|turn| turn.get(Side::Pario, step, op));
    let own = of(Side::Own, step, op).map(|own| (cell.own(), own.median / reached.median));
    let copy = of(Side::Memcpy, "again", "write");
    let copy = copy.map(|copy| ("memcpy", copy.median / reached.median));
    let mut row = Row::new(cell.case(step, op, pledge), bytes / reached.median, "GB/s")
        .spread(reached.spread())
        .first(first.map(|seconds| bytes / seconds / 1e9))
        .ratios(own.into_iter().chain(copy))
        .column("interface", runner.word())
        .column("mib", digits(bytes / f64::from(1 << 20), 1));
    if let Some(word) = cell.pool() {
        row.set("pool", word);
    }
    if (step, op) == ("new", "write") {
        // What a promise put off might be paid with.
        for (name, side, step) in [
            ("open_us", Side::Pario, "open"),
            ("own_open_us", Side::Own, "open"),
            ("close_us", Side::Pario, "close"),
            ("own_close_us", Side::Own, "close"),
        ] {
            if let Some(outcome) = of(side, step, "-") {
                row.set(name, digits(outcome.median / 1e3, 0));
            }
        }
    }
    Some(row)
}
