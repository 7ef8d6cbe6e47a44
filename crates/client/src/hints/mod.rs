//! Hints: names and values that a program gives with a file, as MPI does.
//!
//! Known names are checked when they are set; unknown ones are kept and can be read again, since
//! programs pass hints of other systems along. None changes what a program reads or writes.
//! The table of names is [`advise::hints::TABLE`]; who else gives hints, and whose count, stands in
//! [`advise::hints`].
//!
//! Left to others: hints of other sources (`heard`).

pub(crate) mod handle_hints;

use std::collections::BTreeMap;

use advise::hints::{Life, canonical, check, known, number, switch};

use crate::collective::strategy::Strategy;
use crate::error::{Error, Result};

/// Names with their values.
///
/// ```
/// use client::Hints;
/// let mut hints = Hints::new();
/// hints.set("message_bytes", "1048576").unwrap();
/// hints.set("cb_nodes", "4").unwrap(); // unknown here, kept
/// assert_eq!(hints.get("cb_nodes"), Some("4"));
/// let error = hints.set("message_bytes", "many").unwrap_err();
/// assert!(error.to_string().contains("message_bytes"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hints(BTreeMap<String, String>);

/// What a switch says.
pub(crate) fn is_on(text: &str) -> Option<bool> {
    switch(text)
}

/// Whether a value makes sense here.
pub(crate) fn check_value(name: &str, value: &str) -> std::result::Result<(), String> {
    check(name, value)?;
    if name == "strategy" && Strategy::of(value).is_none() {
        return Err(format!(
            "strategy is '{value}'; give one of {}",
            Strategy::words()
        ));
    }
    Ok(())
}

impl Hints {
    /// None.
    pub fn new() -> Hints {
        Hints::default()
    }

    /// Sets a hint; a known one is checked.
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let name = canonical(name);
        check_value(name, value).map_err(|why| Error::argument("hints", why))?;
        self.0.insert(name.into(), value.into());
        Ok(())
    }

    /// With a hint.
    pub fn with(mut self, name: &str, value: &str) -> Result<Hints> {
        self.set(name, value)?;
        Ok(self)
    }

    /// Whether a hint of this name has a meaning.
    pub fn is_known(name: &str) -> bool {
        known(name).is_some()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value of a hint.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(canonical(name)).map(String::as_str)
    }

    /// All hints, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(n, v)| (n.as_str(), v.as_str()))
    }

    /// The first that only a running program can give.
    pub(crate) fn dynamic(&self) -> Option<&str> {
        let is_dynamic = |name: &str| known(name).is_some_and(|k| k.life == Life::Dynamic);
        self.0.keys().map(String::as_str).find(|n| is_dynamic(n))
    }

    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        number(self.get(name)?)
    }

    /// Keeps a hint that was judged.
    pub(crate) fn keep(&mut self, name: &str, value: &str) {
        self.0.insert(name.into(), value.into());
    }
}
