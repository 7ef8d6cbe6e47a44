//! Statements on units with distributed arrays, into calls.
//!
//! Invariants: a statement is replaced as a whole or not at all; what is not replaced is not touched, byte for byte.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use layout::Directives;

use crate::control::{Argument, Io, Item, Verb};
use crate::scopes::{Scopes, is_name};
use crate::sections::Section;
use crate::source::{Kind, Statement, error, place, statements};
use crate::units::{UnitKey, Units};
use crate::{Arrays, Hints, HpfError, Options, TranslatedStatement, Translation};

mod edits;
mod items;
use edits::wrapped;

type Outcome<T> = Result<T, HpfError>;

/// Translates a program.
pub(crate) fn program(text: &str, options: &Options) -> Outcome<Translation> {
    let statements = statements(text, options.form)?;
    let scopes = Scopes::of(&statements);
    let mut work = Work {
        text,
        options,
        statements: &statements,
        scopes: &scopes,
        ios: Vec::new(),
        units: Units::default(),
        opened: BTreeSet::new(),
        ours: BTreeSet::new(),
        files: BTreeSet::new(),
        repeated: BTreeSet::new(),
    };
    work.check_directives()?;
    work.find_units();
    work.translate()
}

struct Work<'a> {
    text: &'a str,
    options: &'a Options,
    statements: &'a [Statement],
    scopes: &'a Scopes,
    /// Input and output, by statement.
    ios: Vec<(usize, Io)>,
    units: Units,
    /// Units that are opened.
    opened: BTreeSet<UnitKey>,
    /// Units with distributed arrays.
    ours: BTreeSet<UnitKey>,
    /// Names of files that are opened on them, as they are written.
    files: BTreeSet<String>,
    /// Labels that end loops, each in its program unit.
    repeated: BTreeSet<(usize, String)>,
}

/// A piece of the program and what it becomes.
struct Edit {
    span: Range<usize>,
    text: String,
}

impl Work<'_> {
    fn error(&self, at: usize, message: impl Into<String>) -> HpfError {
        error(self.text, at, message)
    }

    /// Reads the directives of each unit, so that mistakes are told at their place.
    fn check_directives(&self) -> Outcome<()> {
        for (index, unit) in self.scopes.units.iter().enumerate() {
            if unit.directives.is_empty() {
                continue;
            }
            // A text of the same lines and characters, with nothing but these directives, and numbers for what is not known yet.
            let mut page: Vec<Vec<char>> = self
                .text
                .split('\n')
                .map(|line| vec![' '; line.chars().count()])
                .collect();
            for directive in &unit.directives {
                let statement = &self.statements[directive.index];
                let mut last: Option<usize> = None;
                for letter in &statement.letters {
                    let (line, character) = place(self.text, letter.at);
                    if let Some(before) = last.filter(|before| *before != line) {
                        page[before - 1].extend([' ', '&']);
                    }
                    last = Some(line);
                    page[line - 1][character - 1] = letter.c;
                }
                for values in directive.value_letters() {
                    for (i, letter) in statement.letters[values.clone()].iter().enumerate() {
                        let (line, character) = place(self.text, letter.at);
                        page[line - 1][character - 1] = if i == 0 { '1' } else { ' ' };
                    }
                }
            }
            let page: Vec<String> = page.into_iter().map(String::from_iter).collect();
            let read = Directives::parse(&page.join("\n"));
            let read =
                read.map_err(|e| HpfError::new(self.text, e.line(), e.character(), e.message()))?;
            self.check_layouts(index, &read)?;
        }
        Ok(())
    }

    /// Makes layouts where everything is known: arrays whose declared extents are numbers, by directives without values.
    fn check_layouts(&self, unit: usize, directives: &Directives) -> Outcome<()> {
        let scope = &self.scopes.units[unit];
        if self.options.arrays == Arrays::Local || scope.directives.iter().any(|d| d.has_values()) {
            return Ok(());
        }
        for name in directives.arrays() {
            let declared = scope.declared.get(&name.to_lowercase());
            let Some(extents) = declared.and_then(|d| d.extents.clone()) else {
                continue;
            };
            // Any number of processes will do where there is no ONTO.
            if let Err(e) = directives.layout(name, &extents, Some(1)) {
                let is_elsewhere = e.message().contains("are not known")
                    || e.message().contains("not declared")
                    || e.message().contains("is not distributed");
                if !is_elsewhere {
                    return Err(HpfError::new(
                        self.text,
                        e.line(),
                        e.character(),
                        e.message(),
                    ));
                }
            }
        }
        Ok(())
    }
}

