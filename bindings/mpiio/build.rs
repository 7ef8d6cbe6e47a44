//! Makes Rust of the tables of the standard: entry points, slots for the host's functions, constants.
//!
//! The tables are `standard/prototypes.table` and `standard/constants.table`; each opens with its form.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

fn main() {
    let out = env::var("OUT_DIR").expect("cargo sets it");
    for (table, make) in [
        ("prototypes", entries as fn(&str) -> String),
        ("constants", constants),
    ] {
        let path = format!("standard/{table}.table");
        println!("cargo::rerun-if-changed={path}");
        let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
        fs::write(Path::new(&out).join(format!("{table}.rs")), make(&text)).expect("OUT_DIR");
    }
    println!("cargo::rerun-if-changed=build.rs");
}

fn rows(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|words| words.first().is_some_and(|word| !word.starts_with('#')))
}

/// The Rust type of an argument in the C interface.
fn type_of(kind: &str, is_large: bool) -> &'static str {
    match kind {
        "int" => "c_int",
        "offset" => "i64",
        "count" if is_large => "i64",
        "count" => "c_int",
        "buffer" => "Address",
        "text" => "Text",
        "comm" | "type" | "info" | "request" => "Word",
        "file" => "Word",
        "status" => "StatusOut",
        "function" | "handler" | "pointer" => "Word",
        "*count" if is_large => "Out<i64>",
        "*count" => "Out<c_int>",
        "*int" => "Out<c_int>",
        "*offset" => "Out<i64>",
        "*text" => "Out<c_char>",
        "*file" | "*group" | "*info" | "*type" | "*request" | "*errhandler" => "HandleOut",
        other => panic!("standard/prototypes.table: unknown kind '{other}'"),
    }
}

fn entries(table: &str) -> String {
    let mut slots = String::new();
    let mut load = String::new();
    let mut functions = String::new();
    let mut names = String::new();
    for words in rows(table) {
        let (how, name) = (words[0], words[1]);
        let mut arguments: Vec<(&str, &str)> = words[2..]
            .iter()
            .filter_map(|word| word.split_once(':'))
            .collect();
        if how == "file" {
            arguments.insert(0, ("fh", "file"));
        }
        let forms: &[bool] = match words.last() {
            Some(&"large") => &[false, true],
            _ => &[false],
        };
        for &is_large in forms {
            let full = if is_large {
                format!("{name}_c")
            } else {
                name.to_string()
            };
            let typed: Vec<String> = arguments
                .iter()
                .map(|(n, kind)| format!("{n}: {}", type_of(kind, is_large)))
                .collect();
            let typed = typed.join(", ");
            let types: Vec<&str> = arguments
                .iter()
                .map(|(_, k)| type_of(k, is_large))
                .collect();
            let types = types.join(", ");
            let plain: Vec<&str> = arguments.iter().map(|(n, _)| *n).collect();
            let plain = plain.join(", ");
            writeln!(
                slots,
                "    pub {full}: Option<unsafe extern \"C\" fn({types}) -> c_int>,"
            )
            .unwrap();
            writeln!(load, "            {full}: find(c\"PMPI_{full}\").map(|f| unsafe {{ std::mem::transmute::<*const c_void, unsafe extern \"C\" fn({types}) -> c_int>(f) }}),").unwrap();
            writeln!(names, "    \"{full}\",").unwrap();
            let verb = name.strip_prefix("File_").unwrap_or(name).to_lowercase();
            let widened: Vec<String> = arguments
                .iter()
                .filter(|(n, _)| !(how == "file" && *n == "fh"))
                .map(|(n, kind)| match *kind {
                    "count" => format!("i64::from({n})"),
                    "*count" => format!("crate::ffi::CountOut::from({n})"),
                    "comm" | "type" | "info" | "request" => format!("crate::host::trimmed({n})"),
                    _ => (*n).to_string(),
                })
                .collect();
            let mut widened = widened.join(", ");
            let body = if how == "file" {
                if !widened.is_empty() {
                    widened.insert_str(0, ", ");
                }
                // An MPI without the large form still has the other one for counts that fit it.
                let instead = match is_large {
                    false => String::new(),
                    true => {
                        let narrowed = plain.replace("count", "c_int::try_from(count).ok()?");
                        format!(
                            ".or_else(|| {{ let f = host.files.{name}?; Some(unsafe {{ f({narrowed}) }}) }})"
                        )
                    }
                };
                format!(
                    "match crate::table::find(fh) {{\n\
                     Some(file) => crate::entry::ours(file, \"MPI_{full}\", |call| crate::verbs::{verb}(call{widened})),\n\
                     None => crate::entry::of_handle(fh, \"MPI_{full}\", |host| host.files.{full}.map(|f| unsafe {{ f({plain}) }}){instead}),\n}}"
                )
            } else {
                let form = if how != "packs" && words.last() == Some(&"large") {
                    format!("{is_large}, ")
                } else {
                    String::new()
                };
                format!("crate::free::{verb}({form}{widened})")
            };
            // Outside of what keeps panics in: nothing here can panic, and it is to cost next to nothing.
            let shortcut = match how {
                "ends" => format!(
                    "if let Some(f) = crate::requests::while_none_pending().and_then(|files| files.{full}) {{\n        return unsafe {{ f({plain}) }};\n    }}\n    "
                ),
                "packs" => format!(
                    "if let Some(f) = crate::free::while_left_to_host().and_then(|files| files.{full}) {{\n        return unsafe {{ f({plain}) }};\n    }}\n    "
                ),
                _ => String::new(),
            };
            for prefix in ["MPI_", "PMPI_"] {
                writeln!(
                    functions,
                    "/// See the standard.\n#[unsafe(no_mangle)]\npub unsafe extern \"C\" fn {prefix}{full}({typed}) -> c_int {{\n    {shortcut}crate::entry::guarded(|| {body})\n}}\n"
                )
                .unwrap();
            }
        }
    }
    format!(
        "/// The host's own functions under the names that this library takes over.\n\
         #[allow(non_snake_case)]\n#[derive(Debug)]\npub(crate) struct HostFiles {{\n{slots}}}\n\n\
         impl HostFiles {{\n    /// Looks all of them up.\n    pub(crate) fn load(find: &dyn Fn(&CStr) -> Option<*const c_void>) -> HostFiles {{\n        HostFiles {{\n{load}        }}\n    }}\n}}\n\n\
         /// All names that are taken over, without their prefix.\n#[allow(dead_code)]\npub(crate) const NAMES: &[&str] = &[\n{names}];\n\n{functions}"
    )
}

