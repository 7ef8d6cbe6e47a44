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
        after["kept_since"], before["kept_since"],
        "its memory is that of the process before"
    );
    let log = wait_until("the log says so", || {
        let log = read_to_end(&scratch.path(".pario/log"));
        log.contains("serves again").then_some(log)
    });
    assert!(
        log.contains("was killed by SIGKILL; its keeper has its memory"),
        "{log}"
    );
    assert_ne!(state(&scratch)["servers"][0]["pid"], victim);
    scratch.text(&["down"]);
}

/// The keepers of a service with two servers in memory.
fn keepers(scratch: &Scratch) -> Vec<u64> {
    keepers_in(scratch, "memory")
}

/// The keepers of a service with two servers whose directories begin so.
fn keepers_in(scratch: &Scratch, kind: &str) -> Vec<u64> {
    let of = |index: usize| keeper::look(&scratch.path(&format!(".pario/{kind}-{index}"))).ok();
    let found = (0..2).filter_map(of);
    found.map(|glance| u64::from(glance.process)).collect()
}

const IN_MEMORY: [&str; 6] = ["--servers", "2", "--store", "memory", "--memory", "64MiB"];

fn put(scratch: &Scratch) {
    let text = "bytes in memory\n".repeat(20_000);
    std::fs::write(scratch.path("text"), text).expect("written");
    scratch.text(&["put", "text", "/text", "--layout", "striped(4KiB) over 2"]);
}

#[track_caller]
fn compare(scratch: &Scratch) {
    scratch.text(&["get", "/text", "again"]);
    let read = |name: &str| read_to_end(&scratch.path(name));
    assert!(read("again") == read("text"), "other bytes");
    std::fs::remove_file(scratch.path("again")).expect("removed");
}

#[test]
fn memory_outlives_all_processes_of_a_service_but_not_its_orderly_end() {
    let scratch = Scratch::new("tree");
    let up = scratch.up(&IN_MEMORY);
    put(&scratch);
    let kept = keepers(&scratch);
    assert_eq!(kept.len(), 2);
    // The supervisor first: nobody starts anything again.
    for pid in pids(&up) {
        signal(pid, Signal::SIGKILL);
    }
    wait_until("all processes are gone", || {
        (!pids(&up).iter().any(|&pid| is_running(pid))).then_some(())
    });
    let up = scratch.up(&IN_MEMORY);
    assert_eq!(keepers(&scratch), kept, "the same keepers");
    compare(&scratch);
    let status = scratch.text(&["status"]);
    assert!(status.contains("is that of the process before"), "{status}");
    // Of the supervisor alone: its servers end by themselves, in order, and leave the memory.
    signal(pids(&up)[0], Signal::SIGKILL);
    wait_until("all processes are gone", || {
        (!pids(&up).iter().any(|&pid| is_running(pid))).then_some(())
    });
    assert_eq!(keepers(&scratch), kept);
    scratch.up(&IN_MEMORY);
    compare(&scratch);
    scratch.text(&["down"]);
    wait_until("no keeper is left", || {
        (!kept.iter().any(|&pid| is_running(pid))).then_some(())
    });
}

#[test]
fn whoever_serves_a_directory_next_has_what_servers_on_disks_had_in_memory() {
    let scratch = Scratch::new("behind");
    let on_disks = ["--servers", "2", "--store", "disk"];
    for is_service in [true, false] {
        let up = scratch.up(&on_disks);
        put(&scratch);
        let kept = keepers_in(&scratch, "io");
        assert_eq!(kept.len(), 2, "servers on disks write behind");
        for pid in pids(&up) {
            signal(pid, Signal::SIGKILL);
        }
        wait_until("all processes are gone", || {
            (!pids(&up).iter().any(|&pid| is_running(pid))).then_some(())
        });
        if is_service {
            scratch.up(&on_disks);
            assert_eq!(keepers_in(&scratch, "io"), kept, "the same keepers");
        }
        // Without a service the program serves the directory itself.
        compare(&scratch);
        scratch.text(&["rm", "/text"]);
        if is_service {
            scratch.text(&["down"]);
        }
        wait_until("no keeper is left", || {
            (!kept.iter().any(|&pid| is_running(pid))).then_some(())
        });
    }
}

