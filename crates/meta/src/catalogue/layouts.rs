//! Layout states and how they change.
//!
//! A file has one generation of its layout, or two while it is being moved. Every change takes a new
//! generation number, and numbers of abandoned ones are not used again, since servers may still hold
//! bytes of them. While a re-layout is under way the old piece governs the bytes below the size at
//! its start and the new piece the rest; the frontiers say how far each lane has come inside the
//! old part. Who moves the bytes, and when servers stop and go, is not known here.

use wire::message::catalogue::LayoutSpec;
use wire::{LayoutState, Piece, Place};

use super::access::{Caller, Permission, demand};
use super::choose_layout::{Chosen, choose};
use super::member::candidates;
use super::path::resolve;
use super::record::{Body, file_node, key, layout_state, put_layout_state, put_node, read_node};
use super::rows::Rows;
use super::{Batch, Credentials, Snapshot};
use crate::error::MetaError;
use crate::{FileId, Rights};

/// A layout state as it is stored, which is as it travels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayoutInfo {
    bytes: Vec<u8>,
}

impl LayoutInfo {
    /// The state in the encoding of `wire`.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The server that owns the file, without looking at the rest.
    pub fn owner(&self) -> Result<Place, MetaError> {
        super::record::decode(&key::layouts(), &self.bytes, |r| {
            let owner = Place {
                server: r.number()?,
                incarnation: r.number()?,
            };
            r.take(r.left())?;
            Ok(owner)
        })
    }

    /// The state. Checks the partition again, which takes time in proportion to its description.
    pub fn decode(&self) -> Result<LayoutState, MetaError> {
        super::record::decode(&key::layouts(), &self.bytes, LayoutState::read)
    }
}

pub(crate) fn layout_info(rows: &dyn Rows, file: FileId) -> Result<LayoutInfo, MetaError> {
    let bytes = rows
        .get(&key::layout(file))?
        .ok_or(MetaError::NoSuchFile(file))?;
    Ok(LayoutInfo { bytes })
}

impl Snapshot {
    /// The layout state of a file.
    pub fn layout(&self, file: FileId) -> Result<LayoutInfo, MetaError> {
        layout_info(&self.rows, file)
    }

    /// The file that somebody wants to move into another layout, if he may and if the layout can be
    /// had; whether something else has to end first is found when it begins.
    pub fn may_relayout(
        &self,
        who: &Credentials,
        path: &str,
        layout: &str,
    ) -> Result<FileId, MetaError> {
        let (file, node) = resolve(&self.rows, who, path)?;
        if node.is_directory() {
            return Err(MetaError::IsDirectory(path.to_owned()));
        }
        demand(&node, who, Permission::Write, path)?;
        let (_, body) = file_node(&self.rows, file)?;
        let servers = candidates(&self.rows)?.len();
        choose(body.array.as_deref(), Some(layout), servers)?;
        Ok(file)
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
}

impl Batch<'_> {
    /// Gives a file without bytes another layout, and another array if one is given. Nobody else
    /// may have it open for writing: bytes he has written need not be known here yet.
    pub fn set_layout(
        &mut self,
        caller: &Caller<'_>,
        path: &str,
        spec: &LayoutSpec,
    ) -> Result<LayoutInfo, MetaError> {
        self.one(|b| b.set_layout_now(caller, path, spec))
    }

    fn set_layout_now(
        &mut self,
        caller: &Caller<'_>,
        path: &str,
        spec: &LayoutSpec,
    ) -> Result<LayoutInfo, MetaError> {
        let (file, node) = resolve(&self.rows, caller.credentials, path)?;
        demand(&node, caller.credentials, Permission::Write, path)?;
        let (mut node, mut body) = file_node(&self.rows, file)?;
        if body.size > 0 || body.truncate_to.is_some() {
            return Err(MetaError::NotEmptyFile(file));
        }
        if body.next_layout.is_some() {
            return Err(MetaError::Busy("a re-layout of the file is under way"));
        }
        if self.handles.recovering {
            return Err(MetaError::Busy("clients are still coming back"));
        }
        let writes = |h: &super::handles::Handle| h.rights.allow(Rights::WRITE);
        if self
            .handles
            .of_file(file)
            .any(|(_, h)| h.client != caller.client && writes(&h))
        {
            let how = "somebody else has it open for writing";
            return Err(MetaError::InUse { file, how });
        }
        let array = spec.array.clone().or(body.array.clone());
        let chosen = self.choose(array.as_deref(), spec.layout.as_deref())?;
        let old = layout_state(&self.rows, file)?;
        self.remove_bytes(file, &old)?;
        let generation = body.next_generation;
        let text = chosen.text.clone();
        let piece = self.piece(chosen, generation, std::iter::once(0..u64::MAX).collect())?;
        let state = LayoutState {
            owner: piece.places[0][0],
            pieces: vec![piece],
            relayout_start: 0,
            frontiers: Vec::new(),
        };
        put_layout_state(&mut self.rows, file, &state);
        body.next_generation += 1;
        body.array = array;
        body.layout = text;
        node.body = Body::File(body);
        node.changed = caller.now;
        put_node(&mut self.rows, file, &node);
        layout_info(&self.rows, file)
    }

    fn choose(&self, array: Option<&str>, text: Option<&str>) -> Result<Chosen, MetaError> {
        choose(array, text, candidates(&self.rows)?.len())
    }

    fn piece(
        &mut self,
        chosen: Chosen,
        generation: u64,
        ranges: Vec<std::ops::Range<u64>>,
    ) -> Result<Piece, MetaError> {
        let places = self.place(chosen.partition.len(), chosen.listed.as_deref())?;
        Ok(Piece {
            ranges,
            generation,
            partition: chosen.partition,
            places: places.into_iter().map(|p| vec![p]).collect(),
        })
    }

