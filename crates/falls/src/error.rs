//! Why a set of FALLS is refused.
//!
//! One error type for the crate. The [`Reason`] is what programs match on; the text says which
//! number is wrong and what would be right; the path says which member of which nested set.

use std::fmt;

/// The distinct reasons of refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// A block starts before offset 0.
    Range,
    /// A block has no byte (`r < l`).
    Length,
    /// A FALLS has no block (`n < 1`).
    Count,
    /// Two blocks or two members share a byte, or a stride is shorter than its block.
    Overlap,
    /// An inner set reaches outside the block it lies in, or is empty.
    Nesting,
    /// Members are not ascending or interleave; see [`FallsSet::normalise`](crate::FallsSet::normalise).
    Order,
    /// A sum or product reaches 2^63.
    Overflow,
    /// Nested deeper than the limit.
    Depth,
    /// More nodes than the limit, or an operation would need more than its budget.
    Nodes,
    /// A period is 0 or shorter than the set it repeats.
    Period,
    /// The text is not in the notation.
    Syntax,
}

impl Reason {
    /// One lower-case word, stable: used in golden cases and machine-readable output.
    pub fn word(self) -> &'static str {
        match self {
            Reason::Range => "range",
            Reason::Length => "length",
            Reason::Count => "count",
            Reason::Overlap => "overlap",
            Reason::Nesting => "nesting",
            Reason::Order => "order",
            Reason::Overflow => "overflow",
            Reason::Depth => "depth",
            Reason::Nodes => "nodes",
            Reason::Period => "period",
            Reason::Syntax => "syntax",
        }
    }
}

/// A refusal: reason, the member concerned, and a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FallsError {
    reason: Reason,
    path: Vec<usize>,
    detail: String,
}

impl FallsError {
    pub(crate) fn new(reason: Reason, detail: impl Into<String>) -> Self {
        FallsError {
            reason,
            path: Vec::new(),
            detail: detail.into(),
        }
    }

    /// This error seen from the set that holds the failing one as member `index`.
    pub(crate) fn inside(mut self, index: usize) -> Self {
        self.path.insert(0, index);
        self
    }

    /// What kind of refusal this is.
    pub fn reason(&self) -> Reason {
        self.reason
    }

    /// Member numbers from the outermost set to the failing node; empty when it is the whole.
    pub fn path(&self) -> &[usize] {
        &self.path
    }

    /// The sentence without the path.
    pub fn detail(&self) -> &str {
        &self.detail
    }
}

impl fmt::Display for FallsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            f.write_str("member ")?;
            for (i, index) in self.path.iter().enumerate() {
                write!(f, "{}{index}", if i == 0 { "" } else { "." })?;
            }
            f.write_str(": ")?;
        }
        f.write_str(&self.detail)
    }
}

impl std::error::Error for FallsError {}
