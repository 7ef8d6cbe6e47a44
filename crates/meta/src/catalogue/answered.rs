//! Requests that were done, and what was answered: a request that comes twice is done once.
//!
//! A client that loses the connection before the answer sends its request again, with the number it had. What
//! the first one did is found under that number and answered again; nothing is done a second time, and what
//! others have done since stays.
//!
//! ```text
//!   client            manager
//!     | -- 7: unlink --> |   commits: the name is gone, and (client, 7) was answered with nothing
//!     |        x <------ |   the answer is lost, or the manager dies here
//!     | -- 7: unlink --> |   finds (client, 7): answers with nothing
//! ```
//!
//! Invariants
//! - A request that changes rows and the note that it was done are one transaction. A request that changes no row (a
//!   file that exists is opened) is noted in memory: after a restart it has left nothing.
//! - Requests that were refused are not noted: they have changed nothing. One of several transactions notes with each how far
//!   it is, and goes on there.
//! - The last [`WINDOW`] requests of a client are known. A number that is not above those dropped is refused as
//!   [forgotten](MetaError::Forgotten), and never done.
//! - Notes go with the client: when it ends, or when it is not back after a restart. A client that comes
//!   later nevertheless is told that what it repeats is forgotten.
//! - A client has at most [`WINDOW`] rows, in slots. A new note takes the slot of one that was dropped, so rows are written
//!   over and never removed while the client lives. Those of clients that have ended are removed with the next transaction that
//!   has anything to commit. So neither the end of a client nor an open that changes nothing costs a disk write.
//!
//! Cost: one small row with each change, in a page that the change before has touched too.

use std::collections::{BTreeMap, HashMap};

use super::record::{decode, key};
use super::rows::{Rows, RowsTransaction};
use super::{Batch, Snapshot};
use crate::ClientId;
use crate::error::MetaError;
use wire::put_number;

/// How many requests of a client are known. A client has at most one under way per thread.
pub const WINDOW: usize = 256;

/// Longest note: the steps of a rebalancing.
const MOST_BYTES: usize = 16 << 10;

/// What makes a request known again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Who asks.
    pub client: ClientId,
    /// His number for it.
    pub number: u64,
    /// What he asks, as messages are numbered: one number is for one request.
    pub kind: u16,
    /// Whether he says that it was sent before.
    pub is_repeated: bool,
}

#[derive(Debug)]
enum Note {
    /// In the row of this slot.
    Durable(u64),
    /// Here.
    Volatile(NotedRequest),
}

#[derive(Debug, Default)]
struct Window {
    notes: BTreeMap<u64, Note>,
    /// The highest number that may have been dropped.
    floor: u64,
    /// Slots that have rows, or will.
    slots: u64,
    /// Those of them whose notes were dropped.
    free: Vec<u64>,
}

impl Window {
    /// Drops the oldest note if there are as many as there may be.
    fn make_room(&mut self) {
        while self.notes.len() >= WINDOW
            && let Some((oldest, note)) = self.notes.pop_first()
        {
            self.floor = self.floor.max(oldest);
            if let Note::Durable(slot) = note {
                self.free.push(slot);
            }
        }
    }

    /// A slot for one more row.
    fn slot(&mut self) -> u64 {
        self.free.pop().unwrap_or_else(|| {
            self.slots += 1;
            self.slots - 1
        })
    }
}

/// What a row says.
struct Answer {
    number: u64,
    /// The highest number that may have been dropped before.
    floor: u64,
    note: NotedRequest,
}

/// What was asked, and what has to be known to answer it again.
#[derive(Clone, Debug, PartialEq, Eq)]
struct NotedRequest {
    kind: u64,
    bytes: Vec<u8>,
}

impl NotedRequest {
    /// The bytes, if it is this request that they are of.
    fn of(self, kind: u16) -> Result<Vec<u8>, MetaError> {
        match self.kind == u64::from(kind) {
            true => Ok(self.bytes),
            false => Err(MetaError::argument(
                "request",
                format!(
                    "its number was used for one of kind {:#x}; each needs its own",
                    self.kind
                ),
            )),
        }
    }
}

