//! Where VPs read and write next: seeking, telling, the end (3.5 of the specification).
//!
//! A seek of all VPs to one place leads back to the fast modes, also after every VP went for itself (M-09). A seek under a mask, or
//! to a place for each VP, does not. Nothing is exchanged.

use std::io::SeekFrom;

use client::{Error, Result};

use crate::context::Context;
use crate::stream::{At, Stream};
use crate::transfer::Counts;

/// A place before the beginning, or beyond 2^63.
fn no_place() -> Error {
    Error::Argument {
        name: "position",
        text: "is before the beginning of a stream or beyond 2^63 - 1; give a place in between"
            .into(),
    }
}

fn moved(from: u64, by: i64) -> Result<u64> {
    from.checked_add_signed(by)
        .filter(|to| i64::try_from(*to).is_ok())
        .ok_or_else(no_place)
}

impl Stream {
    /// Moves the active VPs: all to one place, by one distance, or to one distance from the end of each stream (`fseek` with scalar
    /// arguments). A place behind the end is one: what lies between becomes zeros with the next write (G-17).
    pub fn seek(&mut self, context: &Context, to: SeekFrom) -> Result<()> {
        self.check_context(context)?;
        if context.is_everywhere() {
            let target = match (to, self.at) {
                (SeekFrom::Start(to), _) => Some(moved(to, 0)?),
                (SeekFrom::Current(by), At::Uniform { position, .. }) => Some(moved(position, by)?),
                (SeekFrom::End(by), At::Uniform { .. })
                    if !self.has_independent() && !self.is_doubtful && !self.is_unread() =>
                {
                    Some(moved(self.uniform_len(), by)?)
                }
                _ => None,
            };
            if let Some(position) = target {
                self.at = At::Uniform {
                    position,
                    is_ended: false,
                };
                return match self.options.least {
                    crate::options::Mode::Ib => self.become_each(),
                    _ => Ok(()),
                };
            }
        }
        self.become_each()?;
        // All or none: places are checked before any VP moves.
        let active: Vec<usize> = context.active(self.emulation.count()).collect();
        let places = active.iter().map(|local| self.target(*local, to));
        let places: Vec<u64> = places.collect::<Result<_>>()?;
        for (local, position) in active.into_iter().zip(places) {
            self.set_vp_position(local, position);
        }
        Ok(())
    }

    /// Moves each active VP to a place of its own (the most general `fseek`, A-08).
    pub fn seek_each(&mut self, context: &Context, places: &[u64]) -> Result<()> {
        self.check_context(context)?;
        let count = self.emulation.count();
        if places.len() != count {
            return Err(Error::Argument {
                name: "places",
                text: format!("{} of them, but this member has {count} VPs", places.len()),
            });
        }
        places.iter().try_for_each(|to| moved(*to, 0).map(drop))?;
        self.become_each()?;
        for local in context.active(count) {
            self.set_vp_position(local, places[local]);
        }
        Ok(())
    }

    /// Moves all VPs to the beginning.
    pub fn rewind(&mut self) -> Result<()> {
        self.seek(&Context::everywhere(), SeekFrom::Start(0))
    }

    /// Where VPs are.
    pub fn positions(&self) -> Counts {
        match self.at {
            At::Uniform { position, .. } => Counts::Uniform(position),
            At::Each => Counts::Each(self.vps.iter().map(|vp| vp.position).collect()),
        }
    }

    /// Whether the last read of a VP came to the end of its stream.
    pub fn is_at_end(&self, local: usize) -> bool {
        match self.at {
            At::Uniform { is_ended, .. } => is_ended,
            At::Each => self.vps.get(local).is_some_and(|vp| vp.flags.is_ended),
        }
    }

    /// Whether an operation of a VP, or of this member, failed.
    pub fn has_failed(&self, local: usize) -> bool {
        self.failure.is_some() || self.vps.get(local).is_some_and(|vp| vp.flags.has_failed)
    }

    /// Bytes in the streams of this member's VPs.
    pub fn lengths(&mut self) -> Result<Counts> {
        if self.is_unread() {
            return Ok(Counts::Uniform(self.raw.size()?.div_ceil(self.all_vps())));
        }
        if !self.has_independent() {
            return Ok(Counts::Uniform(self.uniform_len()));
        }
        self.have_vps()?;
        let uniform = self.uniform_len();
        Ok(Counts::Each(
            self.vps.iter().map(|vp| uniform + vp.len).collect(),
        ))
    }

    pub(crate) fn set_vp_position(&mut self, local: usize, position: u64) {
        let vp = &mut self.vps[local];
        vp.position = position;
        vp.flags.is_ended = false;
    }

    /// Where a seek leads one VP.
    pub(crate) fn target(&self, local: usize, to: SeekFrom) -> Result<u64> {
        let vp = &self.vps[local];
        match to {
            SeekFrom::Start(to) => moved(to, 0),
            SeekFrom::Current(by) => moved(vp.position, by),
            SeekFrom::End(by) => moved(self.uniform_len() + vp.len, by),
        }
    }
}
