//! Client processes that work at the same time, and their turns in a contest.
//!
//! Each is a `pario-bench worker` that waits for orders on its input. A round is given to all of them
//! before any answer is read; it lasts from the first start to the last end. A byte that is not what it
//! has to be fails the benchmark if Pario read it, and drops a yardstick.

use std::cell::RefCell;
use std::process::Command;

use console::Error;
use console::driven::Group;
use serde_json::{Value, json};
use testkit::hosts::Hosts;

use super::contest::{Contestant, Effort, Outcome, contest_of};
use super::site::Site;

/// How bytes get from clients to servers of the same host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Path {
    Socket,
    Direct,
}

impl Path {
    /// As it stands in names of cases.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Path::Socket => "socket",
            Path::Direct => "direct",
        }
    }
}

/// See the [module](self).
pub(crate) struct Team {
    members: Group,
    /// The first thing that went wrong on Pario's side.
    failed: Option<String>,
    next_stamp: u32,
}

/// What a round gave.
#[derive(Debug)]
pub(crate) struct Round {
    /// From the first start to the last end; 0 if nothing was timed.
    pub(crate) ns: f64,
    /// Messages with bytes of files that all sent together.
    pub(crate) messages: u64,
    /// Bytes of files that were at a server of the host of the worker that accessed them.
    pub(crate) near: u64,
    pub(crate) answers: Vec<Value>,
}

impl Team {
    /// Starts processes that connect to a service, each on a host of its own where there are several.
    pub(crate) fn start(
        site: &Site,
        count: usize,
        path: Path,
        on: Option<(&Hosts, &[usize])>,
    ) -> Result<Team, Error> {
        let program = crate::this_program()?;
        let mut team = Team {
            members: Group::default(),
            failed: None,
            next_stamp: 0,
        };
        for rank in 0..count {
            let mut command = match on {
                Some((hosts, places)) => hosts.command(places[rank], &program),
                None => Command::new(&program),
            };
            command.args(["worker", "--service", site.url()]);
            command.env_remove("PARIO_URL").env_remove("PARIO_STRATEGY");
            match &site.secret {
                Some(path) => command.env("PARIO_SECRET", path),
                None => command.env_remove("PARIO_SECRET"),
            };
            if path == Path::Socket {
                command.env("PARIO_DIRECT", "0");
            }
            team.members.add(command)?;
        }
        team.all(|_| json!({ "do": "ready" }))?;
        Ok(team)
    }

    /// Processes.
    pub(crate) fn len(&self) -> usize {
        self.members.len()
    }

    /// One round; wrong bytes are a failure.
    pub(crate) fn all(&mut self, order: impl Fn(usize) -> Value) -> Result<Round, Error> {
        let answers = self.members.all(order)?;
        let all = |name: &'static str| answers.iter().filter_map(move |a| a[name].as_u64());
        let first = all("start").min().unwrap_or(0);
        let last = all("end").max().unwrap_or(0);
        Ok(Round {
            ns: last.saturating_sub(first) as f64,
            messages: all("messages").sum(),
            near: all("near").sum(),
            answers,
        })
    }

    /// Gives all workers one order.
    pub(crate) fn every(&mut self, order: &Value) -> Result<Round, Error> {
        self.all(|_| order.clone())
    }

    /// Says what each process writes and reads; how many bytes that is.
    pub(crate) fn parts(
        &mut self,
        array: &str,
        salt: u32,
        view: impl Fn(usize) -> String,
    ) -> Result<Vec<u64>, Error> {
        let round = self.all(
            |rank| json!({ "do": "part", "array": array, "view": view(rank), "salt": salt }),
        )?;
        let lens = round.answers.iter().map(|a| a["bytes"].as_u64());
        Ok(lens.map(|len| len.unwrap_or(0)).collect())
    }

    /// Opens a file.
    pub(crate) fn open(&mut self, name: &str, path: &str, layout: &str) -> Result<Round, Error> {
        self.every(&json!({ "do": "open", "name": name, "path": path, "layout": layout }))
    }

    /// Opens a file; the first process to come makes it.
    pub(crate) fn make(&mut self, name: &str, path: &str, layout: &str) -> Result<Round, Error> {
        self.every(&making(name, path, layout))
    }

    /// Creates a file at all workers; one process makes it before the others look.
    pub(crate) fn create(&mut self, name: &str, path: &str, layout: &str) -> Result<Round, Error> {
        let order = making(name, path, layout);
        self.all(|rank| match rank {
            0 => order.clone(),
            _ => json!({ "do": "ready" }),
        })?;
        self.open(name, path, layout)
    }

    /// Writes a file as it is at first.
    pub(crate) fn fill(&mut self, name: &str) -> Result<Round, Error> {
        self.every(&json!({ "do": "write", "name": name, "stamp": 0 }))
    }

