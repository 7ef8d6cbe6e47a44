//! Meeting by name: members of a team find each other at the metadata manager, and from then on talk to each other.
//!
//! ```text
//!  round 0   each: random bytes, where it listens on its host, its host     the secret is the seal over all of it
//!  round 1   each: its TCP address; only if they are on several hosts
//! ```
//!
//! A member listens over TCP at the address by which it reached the manager. One that is on the manager's own host says its port
//! only, and others take the address by which they reached the manager. Members on several hosts that have certificates open no
//! connections of their own: they go on meeting in rounds, have no messages, and give little at a time.
//!
//! Left to others: the rounds (`metaserver::teams`), everything after (`mesh`).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use control::capability::seal;
use parking_lot::Mutex;
use wire::link::PeerName;
use wire::message::team::{ANY_RANK, Gather, LeaveTeam, WatchTeam};
use wire::message::{Bytes, Field};
use wire::{DecodeError, Reader, Status};

use super::mesh::{Mesh, Watch, io_error, unreachable};
use super::peer::{Address, Listener};
use crate::client::Client;
use crate::collective::team::{Drive, Exchange, TIMEOUT, Team, WAIT_MS, Waits};
use crate::error::{Error, Result, Trouble};
use crate::transport::pipe::Pipe;

/// What all contributions of a round may take.
const ROUND_BYTES: usize = 960 << 10;

/// A member as the manager knows it.
#[derive(Debug)]
struct Place {
    client: Client,
    name: String,
    member: u64,
    rank: u64,
    size: usize,
}

impl Place {
    /// Gives bytes and gets those of all.
    fn gather(&self, round: u64, bytes: Vec<u8>, waits: &mut Waits<'_>) -> Result<Vec<Vec<u8>>> {
        loop {
            let left = waits.pause();
            // The manager waits in milliseconds.
            let wait_ms = left.map_or(0, |left| left.as_millis().max(1) as u64);
            let gathered = self.client.session().manager(|| Gather {
                team: self.name.clone(),
                member: self.member,
                rank: self.rank,
                size: self.size as u64,
                round,
                contribution: Bytes(bytes.clone()),
                wait_ms,
            })?;
            if let Some(all) = gathered.contributions {
                return Ok(all.into_iter().map(|bytes| bytes.0).collect());
            }
            waits.drive();
            if left.is_none() {
                return Err(Error::Refused {
                    status: Status::TimedOut,
                    text: format!(
                        "not all {} members of team '{}' came in time; give all the same name \
                         and size, and each its own rank or none",
                        self.size, self.name
                    ),
                    server: None,
                });
            }
        }
    }

    fn watch(&self, failed: &str, gone: Option<usize>) -> WatchTeam {
        WatchTeam {
            team: self.name.clone(),
            member: self.member,
            rank: self.rank,
            size: self.size as u64,
            failed: failed.into(),
            gone: gone.map(|rank| rank as u64),
            wait_ms: if failed.is_empty() { WAIT_MS } else { 0 },
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.client.session().is_ours() {
            // Where it cannot be told, the end of the client is noticed.
            let _ = self.client.session().manager(|| LeaveTeam {
                team: self.name.clone(),
                member: self.member,
            });
        }
    }
}

/// A member that goes on exchanging through the manager.
///
/// Where hosts are not one trust domain, only connections to servers are protected: certificates of users are good for callers.
#[derive(Debug)]
struct Rounds {
    place: Place,
    timeout: Option<Duration>,
    round: Mutex<u64>,
}

impl Exchange for Rounds {
    fn rank(&self) -> usize {
        self.place.rank as usize
    }

    fn size(&self) -> usize {
        self.place.size
    }

    fn most_bytes(&self) -> usize {
        (ROUND_BYTES / self.place.size).saturating_sub(8)
    }

    fn allgather(&self, bytes: &[u8], drive: Drive<'_>) -> Result<Vec<Vec<u8>>> {
        let mut waits = Waits::new(self.timeout, drive);
        let mut round = waits.turn(&self.round);
        *round += 1;
        self.place.gather(*round - 1, bytes.to_vec(), &mut waits)
    }
}

/// Asks the manager whether all members live, on a connection of its own.
#[derive(Debug)]
struct Watcher {
    place: Place,
    pipe: Option<Pipe>,
    asked: Option<u64>,
}

impl Watch for Watcher {
    fn ask(&mut self) -> Option<BorrowedFd<'_>> {
        let session = self.place.client.session();
        if self.pipe.is_none() {
            self.asked = None;
            self.pipe = session.manager_connection().ok();
        }
        let pipe = self.pipe.as_mut()?;
        if self.asked.is_none() {
            let number = session.number();
            if pipe.put(number, &self.place.watch("", None)).is_err() {
                self.pipe = None;
                return None;
            }
            self.asked = Some(number);
        }
        self.pipe.as_ref().map(Pipe::fd)
    }

