//! Rules for single source files: unsafe code, prose, length, names, left-over marks, purity.
//!
//! Checks that are about code look at it through [`code_only`], so that a word in a comment or in a
//! message is not mistaken for code; checks that are about marks look at everything.

use crate::lexer::{code_only, has_word};
use crate::{Complaint, File};

/// Members that may contain unsafe code. Everything else goes without.
pub const UNSAFE_ALLOWED: &[&str] = &[
    "bindings/border",
    "bindings/c",
    "bindings/mpiio",
    "bindings/python",
    "bindings/vipios",
    "crates/direct",
    "crates/dsm",
    "crates/kernels",
    "crates/store",
];

/// Members whose root must say `#![forbid(unsafe_code)]`, which no inner `allow` can lift.
pub const UNSAFE_FORBIDDEN: &[&str] = &[
    "crates/advise",
    "crates/client",
    "crates/control",
    "crates/embedded",
    "crates/falls",
    "crates/ioserver",
    "crates/layout",
    "crates/lockfile",
    "crates/meta",
    "crates/metaserver",
    "crates/pario",
    "crates/pio",
    "crates/plan",
    "crates/serving",
    "crates/streams",
    "crates/tidy",
    "crates/wire",
];

/// Members that compute only: no files, no sockets, no threads, no clocks, no environment.
pub const PURE: &[&str] = &[
    "crates/advise",
    "crates/falls",
    "crates/layout",
    "crates/plan",
];

/// Lines above which a file wants splitting along a line of meaning.
pub const LONGEST: usize = 900;

/// Unsafe code outside the members that may have it.
pub fn check_unsafe(file: &File) -> Vec<Complaint> {
    if file.member().is_some_and(|m| UNSAFE_ALLOWED.contains(&m)) {
        return Vec::new();
    }
    let keyword = "unsafe";
    lines_where(&code_only(&file.text), |line| has_word(line, keyword))
        .map(|line| {
            let what = format!("`{keyword}` stands only in {}", UNSAFE_ALLOWED.join(", "));
            Complaint::at(&file.path, line, what)
        })
        .collect()
}

/// The file with the places where a test lets a process die or meet a bug.
pub const CRASH_POINTS: &str = "crates/control/src/crash.rs";

/// Variables that tests name such places with.
const CRASH_VARIABLES: &[&str] = &["PARIO_CRASH_AT", "PARIO_PANIC_AT", "PARIO_STAY_AT"];

/// What is released has no place where a test lets it die: the variables that name them are read in one file, in code
/// that exists with debug assertions only, and no release has those. A feature would not do: any crate of the
/// workspace could switch it on for all. Nothing else depends on debug assertions, so that `make test` compiles one crate,
/// not all, as it is released.
pub fn check_crash_points(file: &File) -> Vec<Complaint> {
    let is_test = file.path.contains("/tests/") || file.path.starts_with("crates/tidy/");
    if is_test || file.path.starts_with("crates/system-tests/") {
        return Vec::new();
    }
    let mut complaints = Vec::new();
    let mut is_debug = false;
    for (index, line) in file.text.lines().enumerate() {
        is_debug |= line == "mod wanted {";
        if line.trim_start().starts_with("//") {
            continue;
        }
        if file.path != CRASH_POINTS && line.contains("debug_assertions") {
            let what = format!("only {CRASH_POINTS} is another with debug assertions");
            complaints.push(Complaint::at(&file.path, index + 1, what));
        }
        if !CRASH_VARIABLES.iter().any(|name| line.contains(name)) {
            continue;
        }
        if file.path != CRASH_POINTS || !is_debug {
            let what =
                format!("crash points are read in {CRASH_POINTS} only, behind debug assertions");
            complaints.push(Complaint::at(&file.path, index + 1, what));
        }
    }
    let guard = "#[cfg(debug_assertions)]\nmod wanted {";
    if file.path == CRASH_POINTS && !file.text.contains(guard) {
        let what = "`mod wanted` has to stand behind `#[cfg(debug_assertions)]`";
        complaints.push(Complaint::at(&file.path, 1, what));
    }
    complaints
}

