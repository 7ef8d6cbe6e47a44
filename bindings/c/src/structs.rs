//! Structs and numbers of `pario.h`, as C lays them out.
//!
//! A test compares them with the header, member by member. Every struct of options begins with its size; zero is the
//! default of every member. Members are appended, never changed.

use std::ffi::{c_char, c_int};

use crate::elemental::VpToken;
use crate::ffi::{List, Options, Text};

/// A hint of a program.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct pario_hint {
    pub(crate) name: Text,
    pub(crate) value: Text,
}

/// How a program connects.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct pario_connect_options {
    pub(crate) size: usize,
    pub(crate) secret_file: Text,
    pub(crate) application: Text,
    pub(crate) hints: List<pario_hint>,
    pub(crate) hint_count: usize,
    pub(crate) timeout_ms: u64,
    pub(crate) rank: u64,
    pub(crate) processes: u64,
    pub(crate) servers: u64,
    pub(crate) memory_bytes: u64,
    pub(crate) direct: c_int,
    pub(crate) checksums: c_int,
    pub(crate) profile: c_int,
    pub(crate) no_environment: c_int,
}

/// How a file is opened or created.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct pario_open_options {
    pub(crate) size: usize,
    pub(crate) flags: c_int,
    pub(crate) mode: c_int,
    pub(crate) array: Text,
    pub(crate) layout: Text,
    pub(crate) hints: List<pario_hint>,
    pub(crate) hint_count: usize,
    pub(crate) shape: List<u64>,
    pub(crate) dimensions: usize,
    pub(crate) element: c_int,
    pub(crate) order: c_int,
    pub(crate) element_bytes: u64,
    pub(crate) shared_pointer: u64,
    pub(crate) expected_bytes: u64,
    pub(crate) expected_clients: u64,
    pub(crate) expected_access_bytes: u64,
}

/// What is known about a file or directory.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct pario_stat_info {
    pub(crate) size: usize,
    pub(crate) file: u64,
    pub(crate) bytes: u64,
    pub(crate) generation: u64,
    pub(crate) accessed_ns: i64,
    pub(crate) modified_ns: i64,
    pub(crate) changed_ns: i64,
    pub(crate) kind: c_int,
    pub(crate) mode: c_int,
    pub(crate) owner: u32,
    pub(crate) group: u32,
}

/// What array a file holds.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct pario_array_info {
    pub(crate) size: usize,
    pub(crate) element: c_int,
    pub(crate) order: c_int,
    pub(crate) element_bytes: u64,
    pub(crate) bytes: u64,
    pub(crate) dimensions: usize,
    pub(crate) shape: [u64; 32],
}

/// How one dimension of an array is dealt out.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct pario_distribution {
    pub(crate) kind: c_int,
    pub(crate) reserved: c_int,
    pub(crate) block: u64,
    pub(crate) list: List<u64>,
    pub(crate) list_count: usize,
}

/// How a file is moved.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct pario_move_options {
    pub(crate) size: usize,
    pub(crate) limit_bytes: u64,
    pub(crate) window_bytes: u64,
    pub(crate) lanes: u64,
    pub(crate) in_place: c_int,
    pub(crate) reserved: c_int,
}

/// How far a move has come.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct pario_progress {
    pub(crate) size: usize,
    pub(crate) file: u64,
    pub(crate) generation: u64,
    pub(crate) moved_bytes: u64,
    pub(crate) total_bytes: u64,
    pub(crate) rate_bytes: u64,
    pub(crate) lanes: u64,
    pub(crate) limit_bytes: u64,
    pub(crate) state: c_int,
    pub(crate) is_over: c_int,
}

/// A message of another member of a team.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct pario_message {
    pub(crate) size: usize,
    pub(crate) tag: u64,
    pub(crate) bytes: u64,
    pub(crate) from: c_int,
    pub(crate) has_come: c_int,
}

