//! Collective access: all ranks of a team read or write, each through its view.
//!
//! ```text
//!  independent     every rank for itself, as if alone: no exchange, no barrier
//!  two phases      ranks regroup bytes among themselves, then each accesses one domain of the file (`two_phase`)
//!  directed        one request per server; the server orders its accesses and the transfers (`directed`)
//!  both            servers direct whole blocks to domains, ranks regroup them (`two_phase`)
//! ```
//!
//! Whether anything but independent accesses may pay is decided when the file is opened, views are set or
//! hints are changed together, from what all ranks have said then: with direct access by all ranks it never
//! does, and collective accesses exchange nothing. Only where it may, accesses begin with an exchange of
//! ranges, from which all ranks come to the same answer; what the cost model says is asked for once per kind
//! of access, by rank 0, and told.
//!
//! Invariants
//! - The bytes are those of independent accesses. Writes are regrouped only where the parts of all ranks
//!   are disjoint and leave no hole.
//! - A rank that cannot take part says so, and all go on independently; one that fails in a phase goes on
//!   to the end, where all hear of it. Nobody waits for a rank that has failed.
//! - Files that are being given another layout are accessed independently, and so is what servers refuse to
//!   direct for a reason that independent accesses can repair.
//!
//! Left to others: exchanging (`team`), what each way costs (`advise::cost`).

pub(crate) mod agreement;
pub(crate) mod channel;
pub(crate) mod choice;
pub(crate) mod directed;
pub(crate) mod exchange;
pub(crate) mod host_team;
pub(crate) mod redistribute;
pub(crate) mod redistributions;
pub(crate) mod strategy;
pub(crate) mod team;
pub(crate) mod together;
pub(crate) mod two_phase;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kernels::{SharedBytes, SharedBytesMut};
use layout::{FileSpan, ViewSpan};
use parking_lot::Mutex;
use plan::exchange::{self as regrouping, Domains};
use wire::message::Field;
use wire::message::file::SizeIs;
use wire::{ClientId, DecodeError, Reader, put_number};

use crate::access::file_range;
use crate::access::memory::{Direction, Memory};
use crate::access::places::Places;
use crate::collective::agreement::{Agreement, Ready};
use crate::collective::strategy::{Choice, Collective, Reason};
use crate::collective::team::Team;
use crate::collective::two_phase::TwoPhases;
use crate::error::{Error, Result};
use crate::file::File;
use crate::hints::is_on;

/// Longest domain of a rank in one round, unless the hints say otherwise.
const DOMAIN_BYTES: u64 = 4 << 20;
/// Bytes of a block, unless the hints say otherwise: the smallest extent of the stores.
const BLOCK_BYTES: u64 = 64 << 10;
/// Described memory up to this is packed as a whole where servers direct.
const PACKED_BYTES: u64 = 256 << 20;

/// What a handle has counted about collective accesses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CollectiveStatistics {
    /// Accesses that every rank did for itself.
    pub independent: u64,
    /// Accesses that were regrouped.
    pub two_phase: u64,
    /// Accesses in windows of the file.
    pub sieved: u64,
    /// Accesses that servers directed, piece by piece.
    pub ddio: u64,
    /// Accesses that servers directed with a packet per rank and block.
    pub pb_ddio: u64,
    /// Accesses that servers directed with a packet per rank and several blocks.
    pub mb_ddio: u64,
    /// Accesses that servers directed and ranks regrouped.
    pub two_phase_ddio: u64,
    /// Packets of this rank from and to servers that directed.
    pub packets: u64,
    /// Bytes that this rank packed for others before all of its blocks were there.
    pub packed_early_bytes: u64,
    /// Exchanges among the ranks for accesses, barriers included.
    pub exchanges: u64,
    /// Bytes that this rank has given to others.
    pub exchanged_bytes: u64,
    /// Barriers that the hint `collective_barrier` asked for.
    pub barriers: u64,
}

/// See [`CollectiveStatistics`], and what was agreed on.
#[derive(Debug, Default)]
pub(crate) struct Together {
    agreed: Mutex<Option<Arc<Agreement>>>,
    /// By [`Collective::number`], from 0 on.
    done: [AtomicU64; Collective::COUNT],
    exchanges: AtomicU64,
    exchanged_bytes: AtomicU64,
    barriers: AtomicU64,
    pub(crate) packets: AtomicU64,
    pub(crate) packed_early: AtomicU64,
    pub(crate) memory: Mutex<TwoPhases>,
    /// What the last access that was decided about came to.
    choice: Mutex<Option<Choice>>,
}

