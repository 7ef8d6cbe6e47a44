//! The fuzz harness for views and layouts that somebody chose to hurt, on fixed seeds. `make fuzz` runs it with a fuzzer
//! behind it.

mod harness;

use std::sync::mpsc;
use std::time::Duration;

/// What is not over by then never is.
const WATCHDOG: Duration = Duration::from_secs(120);

#[test]
fn hostile_trees_on_fixed_seeds() {
    let asked = std::env::var("PROPTEST_CASES").ok();
    let cases: u64 = asked.and_then(|n| n.parse().ok()).unwrap_or(3000);
    let (told, heard) = mpsc::channel();
    let working = std::thread::spawn(move || {
        for seed in 0..cases {
            told.send(seed).unwrap();
            harness::hostile_trees(&seed.to_le_bytes());
        }
    });
    let mut last = 0;
    loop {
        match heard.recv_timeout(WATCHDOG) {
            Ok(seed) => last = seed,
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("seed {last} does not end"),
        }
    }
    working.join().unwrap();
}
