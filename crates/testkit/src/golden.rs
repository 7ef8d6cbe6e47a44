//! The golden cases: `testdata/falls.json`, or the file that `PARIO_VECTORS` names.
//!
//! Expected values come from a brute-force oracle over explicit byte sets; `testdata/README.md`
//! explains the schema. Here are the reading of the file and of the shapes that several operations
//! share; what an operation means is in the tests of the crate that has it.

use std::panic::{RefUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use falls::notation::Term;
use falls::{FallsSet, Periodic};
use serde_json::Value;

/// One case.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its name.
    pub id: String,
    /// Free words about it.
    pub tags: Vec<String>,
    /// Arguments.
    pub input: Value,
    /// Expected results.
    pub output: Value,
}

/// All cases of the file as they stand there, and whether it is the project's own file.
pub fn all_cases() -> (Vec<Value>, bool) {
    let named = std::env::var_os("PARIO_VECTORS").map(PathBuf::from);
    let own = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/falls.json");
    let path = named.clone().unwrap_or_else(own);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path:?}: {e}"));
    let file: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{path:?}: {e}"));
    assert_eq!(file["format"], "falls-vectors", "{path:?}");
    assert_eq!(file["version"], 1, "{path:?}");
    (list(&file["cases"]).to_vec(), named.is_none())
}

/// Runs `test` on every case of one operation; the name of a failing case stands in the message.
pub fn run(op: &str, test: impl Fn(&Case) + RefUnwindSafe) {
    let (cases, own) = all_cases();
    let cases: Vec<Case> = cases.iter().filter(|c| c["op"] == op).map(case).collect();
    assert!(!own || !cases.is_empty(), "no case of {op}");
    for case in &cases {
        if let Err(panic) = catch_unwind(|| test(case)) {
            let why = panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| panic.downcast_ref::<&str>().copied())
                .unwrap_or("it panicked");
            panic!("case {}: {why}", case.id);
        }
    }
}

fn case(value: &Value) -> Case {
    Case {
        id: value["id"].as_str().expect("an id").to_owned(),
        tags: list(&value["tags"])
            .iter()
            .filter_map(|t| t.as_str().map(str::to_owned))
            .collect(),
        input: value["in"].clone(),
        output: value["out"].clone(),
    }
}

/// A list.
pub fn list(value: &Value) -> &[Value] {
    value
        .as_array()
        .unwrap_or_else(|| panic!("a list, not {value}"))
}

/// An offset, a length or a count.
pub fn number(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("an offset, not {value}"))
}

/// A list of them.
pub fn numbers(value: &Value) -> Vec<u64> {
    list(value).iter().map(number).collect()
}

/// A list of numbers, some of them `null`.
pub fn maybe_numbers(value: &Value) -> Vec<Option<u64>> {
    list(value)
        .iter()
        .map(|v| (!v.is_null()).then(|| number(v)))
        .collect()
}

/// A number with a sign.
pub fn signed(value: &Value) -> i64 {
    value
        .as_i64()
        .unwrap_or_else(|| panic!("a number, not {value}"))
}

/// Segments: inclusive pairs.
pub fn pairs(value: &Value) -> Vec<(u64, u64)> {
    list(value)
        .iter()
        .map(|p| (number(&p[0]), number(&p[1])))
        .collect()
}

/// Bytes, two digits each.
pub fn hex(value: &Value) -> Vec<u8> {
    let text = value.as_str().expect("a text of digits");
    let digits = |i: usize| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).expect("hexadecimal");
    (0..text.len() / 2).map(digits).collect()
}

/// A set as written.
pub fn terms(value: &Value) -> Vec<Term> {
    let term = |f: &Value| Term {
        l: signed(&f[0]),
        r: signed(&f[1]),
        s: Some(signed(&f[2])),
        n: signed(&f[3]),
        inner: terms(&f[4]),
        at: 0,
    };
    list(value).iter().map(term).collect()
}

/// The set of a case; whatever is not well formed but has a meaning is normalised.
pub fn set(value: &Value) -> FallsSet {
    let terms = terms(value);
    Term::to_set(&terms).unwrap_or_else(|_| Term::normalise(&terms).expect("a set").0)
}

/// An element.
pub fn element(value: &Value) -> Periodic {
    let (displacement, period) = (number(&value["disp"]), number(&value["period"]));
    Periodic::new(displacement, period, set(&value["set"])).expect("an element")
}
