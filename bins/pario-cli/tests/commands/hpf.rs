//! `pario hpf`: a program in; a program, JSON or a refusal with its place out.
//! What statements become is tested in `hpf`.

use std::fs;

use serde_json::json;
use testkit::TempDir;

use crate::{json_of, run, text_of};

const FREE: &str = "program p\n  real :: a(8)\n  !hpf$ distribute a(block) onto q(2)\n  write (10) a(1:4)\n  print *, a\nend program\n";
const FIXED: &str = "      PROGRAM P\n      REAL A(8)\nCHPF$ DISTRIBUTE A(BLOCK) ONTO Q(2)\n      WRITE (10)\n     1 A\n      END\n";

#[test]
fn programs_in_hpf_are_translated() {
    let dir = TempDir::new();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let (free, fixed, target) = (path("p.f90"), path("p.f"), path("p.pario.f90"));
    fs::write(&free, FREE).unwrap();
    fs::write(&fixed, FIXED).unwrap();

    // What is to be known goes where it is in no program's way.
    let output = run(&["hpf", &free]);
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("program p\n  use pario_hpf\n"), "{text}");
    assert!(text.contains("call pario_hpf_write(10, a(1:4), "), "{text}");
    assert!(text.ends_with("\n  print *, a\nend program\n"), "{text}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        said,
        format!(
            "{free}: line 5, character 12: each process prints what it has of the distributed array a, not all of it\n"
        )
    );

    let report = json_of(&["hpf", &free, "--json"]);
    assert_eq!(report["text"], json!(text));
    assert_eq!(
        report["statements"],
        json!([{ "line": 4, "character": 3, "statement": "WRITE", "unit": "10", "arrays": ["a"] }])
    );
    assert_eq!(report["notes"][0]["line"], 5);
    let report = json_of(&["hpf", &free, "--json", "--output", &target]);
    assert_eq!(report["output"], json!(target));
    assert_eq!(report.get("text"), None);
    assert_eq!(fs::read_to_string(&target).unwrap(), text);

    // The form is known by the name, and can be said.
    let text = text_of(&["hpf", &fixed]);
    assert!(
        text.contains("\n      call pario_hpf_write(10, A, "),
        "{text}"
    );
    assert!(text.lines().all(|line| line.len() <= 72), "{text}");
    assert_eq!(text_of(&["hpf", &fixed, "--form", "fixed"]), text);
}

#[test]
fn what_cannot_be_translated_is_shown_where_it_stands() {
    let dir = TempDir::new();
    let path = dir.path().join("p.f90").display().to_string();
    fs::write(&path, FREE.replace("(10) a(1:4)", "(10, *) a")).unwrap();
    let output = run(&["hpf", &path]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("p.f90: line 4, character 17: formatted input and output"),
        "{said}"
    );
    assert!(
        said.contains("\n    write (10, *) a\n                  ^"),
        "{said}"
    );
    assert!(text_of(&["hpf", "--help"]).contains("Examples:\n  pario hpf "));
}
