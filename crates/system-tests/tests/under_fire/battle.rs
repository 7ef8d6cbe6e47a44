//! Movers: threads of the test that move the files of a ground from layout to layout, pause, limit and cancel
//! moves, and rename files meanwhile.
//!
//! What they ask for may fail while something is dead; then it is asked for again. Two of them may want to move
//! the same file, and one of them is told so.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use client::{Client, Error, MoveOptions, MoveState, OpenOptions, Relayout, Status};
use system_tests::random_layout::{of_array, of_bytes};
use system_tests::{Random, pause};

use crate::Ground;

/// What was done, and whether to go on.
#[derive(Debug, Default)]
pub(crate) struct Orders {
    pub(crate) is_over: AtomicBool,
    /// Every move is to be cancelled.
    pub(crate) cancels: AtomicBool,
    pub(crate) begun: AtomicU64,
    pub(crate) done: AtomicU64,
    pub(crate) cancelled: AtomicU64,
    pub(crate) paused: AtomicU64,
    pub(crate) unlinked: AtomicU64,
    renames: Mutex<()>,
}

impl Orders {
    /// Moves that are over.
    pub(crate) fn over(&self) -> u64 {
        self.done.load(Ordering::Relaxed) + self.cancelled.load(Ordering::Relaxed)
    }

    /// Everybody ends when this is dropped.
    pub(crate) fn ending(&self) -> Ending<'_> {
        Ending(self)
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }
}

/// See [`Orders::ending`].
pub(crate) struct Ending<'a>(&'a Orders);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Relaxed);
    }
}

pub(crate) struct Mover<'a> {
    pub(crate) client: Client,
    pub(crate) ground: &'a Ground,
    pub(crate) servers: u64,
    pub(crate) random: Random,
    pub(crate) orders: &'a Orders,
    /// Whether servers or the metadata manager may be dead.
    pub(crate) is_deadly: bool,
}

/// Longest time without any progress of a move of these small files, dead servers included.
const LIMIT: Duration = Duration::from_secs(60);

fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl Mover<'_> {
    /// Moves files until told to stop.
    pub(crate) fn run(&mut self) {
        while !self.orders.is_over() {
            match self.random.below(12) {
                0 => self.unlink_while_moving(),
                _ => self.one(),
            }
        }
    }

    /// Small windows, so that small files move in many rounds; the log becomes long.
    fn options(&mut self, path: &str) -> MoveOptions {
        let least = if path.ends_with("/log") { 14 } else { 11 };
        MoveOptions {
            limit_bytes: match self.random.below(6) {
                0 => self.random.within(200_000..5_000_000),
                _ => 0,
            },
            window_bytes: match self.random.below(3) {
                0 => 0,
                _ => 1 << self.random.within(least..least + 6),
            },
            lanes: self.random.below(6),
            in_place: self.random.below(3) == 0,
        }
    }

    /// A random layout for a file.
    fn layout(&mut self, array: Option<(u64, u64)>) -> String {
        match array {
            Some((rows, columns)) => of_array(&mut self.random, self.servers, rows, columns),
            None => of_bytes(&mut self.random, self.servers),
        }
    }

    /// What may fail because others move the file, or something is dead.
    fn may_fail(&self, error: &Error) -> bool {
        let is_taken = matches!(error.status(), Status::Busy | Status::NotFound);
        is_taken || self.is_of_death(error)
    }

    /// Whether an error is what somebody is told whose server or manager is dead, and nothing else: bytes that are
    /// corrupt, wrong arguments or bugs of a server are errors while things die too.
    fn is_of_death(&self, error: &Error) -> bool {
        let is_of_death = |status: Status| {
            matches!(
                status,
                Status::Unreachable | Status::TimedOut | Status::Busy | Status::ShuttingDown
            )
        };
        self.is_deadly
            && match error {
                Error::Partial { failures, .. } => failures.iter().all(|f| is_of_death(f.status)),
                error => is_of_death(error.status()),
            }
    }

    /// Starts a move of some file; nothing if it cannot be started now.
    fn begin(&mut self) -> Option<(String, Relayout)> {
        let paths = self.ground.paths();
        let (path, array) = paths[self.random.index(paths.len())].clone();
        let layout = self.layout(array);
        let options = self.options(&path);
        match self.client.relayout_with(&path, &layout, &options) {
            Ok(moving) => {
                add(&self.orders.begun);
                Some((path, moving))
            }
            Err(error) => {
                assert!(self.may_fail(&error), "{path} to {layout}: {error}");
                pause(Duration::from_millis(3));
                None
            }
        }
    }

    /// Moves one file, and waits until it is there or back again.
    fn one(&mut self) {
        let Some((path, mut moving)) = self.begin() else {
            return;
        };
        let what = match self.orders.cancels.load(Ordering::Relaxed) {
            true => 0,
            false => self.random.below(10),
        };
        if what < 3 {
            pause(Duration::from_micros(self.random.below(20_000)));
        }
        let said = match what {
            0 => moving.cancel(),
            1 => {
                add(&self.orders.paused);
                let paused = moving.pause();
                pause(Duration::from_micros(self.random.below(20_000)));
                paused.and_then(|_| moving.resume())
            }
            2 => moving.limit(self.random.within(500_000..20_000_000)),
            3 => {
                self.rename(&path);
                moving.progress()
            }
            _ => moving.progress(),
        };
        if let Err(error) = said {
            let is_over = error.status() == Status::InvalidArgument;
            assert!(is_over || self.may_fail(&error), "{path}: {error}");
        }
        self.follow(&path, moving);
    }

    /// There and back: workers have it open, and movers know it by its first name. One mover at a time, so nothing but
    /// a death keeps a file from getting its name.
    fn rename(&self, path: &str) {
        let _alone = self.orders.renames.lock().unwrap();
        let other = format!("{path}-renamed");
        for (from, to) in [(path, &other[..]), (&other[..], path)] {
            let end = Instant::now() + LIMIT;
            while let Err(error) = self.client.rename(from, to) {
                let is_done = matches!(error.status(), Status::NotFound | Status::Exists)
                    || matches!(error, Error::Uncertain { .. });
                if is_done && self.is_deadly {
                    break;
                }
                assert!(
                    self.is_of_death(&error) && Instant::now() < end,
                    "{from}: {error}"
                );
                pause(Duration::from_millis(10));
            }
        }
    }

    /// A file that is removed while it moves takes nothing with it.
    fn unlink_while_moving(&mut self) {
        let path = format!("{}/gone-{:x}", self.ground.dir, self.random.draw());
        let new = OpenOptions::new().read().write().exclusive();
        let bytes = self.random.bytes(30_000);
        let layouts = [self.layout(None), self.layout(None)];
        let begun = (|| {
            let file = self.client.open(&path, &new.layout(&layouts[0]))?;
            file.write_at(0, &bytes)?;
            let options = self.options(&path);
            let moving = self.client.relayout_with(&path, &layouts[1], &options)?;
            self.client.unlink(&path)?;
            // Whoever has it open still reads it.
            let mut found = vec![0; bytes.len()];
            let n = file.read_at(0, &mut found)?;
            Ok((moving, n, found, file))
        })();
        match begun {
            Ok((mut moving, n, found, file)) => {
                let is_same = n == bytes.len() && found == bytes;
                assert!(is_same, "{path}: read after unlink");
                if let Err(error) = file.close() {
                    assert!(self.is_of_death(&error), "{path}: {error}");
                }
                add(&self.orders.unlinked);
                let end = Instant::now() + LIMIT;
                // It ends, or is forgotten.
                loop {
                    match moving.progress() {
                        Ok(now) if now.state.is_over() => break,
                        Ok(now) => assert!(
                            Instant::now() < end,
                            "{path}: moves without a file: {now:?}"
                        ),
                        Err(error) if error.status() == Status::NotFound => break,
                        Err(error) => assert!(
                            self.is_of_death(&error) && Instant::now() < end,
                            "{path}: {error}"
                        ),
                    }
                    pause(Duration::from_millis(2));
                }
            }
            Err(error) => {
                let error: Error = error;
                assert!(self.may_fail(&error), "{path}: {error}");
                let _ = self.client.unlink(&path);
            }
        }
    }

    /// Waits until a move is over.
    fn follow(&mut self, path: &str, mut moving: Relayout) {
        let mut end = Instant::now() + LIMIT;
        let mut wait = Duration::from_micros(200);
        let mut moved = 0;
        loop {
            let said = moving.progress();
            if let Ok(now) = &said
                && std::mem::replace(&mut moved, now.moved_bytes) != now.moved_bytes
            {
                end = Instant::now() + LIMIT;
            }
            match said {
                Ok(now) => match now.state {
                    MoveState::Done => return add(&self.orders.done),
                    MoveState::Cancelled => return add(&self.orders.cancelled),
                    MoveState::Failed => {
                        // A server that stayed away for long when the manager came back; no other reason.
                        let is_of_death = self.is_deadly && now.failure.ends_with("is away");
                        assert!(is_of_death, "{path}: {}", now.failure);
                        return;
                    }
                    MoveState::Paused => {
                        // Of the other mover, or a resume that was lost with the manager.
                        if let Err(error) = moving.resume() {
                            // Or it was resumed meanwhile and is over.
                            let is_over = error.status() == Status::InvalidArgument;
                            assert!(is_over || self.may_fail(&error), "{path}: {error}");
                        }
                    }
                    _ => assert!(Instant::now() < end, "{path}: does not end: {now:?}"),
                },
                Err(error) => {
                    assert!(self.is_deadly && self.may_fail(&error), "{path}: {error}");
                    if error.status() == Status::NotFound {
                        // Over before the metadata manager was killed.
                        return add(&self.orders.done);
                    }
                    assert!(Instant::now() < end, "{path}: {error}");
                }
            }
            pause(wait);
            wait = (wait * 2).min(Duration::from_millis(20));
        }
    }
}