impl Together {
    pub(crate) fn keep(&self, agreed: Agreement) -> Arc<Agreement> {
        let agreed = Arc::new(agreed);
        *self.agreed.lock() = Some(agreed.clone());
        *self.choice.lock() = None;
        agreed
    }

    pub(crate) fn exchanged(&self, bytes: usize) {
        self.exchanges.fetch_add(1, Ordering::Relaxed);
        self.exchanged_bytes
            .fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Servers did not direct what was chosen.
    pub(crate) fn refused(&self) {
        if let Some(choice) = &mut *self.choice.lock() {
            choice.how = Collective::Independent;
            choice.reason = Reason::Refused;
        }
    }

    pub(crate) fn chose(&self, choice: Choice) {
        *self.choice.lock() = Some(choice);
    }
}

/// What a rank is about to access, in view bytes.
#[derive(Debug)]
pub(crate) struct RankAccess {
    /// Whether it can be regrouped as far as this rank is concerned.
    can: bool,
    direction: Direction,
    pub(crate) offset: u64,
    pub(crate) len: u64,
    pub(crate) client: ClientId,
    /// The layout state it knows, in short; 0 if the file is being given another.
    layout: u64,
    /// A number that is new at this client.
    pub(crate) number: u64,
    /// Size of the file and epoch, as far as it knows.
    size: u64,
    epoch: u64,
}

impl RankAccess {
    fn span(&self) -> ViewSpan {
        let end = self.offset.saturating_add(self.len);
        ViewSpan::from_raw(self.offset..end)
    }

    fn put(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64);
        self.can.put(&mut out);
        self.direction.is_write().put(&mut out);
        for n in [
            self.offset,
            self.len,
            self.client.0,
            self.layout,
            self.number,
            self.size,
            self.epoch,
        ] {
            put_number(&mut out, n);
        }
        out
    }

    fn read(bytes: &[u8]) -> Result<RankAccess> {
        let mut r = Reader::new(bytes);
        let wanted = (|| {
            let wanted = RankAccess {
                can: Field::read(&mut r)?,
                direction: match Field::read(&mut r)? {
                    true => Direction::Write,
                    false => Direction::Read,
                },
                offset: r.number()?,
                len: r.number()?,
                client: ClientId(r.number()?),
                layout: r.number()?,
                number: r.number()?,
                size: r.number()?,
                epoch: r.number()?,
            };
            r.finish()?;
            Ok::<_, DecodeError>(wanted)
        })();
        wanted.map_err(|e| {
            let text = format!("a member does something else than a collective access: {e}");
            Error::argument("team", text)
        })
    }
}

/// An access that is not independent, the same at all ranks.
#[derive(Debug)]
pub(crate) struct JointAccess {
    pub(crate) how: Collective,
    pub(crate) agreed: Arc<Agreement>,
    pub(crate) wanted: Vec<RankAccess>,
    /// Who accesses which bytes of the file, where ranks regroup.
    pub(crate) domains: Domains,
    /// Blocks of a packet.
    pub(crate) blocks: u64,
    /// Epoch that rank 0 knows.
    pub(crate) epoch: u64,
}

impl JointAccess {
    pub(crate) fn rounds(&self) -> u64 {
        self.domains.rounds()
    }

    /// The file range of a rank in a round.
    pub(crate) fn domain(&self, round: u64, rank: usize) -> Range<u64> {
        self.domains.domain(round, rank).raw()
    }

    /// View bytes of a rank's access in a file range.
    pub(crate) fn positions(&self, rank: usize, file: &Range<u64>) -> Range<u64> {
        let (view, access) = (&self.agreed.ranks[rank].view, self.wanted[rank].span());
        regrouping::positions(view, access, FileSpan::from_raw(file.clone())).raw()
    }

    /// Whether bytes of a rank lie in domains of another one, which sends them.
    pub(crate) fn has_sent(&self, sender: usize, rank: usize) -> bool {
        (0..self.rounds()).any(|round| {
            let positions = self.positions(rank, &self.domain(round, sender));
            !positions.is_empty()
        })
    }
}

