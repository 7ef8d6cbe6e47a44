//! Clients come and go: goodbye, death, lost connections, restarts of the manager.
//!
//! A client that dies is this binary, started again, so that its death is real.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use metaserver::{MetaServer, Options};
use wire::message::catalogue::*;
use wire::message::session::{Credentials, Goodbye, Process, Role, Shutdown};
use wire::{HandleId, Rights, Status};

use crate::fixture::*;

const CHILD: &str = "PARIO_TEST_CLIENT";

/// A client that opens a file, says so, and lives until it is killed; nothing when run as a test.
#[test]
fn child_that_holds_a_file() {
    let Some(endpoint) = std::env::var_os(CHILD) else {
        return;
    };
    let endpoint = endpoint.to_str().unwrap().parse().unwrap();
    let mut c = Asker::client(&endpoint);
    let mut second = c.again(&endpoint).unwrap();
    second.ask(&Open {
        path: "/f".into(),
        options: OpenOptions {
            rights: Rights::BOTH,
            unique: Some(0),
            ..OpenOptions::default()
        },
    });
    let mut out = std::io::stdout().lock();
    writeln!(out, "\nopened {}", c.id().0).unwrap();
    out.flush().unwrap();
    // Ends with the test, if that does not kill it.
    let _ = std::io::stdin().read_line(&mut String::new());
    c.ask(&wire::message::session::Ping {});
}

fn holder(manager: &MetaServer, endpoint: usize) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["life::child_that_holds_a_file", "--exact", "--nocapture"])
        .env(CHILD, manager.endpoints()[endpoint].to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let opened = lines.map_while(Result::ok).any(|l| l.starts_with("opened"));
    assert!(opened, "the child opens the file");
    child
}

#[test]
fn seed004_s17_dead_client_holds_nobody_up() {
    let (scratch, manager, _members) = with_members("killed", 1);
    let mut c = Asker::client(&scratch.socket());
    c.create("/f");
    // Both by the kernel's word and by that of a process on this host.
    for endpoint in [0, 1] {
        let mut child = holder(&manager, endpoint);
        c.refused(&open("/f", Rights::READ), Status::InUse);
        assert_eq!(c.statistic("clients"), 2);
        child.kill().unwrap();
        child.wait().unwrap();
        c.wait_for_statistic("handles", 0);
        c.wait_for_statistic("clients", 1);
        let opened = c.open("/f", Rights::READ);
        c.ask(&close(opened.handle));
    }
}

#[test]
fn seed004_s15_clients_come_and_go_in_any_order() {
    let (scratch, manager, _members) = with_members("order", 2);
    let mut clients: Vec<Asker> = (0..6)
        .map(|i| match i % 2 {
            0 => Asker::client(&scratch.socket()),
            _ => Asker::user(&manager, ALICE),
        })
        .collect();
    for (i, c) in clients.iter_mut().enumerate() {
        c.create(&format!("/f{i}"));
        c.open(&format!("/f{i}"), Rights::BOTH);
    }
    let mut watcher = Asker::client(&scratch.socket());
    assert_eq!(watcher.statistic("handles"), 6);
    // Those in the middle go first; those who stay go on.
    for at in [2, 4, 0] {
        clients.remove(at).ask(&Goodbye {});
        clients.swap_remove(0).ask(&Goodbye {});
        for c in &mut clients {
            c.open("/f5", Rights::READ);
        }
        clients.push(Asker::client(&scratch.socket()));
        if at == 0 {
            break;
        }
    }
    for mut c in clients.drain(..) {
        c.ask(&Goodbye {});
    }
    assert_eq!(watcher.statistic("handles"), 0);
    assert_eq!(watcher.statistic("clients"), 1);
}

/// A manager that waits so long for clients elsewhere that lost their connections, and such clients.
fn elsewhere(name: &str, client_grace: Duration) -> (Scratch, MetaServer, Joiner) {
    let scratch = Scratch::new(name);
    let options = Options {
        client_grace,
        ..scratch.options()
    };
    let manager = metaserver::start(options).unwrap();
    let member = Joiner::new(&scratch.socket());
    (scratch, manager, member)
}

