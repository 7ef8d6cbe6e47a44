//! Names of tests: which ones run the golden cases, and which statement a test shows.
//!
//! A test is a function that follows `#[test]`, inside `proptest!` or not; the text is searched,
//! nothing is compiled. Three rules:
//!
//! - The word [`GOLDEN`] selects the golden cases (`cargo test` takes part of a test's path), so it
//!   stands in the paths of those tests and of no other.
//! - `docs/statements.md` lists the numbered statements; each has a test whose name begins with its
//!   id, and a test that begins like an id names a statement of the list.
//! - A statement about speed names [`SPEED`], and has a claim in `scripts/bench-claims.json`; so has every claim a statement.

use crate::lexer::code_only;
use crate::{Complaint, File};

/// The word that selects the tests over the golden cases.
pub const GOLDEN: &str = "vector";

/// What compares claims about speed with figures.
pub const SPEED: &str = "`make bench-check`";

/// A test function and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestFn {
    /// Line of its name, counted from 1.
    pub line: usize,
    /// Its name, without the path.
    pub name: String,
}

/// One row of the list of statements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// Line in the list, counted from 1.
    pub line: usize,
    /// Such as `seed000_s05`.
    pub id: String,
}

/// All tests of one Rust file.
pub fn tests_of(file: &File) -> Vec<TestFn> {
    let mut found = Vec::new();
    let mut marked = false;
    for (index, line) in code_only(&file.text).lines().enumerate() {
        let line = line.trim();
        let rest = line.strip_prefix("#[test]");
        marked |= rest.is_some();
        let Some(name) = marked
            .then(|| function_name(rest.unwrap_or(line)))
            .flatten()
        else {
            continue;
        };
        found.push(TestFn {
            line: index + 1,
            name: name.to_owned(),
        });
        marked = false;
    }
    found
}

/// Tests whose path holds [`GOLDEN`] outside `vectors*.rs`, or lacks it inside.
pub fn check_golden(file: &File) -> Vec<Complaint> {
    let is_golden_file = file.name().starts_with("vectors");
    // Files below `src` lend their module path to their tests; files of `tests` do not.
    let lends_path = file.path.contains("/src/") && file.path.contains(GOLDEN);
    tests_of(file)
        .into_iter()
        .filter_map(|test| {
            let has_word = test.name.contains(GOLDEN);
            let what = match (is_golden_file, has_word) {
                (false, true) => format!(
                    "test `{}` has `{GOLDEN}` in its name, which selects the golden cases; rename \
                     it, or move it to a file vectors*.rs",
                    test.name
                ),
                (false, false) if lends_path => format!(
                    "test `{}` has `{GOLDEN}` in its path, which selects the golden cases; rename \
                     the module",
                    test.name
                ),
                (true, false) => format!(
                    "test `{}` is among the golden cases, so its name needs `{GOLDEN}`",
                    test.name
                ),
                _ => return None,
            };
            Some(Complaint::at(&file.path, test.line, what))
        })
        .collect()
}

/// The statements listed in a page: every code span of the form `seedNNN_xNN_*` in a table row.
pub fn statements_of(page: &File) -> Vec<Statement> {
    let rows = page
        .text
        .lines()
        .enumerate()
        .filter(|(_, line)| line.starts_with('|'));
    rows.flat_map(|(index, line)| {
        line.split('`').skip(1).step_by(2).filter_map(move |span| {
            let id = statement_id(span.strip_suffix("_*")?)?;
            Some(Statement {
                line: index + 1,
                id: id.to_owned(),
            })
        })
    })
    .collect()
}

