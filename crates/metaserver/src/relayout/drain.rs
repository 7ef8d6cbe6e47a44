//! Taking everything away from a server, and moving single subfiles to servers that have less.
//!
//! A server that is drained gets nothing new from the moment that this is durable. A thread moves its subfiles and
//! what it owns elsewhere, a few files at a time, for as long as there are any; after a restart of the metadata
//! manager it goes on. Both are moves like any other, with the same layout and other servers.
//!
//! A rebalancing is planned once: with its first move the plan is noted, with each move how many have begun. One that comes
//! again goes on there and plans nothing, since the servers look different by then.
//!
//! Left to others: where subfiles go (`meta`), moving them (`coordinate`).

use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::Duration;

use meta::MetaError;
use meta::catalogue::{Batch, Identity, MoveTarget, Snapshot};
use parking_lot::{Mutex, MutexGuard};
use wire::message::Field;
use wire::message::catalogue::{
    Drain, DrainAnswer, DrainProgress, MemberState, MoveOptions, Rebalance, SubfileMove,
};
use wire::{ClientId, DecodeError, FileId, Reader, ServerId, Status};

use crate::committer::Refused;
use crate::manager::{Manager, Session};

/// Files that are moved away from a server at a time.
const AT_ONCE: usize = 2;
/// Between two looks at what is left.
const LOOK: Duration = Duration::from_millis(100);
/// Subfiles that are moved by one request.
const MOST_MOVES: usize = 256;

#[derive(Clone, Debug, Default)]
struct Now {
    options: MoveOptions,
    /// It goes on after a restart, and with which options it was begun is not known.
    is_resumed: bool,
    failure: String,
}

/// Servers that are being drained, each by a thread.
#[derive(Debug, Default)]
pub(super) struct Drains(Mutex<BTreeMap<ServerId, Now>>);

impl Drains {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<ServerId, Now>> {
        self.0.lock()
    }
}

/// Requests to rebalance that are being done.
#[derive(Debug, Default)]
pub(super) struct Balancing(Mutex<BTreeSet<(ClientId, u64)>>);

impl Balancing {
    fn lock(&self) -> MutexGuard<'_, BTreeSet<(ClientId, u64)>> {
        self.0.lock()
    }

    /// Refuses one that comes again while it is being done: it is told what has become of it later.
    fn enter(&self, asked: Identity) -> Result<Entered<'_>, Refused> {
        let key = (asked.client, asked.number);
        match self.lock().insert(key) {
            true => Ok(Entered(self, key)),
            false => Err(MetaError::Busy("the request is being done").into()),
        }
    }
}

struct Entered<'b>(&'b Balancing, (ClientId, u64));

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.0.lock().remove(&self.1);
    }
}

/// What is noted of a rebalancing: of how many files the moves have begun, and the steps without paths.
fn noted_plan(begun: usize, plan: &[SubfileMove]) -> Vec<u8> {
    let mut note = Vec::new();
    (begun as u64).put(&mut note);
    let steps = plan.iter().map(|step| SubfileMove {
        path: String::new(),
        ..step.clone()
    });
    steps.collect::<Vec<_>>().put(&mut note);
    note
}

fn read_plan(note: &[u8]) -> Result<(usize, Vec<SubfileMove>), MetaError> {
    let read = |mut r: Reader<'_>| -> Result<_, DecodeError> {
        let (begun, plan) = (u64::read(&mut r)?, Field::read(&mut r)?);
        r.finish()?;
        Ok((begun as usize, plan))
    };
    read(Reader::new(note)).map_err(|why| MetaError::Corrupt {
        row: "the answer to an earlier request".into(),
        why,
    })
}

/// Bytes of each subfile of the last piece of a file, by its durable size.
fn subfile_bytes(snapshot: &Snapshot, file: FileId) -> Result<Vec<(u64, u64)>, Refused> {
    let state = snapshot.layout(file)?.decode()?;
    let size = snapshot.size(file)?.size;
    let Some(piece) = state.pieces.last() else {
        return Ok(Vec::new());
    };
    let bytes = |i: usize| piece.partition.subfile(i).rank(size.min(falls::MAX_OFFSET));
    let places = piece.places.iter().enumerate();
    Ok(places.map(|(i, p)| (p[0].server, bytes(i))).collect())
}

