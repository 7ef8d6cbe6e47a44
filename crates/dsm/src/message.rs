//! What processes say to each other, and how it travels.
//!
//! No message but those that answer a fault, flush changes or move a page carries the contents of pages: locks and barriers carry
//! notices only (DSM-7). Messages that depend on where pages are at home carry the count of barriers their sender has left.

use std::sync::Arc;

use crate::codec::{Code, PageBytes, Reader};
use crate::diff::Diff;
use crate::time::{VectorTime, Versions};

/// One interval of a process: the pages it changed between two points of synchronisation, without what it changed in them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The process.
    pub process: u16,
    /// Its intervals that changed anything, counted from 1.
    pub index: u32,
    /// What the process knew when the interval ended, itself included.
    pub time: Arc<VectorTime>,
    /// The pages, as runs: first and count.
    pub runs: Vec<(u32, u32)>,
}

impl Record {
    /// All pages in ascending order.
    pub fn pages(&self) -> impl Iterator<Item = u32> {
        self.runs
            .iter()
            .flat_map(|(first, count)| *first..first + count)
    }
}

/// Ascending pages as runs of first and count.
pub(crate) fn runs_of(pages: &[u32]) -> Vec<(u32, u32)> {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for page in pages {
        match runs.last_mut() {
            Some((first, count)) if *first + *count == *page => *count += 1,
            _ => runs.push((*page, 1)),
        }
    }
    runs
}

/// A diff that is kept (homeless protocol): what one process changed in a page in one or several of its intervals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    /// The process.
    pub process: u16,
    /// The last interval of its patch before this one for the page, 0 if there is none.
    pub after: u32,
    /// The last interval it covers.
    pub to: u32,
    /// What the process knew at the end of the first interval it covers: the order of patches.
    pub first: Arc<VectorTime>,
    /// The bytes.
    pub diff: Arc<Diff>,
}