/// Releases are built without debug assertions and with overflow checks.
pub fn check_release(manifest: &File) -> Vec<Complaint> {
    let release = manifest.text.split("[profile.release]").nth(1);
    let release = release.map_or("", |rest| rest.split("\n[").next().unwrap_or(""));
    ["debug-assertions = false", "overflow-checks = true"]
        .iter()
        .filter(|setting| !release.lines().any(|line| line == **setting))
        .map(|setting| {
            Complaint::at(
                &manifest.path,
                1,
                format!("[profile.release] lacks `{setting}`"),
            )
        })
        .collect()
}

/// The root of a member that goes without unsafe code must forbid it.
pub fn check_forbid(root: &File) -> Vec<Complaint> {
    let bound = root.member().is_some_and(|m| UNSAFE_FORBIDDEN.contains(&m));
    let attribute = "#![forbid(unsafe_code)]";
    if !bound
        || code_only(&root.text)
            .lines()
            .any(|line| line.trim() == attribute)
    {
        return Vec::new();
    }
    vec![Complaint::about(&root.path, format!("lacks `{attribute}`"))]
}

/// A module opens with prose: at least two lines of `//!` that say something.
pub fn check_prose(file: &File) -> Vec<Complaint> {
    let prose = file
        .text
        .lines()
        .map_while(|line| line.strip_prefix("//!"))
        .filter(|line| line.trim().chars().any(char::is_alphabetic))
        .count();
    if prose >= 2 {
        return Vec::new();
    }
    let what = format!(
        "opens with {prose} lines of `//!` prose; say in two or more what it owns and what it leaves \
         to others"
    );
    vec![Complaint::at(&file.path, 1, what)]
}

/// A file that has grown past [`LONGEST`] lines.
pub fn check_length(file: &File) -> Vec<Complaint> {
    let lines = file.text.lines().count();
    if lines <= LONGEST {
        return Vec::new();
    }
    let what = format!("{lines} lines, more than {LONGEST}; split it along a line of meaning");
    vec![Complaint::at(&file.path, lines, what)]
}

/// A file or folder whose name says nothing about what it holds.
pub fn check_name(file: &File) -> Vec<Complaint> {
    let empty = [
        "util", "utils", "common", "misc", "helper", "helpers", "stuff",
    ];
    file.path
        .split('/')
        .filter(|part| empty.contains(&part.split('.').next().unwrap_or(part)))
        .map(|part| {
            let what =
                format!("`{part}` says nothing; name it after the type or the verb it holds");
            Complaint::about(&file.path, what)
        })
        .collect()
}

/// Marks of unfinished work. They are written here in two halves so that this file has none.
pub fn check_marks(file: &File) -> Vec<Complaint> {
    let words = [
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("XX", "X"),
    ];
    let macros = [
        concat!("to", "do!"),
        concat!("db", "g!"),
        concat!("unimple", "mented!"),
    ];
    let mut complaints = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        let word = words.into_iter().find(|w| has_word(line, w));
        let call = macros.into_iter().find(|m| {
            line.match_indices(m)
                .any(|(at, _)| line[at + m.len()..].starts_with(['(', '[', '{']))
        });
        if let Some(mark) = word.or(call) {
            let what =
                format!("`{mark}`: finish it, or write an issue and say here what holds now");
            complaints.push(Complaint::at(&file.path, index + 1, what));
        }
    }
    complaints
}