fn constants(table: &str) -> String {
    let mut fields = String::new();
    let mut columns = [String::new(), String::new(), String::new()];
    let mut types = String::new();
    for words in rows(table) {
        let (what, name) = (words[0], words[1]);
        let field = match name.chars().next() {
            Some(c) if c.is_ascii_digit() => format!("t{}", name.to_lowercase()),
            _ => name.to_lowercase(),
        };
        match what {
            "number" => {
                writeln!(fields, "    pub {field}: i64,").unwrap();
                for (column, value) in columns.iter_mut().zip(&words[2..5]) {
                    let value = if *value == "-" { "ABSENT" } else { value };
                    writeln!(column, "            {field}: {value},").unwrap();
                }
            }
            "handle" | "type" => {
                writeln!(fields, "    pub {field}: Word,").unwrap();
                for (i, (column, value)) in columns.iter_mut().zip(&words[2..5]).enumerate() {
                    let value = match (*value, i) {
                        ("-", _) => "Word(ABSENT_HANDLE)".to_string(),
                        (symbol, 1) => format!("symbol(c\"{symbol}\")"),
                        (number, _) => format!("Word({number})"),
                    };
                    writeln!(column, "            {field}: {value},").unwrap();
                }
                if what == "type" {
                    let kind = words[5];
                    writeln!(types, "    (\"{name}\", |abi| abi.{field}, \"{kind}\"),").unwrap();
                }
            }
            other => panic!("standard/constants.table: unknown row '{other}'"),
        }
    }
    let [mpich, openmpi, standard] = columns;
    format!(
        "/// Constants of one ABI; not all of them are needed.\n#[allow(missing_docs, dead_code)]\n#[derive(Clone, Debug)]\npub(crate) struct Constants {{\n{fields}}}\n\n\
         impl Constants {{\n    pub(crate) fn mpich() -> Constants {{\n        Constants {{\n{mpich}        }}\n    }}\n\n\
         pub(crate) fn openmpi(symbol: &dyn Fn(&CStr) -> Word) -> Constants {{\n        Constants {{\n{openmpi}        }}\n    }}\n\n\
         pub(crate) fn standard() -> Constants {{\n        Constants {{\n{standard}        }}\n    }}\n}}\n\n\
         /// Named datatypes: name, handle, what one element is.\n#[allow(clippy::type_complexity)]\npub(crate) const TYPES: &[(&str, fn(&Constants) -> Word, &str)] = &[\n{types}];\n"
    )
}
