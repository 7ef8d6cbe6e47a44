//! Many files, as programs with a checkpoint of a thousand tensors or a tree of sources use them: the second half of
//! `pario bench small`.
//!
//! ```text
//!  files / create|stat|read|readdir|rename|unlink / own|shared / bytes=B / c=PROCESSES / durable|job
//! ```
//!
//! Each process works on its share of the files, all in one directory (`shared`) or each in its own. `create` makes a file, writes
//! its bytes and closes it; `read` opens, reads and closes; `stat` asks for attributes with the size; `readdir` lists a directory
//! with attributes and sizes. Values are files per second of all processes together, a row is the median over turns.
//!
//! `create`, `rename` and `unlink` have other files in every turn. `stat`, `read` and `readdir` have the same, as programs have that
//! look again: `first` is the turn in which a process meets them for the first time.
//!
//! `durable` is a service on disks, where what was created is found again after a power cut: a file with bytes is synced before it
//! is closed. Its yardstick does as much on the same disk: `ext4-fsync` syncs the file and the directory. `job` is a service whose
//! catalogue and bytes are in the memory of the host; its yardstick is `tmpfs`. What changes nothing is compared with `ext4` and `tmpfs`
//! by the same calls.

use std::fs::{self, File, OpenOptions as FileOptions};
use std::io::{Read, Write};
use std::path::{Path as FilePath, PathBuf};

use client::{Client, ConnectOptions, OpenOptions};
use console::{Error, refused};
use serde_json::{Value, json};

use super::Row;
use super::contest::Outcome;
use super::sheet::Sheet;
use super::site::{ServiceSpec, SharedDirectory, Site, Store, connect, wanted};
use super::worker::now;
use super::workers::{Path, Team};

/// What is done, in this order: each needs what the one before has left.
const OPS: [&str; 6] = ["create", "stat", "read", "readdir", "rename", "unlink"];
/// Processes that handle files.
const PROCESSES: [usize; 3] = [1, 4, 16];
/// Bytes of a file: none, and what most small files have less of.
const BYTES: [u64; 2] = [0, 3901];
/// I/O servers.
const SERVERS: usize = 2;

/// How long what was done has to last.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Life {
    Durable,
    Job,
}

impl Life {
    fn word(self) -> &'static str {
        match self {
            Life::Durable => "durable",
            Life::Job => "job",
        }
    }

    fn site(self) -> Result<Site, Error> {
        let spec = match self {
            Life::Durable => wanted(Store::Disk, SERVERS, 0),
            Life::Job => ServiceSpec {
                parent: Some(PathBuf::from("/dev/shm")),
                ..ServiceSpec::memory(SERVERS, 64 << 20)
            },
        };
        Site::start(&spec, None)
    }
}

/// One cell: what all its rows have in common.
struct Cell {
    life: Life,
    is_shared: bool,
    bytes: u64,
    processes: usize,
}

impl Cell {
    fn case(&self, op: &str) -> String {
        let directory = if self.is_shared { "shared" } else { "own" };
        let (bytes, processes) = (self.bytes, self.processes);
        let life = self.life.word();
        format!("files/{op}/{directory}/bytes={bytes}/c={processes}/{life}")
    }

    fn folder(&self, parent: &str, rank: usize) -> String {
        match self.is_shared {
            true => parent.to_owned(),
            false => format!("{parent}/{rank}"),
        }
    }
}

/// Runs all cells with so many files each.
pub(crate) fn run(files: u64, turns: u64, sheet: &mut Sheet) -> Result<(), Error> {
    for life in [Life::Durable, Life::Job] {
        let cells = [false, true].into_iter().flat_map(|is_shared| {
            let sizes = BYTES.into_iter();
            sizes.flat_map(move |bytes| {
                PROCESSES.map(|processes| Cell {
                    life,
                    is_shared,
                    bytes,
                    processes,
                })
            })
        });
        // In a look at everything some of them, in which each process count, size and directory is there.
        let step = sheet.step(5);
        let chosen = cells.step_by(step);
        let is_wanted =
            |cell: &Cell, sheet: &Sheet| OPS.iter().any(|op| sheet.wants(&cell.case(op)));
        let chosen: Vec<Cell> = chosen.filter(|cell| is_wanted(cell, sheet)).collect();
        if chosen.is_empty() {
            continue;
        }
        let site = life.site()?;
        for (number, cell) in chosen.iter().enumerate() {
            cell.measure(&site, number, (files, turns), sheet)?;
        }
    }
    Ok(())
}