fn far(manager: &MetaServer, role: Role) -> Asker {
    let mut hello = hello(role, Credentials::new(ALICE, ALICE));
    hello.process = Process {
        pid: 1,
        host: "another host".into(),
    };
    Asker::hello(&manager.endpoints()[1], &hello).unwrap()
}

#[test]
fn client_elsewhere_that_comes_back_in_time_has_lost_nothing() {
    let (scratch, manager, _member) = elsewhere("back", Duration::from_secs(600));
    let mut watcher = Asker::client(&scratch.socket());
    let mut one = far(&manager, Role::NewClient);
    one.create("/f");
    let opened = one.open("/f", Rights::READ);
    let two = far(&manager, one.role());
    drop(one);
    let role = two.role();
    drop(two);
    let mut three = far(&manager, role);
    three.ask(&GetState {
        handle: opened.handle,
    });
    assert_eq!(watcher.statistic("handles"), 1);
}

#[test]
fn client_elsewhere_ends_with_its_last_connection() {
    let (scratch, manager, _member) = elsewhere("elsewhere", Duration::from_millis(10));
    let mut watcher = Asker::client(&scratch.socket());
    // Keeps one of its connections, and was silent before the other one is.
    let mut stays = far(&manager, Role::NewClient);
    drop(far(&manager, stays.role()));
    let mut one = far(&manager, Role::NewClient);
    one.create("/f");
    stays.open("/f", Rights::READ);
    one.open("/f", Rights::READ);
    drop(far(&manager, one.role()));
    assert_eq!(watcher.statistic("handles"), 2);
    drop(one);
    watcher.wait_for_statistic("handles", 1);
    watcher.wait_for_statistic("clients", 2);
    stays.open("/f", Rights::READ);
}

#[test]
fn handles_are_opened_again_after_a_restart() {
    let (scratch, manager, members) = with_members("reopen", 1);
    let mut c = Asker::client(&scratch.socket());
    let mut gone = Asker::user(&manager, ALICE);
    c.create("/f");
    c.create("/nameless");
    gone.create("/orphan");
    let kept = c.open("/f", Rights::READ);
    let nameless = c.open("/nameless", Rights::BOTH);
    let orphan = gone.open("/orphan", Rights::READ);
    for path in ["/nameless", "/orphan"] {
        c.ask(&Unlink {
            path: path.into(),
            how: UnlinkHow::EvenIfOpen,
        });
    }
    assert_eq!(c.ask(&Count {}).files, 3);
    manager.stop();
    drop(gone);
    let options = Options {
        recovery: IN_TIME,
        ..scratch.options()
    };
    let _manager = metaserver::start(options).unwrap();
    let mut c = c.again(&scratch.socket()).unwrap();
    assert_eq!(c.welcome.incarnation, 2);
    let unlink = Unlink {
        path: "/f".into(),
        how: UnlinkHow::UnlessOpen,
    };
    c.refused(&close(kept.handle), Status::BadHandle);
    let mut handles = Vec::new();
    for opened in [&kept, &nameless] {
        let again = c.ask(&Reopen {
            capability: opened.capability.clone(),
            unique: None,
        });
        assert_eq!(again.attributes.file, opened.attributes.file);
        assert_eq!(again.rights, opened.rights);
        assert!(again.handle > opened.handle);
        handles.push(again.handle);
    }
    // The file that nobody came back for goes when the time is over.
    let _ = c.wait(&Count {}, |counts| counts.as_ref().unwrap().files == 2);
    c.refused(&unlink, Status::InUse);
    let late = Reopen {
        capability: orphan.capability,
        unique: None,
    };
    c.refused(&late, Status::BadCapability);
    assert!(!c.ask(&close(handles[0])).is_removed);
    assert!(c.ask(&close(handles[1])).is_removed);
    c.ask(&unlink);
    c.refused(&close(HandleId(0)), Status::BadHandle);
    // Numbers go on where no earlier start can have been.
    let fresh = Asker::client(&scratch.socket());
    assert_eq!(fresh.id().0 >> 32, 2);
    drop(members);
}

#[test]
fn shutdown_lets_the_process_end() {
    let (scratch, manager, _members) = with_members("shutdown", 1);
    let mut c = Asker::client(&scratch.socket());
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| manager.wait());
        c.ask(&Shutdown {});
        waiting.join().unwrap();
    });
    manager.stop();
    assert!(c.try_ask(&stat("/")).is_err());
}
