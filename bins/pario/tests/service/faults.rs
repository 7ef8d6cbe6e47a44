//! Processes of a service that die or hang: what is shown, and what the supervisor does. Bytes
//! through deaths are the affair of the system tests.

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::scratch::{Foreground, Scratch, is_running, pids, read_to_end, signal, wait_until};

fn state(scratch: &Scratch) -> Value {
    serde_json::from_str(&read_to_end(&scratch.path(".pario/service.json"))).unwrap_or_default()
}

/// The first server, once it is alive in a later start than `before`.
fn restarted(scratch: &Scratch, before: &Value) -> Value {
    wait_until("server 0 is started again", || {
        let status = scratch.json(&["status", "--json"]);
        let server = status["servers"][0].clone();
        let is_later = server["incarnation"].as_u64() > before["incarnation"].as_u64();
        (is_later && server["state"] == "alive").then_some(server)
    })
}

#[test]
fn io_server_that_was_killed_is_started_again() {
    let scratch = Scratch::new("kill");
    let up = scratch.up(&["--servers", "2", "--store", "memory", "--memory", "64MiB"]);
    let before = scratch.json(&["status", "--json"])["servers"][0].clone();
    let victim = up["servers"][0]["pid"].as_u64().expect("a process");
    signal(victim, Signal::SIGKILL);
    let after = restarted(&scratch, &before);
    assert_eq!(after["server"], before["server"], "it has its number again");
    assert_eq!(after["address"], before["address"]);
    assert_eq!(
        after["kept_since"], after["incarnation"],
        "its bytes are gone"
    );
    let log = wait_until("the log says so", || {
        let log = read_to_end(&scratch.path(".pario/log"));
        log.contains("serves again").then_some(log)
    });
    assert!(
        log.contains("was killed by SIGKILL; the bytes in its memory are lost"),
        "{log}"
    );
    assert_ne!(state(&scratch)["servers"][0]["pid"], victim);
    scratch.text(&["down"]);
}

#[test]
fn metadata_manager_that_was_killed_is_started_again() {
    let scratch = Scratch::new("meta");
    let mut service = Foreground::new(scratch.pario(&["up", "--servers", "1"]));
    service.line();
    let victim = state(&scratch)["meta"]["pid"].as_u64().expect("a process");
    signal(victim, Signal::SIGKILL);
    wait_until("another one is there", || {
        let now = state(&scratch)["meta"]["pid"].as_u64();
        now.filter(|&pid| pid != victim && service.errors().contains("serves again"))
    });
    wait_until("the I/O server is back", || {
        let status = scratch.json(&["status", "--json"]);
        (status["servers"][0]["state"] == "alive").then_some(())
    });
    assert!(!service.errors().contains("lost"), "{}", service.errors());
    service.terminate();
}

#[test]
fn service_does_not_outlive_its_supervisor() {
    let scratch = Scratch::new("alone");
    let up = scratch.up(&["--servers", "1"]);
    let processes = pids(&up);
    signal(processes[0], Signal::SIGKILL);
    wait_until("all processes are gone", || {
        (!processes.iter().any(|&pid| is_running(pid))).then_some(())
    });
    let errors = scratch.refused(&["down"]);
    assert!(errors.contains("no service runs in .pario"), "{errors}");
    scratch.up(&[]);
    scratch.text(&["down"]);
}

#[test]
fn server_that_hangs_is_shown_as_silent() {
    let scratch = Scratch::new("hang");
    let up = scratch.up(&["--servers", "2", "--store", "memory", "--memory", "64MiB"]);
    let victim = up["servers"][1]["pid"].as_u64().expect("a process");
    signal(victim, Signal::SIGSTOP);
    let status = scratch.json(&["status", "--json"]);
    let servers = status["servers"].as_array().expect("a list");
    assert_eq!(servers[0]["state"], "alive");
    assert_eq!(servers[1]["state"], "silent", "{status}");
    assert!(servers[1]["error"].is_string());
    signal(victim, Signal::SIGCONT);
    scratch.text(&["down"]);
}
