//! The rules of this repository that no compiler checks, as tests.
//!
//! Each rule is a pure function from text to [`Complaint`]s, with a sample beside it that breaks the
//! rule, so that every check is known to be able to fail. `tests/tree.rs` runs all of them over the
//! working tree; that is the only place that touches the disk.
//!
//! | module | rule |
//! |---|---|
//! | [`layers`] | crates depend downwards only; every foreign crate has a reason |
//! | [`sources`] | where `unsafe` may stand, module prose, lengths, names, left-over marks, purity |
//! | [`language`] | doc comments that stand alone, words with one meaning, tables of modules, decisions, subjects of commits |
//! | [`lexer`] | Rust without comments and strings, for the rules |
//! | [`tests_named`] | names of tests: golden cases, numbered statements |
//! | [`links`] | relative links in Markdown lead somewhere |
//! | [`remaining`] | numbers that can only fall: types that are no nouns, comments without an actor, flags |
//! | [`tree`] | the files of the working tree |
//! | [`walk`] | the walk of a byte names functions that exist |
//!
//! Invariants: no dependency on any crate; nothing depends on this one; a complaint names file and
//! line, and says what would be right.

#![forbid(unsafe_code)]

use std::fmt;

pub mod language;
pub mod layers;
pub mod lexer;
pub mod links;
pub mod remaining;
pub mod sources;
pub mod tests_named;
pub mod tree;
pub mod walk;

/// One broken rule: where, and what would be right.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Complaint {
    /// Path relative to the root of the repository, with `/` between its parts.
    pub path: String,
    /// Line, counted from 1; 0 when the complaint is about the file as a whole.
    pub line: usize,
    /// What is wrong and what would be right.
    pub what: String,
}

impl Complaint {
    /// A complaint about one line, counted from 1.
    pub fn at(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line,
            what: what.into(),
        }
    }

    /// A complaint about a whole file.
    pub fn about(path: &str, what: impl Into<String>) -> Self {
        Self::at(path, 0, what)
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line == 0 {
            write!(f, "{}: {}", self.path, self.what)
        } else {
            write!(f, "{}:{}: {}", self.path, self.line, self.what)
        }
    }
}

/// One text file of the repository.
#[derive(Debug, Clone)]
pub struct File {
    /// Path relative to the root, with `/` between its parts.
    pub path: String,
    /// Its content.
    pub text: String,
}

impl File {
    /// A file from its two parts.
    pub fn new(path: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            text: text.into(),
        }
    }

    /// The last part of the path.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// Whether the path ends in `.extension`.
    pub fn has_extension(&self, extension: &str) -> bool {
        self.name()
            .rsplit_once('.')
            .is_some_and(|(_, e)| e == extension)
    }

    /// The member of the workspace the file belongs to: `crates/falls` for `crates/falls/src/lib.rs`.
    pub fn member(&self) -> Option<&str> {
        let mut slashes = self.path.match_indices('/').map(|(i, _)| i);
        let (_, end) = (slashes.next()?, slashes.next()?);
        let member = &self.path[..end];
        ["bindings/", "bins/", "crates/"]
            .iter()
            .any(|folder| member.starts_with(folder))
            .then_some(member)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaint_names_file_and_line() {
        assert_eq!(Complaint::at("a/b.rs", 7, "no").to_string(), "a/b.rs:7: no");
        assert_eq!(Complaint::about("a/b.rs", "no").to_string(), "a/b.rs: no");
    }

    #[test]
    fn file_knows_its_member() {
        let member = |path: &str| File::new(path, "").member().map(str::to_owned);
        assert_eq!(
            member("crates/falls/src/lib.rs").as_deref(),
            Some("crates/falls")
        );
        assert_eq!(
            member("bins/pario-cli/src/main.rs").as_deref(),
            Some("bins/pario-cli")
        );
        assert_eq!(member("docs/adr/0001.md"), None);
        assert_eq!(member("Makefile"), None);
    }
}