impl Manager {
    /// Begins or ends the draining of a server. Who asks again is told how far it is now.
    pub(crate) fn drain(&self, session: &mut Session, r: Drain) -> Result<DrainAnswer, Refused> {
        self.demand_operator(session)?;
        let asked = session.asked()?;
        let (server, is_over) = (r.server, r.is_over);
        if self.asked_before(asked)?.is_some() {
            if let Some(now) = self.moves.drains.lock().get_mut(&server)
                && now.is_resumed
                && !is_over
            {
                now.is_resumed = false;
                now.options = r.options;
            }
            return self.draining(server);
        }
        let snapshot = self.snapshot()?;
        let others = snapshot
            .members()?
            .into_iter()
            .any(|m| m.server != server && m.state == MemberState::Alive && !m.is_draining);
        if !is_over && !others {
            return Err(Refused::new(
                Status::InUse,
                format!("{server} is the only one that takes subfiles; start another one first"),
            ));
        }
        let is_new = self.committer.run(move |b| {
            let work = |b: &mut Batch<'_>| {
                b.set_draining(server, !is_over)?;
                Ok((true, Vec::new()))
            };
            Ok(b.once(asked, work, |_, _| Ok(false))?)
        })?;
        match (is_new, is_over) {
            (false, _) => {}
            (true, true) => {
                tracing::info!(server = server.0, "drain ended");
                self.moves.drains.lock().remove(&server);
            }
            (true, false) => self.run_drain(server, r.options, false)?,
        }
        self.draining(server)
    }

    /// How far the draining of a server has come.
    pub(crate) fn drain_progress(
        &self,
        session: &mut Session,
        r: DrainProgress,
    ) -> Result<DrainAnswer, Refused> {
        self.read(session)?;
        self.draining(r.server)
    }

    fn draining(&self, server: ServerId) -> Result<DrainAnswer, Refused> {
        let snapshot = self.snapshot()?;
        let members = snapshot.members()?;
        let member = members.iter().find(|m| m.server == server);
        let member = member.ok_or(meta::MetaError::NoSuchServer(server))?;
        let parts = snapshot.parts_at(server)?;
        let mut bytes = 0;
        for part in &parts {
            let of = subfile_bytes(&snapshot, part.file).unwrap_or_default();
            let here = part.subfiles.iter().filter_map(|&i| of.get(i as usize));
            bytes += here.map(|(_, bytes)| bytes).sum::<u64>();
        }
        let failure = self
            .moves
            .drains
            .lock()
            .get(&server)
            .map(|d| d.failure.clone());
        Ok(DrainAnswer {
            server,
            is_draining: member.is_draining,
            files: parts.len() as u64,
            bytes,
            moves: parts.iter().filter(|p| p.is_moving).count() as u64,
            failure: failure.unwrap_or_default(),
        })
    }

    /// Goes on with servers that were being drained.
    pub(super) fn resume_drains(&self) -> Result<(), Refused> {
        for member in self.snapshot()?.members()? {
            if member.is_draining {
                self.run_drain(member.server, MoveOptions::default(), true)?;
            }
        }
        Ok(())
    }

    fn run_drain(
        &self,
        server: ServerId,
        options: MoveOptions,
        is_resumed: bool,
    ) -> Result<(), Refused> {
        let now = Now {
            options,
            is_resumed,
            ..Now::default()
        };
        if self.moves.drains.lock().insert(server, now).is_some() {
            return Ok(()); // Its thread has the new options.
        }
        tracing::info!(server = server.0, is_resumed, "drain begun");
        let Some(this) = self.this().upgrade() else {
            return Ok(());
        };
        let spawned = thread::Builder::new()
            .name(format!("drain {}", server.0))
            .spawn(move || {
                while this.timer.pause(LOOK) {
                    let now = this.moves.drains.lock().get(&server).cloned();
                    let Some(now) = now else {
                        return;
                    };
                    let failure = match this.drain_some(server, &now.options) {
                        Ok(failure) => failure,
                        Err(refused) if refused.0 == Status::ShuttingDown => return,
                        Err(refused) => refused.1.text,
                    };
                    if let Some(now) = this.moves.drains.lock().get_mut(&server) {
                        if !failure.is_empty() && failure != now.failure {
                            tracing::warn!(server = server.0, why = failure, "drain is held up");
                        }
                        now.failure = failure;
                    }
                }
            });
        spawned.map(drop).map_err(|e| {
            self.moves.drains.lock().remove(&server);
            Refused::new(Status::NoMemory, format!("no thread to drain with: {e}"))
        })
    }

    /// Begins some moves; what stands against others.
    fn drain_some(&self, server: ServerId, options: &MoveOptions) -> Result<String, Refused> {
        let parts = self.snapshot()?.parts_at(server)?;
        let mut moving = parts.iter().filter(|p| p.is_moving).count();
        let mut failure = String::new();
        for part in parts.iter().filter(|p| !p.is_moving) {
            if moving >= AT_ONCE {
                break;
            }
            let target = MoveTarget::default();
            match self.begin_move(part.file, &target, options, None, |_| Ok(())) {
                Ok(_) => moving += 1,
                Err(refused) if refused.0 == Status::ShuttingDown => return Err(refused),
                Err(refused) => failure = format!("{}: {}", part.file, refused.1.text),
            }
        }
        for mv in self.moves.all() {
            let progress = mv.progress();
            if !progress.failure.is_empty() && parts.iter().any(|p| p.file == progress.file) {
                failure = format!("{}: {}", progress.file, progress.failure);
            }
        }
        Ok(failure)
    }

    /// Moves subfiles from servers that have many bytes to servers that have few.
    pub(crate) fn rebalance(
        &self,
        session: &mut Session,
        r: Rebalance,
    ) -> Result<Vec<SubfileMove>, Refused> {
        if r.is_trial {
            return self.plan_balance(session, &r.path);
        }
        let asked = session.asked()?;
        let _entered = self.moves.balancing.enter(asked)?;
        let (begun, plan) = match self.asked_before(asked)? {
            None => (0, self.plan_balance(session, &r.path)?),
            Some(note) => {
                let (begun, mut plan) = read_plan(&note)?;
                let snapshot = self.snapshot()?;
                for step in &mut plan {
                    let path = snapshot.path_of(step.file).ok().flatten();
                    step.path = path.unwrap_or_default();
                }
                (begun, plan)
            }
        };
        let mut by_file: BTreeMap<FileId, Vec<(u32, ServerId)>> = BTreeMap::new();
        for step in &plan {
            by_file
                .entry(step.file)
                .or_default()
                .push((step.subfile, step.to));
        }
        for (i, (file, subfiles)) in by_file.into_iter().enumerate().skip(begun) {
            let target = MoveTarget {
                subfiles,
                ..MoveTarget::default()
            };
            let note = (asked, noted_plan(i + 1, &plan));
            self.begin_move(file, &target, &r.options, Some(note), |_| Ok(()))?;
        }
        Ok(plan)
    }

    /// What a rebalancing of a file, or of all, would move.
    fn plan_balance(&self, session: &Session, path: &str) -> Result<Vec<SubfileMove>, Refused> {
        let snapshot = self.read(session)?;
        let members: Vec<_> = snapshot.members()?;
        let mut loads: BTreeMap<u64, u64> = BTreeMap::new();
        for m in &members {
            if m.state == MemberState::Alive && !m.is_draining {
                loads.insert(m.server.0, 0);
            }
        }
        let mut files = Vec::new();
        if path.is_empty() {
            self.demand_operator(session)?;
            for server in loads.keys().copied().collect::<Vec<_>>() {
                for part in snapshot.parts_at(ServerId(server))? {
                    if !part.is_moving && !files.contains(&part.file) {
                        files.push(part.file);
                    }
                }
            }
        } else {
            let target = MoveTarget::default();
            files.push(snapshot.may_relayout(&session.credentials, path, &target)?);
        }
        // By the sizes of files: what servers report as used is of a while ago, and of other files too when one
        // is balanced by itself.
        for &file in &files {
            for (server, bytes) in subfile_bytes(&snapshot, file)? {
                if let Some(load) = loads.get_mut(&server) {
                    *load += bytes;
                }
            }
        }
        plan(&snapshot, &files, &mut loads)
    }
}