impl Work<'_> {
    fn key(&self, index: usize, unit: &str) -> UnitKey {
        self.units.key(self.scopes, self.scopes.of[index], unit)
    }

    /// The unit of scope in whose directives an array is, as a statement sees it.
    fn home_of(&self, index: usize, name: &str) -> Option<usize> {
        let name = name.to_ascii_lowercase();
        let seen = self.scopes.seen_by(self.scopes.of[index]);
        seen.into_iter().find(|unit| {
            let directives = &self.scopes.units[*unit].directives;
            directives.iter().any(|d| {
                d.is_about(&name) && (d.words.contains("distribute") || d.words.contains("align"))
            })
        })
    }

    /// The distributed array that an item is, whole.
    fn array_of(&self, index: usize, item: &str) -> Option<usize> {
        if !is_name(item) {
            return None;
        }
        self.home_of(index, item)
    }

    /// Finds all input and output, and the units that are ours.
    fn find_units(&mut self) {
        for (index, statement) in self.statements.iter().enumerate() {
            if statement.kind != Kind::Statement {
                continue;
            }
            let text = statement.text();
            if let Some(rest) = text.strip_prefix("do") {
                let label: String = rest.chars().take_while(char::is_ascii_digit).collect();
                if !label.is_empty() {
                    self.repeated.insert((self.scopes.of[index], label));
                }
            }
            let Some(io) = Io::read(statement) else {
                continue;
            };
            self.ios.push((index, io));
        }
        self.units = Units::follow(self.statements, self.scopes, &self.ios);
        for (index, io) in &self.ios {
            let moves = matches!(io.verb, Verb::Read | Verb::Write) && io.format().is_none();
            let has_array = io.items.iter().any(|item| {
                self.distributed_in(*index, &item.value).is_some()
                    || self.distributed_outside(*index, &item.value).is_some()
            });
            let Some(unit) = io.unit() else { continue };
            let key = self.key(*index, &unit.value);
            if io.verb == Verb::Open {
                self.opened.insert(key.clone());
            }
            if moves && has_array && unit.value != "*" {
                self.ours.insert(key);
            }
        }
        for (index, io) in &self.ios {
            if let (Verb::Open, Some(file)) = (io.verb, io.argument("file", None))
                && self.is_ours(*index, io)
            {
                self.files.insert(file.value.clone());
            }
        }
    }

    fn is_ours(&self, index: usize, io: &Io) -> bool {
        io.unit()
            .is_some_and(|unit| self.ours.contains(&self.key(index, &unit.value)))
    }

    fn translate(&self) -> Outcome<Translation> {
        let mut edits = Vec::new();
        let (mut done, mut notes) = (Vec::new(), Vec::new());
        let mut users = BTreeSet::new();
        for (index, io) in &self.ios {
            notes.extend(self.note(*index, io));
            let calls = match self.calls(*index, io)? {
                Some(calls) => calls,
                None => continue,
            };
            users.insert(self.scopes.outermost(self.scopes.of[*index]));
            edits.push(self.edit(*index, io, &calls)?);
            let (line, character) = place(self.text, io.at);
            let arrays = io
                .items
                .iter()
                .filter_map(|item| self.distributed_in(*index, &item.value));
            done.push(TranslatedStatement {
                line,
                character,
                statement: io.verb.name(),
                unit: io.unit().map_or(String::new(), |u| u.value.clone()),
                arrays: arrays.map(str::to_owned).collect(),
            });
        }
        if self.options.hints == Hints::Written {
            edits.extend(self.branch_hints()?);
        }
        for unit in users {
            edits.push(self.use_statement(unit));
        }
        edits.sort_by_key(|edit| (edit.span.start, edit.span.end));
        let mut text = String::with_capacity(self.text.len());
        let mut at = 0;
        for edit in edits {
            text += &self.text[at..edit.span.start];
            text += &edit.text;
            at = edit.span.end;
        }
        text += &self.text[at..];
        Ok(Translation {
            text,
            statements: done,
            notes,
        })
    }

    /// The calls that a statement becomes; none if it stays.
    fn calls(&self, index: usize, io: &Io) -> Outcome<Option<Calls>> {
        let is_ours = self.is_ours(index, io);
        if let Some(format) = io.format() {
            if !self.stays_here(index, io) {
                let name = |item: &Item| self.distributed_in(index, &item.value).map(str::to_owned);
                let array = io.items.iter().find_map(|i| name(i).map(|n| (n, i.at)));
                if let Some((name, at)) = array {
                    let text = format!(
                        "formatted input and output of the distributed array {name} is not offered; leave the format out, with FORM='UNFORMATTED'"
                    );
                    return Err(self.error(at, text));
                }
            }
            if is_ours {
                let text = "formatted input and output of a unit with distributed arrays is not offered; leave the format out";
                return Err(self.error(format.at, text));
            }
            return Ok(None);
        }
        if io.verb == Verb::Inquire && io.unit().is_none() {
            let is_our_file = io
                .argument("file", None)
                .is_some_and(|file| self.files.contains(&file.value));
            return if is_our_file {
                self.inquire(io).map(Some)
            } else {
                Ok(None)
            };
        }
        if !is_ours {
            return Ok(None);
        }
        match io.verb {
            Verb::Open => self.open(index, io),
            Verb::Read | Verb::Write => self.moves(index, io),
            Verb::Close => self.plain(io, "pario_hpf_close", &["status"]),
            Verb::Rewind => self.plain(io, "pario_hpf_rewind", &[]),
            Verb::Inquire => self.inquire(io),
            Verb::Endfile => self.plain(io, "pario_hpf_endfile", &[]),
            Verb::Flush => self.plain(io, "pario_hpf_flush", &[]),
            Verb::Backspace | Verb::Print => {
                let text = format!(
                    "{} of a unit with distributed arrays is not offered: files have no records",
                    io.verb.name()
                );
                Err(self.error(io.at, text))
            }
            Verb::Wait => {
                let text = "WAIT of a unit with distributed arrays is not offered: statements end when the data is there";
                Err(self.error(io.at, text))
            }
        }
        .map(Some)
    }

    /// Where the outcome of so many calls goes, and what follows it.
    fn outcome(&self, io: &Io, count: usize) -> Calls {
        let value = |key: &str| io.argument(key, None).map(|a| a.value.clone());
        let (end, err) = (value("end"), value("err"));
        let has_targets = end.is_some() || err.is_some();
        let status = value("iostat").or_else(|| {
            (has_targets || (count > 1 && value("iomsg").is_some()))
                .then(|| "pario_hpf_status".to_owned())
        });
        let mut calls = Calls {
            status: status.clone(),
            message: value("iomsg"),
            ..Calls::default()
        };
        let Some(status) = status else { return calls };
        if let Some(label) = &end {
            calls
                .after
                .push(format!("if (is_iostat_end({status})) goto {label}"));
        }
        if let Some(label) = &err {
            calls.after.push(format!("if ({status} > 0) goto {label}"));
        }
        if value("iostat").is_none() {
            if end.is_none() {
                calls.after.push(format!(
                    "if (is_iostat_end({status})) error stop 'end of file'"
                ));
            }
            if err.is_none() {
                calls.after.push(format!(
                    "if ({status} > 0) error stop 'input or output failed'"
                ));
            }
        }
        calls
    }

    /// Refuses what a call does not have.
    fn check_arguments(&self, io: &Io, known: &[&str]) -> Outcome<()> {
        for argument in &io.arguments {
            let Some(key) = &argument.key else { continue };
            let is_common = ["unit", "iostat", "iomsg", "err"].contains(&key.as_str());
            if !is_common && !known.contains(&key.as_str()) {
                let text = format!(
                    "{}= is not offered in {} of a unit with distributed arrays",
                    key.to_uppercase(),
                    io.verb.name()
                );
                return Err(self.error(argument.at, text));
            }
        }
        Ok(())
    }

    /// Arguments as those of a call, by their names.
    fn passed(&self, io: &Io, known: &[&str]) -> Vec<String> {
        let pass = |key: &&str| io.argument(key, None).map(|a| format!("{key}={}", a.value));
        known.iter().filter_map(pass).collect()
    }

    fn unit_of<'i>(&self, io: &'i Io) -> Outcome<&'i Argument> {
        io.unit().ok_or_else(|| self.error(io.at, "has no unit"))
    }

    /// A statement that is one call with the unit first.
    fn plain(&self, io: &Io, name: &str, known: &[&str]) -> Outcome<Calls> {
        self.check_arguments(io, known)?;
        let mut calls = self.outcome(io, 1);
        let mut arguments = vec![self.unit_of(io)?.value.clone()];
        arguments.extend(self.passed(io, known));
        arguments.extend(calls.outcome_arguments());
        calls
            .lines
            .push(format!("call {name}({})", arguments.join(", ")));
        Ok(calls)
    }

    fn inquire(&self, io: &Io) -> Outcome<Calls> {
        let known = [
            "file",
            "exist",
            "opened",
            "number",
            "named",
            "name",
            "access",
            "sequential",
            "direct",
            "stream",
            "form",
            "formatted",
            "unformatted",
            "recl",
            "nextrec",
            "position",
            "pos",
            "action",
            "read",
            "write",
            "readwrite",
            "size",
        ];
        self.check_arguments(io, &known)?;
        let mut calls = self.outcome(io, 1);
        let mut arguments: Vec<String> = io
            .unit()
            .map(|unit| format!("unit={}", unit.value))
            .into_iter()
            .collect();
        arguments.extend(self.passed(io, &known));
        arguments.extend(calls.outcome_arguments());
        calls
            .lines
            .push(format!("call pario_hpf_inquire({})", arguments.join(", ")));
        Ok(calls)
    }

    fn open(&self, index: usize, io: &Io) -> Outcome<Calls> {
        let known = [
            "newunit", "file", "status", "action", "access", "form", "position", "recl",
        ];
        self.check_arguments(io, &known)?;
        if let Some(form) = io.argument("form", None) {
            let word = form.value.to_ascii_lowercase();
            if word.starts_with(['\'', '"']) && !word.contains("unformatted") {
                let text = "formatted input and output of a unit with distributed arrays is not offered; give FORM='UNFORMATTED'";
                return Err(self.error(form.at, text));
            }
        }
        let mut calls = self.outcome(io, 1);
        let unit = self.unit_of(io)?;
        let mut arguments: Vec<String> = match unit.key.as_deref() {
            Some("newunit") => Vec::new(),
            _ => vec![format!("unit={}", unit.value)],
        };
        arguments.extend(self.passed(io, &known));
        if self.options.hints == Hints::Written {
            let (style, first) = self.use_of(index, unit);
            if let Some(style) = style {
                arguments.push(format!("hints='access_style={style}'"));
            }
            if let Some((name, home)) = first {
                calls.lines.push(format!(
                    "call pario_hpf_expect({})",
                    self.described(&name, home, io.at)?
                ));
            }
        }
        arguments.extend(calls.outcome_arguments());
        calls
            .lines
            .push(format!("call pario_hpf_open({})", arguments.join(", ")));
        Ok(calls)
    }

    /// How a unit is used in this file, and the first array that is written there, if its shape is there from the beginning and the
    /// statement that opens it sees it.
    fn use_of(
        &self,
        index: usize,
        unit: &Argument,
    ) -> (Option<&'static str>, Option<(String, usize)>) {
        let key = self.key(index, &unit.value);
        let (mut reads, mut writes, mut first) = (false, false, None);
        for (at, io) in &self.ios {
            let Some(other) = io.unit() else { continue };
            if self.key(*at, &other.value) != key {
                continue;
            }
            reads |= io.verb == Verb::Read;
            writes |= io.verb == Verb::Write;
            if io.verb == Verb::Write && first.is_none() {
                first = io.items.first().map(|item| item.value.clone());
            }
        }
        let style = match (reads, writes) {
            (true, false) => Some("read_mostly,sequential"),
            (false, true) => Some("write_mostly,sequential"),
            (true, true) => Some("sequential"),
            (false, false) => None,
        };
        let is_there = |name: &String| {
            let home = self.array_of(index, name)?;
            let is_deferred = self.scopes.seen_by(self.scopes.of[index]).iter().any(|u| {
                self.scopes.units[*u]
                    .deferred
                    .contains(&name.to_ascii_lowercase())
            });
            (!is_deferred).then_some(home)
        };
        let first = first.and_then(|name| is_there(&name).map(|home| (name, home)));
        (style, first)
    }

    /// Array, shape, name, directives and mode, as the calls take them.
    fn described(&self, name: &str, home: usize, at: usize) -> Outcome<String> {
        let (extents, text, mode) = self.mapping(name, home, at)?;
        let upper = name.to_ascii_uppercase();
        Ok(format!(
            "{name}, {extents}, '{upper}', {}, {mode}",
            literal(&text)
        ))
    }

    /// A part of an array as the calls take it: an array of its own, which is aligned with the whole.
    fn described_part(&self, part: &Section, home: usize, at: usize) -> Outcome<String> {
        let (name, small) = (&part.name, part.name.to_ascii_lowercase());
        if self.options.arrays == Arrays::Local {
            let text = format!(
                "a part of the distributed array {name} is not offered where declarations are of local parts; read or write all of it"
            );
            return Err(self.error(at, text));
        }
        let (_, mut text, mode) = self.mapping(name, home, at)?;
        let bounds = format!(
            "dimension {small}(' // pario_hpf_bounds(lbound({small}), ubound({small})) // ')"
        );
        if !text.contains(&bounds) {
            text.push(bounds);
        }
        text.push(part.alignment());
        let own = part.own_name().to_ascii_uppercase();
        let array = part.text();
        Ok(format!(
            "{array}, shape({array}), '{own}', {}, {mode}",
            literal(&text)
        ))
    }

    /// The shape of an array, its directives as insides of literals, and the mode.
    fn mapping(
        &self,
        name: &str,
        home: usize,
        at: usize,
    ) -> Outcome<(String, Vec<String>, &'static str)> {
        let small = name.to_ascii_lowercase();
        // Directives of the array, of what it is aligned with, and of their processors.
        let mut wanted: Vec<String> = vec![small.clone()];
        let mut chosen: BTreeMap<usize, String> = BTreeMap::new();
        let mut aligned: Vec<String> = Vec::new();
        let mut next = 0;
        let directives = &self.scopes.units[home].directives;
        while let Some(about) = wanted.get(next).cloned() {
            next += 1;
            for directive in directives.iter().filter(|d| d.is_about(&about)) {
                if self.options.arrays == Arrays::Global
                    && directive.words.len() == 1
                    && directive.words.contains("dimension")
                {
                    continue; // its bounds are those of the declaration
                }
                chosen.insert(directive.index, directive.literal());
                if directive.words.contains("align") {
                    aligned.push(about.clone());
                }
                for other in &directive.others {
                    if !wanted.contains(other) {
                        wanted.push(other.clone());
                    }
                }
            }
        }
        let mut text: Vec<String> = chosen.into_values().collect();
        let is_declared = |name: &str| {
            directives.iter().any(|d| {
                d.is_about(name)
                    && (d.words.contains("template")
                        || d.words.contains("processors")
                        || d.words.contains("dimension"))
            })
        };
        let (extents, mode) = match self.options.arrays {
            Arrays::Global => {
                // Bounds matter where indices do.
                for other in &wanted {
                    let is_base = wanted.iter().any(|n| aligned.contains(n))
                        && other != &small
                        && self.is_array(directives, other);
                    if aligned.contains(other) || is_base {
                        text.push(format!("dimension {other}(' // pario_hpf_bounds(lbound({other}), ubound({other})) // ')"));
                    }
                }
                (format!("shape({name})"), "pario_hpf_global")
            }
            Arrays::Local => {
                let whole = self.whole_shape(directives, &small);
                let (extents, bounds) = whole.ok_or_else(|| {
                    let text = format!("the shape of all of {name} is not known; align {name} with a TEMPLATE index by index, or say !HPF$ DIMENSION {name}(...)");
                    self.error(at, text)
                })?;
                if let Some(bounds) = bounds.filter(|_| !is_declared(&small)) {
                    text.push(format!("dimension {small}({bounds})"));
                }
                (format!("[{}]", extents.join(", ")), "pario_hpf_local")
            }
        };
        Ok((extents, text, mode))
    }

    /// Whether a name of directives is an array of the program.
    fn is_array(&self, directives: &[crate::mapping::Directive], name: &str) -> bool {
        let is_abstract = |d: &&crate::mapping::Directive| {
            d.is_about(name) && (d.words.contains("template") || d.words.contains("processors"))
        };
        let is_mapped = |d: &crate::mapping::Directive| {
            d.is_about(name) && (d.words.contains("distribute") || d.words.contains("align"))
        };
        !directives.iter().any(|d| is_abstract(&d)) && directives.iter().any(is_mapped)
    }

    /// Extents of the whole array whose part is declared, and its bounds if they are those of a template.
    fn whole_shape(
        &self,
        directives: &[crate::mapping::Directive],
        name: &str,
    ) -> Option<(Vec<String>, Option<String>)> {
        let own = directives
            .iter()
            .find_map(|d| d.extents(name).filter(|_| !d.words.contains("template")));
        if let Some(extents) = own {
            return Some((extents, None));
        }
        let align = directives
            .iter()
            .find(|d| d.words.contains("align") && d.is_about(name) && d.is_plain)?;
        let base = align.others.first()?;
        let template = directives
            .iter()
            .find(|d| d.words.contains("template") && d.is_about(base))?;
        Some((template.extents(base)?, template.bounds_literal(base)))
    }

    /// Says at the beginning of a branch that an array will be read there.
    fn branch_hints(&self) -> Outcome<Vec<Edit>> {
        let mut edits = Vec::new();
        for (head, statement) in self.statements.iter().enumerate() {
            let text = statement.text();
            let is_head = statement.kind == Kind::Statement
                && ((text.starts_with("if(") || text.starts_with("elseif("))
                    && text.ends_with(")then")
                    || text == "else"
                    || (text.starts_with("case(") && !crate::scopes::assigns(&text)));
            if !is_head {
                continue;
            }
            let mut touched: Vec<String> = Vec::new();
            for (index, next) in self.statements.iter().enumerate().skip(head + 1) {
                let text = next.text();
                let leaves = [
                    "if(", "else", "end", "do", "select", "case", "goto", "return", "cycle",
                    "exit", "stop",
                ];
                let io = self
                    .ios
                    .iter()
                    .find(|(at, _)| *at == index)
                    .map(|(_, io)| io);
                if next.kind == Kind::Directive {
                    continue;
                }
                if io.is_none() {
                    if next.label.is_some() || leaves.iter().any(|word| text.starts_with(word)) {
                        break;
                    }
                    continue;
                }
                let Some(io) = io else { break };
                let Some(unit) = io.unit() else { continue };
                let first = io.items.first().map(|item| (&item.value, item.at));
                let is_first =
                    index == head + 1 || io.condition.is_some() || touched.contains(&unit.value);
                touched.push(unit.value.clone());
                if io.verb != Verb::Read
                    || is_first
                    || !self.is_ours(index, io)
                    || io.argument("rec", None).is_some()
                {
                    continue;
                }
                let Some((name, at)) = first else { continue };
                let Some(home) = self.array_of(index, name) else {
                    continue;
                };
                let is_deferred = self.scopes.seen_by(self.scopes.of[index]).iter().any(|u| {
                    self.scopes.units[*u]
                        .deferred
                        .contains(&name.to_ascii_lowercase())
                });
                if is_deferred {
                    continue;
                }
                let call = format!(
                    "call pario_hpf_will_read({}, {})",
                    unit.value,
                    self.described(name, home, at)?
                );
                let indent = self.indent(next.span.start);
                let text = format!("\n{indent}{}", wrapped(&call, &indent, self.options.form));
                edits.push(Edit {
                    span: statement.span.end..statement.span.end,
                    text,
                });
            }
        }
        Ok(edits)
    }
}

/// Directives as an expression of Fortran.
fn literal(directives: &[String]) -> String {
    format!("'{}'", directives.join(";"))
        .replace("'' // ", "")
        .replace(" // ''", "")
}

/// What a statement becomes.
#[derive(Clone, Debug, Default)]
struct Calls {
    lines: Vec<String>,
    /// What follows them: where to go.
    after: Vec<String>,
    /// The variable for the outcome.
    status: Option<String>,
    /// The variable for the text.
    message: Option<String>,
}

impl Calls {
    fn outcome_arguments(&self) -> Vec<String> {
        let status = self.status.iter().map(|name| format!("iostat={name}"));
        status
            .chain(self.message.iter().map(|name| format!("iomsg={name}")))
            .collect()
    }
}
