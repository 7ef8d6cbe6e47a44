//! The verbs about a file's size: asking for it, and growing it.
//!
//! While the size is being found out (the owner has just started) clients that ask wait. A write of an
//! earlier epoch is refused with the present epoch and size, so that its client can repeat it.

use parking_lot::MutexGuard;
use std::time::{Duration, Instant};

use control::sizes::Event;
use wire::message::file::SizeIs;
use wire::{FileId, Rights, ServerId, Status};

use super::file::{OwnedFile, Phase, State};
use super::work::ask_all;
use super::{Asker, Owner, Refused, refuse};

/// How long the metadata manager waits for sizes that it asks for, and its client with it.
const SOON: Duration = Duration::from_millis(500);

impl Owner {
    /// The size, for [`Size`](wire::message::file::Size).
    pub fn size(&self, asker: &Asker<'_>) -> Result<SizeIs, Refused> {
        let file = self.file(asker.file)?;
        self.settle_doubt(&file)?;
        self.gather(&file, asker)?;
        let state = file.enter(self, asker)?;
        self.known(&file, state, asker).1
    }

    /// The sizes of files, for [`AskSizes`](wire::message::cluster::AskSizes); nothing for those that cannot be told soon. A client
    /// that has to know asks and waits by itself.
    pub fn sizes(&self, files: &[FileId]) -> Vec<Option<SizeIs>> {
        let begin = Instant::now();
        let size = |file: &FileId| match begin.elapsed() < SOON {
            true => self.size_soon(*file).ok(),
            false => None,
        };
        files.iter().map(size).collect()
    }

    fn size_soon(&self, id: FileId) -> Result<SizeIs, Refused> {
        let file = self.file(id)?;
        self.settle_doubt(&file)?;
        {
            // What servers said to an owner that has just started may be older than this question.
            let state = file.lock();
            if !state.sizes.has_heard_all() || state.handing_over.is_some() {
                return refuse(Status::Busy, "the size of the file is being found out");
            }
        }
        self.gather_for(&file, Duration::ZERO, &|| true)?;
        let state = file.lock();
        if let Phase::Over(refused) = &state.phase {
            return Err(refused.clone());
        }
        match state.size_is() {
            Some(size) => Ok(size),
            None => refuse(Status::Busy, "the size of the file is being found out"),
        }
    }

    /// A write has ended at `end`, for [`Grow`](wire::message::file::Grow).
    pub fn grow(&self, asker: &Asker<'_>, epoch: u64, end: u64) -> Result<SizeIs, Refused> {
        asker.demand(Rights::WRITE)?;
        demand_offset("end", end)?;
        let file = self.file(asker.file)?;
        self.settle_doubt(&file)?;
        let mut state = self.enter_in(&file, asker, epoch)?;
        let counts = self.count_write(&mut state, epoch, end);
        let size = self.known(&file, state, asker).1;
        if counts { size } else { stale(size?) }
    }

    /// The file for a request of an epoch, which may have begun at the metadata manager a moment before it begins
    /// here: clients and servers hear of it from both.
    pub(super) fn enter_in<'a>(
        &self,
        file: &'a OwnedFile,
        asker: &Asker<'_>,
        epoch: u64,
    ) -> Result<MutexGuard<'a, State>, Refused> {
        let state = file.enter(self, asker)?;
        if epoch <= state.sizes.epoch() {
            return Ok(state);
        }
        drop(state);
        let durable = self.cluster.file_state(file.id)?.size;
        if epoch > durable.epoch {
            return refuse(
                Status::InvalidArgument,
                format!(
                    "epoch {epoch} has not begun; {} is the latest",
                    durable.epoch
                ),
            );
        }
        let mut work = Vec::new();
        file.lock().size_event(Event::Overtaken(durable), &mut work);
        self.drive(file, work);
        let state = file.enter(self, asker)?;
        let has_begun = |s: &mut State| (s.sizes.epoch() >= epoch).then_some(());
        let (state, begun) = file.wait(state, &file.changed, asker, Some(self.patience), has_begun);
        begun.map(|()| state)
    }

    /// Counts a write; whether it is of the present epoch. Allocates nothing: this is on the way of
    /// every write that extends the file.
    pub(super) fn count_write(&self, state: &mut State, epoch: u64, end: u64) -> bool {
        let counts = state.sizes.wrote(epoch, end);
        if counts {
            state.written += 1;
            state.modified = self.cluster.now();
        }
        counts
    }

    /// Waits until the size is known.
    pub(super) fn known<'a>(
        &self,
        file: &'a OwnedFile,
        state: MutexGuard<'a, State>,
        asker: &Asker<'_>,
    ) -> (MutexGuard<'a, State>, Result<SizeIs, Refused>) {
        let limit = Some(self.patience);
        file.wait(state, &file.changed, asker, limit, |s| s.size_is())
    }

    /// The size as far as it is known; at least that of the last report.
    pub fn size_now(&self, file: FileId) -> Result<SizeIs, Refused> {
        let file = self.file(file)?;
        self.settle_doubt(&file)?;
        let size = file.lock().size_is();
        match size {
            Some(size) => Ok(size),
            None => refuse(
                Status::Busy,
                "the size of the file is being found out; try again",
            ),
        }
    }

    /// The size of a file whose servers run nothing of it: what they have counts.
    pub fn size_at_rest(&self, file: FileId) -> Result<SizeIs, Refused> {
        let found = self.file(file)?;
        self.gather_once(&found)?;
        self.size_now(file)
    }

    /// The size of a file that is handed over, whose servers run nothing of it: what they have is counted even if
    /// the clients that wrote it did not come to say so.
    pub fn size_to_hand_over(&self, file: FileId) -> Result<SizeIs, Refused> {
        let file = self.file(file)?;
        self.settle_doubt(&file)?;
        let servers: Vec<ServerId> = {
            let mut state = file.lock();
            // Nothing new is given away from now on; what is held ends by itself.
            state.handing_over = Some(Instant::now());
            if state.locks.held().next().is_some() {
                return refuse(
                    Status::Busy,
                    "locks of the file are held; another server can own it when they are free",
                );
            }
            state.servers.keys().copied().collect()
        };
        let ends = ask_all(&servers, |server| self.cluster.ask_end(server, file.id));
        let mut state = file.lock();
        for end in ends {
            let end = end?;
            if state.sizes.size().is_some_and(|size| end.end > size) {
                self.count_write(&mut state, end.epoch, end.end);
            }
        }
        // Places of appends under way count as well: their bytes may come after the move, and the
        // next owner must not give the places to others.
        if let Some(size) = state.sizes.size() {
            let end = state.appends.next(size);
            if end > size {
                let epoch = state.sizes.epoch();
                self.count_write(&mut state, epoch, end);
            }
        }
        match state.size_is() {
            Some(size) => {
                state.handing_over = Some(Instant::now());
                Ok(size)
            }
            None => refuse(
                Status::Busy,
                "the size of the file is being found out; try again",
            ),
        }
    }
}

/// An offset that fits into a file.
pub(super) fn demand_offset(name: &str, offset: u64) -> Result<(), Refused> {
    if offset <= falls::MAX_OFFSET {
        return Ok(());
    }
    refuse(
        Status::InvalidArgument,
        format!("{name} is {offset}; at most {}", falls::MAX_OFFSET),
    )
}

/// The refusal of a write of another epoch.
pub(super) fn stale<T>(size: SizeIs) -> Result<T, Refused> {
    let text = format!(
        "the file was truncated; epoch {} has begun, repeat the write in it",
        size.epoch
    );
    Err(Refused::with_detail(Status::StaleEpoch, text, &size))
}
