//! Whole services: started, shown, stopped; in the foreground and in the background, over Unix
//! sockets and over TCP.

use std::process::Command;

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::scratch::{
    Foreground, Scratch, connect, is_running, pids, refusal_of, text_of, wait_until, write_secret,
};

fn states(status: &Value) -> Vec<&str> {
    let servers = status["servers"].as_array().expect("a list");
    servers
        .iter()
        .map(|s| s["state"].as_str().expect("a state"))
        .collect()
}

#[test]
fn service_on_disk_comes_and_goes_and_comes_again() {
    let scratch = Scratch::new("disk");
    let text = scratch.text(&["up", "--detach", "--servers", "2", "--memory", "64MiB"]);
    let url = format!("unix:{}", scratch.path(".pario/meta.sock").display());
    assert!(
        text.contains(&format!("export PARIO_URL={url}\n")),
        "{text}"
    );
    assert!(text.contains("2 I/O servers, bytes on disk"), "{text}");

    let status = scratch.json(&["status", "--json"]);
    assert_eq!(status["url"], url.as_str());
    assert_eq!(states(&status), ["alive", "alive"]);
    assert_eq!(
        (&status["files"], &status["directories"]),
        (&0.into(), &1.into())
    );
    for (index, server) in status["servers"]
        .as_array()
        .expect("a list")
        .iter()
        .enumerate()
    {
        let socket = scratch.path(&format!(".pario/io-{index}.sock"));
        assert_eq!(server["address"], format!("unix:{}", socket.display()));
        assert_eq!(server["store"], "disk");
        assert!(server["counters"].is_object(), "{server}");
    }
    // The one who asked before may count for a moment after its end.
    let shown = wait_until("nobody but who asks is shown", || {
        let shown = scratch.text(&["status"]);
        shown.contains("clients   0").then_some(shown)
    });
    for word in [
        &url,
        "server",
        "alive",
        "disk",
        "files     0 in 1 directory",
    ] {
        assert!(shown.contains(word), "no '{word}' in\n{shown}");
    }

    connect(&url).mkdir("/kept", None).expect("made");
    let state: Value = scratch_state(&scratch);
    let processes = pids(&state);
    assert_eq!(processes.len(), 4);
    assert!(processes.iter().all(|&pid| is_running(pid)));
    let text = scratch.text(&["down"]);
    assert!(text.contains(&url), "{text}");
    assert!(!processes.iter().any(|&pid| is_running(pid)));
    for gone in [
        "service.json",
        "holder",
        "meta.sock",
        "io-0.sock",
        "io-1.sock",
    ] {
        let path = scratch.path(".pario").join(gone);
        assert!(!path.exists(), "{gone} is left");
    }

    // Fewer are asked for than there were: those that kept something are started.
    let again = scratch.up(&["--servers", "1"]);
    assert_eq!(again["servers"].as_array().expect("a list").len(), 2);
    let status = scratch.json(&["status", "--json"]);
    assert_eq!(states(&status), ["alive", "alive"]);
    assert_eq!(status["directories"], 2);
    scratch.text(&["down"]);
}