/// How the ranks of a team do an access, the same at all of them.
enum Decision {
    /// Every rank for itself.
    Alone,
    Joint(JointAccess),
}

/// What became of an access that ranks were to do together.
pub(crate) enum JointOutcome {
    /// So many bytes of this rank were moved.
    Moved(usize),
    /// A server declined to direct it; all ranks have to do it for themselves.
    Declined,
}

/// The file range of each rank; nothing for one that accesses nothing.
fn files_of(agreed: &Agreement, wanted: &[RankAccess]) -> Vec<FileSpan> {
    let files = wanted.iter().zip(&agreed.ranks).map(|(wanted, rank)| {
        let ViewSpan { start, end } = wanted.span();
        let file = rank.view.file_range(start..end);
        file.map_or(FileSpan::default(), FileSpan::from)
    });
    files.collect()
}

/// The bytes of a version, in short: two that differ give other numbers, but for chance.
fn short(version: &[u8]) -> u64 {
    let mix = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    version.iter().fold(0xcbf2_9ce4_8422_2325, mix) | 1
}

impl File {
    /// What this rank says about collective accesses.
    pub(crate) fn readiness(&self) -> Ready {
        let hints = self.hints();
        Ready {
            is_direct: self.is_near_all_servers(),
            is_mapped: self.gateway.is_some(),
            forced: self.settings.forced(),
            is_barrier: hints.get("collective_barrier").and_then(is_on) == Some(true),
            domain_bytes: hints.number("cb_buffer_size").unwrap_or(DOMAIN_BYTES),
            block_bytes: hints.number("ddio_block_size").unwrap_or(BLOCK_BYTES),
            blocks: hints.number("ddio_blocks").unwrap_or(0),
        }
    }

    /// Whether all servers of the file share their memory with this client.
    fn is_near_all_servers(&self) -> bool {
        if !self.settings.is_direct() {
            return false;
        }
        let plan = self.views.whole.plan(&self.known.state());
        let near = self.session.with_lane(|lane| {
            Ok(plan.places.iter().all(|place| {
                self.session.server_pipe(lane, *place).is_ok()
                    && self.session.attached(lane, *place).is_some()
            }))
        });
        near.unwrap_or(false)
    }

    /// Whether collective accesses of this handle wait for the other ranks. They do not where the team has
    /// agreed that each goes for itself, without a barrier. Sends nothing; the same at all ranks.
    pub fn is_exchanging(&self) -> bool {
        let agreed = self.together.agreed.lock();
        agreed
            .as_ref()
            .is_none_or(|agreed| agreed.is_barrier || !agreed.ranks.is_empty())
    }

    /// What this handle has counted about collective accesses.
    pub fn collective_statistics(&self) -> CollectiveStatistics {
        let together = &self.together;
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        CollectiveStatistics {
            independent: of(&together.done[0]),
            two_phase: of(&together.done[1]),
            sieved: of(&together.done[2]),
            ddio: of(&together.done[3]),
            pb_ddio: of(&together.done[4]),
            mb_ddio: of(&together.done[5]),
            two_phase_ddio: of(&together.done[6]),
            packets: of(&together.packets),
            packed_early_bytes: of(&together.packed_early),
            exchanges: of(&together.exchanges),
            exchanged_bytes: of(&together.exchanged_bytes),
            barriers: of(&together.barriers),
        }
    }

    /// Writes from described memory while all other ranks of the team write, each at an offset of its own
    /// view. See [`File::write_at_memory`].
    ///
    /// All ranks call it, whatever they have to write. Handles were opened by the members of this team,
    /// one each.
    pub fn write_at_all(
        &self,
        team: &Team,
        offset: u64,
        memory: SharedBytes<'_>,
        origin: usize,
        places: &Places,
    ) -> Result<usize> {
        let memory = Memory::source(memory, origin, places);
        self.access_together(team, offset, Direction::Write, memory)
    }

    /// Reads into described memory while all other ranks of the team read, each at an offset of its own
    /// view. See [`File::read_at_memory`].
    pub fn read_at_all(
        &self,
        team: &Team,
        offset: u64,
        memory: SharedBytesMut<'_>,
        origin: usize,
        places: &Places,
    ) -> Result<usize> {
        let memory = Memory::target(memory, origin, places);
        self.access_together(team, offset, Direction::Read, memory)
    }

