//! Ranges of a file that accesses are kept out of: windows that move, and ranges that a client holds.
//!
//! A fence of a client lets that client in, by its own requests and by what other servers forward for it. Fences of a
//! move let in no client; they end with the step that makes the round durable, or with the round.
//!
//! Left to others: waiting until what runs inside has left (`drain`), and until holders have let go (`entry`).

use std::ops::Range;
use std::time::{Duration, Instant};

use control::moves::meets;
use wire::ClientId;

/// Who fences windows because they move.
pub(crate) const MOVE: u64 = 0;

/// See the [module](self).
#[derive(Default)]
pub(super) struct Fences {
    list: Vec<Fence>,
    /// The step of the state with which a move has fenced.
    moves_at: u64,
    /// Ranges that a move is about to fence.
    wanted: Vec<Range<u64>>,
}

/// Ranges of one holder.
struct Fence {
    who: u64,
    /// The client that holds them, if it is one: what other servers forward for it gets in too.
    client: Option<ClientId>,
    ranges: Vec<Range<u64>>,
    since: Instant,
}

impl Fences {
    /// Whether nothing is fenced.
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether no move waits for holders either.
    pub(super) fn is_unused(&self) -> bool {
        self.list.is_empty() && self.wanted.is_empty()
    }

    /// Whether a request of a holder, or forwarded for a client, has to wait for a range.
    pub(super) fn keep_out(
        &self,
        range: &Range<u64>,
        holder: u64,
        works_for: Option<ClientId>,
    ) -> bool {
        let range = std::slice::from_ref(range);
        self.list.iter().any(|fence| {
            let is_own = fence.who != MOVE
                && (fence.who == holder || (fence.client.is_some() && fence.client == works_for));
            !is_own && meets(&fence.ranges, range)
        })
    }

    /// Whether bytes of ranges are fenced.
    pub(super) fn meet(&self, ranges: &[Range<u64>]) -> bool {
        self.list.iter().any(|fence| meets(&fence.ranges, ranges))
    }

    /// Whether a client cannot have a range, because it is fenced or is going to be.
    pub(super) fn is_taken(&self, range: &Range<u64>) -> bool {
        let range = std::slice::from_ref(range);
        self.meet(range) || meets(&self.wanted, range)
    }

    /// Fences ranges; none are no fence.
    pub(super) fn put(&mut self, who: u64, client: Option<ClientId>, ranges: &[Range<u64>]) {
        if !ranges.is_empty() {
            self.list.push(Fence {
                who,
                client,
                ranges: ranges.to_vec(),
                since: Instant::now(),
            });
        }
    }

    /// Lifts what one holder has fenced; whether it had.
    pub(super) fn lift(&mut self, who: u64) -> bool {
        let before = self.list.len();
        self.list.retain(|fence| fence.who != who);
        self.list.len() < before
    }

    /// A move is about to fence ranges: no client gets to hold bytes of them.
    pub(super) fn want(&mut self, ranges: &[Range<u64>]) {
        self.wanted = ranges.to_vec();
    }

    /// A move has fenced in a step.
    pub(super) fn moves_at(&mut self, step: u64) {
        self.moves_at = step;
    }

    /// Another step is known. A move that fenced with an earlier one has made a later one durable since, or has
    /// given up.
    pub(super) fn reach(&mut self, step: u64) {
        if step > self.moves_at {
            self.lift(MOVE);
        }
    }

    /// Whether a move has fenced.
    pub(super) fn has_move(&self) -> bool {
        self.list.iter().any(|fence| fence.who == MOVE)
    }

    /// The client that has held bytes of ranges for too long, if one has.
    pub(super) fn slow_holder(
        &self,
        ranges: &[Range<u64>],
        hold_wait: Duration,
    ) -> Option<ClientId> {
        let slow = self.list.iter().find(|fence| {
            let is_late = fence.since.elapsed() >= hold_wait;
            meets(&fence.ranges, ranges) && is_late && fence.who != MOVE
        });
        slow.and_then(|fence| fence.client)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held() -> Fences {
        let mut fences = Fences::default();
        let range = 10..20;
        fences.put(7, Some(ClientId(3)), std::slice::from_ref(&range));
        fences
    }

    #[test]
    fn a_holder_gets_in_by_itself_and_through_others() {
        let fences = held();
        let keeps_out = |range, holder, works_for| fences.keep_out(&range, holder, works_for);
        assert!(keeps_out(19..30, 0, None) && keeps_out(0..11, 8, Some(ClientId(4))));
        assert!(!keeps_out(20..30, 0, None) && !keeps_out(0..10, 0, None));
        assert!(!keeps_out(19..30, 7, None) && !keeps_out(19..30, 0, Some(ClientId(3))));
        assert!(fences.is_taken(&(0..11)) && !fences.is_taken(&(0..10)));
        let (now, late) = (Duration::ZERO, Duration::from_secs(600));
        let around = [0..100, 200..300];
        assert_eq!(fences.slow_holder(&around, now), Some(ClientId(3)));
        assert_eq!(fences.slow_holder(&around, late), None);
        assert_eq!(fences.slow_holder(&around[1..], now), None);
    }

    #[test]
    fn a_move_lets_no_client_in_and_ends_with_a_later_step() {
        let mut fences = held();
        let windows = [30..40, 50..60];
        fences.want(&windows);
        assert!(fences.is_taken(&(39..41)) && !fences.meet(&windows));
        fences.want(&[]);
        fences.put(MOVE, None, &windows);
        fences.moves_at(4);
        assert!(fences.has_move() && fences.keep_out(&(55..56), MOVE, None));
        assert_eq!(fences.slow_holder(&windows, Duration::ZERO), None);
        fences.reach(4);
        assert!(fences.has_move());
        fences.reach(5);
        assert!(
            !fences.has_move() && !fences.is_empty(),
            "the client's stays"
        );
        assert!(fences.lift(7) && !fences.lift(7) && fences.is_unused());
        fences.put(7, None, &[]);
        assert!(fences.is_unused(), "no ranges are no fence");
    }
}
