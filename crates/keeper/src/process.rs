//! The keeper itself.
//!
//! One thread, one `poll`: the listener, those who have connected and said nothing yet, the connection of the server that is
//! served, and the descriptor of its process. A server that is served may close its connection and come again; another process is
//! told who is served, until that one is over.
//!
//! Nothing a peer does stops it for long: sending has a limit of time, and those who say nothing are few.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use lockfile::LockFile;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{AtFlags, Mode, statat};
use rustix::io::Errno;
use rustix::net::{SocketFlags, sockopt};
use rustix::process::{Pid, PidfdFlags, Resource, getrlimit, pidfd_open, setrlimit};

use crate::packet::{self, Packet};

/// How long a keeper waits for the next server, unless told otherwise.
pub const PATIENCE: Duration = Duration::from_secs(600);
/// Between two looks whether its directory is still there, while no server is.
const LOOK: Duration = Duration::from_secs(1);
/// Those who have connected and said nothing yet.
const MOST_NEWCOMERS: usize = 16;
/// How long a peer may take what it is sent.
const SENDING: Duration = Duration::from_secs(10);

/// What the program of a keeper does: leaves the session of the process that started it, keeps, and says on standard output when it
/// listens or why it cannot.
pub fn run(dir: &Path, patience: Duration) -> io::Result<()> {
    // Neither the terminal of a server nor signals to its group are meant for it; one that leads a group already has one
    // of its own. What the server had blocked is not blocked here.
    let _ = rustix::process::setsid();
    let _ = nix::sys::signal::SigSet::empty().thread_set_mask();
    close_inherited();
    let dir = dir.canonicalize()?;
    // No directory is in use because of it.
    std::env::set_current_dir("/")?;
    serve(&dir, patience, || {
        // A process that waits no longer is no reason to end.
        let _ = writeln!(io::stdout(), "{}", crate::READY);
    })
}

/// Closes what it has from the processes before it: their pipes and locks are not to live as long as it does.
fn close_inherited() {
    let Ok(list) = std::fs::read_dir("/proc/self/fd") else {
        return;
    };
    let numbers = list.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    // One of them is the list's own, which is closed by then.
    let numbers: Vec<i32> = numbers.filter(|&number| number > 2).collect();
    for number in numbers {
        let _ = nix::unistd::close(number);
    }
}

/// Keeps what servers give it, until one says that it is to end or none has come for so long. Calls `ready` when it listens.
pub fn serve(dir: &Path, patience: Duration, ready: impl FnOnce()) -> io::Result<()> {
    let lock = LockFile::acquire(&dir.join(crate::LOCK)).map_err(io::Error::other)?;
    let directory = packet::open_directory(dir)?;
    // Of a keeper that was killed: the lock says that there is none.
    match rustix::fs::unlinkat(&directory, crate::SOCKET, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(e) => return Err(e.into()),
    }
    let listener = packet::socket()?;
    // Nobody else may connect between the socket's birth and the change of its mode.
    let before = rustix::process::umask(Mode::from_raw_mode(0o177));
    let bound =
        packet::address(&directory).and_then(|address| Ok(rustix::net::bind(&listener, &address)?));
    rustix::process::umask(before);
    bound?;
    rustix::net::listen(&listener, 64)?;
    let place = Place::of(directory)?;
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
    ready();
    let mut keeping = Keeping {
        kept: BTreeMap::new(),
        served: None,
        newcomers: Vec::new(),
    };
    keeping.run(&listener, &place, patience);
    place.leave();
    drop(lock);
    Ok(())
}

/// Where it listens.
struct Place {
    directory: OwnedFd,
    /// Device and number of its socket.
    socket: (u64, u64),
}

impl Place {
    fn of(directory: OwnedFd) -> io::Result<Place> {
        let socket = Place::found(&directory)?;
        Ok(Place { directory, socket })
    }

