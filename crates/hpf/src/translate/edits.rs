//! How calls are written into a program: lines that are not too long, blanks and labels as they were, and the module that the calls
//! are of. What is written is decided in the module above.

use super::{Calls, Edit, Outcome, Work};
use crate::control::Io;
use crate::source::{Form, place};

/// Most characters of a line that is written, in free and in fixed form.
const WIDTH_FREE: usize = 100;
const WIDTH_FIXED: usize = 72;

impl Work<'_> {
    /// Blanks before the statement that begins at a byte.
    pub(super) fn indent(&self, at: usize) -> String {
        let start = self.text[..at].rfind('\n').map_or(0, |n| n + 1);
        let blanks = self.text[start..].chars().take_while(|c| *c == ' ').count();
        match self.options.form {
            Form::Free => " ".repeat(blanks),
            Form::Fixed => " ".repeat(blanks.max(6)),
        }
    }

    /// `use pario_hpf`, behind the statement that begins a unit, or before its first.
    pub(super) fn use_statement(&self, unit: usize) -> Edit {
        let unit = &self.scopes.units[unit];
        match unit.header {
            Some(header) => {
                let at = self.statements[header].span.end;
                let indent = self.indent(self.statements[header].span.start);
                let more = if self.options.form == Form::Free {
                    "  "
                } else {
                    ""
                };
                Edit {
                    span: at..at,
                    text: format!("\n{indent}{more}use pario_hpf"),
                }
            }
            None => {
                let at = self.statements[unit.first].span.start;
                let line = self.text[..at].rfind('\n').map_or(0, |n| n + 1);
                let indent = self.indent(at);
                Edit {
                    span: line..line,
                    text: format!("{indent}use pario_hpf\n"),
                }
            }
        }
    }

    /// The statement replaced by calls.
    pub(super) fn edit(&self, index: usize, io: &Io, calls: &Calls) -> Outcome<Edit> {
        let statement = &self.statements[index];
        let mut lines = calls.lines.clone();
        lines.extend(calls.after.iter().cloned());
        if let Some(condition) = &io.condition {
            if lines.len() == 1 && !lines[0].starts_with("if ") {
                lines[0] = format!("{condition} {}", lines[0]);
            } else {
                lines.insert(0, format!("{condition} then"));
                lines.push("end if".into());
            }
        }
        let indent = self.indent(statement.span.start);
        let mut label = statement.label.clone();
        let unit = self.scopes.of[index];
        if let Some(own) = label
            .clone()
            .filter(|l| lines.len() > 1 && self.repeated.contains(&(unit, l.clone())))
        {
            // The last statement of a loop: the label goes behind all of them.
            let mut all = self.statements.iter().zip(&self.scopes.of);
            let jumps = all.any(|(s, of)| *of == unit && goes_to(&s.text(), &own));
            if jumps {
                let text = format!(
                    "ends a loop, becomes several statements, and GOTO {own} leads to it; end the loop with {own} CONTINUE"
                );
                return Err(self.error(io.at, text));
            }
            lines.push(format!("{own} continue"));
            label = None;
        }
        let mut text = String::new();
        for (number, line) in lines.iter().enumerate() {
            let is_end = number > 0
                && number + 1 == lines.len()
                && line.ends_with(" continue")
                && statement.label.is_some()
                && label.is_none();
            let line = wrapped(line, &indent, self.options.form);
            match (number, &label, self.options.form) {
                (0, Some(label), Form::Free) => text += &format!("{label} {line}"),
                (0, Some(label), Form::Fixed) => {
                    text += &format!(
                        "{label:<width$}{line}",
                        width = self.columns_left(statement.span.start)
                    )
                }
                (0, None, Form::Fixed) if statement.label.is_some() => {
                    text += &format!(
                        "{:width$}{line}",
                        "",
                        width = self.columns_left(statement.span.start)
                    )
                }
                (0, ..) => text += &line,
                _ if is_end && self.options.form == Form::Fixed => {
                    let (own, rest) = line.split_once(' ').unwrap_or(("", &line));
                    text += &format!("\n{own:<6}{rest}");
                }
                _ => text += &format!("\n{indent}{line}"),
            }
        }
        Ok(Edit {
            span: statement.span.clone(),
            text,
        })
    }

    /// Columns from a byte to column 7 of fixed form.
    pub(super) fn columns_left(&self, at: usize) -> usize {
        let (_, character) = place(self.text, at);
        7usize.saturating_sub(character)
    }
}

