//! Every rule of the crate, run over the working tree. A failure lists all complaints of its rule,
//! each with file and line; the rules themselves, with samples that break them, are in `src`.

use std::sync::LazyLock;
use tidy::{Complaint, File, language, layers, links, remaining, sources, tests_named, tree, walk};

static TREE: LazyLock<Vec<File>> =
    LazyLock::new(|| tree::read(&tree::root()).expect("the working tree is readable"));

fn files(wanted: impl Fn(&File) -> bool) -> impl Iterator<Item = &'static File> {
    TREE.iter().filter(move |file| wanted(file))
}

fn rust_files() -> impl Iterator<Item = &'static File> {
    files(|file| file.has_extension("rs"))
}

fn is_script(file: &File) -> bool {
    file.path.starts_with("scripts/") || file.path.starts_with(".ci/") || file.path == "Makefile"
}

/// Runs one rule over files, of which there must be at least one: a rule without files to look at
/// would pass for the wrong reason.
#[track_caller]
fn hold<'a>(files: impl Iterator<Item = &'a File>, rule: impl Fn(&File) -> Vec<Complaint>) {
    let mut looked_at = 0;
    let mut complaints = Vec::new();
    for file in files {
        looked_at += 1;
        complaints.extend(rule(file));
    }
    assert!(looked_at > 0, "found no file to look at");
    report(&complaints);
}

#[track_caller]
fn report(complaints: &[Complaint]) {
    let lines: Vec<String> = complaints.iter().map(|c| format!("  {c}\n")).collect();
    assert!(
        lines.is_empty(),
        "{} complaint(s):\n{}",
        lines.len(),
        lines.concat()
    );
}

#[test]
fn dependencies_point_downwards() {
    hold(
        files(|f| f.name() == "Cargo.toml" && f.member().is_some()),
        layers::check_member,
    );
}

#[test]
fn dependencies_have_reasons() {
    hold(files(|f| f.path == "Cargo.toml"), layers::check_reasons);
}

#[test]
fn unsafe_code_stands_where_it_may() {
    hold(rust_files(), sources::check_unsafe);
}

#[test]
fn releases_have_no_crash_points() {
    hold(rust_files(), sources::check_crash_points);
    hold(
        files(|f| f.path == sources::CRASH_POINTS),
        sources::check_crash_points,
    );
    hold(files(|f| f.path == "Cargo.toml"), sources::check_release);
}

#[test]
fn unsafe_code_is_forbidden_elsewhere() {
    for member in sources::UNSAFE_FORBIDDEN {
        hold(
            files(|f| f.path == format!("{member}/src/lib.rs")),
            sources::check_forbid,
        );
    }
}

#[test]
fn pure_crates_do_not_reach_outside() {
    hold(rust_files(), sources::check_purity);
}

#[test]
fn modules_open_with_prose() {
    hold(rust_files(), sources::check_prose);
}

#[test]
fn files_are_not_too_long() {
    let code = ["rs", "py", "c", "h", "sh"];
    hold(
        files(|f| code.iter().any(|extension| f.has_extension(extension)) || is_script(f)),
        sources::check_length,
    );
}

#[test]
fn names_say_something() {
    hold(files(|_| true), sources::check_name);
}

#[test]
fn no_unfinished_work_is_left() {
    hold(
        files(|f| f.has_extension("rs") || f.has_extension("toml") || is_script(f)),
        sources::check_marks,
    );
}

#[test]
fn scripts_read_pipes_to_their_end() {
    hold(files(is_script), sources::check_pipes);
}

#[test]
fn links_lead_somewhere() {
    let root = tree::root();
    hold(files(|f| f.has_extension("md")), |page| {
        links::check(page, |path| root.join(path).exists())
    });
}

#[test]
fn the_walk_of_a_byte_names_functions_that_exist() {
    let is_source = |f: &&File| f.path.contains("/src/");
    let sources: Vec<File> = rust_files().filter(is_source).cloned().collect();
    hold(files(|f| f.path == "ARCHITECTURE.md"), |page| {
        walk::check(page, &sources)
    });
}

#[test]
fn golden_word_selects_golden_cases_only() {
    hold(rust_files(), tests_named::check_golden);
}

#[test]
fn statements_have_tests() {
    let page = files(|f| f.path == "docs/statements.md").next();
    let page = page.expect("docs/statements.md lists the statements");
    let sources: Vec<File> = rust_files().cloned().collect();
    report(&tests_named::check_statements(page, &sources));
}

#[test]
fn statements_about_speed_have_claims() {
    let find = |path: &str| files(|f| f.path == path).next();
    let page = find("docs/statements.md").expect("docs/statements.md lists the statements");
    let claims = find("scripts/bench-claims.json");
    let claims = claims.expect("scripts/bench-claims.json has the claims about speed");
    report(&tests_named::check_claims(page, claims));
}

#[test]
fn doc_comments_stand_alone() {
    hold(rust_files(), language::check_opening);
}

#[test]
fn words_have_one_meaning() {
    hold(
        files(|f| f.path == "docs/glossary.md"),
        language::check_glossary,
    );
}

#[test]
fn what_remains_can_only_fall() {
    let found = remaining::page(rust_files());
    let noted = files(|f| f.path == remaining::PAGE).next();
    let noted = noted.map_or("", |page| &page.text);
    let complaints = remaining::check(noted, &found);
    let rises = !noted.is_empty() && complaints.iter().any(|c| c.path != remaining::PAGE);
    if std::env::var_os("PARIO_TIDY").is_some_and(|it| it == "lower") && !rises {
        std::fs::write(tree::root().join(remaining::PAGE), found).expect("the page is written");
    } else {
        report(&complaints);
    }
}

#[test]
fn tables_of_modules_are_complete() {
    // The page of the library is for programs that use it, and names what they call.
    let is_for_users = |f: &File| f.path == "crates/pario/src/lib.rs";
    hold(
        files(|f| f.path.ends_with("src/lib.rs") && !is_for_users(f)),
        language::check_module_table,
    );
}

#[test]
fn decisions_say_their_status_and_are_linked() {
    let architecture = files(|f| f.path == "ARCHITECTURE.md").next();
    let architecture = &architecture.expect("the page is there").text;
    let is_decision =
        |f: &File| f.path.starts_with("docs/adr/") && f.path != "docs/adr/0000-template.md";
    hold(files(is_decision), |page| {
        language::check_decision(page, architecture)
    });
}

/// Commits since the rule exists; a copy of the tree without its history has none to look at.
#[test]
fn subjects_of_commits_fit_a_line() {
    const FIRST: &str = "a1b350a";
    let log = std::process::Command::new("git")
        .args(["log", "--format=%s", &format!("{FIRST}..HEAD")])
        .current_dir(tree::root())
        .output();
    match log {
        Ok(log) if log.status.success() => {
            report(&language::check_subjects(&String::from_utf8_lossy(
                &log.stdout,
            )));
        }
        _ => eprintln!("no history here to look at"),
    }
}
