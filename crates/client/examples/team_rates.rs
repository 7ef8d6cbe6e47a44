//! Rates of teams of processes on this host, through memory and through sockets: barriers, short exchanges and long ones.
//!
//! `cargo run --release -p client --example team_rates`. The program starts itself again as the other
//! members. Numbers for people; nothing is asserted.

use std::process::{Child, Command};
use std::time::Instant;

use client::{Client, ConnectOptions, Endpoint, ServiceUrl, Team};

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

/// The members of a team: this process and others, which are told the words and their rank.
fn others(words: &[&str]) -> Vec<Child> {
    let this = std::env::current_exe().unwrap();
    let start = |rank: usize| {
        let mut command = Command::new(&this);
        command.args(words).arg(rank.to_string()).spawn().unwrap()
    };
    (1..MEMBERS).map(start).collect()
}

fn join(socket: &str, rank: usize) -> Team {
    let url = ServiceUrl::At(Endpoint::Unix(socket.into()));
    let client = Client::connect(&url, ConnectOptions::default()).unwrap();
    Team::processes(&client, "rates", rank, MEMBERS).unwrap()
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    if let [_, kind, name, rank] = &words[..] {
        let rank = rank.parse().unwrap();
        let team = match &kind[..] {
            "memory" => Team::host_attach(name, rank, MEMBERS).unwrap(),
            _ => join(name, rank),
        };
        if kind == "memory" {
            team.meet().unwrap();
        }
        return work(&team);
    }
    println!("through memory of the host");
    let (team, name) = Team::host_create(MEMBERS).unwrap();
    let mut started = others(&["memory", &name]);
    team.meet().unwrap();
    work(&team);
    println!("through sockets");
    let dir = std::env::temp_dir().join(format!("pario-rates-{}", std::process::id()));
    let mut options = metaserver::Options::new(dir.join("catalogue"));
    let socket = dir.join("meta").display().to_string();
    std::fs::create_dir_all(&dir).unwrap();
    options.listen = vec![Endpoint::Unix(dir.join("meta"))];
    let manager = metaserver::start(options).unwrap();
    started.extend(others(&["sockets", &socket]));
    let team = join(&socket, 0);
    work(&team);
    for mut other in started {
        other.wait().unwrap();
    }
    drop(team);
    manager.stop();
    std::fs::remove_dir_all(&dir).unwrap();
}
