//! Where a new file goes: start server, subset and stripe size (D2), or one subfile per view (D3).
//!
//! Section 2.8 to 2.10 of the specification of source 001.
