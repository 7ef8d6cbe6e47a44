//! `kill -9` of the manager in the middle of a storm of creates.
//!
//! The child is this test binary, started again as a manager. Everything that it acknowledged is there
//! after a restart, and nothing is there by half.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use metaserver::Options;
use wire::message::catalogue::*;
use wire::message::cluster::Join;
use wire::{Rights, Status};

use crate::fixture::*;

const CHILD: &str = "PARIO_TEST_MANAGER";

/// A manager that runs until it is killed; nothing when run as a test.
#[test]
fn child_that_serves() {
    let Some(dir) = std::env::var_os(CHILD).map(PathBuf::from) else {
        return;
    };
    let listen = vec![wire::url::Endpoint::Unix(dir.join("meta.sock"))];
    let options = Options {
        listen,
        member_timeout: PATIENCE,
        ..Options::new(dir.join("meta"))
    };
    let manager = metaserver::start(options).unwrap();
    let mut out = std::io::stdout().lock();
    writeln!(out, "\nserving").unwrap();
    out.flush().unwrap();
    drop(out);
    manager.wait();
}

fn serve(scratch: &Scratch) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["kill::child_that_serves", "--exact", "--nocapture"])
        .env(CHILD, scratch.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let serves = lines.map_while(Result::ok).any(|l| l == "serving");
    assert!(serves, "the child serves");
    child
}

#[test]
fn acknowledged_creates_survive_kill_9_of_the_manager() {
    let scratch = Scratch::new("storm");
    let socket = scratch.socket();
    let mut acknowledged = BTreeSet::new();
    let mut member: Option<Member> = None;
    for life in 0..4 {
        let mut child = serve(&scratch);
        let joiner = Joiner::with(
            &socket,
            Join {
                server: member.as_ref().map(|m| m.server),
                continues: member.as_ref().map(|m| m.incarnation),
                ..join("unix:/nowhere")
            },
        );
        member = Some(joiner.joined.member.clone());
        let done = AtomicUsize::new(0);
        let told: Vec<Vec<String>> = thread::scope(|scope| {
            let storms: Vec<_> = (0..4)
                .map(|t| {
                    let (socket, done) = (&socket, &done);
                    scope.spawn(move || {
                        let mut c = Asker::client(socket);
                        let mut told = Vec::new();
                        for i in 0.. {
                            let path = format!("/f{life}-{t}-{i}");
                            let create = Open {
                                path: path.clone(),
                                options: OpenOptions {
                                    rights: Rights::BOTH,
                                    create: Some(CreateOptions {
                                        mode: 0o600,
                                        exclusive: true,
                                        ..CreateOptions::default()
                                    }),
                                    ..OpenOptions::default()
                                },
                            };
                            match c.try_ask(&create) {
                                Ok(_) => told.push(path),
                                Err(e) => {
                                    assert_eq!(e.status(), Status::Unreachable, "{e}");
                                    break;
                                }
                            }
                            done.fetch_add(1, Ordering::SeqCst);
                        }
                        told
                    })
                })
                .collect();
            while done.load(Ordering::SeqCst) < 60 * (life + 1) {
                thread::yield_now();
            }
            child.kill().unwrap();
            child.wait().unwrap();
            storms.into_iter().map(|s| s.join().unwrap()).collect()
        });
        acknowledged.extend(told.into_iter().flatten());
    }
    let _manager = scratch.start();
    let mut c = Asker::client(&socket);
    for path in &acknowledged {
        let attributes = stat_found(c.ask(&stat(path))).attributes;
        assert_eq!(attributes.mode, 0o600);
        assert!(attributes.layout.is_some());
    }
    // At most the one of each connection that was under way.
    let files = c.ask(&Count {}).files as usize;
    assert!(
        (acknowledged.len()..=acknowledged.len() + 16).contains(&files),
        "{files} files, {} acknowledged",
        acknowledged.len()
    );
    assert_eq!(c.ask(&Check {}), []);
}
