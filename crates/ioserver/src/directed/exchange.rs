//! The exchange among servers: packets of a rank gather at one of them, which sends them in one message.
//!
//! ```text
//!  owner   Deposit (packet of a rank)  -->  the rank's server      every round, while nobody asks
//!          Confirm (this operation)    -->                          when the request has come
//! ```
//!
//! A rank's server is one of those that have bytes of it, so the rank talks to it anyway; all servers choose
//! the same. What is deposited counts when its owner confirms it for the operation at hand: then nobody wrote
//! into it, and the owner sends nothing of it itself. What is not confirmed in time is dropped, and the owner
//! hears that and sends it.
//!
//! When all bytes of a rank are here they are put into the order of its view, and it has nothing to unpack.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use wire::message::ahead::{Confirm, Deposit};
use wire::message::directed::{IN_VIEW, Lead, Portion, PortionPart};
use wire::{ClientId, FileId, ServerId};

use kernels::{Share, SharedBytesMut};

use super::distribution::{Compiled, Distribution};
use super::prefetch::{Packed, ReadyRound};
use crate::context::Context;
use crate::files::{Known, lock};

/// How long a rank's server waits for the owners of what it holds.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long what was confirmed waits for its operation.
const DUE: Duration = Duration::from_secs(60);
/// Operations that are remembered as begun.
const BEGUN: usize = 256;
/// Longest packet that is deposited: it travels as a control part.
pub(super) const MOST_PACKET: usize = 900 << 10;

