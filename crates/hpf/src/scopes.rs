//! Program units: which statements they have, the directives in each, and arrays that get their shape while the program runs.
//!
//! Invariants: every statement belongs to one unit; a unit's parent is before it. A program without a `PROGRAM` statement is a unit
//! without a header.

use std::collections::{BTreeMap, BTreeSet};

use crate::mapping::Directive;
use crate::source::{Kind, Statement};

/// A program, module, procedure, or what an interface says of one.
#[derive(Debug, Default)]
pub(crate) struct ProgramUnit {
    pub(crate) parent: Option<usize>,
    pub(crate) name: String,
    /// The statement that begins it.
    pub(crate) header: Option<usize>,
    pub(crate) first: usize,
    /// Modules that it uses.
    pub(crate) uses: Vec<String>,
    pub(crate) directives: Vec<Directive>,
    /// Arrays whose shape is not there from the beginning.
    pub(crate) deferred: BTreeSet<String>,
    /// What is declared here, by name.
    pub(crate) declared: BTreeMap<String, Declaration>,
    /// Names of its arguments.
    pub(crate) dummies: Vec<String>,
}

/// What a program says of a name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Declaration {
    pub(crate) is_character: bool,
    /// The value of a constant that is a whole number.
    pub(crate) number: Option<String>,
    /// Extents, where they are numbers and indices begin at 1.
    pub(crate) extents: Option<Vec<u64>>,
}

/// All units, and the one of each statement.
#[derive(Debug, Default)]
pub(crate) struct Scopes {
    pub(crate) units: Vec<ProgramUnit>,
    pub(crate) of: Vec<usize>,
}

/// Where `=` stands outside of brackets and quotes, if the statement assigns.
pub(crate) fn assigns(text: &str) -> bool {
    let bytes = text.as_bytes();
    let (mut depth, mut quote) = (0i32, None);
    for (i, &b) in bytes.iter().enumerate() {
        match (quote, b) {
            (Some(q), b) if b == q => quote = None,
            (Some(_), _) => {}
            (None, b'\'' | b'"') => quote = Some(b),
            (None, b'(' | b'[') => depth += 1,
            (None, b')' | b']') => depth -= 1,
            (None, b'=') if depth == 0 => {
                let before = i.checked_sub(1).map_or(b' ', |i| bytes[i]);
                let behind = bytes.get(i + 1).copied().unwrap_or(b' ');
                if !matches!(before, b'=' | b'<' | b'>' | b'/') && behind != b'=' {
                    return true;
                }
            }
            _ => {}
        }
    }
    false
}

pub(crate) fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// The name at the beginning of a text.
pub(crate) fn leading_name(text: &str) -> &str {
    let end = text
        .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .unwrap_or(text.len());
    &text[..end]
}

/// Behind the brackets that begin a text.
fn behind_brackets(text: &str) -> Option<&str> {
    let mut depth = 0;
    for (i, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(&text[i + c.len_utf8()..]);
        }
    }
    None
}

const TYPES: [&str; 10] = [
    "doubleprecision",
    "doublecomplex",
    "integer",
    "character",
    "logical",
    "complex",
    "real",
    "type",
    "class",
    "byte",
];

/// The name of a unit that a statement begins; `None` if it begins none.
fn begun(text: &str) -> Option<String> {
    if assigns(text) || text.contains("::") {
        return None;
    }
    let named = |rest: &str| Some(leading_name(rest).to_owned()).filter(|name| is_name(name));
    for word in ["program", "submodule", "blockdata"] {
        if let Some(rest) = text.strip_prefix(word) {
            let rest = if rest.starts_with('(') {
                behind_brackets(rest)?
            } else {
                rest
            };
            return Some(leading_name(rest).to_owned());
        }
    }
    let mut rest = text;
    loop {
        if let Some(name) = rest.strip_prefix("subroutine") {
            return named(name);
        }
        if let Some(name) = rest
            .strip_prefix("function")
            .filter(|name| name.contains('('))
        {
            return named(name);
        }
        if let Some(name) = rest.strip_prefix("moduleprocedure") {
            return named(name);
        }
        if let Some(name) = rest.strip_prefix("module").filter(|name| {
            is_name(name) && !name.contains("subroutine") && !name.contains("function")
        }) {
            return named(name);
        }
        let prefixes = [
            "recursive",
            "nonrecursive",
            "pure",
            "elemental",
            "impure",
            "module",
        ];
        if let Some(next) = prefixes.iter().find_map(|p| rest.strip_prefix(p)) {
            rest = next;
            continue;
        }
        let next = TYPES.iter().find_map(|t| rest.strip_prefix(t))?;
        let next = match next.strip_prefix('*') {
            Some(width) if width.starts_with('(') => behind_brackets(width)?,
            Some(width) => width.trim_start_matches(|c: char| c.is_ascii_digit()),
            None if next.starts_with('(') => behind_brackets(next)?,
            None => next,
        };
        if !next.contains("function") {
            return None;
        }
        rest = next;
    }
}

