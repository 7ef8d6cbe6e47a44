//! Where the bytes of an open file are in shared memory, as servers have said.
//!
//! Maps belong to one truncate epoch, and those of a server to one epoch of its entry: with either they are
//! dropped. Within an epoch extents are only added. They are kept by what the stored bytes are called
//! ([`SubfileKey`]), and that does not change while a file moves: whether they may be used with the layout state of
//! an access is asked of the table.
//!
//! Who asks, and how often: bytes that are not mapped may be holes, about which asking again and again is
//! of no use. So it is asked at the first miss of a long access or the second of short ones, and after
//! every further doubling of the number of misses, until an answer has covered what was wanted. A write that has come to the
//! end of the space ahead of it asks at once: there is more behind it.

use std::ops::Range;
use std::sync::Arc;

use ::direct::MappedSegment;
use kernels::Share;
use wire::message::direct::READ_ONLY;

use super::attached::{Answer, Attached};
use crate::access::plan::SubfileKey;

/// From so many misses on it is asked after every so many.
const MOST_MISSES: u32 = 64;

/// A run of a subfile in a mapped segment.
#[derive(Clone, Debug)]
pub(crate) struct Extent {
    /// First subfile byte.
    pub(crate) offset: u64,
    pub(crate) len: u64,
    pub(crate) segment: Arc<MappedSegment>,
    /// Where it begins in the segment.
    pub(crate) at: u64,
    /// The mark to be set before storing, with 1 added; 0 if none is needed, [`READ_ONLY`] if
    /// nothing may be stored.
    pub(crate) mark: u32,
}

impl Extent {
    fn end(&self) -> u64 {
        self.offset + self.len
    }

    /// Whether `next` goes on where this ends, in the subfile and in memory.
    fn goes_on_in(&self, next: &Extent) -> bool {
        self.end() == next.offset
            && self.at + self.len == next.at
            && Arc::ptr_eq(&self.segment, &next.segment)
            && self.mark == next.mark
            && matches!(self.mark, 0 | READ_ONLY)
    }

    /// Whether it may be stored into.
    pub(crate) fn is_writable(&self) -> bool {
        self.segment.is_writable() && self.mark != READ_ONLY
    }
}

/// The maps of one server.
#[derive(Clone, Debug)]
pub(crate) struct ServerMap {
    pub(crate) attached: Arc<Attached>,
    pub(crate) entry: u32,
    pub(crate) epoch: u64,
    /// Of the last answer.
    pub(crate) number: u64,
    /// Ascending by subfile.
    subfiles: Vec<(SubfileKey, SubfileMap)>,
}

/// What is mapped of one subfile.
#[derive(Clone, Debug, Default)]
pub(crate) struct SubfileMap {
    /// The word of the client page that says how far the client stores; without one it stores nothing.
    pub(crate) end: Option<u32>,
    /// Ascending and apart.
    pub(crate) extents: Vec<Extent>,
}

impl ServerMap {
    /// What is mapped of a subfile.
    pub(crate) fn subfile(&self, subfile: SubfileKey) -> Option<&SubfileMap> {
        let at = self.subfiles.binary_search_by_key(&subfile, |(s, _)| *s);
        at.ok().map(|at| &self.subfiles[at].1)
    }

    fn subfile_mut(&mut self, subfile: SubfileKey) -> &mut SubfileMap {
        let at = match self.subfiles.binary_search_by_key(&subfile, |(s, _)| *s) {
            Ok(at) => at,
            Err(at) => {
                if self.subfiles.capacity() == 0 {
                    // Most of many open files have one.
                    self.subfiles.reserve_exact(1);
                }
                self.subfiles.insert(at, (subfile, SubfileMap::default()));
                at
            }
        };
        &mut self.subfiles[at].1
    }

    /// Takes an answer over; extents that are known already are replaced, since they may be writable now.
    fn add(&mut self, answer: Answer) {
        self.number = self.number.max(answer.number);
        for (subfile, end) in answer.ends {
            self.subfile_mut(subfile).end = Some(end);
        }
        for (subfile, extent) in answer.extents {
            insert(&mut self.subfile_mut(subfile).extents, extent);
        }
    }
}

/// Puts an extent in its place, instead of whatever it overlaps.
fn insert(list: &mut Vec<Extent>, extent: Extent) {
    let first = list.partition_point(|e| e.end() <= extent.offset);
    let last = list.partition_point(|e| e.offset < extent.end());
    // What sticks out of the extent on either side is still as it was said to be.
    let before = list[first..last]
        .first()
        .filter(|e| e.offset < extent.offset);
    let before = before.map(|e| Extent {
        len: extent.offset - e.offset,
        ..e.clone()
    });
    let after = list[first..last].last().filter(|e| e.end() > extent.end());
    let after = after.map(|e| Extent {
        offset: extent.end(),
        len: e.end() - extent.end(),
        at: e.at + (extent.end() - e.offset),
        ..e.clone()
    });
    let new = before.into_iter().chain([extent]).chain(after);
    list.splice(first..last, new);
    let mut at = first.saturating_sub(1);
    // The new ones and their neighbours become one where they continue each other.
    let mut left = 4;
    while left > 0 && at + 1 < list.len() {
        if list[at].goes_on_in(&list[at + 1]) {
            let next = list.remove(at + 1);
            list[at].len += next.len;
        } else {
            at += 1;
        }
        left -= 1;
    }
}

