//! Runs the conformance suite against every store: memory, disk on real files, disk on the twin,
//! with ample and with scarce memory.
//!
//! The suite itself is in `store::conformance`, so that stores elsewhere can run it too.

mod harness;

use harness::{MemoryHarness, RealHarness, TwinHarness};
use store::conformance::{CHECKS, Harness, run};

#[track_caller]
fn ran_all_but(ran: &[&str], left_out: &[&str]) {
    let expected: Vec<&str> = CHECKS
        .iter()
        .map(|c| c.name)
        .filter(|name| !left_out.contains(name))
        .collect();
    assert_eq!(ran, expected);
}

#[test]
fn memory_store_conforms() {
    let ran = run(|| Box::new(MemoryHarness::new(64 << 20)));
    let durable = [
        "synced_bytes_survive",
        "flushed_bytes_survive",
        "scrub_reads_all_blocks",
    ];
    ran_all_but(&ran, &durable);
}

#[test]
fn disk_store_on_real_files_conforms() {
    ran_all_but(&run(|| Box::new(RealHarness::new(64 << 20))), &[]);
}

#[test]
fn disk_store_on_the_twin_conforms() {
    ran_all_but(&run(|| Box::new(TwinHarness::new(64 << 20))), &[]);
}

#[test]
fn disk_store_with_scarce_memory_conforms() {
    // Less than most checks write: everything goes through eviction and write-back. Checks that
    // pin more than that at once cannot run.
    let large = ["pins_outlive_truncation", "grants_apart_show_no_old_bytes"];
    let ran: Vec<&str> = CHECKS
        .iter()
        .filter(|c| !large.contains(&c.name))
        .map(|check| {
            let mut harness: Box<dyn Harness> = Box::new(TwinHarness::new(2 << 20));
            (check.run)(&mut *harness);
            check.name
        })
        .collect();
    ran_all_but(&ran, &large);
}
