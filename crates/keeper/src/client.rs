//! What a server has of its keeper: it starts one where there is none, and another one when that dies.
//!
//! ```text
//!   connect   take what is kept, of a keeper that is there or of a new one, which has nothing
//!   keep      the keeper has it when this returns, or there is no keeper at the moment and the next one gets it
//!   repair    the connection ends -> another keeper -> everything goes to it, once
//!   end       nothing is left to keep
//! ```
//!
//! A server without a keeper goes on: nobody's bytes are lost by that, unless the server dies before the next keeper has
//! everything. [`Keeper::is_away`] tells.
//!
//! The keeper is no child that could be ended with its parent's group: it has a session of its own. It is a child as far as
//! the kernel wants it to be waited for, which this does.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::Shutdown;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::contact::{Contact, KeptDescriptor};
use crate::{Error, packet};

/// How long a keeper may take to start.
const START: Duration = Duration::from_secs(10);
/// Between two tries to start another keeper, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// How long a server waits for the end of the process before it, which is being killed, unless told otherwise.
pub const HELD_WAIT: Duration = Duration::from_secs(10);

/// How a server finds its keeper, or starts it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeeperOptions {
    /// Where its socket is: a directory of this server alone.
    pub dir: PathBuf,
    /// The program that becomes a keeper with [`KeeperOptions::arguments`]; without one only a keeper that is there is used.
    pub program: Option<PathBuf>,
    /// What it is given before `--dir DIR --patience SECONDS`.
    pub arguments: Vec<String>,
    /// How long it waits for the next start of the server.
    pub patience: Duration,
    /// How long the server waits for the process of the one before to be over.
    pub held_wait: Duration,
}

impl KeeperOptions {
    /// A keeper that an earlier server has left in a directory; none is started.
    pub fn one_in(dir: PathBuf) -> KeeperOptions {
        KeeperOptions {
            dir,
            program: None,
            arguments: Vec::new(),
            patience: crate::PATIENCE,
            held_wait: HELD_WAIT,
        }
    }
}

#[derive(Debug)]
struct State {
    /// `None` while there is no keeper.
    contact: Option<Arc<Contact>>,
    kept: BTreeMap<String, OwnedFd>,
    /// Keepers that this process has started and that may have ended since.
    children: Vec<Child>,
    is_ending: bool,
}

#[derive(Debug)]
struct SharedState {
    options: KeeperOptions,
    state: Mutex<State>,
    ending: Condvar,
}

/// The keeper of a server.
#[derive(Debug)]
pub struct Keeper {
    shared: Arc<SharedState>,
    thread: Option<JoinHandle<()>>,
}

impl store::Keeping for Keeper {
    fn keep(&self, name: &str, descriptor: BorrowedFd<'_>) -> io::Result<()> {
        Keeper::keep(self, name, descriptor)
    }

    fn forget(&self, name: &str) {
        Keeper::forget(self, name);
    }
}

impl Keeper {
    /// Has a keeper serve this process, and takes what an earlier server has left with it.
    pub fn connect(options: KeeperOptions) -> Result<(Keeper, Vec<KeptDescriptor>), Error> {
        let mut children = Vec::new();
        let (contact, found) = reach(&options, &mut children)?;
        let mut kept = BTreeMap::new();
        for KeptDescriptor { name, descriptor } in &found {
            let again = descriptor.try_clone().map_err(|e| contact.failed(e))?;
            kept.insert(name.clone(), again);
        }
        let shared = Arc::new(SharedState {
            options,
            state: Mutex::new(State {
                contact: Some(Arc::new(contact)),
                kept,
                children,
                is_ending: false,
            }),
            ending: Condvar::new(),
        });
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("keeper".into())
            .spawn(move || theirs.watch())
            .map_err(|e| Error::Start(shared.options.dir.clone(), e.to_string()))?;
        let keeper = Keeper {
            shared,
            thread: Some(thread),
        };
        Ok((keeper, found))
    }

    /// Keeps a descriptor under a name, in place of what has that name. If there is no keeper at the moment, the next one gets it.
    pub fn keep(&self, name: &str, descriptor: BorrowedFd<'_>) -> io::Result<()> {
        let again = descriptor.try_clone_to_owned()?;
        let mut state = self.shared.state.lock();
        let told = match &state.contact {
            Some(contact) => tell(contact, name, descriptor),
            None => Ok(()),
        };
        match told {
            Ok(()) => {}
            // Refused: it is there and does not have it.
            Err(error @ Error::Refused(..)) => return Err(io::Error::other(error)),
            // The thread that watches it finds the same.
            Err(error) => {
                tracing::warn!(%error, "the keeper does not answer");
                self.shared.lose(&mut state);
            }
        }
        state.kept.insert(name.to_owned(), again);
        Ok(())
    }

    /// Forgets a name.
    pub fn forget(&self, name: &str) {
        let mut state = self.shared.state.lock();
        if state.kept.remove(name).is_some()
            && let Some(contact) = &state.contact
            && contact.say(packet::FORGET, name, None).is_err()
        {
            self.shared.lose(&mut state);
        }
    }

    /// Forgets everything.
    pub fn forget_all(&self) {
        let names: Vec<String> = self.shared.state.lock().kept.keys().cloned().collect();
        for name in names {
            self.forget(&name);
        }
    }

    /// Whether there is no keeper at the moment.
    pub fn is_away(&self) -> bool {
        self.shared.state.lock().contact.is_none()
    }