/// Statements about speed without a claim, and claims without a statement that says where its speed is checked.
pub fn check_claims(page: &File, claims: &File) -> Vec<Complaint> {
    let lines: Vec<&str> = page.text.lines().collect();
    let of_speed: Vec<Statement> = statements_of(page)
        .into_iter()
        .filter(|statement| lines[statement.line - 1].contains(SPEED))
        .collect();
    let mut claimed = Vec::new();
    let mut complaints = Vec::new();
    for (index, line) in claims.text.lines().enumerate() {
        let id = line
            .split_once("\"id\": \"")
            .and_then(|(_, rest)| rest.split('"').next());
        let Some(id) = id else { continue };
        claimed.push(id);
        if !of_speed.iter().any(|statement| statement.id == id) {
            let what = format!("{} has no statement `{id}` that names {SPEED}", page.path);
            complaints.push(Complaint::at(&claims.path, index + 1, what));
        }
    }
    for Statement { line, id } in &of_speed {
        if !claimed.contains(&id.as_str()) {
            let what = format!("{} has no claim of `{id}`", claims.path);
            complaints.push(Complaint::at(&page.path, *line, what));
        }
    }
    complaints
}

/// Statements without a test, statements listed twice, and tests without a statement.
pub fn check_statements(page: &File, sources: &[File]) -> Vec<Complaint> {
    let statements = statements_of(page);
    let tests: Vec<(&File, TestFn)> = sources
        .iter()
        .flat_map(|f| tests_of(f).into_iter().map(move |t| (f, t)))
        .collect();
    let mut complaints = Vec::new();
    if statements.is_empty() {
        complaints.push(Complaint::about(&page.path, "lists no statement"));
    }
    for (index, Statement { line, id }) in statements.iter().enumerate() {
        if statements[..index].iter().any(|earlier| earlier.id == *id) {
            complaints.push(Complaint::at(
                &page.path,
                *line,
                format!("`{id}` is listed twice"),
            ));
        }
        if !tests
            .iter()
            .any(|(_, test)| statement_id(&test.name) == Some(id))
        {
            let what = format!("no test has a name that begins with `{id}_`");
            complaints.push(Complaint::at(&page.path, *line, what));
        }
    }
    for (file, test) in &tests {
        let Some(id) = statement_id(&test.name) else {
            continue;
        };
        if !statements.iter().any(|s| s.id == id) {
            let what = format!(
                "test `{}` shows a statement that {} lacks",
                test.name, page.path
            );
            complaints.push(Complaint::at(&file.path, test.line, what));
        }
    }
    complaints
}

/// The leading `seedNNN_sNN` (or `_sNNa`, `_iNN`, `_pioNN`) of a name, if the name ends there or goes on with `_`.
fn statement_id(name: &str) -> Option<&str> {
    let rest = name.strip_prefix("seed")?;
    let (seed, rest) = rest.split_at_checked(3)?;
    let number = rest
        .strip_prefix("_s")
        .or_else(|| rest.strip_prefix("_i"))
        .or_else(|| rest.strip_prefix("_pio"))?;
    let digits = number.bytes().take_while(u8::is_ascii_digit).count();
    // Statements that were added between two numbers have a letter.
    let letters = number[digits..].starts_with(|c: char| c.is_ascii_lowercase());
    let end = digits + usize::from(letters);
    let goes_on = number[end..].chars().next().is_none_or(|c| c == '_');
    let ok = seed.bytes().all(|b| b.is_ascii_digit()) && digits >= 2 && goes_on;
    ok.then(|| &name[..name.len() - number.len() + end])
}

