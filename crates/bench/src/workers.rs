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

use super::contest::Contestant;
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
            answers,
        })
    }

    /// The same order for all.
    pub(crate) fn every(&mut self, order: &Value) -> Result<Round, Error> {
        self.all(|_| order.clone())
    }

    /// A number that no write had before.
    pub(crate) fn stamp(&mut self) -> u32 {
        self.next_stamp += 1;
        self.next_stamp
    }

    /// What went wrong on Pario's side in a contest.
    pub(crate) fn outcome(&self) -> Result<(), Error> {
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

/// The ways from clients to servers of this host that there are: direct access is one if it moves bytes
/// without messages, and nobody has switched it off.
pub(crate) fn paths() -> Result<Vec<Path>, Error> {
    if std::env::var("PARIO_DIRECT").is_ok_and(|text| text == "0") {
        return Ok(vec![Path::Socket]);
    }
    let site = Site::start(&super::site::Wanted::memory(1, 1 << 20), None)?;
    let mut team = Team::start(&site, 1, Path::Direct, None)?;
    team.every(&json!({ "do": "part", "array": "u8[65536]", "view": "whole", "salt": 1 }))?;
    team.every(
        &json!({ "do": "open", "name": "p", "path": "/probe", "create": true, "layout": "whole" }),
    )?;
    let mut messages = 0;
    for _ in 0..4 {
        let stamp = team.stamp();
        team.every(&json!({ "do": "write", "name": "p", "stamp": stamp }))?;
        messages = team.every(&json!({ "do": "read", "name": "p" }))?.messages;
    }
    Ok(match messages {
        0 => vec![Path::Direct, Path::Socket],
        _ => vec![Path::Socket],
    })
}
