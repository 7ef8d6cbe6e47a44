//! What servers report about direct access, and that nothing of it happens where it is switched off.
//! Clients' own counts are looked at in the other modules.

use system_tests::files::{create, read, whole};
use system_tests::pounding::Turns;
use system_tests::process::stop;
use system_tests::{OpenHow, ServiceOptions, until};

use crate::{MIB, direct_counts, make, pound, print_seed, service, stop_file, sum};

const NAMES: [&str; 9] = [
    "direct_clients",
    "direct_entries",
    "direct_maps",
    "direct_mapped_extents",
    "direct_revocations",
    "direct_claims_waited",
    "direct_claims_revoked",
    "direct_replaced_bytes",
    "direct_quarantined_bytes",
];

#[test]
fn statistics_say_who_shares_and_what_was_taken_back() {
    print_seed();
    let service = service(1);
    let client = service.client();
    let of = |name: &str| sum(&service, &client, name);
    for name in NAMES {
        assert_eq!(of(name), 0, "{name} before anybody came");
    }
    let file = create(&client, "/f", "striped(64KiB) over 1");
    file.write_at(0, &whole(0, 9 * MIB as usize, 1)).unwrap();
    file.write_at(0, &whole(0, 9 * MIB as usize, 1)).unwrap();
    assert!(file.last_access().is_direct);
    assert_eq!((of("direct_clients"), of("direct_entries")), (1, 1));
    assert!(of("direct_maps") >= 1 && of("direct_mapped_extents") >= 5);
    let mut victim = service.worker();
    victim.open(0, "/f", &OpenHow::new("rw"));
    victim.fill(0, 0, 8 * MIB, 2);
    assert_eq!(of("direct_clients"), 2);
    let end = stop_file(&service, "victim");
    victim.send(&pound("w", 0, 8 * MIB, 2, &end));
    let (mut tries, mut turns) = (0, 0);
    let stopped = loop {
        tries += 1;
        assert!(tries < 200, "never met in mid-copy");
        until("direct copies", || {
            Turns::of(&end) % 2 == 1 && Turns::of(&end) > turns
        });
        turns = Turns::of(&end);
        let stopped = stop(victim.pid());
        // The beginning stays, so it has to be copied elsewhere.
        let waited = of("direct_claims_waited");
        file.resize(6 * MIB).unwrap();
        if of("direct_claims_revoked") > 0 {
            assert!(of("direct_claims_waited") > waited);
            break stopped;
        }
        drop(stopped);
        file.resize(9 * MIB).unwrap();
        file.write_at(0, &whole(0, 9 * MIB as usize, 1)).unwrap();
    };
    assert!(of("direct_revocations") >= 1);
    assert!(
        of("direct_replaced_bytes") >= 6 * MIB,
        "{}",
        of("direct_replaced_bytes")
    );
    assert!(of("direct_quarantined_bytes") >= 6 * MIB);
    make(&end);
    drop(stopped);
    victim.answered();
    assert_eq!(of("direct_quarantined_bytes"), 0, "it has noticed");
    victim.end();
    until("a goodbye", || of("direct_clients") == 1);
}

#[test]
fn statistics_of_servers_that_share_nothing_are_zero() {
    for (of_servers, of_clients) in [("0", true), ("1", false)] {
        let mut options = ServiceOptions::new(2).direct(of_clients);
        let said = ("PARIO_DIRECT".into(), of_servers.into());
        options.environment.push(said);
        let service = options.start();
        let client = service.client();
        let file = create(&client, "/f", "striped(64KiB) over 2");
        for tag in 1..4 {
            file.write_at(0, &whole(0, 4 * MIB as usize, tag)).unwrap();
            assert!(!file.last_access().is_direct);
            assert!(read(&file, 0, 4 * MIB as usize) == whole(0, 4 * MIB as usize, tag));
            assert!(!file.last_access().is_direct);
        }
        // The same in a process that has it from its environment.
        let mut worker = service.worker();
        worker.open(0, "/f", &OpenHow::new("rw"));
        for tag in 4..7 {
            worker.fill(0, 0, 4 * MIB, tag);
            worker.check(0, 0, 4 * MIB, tag);
        }
        assert_eq!(direct_counts(&mut worker)[..4], [0; 4]);
        file.resize(0).unwrap();
        for name in NAMES {
            assert_eq!(sum(&service, &client, name), 0, "{name}");
        }
        let counted = client.direct_statistics();
        assert_eq!((counted.attached, counted.reads, counted.writes), (0, 0, 0));
        assert_eq!((counted.maps_asked, counted.revoked), (0, 0));
    }
}