fn read_answer(key: &[u8], value: &[u8]) -> Result<Answer, MetaError> {
    decode(key, value, |r| {
        Ok(Answer {
            number: r.number()?,
            floor: r.number()?,
            note: NotedRequest {
                kind: r.number()?,
                bytes: r.take(r.left())?.to_vec(),
            },
        })
    })
}

/// Checks a row.
pub(crate) fn read_row(key: &[u8], value: &[u8]) -> Result<(), MetaError> {
    read_answer(key, value).map(drop)
}

fn put_answer(rows: &mut RowsTransaction<'_>, client: ClientId, slot: u64, answer: &Answer) {
    let mut value = Vec::with_capacity(answer.note.bytes.len() + 24);
    for number in [answer.number, answer.floor, answer.note.kind] {
        put_number(&mut value, number);
    }
    value.extend_from_slice(&answer.note.bytes);
    rows.put(key::answer(client, slot), value);
}

/// Version 3 had rows by number, with nothing but the bytes. What was asked is not known, so nothing is known again: clients
/// of the release that wrote them cannot come back to this one.
pub(crate) fn rewrite_version3(rows: &mut RowsTransaction<'_>) -> Result<(), MetaError> {
    let mut keys = Vec::new();
    rows.for_each(&key::answers(), &mut |key, _| {
        keys.push(key.to_vec());
        Ok(())
    })?;
    keys.into_iter().for_each(|key| rows.remove(key));
    Ok(())
}

/// What is known of each client.
#[derive(Debug)]
pub(crate) struct AnswerWindows {
    windows: HashMap<ClientId, Window>,
    /// The start of the catalogue, which is in the upper half of the numbers of its clients.
    start: u64,
    /// Whether clients of earlier starts that were not back have been forgotten.
    has_forgotten: bool,
    /// Slots of clients that have ended, whose rows are still there.
    ended: Vec<(ClientId, u64)>,
}

impl AnswerWindows {
    /// What the rows say.
    pub(crate) fn load(rows: &dyn Rows, start: u64) -> Result<Self, MetaError> {
        let mut windows: HashMap<ClientId, Window> = HashMap::new();
        rows.for_each(&key::answers(), &mut |key, value| {
            if let (Some(client), Some(slot)) = (key::number(key, 0), key::number(key, 1)) {
                let Answer { number, floor, .. } = read_answer(key, value)?;
                let window = windows.entry(ClientId(client)).or_default();
                window.notes.insert(number, Note::Durable(slot));
                window.floor = window.floor.max(floor);
                window.slots = window.slots.max(slot.saturating_add(1));
            }
            Ok(())
        })?;
        Ok(AnswerWindows {
            windows,
            start,
            has_forgotten: false,
            ended: Vec::new(),
        })
    }

    fn is_late(&self, client: ClientId) -> bool {
        self.has_forgotten && client.0 >> 32 < self.start
    }
}

