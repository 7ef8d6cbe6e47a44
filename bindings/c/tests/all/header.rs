//! `pario.h`, the list of symbols and the Rust sources, compared: names, arguments, structs, numbers, codes.
//!
//! The header is written for people and checked in; what is compared are the words that matter to a compiler. A
//! signature that changes on one side only fails here.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use client::Status;

use crate::build::{home, library, run};

fn text(path: &str) -> String {
    let path = home().join(path);
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// All that `pario.h` brings, and what stands beside it.
fn headers() -> String {
    let parts = ["pario.h", "pario_teams.h", "pario_stream.h", "pario_tmk.h"];
    let texts = parts.map(|name| text(&format!("include/{name}")));
    texts.concat()
}

fn sources() -> String {
    let mut all = String::new();
    for entry in fs::read_dir(home().join("src")).unwrap() {
        all += &fs::read_to_string(entry.unwrap().path()).unwrap();
    }
    all
}

/// What stands between two marks, behind each occurrence of the first.
fn between<'a>(text: &'a str, open: &'a str, close: &'a str) -> impl Iterator<Item = &'a str> {
    let parts = text.split(open).skip(1);
    parts.filter_map(move |part| part.split_once(close).map(|(inner, _)| inner))
}

/// One blank between words, none around stars and brackets.
fn plain(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ");
    [" *", "* "]
        .iter()
        .fold(text, |text, star| text.replace(star, "*"))
}

/// The C type of a Rust type.
fn c_type(rust: &str) -> String {
    let rust = rust.trim();
    let inside = |name: &str| {
        let rest = rust.strip_prefix(name)?.strip_prefix('<')?;
        rest.strip_suffix('>')
    };
    if let Some(thing) = inside("Handle") {
        let name = match thing {
            "Connection" => "client",
            "OpenFile" => "file",
            "OpenDirectory" => "directory",
            "LayoutValue" => "layout",
            "Pattern" => "pattern",
            "ViewValue" => "view",
            "Request" => "request",
            "Member" => "team",
            "Meeting" => "meeting",
            "Move" => "move",
            "Plan" => "plan",
            "Channel" => "channel",
            "OpenStream" => "stream",
            other => panic!("no handle of C stands for {other}"),
        };
        return format!("pario_{name}*");
    }
    if let Some(to) = inside("Out") {
        return format!("{}*", c_type(to));
    }
    if let Some(to) = inside("List").or(inside("In")) {
        let to = c_type(to);
        return match to.ends_with('*') {
            true => format!("{to}const*"),
            false => format!("const {to}*"),
        };
    }
    if let Some(to) = rust.strip_prefix("*const ") {
        return format!("const {}*", c_type(to));
    }
    if let Some(to) = rust.strip_prefix("*mut ") {
        return format!("{}*", c_type(to));
    }
    match rust {
        "Text" => "const char*",
        "TextOut" => "char**",
        "Address" => "void*",
        "ConstAddress" => "const void*",
        "ProgressCallback" => "pario_progress_function",
        "GatherCallback" => "pario_gather_function",
        "ElementalCallback" => "pario_elemental_function",
        "PrintCallback" => "pario_print_function",
        "ScanCallback" => "pario_scan_function",
        "VpToken" => "pario_vp*",
        "FILE" => "FILE",
        "c_int" => "int",
        "c_uint" => "unsigned",
        "c_char" => "char",
        "c_void" => "void",
        "usize" => "size_t",
        "u64" => "uint64_t",
        "i64" => "int64_t",
        "u32" => "uint32_t",
        "u8" => "uint8_t",
        "f64" => "double",
        other if other.starts_with("pario_") => other,
        other => panic!("no type of C stands for {other}"),
    }
    .to_owned()
}

