//! Reading and writing bytes: which servers, all driven at once, repeated where that helps.
//!
//! ```text
//!  access  ->  parts per server (plan)  ->  flows  ->  drive: send to all, take answers in any order
//!                     ^                                   |
//!                     +------ repair and repeat <---------+  stale layout, unknown view, busy, ...
//! ```
//!
//! With one server its connection is simply waited on; with several they are polled, and nothing is
//! sent in a way that could wait for one of them. An access is complete when every byte is accounted
//! for; one that failed at some servers is repeated there only.
//!
//! Left to others: cutting into messages (`flow`), what can be repaired and how (`open`).

pub(crate) mod ahead;
pub(crate) mod direct;
pub(crate) mod flow;
pub(crate) mod gateway;
pub(crate) mod memory;
pub(crate) mod phases;
pub(crate) mod places;
pub(crate) mod plan;
pub(crate) mod sieve;

use layout::{FileOffset, FileSpan};
use std::sync::Arc;
use std::time::{Duration, Instant};

use control::moves::crash_point;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use wire::{ServerId, Status};

use crate::access::direct::transfer::Way;
use crate::access::flow::{Flow, Memory, Terms};
use crate::access::memory::User;
use crate::access::phases::Phases;
use crate::access::plan::Plan;
use crate::error::{Error, Failure, Result, Trouble};
use crate::file::open::Open;
use crate::file::seen::Seen;
use crate::transport::lane::Lane;
use crate::transport::patience::Patience;
use crate::transport::pipe::Wait;
use crate::transport::session::{Session, lock};

/// Connections polled without a list on the heap.
const FEW: usize = 16;

/// What accesses of a lane reuse.
#[derive(Debug, Default)]
pub(crate) struct Work {
    /// Only the first `used` are part of the access.
    pub(crate) flows: Vec<Flow>,
    pub(crate) used: usize,
    /// What servers have confirmed in an attempt that failed elsewhere: server, view offset.
    progress: Vec<(u64, u64)>,
    /// Everything before this view offset is done, whoever had it.
    floor: u64,
    /// Memory for described buffers.
    pub(crate) described: Vec<u8>,
    failed: Vec<usize>,
}

/// How an access is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct How {
    /// The lease or lock number of an atomic handle.
    pub(crate) lease: u64,
    /// The write goes to a place that was reserved in this epoch, and grows nothing by itself.
    pub(crate) reserved_epoch: Option<u64>,
    /// It is for the buffer of the handle, and no access of the program.
    pub(crate) is_ahead: bool,
}

/// How an attempt ended.
enum Attempt {
    Done,
    Again,
}

impl Open {
    /// Writes all of `bytes` at a view offset.
    pub(crate) fn write_range(
        &self,
        lane: &mut Lane,
        seen: &Seen,
        lo: u64,
        bytes: &[u8],
        how: How,
    ) -> Result<usize> {
        let mut user = User::Bytes(Memory::From(bytes.into()));
        let written = self.write_user(lane, seen, lo, &mut user, how)?;
        Ok(written.expect("slices go by message where they have to"))
    }

    /// Writes all of the user's memory at a view offset. `None` if it is described and cannot go directly:
    /// it has to be packed.
    pub(crate) fn write_user(
        &self,
        lane: &mut Lane,
        seen: &Seen,
        lo: u64,
        user: &mut User<'_>,
        how: How,
    ) -> Result<Option<usize>> {
        self.void_ahead();
        let written = self.write_user_now(lane, seen, lo, user, how);
        self.void_ahead();
        written
    }

