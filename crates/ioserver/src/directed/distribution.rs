//! What all ranks of a collective access have at this server, block by block in the order of the store.
//!
//! Blocks are parts of subfiles of equal length; their order is that of the subfiles and, in a subfile, of
//! its bytes. A block without a byte of any rank is passed over.
//!
//! Invariants
//! - Both sides count alike: the bytes of a rank in a part are those of its share in the part's file range.
//! - What is said to be written as a whole is: ranks that have bytes in common never count as covering.
//!
//! Cost: a few look-ups per rank and block. Compiled views are kept from operation to operation. Where a view meets a
//! subfile lazily, what is looked for in one round is paid for by the bytes of the round; nothing is counted that
//! a round does not move, and who asks for more is refused ([`bounded`](crate::bounded)).

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use falls::Meeting;
use kernels::Share;
use layout::{FileSpan, SubfileOffset, SubfileSpan, ViewOffset};
use parking_lot::Mutex;
use wire::message::directed::Lead;
use wire::{ClientId, FileId, Status, describe};

use crate::bounded::Search;
use crate::files::LocalState;
use crate::refused::Refused;
use crate::sessions::Connection;
use crate::views::shares_of;
use plan::access::Shares;

/// Compiled distributions that are kept.
const KEPT: usize = 8;
/// Up to so many ranks it is looked whether they have bytes in common.
const FEW: usize = 64;
/// Ranks that one operation may have.
const MOST_RANKS: usize = 1 << 16;
/// Bytes of a block, at least and at most.
const BLOCK_BYTES: std::ops::RangeInclusive<u64> = 512..=16 << 20;

/// The views of the ranks, compiled for one layout.
pub(super) struct Views {
    file: FileId,
    serial: u64,
    description: Vec<u8>,
    list: Vec<Arc<Shares>>,
    /// By rank, the view.
    of: Vec<u32>,
    are_apart: OnceLock<bool>,
}

/// The latest ones.
#[derive(Default)]
pub(super) struct CompiledViews(Mutex<VecDeque<Arc<Views>>>);

impl CompiledViews {
    fn get(&self, known: &LocalState, lead: &Lead) -> Arc<Views> {
        let mut description = Vec::new();
        for view in &lead.views {
            describe::put_view(&mut description, view);
        }
        let of: Vec<u32> = lead.ranks.iter().map(|rank| rank.view).collect();
        let is_it = |views: &Arc<Views>| {
            views.serial == known.serial
                && views.file == known.file()
                && views.of == of
                && views.description == description
        };
        let find = |kept: &mut VecDeque<Arc<Views>>| {
            let views = kept.remove(kept.iter().position(is_it)?)?;
            kept.push_front(Arc::clone(&views));
            Some(views)
        };
        if let Some(found) = find(&mut self.0.lock()) {
            return found;
        }
        // Without the lock: other leaders go on while the views of this one are compiled.
        let list = lead.views.iter().map(|view| {
            let mut one = Vec::new();
            describe::put_view(&mut one, view);
            shares_of(known, view, &Arc::from(one))
        });
        let list: Vec<_> = list.collect();
        let mut kept = self.0.lock();
        if let Some(made_meanwhile) = find(&mut kept) {
            return made_meanwhile;
        }
        let views = Arc::new(Views {
            file: known.file(),
            serial: known.serial,
            list,
            description,
            of,
            are_apart: OnceLock::new(),
        });
        kept.retain(|views| views.file != known.file() || views.serial == known.serial);
        kept.truncate(KEPT - 1);
        kept.push_front(Arc::clone(&views));
        views
    }
}

/// What a rank has here.
pub(super) struct RankHere {
    pub(super) client: ClientId,
    view: u32,
    /// From its first to its last byte.
    file: Range<u64>,
    /// Whether it has any at this server.
    pub(super) has_bytes: bool,
}

/// What all ranks access at this server.
pub(super) struct Distribution {
    pub(super) known: Arc<LocalState>,
    views: Arc<Views>,
    pub(super) ranks: Vec<RankHere>,
    hull: Range<u64>,
    /// No two ranks have file ranges that meet, as the domains of two phases.
    have_own_ranges: bool,
    pub(super) block_bytes: u64,
    pub(super) blocks: u64,
    /// Steps that a round may take to find what it has, besides those that its bytes pay for.
    search_steps: u64,
    /// Of the leader: what is looked for ends with it. None where no client waits.
    connection: Option<Arc<Connection>>,
}

/// A stretch of a subfile that one round accesses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RoundPart {
    /// Position among the own subfiles of the [`LocalState`].
    pub(super) slot: usize,
    pub(super) subfile: SubfileSpan,
    pub(super) file: FileSpan,
    pub(super) blocks: u64,
}

/// Where the walk through the blocks stands.
#[derive(Clone, Debug, Default)]
pub(super) struct Walk {
    slot: usize,
    /// The next file byte of the subfile.
    file: u64,
}

fn wrong(text: String) -> Refused {
    Refused::new(Status::InvalidArgument, text)
}