/// Whether a statement goes to a label.
fn goes_to(text: &str, label: &str) -> bool {
    let mut rest = text;
    while let Some(at) = rest.find("goto") {
        rest = &rest[at + "goto".len()..];
        let list = rest.strip_prefix('(').unwrap_or(rest);
        let end = list
            .find(|c: char| !c.is_ascii_digit() && c != ',')
            .unwrap_or(list.len());
        if list[..end].split(',').any(|one| one == label) {
            return true;
        }
    }
    false
}

/// A statement on as many lines as it takes.
pub(super) fn wrapped(line: &str, indent: &str, form: Form) -> String {
    let mut page = Page::new(indent, form);
    let mut rest = line;
    while !rest.is_empty() {
        let len = match rest.chars().next() {
            Some(quote @ ('\'' | '"')) => literal_len(rest, quote),
            _ => {
                let end = rest.find(['\'', '"', ',', '(', ' ']);
                let is_quote = end.is_some_and(|at| rest[at..].starts_with(['\'', '"']));
                end.map_or(rest.len(), |at| at + usize::from(!is_quote))
            }
        };
        match rest.starts_with(['\'', '"']) {
            true => page.literal(&rest[..len]),
            false => page.word(&rest[..len]),
        }
        rest = &rest[len..];
    }
    page.text
}

/// Bytes of the literal that a text begins with; quotes within it are doubled.
fn literal_len(text: &str, quote: char) -> usize {
    let mut letters = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = letters.next() {
        if c == quote && letters.next_if(|(_, next)| *next == quote).is_none() {
            return at + 1;
        }
    }
    text.len()
}

/// Lines that are being written.
struct Page {
    text: String,
    /// Characters of the last line.
    column: usize,
    /// Most characters of a line, without the mark that it goes on.
    width: usize,
    /// Characters before what stands in a line that goes on.
    start: usize,
    /// Between two lines, and within a word.
    joint: String,
    split: String,
}

impl Page {
    fn new(indent: &str, form: Form) -> Page {
        let (width, start, joint, split) = match form {
            Form::Free => (
                WIDTH_FREE,
                indent.len() + 4,
                format!(" &\n{indent}    "),
                format!("&\n{indent}   &"),
            ),
            Form::Fixed => (WIDTH_FIXED, 6, "\n     &".into(), "\n     &".into()),
        };
        Page {
            text: String::new(),
            column: indent.len(),
            // However deep the statement stands, something has room.
            width: width.max(start + 40 * usize::from(form == Form::Free)),
            start,
            joint,
            split,
        }
    }

    fn put(&mut self, text: &str) {
        self.text += text;
        self.column += text.chars().count();
    }

    fn next_line(&mut self) {
        self.text.truncate(self.text.trim_end_matches(' ').len());
        self.text += &self.joint;
        self.column = self.start;
    }

    /// A text that stays together if a line has room for it.
    fn word(&mut self, word: &str) {
        let len = word.trim_end_matches(' ').chars().count();
        if self.column + len > self.width && self.column > self.start {
            self.next_line();
        }
        if self.column == self.start && word == " " {
            return;
        }
        for c in word.chars() {
            if self.column >= self.width && c != ' ' {
                self.text += &self.split;
                self.column = self.start;
            }
            self.put(c.encode_utf8(&mut [0; 4]));
        }
    }

    /// A literal, in parts that are put together where a line has no room for it.
    fn literal(&mut self, literal: &str) {
        const JOINED: usize = "' //".len();
        let quote = &literal[..1];
        if self.column + literal.chars().count() <= self.width {
            return self.put(literal);
        }
        if self.width.saturating_sub(self.column) < 20 && self.column > self.start {
            self.next_line();
            return self.literal(literal);
        }
        let room = self.width.saturating_sub(self.column + 1 + JOINED).max(2);
        let mut letters: Vec<char> = literal.chars().skip(1).take(room).collect();
        // A doubled quote is one character.
        let quotes = letters.iter().rev().take_while(|c| quote.starts_with(**c));
        if quotes.count() % 2 == 1 {
            letters.pop();
        }
        let part: String = letters.into_iter().collect();
        let rest = format!("{quote}{}", &literal[1 + part.len()..]);
        self.put(&format!("{quote}{part}{quote} //"));
        self.next_line();
        if rest.len() > 2 {
            self.literal(&rest);
        } else {
            self.put(&rest);
        }
    }
}