    fn write_user_now(
        &self,
        lane: &mut Lane,
        seen: &Seen,
        lo: u64,
        user: &mut User<'_>,
        how: How,
    ) -> Result<Option<usize>> {
        let len = user.len();
        let started = Instant::now();
        let mut phases = Phases {
            requested: len,
            servers: self.take_servers(),
            ..Phases::default()
        };
        let file = if len == 0 {
            FileSpan::default()
        } else {
            file_range(seen, lo, len)?
        };
        let mut patience = Patience::new(&self.session.options);
        lane.work.forget_progress();
        let mut planned = None;
        let may_ask = self.may_go_directly(&how);
        let mut may_go_directly = may_ask;
        loop {
            if len == 0 {
                break;
            }
            let through = self.through(lane, seen)?;
            let plan = through.plan(seen, &self.state());
            let size = self.known_size();
            let epoch = how.reserved_epoch.unwrap_or(size.epoch);
            lane.work.replan(&mut planned, &plan, epoch, len);
            let must_grow = how.reserved_epoch.is_none() && file.end.0 > size.size;
            let is_owner_only = lane.work.spread(&plan, seen, lo, len, file, &mut phases)?
                && lane.work.flows[0].place.map(|p| p.server) == Some(plan.state.owner.server);
            let hints = self.limits();
            let terms = Terms {
                plan: &plan,
                view: &seen.view,
                view_number: seen.number,
                base: lo,
                epoch,
                lease: how.lease,
                grows: must_grow && is_owner_only,
                is_reserved: how.reserved_epoch.is_some(),
                message_bytes: hints.0,
                rendezvous_bytes: hints.1,
                whole: through.terms(lo, len, falls::MAX_OFFSET),
            };
            let way = Way {
                plan: &plan,
                seen,
                lo,
                len,
                epoch,
                writes: true,
                grows: must_grow,
            };
            if std::mem::take(&mut may_go_directly)
                && self.time_directly(lane, way, user, &mut phases)
            {
                if must_grow && !self.grow(lane, seen, epoch, file.end.0)? {
                    continue;
                }
                if must_grow {
                    self.grown(epoch, file.end.0);
                }
                break;
            }
            let User::Bytes(memory) = user else {
                return Ok(None);
            };
            match self.attempt(lane, seen, &terms, memory, &mut patience, &mut phases) {
                Ok(Attempt::Again) => continue,
                Ok(Attempt::Done) => {}
                Err(error) => {
                    return Err(match how.reserved_epoch {
                        None => self.settle(lane, seen, lo, epoch, error),
                        Some(_) => error,
                    });
                }
            }
            if must_grow && !is_owner_only && !self.grow(lane, seen, epoch, file.end.0)? {
                // Cut off by somebody before its end was known: it counts as written after that.
                lane.work.forget_progress();
                continue;
            }
            if must_grow {
                self.grown(epoch, file.end.0);
            }
            if may_ask {
                self.ask_afterwards(lane, way);
            }
            break;
        }
        phases.moved = len;
        self.record_servers(true, &phases);
        phases.total_ns = started.elapsed().as_nanos() as u64;
        self.keep_phases(phases);
        Ok(Some(len as usize))
    }

    /// Reads at a view offset; less than asked for only at the end of the file.
    pub(crate) fn read_range(
        &self,
        lane: &mut Lane,
        seen: &Seen,
        lo: u64,
        into: &mut [u8],
        how: How,
    ) -> Result<usize> {
        let mut user = User::Bytes(Memory::Into(into.into()));
        let read = self.read_user(lane, seen, lo, &mut user, how)?;
        Ok(read.expect("slices go by message where they have to"))
    }

