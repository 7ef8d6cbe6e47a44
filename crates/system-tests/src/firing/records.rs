//! What a worker has appended to the log, in memory and in a ledger that outlives the process.
//!
//! ```text
//!  n 7          record 7 is about to be appended
//!  d 3100 7     it is at byte 3100, for good
//! ```

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Records {
    next: u64,
    acknowledged: Vec<(u64, u64)>,
    durable: Vec<(u64, u64)>,
    /// Kills when the list of acknowledged ones was begun.
    pub(super) base: u64,
    ledger: File,
}

impl Records {
    /// Goes on with what an earlier process has left.
    pub(super) fn open(path: &Path, kills: u64) -> std::io::Result<Records> {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let mut next = 0;
        let mut durable = Vec::new();
        for line in text.lines() {
            let numbers: Vec<u64> = line.split(' ').filter_map(|w| w.parse().ok()).collect();
            match (line.as_bytes().first(), &numbers[..]) {
                (Some(b'n'), [number]) => next = number + 1,
                (Some(b'd'), [at, number]) => durable.push((*at, *number)),
                _ => {}
            }
        }
        let ledger = OpenOptions::new().append(true).create(true).open(path)?;
        Ok(Records {
            next,
            acknowledged: Vec::new(),
            durable,
            base: kills,
            ledger,
        })
    }

    /// The number of the next record.
    pub(super) fn begin(&mut self) -> std::io::Result<u64> {
        let number = self.next;
        self.next += 1;
        writeln!(self.ledger, "n {number}")?;
        Ok(number)
    }

    /// A record was appended, for good or until something dies.
    pub(super) fn acknowledge(
        &mut self,
        at: u64,
        number: u64,
        is_for_good: bool,
    ) -> std::io::Result<()> {
        self.acknowledged.push((at, number));
        if is_for_good { self.synced() } else { Ok(()) }
    }

    /// Those that were acknowledged are durable.
    pub(super) fn synced(&mut self) -> std::io::Result<()> {
        let line = |(at, number): &(u64, u64)| format!("d {at} {number}\n");
        let lines: String = self.acknowledged.iter().map(line).collect();
        self.ledger.write_all(lines.as_bytes())?;
        self.durable.append(&mut self.acknowledged);
        Ok(())
    }

    /// Those that were acknowledged are perhaps lost; a list for others is begun.
    pub(super) fn forget(&mut self, kills: u64) {
        self.acknowledged.clear();
        self.base = kills;
    }

    /// All that must be there.
    pub(super) fn into_durable(self) -> Vec<(u64, u64)> {
        self.durable
    }
}