    fn found(directory: &OwnedFd) -> io::Result<(u64, u64)> {
        let found = statat(directory, crate::SOCKET, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok((found.st_dev, found.st_ino))
    }

    /// Whether servers find it here.
    fn is_there(&self) -> bool {
        Place::found(&self.directory).is_ok_and(|found| found == self.socket)
    }

    fn leave(&self) {
        if self.is_there() {
            let _ = rustix::fs::unlinkat(&self.directory, crate::SOCKET, AtFlags::empty());
        }
    }
}

/// A process at the other end of a connection.
struct Peer {
    connection: OwnedFd,
    process: OwnedFd,
    pid: u32,
}

/// The process that is served.
struct ServedProcess {
    connection: Option<OwnedFd>,
    process: OwnedFd,
    pid: u32,
}

/// What is to be done after a packet.
enum Next {
    Stay,
    Drop,
    End,
}

struct Keeping {
    kept: BTreeMap<String, OwnedFd>,
    served: Option<ServedProcess>,
    newcomers: Vec<Peer>,
}

impl Keeping {
    fn run(&mut self, listener: &OwnedFd, place: &Place, patience: Duration) {
        let mut alone_since = Instant::now();
        loop {
            if self.served.is_some() {
                alone_since = Instant::now();
            } else if alone_since.elapsed() >= patience || !place.is_there() {
                return;
            }
            let pause = self
                .served
                .is_none()
                .then(|| LOOK.min(patience.saturating_sub(alone_since.elapsed())));
            let ready = self.wait(listener, pause);
            // First the packets of the one that is served: what it said before it died counts.
            if ready.connection && self.hear_served() {
                return;
            }
            if ready.process {
                // Packets that came before its end are read; there are no others.
                while self.served.as_ref().is_some_and(|s| s.connection.is_some()) {
                    if self.hear_served() {
                        return;
                    }
                }
                self.served = None;
                continue;
            }
            for index in ready.newcomers.into_iter().rev() {
                let peer = self.newcomers.remove(index);
                if self.hear_newcomer(peer) {
                    return;
                }
            }
            if ready.listener {
                self.accept(listener);
            }
        }
    }

