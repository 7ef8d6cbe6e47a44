//! Clients that are killed while they hold a slot: their claims hold nobody up, and all that the server
//! kept for them is given back.

use system_tests::files::{create, open, whole};
use system_tests::process::{Holds, holds, wait_within};
use system_tests::{OpenHow, Random, until};

use crate::{MIB, pound, print_seed, service, some_time, stop_file, sum, timed};

/// The victim writes all but the beginning.
const SIZE: usize = 5 << 20;
const ROUNDS: u64 = 6;
/// Connections of servers to each other may be more when they meet at another moment; what the clients of
/// all rounds had would be several times that.
const AMONG_SERVERS: usize = 6;
/// Descriptors that a server has for every client that shares its memory, each twice: once more for its keeper.
const PER_CLIENT: [&str; 2] = ["/memfd:pario-page", "anon_inode:[pidfd]"];

#[test]
fn killed_client_with_a_slot_at_one_server_holds_nobody_up_and_leaves_nothing() {
    rounds(1);
}

#[test]
fn killed_client_with_slots_at_three_servers_holds_nobody_up_and_leaves_nothing() {
    rounds(3);
}

fn rounds(servers: usize) {
    print_seed();
    let mut random = Random::of_run(20 + servers as u64);
    let mut service = service(servers);
    let client = service.client();
    // The one who looks has its connections before it counts.
    let look = create(&client, "/look", &format!("striped(64KiB) over {servers}"));
    look.write_at(0, &whole(0, MIB as usize, 1)).unwrap();
    look.write_at(0, &whole(0, MIB as usize, 2)).unwrap();
    let layouts = ["64KiB", "16KiB"].map(|stripe| format!("striped({stripe}) over {servers}"));
    let never = stop_file(&service, "never");
    let (old, new) = (whole(0, SIZE, 3), whole(0, SIZE, 4));
    let used_before = service.counters(&client, "memory_bytes");
    let mut before: Vec<Holds> = Vec::new();
    for round in 0..ROUNDS {
        let path = format!("/f{round}");
        let file = create(&client, &path, &layouts[0]);
        file.write_at(0, &old).unwrap();
        let mut victim = service.worker();
        victim.open(0, &path, &OpenHow::new("rw"));
        victim.send(&pound("w", MIB, SIZE as u64 - MIB, 4, &never));
        until("direct writes", || {
            service.counters(&client, "direct_clients") == vec![2; servers]
        });
        some_time(&mut random, 20_000);
        victim.kill();
        let of = |what: &str| format!("{servers} servers, round {round}, {what}");
        match round % 2 {
            0 => {
                timed(&of("truncate"), || file.resize(4096).unwrap());
                timed(&of("regrow"), || file.resize(SIZE as u64).unwrap());
            }
            _ => {
                let done = || client.relayout(&path, &layouts[1]).unwrap().wait().unwrap();
                timed(&of("relayout"), done);
            }
        }
        let mut bytes = vec![0xee; SIZE];
        assert_eq!(file.read_at(0, &mut bytes).unwrap(), bytes.len());
        let odd = (0..bytes.len()).find(|&x| match round % 2 {
            0 if x >= 4096 => bytes[x] != 0,
            _ if x < MIB as usize => bytes[x] != old[x],
            _ => bytes[x] != old[x] && bytes[x] != new[x],
        });
        assert_eq!(odd, None, "byte that nobody wrote");
        file.close().unwrap();
        timed(&of("unlink"), || client.unlink(&path).unwrap());
        until("removals", || client.counts().unwrap().removals == 0);
        // All that the server had for it is given back.
        until("the page of a dead client", || {
            service.counters(&client, "direct_clients") == vec![1; servers]
        });
        assert_eq!(sum(&service, &client, "direct_quarantined_bytes"), 0);
        // Freed outside of all locks, so a moment later.
        until("memory that files used", || {
            service.counters(&client, "memory_bytes") == used_before
        });
        let pids: Vec<u32> = (0..servers).map(|i| service.io(i).pid()).collect();
        until("what belonged to the dead client", || {
            let all = pids.iter().map(|pid| holds(*pid));
            all.into_iter()
                .all(|now| PER_CLIENT.iter().all(|kind| now.of_kind(kind) <= 4))
        });
        // Servers have connected to each other and threads are there after the first two rounds.
        if round == 1 {
            before = pids.iter().map(|pid| holds(*pid)).collect();
            for holds in &mut before {
                *holds.kinds.entry("socket".into()).or_default() += AMONG_SERVERS;
            }
        } else if round > 1 {
            for (pid, before) in pids.iter().zip(&before) {
                wait_within(*pid, before);
            }
        }
    }
    // Somebody else's file was never touched.
    let mut bytes = vec![0; MIB as usize];
    open(&client, "/look").read_at(0, &mut bytes).unwrap();
    assert!(bytes == whole(0, bytes.len(), 2));
}
