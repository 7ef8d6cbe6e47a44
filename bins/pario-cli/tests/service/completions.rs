//! The completions are scripts that their shells can read, where these are installed; bash always
//! is. The help of every command is there.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::scratch::Scratch;

/// Whether a shell takes a script without running it; `None` if it is not installed.
fn parses(shell: &str, script: &str) -> Option<bool> {
    let mut child = Command::new(shell)
        .arg("-n")
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(script.as_bytes()).expect("taken");
    drop(input);
    Some(child.wait().expect("it ends").success())
}

#[test]
fn completions_can_be_read_by_their_shells() {
    let scratch = Scratch::new("shell");
    for shell in ["bash", "zsh", "fish"] {
        let script = scratch.text(&["completions", shell]);
        for word in ["status", "doctor", "--servers", "--store"] {
            let word = match shell {
                "fish" => word.trim_start_matches('-'),
                _ => word,
            };
            assert!(script.contains(word), "{shell}: no {word}");
        }
        assert_ne!(parses(shell, &script), Some(false), "{shell}");
    }
    assert_eq!(
        parses("bash", "if"),
        Some(false),
        "bash reads what it is given"
    );
}

#[test]
fn every_command_of_the_service_has_help() {
    let scratch = Scratch::new("help");
    for command in [
        &["up"][..],
        &["down"],
        &["status"],
        &["doctor"],
        &["serve"],
        &["serve", "meta"],
        &["serve", "io"],
        &["completions"],
    ] {
        let text = scratch.text(&[command, &["--help"]].concat());
        assert!(text.contains("Usage: pario "), "{command:?}: {text}");
        if command != ["serve"] {
            assert!(text.contains("Examples:"), "{command:?}: {text}");
        }
    }
}
