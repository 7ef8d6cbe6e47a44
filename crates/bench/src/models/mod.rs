//! The published cost models, as they were published and with their errors corrected.
//!
//! Collective file access directed by the disks (thesis of J. A. Moore, chapter 5) and prefetch (chapter 6). They say
//! what their authors' machines did; tests hold them to the printed tables and figures. What Pario's own ways
//! cost on a measured machine is in `advise::cost`. Models that no benchmark prints (packing and unpacking, chapter 4; hops
//! among servers, MEMFS, equations 5.1 to 6.9) stand beside their tests, in `tests/models`.
//!
//! Pure functions of plain values. Times are in seconds unless a name says otherwise; the parameters of
//! printed tables are in microseconds per byte, as printed.
//!
//! Left to others: printing (`ddio`, `prefetch`).

pub mod ddio;
pub mod figures;
pub mod prefetch;