    fn wait(&self, listener: &OwnedFd, pause: Option<Duration>) -> Ready {
        let mut fds = vec![PollFd::new(listener, PollFlags::IN)];
        for peer in &self.newcomers {
            fds.push(PollFd::new(&peer.connection, PollFlags::IN));
        }
        let newcomers = fds.len();
        let (mut process_at, mut connection_at) = (None, None);
        if let Some(served) = &self.served {
            process_at = Some(fds.len());
            fds.push(PollFd::new(&served.process, PollFlags::IN));
            if let Some(connection) = &served.connection {
                connection_at = Some(fds.len());
                fds.push(PollFd::new(connection, PollFlags::IN));
            }
        }
        let pause = pause.map(|pause| Timespec {
            tv_sec: i64::try_from(pause.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(pause.subsec_nanos()),
        });
        if poll(&mut fds, pause.as_ref()).is_err() {
            return Ready::default();
        }
        let is_ready = |at: usize| !fds[at].revents().is_empty();
        Ready {
            listener: is_ready(0),
            newcomers: (1..newcomers)
                .filter(|&at| is_ready(at))
                .map(|at| at - 1)
                .collect(),
            process: process_at.is_some_and(is_ready),
            connection: connection_at.is_some_and(is_ready),
        }
    }

    fn accept(&mut self, listener: &OwnedFd) {
        let Ok(connection) = rustix::net::accept_with(listener, SocketFlags::CLOEXEC) else {
            return;
        };
        let _ = sockopt::set_socket_timeout(&connection, sockopt::Timeout::Send, Some(SENDING));
        // It is asked only when something is there, or after the end of its process.
        let _ = sockopt::set_socket_timeout(&connection, sockopt::Timeout::Recv, Some(LOOK));
        let Ok(found) = sockopt::socket_peercred(&connection) else {
            return;
        };
        let own = rustix::process::geteuid();
        if found.uid != own {
            let text = format!(
                "it keeps memory of user {}, not of user {}",
                own.as_raw(),
                found.uid.as_raw()
            );
            let _ = packet::send(connection.as_fd(), packet::REFUSED, &text, None);
            return;
        }
        let Ok(process) = pidfd_open(found.pid, PidfdFlags::empty()) else {
            return;
        };
        // If the peer died before its process was opened, the number may be of another one by now.
        if is_over(&connection) {
            return;
        }
        if self.newcomers.len() == MOST_NEWCOMERS {
            self.newcomers.remove(0);
        }
        self.newcomers.push(Peer {
            connection,
            process,
            pid: number(found.pid),
        });
    }

    /// The process that is served, unless it is this one or over.
    fn held_against(&self, peer: &Peer) -> Option<u32> {
        let served = self.served.as_ref()?;
        (served.pid != peer.pid && !has_ended(&served.process)).then_some(served.pid)
    }

    /// Whether the keeper is to end.
    fn hear_newcomer(&mut self, peer: Peer) -> bool {
        let Ok(Some(Packet { verb, .. })) = packet::receive(peer.connection.as_fd()) else {
            return false;
        };
        let to = peer.connection.as_fd();
        match (verb, self.held_against(&peer)) {
            (packet::LOOK, _) => {
                let _ = packet::send(to, packet::GLANCE, &self.glance(), None);
                false
            }
            (packet::TAKE | packet::END, Some(pid)) => {
                let _ = packet::send(to, packet::HELD, &pid.to_string(), None);
                false
            }
            (packet::TAKE, None) => {
                self.hand_over(peer);
                false
            }
            (packet::END, None) => {
                self.kept.clear();
                let _ = packet::send(to, packet::DONE, "", None);
                true
            }
            _ => {
                let _ = packet::send(to, packet::REFUSED, "not a verb to begin with", None);
                false
            }
        }
    }

    fn glance(&self) -> String {
        let served = self.served.as_ref().filter(|s| !has_ended(&s.process));
        let bytes = self.kept.values().filter_map(|kept| {
            let found = rustix::fs::fstat(kept).ok()?;
            u64::try_from(found.st_blocks)
                .ok()
                .map(|blocks| blocks * 512)
        });
        format!(
            "{} {} {} {}",
            std::process::id(),
            served.map_or(0, |s| s.pid),
            self.kept.len(),
            bytes.sum::<u64>()
        )
    }

    /// Everything goes to the next server, and stays here.
    fn hand_over(&mut self, peer: Peer) {
        let to = peer.connection.as_fd();
        let count = self.kept.len().to_string();
        let sent = packet::send(to, packet::WELCOME, &count, None).and_then(|()| {
            let mut kept = self.kept.iter();
            kept.try_for_each(|(name, fd)| {
                packet::send(to, packet::DESCRIPTOR, name, Some(fd.as_fd()))
            })
        });
        self.served = Some(ServedProcess {
            // One that did not take everything has nothing: it comes again, or ends.
            connection: sent.is_ok().then_some(peer.connection),
            process: peer.process,
            pid: peer.pid,
        });
    }

    /// Whether the keeper is to end.
    fn hear_served(&mut self) -> bool {
        let Some(served) = &mut self.served else {
            return false;
        };
        let Some(connection) = &served.connection else {
            return false;
        };
        let next = match packet::receive(connection.as_fd()) {
            Ok(Some(packet)) => obey(&mut self.kept, connection.as_fd(), packet),
            Ok(None) | Err(_) => Next::Drop,
        };
        match next {
            Next::Stay => false,
            Next::Drop => {
                served.connection = None;
                false
            }
            Next::End => true,
        }
    }
}

#[derive(Default)]
struct Ready {
    listener: bool,
    newcomers: Vec<usize>,
    process: bool,
    connection: bool,
}

fn obey(kept: &mut BTreeMap<String, OwnedFd>, to: BorrowedFd<'_>, packet: Packet) -> Next {
    let answered = match (packet.verb, packet.descriptor) {
        (packet::KEEP, Some(descriptor)) => {
            kept.insert(packet.text, descriptor);
            packet::send(to, packet::DONE, "", None)
        }
        (packet::KEEP, None) => {
            let text = "no descriptor came; the limit of open files of the keeper may be reached";
            packet::send(to, packet::REFUSED, text, None)
        }
        (packet::FORGET, _) => {
            kept.remove(&packet.text);
            Ok(())
        }
        (packet::END, _) => {
            kept.clear();
            let _ = packet::send(to, packet::DONE, "", None);
            return Next::End;
        }
        _ => packet::send(to, packet::REFUSED, "not a verb of a server", None),
    };
    match answered {
        Ok(()) => Next::Stay,
        Err(_) => Next::Drop,
    }
}

fn number(pid: Pid) -> u32 {
    pid.as_raw_nonzero().get().unsigned_abs()
}

fn now() -> Timespec {
    Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    }
}

/// Whether a process is over.
pub(crate) fn has_ended(process: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(process, PollFlags::IN)];
    matches!(poll(&mut fds, Some(&now())), Ok(n) if n > 0)
}

/// Whether the other end of a connection is closed.
fn is_over(connection: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(connection, PollFlags::empty())];
    matches!(poll(&mut fds, Some(&now())), Ok(n) if n > 0)
}