/// A file system that does the same.
struct Yardstick {
    name: &'static str,
    folder: String,
    /// Whether it syncs what it changes.
    syncs: bool,
    turns: Vec<f64>,
    works: bool,
}

impl Cell {
    fn measure(
        &self,
        site: &Site,
        number: usize,
        (files, turns): (u64, u64),
        sheet: &mut Sheet,
    ) -> Result<(), Error> {
        let client = connect(site.url(), ConnectOptions::default())?;
        let parent = format!("/many-{number}");
        let disk = site.scratch(&format!("many-{number}"));
        let memory = SharedDirectory::in_memory(&format!("many-{number}"));
        let mut folders = Vec::new();
        if let Some(memory) = &memory {
            folders.push(("tmpfs", memory.0.display().to_string()));
        }
        if self.life == Life::Durable {
            fs::create_dir_all(&disk)?;
            folders.push(("ext4", disk.display().to_string()));
        }
        for rank in 0..self.processes {
            let folder = self.folder(&parent, rank);
            client.mkdir_all(&folder, None).map_err(refused)?;
            for (_, parent) in &folders {
                fs::create_dir_all(self.folder(parent, rank))?;
            }
        }
        let mut team = Team::start(site, self.processes, Path::Direct, None)?;
        let share = (files / (turns + 1) / self.processes as u64).max(1);
        for op in OPS {
            let is_change = matches!(op, "create" | "rename" | "unlink");
            let mut mine = Vec::new();
            let mut first = None;
            let mut yardsticks: Vec<Yardstick> = folders
                .iter()
                .map(|(name, folder)| Yardstick {
                    name: match (is_change, *name) {
                        (true, "ext4") => "ext4-fsync",
                        (_, name) => name,
                    },
                    folder: folder.clone(),
                    syncs: is_change && *name == "ext4",
                    turns: Vec::new(),
                    works: true,
                })
                .collect();
            // What a listing shows is all that was made.
            let handled = match op {
                "readdir" => {
                    share
                        * (turns + 1)
                        * if self.is_shared {
                            self.processes as u64
                        } else {
                            1
                        }
                }
                _ => share,
            };
            let all = handled * self.processes as u64;
            for turn in 0..=turns {
                let turn_of_files = if is_change { turn } else { 0 };
                let order = |rank: usize, parent: &str, plain: bool, syncs: bool| {
                    let from = (turn_of_files * self.processes as u64 + rank as u64) * share;
                    json!({ "do": "tree", "op": op, "folder": self.folder(parent, rank), "plain": plain,
                            "from": from, "count": handled, "bytes": self.bytes, "syncs": syncs })
                };
                let syncs = self.life == Life::Durable && self.bytes > 0;
                let ns = team.all(|rank| order(rank, &parent, false, syncs))?.ns;
                match turn {
                    0 => first = Some(all as f64 * 1e9 / ns.max(1.0)),
                    _ => mine.push(ns),
                }
                for other in yardsticks.iter_mut().filter(|y| y.works) {
                    let (folder, syncs) = (other.folder.clone(), other.syncs);
                    match team.all(|rank| order(rank, &folder, true, syncs)) {
                        Ok(round) if turn > 0 => other.turns.push(round.ns),
                        Ok(_) => {}
                        Err(_) => other.works = false,
                    }
                }
            }
            let outcome = Outcome::of(mine).ok_or("no time measured")?;
            let ratios = yardsticks.into_iter().filter(|y| y.works);
            let ratios = ratios.filter_map(|yardstick| {
                let theirs = Outcome::of(yardstick.turns)?;
                Some((yardstick.name, theirs.median / outcome.median))
            });
            let row = Row::new(self.case(op), all as f64 * 1e9 / outcome.median, "files/s");
            sheet.push(
                row.spread(outcome.spread())
                    .first(first)
                    .ratios(ratios)
                    .column("files", share * (turns + 1) * self.processes as u64),
            )?;
        }
        let left = client
            .list(&self.folder(&parent, 0))
            .map_err(refused)?
            .count();
        match left {
            0 => Ok(()),
            _ => Err(format!("{parent} has {left} files after all were removed").into()),
        }
    }
}