#[test]
fn down_leaves_no_keeper_of_a_server_or_a_supervisor_that_is_dead() {
    let scratch = Scratch::new("left");
    let up = scratch.up(&IN_MEMORY);
    put(&scratch);
    let kept = keepers(&scratch);
    let processes = pids(&up);
    signal(processes[0], Signal::SIGKILL);
    wait_until("the supervisor is gone", || {
        (!is_running(processes[0])).then_some(())
    });
    // It waits for the servers, which are about to end.
    let said = scratch.text(&["down"]);
    assert!(said.contains("2 keepers"), "{said}");
    let gone = || (!kept.iter().any(|&pid| is_running(pid))).then_some(());
    wait_until("no keeper is left", gone);
    let errors = scratch.refused(&["down"]);
    assert!(errors.contains("no service runs in .pario"), "{errors}");
    // A server that dies again and again is dead when the service ends.
    let up = scratch.up(&IN_MEMORY);
    let kept = keepers(&scratch);
    let (dir, aside) = (scratch.path(".pario/memory-0"), scratch.path("aside"));
    std::fs::rename(&dir, &aside).expect("moved");
    std::fs::write(&dir, "no directory").expect("written");
    let victim = up["servers"][0]["pid"].as_u64().expect("a process");
    signal(victim, Signal::SIGKILL);
    wait_until("it has died often", || {
        (deaths(&state(&scratch), "I/O server process 0") >= 4).then_some(())
    });
    std::fs::remove_file(&dir).expect("removed");
    std::fs::rename(&aside, &dir).expect("moved back");
    scratch.text(&["down"]);
    wait_until("no keeper is left", || {
        (!kept.iter().any(|&pid| is_running(pid))).then_some(())
    });
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

/// Deaths after which a server was given up once.
const ONCE_GIVEN_UP: u64 = 6;

fn deaths(note: &Value, who: &str) -> u64 {
    let troubles = note["troubles"].as_array().cloned().unwrap_or_default();
    let ours = troubles.iter().find(|t| t["who"] == who);
    ours.and_then(|t| t["deaths"].as_u64()).unwrap_or(0)
}

#[test]
fn server_that_dies_at_every_start_is_back_when_its_directory_is() {
    let scratch = Scratch::new("ever");
    let up = scratch.up(&["--servers", "2", "--memory", "64MiB"]);
    let before = scratch.json(&["status", "--json"])["servers"][0].clone();
    let (dir, aside) = (scratch.path(".pario/io-0"), scratch.path("aside"));
    std::fs::rename(&dir, &aside).expect("moved");
    std::fs::write(&dir, "no directory").expect("written");
    signal(
        up["servers"][0]["pid"].as_u64().expect("a process"),
        Signal::SIGKILL,
    );
    let who = "I/O server process 0";
    wait_until("it has died often", || {
        (deaths(&state(&scratch), who) >= ONCE_GIVEN_UP).then_some(())
    });
    let shown = wait_until("status says so", || {
        let shown = scratch.text(&["status"]);
        shown.contains(who).then_some(shown)
    });
    assert!(shown.contains("times; started again"), "{shown}");
    let found = wait_until("doctor says so", || {
        let output = scratch.pario(&["doctor"]).output().expect("pario starts");
        let found = String::from_utf8_lossy(&output.stdout).into_owned();
        found.contains(who).then_some(found)
    });
    assert!(
        found.contains("the supervisor starts it again for ever"),
        "{found}"
    );
    let log = read_to_end(&scratch.path(".pario/log"));
    assert!(log.contains("times now; the next start is in"), "{log}");
    std::fs::remove_file(&dir).expect("removed");
    std::fs::rename(&aside, &dir).expect("moved back");
    let after = restarted(&scratch, &before);
    assert_eq!(after["server"], before["server"]);
    assert_eq!(deaths(&state(&scratch), who), 0);
    scratch.text(&["down"]);
}

#[test]
fn metadata_manager_that_dies_at_every_start_does_not_end_the_service() {
    let scratch = Scratch::new("everm");
    let up = scratch.up(&["--servers", "1", "--memory", "64MiB"]);
    let (dir, aside) = (scratch.path(".pario/meta"), scratch.path("aside"));
    std::fs::rename(&dir, &aside).expect("moved");
    std::fs::write(&dir, "no directory").expect("written");
    signal(
        up["meta"]["pid"].as_u64().expect("a process"),
        Signal::SIGKILL,
    );
    let who = "the metadata manager";
    wait_until("it has died often", || {
        (deaths(&state(&scratch), who) >= ONCE_GIVEN_UP).then_some(())
    });
    assert!(is_running(pids(&up)[0]), "the supervisor has given up");
    // Nobody answers, and what the supervisor knows is said in one line.
    for command in ["status", "doctor"] {
        let errors = scratch.refused(&[command, "--dir", ".pario"]);
        assert!(errors.contains(who) && errors.contains("times"), "{errors}");
    }
    std::fs::remove_file(&dir).expect("removed");
    std::fs::rename(&aside, &dir).expect("moved back");
    wait_until("the service is back", || {
        let output = scratch.pario(&["status", "--json"]).output().ok()?;
        let status: Value = serde_json::from_slice(&output.stdout).ok()?;
        (status["servers"][0]["state"] == "alive").then_some(())
    });
    scratch.text(&["down"]);
}

/// A user who ends a server by hand has not ended the service.
#[test]
fn servers_that_are_told_to_end_by_hand_are_started_again() {
    let scratch = Scratch::new("hand");
    let up = scratch.up(&["--servers", "1", "--memory", "64MiB"]);
    let meta = up["meta"]["pid"].as_u64().expect("a process");
    let io = up["servers"][0]["pid"].as_u64().expect("a process");
    for victim in [io, meta] {
        signal(victim, Signal::SIGTERM);
    }
    wait_until("others are there", || {
        let now = state(&scratch);
        let new = |process: &Value, old| process["pid"].as_u64().is_some_and(|pid| pid != old);
        (new(&now["meta"], meta) && new(&now["servers"][0], io)).then_some(())
    });
    wait_until("the service is back", || {
        let output = scratch.pario(&["status", "--json"]).output().ok()?;
        let status: Value = serde_json::from_slice(&output.stdout).ok()?;
        (status["servers"][0]["state"] == "alive").then_some(())
    });
    scratch.text(&["down"]);
}
