//! The share that one client process has of a new file, and its steps: the worker's side of `pario bench fresh`.
//!
//! Memory of all transfers lies side by side. Every transfer has the bytes of its place and of a generation, so that one
//! that went to a wrong place, or not at all, is noticed.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;

use client::{Client, File, OpenOptions};
use console::{Error, refused};
use random::Random;
use serde_json::{Value, json};

use crate::content;
use crate::worker::now;

/// See the [module](self).
pub(crate) struct Share {
    transfer: usize,
    /// Where transfers are: of this process, and of the next one.
    own: Vec<u64>,
    neighbours: Vec<u64>,
    source: Vec<u8>,
    copied: Vec<u8>,
    file: Option<Open>,
}

/// What is open.
enum Open {
    Pario(File),
    Plain(fs::File),
}

/// Where the transfers of one process are, in the order in which it makes them.
fn places(pattern: &str, order: &[u64], rank: usize, processes: usize, transfer: u64) -> Vec<u64> {
    let count = order.len() / processes;
    let at = |k: usize| match pattern {
        "sequential" => rank * count + k,
        _ => k * processes + rank,
    };
    (0..count).map(|k| order[at(k)] * transfer).collect()
}

fn number(order: &Value, name: &str) -> Result<u64, Error> {
    let found = order[name].as_u64();
    Ok(found.ok_or_else(|| format!("the order has no '{name}'"))?)
}

impl Share {
    /// The share that an order deals out.
    pub(crate) fn deal(order: &Value) -> Result<Share, Error> {
        let pattern = order["pattern"].as_str().unwrap_or_default();
        let transfer = number(order, "transfer")?;
        let (count, processes) = (number(order, "count")?, number(order, "processes")?);
        let rank = number(order, "rank")?;
        let mut all: Vec<u64> = (0..count * processes).collect();
        if pattern == "random" {
            Random::new(number(order, "seed")?).shuffle(&mut all);
        }
        let of = |rank: u64| places(pattern, &all, rank as usize, processes as usize, transfer);
        let bytes = (count * transfer) as usize;
        Ok(Share {
            transfer: transfer as usize,
            own: of(rank),
            neighbours: of((rank + 1) % processes),
            // Touched before anybody's time begins.
            source: vec![1; bytes],
            copied: vec![1; bytes],
            file: None,
        })
    }

    /// Does one step.
    pub(crate) fn step(&mut self, order: &Value, client: &Client) -> Result<Value, Error> {
        let path = order["path"].as_str().unwrap_or_default();
        let is_plain = order["plain"] == true;
        let start = now();
        let mut wrong = 0;
        match order["step"].as_str().unwrap_or_default() {
            "open" => self.file = Some(open(client, path, is_plain, order["create"] == true)?),
            "fill" => self.fill(number(order, "generation")? as u32),
            "write" => self.write(order["sync"] == true)?,
            "clear" => self.copied.fill(0xa5),
            "read" => self.read(order["whose"] == "own")?,
            "compare" => {
                let generation = number(order, "generation")? as u32;
                wrong = self.wrong(order["whose"] == "own", generation);
            }
            "copy" => self.copy(),
            "size" => wrong = self.size()?.abs_diff(number(order, "bytes")?),
            "close" => self.close()?,
            "remove" if is_plain => fs::remove_file(path)?,
            "remove" => client.unlink(path).map_err(refused)?,
            other => return Err(format!("step: '{other}' is not known").into()),
        }
        Ok(json!({ "start": start, "end": now(), "wrong": wrong }))
    }

    fn file(&self) -> Result<&Open, Error> {
        Ok(self.file.as_ref().ok_or("no file is open")?)
    }

    fn fill(&mut self, generation: u32) {
        let transfers = self.source.chunks_exact_mut(self.transfer);
        for (bytes, place) in transfers.zip(&self.own) {
            content::fill(bytes, *place, generation);
        }
    }

    fn write(&self, sync: bool) -> Result<(), Error> {
        let transfers = self.source.chunks_exact(self.transfer).zip(&self.own);
        match self.file()? {
            Open::Pario(file) => {
                for (bytes, place) in transfers {
                    if file.write_at(*place, bytes).map_err(refused)? != bytes.len() {
                        return Err("a write was short".into());
                    }
                }
                if sync {
                    file.sync().map_err(refused)?;
                }
            }
            Open::Plain(file) => {
                for (bytes, place) in transfers {
                    file.write_all_at(bytes, *place)?;
                }
                if sync {
                    file.sync_all()?;
                }
            }
        }
        Ok(())
    }

