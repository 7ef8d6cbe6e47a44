//! What a handle or a capability allows.
//!
//! Two bits: everything an I/O server does for a client either shows bytes or changes them. What the
//! catalogue allows (names, attributes) is decided by credentials at each call instead.

use std::fmt;
use std::ops::BitOr;

/// A set of rights on the bytes of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Rights(u8);

impl Rights {
    /// No access to bytes; attributes only.
    pub const NONE: Rights = Rights(0);
    /// Reading bytes.
    pub const READ: Rights = Rights(1);
    /// Changing bytes and the size.
    pub const WRITE: Rights = Rights(2);
    /// Both.
    pub const BOTH: Rights = Rights(3);

    /// All of `other` is among these.
    pub fn allow(self, other: Rights) -> bool {
        self.0 & other.0 == other.0
    }

    /// As a number.
    pub fn bits(self) -> u8 {
        self.0
    }

    /// From a number; `None` when it has bits without a meaning.
    pub fn from_bits(bits: u8) -> Option<Rights> {
        (bits <= 3).then_some(Rights(bits))
    }
}

impl BitOr for Rights {
    type Output = Rights;

    fn bitor(self, other: Rights) -> Rights {
        Rights(self.0 | other.0)
    }
}

impl fmt::Display for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(["nothing", "read", "write", "read and write"][usize::from(self.0)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_allow_what_is_among_them() {
        let all = [Rights::NONE, Rights::READ, Rights::WRITE, Rights::BOTH];
        let allowed = all.map(|rights| all.map(|other| rights.allow(other)));
        assert_eq!(
            allowed,
            [
                [true, false, false, false],
                [true, true, false, false],
                [true, false, true, false],
                [true; 4],
            ]
        );
        assert_eq!(Rights::READ | Rights::BOTH, Rights::BOTH);
        for rights in all {
            assert_eq!(Rights::from_bits(rights.bits()), Some(rights));
        }
        assert_eq!(Rights::from_bits(4), None);
    }
}
