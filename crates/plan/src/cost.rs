//! A cost function for plans: latency per pair, time per byte, time per run.
//!
//! `time = pairs x message + bytes x byte + runs x run` (part 10 of the specification of the
//! Clusterfile paper), where a run that a cursor has to find costs more than one in a compiled loop.
//! The numbers are the caller's; the calibrated model of a machine comes from
//! elsewhere. [`CostFunction::MEMORY`] is an order of magnitude for copies inside one machine, good
//! enough to rank plans.

use crate::measures::Measures;

/// Seconds per message, per byte and per run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CostFunction {
    /// Seconds to start one message.
    pub message_s: f64,
    /// Seconds per byte moved.
    pub byte_s: f64,
    /// Seconds per run gathered or scattered by a loop.
    pub run_s: f64,
    /// Seconds per run of a lazy meeting, which a cursor finds one by one.
    pub lazy_run_s: f64,
}

impl CostFunction {
    /// Copies in the memory of one machine: 2 us to hand over a message, 10 GB/s, 2 ns per run of a
    /// loop, 130 ns per run of a cursor.
    pub const MEMORY: CostFunction = CostFunction {
        message_s: 2e-6,
        byte_s: 1e-10,
        run_s: 2e-9,
        lazy_run_s: 1.3e-7,
    };

    /// Seconds for a plan with these measures, executed by one worker.
    pub fn seconds(&self, m: &Measures) -> f64 {
        let compiled = m.runs - m.lazy_runs;
        m.pairs as f64 * self.message_s
            + m.bytes as f64 * self.byte_s
            + compiled as f64 * self.run_s
            + m.lazy_runs as f64 * self.lazy_run_s
    }
}
