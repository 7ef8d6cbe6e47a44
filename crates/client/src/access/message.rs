//! The message way of an access: one flow per server, all driven at once, repaired and repeated where that helps.
//!
//! With one server its connection is simply waited on; with several they are polled, and nothing is
//! sent in a way that could wait for one of them. An access is complete when every byte is accounted
//! for; one that failed at some servers is repeated there only.
//!
//! Left to others: cutting into messages (`flow`), addressing them (`envelope`), what can be repaired and how (`file::handle`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use control::moves::crash_point;
use layout::{FileOffset, FileSpan};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use wire::{ServerId, Status};

use crate::access::envelope::Envelope;
use crate::access::flow::{Flow, Terms};
use crate::access::memory::{Direction, Memory, Run};
use crate::access::phases::Phases;
use crate::access::plan::Plan;
use crate::access::request::{Attempt, Growth, Outcome, Way};
use crate::access::work::Lot;
use crate::error::{Error, Failure, Result, Trouble};
use crate::file::handle::Handle;
use crate::file::view::HandleView;
use crate::session::Session;
use crate::session::lane::Lane;
use crate::transport::patience::Patience;
use crate::transport::pipe::{Pipe, Wait};

/// Connections polled without a list on the heap.
const FEW: usize = 16;

/// What the message way keeps from attempt to attempt, and from access to access.
#[derive(Debug, Default)]
pub(super) struct MessageWork {
    /// One for each lot.
    flows: Vec<Flow>,
    /// What servers have confirmed in an attempt that failed elsewhere: server, view offset.
    progress: Vec<(u64, u64)>,
    /// Everything before this view offset is done, at whichever server it was.
    floor: u64,
    failed: Vec<usize>,
}

impl MessageWork {
    fn forget_progress(&mut self) {
        self.progress.clear();
        self.floor = 0;
    }

    /// What all servers have confirmed stays done when the bytes are at others: bytes that move are taken along.
    fn keep_floor(&mut self) {
        let done = self.progress.drain(..).map(|(_, confirmed)| confirmed);
        self.floor = self.floor.max(done.min().unwrap_or(0));
    }

    /// Begins a flow for each lot, behind what its server has confirmed before.
    fn begin(&mut self, lots: &mut [Lot], attempt: Attempt<'_>) {
        while self.flows.len() < lots.len() {
            self.flows.push(Flow::default());
        }
        let (lo, hi) = (attempt.lo, attempt.lo + attempt.len);
        for (flow, lot) in self.flows.iter_mut().zip(lots) {
            let server = lot.place.server;
            let done = self.progress.iter().find(|(s, _)| *s == server);
            let done = done.map_or(0, |(_, confirmed)| *confirmed);
            let from = done.max(self.floor).clamp(lo, hi);
            if from == hi {
                lot.parts.clear();
            } else if from > lo {
                let start = attempt.seen.view.bytes().select(from);
                let start = FileOffset(start.expect("inside the attempt"));
                let rest = FileSpan::new(start, attempt.file.end);
                let left = lot.parts.iter();
                let left = left.filter_map(|part| attempt.plan.clip(part, rest));
                lot.parts = left.collect();
            }
            flow.begin(lot, from, hi);
        }
    }
}

/// The message way of a request, see the [module](self).
pub(super) struct ByMessage {
    patience: Patience,
    envelope: Envelope,
    /// What the last attempt was planned with: layout, epoch, bytes.
    planned: Option<(Arc<Plan>, u64, u64)>,
    /// Whether the owner of the file counts all bytes that servers have taken, without being told.
    is_counted: bool,
}

impl ByMessage {
    pub(super) fn new(handle: &Handle, lane: &mut Lane) -> ByMessage {
        lane.work.message.forget_progress();
        ByMessage {
            patience: handle.session.patience(),
            envelope: Envelope::Parts,
            planned: None,
            is_counted: true,
        }
    }

    /// The plan of the next attempt.
    pub(super) fn plan(
        &mut self,
        handle: &Handle,
        lane: &mut Lane,
        seen: &HandleView,
    ) -> Result<Arc<Plan>> {
        self.envelope = handle.envelope(lane, seen)?;
        Ok(self.envelope.plan(seen, &handle.known.state()))
    }

    /// Begins anew: what servers have confirmed was cut off.
    pub(super) fn forget_progress(&mut self, lane: &mut Lane) {
        lane.work.message.forget_progress();
    }