/// Whatever the pure members must not reach for. Their tests, after `#[cfg(test)]`, may read files.
pub fn check_purity(file: &File) -> Vec<Complaint> {
    let in_source = PURE
        .iter()
        .any(|member| file.path.starts_with(&format!("{member}/src/")));
    if !in_source {
        return Vec::new();
    }
    let outside = [
        "std::fs",
        "std::io",
        "std::net",
        "std::os",
        "std::thread",
        "std::time",
        "std::env",
        "std::process",
        "println!",
        "eprintln!",
        "print!",
        "eprint!",
    ];
    let code = code_only(&file.text);
    let shipped = code.split("#[cfg(test)]").next().unwrap_or("");
    let mut complaints = Vec::new();
    for (index, line) in shipped.lines().enumerate() {
        let start_of_word = |at: usize| {
            !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':')
        };
        let reach = outside.into_iter().find(|reach| {
            line.match_indices(reach).any(|(at, _)| {
                start_of_word(at)
                    && !line[at + reach.len()..]
                        .starts_with(|c: char| c.is_alphanumeric() || c == '_')
            })
        });
        if let Some(reach) = reach {
            let what = format!("`{reach}`: this crate computes only; no I/O, threads or clocks");
            complaints.push(Complaint::at(&file.path, index + 1, what));
        }
    }
    complaints
}

fn lines_where(text: &str, holds: impl Fn(&str) -> bool) -> impl Iterator<Item = usize> {
    text.lines()
        .enumerate()
        .filter(move |(_, line)| holds(line))
        .map(|(index, _)| index + 1)
}

/// Readers that leave before their input ends. The writer is then killed by a broken pipe, now and then, and with
/// `pipefail` the script with it.
const LEAVES_EARLY: &[&str] = &["head ", "grep -q", "grep -m"];

