//! Access to extents in place: [`Pins`] to read, [`Grant`] to write.
//!
//! A pin is a counted reference to an extent. While it lives the memory is neither recycled nor
//! given to anybody else, whatever happens to the subfile meanwhile: a reader that was overtaken by
//! a truncation reads old bytes, a writer that was overtaken stores into memory nobody will
//! read. So nobody waits for a slow client, and nobody's late store can hurt.
//!
//! Holes have no memory. Readers get them as lengths and cost nothing.
//!
//! Both types keep their capacity when cleared: reusing one allocates nothing per access.

use std::ops::Range;
use std::sync::Arc;

use kernels::{SharedBytes, SharedBytesMut};

use crate::error::Result;
use crate::pool::Extent;

/// One contiguous piece of what was asked for, ascending.
#[derive(Debug)]
pub enum StoredPiece<'a> {
    /// Bytes in memory.
    Bytes {
        /// First subfile byte.
        offset: u64,
        /// Where they are.
        bytes: SharedBytes<'a>,
    },
    /// Bytes that were never written: zeros.
    Hole {
        /// First subfile byte.
        offset: u64,
        /// How many.
        len: u64,
    },
}

/// Pinned ranges of one subfile, for reading.
#[derive(Debug, Default)]
pub struct Pins {
    pub(crate) list: Vec<Pin>,
    /// What is pinned is no use of its own.
    pub(crate) is_again: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Pin {
    pub(crate) offset: u64,
    pub(crate) len: u64,
    /// The extent, and where in it the piece begins; `None` is a hole.
    pub(crate) memory: Option<(Arc<Extent>, u64)>,
    /// The extent is in no table before the commit; how often the subfile had been cut then.
    pub(crate) apart: Option<u64>,
}

impl Pin {
    pub(crate) fn range(&self) -> Range<u64> {
        self.offset..self.offset + self.len
    }
}

impl Pins {
    /// No pins.
    pub fn new() -> Self {
        Pins::default()
    }

    /// Says whether what is pinned from now on was pinned a moment ago for the same access, so that a cache
    /// does not take it for used twice.
    pub fn is_again(&mut self, is_again: bool) {
        self.is_again = is_again;
    }

    /// Lets go of everything, keeping the capacity.
    pub fn clear(&mut self) {
        self.list.clear();
    }

    /// The pieces, in the order they were asked for.
    pub fn pieces(&self) -> impl Iterator<Item = StoredPiece<'_>> {
        self.list.iter().map(|pin| match &pin.memory {
            Some((extent, at)) => StoredPiece::Bytes {
                offset: pin.offset,
                bytes: extent.bytes(*at, pin.len),
            },
            None => StoredPiece::Hole {
                offset: pin.offset,
                len: pin.len,
            },
        })
    }

    /// Sum of all lengths.
    pub fn len(&self) -> u64 {
        self.list.iter().map(|pin| pin.len).sum()
    }

    /// Whether nothing is pinned.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Copies all pieces, one after the other, into `target`.
    ///
    /// # Panics
    /// If `target` has another length than the pins.
    pub fn copy_to(&self, mut target: &mut [u8]) {
        assert_eq!(target.len() as u64, self.len());
        for pin in &self.list {
            let (part, rest) = target.split_at_mut(pin.len as usize);
            match &pin.memory {
                Some((extent, at)) => extent.copy_out(*at, part),
                None => part.fill(0),
            }
            target = rest;
        }
    }

    pub(crate) fn push(&mut self, offset: u64, len: u64, memory: Option<(Arc<Extent>, u64)>) {
        if let (None, Some(last)) = (&memory, self.list.last_mut())
            && last.memory.is_none()
            && last.offset + last.len == offset
        {
            last.len += len;
            return;
        }
        self.list.push(Pin {
            offset,
            len,
            memory,
            apart: None,
        });
    }

    /// Appends memory that nobody else knows of before the commit.
    pub(crate) fn push_apart(
        &mut self,
        offset: u64,
        len: u64,
        memory: (Arc<Extent>, u64),
        cuts: u64,
    ) {
        self.list.push(Pin {
            offset,
            len,
            memory: Some(memory),
            apart: Some(cuts),
        });
    }
}

/// What a store does when a grant ends.
pub(crate) trait GrantEnd: Send + Sync {
    fn commit(&self, pins: &Pins) -> Result<()>;
    fn abandon(&self, pins: &Pins);
}

/// Pinned ranges of one subfile, for writing. Their space exists; storing into it cannot fail.
///
/// Bytes count as written from [`Grant::commit`] on. A grant that is dropped was abandoned: what it
/// had stored may or may not be read afterwards, and nothing outside its ranges has changed.
#[derive(Default)]
pub struct Grant {
    pub(crate) pins: Pins,
    pub(crate) owner: Option<Arc<dyn GrantEnd>>,
}

impl std::fmt::Debug for Grant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Grant").field(&self.pins).finish()
    }
}

impl Grant {
    /// Nothing granted.
    pub fn new() -> Self {
        Grant::default()
    }

    /// The pieces with their subfile offsets, in the order they were asked for.
    pub fn pieces(&mut self) -> impl Iterator<Item = (u64, SharedBytesMut<'_>)> {
        self.pins.list.iter().map(|pin| {
            let (extent, at) = pin.memory.as_ref().expect("granted space has memory");
            (pin.offset, extent.bytes_mut(*at, pin.len))
        })
    }

    /// Pieces for several callers that store at once, each its own bytes.
    pub fn shared_pieces(&self) -> impl Iterator<Item = (u64, SharedBytesMut<'_>)> {
        self.pins.list.iter().map(|pin| {
            let (extent, at) = pin.memory.as_ref().expect("granted space has memory");
            (pin.offset, extent.bytes_mut(*at, pin.len))
        })
    }

    /// Remembers whose ranges they are.
    pub(crate) fn own<T: GrantEnd + 'static>(&mut self, owner: &Arc<T>) {
        match &self.owner {
            None => self.owner = Some(Arc::clone(owner) as Arc<dyn GrantEnd>),
            Some(before) => assert!(
                std::ptr::addr_eq(Arc::as_ptr(before), Arc::as_ptr(owner)),
                "a grant holds ranges of one subfile at a time; commit it first"
            ),
        }
    }

    /// Sum of all lengths.
    pub fn len(&self) -> u64 {
        self.pins.len()
    }

    /// Whether nothing is granted.
    pub fn is_empty(&self) -> bool {
        self.pins.is_empty()
    }

    /// Copies `source` into all pieces, one after the other.
    ///
    /// # Panics
    /// If `source` has another length than the grant.
    pub fn copy_from(&mut self, mut source: &[u8]) {
        assert_eq!(source.len() as u64, self.len());
        for pin in &self.pins.list {
            let (part, rest) = source.split_at(pin.len as usize);
            let (extent, at) = pin.memory.as_ref().expect("granted space has memory");
            extent.copy_in(*at, part);
            source = rest;
        }
    }

    /// Makes the bytes count as written. The grant is empty afterwards and can be used again.
    pub fn commit(&mut self) -> Result<()> {
        let done = match self.owner.take() {
            Some(owner) => owner.commit(&self.pins),
            None => Ok(()),
        };
        self.pins.clear();
        done
    }

    /// Gives up what is granted. Dropping does the same.
    pub fn abandon(&mut self) {
        if let Some(owner) = self.owner.take() {
            owner.abandon(&self.pins);
        }
        self.pins.clear();
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        self.abandon();
    }
}
