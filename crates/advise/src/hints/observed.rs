//! Hints from what was observed: the weakest source, below everybody who says something.
//!
//! Only what is plain is said: seven of eight accesses of one order, four times as many bytes read as
//! written. A file that is used in turns gets no hint, and what comes next is predicted as it comes.

use super::style::AccessStyle;

/// Fewer accesses say nothing.
const LEAST: u128 = 16;

/// How a file was used, in counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UseCounts {
    /// Accesses that began where the one before ended.
    pub sequential: u64,
    /// Accesses that ended where the one before began.
    pub reverse: u64,
    /// Accesses as far from the one before as that from its own.
    pub strided: u64,
    /// All others.
    pub random: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
}

impl UseCounts {
    /// The access style, if it is plain.
    ///
    /// ```
    /// use advise::hints::UseCounts;
    /// let reads = UseCounts { sequential: 100, random: 1, read_bytes: 1 << 30, ..Default::default() };
    /// assert_eq!(reads.style().to_string(), "read_mostly,sequential");
    /// ```
    pub fn style(&self) -> AccessStyle {
        let counts = [self.sequential, self.reverse, self.strided, self.random];
        let all: u128 = counts.iter().map(|n| u128::from(*n)).sum();
        if all < LEAST {
            return AccessStyle::default();
        }
        let is_plain = |count: u64| u128::from(count) >= all - all / 8;
        let mut words = Vec::new();
        for (count, word) in [
            (self.sequential, "sequential"),
            (self.reverse, "reverse_sequential"),
            (self.random, "random"),
        ] {
            if is_plain(count) {
                words.push(word);
            }
        }
        if self.read_bytes / 4 >= self.written_bytes && self.read_bytes > 0 {
            words.push("read_mostly");
        } else if self.written_bytes / 4 >= self.read_bytes && self.written_bytes > 0 {
            words.push("write_mostly");
        }
        AccessStyle::parse(&words.join(",")).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_use_is_said() {
        let style = |sequential, reverse, random, read_bytes, written_bytes| {
            let observed = UseCounts {
                sequential,
                reverse,
                strided: 0,
                random,
                read_bytes,
                written_bytes,
            };
            observed.style().to_string()
        };
        assert_eq!(style(15, 0, 0, 100, 0), "", "too few");
        assert_eq!(style(50, 0, 50, 100, 100), "", "in turns");
        assert_eq!(style(0, 70, 2, 0, 100), "write_mostly,reverse_sequential");
        assert_eq!(style(1, 0, 99, 100, 90), "random");
        assert_eq!(style(u64::MAX, u64::MAX, 1, u64::MAX, 0), "read_mostly");
    }
}
