//! Real processes: this test program starts itself, as members of a team that find each other through a directory.
//!
//! `PARIO_PIO_MEMBER` names the rank, the size, the program and the directory; the test of that name below is then the member. What members
//! tell, they print in lines that begin with `told`.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use client::{Client, Team};
use dsm::{Epoch, Options, SharedMemory};
use pio::{Error, OpenMode, Pio, PioOptions};

use crate::members::{connect, get, pattern, put};
use crate::{matrix, sor};

const MEMBER: &str = "PARIO_PIO_MEMBER";

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

/// Runs a program in so many processes; what each told, number by number.
pub(crate) fn all_do(dir: &Path, size: usize, what: &str) -> Vec<Vec<u64>> {
    let members = start(dir, size, what);
    members.into_iter().map(outcome_of).collect()
}

#[track_caller]
fn outcome_of(member: Child) -> Vec<u64> {
    let output = member.wait_with_output().expect("a member");
    let [out, err] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success(), "{out}\n{err}");
    let line = out
        .lines()
        .find_map(|line| line.split_once("told "))
        .map(|(_, numbers)| numbers);
    let numbers = line
        .unwrap_or_default()
        .split(' ')
        .filter(|word| !word.is_empty());
    numbers
        .map(|word| word.parse().expect("a number"))
        .collect()
}

/// A member in its process.
pub(crate) struct Place {
    pub(crate) client: Client,
    pub(crate) team: Team,
}

impl Place {
    /// One run of a program: a memory of its own, and parallel files.
    pub(crate) fn run<R>(
        &self,
        bytes: usize,
        application: &str,
        program: impl FnOnce(&SharedMemory, &Pio<'_>, Epoch) -> (Epoch, R),
    ) -> R {
        let (memory, epoch) =
            SharedMemory::start(self.team.clone(), &Options::new(bytes)).expect("a shared memory");
        let options = PioOptions {
            application: application.into(),
            is_synced: false,
            ..PioOptions::default()
        };
        let pio = Pio::start(&memory, &self.client, options).expect("parallel files");
        let (epoch, result) = program(&memory, &pio, epoch);
        let epoch = memory.barrier(u32::MAX - 1, epoch).expect("a barrier");
        drop(pio);
        memory.exit(epoch).expect("all leave");
        result
    }
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
    let client = connect(Path::new(word()), 2);
    let team = Team::processes(&client, "members", rank, size).expect("a team");
    let place = Place { client, team };
    let told = match what {
        "sor4" => sor::member::<f32>(&place),
        "sor8" => sor::member::<f64>(&place),
        "matrix" => matrix::member(&place),
        "die" => die(&place),
        other => panic!("no program {other}"),
    };
    let told: Vec<String> = told.iter().map(u64::to_string).collect();
    println!("told {}", told.join(" "));
}

const PAGES: usize = 64;

/// The last member ends without a word before the others write.
fn die(place: &Place) -> Vec<u64> {
    let options = Options::new(PAGES * 4096);
    let (memory, epoch) = SharedMemory::start(place.team.clone(), &options).expect("a memory");
    let array = memory.array::<u8>(PAGES * 4096).expect("room");
    let mut epoch = memory.barrier(0, epoch).expect("a barrier");
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
    let pio = Pio::start(&memory, &place.client, PioOptions::default()).expect("parallel files");
    if memory.rank() == 0 {
        // Until the end of the other is noticed, in whichever call that happens.
        let bytes = array.bytes() as u64;
        let opened = pio.open("/a", OpenMode::Replace, &mut epoch);
        let mut outcome = opened.map(|file| (file, 0));
        while let Ok((file, _)) = outcome {
            outcome = pio
                .write(file, array, bytes, &mut epoch)
                .map(|bytes| (file, bytes));
        }
        let error = outcome.expect_err("a member has ended");
        assert!(matches!(error, Error::Memory(_)), "{error}");
        let text = error.to_string();
        let last = memory.size() - 1;
        assert!(
            text.contains(&format!("process {last} of")) || text.contains(&format!("rank {last}")),
            "{text}"
        );
    } else {
        memory.barrier(1, epoch).expect_err("a member has ended");
    }
    Vec::new()
}

#[test]
fn seed003_pio17_a_process_that_dies_leaves_the_file_of_before() {
    let dir = testkit::TempDir::new();
    // The directory is served by this process, which stays.
    let client = connect(dir.path(), 2);
    put(&client, "/a", None, &pattern(PAGES * 4096));
    let mut members = start(dir.path(), 3, "die");
    let dies = members.pop().expect("three members");
    for member in members {
        outcome_of(member);
    }
    assert!(!dies.wait_with_output().expect("a member").status.success());
    assert!(get(&client, "/a") == pattern(PAGES * 4096));
}
