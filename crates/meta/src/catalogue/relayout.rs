//! Moves of files between layouts, or between servers: what of them is durable.
//!
//! A move is in the layout state of its file (which bytes are in which generation) and in a row of its own (how
//! to go on). Every change is one operation: begun, advanced, cancelled, finished. A caller that changes a
//! state says which step it knows, so that none changes what another has changed since.
//!
//! Left to others: how the ranges of both pieces change (`control::moves`), who moves the bytes, and when
//! servers stop and go (`metaserver`).

use std::collections::BTreeMap;
use std::ops::Range;

use control::moves;
use wire::message::catalogue::{Expectation, Member};
use wire::{LayoutState, Piece, Place};

use super::access::{Caller, Permission, demand};
use super::choose_layout::{LayoutChoice, choose};
use super::layouts::{LayoutInfo, layout_info};
use super::member::{candidates, members};
use super::path::resolve;
use super::record::{
    Body, Distribution, MoveRecord, decode, file_node, key, layout_state, put_distribution,
    put_layout_state, put_move, put_node, read_move, read_node,
};
use super::rows::Rows;
use super::{Batch, Credentials, Snapshot};
use crate::error::MetaError;
use crate::{FileId, ServerId, Time};

/// Lanes begin at multiples of this.
const LANE_ALIGN: u64 = 64 << 10;

/// Where a file is to go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MoveTarget {
    /// The layout; empty for the one it has.
    pub layout: String,
    /// By subfile, its server; begun again when there are more subfiles. Empty leaves it to the rule.
    pub servers: Vec<u64>,
    /// Single subfiles and where they go, instead of all that.
    pub subfiles: Vec<(u32, ServerId)>,
}

/// What a server has of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartAt {
    /// The file.
    pub file: FileId,
    /// Its subfiles in the layout it is in, or is going to be in.
    pub subfiles: Vec<u32>,
    /// Whether the server owns it.
    pub is_owner: bool,
    /// Whether the file is being moved.
    pub is_moving: bool,
}

impl Snapshot {
    /// The file that a client wants to move, if it may and if the target can be had; whether something else has
    /// to end first is found when it begins.
    pub fn may_relayout(
        &self,
        who: &Credentials,
        path: &str,
        target: &MoveTarget,
    ) -> Result<FileId, MetaError> {
        let (file, node) = resolve(&self.rows, who, path)?;
        if node.is_directory() {
            return Err(MetaError::IsDirectory(path.to_owned()));
        }
        demand(&node, who, Permission::Write, path)?;
        let (_, body) = file_node(&self.rows, file)?;
        let servers = candidates(&self.rows)?.len();
        if !target.layout.is_empty() {
            let array = body.array.as_deref().map(str::parse).transpose()?;
            choose(array.as_ref(), Some(&target.layout), servers, || None)?;
        }
        Ok(file)
    }

    /// Refuses a client that may not change a file.
    pub fn may_write(&self, who: &Credentials, file: FileId) -> Result<(), MetaError> {
        let (node, _) = file_node(&self.rows, file)?;
        demand(&node, who, Permission::Write, &node.name)
    }

    /// The layout that a file is moved to, and its generation; nothing if it does not move.
    pub fn next_layout(&self, file: FileId) -> Result<Option<(u64, String)>, MetaError> {
        let (_, body) = file_node(&self.rows, file)?;
        // No other move begins before it has ended, so the generation that was given out last is its.
        Ok(body
            .next_layout
            .map(|text| (body.next_generation - 1, text)))
    }

    /// Files that are between two layouts.
    pub fn moving_files(&self) -> Result<Vec<FileId>, MetaError> {
        let mut moving = Vec::new();
        self.rows.for_each(&key::nodes(), &mut |key, bytes| {
            let node = read_node(key, bytes)?;
            if node.file().is_some_and(|body| body.next_layout.is_some()) {
                moving.extend(key::number(key, 0).map(FileId));
            }
            Ok(())
        })?;
        Ok(moving)
    }

    /// How the move of a file goes on.
    pub fn move_record(&self, file: FileId) -> Result<Option<MoveRecord>, MetaError> {
        let key = key::moving(file);
        let bytes = self.rows.get(&key)?;
        bytes.map(|bytes| read_move(&key, &bytes)).transpose()
    }

