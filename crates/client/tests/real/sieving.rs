//! Sieving against the normal way: identical bytes, also beside others that write in the holes.
//!
//! Windows are made short, so that they end in gaps, in pieces, and behind the end of the file.

use client::{File, Hints, OpenOptions, Strategy};

use crate::service::{Service, create, pattern};

const VIEWS: &[&str] = &[
    "(block, block, block) onto 2x2x2 [5]",
    "(*, cyclic(3), *) onto 2 [1]",
    "(block, *, *) onto 4 [2]",
    "slice[1:8:3, 0:9:2, 1:10]",
    "whole",
];

/// A handle that sieves, with windows shorter than the gaps, than rows, and than the file.
fn sieving(client: &client::Client, path: &str, window: u64) -> File {
    let hints = Hints::new()
        .with("strategy", "sieving")
        .and_then(|h| h.with("ind_rd_buffer_size", &window.to_string()))
        .and_then(|h| h.with("ind_wr_buffer_size", &window.to_string()))
        .unwrap();
    let options = OpenOptions::new().read().write().hints(hints);
    let file = client.open(path, &options).unwrap();
    assert_eq!(file.strategy(), Strategy::Sieving);
    file
}

fn everything(client: &client::Client, path: &str) -> Vec<u8> {
    let file = client.open(path, &OpenOptions::new().read()).unwrap();
    let mut bytes = vec![0; file.size().unwrap() as usize];
    let n = file.read_at(0, &mut bytes).unwrap();
    assert_eq!(n, bytes.len());
    bytes
}

#[test]
fn sieved_accesses_give_the_bytes_of_the_normal_way() {
    let service = Service::start(3);
    let client = service.connect();
    for (v, view) in VIEWS.iter().enumerate() {
        for window in [1, 7, 100, 1 << 20] {
            let (plain, sieved) = (
                format!("/plain-{v}-{window}"),
                format!("/sieved-{v}-{window}"),
            );
            let normal = create(&client, &plain, "i32[8,9,10]", "striped(64) over 3");
            create(&client, &sieved, "i32[8,9,10]", "striped(64) over 3");
            let other = sieving(&client, &sieved, window);
            for file in [&normal, &other] {
                file.write_at(0, &pattern(500, v)).unwrap();
                file.set_view_text(view).unwrap();
                // In the middle, beyond the end, and into the next array.
                file.write_at(3, &pattern(301, v + 1)).unwrap();
                file.write_at(400, &pattern(700, v + 2)).unwrap();
            }
            assert!(
                everything(&client, &plain) == everything(&client, &sieved),
                "{view} by {window}"
            );
            let mut found = [vec![0xee; 2000], vec![0xee; 2000]];
            for (offset, len) in [(0, 1), (5, 333), (0, 2000), (1090, 40), (9999, 3)] {
                let n = normal.read_at(offset, &mut found[0][..len]).unwrap();
                assert_eq!(other.read_at(offset, &mut found[1][..len]).unwrap(), n);
                assert!(found[0] == found[1], "{view} by {window} at {offset}");
            }
        }
    }
}

#[test]
fn sieving_writers_in_each_others_holes_lose_nothing() {
    let service = Service::start(2);
    let client = service.connect();
    let (array, layout) = ("u8[16,24,24]", "striped(100) over 2");
    create(&client, "/f", array, layout);
    let model = create(&client, "/model", array, layout);
    std::thread::scope(|scope| {
        for rank in 0..8 {
            let client = service.connect();
            scope.spawn(move || {
                let file = sieving(&client, "/f", 700);
                file.set_view_text(&format!("(block, block, block) onto 2x2x2 [{rank}]"))
                    .unwrap();
                for round in 0..3 {
                    file.write_at(0, &pattern(16 * 24 * 24 / 8, rank + round))
                        .unwrap();
                }
            });
        }
    });
    for rank in 0..8 {
        model
            .set_view_text(&format!("(block, block, block) onto 2x2x2 [{rank}]"))
            .unwrap();
        model
            .write_at(0, &pattern(16 * 24 * 24 / 8, rank + 2))
            .unwrap();
    }
    assert!(everything(&client, "/f") == everything(&client, "/model"));
}

#[test]
fn a_strategy_that_does_not_exist_is_refused() {
    let error = Hints::new().with("strategy", "magic").unwrap_err();
    assert!(error.to_string().contains("two_phase, sieving"), "{error}");
}

#[test]
fn a_strategy_that_is_changed_during_accesses_leaves_no_wrong_bytes() {
    let service = Service::start(1);
    let client = service.connect();
    let file = create(&client, "/f", "", "whole");
    let bytes = pattern(200_000, 0);
    file.write_at(0, &bytes).unwrap();
    file.set_view_text("striped(100) over 2 [1]").unwrap();
    let wanted: Vec<u8> = bytes.chunks(200).flat_map(|c| c[100..].to_vec()).collect();
    let sieving = Hints::new()
        .with("strategy", "sieving")
        .and_then(|h| h.with("ind_rd_buffer_size", "4000"))
        .unwrap();
    let views = Hints::new().with("strategy", "views").unwrap();
    for round in 0..20 {
        file.set_hints(&sieving).unwrap();
        let before = client.messages_sent().0;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut back = vec![0; wanted.len()];
                assert_eq!(file.read_at(0, &mut back), Ok(wanted.len()));
                assert!(back == wanted);
            });
            // The access is under way.
            while client.messages_sent().0 == before {
                std::thread::yield_now();
            }
            file.set_hints(&views).unwrap();
        });
        let mut back = [0; 100];
        for at in (0..wanted.len() - 100).step_by(700) {
            assert_eq!(file.read_at(at as u64, &mut back), Ok(100));
            assert!(back == wanted[at..at + 100], "round {round} at {at}");
        }
    }
}

#[test]
fn seed004_s85_windows_of_sieved_writes_are_fenced_against_every_other_writer() {
    let service = Service::start(2);
    let client = service.connect();
    let size = 200_000;
    let file = create(&client, "/f", "", "striped(3000) over 2");
    file.write_at(0, &vec![0; size]).unwrap();
    file.sync().unwrap();
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Others write between the pieces, through shared memory and by message, and find what they wrote.
        for (element, is_direct) in [(1, true), (2, false)] {
            let (service, is_over) = (&service, &is_over);
            scope.spawn(move || {
                let client = service.connect_how(is_direct);
                let options = OpenOptions::new().read().write();
                let file = client.open("/f", &options).unwrap();
                let view = format!("striped(50) over 4 [{element}]");
                file.set_view_text(&view).unwrap();
                let mut back = vec![0; size / 4];
                let mut round = 0u64;
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) || round < 5 {
                    round += 1;
                    let bytes = pattern(size / 4, (round as usize) * 2 + element);
                    assert_eq!(file.write_at(0, &bytes), Ok(size / 4));
                    assert_eq!(file.read_at(0, &mut back), Ok(size / 4));
                    assert!(
                        back == bytes,
                        "round {round} of the one who is direct: {is_direct}"
                    );
                }
                let went = client.direct_statistics();
                assert!(is_direct || went.reads + went.writes == 0);
            });
        }
        let sieved = sieving(&client, "/f", 40_000);
        sieved.set_view_text("striped(50) over 4 [0]").unwrap();
        for round in 0..30 {
            let bytes = pattern(size / 4, round);
            assert_eq!(sieved.write_at(0, &bytes), Ok(size / 4));
        }
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    let whole = everything(&client, "/f");
    let mine: Vec<u8> = whole.chunks(200).flat_map(|c| c[..50].to_vec()).collect();
    assert!(mine == pattern(size / 4, 29));
}
