//! An open file of ours: what MPI keeps with a handle.
//!
//! Offsets and pointers are in etypes of the view; `operation` and `client` count bytes of it.
//!
//! Invariants
//! - The view is replaced as a whole, so an operation that has taken it sees one view.
//! - Pointers move when an operation is called, not when it is done.

use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use client::Team;
use parking_lot::{Mutex, RwLock};

use crate::abi::Constants;
use crate::entry::Outcome;
use crate::failure::{Class, Failure};
use crate::ffi::Word;
use crate::operation::{Direction, Start};
use crate::queue::Queue;
use crate::requests::{self, SplitOperation};
use crate::view::CurrentView;

/// How a file was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mode {
    /// In the numbers of the host.
    pub(crate) number: c_int,
    pub(crate) is_read: bool,
    pub(crate) is_write: bool,
    pub(crate) is_create: bool,
    pub(crate) is_exclusive: bool,
    pub(crate) is_delete: bool,
    pub(crate) is_unique: bool,
    pub(crate) is_append: bool,
    pub(crate) is_sequential: bool,
}

impl Mode {
    /// The mode of a number; what contradicts itself is refused.
    pub(crate) fn of(number: c_int, abi: &Constants) -> Outcome<Mode> {
        let has = |bit: i64| i64::from(number) & bit != 0;
        let known = abi.mode_create
            | abi.mode_rdonly
            | abi.mode_wronly
            | abi.mode_rdwr
            | abi.mode_delete_on_close
            | abi.mode_unique_open
            | abi.mode_excl
            | abi.mode_append
            | abi.mode_sequential;
        let refuse = |text: &str| Err(Failure::new(Class::Amode, text));
        if i64::from(number) & !known != 0 {
            return refuse("amode has unknown bits; combine MPI_MODE_ constants");
        }
        let (rdonly, wronly, rdwr) = (
            has(abi.mode_rdonly),
            has(abi.mode_wronly),
            has(abi.mode_rdwr),
        );
        if u8::from(rdonly) + u8::from(wronly) + u8::from(rdwr) != 1 {
            return refuse(
                "amode needs exactly one of MPI_MODE_RDONLY, MPI_MODE_WRONLY, MPI_MODE_RDWR",
            );
        }
        if rdonly && (has(abi.mode_create) || has(abi.mode_excl)) {
            return refuse("MPI_MODE_CREATE and MPI_MODE_EXCL contradict MPI_MODE_RDONLY");
        }
        if rdwr && has(abi.mode_sequential) {
            return refuse("MPI_MODE_SEQUENTIAL contradicts MPI_MODE_RDWR");
        }
        Ok(Mode {
            number,
            is_read: !wronly,
            is_write: !rdonly,
            is_create: has(abi.mode_create),
            is_exclusive: has(abi.mode_excl),
            is_delete: has(abi.mode_delete_on_close),
            is_unique: has(abi.mode_unique_open),
            is_append: has(abi.mode_append),
            is_sequential: has(abi.mode_sequential),
        })
    }
}

/// An open file of ours.
#[derive(Debug)]
pub(crate) struct OpenFile {
    /// The host's handle that stands for it.
    pub(crate) handle: Word,
    /// As the program named it.
    pub(crate) name: String,
    pub(crate) mode: Mode,
    /// The processes that opened it; a group of the host.
    pub(crate) group: Word,
    /// They as a team, for threads of ours.
    pub(crate) team: Team,
    /// The member of `team`, whose waits drive the host: for threads of the program.
    pub(crate) driven: Team,
    pub(crate) file: client::File,
    pub(crate) view: RwLock<Arc<CurrentView>>,
    /// The individual pointer, in etypes.
    pub(crate) position: AtomicU64,
    /// The split collective that has begun.
    pub(crate) split: Mutex<Option<Split>>,
    /// Hints as the program gave them, with those of later calls.
    pub(crate) hints: Mutex<Vec<(String, String)>>,
    /// Requests of non-blocking operations that the program has not completed.
    pub(crate) pending: AtomicUsize,
    /// Non-blocking operations that need the other processes, in the order of their calls.
    pub(crate) ordered: Queue,
}

/// A split collective operation between its two calls.
#[derive(Debug)]
pub(crate) struct Split {
    /// The function that began it, without `_begin`.
    pub(crate) name: &'static str,
    pub(crate) running: SplitOperation,
}

impl OpenFile {
    /// The view at present.
    pub(crate) fn current(&self) -> Arc<CurrentView> {
        Arc::clone(&self.view.read())
    }

    /// Where the individual pointer stands.
    pub(crate) fn position(&self) -> u64 {
        self.position.load(Ordering::Acquire)
    }

    /// Puts the individual pointer somewhere.
    pub(crate) fn set_position(&self, to: u64) {
        self.position.store(to, Ordering::Release);
    }

    /// Moves the individual pointer; where it stood.
    pub(crate) fn advance(&self, etypes: u64) -> u64 {
        self.position.fetch_add(etypes, Ordering::AcqRel)
    }