    /// What a server has to do with which files.
    pub fn parts_at(&self, server: ServerId) -> Result<Vec<PartAt>, MetaError> {
        let mut parts = Vec::new();
        self.rows.for_each(&key::layouts(), &mut |key, bytes| {
            let state = decode(key, bytes, LayoutState::read)?;
            let Some(last) = state.pieces.last() else {
                return Ok(());
            };
            let is_here = |places: &[Place]| places.iter().any(|p| p.server == server.0);
            let at = last.places.iter().enumerate();
            let subfiles = at.filter(|(_, places)| is_here(places));
            let part = PartAt {
                file: FileId(key::number(key, 0).unwrap_or(0)),
                subfiles: subfiles.map(|(i, _)| i as u32).collect(),
                is_owner: state.owner.server == server.0,
                is_moving: state.pieces.len() > 1,
            };
            let first = state.pieces[0].places.iter();
            if part.is_owner
                || !part.subfiles.is_empty()
                || first.flatten().any(|p| p.server == server.0)
            {
                parts.push(part);
            }
            Ok(())
        })?;
        Ok(parts)
    }
}

impl Batch<'_> {
    /// The text of a layout that lists servers, with those of a piece; other texts as they are.
    fn with_servers(&mut self, text: &str, piece: &Piece) -> Result<String, MetaError> {
        let servers = piece.places.iter().map(|p| p[0].server.to_string());
        let servers: Vec<String> = servers.collect();
        for word in [" at [", " over ["] {
            let Some(at) = text.rfind(word).map(|at| at + word.len()) else {
                continue;
            };
            let Some(len) = text[at..].find(']') else {
                continue;
            };
            let new = format!("{}{}{}", &text[..at], servers.join(","), &text[at + len..]);
            // What the list cannot say, as one server twice, stays as it was.
            if self.is_layout(&new)? {
                return Ok(new);
            }
        }
        Ok(text.to_owned())
    }

    /// The number of what has this path now.
    pub fn find(&mut self, caller: &Caller<'_>, path: &str) -> Result<FileId, MetaError> {
        self.one(|b| Ok(resolve(&b.rows, caller.credentials, path)?.0))
    }

    /// Begins to move a file whose bytes end before `end`. From now on bytes at or above that belong to the
    /// new generation. A target that is what the file has already is refused.
    pub fn begin_relayout(
        &mut self,
        file: FileId,
        target: &MoveTarget,
        end: u64,
        mut record: MoveRecord,
        now: Time,
    ) -> Result<LayoutInfo, MetaError> {
        self.one(|b| {
            let (mut node, mut body) = file_node(&b.rows, file)?;
            if body.next_layout.is_some() {
                return Err(MetaError::Busy("a re-layout of the file is under way"));
            }
            if body.truncate_to.is_some() {
                return Err(MetaError::Busy("a truncate of the file is under way"));
            }
            let state = layout_state(&b.rows, file)?;
            let generation = body.next_generation;
            let (piece, text) = match target.layout.is_empty() {
                true => {
                    let piece = b.moved_piece(&state, target, generation)?;
                    let text = b.with_servers(&body.layout, &piece)?;
                    (piece, text)
                }
                false => {
                    let expected = Expectation::default();
                    let chosen =
                        b.choose(body.array.as_deref(), Some(&target.layout), &expected)?;
                    let text = chosen.text.clone();
                    (b.target_piece(chosen, target, generation)?, text)
                }
            };
            let lanes = moves::lanes(end, record.options.lanes as usize, LANE_ALIGN);
            let begun = moves::begin(&state, piece, lanes)
                .ok_or(MetaError::Busy("a re-layout of the file is under way"))?;
            let counting = moves::CopyCounter::new(&begun);
            record.total_bytes = counting.count_all(&begun.pieces[0].ranges);
            put_layout_state(&mut b.rows, file, &begun);
            put_move(&mut b.rows, file, &record);
            body.next_generation += 1;
            body.next_layout = Some(text);
            node.changed = now;
            node.body = Body::File(body);
            put_node(&mut b.rows, file, &node);
            layout_info(&b.rows, file)
        })
    }

    fn target_piece(
        &mut self,
        mut chosen: LayoutChoice,
        target: &MoveTarget,
        generation: u64,
    ) -> Result<Piece, MetaError> {
        if !target.servers.is_empty() {
            let servers = target.servers.iter().copied().cycle();
            chosen.listed = Some(servers.take(chosen.partition.len()).collect());
            chosen.choice = None;
        }
        self.piece(chosen, generation)
    }

    /// The layout of a file with other places. Subfiles that stay keep their stored bytes.
    fn moved_piece(
        &mut self,
        state: &LayoutState,
        target: &MoveTarget,
        generation: u64,
    ) -> Result<Piece, MetaError> {
        let old = &state.pieces[0];
        let count = old.places.len();
        let wanted: Vec<Option<ServerId>> = if !target.subfiles.is_empty() {
            let mut wanted = vec![None; count];
            for &(subfile, server) in &target.subfiles {
                let slot = wanted.get_mut(subfile as usize).ok_or_else(|| {
                    MetaError::argument(
                        "subfile",
                        format!("{subfile}; the layout has {count} of them"),
                    )
                })?;
                *slot = Some(server);
            }
            wanted
        } else if !target.servers.is_empty() {
            let servers = target.servers.iter().copied().cycle();
            servers.take(count).map(|s| Some(ServerId(s))).collect()
        } else {
            self.away(old)?
        };
        let mut piece = Piece {
            generation,
            ..old.clone()
        };
        let mut has_changed = false;
        for (i, wanted) in wanted.into_iter().enumerate() {
            let Some(server) = wanted else {
                continue;
            };
            if old.places[i].iter().any(|p| p.server == server.0) {
                continue;
            }
            piece.places[i] = self.place(1, Some(&[server.0]), None)?;
            piece.stores[i] = generation;
            has_changed = true;
        }
        match has_changed {
            true => Ok(piece),
            false => Err(MetaError::argument(
                "servers",
                "every subfile is where it is to be already",
            )),
        }
    }

    /// Where subfiles go that are on servers which take nothing new: to those with the fewest subfiles of the
    /// file.
    fn away(&mut self, old: &Piece) -> Result<Vec<Option<ServerId>>, MetaError> {
        let candidates = candidates(&self.rows)?;
        let all = members(&self.rows)?;
        let leaves = |place: &Place| {
            let member = all.iter().find(|m| m.server.0 == place.server);
            member.is_some_and(|m| m.is_draining)
        };
        let turn = self.turn()?;
        let mut loads: BTreeMap<u64, u64> = candidates.iter().map(|m| (m.server.0, 0)).collect();
        for place in old.places.iter().filter_map(|p| p.first()) {
            if let Some(load) = loads.get_mut(&place.server) {
                *load += 1;
            }
        }
        let n = candidates.len() as u64;
        let mut next = |places: &Vec<Place>| {
            places.first().filter(|p| leaves(p))?;
            let order =
                |(i, m): &(usize, &Member)| (loads[&m.server.0], (*i as u64 + n - turn % n) % n);
            let (_, best) = candidates.iter().enumerate().min_by_key(order)?;
            *loads.get_mut(&best.server.0)? += 1;
            Some(best.server)
        };
        Ok(old.places.iter().map(&mut next).collect())
    }

    /// The state of a file that is moved and has this step.
    fn moving(&self, file: FileId, step: u64) -> Result<LayoutState, MetaError> {
        let state = layout_state(&self.rows, file)?;
        match state.pieces.len() > 1 && state.step == step {
            true => Ok(state),
            false => Err(MetaError::WrongStep { file, given: step }),
        }
    }

    fn put_step(&mut self, file: FileId, state: &LayoutState) -> Result<LayoutInfo, MetaError> {
        put_layout_state(&mut self.rows, file, state);
        layout_info(&self.rows, file)
    }

    /// These bytes are in the second piece now, durably.
    pub fn advance_relayout(
        &mut self,
        file: FileId,
        step: u64,
        moved: &[Range<u64>],
    ) -> Result<LayoutInfo, MetaError> {
        self.one(|b| {
            let state = b.moving(file, step)?;
            let next = moves::advance(&state, moved).ok_or_else(|| {
                MetaError::argument("moved", "bytes that are not in the first piece")
            })?;
            b.put_step(file, &next)
        })
    }

    /// Everything that has moved moves back; the bytes of the file end before `end`.
    pub fn cancel_relayout(
        &mut self,
        file: FileId,
        step: u64,
        end: u64,
    ) -> Result<LayoutInfo, MetaError> {
        self.one(|b| {
            let state = b.moving(file, step)?;
            let Some(next) = moves::cancel(&state, end) else {
                return Err(MetaError::Busy("the file moves back already"));
            };
            let key = key::moving(file);
            if let Some(bytes) = b.rows.get(&key)? {
                let mut record = read_move(&key, &bytes)?;
                let counting = moves::CopyCounter::new(&next);
                record.total_bytes = counting.count_all(&next.pieces[0].ranges);
                put_move(&mut b.rows, file, &record);
            }
            b.put_step(file, &next)
        })
    }

    /// All bytes have moved: the file is in one generation, and what was stored for the other one is removed.
    pub fn finish_relayout(&mut self, file: FileId, step: u64) -> Result<LayoutInfo, MetaError> {
        self.one(|b| {
            let state = b.moving(file, step)?;
            let Some(next) = moves::finish(&state) else {
                let how = "bytes of it have still to move";
                return Err(MetaError::InUse { file, how });
            };
            b.remove_source(file, &state)?;
            let is_new = !moves::is_cancelled(&state);
            let (mut node, mut body) = file_node(&b.rows, file)?;
            if let (Some(text), true) = (body.next_layout.take(), is_new)
                && text != body.layout
            {
                body.layout = text;
                let moved = Distribution::given("given by a re-layout");
                put_distribution(&mut b.rows, file, &moved);
            }
            node.body = Body::File(body);
            put_node(&mut b.rows, file, &node);
            b.rows.remove(key::moving(file));
            b.put_step(file, &next)
        })
    }

    /// What the first piece has stored and the second has not is to be removed.
    fn remove_source(&mut self, file: FileId, state: &LayoutState) -> Result<(), MetaError> {
        let [source, target] = &state.pieces[..] else {
            return Ok(());
        };
        let stored = |piece: &Piece, i: usize| -> Vec<(u64, Place)> {
            piece.places[i]
                .iter()
                .map(|p| (piece.stores[i], *p))
                .collect()
        };
        let mut kept: Vec<(u64, u64)> = Vec::new();
        for i in 0..target.places.len() {
            kept.extend(
                stored(target, i)
                    .iter()
                    .map(|(store, p)| (*store, p.server)),
            );
        }
        let mut gone: BTreeMap<(u64, u64), (Place, Vec<u32>)> = BTreeMap::new();
        for i in 0..source.places.len() {
            if moves::stays(source, target, i) {
                continue;
            }
            for (store, place) in stored(source, i) {
                let entry = gone.entry((store, place.server));
                entry.or_insert((place, Vec::new())).1.push(i as u32);
            }
        }
        for ((store, server), (place, subfiles)) in gone {
            let subfiles: &[u32] = match kept.contains(&(store, server)) {
                true => &subfiles,
                false => &[],
            };
            self.remove_stored(file, store, place, subfiles)?;
        }
        Ok(())
    }

    /// Changes how a move goes on.
    pub fn change_move(
        &mut self,
        file: FileId,
        change: impl FnOnce(&mut MoveRecord),
    ) -> Result<MoveRecord, MetaError> {
        self.one(|b| {
            let (_, body) = file_node(&b.rows, file)?;
            if body.next_layout.is_none() {
                return Err(MetaError::argument("file", "it is not being moved"));
            }
            let key = key::moving(file);
            let before = b.rows.get(&key)?;
            // A move of a catalogue of version 1 has none.
            let mut record = match before {
                Some(bytes) => read_move(&key, &bytes)?,
                None => MoveRecord::default(),
            };
            change(&mut record);
            put_move(&mut b.rows, file, &record);
            Ok(record)
        })
    }
}
