//! What the ranks of a team know about collective accesses before the first of them: their views, what hints
//! ask for, whether anything but independent accesses can pay.
//!
//! Agreement on when a file is opened, a view set or hints changed together; it is the same at all ranks.
//!
//! Left to others: single accesses (`collective`), exchanging (`team`).

use std::collections::HashMap;
use std::sync::Arc;

use falls::Meeting;
use kernels::Stream;
use layout::{FileSpan, View};
use parking_lot::Mutex;
use wire::message::Field;
use wire::{DecodeError, Reader, describe, put_number};

use crate::collective::choice::Choices;
use crate::collective::strategy::{Reason, Strategy};
use crate::collective::team::Team;

/// Bytes of all views that go into one request.
const DESCRIBED_BYTES: usize = 512 << 10;

/// What a rank says before collective accesses are decided about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    /// All its bytes can go directly.
    pub(crate) is_direct: bool,
    /// It talks to servers through one of them.
    pub(crate) is_mapped: bool,
    pub(crate) forced: Option<Strategy>,
    pub(crate) is_barrier: bool,
    /// Longest domain in one round.
    pub(crate) domain_bytes: u64,
    /// Bytes of a block where servers direct; blocks of a packet, 0 if the costs say.
    pub(crate) block_bytes: u64,
    pub(crate) blocks: u64,
}

impl Ready {
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        self.is_direct.put(out);
        self.is_mapped.put(out);
        put_number(out, Strategy::number(self.forced));
        self.is_barrier.put(out);
        put_number(out, self.domain_bytes);
        put_number(out, self.block_bytes);
        put_number(out, self.blocks);
    }

    pub(crate) fn read(r: &mut Reader<'_>) -> std::result::Result<Ready, DecodeError> {
        Ok(Ready {
            is_direct: Field::read(r)?,
            is_mapped: Field::read(r)?,
            forced: Strategy::of_number(r.number()?),
            is_barrier: Field::read(r)?,
            domain_bytes: r.number()?,
            block_bytes: r.number()?,
            blocks: r.number()?,
        })
    }
}

/// The view of a rank, ready to move its bytes.
#[derive(Debug)]
pub(crate) struct Rank {
    pub(crate) view: View,
    pub(crate) stream: Stream,
}

/// What all ranks of a team know about collective accesses, and know to be the same at all of them.
#[derive(Debug)]
pub(crate) struct Agreement {
    pub(crate) is_barrier: bool,
    /// What was asked for.
    pub(crate) forced: Option<Strategy>,
    /// Why accesses are independent where nothing is exchanged.
    pub(crate) alone: Reason,
    /// Whether ranks give each other their bytes where that pays, or was asked for.
    pub(crate) can_regroup: bool,
    /// Whether servers can be told the views.
    pub(crate) can_direct: bool,
    /// Whether all ranks reach all servers directly.
    pub(crate) is_direct: bool,
    /// Longest domain in one round: hints of ranks may differ, all take the least.
    pub(crate) domain_bytes: u64,
    pub(crate) block_bytes: u64,
    pub(crate) blocks: u64,
    /// Number of the view it was agreed with, at this rank.
    pub(crate) number: u64,
    /// By rank; empty if accesses are independent.
    pub(crate) ranks: Vec<Rank>,
    /// What the cost model said.
    pub(crate) choices: Choices,
    /// What views of two ranks have in common.
    common: Mutex<HashMap<(usize, usize), Arc<Meeting>>>,
}

impl Agreement {
    pub(crate) fn new(
        team: &Team,
        ready: impl Iterator<Item = Ready> + Clone,
        views: Vec<Option<View>>,
        number: u64,
    ) -> Agreement {
        let first = ready.clone().next();
        let forced = first.and_then(|first| first.forced);
        let is_direct = ready.clone().all(|rank| rank.is_direct);
        // What exchanges between hosts cost is not known, so there they have to be asked for.
        let is_asked = forced.is_some() && team.most_bytes() > DESCRIBED_BYTES;
        let can_regroup = (team.is_near() || is_asked) && team.size() > 1;
        let has_all =
            !ready.clone().any(|rank| rank.is_mapped) && views.iter().all(Option::is_some);
        let can_direct = has_all && {
            let mut bytes = Vec::new();
            for view in views.iter().flatten() {
                describe::put_view(&mut bytes, view);
            }
            bytes.len() <= DESCRIBED_BYTES
        };
        let (may_pay, alone) = match forced {
            Some(Strategy::Views | Strategy::Sieving) => (false, Reason::Forced),
            Some(Strategy::TwoPhase) => (has_all && can_regroup, Reason::OnlyWay),
            Some(Strategy::TwoPhaseDdio) => (can_direct && can_regroup, Reason::OnlyWay),
            Some(Strategy::Ddio | Strategy::PbDdio | Strategy::MbDdio) => {
                (can_direct, Reason::OnlyWay)
            }
            None if is_direct => (false, Reason::AllDirect),
            None => (has_all && team.size() > 1, Reason::OnlyWay),
        };
        let mut ranks = Vec::new();
        if may_pay {
            ranks.extend(views.into_iter().flatten().map(|view| Rank {
                stream: Stream::new(view.bytes()),
                view,
            }));
        }
        let least = |of: fn(&Ready) -> u64| ready.clone().map(|rank| of(&rank)).min().unwrap_or(0);
        Agreement {
            is_barrier: ready.clone().any(|rank| rank.is_barrier),
            forced,
            alone,
            can_regroup,
            can_direct,
            is_direct,
            domain_bytes: least(|rank| rank.domain_bytes).max(1),
            block_bytes: first.map_or(0, |first| first.block_bytes),
            blocks: first.map_or(0, |first| first.blocks),
            number,
            ranks,
            choices: Choices::default(),
            common: Mutex::default(),
        }
    }

    /// Whether two ranks have no byte of a file range in common, as far as that is easily seen.
    pub(crate) fn are_apart(&self, a: usize, b: usize, file: FileSpan) -> bool {
        let mut common = self.common.lock();
        let meeting = common.entry((a, b)).or_insert_with(|| {
            let (a, b) = (self.ranks[a].view.bytes(), self.ranks[b].view.bytes());
            Arc::new(Meeting::new(a, b))
        });
        let meeting = meeting.clone();
        drop(common);
        meeting.is_symbolic() && meeting.count(file.raw()) == 0
    }
}
