//! The log of slow requests, as a service writes it.
//! What counts as waiting is in the tests of `serving`.

use crate::scratch::{Scratch, wait_until};

/// Fields of a line of the log.
fn field<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(&format!(" {name}="))?;
    match rest.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next(),
        None => rest.split_whitespace().next(),
    }
}

#[track_caller]
fn number(line: &str, name: &str) -> f64 {
    let found = field(line, name).unwrap_or_else(|| panic!("no {name}: {line}"));
    found.parse().expect("a number")
}

#[test]
fn slow_requests_are_told_with_what_they_waited_and_worked() {
    let scratch = Scratch::new("slow");
    // Everything takes a microsecond.
    let (meta, url) = scratch.serve(&["meta", "--dir", "meta", "--slow", "1us"]);
    let place = ["io", "--meta", &url, "--listen", "unix:io.sock", "--disk"];
    let limits = ["disk", "--slow", "250ms", "--writes", "through"];
    let rate = ["--disk-rate", "1MiB"];
    let (io, _) = scratch.serve(&[&place[..], &limits, &rate].concat());
    std::fs::write(scratch.path("source"), vec![7; 1 << 20]).expect("written");
    scratch.text(&["--url", &url, "put", "-q", "source", "/file"]);
    let user = rustix::process::geteuid().as_raw().to_string();

    // The disk takes a second for what was written.
    let lines = |errors: String, verb: &str| {
        let is_told =
            |line: &&str| line.contains("slow request") && field(line, "verb") == Some(verb);
        errors
            .lines()
            .filter(is_told)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let written = wait_until("slow writes", || {
        let told = ["Write", "Sync"]
            .map(|verb| lines(io.errors(), verb))
            .concat();
        (!told.is_empty()).then_some(told)
    });
    for line in &written {
        assert_eq!(field(line, "server"), Some("server 0"), "{line}");
        assert!(
            field(line, "file").is_some_and(|f| f.starts_with("file ")),
            "{line}"
        );
        assert_eq!(field(line, "user"), Some(&user[..]), "{line}");
        assert!(number(line, "took_ms") >= 250.0, "{line}");
        let sum = number(line, "waited_ms") + number(line, "worked_ms");
        assert!((sum - number(line, "took_ms")).abs() < 0.01, "{line}");
    }
    assert!(
        lines(io.errors(), "SetView").is_empty(),
        "quick: {}",
        io.errors()
    );

    let opened = wait_until("the open", || {
        lines(meta.errors(), "Open").into_iter().next()
    });
    assert_eq!(field(&opened, "server"), Some("manager"), "{opened}");
    assert_eq!(field(&opened, "file"), Some("/file"), "{opened}");
    assert!(
        number(&opened, "waited_ms") > 0.0,
        "for its commit: {opened}"
    );
    for verb in ["AwaitRecalls", "WatchTeam"] {
        assert!(
            lines(meta.errors(), verb).is_empty(),
            "waits by design: {verb}"
        );
    }

    let refusal = scratch.pario(&["serve", "meta", "--dir", "other", "--slow", "fast"]);
    let said = crate::scratch::refusal_of(refusal, 2);
    assert!(
        said.contains("is no time; give one such as 250us, 500ms"),
        "{said}"
    );
}

#[test]
fn nothing_is_told_unless_it_is_asked_for() {
    let scratch = Scratch::new("slow-off");
    let url = scratch.up(&["--servers", "1"])["url"].clone();
    std::fs::write(scratch.path("source"), vec![7; 1 << 20]).expect("written");
    scratch.text(&[
        "--url",
        url.as_str().expect("a URL"),
        "put",
        "-q",
        "source",
        "/file",
    ]);
    scratch.text(&["down"]);
    let log = std::fs::read_to_string(scratch.path(".pario/log")).expect("a log");
    assert!(!log.contains("slow request"), "{log}");

    // The supervisor hands the option on.
    scratch.up(&["--servers", "1", "--slow", "1us"]);
    scratch.text(&["doctor"]);
    scratch.text(&["down"]);
    let log = std::fs::read_to_string(scratch.path(".pario/log")).expect("a log");
    for server in ["manager", "server 0"] {
        assert!(
            log.contains(&format!("slow request server=\"{server}\"")),
            "{server}: {log}"
        );
    }
}