impl Batch<'_> {
    /// Does a request once. `work` does it and says what has to be known to answer it again; `again` answers it from
    /// that.
    pub fn once<T>(
        &mut self,
        identity: Identity,
        work: impl FnOnce(&mut Self) -> Result<(T, Vec<u8>), MetaError>,
        again: impl FnOnce(&mut Self, &[u8]) -> Result<T, MetaError>,
    ) -> Result<T, MetaError> {
        if let Some(note) = self.note_of(identity)? {
            return again(self, &note);
        }
        let (value, note) = work(self)?;
        self.note(identity, note);
        Ok(value)
    }

    /// What was noted of a request; refused if that is not known any more.
    pub fn note_of(&mut self, identity: Identity) -> Result<Option<Vec<u8>>, MetaError> {
        let Identity {
            client,
            number,
            kind,
            is_repeated,
        } = identity;
        let is_late = self.answered.is_late(client);
        let Some(window) = self.answered.windows.get(&client) else {
            return match is_late && is_repeated {
                true => Err(MetaError::Forgotten),
                false => Ok(None),
            };
        };
        match window.notes.get(&number) {
            Some(Note::Volatile(note)) => note.clone().of(kind).map(Some),
            Some(Note::Durable(slot)) => {
                let key = key::answer(client, *slot);
                let Some(value) = self.rows.get(&key)? else {
                    return Ok(None);
                };
                // What a request has noted that panicked later is not in the row.
                let found = read_answer(&key, &value)?;
                match found.number == number {
                    true => found.note.of(kind).map(Some),
                    false => Ok(None),
                }
            }
            None if number <= window.floor => Err(MetaError::Forgotten),
            None => Ok(None),
        }
    }

    /// Notes that a request was done, with what it has changed. One that changes things in several transactions notes in
    /// each how far it is; the last note counts.
    pub fn note(&mut self, identity: Identity, mut bytes: Vec<u8>) {
        let Identity {
            client,
            number,
            kind,
            ..
        } = identity;
        // Longer ones are a bug; without the end they are refused when they are read.
        debug_assert!(bytes.len() <= MOST_BYTES);
        bytes.truncate(MOST_BYTES);
        let kind = u64::from(kind);
        let note = NotedRequest { kind, bytes };
        let is_late = self.answered.is_late(client);
        let AnswerWindows { windows, ended, .. } = &mut *self.answered;
        let window = windows.entry(client).or_insert_with(|| {
            // One that was forgotten and came back: its rows are written over, not removed.
            let theirs = ended.extract_if(.., |(other, _)| *other == client);
            let free: Vec<u64> = theirs.map(|(_, slot)| slot).collect();
            Window {
                // What a client that is late did before is not known.
                floor: if is_late { number.saturating_sub(1) } else { 0 },
                slots: free.iter().max().map_or(0, |slot| slot + 1),
                free,
                ..Window::default()
            }
        });
        let before = match window.notes.get(&number) {
            Some(Note::Durable(slot)) => Some(*slot),
            _ => None,
        };
        if before.is_none() {
            window.make_room();
        }
        let kept = match before.is_some() || self.rows.has_staged() {
            true => {
                let slot = before.unwrap_or_else(|| window.slot());
                let floor = window.floor;
                let answer = Answer {
                    number,
                    floor,
                    note,
                };
                put_answer(&mut self.rows, client, slot, &answer);
                Note::Durable(slot)
            }
            false => Note::Volatile(note),
        };
        window.notes.insert(number, kept);
        self.rows.keep();
    }

    /// A client has ended: it repeats nothing.
    pub(crate) fn forget_answers(&mut self, client: ClientId) {
        if let Some(window) = self.answered.windows.remove(&client) {
            let ended = (0..window.slots).map(|slot| (client, slot));
            self.answered.ended.extend(ended);
        }
    }

    /// Clients of earlier starts that are not there now are not coming back.
    pub fn forget_absent(&mut self, is_there: impl Fn(ClientId) -> bool) {
        let clients: Vec<ClientId> = self.answered.windows.keys().copied().collect();
        for client in clients {
            if client.0 >> 32 < self.answered.start && !is_there(client) {
                self.forget_answers(client);
            }
        }
        self.answered.has_forgotten = true;
    }

    /// Removes the rows of clients that have ended, if something is committed anyway.
    pub(crate) fn sweep_answers(&mut self) {
        if self.answered.ended.is_empty() || !self.rows.is_changed() {
            return;
        }
        for (client, slot) in std::mem::take(&mut self.answered.ended) {
            self.rows.remove(key::answer(client, slot));
        }
        self.rows.keep();
    }
}

impl Snapshot {
    /// What was noted of a request, if its note is durable.
    pub fn note_of(&self, identity: Identity) -> Result<Option<Vec<u8>>, MetaError> {
        let mut found = None;
        let answers = key::answers_of(identity.client);
        self.rows.for_each(&answers, &mut |key, value| {
            let answer = read_answer(key, value)?;
            if answer.number == identity.number {
                found = Some(answer.note);
            }
            Ok(())
        })?;
        found.map(|note| note.of(identity.kind)).transpose()
    }
}
