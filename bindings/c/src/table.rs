//! Handles: numbers that stand for what a program has of the library, and the table behind them.
//!
//! ```text
//!  bits   56..64 which process   24..56 generation   0..24 slot
//! ```
//!
//! A handle looks like a pointer to C and is none: whatever a program gives, closed, torn or made up, is looked up and
//! refused.
//!
//! Invariants
//! - A slot counts its generation up whenever it is emptied, so a handle that was closed is never another one's; a slot
//!   that has counted through stays empty.
//! - A child that was forked off begins with an empty table: handles of its parent are known as such by their upper bits,
//!   and no lock that another thread held at the fork is ever taken.
//! - A call that takes something out waits for calls that use it.
//!
//! Cost: finding what a handle stands for takes one lock of its slot for reading.

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::sync::{Arc, OnceLock};

use border::process::{self, PerProcess};
use client::{Jobs, Status};
use parking_lot::{Mutex, RwLock};

use crate::channels::Channel;
use crate::connect::Connection;
use crate::entry::{Failure, Outcome};
use crate::layouts::LayoutValue;
use crate::names::OpenDirectory;
use crate::open::OpenFile;
use crate::patterns::Pattern;
use crate::redistribute::Plan;
use crate::relayout::Move;
use crate::requests::Request;
use crate::streams::OpenStream;
use crate::teams::{Meeting, Member};
use crate::views::ViewValue;

const SLOT_BITS: u32 = 24;
const GENERATION_BITS: u32 = 32;
/// Slots of the first chunk; each has twice as many as the one before.
const FIRST_CHUNK: u64 = 64;
const CHUNKS: usize = 18;
/// Operations that run beside their callers, at most.
const WORKERS: usize = 8;

/// Something that handles stand for.
pub(crate) trait Resource: Sized + Send + Sync {
    /// What programs call it.
    const NAME: &'static str;

    /// It, among all kinds.
    fn of(kept: &AnyResource) -> Option<&Arc<Self>>;

    /// It as one of all kinds.
    fn keep(this: Arc<Self>) -> AnyResource;
}

macro_rules! things {
    ($($kind:ident $name:literal,)*) => {
        /// What a slot holds.
        #[derive(Debug)]
        pub(crate) enum AnyResource {
            $(#[doc = $name] $kind(Arc<$kind>),)*
        }

        $(impl Resource for $kind {
            const NAME: &'static str = $name;

            fn of(kept: &AnyResource) -> Option<&Arc<Self>> {
                match kept {
                    AnyResource::$kind(this) => Some(this),
                    _ => None,
                }
            }

            fn keep(this: Arc<Self>) -> AnyResource {
                AnyResource::$kind(this)
            }
        })*
    };
}

things! {
    Connection "client",
    OpenFile "file",
    OpenDirectory "directory",
    LayoutValue "layout",
    Pattern "pattern",
    ViewValue "view",
    Request "request",
    Member "team",
    Meeting "meeting",
    Move "move",
    Plan "redistribution",
    Channel "channel",
    OpenStream "stream",
}

/// A handle of a program.
#[repr(transparent)]
#[derive(Debug)]
pub(crate) struct Handle<T>(usize, PhantomData<fn() -> T>);

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Handle<T> {}

/// What a slot has.
#[derive(Debug, Default)]
struct Row {
    generation: u32,
    kept: Option<AnyResource>,
    /// The client that it goes with; 0 for none.
    owner: usize,
}

#[derive(Debug)]
struct Table {
    chunks: [OnceLock<Box<[RwLock<Row>]>>; CHUNKS],
    /// Slots that are empty, the longest empty first, and how many there are in all.
    empty: Mutex<(VecDeque<u64>, u64)>,
    workers: Jobs<'static>,
}

static TABLE: PerProcess<Table> = PerProcess::new(|| Table {
    chunks: [const { OnceLock::new() }; CHUNKS],
    empty: Mutex::default(),
    workers: Jobs::new("pario-worker", WORKERS, || ()),
});

/// The table of this process.
#[inline]
fn table() -> &'static Table {
    TABLE.get()
}

/// Threads for operations that run beside their callers.
pub(crate) fn workers() -> &'static Jobs<'static> {
    &table().workers
}

/// Chunk and place of a slot.
fn place(slot: u64) -> (usize, usize) {
    let chunk = (slot / FIRST_CHUNK + 1).ilog2();
    let before = FIRST_CHUNK * ((1 << chunk) - 1);
    (chunk as usize, (slot - before) as usize)
}

impl Table {
    #[inline]
    fn row(&self, slot: u64) -> Option<&RwLock<Row>> {
        let (chunk, at) = place(slot);
        self.chunks.get(chunk)?.get()?.get(at)
    }

    /// An empty slot.
    fn take_slot(&self) -> Outcome<u64> {
        let mut empty = self.empty.lock();
        if let Some(slot) = empty.0.pop_front() {
            return Ok(slot);
        }
        let slot = empty.1;
        let (chunk, _) = place(slot);
        let Some(place) = self.chunks.get(chunk) else {
            let text = format!("{slot} handles are open; close some");
            return Err(Failure::new(Status::NoMemory, text));
        };
        let len = FIRST_CHUNK << chunk;
        place.get_or_init(|| (0..len).map(|_| RwLock::default()).collect());
        empty.1 += 1;
        Ok(slot)
    }

    /// Empties a slot of this generation.
    fn remove(&self, slot: u64, generation: u32) -> Option<AnyResource> {
        let mut row = self.row(slot)?.write();
        if row.generation != generation {
            return None;
        }
        let kept = row.kept.take()?;
        row.owner = 0;
        if row.generation < u32::MAX {
            self.empty.lock().0.push_back(slot);
        }
        Some(kept)
    }
}

