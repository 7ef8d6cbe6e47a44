//! How calls are written into a program: lines that are not too long, blanks and labels as they were, and the module that the calls
//! are of. What is written is decided in the module above.

use super::{Calls, Edit, Outcome, Work};
use crate::control::Io;
use crate::source::{Form, place};

/// Most characters of a line that is written, in free and in fixed form.
const WIDTH_FREE: usize = 100;
const WIDTH_FIXED: usize = 64;

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
        if let Some(own) = label
            .clone()
            .filter(|l| lines.len() > 1 && self.repeated.contains(l))
        {
            // The last statement of a loop: the label goes behind all of them.
            let jumps = self
                .statements
                .iter()
                .any(|s| s.text().contains(&format!("goto{own}")));
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

/// A statement on as many lines as it takes.
pub(super) fn wrapped(line: &str, indent: &str, form: Form) -> String {
    let (width, joint) = match form {
        Form::Free => (WIDTH_FREE, format!(" &\n{indent}    ")),
        Form::Fixed => (WIDTH_FIXED, "\n     &".to_owned()),
    };
    let start = match form {
        Form::Free => indent.len() + 4,
        Form::Fixed => 6,
    };
    let mut text = String::new();
    let (mut column, mut quote) = (indent.len(), None);
    let mut letters = line.chars().peekable();
    while let Some(c) = letters.next() {
        text.push(c);
        column += 1;
        let was_quoted = quote.is_some();
        match quote {
            Some(q) if c == q => quote = None,
            None if c == '\'' || c == '"' => quote = Some(c),
            _ => {}
        }
        let is_last = letters.peek().is_none();
        if let (Some(q), true) = (quote, was_quoted) {
            // A long literal in parts.
            if column + 6 >= width {
                text += &format!("{q} //{joint}{q}");
                column = start + 1;
            }
        } else if quote.is_none() && !is_last && c == ',' && column + 24 >= width {
            if letters.peek() == Some(&' ') {
                letters.next();
            }
            text += &joint;
            column = start;
        }
    }
    text
}