    fn read(&mut self, is_own: bool) -> Result<(), Error> {
        let places = if is_own { &self.own } else { &self.neighbours };
        let transfers = self.copied.chunks_exact_mut(self.transfer).zip(places);
        match self.file.as_ref().ok_or("no file is open")? {
            Open::Pario(file) => {
                for (bytes, place) in transfers {
                    let len = bytes.len();
                    if file.read_at(*place, bytes).map_err(refused)? != len {
                        return Err(format!("a read at {place} was short").into());
                    }
                }
            }
            Open::Plain(file) => {
                for (bytes, place) in transfers {
                    file.read_exact_at(bytes, *place)?;
                }
            }
        }
        Ok(())
    }

    fn wrong(&self, is_own: bool, generation: u32) -> u64 {
        let places = if is_own { &self.own } else { &self.neighbours };
        let mut expected = vec![0; self.transfer];
        let transfers = self.copied.chunks_exact(self.transfer).zip(places);
        let wrong = transfers.map(|(bytes, place)| {
            content::fill(&mut expected, *place, generation);
            content::wrong(bytes, &expected)
        });
        wrong.sum()
    }

    fn copy(&mut self) {
        let sources = self.source.chunks_exact(self.transfer);
        for (to, from) in self.copied.chunks_exact_mut(self.transfer).zip(sources) {
            to.copy_from_slice(std::hint::black_box(from));
        }
        std::hint::black_box(&mut self.copied);
    }

    fn size(&self) -> Result<u64, Error> {
        match self.file()? {
            Open::Pario(file) => file.size().map_err(refused),
            Open::Plain(file) => Ok(file.metadata()?.len()),
        }
    }

    fn close(&mut self) -> Result<(), Error> {
        match self.file.take() {
            Some(Open::Pario(file)) => file.close().map_err(refused),
            _ => Ok(()),
        }
    }
}

fn open(client: &Client, path: &str, is_plain: bool, create: bool) -> Result<Open, Error> {
    if is_plain {
        let mut options = fs::OpenOptions::new();
        let options = options.read(true).write(true).create_new(create);
        let opened = options.open(Path::new(path));
        return Ok(Open::Plain(opened.map_err(|e| format!("{path}: {e}"))?));
    }
    let options = OpenOptions::new().read().write();
    let options = if create { options.exclusive() } else { options };
    Ok(Open::Pario(client.open(path, &options).map_err(refused)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_transfer_of_the_file_has_one_process() {
        let mut shuffled: Vec<u64> = (0..12).collect();
        Random::new(3).shuffle(&mut shuffled);
        let straight: Vec<u64> = (0..12).collect();
        let first = |pattern, order: &[u64]| places(pattern, order, 1, 3, 8);
        assert_eq!(first("sequential", &straight), [32, 40, 48, 56]);
        assert_eq!(first("interleaved", &straight), [8, 32, 56, 80]);
        for (pattern, order) in [
            ("sequential", &straight),
            ("interleaved", &straight),
            ("random", &shuffled),
        ] {
            let mut all: Vec<u64> = (0..3)
                .flat_map(|rank| places(pattern, order, rank, 3, 8))
                .collect();
            all.sort_unstable();
            assert_eq!(
                all,
                (0..12).map(|i| i * 8).collect::<Vec<u64>>(),
                "{pattern}"
            );
        }
    }

    #[test]
    fn a_transfer_of_an_older_write_is_wrong() {
        let order = json!({ "pattern": "interleaved", "transfer": 16, "count": 4, "rank": 0, "processes": 2, "seed": 1 });
        let mut share = Share::deal(&order).expect("a share");
        share.fill(1);
        share.copy();
        assert_eq!(share.wrong(true, 1), 0);
        assert!(share.wrong(true, 2) > 32);
        // What the next process has is elsewhere.
        assert!(share.wrong(false, 1) > 32);
        share.copied[20] ^= 1;
        assert_eq!(share.wrong(true, 1), 1);
    }
}