    /// Forgets what servers have confirmed if it may have been cut off.
    fn replan(&mut self, work: &mut MessageWork, attempt: Attempt<'_>) {
        let (epoch, len) = (attempt.epoch, attempt.len);
        match &self.planned {
            Some((plan, e, n)) if (*e, *n) == (epoch, len) => {
                if Arc::ptr_eq(plan, attempt.plan) {
                    return;
                }
                work.keep_floor();
            }
            _ => work.forget_progress(),
        }
        self.planned = Some((attempt.plan.clone(), epoch, len));
    }
}

impl Way for ByMessage {
    fn go(
        &mut self,
        handle: &Handle,
        lane: &mut Lane,
        attempt: Attempt<'_>,
        memory: &mut Memory<'_>,
        phases: &mut Phases,
    ) -> Result<Outcome> {
        let Some(mut run) = memory.run() else {
            return Ok(Outcome::NotThisWay);
        };
        self.replan(&mut lane.work.message, attempt);
        let (message_bytes, rendezvous_bytes) = handle.settings.limits();
        let terms = Terms {
            attempt,
            envelope: &self.envelope,
            message_bytes,
            rendezvous_bytes,
            is_through: handle.settings.writes_through(),
        };
        let done = handle.go_by_message(lane, &terms, &mut run, &mut self.patience, phases);
        let (lots, MessageWork { flows, .. }) = lane.work.lots_and_message();
        self.is_counted &= flows[..lots.len()].iter().all(|flow| flow.is_counted);
        match done {
            Err(error) if attempt.is_write() && attempt.how.reserved_epoch.is_none() => {
                Err(handle.settle(lane, attempt, error))
            }
            done => done,
        }
    }

    fn has_told(&self, growth: Growth) -> bool {
        growth == Growth::AtOwner || self.is_counted
    }
}

impl Handle {
    /// Drives all flows of an attempt once, and repairs what failed.
    fn go_by_message(
        &self,
        lane: &mut Lane,
        terms: &Terms<'_>,
        memory: &mut Run<'_>,
        patience: &mut Patience,
        phases: &mut Phases,
    ) -> Result<Outcome> {
        let (lots, work) = lane.work.lots_and_message();
        let used = lots.len();
        work.begin(lots, terms.attempt);
        self.connect_flows(lane, terms.attempt.seen);
        let started = Instant::now();
        drive(lane, memory, terms, &self.session);
        let spent = started.elapsed().as_nanos() as u64;
        let mut failed = std::mem::take(&mut lane.work.message.failed);
        failed.clear();
        let mut is_newer = false;
        let mut packing_ns = 0;
        let flows = &lane.work.message.flows[..used];
        for (i, flow) in flows.iter().enumerate() {
            phases.gather_ns += flow.gather_ns;
            phases.scatter_ns += flow.scatter_ns;
            packing_ns += flow.gather_ns + flow.scatter_ns;
            if flow.failure.is_some() {
                failed.push(i);
            }
            for &(server, start, verifier) in &flow.routes.written {
                self.unsynced.wrote(server, start, verifier);
            }
            terms.envelope.count(&flow.routes, phases);
            is_newer |= flow.is_newer;
            if flow.verifier != 0 {
                let (server, pipe) = &lane.servers[flow.pipe];
                let start = pipe.welcome.incarnation;
                self.unsynced.wrote(*server, start, flow.verifier);
            }
        }
        phases.is_direct = false;
        phases.send_to_last_answer_ns += spent.saturating_sub(packing_ns);
        phases.add(flows.iter().map(|flow| flow.phases));
        let outcome = match failed.is_empty() {
            true => {
                self.routed(&flows[0].routes);
                Ok(Outcome::Done)
            }
            false => self.recover(lane, terms, memory, patience, &failed),
        };
        lane.work.message.failed = failed;
        if is_newer && matches!(outcome, Ok(Outcome::Done)) {
            self.learn_state(lane);
        }
        outcome
    }

    /// Connections and registrations first, so that nothing is half sent when they fail.
    fn connect_flows(&self, lane: &mut Lane, seen: &HandleView) {
        let used = lane.work.lots().len();
        for i in 0..used {
            let place = lane.work.lots()[i].place;
            if let Err(trouble) = self.ready(lane, seen, place) {
                lane.work.message.flows[i].fail(trouble);
            }
        }
        for i in 0..used {
            // Looked up after all were made: the list of connections does not change from here.
            let index = lane.find(lane.work.lots()[i].place.server);
            let flow = &mut lane.work.message.flows[i];
            match index {
                Some(index) => flow.pipe = index,
                None => flow.fail(Trouble::Broken("the connection failed".into())),
            }
        }
    }