/// A pipe in a script into a reader that leaves early.
pub fn check_pipes(file: &File) -> Vec<Complaint> {
    let leaves = |reader: &str| {
        let reader = reader.trim_start();
        let stops_itself = reader.starts_with("awk ") && reader.contains("exit");
        stops_itself || LEAVES_EARLY.iter().any(|early| reader.starts_with(early))
    };
    let is_early = |line: &str| {
        !line.trim_start().starts_with('#') && line.replace("||", "").split('|').skip(1).any(leaves)
    };
    lines_where(&file.text, is_early)
        .map(|line| {
            let what = "the reader behind the pipe leaves early and may kill the writer; let it read to the end, as `sed -n 1p` does";
            Complaint::at(&file.path, line, what)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn expect(found: &[Complaint], expected: &[(usize, &str)]) {
        let found: Vec<(usize, &str)> = found.iter().map(|c| (c.line, c.what.as_str())).collect();
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for ((line, what), (expected_line, part)) in found.iter().zip(expected) {
            assert_eq!(line, expected_line);
            assert!(what.contains(part), "{what}");
        }
    }

    #[test]
    fn unsafe_outside_kernels_is_refused() {
        let text = "// unsafe\nlet s = \"unsafe\";\nfn f() { unsafe { g() } }\nunsafe_code;\n";
        let bad = File::new("crates/plan/src/lib.rs", text);
        expect(
            &check_unsafe(&bad),
            &[(
                3,
                "stands only in bindings/border, bindings/c, bindings/mpiio, bindings/python, bindings/vipios",
            )],
        );
        expect(
            &check_unsafe(&File::new("crates/kernels/src/lib.rs", text)),
            &[],
        );
    }

    #[test]
    fn missing_forbid_is_refused() {
        let bad =
            "//! `#![forbid(unsafe_code)]`\n// #![forbid(unsafe_code)]\n#![deny(unsafe_code)]\n";
        expect(
            &check_forbid(&File::new("crates/plan/src/lib.rs", bad)),
            &[(0, "lacks")],
        );
        let good = "//! x\n#![forbid(unsafe_code)]\n";
        expect(
            &check_forbid(&File::new("crates/plan/src/lib.rs", good)),
            &[],
        );
        expect(
            &check_forbid(&File::new("crates/kernels/src/lib.rs", bad)),
            &[],
        );
    }

    #[test]
    fn module_without_prose_is_refused() {
        let check = |text: &str| check_prose(&File::new("crates/falls/src/cut.rs", text));
        expect(&check("use x;\n"), &[(1, "0 lines")]);
        expect(
            &check("//! Cut.\n//!\n//! ---\nuse x;\n"),
            &[(1, "1 lines")],
        );
        expect(&check("use x;\n//! Cut.\n//! More.\n"), &[(1, "0 lines")]);
        expect(
            &check("//! Cut.\n//!\n//! It owns the cutting.\nuse x;\n"),
            &[],
        );
    }

    #[test]
    fn long_file_is_refused() {
        let check = |lines: usize| check_length(&File::new("a.rs", "x\n".repeat(lines)));
        expect(&check(LONGEST), &[]);
        expect(&check(LONGEST + 1), &[(901, "901 lines")]);
    }

    #[test]
    fn empty_name_is_refused() {
        for path in [
            "crates/falls/src/utils.rs",
            "crates/common/src/lib.rs",
            "docs/misc/x.md",
        ] {
            assert_eq!(check_name(&File::new(path, "")).len(), 1, "{path}");
        }
        expect(
            &check_name(&File::new("crates/falls/src/common_period.rs", "")),
            &[],
        );
    }

    #[test]
    fn unfinished_work_is_refused() {
        let marks = [
            "// TO+DO: x",
            "# FIX+ME",
            "/* XX+X */",
            "to+do!()",
            "db+g!(x)",
            "unimple+mented!()",
        ];
        for mark in marks {
            let text = format!("fine\n{}\n", mark.replace('+', ""));
            expect(&check_marks(&File::new("a.rs", text)), &[(2, "finish it")]);
        }
        let fine = concat!("mastodon TO", "DOS XX", "XX the db", "g! mark");
        expect(&check_marks(&File::new("a.rs", fine)), &[]);
    }

    #[test]
    fn reader_that_leaves_early_is_refused() {
        let check = |text: &str| check_pipes(&File::new("scripts/x", text));
        for bad in [
            "x=$(ldconfig -p | awk '$1 == \"a\" { print $2; exit }')",
            "find . | head -n 1",
            "a | b | grep -qx c",
        ] {
            expect(&check(bad), &[(1, "leaves early")]);
        }
        let fine = "a || head -n 1 b\n# a | head -n 1\na | awk '{ print }'\na | sed -n 1p\ncommand -v a || exit\n";
        expect(&check(fine), &[]);
    }

    #[test]
    fn crash_points_stand_in_one_file_behind_debug_assertions() {
        let check = |path: &str, text: &str| check_crash_points(&File::new(path, text));
        let good = "#[cfg(debug_assertions)]\nmod wanted {\n    \"PARIO_CRASH_AT\"\n}\n";
        expect(&check(CRASH_POINTS, good), &[]);
        expect(&check("crates/store/tests/a.rs", good), &[]);
        expect(
            &check("crates/store/src/a.rs", good),
            &[(1, "with debug assertions"), (3, "are read in")],
        );
        let open = "// debug_assertions\nmod wanted {\n}\n";
        expect(&check(CRASH_POINTS, open), &[(1, "has to stand behind")]);
        expect(&check("crates/store/src/a.rs", open), &[]);
    }

    #[test]
    fn outside_world_in_a_pure_crate_is_refused() {
        let bad = "// std::fs\nuse std::time::Instant;\nfn f() { println!() }\nstd::iterator;\n\
                   #[cfg(test)]\nmod tests { use std::fs; }\n";
        let check = |path: &str| check_purity(&File::new(path, bad));
        expect(
            &check("crates/falls/src/a.rs"),
            &[(2, "`std::time`"), (3, "`println!`")],
        );
        expect(&check("crates/falls/tests/a.rs"), &[]);
        expect(&check("crates/kernels/src/a.rs"), &[]);
    }
}
