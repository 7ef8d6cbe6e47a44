//! Real processes: this test program starts itself, as members of a team that find each other through a directory.
//!
//! `PARIO_DSM_MEMBER` names the directory, the rank and the size; the test of that name below is then the member.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use client::{ConnectOptions, Team};
use dsm::{Backing, Options, Protocol, SharedMemory};

const MEMBER: &str = "PARIO_DSM_MEMBER";

/// Starts members; each is this program with one test.
fn start(dir: &Path, size: usize, what: &str) -> Vec<Child> {
    let program = std::env::current_exe().expect("this program");
    let member = |rank: usize| {
        let mut command = Command::new(&program);
        command.args([
            "--exact",
            "processes::a_member_does_its_part",
            "--nocapture",
        ]);
        command.env(MEMBER, format!("{rank} {size} {what} {}", dir.display()));
        command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a member")
    };
    (0..size).map(member).collect()
}

#[test]
fn a_member_does_its_part() {
    let Ok(what) = std::env::var(MEMBER) else {
        return;
    };
    let mut words = what.splitn(4, ' ');
    let mut word = || words.next().expect("rank, size, what and directory");
    let (rank, size): (usize, usize) = (
        word().parse().expect("a rank"),
        word().parse().expect("a size"),
    );
    let what = word();
    let url = format!("dir:{}", word()).parse().expect("a directory");
    let client = embedded::connect(
        &url,
        ConnectOptions::default(),
        &embedded::Options::default(),
    )
    .expect("a client");
    let team = Team::processes(&client, "members", rank, size).expect("a team");
    match what {
        "die" => die(team),
        _ => work(team, what),
    }
}

/// All write into all pages; pointers go through the memory.
fn work(team: Team, what: &str) {
    let backing = match what {
        "userfault" => Backing::Userfault,
        "protection" => Backing::Protection,
        _ => Backing::Software,
    };
    for protocol in [
        Protocol::HomeBased,
        Protocol::Homeless,
        Protocol::Sequential,
    ] {
        let options = Options {
            backing: Some(backing),
            protocol,
            ..Options::new(16 * 4096)
        };
        let (memory, mut epoch) =
            SharedMemory::start(team.clone(), &options).expect("a shared memory");
        let words = memory.array::<u64>(16 * 512).expect("room");
        let (me, size) = (memory.rank(), memory.size());
        if backing != Backing::Software {
            // An address that one process stores is where all have it (DSM-2).
            if me == 0 {
                memory.view(&epoch, words).set(0, memory.address() as u64);
            }
            epoch = memory.barrier(0, epoch).expect("a barrier");
            assert_eq!(memory.view(&epoch, words).get(0), memory.address() as u64);
            epoch = memory.barrier(1, epoch).expect("a barrier");
        }
        for round in 0..3 {
            let view = memory.view(&epoch, words);
            for index in (me..words.len()).step_by(size * 7) {
                view.set(index, (index * 10 + round) as u64);
            }
            let guard = memory.lock(0, &mut epoch).expect("a lock");
            let view = memory.view(&guard, words);
            view.set(size * 7 - 1, view.get(size * 7 - 1) + 1);
            drop(guard);
            epoch = memory.barrier(2, epoch).expect("a barrier");
            let view = memory.view(&epoch, words);
            for index in (0..size).flat_map(|other| (other..words.len()).step_by(size * 7)) {
                assert_eq!(view.get(index), (index * 10 + round) as u64, "{protocol:?}");
            }
            assert_eq!(view.get(size * 7 - 1), (size * (round + 1)) as u64);
            epoch = memory.barrier(3, epoch).expect("a barrier");
        }
        memory.exit(epoch).expect("all leave");
    }
}

/// The last member ends without a word while the others wait for it.
fn die(team: Team) {
    let options = Options {
        backing: Some(Backing::Software),
        ..Options::new(4096)
    };
    let (memory, epoch) = SharedMemory::start(team.clone(), &options).expect("a shared memory");
    let epoch = memory.barrier(0, epoch).expect("a barrier");
    let (pages, last) = (memory.pages(), memory.size() - 1);
    if memory.rank() == last {
        // Who has not left the barrier would be told in that.
        for _ in 0..last {
            pages.next_question().expect("another has left");
        }
        std::process::abort();
    }
    pages.ask(last, b"left".to_vec());
    drop(pages);
    let text = memory
        .barrier(1, epoch)
        .expect_err("a member has ended")
        .to_string();
    assert!(
        text.contains(&format!("process {} of", memory.size() - 1))
            || text.contains(&format!("rank {}", memory.size() - 1)),
        "{text}"
    );
}

#[track_caller]
fn expect_success(member: Child) {
    let output = member.wait_with_output().expect("a member");
    let texts =
        [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    assert!(output.status.success(), "{}\n{}", texts[0], texts[1]);
}

fn all_work(size: usize, what: &str) {
    let dir = testkit::TempDir::new();
    for member in start(dir.path(), size, what) {
        expect_success(member);
    }
}

#[test]
fn seed003_dsm02_processes_have_the_memory_at_one_address_with_userfaults() {
    if let Err(error) = SharedMemory::start(
        Team::threads(1).remove(0),
        &Options {
            backing: Some(Backing::Userfault),
            ..Options::new(4096)
        },
    ) {
        return testkit::skipped(&format!("userfaultfd: {error}"));
    }
    all_work(4, "userfault");
}

#[test]
fn seed003_dsm02_processes_have_the_memory_at_one_address_with_protection() {
    all_work(3, "protection");
}

#[test]
fn seed003_dsm01_processes_share_memory_in_software() {
    all_work(2, "software");
}

#[test]
fn seed003_dsm22_processes_are_told_that_one_has_died() {
    let dir = testkit::TempDir::new();
    let mut members = start(dir.path(), 3, "die");
    let dies = members.pop().expect("three members");
    for member in members {
        expect_success(member);
    }
    let output = dies.wait_with_output().expect("a member");
    assert!(!output.status.success());
}