fn ends(text: &str) -> bool {
    let words = [
        "program",
        "subroutine",
        "function",
        "module",
        "submodule",
        "procedure",
        "blockdata",
    ];
    match text.strip_prefix("end") {
        Some("") => true,
        Some(rest) => {
            !assigns(text) && !rest.contains('(') && words.iter().any(|w| rest.starts_with(w))
        }
        None => false,
    }
}

/// Parts of a list, divided by commas outside of brackets and quotes: where each begins and ends.
pub(crate) fn parts(text: &str) -> Vec<std::ops::Range<usize>> {
    let (mut depth, mut quote, mut from) = (0i32, None, 0);
    let mut all = Vec::new();
    for (i, c) in text.char_indices() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '(' | '[') => depth += 1,
            (None, ')' | ']') => depth -= 1,
            (None, ',') if depth == 0 => {
                all.push(from..i);
                from = i + 1;
            }
            _ => {}
        }
    }
    if from < text.len() || !all.is_empty() {
        all.push(from..text.len());
    }
    all
}

/// The attributes and the entities of a declaration, in small letters; `None` if it is none.
fn declaration(text: &str) -> Option<(&str, &str)> {
    let has_type = TYPES.iter().find_map(|t| text.strip_prefix(t));
    let has_type = has_type.or_else(|| text.strip_prefix("dimension"));
    if let Some((head, entities)) = text.split_once("::") {
        return has_type.is_some().then_some((head, entities));
    }
    if assigns(text) || text.contains("function") {
        return None;
    }
    let mut rest = has_type?;
    if let Some(width) = rest.strip_prefix('*') {
        rest = match width.starts_with('(') {
            true => behind_brackets(width)?,
            false => width.trim_start_matches(|c: char| c.is_ascii_digit()),
        };
    } else if rest.starts_with('(') {
        rest = behind_brackets(rest)?;
    }
    let rest = rest.strip_prefix(',').unwrap_or(rest);
    let head = &text[..text.len() - rest.len()];
    rest.starts_with(|c: char| c.is_ascii_alphabetic())
        .then_some((head, rest))
}

/// Extents in brackets that are numbers.
fn numbers(text: &str) -> Option<Vec<u64>> {
    let list = text.strip_prefix('(')?.split(')').next()?;
    list.split(',').map(|n| n.parse().ok()).collect()
}

impl ProgramUnit {
    /// Takes what a statement declares.
    fn declare(&mut self, text: &str) {
        let own = |text: &str| text.strip_prefix("parameter(").map(str::to_owned);
        if let Some(list) = own(text) {
            let list = list.trim_end_matches(')');
            for range in parts(list) {
                if let Some((name, value)) = list[range].split_once('=') {
                    let number = Some(value.to_owned()).filter(|v| v.parse::<i64>().is_ok());
                    self.declared.entry(name.to_owned()).or_default().number = number;
                }
            }
            return;
        }
        let Some((head, entities)) = declaration(text) else {
            return;
        };
        let is_constant = parts(head).into_iter().any(|r| &head[r] == "parameter");
        let of_all = head
            .split_once("dimension")
            .and_then(|(_, rest)| numbers(rest));
        for range in parts(entities) {
            let entity = &entities[range];
            let name = leading_name(entity);
            if !is_name(name) {
                continue;
            }
            let known = self.declared.entry(name.to_owned()).or_default();
            known.is_character |= head.starts_with("character");
            let value = entity.rsplit_once('=').map(|(_, value)| value.to_owned());
            if let Some(value) = value.filter(|v| is_constant && v.parse::<i64>().is_ok()) {
                known.number = Some(value);
            }
            let extents = numbers(&entity[name.len()..]).or_else(|| of_all.clone());
            known.extents = extents.or(known.extents.take());
        }
    }
}

/// Names of the arguments of a procedure, by the statement that begins it.
fn dummies(text: &str) -> Vec<String> {
    let word = ["subroutine", "function"]
        .iter()
        .find_map(|word| text.find(word).map(|at| at + word.len()));
    let list = word
        .and_then(|at| text[at..].split_once('('))
        .map(|(_, rest)| rest);
    let Some(list) = list.and_then(|rest| rest.split(')').next()) else {
        return Vec::new();
    };
    list.split(',').map(str::to_owned).collect()
}

