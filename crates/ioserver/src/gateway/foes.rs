//! Connections to foes: servers that have bytes which this one is asked for.
//!
//! A connection is used by one request at a time and kept for the next, with the views of clients that
//! were registered on it. A view is registered with the capability of its client, so a foe knows for whom
//! it works and what he may do.
//!
//! Left to others: what is sent (`drive`).

use std::collections::HashMap;
use std::sync::Arc;

use identity::checksums;
use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::AsFd;
use wire::ask::AskError;
use wire::link::Link;
use wire::message::file::DropView;
use wire::{ServerId, Status};

use crate::context::Cluster;
use crate::links::register_view;
use crate::views::RegisteredView;

/// Connections that are kept per foe.
const IDLE: usize = 8;
/// Views that stay registered on a connection.
const VIEWS: usize = 64;

/// A connection to a foe.
pub(super) struct Foe {
    pub(super) link: Link,
    address: String,
    /// Whether payloads are sealed.
    pub(super) is_sealed: bool,
    /// Which start of the foe.
    pub(super) incarnation: u64,
    number: u64,
    next_view: u64,
    /// Registered views by their serial, oldest first, with their numbers there.
    views: Vec<(u64, u64)>,
    /// Frames on their way out and in.
    pub(super) out: Vec<u8>,
    pub(super) control: Vec<u8>,
}

/// Connections that wait for the next request, by server.
#[derive(Default)]
pub(crate) struct Foes(Mutex<HashMap<u64, Vec<Foe>>>);

impl Foes {
    /// A connection to a member, with a view registered on it, and the number of the view there.
    pub(super) fn take(
        &self,
        cluster: &Cluster,
        server: u64,
        view: &Arc<RegisteredView>,
    ) -> Result<(Foe, u64), AskError> {
        let member = cluster.member(ServerId(server))?;
        loop {
            let found = self.0.lock().entry(server).or_default().pop();
            let found = found.filter(|foe| foe.address == member.address && foe.is_quiet());
            let is_fresh = found.is_none();
            let mut foe = match found {
                Some(foe) => foe,
                None => {
                    let (link, welcome) = cluster.peers.connect(&member)?;
                    Foe {
                        is_sealed: checksums().unwrap_or(link.is_tcp()),
                        link,
                        address: member.address.clone(),
                        incarnation: welcome.incarnation,
                        number: 0,
                        next_view: 1,
                        views: Vec::new(),
                        out: Vec::new(),
                        control: Vec::new(),
                    }
                }
            };
            match foe.register(view) {
                Ok(number) => return Ok((foe, number)),
                // It was closed or is full of views: another one is tried once.
                Err(AskError::Link(_) | AskError::Refused(Status::QuotaExceeded, _))
                    if !is_fresh => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Keeps a connection whose request was answered.
    pub(super) fn give(&self, server: u64, foe: Foe) {
        let mut idle = self.0.lock();
        let list = idle.entry(server).or_default();
        if list.len() < IDLE {
            list.push(foe);
        }
    }
}

impl Foe {
    /// A number that was not used on this connection.
    pub(super) fn number(&mut self) -> u64 {
        self.number += 1;
        self.number
    }

    /// Whether the other side has neither closed it nor said anything unasked.
    fn is_quiet(&self) -> bool {
        let events = PollFlags::IN | PollFlags::RDHUP;
        let mut fds = [PollFd::from_borrowed_fd(self.link.as_fd(), events)];
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        matches!(poll(&mut fds, Some(&now)), Ok(0))
    }

    fn register(&mut self, view: &RegisteredView) -> Result<u64, AskError> {
        if let Some((_, number)) = self.views.iter().find(|(serial, _)| *serial == view.serial) {
            return Ok(*number);
        }
        let mut out = std::mem::take(&mut self.out);
        let registered = self.register_new(view, &mut out);
        self.out = out;
        registered
    }

    fn register_new(&mut self, view: &RegisteredView, out: &mut Vec<u8>) -> Result<u64, AskError> {
        if self.views.len() == VIEWS {
            let (_, oldest) = self.views.remove(0);
            let number = self.number();
            self.link.ask(
                number,
                &DropView {
                    view: oldest,
                    maps: 0,
                },
                out,
            )?;
        }
        let name = self.next_view;
        self.next_view += 1;
        let Foe { link, number, .. } = self;
        let mut next = || {
            *number += 1;
            *number
        };
        let (capability, description) = (&view.capability, view.description());
        register_view(
            link,
            &mut next,
            out,
            name,
            view.file,
            capability,
            description,
        )?;
        self.views.push((view.serial, name));
        Ok(name)
    }
}