    fn report(&mut self, failed: &str, gone: Option<usize>) -> Option<Error> {
        // Once: nobody waits for a manager that is away.
        let session = self.place.client.session();
        let asked = session
            .manager_connection()
            .and_then(|mut pipe| pipe.ask(session.number(), &self.place.watch(failed, gone)));
        match asked {
            Ok(()) => None,
            Err(trouble @ Trouble::Refused(..)) => Some(trouble.into_error(None, "")),
            Err(_) => Some(unreachable(failed.into())),
        }
    }

    fn hear(&mut self) -> Option<Error> {
        let (number, pipe) = (self.asked.take()?, self.pipe.as_mut()?);
        match pipe.answer::<WatchTeam>(number) {
            Ok(()) | Err(Trouble::Refused(Status::Busy | Status::ShuttingDown, _)) => None,
            Err(trouble @ Trouble::Refused(..)) => Some(trouble.into_error(None, "")),
            // The manager may come back.
            Err(_) => {
                self.pipe = None;
                None
            }
        }
    }

    fn is_ours(&self) -> bool {
        self.place.client.session().is_ours()
    }
}

/// What a member says when it comes.
#[derive(Debug)]
struct Card {
    random: Vec<u8>,
    name: Vec<u8>,
    host: String,
    /// Whether nothing of it may travel between hosts without TLS.
    is_protected: bool,
}

impl Card {
    fn put(&self) -> Vec<u8> {
        let mut out = Vec::new();
        Bytes(self.random.clone()).put(&mut out);
        Bytes(self.name.clone()).put(&mut out);
        self.host.put(&mut out);
        self.is_protected.put(&mut out);
        out
    }

    fn read(bytes: &[u8]) -> std::result::Result<Card, DecodeError> {
        let mut r = Reader::new(bytes);
        let (random, name): (Bytes, Bytes) = (Field::read(&mut r)?, Field::read(&mut r)?);
        let (host, is_protected) = (Field::read(&mut r)?, Field::read(&mut r)?);
        r.finish()?;
        Ok(Card {
            random: random.0,
            name: name.0,
            host,
            is_protected,
        })
    }
}

/// Listens over TCP where others can reach this member; what they are told, and by which address it reaches the manager.
fn listen(client: &Client) -> Result<(Listener, String, IpAddr)> {
    let connection = client.session().manager_connection();
    let connection = connection.map_err(|trouble| trouble.into_error(None, "the manager"))?;
    let name = connection.peer().map_err(io_error)?;
    let outside = |ip: &IpAddr| !ip.to_canonical().is_loopback();
    let (here, manager) = match name {
        PeerName::Tcp { peer, here } if outside(&here.ip()) => (Some(here.ip()), peer.ip()),
        _ => (None, Ipv4Addr::LOCALHOST.into()),
    };
    let all = [
        IpAddr::from(Ipv6Addr::UNSPECIFIED),
        Ipv4Addr::UNSPECIFIED.into(),
    ];
    let found = match here {
        Some(ip) => Listener::tcp(SocketAddr::new(ip, 0)),
        None => Listener::tcp(SocketAddr::new(all[0], 0))
            .or_else(|_| Listener::tcp(SocketAddr::new(all[1], 0))),
    };
    let (listener, port) = found.map_err(io_error)?;
    let said = here.map_or_else(
        || format!(":{port}"),
        |ip| SocketAddr::new(ip, port).to_string(),
    );
    Ok((listener, said, manager))
}

fn address(said: &[u8], manager: IpAddr) -> Option<Address> {
    let said = std::str::from_utf8(said).ok()?;
    let address = match said.strip_prefix(':') {
        Some(port) => SocketAddr::new(manager, port.parse().ok()?),
        None => said.parse().ok()?,
    };
    Some(Address::Tcp(address))
}

/// A member that has come, and waits until all are there.
#[derive(Debug)]
pub(super) struct Arrival {
    place: Place,
    listener: Listener,
    mine: Card,
    said: Vec<u8>,
}