/// How a channel is opened.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct pario_channel_options {
    pub(crate) size: usize,
    pub(crate) timeout_ms: u64,
    pub(crate) buffering: c_int,
    pub(crate) reserved: c_int,
}

/// How a stream file is opened.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct pario_stream_options {
    pub(crate) size: usize,
    pub(crate) shape: Text,
    pub(crate) distribution: Text,
    pub(crate) layout: Text,
    pub(crate) nb_block: u64,
    pub(crate) cb_block: u64,
    pub(crate) ib_block: u64,
    pub(crate) superblock: u64,
    pub(crate) pointers: u64,
    pub(crate) read_buffers: u64,
    pub(crate) memory_bytes: u64,
    pub(crate) at_least: c_int,
    pub(crate) pad: c_int,
}

/// What is known about an open stream file at a member, and what it has counted.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct pario_stream_info {
    pub(crate) size: usize,
    pub(crate) vps: u64,
    pub(crate) mine: u64,
    pub(crate) nb: u64,
    pub(crate) cb: u64,
    pub(crate) ib: u64,
    pub(crate) elemental: u64,
    pub(crate) reductions: u64,
    pub(crate) transfers: u64,
    pub(crate) superblock_writes: u64,
    pub(crate) small_writes: u64,
    pub(crate) reads: u64,
    pub(crate) commits: u64,
}

macro_rules! defaults {
    ($($name:ident { $($member:ident: $zero:expr),* $(,)? })*) => {$(
        // SAFETY: laid out as C has it, the size first; numbers and raw pointers are good whatever their bytes are.
        unsafe impl Options for $name {
            const DEFAULT: Self = $name { size: size_of::<$name>(), $($member: $zero),* };
        }
    )*};
}

defaults! {
    pario_connect_options {
        secret_file: Text::NONE, application: Text::NONE, hints: List::NONE, hint_count: 0, timeout_ms: 0, rank: 0,
        processes: 0, servers: 0, memory_bytes: 0, direct: 0, checksums: 0, profile: 0, no_environment: 0,
    }
    pario_open_options {
        flags: 0, mode: 0, array: Text::NONE, layout: Text::NONE, hints: List::NONE, hint_count: 0, shape: List::NONE,
        dimensions: 0, element: 0, order: 0, element_bytes: 0, shared_pointer: 0, expected_bytes: 0,
        expected_clients: 0, expected_access_bytes: 0,
    }
    pario_stat_info {
        file: 0, bytes: 0, generation: 0, accessed_ns: 0, modified_ns: 0, changed_ns: 0, kind: 0, mode: 0, owner: 0,
        group: 0,
    }
    pario_array_info { element: 0, order: 0, element_bytes: 0, bytes: 0, dimensions: 0, shape: [0; 32] }
    pario_move_options { limit_bytes: 0, window_bytes: 0, lanes: 0, in_place: 0, reserved: 0 }
    pario_progress {
        file: 0, generation: 0, moved_bytes: 0, total_bytes: 0, rate_bytes: 0, lanes: 0, limit_bytes: 0, state: 0,
        is_over: 0,
    }
    pario_message { tag: 0, bytes: 0, from: 0, has_come: 0 }
    pario_channel_options { timeout_ms: 0, buffering: 0, reserved: 0 }
    pario_stream_options {
        shape: Text::NONE, distribution: Text::NONE, layout: Text::NONE, nb_block: 0, cb_block: 0, ib_block: 0,
        superblock: 0, pointers: 0, read_buffers: 0, memory_bytes: 0, at_least: 0, pad: 0,
    }
    pario_stream_info {
        vps: 0, mine: 0, nb: 0, cb: 0, ib: 0, elemental: 0, reductions: 0, transfers: 0, superblock_writes: 0,
        small_writes: 0, reads: 0, commits: 0,
    }
}

