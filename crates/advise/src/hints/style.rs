//! The access style: how a program uses a file, as `access_style` of MPI-IO says it.
//!
//! Any mix of words. What two words disagree about is decided here once: `random` beats an order,
//! `reverse_sequential` beats `sequential`, and *mostly* beats *once*, since it says that bytes are
//! wanted again.

use std::fmt;

const WORDS: [(&str, u8); 7] = [
    ("read_once", 1),
    ("write_once", 2),
    ("read_mostly", 4),
    ("write_mostly", 8),
    ("sequential", 16),
    ("reverse_sequential", 32),
    ("random", 64),
];

/// A mix of styles; the default says nothing.
///
/// ```
/// use advise::hints::{AccessStyle, ReadAhead};
/// let style = AccessStyle::parse("read_once,reverse_sequential").unwrap();
/// assert!(style.frees_early());
/// assert_eq!(style.read_ahead(), ReadAhead::Backward);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AccessStyle(u8);

/// What a style says about reading ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadAhead {
    /// Nothing: what comes is predicted from what came.
    Predict,
    /// What follows is read next.
    Forward,
    /// What stands before is read next.
    Backward,
    /// Nothing can be known.
    Off,
}

impl AccessStyle {
    /// From words with commas between them.
    pub fn parse(text: &str) -> Result<AccessStyle, String> {
        let mut bits = 0;
        for word in text.split(',').map(str::trim).filter(|w| !w.is_empty()) {
            match WORDS.iter().find(|(known, _)| *known == word) {
                Some((_, bit)) => bits |= bit,
                None => {
                    let words: Vec<&str> = WORDS.iter().map(|(word, _)| *word).collect();
                    return Err(format!(
                        "access_style has the word '{word}'; give any of {}",
                        words.join(", ")
                    ));
                }
            }
        }
        Ok(AccessStyle(bits))
    }

    /// The number that stands for it in messages.
    pub fn bits(self) -> u8 {
        self.0
    }

    /// By its number; bits without a meaning are refused.
    pub fn from_bits(bits: u8) -> Option<AccessStyle> {
        (bits < 128).then_some(AccessStyle(bits))
    }

    fn has(self, bit: u8) -> bool {
        self.0 & bit != 0
    }

    /// Whether it says nothing.
    pub fn is_silent(self) -> bool {
        self.0 == 0
    }

    /// Every byte is read once.
    pub fn is_read_once(self) -> bool {
        self.has(1)
    }

    /// Every byte is written once.
    pub fn is_write_once(self) -> bool {
        self.has(2)
    }

    /// Reads prevail.
    pub fn is_read_mostly(self) -> bool {
        self.has(4)
    }

    /// Writes prevail.
    pub fn is_write_mostly(self) -> bool {
        self.has(8)
    }

    /// In ascending order.
    pub fn is_sequential(self) -> bool {
        self.has(16) && !self.has(32) && !self.has(64)
    }

    /// In descending order.
    pub fn is_reverse(self) -> bool {
        self.has(32) && !self.has(64)
    }

    /// In no order.
    pub fn is_random(self) -> bool {
        self.has(64)
    }

    /// What it says about reading ahead.
    pub fn read_ahead(self) -> ReadAhead {
        if self.is_random() {
            ReadAhead::Off
        } else if self.is_reverse() {
            ReadAhead::Backward
        } else if self.is_sequential() {
            ReadAhead::Forward
        } else {
            ReadAhead::Predict
        }
    }

    /// Whether bytes that were accessed are not wanted again, so that a cache need not keep them.
    pub fn frees_early(self) -> bool {
        (self.is_read_once() || self.is_write_once()) && !self.has(4 | 8)
    }
}

impl fmt::Display for AccessStyle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<&str> = WORDS
            .iter()
            .filter(|(_, bit)| self.has(*bit))
            .map(|(word, _)| *word)
            .collect();
        f.write_str(&words.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mix_comes_back_and_has_one_meaning() {
        for bits in 0..128u8 {
            let style = AccessStyle::from_bits(bits).unwrap();
            assert_eq!(AccessStyle::parse(&style.to_string()), Ok(style));
            let orders = [style.is_sequential(), style.is_reverse(), style.is_random()];
            assert!(orders.iter().filter(|is| **is).count() <= 1, "{style}");
        }
        assert_eq!(AccessStyle::from_bits(128), None);
        let both = AccessStyle::parse("read_once,read_mostly").unwrap();
        assert!(!both.frees_early());
        assert_eq!(AccessStyle::parse(" "), Ok(AccessStyle::default()));
    }
}
