//! Group commit: one thread changes the catalogue and runs everything that waits in one transaction.
//!
//! Threads of connections hand it work and wait until that is durable. While one transaction is
//! being made durable the next one gathers, so the number of commits follows the disk and not
//! the number of requests.
//!
//! Nothing is parsed here. Work that meets a layout text whose meaning it does not have changes nothing; whoever
//! asked finds the meaning out in its own thread and hands the work in again.
//!
//! When the store fails, whoever waits and whoever comes later is told so. A panic in some work is a bug that
//! concerns whoever asked for it alone: what the work has changed is dropped, he is refused, and the other work of the
//! transaction is committed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::thread::{self, JoinHandle};

use meta::MetaError;
use meta::catalogue::{Batch, Catalogue, Panicked, Prepared, Reader, Snapshot, Wanted};
use wire::Status;
use wire::message::Refusal;

/// Most operations of one transaction; bounds how long the first of them waits.
const MAX_OPERATIONS: usize = 1024;

/// How often work is run to the point where it wants to know what a text means: the hints above a file may name
/// one after the other.
const MOST_ATTEMPTS: usize = 64;

/// Why something was not done, as it goes to whoever asked.
#[derive(Clone, Debug)]
pub(crate) struct Refused(pub(crate) Status, pub(crate) Refusal);

impl Refused {
    pub(crate) fn new(status: Status, text: impl Into<String>) -> Self {
        Refused(status, Refusal::new(text))
    }
}

impl From<MetaError> for Refused {
    fn from(error: MetaError) -> Self {
        Refused::new(error.status(), error.to_string())
    }
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.1.text)
    }
}

type Work = Box<dyn FnOnce(&mut Batch<'_>) + Send>;

/// What became of some work.
type Outcome = Result<Option<Wanted>, Refused>;

struct Job {
    work: Work,
    done: SyncSender<Outcome>,
}

/// What the thread has counted.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) operations: AtomicU64,
    pub(crate) commits: AtomicU64,
    pub(crate) most_operations: AtomicU64,
    pub(crate) handles: AtomicU64,
    pub(crate) recovering: AtomicU64,
    /// Given, used, overridden and ignored.
    pub(crate) hints: [AtomicU64; 4],
}

struct Shared {
    failed: OnceLock<Refused>,
    /// Called once when the store has failed: only a new start knows what is durable.
    on_failure: OnceLock<Box<dyn Fn() + Send + Sync>>,
    counts: Counts,
}

