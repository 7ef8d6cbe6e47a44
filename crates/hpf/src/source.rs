//! Lines as statements, in fixed and in free form.
//!
//! Invariants
//! - Every character of a statement knows its byte of the text, so that a statement can be replaced and a mistake shown.
//! - Comments, labels and marks of continuation are in no statement.
//!
//! A line `!HPF$ ...` is a directive: a statement of its own kind. Left to others: what statements say.

use std::ops::Range;

use crate::HpfError;

/// How lines are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// Statements anywhere, `&` at the end of a line that goes on.
    #[default]
    Free,
    /// Labels in columns 1 to 5, a mark in column 6 of a line that goes on, statements in columns 7 to 72.
    Fixed,
}

/// What a statement is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Statement,
    Directive,
}

/// A character, and where it stands in the text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Letter {
    pub(crate) c: char,
    pub(crate) at: usize,
    /// Whether it is inside of quotes, which included.
    pub(crate) is_quoted: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Statement {
    pub(crate) kind: Kind,
    pub(crate) label: Option<String>,
    /// Without blanks, but for those in quotes and in directives.
    pub(crate) letters: Vec<Letter>,
    /// From the label, or the first character, to behind the last one.
    pub(crate) span: Range<usize>,
}

impl Statement {
    /// The characters, in small letters where they are not quoted.
    pub(crate) fn text(&self) -> String {
        let small = |l: &Letter| {
            if l.is_quoted {
                l.c
            } else {
                l.c.to_ascii_lowercase()
            }
        };
        self.letters.iter().map(small).collect()
    }
}

/// Line and character of a byte, from 1 on.
pub(crate) fn place(text: &str, at: usize) -> (usize, usize) {
    let before = &text[..at.min(text.len())];
    let line = before.matches('\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |n| n + 1);
    (line, before[start..].chars().count() + 1)
}

pub(crate) fn error(text: &str, at: usize, message: impl Into<String>) -> HpfError {
    let (line, character) = place(text, at);
    HpfError::new(text, line, character, message)
}

/// Lines with the byte they begin at, without their ends.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    text.split_inclusive('\n').map(move |line| {
        let start = at;
        at += line.len();
        (start, line.trim_end_matches(['\n', '\r']))
    })
}

/// Collects letters into statements.
struct Collector<'a> {
    text: &'a str,
    all: Vec<Statement>,
    now: Option<Statement>,
    quote: Option<char>,
}

impl Collector<'_> {
    fn finish(&mut self) {
        self.quote = None;
        if let Some(done) = self.now.take().filter(|s| !s.letters.is_empty()) {
            self.all.push(done);
        }
    }

    fn begin(&mut self, kind: Kind, label: Option<String>, at: usize) {
        self.finish();
        self.now = Some(Statement {
            kind,
            label,
            letters: Vec::new(),
            span: at..at,
        });
    }

    /// Takes a part of a line; where a comment or a mark of continuation ends it, and whether it was the latter.
    fn take(&mut self, start: usize, part: &str, form: Form) -> (usize, bool) {
        for (offset, c) in part.char_indices() {
            let at = start + offset;
            if let Some(quote) = self.quote {
                let is_mark =
                    form == Form::Free && c == '&' && part[offset + 1..].trim().is_empty();
                if is_mark {
                    return (at, true);
                }
                self.push(Letter {
                    c,
                    at,
                    is_quoted: true,
                });
                if c == quote {
                    self.quote = None;
                }
                continue;
            }
            match c {
                '!' => return (at, false),
                '&' if form == Form::Free => return (at, true),
                ';' => {
                    let kind = self.now.as_ref().map_or(Kind::Statement, |s| s.kind);
                    self.begin(kind, None, at + 1);
                }
                '\'' | '"' => {
                    self.quote = Some(c);
                    self.push(Letter {
                        c,
                        at,
                        is_quoted: true,
                    });
                }
                c if c.is_whitespace() => {
                    let is_directive = self
                        .now
                        .as_ref()
                        .is_some_and(|s| s.kind == Kind::Directive && !s.letters.is_empty());
                    if is_directive {
                        self.push(Letter {
                            c: ' ',
                            at,
                            is_quoted: false,
                        });
                    }
                }
                c => self.push(Letter {
                    c,
                    at,
                    is_quoted: false,
                }),
            }
        }
        (start + part.len(), false)
    }

    fn push(&mut self, letter: Letter) {
        let (c, at) = (letter.c, letter.at);
        let Some(now) = &mut self.now else { return };
        // A label of free form: digits before the statement.
        if now.letters.is_empty() && now.label.is_none() {
            now.span.start = at;
        }
        now.letters.push(letter);
        now.span.end = at + c.len_utf8();
    }

    /// Digits at the beginning of statements of free form are labels, if something that is no digit follows.
    fn label_free(&mut self) {
        for statement in &mut self.all {
            let digits = statement
                .letters
                .iter()
                .take_while(|l| l.c.is_ascii_digit())
                .count();
            if statement.kind == Kind::Statement
                && (1..=5).contains(&digits)
                && digits < statement.letters.len()
            {
                let label: String = statement.letters.drain(..digits).map(|l| l.c).collect();
                statement.label = Some(label);
            }
        }
    }
}