/// The name after `fn` in a line, whatever stands before it.
fn function_name(line: &str) -> Option<&str> {
    let at = if line.starts_with("fn ") {
        0
    } else {
        line.find(" fn ")? + 1
    };
    let name = line[at + 3..].trim_start();
    let end = name
        .find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap_or(name.len());
    (end > 0).then(|| &name[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(complaints: &[Complaint]) -> Vec<String> {
        complaints.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn finds_tests_however_they_are_written() {
        let text = "#[test]\nfn one() {}\nfn no() {}\n#[test]\n#[should_panic]\npub fn two() {}\n\
                    proptest! {\n    #[test]\n    fn three(x in 0..9) {}\n}\n#[test] fn four() {}\n\
                    // #[test]\nfn not_either() {}\n";
        let found = tests_of(&File::new("a.rs", text));
        let found: Vec<_> = found.iter().map(|t| (t.line, t.name.as_str())).collect();
        assert_eq!(found, [(2, "one"), (6, "two"), (9, "three"), (11, "four")]);
    }

    #[test]
    fn golden_word_belongs_to_golden_files() {
        let word = GOLDEN;
        let text = format!("#[test]\nfn mpi_{word}_packs() {{}}\n#[test]\nfn other() {{}}\n");
        let check = |path: &str| strings(&check_golden(&File::new(path, text.as_str())));
        let named = check("crates/layout/tests/mpi.rs");
        assert_eq!(named.len(), 1);
        assert!(
            named[0].starts_with("crates/layout/tests/mpi.rs:2: test `mpi_"),
            "{named:?}"
        );
        let lent = check(&format!("crates/layout/src/mpi/{word}.rs"));
        assert!(lent[1].contains("in its path"), "{lent:?}");
        let golden = check("crates/layout/tests/vectors_mpi.rs");
        assert_eq!(golden.len(), 1);
        assert!(
            golden[0].contains(":4: test `other` is among the golden cases"),
            "{golden:?}"
        );
    }

    #[test]
    fn ids_are_read_to_their_end() {
        assert_eq!(
            statement_id("seed000_s05_rank_is_total"),
            Some("seed000_s05")
        );
        assert_eq!(statement_id("seed000_i16"), Some("seed000_i16"));
        assert_eq!(statement_id("seed002_s100_x"), Some("seed002_s100"));
        assert_eq!(statement_id("seed001_s50a_x"), Some("seed001_s50a"));
        for name in [
            "seed000_s5_x",
            "seed00_s05",
            "seed000_x05",
            "seeds",
            "seed000_s05xy",
            "seed",
        ] {
            assert_eq!(statement_id(name), None, "{name}");
        }
    }

    #[test]
    fn statement_without_test_is_refused() {
        let page = File::new(
            "docs/statements.md",
            "`seed009_s01_*` in prose\n\n| 1 | one | `seed000_s01_*` |\n| 2 | two | `seed000_s02_*` |\n\
             | 2 | two | `seed000_s02_*` |\n",
        );
        let source = File::new(
            "crates/falls/tests/a.rs",
            "#[test]\nfn seed000_s01_holds() {}\n#[test]\nfn seed000_s77_holds() {}\n\
             fn seed000_s02_is_no_test() {}\n",
        );
        assert_eq!(
            strings(&check_statements(&page, &[source])),
            [
                "docs/statements.md:4: no test has a name that begins with `seed000_s02_`",
                "docs/statements.md:5: `seed000_s02` is listed twice",
                "docs/statements.md:5: no test has a name that begins with `seed000_s02_`",
                "crates/falls/tests/a.rs:4: test `seed000_s77_holds` shows a statement that \
                 docs/statements.md lacks"
            ]
        );
    }

    #[test]
    fn statement_about_speed_without_claim_and_claim_without_statement_are_refused() {
        let page = File::new(
            "docs/statements.md",
            "| 1 | fast (speed: `make bench-check`) | `seed000_s01_*` |\n| 2 | fast (speed: `make bench-check`) | `seed000_s02_*` |\n\
             | 3 | right | `seed000_s03_*` |\n",
        );
        let claims = File::new(
            "scripts/bench-claims.json",
            "{\"claims\": [\n{\"id\": \"seed000_s01\", \"at_least\": 1},\n{\"id\": \"seed000_s03\", \"at_least\": 1}]}\n",
        );
        assert_eq!(
            strings(&check_claims(&page, &claims)),
            [
                "scripts/bench-claims.json:3: docs/statements.md has no statement `seed000_s03` that names `make bench-check`",
                "docs/statements.md:2: scripts/bench-claims.json has no claim of `seed000_s02`",
            ]
        );
    }

    #[test]
    fn empty_list_of_statements_is_refused() {
        let page = File::new("docs/statements.md", "nothing\n");
        assert_eq!(
            strings(&check_statements(&page, &[])),
            ["docs/statements.md: lists no statement"]
        );
    }
}
