//! Which server a client talks to: global master, round robin, data matching, hints.
//!
//! Section 2.8 to 2.10 of the specification of source 001.