    /// Writes bytes to a file that it has not had before.
    pub(crate) fn write(&mut self, name: &str) -> Result<Round, Error> {
        let stamp = self.stamp();
        self.every(&json!({ "do": "write", "name": name, "stamp": stamp }))
    }

    /// Reads a file and compares it.
    pub(crate) fn read(&mut self, name: &str) -> Result<Round, Error> {
        self.every(&json!({ "do": "read", "name": name }))
    }

    /// Opens a plain file of the host, in which each process has a place; false if that is not possible.
    pub(crate) fn plain(
        &mut self,
        name: &str,
        path: &std::path::Path,
        at: impl Fn(usize) -> u64,
    ) -> bool {
        let order = |rank| json!({ "do": "plain", "name": name, "path": path, "at": at(rank) });
        self.all(order).is_ok()
    }

    /// Writes a plain file as it is at first; false if that is not possible.
    pub(crate) fn fill_plain(&mut self, name: &str) -> bool {
        let write = json!({ "do": "plain-write", "name": name, "stamp": 0 });
        self.every(&write).is_ok()
    }

    /// A number that no write had before.
    pub(crate) fn stamp(&mut self) -> u32 {
        self.next_stamp += 1;
        self.next_stamp
    }

    /// What went wrong on Pario's side in a contest.
    fn outcome(&self) -> Result<(), Error> {
        match &self.failed {
            Some(text) => Err(text.clone().into()),
            None => Ok(()),
        }
    }
}

/// A team that does the same round again and again, as a contestant.
pub(crate) struct Rounds<'a> {
    team: &'a RefCell<Team>,
    order: Value,
    is_pario: bool,
}

impl<'a> Rounds<'a> {
    /// Pario's rounds: a failure is one of the benchmark.
    pub(crate) fn pario(team: &'a RefCell<Team>, order: Value) -> Rounds<'a> {
        Rounds {
            team,
            order,
            is_pario: true,
        }
    }

    /// Rounds of a yardstick: one that fails is absent.
    pub(crate) fn yardstick(team: &'a RefCell<Team>, order: Value) -> Rounds<'a> {
        Rounds {
            team,
            order,
            is_pario: false,
        }
    }
}

impl Contestant for Rounds<'_> {
    fn turn(&mut self, passes: u64) -> Option<f64> {
        let mut team = self.team.borrow_mut();
        if team.failed.is_some() {
            return None;
        }
        // An order that can be repeated is given once, so that giving it does not count.
        let is_repeated = self.order["do"] == "repeat";
        if is_repeated {
            self.order["times"] = json!(passes);
        }
        let mut sum = 0.0;
        for _ in 0..if is_repeated { 1 } else { passes } {
            // Writes carry a new number each time; other orders do not mind.
            self.order["stamp"] = json!(team.stamp());
            match team.every(&self.order) {
                Ok(round) => sum += round.ns.max(1.0),
                Err(error) => {
                    if self.is_pario {
                        team.failed = Some(error.to_string());
                    }
                    return None;
                }
            }
        }
        Some(sum)
    }
}

/// The view of a process that has all of an array.
pub(crate) fn whole(_rank: usize) -> String {
    "whole".to_owned()
}

/// A contest of rounds of one or several teams; fails if Pario's side did.
pub(crate) fn rounds_of(
    effort: Effort,
    rounds: &mut [Rounds<'_>],
) -> Result<Vec<Option<Outcome>>, Error> {
    let outcomes = contest_of(effort, rounds);
    for round in rounds {
        round.team.borrow().outcome()?;
    }
    Ok(outcomes)
}

/// The ways from clients to servers of this host that there are: direct access is one if it moves bytes
/// without messages, and nobody has switched it off.
pub(crate) fn paths() -> Result<Vec<Path>, Error> {
    if std::env::var("PARIO_DIRECT").is_ok_and(|text| text == "0") {
        return Ok(vec![Path::Socket]);
    }
    let site = Site::start(&super::site::ServiceSpec::memory(1, 1 << 20), None)?;
    let mut team = Team::start(&site, 1, Path::Direct, None)?;
    team.parts("u8[65536]", 1, whole)?;
    team.make("p", "/probe", "whole")?;
    let mut messages = 0;
    for _ in 0..4 {
        team.write("p")?;
        messages = team.read("p")?.messages;
    }
    Ok(match messages {
        0 => vec![Path::Direct, Path::Socket],
        _ => vec![Path::Socket],
    })
}

fn making(name: &str, path: &str, layout: &str) -> Value {
    json!({ "do": "open", "name": name, "path": path, "layout": layout, "create": true })
}
