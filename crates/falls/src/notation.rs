//! The text notation of the literature: `(l,r,s,n)` and `(l,r,s,n,{inner, ...})`, both ends
//! inclusive, `-` for the stride of a single block, sets in braces.
//!
//! ```text
//! set    = "{" [ falls { "," falls } ] "}"
//! falls  = "(" l "," r [ "," stride "," n [ "," set ] ] ")"
//! stride = number | "-"
//! ```
//!
//! `(l,r)` is short for one segment. An inner `{}` means the whole block, as in the paper. This is
//! the only place where inclusive ends and signed numbers occur; [`Term`] carries them as written,
//! so that bad ones can be named.

use std::fmt;
use std::str::FromStr;

use crate::error::{FallsError, Reason};
use crate::set::{Falls, FallsSet, Limits, Node};

/// A nested FALLS as written, not yet validated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// First byte of the first block.
    pub l: i64,
    /// Last byte of the first block.
    pub r: i64,
    /// Stride; `None` is the dash.
    pub s: Option<i64>,
    /// Number of blocks.
    pub n: i64,
    /// Inner FALLS; empty means the whole block.
    pub inner: Vec<Term>,
    /// Character at which it begins in the text it was read from.
    pub at: usize,
}

impl Term {
    /// The FALLS that is meant, if it is well formed.
    pub fn to_falls(&self) -> Result<Falls, FallsError> {
        if self.l < 0 {
            return Err(FallsError::new(
                Reason::Range,
                format!("starts at {}; offsets are 0 or more", self.l),
            ));
        }
        if self.r < self.l {
            return Err(FallsError::new(
                Reason::Length,
                format!("ends at {} before it starts at {}", self.r, self.l),
            ));
        }
        if self.n < 1 {
            return Err(FallsError::new(
                Reason::Count,
                format!("has {} blocks; give at least 1", self.n),
            ));
        }
        let (start, len, count) = (self.l as u64, (self.r - self.l) as u64 + 1, self.n as u64);
        let stride = match self.s {
            _ if count == 1 => len,
            Some(s) if s >= 0 => s as u64,
            Some(s) => {
                return Err(FallsError::new(
                    Reason::Overlap,
                    format!("stride {s} is negative; blocks must ascend"),
                ));
            }
            None => {
                return Err(FallsError::new(
                    Reason::Syntax,
                    format!("{count} blocks need a stride, the dash is for one block"),
                ));
            }
        };
        if self.inner.is_empty() {
            Falls::family(start, len, stride, count)
        } else {
            Falls::nested(start, len, stride, count, Term::to_set(&self.inner)?)
        }
    }

    /// The set that is meant, if it is well formed.
    pub fn to_set(terms: &[Term]) -> Result<FallsSet, FallsError> {
        FallsSet::new(Term::to_members(terms)?)
    }

    /// The members alone, each well formed; they may still interleave or overlap each other.
    pub fn to_members(terms: &[Term]) -> Result<Vec<Falls>, FallsError> {
        terms
            .iter()
            .enumerate()
            .map(|(i, t)| t.to_falls().map_err(|e| e.inside(i)))
            .collect()
    }
}

/// Why a text was refused, and at which character.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    text: String,
    at: usize,
    reason: Reason,
    message: String,
}

impl ParseError {
    /// Number of characters before the one concerned.
    pub fn at(&self) -> usize {
        self.at
    }

    /// What kind of refusal this is.
    pub fn reason(&self) -> Reason {
        self.reason
    }

    /// The sentence without the position.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for ParseError {
    /// One line with the position, then the text with a caret below the character; of a long text
    /// the part around it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (character {})", self.message, self.at + 1)?;
        if self.text.is_empty() || self.text.contains('\n') {
            return Ok(());
        }
        const BEFORE: usize = 60;
        const SHOWN: usize = 100;
        let from = self.at.saturating_sub(BEFORE);
        let from = if self.at < SHOWN { 0 } else { from };
        let shown: String = self.text.chars().skip(from).take(SHOWN).collect();
        let (dots, width) = if from == 0 {
            ("", self.at)
        } else {
            ("...", self.at - from + 3)
        };
        write!(f, "\n  {dots}{shown}\n  {:width$}^", "")
    }
}

impl std::error::Error for ParseError {}

/// Reads a set as written, without validating it.
pub fn parse_terms(text: &str) -> Result<Vec<Term>, ParseError> {
    parse_terms_within(text, Limits::DEFAULT)
}