impl Distribution {
    pub(super) fn new(
        compiled: &CompiledViews,
        known: &Arc<LocalState>,
        lead: &Lead,
        most_bytes: u64,
        search_steps: u64,
        connection: Option<&Arc<Connection>>,
    ) -> Result<Distribution, Refused> {
        if lead.ranks.is_empty() || lead.ranks.len() > MOST_RANKS {
            let n = lead.ranks.len();
            return Err(wrong(format!("ranks: {n}; give 1 to {MOST_RANKS}")));
        }
        if !BLOCK_BYTES.contains(&lead.block_bytes) {
            return Err(wrong(format!(
                "block_bytes: {}; give {} to {}",
                lead.block_bytes,
                BLOCK_BYTES.start(),
                BLOCK_BYTES.end()
            )));
        }
        if let Some(rank) = lead
            .ranks
            .iter()
            .position(|rank| rank.view as usize >= lead.views.len())
        {
            return Err(wrong(format!("rank {rank} has a view that is not there")));
        }
        let views = compiled.get(known, lead);
        let mut ranks = Vec::with_capacity(lead.ranks.len());
        for (number, rank) in lead.ranks.iter().enumerate() {
            let view = &lead.views[rank.view as usize];
            let file = match rank.lo < rank.hi {
                false => 0..0,
                true => {
                    let range = ViewOffset(rank.lo)..ViewOffset(rank.hi);
                    let found = view.file_range(range).ok_or_else(|| {
                        let (lo, hi) = (rank.lo, rank.hi);
                        wrong(format!(
                            "rank {number}: {lo}..{hi} has no bytes in its view"
                        ))
                    })?;
                    found.start.0..found.end.0
                }
            };
            ranks.push(RankHere {
                client: rank.client,
                view: rank.view,
                file,
                has_bytes: false,
            });
        }
        let used = || ranks.iter().filter(|rank| !rank.file.is_empty());
        let start = used().map(|rank| rank.file.start).min().unwrap_or(0);
        let end = used().map(|rank| rank.file.end).max().unwrap_or(0);
        let mut ranges: Vec<&Range<u64>> = used().map(|rank| &rank.file).collect();
        ranges.sort_unstable_by_key(|range| range.start);
        let have_own_ranges = ranges.windows(2).all(|pair| pair[0].end <= pair[1].start);
        let mut distribution = Distribution {
            have_own_ranges,
            known: Arc::clone(known),
            views,
            ranks,
            hull: start..end,
            block_bytes: lead.block_bytes,
            blocks: lead.blocks.clamp(1, (most_bytes / lead.block_bytes).max(1)),
            search_steps,
            connection: connection.cloned(),
        };
        let mut found = vec![false; distribution.ranks.len()];
        let mut searching = distribution.searching(0);
        for (rank, has_bytes) in found.iter_mut().enumerate() {
            let file = distribution.ranks[rank].file.clone();
            known.try_visit_own(FileSpan::from_raw(file.clone()), |slot, _| {
                if !*has_bytes {
                    let share = distribution.share(rank, slot);
                    *has_bytes = searching.first(share, file.clone())?.is_some();
                }
                Ok::<_, Refused>(())
            })?;
        }
        for (rank, has_bytes) in distribution.ranks.iter_mut().zip(found) {
            rank.has_bytes = has_bytes;
        }
        Ok(distribution)
    }

