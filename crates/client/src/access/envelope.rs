//! How messages about bytes are addressed: every part to the server that has it, or the whole request to one server, which
//! splits it. The message way's own; which server that is, `gateway` says.
//!
//! ```text
//!  Parts   Access           to each server   ->  Done
//!  Whole   Whole { Access } to one server    ->  Routed { Done, next server, servers that took bytes }
//! ```

use std::sync::Arc;

use wire::message::access::{Access, AccessAnswer, WHOLE};
use wire::message::mapping::{self, Choose, Upcoming, WholeAnswer};
use wire::{LayoutState, ServerId};

use crate::access::phases::Phases;
use crate::access::plan::Plan;
use crate::error::Trouble;
use crate::file::view::HandleView;
use crate::transport::pipe::Pipe;

/// See the [module](self).
#[derive(Debug)]
pub(super) enum Envelope {
    Parts,
    Whole(Whole),
}

/// What a whole request says beside its range.
#[derive(Debug)]
pub(super) struct Whole {
    pub(super) server: u64,
    pub(super) by: Choose,
    /// From the server before.
    pub(super) history: Vec<u8>,
    /// What the user says will follow.
    pub(super) following: Option<Upcoming>,
}

/// The head of a message.
pub(super) struct Head {
    pub(super) kind: u16,
    pub(super) flags: u16,
    pub(super) request: u64,
    pub(super) payload_bytes: u64,
}

impl Envelope {
    pub(super) fn plan(&self, seen: &HandleView, state: &Arc<LayoutState>) -> Arc<Plan> {
        match self {
            Envelope::Parts => seen.plan(state),
            Envelope::Whole(whole) => seen.plan_through(state, whole.server),
        }
    }

    /// Prepares a message of a request in a file of `size` bytes; `ends` is all of the request, with its last message.
    pub(super) fn prepare(
        &self,
        pipe: &mut Pipe,
        head: Head,
        access: Access<'_>,
        size: u64,
        ends: Option<Upcoming>,
    ) {
        let Head {
            kind,
            flags,
            request,
            payload_bytes,
        } = head;
        match self {
            Envelope::Parts => {
                pipe.prepare(kind, flags, request, payload_bytes, |out| {
                    access.encode(out)
                });
            }
            Envelope::Whole(whole) => {
                let message = mapping::Whole {
                    by: whole.by,
                    size,
                    ends,
                    upcoming: whole.following.filter(|_| ends.is_some()),
                    history: ends.map_or(&[], |_| &whole.history),
                    access,
                };
                pipe.prepare(kind, flags | WHOLE, request, payload_bytes, |out| {
                    message.encode(out)
                });
            }
        }
    }

    /// Takes an answer. Verifiers of a whole request are those of its routes.
    pub(super) fn open(
        &self,
        control: &[u8],
        routes: &mut Routes,
    ) -> Result<AccessAnswer, Trouble> {
        match self {
            Envelope::Parts => Ok(AccessAnswer::decode(control)?),
            Envelope::Whole(_) => routes.take(control),
        }
    }

    /// Adds what the server that splits requests has said of the messages of an access.
    pub(super) fn count(&self, routes: &Routes, phases: &mut Phases) {
        let Envelope::Whole(whole) = self else {
            return;
        };
        phases.gateway = Some(ServerId(whole.server));
        phases.internal_messages += routes.internal;
        phases.bytes_between += routes.between;
        phases.own_bytes += routes.own;
        phases.hops = phases.hops.max(1 + u64::from(routes.internal > 0));
    }
}

/// What the server that splits requests said about the messages of an access.
#[derive(Debug, Default)]
pub(super) struct Routes {
    internal: u64,
    between: u64,
    own: u64,
    /// The server for the next operation, and the history that goes with it.
    pub(super) next: Option<u64>,
    pub(super) history: Vec<u8>,
    /// Servers that have taken bytes, with their starts and verifiers.
    pub(super) written: Vec<(u64, u64, u64)>,
}

impl Routes {
    pub(super) fn clear(&mut self) {
        (self.internal, self.between, self.own) = (0, 0, 0);
        self.next = None;
        self.history.clear();
        self.written.clear();
    }

    fn take(&mut self, control: &[u8]) -> Result<AccessAnswer, Trouble> {
        let routed = WholeAnswer::decode(control)?;
        self.internal += routed.internal;
        self.between += routed.between;
        self.own += routed.own;
        self.next = routed.next;
        self.history.clear();
        self.history.extend_from_slice(routed.history);
        for part in routed.written() {
            if !self.written.contains(&part) {
                self.written.push(part);
            }
        }
        Ok(AccessAnswer {
            verifier: 0,
            ..routed.done
        })
    }
}