macro_rules! messages {
    ($($(#[$doc:meta])* $number:literal $name:ident { $($(#[$field_doc:meta])* $field:ident: $of:ty),* $(,)? })*) => {
        /// A message of one process to another.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Message {
            $($(#[$doc])* $name { $($(#[$field_doc])* $field: $of),* },)*
        }

        impl Message {
            /// Names of all kinds, by number.
            pub const KINDS: &'static [&'static str] = &[$(stringify!($name)),*];

            /// The number of its kind.
            pub fn kind(&self) -> usize {
                match self { $(Message::$name { .. } => $number,)* }
            }
        }

        impl Code for Message {
            fn put(&self, out: &mut Vec<u8>) {
                (self.kind() as u8).put(out);
                match self { $(Message::$name { $($field),* } => { $($field.put(out);)* })* }
            }

            fn take(from: &mut Reader<'_>) -> Option<Message> {
                Some(match u8::take(from)? {
                    $($number => Message::$name { $($field: Code::take(from)?),* },)*
                    _ => return None,
                })
            }
        }
    };
}

messages! {
    /// Wants pages from who has them: each with the versions it must contain. The first is needed, others are welcome.
    0 PageRequest { /** Barriers left. */ epoch: u32, /** Pages and versions. */ pages: Vec<(u32, Versions)> }
    /// Pages with the versions they contain.
    1 PageReply { /** Pages, versions, contents. */ pages: Vec<(u32, Versions, PageBytes)> }
    /// What the sender changed in pages that are at home at the receiver.
    2 Flush { /** Barriers left. */ epoch: u32, /** The interval. */ index: u32, /** Pages and changes. */ diffs: Vec<(u32, Diff)> }
    /// Wants the patches of a page that `have` lacks (homeless).
    3 DiffRequest { /** The page. */ page: u32, /** What is there. */ have: Versions }
    /// Patches of a page (homeless).
    4 DiffReply { /** The page. */ page: u32, /** The patches. */ patches: Vec<Patch> }
    /// Asks the manager for a lock.
    5 LockRequest { /** The lock. */ lock: u32, /** What the asking process knows. */ time: VectorTime }
    /// The manager has the last process that asked pass the lock on.
    6 LockForward { /** The lock. */ lock: u32, /** Who gets it. */ to: u16, /** What that process knows. */ time: VectorTime }
    /// The lock, with what happened before.
    7 LockGrant { /** The lock. */ lock: u32, /** Records up to here are taken as known. */ base: VectorTime, /** The others. */ records: Vec<Record> }
    /// A process has come to a barrier.
    8 BarrierArrive {
        /** The barrier. */ id: u32, /** Barriers left. */ epoch: u32, /** What it knows. */ time: VectorTime,
        /** Its own intervals since the last barrier. */ records: Vec<Record>,
        /** Pages that shall change their home. */ homes: Vec<(u32, u32, u16)>,
        /** Bytes that its patches and twins take. */ kept_bytes: u64,
    }
    /// All have come.
    9 BarrierDepart {
        /** What all know now. */ time: VectorTime, /** What the receiver lacks. */ records: Vec<Record>,
        /** New homes: first page, count, process. */ homes: Vec<(u32, u32, u16)>, /** 1 if all collect garbage now. */ collect: u8,
    }
    /// Waits for a condition.
    10 ConditionWait { /** The condition. */ condition: u32, /** The waiting thread. */ ticket: u64 }
    /// The wait has been noted, so the lock may go.
    11 ConditionNoted { /** The waiting thread. */ ticket: u64 }
    /// The condition holds, for one or for all (1).
    12 ConditionSignal { /** The condition. */ condition: u32, /** 1 for all. */ all: u8 }
    /// Wakes a waiting thread.
    13 ConditionWake { /** The waiting thread. */ ticket: u64 }
    /// Asks what the receiver knows, so that records may be dropped.
    14 TimePoll {}
    /// What the sender knows.
    15 TimeReply { /** That. */ time: VectorTime }
    /// All pages that this process keeps are up to date (homeless, garbage collection).
    16 CollectDone {}
    /// All are: drop what was kept.
    17 CollectGo {}
    /// Wants to read a page (sequential).
    18 GetShared { /** The page. */ page: u32 }
    /// Wants to write a page (sequential).
    19 GetExclusive { /** The page. */ page: u32 }
    /// The page of who asked: 1 to write it (sequential).
    20 Data { /** The page. */ page: u32, /** 1 to write. */ exclusive: u8, /** Contents. */ bytes: PageBytes }
    /// Give up the page; 1 keeps a copy to read (sequential).
    21 Recall { /** The page. */ page: u32, /** 1 if reading stays allowed. */ keep: u8 }
    /// The page was given up; with its contents if it had been written (sequential).
    22 Yield { /** The page. */ page: u32, /** Contents, or none. */ bytes: PageBytes }
    /// The memory is broken: the kind of trouble and who is at fault.
    23 Abort { /** 0 a process was lost, 1 barriers differ, 2 pages were written while they were replaced. */ trouble: u8, /** The process. */ process: u16 }
    /// Says nothing: its connection shows when the sender ends.
    24 Greeting {}
    /// What the layer above says to the layer above, with what happened before.
    25 Post {
        /** 1 if it wants an answer. */ question: u8, /** Barriers left. */ epoch: u32, /** Records up to here are taken as known. */ base: VectorTime,
        /** What the sender knows. */ time: VectorTime, /** The other records. */ records: Vec<Record>, /** What it says. */ bytes: PageBytes,
    }
}

impl Code for Record {
    fn put(&self, out: &mut Vec<u8>) {
        self.process.put(out);
        self.index.put(out);
        self.time.put(out);
        self.runs.put(out);
    }

    fn take(from: &mut Reader<'_>) -> Option<Record> {
        Some(Record {
            process: Code::take(from)?,
            index: Code::take(from)?,
            time: Arc::new(Code::take(from)?),
            runs: Code::take(from)?,
        })
    }
}

impl Code for Patch {
    fn put(&self, out: &mut Vec<u8>) {
        self.process.put(out);
        self.after.put(out);
        self.to.put(out);
        self.first.put(out);
        self.diff.put(out);
    }

    fn take(from: &mut Reader<'_>) -> Option<Patch> {
        Some(Patch {
            process: Code::take(from)?,
            after: Code::take(from)?,
            to: Code::take(from)?,
            first: Arc::new(Code::take(from)?),
            diff: Arc::new(Code::take(from)?),
        })
    }
}
