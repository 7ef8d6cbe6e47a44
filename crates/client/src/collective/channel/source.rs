//! The side of a channel that gives.
//!
//! ```text
//!  blocking   put: waits until the others are ready, sends from the program's memory, returns when they have taken it
//!  double     put: packs into one of two buffers and returns; a thread sends in turn, each when the others are ready
//! ```
//!
//! Invariants
//! - The program's memory is its own again when `put` returns.
//! - At most two turns are packed here; the next `put` waits.

use std::fmt;
use std::sync::Arc;

use kernels::SharedBytes;
use parking_lot::{Condvar, Mutex};
use wire::{Reader, Status};

use super::opening::{ChannelArray, ChannelOptions, Role, open};
use super::{Kind, Link, PIECE_BYTES};
use crate::client::Client;
use crate::collective::team::Team;
use crate::error::{Error, Result};
use crate::transport::jobs::Jobs;

/// Turns that wait here with [`ChannelMode::Double`].
const BUFFERS: usize = 2;

/// When a `put` returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChannelMode {
    /// When the others have taken the turn; nothing is copied for it.
    #[default]
    Blocking,
    /// When the turn is in a buffer, of which there are two. The others may still read the one before.
    Double,
}

/// What the others have said last.
#[derive(Clone, Copy, Debug, Default)]
struct TargetState {
    ready: u64,
    taken: u64,
}

/// What goes to the other program; one thread at a time sends.
#[derive(Debug)]
struct Sender {
    link: Link,
    /// By partner.
    heard: Mutex<Vec<TargetState>>,
}

/// Buffers of turns.
#[derive(Debug, Default)]
struct Buffers {
    spare: Vec<Vec<u8>>,
    waiting: usize,
}

#[derive(Debug, Default)]
struct Queue {
    buffers: Mutex<Buffers>,
    changed: Condvar,
}

/// The side of a channel that gives: an array, turn after turn, each member its part.
///
/// All members of the program call the same functions in the same order, and so does the other program.
pub struct ChannelSource {
    sender: Arc<Sender>,
    queue: Arc<Queue>,
    jobs: Jobs<'static>,
    /// Turns given.
    turns: Mutex<u64>,
    is_closed: bool,
}

impl fmt::Debug for ChannelSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChannelSource({})", self.sender.link.name)
    }
}

impl Sender {
    /// Takes what a partner says; what it has said last is kept.
    fn hear(&self, heard: &mut TargetState, partner: usize) -> Result<()> {
        let (kind, turn, message) = self.link.receive(partner)?;
        match kind {
            Kind::State => {
                let mut r = Reader::new(&message.bytes);
                let said = (|| {
                    let said = (r.number()?, r.number()?);
                    r.finish()?;
                    Ok::<_, wire::DecodeError>(said)
                })();
                let (ready, taken) = said.map_err(|e| self.link.odd(e))?;
                *heard = TargetState { ready, taken };
                Ok(())
            }
            Kind::Closed => Err(self.link.closed(format!(
                "the program that takes closed it after {turn} turns"
            ))),
            _ => Err(self.link.odd(format!("rank {partner} gives as well"))),
        }
    }

    /// Why nothing can be sent to a partner: what it has said last, if that says more.
    fn why_gone(&self, heard: &mut TargetState, partner: usize, error: Error) -> Error {
        loop {
            match self.hear(heard, partner) {
                Ok(()) => {}
                Err(said) if said.to_string().starts_with("channel '") => return said,
                Err(_) => return error,
            }
        }
    }

    /// Waits until all have taken so many turns.
    fn wait_taken(&self, turns: u64) -> Result<()> {
        let mut heard = self.heard.lock();
        for (heard, &partner) in heard.iter_mut().zip(&self.link.partners) {
            while heard.taken < turns {
                self.hear(heard, partner)?;
            }
        }
        Ok(())
    }

