//! Measuring this machine and its way to the servers, for the cost model of `advise`.
//!
//! `local` measures copies in memory, through the same kernels that accesses use; `network` measures a
//! service: messages, stores, direct access, exchanges. Both give a part of an `advise::cost::Machine` with
//! how well it fits what was measured.
//!
//! Invariants: a few seconds in all; every time is the best of several; nothing is left behind in the
//! service; what could not be measured keeps its default and is not shown as measured.

#![forbid(unsafe_code)]

pub mod local;
pub mod network;

use std::time::Instant;

use advise::model::accuracy::Accuracy;

/// How well a part of the model fits.
#[derive(Clone, Debug)]
pub struct Fit {
    /// Which part.
    pub name: &'static str,
    /// What it is called for people, with its numbers.
    pub shown: String,
    /// Agreement with what it was fitted to.
    pub accuracy: Accuracy,
    /// Agreement with what was left out of it: the error to expect. None where nothing could be left out.
    pub left_out: Option<Accuracy>,
    /// What was measured, and what the model says of it.
    pub cells: Vec<Cell>,
}

/// One measurement.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Of what.
    pub what: String,
    /// Best time.
    pub measured_s: f64,
    /// Time that the model gives.
    pub predicted_s: f64,
}

impl Fit {
    /// A part with its cells, judged by them.
    pub fn new(name: &'static str, shown: String, cells: Vec<Cell>) -> Fit {
        let pairs: Vec<(f64, f64)> = cells
            .iter()
            .map(|cell| (cell.measured_s, cell.predicted_s))
            .collect();
        Fit {
            name,
            shown,
            accuracy: Accuracy::of(&pairs),
            left_out: None,
            cells,
        }
    }

    /// With what it is worth for what was left out, as pairs (measured, predicted).
    pub fn with_left_out(self, pairs: &[(f64, f64)]) -> Fit {
        Fit {
            left_out: (!pairs.is_empty()).then(|| Accuracy::of(pairs)),
            ..self
        }
    }
}

/// The best time of several passes, after one that warms up. Passes go on until both `passes` and
/// `least_s` are reached, so that short ones are not at the mercy of one moment.
pub fn best_of(passes: usize, least_s: f64, mut pass: impl FnMut()) -> f64 {
    pass();
    let mut best = f64::INFINITY;
    let begin = Instant::now();
    let mut done = 0;
    while done < passes || (begin.elapsed().as_secs_f64() < least_s && done < 50 * passes) {
        let start = Instant::now();
        pass();
        best = best.min(start.elapsed().as_secs_f64());
        done += 1;
    }
    // A clock that stood still would otherwise give a rate without bounds.
    best.max(1e-9)
}
