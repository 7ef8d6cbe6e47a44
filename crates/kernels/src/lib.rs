//! Moving bytes in memory: gather, scatter, strided to strided.
//!
//! A [`Nest`] says what to move, as loops with a step on either side; [`Program::compile`]
//! chooses how; [`copy()`] and its relatives do it. The crate does not know what offsets mean.
//! A [`Stream`] is the shorter way where one side is packed: any range of the bytes of a periodic
//! set. [`send_all`] and [`receive_exact`] move bytes between sockets and shared memory.
//!
//! ```text
//!   nests --compile--> program --copy--> bytes
//!           flatten,             bounds once,
//!           order, tile,         then unchecked
//!           specialise
//! ```
//!
//! Invariants:
//! * what a program touches is known before it runs ([`Program::source_span`],
//!   [`Program::target_span`]) and compared with the buffers once per run;
//! * target bytes are written in the order of the nests unless no byte is written twice, and
//!   by several threads only under a proof of that ([`Disjoint`]);
//! * no reference to shared memory is ever formed ([`SharedBytes`]).
//!
//! All unsafe code of the workspace's libraries is here: copies through raw pointers are what
//! the crate is for. Each block says why it is sound.
#![allow(unsafe_code)]

mod buffer;
mod cache;
mod checksum;
mod copy;
mod descriptor;
mod disjoint;
mod gather_packets;
mod inner;
mod joint;
mod list;
mod nest;
mod order;
mod packets;
mod plain;
mod program;
#[cfg(test)]
mod property_tests;
mod redistribute;
mod run;
mod share;
mod shared;
mod stream;

pub use buffer::{PageBuffer, Pages, SharedBuffer};
pub use cache::{CacheSizes, LINE, cache_sizes, writes_past};
pub use checksum::Crc32c;
pub use copy::{
    BYTES_PER_THREAD, PackError, copy, copy_parallel, copy_parallel_shared, copy_shared,
    copy_window, gather, scatter,
};
pub use descriptor::{
    receive_after, receive_exact, receive_part, send_all, send_all_and, send_part,
};
pub use disjoint::Disjoint;
pub use gather_packets::{PacketGather, gather_packets, gather_packets_shared};
pub use joint::{Direction, compile_joint};
pub use nest::{Body, MAX_DEPTH, Nest, NestError, Span, copy_naive};
pub use packets::{CacheLevel, PacketStride, cache_optimal_stride, logical_block};
pub use plain::{copy_plain, copy_plain_shared};
pub use program::{BoundsError, Program, Side};
pub use redistribute::{
    Dealt, Distribution, Kind, Packets, RedistributeError, Redistribution, Unpacking, between,
    gather_part, two_steps_pay,
};
pub use share::Share;
pub use shared::{SharedBytes, SharedBytesMut};
pub use stream::Stream;

// Offsets are 64-bit; pointers must be too.
const _: () = assert!(usize::BITS == 64);
