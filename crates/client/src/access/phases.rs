//! How an access went: the phases of the paper's tables, in nanoseconds.
//!
//! Measured on every access; the clock is read a few times and nothing is allocated once the list of
//! servers has been as long before.

use std::time::Instant;

use wire::ServerId;

use crate::collective::strategy::Collective;

/// What one server said about its part of an access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerPhases {
    /// Number of the server.
    pub server: u64,
    /// Bytes of the access that lie there.
    pub bytes: u64,
    /// Messages that were sent there.
    pub messages: u64,
    /// It waited for buffers, memory and its turn.
    pub waited_ns: u64,
    /// It gathered or scattered.
    pub copied_ns: u64,
    /// From the arrival of requests to their answers.
    pub served_ns: u64,
}

impl ServerPhases {
    /// The server.
    pub fn id(&self) -> ServerId {
        ServerId(self.server)
    }
}

/// How the last access of a handle went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Phases {
    /// Bytes asked for.
    pub requested: u64,
    /// Bytes moved.
    pub moved: u64,
    /// Whether a read ended at the end of the file.
    pub is_end_of_file: bool,
    /// Whether it went directly between the user's memory and that of the servers. Of short accesses
    /// that do, bytes are known and times are 0: reading the clock would cost as much as they do.
    pub is_direct: bool,
    /// How it was done by a team, for a collective access.
    pub collective: Option<Collective>,
    /// Intersecting view and subfiles; 0 once the view has been used before.
    pub intersect_ns: u64,
    /// Finding the bytes of this access: which servers, which ranges.
    pub map_ns: u64,
    /// Gathering from the user's memory before sending.
    pub gather_ns: u64,
    /// From the first byte sent to the last answer.
    pub send_to_last_answer_ns: u64,
    /// Scattering to the user's memory.
    pub scatter_ns: u64,
    /// From the beginning to the end.
    pub total_ns: u64,
    /// Part by part.
    pub servers: Vec<ServerPhases>,
    /// The server that split the access, for a client that talks through one.
    pub gateway: Option<ServerId>,
    /// Requests that the gateway sent to other servers.
    pub internal_messages: u64,
    /// Bytes that travelled between servers.
    pub bytes_between: u64,
    /// Servers that a byte passed at most: 1, or 2 behind a gateway.
    pub hops: u64,
    /// Bytes that were at the gateway itself.
    pub own_bytes: u64,
}

impl Phases {
    /// Adds what servers say. One that has said something of an earlier attempt or part of the access stays listed once.
    pub(crate) fn add(&mut self, said: impl Iterator<Item = ServerPhases>) {
        let known = self.servers.len();
        for part in said {
            let mut before = self.servers[..known].iter_mut();
            let Some(sum) = before.find(|sum| sum.server == part.server) else {
                self.servers.push(part);
                continue;
            };
            sum.bytes += part.bytes;
            sum.messages += part.messages;
            sum.waited_ns += part.waited_ns;
            sum.copied_ns += part.copied_ns;
            sum.served_ns += part.served_ns;
        }
    }

    /// The access has ended.
    pub(crate) fn end(&mut self, requested: u64, moved: usize, started: Instant) {
        (self.requested, self.moved) = (requested, moved as u64);
        self.is_end_of_file = self.moved < requested;
        self.total_ns = started.elapsed().as_nanos() as u64;
    }

    /// Time in the network: what the slowest server does not account for.
    pub fn network_ns(&self) -> u64 {
        let served = self.servers.iter().map(|s| s.served_ns).max().unwrap_or(0);
        self.send_to_last_answer_ns.saturating_sub(served)
    }

    /// The share of the access that was at the server it was sent to, from 0 to 1. Where every part goes
    /// to its own server it is 1.
    pub fn matching(&self) -> f64 {
        match (self.gateway, self.moved) {
            (Some(_), moved) if moved > 0 => self.own_bytes as f64 / moved as f64,
            _ => 1.0,
        }
    }

    /// Messages sent to servers.
    pub fn messages(&self) -> u64 {
        self.servers.iter().map(|s| s.messages).sum()
    }
}
