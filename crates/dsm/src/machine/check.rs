//! The invariants of a machine, as a question: asked at every step of a simulation.
//!
//! Those about all processes together (one token per lock, equal times behind a barrier) are asked by the simulator.

use super::{Machine, Protocol};
use crate::page::{PageMemory, State};

impl<M: PageMemory> Machine<M> {
    /// What is wrong, if anything.
    ///
    /// # Errors
    ///
    /// The number of the invariant and the page it is about.
    pub fn check(&self) -> Result<(), String> {
        let me = self.me;
        if self.setting.protocol == Protocol::Sequential {
            return Ok(());
        }
        if u64::from(self.time.of(me)) != self.statistics.records {
            return Err(format!(
                "I2: {} intervals, {} records",
                self.time.of(me),
                self.statistics.records
            ));
        }
        for (number, page) in self.pages.iter().enumerate() {
            let is_open = matches!(page.state, State::ReadOnly | State::Dirty);
            if is_open && !page.have.covers(&page.need) {
                return Err(format!(
                    "I3: page {number} of process {me} is open and lacks versions"
                ));
            }
            let is_dirty = page.state == State::Dirty;
            let is_elsewhere = page.home != me;
            if self.setting.protocol == Protocol::HomeBased
                && page.twin.is_some() != (is_dirty && is_elsewhere)
            {
                return Err(format!(
                    "I4: page {number} of process {me} has a twin it should not have, or none"
                ));
            }
            if is_dirty != self.dirty.contains(&(number as u32)) {
                return Err(format!(
                    "I5: page {number} of process {me} and the dirty set differ"
                ));
            }
        }
        for log in &self.log {
            let ascend = log
                .iter()
                .zip(log.iter().skip(1))
                .all(|(a, b)| a.index + 1 == b.index);
            if !ascend {
                return Err(format!("I8: records at process {me} are out of order"));
            }
        }
        Ok(())
    }
}
