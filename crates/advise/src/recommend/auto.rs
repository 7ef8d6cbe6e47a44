//! When a file is moved by itself: only if that saves more than it costs, and ever more reluctantly.
//!
//! What was observed since the last move (and half of what was before) stands for what is to come. A move is worth it
//! when the present layout has cost so much more than the best one as moving would have cost twice over, and by a
//! tenth of the time at least. Every move raises the bar by half: with M moves behind it a file has lost more than
//! 2 x 1.5^M moving times to its layouts before it is moved again. So whatever the accesses do, the number of moves
//! grows with the logarithm of the time they take, and what moving costs is at most half of what not moving would have
//! lost.
//!
//! A server that is full or overloaded is another reason: then the best layout without it is taken as soon as moving
//! there is possible at all.

use super::AdviceList;

/// So many moving times have to be lost before the first move.
const PRICE: f64 = 2.0;
/// Each move raises that.
const RELUCTANCE: f64 = 1.5;
/// Less than this part of the time is not worth a move.
const LEAST_SHARE: f64 = 0.1;

/// What to do.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// The layout to have, if not the present one.
    pub layout: Option<String>,
    /// Whether to move there now; otherwise it is a suggestion.
    pub is_worth_it: bool,
    /// What was lost by the present layout, in seconds.
    pub regret_s: f64,
    /// In words.
    pub why: String,
}

/// Judges advice for a file that was moved by itself so many times. `is_pressed` says that a server of its present layout
/// has to be relieved.
pub fn decide(advised: &AdviceList, moves: u64, is_pressed: bool) -> Decision {
    let current = advised
        .ranked
        .iter()
        .find(|a| a.kind == super::Kind::Current);
    let best = advised
        .ranked
        .iter()
        .filter(|a| !is_pressed || a.kind != super::Kind::Current)
        .min_by(|a, b| a.seconds.total_cmp(&b.seconds));
    let (Some(current), Some(best)) = (current, best) else {
        return Decision {
            layout: None,
            is_worth_it: false,
            regret_s: 0.0,
            why: "there is no layout to choose from".into(),
        };
    };
    let regret_s = (current.seconds - best.seconds).max(0.0);
    let is_better = best.seconds < current.seconds * (1.0 - super::TIE);
    if best.layout == current.layout || (!is_better && !is_pressed) {
        return Decision {
            layout: None,
            is_worth_it: false,
            regret_s,
            why: "the present layout is as good as any".into(),
        };
    }
    let raised = RELUCTANCE.powi(moves.min(200) as i32);
    let price = PRICE * best.move_s * raised;
    let saves = format!(
        "saves {:.3} s of {:.3} s, moving takes {:.3} s",
        regret_s, current.seconds, best.move_s
    );
    let (is_worth_it, why) = if is_pressed {
        (
            true,
            format!("a server of the present layout is full or overloaded; {saves}"),
        )
    } else if regret_s < current.seconds * LEAST_SHARE {
        (false, format!("{saves}; too little of it"))
    } else if regret_s < price {
        (
            false,
            format!("{saves}; after {moves} moves it has to save {price:.3} s"),
        )
    } else {
        (true, saves)
    };
    Decision {
        layout: Some(best.layout.clone()),
        is_worth_it,
        regret_s,
        why,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Advice, Kind};
    use super::*;

    fn advice(kind: Kind, layout: &str, seconds: f64, move_s: f64) -> Advice {
        Advice {
            layout: layout.into(),
            kind,
            seconds,
            gain_s: 0.0,
            move_s,
            phases: Vec::new(),
            homes: Vec::new(),
        }
    }

    fn advised(current: f64, best: f64, move_s: f64) -> AdviceList {
        AdviceList {
            ranked: vec![
                advice(Kind::Grid, "rows", best, move_s),
                advice(Kind::Current, "now", current, 0.0),
            ],
            judged: 2,
            is_cut_short: false,
            compromise: None,
        }
    }

    /// Statement 40: data move only if the predicted saving exceeds the cost.
    #[test]
    fn seed004_s40_a_file_moves_only_if_that_saves_more_than_it_costs() {
        let moves = |current, best, move_s, moves| {
            decide(&advised(current, best, move_s), moves, false).is_worth_it
        };
        assert!(moves(10.0, 5.0, 2.0, 0));
        assert!(!moves(10.0, 5.0, 2.6, 0), "saves less than twice the move");
        assert!(!moves(10.0, 5.0, 2.0, 1), "it was moved before");
        assert!(!moves(10.0, 9.5, 0.01, 0), "a twentieth of the time");
        assert!(!moves(5.0, 10.0, 0.0, 0), "worse");
        // A server that has to be relieved is reason enough.
        let pressed = decide(&advised(5.0, 6.0, 100.0), 9, true);
        assert!(pressed.is_worth_it && pressed.why.contains("full"));
        assert_eq!(pressed.layout.as_deref(), Some("rows"));
    }

    /// Statement 40: two programs in turns, each of which has a layout of its own that is best for it. Whatever the
    /// lengths of their turns, moves stay few.
    #[test]
    fn seed004_s40_alternating_work_does_not_let_a_file_oscillate() {
        for turn in [1, 2, 5, 20, 100] {
            // Time of the two programs in layouts a and b; moving takes 3.
            let cost = [[1.0, 4.0], [4.0, 1.0]];
            let (mut at, mut moves) = (0_usize, 0_u64);
            let mut seen = [0.0_f64; 2];
            let (mut spent, mut moving, mut always) = (0.0, 0.0, [0.0_f64; 2]);
            for round in 0..2000 {
                let program = round / turn % 2;
                seen[program] += 1.0;
                spent += cost[at][program];
                always[0] += cost[0][program];
                always[1] += cost[1][program];
                let in_layout = |l: usize| seen[0] * cost[l][0] + seen[1] * cost[l][1];
                let mut found = advised(in_layout(at), in_layout(1 - at), 3.0);
                found.ranked[0].layout = format!("layout {}", 1 - at);
                found.ranked[1].layout = format!("layout {at}");
                if decide(&found, moves, false).is_worth_it {
                    at = 1 - at;
                    moves += 1;
                    moving += 3.0;
                    // What was seen weighs half from now on.
                    seen = seen.map(|n| n / 2.0);
                }
            }
            assert!(moves <= 12, "{moves} moves with turns of {turn}");
            let best = always[0].min(always[1]);
            assert!(
                spent + moving <= 1.7 * best,
                "turns of {turn}: {} against {best}",
                spent + moving
            );
        }
    }
}
