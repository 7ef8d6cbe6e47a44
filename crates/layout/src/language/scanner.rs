//! Reading text character by character, with errors that point at the character.
//!
//! Owns what all notations of the crate share: blanks, words (in any case), numbers, sizes with
//! units, lists with repeats. Never panics, takes memory in proportion to the text, and refuses
//! texts beyond [`MAX_TEXT`].

use std::fmt;
use std::str::FromStr;

/// Longest text accepted, in characters: room for maps of a few million entries.
pub const MAX_TEXT: usize = 1 << 24;

/// Up to this many characters a text is repeated below its error message.
const SHOWN: usize = 200;

/// Why a text was refused, and at which character.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayoutParseError {
    text: String,
    at: usize,
    message: String,
}

impl LayoutParseError {
    /// Number of characters before the one concerned.
    pub fn at(&self) -> usize {
        self.at
    }

    /// The sentence without the position.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for LayoutParseError {
    /// One line with the position, then the text with a caret below the character.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (character {})", self.message, self.at + 1)?;
        if !self.text.is_empty() && !self.text.contains(char::is_control) {
            write!(f, "\n  {}\n  {:width$}^", self.text, "", width = self.at)?;
        }
        Ok(())
    }
}

impl std::error::Error for LayoutParseError {}

/// A place in a text.
pub(super) struct Scanner {
    chars: Vec<char>,
    at: usize,
}

impl Scanner {
    pub(super) fn new(text: &str) -> Result<Self, LayoutParseError> {
        if text.len() > MAX_TEXT {
            return Err(LayoutParseError {
                text: String::new(),
                at: MAX_TEXT,
                message: format!("the text is longer than {MAX_TEXT} characters"),
            });
        }
        Ok(Scanner {
            chars: text.chars().collect(),
            at: 0,
        })
    }

    /// Where the next token begins.
    pub(super) fn place(&mut self) -> usize {
        while self.chars.get(self.at).is_some_and(|c| c.is_whitespace()) {
            self.at += 1;
        }
        self.at
    }

    /// An error at an earlier place.
    pub(super) fn error_at(&self, at: usize, message: impl Into<String>) -> LayoutParseError {
        let shown = self.chars.len() <= SHOWN;
        LayoutParseError {
            text: match shown {
                true => self.chars.iter().collect(),
                false => String::new(),
            },
            at,
            message: message.into(),
        }
    }

    /// "expected this, found that", here.
    pub(super) fn expected(&mut self, wanted: &str) -> LayoutParseError {
        let at = self.place();
        let found = match self.chars.get(at) {
            None => "the end".to_string(),
            Some(c) if c.is_alphanumeric() => format!("'{}'", self.word_at(at)),
            Some(c) => format!("'{c}'"),
        };
        self.error_at(at, format!("expected {wanted}, found {found}"))
    }

    pub(super) fn peek(&mut self) -> Option<char> {
        let at = self.place();
        self.chars.get(at).copied()
    }

    /// Takes the character if it is next.
    pub(super) fn take(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        self.at += usize::from(found);
        found
    }

    /// Takes the character, which must be next.
    pub(super) fn expect(&mut self, wanted: char, role: &str) -> Result<(), LayoutParseError> {
        if self.take(wanted) {
            return Ok(());
        }
        Err(self.expected(&format!("'{wanted}' {role}")))
    }

    /// Nothing may follow.
    pub(super) fn end(&mut self, what: &str) -> Result<(), LayoutParseError> {
        if self.peek().is_none() {
            return Ok(());
        }
        Err(self.expected(&format!("the end after {what}")))
    }

    fn word_at(&self, at: usize) -> String {
        self.chars[at..]
            .iter()
            .take_while(|c| c.is_alphanumeric() || **c == '_')
            .take(40)
            .collect()
    }

    /// The word that is next, in lower case; empty if there is none. Takes nothing.
    pub(super) fn peek_word(&mut self) -> String {
        let at = self.place();
        match self.chars.get(at) {
            Some(c) if c.is_alphabetic() || *c == '_' => self.word_at(at).to_lowercase(),
            _ => String::new(),
        }
    }

    /// Takes the word if it is next.
    pub(super) fn take_word(&mut self, wanted: &str) -> bool {
        let found = self.peek_word() == wanted;
        if found {
            self.at += wanted.chars().count();
        }
        found
    }

    /// Takes whatever word is next.
    pub(super) fn skip_word(&mut self) {
        let at = self.place();
        self.at += self.word_at(at).chars().count();
    }

