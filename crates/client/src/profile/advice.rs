//! Advice about the layout of a file, from its profile.
//!
//! Gathers what the decision needs (profile, layout, servers and their hosts, costs of this machine) and keeps its
//! time: the search ends before it takes longer than what it could save.
//!
//! Left to others: the decision (`advise::recommend`), the move (`relayout`).

use std::time::{Duration, Instant};

use advise::cost::{Machine, StoreKind as Store};
use advise::recommend::{AdviceList, Question, Server, recommend};
use layout::ArrayType;
use wire::message::catalogue::{Member, MemberState, StoreKind};

use crate::client::Client;
use crate::error::{Error, Result};
use crate::profile::FileProfile;

/// The search takes no longer, however much there is to save.
const MOST_SEARCH: Duration = Duration::from_secs(2);
/// It may take so long even if there is little to save.
const LEAST_SEARCH: Duration = Duration::from_millis(20);

/// Advice, with what it was made from.
#[derive(Clone, Debug)]
pub struct FileAdvice {
    /// Layouts, best first.
    pub advised: AdviceList,
    /// What was observed.
    pub observed: FileProfile,
    /// Servers that were considered, by the places that advice names.
    pub servers: Vec<Server>,
    /// The present layout.
    pub layout: String,
    /// Bytes of the file.
    pub bytes: u64,
    /// How long the search took.
    pub searched: Duration,
}

/// Servers that take subfiles, ascending, each with its host.
fn servers(members: &[Member]) -> Vec<Server> {
    let mut alive: Vec<&Member> = members
        .iter()
        .filter(|m| m.state == MemberState::Alive)
        .collect();
    alive.sort_by_key(|m| m.server);
    let host_of = |m: &Member| match &m.local {
        Some(local) => local.host.clone(),
        None => match m
            .address
            .strip_prefix("tcp:")
            .and_then(|a| a.rsplit_once(':'))
        {
            Some((host, _)) => host.to_owned(),
            None => "unix".to_owned(),
        },
    };
    let mut hosts: Vec<String> = Vec::new();
    alive
        .into_iter()
        .map(|m| {
            let name = host_of(m);
            let host = hosts.iter().position(|h| *h == name).unwrap_or_else(|| {
                hosts.push(name);
                hosts.len() - 1
            });
            let is_full = m.capacity_bytes > 0 && m.used_bytes > m.capacity_bytes / 100 * 95;
            Server {
                number: m.server.0,
                host,
                is_shunned: is_full,
            }
        })
        .collect()
}

impl Client {
    /// Which layouts would suit what was observed of a file. The search takes at most `budget`, and no longer than half of
    /// what the observed accesses are predicted to take.
    pub fn advise(&self, path: &str, budget: Option<Duration>) -> Result<FileAdvice> {
        self.advise_on(path, budget, &self.machine())
    }

    /// Advice with costs of one's own.
    pub fn advise_on(
        &self,
        path: &str,
        budget: Option<Duration>,
        machine: &Machine,
    ) -> Result<FileAdvice> {
        let observed = self.profile(path)?;
        let attributes = self.stat(path)?;
        let found = self.layout(path)?;
        let members = self.members()?;
        let servers = servers(&members);
        if servers.is_empty() {
            return Err(Error::argument(
                "servers",
                "none is alive; `pario status` shows them",
            ));
        }
        let array: Option<ArrayType> = found.array.as_deref().and_then(|text| text.parse().ok());
        let array = array.filter(|a| a.bytes() > 0);
        let bytes = array
            .as_ref()
            .map_or(attributes.size, |a| attributes.size.max(a.bytes()));
        // During a move the newest layout is the one to compare with.
        let piece = found.state.pieces.iter().max_by_key(|p| p.generation);
        let Some(piece) = piece else {
            return Err(Error::argument("path", "the file has no layout"));
        };
        let place = |server: u64| servers.iter().position(|s| s.number == server).unwrap_or(0);
        let homes: Vec<usize> = piece
            .places
            .iter()
            .map(|list| place(list[0].server))
            .collect();
        let is_disk = members.iter().any(|m| m.store == StoreKind::Disk);
        let question = Question {
            profile: &observed.profile,
            array: array.as_ref(),
            file_bytes: bytes,
            text: &found.text,
            partition: &piece.partition,
            homes: &homes,
            servers: &servers,
            store: if is_disk { Store::Disk } else { Store::Memory },
            machine,
        };
        let started = Instant::now();
        let limit = budget.unwrap_or(MOST_SEARCH);
        // What is there takes so long; half of that is the most that a search may cost.
        let now = recommend(&question, &mut || false);
        let worth = now
            .ranked
            .iter()
            .find(|a| a.gain_s == 0.0 && a.move_s == 0.0);
        let worth = Duration::try_from_secs_f64(worth.map_or(0.0, |a| a.seconds) / 2.0);
        let end = started + worth.unwrap_or(limit).max(LEAST_SEARCH).min(limit);
        let advised = recommend(&question, &mut || Instant::now() < end);
        Ok(FileAdvice {
            advised,
            layout: found.text.clone(),
            servers,
            observed,
            bytes,
            searched: started.elapsed(),
        })
    }
}