fn forks() -> u64 {
    u64::from(process::forks() & 0xff)
}

impl<T> Handle<T> {
    /// No handle.
    pub(crate) const NULL: Handle<T> = Handle(0, PhantomData);

    /// Whether it is none.
    pub(crate) fn is_null(self) -> bool {
        self.0 == 0
    }

    fn parts(self) -> (u64, u32, u64) {
        let bits = self.0 as u64;
        let slot = bits & ((1 << SLOT_BITS) - 1);
        (
            slot,
            (bits >> SLOT_BITS) as u32,
            bits >> (SLOT_BITS + GENERATION_BITS),
        )
    }
}

impl<T: Resource> Handle<T> {
    /// Enters something that goes with a client, or with none.
    pub(crate) fn enter(this: impl Into<Arc<T>>, owner: Handle<Connection>) -> Outcome<Handle<T>> {
        let table = table();
        let slot = table.take_slot()?;
        let row = table.row(slot).expect("a slot that was taken exists");
        let mut row = row.write();
        row.generation += 1;
        row.kept = Some(T::keep(this.into()));
        row.owner = owner.0;
        let generation = u64::from(row.generation);
        let bits = slot | generation << SLOT_BITS | forks() << (SLOT_BITS + GENERATION_BITS);
        Ok(Handle(bits as usize, PhantomData))
    }

    /// Why it stands for nothing.
    #[cold]
    fn unknown(self) -> Failure {
        let name = T::NAME;
        let text = match self.parts() {
            _ if self.is_null() => format!("the {name} is a null pointer"),
            (_, _, process) if process != forks() => format!(
                "the {name} belongs to the parent process; connect again in the child after a fork"
            ),
            _ => format!("the {name} is closed, or never was one"),
        };
        Failure::new(Status::BadHandle, text)
    }

    /// Uses what it stands for; who closes it waits meanwhile.
    #[inline]
    pub(crate) fn with<R>(self, work: impl FnOnce(&Arc<T>) -> Outcome<R>) -> Outcome<R> {
        let (slot, generation, process) = self.parts();
        if self.is_null() || process != forks() {
            return Err(self.unknown());
        }
        let Some(row) = table().row(slot) else {
            return Err(self.unknown());
        };
        let row = row.read_recursive();
        match &row.kept {
            Some(kept) if row.generation == generation => match T::of(kept) {
                Some(this) => work(this),
                None => Err(self.unknown()),
            },
            _ => Err(self.unknown()),
        }
    }

    /// What it stands for, also if it is closed meanwhile: for calls that wait for others.
    pub(crate) fn get(self) -> Outcome<Arc<T>> {
        self.with(|this| Ok(Arc::clone(this)))
    }

    /// What it stands for with the client that goes with it.
    pub(crate) fn owner(self) -> Outcome<Handle<Connection>> {
        self.with(|_| Ok(()))?;
        let (slot, _, _) = self.parts();
        let owner = table().row(slot).map_or(0, |row| row.read().owner);
        Ok(Handle(owner, PhantomData))
    }

    /// Closes it: what it stood for.
    pub(crate) fn close(self) -> Outcome<Arc<T>> {
        // A handle of another kind stays open.
        self.with(|_| Ok(()))?;
        let (slot, generation, _) = self.parts();
        let kept = table().remove(slot, generation);
        let this = kept.as_ref().and_then(T::of).map(Arc::clone);
        this.ok_or_else(|| self.unknown())
    }
}

/// Takes out everything that goes with a client.
pub(crate) fn close_owned(owner: Handle<Connection>) -> Vec<AnyResource> {
    let table = table();
    let slots = table.empty.lock().1;
    let mut closed = Vec::new();
    for slot in 0..slots {
        let Some(row) = table.row(slot) else {
            continue;
        };
        let (is_owned, generation) = {
            let row = row.read();
            (row.owner == owner.0 && row.kept.is_some(), row.generation)
        };
        if is_owned {
            closed.extend(table.remove(slot, generation));
        }
    }
    closed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout() -> LayoutValue {
        LayoutValue("whole".parse().unwrap())
    }

    #[test]
    fn slots_have_places_without_gaps() {
        let mut expected = (0, 0);
        for slot in 0..100_000 {
            assert_eq!(place(slot), expected);
            expected.1 += 1;
            if expected.1 as u64 == FIRST_CHUNK << expected.0 {
                expected = (expected.0 + 1, 0);
            }
        }
    }

    #[test]
    fn what_is_closed_or_made_up_is_refused() {
        let first = Handle::enter(layout(), Handle::NULL).unwrap();
        assert!(first.get().is_ok());
        first.close().unwrap();
        for _ in 0..1000 {
            let other = Handle::enter(layout(), Handle::NULL).unwrap();
            assert!(first.get().is_err() && first.close().is_err());
            other.close().unwrap();
        }
        let made_up: Handle<LayoutValue> = Handle(usize::MAX, PhantomData);
        assert!(made_up.get().is_err() && made_up.close().is_err());
        let null: Handle<LayoutValue> = Handle::NULL;
        assert_eq!(null.get().unwrap_err().status, Status::BadHandle);
    }

    #[test]
    fn a_handle_of_another_kind_is_refused_and_stays_open() {
        let layout = Handle::enter(layout(), Handle::NULL).unwrap();
        let wrong: Handle<Pattern> = Handle(layout.0, PhantomData);
        assert!(wrong.get().is_err() && wrong.close().is_err());
        layout.close().unwrap();
    }
}