    /// Reads or writes as the memory says while all other ranks of the team do the same.
    pub fn access_at_all(&self, team: &Team, offset: u64, memory: Memory<'_>) -> Result<usize> {
        self.access_together(team, offset, memory.direction(), Ok(memory))
    }

    /// Moves the bytes of this rank while all other ranks move theirs. A rank whose memory is no good says so to the
    /// others before it fails.
    fn access_together(
        &self,
        team: &Team,
        offset: u64,
        direction: Direction,
        memory: Result<Memory<'_>>,
    ) -> Result<usize> {
        self.check_whole("team")?;
        self.send_behind();
        if direction.is_write() {
            // Others may write what is this rank's.
            self.void_ahead();
        }
        let agreed = self.agreed(team)?;
        let decision = match agreed.ranks.is_empty() {
            true => Decision::Alone,
            false => {
                let good = memory.as_ref().ok();
                let good = good.filter(|memory| memory.check_overlap().is_ok());
                self.decide(team, agreed.clone(), offset, direction, good)?
            }
        };
        let done = match (memory, decision) {
            (Err(error), _) => Err(error),
            (Ok(memory), Decision::Alone) => self.access_at(offset, memory),
            (Ok(mut memory), Decision::Joint(joint)) => {
                match self.access_jointly(team, &joint, &mut memory)? {
                    JointOutcome::Declined => self.access_at(offset, memory),
                    JointOutcome::Moved(moved) => {
                        self.record(direction, offset, &Ok(moved));
                        return Ok(moved);
                    }
                }
            }
        };
        self.end_independent(team, &agreed, done)
    }

    fn access_jointly(
        &self,
        team: &Team,
        joint: &JointAccess,
        memory: &mut Memory<'_>,
    ) -> Result<JointOutcome> {
        match joint.how {
            Collective::Ddio | Collective::PbDdio | Collective::MbDdio => {
                self.access_directed(team, joint, memory)
            }
            _ => {
                let moved = self.access_in_two_phases(team, joint, memory)?;
                Ok(JointOutcome::Moved(moved))
            }
        }
    }

    /// How the last collective access was decided, and what the cost model said; nothing before the first.
    pub fn last_choice(&self) -> Option<Choice> {
        let last = Collective::of(self.direct.quick.last_collective())?;
        let together = &self.together;
        if let Some(choice) = together.choice.lock().clone() {
            return Some(choice);
        }
        let agreed = together.agreed.lock().clone();
        Some(Choice {
            how: last,
            reason: agreed.map_or(Reason::OnlyWay, |agreed| agreed.alone),
            predicted_s: None,
            alternatives: Vec::new(),
            blocks: 0,
        })
    }

    /// What the team has agreed on; it does so now if it has not yet.
    fn agreed(&self, team: &Team) -> Result<Arc<Agreement>> {
        let agreed = self.together.agreed.lock().clone();
        match agreed {
            Some(agreed) => Ok(agreed),
            None => self.agree_again(team, Ok(())),
        }
    }

    fn end_independent(
        &self,
        team: &Team,
        agreed: &Agreement,
        done: Result<usize>,
    ) -> Result<usize> {
        let how = match self.is_sieving() {
            true => Collective::Sieving,
            false => Collective::Independent,
        };
        self.count(how);
        if !agreed.is_barrier {
            return done;
        }
        let together = &self.together;
        together.barriers.fetch_add(1, Ordering::Relaxed);
        together.exchanged(0);
        let met = team.barrier();
        let done = done?;
        met.map(|()| done)
    }

    pub(crate) fn count(&self, how: Collective) {
        let index = how.number() as usize - 1;
        self.together.done[index].fetch_add(1, Ordering::Relaxed);
        self.direct.quick.was_collective(how.number());
    }

