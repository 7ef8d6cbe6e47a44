//! `vipios.h`, the list of symbols and the Rust sources, compared; and the header by every compiler and standard.
//!
//! Names, results and numbers of arguments are compared; their types are seen by the programs, which call every function.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use client::Status;
use system_tests::native::{is_there, run};

use crate::VIPIOS;

fn text(path: &str) -> String {
    let path = Path::new(VIPIOS.home).join(path);
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// What stands between two marks, behind each occurrence of the first.
fn between<'a>(text: &'a str, open: &'a str, close: &'a str) -> impl Iterator<Item = &'a str> {
    let parts = text.split(open).skip(1);
    parts.filter_map(move |part| part.split_once(close).map(|(inner, _)| inner))
}

/// Functions of the header: what they return and how many arguments they take.
fn functions_of_header() -> BTreeMap<String, (String, usize)> {
    let header = text("include/vipios.h") + &text("include/vip_unix.h");
    let mut found = BTreeMap::new();
    for declaration in between(&header, "\nVIPIOS_API ", ";") {
        let (head, arguments) = declaration.split_once('(').expect("arguments");
        let at = head.rfind([' ', '*']).expect("what it returns") + 1;
        let count = match arguments.trim_end_matches(')') {
            "void" => 0,
            list => list.split(',').count(),
        };
        let answer = head[..at].trim().to_owned();
        found.insert(head[at..].to_owned(), (answer, count));
    }
    found
}

/// Functions of the Rust sources, with what they return and how many arguments they take.
fn functions_of_rust() -> BTreeMap<String, (String, usize)> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(Path::new(VIPIOS.home).join("src")).unwrap() {
        let source = fs::read_to_string(entry.unwrap().path()).unwrap();
        let mut forms = BTreeMap::new();
        for function in between(&source, "#[unsafe(no_mangle)]", "{") {
            let signature = function
                .split_once("extern \"C\" fn ")
                .expect("a function")
                .1;
            let (name, rest) = signature.split_once('(').expect("arguments");
            let (arguments, answer) = rest.rsplit_once(") -> ").expect("an answer");
            let answer = match answer.trim() {
                "bool" => "bool",
                "c_int" => "int",
                "i64" => "int64_t",
                "isize" => "ssize_t",
                "*const c_char" => "const char *",
                "*const ViPIOS_State" => "const ViPIOS_State *",
                other => panic!("no type of C stands for {other}"),
            };
            let count = arguments.matches(": ").count();
            forms.insert(name.to_owned(), (answer.to_owned(), count));
        }
        // Macros that make several functions of one form, whose name is `$name`.
        for (at, _) in source.match_indices("macro_rules! ") {
            let rest = &source[at + "macro_rules! ".len()..];
            let macro_name = &rest[..rest.find(' ').expect("a name")];
            let body = &rest[..rest.find("\n}\n").expect("its end")];
            let signature = between(body, "extern \"C\" fn $name(", "{")
                .next()
                .expect("a function");
            let (arguments, answer) = signature.rsplit_once(") -> ").expect("an answer");
            let answer = answer.trim().replace("c_int", "int");
            let form = (answer, arguments.matches(": ").count());
            let open = format!("\n{macro_name}! {{\n");
            for used in between(&source, &open, "\n}\n") {
                let names = used
                    .lines()
                    .map(str::trim)
                    .filter(|line| line.starts_with("ViPIOS_") || line.starts_with("vip_"));
                for line in names {
                    let end = line.find(['(', ' ']).expect("a name");
                    found.insert(line[..end].to_owned(), form.clone());
                }
            }
        }
        forms.remove("$name");
        found.extend(forms);
    }
    found
}

#[test]
fn the_header_declares_what_there_is() {
    let (rust, header) = (functions_of_rust(), functions_of_header());
    assert!(rust.len() > 40, "{} functions", rust.len());
    assert_eq!(rust, header);
}

