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
//! - Requests that were refused are not noted: they have changed nothing.
//! - The last [`WINDOW`] requests of a client are known. A number that is not above those dropped is refused as
//!   [forgotten](MetaError::Forgotten), and never done.
//! - Notes go with the client: when it ends, or when it is not back after a restart. A client that comes
//!   later nevertheless is told that what it repeats is forgotten.
//! - The rows of notes that were dropped are removed with the next transaction that has anything to commit, so that
//!   neither the end of a client nor an open that changes nothing costs a disk write.
//!
//! Cost: one small row with each change, one removed.

use std::collections::{BTreeMap, HashMap};

use super::record::key;
use super::rows::Rows;
use super::{Batch, Snapshot};
use crate::ClientId;
use crate::error::MetaError;

/// How many requests of a client are known. A client has at most one under way per thread.
pub const WINDOW: usize = 256;

/// Longest note.
const MOST_BYTES: usize = 4096;

/// What makes a request known again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Who asks.
    pub client: ClientId,
    /// His number for it.
    pub number: u64,
    /// Whether he says that it was sent before.
    pub is_repeated: bool,
}

#[derive(Debug)]
enum Note {
    /// In a row.
    Durable,
    /// Here.
    Volatile(Vec<u8>),
}

#[derive(Debug, Default)]
struct Window {
    notes: BTreeMap<u64, Note>,
    /// The highest number that may have been dropped.
    floor: u64,
}

/// What is known of each client.
#[derive(Debug)]
pub(crate) struct Answered {
    windows: HashMap<ClientId, Window>,
    /// The start of the catalogue, which is in the upper half of the numbers of its clients.
    start: u64,
    /// Whether clients of earlier starts that were not back have been forgotten.
    has_forgotten: bool,
    /// Notes that nobody asks for any more, whose rows are still there.
    ended: Vec<(ClientId, u64)>,
}

impl Answered {
    /// What the rows say.
    pub(crate) fn load(rows: &dyn Rows, start: u64) -> Result<Self, MetaError> {
        let mut windows: HashMap<ClientId, Window> = HashMap::new();
        rows.for_each(&key::answers(), &mut |key, _| {
            if let (Some(client), Some(number)) = (key::number(key, 0), key::number(key, 1)) {
                let window = windows.entry(ClientId(client)).or_default();
                window.notes.insert(number, Note::Durable);
            }
            Ok(())
        })?;
        for window in windows.values_mut() {
            // Notes in memory are gone, and so is the knowledge how many there were: numbers below the first row
            // of a full window were dropped, those of one that is not full never were.
            if window.notes.len() >= WINDOW
                && let Some((first, _)) = window.notes.first_key_value()
            {
                window.floor = first - 1;
            }
        }
        Ok(Answered {
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
        let Identity { client, number, .. } = identity;
        if let Some(note) = self.note_of(identity)? {
            return again(self, &note);
        }
        let (value, note) = work(self)?;
        self.note(client, number, note);
        Ok(value)
    }

    /// What was noted of a request; refused if that is not known any more.
    pub fn note_of(&mut self, identity: Identity) -> Result<Option<Vec<u8>>, MetaError> {
        let Identity {
            client,
            number,
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
            Some(Note::Volatile(note)) => Ok(Some(note.clone())),
            Some(Note::Durable) => self.rows.get(&key::answer(client, number)),
            None if number <= window.floor => Err(MetaError::Forgotten),
            None => Ok(None),
        }
    }

    /// Notes that a request was done, with what it has changed.
    pub fn note(&mut self, client: ClientId, number: u64, mut note: Vec<u8>) {
        // Longer ones are a bug; without the end they are refused when they are read.
        debug_assert!(note.len() <= MOST_BYTES);
        note.truncate(MOST_BYTES);
        let is_late = self.answered.is_late(client);
        let window = self.answered.windows.entry(client).or_insert(Window {
            notes: BTreeMap::new(),
            // What a client that is late did before is not known.
            floor: if is_late { number - 1 } else { 0 },
        });
        let kept = match self.rows.has_staged() {
            true => {
                self.rows.put(key::answer(client, number), note);
                Note::Durable
            }
            false => Note::Volatile(note),
        };
        window.notes.insert(number, kept);
        while window.notes.len() > WINDOW
            && let Some((oldest, note)) = window.notes.pop_first()
        {
            window.floor = window.floor.max(oldest);
            if matches!(note, Note::Durable) {
                self.answered.ended.push((client, oldest));
            }
        }
        self.rows.keep();
    }

    /// A client has ended: it repeats nothing.
    pub(crate) fn forget_answers(&mut self, client: ClientId) {
        if let Some(window) = self.answered.windows.remove(&client) {
            let durable = window.notes.into_iter();
            let durable = durable.filter(|(_, note)| matches!(note, Note::Durable));
            let ended = durable.map(|(number, _)| (client, number));
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

    /// Removes the rows of notes that were dropped, if something is committed anyway.
    pub(crate) fn sweep_answers(&mut self) {
        if self.answered.ended.is_empty() || !self.rows.is_changed() {
            return;
        }
        for (client, number) in std::mem::take(&mut self.answered.ended) {
            self.rows.remove(key::answer(client, number));
        }
        self.rows.keep();
    }
}

impl Snapshot {
    /// What was noted of a request, if its note is durable.
    pub fn note_of(&self, client: ClientId, number: u64) -> Result<Option<Vec<u8>>, MetaError> {
        self.rows.get(&key::answer(client, number))
    }
}
