//! How a grant over a subfile of a disk store ends: its blocks become dirty, or are as they were on disk.
//!
//! Left to others: how it begins, and the locks ([`super`]).

use super::HeldSubfile;
use crate::error::{Error, Result};
use crate::pins::{GrantEnd, Pins};
use crate::table::local;

impl GrantEnd for HeldSubfile {
    fn commit(&self, pins: &Pins) -> Result<()> {
        let mut state = self.lock();
        let is_current = |i| state.is_current(pins, i).is_some();
        if state.removed || !(0..pins.list.len()).all(is_current) {
            drop(state);
            self.abandon(pins);
            return Err(Error::Stale);
        }
        let mut end = 0;
        for (i, pin) in pins.list.iter().enumerate() {
            let start = state.is_current(pins, i).expect("checked above");
            state.table.mark_dirty(start, &pin.range());
            let slot = state.table.slot_mut(start).expect("found above");
            slot.release_writer();
            end = end.max(pin.offset + pin.len);
        }
        state.record_write(end);
        Ok(())
    }

    /// Blocks that only this grant touched are read again from disk when a request wants them.
    fn abandon(&self, pins: &Pins) {
        let mut state = self.lock();
        for (i, pin) in pins.list.iter().enumerate() {
            let Some(start) = state.is_current(pins, i) else {
                continue;
            };
            let len = state.len;
            let slot = state.table.slot_mut(start).expect("found above");
            if slot.storable || slot.mapped.is_some() {
                // Others may have stored here meanwhile, and only memory has it: what is left of the
                // write stays, as of any write that fails.
                slot.release_writer();
                state.table.mark_stored(pin.range());
                state.put_on_record();
                continue;
            }
            slot.spoiled.insert(local(start, &pin.range()));
            slot.release_writer();
            // A dirty block stays; behind the length it must be zero all the same.
            let behind = len.clamp(pin.offset, pin.offset + pin.len);
            slot.extent
                .zero(behind - start, pin.offset + pin.len - behind);
        }
    }
}
