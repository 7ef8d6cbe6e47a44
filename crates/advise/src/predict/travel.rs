//! A history in bytes, so that it can go with a client from one server to the next.
//!
//! Numbers in groups of seven bits, lowest first. Decoding takes any bytes and refuses what no predictor
//! would have written; it never allocates more than [`MOST_RUNS`] runs.

use super::predictor::{MOST_RUNS, NextAccess, Predictor, Run, Step};

const VERSION: u64 = 1;

pub(crate) fn put(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

pub(crate) fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut n = 0_u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let part = u64::from(byte & 0x7f);
        if shift == 63 && part > 1 {
            return None;
        }
        n |= part << shift;
        if byte & 0x80 == 0 {
            return Some(n);
        }
    }
    None
}

pub(super) fn put_runs(out: &mut Vec<u8>, runs: &[Run]) {
    put(out, runs.len() as u64);
    for run in runs {
        put(out, ((run.step.gap << 1) ^ (run.step.gap >> 63)) as u64);
        put(out, run.step.size);
        put(out, run.count);
    }
}

pub(super) fn take_runs(bytes: &mut &[u8]) -> Option<Vec<Run>> {
    let count = take(bytes)?;
    if count > MOST_RUNS as u64 {
        return None;
    }
    let mut runs = Vec::new();
    for _ in 0..count {
        let gap = take(bytes)?;
        let gap = (gap >> 1) as i64 ^ -((gap & 1) as i64);
        let (size, count) = (take(bytes)?, take(bytes)?);
        if size == 0 || count == 0 || size > falls::MAX_OFFSET || count > falls::MAX_OFFSET {
            return None;
        }
        let step = Step { gap, size };
        runs.push(Run { step, count });
    }
    Some(runs)
}

pub(super) fn put_access(out: &mut Vec<u8>, access: Option<NextAccess>) {
    // No access has size 0, so that stands for none.
    let access = access.unwrap_or(NextAccess { offset: 0, size: 0 });
    put(out, access.size);
    put(out, access.offset);
}

pub(super) fn take_access(bytes: &mut &[u8]) -> Option<Option<NextAccess>> {
    let (size, offset) = (take(bytes)?, take(bytes)?);
    if size > falls::MAX_OFFSET || offset > falls::MAX_OFFSET {
        return None;
    }
    Some((size > 0).then_some(NextAccess { offset, size }))
}

impl Predictor {
    /// Everything that predictions depend on, in a few dozen bytes. What only a profile needs stays behind.
    ///
    /// ```
    /// use advise::predict::Predictor;
    /// let mut here = Predictor::new();
    /// (0..5).for_each(|i| here.observe(100 * i, 8));
    /// let there = Predictor::import(&here.export()).expect("as it was written");
    /// assert_eq!(there.next(), here.next());
    /// assert!(here.export().len() < 40);
    /// assert_eq!(Predictor::import(b"not a history"), None);
    /// ```
    pub fn export(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64);
        put(&mut out, VERSION);
        put(&mut out, u64::from(self.confidence));
        put_access(&mut out, self.last);
        put_runs(&mut out, &self.runs);
        out
    }

    /// A history that arrived; `None` if the bytes are none.
    pub fn import(mut bytes: &[u8]) -> Option<Predictor> {
        let r = &mut bytes;
        if take(r)? != VERSION {
            return None;
        }
        let confidence = u8::try_from(take(r)?).ok()?;
        let last = take_access(r)?;
        let runs = take_runs(r)?;
        if !r.is_empty() || (last.is_none() && !runs.is_empty()) {
            return None;
        }
        Some(Predictor {
            confidence,
            last,
            runs,
            ..Predictor::default()
        })
    }
}
