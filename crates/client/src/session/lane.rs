//! A lane: connections that one thread uses at a time, and the memory its accesses reuse.
//!
//! Left to others: making connections (`session`) and what goes over them.

use crate::access::work::Work;
use crate::transport::pipe::Pipe;

/// One connection per server, made when needed.
#[derive(Debug, Default)]
pub(crate) struct Lane {
    pub(crate) manager: Option<Pipe>,
    /// Few, so a list.
    pub(crate) servers: Vec<(u64, Pipe)>,
    /// What accesses reuse.
    pub(crate) work: Work,
    /// Servers at which this lane holds a range of a file: as long as the connections are there.
    held: Vec<u64>,
    has_lost_hold: bool,
}

impl Lane {
    pub(crate) fn with_manager(pipe: Pipe) -> Lane {
        Lane {
            manager: Some(pipe),
            ..Lane::default()
        }
    }

    pub(crate) fn find(&self, server: u64) -> Option<usize> {
        self.servers.iter().position(|(s, _)| *s == server)
    }

    pub(crate) fn add(&mut self, server: u64, pipe: Pipe) -> usize {
        self.servers.push((server, pipe));
        self.servers.len() - 1
    }

    pub(crate) fn pipe(&mut self, index: usize) -> &mut Pipe {
        &mut self.servers[index].1
    }

    /// Gives a failed connection up.
    pub(crate) fn drop_pipe(&mut self, server: u64) {
        self.has_lost_hold |= self.held.contains(&server);
        self.servers.retain(|(s, _)| *s != server);
    }

    /// A range of a file is held at a server.
    pub(crate) fn holds_at(&mut self, server: u64) {
        self.held.push(server);
    }

    /// Whether a range was held at a server that it is not connected to any more: others may have written there
    /// since.
    pub(crate) fn has_lost_hold(&self) -> bool {
        self.has_lost_hold
    }

    /// What was held has been lost, which the next question is told.
    pub(crate) fn lost_hold(&mut self) {
        self.has_lost_hold = true;
    }

    /// Nothing is held any more; whether something was lost before.
    pub(crate) fn holds_nothing(&mut self) -> bool {
        self.held.clear();
        std::mem::take(&mut self.has_lost_hold)
    }

    /// Everybody it is connected to; the metadata manager has no number.
    pub(crate) fn all_pipes(&mut self) -> impl Iterator<Item = (Option<u64>, &mut Pipe)> {
        let manager = self.manager.as_mut().map(|pipe| (None, pipe));
        manager.into_iter().chain(
            self.servers
                .iter_mut()
                .map(|(server, pipe)| (Some(*server), pipe)),
        )
    }
}
