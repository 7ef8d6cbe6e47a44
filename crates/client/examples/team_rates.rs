//! Rates of a team of processes on this host: barriers, short exchanges and long ones.
//!
//! `cargo run --release -p client --example team_rates`. The program starts itself again as the other
//! members. Numbers for people; nothing is asserted.

use std::process::Command;
use std::time::Instant;

use client::Team;

const MEMBERS: usize = 4;

fn time(name: &str, team: &Team, calls: usize, mut call: impl FnMut()) {
    call();
    let mut best = f64::MAX;
    for _ in 0..5 {
        team.barrier().unwrap();
        let started = Instant::now();
        for _ in 0..calls {
            call();
        }
        best = best.min(started.elapsed().as_nanos() as f64 / calls as f64);
    }
    if team.rank() == 0 {
        println!("{name:40} {:>10.1} us", best / 1e3);
    }
}

fn work(team: &Team) {
    time("barrier", team, 2000, || team.barrier().unwrap());
    time("all give 64 bytes to all", team, 2000, || {
        team.allgather(&[1; 64]).unwrap();
    });
    for part in [64usize << 10, 1 << 20] {
        let bytes = vec![1; part];
        let parts = vec![&bytes[..]; MEMBERS];
        let name = format!("each gives {} KiB to each", part >> 10);
        time(&name, team, 50, || {
            team.exchange(&parts).unwrap();
        });
        let name = format!("the same into kept memory, {} KiB", part >> 10);
        let mut got = Vec::new();
        time(&name, team, 50, || {
            team.exchange_into(&parts, &mut got).unwrap();
        });
    }
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    if let [_, name, rank] = &words[..] {
        let team = Team::host_attach(name, rank.parse().unwrap(), MEMBERS).unwrap();
        team.meet().unwrap();
        return work(&team);
    }
    let started = Instant::now();
    let (team, name) = Team::host_create(MEMBERS).unwrap();
    println!("made in {} us", started.elapsed().as_micros());
    let this = std::env::current_exe().unwrap();
    let others: Vec<_> = (1..MEMBERS)
        .map(|rank| {
            let rank = rank.to_string();
            Command::new(&this).args([&name, &rank]).spawn().unwrap()
        })
        .collect();
    team.meet().unwrap();
    work(&team);
    for mut other in others {
        other.wait().unwrap();
    }
}
