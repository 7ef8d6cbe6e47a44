//! Which unit of input and output an expression of the program means, so that all statements on one are known.
//!
//! A number is the same unit everywhere, and so is a constant with that value. A variable is one where it is declared: in a procedure, in
//! the program around it, in a module. An argument is whatever its callers give. Names of other files, and what is computed, are not
//! followed.

use std::collections::{BTreeMap, BTreeSet};

use crate::control::Io;
use crate::scopes::{Scopes, is_name, leading_name, parts};
use crate::source::{Kind, Statement};

/// A unit: where its name is declared, or nowhere for a number, and its name or number.
pub(crate) type UnitKey = (Option<usize>, String);

/// Whether a unit is a number, which is the same everywhere.
fn is_number(unit: &str) -> bool {
    !unit.is_empty() && unit.chars().all(|c| c.is_ascii_digit() || c == '-')
}

/// The unit that an expression means in a program unit.
fn key(scopes: &Scopes, unit: usize, text: &str) -> UnitKey {
    let small = text.to_ascii_lowercase();
    if is_number(&small) {
        return (None, small);
    }
    if let Some((home, known)) = scopes.declaration(unit, &small) {
        return match &known.number {
            Some(number) => (None, number.clone()),
            None => (Some(home), small),
        };
    }
    // An argument without a declaration is the procedure's own; other names are those of the program around.
    match scopes.units[unit].dummies.contains(&small) {
        true => (Some(unit), small),
        false => (Some(scopes.outermost(unit)), small),
    }
}

/// Units that are known to be the same.
#[derive(Debug, Default)]
pub(crate) struct Units {
    /// Each with one that it is the same as.
    same: BTreeMap<UnitKey, UnitKey>,
}

impl Units {
    /// Follows units through calls: what is given for an argument on which there is input or output.
    pub(crate) fn follow(statements: &[Statement], scopes: &Scopes, ios: &[(usize, Io)]) -> Units {
        let mut found = Units::default();
        let units = ios
            .iter()
            .filter_map(|(index, io)| Some(key(scopes, scopes.of[*index], &io.unit()?.value)));
        let mut used: BTreeSet<UnitKey> = units.collect();
        let mut calls = Vec::new();
        for (index, statement) in statements.iter().enumerate() {
            let text = statement.text();
            let from = match text.starts_with("if(") {
                true => text.find(")call").map(|at| at + 1),
                false => text.starts_with("call").then_some(0),
            };
            let Some(from) = from.filter(|_| statement.kind == Kind::Statement) else {
                continue;
            };
            let rest = &text[from + "call".len()..];
            let name = leading_name(rest).to_owned();
            let list = rest[name.len()..]
                .strip_prefix('(')
                .and_then(|list| list.strip_suffix(')'));
            let Some(list) = list else { continue };
            let arguments: Vec<String> = parts(list)
                .into_iter()
                .map(|r| list[r].to_owned())
                .collect();
            calls.push((scopes.of[index], name, arguments));
        }
        // What is given on is an argument as well: until nothing new is found.
        loop {
            let before = used.len() + found.same.len();
            for (caller, name, arguments) in &calls {
                for (callee, unit) in scopes.units.iter().enumerate() {
                    if unit.name != *name {
                        continue;
                    }
                    for (number, argument) in arguments.iter().enumerate() {
                        let (dummy, given) = match argument.split_once('=') {
                            Some((dummy, given)) if is_name(dummy) => (Some(dummy), given),
                            _ => (unit.dummies.get(number).map(String::as_str), &argument[..]),
                        };
                        let Some(dummy) = dummy else { continue };
                        let own = key(scopes, callee, dummy);
                        if used.contains(&own) && (is_name(given) || is_number(given)) {
                            let outer = key(scopes, *caller, given);
                            used.insert(outer.clone());
                            found.join(own, outer);
                        }
                    }
                }
            }
            if used.len() + found.same.len() == before {
                return found;
            }
        }
    }

    fn join(&mut self, one: UnitKey, other: UnitKey) {
        let (one, other) = (self.first(one), self.first(other));
        if one != other {
            self.same.insert(one, other);
        }
    }

    fn first(&self, mut unit: UnitKey) -> UnitKey {
        while let Some(next) = self.same.get(&unit) {
            unit = next.clone();
        }
        unit
    }

    /// The unit that an expression means in a program unit; the same for all that are the same.
    pub(crate) fn key(&self, scopes: &Scopes, unit: usize, text: &str) -> UnitKey {
        self.first(key(scopes, unit, text))
    }
}
