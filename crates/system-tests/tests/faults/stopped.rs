//! Clients that are stopped (SIGSTOP) in the middle of a direct copy, while others truncate, regrow, chmod
//! and re-lay the file out.
//!
//! ```text
//!  client   |-- copies ... T (stopped) ------------------------------ goes on: repeated by message --|
//!  others                    truncate, regrow, chmod, relayout, fill
//! ```
//!
//! Whether it was met in mid-copy is told by the servers, which count claims that were revoked; if it was
//! not, it goes on and is stopped again.

use system_tests::pounding::Turns;
use system_tests::process::stop;
use system_tests::{OpenHow, Random, ServiceOptions, Worker, until};

use crate::{MIB, direct_counts, make, pound, print_seed, some_time, start, stop_file, sum, timed};

const SIZE: u64 = 6 * MIB;
/// What the client that is stopped reads or writes.
const AT: u64 = MIB;
const LEN: u64 = 4 * MIB;
/// Tags of what was there first, of what the stopped client writes, and of what others fill in.
const FIRST: u64 = 1;
const INTERRUPTED: u64 = 2;
const FILLED: u64 = 3;
const TAGS: u64 = 4;

const CHANGES: [[&str; 4]; 3] = [
    ["truncate", "regrow", "chmod", "relayout"],
    ["chmod", "relayout", "truncate", "regrow"],
    ["relayout", "chmod", "truncate", "regrow"],
];

#[test]
fn stopped_reader_of_a_disk_server_holds_nobody_up_and_reads_what_is_there_now() {
    rounds(ServiceOptions::new(1).disk(), "r");
}

#[test]
fn stopped_writer_of_one_server_holds_nobody_up_and_writes_once() {
    rounds(ServiceOptions::new(1), "w");
}

#[test]
fn stopped_writer_of_three_servers_holds_nobody_up_and_writes_once() {
    rounds(ServiceOptions::new(3), "w");
}

#[test]
fn stopped_reader_of_one_server_holds_nobody_up_and_reads_what_is_there_now() {
    rounds(ServiceOptions::new(1), "r");
}

#[test]
fn stopped_reader_of_three_servers_holds_nobody_up_and_reads_what_is_there_now() {
    rounds(ServiceOptions::new(3), "r");
}

fn rounds(options: ServiceOptions, how: &str) {
    print_seed();
    let servers = options.servers;
    let service = start(options);
    let client = service.client();
    for (round, changes) in CHANGES.iter().enumerate() {
        let mut random = Random::of_run(30 + (servers * 10 + round) as u64);
        let path = format!("/f{round}");
        let layouts = ["64KiB", "16KiB"].map(|stripe| format!("striped({stripe}) over {servers}"));
        let new = OpenHow::new("rwcx").layout(Some(&layouts[0]));
        let mut other = service.worker();
        other.open(0, &path, &new);
        other.ask(&format!("chmod\t{path}\t600"));
        let mut victim = service.worker();
        victim.open(0, &path, &OpenHow::new("rw"));
        let end = stop_file(&service, &format!("{round}"));
        let value = if how == "w" { INTERRUPTED } else { TAGS };
        victim.send(&pound(how, AT, LEN, value, &end));
        // A claim is revoked by the first change, so the file is as before when that met none.
        let (mut tries, mut turns) = (0, 0);
        let stopped = loop {
            tries += 1;
            assert!(tries < 200, "never met in mid-copy");
            other.fill(0, 0, SIZE, FIRST);
            // Directly again, since the last change.
            until("direct copies", || {
                let now = Turns::of(&end);
                now % 2 == 1 && now > turns
            });
            turns = Turns::of(&end);
            some_time(&mut random, 20_000);
            let before = sum(&service, &client, "direct_claims_revoked");
            let stopped = stop(victim.pid());
            change(&mut other, changes[0], &path, &layouts, tries);
            if sum(&service, &client, "direct_claims_revoked") > before {
                break stopped;
            }
        };
        eprintln!("{how}, {servers} servers: met in mid-copy at try {tries}");
        for what in &changes[1..] {
            change(&mut other, what, &path, &layouts, tries);
        }
        // What is freed now may be used by others who may share it; nothing late may get there.
        let neighbour = format!("/other{round}");
        other.open(1, &neighbour, &new);
        other.ask(&format!("chmod\t{neighbour}\t600"));
        other.fill(1, 0, SIZE, FILLED);
        other.fill(0, 0, SIZE, FILLED);
        assert_eq!(other.check(0, 0, SIZE, FILLED), SIZE);
        let written = sum(&service, &client, "written_bytes");
        make(&end);
        drop(stopped);
        let said = victim.answered();
        let (_, tag) = said.split_once(' ').unwrap();
        if how == "w" {
            // It counts as issued after all of that, and was done once.
            assert_eq!(other.check(0, AT, LEN, INTERRUPTED), LEN);
            let late = sum(&service, &client, "written_bytes") - written;
            assert_eq!(late, LEN, "bytes of the interrupted write");
        } else {
            assert_eq!(tag, FILLED.to_string(), "what a read returned");
            assert_eq!(other.check(0, AT, LEN, FILLED), LEN);
        }
        // All other bytes are as they were filled in.
        assert_eq!(other.check(0, 0, AT, FILLED), AT);
        let rest = SIZE - AT - LEN;
        assert_eq!(other.check(0, AT + LEN, rest, FILLED), rest);
        assert_eq!(other.check(1, 0, SIZE, FILLED), SIZE);
        // And nothing waits for the client any more.
        assert_eq!(sum(&service, &client, "direct_quarantined_bytes"), 0);
        // It copies directly as before.
        let [_, reads, _, revoked, _] = direct_counts(&mut victim);
        assert!(revoked > 0, "it has noticed");
        victim.fill(0, AT, LEN, INTERRUPTED);
        for _ in 0..2 {
            assert_eq!(victim.check(0, AT, LEN, INTERRUPTED), LEN);
        }
        let [attached, reads_now, ..] = direct_counts(&mut victim);
        assert!(reads_now > reads, "{reads_now} direct reads");
        assert_eq!(attached, servers as u64);
        assert_eq!(other.check(0, AT, LEN, INTERRUPTED), LEN);
    }
}

/// One change of a file by somebody else. Tries alternate between two states, so that each is a change.
#[track_caller]
fn change(other: &mut Worker, what: &str, path: &str, layouts: &[String; 2], tries: usize) {
    let is_odd = tries % 2 == 1;
    let line = match what {
        "truncate" => format!("resize\t0\t{}", AT + LEN / 2 + 5),
        "regrow" => format!("resize\t0\t{SIZE}"),
        "chmod" => format!("chmod\t{path}\t{}", if is_odd { "640" } else { "600" }),
        "relayout" => {
            format!("relayout\t{path}\t{}", layouts[usize::from(is_odd)])
        }
        other => panic!("no change {other}"),
    };
    timed(&format!("{what} (try {tries})"), || other.ask(&line));
}