/// [`parse_terms`] under other limits.
pub fn parse_terms_within(text: &str, limits: Limits) -> Result<Vec<Term>, ParseError> {
    let mut parser = Parser {
        text,
        chars: text.chars().collect(),
        at: 0,
        limits,
        nodes: 0,
    };
    let terms = parser.set(1)?;
    parser.blank();
    match parser.chars.get(parser.at) {
        None => Ok(terms),
        Some(c) => Err(parser.error(Reason::Syntax, format!("unexpected '{c}' after the set"))),
    }
}

impl FromStr for FallsSet {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let terms = parse_terms(text)?;
        Term::to_set(&terms).map_err(|e| locate(text, &terms, &e))
    }
}

/// The parse error for a set that was read but is not well formed.
fn locate(text: &str, terms: &[Term], error: &FallsError) -> ParseError {
    let mut at = 0;
    let mut level = terms;
    for &i in error.path() {
        let Some(term) = level.get(i) else { break };
        at = term.at;
        level = &term.inner;
    }
    ParseError {
        text: text.to_string(),
        at,
        reason: error.reason(),
        message: error.detail().to_string(),
    }
}

struct Parser<'a> {
    text: &'a str,
    chars: Vec<char>,
    at: usize,
    limits: Limits,
    nodes: u64,
}

impl Parser<'_> {
    fn error(&self, reason: Reason, message: impl Into<String>) -> ParseError {
        ParseError {
            text: self.text.to_string(),
            at: self.at,
            reason,
            message: message.into(),
        }
    }

    fn blank(&mut self) {
        while self.chars.get(self.at).is_some_and(|c| c.is_whitespace()) {
            self.at += 1;
        }
    }

    fn peek(&mut self) -> Option<char> {
        self.blank();
        self.chars.get(self.at).copied()
    }

    fn expect(&mut self, wanted: char, role: &str) -> Result<(), ParseError> {
        match self.peek() {
            Some(c) if c == wanted => {
                self.at += 1;
                Ok(())
            }
            Some(c) => Err(self.error(
                Reason::Syntax,
                format!("expected '{wanted}' {role}, found '{c}'"),
            )),
            None => Err(self.error(
                Reason::Syntax,
                format!("expected '{wanted}' {role}, found the end"),
            )),
        }
    }

    fn set(&mut self, depth: u32) -> Result<Vec<Term>, ParseError> {
        if depth > self.limits.depth {
            return Err(self.error(
                Reason::Depth,
                format!("nested deeper than {} levels", self.limits.depth),
            ));
        }
        self.expect('{', "to open a set")?;
        let mut terms = Vec::new();
        if self.peek() == Some('}') {
            self.at += 1;
            return Ok(terms);
        }
        loop {
            terms.push(self.falls(depth)?);
            if self.peek() == Some(',') {
                self.at += 1;
                continue;
            }
            self.expect('}', "or ',' after a FALLS")?;
            return Ok(terms);
        }
    }

    fn falls(&mut self, depth: u32) -> Result<Term, ParseError> {
        self.blank();
        let at = self.at;
        self.nodes += 1;
        if self.nodes > self.limits.nodes {
            return Err(self.error(
                Reason::Nodes,
                format!("more than {} nodes", self.limits.nodes),
            ));
        }
        self.expect('(', "to open a FALLS")?;
        let l = self.number("the first byte l")?;
        self.expect(',', "after l")?;
        let r = self.number("the last byte r")?;
        if self.peek() == Some(')') {
            self.at += 1;
            return Ok(Term {
                l,
                r,
                s: None,
                n: 1,
                inner: Vec::new(),
                at,
            });
        }
        self.expect(',', "or ')' after r")?;
        let s = if self.dash() {
            None
        } else {
            Some(self.number("the stride s or '-'")?)
        };
        self.expect(',', "after the stride")?;
        let n = self.number("the number of blocks n")?;
        let mut inner = Vec::new();
        if self.peek() == Some(',') {
            self.at += 1;
            inner = self.set(depth + 1)?;
        }
        self.expect(')', "to close the FALLS")?;
        Ok(Term {
            l,
            r,
            s,
            n,
            inner,
            at,
        })
    }

    /// A dash that is not the sign of a number.
    fn dash(&mut self) -> bool {
        let dash = self.peek() == Some('-')
            && !self
                .chars
                .get(self.at + 1)
                .is_some_and(char::is_ascii_digit);
        self.at += usize::from(dash);
        dash
    }

    fn number(&mut self, role: &str) -> Result<i64, ParseError> {
        self.blank();
        let begin = self.at;
        let mut end = begin + usize::from(self.chars.get(begin) == Some(&'-'));
        while self.chars.get(end).is_some_and(char::is_ascii_digit) {
            end += 1;
        }
        let digits: String = self.chars[begin..end].iter().collect();
        if digits.is_empty() || digits == "-" {
            let found = self
                .chars
                .get(begin)
                .map_or("the end".into(), |c| format!("'{c}'"));
            return Err(self.error(Reason::Syntax, format!("expected {role}, found {found}")));
        }
        let value = digits.parse().map_err(|_| {
            self.error(
                Reason::Overflow,
                format!("{digits} does not fit a signed 64-bit number"),
            )
        })?;
        self.at = end;
        Ok(value)
    }
}

