//! A team that writes and reads one file collectively, with one strategy after the other, while it moves.
//!
//! Every byte is compared. Moving it is left to others.

use std::sync::atomic::{AtomicU64, Ordering};

use client::{Client, File, Hints, OpenOptions, Places, SharedBytes, Status, Team};
use system_tests::plain_file::assert_bytes;
use system_tests::{Random, Service, pattern};

use crate::battle::Orders;

/// Bytes of the file.
pub(crate) const SIZE: u64 = 60_000;
/// Members of the team.
const MEMBERS: usize = 3;
const STRATEGIES: [&str; 5] = ["views", "two_phase", "ddio", "mb_ddio", "two_phase_ddio"];

/// Uses the file of a directory until it is over; every byte is compared.
pub(crate) fn sing(service: &Service, dir: &str, seed: u64, orders: &Orders) {
    let path = format!("{dir}/together");
    let rounds = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for team in Team::threads(MEMBERS) {
            let (client, path, rounds) = (service.client(), &path, &rounds);
            scope.spawn(move || member(&client, &team, path, seed, orders, rounds));
        }
    });
    eprintln!("collective rounds: {}", rounds.load(Ordering::Relaxed));
}

/// All write their parts of so many bytes of a file, and read them again.
#[track_caller]
pub(crate) fn there_and_back(file: &File, team: &Team, size: u64, tag: u64, strategy: &str) {
    let view = file.view();
    let len = view.len_within(size) as usize;
    let places = Places::bytes(len as u64);
    let bytes = pattern(&view, 0, len, tag);
    let n = file.write_at_all(team, 0, SharedBytes::from_slice(&bytes), 0, &places);
    assert_eq!(n.expect("written"), len, "{strategy}");
    let mut found = vec![0xee; len];
    let n = file.read_at_all(team, 0, found[..].as_mut().into(), 0, &places);
    assert_eq!(n.expect("read"), len, "{strategy}");
    assert_bytes(&found, &bytes, &format!("tag {tag}, {strategy}"));
}

fn member(
    client: &Client,
    team: &Team,
    path: &str,
    seed: u64,
    orders: &Orders,
    rounds: &AtomicU64,
) {
    // All draw the same.
    let mut random = Random::new(seed);
    loop {
        let strategy = STRATEGIES[random.index(STRATEGIES.len())];
        let hints = Hints::new().with("strategy", strategy).expect("a hint");
        let how = OpenOptions::new().read().write().hints(hints);
        let file = match client.open_together(team, path, &how) {
            Ok(file) => file,
            // Renamed for a moment; all are told the same.
            Err(error) if error.status() == Status::NotFound => continue,
            Err(error) => panic!("{path}: {error}"),
        };
        let stripe = random.within(17..900);
        let view = format!("striped({stripe}) over {} [{}]", team.size(), team.rank());
        file.set_view_text_together(team, &view).expect("a view");
        for _ in 0..4 {
            there_and_back(&file, team, SIZE, random.below(1 << 20), strategy);
            if team.rank() == 0 {
                rounds.fetch_add(1, Ordering::Relaxed);
            }
        }
        file.close().expect("closed");
        // The first one decides for all.
        let is_over = orders.is_over.load(Ordering::Relaxed);
        let said = team.allgather(&[u8::from(is_over)]).expect("a team");
        if said[0] == [1] {
            return;
        }
    }
}