    /// After an attempt that failed somewhere: remembers what is done, repairs what can be.
    fn recover(
        &self,
        lane: &mut Lane,
        terms: &Terms<'_>,
        memory: &Run<'_>,
        patience: &mut Patience,
        failed: &[usize],
    ) -> Result<Outcome> {
        let Attempt { plan, seen, lo, .. } = terms.attempt;
        let has_epoch = terms.attempt.how.fixed_epoch().is_some();
        let used = lane.work.lots().len();
        let MessageWork {
            flows, progress, ..
        } = &mut lane.work.message;
        for flow in &flows[..used] {
            let server = flow.phases.server;
            progress.retain(|(s, _)| *s != server);
            progress.push((server, flow.confirmed));
        }
        let servers = progress.len();
        let mut errors: Vec<(usize, Error)> = Vec::new();
        for &i in failed {
            let place = lane.work.lots()[i].place;
            let flow = &mut lane.work.message.flows[i];
            let trouble = flow.failure.take().expect("it failed");
            if has_epoch && matches!(&trouble, Trouble::Refused(Status::StaleEpoch, _)) {
                // The place is void; another has to be reserved. What was collected for it is not written.
                errors.insert(0, (i, trouble.into_error(Some(ServerId(place.server)), "")));
                continue;
            }
            self.gateway_trouble(place.server, &trouble);
            if let Err(error) = self.repair(lane, seen, place, trouble, patience) {
                errors.push((i, error));
            }
        }
        if errors.is_empty() {
            return Ok(Outcome::Again);
        }
        let (lots, MessageWork { flows, .. }) = lane.work.lots_and_message();
        let is_alone = servers == 1 && flows[errors[0].0].confirmed == lo;
        let is_read = memory.direction() == Direction::Read;
        let passes = matches!(
            errors[0].1.status(),
            Status::StaleLease | Status::StaleEpoch
        );
        if is_read || is_alone || passes {
            return Err(errors.swap_remove(0).1);
        }
        // What is safe: everything before the first byte that a server was to write and has not confirmed, also
        // one that would have been asked again if it were the only one.
        let end = lo + memory.len() as u64;
        let bytes = seen.view.bytes();
        let safe = flows.iter().zip(lots.iter()).map(|(flow, lot)| {
            if flow.confirmed >= end {
                return end;
            }
            let from = bytes.select(flow.confirmed).unwrap_or(u64::MAX);
            let to = bytes.select(end - 1).map_or(u64::MAX, |x| x + 1);
            plan.first(&lot.parts, FileSpan::from_raw(from..to))
                .map_or(end, |x| bytes.rank(x.0))
        });
        let confirmed = safe.min().unwrap_or(end) - lo;
        let failures = errors.iter().map(|(i, error)| {
            let server = flows[*i].phases.server;
            Failure {
                server: ServerId(server),
                address: self.session.address(server),
                status: error.status(),
                text: error.to_string(),
            }
        });
        Err(Error::Partial {
            confirmed,
            failures: failures.collect(),
        })
    }
}

impl Handle {
    /// After a write that was done in part: what was called safe is inside the file, or is not called
    /// safe.
    fn settle(&self, lane: &mut Lane, attempt: Attempt<'_>, error: Error) -> Error {
        let Attempt {
            seen, lo, epoch, ..
        } = attempt;
        let Error::Partial {
            confirmed,
            failures,
        } = error
        else {
            return error;
        };
        let bytes = seen.view.bytes();
        let last = confirmed
            .checked_sub(1)
            .and_then(|n| bytes.select(lo.checked_add(n)?));
        let known = self.known.size();
        let owner = self.known.state().owner.server;
        let mut confirmed = confirmed;
        if let Some(last) = last.filter(|last| *last >= known.size || known.epoch != epoch) {
            // An owner that could not be reached is not waited for once more.
            let is_silent =
                |f: &Failure| matches!(f.status, Status::Unreachable | Status::TimedOut);
            let is_there = !failures.iter().any(|f| f.server.0 == owner && is_silent(f));
            if is_there && matches!(self.grow(lane, seen, epoch, last + 1), Ok(true)) {
                self.known.grown(epoch, last + 1);
            } else {
                let inside = match self.known.size() {
                    now if now.epoch == epoch => bytes.rank(now.size).saturating_sub(lo),
                    _ => 0,
                };
                confirmed = confirmed.min(inside);
            }
        }
        Error::Partial {
            confirmed,
            failures,
        }
    }
}

