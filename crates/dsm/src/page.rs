//! What a process knows of one page, and the memory that its pages lie in.
//!
//! States and steps are those of the table in `docs/adr/0045-shared-memory-across-processes.md`. The contents of a page that may
//! not be touched are kept: they are what diffs are applied to.

use crate::message::{Patch, Record};
use crate::time::{VectorTime, Versions};
use std::sync::Arc;

/// What the program may do with a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Permission {
    /// Any access is a fault.
    Nothing,
    /// Stores are faults.
    Reading,
    /// No access is a fault.
    Writing,
}

/// The memory of one process, as the protocols see it: through a mapping of their own, which never faults.
pub trait PageMemory {
    /// Lets the program do so much with a page and no more, on all processors before it returns.
    fn allow(&mut self, page: u32, what: Permission);

    /// Copies the contents of a page.
    fn copy_out(&mut self, page: u32) -> Vec<u8>;

    /// Stores bytes into a page; no byte beside them is touched.
    fn store(&mut self, page: u32, at: usize, bytes: &[u8]);
}

/// Where a page stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Never held, unless this process is its home or manager.
    Empty,
    /// Contents are kept, but something newer is known of.
    Invalid,
    /// Asked for.
    Fetching,
    /// May be read.
    ReadOnly,
    /// May be written, and was.
    Dirty,
}

/// An access that waits for a page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiter {
    pub(crate) kind: Access,
    pub(crate) ticket: u64,
}

/// What a program does to a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A load.
    Read,
    /// A store.
    Write,
}

/// One page of one process.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) state: State,
    pub(crate) home: u16,
    pub(crate) twin: Option<Vec<u8>>,
    /// Noticed intervals.
    pub(crate) need: Versions,
    /// Intervals whose changes the contents have.
    pub(crate) have: Versions,
    pub(crate) waiters: Vec<Waiter>,
    /// Read and written by the program since the bits were last cleared.
    pub(crate) was_read: u64,
    pub(crate) was_written: u64,
    /// Fetched so often from elsewhere.
    pub(crate) fetches: u32,
    /// Its contents come from the home before (home-based).
    pub(crate) is_moving: bool,
    /// What the homeless protocol keeps of it, if anything happened to it.
    pub(crate) history: Option<Box<History>>,
    /// Who has copies, at the home (sequential).
    pub(crate) directory: Option<Box<Directory>>,
}

impl Page {
    pub(crate) fn new(home: u16) -> Page {
        Page {
            state: State::Empty,
            home,
            twin: None,
            need: Versions::default(),
            have: Versions::default(),
            waiters: Vec::new(),
            was_read: 0,
            was_written: 0,
            fetches: 0,
            is_moving: false,
            history: None,
            directory: None,
        }
    }

    /// The history, made where there is none.
    pub(crate) fn history(&mut self) -> &mut History {
        self.history.get_or_insert_default()
    }
}

/// What the homeless protocol keeps of a page since garbage was last collected.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// All intervals that changed the page and are known here, own ones included.
    pub(crate) notices: Vec<(u16, u32, Arc<VectorTime>)>,
    /// Patches made or applied here, as they came.
    pub(crate) patches: Vec<Patch>,
    /// The first own interval whose changes are in no patch yet.
    pub(crate) unpatched: Option<Arc<VectorTime>>,
    /// The last own interval with a patch.
    pub(crate) patched_to: u32,
    /// Patches that came for the access that waits.
    pub(crate) gathered: Vec<Patch>,
    /// Answers still to come.
    pub(crate) awaited: usize,
}

impl History {
    /// Notes an interval that changed the page.
    pub(crate) fn note(&mut self, record: &Record) {
        self.notices
            .push((record.process, record.index, record.time.clone()));
    }

    /// Processes among the noticed intervals whose latest no other process knew of when it changed the page.
    pub(crate) fn maximal(&self) -> Vec<u16> {
        let mut latest: Vec<&(u16, u32, Arc<VectorTime>)> = Vec::new();
        for notice in &self.notices {
            match latest.iter_mut().find(|other| other.0 == notice.0) {
                Some(other) if other.1 < notice.1 => *other = notice,
                Some(_) => {}
                None => latest.push(notice),
            }
        }
        let is_known = |(process, index, _): &&&(u16, u32, Arc<VectorTime>)| {
            latest
                .iter()
                .any(|other| other.0 != *process && other.2.of(*process) >= *index)
        };
        let mut maximal: Vec<u16> = latest
            .iter()
            .filter(|n| !is_known(n))
            .map(|n| n.0)
            .collect();
        maximal.sort_unstable();
        maximal
    }
}

/// Who has copies of a page, and who waits for one (sequential protocol, at the home).
#[derive(Debug, Default)]
pub(crate) struct Directory {
    /// Who may write it.
    pub(crate) owner: Option<u16>,
    /// Who may read it.
    pub(crate) readers: Vec<u16>,
    /// Whose wish is being granted.
    pub(crate) now: Option<(u16, Access)>,
    /// Answers to recalls still to come.
    pub(crate) awaited: usize,
    /// Whose wishes come next.
    pub(crate) next: std::collections::VecDeque<(u16, Access)>,
}
