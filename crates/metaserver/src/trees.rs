//! Clearing what trees have left that were removed, some names at a time, in one thread.
//!
//! The catalogue says what there is to do (`meta::catalogue`), so the next start goes on where this one ends, however it
//! ends. Each step is a commit of some hundred names, which others share and do not wait for. What a file had at servers goes with their reports, as of
//! any file that was removed.

use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use wire::Status;
use wire::message::trees::RemoveTree;

use crate::committer::Refused;
use crate::manager::{Manager, Session, now};

/// After so long what was refused is tried again.
const AGAIN: Duration = Duration::from_secs(1);
/// How often a tree is looked at that changes under the eyes of its remover.
const SURVEYS: usize = 16;

#[derive(Debug, Default)]
struct State {
    has_work: bool,
    is_over: bool,
}

#[derive(Debug, Default)]
struct Sweep {
    state: Mutex<State>,
    changed: Condvar,
}

impl Sweep {
    /// Waits for work; nothing comes any more when this is false.
    fn wait(&self) -> bool {
        let mut state = self.state.lock();
        self.changed
            .wait_while(&mut state, |state| !state.has_work && !state.is_over);
        state.has_work = false;
        !state.is_over
    }

    /// Waits a while; false when it is over.
    fn pause(&self, time: Duration) -> bool {
        let mut state = self.state.lock();
        self.changed
            .wait_while_for(&mut state, |state| !state.is_over, time);
        !state.is_over
    }
}

/// The thread that clears trees.
#[derive(Debug, Default)]
pub(crate) struct TreeSweeper {
    sweep: Arc<Sweep>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl TreeSweeper {
    /// Starts it, with what earlier starts have left.
    pub(crate) fn start(&self, manager: Weak<Manager>) -> std::io::Result<()> {
        let sweep = Arc::clone(&self.sweep);
        self.wake();
        let thread = thread::Builder::new().name("clear trees".into());
        *self.thread.lock() = Some(thread.spawn(move || run(&sweep, &manager))?);
        Ok(())
    }

    /// There is a tree to clear.
    fn wake(&self) {
        self.sweep.state.lock().has_work = true;
        self.sweep.changed.notify_all();
    }

    /// Ends it after the step that runs.
    pub(crate) fn stop(&self) {
        self.sweep.state.lock().is_over = true;
        self.sweep.changed.notify_all();
        let thread = self.thread.lock().take();
        if let Some(thread) = thread.filter(|t| t.thread().id() != thread::current().id()) {
            let _ = thread.join();
        }
    }
}

fn run(sweep: &Sweep, manager: &Weak<Manager>) {
    while sweep.wait() {
        loop {
            let Some(manager) = manager.upgrade() else {
                return;
            };
            let now = now();
            let cleared = manager.committer.run(move |b| Ok(b.clear_trees(now)?));
            drop(manager);
            let pause = match cleared {
                Ok(true) => Duration::ZERO,
                Ok(false) => break,
                Err(Refused(status, refusal)) => {
                    tracing::warn!(%status, why = refusal.text, "a tree that was removed is not cleared yet");
                    AGAIN
                }
            };
            if !sweep.pause(pause) {
                return;
            }
        }
    }
}

impl Manager {
    /// Removes a directory with everything below it.
    pub(crate) fn remove_tree(&self, session: &mut Session, r: RemoveTree) -> Result<(), Refused> {
        let mut surveys = SURVEYS;
        loop {
            surveys -= 1;
            let survey = self
                .read(session)?
                .survey_tree(&session.credentials, &r.path);
            let path = r.path.clone();
            // A request that was done when it came before is answered all the same.
            let removed = self.change_once(session, move |b, caller| match &survey {
                Ok(survey) => b.remove_tree(caller, &path, survey),
                Err(error) => Err(error.clone()),
            });
            match removed {
                Err(Refused(Status::Busy, _)) if surveys > 0 => {}
                done => {
                    self.trees.wake();
                    return done;
                }
            }
        }
    }
}
