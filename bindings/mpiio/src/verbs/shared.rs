//! Access with the shared pointer, in any order and in the order of ranks.
//!
//! See the table of the standard for which functions these are.

use super::access::{accesses, alone, together};
use crate::entry::{Call, Outcome};
use crate::ffi::{Address, StatusOut, Word};
use crate::operation::{Direction, Start};

accesses! { StatusOut:
    read_shared alone Read Shared;
    write_shared alone Write Shared;
    read_ordered together Read Ordered;
    write_ordered together Write Ordered;
}
