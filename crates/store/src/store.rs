//! The contract every store keeps: [`Store`] and [`Subfile`].
//!
//! A store holds subfiles, each a sequence of bytes from 0 to its length, the end of what was ever
//! written or preallocated. Bytes that were never written, and bytes at or beyond the length, read
//! as zeros: where a *file* ends is the size owner's affair, not the store's.
//!
//! Every store declares what it can ([`Capabilities`]); callers ask for a capability, never for a
//! kind of store. The suite in [`crate::conformance`] runs against any implementation.
//!
//! What is left to the caller: ordering of overlapping accesses (without it they mix), waiting
//! when memory runs out, and driving [`Store::write_back`].

use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use crate::aside::Aside;
use crate::cache::CacheUsage;
use crate::error::{Error, Resource, Result};
use crate::identity::{Domain, Identity, MAX_LEN, SubfileId};
use crate::pins::{Grant, Pins};
use crate::pool::{Extent, UNIT};
use crate::segment::Segment;

/// What a store can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Bytes may be overwritten where they are (an object store could not).
    pub in_place: bool,
    /// Extents are memory that other processes can map ([`Subfile::locate`]).
    pub mappable: bool,
    /// After [`Subfile::sync`] the bytes survive the death of every process and of the machine.
    pub durable: bool,
    /// Fewest bytes that space is given out in.
    pub smallest_extent_bytes: u64,
}

/// Where bytes of a subfile are in shared memory.
#[derive(Clone, Debug)]
pub struct Location {
    /// First subfile byte.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
    /// Segment that holds them.
    pub segment: Arc<Segment>,
    /// Where they begin in the segment.
    pub segment_offset: u64,
}

impl Location {
    /// Where a whole extent is.
    pub(crate) fn of(offset: u64, extent: &Extent) -> Location {
        Location {
            offset,
            len: extent.len(),
            segment: Arc::clone(extent.segment()),
            segment_offset: extent.segment_offset(),
        }
    }

    /// A descriptor of the segment, for reading only unless the receiver may write.
    pub fn descriptor(&self, writable: bool) -> Result<OwnedFd> {
        if writable {
            self.segment
                .descriptor()
                .try_clone_to_owned()
                .map_err(|e| Error::io("duplicating a descriptor", e, 0))
        } else {
            self.segment.read_only_descriptor()
        }
    }
}

/// What a store holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Memory of extents in use by this and other stores on the same pool.
    pub memory_bytes: u64,
    /// Most memory that extents may take.
    pub memory_limit_bytes: u64,
    /// Committed bytes that are in memory only and wait for [`Store::write_back`].
    pub dirty_bytes: u64,
    /// Free room on the disks that still take files.
    pub disk_free_bytes: u64,
    /// What its cache has counted; nothing where memory is all there is.
    pub cache: CacheUsage,
}

/// What [`Subfile::scrub`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scrub {
    /// Blocks read and compared with their checksum.
    pub blocks: u64,
    /// First byte of each block that could not be read or did not match.
    pub damaged: Vec<u64>,
}

/// Keeps subfiles.
pub trait Store: Send + Sync {
    /// What it can do.
    fn capabilities(&self) -> Capabilities;

    /// A new, empty subfile.
    fn create(&self, identity: &Identity) -> Result<Arc<dyn Subfile>>;

    /// An existing one. Every call gives access to the same bytes.
    fn open(&self, id: SubfileId) -> Result<Arc<dyn Subfile>>;

    /// Forgets a subfile and frees its space. Handles that are still open see an empty, dead one.
    fn remove(&self, id: SubfileId) -> Result<()>;

    /// All subfiles, ascending.
    fn list(&self) -> Result<Vec<Identity>>;

    /// Puts every subfile on record whose bytes are durable ([`Subfile::sync_bytes`]), durably. A store that forgets
    /// everything has nothing to do.
    fn settle(&self) -> Result<()> {
        Ok(())
    }

    /// Writes back up to about `budget_bytes` of dirty bytes and says how many it wrote. They are
    /// then safe from the death of this process; [`Subfile::sync`] makes them durable.
    fn write_back(&self, budget_bytes: u64) -> Result<u64>;

    /// What it holds.
    fn usage(&self) -> Usage;
}

/// One subfile.
pub trait Subfile: Send + Sync {
    /// What it was created with, with its present domain and note.
    fn identity(&self) -> Identity;

