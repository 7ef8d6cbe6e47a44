//! Hints: names and values that a program gives with a file, as MPI does.
//!
//! Known names are checked when they are set; unknown ones are kept and can be read again, since
//! programs pass hints of other systems along. None changes what a program reads or writes.
//!
//! | hint | meaning |
//! |---|---|
//! | `message_bytes` | longest payload of one message, at most what the server takes |
//! | `rendezvous_bytes` | writes with a longer payload are announced first |
//! | `array`, `layout` | of a file that is created |
//! | `striping_unit`, `striping_factor` | a new file without layout is `striped(unit) over factor`; without factor over all servers, without unit by 1 MiB |
//! | `shared_pointer_group` | number of the shared pointer |
//! | `expected_size`, `expected_clients`, `expected_access` | of a new file without layout: its bytes, how many processes use it, bytes of an access |
//! | `near_server` | number of the server that a new file should be near to |
//! | `direct` | `on`, or `off` to send everything by message, also to servers of this host |
//! | `strategy` | `views`; `two_phase` to force that collective accesses are regrouped among the ranks first; `sieving` to force windows of the file with locks |
//! | `collective_barrier` | `on` if ranks wait for each other in every collective access; `off` |
//! | `cb_buffer_size` | longest domain of a rank in one round of two phases, 4 MiB |
//! | `ind_rd_buffer_size`, `ind_wr_buffer_size` | longest window of a sieved read or write, 4 MiB and 512 KiB |

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::sieve::Strategy;

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

/// Hints that are numbers, with their least value.
const NUMBERS: &[(&str, u64)] = &[
    ("message_bytes", 4096),
    ("rendezvous_bytes", 0),
    ("striping_unit", 1),
    ("striping_factor", 1),
    ("shared_pointer_group", 0),
    ("expected_size", 0),
    ("expected_clients", 1),
    ("expected_access", 1),
    ("near_server", 0),
    ("ind_rd_buffer_size", 1),
    ("ind_wr_buffer_size", 1),
    ("cb_buffer_size", 1),
];

/// What a switch says.
pub(crate) fn is_on(text: &str) -> Option<bool> {
    match text.trim() {
        "1" | "on" | "true" | "yes" => Some(true),
        "0" | "off" | "false" | "no" => Some(false),
        _ => None,
    }
}

impl Hints {
    /// None.
    pub fn new() -> Hints {
        Hints::default()
    }

    /// Sets a hint; a known one is checked.
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        if let Some((_, least)) = NUMBERS.iter().find(|(n, _)| *n == name) {
            let is_good = value.trim().parse::<u64>().is_ok_and(|n| n >= *least);
            if !is_good {
                return Err(Error::argument(
                    "hints",
                    format!("{name} is '{value}'; give a number from {least} on"),
                ));
            }
        }
        if name == "strategy" && Strategy::of(value).is_none() {
            return Err(Error::argument(
                "hints",
                format!("strategy is '{value}'; give views, two_phase or sieving"),
            ));
        }
        if matches!(name, "direct" | "collective_barrier") && is_on(value).is_none() {
            return Err(Error::argument(
                "hints",
                format!("{name} is '{value}'; give on or off"),
            ));
        }
        let parsed = match name {
            "array" => value.parse::<layout::ArrayType>().map(drop),
            "layout" => value.parse::<layout::Layout>().map(drop),
            _ => Ok(()),
        };
        if let Err(e) = parsed {
            return Err(Error::argument(
                "hints",
                format!("{name} is '{value}': {e}"),
            ));
        }
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
        let words = [
            "strategy",
            "direct",
            "collective_barrier",
            "array",
            "layout",
        ];
        NUMBERS.iter().any(|(known, _)| *known == name) || words.contains(&name)
    }

    /// The value of a hint.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// All hints, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(n, v)| (n.as_str(), v.as_str()))
    }

    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.get(name)?.trim().parse().ok()
    }

    pub(crate) fn text(&self, name: &str) -> Option<String> {
        self.get(name).map(Into::into)
    }

    /// The layout of a new file, given directly or as striping.
    pub(crate) fn layout(&self) -> Option<String> {
        if let Some(text) = self.text("layout") {
            return Some(text);
        }
        let unit = self.number("striping_unit");
        match self.number("striping_factor") {
            Some(factor) => {
                let unit = unit.unwrap_or(1 << 20);
                Some(format!("striped({unit}) over {factor}"))
            }
            None => unit.map(|unit| format!("striped({unit})")),
        }
    }

    /// Takes over all of `other`.
    pub(crate) fn merge(&mut self, other: &Hints) {
        self.0
            .extend(other.0.iter().map(|(n, v)| (n.clone(), v.clone())));
    }
}
