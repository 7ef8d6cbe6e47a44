//! What users get wrong: one line that says what to do, exit code 1; wrong usage exit code 2; and
//! nothing is created or left running.

use crate::scratch::{Scratch, refusal_of, write_secret};

#[test]
fn down_without_a_service_is_refused_and_creates_nothing() {
    let scratch = Scratch::new("none");
    for (url, words) in [
        (None, &["no service runs in .pario", "PARIO_URL"][..]),
        (Some(""), &["no service runs in .pario"]),
        (Some("dir:x"), &["no service runs in x", "--dir"]),
        (Some("unix:/nowhere/s"), &["unix:/nowhere/s"]),
        (Some("tcp:127.0.0.1:1"), &["tcp:127.0.0.1:1"]),
        (Some("job:"), &["PARIO_URL"]),
        (Some("http://x"), &["PARIO_URL", "unix:PATH"]),
    ] {
        let mut command = scratch.pario(&["down"]);
        command.env("PARIO_TIMEOUT", "0.2");
        if let Some(url) = url {
            command.env("PARIO_URL", url);
        }
        let errors = refusal_of(command, 1);
        for word in words {
            assert!(errors.contains(word), "{url:?}: no {word} in {errors}");
        }
    }
    let errors = scratch.refused(&["down", "--dir", "elsewhere"]);
    assert!(errors.contains("no service runs in elsewhere"), "{errors}");
    for command in ["status", "doctor"] {
        let errors = scratch.refused(&[command]);
        assert!(errors.contains("pario up"), "{command}: {errors}");
    }
    let left = std::fs::read_dir(scratch.path("")).expect("there").count();
    assert_eq!(left, 0, "something was created");
}

#[test]
fn services_that_cannot_start_say_what_to_do() {
    let scratch = Scratch::new("cannot");
    let long = "d".repeat(120);
    write_secret(&scratch.path("short"), "short");
    std::fs::create_dir_all(scratch.path("disk/io-0")).expect("made");
    std::fs::write(scratch.path("plain"), "").expect("written");
    for (arguments, words) in [
        (&["--dir", &long][..], &["107", "--listen unix:/tmp/"][..]),
        (&["--listen", "tcp:0.0.0.0:0"], &["secret", "--secret FILE"]),
        (&["--secret", "short"], &["--secret", "16 bytes"]),
        (&["--secret", "absent"], &["--secret", "absent"]),
        (
            &["--dir", "disk", "--store", "memory"],
            &["--store disk", "--dir"],
        ),
        (&["--dir", "plain"], &["--dir", "plain"]),
        (
            &["--listen", "tcp:192.0.2.1:0", "--secret", "long"],
            &["tcp:192.0.2.1:0"],
        ),
    ] {
        write_secret(&scratch.path("long"), "sixteen bytes are enough");
        for detach in [&[][..], &["--detach"]] {
            let all = [&["up", "--servers", "1"], arguments, detach].concat();
            let errors = scratch.refused(&all);
            for word in words {
                assert!(errors.contains(word), "{all:?}: no {word} in {errors}");
            }
        }
    }
    assert!(!scratch.path(".pario/service.json").exists());
}

#[test]
fn io_server_far_from_its_metadata_manager_has_to_say_where_it_is() {
    let scratch = Scratch::new("far");
    let meta = "tcp:node.invalid:4711";
    let errors = scratch.refused(&["serve", "io", "--memory", "64MiB", "--meta", meta]);
    assert!(errors.contains("--listen tcp:"), "{errors}");
}

#[test]
fn wrong_usage_is_told_apart() {
    let scratch = Scratch::new("usage");
    for (arguments, word) in [
        (&["up", "--servers", "0"][..], "--servers"),
        (&["up", "--store", "tape"], "memory"),
        (&["up", "--memory", "lots"], "is no size"),
        (&["up", "--listen", "dir:x"], "unix:PATH or tcp:HOST:PORT"),
        (&["serve"], "Usage"),
        (&["serve", "meta"], "--dir"),
        (&["serve", "io", "--meta", "unix:x"], "--memory"),
        (&["serve", "io", "--memory", "1MiB"], "--meta"),
        (
            &["serve", "io", "--meta", "unix:x", "--memory", "0"],
            "is nothing",
        ),
        (&["completions", "tcsh"], "bash"),
        (&["status", "--nonsense"], "--nonsense"),
    ] {
        let errors = refusal_of(scratch.pario(arguments), 2);
        assert!(
            errors.contains(word),
            "{arguments:?}: no {word} in {errors}"
        );
    }
}
