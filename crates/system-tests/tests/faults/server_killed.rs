//! A server that is killed while clients copy: they learn it at once, from the word in the table, not
//! by waiting for anybody. Its memory is gone with it: it has no keeper, from which the next start would have it.

use std::time::{Duration, Instant};

use client::ServerId;
use system_tests::files::{create, open, read, whole};
use system_tests::{OpenHow, Random, ServiceOptions};

use crate::{MIB, direct_counts, goes_on, make, pound, print_seed, servers_of, some_time};
use crate::{start, stop_file};

/// How long clients wait for a server that cannot be reached. Whoever knows that it is dead waits for a small part
/// of it, also where the machine is busy.
const PATIENCE: Duration = Duration::from_secs(120);

#[test]
fn kill_of_a_server_is_learned_at_once_by_clients_that_copy() {
    print_seed();
    let mut random = Random::of_run(10);
    let mut service = start(ServiceOptions::new(2).io_arguments(["--no-keeper"]));
    let client = service.client();
    let victim = 1;
    let dead = service.server_id(victim).0;
    // Files of which the victim has everything, and files of which it has nothing.
    let (mut lost, mut kept) = (Vec::new(), Vec::new());
    let bytes = whole(0, 8 * MIB as usize, 1);
    for k in 0..8 {
        let path = format!("/f{k}");
        let file = create(&client, &path, "striped(64KiB) over 1");
        file.write_at(0, &bytes).unwrap();
        match &servers_of(&file)[..] {
            [one] if *one == dead => lost.push(path),
            all if !all.contains(&dead) => kept.push(path),
            _ => {}
        }
    }
    assert!(!lost.is_empty() && !kept.is_empty(), "{lost:?} {kept:?}");
    // Long copies, and short ones that come from the cache of runs.
    let stop = stop_file(&service, "all");
    let mut pounding = Vec::new();
    let programs = [("w", 8 * MIB), ("r", 8 * MIB), ("w", 4096), ("r", 4096)];
    for (paths, is_lost) in [(&lost, true), (&kept, false)] {
        for (k, (how, len)) in programs.iter().enumerate() {
            let mut worker = service.worker();
            // It would wait for a server that cannot be reached, but not for one that is dead.
            worker.ask(&format!("patience\t{}", PATIENCE.as_millis()));
            worker.open(0, &paths[k % paths.len()], &OpenHow::new("rw"));
            // Often enough for all to have maps before the kill.
            for _ in 0..if *len < MIB { 4 } else { 1 } {
                worker.fill(0, 0, *len, 1);
                worker.check(0, 0, *len, 1);
            }
            let [attached, reads, writes, ..] = direct_counts(&mut worker);
            assert!(attached == 1 && reads > 0 && writes > 0, "not direct");
            worker.send(&pound(how, 0, *len, 1 + u64::from(*how == "r"), &stop));
            pounding.push((worker, *how, *len, is_lost));
        }
    }
    some_time(&mut random, 30_000);
    let killed = Instant::now();
    service.kill_io(victim);
    for (worker, how, len, _) in pounding.iter_mut().filter(|p| p.3) {
        let error = worker.answer().expect_err("its server is dead");
        let took = killed.elapsed();
        eprintln!("{how} of {len}: {took:.0?} after the kill: {error}");
        // Whichever of the two is known first: that it does not answer, or that its bytes are gone.
        let is_typed = ["Unreachable ", "Lost "]
            .iter()
            .any(|s| error.starts_with(s));
        assert!(is_typed, "{error}");
        assert!(error.contains(&ServerId(dead).to_string()), "{error}");
        assert!(took < PATIENCE / 4, "{took:?}");
    }
    // Files of other servers go on, before it is back and after.
    let at_other = open(&client, &kept[0]);
    assert!(read(&at_other, 0, MIB as usize) == whole(0, MIB as usize, 1));
    service.start_io(victim);
    service.wait_for_members(2);
    for (worker, how, _, _) in pounding.iter_mut().filter(|p| p.3) {
        let error = worker.try_ask("check\t0\t0\t4096\t1").unwrap_err();
        eprintln!("{how} after the restart: {error}");
        assert!(error.starts_with("Lost "), "{error}");
    }
    for (worker, ..) in pounding.iter().filter(|p| !p.3) {
        goes_on(worker, &stop);
    }
    make(&stop);
    for (worker, how, len, _) in pounding.iter_mut().filter(|p| !p.3) {
        let done = worker.answered();
        let (_, tag) = done.split_once(' ').unwrap();
        assert!(*how == "w" || tag == "1", "{done}");
        let [_, _, _, revoked, _] = direct_counts(worker);
        assert_eq!(revoked, 0, "{how} of {len}: its server never moved a byte");
    }
    // Who writes to the new start of the server is served by it, directly.
    let again = create(&client, "/again", "striped(64KiB) over 2");
    again.write_at(0, &whole(0, 4 * MIB as usize, 5)).unwrap();
    again.write_at(0, &whole(0, 4 * MIB as usize, 6)).unwrap();
    assert!(again.last_access().is_direct);
    assert!(read(&again, 0, 4 * MIB as usize) == whole(0, 4 * MIB as usize, 6));
}
