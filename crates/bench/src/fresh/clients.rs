//! Turns through the Rust client: processes of this program, each with a client of its own and a [`Share`] of the file,
//! which do the same with plain files. Access is direct where a server of this host grants it.
//!
//! [`Share`]: super::Share

use console::Error;
use serde_json::{Value, json};

use super::cell::{Cell, Pledge, Side, Turn};
use super::{Place, Runner};
use crate::workers::{Path, Team};

/// See the [module](self).
pub(super) struct Clients;

impl Runner for Clients {
    fn word(&self) -> &'static str {
        "client"
    }

    fn has_collectives(&self) -> bool {
        false
    }

    fn turn(
        &self,
        place: &Place<'_>,
        cell: &Cell,
        pledge: Pledge,
        turn: u64,
    ) -> Result<Turn, Error> {
        let team = Team::start(place.site, cell.processes as usize, Path::Direct, None)?;
        let mut files = Files {
            team,
            is_synced: pledge == Pledge::Sync,
            seconds: Turn::default(),
        };
        files.team.all(|rank| {
            json!({ "do": "fresh", "step": "deal", "pattern": cell.pattern.word(), "transfer": cell.transfer,
                    "count": cell.count, "rank": rank, "processes": cell.processes, "seed": turn + 1 })
        })?;
        for side in Side::order(turn) {
            match side {
                Side::Pario => files.all_steps(side, "/fresh", false, cell)?,
                Side::Own => {
                    let path = place.own.join("fresh").display().to_string();
                    files.all_steps(side, &path, true, cell)?;
                }
                Side::Memcpy => files.copy()?,
            }
        }
        Ok(files.seconds)
    }
}

/// A team and the file that it has open.
struct Files {
    team: Team,
    is_synced: bool,
    seconds: Turn,
}

impl Files {
    /// One order for all; seconds from the first that began to the last that ended.
    fn every(&mut self, order: &Value) -> Result<f64, Error> {
        Ok(self.team.every(order)?.ns / 1e9)
    }

    /// One order for the first process alone.
    fn first(&mut self, order: &Value) -> Result<f64, Error> {
        let round = self.team.all(|rank| match rank {
            0 => order.clone(),
            _ => json!({ "do": "ready" }),
        })?;
        Ok(round.ns / 1e9)
    }

    fn all_steps(
        &mut self,
        side: Side,
        path: &str,
        is_plain: bool,
        cell: &Cell,
    ) -> Result<(), Error> {
        let open = |create: bool| json!({ "do": "fresh", "step": "open", "path": path, "plain": is_plain, "create": create });
        // The others find what the first one has made.
        let made = self.first(&open(true))?;
        let opened = match cell.processes {
            1 => 0.0,
            _ => {
                self.team
                    .all(|rank| match rank {
                        0 => json!({ "do": "ready" }),
                        _ => open(false),
                    })?
                    .ns
                    / 1e9
            }
        };
        self.seconds.set(side, "open", "-", made + opened);
        self.write(side, "new", 1)?;
        if !self.is_synced {
            self.read(Some((side, "new")), "own", 1)?;
        }
        self.write(side, "again", 2)?;
        let told = (!self.is_synced).then_some((side, "again"));
        self.read(told, "own", 2)?;
        let seconds = self.every(&json!({ "do": "fresh", "step": "close" }))?;
        self.seconds.set(side, "close", "-", seconds);
        let seconds = self.every(&open(false))?;
        self.seconds.set(side, "reopen", "-", seconds);
        if !self.is_synced {
            self.read(Some((side, "reopened")), "neighbours", 2)?;
            self.write(side, "reopened", 3)?;
        }
        self.read(None, "own", if self.is_synced { 2 } else { 3 })?;
        self.first(&json!({ "do": "fresh", "step": "size", "bytes": cell.bytes() }))?;
        self.every(&json!({ "do": "fresh", "step": "close" }))?;
        let remove = json!({ "do": "fresh", "step": "remove", "path": path, "plain": is_plain });
        self.first(&remove)?;
        Ok(())
    }

    fn write(&mut self, side: Side, step: &str, generation: u32) -> Result<(), Error> {
        self.every(&json!({ "do": "fresh", "step": "fill", "generation": generation }))?;
        let order = json!({ "do": "fresh", "step": "write", "sync": self.is_synced });
        let seconds = self.every(&order)?;
        self.seconds.set(side, step, "write", seconds);
        Ok(())
    }

    /// Reads and compares; told where there is a step for it.
    fn read(
        &mut self,
        told: Option<(Side, &str)>,
        whose: &str,
        generation: u32,
    ) -> Result<(), Error> {
        self.every(&json!({ "do": "fresh", "step": "clear" }))?;
        let seconds = self.every(&json!({ "do": "fresh", "step": "read", "whose": whose }))?;
        if let Some((side, step)) = told {
            self.seconds.set(side, step, "read", seconds);
        }
        self.every(
            &json!({ "do": "fresh", "step": "compare", "whose": whose, "generation": generation }),
        )?;
        Ok(())
    }

    fn copy(&mut self) -> Result<(), Error> {
        let copy = json!({ "do": "fresh", "step": "copy" });
        self.every(&copy)?;
        let seconds = self.every(&copy)?;
        self.seconds.set(Side::Memcpy, "again", "write", seconds);
        Ok(())
    }
}
