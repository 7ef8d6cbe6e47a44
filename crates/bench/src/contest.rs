//! Owns the contest: Pario and its yardsticks take turns, each turn the same number of passes.
//!
//! A pass is one whole job. The number of passes per turn is set so that Pario's turn lasts
//! long enough for the clock, and is the same for all. Every turn begins with an untimed pass:
//! otherwise the one that follows a contestant that leaves a cache full of modified lines pays for
//! writing them back. Passes so slow that this does not show go without.

use std::time::Instant;

/// How often and how long to measure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// Turns per contestant, at least 7.
    pub(crate) turns: usize,
    /// Shortest turn, in nanoseconds.
    pub(crate) turn_ns: f64,
    /// A contestant that has had so many nanoseconds, and one turn, takes no further ones.
    pub(crate) most_ns: f64,
}

impl Effort {
    /// So many turns of at least so many nanoseconds.
    pub(crate) fn new(turns: usize, turn_ns: f64) -> Effort {
        Effort {
            turns,
            turn_ns,
            most_ns: f64::INFINITY,
        }
    }

    /// With an end for contestants that are slow: they have fewer turns than the others.
    pub(crate) fn at_most(self, most_ns: f64) -> Effort {
        Effort { most_ns, ..self }
    }
}

/// A yardstick or a way that can do the job a number of times and say how long it took.
pub(crate) trait Contestant {
    /// Nanoseconds for `passes` passes; `None` if it cannot run.
    fn turn(&mut self, passes: u64) -> Option<f64>;
}

/// A job done in this process.
pub(crate) struct Job<F: FnMut()>(pub(crate) F);

impl<F: FnMut()> Contestant for Job<F> {
    fn turn(&mut self, passes: u64) -> Option<f64> {
        let start = Instant::now();
        for _ in 0..passes {
            (self.0)();
        }
        Some(start.elapsed().as_nanos() as f64)
    }
}

/// What a contestant reached, in nanoseconds per pass.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    pub(crate) best: f64,
    pub(crate) median: f64,
}

impl Outcome {
    /// Of several times; `None` of none.
    pub(crate) fn of(mut times: Vec<f64>) -> Option<Outcome> {
        times.sort_by(f64::total_cmp);
        Some(Outcome {
            best: *times.first()?,
            median: times[times.len() / 2],
        })
    }

    /// How far the median lies above the best.
    pub(crate) fn spread(&self) -> f64 {
        self.median / self.best - 1.0
    }
}

/// Passes of this length are not preceded by an untimed one: writing back a last-level cache
/// takes a few milliseconds.
const SLOW_PASS_NS: f64 = 1e8;

/// Runs a contest; the first contestant sets the length of a turn. One result each, `None` for
/// those that could not run.
pub(crate) fn contest(
    effort: Effort,
    contestants: &mut [&mut dyn Contestant],
) -> Vec<Option<Outcome>> {
    let passes = calibrate(effort, contestants[0]);
    let first = passes.div_ceil(4);
    let mut times: Vec<Option<Vec<f64>>> = Vec::new();
    let mut settles: Vec<bool> = Vec::new();
    let mut spent: Vec<f64> = Vec::new();
    for contestant in contestants.iter_mut() {
        let ns = contestant.turn(first);
        times.push(ns.map(|_| Vec::new()));
        let slow = SLOW_PASS_NS.min(effort.most_ns);
        settles.push(ns.is_some_and(|ns| ns / (first as f64) < slow));
        spent.push(ns.unwrap_or(0.0));
    }
    for _ in 0..effort.turns.max(7) {
        for (index, contestant) in contestants.iter_mut().enumerate() {
            let Some(list) = &mut times[index] else {
                continue;
            };
            if spent[index] > effort.most_ns && !list.is_empty() {
                continue;
            }
            let settled = !settles[index] || contestant.turn(1).is_some();
            match contestant.turn(passes) {
                Some(ns) if settled => {
                    spent[index] += ns;
                    list.push(ns / passes as f64);
                }
                _ => times[index] = None,
            }
        }
    }
    let outcomes = times.into_iter().map(|list| Outcome::of(list?));
    outcomes.collect()
}

/// A contest of contestants that are alike.
pub(crate) fn contest_of<C: Contestant>(
    effort: Effort,
    contestants: &mut [C],
) -> Vec<Option<Outcome>> {
    let all = contestants.iter_mut().map(|c| c as &mut dyn Contestant);
    contest(effort, &mut all.collect::<Vec<_>>())
}

/// How many times as long as the first each of the others took at best, under its name; those that ran.
pub(crate) fn ratios(
    names: impl IntoIterator<Item = &'static str>,
    outcomes: &[Option<Outcome>],
) -> Vec<(&'static str, f64)> {
    let own = outcomes.first().copied().flatten();
    let others = names.into_iter().zip(outcomes.iter().skip(1));
    let ratio = |(name, other): (_, &Option<Outcome>)| Some((name, (*other)?.best / own?.best));
    others.filter_map(ratio).collect()
}

fn calibrate(effort: Effort, contestant: &mut dyn Contestant) -> u64 {
    let mut passes = 1;
    loop {
        let ns = contestant.turn(passes).unwrap_or(f64::INFINITY);
        if ns >= effort.turn_ns {
            return passes;
        }
        let wanted = (passes as f64 * effort.turn_ns / ns.max(1.0) * 1.1).ceil();
        passes = (wanted as u64).clamp(passes + 1, passes * 100);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Clockwork(f64, bool);

    impl Contestant for Clockwork {
        fn turn(&mut self, passes: u64) -> Option<f64> {
            self.1.then_some(self.0 * passes as f64)
        }
    }

    #[test]
    fn who_cannot_run_is_absent_and_the_rest_take_equal_turns() {
        let effort = Effort::new(7, 1000.0);
        let (mut one, mut two, mut broken) = (
            Clockwork(10.0, true),
            Clockwork(30.0, true),
            Clockwork(1.0, false),
        );
        let outcomes = contest(effort, &mut [&mut one, &mut two, &mut broken]);
        assert_eq!(outcomes[0].expect("ran").best, 10.0);
        assert_eq!(outcomes[1].expect("ran").median, 30.0);
        assert!(outcomes[2].is_none());
    }
}