    /// Tells what this rank wants, hears the others, and decides with them.
    fn decide(
        &self,
        team: &Team,
        agreed: Arc<Agreement>,
        offset: u64,
        direction: Direction,
        memory: Option<&Memory<'_>>,
    ) -> Result<Decision> {
        let mine = self.wanted(&agreed, offset, direction, memory);
        let bytes = mine.put();
        self.together.exchanged(bytes.len());
        let all = team.agree(Ok(bytes))?;
        let mut wanted: Vec<RankAccess> = all
            .iter()
            .map(|b| RankAccess::read(b))
            .collect::<Result<_>>()?;
        if wanted.iter().any(|w| !w.can || w.direction != direction)
            || wanted.len() != agreed.ranks.len()
        {
            return Ok(self.go_alone(Reason::OtherBytes));
        }
        let mut files = files_of(&agreed, &wanted);
        let mut hull = regrouping::hull(&files);
        let mut epoch = wanted[0].epoch;
        let is_one_layout =
            wanted[0].layout != 0 && wanted.iter().all(|w| w.layout == wanted[0].layout);
        let can_direct = agreed.can_direct && is_one_layout;
        if direction == Direction::Read && can_direct && hull.end.0 > wanted[0].size {
            // Where the file ends has to be the same at all ranks: rank 0 asks.
            let size = self.size_from_rank_0(team)?;
            epoch = size.epoch;
            for (wanted, rank) in wanted.iter_mut().zip(&agreed.ranks) {
                let shown = rank
                    .view
                    .len_within(size.size)
                    .saturating_sub(wanted.offset);
                wanted.len = wanted.len.min(shown);
            }
            files = files_of(&agreed, &wanted);
            hull = regrouping::hull(&files);
        }
        if hull.is_empty() {
            return Ok(self.go_alone(Reason::OnlyWay));
        }
        let bytes = wanted
            .iter()
            .fold(0u64, |sum, wanted| sum.saturating_add(wanted.len));
        let is_whole =
            || regrouping::is_whole(&files, bytes, |a, b, both| agreed.are_apart(a, b, both));
        let may_regroup = agreed.can_regroup && (direction == Direction::Read || is_whole());
        let mut choice = self.choose(team, &agreed, &wanted, direction, may_regroup, can_direct)?;
        let regroups = matches!(choice.how, Collective::TwoPhase | Collective::TwoPhaseDdio);
        if regroups && !may_regroup {
            choice.how = Collective::Independent;
            choice.reason = Reason::OtherBytes;
        }
        if choice.how.is_directed() && !can_direct {
            choice.how = Collective::Independent;
            choice.reason = Reason::OtherLayout;
        }
        let (how, blocks) = (choice.how, choice.blocks);
        self.together.chose(choice);
        if matches!(how, Collective::Independent | Collective::Sieving) {
            return Ok(Decision::Alone);
        }
        Ok(Decision::Joint(JointAccess {
            how,
            domains: Domains::new(hull, wanted.len(), agreed.domain_bytes),
            agreed,
            wanted,
            blocks,
            epoch,
        }))
    }

    fn go_alone(&self, reason: Reason) -> Decision {
        self.together.chose(Choice {
            how: Collective::Independent,
            reason,
            predicted_s: None,
            alternatives: Vec::new(),
            blocks: 0,
        });
        Decision::Alone
    }

    fn wanted(
        &self,
        agreed: &Agreement,
        offset: u64,
        direction: Direction,
        memory: Option<&Memory<'_>>,
    ) -> RankAccess {
        let seen = self.views.current();
        let len = memory.map_or(0, Memory::len);
        let can = memory.is_some()
            && self.check_right(direction.right()).is_ok()
            && !self.is_atomic()
            && !(direction.is_write() && self.identity.is_append)
            && seen.number == agreed.number
            && (len == 0 || file_range(&seen, offset, len).is_ok());
        let plan = seen.plan(&self.known.state());
        let is_packed_whole = len > PACKED_BYTES && memory.is_some_and(|m| !m.is_run());
        let layout = match plan.is_settled() && !is_packed_whole {
            true => short(&plan.version),
            false => 0,
        };
        let size = self.known.size();
        RankAccess {
            can,
            direction,
            offset,
            len,
            client: self.session.client,
            layout,
            number: self.session.number(),
            size: size.size,
            epoch: size.epoch,
        }
    }

    /// Where the file ends, as rank 0 asks for it and tells all.
    fn size_from_rank_0(&self, team: &Team) -> Result<SizeIs> {
        let mine = match team.rank() {
            0 => {
                let asked = self.session.with_lane(|lane| self.ask_size(lane));
                asked.map(|size| {
                    let mut out = Vec::new();
                    size.put(&mut out);
                    out
                })
            }
            _ => Ok(Vec::new()),
        };
        self.together.exchanged(0);
        let said = team.agree(mine)?;
        SizeIs::read(&mut Reader::new(&said[0]))
            .map_err(|e| Error::argument("team", format!("rank 0 told no size: {e}")))
    }
}