    /// Nothing is left to keep: the keeper ends.
    pub fn end(&self) {
        let mut state = self.shared.state.lock();
        state.is_ending = true;
        state.kept.clear();
        if let Some(contact) = state.contact.take() {
            if contact.ask(packet::END, packet::DONE).is_ok() {
                contact.wait_for_end();
            }
            // Lets the thread go that watches it.
            let _ = rustix::net::shutdown(contact.socket(), Shutdown::Both);
        }
        for mut child in state.children.drain(..) {
            let _ = child.wait();
        }
        self.shared.ending.notify_all();
    }
}

impl Drop for Keeper {
    /// Without [`Keeper::end`] the keeper stays, for the next server.
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.is_ending = true;
        if let Some(contact) = state.contact.take() {
            let _ = rustix::net::shutdown(contact.socket(), Shutdown::Both);
        }
        drop(state);
        self.shared.ending.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn tell(contact: &Contact, name: &str, descriptor: BorrowedFd<'_>) -> Result<(), Error> {
    contact.say(packet::KEEP, name, Some(descriptor))?;
    contact.hear(packet::DONE).map(|_| ())
}

impl SharedState {
    /// The keeper is not there any more, or is of no use.
    fn lose(&self, state: &mut State) {
        if let Some(contact) = state.contact.take() {
            // The thread that watches it goes on to find another.
            let _ = rustix::net::shutdown(contact.socket(), Shutdown::Both);
        }
    }

    /// Waits for the end of the keeper, and finds another one, until the server ends.
    fn watch(&self) {
        loop {
            let contact = self.state.lock().contact.clone();
            if let Some(contact) = contact {
                wait_for_hangup(&contact);
            }
            let mut state = self.state.lock();
            if state.is_ending {
                return;
            }
            state.contact = None;
            drop(state);
            tracing::warn!(
                dir = %self.options.dir.display(),
                "the keeper is gone; until there is another one, a death of this server loses what is in its memory"
            );
            if !self.repair() {
                return;
            }
            tracing::info!(dir = %self.options.dir.display(), "another keeper has everything");
        }
    }

    /// Finds another keeper and gives it everything; `false` if the server ends.
    fn repair(&self) -> bool {
        let mut pause = FIRST_PAUSE;
        loop {
            let mut children = std::mem::take(&mut self.state.lock().children);
            let reached = reach(&self.options, &mut children);
            let mut state = self.state.lock();
            // Those that are over are waited for by this.
            children.retain_mut(|child| !matches!(child.try_wait(), Ok(Some(_))));
            state.children.append(&mut children);
            if state.is_ending {
                return false;
            }
            let given = reached.and_then(|(contact, _)| {
                for (name, descriptor) in &state.kept {
                    use std::os::fd::AsFd;
                    tell(&contact, name, descriptor.as_fd())?;
                }
                Ok(contact)
            });
            match given {
                Ok(contact) => {
                    state.contact = Some(Arc::new(contact));
                    return true;
                }
                Err(error) => tracing::warn!(%error, "no keeper"),
            }
            self.ending.wait_for(&mut state, pause);
            if state.is_ending {
                return false;
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

fn wait_for_hangup(contact: &Contact) {
    loop {
        let socket = contact.socket();
        let mut fds = [PollFd::new(&socket, PollFlags::empty())];
        match poll(&mut fds, None) {
            Ok(n) if n > 0 => return,
            _ => {}
        }
    }
}

/// The keeper that is there, or a new one, and what it keeps.
fn reach(
    options: &KeeperOptions,
    children: &mut Vec<Child>,
) -> Result<(Contact, Vec<KeptDescriptor>), Error> {
    let deadline = Instant::now() + options.held_wait;
    let mut starts = 0;
    loop {
        let taken = Contact::to(&options.dir).and_then(|contact| {
            let kept = contact.take()?;
            Ok((contact, kept))
        });
        match taken {
            Err(Error::None(_)) if starts < 3 => {
                starts += 1;
                start(options, children)?;
            }
            Err(Error::Held(_, pid)) if Instant::now() < deadline => {
                wait_for_process(pid, deadline);
            }
            other => return other,
        }
    }
}

/// Waits until a process is over.
fn wait_for_process(pid: u32, deadline: Instant) {
    let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let process = number.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    let left = deadline.saturating_duration_since(Instant::now());
    if let Some(process) = process {
        let pause = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(left.subsec_nanos()),
        };
        let _ = poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&pause));
    }
}

/// Starts a keeper; it listens when this returns, or another one does.
fn start(options: &KeeperOptions, children: &mut Vec<Child>) -> Result<(), Error> {
    let failed = |why: String| Error::Start(options.dir.clone(), why);
    let Some(program) = &options.program else {
        return Err(failed("this process starts none".into()));
    };
    let mut child = Command::new(program)
        .args(&options.arguments)
        .arg("--dir")
        .arg(&options.dir)
        .arg("--patience")
        .arg(options.patience.as_secs().to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        // It outlives the process that reads what this one says.
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| failed(format!("{}: {e}", program.display())))?;
    let stdout = child.stdout.take();
    children.push(child);
    let Some(stdout) = stdout else {
        return Err(failed("no pipe".into()));
    };
    let mut fds = [PollFd::new(&stdout, PollFlags::IN)];
    let patience = Timespec {
        tv_sec: i64::try_from(START.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: 0,
    };
    match poll(&mut fds, Some(&patience)) {
        Ok(n) if n > 0 => {}
        _ => return Err(failed(format!("it says nothing for {} s", START.as_secs()))),
    }
    let mut line = String::new();
    BufReader::new(stdout)
        .read_line(&mut line)
        .map_err(|e| failed(e.to_string()))?;
    match line.trim_end() {
        crate::READY => Ok(()),
        "" => Err(failed("it ended at once".into())),
        said => match said.strip_prefix(crate::FAILED) {
            Some(why) => Err(failed(why.to_owned())),
            None => Err(failed(format!("it says {said:?}"))),
        },
    }
}