/// `name: type` pairs as declarations of C.
fn declared(arguments: &str) -> Vec<String> {
    let mut depth = 0;
    let is_border = |c: char| {
        match c {
            '<' => depth += 1,
            '>' => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0
    };
    let pairs = arguments
        .split(is_border)
        .filter(|pair| !pair.trim().is_empty());
    let declare = |pair: &str| {
        let (name, of) = pair.split_once(':').expect("name: type");
        let of = c_type(of);
        let blank = if of.ends_with('*') { "" } else { " " };
        format!("{of}{blank}{}", name.trim())
    };
    pairs.map(declare).collect()
}

/// Functions of the Rust sources, as C declares them, by name.
fn functions_of_rust() -> BTreeMap<String, String> {
    let sources = sources();
    let mut found = BTreeMap::new();
    for text in between(&sources, "#[unsafe(no_mangle)]", "{") {
        let signature = text.split_once("extern \"C\" fn ").expect("a function").1;
        let (name, rest) = signature.split_once('(').expect("arguments");
        if name.starts_with('$') {
            continue; // a macro; its uses are below
        }
        let (arguments, answer) = rest.rsplit_once(')').expect("arguments");
        let answer = answer
            .trim()
            .strip_prefix("->")
            .map_or("void".into(), c_type);
        let arguments = declared(arguments).join(", ");
        found.insert(name.to_owned(), format!("{answer}({arguments})"));
    }
    // Macros that make several functions of one form: their arguments, where `$of` is in brackets behind the name.
    let forms = [
        ("by_path", "client: Handle<Connection>, path: Text"),
        ("controls", "relayout: Handle<Move>"),
        (
            "at_pointers",
            "file: Handle<OpenFile>, buffer: $of, bytes: usize, moved: Out<u64>",
        ),
        (
            "reductions",
            "team: Handle<Member>, values: Out<$of>, count: usize, how: c_int",
        ),
    ];
    for (form, arguments) in forms {
        let open = format!("\n{form}! {{\n");
        let uses = between(&sources, &open, "\n}")
            .next()
            .expect("a use of the macro");
        for line in uses
            .lines()
            .map(str::trim)
            .filter(|line| line.starts_with("pario_"))
        {
            let end = line.find(['(', ' ']).expect("a name");
            let of = between(line, "(", ")").next().unwrap_or("");
            let arguments = declared(&arguments.replace("$of", of)).join(", ");
            found.insert(line[..end].to_owned(), format!("int({arguments})"));
        }
    }
    found
}

/// Functions of the header by name.
fn functions_of_header() -> BTreeMap<String, String> {
    let header = headers();
    let mut found = BTreeMap::new();
    for declaration in between(&header, "\nPARIO_API ", ";") {
        let (head, arguments) = declaration.split_once('(').expect("arguments");
        let is_border = |c: char| !c.is_alphanumeric() && c != '_';
        let at = head.rfind(is_border).expect("a type and a name") + 1;
        let arguments = plain(arguments.trim_end_matches(')'));
        let arguments = if arguments == "void" {
            ""
        } else {
            arguments.as_str()
        };
        let answer = plain(&head[..at]);
        found.insert(
            head[at..].to_owned(),
            format!("{}({arguments})", answer.trim()),
        );
    }
    found
}

#[test]
fn the_header_declares_what_there_is() {
    let (rust, header) = (functions_of_rust(), functions_of_header());
    assert!(rust.len() > 100, "{} functions", rust.len());
    for (name, form) in &rust {
        assert_eq!(header.get(name), Some(form), "{name}: header and Rust");
    }
    let unknown: Vec<&String> = header
        .keys()
        .filter(|name| !rust.contains_key(*name))
        .collect();
    assert!(unknown.is_empty(), "only in the header: {unknown:?}");
}

#[test]
fn structs_have_the_same_members() {
    let (rust, header) = (text("src/structs.rs"), headers());
    let mut count = 0;
    for body in between(&rust, "pub(crate) struct ", "\n}") {
        let (name, members) = body.split_once(" {").expect("members");
        let open = format!("typedef struct {name} {{");
        let close = format!("}} {name};");
        let of_header = between(&header, &open, &close).next();
        let of_header = of_header.unwrap_or_else(|| panic!("the header has no {name}"));
        let members = members.replace("pub(crate) ", "");
        let members = members
            .split(",\n")
            .map(str::trim)
            .filter(|m| !m.is_empty());
        let expected: Vec<String> = members
            .map(|member| {
                let (name, of) = member
                    .trim_end_matches(',')
                    .split_once(": ")
                    .expect("a member");
                match of.strip_prefix('[').and_then(|of| of.strip_suffix(']')) {
                    Some(list) => {
                        let (of, len) = list.split_once("; ").expect("a length");
                        format!("{} {name}[{len}]", c_type(of))
                    }
                    None => declared(&format!("{name}: {of}")).concat(),
                }
            })
            .collect();
        let found = of_header.split(';').map(plain).filter(|m| !m.is_empty());
        assert_eq!(found.collect::<Vec<_>>(), expected, "{name}");
        count += 1;
    }
    assert!(count > 6, "{count} structs");
}

/// Names and values of the enumerations of the header.
fn numbers_of_header() -> BTreeMap<String, i64> {
    let header = headers();
    let mut found = BTreeMap::new();
    for list in between(&header, "enum {", "}") {
        for entry in list.split(',') {
            let (name, value) = entry.split_once('=').expect("a number");
            found.insert(name.trim().to_owned(), value.trim().parse().unwrap());
        }
    }
    found
}

#[test]
fn numbers_are_the_same() {
    let rust = text("src/structs.rs");
    let header = numbers_of_header();
    let numbers = between(&rust, "\nnumbers! {\n", "\n}").next().unwrap();
    let mut count = 0;
    for line in numbers.lines() {
        let (name, value) = line.trim().trim_end_matches(';').split_once(" = ").unwrap();
        assert_eq!(header.get(name), Some(&value.parse().unwrap()), "{name}");
        count += 1;
    }
    for status in Status::ALL {
        let word = match status.is_ok() {
            true => "PARIO_OK".to_owned(),
            false => format!("PARIO_ERR{}", in_capitals(&format!("{status:?}"))),
        };
        assert_eq!(header.get(&word), Some(&i64::from(status.code())), "{word}");
        count += 1;
    }
    assert_eq!(
        header.len(),
        count,
        "numbers of the header that mean nothing"
    );
    let version = env!("CARGO_PKG_VERSION")
        .split('.')
        .zip(["MAJOR", "MINOR", "PATCH"]);
    for (number, part) in version {
        let line = format!("#define PARIO_VERSION_{part} {number}\n");
        assert!(text("include/pario.h").contains(&line), "{line}");
    }
}

/// `NotFound` as `_NOT_FOUND`.
fn in_capitals(name: &str) -> String {
    let letter = |c: char| match c.is_uppercase() {
        true => format!("_{c}"),
        false => c.to_uppercase().to_string(),
    };
    name.chars().map(letter).collect()
}

/// What the library exports, with versions, is what `pario.map` lists, which is what the header declares.
#[test]
fn nothing_else_is_exported() {
    let map = text("pario.map");
    let listed: Vec<&str> = between(&map, "global:\n", "local:")
        .next()
        .unwrap()
        .lines()
        .map(|line| line.trim().trim_end_matches(';'))
        .filter(|line| !line.is_empty())
        .collect();
    assert!(listed.is_sorted(), "keep the names of a version in order");
    assert!(
        listed
            .iter()
            .copied()
            .eq(functions_of_header().keys().map(String::as_str))
    );
    let symbols = run(Command::new("nm")
        .args(["-D", "--defined-only"])
        .arg(library().join("libpario.so")));
    let mut exported: Vec<&str> = symbols
        .lines()
        .filter_map(|line| line.split_whitespace().last())
        .collect();
    exported.retain(|name| *name != "PARIO_0.1" && *name != "PARIO_0.1@@PARIO_0.1");
    exported.sort_unstable();
    let expected: Vec<String> = listed
        .iter()
        .map(|name| format!("{name}@@PARIO_0.1"))
        .collect();
    assert_eq!(exported, expected);
    let about = run(Command::new("readelf")
        .arg("-d")
        .arg(library().join("libpario.so")));
    assert!(about.contains("Library soname: [libpario.so.0]"), "{about}");
}

/// The header alone, by every compiler and standard that there is.
#[test]
fn the_header_is_clean_in_c_and_cpp() {
    for (compiler, language, standard) in [
        ("gcc", "c", "c99"),
        ("gcc", "c", "c11"),
        ("g++", "c++", "c++11"),
        ("g++", "c++", "c++17"),
        ("clang", "c", "c99"),
        ("clang++", "c++", "c++17"),
    ] {
        // Those of a second compiler count where it is installed.
        if compiler.starts_with("clang") && !crate::build::is_there(compiler) {
            continue;
        }
        let standard = format!("-std={standard}");
        let strict = [
            "-Wall",
            "-Wextra",
            "-Wpedantic",
            "-Wconversion",
            "-Werror",
            "-fsyntax-only",
        ];
        run(Command::new(compiler)
            .args([standard.as_str(), "-x", language])
            .args(strict)
            .arg(home().join("include/pario_tmk.h"))
            .arg(home().join("include/pario.h")));
    }
}