/// The maps of an open file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Maps {
    truncate_epoch: u64,
    servers: Vec<ServerMap>,
}

impl Maps {
    /// Whether these are maps for a truncate epoch.
    pub(crate) fn are_for(&self, truncate_epoch: u64) -> bool {
        self.truncate_epoch == truncate_epoch
    }

    pub(crate) fn server(&self, server: u64) -> Option<&ServerMap> {
        self.servers.iter().find(|s| s.attached.server == server)
    }

    /// Drops the maps of a server.
    pub(crate) fn forget(&mut self, server: u64) {
        self.servers.retain(|s| s.attached.server != server);
    }

    /// Takes an answer of a server over.
    pub(crate) fn add(&mut self, truncate_epoch: u64, attached: &Arc<Attached>, answer: Answer) {
        if !self.are_for(truncate_epoch) {
            *self = Maps {
                truncate_epoch,
                servers: Vec::new(),
            };
        }
        let at = self.servers.iter().position(|s| {
            Arc::ptr_eq(&s.attached, attached) && (s.entry, s.epoch) == (answer.entry, answer.epoch)
        });
        let at = at.unwrap_or_else(|| {
            self.forget(attached.server);
            if self.servers.capacity() == 0 {
                self.servers.reserve_exact(1);
            }
            self.servers.push(ServerMap {
                attached: attached.clone(),
                entry: answer.entry,
                epoch: answer.epoch,
                number: 0,
                subfiles: Vec::new(),
            });
            self.servers.len() - 1
        });
        self.servers[at].add(answer);
    }
}

/// What kind of access found bytes not mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Miss {
    /// A short one inside the file.
    Short,
    /// A short write that grows the file.
    Growing,
    /// A long one, whatever it does.
    Long,
}

/// Counts accesses that found bytes not mapped, and says when to ask.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Misses {
    count: u32,
    is_due: bool,
    /// The last answer had space for a write that grew the file.
    has_grown: bool,
}

impl Misses {
    /// One more; whether it is time to ask before it goes on.
    pub(crate) fn missed(&mut self, miss: Miss) -> bool {
        self.count += 1;
        self.is_due |= match (self.count, miss) {
            (1, Miss::Short) => false,
            (1, Miss::Growing) => self.has_grown,
            (1, Miss::Long) => true,
            (n, _) => n.is_power_of_two(),
        };
        if self.count == MOST_MISSES {
            self.count = MOST_MISSES / 2;
        }
        miss != Miss::Short && self.take_due()
    }

    /// Whether it is time to ask; asked once.
    pub(crate) fn take_due(&mut self) -> bool {
        std::mem::take(&mut self.is_due)
    }

    /// An answer has covered what was wanted.
    pub(crate) fn covered(&mut self, miss: Miss) {
        *self = Misses {
            has_grown: miss == Miss::Growing,
            ..Misses::default()
        };
    }
}

/// A piece of a part: bytes of a file range that lie in one extent.
pub(crate) struct Piece<'a> {
    pub(crate) extent: &'a Extent,
    pub(crate) file: Range<u64>,
    /// From the first to the last of them, in the subfile.
    pub(crate) subfile: Range<u64>,
}

/// Subfile bytes from the first to the last of the `bytes` bytes of a share in a file range, and the
/// file range without what lies before and behind.
pub(crate) fn span(
    share: &Share,
    file: Range<u64>,
    bytes: u64,
) -> Option<(Range<u64>, Range<u64>)> {
    let first = share.first(file.clone())?;
    let end = share.after(first..file.end, bytes);
    let subfile = share.meeting().right();
    Some((subfile.rank(first)..subfile.rank(end), first..end))
}

/// Hands the pieces of a part to `take`, ascending; false if bytes of it lie in no extent, or `take` says
/// no.
pub(crate) fn pieces<'a>(
    share: &Share,
    extents: &'a [Extent],
    file: Range<u64>,
    bytes: u64,
    mut take: impl FnMut(Piece<'a>) -> bool,
) -> bool {
    let Some((wanted, file)) = span(share, file, bytes) else {
        return true;
    };
    let subfile = share.meeting().right();
    // The file range of a range of the subfile that begins and ends inside what is wanted.
    let within = |range: &Range<u64>| {
        let start = match range.start == wanted.start {
            true => file.start,
            false => subfile.select(range.start).unwrap_or(file.end),
        };
        let end = match range.end == wanted.end {
            true => file.end,
            false => subfile.select(range.end).unwrap_or(file.end),
        };
        start..end
    };
    let mut next = extents.partition_point(|e| e.end() <= wanted.start);
    let mut at = wanted.start;
    while at < wanted.end {
        let extent = extents.get(next).filter(|e| e.offset < wanted.end);
        let start = extent.map_or(wanted.end, |e| e.offset.max(at));
        if start > at && share.count(within(&(at..start))) > 0 {
            return false;
        }
        let Some(extent) = extent else {
            return true;
        };
        let range = start..extent.end().min(wanted.end);
        let piece = Piece {
            extent,
            file: within(&range),
            subfile: range.clone(),
        };
        if !take(piece) {
            return false;
        }
        at = range.end;
        next += 1;
    }
    true
}
