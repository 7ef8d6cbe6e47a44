//! What a client will access next, from what it accessed before.
//!
//! Section 2.8 to 2.10 of the specification of source 001.