/// What one process does in one turn.
pub(crate) struct Step {
    op: String,
    folder: String,
    names: Vec<String>,
    bytes: u64,
    syncs: bool,
}

/// The name of a file after it was renamed.
fn renamed(name: &str) -> String {
    format!("{name}.new")
}

impl Step {
    /// The step that an order of the worker describes.
    pub(crate) fn of(order: &Value) -> Result<Step, Error> {
        let number = |name: &str| order[name].as_u64().ok_or("the order lacks a number");
        let text = |name: &str| order[name].as_str().ok_or("the order lacks a text");
        let folder = text("folder")?.to_owned();
        let (from, count) = (number("from")?, number("count")?);
        let names = (from..from + count).map(|i| format!("{folder}/f{i:06}"));
        Ok(Step {
            op: text("op")?.to_owned(),
            names: names.collect(),
            folder,
            bytes: number("bytes")?,
            syncs: order["syncs"].as_bool() == Some(true),
        })
    }

    fn content(&self) -> Vec<u8> {
        (0..self.bytes).map(|i| (i % 251) as u8).collect()
    }

    fn unknown(&self) -> Error {
        format!("op: '{}' is not known", self.op).into()
    }

    /// Does it with files of a service; when it began, and how many sizes and bytes were wrong.
    pub(crate) fn run(&self, client: &Client) -> Result<(u64, u64), Error> {
        let content = self.content();
        let mut found = vec![0; content.len()];
        let create = OpenOptions::new().write().exclusive();
        let read = OpenOptions::new().read();
        let mut wrong = 0;
        let start = now();
        if self.op == "readdir" {
            let listed = client.list_with_attributes(&self.folder).map_err(refused)?;
            let mut count = 0;
            for entry in listed {
                let entry = entry.map_err(refused)?;
                let size = entry.attributes.map(|attributes| attributes.size);
                wrong += u64::from(size != Some(self.bytes));
                count += 1;
            }
            return Ok((start, wrong + self.names.len().abs_diff(count) as u64));
        }
        for name in &self.names {
            let done = match &*self.op {
                "create" => client.open(name, &create).and_then(|file| {
                    if !content.is_empty() {
                        file.write_at(0, &content)?;
                    }
                    if self.syncs {
                        file.sync()?;
                    }
                    file.close()
                }),
                "stat" => client
                    .stat(name)
                    .map(|found| wrong += u64::from(found.size != self.bytes)),
                "read" => client.open(name, &read).and_then(|file| {
                    if !content.is_empty() {
                        let n = file.read_at(0, &mut found)?;
                        wrong += u64::from(n != content.len() || found != content);
                    }
                    file.close()
                }),
                "rename" => client.rename(name, &renamed(name)),
                "unlink" => client.unlink(&renamed(name)),
                _ => return Err(self.unknown()),
            };
            done.map_err(refused)?;
        }
        Ok((start, wrong))
    }

    /// Does it with files of the host.
    pub(crate) fn run_plain(&self) -> Result<(u64, u64), Error> {
        let content = self.content();
        let mut found = vec![0; content.len()];
        let mut wrong = 0;
        let start = now();
        if self.op == "readdir" {
            for entry in fs::read_dir(&self.folder)? {
                wrong += u64::from(entry?.metadata()?.len() != self.bytes);
            }
            return Ok((start, wrong));
        }
        let folder = match self.syncs {
            true => Some(File::open(&self.folder)?),
            false => None,
        };
        for name in &self.names {
            let path = FilePath::new(name);
            match &*self.op {
                "create" => {
                    let mut options = FileOptions::new();
                    let mut file = options.write(true).create_new(true).open(path)?;
                    file.write_all(&content)?;
                    if self.syncs {
                        file.sync_all()?;
                    }
                }
                "stat" => wrong += u64::from(fs::metadata(path)?.len() != self.bytes),
                "read" => {
                    let mut file = File::open(path)?;
                    file.read_exact(&mut found)?;
                    wrong += u64::from(found != content);
                }
                "rename" => fs::rename(path, renamed(name))?,
                "unlink" => fs::remove_file(renamed(name))?,
                _ => return Err(self.unknown()),
            }
            if let Some(folder) = &folder {
                folder.sync_all()?;
            }
        }
        Ok((start, wrong))
    }
}