    /// Refuses what the file was not opened for.
    pub(crate) fn check_direction(&self, direction: Direction) -> Outcome {
        match direction {
            Direction::Read if !self.mode.is_read => Err(Failure::new(
                Class::Access,
                "opened with MPI_MODE_WRONLY, so it cannot be read; use MPI_MODE_RDWR",
            )),
            Direction::Write if !self.mode.is_write => Err(Failure::new(
                Class::ReadOnly,
                "opened with MPI_MODE_RDONLY, so it cannot be written; use MPI_MODE_RDWR",
            )),
            _ => Ok(()),
        }
    }

    /// Refuses accesses that a sequential file does not have.
    pub(crate) fn check_start(&self, start: Start) -> Outcome {
        match start {
            Start::Explicit(_) | Start::Individual => {
                self.check_random("the functions with the shared pointer")
            }
            Start::Shared | Start::Ordered => Ok(()),
        }
    }

    /// Refuses what a sequential file does not have.
    pub(crate) fn check_random(&self, remedy: &str) -> Outcome {
        if self.mode.is_sequential {
            return Err(Failure::new(
                Class::UnsupportedOperation,
                format!("opened with MPI_MODE_SEQUENTIAL, which has no such access; use {remedy}"),
            ));
        }
        Ok(())
    }

    /// What this process found, unless another one failed or said something else: then all of them fail. `what`
    /// names what has to be the same.
    pub(crate) fn agree<T>(&self, mine: Outcome<T>, said: &[u8], what: &str) -> Outcome<T> {
        requests::take_turn(self);
        agree(&self.driven, mine, said, what)
    }

    /// Has rank 0 do something; all of them hear if it failed.
    pub(crate) fn by_rank_0(&self, work: impl FnOnce() -> Outcome) -> Outcome {
        let mine = match self.driven.rank() {
            0 => work(),
            _ => Ok(()),
        };
        self.agree(mine, &[], "")
    }

    /// Waits for what must not be under way while the file changes: non-blocking operations come to their end, whether
    /// or not the program has completed their requests. The standard lets a program not rely on it, but programs do,
    /// since other libraries let them; with the hint `pario_pending` = `refuse` they are told. A split collective operation
    /// ends by a call of the program and is refused.
    pub(crate) fn check_idle(&self) -> Outcome {
        self.check_no_split()?;
        if self.refuses_pending() && self.pending.load(Ordering::Acquire) > 0 {
            return Err(Failure::new(
                Class::Other,
                "non-blocking operations on the file are not complete; wait for them first",
            ));
        }
        requests::settle_file(self);
        Ok(())
    }

    /// Whether the program wants to be told of operations that it has not completed.
    pub(crate) fn refuses_pending(&self) -> bool {
        let hints = self.hints.lock();
        hints
            .iter()
            .any(|(name, value)| name == "pario_pending" && value.trim() == "refuse")
    }

    /// Refuses what must not happen between the two calls of a split collective operation.
    pub(crate) fn check_no_split(&self) -> Outcome {
        match &*self.split.lock() {
            Some(split) => Err(Failure::new(
                Class::Other,
                format!(
                    "a split collective operation on the file has not ended; call MPI_File_{}_end first",
                    split.name
                ),
            )),
            None => Ok(()),
        }
    }
}

/// The longest text of a failure that other processes are told.
const MOST_TEXT: usize = 400;

/// See [`OpenFile::agree`].
pub(crate) fn agree<T>(team: &Team, mine: Outcome<T>, said: &[u8], what: &str) -> Outcome<T> {
    if team.size() == 1 {
        return mine;
    }
    let mut bytes = (said.len() as u32).to_le_bytes().to_vec();
    bytes.extend_from_slice(said);
    if let Err(failure) = &mine {
        bytes.push(failure.class.index());
        let text = failure.text.as_bytes();
        bytes.extend_from_slice(&text[..text.len().min(MOST_TEXT)]);
    }
    let all = team.allgather(&bytes);
    let all = match (all, &mine) {
        (Ok(all), _) => all,
        (Err(_), Err(_)) => return mine,
        (Err(error), Ok(_)) => return Err(error.into()),
    };
    let parts: Vec<(&[u8], &[u8])> = all.iter().map(|bytes| parts(bytes)).collect();
    if let Some(rank) = parts.iter().position(|part| part.0 != parts[0].0) {
        return Err(Failure::new(
            Class::NotSame,
            format!("ranks 0 and {rank} gave another {what}; all have to give the same"),
        ));
    }
    match (mine, parts.iter().position(|part| !part.1.is_empty())) {
        (mine, None) => mine,
        (Err(failure), Some(rank)) if rank == team.rank() => Err(failure),
        (_, Some(rank)) => {
            let (class, text) = (parts[rank].1[0], &parts[rank].1[1..]);
            Err(Failure::new(
                Class::of_index(class),
                format!("rank {rank}: {}", String::from_utf8_lossy(text)),
            ))
        }
    }
}

/// What a process said, and its failure.
fn parts(bytes: &[u8]) -> (&[u8], &[u8]) {
    let Some((len, rest)) = bytes.split_first_chunk::<4>() else {
        return (&[], &[]);
    };
    let len = u32::from_le_bytes(*len) as usize;
    rest.split_at_checked(len).unwrap_or((rest, &[]))
}