fn scratch_state(scratch: &Scratch) -> Value {
    let text = std::fs::read_to_string(scratch.path(".pario/service.json")).expect("there");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn service_over_tcp_asks_for_its_secret() {
    let scratch = Scratch::new("tcp");
    let (secret, other) = (scratch.path("secret"), scratch.path("other"));
    write_secret(&secret, "a secret of sixteen bytes at least\n");
    write_secret(&other, "another secret of sixteen bytes at least\n");
    let mut service = Foreground::new(scratch.pario(&[
        "up",
        "--servers",
        "2",
        "--store",
        "memory",
        "--memory",
        "64MiB",
        "--listen",
        "tcp:127.0.0.1:0",
        "--secret",
        "secret",
    ]));
    let greeting = [service.line(), service.line(), service.line()];
    let url = greeting[1]
        .strip_prefix("export PARIO_URL=")
        .expect("a URL")
        .to_owned();
    assert_eq!(
        greeting[2],
        format!("export PARIO_SECRET={}", secret.display())
    );
    assert!(
        url.starts_with("tcp:127.0.0.1:") && !url.ends_with(":0"),
        "{url}"
    );

    let with = |secret: Option<&std::path::Path>, arguments: &[&str]| {
        let mut command = scratch.pario(arguments);
        command.env("PARIO_URL", &url);
        if let Some(secret) = secret {
            command.env("PARIO_SECRET", secret);
        }
        command
    };
    let status: Value =
        serde_json::from_str(&text_of(with(Some(&secret), &["status", "--json"]))).expect("JSON");
    assert_eq!(states(&status), ["alive", "alive"]);
    for server in status["servers"].as_array().expect("a list") {
        let address = server["address"].as_str().expect("text");
        assert!(address.starts_with("tcp:127.0.0.1:") && !address.ends_with(":0"));
    }
    for wrong in [Some(other.as_path()), None] {
        for command in ["status", "down", "doctor"] {
            let errors = refusal_of(with(wrong, &[command]), 1);
            assert!(errors.contains("secret"), "{command}: {errors}");
        }
    }
    let errors = refusal_of(with(Some(&scratch.path("absent")), &["status"]), 1);
    assert!(errors.contains("absent"), "{errors}");

    // The directory knows its service and where its secret is.
    let status = scratch.json(&["status", "--json"]);
    assert_eq!(status["url"], url.as_str());

    // Nothing of the directory is needed to stop it.
    let text = text_of(with(Some(&secret), &["down"]));
    assert!(text.contains(&url), "{text}");
    assert_eq!(service.ended().code(), Some(0), "{}", service.errors());
}

#[test]
fn interrupt_ends_a_service_in_the_foreground() {
    let scratch = Scratch::new("fore");
    let mut service = Foreground::new(scratch.pario(&["up", "--servers", "1", "--dir", "here"]));
    service.line();
    let state = std::fs::read_to_string(scratch.path("here/service.json")).expect("there");
    let processes = pids(&serde_json::from_str(&state).expect("JSON"));
    service.signal(Signal::SIGINT);
    assert_eq!(service.ended().code(), Some(0), "{}", service.errors());
    assert!(!processes.iter().any(|&pid| is_running(pid)));
    assert!(service.errors().contains("SIGINT"), "{}", service.errors());
    assert!(!scratch.path("here/service.json").exists());
}

/// A terminal and `timeout` tell the process and its group: one wish, which kills nobody.
#[test]
fn two_signals_at_once_end_a_service_in_order() {
    let scratch = Scratch::new("echo");
    let mut service = Foreground::new(scratch.pario(&["up", "--servers", "2", "--dir", "here"]));
    service.line();
    service.signal(Signal::SIGTERM);
    service.signal(Signal::SIGINT);
    assert_eq!(service.ended().code(), Some(0), "{}", service.errors());
    let errors = service.errors();
    assert!(!errors.contains("killed"), "{errors}");
}

#[test]
fn second_service_in_a_directory_is_refused_by_name() {
    let scratch = Scratch::new("second");
    let first = scratch.up(&["--servers", "1"]);
    let url = first["url"].as_str().expect("a URL");
    for detach in [&["up"][..], &["up", "--detach"]] {
        let errors = scratch.refused(detach);
        for word in [
            url,
            "already",
            "pario down --dir",
            &pids(&first)[0].to_string(),
        ] {
            assert!(errors.contains(word), "{detach:?}: no {word} in {errors}");
        }
    }
    assert_eq!(states(&scratch.json(&["status", "--json"])), ["alive"]);
    scratch.text(&["down", "--dir", ".pario"]);
}

#[test]
fn users_of_a_directory_find_its_service() {
    let scratch = Scratch::new("find");
    scratch.up(&[
        "--servers",
        "1",
        "--store",
        "memory",
        "--memory",
        "64MiB",
        "--dir",
        "d",
    ]);
    let mut command = scratch.pario(&["status", "--json"]);
    command.env("PARIO_URL", "dir:d");
    let status: Value = serde_json::from_str(&text_of(command)).expect("JSON");
    assert_eq!(status["is_service"], true);
    let url = format!("dir:{}", scratch.path("d").display())
        .parse()
        .expect("a URL");
    let client = embedded::connect(&url, client::ConnectOptions::default(), &Default::default());
    let client = client.expect("a service");
    assert_eq!(client.members().expect("members").len(), 1);
    wait_until("the client alone is shown", || {
        let clients = &scratch.json(&["status", "--json", "--dir", "d"])["clients"];
        (clients == 1).then_some(())
    });
    drop(client);
    scratch.text(&["down", "--dir", "d"]);
}

/// `down` by a URL that says nothing of the directory returns when the directory is free again: the
/// next `up` finds no lock, whichever process was the last to let it go.
#[test]
fn service_that_was_ended_by_its_url_starts_again_at_once() {
    let scratch = Scratch::new("again");
    std::fs::write(scratch.path("bytes"), vec![7; 100_000]).expect("written");
    let dir = scratch.path("d");
    let dir = dir.to_str().expect("text");
    for round in 0..8 {
        let up = scratch.up(&[
            "--dir",
            dir,
            "--listen",
            "tcp:127.0.0.1:0",
            "--servers",
            "2",
        ]);
        let url = up["url"].as_str().expect("a URL");
        let named = |arguments: &[&str]| {
            let mut command = scratch.pario(arguments);
            command.env("PARIO_URL", url);
            text_of(command)
        };
        named(&["put", "bytes", &format!("/f{round}")]);
        let text = named(&["down"]);
        assert!(text.contains("has ended"), "{text}");
        for pid in pids(&up) {
            assert!(!is_running(pid), "round {round}: process {pid} runs on");
        }
    }
}

/// The supervisor of another host is not seen, so nothing is said about its end. Numbers of processes of their own make
/// another host.
#[test]
fn service_that_was_ended_from_another_host_says_what_was_not_seen() {
    let mut tried = Command::new("unshare");
    let tried = tried.args(["--pid", "--fork", "true"]).status();
    if !tried.is_ok_and(|status| status.success()) {
        testkit::skipped("unshare --pid is not allowed");
        return;
    }
    let scratch = Scratch::new("afar");
    for form in [None, Some("--json")] {
        let up = scratch.up(&["--listen", "tcp:127.0.0.1:0", "--servers", "1"]);
        let mut command = Command::new("unshare");
        command.args(["--pid", "--fork", env!("CARGO_BIN_EXE_pario"), "down"]);
        command
            .args(form)
            .env("PARIO_URL", up["url"].as_str().expect("a URL"));
        command.current_dir(scratch.path(""));
        let text = text_of(command);
        match form {
            None => assert!(
                !text.contains("service has ended") && text.contains("its supervisor on host"),
                "{text}"
            ),
            Some(_) => assert!(text.contains("\"supervisor_ends_on\":\""), "{text}"),
        }
        wait_until("the supervisor ends", || {
            pids(&up).iter().all(|pid| !is_running(*pid)).then_some(())
        });
    }
}

/// A supervisor that is told to end takes its time; an `up` that comes meanwhile waits for it.
#[test]
fn service_that_is_ending_is_waited_for() {
    let scratch = Scratch::new("ending");
    for _ in 0..4 {
        let up = scratch.up(&["--servers", "2"]);
        let supervisor = pids(&up)[0];
        crate::scratch::signal(supervisor, Signal::SIGTERM);
        wait_until("it says so", || {
            let text = std::fs::read_to_string(scratch.path(".pario/service.json"));
            text.is_ok_and(|text| text.contains("\"is_ending\": true"))
                .then_some(())
                .or((!is_running(supervisor)).then_some(()))
        });
        let next = scratch.up(&["--servers", "2"]);
        assert_ne!(pids(&next)[0], supervisor);
        scratch.text(&["down"]);
    }
}