impl Arrival {
    /// A member of this rank, or [`ANY_RANK`]. Waits for nobody.
    pub(super) fn new(client: &Client, name: &str, rank: u64, size: usize) -> Result<Arrival> {
        let place = Place {
            client: client.clone(),
            name: name.into(),
            member: client.session().number(),
            rank,
            size,
        };
        let (listener, name) = Listener::here().map_err(io_error)?;
        let mine = Card {
            random: identity::random().to_vec(),
            name,
            host: identity::local_host(),
            is_protected: place.client.session().options.keys.tls.is_some(),
        };
        let said = mine.put();
        Ok(Arrival {
            place,
            listener,
            mine,
            said,
        })
    }

    /// Waits for the others: what all have said, by rank. After [`Status::TimedOut`] it may be called again.
    pub(super) fn wait(&self, limit: Option<Duration>) -> Result<Vec<Vec<u8>>> {
        let mut waits = Waits::new(limit, None);
        self.place.gather(0, self.said.clone(), &mut waits)
    }

    /// The team of those who said it. `timeout` is how long its members wait for each other from now on.
    pub(super) fn meet(self, all: &[Vec<u8>], timeout: Option<Duration>) -> Result<Team> {
        let Arrival {
            mut place,
            listener,
            mine,
            said,
        } = self;
        let rank = all.iter().position(|card| *card == said);
        let rank =
            rank.ok_or_else(|| unreachable("the manager lost what this member said".into()))?;
        place.rank = rank as u64;
        let parts: Vec<&[u8]> = all.iter().map(|card| &card[..]).collect();
        let secret = seal(b"pario team", &parts);
        let cards: std::result::Result<Vec<_>, _> =
            all.iter().map(|card| Card::read(card)).collect();
        let cards =
            cards.map_err(|e| unreachable(format!("a member is of another release: {e}")))?;
        let mut listeners = vec![listener];
        let mut tcp = Vec::new();
        if cards.iter().any(|card| card.host != cards[0].host) {
            if cards.iter().any(|card| card.is_protected) {
                let round = Mutex::new(1);
                let rounds = Rounds {
                    place,
                    timeout,
                    round,
                };
                return Ok(Team::of(Arc::new(rounds)));
            }
            let (listener, said, manager) = listen(&place.client)?;
            let mut waits = Waits::new(Some(timeout.unwrap_or(TIMEOUT)), None);
            let said = place.gather(1, said.into_bytes(), &mut waits)?;
            tcp.extend(said.iter().map(|said| address(said, manager)));
            listeners.push(listener);
        }
        let addresses =
            cards
                .into_iter()
                .enumerate()
                .map(|(rank, card)| match card.host == mine.host {
                    true => Ok(Address::Here(card.name)),
                    false => tcp.get(rank).cloned().flatten().ok_or_else(|| {
                        unreachable(format!(
                            "rank {rank} of the team says no address that can be reached"
                        ))
                    }),
                });
        let addresses = addresses.collect::<Result<_>>()?;
        let watch = Box::new(Watcher {
            place,
            pipe: None,
            asked: None,
        });
        let mesh = Mesh::new(rank, addresses, secret, listeners, Some(watch), timeout)?;
        Ok(Team::connected(Arc::new(mesh)))
    }
}

impl Team {
    /// A member of a team of processes of one user, which all give the same name and size and each
    /// its own rank. They find each other through the service; returns when all are there.
    pub fn processes(client: &Client, name: &str, rank: usize, size: usize) -> Result<Team> {
        Team::processes_for(client, name, rank, size, TIMEOUT)
    }

    /// Members that are processes, with another time limit, or none: then only the end of a member ends a wait for it.
    pub fn processes_for(
        client: &Client,
        name: &str,
        rank: usize,
        size: usize,
        timeout: impl Into<Option<Duration>>,
    ) -> Result<Team> {
        if rank >= size {
            return Err(Error::argument(
                "rank",
                format!("{rank}, but the team has {size}; ranks count from 0"),
            ));
        }
        Team::enter(client, name, rank as u64, size, timeout.into())
    }

    /// A member of a team of any processes or threads of one user that come with the same name and size. Ranks are given
    /// in the order in which they come; returns when all are there.
    pub fn join(client: &Client, name: &str, size: usize) -> Result<Team> {
        Team::enter(client, name, ANY_RANK, size, Some(TIMEOUT))
    }

    fn enter(
        client: &Client,
        name: &str,
        rank: u64,
        size: usize,
        timeout: Option<Duration>,
    ) -> Result<Team> {
        let arrival = Arrival::new(client, name, rank, size)?;
        let all = arrival.wait(timeout)?;
        arrival.meet(&all, timeout)
    }
}