/// Whether a line begins with the mark of a directive: its length, with blanks before it.
fn sentinel(line: &str, form: Form) -> Option<usize> {
    let blanks = match form {
        Form::Free => line.len() - line.trim_start().len(),
        Form::Fixed => 0,
    };
    let rest = line.get(blanks..)?;
    let head = rest.get(..5)?;
    let is_mark = match form {
        Form::Free => head.starts_with('!'),
        Form::Fixed => head.starts_with(['!', 'c', 'C', '*']),
    };
    (is_mark && head[1..].eq_ignore_ascii_case("hpf$")).then_some(blanks + 5)
}

/// All statements of a text.
pub(crate) fn statements(text: &str, form: Form) -> Result<Vec<Statement>, HpfError> {
    let mut all = Collector {
        text,
        all: Vec::new(),
        now: None,
        quote: None,
    };
    match form {
        Form::Free => free(&mut all),
        Form::Fixed => fixed(&mut all),
    }
    all.finish();
    if form == Form::Free {
        all.label_free();
    }
    Ok(all.all)
}

fn free(all: &mut Collector<'_>) {
    let mut goes_on = None;
    for (start, line) in lines(all.text) {
        let body = line.trim_start();
        let first = start + line.len() - body.len();
        let directive = sentinel(line, Form::Free);
        if body.is_empty()
            || body.starts_with('#')
            || (body.starts_with('!') && directive.is_none())
        {
            continue;
        }
        let kind = if directive.is_some() {
            Kind::Directive
        } else {
            Kind::Statement
        };
        let mut from = directive.map_or(first, |len| start + len);
        let part = &line[from - start..];
        if goes_on == Some(kind) {
            // The line may begin with the mark as well.
            let inner = part.trim_start();
            if let Some(rest) = inner.strip_prefix('&') {
                from = start + line.len() - rest.len();
            }
        } else {
            all.begin(kind, None, from);
        }
        let (_, is_continued) = all.take(from, &line[from - start..], Form::Free);
        goes_on = is_continued.then_some(kind);
        if !is_continued {
            all.finish();
        }
    }
}

fn fixed(all: &mut Collector<'_>) {
    for (start, line) in lines(all.text) {
        let directive = sentinel(line, Form::Fixed);
        let is_comment = line.starts_with(['c', 'C', '*', '!', 'd', 'D', '#']);
        if line.trim().is_empty()
            || (is_comment && directive.is_none())
            || line.trim_start().starts_with('!') && directive.is_none()
        {
            continue;
        }
        let kind = if directive.is_some() {
            Kind::Directive
        } else {
            Kind::Statement
        };
        // A tab stands for columns 1 to 6.
        let tab = line.find('\t').filter(|at| *at < 6 && directive.is_none());
        let body = tab.map_or(6, |at| at + 1).min(line.len());
        let body = (body..=line.len())
            .find(|at| line.is_char_boundary(*at))
            .unwrap_or(line.len());
        let mark = line.get(5..6).unwrap_or(" ");
        let is_next = tab.is_none() && mark != " " && mark != "0";
        let end = match tab {
            Some(_) => line.len(),
            None => line.char_indices().nth(72).map_or(line.len(), |(at, _)| at),
        };
        let is_same = all.now.as_ref().is_some_and(|s| s.kind == kind);
        if !(is_next && is_same) {
            let label = line.get(..tab.unwrap_or(5)).unwrap_or(line).trim();
            let is_label = kind == Kind::Statement
                && !label.is_empty()
                && label.chars().all(|c| c.is_ascii_digit());
            let label = is_label.then(|| label.to_owned());
            let first = line.len() - line.trim_start().len();
            let at = if label.is_some() {
                start + first
            } else {
                start + body
            };
            all.begin(kind, label, at);
        }
        if body < end {
            all.take(start + body, &line[body..end], Form::Fixed);
        }
    }
}