    /// End of what was ever written or preallocated and not truncated.
    fn len(&self) -> u64;

    /// Whether nothing was ever written.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Pins a range for reading and appends its pieces to `pins`. Takes no memory for holes.
    fn pin(&self, range: Range<u64>, pins: &mut Pins) -> Result<()>;

    /// Brings bytes into memory before anybody asks for them, as far as there is room that nobody needs
    /// more; says how many had to be read. A store without disk has nothing to do.
    fn read_ahead(&self, range: Range<u64>) -> Result<u64> {
        check(&range)?;
        Ok(0)
    }

    /// Allocates what a range lacks, pins it for writing and appends its pieces to `grant`, which
    /// holds ranges of one subfile at a time. All of the range has to be stored before the commit.
    fn grant(&self, range: Range<u64>, grant: &mut Grant) -> Result<()>;

    /// As [`Subfile::grant`], for a caller that surely stores all of the range: memory that is new is not
    /// cleared for him, and nobody else finds it before the commit.
    fn grant_apart(&self, range: Range<u64>, grant: &mut Grant) -> Result<()> {
        self.grant(range, grant)
    }

    /// As [`Subfile::grant`], for a caller that stores only some bytes of the range: the others keep
    /// what they have, which may have to be read from disk first.
    fn grant_gaps(&self, range: Range<u64>, grant: &mut Grant) -> Result<()> {
        self.grant(range, grant)
    }

    /// Cuts or extends. Bytes behind the new length are gone; should the subfile grow again they
    /// are zero.
    fn truncate(&self, len: u64) -> Result<()>;

    /// Makes a range zero and frees the space that lies in it as a whole. The length stays.
    fn punch(&self, range: Range<u64>) -> Result<()>;

    /// Frees space that lies in a range as a whole. What its bytes are afterwards nobody knows: for ranges that
    /// nobody reads before all of them are stored or punched.
    fn release(&self, range: Range<u64>) -> Result<()> {
        self.punch(range)
    }

    /// Commits space for a range and raises the length to its end.
    fn preallocate(&self, range: Range<u64>) -> Result<()>;

    /// Takes space for everything below `end`, ahead of the length, which stays: nobody else gets it until this is called with a
    /// lower end, which gives back what lies behind the length and that end as a whole. When more is asked for and it fails, what was
    /// there before stays. It lasts as long as a handle does that it was called on.
    fn keep_ahead(&self, end: u64) -> Result<()>;

    /// Makes what was committed safe from the death of this process.
    fn flush(&self) -> Result<()>;

    /// Makes what was committed durable, where the store can.
    fn sync(&self) -> Result<()>;

    /// Makes the bytes durable, but not the record that the subfile exists, which [`Store::settle`] makes durable for many at once.
    fn sync_bytes(&self) -> Result<()> {
        self.sync()
    }

    /// Bytes of space it takes: memory for a memory store, disk for a disk store.
    fn allocated(&self) -> Result<u64>;

    /// Compares everything stored with its checksum.
    fn scrub(&self) -> Result<Scrub>;

    /// Moves the subfile to another protection domain; its bytes move to other segments.
    fn set_domain(&self, domain: Domain) -> Result<()>;

    /// Replaces the note; durable with the next sync.
    fn set_note(&self, note: &[u8]) -> Result<()>;

    /// Where a range is in shared memory, as far as it is there. Pins what it names, so the
    /// memory stays for as long as `pins` does.
    fn locate(&self, range: Range<u64>, pins: &mut Pins) -> Result<Vec<Location>> {
        let before = pins.list.len();
        self.pin(range, pins)?;
        let located = pins.list[before..].iter().filter_map(|pin| {
            let (extent, at) = pin.memory.as_ref()?;
            Some(Location {
                offset: pin.offset,
                len: pin.len,
                segment: Arc::clone(extent.segment()),
                segment_offset: extent.segment_offset() + at,
            })
        });
        Ok(located.collect())
    }

    /// The extents that have a byte of a range and that others may map now, whole and ascending, at
    /// most `most`. Extents with bytes that are on a disk only are left out. Those that are named stay
    /// where they are until [`Subfile::unmap`] is called with a number above `map`.
    fn extents(&self, range: Range<u64>, most: usize, map: u64) -> Result<Vec<Location>>;

    /// Whether every byte of a range is in an extent that others may map now.
    fn is_mappable(&self, range: Range<u64>) -> bool;