impl fmt::Display for FallsSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (i, node) in self.nodes().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            write_node(f, node)?;
        }
        f.write_str("}")
    }
}

impl fmt::Display for Falls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_node(f, self.node())
    }
}

fn write_node(f: &mut fmt::Formatter<'_>, node: Node<'_>) -> fmt::Result {
    write!(f, "({},{},", node.start, node.start + node.len - 1)?;
    if node.count == 1 {
        f.write_str("-,1")?;
    } else {
        write!(f, "{},{}", node.stride, node.count)?;
    }
    if let Some(inner) = node.inner {
        write!(f, ",{inner}")?;
    }
    f.write_str(")")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) {
        let set: FallsSet = text.parse().unwrap();
        assert_eq!(set.to_string(), text.replace(' ', ""));
    }

    #[test]
    fn sets_print_as_they_are_read() {
        check("{}");
        check("{(3,5,6,5)}");
        check("{(0,15,32,2,{(0,0,4,2),(8,9,4,2)})}");
        check("{ (1,3,-,1), (8,9,-,1) }");
        check("{(9223372036854775800,9223372036854775805,-,1)}");
    }

    fn refused(text: &str) -> (usize, Reason) {
        let error = text.parse::<FallsSet>().unwrap_err();
        (error.at(), error.reason())
    }

    #[test]
    fn errors_point_at_the_character() {
        assert_eq!(refused(""), (0, Reason::Syntax));
        assert_eq!(refused("{(0,3,8,2)"), (10, Reason::Syntax));
        assert_eq!(refused("{(0,3,8)}"), (7, Reason::Syntax));
        assert_eq!(refused("{(0,3,8,2)}}"), (11, Reason::Syntax));
        assert_eq!(refused("{(0,x,8,2)}"), (4, Reason::Syntax));
        assert_eq!(refused("{(0,3,-,2)}"), (1, Reason::Syntax));
        assert_eq!(refused("{(0,3,8,2),(1,1,-,1)}"), (11, Reason::Overlap));
        assert_eq!(refused("{(0,0,8,2),(1,1,8,2)}"), (11, Reason::Order));
        assert_eq!(
            refused("{(0,3,8,2,{(0,0,-,1),(2,4,-,1)})}"),
            (1, Reason::Nesting)
        );
        assert_eq!(refused("{(0,3,8,2,{(2,1,-,1)})}"), (11, Reason::Length));
        assert_eq!(
            refused("{(0,99999999999999999999,-,1)}"),
            (4, Reason::Overflow)
        );
        assert_eq!(
            refused("{(0,1,9223372036854775807,3)}"),
            (1, Reason::Overflow)
        );
    }

    #[test]
    fn depth_and_nodes_are_limited() {
        let deep = "{(0,1,-,1,".repeat(70) + "{(0,1,-,1)}" + &")}".repeat(70);
        assert_eq!(refused(&deep).1, Reason::Depth);
        let limits = Limits { depth: 3, nodes: 2 };
        let many = parse_terms_within("{(0,0),(2,2),(4,4)}", limits).unwrap_err();
        assert_eq!((many.reason(), many.at()), (Reason::Nodes, 13));
    }

    #[test]
    fn the_caret_stands_below_the_character() {
        let text = "{(0,3;8,2)}".parse::<FallsSet>().unwrap_err().to_string();
        assert_eq!(
            text,
            "expected ',' or ')' after r, found ';' (character 6)\n  {(0,3;8,2)}\n       ^"
        );
        // Of a long text only the part around the character: no width beyond what formatting takes.
        let long = format!("{{{}x}}", "(0,0),".repeat(20_000));
        let shown = long.parse::<FallsSet>().unwrap_err().to_string();
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(
            lines[1].chars().nth(lines[2].len() - 1),
            Some('x'),
            "{shown}"
        );
        assert!(shown.len() < 300, "{shown}");
    }
}