/// The thread that changes the catalogue, and the way to read it.
pub(crate) struct Committer {
    jobs: Mutex<Option<Sender<Job>>>,
    reader: RwLock<Option<Reader>>,
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Committer {
    /// Starts the thread.
    pub(crate) fn start(catalogue: Catalogue) -> std::io::Result<Committer> {
        let (sender, receiver) = channel();
        let shared = Arc::new(Shared {
            failed: OnceLock::new(),
            on_failure: OnceLock::new(),
            counts: Counts::default(),
        });
        shared
            .counts
            .recovering
            .store(u64::from(catalogue.is_recovering()), Ordering::Relaxed);
        let theirs = Arc::clone(&shared);
        let reader = catalogue.reader();
        let thread = thread::Builder::new()
            .name("commit".into())
            .spawn(move || commit(catalogue, &receiver, &theirs))?;
        Ok(Committer {
            jobs: Mutex::new(Some(sender)),
            reader: RwLock::new(Some(reader)),
            shared,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Says whom to call when the store fails.
    pub(crate) fn when_failed(&self, call: impl Fn() + Send + Sync + 'static) {
        let _ = self.shared.on_failure.set(Box::new(call));
    }

    /// Why the store failed, if it has.
    pub(crate) fn failure(&self) -> Option<String> {
        self.shared.failed.get().map(ToString::to_string)
    }

    /// Runs work in the next transaction; returns when it is durable. Work that wants to know what a text means is
    /// run again with that.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        work: impl Fn(&mut Batch<'_>) -> Result<T, Refused> + Send + Sync + 'static,
    ) -> Result<T, Refused> {
        let work = Arc::new(work);
        let mut prepared = Arc::new(Prepared::default());
        for _ in 0..MOST_ATTEMPTS {
            let result = Arc::new(Mutex::new(None));
            let (done, wait) = sync_channel(1);
            let slot = Arc::clone(&result);
            let (work, known) = (Arc::clone(&work), Arc::clone(&prepared));
            let job = Job {
                work: Box::new(move |batch| {
                    batch.prepare(known);
                    *lock(&slot) = Some(work(batch));
                }),
                done,
            };
            lock(&self.jobs)
                .as_ref()
                .and_then(|jobs| jobs.send(job).ok())
                .ok_or_else(stopping)?;
            let wanted = wait.recv().unwrap_or_else(|_| Err(stopping()))?;
            let value = lock(&result).take();
            match (wanted, value) {
                (Some(wanted), Some(Err(_))) => {
                    let find_out = || Arc::make_mut(&mut prepared).find_out(wanted);
                    catch_unwind(AssertUnwindSafe(find_out)).map_err(|_| bug())?;
                }
                (_, value) => return value.unwrap_or_else(|| Err(stopping())),
            }
        }
        Err(Refused::new(
            Status::Busy,
            "servers come and go while the layout is being found; try again",
        ))
    }

    /// What is durable now.
    pub(crate) fn snapshot(&self) -> Result<Snapshot, Refused> {
        if let Some(refused) = self.shared.failed.get() {
            return Err(refused.clone());
        }
        let reader = self.reader.read().unwrap_or_else(PoisonError::into_inner);
        Ok(reader.as_ref().ok_or_else(stopping)?.snapshot()?)
    }

    /// What was counted.
    pub(crate) fn counts(&self) -> &Counts {
        &self.shared.counts
    }

    /// Finishes what waits, takes nothing more, and closes the catalogue.
    pub(crate) fn stop(&self) {
        drop(lock(&self.jobs).take());
        if let Some(thread) = lock(&self.thread).take() {
            // It catches the panics of its work; there is nobody to tell of another.
            let _ = thread.join();
        }
        *self.reader.write().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

fn bug() -> Refused {
    Refused::new(
        Status::Internal,
        "the metadata manager has a bug that this request has met; nothing of it was done",
    )
}

fn stopping() -> Refused {
    Refused::new(
        Status::ShuttingDown,
        "the metadata manager is shutting down",
    )
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn commit(mut catalogue: Catalogue, jobs: &Receiver<Job>, shared: &Shared) {
    while let Ok(first) = jobs.recv() {
        let waiting = std::iter::once(first).chain(jobs.try_iter());
        let (work, done): (Vec<_>, Vec<_>) = waiting
            .take(MAX_OPERATIONS)
            .map(|job| (job.work, job.done))
            .unzip();
        let mut outcomes = Vec::new();
        if shared.failed.get().is_none() {
            outcomes = transact(&mut catalogue, work, shared);
        }
        if let Some(refused) = shared.failed.get() {
            outcomes = vec![Err(refused.clone()); done.len()];
        }
        let counts = &shared.counts;
        counts
            .operations
            .fetch_add(done.len() as u64, Ordering::Relaxed);
        counts
            .most_operations
            .fetch_max(done.len() as u64, Ordering::Relaxed);
        counts.commits.store(catalogue.commits(), Ordering::Relaxed);
        counts
            .handles
            .store(catalogue.handle_count() as u64, Ordering::Relaxed);
        counts
            .recovering
            .store(u64::from(catalogue.is_recovering()), Ordering::Relaxed);
        let hints = catalogue.hint_counts();
        let hints = [hints.given, hints.used, hints.overridden, hints.ignored];
        for (counter, value) in counts.hints.iter().zip(hints) {
            counter.store(value, Ordering::Relaxed);
        }
        for (done, outcome) in done.into_iter().zip(outcomes) {
            // Whoever does not wait any more need not know.
            let _ = done.send(outcome);
        }
    }
}

fn transact(catalogue: &mut Catalogue, work: Vec<Work>, shared: &Shared) -> Vec<Outcome> {
    let one = |batch: &mut Batch<'_>, work: Work| match batch.request(work) {
        Ok(()) => Ok(batch.take_wanted()),
        Err(Panicked) => Err(bug()),
    };
    let run =
        || catalogue.transact(|batch| work.into_iter().map(|work| one(batch, work)).collect());
    let failure = match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(outcomes)) => return outcomes,
        Ok(Err(error)) => Refused::from(error),
        Err(_) => Refused::new(
            Status::Internal,
            "the metadata manager has a bug and stopped changing the catalogue; start it again",
        ),
    };
    let _ = shared.failed.set(failure);
    if let Some(call) = shared.on_failure.get() {
        call();
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::atomic::AtomicBool;

    use meta::catalogue::{Caller, StorageBackend};
    use meta::{ClientId, Time};
    use wire::message::session::Credentials;

    use super::*;

    /// Memory that fails when it is told to.
    #[derive(Clone, Debug, Default)]
    struct Disk {
        content: Arc<Mutex<Vec<u8>>>,
        fails: Arc<AtomicBool>,
    }

    impl StorageBackend for Disk {
        fn len(&self) -> io::Result<u64> {
            Ok(lock(&self.content).len() as u64)
        }

        fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
            let at = offset as usize;
            out.copy_from_slice(&lock(&self.content)[at..at + out.len()]);
            Ok(())
        }

        fn set_len(&self, len: u64) -> io::Result<()> {
            lock(&self.content).resize(len as usize, 0);
            Ok(())
        }

        fn sync_data(&self) -> io::Result<()> {
            match self.fails.load(Ordering::SeqCst) {
                true => Err(io::Error::other("the disk is broken")),
                false => Ok(()),
            }
        }

        fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
            let at = offset as usize;
            lock(&self.content)[at..at + data.len()].copy_from_slice(data);
            Ok(())
        }
    }

    fn mkdir(committer: &Committer, path: &'static str) -> Result<(), Refused> {
        committer.run(move |batch| {
            let caller = Caller {
                client: ClientId(1),
                credentials: &Credentials::ROOT,
                now: Time(0),
            };
            Ok(batch.mkdir(&caller, path, 0o755).map(drop)?)
        })
    }

    fn start(disk: &Disk) -> Committer {
        Committer::start(Catalogue::open_on(disk.clone()).unwrap()).unwrap()
    }

    #[test]
    fn nothing_is_acknowledged_or_shown_after_the_store_has_failed() {
        let disk = Disk::default();
        let committer = start(&disk);
        mkdir(&committer, "/a").unwrap();
        // What the caller got wrong concerns nobody else.
        assert_eq!(mkdir(&committer, "/a").unwrap_err().0, Status::Exists);
        let commits = committer.counts().commits.load(Ordering::Relaxed);
        assert_eq!(commits, 1);
        disk.fails.store(true, Ordering::SeqCst);
        let refused = mkdir(&committer, "/b").unwrap_err();
        assert_eq!(refused.0, Status::Io);
        assert!(refused.1.text.contains("broken"), "{refused}");
        // The disk recovers; what is durable is not known all the same.
        disk.fails.store(false, Ordering::SeqCst);
        assert_eq!(mkdir(&committer, "/c").unwrap_err().0, Status::Io);
        assert_eq!(committer.snapshot().unwrap_err().0, Status::Io);
        committer.stop();
        let committer = start(&disk);
        mkdir(&committer, "/c").unwrap();
        let snapshot = committer.snapshot().unwrap();
        assert!(snapshot.stat(&Credentials::ROOT, "/a").is_ok());
        assert_eq!(snapshot.check().unwrap(), []);
    }

    #[test]
    fn what_comes_while_a_transaction_is_made_shares_the_next_one() {
        let disk = Disk::default();
        let committer = start(&disk);
        let (begun, has_begun) = channel();
        let (gate, is_open) = channel::<()>();
        let job = |work: Work| {
            let (done, wait) = sync_channel(1);
            let jobs = lock(&committer.jobs);
            jobs.as_ref().unwrap().send(Job { work, done }).unwrap();
            wait
        };
        let make = |path: &'static str| -> Work {
            Box::new(move |batch| {
                let caller = Caller {
                    client: ClientId(1),
                    credentials: &Credentials::ROOT,
                    now: Time(0),
                };
                batch.mkdir(&caller, path, 0o755).map(drop).unwrap();
            })
        };
        let inner = make("/first");
        let first = job(Box::new(move |batch| {
            begun.send(()).unwrap();
            is_open.recv().unwrap();
            inner(batch);
        }));
        has_begun.recv().unwrap();
        let others = ["/a", "/b", "/c", "/d", "/e"].map(|path| job(make(path)));
        gate.send(()).unwrap();
        for wait in std::iter::once(first).chain(others) {
            wait.recv().unwrap().unwrap();
        }
        let counts = committer.counts();
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        assert_eq!((of(&counts.commits), of(&counts.operations)), (2, 6));
        assert_eq!(of(&counts.most_operations), 5);
    }

    #[test]
    fn panic_in_some_work_takes_that_work_alone() {
        let disk = Disk::default();
        let committer = start(&disk);
        mkdir(&committer, "/before").unwrap();
        // Half of it is done when it fails, with a handle that nobody would ever close.
        let refused = committer.run(move |batch| -> Result<(), Refused> {
            let caller = Caller {
                client: ClientId(7),
                credentials: &Credentials::ROOT,
                now: Time(0),
            };
            batch.mkdir(&caller, "/half", 0o755)?;
            panic!("a bug")
        });
        assert_eq!(refused.unwrap_err().0, Status::Internal);
        assert_eq!(committer.failure(), None, "the manager goes on");
        mkdir(&committer, "/after").unwrap();
        let snapshot = committer.snapshot().unwrap();
        let is_there = |path| snapshot.stat(&Credentials::ROOT, path).is_ok();
        assert!(is_there("/before") && is_there("/after") && !is_there("/half"));
        assert_eq!(snapshot.check().unwrap(), []);
        committer.stop();
        let committer = start(&disk);
        assert!(committer.snapshot().unwrap().check().unwrap().is_empty());
    }

    #[test]
    fn neighbours_of_a_panic_in_one_transaction_are_committed() {
        let disk = Disk::default();
        let committer = start(&disk);
        let (begun, has_begun) = channel();
        let (gate, is_open) = channel::<()>();
        let job = |work: Work| {
            let (done, wait) = sync_channel(1);
            let jobs = lock(&committer.jobs);
            jobs.as_ref().unwrap().send(Job { work, done }).unwrap();
            wait
        };
        let make = |path: &'static str| {
            move |batch: &mut Batch<'_>| {
                let caller = Caller {
                    client: ClientId(1),
                    credentials: &Credentials::ROOT,
                    now: Time(0),
                };
                batch.mkdir(&caller, path, 0o755).map(drop).unwrap();
            }
        };
        let first = job(Box::new(move |_| {
            begun.send(()).unwrap();
            is_open.recv().unwrap();
        }));
        has_begun.recv().unwrap();
        let before = job(Box::new(make("/a")));
        let bug = job(Box::new(move |batch| {
            make("/half")(batch);
            panic!("a bug");
        }));
        let after = job(Box::new(make("/b")));
        gate.send(()).unwrap();
        for wait in [first, before, after] {
            assert_eq!(wait.recv().unwrap().unwrap(), None);
        }
        assert_eq!(bug.recv().unwrap().unwrap_err().0, Status::Internal);
        let snapshot = committer.snapshot().unwrap();
        let is_there = |path| snapshot.stat(&Credentials::ROOT, path).is_ok();
        assert!(is_there("/a") && is_there("/b") && !is_there("/half"));
        assert_eq!(snapshot.check().unwrap(), []);
    }

    #[test]
    fn stopped_thread_refuses_and_closes_the_catalogue() {
        let disk = Disk::default();
        let committer = start(&disk);
        mkdir(&committer, "/a").unwrap();
        committer.stop();
        let refused = mkdir(&committer, "/b").unwrap_err();
        assert_eq!(refused.0, Status::ShuttingDown);
        assert_eq!(committer.snapshot().unwrap_err().0, Status::ShuttingDown);
        committer.stop();
    }
}
