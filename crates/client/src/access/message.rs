//! The message way of an access: one flow per server, all driven at once, repaired and repeated where that helps.
//!
//! With one server its connection is simply waited on; with several they are polled, and nothing is
//! sent in a way that could wait for one of them. An access is complete when every byte is accounted
//! for; one that failed at some servers is repeated there only.
//!
//! Left to others: cutting into messages (`flow`), what can be repaired and how (`file::open`).

use std::time::{Duration, Instant};

use control::moves::crash_point;
use layout::FileSpan;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use wire::{ServerId, Status};

use crate::access::flow::{Flow, Terms};
use crate::access::memory::{Direction, Run};
use crate::access::phases::Phases;
use crate::access::work::{Lot, Work};
use crate::error::{Error, Failure, Result, Trouble};
use crate::file::handle::Handle;
use crate::file::view::HandleView;
use crate::transport::lane::Lane;
use crate::transport::patience::Patience;
use crate::transport::pipe::{Pipe, Wait};
use crate::transport::session::Session;

/// Connections polled without a list on the heap.
const FEW: usize = 16;

/// How an attempt ended.
pub(super) enum Attempt {
    Done,
    Again,
}

impl Handle {
    /// Drives all flows once and repairs what failed.
    pub(super) fn attempt(
        &self,
        lane: &mut Lane,
        seen: &HandleView,
        terms: &Terms<'_>,
        memory: &mut Run<'_>,
        patience: &mut Patience,
        phases: &mut Phases,
    ) -> Result<Attempt> {
        lane.work.begin_flows(terms.base + memory.len() as u64);
        let used = lane.work.lots().len();
        // Connections and registrations first, so that nothing is half sent when they fail.
        for i in 0..used {
            let place = lane.work.lots()[i].place;
            match self.ready(lane, seen, place) {
                Ok(_) => {}
                Err(trouble) => lane.work.flows[i].fail(trouble),
            }
        }
        for i in 0..used {
            // Looked up after all were made: the list of connections does not change from here.
            match lane.find(lane.work.lots()[i].place.server) {
                Some(index) => lane.work.flows[i].pipe = index,
                None => lane.work.flows[i].fail(Trouble::Broken("the connection failed".into())),
            }
        }
        let started = Instant::now();
        drive(lane, memory, terms, &self.session);
        phases.send_to_last_answer_ns += started.elapsed().as_nanos() as u64;
        let mut failed = std::mem::take(&mut lane.work.failed);
        failed.clear();
        let mut is_newer = false;
        for (i, flow) in lane.work.flows[..used].iter().enumerate() {
            phases.gather_ns += flow.gather_ns;
            phases.scatter_ns += flow.scatter_ns;
            phases.servers.push(flow.phases);
            if flow.failure.is_some() {
                failed.push(i);
            }
            if let Some(whole) = &terms.whole {
                for &(server, start, verifier) in flow.routes.written() {
                    self.unsynced.wrote(server, start, verifier);
                }
                flow.routes.count(phases, whole.server);
            }
            is_newer |= flow.is_newer;
            if flow.verifier != 0 {
                let (server, pipe) = &lane.servers[flow.pipe];
                let start = pipe.welcome.incarnation;
                self.unsynced.wrote(*server, start, flow.verifier);
            }
        }
        phases.send_to_last_answer_ns = phases
            .send_to_last_answer_ns
            .saturating_sub(phases.gather_ns + phases.scatter_ns);
        let outcome = match failed.is_empty() {
            true => {
                if terms.whole.is_some() {
                    self.routed(&lane.work.flows[0].routes);
                }
                Ok(Attempt::Done)
            }
            false => self.recover(lane, seen, terms, memory, patience, &failed),
        };
        lane.work.failed = failed;
        if is_newer && matches!(outcome, Ok(Attempt::Done)) {
            self.learn_state(lane);
        }
        outcome
    }

    /// After an attempt that failed somewhere: remembers what is done, repairs what can be.
    fn recover(
        &self,
        lane: &mut Lane,
        seen: &HandleView,
        terms: &Terms<'_>,
        memory: &Run<'_>,
        patience: &mut Patience,
        failed: &[usize],
    ) -> Result<Attempt> {
        let used = lane.work.lots().len();
        let Work {
            flows, progress, ..
        } = &mut lane.work;
        for flow in &flows[..used] {
            let server = flow.phases.server;
            progress.retain(|(s, _)| *s != server);
            progress.push((server, flow.confirmed));
        }
        let servers = progress.len();
        let mut errors: Vec<(usize, Error)> = Vec::new();
        for &i in failed {
            let place = lane.work.lots()[i].place;
            let trouble = lane.work.flows[i].failure.take().expect("it failed");
            if terms.is_reserved && matches!(&trouble, Trouble::Refused(Status::StaleEpoch, _)) {
                // The place is void; another has to be reserved.
                errors.insert(0, (i, trouble.into_error(Some(ServerId(place.server)), "")));
                continue;
            }
            if let Some(whole) = &terms.whole {
                self.gateway_trouble(whole.server, &trouble);
            }
            if let Err(error) = self.repair(lane, seen, place, trouble, patience) {
                errors.push((i, error));
            }
        }
        if errors.is_empty() {
            return Ok(Attempt::Again);
        }
        let is_alone = servers == 1 && lane.work.flows[errors[0].0].confirmed == terms.base;
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
        let end = terms.base + memory.len() as u64;
        let bytes = terms.view.bytes();
        let (lots, flows) = lane.work.lots_and_flows();
        let safe = flows.iter().zip(lots).map(|(flow, lot)| {
            if flow.confirmed >= end {
                return end;
            }
            let from = bytes.select(flow.confirmed).unwrap_or(u64::MAX);
            let to = bytes.select(end - 1).map_or(u64::MAX, |x| x + 1);
            terms
                .plan
                .first(&lot.parts, FileSpan::from_raw(from..to))
                .map_or(end, |x| bytes.rank(x.0))
        });
        let confirmed = safe.min().unwrap_or(end) - terms.base;
        let failures = errors.iter().map(|(i, error)| {
            let server = lane.work.flows[*i].phases.server;
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
    pub(super) fn settle(
        &self,
        lane: &mut Lane,
        seen: &HandleView,
        lo: u64,
        epoch: u64,
        error: Error,
    ) -> Error {
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
        let known = self.known_size();
        let owner = self.state().owner.server;
        let mut confirmed = confirmed;
        if let Some(last) = last.filter(|last| *last >= known.size || known.epoch != epoch) {
            // An owner that could not be reached is not waited for once more.
            let is_silent =
                |f: &Failure| matches!(f.status, Status::Unreachable | Status::TimedOut);
            let is_there = !failures.iter().any(|f| f.server.0 == owner && is_silent(f));
            if is_there && matches!(self.grow(lane, seen, epoch, last + 1), Ok(true)) {
                self.grown(epoch, last + 1);
            } else {
                let inside = match self.known_size() {
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
    let (lots, flows) = work.lots_and_flows();
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
