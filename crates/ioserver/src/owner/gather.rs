//! Asking the servers that may have grown a file, before its size is told.
//!
//! A grower has announced itself ([`Announce`](wire::message::cluster::Announce)) before bytes were written there without a report to the
//! owner. Its answer counts what was acknowledged to a client before it was asked. So a question about the size is answered by
//! a gathering that *began* after it came; those who wait share one.
//!
//! A grower that cannot be asked is asked again until the patience is over. Then the size is refused: a smaller number
//! than a client was told before is never told.

use std::time::{Duration, Instant};

use control::sizes::Event;
use wire::message::cluster::EndIs;
use wire::{FileId, ServerId, Status};

use super::file::{OwnedFile, Phase, State};
use super::statistics::count;
use super::work::{Work, ask_all};
use super::{Asker, Owner, Refused, refuse};

/// Between two tries to ask a grower.
const PAUSE: Duration = Duration::from_millis(20);

/// Gatherings of a file, one at a time.
#[derive(Debug, Default)]
pub(super) struct Gatherings {
    /// How many have begun.
    begun: u64,
    /// The last one that all growers have answered.
    done: u64,
    is_running: bool,
}

/// Ends a gathering even if the thread panics.
struct GatheringGuard<'a>(&'a OwnedFile);

impl Drop for GatheringGuard<'_> {
    fn drop(&mut self) {
        self.0.lock().gatherings.is_running = false;
        self.0.changed.notify_all();
    }
}

impl Owner {
    /// Serves [`Announce`](wire::message::cluster::Announce): bytes may be written at a server from now on without a report.
    pub fn announced(&self, file: FileId, server: ServerId) -> Result<(), Refused> {
        let found = self.file(file)?;
        let mut state = found.lock();
        if let Phase::Over(refused) = &state.phase {
            return Err(refused.clone());
        }
        if !state.servers.contains_key(&server) {
            let text = format!("{server} is not known as a server of {file} yet; repeat");
            return refuse(Status::Busy, text);
        }
        state.size_event(Event::Announced(server), &mut Vec::new());
        count(&self.counters.announcements);
        Ok(())
    }

    /// Counts everything that servers have of a file and that was acknowledged before this was called.
    pub(super) fn gather(&self, file: &OwnedFile, asker: &Asker<'_>) -> Result<(), Refused> {
        // An owner that has started asks all servers by itself. What they say to that may be older than this question: those that
        // may have grown since are asked again, after it.
        let state = file.enter(self, asker)?;
        let (state, heard) = file.wait(state, &file.changed, asker, Some(self.patience), |state| {
            state.sizes.has_heard_all().then_some(())
        });
        drop(state);
        heard?;
        self.gather_for(file, self.patience, asker.is_connected)
    }

    /// Counts what servers have, once; what cannot be asked now is asked by the next one.
    pub(super) fn gather_once(&self, file: &OwnedFile) -> Result<(), Refused> {
        self.gather_for(file, Duration::ZERO, &|| true)
    }

    pub(super) fn gather_for(
        &self,
        file: &OwnedFile,
        patience: Duration,
        is_connected: &dyn Fn() -> bool,
    ) -> Result<(), Refused> {
        let begin = Instant::now();
        let mut state = file.lock();
        let wanted = state.gatherings.begun + 1;
        loop {
            if let Phase::Over(refused) = &state.phase {
                return Err(refused.clone());
            }
            if state.gatherings.done >= wanted || state.sizes.growers().next().is_none() {
                return Ok(());
            }
            if state.gatherings.is_running {
                file.changed.wait(&mut state);
                continue;
            }
            state.gatherings.is_running = true;
            state.gatherings.begun += 1;
            let mine = state.gatherings.begun;
            let growers: Vec<(ServerId, u64)> = state.sizes.growers().collect();
            drop(state);
            let running = GatheringGuard(file);
            let servers: Vec<ServerId> = growers.iter().map(|(server, _)| *server).collect();
            let answers = ask_all(&servers, |server| self.cluster.ask_end(server, file.id));
            let mut work = Vec::new();
            let mut failed = None;
            let mut asked = file.lock();
            for ((server, announcement), answer) in growers.into_iter().zip(answers) {
                match answer {
                    Ok(end) => {
                        let written = asked.written;
                        asked.end_is(server, announcement, &end, &mut work);
                        if asked.written != written {
                            asked.modified = self.cluster.now();
                        }
                    }
                    // One that has lost what it had is none any more when that is known.
                    Err(mut refused) => {
                        refused.refusal.text = format!(
                            "{server} cannot be asked ({}), and the file depends on it; try again when it is back",
                            refused.refusal.text
                        );
                        failed = Some(refused);
                    }
                }
            }
            if failed.is_none() && work.is_empty() {
                asked.gatherings.done = mine;
            }
            drop(asked);
            drop(running);
            self.drive(file, work);
            state = file.lock();
            let Some(refused) = failed else {
                continue;
            };
            if matches!(refused.status, Status::Lost | Status::Io | Status::Corrupt)
                || begin.elapsed() >= patience
                || !is_connected()
            {
                return Err(refused);
            }
            file.changed.wait_for(&mut state, PAUSE);
        }
    }
}

impl State {
    /// Takes what a server says about how far its bytes reach.
    pub(super) fn end_is(
        &mut self,
        server: ServerId,
        announcement: u64,
        end: &EndIs,
        work: &mut Vec<Work>,
    ) {
        let before = self.sizes.at_least();
        let event = Event::EndIs {
            server,
            announcement,
            epoch: end.epoch,
            end: end.end,
            grows: end.grows,
        };
        self.size_event(event, work);
        // The catalogue does not know it yet.
        self.written += u64::from(self.sizes.at_least() > before);
    }
}
