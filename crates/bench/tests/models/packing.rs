//! Packing: seconds per MB to build packets, for other redistributions too (equation 4.4 of the thesis).
//!
//! `pi(n, P) = phi(n) + T_k(n, P) + 8 delta / n`: the curve, what address translation adds, and how much one
//! more run showed another redistribution to take per piece. GEN hides misses behind its divisions.

use crate::tlb::{Replacement, TlbRuns, large_k_share, miss_cost};
use advise::cost::Curve;

/// A redistribution whose pieces the model knows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Redistribution {
    /// `CYCLIC(ky)` to `CYCLIC(y)`, on which the curve is measured.
    Kyy,
    /// Another regular one, `delta` seconds per MB above KYY at 8 bytes.
    Regular {
        /// What one run at 8 bytes and few packets showed.
        delta: f64,
    },
    /// `CYCLIC(x)` to `CYCLIC(y)` with two divisions per element.
    Gen {
        /// As for regular ones.
        delta: f64,
        /// What is saved where the number of processors is a power of two and division is a shift.
        shift_saves: f64,
    },
}

/// What three runs and one or two more told of a processor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Processor {
    /// `phi`, seconds per MB.
    pub(crate) curve: Curve,
    /// Who leaves the address translation.
    pub(crate) replacement: Replacement,
    /// Its entries.
    pub(crate) entries: u64,
    /// Runs that show its misses.
    pub(crate) runs: TlbRuns,
}

impl Processor {
    /// Seconds per MB to pack pieces of `n` bytes for `packets` packets, `k` of them per local block.
    pub(crate) fn packing(&self, of: Redistribution, n: f64, packets: u64, k: u64) -> f64 {
        // With fewer blocks than processors only so many packets are built.
        let packets = packets.min(k.max(1));
        let misses = miss_cost(self.replacement, self.entries, &self.runs, n, packets)
            * large_k_share(self.replacement, self.entries, packets, k);
        let per_piece = 8.0 / n.max(1.0);
        match of {
            Redistribution::Kyy => self.curve.at(n) + misses,
            Redistribution::Regular { delta } => self.curve.at(n) + misses + per_piece * delta,
            Redistribution::Gen { delta, shift_saves } => {
                let saved = match packets.is_power_of_two() {
                    true => shift_saves,
                    false => 0.0,
                };
                self.curve.at(n) + per_piece * (delta - saved).max(0.0)
            }
        }
    }
}
