//! The exchange among servers: packets of a rank gather at one of them, which sends them in one message.
//!
//! ```text
//!  owner   Deposit (packet of a rank)  -->  the rank's server      every round, before a rank asks
//!          Confirm (this operation)    -->                          when the request has come
//! ```
//!
//! A rank's server is one of those that have bytes of it, so the rank talks to it anyway; all servers choose
//! the same. What is deposited counts when its owner confirms it for the operation at hand: then no client wrote
//! into it, and the owner sends nothing of it itself. What is not confirmed in time is dropped, and the owner
//! hears that and sends it.
//!
//! Bytes of a rank are put into the order of its view as they come, this server's own too. When all of them are
//! here there is nothing to do on request but to send them, and the rank has nothing to unpack; when some are
//! missing the others are taken out again.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use wire::message::ahead::{Confirm, Deposit};
use wire::message::directed::{IN_VIEW, Lead, Portion, PortionPart};
use wire::{ClientId, FileId, ServerId};

use falls::Steps;
use kernels::{Share, SharedBytes, SharedBytesMut};

use super::distribution::{CompiledViews, Distribution};
use super::prefetch::PackedBytes;
use crate::files::LocalState;
use crate::statistics::Statistics;

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
pub(super) fn homes(known: &LocalState, lead: &Lead, here: ServerId, search_steps: u64) -> Homes {
    let places = known.layout().pieces.iter().flat_map(|p| &p.places);
    let mut servers: Vec<u64> = places.filter_map(|p| p.first()).map(|p| p.server).collect();
    servers.sort_unstable();
    servers.dedup();
    let mut has: Vec<Vec<u64>> = vec![Vec::new(); lead.ranks.len()];
    let mut all = Vec::new();
    for server in servers {
        let theirs = Arc::new(known.at_server(ServerId(server)));
        let compiled = CompiledViews::default();
        let Ok(there) = Distribution::new(&compiled, &theirs, lead, u64::MAX, search_steps, None)
        else {
            continue;
        };
        for (rank, here) in there.ranks.iter().enumerate() {
            if here.has_bytes {
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

struct HeldPacket {
    rank: usize,
    portion: Portion,
    bytes: u64,
}

/// What owners have deposited for one request.
#[derive(Default)]
struct Request {
    owners: HashMap<ServerId, FromOwner>,
    /// By rank its bytes in the order of its view, as far as they have come.
    ordered: HashMap<usize, Arc<Mutex<Vec<u8>>>>,
    homes: Arc<Homes>,
}

impl Request {
    fn bytes(&self) -> u64 {
        let packets = self.owners.values().flat_map(|from| &from.packets);
        packets.map(|held| held.bytes).sum()
    }
}

/// What one owner has deposited for one request.
#[derive(Default)]
struct FromOwner {
    serial: u64,
    packets: Vec<HeldPacket>,
    /// The operation it was confirmed for, and how many packets.
    confirmed: Option<(ClientId, u64, u64)>,
    confirmed_at: Option<Instant>,
}

#[derive(Default)]
struct State {
    /// By file and key.
    held: HashMap<(FileId, u64), Request>,
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
        if let Some(gone) = self.held.remove(request) {
            self.bytes -= gone.bytes();
        }
    }
}

impl State {
    /// Drops what is held for other requests of the file. An owner may be one operation ahead of this server,
    /// so what was confirmed for one that has not come yet stays, unless it never comes.
    fn drop_others(&mut self, file: FileId, but: Option<u64>) {
        let is_due = |held: &Request| {
            held.owners.values().any(|from| {
                from.confirmed.is_some_and(|(_, _, n)| n > 0)
                    && from.confirmed_at.is_some_and(|at| at.elapsed() < DUE)
            })
        };
        let others = self.held.iter();
        let others = others.filter(|(k, _)| k.0 == file && Some(k.1) != but);
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
        self.state.lock().bytes
    }

    /// The file is read in another form: no rank takes what is held for it.
    pub(super) fn forget(&self, file: FileId) {
        self.state.lock().drop_others(file, None);
    }

    /// A server deposits a packet; whether it is kept. So many bytes are `prepared` here besides.
    pub(super) fn deposit(
        &self,
        statistics: &Statistics,
        prepared: &AtomicU64,
        request: &Deposit,
        lead: &Lead,
        homes: &Arc<Homes>,
        most: u64,
    ) -> bool {
        let Ok(portion) = wire::message::decode::<Portion>(&request.portion.0) else {
            return false;
        };
        let bytes = request.bytes.0.len() as u64;
        let rank = request.rank as usize;
        let key = (request.file, request.key);
        let Some(range) = lead.ranks.get(rank) else {
            return false;
        };
        // Counted before it is copied, which is done without the lock.
        let ordered = {
            let mut state = self.state.lock();
            // Of a file one request is prepared at a time.
            state.drop_others(request.file, Some(request.key));
            let held = state.bytes + prepared.load(Ordering::SeqCst);
            if held + bytes > most || portion.parts.iter().map(|p| p.bytes).sum::<u64>() != bytes {
                return false;
            }
            let found = state.held.entry(key).or_default();
            found.homes = Arc::clone(homes);
            let from = found.owners.entry(request.from).or_default();
            let mut dropped = 0;
            if from.serial != request.serial {
                dropped = from.packets.drain(..).map(|p| p.bytes).sum();
                *from = FromOwner {
                    serial: request.serial,
                    ..FromOwner::default()
                };
            }
            let new = || Arc::new(Mutex::new(vec![0; (range.hi - range.lo) as usize]));
            let ordered = Arc::clone(found.ordered.entry(rank).or_insert_with(new));
            state.bytes = state.bytes + bytes - dropped;
            let most_held = &statistics.prefetch_most_bytes;
            most_held.fetch_max(held + bytes, Ordering::Relaxed);
            ordered
        };
        let is_put = put(
            lead,
            homes,
            rank,
            &portion,
            &request.bytes.0,
            &mut ordered.lock(),
        );
        let mut state = self.state.lock();
        // It may have been dropped or taken meanwhile, or there is a newer one of the same owner.
        let kept = state.held.get_mut(&key).and_then(|found| {
            let is_there = found
                .ordered
                .get(&rank)
                .is_some_and(|o| Arc::ptr_eq(o, &ordered));
            let from = found.owners.get_mut(&request.from).filter(|_| is_there);
            from.filter(|from| from.serial == request.serial)
        });
        match kept {
            Some(from) if is_put => {
                from.packets.push(HeldPacket {
                    rank,
                    portion,
                    bytes,
                });
                true
            }
            _ => {
                state.bytes -= bytes;
                false
            }
        }
    }

    /// An owner says that what it deposited is good for an operation; whether it will be sent from here.
    pub(crate) fn confirm(&self, request: &Confirm) -> bool {
        let mut state = self.state.lock();
        if state.begun.contains(&(request.leader, request.operation)) {
            return false;
        }
        let held = state.held.get_mut(&(request.file, request.key));
        let from = held.and_then(|held| held.owners.get_mut(&request.from));
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

    /// Takes what owners have confirmed for an operation: a packet per rank.
    pub(super) fn take(
        &self,
        file: FileId,
        lead: &Lead,
        leader: ClientId,
    ) -> Vec<Option<PackedBytes>> {
        let request = (file, key(lead));
        let operation = (leader, lead.operation);
        let deadline = Instant::now() + PATIENCE;
        let mut state = self.state.lock();
        loop {
            let is_open = state.held.get(&request).is_some_and(|held| {
                held.owners
                    .values()
                    .any(|from| from.confirmed.is_none_or(|(l, o, _)| (l, o) != operation))
            });
            let left = deadline.saturating_duration_since(Instant::now());
            if !is_open || left.is_zero() {
                break;
            }
            self.changed.wait_for(&mut state, left);
        }
        if state.begun.len() == BEGUN {
            state.begun.pop_front();
        }
        state.begun.push_back(operation);
        let taken = state.held.remove(&request);
        state.bytes -= taken.as_ref().map_or(0, Request::bytes);
        state.drop_others(file, Some(request.1));
        drop(state);
        let Some(taken) = taken else {
            return Vec::new();
        };
        let mut good: Vec<Portion> = Vec::new();
        good.resize_with(lead.ranks.len(), Portion::default);
        for from in taken.owners.into_values() {
            if !matches!(from.confirmed, Some((l, o, n)) if (l, o) == operation && n > 0) {
                continue;
            }
            for mut held in from.packets {
                if let Some(portion) = good.get_mut(held.rank) {
                    portion.parts.append(&mut held.portion.parts);
                }
            }
        }
        let packets = good.into_iter().enumerate().map(|(rank, portion)| {
            let ordered = std::mem::take(&mut *taken.ordered.get(&rank)?.lock());
            (!portion.parts.is_empty()).then(|| packet(lead, &taken.homes, rank, portion, ordered))
        });
        packets.collect()
    }
}

/// The packet of a rank: all its bytes in the order of its view, or those that are good.
fn packet(
    lead: &Lead,
    homes: &Homes,
    rank: usize,
    portion: Portion,
    ordered: Vec<u8>,
) -> PackedBytes {
    let (portion, bytes) = match whole(lead, rank, &portion) {
        Some(whole) => (whole, ordered),
        None => {
            let mut bytes = Vec::new();
            for part in &portion.parts {
                let at = bytes.len();
                bytes.resize(at + part.bytes as usize, 0);
                let share = &homes.shares[&(rank, part.subfile)];
                let from = SharedBytes::from_slice(&ordered);
                let (file, base) = (part.start..part.end, lead.ranks[rank].lo);
                share
                    .gather_left(file, from, base, &mut bytes[at..])
                    .expect("what was put there");
            }
            (portion, bytes)
        }
    };
    let mut control = Vec::new();
    wire::message::encode(&portion, &mut control);
    PackedBytes {
        portion: control,
        bytes,
    }
}

/// The portion that says that everything of a rank comes in the order of its view, if it does.
fn whole(lead: &Lead, rank: usize, portion: &Portion) -> Option<Portion> {
    let range = &lead.ranks[rank];
    let bytes = portion.parts.iter().map(|part| part.bytes).sum::<u64>();
    if bytes != range.hi - range.lo {
        return None;
    }
    let view = lead.views[range.view as usize].bytes();
    let whole = PortionPart {
        subfile: IN_VIEW,
        start: view.select(range.lo)?,
        end: view.select(range.hi - 1)? + 1,
        bytes,
    };
    Some(Portion { parts: vec![whole] })
}

/// Puts a packet where it belongs in the bytes of its rank; whether it fits.
fn put(
    lead: &Lead,
    homes: &Homes,
    rank: usize,
    portion: &Portion,
    bytes: &[u8],
    ordered: &mut [u8],
) -> bool {
    let range = &lead.ranks[rank];
    let mut at = 0;
    for part in &portion.parts {
        let Some(share) = homes.shares.get(&(rank, part.subfile)) else {
            return false;
        };
        let end = at + part.bytes as usize;
        let file = part.start..part.end;
        let mut steps = Steps::new((1 << 20) + 16 * part.bytes);
        let count = share.count_at_most(file.clone(), part.bytes, &mut steps);
        if part.start >= part.end || count != Ok(part.bytes) {
            return false;
        }
        let into = SharedBytesMut::from_slice(ordered);
        if share
            .scatter_left(file, &bytes[at..end], into, range.lo)
            .is_err()
        {
            return false;
        }
        at = end;
    }
    true
}
