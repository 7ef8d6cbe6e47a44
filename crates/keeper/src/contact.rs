//! One connection to a keeper: what is said on it, and how long an answer may take.
//!
//! Each side looks whose process the other is. Left to others: keeping a connection, and starting a keeper (`client`).

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt;

use crate::Error;
use crate::packet::{self, Packet};

/// How long a keeper may take to answer.
const ANSWER: Duration = Duration::from_secs(10);

/// A descriptor with its name.
#[derive(Debug)]
pub struct KeptDescriptor {
    /// As the server called it.
    pub name: String,
    /// Of the open file that the server kept.
    pub descriptor: OwnedFd,
}

/// What a keeper says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Glance {
    /// Its process.
    pub process: u32,
    /// The process that it serves.
    pub serves: Option<u32>,
    /// How many descriptors it keeps.
    pub descriptors: u64,
    /// Memory behind them.
    pub bytes: u64,
}

/// What a keeper is at the moment; an error says that there is none.
pub fn look(dir: &Path) -> Result<Glance, Error> {
    let contact = Contact::to(dir)?;
    let answer = contact.ask(packet::LOOK, packet::GLANCE)?;
    let words = answer.text.split(' ').map(str::parse::<u64>);
    let numbers: Result<Vec<u64>, _> = words.collect();
    match numbers.as_deref() {
        Ok([process, serves, descriptors, bytes]) => Ok(Glance {
            process: u32::try_from(*process).unwrap_or(0),
            serves: u32::try_from(*serves).ok().filter(|&pid| pid != 0),
            descriptors: *descriptors,
            bytes: *bytes,
        }),
        _ => Err(contact.failed(invalid(&answer))),
    }
}

/// Ends the keeper of a directory, unless it serves another process; what it keeps is gone.
pub fn end(dir: &Path) -> Result<(), Error> {
    let contact = Contact::to(dir)?;
    contact.ask(packet::END, packet::DONE)?;
    contact.wait_for_end();
    Ok(())
}

fn invalid(answer: &Packet) -> io::Error {
    let text = format!("an answer that is not known: {:?}", char::from(answer.verb));
    io::Error::new(io::ErrorKind::InvalidData, text)
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Contact {
    dir: PathBuf,
    socket: OwnedFd,
}

impl Contact {
    /// Connects to the keeper of a directory.
    pub(crate) fn to(dir: &Path) -> Result<Contact, Error> {
        let failed = |e: io::Error| match Errno::from_io_error(&e) {
            Some(Errno::NOENT | Errno::CONNREFUSED) => Error::None(dir.to_owned()),
            _ => Error::Io(dir.to_owned(), e),
        };
        let directory = packet::open_directory(dir).map_err(failed)?;
        let socket = packet::socket().map_err(failed)?;
        for which in [sockopt::Timeout::Recv, sockopt::Timeout::Send] {
            sockopt::set_socket_timeout(&socket, which, Some(ANSWER))
                .map_err(|e| failed(e.into()))?;
        }
        let address = packet::address(&directory).map_err(failed)?;
        rustix::net::connect(&socket, &address).map_err(|e| failed(e.into()))?;
        // Who listens there could be anybody, if the directory is not only ours.
        let peer = sockopt::socket_peercred(&socket).map_err(|e| failed(e.into()))?;
        if peer.uid != rustix::process::geteuid() {
            let text = format!("it is a process of user {}", peer.uid.as_raw());
            return Err(Error::Refused(dir.to_owned(), text));
        }
        Ok(Contact {
            dir: dir.to_owned(),
            socket,
        })
    }

    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    pub(crate) fn failed(&self, error: io::Error) -> Error {
        Error::Io(self.dir.clone(), error)
    }

    /// Says a verb that needs no more, and hears the answer.
    pub(crate) fn ask(&self, verb: u8, wanted: u8) -> Result<Packet, Error> {
        self.say(verb, "", None)?;
        self.hear(wanted)
    }

    /// Says something.
    pub(crate) fn say(
        &self,
        verb: u8,
        text: &str,
        descriptor: Option<BorrowedFd<'_>>,
    ) -> Result<(), Error> {
        let sent = packet::send(self.socket(), verb, text, descriptor);
        match sent {
            Err(e) if Errno::from_io_error(&e) == Some(Errno::PIPE) => {
                // It may have said why before it closed the connection.
                match self.hear(verb) {
                    Err(error @ (Error::Refused(..) | Error::Held(..))) => Err(error),
                    _ => Err(Error::None(self.dir.clone())),
                }
            }
            other => other.map_err(|e| self.failed(e)),
        }
    }

    /// The next answer, which has to be of this kind.
    pub(crate) fn hear(&self, wanted: u8) -> Result<Packet, Error> {
        let answer = packet::receive(self.socket()).map_err(|e| self.failed(e))?;
        let Some(answer) = answer else {
            return Err(Error::None(self.dir.clone()));
        };
        match answer.verb {
            verb if verb == wanted => Ok(answer),
            packet::REFUSED => Err(Error::Refused(self.dir.clone(), answer.text)),
            packet::HELD => Err(Error::Held(
                self.dir.clone(),
                answer.text.parse().unwrap_or(0),
            )),
            _ => Err(self.failed(invalid(&answer))),
        }
    }

    /// Takes what is kept, and has the keeper serve this process from now on.
    pub(crate) fn take(&self) -> Result<Vec<KeptDescriptor>, Error> {
        let welcome = self.ask(packet::TAKE, packet::WELCOME)?;
        let count: usize = welcome
            .text
            .parse()
            .map_err(|_| self.failed(invalid(&welcome)))?;
        let mut kept = Vec::new();
        for _ in 0..count {
            let packet = self.hear(packet::DESCRIPTOR)?;
            let Some(descriptor) = packet.descriptor else {
                let text = "a descriptor did not arrive; the limit of open files may be reached";
                return Err(self.failed(io::Error::other(text)));
            };
            kept.push(KeptDescriptor {
                name: packet.text,
                descriptor,
            });
        }
        Ok(kept)
    }

    /// Waits until the keeper has closed the connection.
    pub(crate) fn wait_for_end(&self) {
        while let Ok(Some(_)) = packet::receive(self.socket()) {}
    }
}