    /// Sends a turn.
    fn send(&self, turn: u64, bytes: TurnBytes<'_>) -> Result<()> {
        let mut heard = self.heard.lock();
        let end = self.link.shares.array().raw().end;
        let (mut scratch, mut packed_before) = (Vec::new(), 0);
        for (heard, &partner) in heard.iter_mut().zip(&self.link.partners) {
            while heard.ready <= turn {
                self.hear(heard, partner)?;
            }
            let share = &self.link.shares.give()[partner];
            let (mut at, mut left) = (0, self.link.shares.given_bytes(partner));
            // One message at least: it says that there is a turn.
            loop {
                let len = left.min(PIECE_BYTES);
                let next = share.after(at..end, len);
                let piece = match bytes {
                    TurnBytes::Memory(memory) => {
                        scratch.resize(len as usize, 0);
                        share
                            .gather_left(at..next, memory, 0, &mut scratch)
                            .map_err(out_of_bounds)?;
                        &scratch[..]
                    }
                    TurnBytes::Packed(packed) => {
                        let piece = &packed[packed_before..packed_before + len as usize];
                        packed_before += len as usize;
                        piece
                    }
                };
                if let Err(error) = self.link.send(partner, Kind::Data, turn, piece) {
                    return Err(self.why_gone(heard, partner, error));
                }
                (at, left) = (next, left - len);
                if left == 0 {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Packs a turn: what each partner gets, one behind the other.
    fn pack(&self, memory: SharedBytes<'_>, packed: &mut Vec<u8>) -> Result<()> {
        let shares = &self.link.shares;
        let lens = self.link.partners.iter().map(|&to| shares.given_bytes(to));
        let sum = lens.sum::<u64>() as usize;
        if packed.len() != sum {
            packed.clear();
            packed.try_reserve_exact(sum).map_err(|_| Error::Refused {
                status: Status::NoMemory,
                text: format!(
                    "no memory for a buffer of {sum} bytes; open the channel blocking, which has none"
                ),
                server: None,
            })?;
            packed.resize(sum, 0);
        }
        let mut rest = &mut packed[..];
        for &partner in &self.link.partners {
            let (part, behind) = rest.split_at_mut(shares.given_bytes(partner) as usize);
            rest = behind;
            if !part.is_empty() {
                shares.give()[partner]
                    .gather_left(shares.array().raw(), memory, 0, part)
                    .map_err(out_of_bounds)?;
            }
        }
        Ok(())
    }
}

/// Where the bytes of a turn are.
#[derive(Clone, Copy)]
enum TurnBytes<'a> {
    /// In the program's memory, in the order of the array.
    Memory(SharedBytes<'a>),
    /// Packed, partner by partner.
    Packed(&'a [u8]),
}

/// Memory was measured before.
pub(super) fn out_of_bounds(error: kernels::BoundsError) -> Error {
    Error::argument("memory", error.to_string())
}

impl ChannelSource {
    /// Opens the giving side; all members of the program call it, and returns when the program that takes has come.
    ///
    /// A member whose array is wrong gives an error as `mine`, so that the others do not wait for it.
    pub fn open(
        client: &Client,
        team: &Team,
        name: &str,
        mine: Result<ChannelArray>,
        buffering: ChannelMode,
        options: &ChannelOptions,
    ) -> Result<ChannelSource> {
        let link = open(client, team, name, (Role::Gives, buffering), mine, options)?;
        let heard = Mutex::new(vec![TargetState::default(); link.partners.len()]);
        Ok(ChannelSource {
            sender: Arc::new(Sender { link, heard }),
            queue: Arc::default(),
            jobs: Jobs::new("pario-channel", 1, || ()),
            turns: Mutex::new(0),
            is_closed: false,
        })
    }

    /// Bytes of this member's part.
    pub fn part_bytes(&self) -> u64 {
        self.sender.link.part_bytes
    }

    /// Members of the program that takes.
    pub fn other_size(&self) -> usize {
        self.sender.link.takers.len()
    }

    /// Turns given so far.
    pub fn turns(&self) -> u64 {
        *self.turns.lock()
    }

    /// Gives the next turn: this member's part, packed in the order of the array. A call that is refused for its memory gives
    /// none.
    pub fn put(&self, from: SharedBytes<'_>) -> Result<()> {
        let link = &self.sender.link;
        link.check()?;
        link.check_memory("from", from.len())?;
        let mut turns = self.turns.lock();
        let given = match link.buffering {
            ChannelMode::Blocking => (self.sender.send(*turns, TurnBytes::Memory(from)))
                .and_then(|()| self.sender.wait_taken(*turns + 1)),
            ChannelMode::Double => self.put_buffered(*turns, from),
        };
        link.fail(given)?;
        *turns += 1;
        Ok(())
    }

    fn put_buffered(&self, turn: u64, from: SharedBytes<'_>) -> Result<()> {
        let mut packed = {
            let mut buffers = self.queue.buffers.lock();
            while buffers.waiting == BUFFERS {
                self.queue.changed.wait(&mut buffers);
            }
            self.sender.link.check()?;
            buffers.waiting += 1;
            buffers.spare.pop().unwrap_or_default()
        };
        let submitted = self.sender.pack(from, &mut packed).and_then(|()| {
            let (sender, queue) = (Arc::clone(&self.sender), Arc::clone(&self.queue));
            let job = Box::new(move || {
                // Behind a turn that failed nothing is sent.
                let sent = sender.link.check();
                let sent = sent.and_then(|()| sender.send(turn, TurnBytes::Packed(&packed)));
                let _ = sender.link.fail(sent);
                let mut buffers = queue.buffers.lock();
                buffers.waiting -= 1;
                buffers.spare.push(packed);
                drop(buffers);
                queue.changed.notify_all();
            });
            self.jobs.submit(job).map_err(|(_, e)| Error::Refused {
                status: Status::NoMemory,
                text: format!("no thread for the channel: {e}"),
                server: None,
            })
        });
        if submitted.is_err() {
            self.queue.buffers.lock().waiting -= 1;
        }
        submitted
    }

    /// Waits until the program that takes has taken every turn, and lets it know that there are no more. All members call it.
    pub fn close(mut self) -> Result<()> {
        self.is_closed = true;
        let link = &self.sender.link;
        link.check()?;
        let mut buffers = self.queue.buffers.lock();
        while buffers.waiting > 0 {
            self.queue.changed.wait(&mut buffers);
        }
        drop(buffers);
        link.check()?;
        let turns = *self.turns.lock();
        for &partner in &link.partners {
            // One that has taken all it wants may have gone; whether it has is seen next.
            let _ = link.send(partner, Kind::End, turns, &[]);
        }
        link.fail(self.sender.wait_taken(turns))
    }
}

impl Drop for ChannelSource {
    fn drop(&mut self) {
        if !self.is_closed {
            self.sender.link.give_up(Role::Gives.verb());
        }
        self.jobs.stop();
    }
}
