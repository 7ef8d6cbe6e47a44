//! Moving bytes in memory: gather, scatter, strided to strided.
//!
//! A [`Share`] is what every access runs: the bytes that two elements of a file have in common, any range of them,
//! packed on either side or from one side to the other. It walks along a [`Stream`] per side; where rows are short
//! on both sides it compiles loop nests. [`send_all`] and [`receive_exact`] move bytes between sockets and shared
//! memory. The crate does not know what offsets mean.
//!
//! ```text
//!   meeting --> share --> streams --gather, scatter, copy_to--> bytes
//!                  |
//!                  +--> nests --compile--> program --copy--> bytes     both sides strided, rows below 1 KiB
//!                              flatten, order,     bounds once,
//!                              tile, specialise    then unchecked
//! ```
//!
//! | module | owns |
//! |---|---|
//! | `share`, `stream` | what every access runs |
//! | `nest`, `joint`, `program`, `order`, `list`, `inner` | loop nests, and what they are compiled to |
//! | `copy`, `run`, `plain` | running a program, and the nest that a programmer writes by hand |
//! | `disjoint` | the proof that no byte is written twice |
//! | `shared`, `buffer`, `mapping`, `descriptor`, `checksum` | memory that others may write, memory from the system, files in memory, sockets, checksums |
//! | `cache` | what is known about the memory of the machine |
//!
//! Invariants:
//! * what a program touches is known before it runs ([`Program::source_span`],
//!   [`Program::target_span`]) and compared with the buffers once per run;
//! * target bytes are written in the order of the nests unless no byte is written twice, and
//!   by several threads only under a proof of that ([`Disjoint`]);
//! * no reference to shared memory is ever formed ([`SharedBytes`]).
//!
//! What the laboratory (`crates/bench`) and tests alone use of what is public: [`Program`], [`Nest`] and [`Body`] with their
//! parts, [`Disjoint`], [`copy()`], [`copy_parallel`], [`copy_shared`], [`copy_naive`], [`copy_plain`]. Everything else goes through a [`Share`] or a
//! [`Stream`].
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
mod inner;
mod joint;
mod list;
mod mapping;
mod nest;
mod order;
mod plain;
mod program;
#[cfg(test)]
mod property_tests;
mod run;
mod share;
mod shared;
mod stream;

pub use buffer::{PageBuffer, Pages, SharedBuffer};
pub use cache::{CacheSizes, LINE, cache_sizes, writes_past};
pub use checksum::Crc32c;
pub use copy::{copy, copy_parallel, copy_shared};
pub use descriptor::{
    receive_after, receive_exact, receive_part, send_all, send_all_and, send_part,
};
pub use disjoint::Disjoint;
pub use mapping::{MapFor, map_shared};
pub use nest::{Body, MAX_DEPTH, Nest, NestError, Span, copy_naive};
pub use plain::{copy_plain, copy_plain_shared};
pub use program::{BoundsError, Program, Side};
pub use share::Share;
pub use shared::{SharedBytes, SharedBytesMut};
pub use stream::Stream;

// Offsets are 64-bit; pointers must be too.
const _: () = assert!(usize::BITS == 64);