/// Arrays of a declaration whose shape comes later.
fn deferred(text: &str, found: &mut BTreeSet<String>) {
    let is_attribute = |word: &str| word == "allocatable" || word == "pointer";
    let (entities, all) = match text.split_once("::") {
        Some((head, entities)) => {
            let mut words = parts(head).into_iter().map(|r| &head[r]);
            let is_declaration = TYPES.iter().any(|t| head.starts_with(t)) || is_attribute(head);
            if !is_declaration {
                return;
            }
            let all =
                words.clone().any(is_attribute) || words.any(|w| w.starts_with("dimension(:"));
            (entities, all)
        }
        None => match ["allocatable", "pointer"]
            .iter()
            .find_map(|w| text.strip_prefix(w))
        {
            Some(entities) if !assigns(text) => (entities, true),
            _ => return,
        },
    };
    for range in parts(entities) {
        let entity = &entities[range];
        let name = leading_name(entity);
        if all || entity[name.len()..].starts_with("(:") {
            found.insert(name.to_owned());
        }
    }
}

impl Scopes {
    /// Sorts statements into units.
    pub(crate) fn of(statements: &[Statement]) -> Scopes {
        let mut found = Scopes::default();
        let mut open: Vec<usize> = Vec::new();
        let mut interfaces = 0;
        for (index, statement) in statements.iter().enumerate() {
            let text = statement.text();
            let is_statement = statement.kind == Kind::Statement;
            if is_statement && !assigns(&text) {
                let begins = text.starts_with("interface") || text.starts_with("abstractinterface");
                interfaces += i32::from(begins) - i32::from(text.starts_with("endinterface"));
            }
            // In an interface this names procedures that are elsewhere.
            let is_list = interfaces > 0 && text.starts_with("moduleprocedure");
            let name = match is_statement && !is_list {
                true => begun(&text),
                false => None,
            };
            let is_end = is_statement && ends(&text);
            if name.is_some() || (open.is_empty() && !is_end) {
                let unit = ProgramUnit {
                    parent: open.last().copied(),
                    header: name.as_ref().map(|_| index),
                    dummies: name.as_ref().map_or(Vec::new(), |_| dummies(&text)),
                    name: name.clone().unwrap_or_default(),
                    first: index,
                    ..ProgramUnit::default()
                };
                open.push(found.units.len());
                found.units.push(unit);
            }
            let now = open
                .last()
                .copied()
                .unwrap_or(found.units.len().saturating_sub(1));
            found.of.push(now);
            if is_end {
                open.pop();
                continue;
            }
            let Some(unit) = found.units.get_mut(now) else {
                continue;
            };
            if !is_statement {
                unit.directives.push(Directive::read(index, statement));
                continue;
            }
            if let Some(rest) = text.strip_prefix("use").filter(|_| !assigns(&text)) {
                let rest = rest.rsplit("::").next().unwrap_or(rest);
                unit.uses.push(leading_name(rest).to_owned());
            }
            deferred(&text, &mut unit.deferred);
            unit.declare(&text);
        }
        found
    }

    /// The outermost unit around one.
    pub(crate) fn outermost(&self, mut unit: usize) -> usize {
        while let Some(parent) = self.units[unit].parent {
            unit = parent;
        }
        unit
    }

    /// What is declared of a name that a unit sees, and where.
    pub(crate) fn declaration(&self, unit: usize, name: &str) -> Option<(usize, &Declaration)> {
        let seen = self.seen_by(unit).into_iter();
        seen.filter_map(|u| self.units[u].declared.get(name).map(|d| (u, d)))
            .next()
    }

    /// Units whose names a unit sees, itself first: those around it, and modules that are used.
    pub(crate) fn seen_by(&self, unit: usize) -> Vec<usize> {
        let mut all = Vec::new();
        let mut left = vec![unit];
        let modules: BTreeMap<&str, usize> = self
            .units
            .iter()
            .enumerate()
            .map(|(i, u)| (u.name.as_str(), i))
            .collect();
        while let Some(next) = left.pop() {
            if all.contains(&next) {
                continue;
            }
            all.push(next);
            // What is used hides what is around.
            let unit = &self.units[next];
            left.extend(unit.parent);
            left.extend(
                unit.uses
                    .iter()
                    .filter_map(|name| modules.get(name.as_str())),
            );
        }
        all
    }
}