/// Flows that are not at their end, with what their servers have of the access.
fn unfinished<'a>(
    flows: &'a mut [Flow],
    lots: &'a [Lot],
) -> impl Iterator<Item = (&'a mut Flow, &'a Lot)> {
    let all = flows.iter_mut().zip(lots);
    all.filter(|(flow, _)| !flow.is_finished())
}

/// Runs all flows to their end.
fn drive(lane: &mut Lane, memory: &mut Run<'_>, terms: &Terms<'_>, session: &Session) {
    let Lane { servers, work, .. } = lane;
    let (lots, MessageWork { flows, .. }) = work.lots_and_message();
    let (lots, flows) = (&*lots, &mut flows[..lots.len()]);
    let mut open = flows.iter().filter(|flow| !flow.is_finished()).count();
    let halt = |flows: &mut [Flow]| {
        // What the others would do under an old layout would be done again.
        if flows.iter().any(Flow::is_stale) {
            flows.iter_mut().for_each(Flow::halt);
        }
    };
    if open > 1 {
        for (flow, lot) in unfinished(flows, lots) {
            let pipe = &mut servers[flow.pipe].1;
            if let Err(trouble) = flow.send(lot, pipe, memory, terms, || session.number(), Wait::No)
            {
                flow.fail(trouble);
            }
            if memory.is_write() {
                crash_point("client_in_write");
            }
        }
        open = flows.iter().filter(|flow| !flow.is_finished()).count();
    }
    while open > 1 {
        if !wait_for_any(servers, flows, session.options.answer_timeout) {
            for flow in flows.iter_mut().filter(|flow| !flow.is_finished()) {
                flow.fail(Trouble::Late);
            }
            break;
        }
        for (flow, lot) in unfinished(flows, lots) {
            let pipe = &mut servers[flow.pipe].1;
            let stepped = loop {
                match flow.receive(pipe, memory, terms, Wait::No) {
                    Ok(true) if flow.is_finished() => break Ok(()),
                    Ok(true) => {
                        let sent =
                            flow.send(lot, pipe, memory, terms, || session.number(), Wait::No);
                        if sent.is_err() {
                            break sent;
                        }
                    }
                    Ok(false) => {
                        break flow.send(lot, pipe, memory, terms, || session.number(), Wait::No);
                    }
                    Err(trouble) => break Err(trouble),
                }
            };
            if let Err(trouble) = stepped {
                flow.fail(trouble);
            }
        }
        halt(flows);
        open = flows.iter().filter(|flow| !flow.is_finished()).count();
    }
    // The last one, or the only one, is simply waited for.
    if let Some((flow, lot)) = unfinished(flows, lots).next() {
        let pipe = &mut servers[flow.pipe].1;
        while !flow.is_finished() {
            let stepped = flow
                .send(lot, pipe, memory, terms, || session.number(), Wait::Yes)
                .and_then(|()| flow.receive(pipe, memory, terms, Wait::Yes));
            if let Err(trouble) = stepped {
                flow.fail(trouble);
            }
        }
    }
    let messages: u64 = flows.iter().map(|flow| flow.phases.messages).sum();
    session.count_data(messages);
}

/// Waits until a flow can go on; false when none could for too long.
fn wait_for_any(servers: &[(u64, Pipe)], flows: &[Flow], timeout: Duration) -> bool {
    let waiting = || flows.iter().filter(|flow| !flow.is_finished());
    let entry = |flow: &Flow| {
        let mut events = PollFlags::IN;
        if flow.wants_to_send() {
            events |= PollFlags::OUT;
        }
        PollFd::from_borrowed_fd(servers[flow.pipe].1.fd(), events)
    };
    let time = Timespec {
        tv_sec: timeout.as_secs() as i64,
        tv_nsec: i64::from(timeout.subsec_nanos()),
    };
    let count = waiting().count();
    let ready = if count <= FEW {
        let mut all = waiting();
        let mut last = None;
        // Places beyond the count repeat one and are not polled.
        let mut list: [PollFd<'_>; FEW] = std::array::from_fn(|_| {
            if let Some(flow) = all.next() {
                last = Some(flow);
            }
            entry(last.expect("at least one waits"))
        });
        poll(&mut list[..count], Some(&time))
    } else {
        let mut list: Vec<PollFd<'_>> = waiting().map(entry).collect();
        poll(&mut list, Some(&time))
    };
    match ready {
        Ok(n) => n > 0,
        Err(Errno::INTR) => true,
        Err(_) => false,
    }
}
