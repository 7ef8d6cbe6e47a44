//! Why a layout is refused: one error type for the crate.
//!
//! The kind is what programs match on. The argument names which input is meant, and the sentence
//! says what is wrong with it and what would be right.

use std::fmt;

use falls::{FallsError, Flaw, Reason};

/// What kind of refusal a [`LayoutError`] is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LayoutErrorKind {
    /// An argument is out of its range or contradicts another.
    Argument,
    /// The elements are no partition of the pattern: two share a byte, one is left out, or one
    /// reaches beyond.
    Pattern(Flaw),
    /// There is no period short enough to write down.
    TooComplex,
    /// An offset or size reaches 2^63.
    Overflow,
    /// The bytes are not visited in ascending order, each once, so they are no set.
    NotMonotone,
    /// A set of FALLS is not well formed.
    Falls(Reason),
}

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayoutError {
    kind: LayoutErrorKind,
    argument: String,
    detail: String,
}

impl LayoutError {
    /// A refusal of the argument called `argument`.
    pub fn new(
        kind: LayoutErrorKind,
        argument: impl Into<String>,
        detail: impl Into<String>,
    ) -> Self {
        LayoutError {
            kind,
            argument: argument.into(),
            detail: detail.into(),
        }
    }

    /// An argument out of its range.
    pub fn argument(argument: impl Into<String>, detail: impl Into<String>) -> Self {
        LayoutError::new(LayoutErrorKind::Argument, argument, detail)
    }

    /// A size or offset that reaches 2^63.
    pub fn overflow(argument: impl Into<String>) -> Self {
        LayoutError::new(
            LayoutErrorKind::Overflow,
            argument,
            "reaches 2^63; sizes and offsets must stay below",
        )
    }

    /// What kind of refusal this is.
    pub fn kind(&self) -> &LayoutErrorKind {
        &self.kind
    }

    /// The input concerned.
    pub fn argument_name(&self) -> &str {
        &self.argument
    }

    /// The sentence without the argument.
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// The refusal of a pattern whose elements do not partition it.
    pub(crate) fn flaw(flaw: Flaw) -> Self {
        let detail = match &flaw {
            Flaw::Overlap { first, second, byte } => {
                format!("elements {first} and {second} both own byte {byte} of the pattern")
            }
            Flaw::Gap { byte } => format!("no element owns byte {byte} of the pattern"),
            Flaw::Outside { element, byte } => {
                format!("element {element} owns byte {byte}, beyond the pattern")
            }
            Flaw::TooComplex => "interleave in more ways than an index of them may hold: no short common period, or too many dimensions with ragged cyclic blocks; choose block sizes that divide the extents or share a small multiple".into(),
        };
        let kind = match flaw {
            Flaw::TooComplex => LayoutErrorKind::TooComplex,
            flaw => LayoutErrorKind::Pattern(flaw),
        };
        LayoutError::new(kind, "elements", detail)
    }
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.argument, self.detail)
    }
}

impl std::error::Error for LayoutError {}

impl From<FallsError> for LayoutError {
    fn from(error: FallsError) -> Self {
        let kind = match error.reason() {
            Reason::Overflow => LayoutErrorKind::Overflow,
            reason => LayoutErrorKind::Falls(reason),
        };
        LayoutError::new(kind, "set", error.to_string())
    }
}
