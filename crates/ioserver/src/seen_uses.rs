//! What this server has seen by message of clients, for the profiles of files.
//!
//! A registered view counts the accesses through it; when it goes, by itself or with its client, what it counted waits
//! here for the next report. The metadata manager takes it for clients that do not record by themselves.
//!
//! Invariants: bounded, whatever clients do; an access pays a few nanoseconds and no lock.

use std::collections::HashMap;
use std::sync::OnceLock;

use advise::profile::{Entry, Profile, Recorder};
use layout::View;
use parking_lot::Mutex;
use wire::message::Bytes;
use wire::message::profile::{ReportUse, SeenUse};
use wire::{ClientId, FileId, ServerId};

/// Files of clients that wait to be reported; what comes beyond is dropped, it is a statistic.
const MOST_WAITING: usize = 1024;
/// Uses in one report, so that it stays well below what a message carries.
const MOST_REPORTED: usize = 32;
/// Under which name clients are counted that give none.
const APPLICATION: &str = "unnamed";

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct SeenUses(Mutex<HashMap<(ClientId, FileId), Profile>>);

impl SeenUses {
    fn add(&self, client: ClientId, file: FileId, entry: Entry) {
        let mut waiting = self.0.lock();
        if waiting.len() < MOST_WAITING || waiting.contains_key(&(client, file)) {
            let profile = waiting.entry((client, file)).or_default();
            profile.add(APPLICATION, 0, entry);
        }
    }

    /// What is to be reported, if anything is.
    pub(crate) fn take(&self) -> Option<ReportUse> {
        let mut waiting = self.0.lock();
        let keys: Vec<(ClientId, FileId)> = waiting.keys().take(MOST_REPORTED).copied().collect();
        let seen: Vec<SeenUse> = keys
            .into_iter()
            .filter_map(|key| {
                let profile = waiting.remove(&key)?;
                Some(SeenUse {
                    client: key.0,
                    file: key.1,
                    profile: Bytes(profile.save()),
                })
            })
            .collect();
        (!seen.is_empty()).then_some(ReportUse { seen })
    }
}

/// The counters of one view of one client.
#[derive(Debug, Default)]
pub(crate) struct ViewUse(OnceLock<Box<Recorder>>);

impl ViewUse {
    /// An access to `bytes` of this server, from a view offset on.
    pub(crate) fn record(&self, writes: bool, offset: u64, bytes: u64, server: ServerId) {
        if bytes > 0 {
            let recorder = self.0.get_or_init(Box::default);
            recorder.record(writes, offset, bytes);
            recorder.moved(recorder.slot(server.0), writes, bytes);
        }
    }

    /// The view goes.
    pub(crate) fn end(&mut self, seen: &SeenUses, client: ClientId, file: FileId, view: &View) {
        let Some(recorder) = self.0.take() else {
            return;
        };
        let [read, written] = recorder.take();
        let end = read.hull.1.max(written.hull.1);
        let file_bytes = view.bytes().select(end.saturating_sub(1)).unwrap_or(0);
        let mut entry = Entry::new(view, "", file_bytes.saturating_add(1));
        (entry.read, entry.written) = (read, written);
        entry.servers = recorder.take_servers();
        seen.add(client, file, entry);
    }
}
