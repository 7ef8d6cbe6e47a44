//! `pario serve`: servers started one by one, ended by signals, killed and started again. Whole
//! services under a supervisor are in `up` and `faults`.

use client::ConnectOptions;
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::scratch::{Scratch, connect, refusal_of, text_of, wait_until};

fn status(scratch: &Scratch, url: &str) -> Value {
    let mut command = scratch.pario(&["status", "--json"]);
    command.env("PARIO_URL", url);
    serde_json::from_str(&text_of(command)).expect("JSON")
}

#[test]
fn servers_end_cleanly_on_signals() {
    let scratch = Scratch::new("term");
    let (mut meta, url) = scratch.serve(&["meta", "--dir", "meta"]);
    assert_eq!(
        url,
        format!("unix:{}", scratch.path("meta/meta.sock").display())
    );
    let (mut first, first_url) = scratch.serve(&[
        "io",
        "--meta",
        &url,
        "--disk",
        "disk",
        "--listen",
        "unix:io.sock",
    ]);
    let socket = scratch.path("io.sock");
    assert_eq!(first_url, format!("unix:{}", socket.display()));
    let (mut second, second_url) = scratch.serve(&["io", "--meta", &url, "--memory", "64MiB"]);
    assert!(
        second_url.starts_with(&url),
        "{second_url} is not beside {url}"
    );
    assert_eq!(
        status(&scratch, &url)["servers"]
            .as_array()
            .expect("a list")
            .len(),
        2
    );
    first.terminate();
    assert!(!socket.exists(), "the socket is left");
    second.signal(Signal::SIGINT);
    assert_eq!(second.ended().code(), Some(0), "{}", second.errors());
    meta.terminate();
    assert!(
        !scratch.path("meta/meta.sock").exists(),
        "the socket is left"
    );
    assert!(meta.errors().contains("SIGTERM"), "{}", meta.errors());
}

#[test]
fn servers_that_listen_can_be_read_by_machines() {
    let scratch = Scratch::new("json");
    let (mut meta, line) = scratch.start(&[
        "serve",
        "meta",
        "--dir",
        "m",
        "--listen",
        "tcp:127.0.0.1:0",
        "--json",
    ]);
    let said: Value = serde_json::from_str(&line).expect("JSON");
    let url = said["listening"].as_str().expect("a URL");
    // On a loopback address an I/O server finds a place by itself.
    let (mut io, io_url) = scratch.serve(&["io", "--meta", url, "--memory", "64MiB"]);
    assert!(io_url.starts_with("tcp:127.0.0.1:"), "{io_url}");
    io.terminate();
    meta.terminate();
}

#[test]
fn metadata_manager_that_was_killed_is_started_again_by_hand() {
    let scratch = Scratch::new("again");
    let (mut meta, url) = scratch.serve(&["meta", "--dir", "meta"]);
    let (mut io, _) = scratch.serve(&["io", "--meta", &url, "--memory", "64MiB"]);
    let before = status(&scratch, &url);
    connect(&url).mkdir("/kept", None).expect("made");
    meta.kill();

    let mut command = scratch.pario(&["status"]);
    command.env("PARIO_URL", &url).env("PARIO_TIMEOUT", "0.2");
    let errors = refusal_of(command, 1);
    assert!(errors.contains(&url), "{errors}");

    let (mut meta, again) = scratch.serve(&["meta", "--dir", "meta"]);
    assert_eq!(again, url);
    // The I/O server has lost the metadata manager, not its bytes: it is the same start as before.
    let after = wait_until("the I/O server is back", || {
        let now = status(&scratch, &url);
        (now["servers"][0]["state"] == "alive").then_some(now)
    });
    assert_eq!(
        after["servers"][0]["incarnation"],
        before["servers"][0]["incarnation"]
    );
    assert_eq!(after["directories"], 2);
    io.terminate();
    meta.terminate();
}

#[test]
fn second_metadata_manager_on_a_directory_is_refused() {
    let scratch = Scratch::new("twice");
    let (mut meta, url) = scratch.serve(&["meta", "--dir", "meta"]);
    let errors = scratch.refused(&[
        "serve",
        "meta",
        "--dir",
        "meta",
        "--listen",
        "unix:other.sock",
    ]);
    assert!(
        errors.contains("another metadata manager serves"),
        "{errors}"
    );
    assert_eq!(status(&scratch, &url)["directories"], 1);
    meta.terminate();
}

#[test]
fn holder_of_a_directory_ends_when_told() {
    let scratch = Scratch::new("hold");
    let mut holder = crate::scratch::Foreground::new(scratch.pario(&["hold", "d"]));
    wait_until("the directory is held", || {
        scratch.path("d/holder").exists().then_some(())
    });
    // Without anybody it ends by itself after a while.
    let url = format!("dir:{}", scratch.path("d").display());
    let url = url.parse().expect("a URL");
    let client = embedded::connect(&url, ConnectOptions::default(), &Default::default());
    let client = client.expect("a directory that is held");
    let errors = scratch.refused(&["up", "--dir", "d"]);
    assert!(
        errors.contains(&format!("process {}", holder.pid())),
        "{errors}"
    );
    let errors = scratch.refused(&["down", "--dir", "d"]);
    assert!(errors.contains("no service runs in d"), "{errors}");
    drop(client);
    holder.terminate();
    assert!(!scratch.path("d/holder").exists());
}
