//! HPF directives as text: `!HPF$ DISTRIBUTE A(CYCLIC(3),BLOCK) ONTO PROCS(3,4)` and its like become layouts.
//!
//! ```text
//! !HPF$ PROCESSORS PROCS(3,4)
//! !HPF$ TEMPLATE T(28,17)
//! !HPF$ DISTRIBUTE T(CYCLIC(3), BLOCK) ONTO PROCS
//! !HPF$ ALIGN A(I,J) WITH T(2*I,J)
//! ```
//!
//! Indices of arrays and templates begin at 1 or where their bounds say, as in Fortran; those of an `INDIRECT` map are
//! coordinates of processors from 1 on. Numbers of processors run through a grid with the first coordinate fastest, and so do the
//! bytes of the arrays. Section 2.8 of the specification; `GEN_BLOCK`, `INDIRECT` and `ALIGN`, which the source left out, are here.
//!
//! A directive begins with `!HPF$`, `CHPF$` or `*HPF$`, or with nothing; `&` continues it, `;` ends it. Comments and empty lines
//! are passed over. Sizes are integer expressions of constants. `DIMENSION A(0:9)` says the bounds of an array where they are not
//! `1:extent`, and those of an array that others are aligned with.
//!
//! Invariants
//! - What is wrong is refused at its line and character, when the text is read or when a layout is made of it.
//! - Reading takes time and memory in proportion to the text.
//!
//! Left to others: finding directives in a program, values that only a running program knows.

mod apply;
mod read;
mod tokens;

use std::collections::BTreeMap;
use std::fmt;

use crate::distribution::Distribution;
use crate::language::Layout;

/// Where something stands in the text, from 0 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) line: usize,
    pub(crate) character: usize,
}

/// Why directives were refused, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectiveError {
    place: Place,
    message: String,
    excerpt: String,
}

impl DirectiveError {
    /// Line concerned, from 1 on.
    pub fn line(&self) -> usize {
        self.place.line + 1
    }

    /// Character of the line, from 1 on.
    pub fn character(&self) -> usize {
        self.place.character + 1
    }

    /// The sentence without the place.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for DirectiveError {
    /// One line with the place, then the line of the text with a caret below the character.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (line, character) = (self.line(), self.character());
        write!(f, "{} (line {line}, character {character})", self.message)?;
        if !self.excerpt.is_empty() {
            let blanks = self.place.character;
            write!(f, "\n  {}\n  {:blanks$}^", self.excerpt, "")?;
        }
        Ok(())
    }
}

impl std::error::Error for DirectiveError {}

/// Lower bound and extent of one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) lower: i64,
    pub(crate) extent: u64,
}

/// A name with its bounds, and where it was declared.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) bounds: Vec<Bounds>,
    pub(crate) place: Place,
}

/// What `ONTO` names.
#[derive(Clone, Debug)]
pub(crate) struct Onto {
    pub(crate) name: String,
    /// Extents that stand there.
    pub(crate) extents: Option<Vec<u64>>,
    pub(crate) place: Place,
}

/// One dimension of a `DISTRIBUTE`.
#[derive(Clone, Debug)]
pub(crate) struct Format {
    pub(crate) distribution: Distribution,
    pub(crate) place: Place,
}

/// A `DISTRIBUTE`.
#[derive(Clone, Debug)]
pub(crate) struct Distribute {
    pub(crate) formats: Vec<Format>,
    pub(crate) onto: Option<Onto>,
    pub(crate) place: Place,
}

/// What stands for a dimension on the left of `WITH`.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// A name that the right side uses.
    Dummy(String),
    /// `:`, which goes to the next `:` on the right.
    Next,
    /// `*`: the dimension is not distributed.
    Collapsed,
}

/// What stands for a dimension on the right of `WITH`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Subscript {
    /// `stride * i + offset`, of a dimension of the array.
    Linear {
        dimension: usize,
        stride: i64,
        offset: i64,
    },
    /// `:` or `lower:upper:stride`, for a dimension of the array.
    Range {
        dimension: usize,
        lower: Option<i64>,
        upper: Option<i64>,
        stride: i64,
    },
    /// The whole array at this index.
    At(i64),
    /// A copy at every index.
    Replicated,
}

