//! Programs in HPF: input and output of distributed arrays becomes calls of the module `pario_hpf`, the job that the compiler of
//! ViPIOS did.
//!
//! ```text
//!       REAL A(14,17)                                  REAL A(14,17)
//! !HPF$ PROCESSORS P(3,4)                        !HPF$ PROCESSORS P(3,4)
//! !HPF$ DISTRIBUTE A(CYCLIC(3),BLOCK) ONTO P     !HPF$ DISTRIBUTE A(CYCLIC(3),BLOCK) ONTO P
//!       OPEN(10, FILE='A', FORM='UNFORMATTED') ->      call pario_hpf_open(unit=10, file='A', form='UNFORMATTED')
//!       WRITE(10) A                                    call pario_hpf_write(10, A, shape(A), 'A', ...)
//! ```
//!
//! A unit is Pario's if a distributed array is read or written there. Every statement on such a unit is translated or refused, at
//! its line and character; all other bytes of the program stay as they are. What goes to the terminal or to a variable is on no unit: it
//! stays as well.
//!
//! | module | owns |
//! |---|---|
//! | `source` | lines as statements, in fixed and free form; where each stands |
//! | `scopes` | program units, the directives and declarations in each |
//! | `mapping` | the directives of one array as an expression of Fortran |
//! | `control` | what stands in the brackets of a statement, and behind them |
//! | `sections` | parts of arrays in lists |
//! | `units` | which unit an expression means |
//! | `translate` | statements into calls |
//!
//! Section 2.8 of the specification. Hints that the compiler knows (VP-H04, H08) are calls too: what the file of an `OPEN` will hold, how
//! it is used, and that a branch was entered which reads.
//!
//! Left to others: what directives mean (`layout`), what the calls do (`bindings/fortran`).
#![forbid(unsafe_code)]

mod control;
mod mapping;
mod scopes;
mod sections;
mod source;
mod translate;
mod units;

use std::fmt;

pub use source::Form;

/// What declarations of distributed arrays say: the whole array, or the part of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arrays {
    /// The whole array, which every process has in memory.
    #[default]
    Global,
    /// The part of each process; the whole is a `TEMPLATE` it is aligned with, or a directive `DIMENSION`.
    Local,
}

/// Whether hints of the compiler are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hints {
    /// They are.
    #[default]
    Written,
    /// They are not.
    Omitted,
}

/// How a program is translated.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// How lines are read.
    pub form: Form,
    /// What declarations mean.
    pub arrays: Arrays,
    /// Whether hints are written.
    pub hints: Hints,
}

/// A statement that was translated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranslatedStatement {
    /// Its line, from 1 on.
    pub line: usize,
    /// Its character, from 1 on.
    pub character: usize,
    /// `OPEN`, `WRITE` and so on.
    pub statement: &'static str,
    /// The unit, as it is written; empty for an `INQUIRE` by file.
    pub unit: String,
    /// Distributed arrays that it moves.
    pub arrays: Vec<String>,
}

/// Something that stays as it is, and that a reader of the program may take for something else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Its line, from 1 on.
    pub line: usize,
    /// Its character, from 1 on.
    pub character: usize,
    /// A sentence.
    pub message: String,
}

/// A program that was translated.
#[derive(Clone, Debug, Default)]
pub struct Translation {
    /// The program.
    pub text: String,
    /// What was translated, in the order of the text.
    pub statements: Vec<TranslatedStatement>,
    /// What should be known of the rest.
    pub notes: Vec<Note>,
}

/// Why a program is refused, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HpfError {
    line: usize,
    character: usize,
    message: String,
    excerpt: String,
}

impl HpfError {
    pub(crate) fn new(
        text: &str,
        line: usize,
        character: usize,
        message: impl Into<String>,
    ) -> HpfError {
        let excerpt = text.lines().nth(line - 1).unwrap_or("").to_owned();
        HpfError {
            line,
            character,
            message: message.into(),
            excerpt,
        }
    }

    /// Line concerned, from 1 on.
    pub fn line(&self) -> usize {
        self.line
    }

    /// Character of the line, from 1 on.
    pub fn character(&self) -> usize {
        self.character
    }

    /// The sentence without the place.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for HpfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "line {}, character {}: {}",
            self.line, self.character, self.message
        )?;
        if self.excerpt.contains(char::is_control) {
            return Ok(());
        }
        let blanks = self.character - 1;
        write!(f, "\n  {}\n  {:blanks$}^", self.excerpt, "")
    }
}

impl std::error::Error for HpfError {}

/// Translates a program.
///
/// ```
/// let text = "program p
///   real :: a(8)
///   !hpf$ distribute a(block) onto procs(4)
///   open (10, file='a', form='unformatted')
///   write (10) a
///   print *, 'done'
/// end program
/// ";
/// let done = hpf::translate(text, &hpf::Options::default()).unwrap();
/// assert!(done.text.contains("call pario_hpf_write(10, a, shape(a), 'A', 'distribute a(block) onto procs(4)', pario_hpf_global)"));
/// assert!(done.text.contains("  print *, 'done'\n"));
/// assert_eq!(done.statements.len(), 2);
/// ```
pub fn translate(text: &str, options: &Options) -> Result<Translation, HpfError> {
    translate::program(text, options)
}