    /// What may be looked for to move so many bytes.
    fn searching(&self, bytes: u64) -> Search<'_> {
        let described = self.views.description.len() + 64 * self.ranks.len();
        let connection = self.connection.as_deref();
        Search::new(self.search_steps, bytes, described as u64, connection)
    }

    pub(super) fn share(&self, rank: usize, slot: usize) -> &Share {
        let shares = &self.views.list[self.ranks[rank].view as usize];
        self.known.share(shares, slot)
    }

    /// The file range of a part in which a rank may have bytes.
    pub(super) fn range(&self, rank: usize, part: &RoundPart) -> Range<u64> {
        let file = &self.ranks[rank].file;
        let start = part.file.start.0.max(file.start);
        start..part.file.end.0.min(file.end).max(start)
    }

    /// Bytes of a rank in a part.
    pub(super) fn count(&self, rank: usize, part: &RoundPart) -> u64 {
        let range = self.range(rank, part);
        match range.is_empty() {
            true => 0,
            false => self.share(rank, part.slot).count(range),
        }
    }

    /// Whether no two ranks have a byte in common, as far as that is easily seen.
    fn are_apart(&self) -> bool {
        self.have_own_ranges || self.views_are_apart()
    }

    fn views_are_apart(&self) -> bool {
        *self.views.are_apart.get_or_init(|| {
            let (views, of) = (&self.views.list, &self.views.of);
            let apart = |a: usize, b: usize| {
                let (a, b) = (views[of[a] as usize].view(), views[of[b] as usize].view());
                let meeting = Meeting::new(a, b);
                meeting.is_symbolic() && meeting.count(0..falls::MAX_OFFSET) == 0
            };
            // Each pair costs about what describes the two.
            let pairs = of.len() * of.len() / 2;
            let cost = pairs * (2 * self.views.description.len() / views.len().max(1));
            let is_cheap = of.len() <= FEW && cost as u64 <= self.search_steps;
            is_cheap && (0..of.len()).all(|a| (a + 1..of.len()).all(|b| apart(a, b)))
        })
    }

    /// The first byte of any rank in a subfile, from a file byte on.
    fn first(
        &self,
        slot: usize,
        from: u64,
        searching: &mut Search<'_>,
    ) -> Result<Option<u64>, Refused> {
        let mut first: Option<u64> = None;
        for (number, rank) in self.ranks.iter().enumerate() {
            // Behind the first byte that was found nothing has to be looked for.
            let end = first.unwrap_or(u64::MAX).min(rank.file.end);
            let range = rank.file.start.max(from)..end;
            if !range.is_empty() && rank.has_bytes {
                let found = searching.first(self.share(number, slot), range)?;
                first = found.or(first);
            }
        }
        Ok(first)
    }

    /// The next blocks, as many as go into one round; nothing at the end.
    pub(super) fn next_round(
        &self,
        walk: &mut Walk,
        parts: &mut Vec<RoundPart>,
    ) -> Result<(), Refused> {
        parts.clear();
        let round_bytes = self.blocks.saturating_mul(self.block_bytes);
        let mut searching = self.searching(round_bytes);
        let mut left = self.blocks;
        while left > 0 && walk.slot < self.known.own.len() {
            let bytes = &self.known.own[walk.slot].bytes;
            let from = walk.file.max(self.hull.start);
            let first = match from < self.hull.end {
                true => self.first(walk.slot, from, &mut searching)?,
                false => None,
            };
            let Some(first) = first else {
                walk.slot += 1;
                walk.file = 0;
                continue;
            };
            let block = bytes.rank(first) / self.block_bytes;
            let start = block * self.block_bytes;
            let end = start + self.block_bytes;
            let file_end = bytes
                .select(end)
                .map_or(self.hull.end, |x| x.min(self.hull.end));
            walk.file = file_end;
            left -= 1;
            match parts.last_mut() {
                Some(last) if last.slot == walk.slot && last.subfile.end.0 == start => {
                    last.subfile.end.0 = end;
                    last.file.end.0 = file_end;
                    last.blocks += 1;
                }
                _ => parts.push(RoundPart {
                    slot: walk.slot,
                    subfile: SubfileSpan::from_raw(start..end),
                    file: FileSpan::from_raw(first..file_end),
                    blocks: 1,
                }),
            }
        }
        for part in parts.iter_mut() {
            let bytes = &self.known.own[part.slot].bytes;
            let file = part.file.raw();
            part.subfile.start.0 = bytes.rank(file.start);
            part.subfile.end.0 = part.subfile.end.0.min(bytes.rank(file.end));
            // A later count in this part finds that it was counted.
            for rank in 0..self.ranks.len() {
                let range = self.range(rank, part);
                let share = self.share(rank, part.slot);
                if !range.is_empty() && !share.is_symbolic() {
                    searching.count(share, range, u64::MAX)?;
                }
            }
        }
        Ok(())
    }

    /// From the first to the last byte that is written in a part, and whether every byte between is.
    pub(super) fn written(&self, part: &RoundPart) -> (SubfileSpan, bool) {
        let mut end = part.file.start.0;
        let mut sum = 0;
        for rank in 0..self.ranks.len() {
            let range = self.range(rank, part);
            if range.is_empty() {
                continue;
            }
            let share = self.share(rank, part.slot);
            let n = share.count(range.clone());
            if n > 0 {
                sum += n;
                end = end.max(share.after(range, n));
            }
        }
        let stop = self.known.own[part.slot].bytes.rank(end);
        let span = SubfileSpan::new(part.subfile.start, SubfileOffset(stop));
        (span, sum == span.bytes() && self.are_apart())
    }

    /// From the first to the last byte that ranks may have.
    pub(super) fn hull(&self) -> Range<u64> {
        self.hull.clone()
    }

    /// Of each subfile from the first to the last byte that ranks have, and how many they have in it. Subfiles in which
    /// that is not seen at once are left out.
    pub(super) fn spans(&self) -> Vec<(usize, Range<u64>, u64)> {
        let mut spans = Vec::new();
        self.known
            .visit_own(FileSpan::from_raw(self.hull.clone()), |slot, _| {
                let bytes = &self.known.own[slot].bytes;
                let (mut start, mut end, mut sum) = (u64::MAX, 0, 0);
                for (number, rank) in self.ranks.iter().enumerate() {
                    if !rank.has_bytes {
                        continue;
                    }
                    let share = self.share(number, slot);
                    if !share.is_symbolic() {
                        return;
                    }
                    let n = share.count(rank.file.clone());
                    if n > 0 {
                        let first = share.first(rank.file.clone()).unwrap_or(rank.file.start);
                        start = start.min(bytes.rank(first));
                        end = end.max(bytes.rank(share.after(rank.file.clone(), n)));
                        sum += n;
                    }
                }
                if start < end {
                    spans.push((slot, start..end, sum));
                }
            });
        spans
    }
}