    /// Reads into the user's memory. `None` if it is described and cannot go directly: it has to be packed.
    pub(crate) fn read_user(
        &self,
        lane: &mut Lane,
        seen: &Seen,
        lo: u64,
        user: &mut User<'_>,
        how: How,
    ) -> Result<Option<usize>> {
        let wanted = user.len();
        let started = Instant::now();
        let mut phases = Phases {
            requested: wanted,
            servers: match how.is_ahead {
                true => Vec::new(),
                false => self.take_servers(),
            },
            ..Phases::default()
        };
        let mut patience = Patience::new(&self.session.options);
        lane.work.forget_progress();
        let mut planned = None;
        let may_ask = self.may_go_directly(&how);
        let mut may_go_directly = may_ask;
        let moved = loop {
            let mut size = self.known_size();
            let mut shown = seen.view.len_within(size.size).saturating_sub(lo);
            if shown < wanted {
                size = self.ask_size(lane)?;
                shown = seen.view.len_within(size.size).saturating_sub(lo);
            }
            let n = shown.min(wanted);
            if n == 0 {
                break 0;
            }
            let file = file_range(seen, lo, n)?;
            let through = self.through(lane, seen)?;
            let plan = through.plan(seen, &self.state());
            lane.work.replan(&mut planned, &plan, size.epoch, n);
            let mut user = user.first(n);
            lane.work.spread(&plan, seen, lo, n, file, &mut phases)?;
            let hints = self.limits();
            let terms = Terms {
                plan: &plan,
                view: &seen.view,
                view_number: seen.number,
                base: lo,
                epoch: size.epoch,
                lease: how.lease,
                grows: false,
                is_reserved: false,
                message_bytes: hints.0,
                rendezvous_bytes: hints.1,
                whole: through.terms(lo, n, size.size),
            };
            let way = Way {
                plan: &plan,
                seen,
                lo,
                len: n,
                epoch: size.epoch,
                writes: false,
                grows: false,
            };
            if std::mem::take(&mut may_go_directly)
                && self.time_directly(lane, way, &mut user, &mut phases)
            {
                break n;
            }
            let User::Bytes(memory) = &mut user else {
                return Ok(None);
            };
            match self.attempt(lane, seen, &terms, memory, &mut patience, &mut phases)? {
                Attempt::Again => {}
                Attempt::Done => {
                    if may_ask {
                        self.ask_afterwards(lane, way);
                    }
                    break n;
                }
            }
        };
        phases.moved = moved;
        self.record_servers(false, &phases);
        phases.is_end_of_file = moved < wanted;
        phases.total_ns = started.elapsed().as_nanos() as u64;
        if !how.is_ahead {
            self.keep_phases(phases);
        }
        Ok(Some(moved as usize))
    }

    /// Goes directly if that can be, and notes how it went.
    fn time_directly(
        &self,
        lane: &mut Lane,
        way: Way<'_>,
        user: &mut User<'_>,
        phases: &mut Phases,
    ) -> bool {
        let started = Instant::now();
        if !self.go_directly(lane, way, user) {
            return false;
        }
        let spent = started.elapsed().as_nanos() as u64;
        match way.writes {
            true => phases.gather_ns += spent,
            false => phases.scatter_ns += spent,
        }
        phases.is_direct = true;
        let flows = &lane.work.flows[..lane.work.used];
        phases.servers.extend(flows.iter().map(|flow| flow.phases));
        true
    }