    /// Maps with a number below `before` are void: nobody reads extents through them any more.
    fn unmap(&self, before: u64);

    /// An extent that [`Subfile::extents`] named for this map is about to be stored into by the client that has
    /// the map; whether it may. What it stores counts with [`Subfile::mark_written`].
    fn let_store(&self, start: u64, map: u64) -> bool;

    /// Makes the extents of a range that clients may store into later. The length stays: how far they stored is said by
    /// [`Subfile::stored_to`]. When it fails, what was made can be evicted, or is not there.
    fn reserve(&self, range: Range<u64>) -> Result<()>;

    /// A client that has a map has stored up to `end`, or is about to: the length is at least that.
    fn stored_to(&self, end: u64) -> Result<()>;

    /// Gives back the memory of extents that lie behind the length as a whole and that no client has mapped.
    fn trim(&self);

    /// Takes the extents of a range away from a client that may still store into them: those that begin
    /// below `keep` are copied to fresh ones, the others may be freed. The old ones go to `aside`, also
    /// when this fails for lack of memory; what is stored into them is seen by nobody. Bytes from
    /// `keep` on are lost or not: the caller is about to cut them off.
    ///
    /// Nobody else may be writing: a grant that is not committed yet is refused afterwards.
    fn set_aside(&self, range: Range<u64>, keep: u64, aside: &mut Aside) -> Result<()>;

    /// Marks a range as written by a client that mapped it, as far as it is in memory and below the length, which
    /// [`Subfile::stored_to`] has raised before.
    fn mark_written(&self, range: Range<u64>) -> Result<()>;

    /// Copies `target.len()` bytes from `offset` on; what was never written is zero.
    fn read_at(&self, offset: u64, target: &mut [u8]) -> Result<()> {
        let range = checked(offset, target.len() as u64)?;
        let mut pins = Pins::new();
        in_rounds(range, |part| {
            let to = (part.start - offset) as usize..(part.end - offset) as usize;
            pins.clear();
            self.pin(part, &mut pins)?;
            pins.copy_to(&mut target[to]);
            pins.clear();
            Ok(())
        })
    }

    /// Writes `source` at `offset`. When it fails, a prefix of it may have been written.
    fn write_at(&self, offset: u64, source: &[u8]) -> Result<()> {
        let range = checked(offset, source.len() as u64)?;
        let mut grant = Grant::new();
        in_rounds(range, |part| {
            let from = (part.start - offset) as usize..(part.end - offset) as usize;
            self.grant(part, &mut grant)?;
            grant.copy_from(&source[from]);
            grant.commit()
        })
    }
}

/// Runs an access in rounds, so that little is pinned at a time: large ones, and where memory is too
/// scarce for that, rounds that need one extent only.
fn in_rounds(range: Range<u64>, mut access: impl FnMut(Range<u64>) -> Result<()>) -> Result<()> {
    for part in rounds(range, 1 << 20) {
        match access(part.clone()) {
            Err(Error::NoSpace {
                resource: Resource::Memory,
                ..
            }) => rounds(part, UNIT).try_for_each(&mut access)?,
            done => done?,
        }
    }
    Ok(())
}

/// Cuts a range at multiples of `step`.
pub(crate) fn rounds(range: Range<u64>, step: u64) -> impl Iterator<Item = Range<u64>> {
    let mut at = range.start;
    std::iter::from_fn(move || {
        let end = ((at / step + 1) * step).min(range.end);
        let part = at..end;
        at = end;
        (!part.is_empty()).then_some(part)
    })
}

/// A range that fits the 63-bit space of offsets.
pub(crate) fn checked(offset: u64, len: u64) -> Result<Range<u64>> {
    match offset.checked_add(len) {
        Some(end) if end <= MAX_LEN => Ok(offset..end),
        _ => Err(Error::argument(
            "range",
            format!("{offset} + {len} ends beyond {MAX_LEN}"),
        )),
    }
}

/// Refuses a range that does not ascend, or ends beyond the largest subfile.
pub(crate) fn check(range: &Range<u64>) -> Result<()> {
    if range.start > range.end || range.end > MAX_LEN {
        return Err(Error::argument(
            "range",
            format!(
                "{}..{} must ascend and end at {MAX_LEN} at most",
                range.start, range.end
            ),
        ));
    }
    Ok(())
}