    /// A number of digits; `role` says what it is for.
    pub(super) fn number(&mut self, role: &str) -> Result<u64, LayoutParseError> {
        self.refuse_negative(role, "0 or more")?;
        let begin = self.place();
        let digits: String = self.chars[begin..]
            .iter()
            .take_while(|c| c.is_ascii_digit())
            .collect();
        if digits.is_empty() {
            return Err(self.expected(role));
        }
        match digits.parse::<u64>() {
            Ok(value) if value <= falls::MAX_OFFSET => {
                self.at = begin + digits.len();
                Ok(value)
            }
            _ => Err(self.error_at(begin, format!("{role} reaches 2^63; it must stay below"))),
        }
    }

    /// The refusal of a minus sign if that is next; `advice` says what to give.
    pub(super) fn refuse_negative(
        &mut self,
        role: &str,
        advice: &str,
    ) -> Result<(), LayoutParseError> {
        let begin = self.place();
        if self.chars.get(begin) == Some(&'-') {
            return Err(self.error_at(begin, format!("{role} is negative; give {advice}")));
        }
        Ok(())
    }

    /// A number of bytes, with an optional unit of 1024 and its powers.
    pub(super) fn size(&mut self, role: &str) -> Result<u64, LayoutParseError> {
        let begin = self.place();
        let value = self.number(role)?;
        let unit = match self.peek_word().as_str() {
            "b" => 0,
            "kib" => 10,
            "mib" => 20,
            "gib" => 30,
            "tib" => 40,
            "kb" | "mb" | "gb" | "tb" | "k" | "m" | "g" | "t" => {
                return Err(self.expected("a unit of B, KiB, MiB, GiB or TiB"));
            }
            _ => return Ok(value),
        };
        self.skip_word();
        match value.checked_mul(1 << unit) {
            Some(bytes) if bytes <= falls::MAX_OFFSET => Ok(bytes),
            _ => Err(self.error_at(begin, format!("{role} reaches 2^63; it must stay below"))),
        }
    }

    /// Numbers separated by commas up to `close`, which is taken; at least one.
    pub(super) fn numbers(
        &mut self,
        close: char,
        role: &str,
    ) -> Result<Vec<u64>, LayoutParseError> {
        let mut list = Vec::new();
        loop {
            list.push(self.number(role)?);
            if self.take(',') {
                continue;
            }
            self.expect(close, "or ','")?;
            return Ok(list);
        }
    }

    /// Like [`Scanner::numbers`], where `3*7` is 7 three times; gives (number, times).
    pub(super) fn repeats(
        &mut self,
        close: char,
        role: &str,
    ) -> Result<Vec<(u64, u64)>, LayoutParseError> {
        let mut list = Vec::new();
        loop {
            let first = self.number(role)?;
            list.push(match self.take('*') {
                true => (self.number(role)?, first),
                false => (first, 1),
            });
            if self.take(',') {
                continue;
            }
            self.expect(close, "or ','")?;
            return Ok(list);
        }
    }

    /// The characters from here to the bracket that closes the one just taken, which is taken too.
    /// Pieces are cut at `separator` outside inner brackets, each with its place.
    pub(super) fn pieces_to_brace(
        &mut self,
        separator: char,
    ) -> Result<Vec<(usize, String)>, LayoutParseError> {
        let open = self.at;
        let (mut depth, mut begin) = (1u32, open);
        let mut pieces = Vec::new();
        while let Some(&c) = self.chars.get(self.at) {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            if depth == 0 || (depth == 1 && c == separator) {
                pieces.push((begin, self.chars[begin..self.at].iter().collect()));
                begin = self.at + 1;
            }
            self.at += 1;
            if depth == 0 {
                return Ok(pieces);
            }
        }
        Err(self.expected("'}' to close the sets"))
    }
}

/// A number of bytes; reads with a unit of 1024 or a power of it, prints with the largest that
/// divides it.
///
/// ```
/// use layout::ByteSize;
/// let size: ByteSize = "2048 KiB".parse().unwrap();
/// assert_eq!((size.0, size.to_string().as_str()), (2 << 20, "2MiB"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSize(pub u64);

impl FromStr for ByteSize {
    type Err = LayoutParseError;

    fn from_str(text: &str) -> Result<Self, LayoutParseError> {
        let mut scanner = Scanner::new(text)?;
        let bytes = scanner.size("a number of bytes")?;
        scanner.end("the size")?;
        Ok(ByteSize(bytes))
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (bits, unit) in [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")] {
            if self.0 > 0 && self.0.trailing_zeros() >= bits {
                return write!(f, "{}{unit}", self.0 >> bits);
            }
        }
        write!(f, "{}", self.0)
    }
}