    /// The number of what has this path now.
    pub fn find(&mut self, caller: &Caller<'_>, path: &str) -> Result<FileId, MetaError> {
        self.one(|b| Ok(resolve(&b.rows, caller.credentials, path)?.0))
    }

    /// Starts a re-layout of a file that has `size` bytes, in lanes that begin at `frontiers`.
    /// Bytes at or above `size` belong to the new generation from now on.
    pub fn begin_relayout(
        &mut self,
        caller: &Caller<'_>,
        path: &str,
        layout: &str,
        size: u64,
        frontiers: &[u64],
    ) -> Result<LayoutInfo, MetaError> {
        self.one(|b| {
            let (file, node) = resolve(&b.rows, caller.credentials, path)?;
            demand(&node, caller.credentials, Permission::Write, path)?;
            let (mut node, mut body) = file_node(&b.rows, file)?;
            if body.next_layout.is_some() {
                return Err(MetaError::Busy("a re-layout of the file is under way"));
            }
            if body.truncate_to.is_some() {
                return Err(MetaError::Busy("a truncate of the file is under way"));
            }
            if !frontiers.is_sorted() || frontiers.iter().any(|&f| f > size) {
                return Err(MetaError::argument(
                    "frontiers",
                    "lanes begin in ascending order, none behind the size",
                ));
            }
            let chosen = b.choose(body.array.as_deref(), Some(layout))?;
            let mut state = layout_state(&b.rows, file)?;
            let generation = body.next_generation;
            let text = chosen.text.clone();
            let piece = b.piece(
                chosen,
                generation,
                std::iter::once(size..u64::MAX).collect(),
            )?;
            state.pieces[0].ranges = std::iter::once(0..size).filter(|r| !r.is_empty()).collect();
            state.pieces.push(piece);
            state.relayout_start = size;
            state.frontiers = frontiers.to_vec();
            put_layout_state(&mut b.rows, file, &state);
            body.size = body.size.max(size);
            body.next_generation += 1;
            body.next_layout = Some(text);
            node.changed = caller.now;
            node.body = Body::File(body);
            put_node(&mut b.rows, file, &node);
            layout_info(&b.rows, file)
        })
    }

    /// Lanes of the re-layout to `generation` have come this far; none goes back.
    pub fn advance_relayout(
        &mut self,
        file: FileId,
        generation: u64,
        frontiers: &[u64],
    ) -> Result<LayoutInfo, MetaError> {
        self.one(|b| {
            let mut state = b.moving(file, generation)?;
            let forward = frontiers.len() == state.frontiers.len()
                && frontiers
                    .iter()
                    .zip(&state.frontiers)
                    .all(|(new, old)| (*old..=state.relayout_start).contains(new));
            if !forward {
                return Err(MetaError::argument(
                    "frontiers",
                    "one per lane, none before its last place, none behind the start size",
                ));
            }
            state.frontiers = frontiers.to_vec();
            put_layout_state(&mut b.rows, file, &state);
            layout_info(&b.rows, file)
        })
    }

    /// All bytes are in the new generation; those of the old one are removed.
    pub fn commit_relayout(
        &mut self,
        file: FileId,
        generation: u64,
    ) -> Result<LayoutInfo, MetaError> {
        self.one(|b| b.end_relayout(file, generation, 1))
    }

    /// The file stays in the old generation; bytes already copied to the new one are removed. Only
    /// while the old one still has everything: no frontier has moved, and the file, which has
    /// `size` bytes now, has not grown.
    pub fn abort_relayout(
        &mut self,
        file: FileId,
        generation: u64,
        size: u64,
        started_at: &[u64],
    ) -> Result<LayoutInfo, MetaError> {
        self.one(|b| {
            let state = b.moving(file, generation)?;
            if size > state.relayout_start || state.frontiers != started_at {
                let how = "bytes live in the new layout already; move them back first";
                return Err(MetaError::InUse { file, how });
            }
            b.end_relayout(file, generation, 0)
        })
    }

    /// The state of a file that is moved to `generation`.
    fn moving(&self, file: FileId, generation: u64) -> Result<LayoutState, MetaError> {
        let state = layout_state(&self.rows, file)?;
        match state.pieces.get(1) {
            Some(piece) if piece.generation == generation => Ok(state),
            _ => Err(MetaError::WrongGeneration {
                file,
                given: generation,
            }),
        }
    }

    /// Keeps one of the two pieces.
    fn end_relayout(
        &mut self,
        file: FileId,
        generation: u64,
        kept: usize,
    ) -> Result<LayoutInfo, MetaError> {
        let mut state = self.moving(file, generation)?;
        let mut dropped = state.clone();
        dropped.pieces.remove(kept);
        self.remove_bytes(file, &dropped)?;
        let mut piece = state.pieces.swap_remove(kept);
        piece.ranges = std::iter::once(0..u64::MAX).collect();
        // As for a new file: whoever owns a file holds a part of it, so that no server that lost its
        // last byte of a file can take the file with it. An owner that holds one stays: locks,
        // pointers and places of appends are with it.
        let stays = |place: &&Place| place.server == state.owner.server;
        let stays = piece.places.iter().flatten().find(stays);
        state.owner = *stays.unwrap_or(&piece.places[0][0]);
        state.pieces = vec![piece];
        state.relayout_start = 0;
        state.frontiers.clear();
        let (mut node, mut body) = file_node(&self.rows, file)?;
        if let (Some(text), 1) = (body.next_layout.take(), kept) {
            body.layout = text;
        }
        node.body = Body::File(body);
        put_node(&mut self.rows, file, &node);
        put_layout_state(&mut self.rows, file, &state);
        layout_info(&self.rows, file)
    }
}
