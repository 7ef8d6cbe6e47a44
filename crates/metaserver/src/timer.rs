//! Things to do later: one thread that waits for the earliest of them.
//!
//! Tasks are short; what takes long gets a thread of its own. When the timer stops, what is left is
//! dropped without being done.

use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

type Task = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Tasks {
    /// By time, and by number among those of one time.
    queue: BTreeMap<(Instant, u64), Task>,
    next: u64,
    is_over: bool,
}

#[derive(Default)]
struct Shared {
    tasks: Mutex<Tasks>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Tasks> {
        self.tasks.lock()
    }
}

/// Runs tasks at their time.
pub(crate) struct Timer {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Timer {
    /// Starts the thread.
    pub(crate) fn start() -> std::io::Result<Timer> {
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("timer".into())
            .spawn(move || run(&theirs))?;
        Ok(Timer {
            shared,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Runs a task after a while, unless the timer is stopped before.
    pub(crate) fn after(&self, delay: Duration, task: impl FnOnce() + Send + 'static) {
        let mut tasks = self.shared.lock();
        if tasks.is_over {
            return;
        }
        let key = (Instant::now() + delay, tasks.next);
        tasks.next += 1;
        tasks.queue.insert(key, Box::new(task));
        // All, since those who pause wait for the same.
        self.shared.changed.notify_all();
    }

    /// Waits for that long; returns early, and false, when the timer is stopped.
    pub(crate) fn pause(&self, time: Duration) -> bool {
        let mut tasks = self.shared.lock();
        let changed = &self.shared.changed;
        changed.wait_while_for(&mut tasks, |tasks| !tasks.is_over, time);
        !tasks.is_over
    }

    /// Drops all tasks and ends the thread.
    pub(crate) fn stop(&self) {
        let left = {
            let mut tasks = self.shared.lock();
            tasks.is_over = true;
            std::mem::take(&mut tasks.queue)
        };
        drop(left);
        self.shared.changed.notify_all();
        let thread = self.thread.lock().take();
        if let Some(thread) = thread.filter(|t| t.thread().id() != thread::current().id()) {
            let _ = thread.join();
        }
    }
}

fn run(shared: &Shared) {
    let mut tasks = shared.lock();
    while !tasks.is_over {
        let now = Instant::now();
        let first = tasks.queue.keys().next().copied();
        match first {
            Some(key) if key.0 <= now => {
                let task = tasks.queue.remove(&key);
                drop(tasks);
                if let Some(task) = task {
                    // A task that panics is a bug, but the others are still to be done.
                    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(task));
                }
                tasks = shared.lock();
            }
            Some(key) => drop(shared.changed.wait_for(&mut tasks, key.0 - now)),
            None => shared.changed.wait(&mut tasks),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn tasks_run_in_the_order_of_their_times_and_not_after_the_end() {
        let timer = Timer::start().unwrap();
        let (sender, receiver) = channel();
        let send = |delay_ms, word: &'static str| {
            let sender = sender.clone();
            let delay = Duration::from_millis(delay_ms);
            timer.after(delay, move || sender.send(word).unwrap());
        };
        timer.after(Duration::ZERO, || panic!("a bug of a task"));
        send(60_000, "never");
        send(40, "second");
        send(1, "first");
        assert_eq!(receiver.recv(), Ok("first"));
        assert_eq!(receiver.recv(), Ok("second"));
        assert!(timer.pause(Duration::from_millis(1)));
        timer.stop();
        assert!(!timer.pause(Duration::from_secs(60)));
        send(0, "late");
        drop(sender);
        assert!(receiver.recv().is_err());
    }

    #[test]
    fn earlier_task_is_noticed_while_somebody_pauses() {
        let timer = Timer::start().unwrap();
        timer.after(Duration::from_secs(60), || {});
        let (sender, receiver) = channel();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| timer.pause(Duration::from_secs(60)));
            }
            for _ in 0..50 {
                let sender = sender.clone();
                timer.after(Duration::ZERO, move || sender.send(()).unwrap());
                receiver.recv_timeout(Duration::from_secs(20)).unwrap();
            }
            timer.stop();
        });
    }
}