/// What names a request at all servers.
pub(super) fn key(lead: &Lead) -> u64 {
    let mut bytes = Vec::new();
    for view in &lead.views {
        wire::describe::put_view(&mut bytes, view);
    }
    for rank in &lead.ranks {
        for n in [rank.client.0, u64::from(rank.view), rank.lo, rank.hi] {
            bytes.extend_from_slice(&n.to_le_bytes());
        }
    }
    // FNV-1a: what it is mixed up with would be confirmed by number and count as well.
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Who sends what, for one request.
#[derive(Default)]
pub(super) struct Homes {
    /// By rank: of the servers that have bytes of it, in the order of their numbers, the one at its rank.
    pub(super) of: Vec<Option<ServerId>>,
    /// What ranks of this server share with subfiles, wherever these are.
    shares: HashMap<(usize, u32), Share>,
}

/// Finds the servers of all ranks.
pub(super) fn homes(known: &Known, lead: &Lead, here: ServerId) -> Homes {
    let places = known.layout().pieces.iter().flat_map(|p| &p.places);
    let mut servers: Vec<u64> = places.filter_map(|p| p.first()).map(|p| p.server).collect();
    servers.sort_unstable();
    servers.dedup();
    let mut has: Vec<Vec<u64>> = vec![Vec::new(); lead.ranks.len()];
    let mut all = Vec::new();
    for server in servers {
        let theirs = Arc::new(known.at_server(ServerId(server)));
        let Ok(there) = Distribution::new(&Compiled::default(), &theirs, lead, u64::MAX) else {
            continue;
        };
        for (rank, here) in there.ranks.iter().enumerate() {
            if here.bytes > 0 {
                has[rank].push(server);
            }
        }
        all.push(theirs);
    }
    let pick = |(rank, list): (usize, &Vec<u64>)| {
        let at = rank % list.len().max(1);
        list.get(at).map(|server| ServerId(*server))
    };
    let of: Vec<Option<ServerId>> = has.iter().enumerate().map(pick).collect();
    let mut shares = HashMap::new();
    for (rank, range) in lead.ranks.iter().enumerate() {
        if of[rank] != Some(here) {
            continue;
        }
        let view = lead.views[range.view as usize].bytes();
        for own in all.iter().flat_map(|known| &known.own) {
            shares.insert((rank, own.index), Share::new(view, &own.bytes));
        }
    }
    Homes { of, shares }
}

struct Held {
    rank: usize,
    portion: Portion,
    bytes: Vec<u8>,
}

/// What one owner has deposited for one request.
#[derive(Default)]
struct FromOwner {
    serial: u64,
    packets: Vec<Held>,
    /// The operation it was confirmed for, and how many packets.
    confirmed: Option<(ClientId, u64, u64)>,
    confirmed_at: Option<Instant>,
}

#[derive(Default)]
struct State {
    /// By file and key, then by owner.
    held: HashMap<(FileId, u64), HashMap<ServerId, FromOwner>>,
    bytes: u64,
    /// Operations whose deposits were taken: too late for more.
    begun: VecDeque<(ClientId, u64)>,
}

/// Deposits at this server.
#[derive(Default)]
pub(crate) struct Deposits {
    state: Mutex<State>,
    changed: Condvar,
}

impl State {
    fn drop_request(&mut self, request: &(FileId, u64)) {
        let gone = self.held.remove(request).into_iter().flatten();
        let bytes: usize = gone
            .flat_map(|(_, from)| from.packets)
            .map(|p| p.bytes.len())
            .sum();
        self.bytes -= bytes as u64;
    }
}

impl State {
    /// Drops what is held for other requests of the file. An owner may be one operation ahead of this server,
    /// so what was confirmed for one that has not come yet stays, unless it never comes.
    fn drop_others(&mut self, key: (FileId, u64)) {
        let is_due = |held: &HashMap<ServerId, FromOwner>| {
            held.values().any(|from| {
                from.confirmed.is_some_and(|(_, _, n)| n > 0)
                    && from.confirmed_at.is_some_and(|at| at.elapsed() < DUE)
            })
        };
        let others = self.held.iter().filter(|(k, _)| k.0 == key.0 && **k != key);
        let stale: Vec<_> = others
            .filter(|(_, h)| !is_due(h))
            .map(|(k, _)| *k)
            .collect();
        stale.iter().for_each(|old| self.drop_request(old));
    }
}

impl Deposits {
    /// Bytes that are held.
    pub(super) fn bytes(&self) -> u64 {
        lock(&self.state).bytes
    }

    /// Another server deposits a packet; whether it is kept.
    pub(crate) fn deposit(&self, context: &Context, request: Deposit, most: u64) -> bool {
        let Ok(portion) = wire::message::decode::<Portion>(&request.portion.0) else {
            return false;
        };
        let bytes = request.bytes.0.len() as u64;
        let mut state = lock(&self.state);
        let key = (request.file, request.key);
        // Of a file one request is prepared at a time.
        state.drop_others(key);
        let held = state.bytes + context.operations.prefetch.held_bytes();
        if held + bytes > most || portion.parts.iter().map(|p| p.bytes).sum::<u64>() != bytes {
            return false;
        }
        let from = state
            .held
            .entry(key)
            .or_default()
            .entry(request.from)
            .or_default();
        let mut dropped = 0;
        if from.serial != request.serial {
            dropped = from.packets.drain(..).map(|p| p.bytes.len() as u64).sum();
            *from = FromOwner {
                serial: request.serial,
                ..FromOwner::default()
            };
        }
        from.packets.push(Held {
            rank: request.rank as usize,
            portion,
            bytes: request.bytes.0,
        });
        state.bytes = state.bytes + bytes - dropped;
        let most_held = &context.statistics.prefetch_most_bytes;
        most_held.fetch_max(held + bytes, Ordering::Relaxed);
        true
    }

    /// An owner says that what it deposited is good for an operation; whether it will be sent from here.
    pub(crate) fn confirm(&self, request: &Confirm) -> bool {
        let mut state = lock(&self.state);
        if state.begun.contains(&(request.leader, request.operation)) {
            return false;
        }
        let held = state.held.get_mut(&(request.file, request.key));
        let from = held.and_then(|held| held.get_mut(&request.from));
        let Some(from) = from.filter(|f| f.serial == request.serial) else {
            return false;
        };
        let is_all = from.packets.len() as u64 == request.packets;
        from.confirmed = Some((
            request.leader,
            request.operation,
            if is_all { request.packets } else { 0 },
        ));
        from.confirmed_at = Some(Instant::now());
        drop(state);
        self.changed.notify_all();
        is_all
    }

    /// Takes what owners have confirmed for an operation, by rank.
    pub(super) fn take(
        &self,
        file: FileId,
        lead: &Lead,
        leader: ClientId,
    ) -> Vec<(usize, Portion, Vec<u8>)> {
        let request = (file, key(lead));
        let operation = (leader, lead.operation);
        let deadline = Instant::now() + PATIENCE;
        let mut state = lock(&self.state);
        loop {
            let is_open = state.held.get(&request).is_some_and(|held| {
                held.values()
                    .any(|from| from.confirmed.is_none_or(|(l, o, _)| (l, o) != operation))
            });
            let left = deadline.saturating_duration_since(Instant::now());
            if !is_open || left.is_zero() {
                break;
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        if state.begun.len() == BEGUN {
            state.begun.pop_front();
        }
        state.begun.push_back(operation);
        let mut taken = Vec::new();
        if let Some(held) = state.held.get_mut(&request) {
            for from in held.values_mut() {
                if matches!(from.confirmed, Some((l, o, n)) if (l, o) == operation && n > 0) {
                    taken.append(&mut from.packets);
                }
            }
        }
        let bytes: usize = taken.iter().map(|p| p.bytes.len()).sum();
        state.bytes -= bytes as u64;
        state.drop_request(&request);
        state.drop_others(request);
        taken
            .into_iter()
            .map(|p| (p.rank, p.portion, p.bytes))
            .collect()
    }
}

/// One packet per rank from what others deposited and what is ready here; the rounds that were ready lose theirs.
pub(super) fn gather(
    lead: &Lead,
    homes: &Homes,
    taken: Vec<(usize, Portion, Vec<u8>)>,
    ready: &mut VecDeque<ReadyRound>,
) -> Vec<Option<Packed>> {
    let mut all: Vec<(Portion, Vec<u8>)> = Vec::new();
    all.resize_with(lead.ranks.len(), Default::default);
    for (rank, mut portion, bytes) in taken {
        if let Some(mine) = all.get_mut(rank) {
            mine.0.parts.append(&mut portion.parts);
            mine.1.extend_from_slice(&bytes);
        }
    }
    for (rank, mine) in all.iter_mut().enumerate() {
        if mine.1.is_empty() {
            continue;
        }
        for round in ready.iter_mut() {
            if let Some(own) = round.packets.get_mut(rank).and_then(Option::take)
                && let Ok(mut portion) = wire::message::decode::<Portion>(&own.portion)
            {
                mine.0.parts.append(&mut portion.parts);
                mine.1.extend_from_slice(&own.bytes);
            }
        }
    }
    all.into_iter()
        .enumerate()
        .map(|(rank, (portion, bytes))| {
            (!bytes.is_empty()).then(|| in_view(lead, homes, rank, portion, bytes))
        })
        .collect()
}

/// Puts the bytes of a rank into the order of its view, if all of them are there.
fn in_view(lead: &Lead, homes: &Homes, rank: usize, portion: Portion, bytes: Vec<u8>) -> Packed {
    let packed = |portion: &Portion, bytes| {
        let mut control = Vec::new();
        wire::message::encode(portion, &mut control);
        Packed {
            portion: control,
            bytes,
        }
    };
    match ordered(lead, homes, rank, &portion, &bytes) {
        Some((whole, ordered)) => packed(&whole, ordered),
        None => packed(&portion, bytes),
    }
}

fn ordered(
    lead: &Lead,
    homes: &Homes,
    rank: usize,
    portion: &Portion,
    bytes: &[u8],
) -> Option<(Portion, Vec<u8>)> {
    let range = &lead.ranks[rank];
    if bytes.len() as u64 != range.hi - range.lo {
        return None;
    }
    let view = lead.views[range.view as usize].bytes();
    let whole = PortionPart {
        subfile: IN_VIEW,
        start: view.select(range.lo)?,
        end: view.select(range.hi - 1)? + 1,
        bytes: bytes.len() as u64,
    };
    let mut ordered = vec![0; bytes.len()];
    let mut at = 0;
    for part in &portion.parts {
        let share = homes.shares.get(&(rank, part.subfile))?;
        let end = at + part.bytes as usize;
        let into = SharedBytesMut::from_slice(&mut ordered);
        share
            .scatter_left(part.start..part.end, &bytes[at..end], into, range.lo)
            .ok()?;
        at = end;
    }
    let parts = vec![whole];
    Some((Portion { parts }, ordered))
}