/// A function of the program that hears how far a move has come; another answer than 0 ends the wait.
pub(crate) type ProgressCallback =
    Option<extern "C" fn(progress: *const pario_progress, user: *mut std::ffi::c_void) -> c_int>;

/// A function of the program that gathers bytes of all members of a team; 0 is success.
pub(crate) type GatherCallback = Option<
    extern "C" fn(
        user: *mut std::ffi::c_void,
        mine: *const std::ffi::c_void,
        bytes: *const u64,
        all: *mut std::ffi::c_void,
    ) -> c_int,
>;

/// A function of the program that is called once for each active VP; another answer than 0 ends it.
pub(crate) type ElementalCallback =
    Option<extern "C" fn(vp: VpToken, user: *mut std::ffi::c_void) -> c_int>;

/// A function of the program that prints what a VP writes; another answer than 0 ends it.
pub(crate) type PrintCallback = Option<
    extern "C" fn(vp: u64, local: usize, to: *mut libc::FILE, user: *mut std::ffi::c_void) -> c_int,
>;

/// A function of the program that takes bytes of a VP, and says how many it took.
pub(crate) type ScanCallback = Option<
    extern "C" fn(
        vp: u64,
        local: usize,
        text: *const c_char,
        bytes: usize,
        user: *mut std::ffi::c_void,
    ) -> usize,
>;

/// A text that the program gives back.
pub(crate) type TextOut = crate::ffi::Out<*mut c_char>;

macro_rules! numbers {
    ($($name:ident = $value:literal;)*) => {$(pub(crate) const $name: c_int = $value;)*};
}

numbers! {
    PARIO_READ = 1;
    PARIO_WRITE = 2;
    PARIO_APPEND = 4;
    PARIO_CREATE = 8;
    PARIO_EXCLUSIVE = 16;
    PARIO_TRUNCATE = 32;
    PARIO_UNIQUE = 64;
    PARIO_DELETE_ON_CLOSE = 128;
    PARIO_ATOMIC = 256;
    PARIO_ON = 1;
    PARIO_OFF = 2;
    PARIO_FROM_START = 0;
    PARIO_FROM_HERE = 1;
    PARIO_FROM_END = 2;
    PARIO_DIRECTORY = 0;
    PARIO_FILE = 1;
    PARIO_ORDER_C = 0;
    PARIO_ORDER_FORTRAN = 1;
    PARIO_NO_ELEMENT = 0;
    PARIO_BOOL = 1;
    PARIO_U8 = 2;
    PARIO_U16 = 3;
    PARIO_U32 = 4;
    PARIO_U64 = 5;
    PARIO_I8 = 6;
    PARIO_I16 = 7;
    PARIO_I32 = 8;
    PARIO_I64 = 9;
    PARIO_F16 = 10;
    PARIO_F32 = 11;
    PARIO_F64 = 12;
    PARIO_C64 = 13;
    PARIO_C128 = 14;
    PARIO_BYTES = 15;
    PARIO_COLLAPSED = 0;
    PARIO_BLOCK = 1;
    PARIO_CYCLIC = 2;
    PARIO_GEN_BLOCK = 3;
    PARIO_INDIRECT = 4;
    PARIO_MOVING = 0;
    PARIO_DONE = 1;
    PARIO_FAILED = 2;
    PARIO_PAUSED = 3;
    PARIO_WAITING = 4;
    PARIO_CANCELLING = 5;
    PARIO_CANCELLED = 6;
    PARIO_SUM = 0;
    PARIO_MIN = 1;
    PARIO_MAX = 2;
    PARIO_AND = 3;
    PARIO_OR = 4;
    PARIO_ANY_RANK = -1;
    PARIO_BLOCKING = 0;
    PARIO_DOUBLE_BUFFERED = 1;
    PARIO_KEEP_TIME = 0;
    PARIO_TIME_NOW = 1;
    PARIO_TIME_TO = 2;
    PARIO_NB = 0;
    PARIO_CB = 1;
    PARIO_IB = 2;
}
