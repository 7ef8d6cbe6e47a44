//! Collective accesses of the ranks of one process, one scheme after the other: what `pario bench ddio` has a
//! worker do, on this host or on another.
//!
//! Every rank is a thread with a client of its own, and everything goes by message. The schemes take turns, so
//! that what the machine does besides meets all of them; a turn lasts from a barrier to the end of the last
//! rank. What was read is compared byte by byte after the first and the last turn.

use std::time::Instant;

use client::{Client, ConnectOptions, File, Hints, OpenOptions, Places, SharedBytes, Team};
use serde_json::{Value, json};

use super::redistribution::value_of;
use console::Error;
use console::refused;

/// One run.
pub(super) struct Run<'a> {
    pub(super) service: &'a str,
    pub(super) ranks: usize,
    /// Bytes of a record; record k belongs to rank k mod ranks.
    pub(super) record: u64,
    /// Bytes of the file.
    pub(super) bytes: u64,
    pub(super) writes: bool,
    pub(super) turns: usize,
    pub(super) layout: &'a str,
    /// Words of the hint `strategy`; `auto` leaves the choice to the model.
    pub(super) schemes: Vec<&'a str>,
}

/// What one rank measured: per scheme its turns in nanoseconds, packets, and what was chosen.
struct RankTimes {
    turns: Vec<Vec<f64>>,
    packets: Vec<u64>,
    chosen: Vec<Value>,
    wrong: u64,
}

impl Run<'_> {
    /// Runs it; one answer for all ranks.
    pub(super) fn run(&self) -> Result<Value, Error> {
        let teams = Team::threads(self.ranks);
        let all = std::thread::scope(|scope| {
            let spawn = |team| {
                scope.spawn(move || {
                    let measured = self.rank(team);
                    measured.map_err(|e| format!("rank {}: {e}", team.rank()))
                })
            };
            let ranks: Vec<_> = teams.iter().map(spawn).collect();
            let ranks = ranks.into_iter();
            ranks
                .map(|rank| rank.join().expect("it does not panic"))
                .collect::<Result<Vec<_>, _>>()
        })?;
        let wrong: u64 = all.iter().map(|m| m.wrong).sum();
        let schemes = self.schemes.iter().enumerate().map(|(i, scheme)| {
            // A turn ends with its last rank.
            let turns: Vec<f64> = (0..self.turns)
                .map(|turn| {
                    let times = all.iter().map(|m| m.turns[i][turn]);
                    times.fold(0.0, f64::max)
                })
                .collect();
            let packets: u64 = all.iter().map(|m| m.packets[i]).sum();
            json!({
                "scheme": scheme,
                "turns": turns,
                "packets": packets,
                "chosen": all[0].chosen[i],
            })
        });
        let schemes: Vec<Value> = schemes.collect();
        Ok(json!({ "wrong": wrong, "schemes": schemes }))
    }

    fn rank(&self, team: &Team) -> Result<RankTimes, Error> {
        let url = self.service.parse().map_err(|e| format!("service: {e}"))?;
        let options = ConnectOptions::from_env()
            .map_err(refused)?
            .with_direct(false);
        let client = Client::connect(&url, options).map_err(refused)?;
        let path = format!("/ranks-{}-{}", self.record, self.writes);
        let options = OpenOptions::new()
            .read()
            .write()
            .create()
            .layout(self.layout);
        let view = format!(
            "striped({}) over {} [{}]",
            self.record,
            self.ranks,
            team.rank()
        );
        let open = || -> Result<File, Error> {
            let file = client
                .open_together(team, &path, &options)
                .map_err(refused)?;
            file.set_view_text_together(team, &view).map_err(refused)?;
            Ok(file)
        };
        // A strategy that was asked for stays so: the model has a handle of its own.
        let (forced, free) = (open()?, open()?);
        let shown = forced.view();
        let len = shown.len_within(self.bytes);
        let mut source = Vec::with_capacity(len as usize);
        for piece in shown.bytes().segments(0..self.bytes) {
            source.extend((piece.start()..piece.start() + piece.len()).map(value_of));
        }
        let mut target = vec![0; len as usize];
        let places = Places::bytes(len);
        let write = |file: &File, bytes: &[u8]| {
            file.write_at_all(team, 0, SharedBytes::from_slice(bytes), 0, &places)
        };
        write(&forced, &source).map_err(refused)?;
        let mut measured = RankTimes {
            turns: vec![Vec::new(); self.schemes.len()],
            packets: vec![0; self.schemes.len()],
            chosen: vec![Value::Null; self.schemes.len()],
            wrong: 0,
        };
        // The first turn is not counted.
        for turn in 0..=self.turns {
            // Forth and back: what a scheme leaves in the caches is not always left to the same one.
            for place in 0..self.schemes.len() {
                let i = match turn % 2 {
                    0 => place,
                    _ => self.schemes.len() - 1 - place,
                };
                let scheme = &self.schemes[i];
                let file = match *scheme {
                    "auto" => &free,
                    scheme => force(&forced, team, scheme)?,
                };
                let before = file.collective_statistics().packets;
                team.barrier().map_err(refused)?;
                let started = Instant::now();
                let moved = match self.writes {
                    true => write(file, &source),
                    false => file.read_at_all(team, 0, target[..].as_mut().into(), 0, &places),
                };
                let ns = started.elapsed().as_nanos() as f64;
                if moved.map_err(refused)? as u64 != len {
                    measured.wrong += 1;
                }
                if turn > 0 {
                    measured.turns[i].push(ns);
                }
                measured.packets[i] = file.collective_statistics().packets - before;
                if let Some(choice) = file.last_choice() {
                    measured.chosen[i] = json!({
                        "how": choice.how.word(),
                        "predicted_s": choice.predicted_s,
                        "blocks": choice.blocks,
                        "alternatives": choice.alternatives.iter()
                            .map(|(how, s)| json!([how.word(), s])).collect::<Vec<_>>(),
                    });
                }
                if turn == 0 || turn == self.turns {
                    if self.writes {
                        target.fill(0);
                        force(&forced, team, "independent")?
                            .read_at_all(team, 0, target[..].as_mut().into(), 0, &places)
                            .map_err(refused)?;
                    }
                    let differ = target.iter().zip(&source).filter(|(a, b)| a != b);
                    measured.wrong += differ.count() as u64;
                    target.fill(0);
                }
            }
        }
        Ok(measured)
    }
}

fn force<'a>(file: &'a File, team: &Team, scheme: &str) -> Result<&'a File, Error> {
    let hints = Hints::new().with("strategy", scheme).map_err(refused)?;
    file.set_hints_together(team, &hints).map_err(refused)?;
    Ok(file)
}
