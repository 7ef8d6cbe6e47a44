//! The published cost models, as they were published and with their errors corrected.
//!
//! Packing and unpacking (thesis of J. A. Moore, chapter 4), collective file access directed by the disks
//! (chapter 5), prefetch (chapter 6), and hops among servers (MEMFS, equations 5.1 to 6.9). They say what
//! their authors' machines did; tests hold them to the printed tables and figures. What Pario's own ways
//! cost on a measured machine is in `advise::cost`.
//!
//! Pure functions of plain values. Times are in seconds unless a name says otherwise; the parameters of
//! printed tables are in microseconds per byte, as printed.
//!
//! Left to others: printing (`ddio`, `prefetch`).

pub mod ddio;
pub mod figures;
pub mod gen_phases;
pub mod hops;
pub mod packing;
pub mod prefetch;
pub mod tlb;
pub mod unpacking;
