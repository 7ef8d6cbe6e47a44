//! Space ahead of growth: how much of a subfile is made for clients that store one piece after the other.
//!
//! ```text
//!  asked   |--|            |--|                     |--|
//!  made    |--256K--|      |----512K----|           |--------1M--------|  ...  32 MiB at most
//! ```
//!
//! A client asks where its bytes go when it comes to the end of what it has. Bytes that go on where the space made before
//! ends get more each time, so that growth costs a question per window and not per write. Windows belong to the subfile: all
//! clients that store into it share them. What nobody has stored into goes back when the last of them closes the file, and when
//! memory is short.

use std::collections::HashMap;
use std::ops::Range;

use parking_lot::Mutex;
use store::SubfileId;

/// The first window.
const FIRST: u64 = 256 << 10;
/// The largest one.
const LARGEST: u64 = 32 << 20;
/// The part of the room that is left that one window may take.
const SHARE: u64 = 8;
/// How far behind the space that there is a piece may begin to go on there: clients that deal out a file among them ask for pieces
/// some way apart.
const SLACK: u64 = 1 << 20;

#[derive(Clone, Copy, Debug)]
struct Window {
    /// Where the space ends.
    end: u64,
    /// The bytes of the next one.
    next: u64,
}

/// The windows of subfiles. See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Windows(Mutex<HashMap<SubfileId, Window>>);

impl Windows {
    /// How far space is made for a range that is asked for and not there, in a subfile of this length, if so much room is
    /// left.
    pub(super) fn ahead(&self, id: SubfileId, asked: &Range<u64>, len: u64, room: u64) -> u64 {
        let mut windows = self.0.lock();
        let window = windows.entry(id).or_insert(Window {
            end: len,
            next: FIRST,
        });
        let goes_on = asked.start <= window.end.max(len).saturating_add(SLACK);
        if asked.end - asked.start >= LARGEST {
            return asked.end;
        }
        if !goes_on {
            window.next = FIRST;
            return asked.end;
        }
        let bytes = window.next.max(asked.end - asked.start).min(LARGEST);
        window.next = (2 * bytes).min(LARGEST);
        let end = asked.end.saturating_add(bytes.min(room / SHARE));
        let end = end.min(store::MAX_LEN).max(asked.end);
        window.end = window.end.max(end);
        end
    }

    /// Nobody stores into these subfiles any more.
    pub(super) fn forget<'a>(&self, ids: impl Iterator<Item = &'a SubfileId>) {
        let mut windows = self.0.lock();
        for id in ids {
            windows.remove(id);
        }
    }

    /// How far space was made behind the length of a subfile.
    pub(super) fn bytes_ahead(&self, id: &SubfileId, len: u64) -> u64 {
        let windows = self.0.lock();
        windows.get(id).map_or(0, |w| w.end.saturating_sub(len))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: SubfileId = SubfileId {
        file: 1,
        generation: 1,
        index: 0,
    };
    const MUCH: u64 = 1 << 40;

    #[test]
    fn growth_that_goes_on_gets_twice_as_much_each_time() {
        let windows = Windows::default();
        let (mut at, mut asked) = (0, 0);
        while at < 1 << 30 {
            at = windows.ahead(ID, &(at..at + 4096), at, MUCH);
            asked += 1;
        }
        assert!(asked < 50, "{asked} questions for a GiB");
        let end = windows.ahead(ID, &(at..at + 4096), at, MUCH);
        assert_eq!(end, at + 4096 + LARGEST);
    }

    #[test]
    fn bytes_far_away_get_what_they_ask_for() {
        let windows = Windows::default();
        let far = 1 << 40;
        assert_eq!(windows.ahead(ID, &(far..far + 10), 0, MUCH), far + 10);
        assert_eq!(windows.ahead(ID, &(0..10), 0, MUCH), 10 + FIRST);
        // Clients that deal out a subfile among them.
        let next = 10 + FIRST + SLACK;
        assert_eq!(
            windows.ahead(ID, &(next..next + 10), 0, MUCH),
            next + 10 + 2 * FIRST
        );
    }

    #[test]
    fn little_room_is_left_to_others() {
        let windows = Windows::default();
        assert_eq!(windows.ahead(ID, &(0..10), 0, 800), 110);
        assert_eq!(windows.ahead(ID, &(110..120), 0, 0), 120);
        assert_eq!(windows.bytes_ahead(&ID, 100), 20);
        windows.forget([ID].iter());
        assert_eq!(windows.bytes_ahead(&ID, 100), 0);
    }
}