/// Single moves, each from the server with most bytes to the one with least, as long as that makes the larger of
/// the two smaller.
fn plan(
    snapshot: &Snapshot,
    files: &[FileId],
    loads: &mut BTreeMap<u64, u64>,
) -> Result<Vec<SubfileMove>, Refused> {
    let mut subfiles: Vec<SubfileMove> = Vec::new();
    for &file in files {
        let path = snapshot.path_of(file)?.unwrap_or_default();
        for (i, (server, bytes)) in subfile_bytes(snapshot, file)?.into_iter().enumerate() {
            subfiles.push(SubfileMove {
                file,
                path: path.clone(),
                subfile: i as u32,
                from: ServerId(server),
                to: ServerId(server),
                bytes,
            });
        }
    }
    let mut plan: Vec<SubfileMove> = Vec::new();
    while plan.len() < MOST_MOVES {
        let most = loads.iter().max_by_key(|(_, load)| **load);
        let least = loads.iter().min_by_key(|(_, load)| **load);
        let (Some((&from, &high)), Some((&to, &low))) = (most, least) else {
            break;
        };
        let half = (high - low) / 2;
        let is_good = |s: &&mut SubfileMove| s.to.0 == from && s.bytes > 0 && s.bytes < high - low;
        let best = subfiles
            .iter_mut()
            .filter(is_good)
            .min_by_key(|s| s.bytes.abs_diff(half));
        let Some(best) = best else {
            break;
        };
        // What is hardly better is not worth a move.
        if best.bytes.min(high - low - best.bytes) * 16 < high - low {
            break;
        }
        best.to = ServerId(to);
        *loads.entry(from).or_default() -= best.bytes;
        *loads.entry(to).or_default() += best.bytes;
        plan.retain(|p| (p.file, p.subfile) != (best.file, best.subfile));
        if best.from != best.to {
            plan.push(best.clone());
        }
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_that_is_being_done_is_not_done_beside_it() {
        let balancing = Balancing::default();
        let asked = |number| Identity {
            client: ClientId(1),
            number,
            kind: 0x31,
            is_repeated: true,
        };
        let first = balancing.enter(asked(7)).unwrap();
        let busy = balancing.enter(asked(7)).err().unwrap();
        assert_eq!(busy.0, Status::Busy);
        drop(balancing.enter(asked(8)).unwrap());
        assert!(balancing.enter(asked(7)).is_err());
        drop(first);
        assert!(balancing.enter(asked(7)).is_ok());
    }

    #[test]
    fn plan_that_was_noted_is_read_again_and_fits() {
        let step = SubfileMove {
            file: FileId(u64::MAX),
            path: "/left/out".into(),
            subfile: u32::MAX,
            from: ServerId(u64::MAX),
            to: ServerId(u64::MAX),
            bytes: u64::MAX,
        };
        let note = noted_plan(3, &vec![step.clone(); MOST_MOVES]);
        assert!(note.len() <= 16 << 10, "{} bytes", note.len());
        let (begun, plan) = read_plan(&note).unwrap();
        let path = String::new();
        assert_eq!((begun, plan.len()), (3, MOST_MOVES));
        assert_eq!(plan[0], SubfileMove { path, ..step });
        assert!(read_plan(&note[1..]).is_err());
    }
}
