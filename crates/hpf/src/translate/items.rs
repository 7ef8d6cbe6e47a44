//! What stands in the list of a statement: distributed arrays and parts of them, which become a call each with their directives, and
//! other items, which all processes have alike. What becomes of whole statements is decided in the module above.

use super::{Calls, Outcome, Work};
use crate::Note;
use crate::control::{Argument, Io, Item, Verb};
use crate::scopes::{is_name, leading_name};
use crate::sections::{self, Section};
use crate::source::place;

/// An item as calls take it.
enum ItemKind {
    Distributed(String),
    /// What all processes have alike.
    Same(String),
}

/// Units that are the terminal from the beginning, by number.
const TERMINAL: [&str; 3] = ["0", "5", "6"];

impl Work<'_> {
    /// The distributed array that an item is, or is a part of.
    pub(super) fn distributed_in<'t>(&self, index: usize, item: &'t str) -> Option<&'t str> {
        let is_part = is_name(item) || Section::read(item).is_some() || sections::is_loop(item);
        let mut names = sections::names(item).into_iter();
        names.find(|name| is_part && is_name(name) && self.home_of(index, name).is_some())
    }

    /// Whether the statement is on no file: the terminal, or a variable of the program.
    pub(super) fn stays_here(&self, index: usize, io: &Io) -> bool {
        let Some(unit) = io.unit() else {
            return io.verb == Verb::Print;
        };
        let is_terminal = self.is_terminal(index, unit);
        is_terminal && io.verb == Verb::Write || self.is_internal(index, unit)
    }

    fn is_terminal(&self, index: usize, unit: &Argument) -> bool {
        let word = unit.value.to_ascii_lowercase();
        let is_named = ["*", "output_unit", "error_unit"].contains(&&word[..]);
        let key = self.key(index, &unit.value);
        is_named || (TERMINAL.contains(&&key.1[..]) && !self.opened.contains(&key))
    }

    /// Whether a unit is a text of the program.
    fn is_internal(&self, index: usize, unit: &Argument) -> bool {
        let name = leading_name(&unit.value).to_ascii_lowercase();
        let declared = self.scopes.declaration(self.scopes.of[index], &name);
        unit.value.starts_with(['\'', '"']) || declared.is_some_and(|(_, d)| d.is_character)
    }

    /// What should be known of a statement that stays.
    pub(super) fn note(&self, index: usize, io: &Io) -> Option<Note> {
        let is_shown = match io.verb {
            Verb::Print => true,
            Verb::Write => io.unit().is_some_and(|unit| self.is_terminal(index, unit)),
            _ => false,
        };
        if !is_shown {
            return None;
        }
        let name = |item: &Item| self.distributed_in(index, &item.value).map(str::to_owned);
        let (name, at) = io.items.iter().find_map(|i| name(i).map(|n| (n, i.at)))?;
        let (line, character) = place(self.text, at);
        let message = format!(
            "each process prints what it has of the distributed array {name}, not all of it"
        );
        Some(Note {
            line,
            character,
            message,
        })
    }

    /// An item as calls take it.
    fn moved(&self, index: usize, item: &Item) -> Outcome<ItemKind> {
        let refuse = |text: &str| self.error(item.at, text);
        if let Some(home) = self.array_of(index, &item.value) {
            return self
                .described(&item.value, home, item.at)
                .map(ItemKind::Distributed);
        }
        let section = match sections::is_loop(&item.value) {
            true => Some(Section::of_loop(&item.value).map_err(refuse)?),
            false => Section::read(&item.value),
        };
        let home = section
            .as_ref()
            .and_then(|section| self.array_of(index, &section.name));
        if let (Some(section), Some(home)) = (&section, home) {
            return match section.is_whole() {
                true => self.described(&section.name, home, item.at),
                false => self.described_part(&section.clone().into_array(), home, item.at),
            }
            .map(ItemKind::Distributed);
        }
        if let Some(name) = self.distributed_outside(index, &item.value) {
            let text = format!(
                "an expression of the distributed array {name} is not offered; read or write the array, or a part of it"
            );
            return Err(self.error(item.at, text));
        }
        Ok(ItemKind::Same(match section {
            Some(section) if sections::is_loop(&item.value) => section.text(),
            _ => item.value.clone(),
        }))
    }

    /// A distributed array in an expression that is not an argument of a function.
    pub(super) fn distributed_outside(&self, index: usize, expression: &str) -> Option<String> {
        let mut quote = None;
        // Whether each of the brackets that are open has arguments.
        let mut open: Vec<bool> = Vec::new();
        let mut word = String::new();
        for c in expression.chars().chain([' ']) {
            match quote {
                Some(q) => {
                    quote = quote.filter(|_| c != q);
                    continue;
                }
                None if c == '\'' || c == '"' => quote = Some(c),
                None => {}
            }
            if c.is_ascii_alphanumeric() || c == '_' || c == '%' {
                word.push(c);
                continue;
            }
            // What follows a `%` is a component, whatever its name.
            let name = word.split('%').next().unwrap_or("");
            let is_argument = open.contains(&true);
            if is_name(name) && !is_argument && self.home_of(index, name).is_some() {
                return Some(name.to_owned());
            }
            match c {
                '(' => open.push(!word.is_empty()),
                ')' => drop(open.pop()),
                _ => {}
            }
            word.clear();
        }
        None
    }

    /// READ or WRITE.
    pub(super) fn moves(&self, index: usize, io: &Io) -> Outcome<Calls> {
        self.check_arguments(io, &["rec", "pos", "end"])?;
        let verb = if io.verb == Verb::Read {
            "read"
        } else {
            "write"
        };
        if io.items.is_empty() {
            let text = format!(
                "{} without a list skips a record, and files of distributed arrays have none",
                io.verb.name()
            );
            return Err(self.error(io.at, text));
        }
        let unit = &self.unit_of(io)?.value;
        let mut calls = self.outcome(io, io.items.len());
        let position = self.passed(io, &["rec", "pos"]);
        for (number, item) in io.items.iter().enumerate() {
            let (kind, what) = match self.moved(index, item)? {
                ItemKind::Distributed(described) => ("", described),
                ItemKind::Same(expression) => ("_same", expression),
            };
            let mut arguments = vec![unit.clone(), what];
            if number == 0 {
                arguments.extend(position.iter().cloned());
            }
            arguments.extend(calls.outcome_arguments());
            let call = format!("call pario_hpf_{verb}{kind}({})", arguments.join(", "));
            let call = match (&calls.status, number) {
                (Some(status), 1..) => format!("if ({status} == 0) {call}"),
                _ => call,
            };
            calls.lines.push(call);
        }
        Ok(calls)
    }
}
