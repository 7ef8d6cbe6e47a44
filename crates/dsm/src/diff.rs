//! Diffs: what a process changed in a page, byte for byte.
//!
//! A diff holds exactly the bytes that differ from the twin, in runs that never bridge an unchanged byte: a byte in between may
//! just have been changed by another process, and storing it would undo that (DSM-4). Applying it stores these bytes
//! and no other.

use crate::codec::{Code, PageBytes, Reader};

/// Bytes that changed: runs in ascending order, none empty, none touching the next.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Diff {
    /// Where each run begins and how long it is.
    runs: Vec<(u32, u32)>,
    /// The bytes of all runs, one after another.
    bytes: Vec<u8>,
}

impl Diff {
    /// What `page` has that `twin` has not.
    ///
    /// ```text
    ///   twin   a b c d e f g h
    ///   page   a X c Y Z f g h     runs (1,1) (3,2), bytes X Y Z
    /// ```
    ///
    /// ```
    /// let diff = dsm::Diff::between(b"abcdefgh", b"aXcYZfgh");
    /// assert_eq!(diff.runs().map(|(at, bytes)| (at, bytes.len())).collect::<Vec<_>>(), [(1, 1), (3, 2)]);
    /// ```
    pub fn between(twin: &[u8], page: &[u8]) -> Diff {
        Diff::bridging(twin, page, 0)
    }

    /// As [`Diff::between`], but runs that lie at most `gap` bytes apart become one: wrong, and there to be found by tests.
    pub(crate) fn bridging(twin: &[u8], page: &[u8], gap: usize) -> Diff {
        assert_eq!(twin.len(), page.len(), "a twin is as long as its page");
        let mut diff = Diff::default();
        let mut at = 0;
        while let Some(start) = first(twin, page, at, Bytes::Differ) {
            let mut end = first(twin, page, start, Bytes::Agree).unwrap_or(page.len());
            while let Some(next) =
                first(twin, page, end, Bytes::Differ).filter(|n| gap > 0 && n - end <= gap)
            {
                end = first(twin, page, next, Bytes::Agree).unwrap_or(page.len());
            }
            diff.runs.push((offset(start), offset(end - start)));
            diff.bytes.extend_from_slice(&page[start..end]);
            at = end;
        }
        diff
    }

    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Each run: where it begins and its bytes.
    pub fn runs(&self) -> impl Iterator<Item = (usize, &[u8])> {
        let mut rest = self.bytes.as_slice();
        self.runs.iter().map(move |(at, len)| {
            let (run, behind) = rest.split_at(*len as usize);
            rest = behind;
            (*at as usize, run)
        })
    }

    /// How many bytes changed.
    pub fn changed_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// How much room it takes.
    pub fn size_bytes(&self) -> usize {
        self.bytes.len() + 8 * self.runs.len()
    }

    /// Whether all runs lie inside a page of that size, in order and apart: asked of what another process sent.
    pub fn fits(&self, page_bytes: usize) -> bool {
        let mut end = 0;
        let mut total = 0;
        for (index, (at, len)) in self.runs.iter().enumerate() {
            let (at, len) = (*at as usize, *len as usize);
            if len == 0 || at < end || (index > 0 && at == end) || at + len > page_bytes {
                return false;
            }
            (end, total) = (at + len, total + len);
        }
        total == self.bytes.len()
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Bytes {
    Agree,
    Differ,
}

/// The first place from `at` on where the bytes agree, or differ. Equal stretches are skipped eight bytes at a time.
fn first(twin: &[u8], page: &[u8], mut at: usize, wanted: Bytes) -> Option<usize> {
    while at < page.len() {
        if wanted == Bytes::Differ && at + 8 <= page.len() && twin[at..at + 8] == page[at..at + 8] {
            at += 8;
            continue;
        }
        if (twin[at] == page[at]) == (wanted == Bytes::Agree) {
            return Some(at);
        }
        at += 1;
    }
    None
}

fn offset(value: usize) -> u32 {
    u32::try_from(value).expect("a page is short")
}

impl Code for Diff {
    fn put(&self, out: &mut Vec<u8>) {
        self.runs.put(out);
        PageBytes(self.bytes.clone()).put(out);
    }

    fn take(from: &mut Reader<'_>) -> Option<Diff> {
        Some(Diff {
            runs: Code::take(from)?,
            bytes: PageBytes::take(from)?.0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply(diff: &Diff, page: &mut [u8]) {
        for (at, bytes) in diff.runs() {
            page[at..at + bytes.len()].copy_from_slice(bytes);
        }
    }

    #[test]
    fn seed003_dsm04_a_diff_has_the_changed_bytes_and_no_other() {
        let mut random = random::Random::of_run(0xd1ff);
        for _ in 0..2000 {
            let len = 1 + random.index(80);
            let twin: Vec<u8> = (0..len).map(|_| random.below(3) as u8).collect();
            let page: Vec<u8> = (0..len).map(|_| random.below(3) as u8).collect();
            let diff = Diff::between(&twin, &page);
            assert!(diff.fits(len));
            let changed = (0..len).filter(|at| twin[*at] != page[*at]).count();
            assert_eq!(diff.changed_bytes(), changed);
            // A neighbour's change survives: bytes that are alike in both are not in the diff.
            let mut other = vec![77; len];
            apply(&diff, &mut other);
            for at in 0..len {
                let expected = if twin[at] == page[at] { 77 } else { page[at] };
                assert_eq!(other[at], expected, "byte {at}");
            }
            let mut bytes = Vec::new();
            diff.put(&mut bytes);
            assert_eq!(Diff::take(&mut Reader::new(&bytes)), Some(diff));
            assert_eq!(
                Diff::take(&mut Reader::new(&bytes[..bytes.len() - 1])),
                None
            );
        }
    }

    #[test]
    fn bridged_runs_take_unchanged_bytes_along() {
        let diff = Diff::bridging(b"abcd", b"XbYd", 2);
        assert_eq!(diff.runs().collect::<Vec<_>>(), [(0, &b"XbY"[..])]);
    }

    #[test]
    fn runs_outside_the_page_are_noticed() {
        let diff = Diff::between(b"abcdefgh", b"abcdefgX");
        assert!(diff.fits(8) && !diff.fits(7));
        let torn = Diff {
            runs: vec![(0, 4)],
            bytes: vec![1],
        };
        assert!(!torn.fits(8));
        let crossed = Diff {
            runs: vec![(3, 1), (2, 1)],
            bytes: vec![1, 2],
        };
        assert!(!crossed.fits(8));
    }
}
