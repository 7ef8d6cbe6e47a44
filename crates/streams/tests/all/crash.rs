//! A writer that is killed: the file opens, every stream is a prefix of what its VP wrote, and what was flushed is there.
//!
//! The writer is this test program, started again; it says after every step how far it is, and is killed behind a chosen
//! one, at any place of the next.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use client::{Client, ConnectOptions, Team};
use streams::{Access, Context, Emulation, Report, Shape, Stream, StreamOptions};
use testkit::TempDir;

/// Says where the writer writes; unset in tests.
const WHERE: &str = "PARIO_TEST_STREAMS_WRITER";
const VPS: u64 = 50;
const STEPS: u64 = 24;

fn connect(dir: &Path) -> Client {
    let url = format!("dir:{}", dir.join("d").display());
    let options = embedded::Options::default();
    embedded::connect(&url.parse().unwrap(), ConnectOptions::default(), &options).unwrap()
}

/// What a VP writes in a step.
fn piece(vp: u64, step: u64) -> Vec<u8> {
    let len = match step {
        0..3 => 8,
        3..6 => 20,
        _ => (vp * 11 + step * 5) % 70,
    };
    (0..len).map(|i| (vp * 3 + step * 17 + i) as u8).collect()
}

fn stream_up_to(vp: u64, steps: u64) -> Vec<u8> {
    (0..steps).flat_map(|step| piece(vp, step)).collect()
}

/// Not a test: the process that is killed.
#[test]
fn writer_process() {
    let Some(dir) = std::env::var_os(WHERE) else {
        return;
    };
    let client = connect(Path::new(&dir));
    let teams = Team::threads(2);
    std::thread::scope(|scope| {
        for team in &teams {
            let client = &client;
            scope.spawn(move || write(client, team));
        }
    });
}

fn write(client: &Client, team: &Team) {
    let emulation = Emulation::new(&Shape::new(&[VPS]).unwrap(), "(cyclic(3))", team).unwrap();
    let options = StreamOptions::new(Access::Write)
        .ib_block(16)
        .superblock(4096);
    let mut stream = Stream::open(client, team, "/s", &emulation, &options).unwrap();
    let everywhere = Context::everywhere();
    for step in 0..STEPS {
        if step < 6 {
            let all = (0..emulation.count()).flat_map(|local| piece(emulation.vp(local), step));
            let all: Vec<u8> = all.collect();
            stream
                .write(&everywhere, &all, piece(0, step).len())
                .unwrap();
        } else {
            stream
                .elemental(&everywhere, |vp| vp.write_all(&piece(vp.number(), step)))
                .unwrap();
        }
        if step % 3 == 2 {
            stream.flush().unwrap();
        }
        team.barrier().unwrap();
        if team.rank() == 0 {
            println!("\nstep {step}");
            std::io::stdout().flush().unwrap();
        }
    }
    stream.close().unwrap();
}

/// Kills the writer behind a step; looks at what there is.
fn kill_behind(last: u64) {
    let dir = TempDir::new();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::writer_process", "--nocapture"])
        .env(WHERE, dir.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let said = BufReader::new(child.stdout.take().unwrap());
    let line = format!("step {last}");
    let came = said.lines().map_while(Result::ok).any(|said| said == line);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(came, "the writer did not come to step {last}");

    let client = connect(dir.path());
    let flushed = (last + 1) / 3 * 3;
    let report = Report::of_file(&client, "/s").unwrap();
    assert_eq!(report.findings, [""; 0]);
    let team = Team::alone();
    let emulation = Emulation::block(&Shape::new(&[VPS]).unwrap(), &team).unwrap();
    let options = StreamOptions::new(Access::AppendUpdate);
    let mut stream = Stream::open(&client, &team, "/s", &emulation, &options).unwrap();
    let mut found = vec![Vec::new(); VPS as usize];
    stream
        .elemental(&Context::everywhere(), |vp| {
            let got = &mut found[vp.local()];
            vp.read_to_end(got)?;
            let all = stream_up_to(vp.number(), STEPS);
            assert!(all.starts_with(got), "VP {} is no prefix", vp.number());
            let least = stream_up_to(vp.number(), flushed).len();
            assert!(
                got.len() >= least,
                "VP {} lost what was flushed",
                vp.number()
            );
            // And it goes on from there.
            vp.write_all(b"again")
        })
        .unwrap();
    stream.close().unwrap();
    for (vp, before) in found.iter().enumerate() {
        let now = streams::read_stream(&client, "/s", vp as u64).unwrap();
        assert_eq!(now, [&before[..], b"again"].concat());
    }
}

#[test]
fn a_killed_writer_leaves_what_was_flushed() {
    [0, 2, 3, 5, 7, 11, 20].into_iter().for_each(kill_behind);
}

#[test]
#[ignore = "long: every step of the writer"]
fn a_writer_killed_behind_any_step_leaves_what_was_flushed() {
    (0..STEPS - 1).for_each(kill_behind);
}
