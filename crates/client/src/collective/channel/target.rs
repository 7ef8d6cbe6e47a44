//! The side of a channel that takes.
//!
//! Invariants
//! - With two buffers a target is ready for the turn that it takes and for the next, otherwise for the one that it takes: what
//!   comes too early stays with its sources.
//! - The end is told when all sources have said it, behind the same turn.

use std::fmt;

use kernels::SharedBytesMut;
use parking_lot::Mutex;
use wire::put_number;

use super::opening::{ChannelArray, ChannelOptions, Role, open};
use super::source::{ChannelMode, out_of_bounds};
use super::{Kind, Link};
use crate::client::Client;
use crate::collective::team::Team;
use crate::error::Result;

/// Turns that a target is ready for with [`ChannelMode::Double`].
const AHEAD: u64 = 2;

#[derive(Debug, Default)]
struct Progress {
    /// Turns that the sources know this member to be ready for.
    ready: u64,
    taken: u64,
    is_over: bool,
}

/// The side of a channel that takes: an array, turn after turn, each member its part.
///
/// All members of the program call the same functions in the same order, and so does the other program.
pub struct ChannelTarget {
    link: Link,
    progress: Mutex<Progress>,
    is_closed: bool,
}

impl fmt::Debug for ChannelTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChannelTarget({})", self.link.name)
    }
}

impl ChannelTarget {
    /// Opens the taking side; all members of the program call it, and returns when the program that gives has come.
    ///
    /// A member whose array is wrong gives an error as `mine`, so that the others do not wait for it.
    pub fn open(
        client: &Client,
        team: &Team,
        name: &str,
        mine: Result<ChannelArray>,
        options: &ChannelOptions,
    ) -> Result<ChannelTarget> {
        let side = (Role::Takes, ChannelMode::Blocking);
        let target = ChannelTarget {
            link: open(client, team, name, side, mine, options)?,
            progress: Mutex::default(),
            is_closed: false,
        };
        if target.link.buffering == ChannelMode::Double {
            let mut progress = target.progress.lock();
            progress.ready = AHEAD;
            target.say(&progress);
        }
        Ok(target)
    }

    /// Bytes of this member's part.
    pub fn part_bytes(&self) -> u64 {
        self.link.part_bytes
    }

    /// Members of the program that gives.
    pub fn other_size(&self) -> usize {
        self.link.givers.len()
    }

    /// When a `put` of the other program returns.
    pub fn buffering(&self) -> ChannelMode {
        self.link.buffering
    }

    /// Turns taken so far.
    pub fn turns(&self) -> u64 {
        self.progress.lock().taken
    }

    /// Takes the next turn: this member's part, packed in the order of the array. Gives its number, from 0 on, or nothing if
    /// the other program has closed the channel. A call that is refused for its memory takes none.
    pub fn get(&self, to: SharedBytesMut<'_>) -> Result<Option<u64>> {
        let link = &self.link;
        link.check()?;
        link.check_memory("to", to.len())?;
        let mut progress = self.progress.lock();
        if progress.is_over {
            return Ok(None);
        }
        let taken = self.take(&mut progress, to);
        link.fail(taken)
    }

    fn take(&self, progress: &mut Progress, mut to: SharedBytesMut<'_>) -> Result<Option<u64>> {
        let link = &self.link;
        let turn = progress.taken;
        if progress.ready <= turn {
            progress.ready = turn + 1;
            // A source that has said the end may have gone; what it has said comes next.
            self.say(progress);
        }
        let end = link.shares.array().raw().end;
        let mut ended = 0;
        for &partner in &link.partners {
            let share = link.shares.taken(partner);
            let (mut at, mut left) = (0, link.shares.taken_bytes(partner));
            loop {
                let (kind, number, message) = link.receive(partner)?;
                match kind {
                    Kind::Data if number == turn => {}
                    Kind::End if number == turn && at == 0 => {
                        ended += 1;
                        break;
                    }
                    _ => {
                        let text = format!("rank {partner} is at turn {number} and not at {turn}");
                        return Err(link.odd(text));
                    }
                }
                let len = message.bytes.len() as u64;
                if len > left || len == 0 && left > 0 {
                    return Err(link.odd(format!("rank {partner} gives {len} bytes of {left}")));
                }
                let next = share.after(at..end, len);
                share
                    .scatter_right(at..next, &message.bytes, to.reborrow(), 0)
                    .map_err(out_of_bounds)?;
                (at, left) = (next, left - len);
                if left == 0 {
                    break;
                }
            }
        }
        if ended > 0 {
            if ended < link.partners.len() {
                let text = "members of the program that gives closed it after different turns";
                return Err(link.odd(text));
            }
            progress.is_over = true;
            return Ok(None);
        }
        progress.taken += 1;
        if link.buffering == ChannelMode::Double {
            progress.ready = progress.taken + AHEAD;
        }
        self.say(progress);
        Ok(Some(turn))
    }

    /// Tells the sources how far it is. Where one is gone, waiting for it will tell.
    fn say(&self, progress: &Progress) {
        let mut state = Vec::new();
        put_number(&mut state, progress.ready);
        put_number(&mut state, progress.taken);
        for &partner in &self.link.partners {
            let _ = self.link.send(partner, Kind::State, progress.taken, &state);
        }
    }

    /// Takes no more turns; a program that goes on giving is told.
    pub fn close(mut self) -> Result<()> {
        self.is_closed = true;
        self.link.check()?;
        let progress = self.progress.lock();
        if !progress.is_over {
            for &to in &self.link.partners {
                // One that has closed its side may have gone.
                let _ = self.link.send(to, Kind::Closed, progress.taken, &[]);
            }
        }
        Ok(())
    }
}

impl Drop for ChannelTarget {
    fn drop(&mut self) {
        if !self.is_closed {
            self.link.give_up(Role::Takes.verb());
        }
    }
}
