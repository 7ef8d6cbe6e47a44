//! Shrink, grow, unlink and create under load: readers get what somebody wrote at that place of that file,
//! or zeros, never bytes of another file or place.

use std::time::Duration;

use system_tests::pounding::Gone;
use system_tests::{pause, until};

use crate::{MIB, direct_counts, make, print_seed, service, stop_file, sum};

const WRITERS: usize = 4;
const SIZE: u64 = 3 * MIB;

#[test]
fn shrink_unlink_and_create_under_load_show_no_foreign_byte() {
    print_seed();
    for servers in [1, 3] {
        let service = service(servers);
        let client = service.client();
        let stop = stop_file(&service, "storm");
        let mut workers: Vec<_> = (0..WRITERS).map(|_| service.worker()).collect();
        for (k, worker) in workers.iter_mut().enumerate() {
            let end = stop.display();
            worker.send(&format!("storm\t/s\t{k}\t{WRITERS}\t{SIZE}\t{end}"));
        }
        let mut shaker = service.worker();
        let layouts = format!(
            "striped(64KiB) over {servers};striped(1000KiB) over 1;striped(16KiB) over {servers}"
        );
        let end = stop.display();
        shaker.send(&format!("shake\t/s\t{SIZE}\t{end}\t{layouts}"));
        until("revocations under load", || {
            sum(&service, &client, "direct_revocations") > 10
        });
        pause(Duration::from_millis(1000));
        until("direct accesses of all, of which some were met", || {
            let gone: Vec<Gone> = (0..WRITERS).map(|k| Gone::of(&stop, k as u8)).collect();
            gone.iter().all(|g| g.reads > 0 && g.writes > 0) && gone.iter().any(|g| g.revoked > 0)
        });
        make(&stop);
        let shaken = shaker.answered();
        let mut counts = Vec::new();
        for worker in &mut workers {
            let said = worker.answered();
            let [_, reads, writes, revoked, _] = direct_counts(worker);
            assert!(reads > 0 && writes > 0, "nothing went directly: {said}");
            eprintln!("{said}; {reads} reads and {writes} writes directly, {revoked} void");
            counts.push(revoked);
        }
        assert!(counts.iter().sum::<u64>() > 0, "no access was met");
        eprintln!("{servers} servers: {shaken} changes");
        drop(workers);
        drop(shaker);
        // Nothing is left of all these files once their users are gone.
        client.unlink("/s").unwrap();
        service.wait_for_nothing();
        until("memory that was given back", || {
            sum(&service, &client, "memory_bytes") == 0
        });
        assert_eq!(sum(&service, &client, "direct_quarantined_bytes"), 0);
    }
}
