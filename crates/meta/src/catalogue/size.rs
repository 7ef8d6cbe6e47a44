//! Durable sizes and truncates under way.
//!
//! The server that owns a file reports its size at sync and close. Reports only raise it. A truncate
//! begins with a durable intent and a new epoch: from then on the size is the one truncated to for the file's servers,
//! reports of earlier epochs say nothing, and the intent stays until all servers have applied it, so
//! that a crash in between is finished and never forgotten. Clients are told size and epoch from before until then: a client
//! that knew the new size could write behind it, to a server that has not cut yet.

use super::access::Caller;
use control::moves;

use super::record::{Body, decode, file_node, key, layout_state, put_layout_state, put_node};
use super::{Batch, Identity, Snapshot};
use crate::error::MetaError;
use crate::{FileId, HandleId, Rights, Time};
use wire::{SizeState, put_number};

impl Snapshot {
    /// What is durable about a file's size.
    pub fn size(&self, file: FileId) -> Result<SizeState, MetaError> {
        let (_, body) = file_node(&self.rows, file)?;
        Ok(SizeState {
            size: body.size,
            epoch: body.epoch,
            truncate_to: body.truncate_to,
        })
    }
}

impl Batch<'_> {
    /// The owner reports a size that it found in this epoch. One of an earlier epoch changes
    /// nothing; the answer tells the owner what holds now.
    pub fn report_size(
        &mut self,
        file: FileId,
        epoch: u64,
        size: u64,
        modified: Time,
    ) -> Result<SizeState, MetaError> {
        self.change_size(file, |state, node_modified| {
            if epoch > state.epoch {
                return Err(MetaError::argument(
                    "epoch",
                    format!("{epoch} has not begun; {} is the latest", state.epoch),
                ));
            }
            if epoch == state.epoch {
                state.size = state.size.max(size);
                *node_modified = modified.max(*node_modified);
            }
            Ok(())
        })
    }

    /// Starts to set the size, up or down, for a client that has the file open for writing.
    pub fn begin_truncate(
        &mut self,
        caller: &Caller<'_>,
        handle: HandleId,
        to: u64,
    ) -> Result<SizeState, MetaError> {
        let file = self.demand_handle(caller, handle, Rights::WRITE)?;
        if to > falls::MAX_OFFSET {
            return Err(MetaError::argument(
                "size",
                format!("{to}; at most {}", falls::MAX_OFFSET),
            ));
        }
        // What is cut off need not move any more; from there on the file grows in its new layout.
        let cut = moves::cut(&layout_state(&self.rows, file)?, to);
        let begun = self.change_size(file, |state, modified| {
            if state.truncate_to.is_some() {
                return Err(MetaError::Busy("a truncate of the file is under way"));
            }
            *state = SizeState {
                size: to,
                epoch: state.epoch + 1,
                truncate_to: Some(to),
            };
            *modified = caller.now;
            Ok(())
        })?;
        if let Some(cut) = cut {
            self.one(|b| {
                put_layout_state(&mut b.rows, file, &cut);
                Ok(())
            })?;
        }
        Ok(begun)
    }

    /// [`Batch::begin_truncate`] for a request that a client may send again: the catalogue begins it once, and answers the
    /// second with the epoch of the first.
    pub fn begin_truncate_once(
        &mut self,
        caller: &Caller<'_>,
        identity: Identity,
        handle: HandleId,
        to: u64,
    ) -> Result<SizeState, MetaError> {
        self.once(
            identity,
            |b| {
                let begun = b.begin_truncate(caller, handle, to)?;
                let mut note = Vec::new();
                put_number(&mut note, begun.epoch);
                Ok((begun, note))
            },
            |_, note| {
                let epoch = decode(&key::answers(), note, |r| r.number())?;
                Ok(SizeState {
                    size: to,
                    epoch,
                    truncate_to: Some(to),
                })
            },
        )
    }

    /// All servers have applied the truncate of this epoch. Saying so twice is no mistake.
    pub fn finish_truncate(&mut self, file: FileId, epoch: u64) -> Result<SizeState, MetaError> {
        self.change_size(file, |state, _| {
            if epoch > state.epoch {
                return Err(MetaError::argument("epoch", "has not begun"));
            }
            if epoch == state.epoch {
                state.truncate_to = None;
            }
            Ok(())
        })
    }

    fn change_size(
        &mut self,
        file: FileId,
        change: impl FnOnce(&mut SizeState, &mut Time) -> Result<(), MetaError>,
    ) -> Result<SizeState, MetaError> {
        self.one(|b| {
            let (mut node, mut body) = file_node(&b.rows, file)?;
            let before = SizeState {
                size: body.size,
                epoch: body.epoch,
                truncate_to: body.truncate_to,
            };
            let mut state = before;
            let mut modified = node.modified;
            change(&mut state, &mut modified)?;
            if state != before {
                b.handles.settled.lock().reported(file);
            }
            if state != before || modified != node.modified {
                body.size = state.size;
                body.epoch = state.epoch;
                body.size_before = match (before.truncate_to, state.truncate_to) {
                    (None, Some(_)) => Some(before.size),
                    (_, None) => None,
                    (Some(_), Some(_)) => body.size_before,
                };
                body.truncate_to = state.truncate_to;
                node.modified = modified;
                node.body = Body::File(body);
                put_node(&mut b.rows, file, &node);
            }
            Ok(state)
        })
    }
}