    /// Drives all flows once and repairs what failed.
    fn attempt(
        &self,
        lane: &mut Lane,
        seen: &Seen,
        terms: &Terms<'_>,
        memory: &mut Memory<'_>,
        patience: &mut Patience,
        phases: &mut Phases,
    ) -> Result<Attempt> {
        let used = lane.work.used;
        // Connections and registrations first, so that nothing is half sent when they fail.
        for i in 0..used {
            let place = lane.work.flows[i].place.expect("set by spread");
            match self.ready(lane, seen, place) {
                Ok(_) => {}
                Err(trouble) => lane.work.flows[i].fail(trouble),
            }
        }
        for i in 0..used {
            if let Some(place) = lane.work.flows[i].place {
                // Looked up after all were made: the list of connections does not change from here.
                match lane.find(place.server) {
                    Some(index) => lane.work.flows[i].pipe = index,
                    None => {
                        lane.work.flows[i].fail(Trouble::Broken("the connection failed".into()))
                    }
                }
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
        seen: &Seen,
        terms: &Terms<'_>,
        memory: &Memory<'_>,
        patience: &mut Patience,
        failed: &[usize],
    ) -> Result<Attempt> {
        let used = lane.work.used;
        let Work {
            flows, progress, ..
        } = &mut lane.work;
        for flow in &flows[..used] {
            let server = flow.place.map_or(0, |p| p.server);
            progress.retain(|(s, _)| *s != server);
            progress.push((server, flow.confirmed));
        }
        let servers = progress.len();
        let mut errors: Vec<(usize, Error)> = Vec::new();
        for &i in failed {
            let flow = &mut lane.work.flows[i];
            let place = flow.place.expect("set by spread");
            let trouble = flow.failure.take().expect("it failed");
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
        let is_read = matches!(memory, Memory::Into(_));
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
        let safe = lane.work.flows[..used].iter().map(|flow| {
            if flow.confirmed >= end {
                return end;
            }
            let from = bytes.select(flow.confirmed).unwrap_or(u64::MAX);
            let to = bytes.select(end - 1).map_or(u64::MAX, |x| x + 1);
            terms
                .plan
                .first(&flow.parts, (from..to).into())
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

impl Open {
    /// After a write that was done in part: what was called safe is inside the file, or is not called
    /// safe.
    fn settle(&self, lane: &mut Lane, seen: &Seen, lo: u64, epoch: u64, error: Error) -> Error {
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

/// The smallest file range with `len` view bytes from `lo` on.
pub(crate) fn file_range(seen: &Seen, lo: u64, len: u64) -> Result<FileSpan> {
    let bytes = seen.view.bytes();
    let last = lo.checked_add(len - 1).and_then(|last| bytes.select(last));
    match (bytes.select(lo), last) {
        (Some(first), Some(last)) => Ok(FileSpan::from(first..last + 1)),
        _ if bytes.is_empty() => Err(Error::argument(
            "view",
            "shows no byte; set another before reading or writing",
        )),
        _ => Err(Error::argument(
            "offset",
            "is beyond the largest offset of a file, 2^63 - 1",
        )),
    }
}

/// What an attempt was planned with: layout, epoch, bytes.
type Planned = Option<(Arc<Plan>, u64, u64)>;

impl Work {
    fn forget_progress(&mut self) {
        self.progress.clear();
        self.floor = 0;
    }

    /// Forgets what servers have confirmed if it may have been cut off. With another layout, what all of them have
    /// confirmed stays done: bytes that move are taken along.
    fn replan(&mut self, planned: &mut Planned, plan: &Arc<Plan>, epoch: u64, bytes: u64) {
        match planned {
            Some((p, e, b)) if (*e, *b) == (epoch, bytes) => {
                if Arc::ptr_eq(p, plan) {
                    return;
                }
                let done = self
                    .progress
                    .drain(..)
                    .map(|(_, confirmed)| confirmed)
                    .min();
                self.floor = self.floor.max(done.unwrap_or(0));
            }
            _ => self.forget_progress(),
        }
        *planned = Some((plan.clone(), epoch, bytes));
    }

    /// Spreads an access over flows, one per server that has bytes of it; whether there is one only.
    fn spread(
        &mut self,
        plan: &Plan,
        seen: &Seen,
        lo: u64,
        len: u64,
        file: FileSpan,
        phases: &mut Phases,
    ) -> Result<bool> {
        let started = Instant::now();
        let intersected = phases.intersect_ns;
        let Work {
            flows,
            used,
            progress,
            floor,
            ..
        } = self;
        *used = 0;
        let mut found = 0;
        let mut nobody = 0;
        let mut intersect_ns = 0;
        plan.parts(file, &mut intersect_ns, |slot, part| {
            let Some(slot) = slot else {
                nobody += part.bytes;
                return;
            };
            found += part.bytes;
            let i = match flows[..*used].iter().position(|flow| flow.slot == slot) {
                Some(i) => i,
                None => {
                    if flows.len() == *used {
                        flows.push(Flow::default());
                    }
                    let flow = &mut flows[*used];
                    flow.slot = slot;
                    flow.place = Some(plan.places[slot]);
                    flow.parts.clear();
                    *used += 1;
                    *used - 1
                }
            };
            flows[i].parts.push(part);
        });
        if found != len {
            let text = match nobody {
                0 => format!("{} bytes lie in no subfile of the file", len - found),
                n => format!("{n} bytes lie in subfiles that no server holds"),
            };
            let status = match nobody {
                0 => Status::InvalidArgument,
                _ => Status::Lost,
            };
            return Err(Error::Refused {
                status,
                text,
                server: None,
            });
        }
        let is_alone = *used == 1;
        let hi = lo + len;
        for flow in &mut flows[..*used] {
            let server = flow.place.map_or(0, |p| p.server);
            let done = progress.iter().find(|(s, _)| *s == server).map(|p| p.1);
            match done.unwrap_or(0).max(*floor) {
                from if from >= hi => {
                    flow.parts.clear();
                    flow.begin(hi, hi);
                }
                from if from > lo => {
                    let start = seen.view.bytes().select(from).expect("inside the access");
                    let rest = FileSpan::new(FileOffset(start), file.end);
                    flow.parts = flow
                        .parts
                        .iter()
                        .filter_map(|part| plan.clip(part, rest))
                        .collect();
                    flow.begin(from, hi);
                }
                _ => flow.begin(lo, hi),
            }
        }
        phases.intersect_ns += intersect_ns;
        let spent = started.elapsed().as_nanos() as u64;
        phases.map_ns += spent.saturating_sub(phases.intersect_ns - intersected);
        Ok(is_alone)
    }
}

/// Runs all flows to their end.
fn drive(lane: &mut Lane, memory: &mut Memory<'_>, terms: &Terms<'_>, session: &Session) {
    let Lane { servers, work, .. } = lane;
    let flows = &mut work.flows[..work.used];
    let mut open = flows.iter().filter(|flow| !flow.is_finished()).count();
    let halt = |flows: &mut [Flow]| {
        // What the others would do under an old layout would be done again.
        if flows.iter().any(Flow::is_stale) {
            flows.iter_mut().for_each(Flow::halt);
        }
    };
    if open > 1 {
        for flow in flows.iter_mut().filter(|flow| !flow.is_finished()) {
            let pipe = &mut servers[flow.pipe].1;
            if let Err(trouble) = flow.send(pipe, memory, terms, || session.number(), Wait::No) {
                flow.fail(trouble);
            }
            if matches!(memory, Memory::From(_)) {
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
        for flow in flows.iter_mut().filter(|flow| !flow.is_finished()) {
            let pipe = &mut servers[flow.pipe].1;
            let stepped = loop {
                match flow.receive(pipe, memory, terms, Wait::No) {
                    Ok(true) if flow.is_finished() => break Ok(()),
                    Ok(true) => {
                        let sent = flow.send(pipe, memory, terms, || session.number(), Wait::No);
                        if sent.is_err() {
                            break sent;
                        }
                    }
                    Ok(false) => {
                        break flow.send(pipe, memory, terms, || session.number(), Wait::No);
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
    if let Some(flow) = flows.iter_mut().find(|flow| !flow.is_finished()) {
        let pipe = &mut servers[flow.pipe].1;
        while !flow.is_finished() {
            let stepped = flow
                .send(pipe, memory, terms, || session.number(), Wait::Yes)
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
fn wait_for_any(
    servers: &[(u64, crate::transport::pipe::Pipe)],
    flows: &[Flow],
    timeout: Duration,
) -> bool {
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

impl Open {
    /// The list of the last access, to be filled again.
    fn take_servers(&self) -> Vec<crate::access::phases::ServerPhases> {
        let mut list = std::mem::take(&mut lock(&self.phases).servers);
        list.clear();
        list
    }

    pub(crate) fn keep_phases(&self, phases: Phases) {
        self.quick.was_not_last();
        self.session.calibrated.compare(&phases);
        *lock(&self.phases) = phases;
    }
}
