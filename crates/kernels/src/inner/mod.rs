//! Owns the innermost copies: a block of known or unknown length, and two loop levels around a
//! block. Everything here is branch-free per block where the length is small, and no loop
//! contains a division.
//!
//! A kernel copies `a.count x b.count` blocks of `len` bytes; block `(i, j)` is read at
//! `source + i * a.source + j * b.source` and written at the same combination of target
//! strides, `j` fastest, unless the kernel is one of those that tile (`transpose`). Running
//! pointers wrap, so the step past the last block is harmless.
//!
//! Left to others: bounds (the program's spans, checked at the entry), order and choice
//! (`order`), disjointness (`disjoint`).

pub(crate) mod block;
pub(crate) mod dense;
pub(crate) mod gather;
pub(crate) mod long;
pub(crate) mod masked;
pub(crate) mod stream;
pub(crate) mod strided;
pub(crate) mod transpose;

pub(crate) use block::{copy_any, uniform_copy};

use crate::program::Dim;

/// A kernel over two loop levels.
///
/// # Safety
/// All blocks lie in memory valid for reads (source) or writes (target), and the two do not
/// overlap.
pub(crate) type Kernel = unsafe fn(*const u8, *mut u8, Dim, Dim, usize);
