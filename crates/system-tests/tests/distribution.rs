//! Files cut by the views of processes that open them together.
//!
//! Real processes, each with its view of one array; what they wrote is compared with what a client
//! reads that knows nothing of them.

use client::{OpenOptions, View};
use system_tests::{ServiceOptions, Store, Workers, pattern};

const ARRAY: &str = "f64[120,90]";
const BYTES: u64 = 120 * 90 * 8;

fn together(path: &str, team: &str, rank: usize, ranks: usize) -> String {
    format!(
        "together\t0\t{path}\t{team}\t{rank}\t{ranks}\t{ARRAY}\t(*, block) onto {ranks} [{rank}]"
    )
}

#[test]
fn seed001_s68_processes_of_a_team_write_one_file_that_reads_as_a_plain_one() {
    for store in [Store::Memory, Store::Disk] {
        // Fewer, as many, more than servers, and no multiple of them.
        let service = ServiceOptions::new(3).store(store).start();
        for ranks in [2, 3, 5] {
            let url = service.url().to_string();
            let mut workers = Workers::start(ranks, &url, service.secret().as_deref());
            let path = format!("/by{ranks}");
            let words = workers.all(|rank| together(&path, "job", rank, ranks));
            for word in &words {
                let expected = format!(
                    "views of {ranks} ranks on 3 servers: {} whole",
                    ranks / 3 * 3
                );
                assert!(word.starts_with(&expected), "{word}");
            }
            let each = BYTES / ranks as u64;
            workers.all(|_| format!("fill\t0\t0\t{each}\t7"));
            workers.all(|_| format!("check\t0\t0\t{each}\t7"));
            workers.all(|_| "sync\t0".into());
            let client = service.client();
            let file = client.open(&path, &OpenOptions::new().read()).unwrap();
            let mut bytes = vec![0; BYTES as usize];
            assert_eq!(file.read_at(0, &mut bytes).unwrap(), bytes.len());
            assert!(
                bytes == pattern(&View::whole_file(), 0, BYTES as usize, 7),
                "{path}"
            );
            // Rows of what was written by columns.
            file.set_view_text("(block, *) onto 7 [3]").unwrap();
            let n = file.view().len_within(BYTES) as usize;
            let mut rows = vec![0; n];
            assert_eq!(file.read_at(0, &mut rows).unwrap(), n);
            assert!(rows == pattern(&file.view(), 0, n, 7), "rows of {path}");
        }
    }
}

#[test]
fn a_member_that_is_killed_is_reported_to_the_others_at_once() {
    let service = ServiceOptions::new(1).start();
    let url = service.url().to_string();
    let mut workers = Workers::start(3, &url, service.secret().as_deref());
    workers.all(|rank| together("/f", "job", rank, 3));
    for rank in [0, 1] {
        workers.one(rank).send("barrier");
    }
    workers.one(2).kill();
    for rank in [0, 1] {
        // Within the time that an answer may take, which is shorter than what members wait.
        let error = workers.one(rank).answer().unwrap_err();
        assert!(error.contains("rank 2 of the team has ended"), "{error}");
    }
}