/// An `ALIGN`.
#[derive(Clone, Debug)]
pub(crate) struct Align {
    /// Dimensions of the array, if the directive says them.
    pub(crate) dimensions: Option<usize>,
    pub(crate) base: String,
    /// `None` aligns dimension by dimension.
    pub(crate) subscripts: Option<Vec<(Subscript, Place)>>,
    /// Where the name of the base stands.
    pub(crate) place: Place,
}

/// Directives of a text, by the names they are about, which are in capitals.
///
/// ```
/// use layout::Directives;
/// let text = "!HPF$ DISTRIBUTE A(CYCLIC(3),BLOCK) ONTO PROCS(3,4)";
/// let directives = Directives::parse(text).unwrap();
/// let layout = directives.layout("a", &[14, 17], None).unwrap();
/// assert_eq!(layout.to_string(), "(cyclic(3), block) onto 3x4:fortran");
///
/// let error = Directives::parse("!HPF$ DISTRIBUTE A(CYCLC)").unwrap_err();
/// assert_eq!(error.to_string(), "CYCLC is no distribution; give BLOCK, CYCLIC, GEN_BLOCK, INDIRECT or * (line 1, character 20)
///   !HPF$ DISTRIBUTE A(CYCLC)
///                      ^");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Directives {
    /// The text by lines, for errors.
    pub(crate) lines: Vec<String>,
    pub(crate) processors: BTreeMap<String, Shape>,
    pub(crate) templates: BTreeMap<String, Shape>,
    pub(crate) arrays: BTreeMap<String, Shape>,
    pub(crate) distributions: BTreeMap<String, Distribute>,
    pub(crate) alignments: BTreeMap<String, Align>,
}

impl Directives {
    /// Reads directives.
    pub fn parse(text: &str) -> Result<Directives, DirectiveError> {
        read::directives(text)
    }

    /// Arrays that are distributed, directly or by alignment; templates are none.
    pub fn arrays(&self) -> impl Iterator<Item = &str> {
        let all = self.distributions.keys().chain(self.alignments.keys());
        all.map(String::as_str)
            .filter(|name| !self.templates.contains_key(*name))
    }

    /// Extents of the template that an array is aligned with dimension by dimension, from its first index on: the shape of the whole
    /// array in a program that declares the part of each process.
    pub fn global_shape(&self, array: &str) -> Option<Vec<u64>> {
        let name = array.to_uppercase();
        if let Some(shape) = self.arrays.get(&name) {
            return Some(shape.bounds.iter().map(|b| b.extent).collect());
        }
        let align = self.alignments.get(&name)?;
        let template = self.templates.get(&align.base)?;
        let is_plain = |(t, (subscript, _)): (usize, &(Subscript, Place))| {
            let same = match *subscript {
                Subscript::Linear {
                    dimension,
                    stride,
                    offset,
                } => {
                    // Arrays without bounds of their own begin at 1.
                    stride == 1 && offset == template.bounds[t].lower - 1 && dimension == t
                }
                Subscript::Range {
                    dimension,
                    lower,
                    upper,
                    stride,
                } => (dimension, lower, upper, stride) == (t, None, None, 1),
                Subscript::At(_) | Subscript::Replicated => false,
            };
            same.then_some(template.bounds.get(t)?.extent)
        };
        match &align.subscripts {
            None => Some(template.bounds.iter().map(|b| b.extent).collect()),
            Some(list) => list.iter().enumerate().map(is_plain).collect(),
        }
    }

    /// The layout of an array of these extents. Where a `DISTRIBUTE` has no `ONTO`, so many processes are arranged in a grid that is
    /// as square as it gets.
    pub fn layout(
        &self,
        array: &str,
        extents: &[u64],
        processes: Option<u64>,
    ) -> Result<Layout, DirectiveError> {
        apply::layout(self, &array.to_uppercase(), extents, processes)
    }

    pub(crate) fn error(&self, place: Place, message: impl Into<String>) -> DirectiveError {
        error_at(&self.lines, place, message)
    }
}

/// An error with the line concerned, where that is short enough to be shown.
pub(crate) fn error_at(
    lines: &[String],
    place: Place,
    message: impl Into<String>,
) -> DirectiveError {
    const SHOWN: usize = 200;
    let line = lines.get(place.line).map_or("", String::as_str);
    let shown = line.chars().count() <= SHOWN && !line.contains(char::is_control);
    DirectiveError {
        place,
        message: message.into(),
        excerpt: if shown {
            line.to_owned()
        } else {
            String::new()
        },
    }
}