/// The calls of the source: 2.1 of the specification, N01 to N23.
#[test]
fn all_calls_of_the_source_are_there() {
    let header = functions_of_header();
    let calls = [
        "ViPIOS_Connect",
        "ViPIOS_Disconnect",
        "ViPIOS_Shutdown",
        "ViPIOS_Open",
        "ViPIOS_Close",
        "ViPIOS_Remove",
        "ViPIOS_File_set_size",
        "ViPIOS_File_get_size",
        "ViPIOS_Read",
        "ViPIOS_Write",
        "ViPIOS_Read_struct",
        "ViPIOS_Write_struct",
        "ViPIOS_Iread",
        "ViPIOS_Iwrite",
        "ViPIOS_Iread_struct",
        "ViPIOS_Iwrite_struct",
        "ViPIOS_File_Test",
        "ViPIOS_File_Wait",
        "ViPIOS_Seek",
        "ViPIOS_Seek_struct",
        "ViPIOS_File_get_position",
        "ViPIOS_File_get_count",
        "Vipios_IOState",
    ];
    assert_eq!(calls.len(), 23);
    for call in calls {
        assert!(header.contains_key(call), "{call}");
    }
    // What counts in int has a sister that counts in 64 bits.
    let declarations = text("include/vipios.h");
    for declaration in between(&declarations, "\nVIPIOS_API ", ";") {
        let (head, arguments) = declaration.split_once('(').unwrap();
        let name = head.rsplit([' ', '*']).next().unwrap();
        let counts = [
            "int count",
            "int len",
            "int size",
            "int *size",
            "int *pos",
            "int *count",
            "int offset",
            "int *extent",
        ];
        if counts.iter().any(|count| arguments.contains(count)) {
            assert!(header.contains_key(&format!("{name}64")), "{name}64");
        }
    }
}

#[test]
fn numbers_are_the_same() {
    let header = text("include/vipios.h");
    for status in Status::ALL.iter().filter(|status| !status.is_ok()) {
        let letter = |c: char| match c.is_uppercase() {
            true => format!("_{c}"),
            false => c.to_uppercase().to_string(),
        };
        let word: String = format!("{status:?}").chars().map(letter).collect();
        let line = format!("VIPIOS_ERR{word} = {}", status.code());
        assert!(header.contains(&line), "{line}");
    }
    for file in ["src/files.rs", "src/pointer.rs"] {
        let source = text(file);
        for constant in between(&source, "const VIPIOS_", ";") {
            let (name, value) = constant.split_once(": c_int = ").expect("a number");
            assert!(
                header.contains(&format!("    VIPIOS_{name} = {value}")),
                "{name}"
            );
        }
    }
}

/// What the library exports, with versions, is what `vipios.map` lists, which is what the header declares.
#[test]
fn nothing_else_is_exported() {
    let map = text("vipios.map");
    let listed: Vec<&str> = between(&map, "global:\n", "local:")
        .next()
        .unwrap()
        .lines()
        .map(|line| line.trim().trim_end_matches(';'))
        .filter(|line| !line.is_empty())
        .collect();
    assert!(listed.is_sorted(), "keep the names of a version in order");
    let declared: BTreeSet<String> = functions_of_header().into_keys().collect();
    assert_eq!(
        declared,
        listed.iter().map(|name| (*name).to_owned()).collect()
    );
    let library = VIPIOS.folder().join("libvipios.so");
    let symbols = run(Command::new("nm")
        .args(["-D", "--defined-only"])
        .arg(&library));
    let mut exported: Vec<&str> = symbols
        .lines()
        .filter_map(|line| line.split_whitespace().last())
        .filter(|name| *name != "VIPIOS_0.1" && *name != "VIPIOS_0.1@@VIPIOS_0.1")
        .collect();
    exported.sort_unstable_by_key(|name| name.split('@').next());
    let expected: Vec<String> = listed
        .iter()
        .map(|name| format!("{name}@@VIPIOS_0.1"))
        .collect();
    assert_eq!(exported, expected);
    let about = run(Command::new("readelf").arg("-d").arg(&library));
    assert!(
        about.contains("Library soname: [libvipios.so.0]"),
        "{about}"
    );
}

/// The headers alone, by every compiler and standard that there is.
#[test]
fn the_headers_are_clean_in_c_and_cpp() {
    for (compiler, language, standard) in [
        ("gcc", "c", "c99"),
        ("gcc", "c", "c11"),
        ("g++", "c++", "c++11"),
        ("g++", "c++", "c++17"),
        ("clang", "c", "c99"),
        ("clang", "c", "c11"),
        ("clang++", "c++", "c++17"),
    ] {
        // Those of a second compiler count where it is installed.
        if compiler.starts_with("clang") && !is_there(compiler) {
            continue;
        }
        let strict = [
            "-Wall",
            "-Wextra",
            "-Wpedantic",
            "-Wconversion",
            "-Werror",
            "-fsyntax-only",
        ];
        let mut command = Command::new(compiler);
        command
            .args([format!("-std={standard}").as_str(), "-x", language])
            .args(strict);
        for header in ["vipios.h", "vip_func.h", "vip_unix.h"] {
            let path = Path::new(VIPIOS.home).join("include").join(header);
            command.arg("-include").arg(path);
        }
        run(command.arg("/dev/null"));
    }
}
