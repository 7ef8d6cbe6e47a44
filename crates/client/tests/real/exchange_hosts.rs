//! A team of many processes on several hosts, which are network namespaces: everything between hosts goes over TCP.
//!
//! The test program starts itself again as the manager on one host and as the members on the others.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use client::{Client, ConnectOptions, Endpoint, Keys, Reduction, Secret, ServiceUrl, Team};
use testkit::hosts::Hosts;

use crate::host_teams::{all_good, told};

const HOSTS: usize = 8;
const MEMBERS: usize = 64;
const TEST: &str = "exchange_hosts::sixty_four_members_on_eight_hosts";

fn keys() -> Keys {
    Keys::of_user(Some(Secret::new(b"of these tests, long enough")))
}

fn serve(dir: &str) {
    let mut options = metaserver::Options::new(dir);
    let address = Hosts::address(0);
    options.listen = vec![format!("tcp:{address}:0").parse().unwrap()];
    options.keys = keys();
    let manager = metaserver::start(options).unwrap();
    println!("\nserves {}", manager.endpoints()[0]);
    // Until the test closes its input.
    let _ = std::io::stdin().read(&mut [0]);
}

fn connect(url: &str) -> Client {
    let endpoint: Endpoint = url.parse().unwrap();
    let mut options = ConnectOptions::default().with_timeout(Duration::from_secs(10));
    options.keys = keys();
    Client::connect(&ServiceUrl::At(endpoint), options).unwrap()
}

fn work(team: &Team) {
    let (rank, size) = (team.rank(), team.size());
    assert_eq!(size, MEMBERS);
    let sum = team.all_reduce(&[rank as u64, 1], Reduction::Sum).unwrap();
    assert_eq!(sum, [(size * (size - 1) / 2) as u64, size as u64]);
    // Blocks of all lengths, some longer than what is read unasked.
    let len = |from: usize, to: usize| (from * 7 + to * 13) % 50 * if from == 5 { 2000 } else { 1 };
    let parts: Vec<_> = (0..size)
        .map(|to| vec![(rank + to) as u8; len(rank, to)])
        .collect();
    let parts: Vec<&[u8]> = parts.iter().map(|part| &part[..]).collect();
    let got = team.exchange(&parts).unwrap();
    for (from, part) in got.iter().enumerate() {
        assert!(
            *part == vec![(from + rank) as u8; len(from, rank)],
            "from {from}"
        );
    }
    let said = team.broadcast(17, &[rank as u8; 100_000]).unwrap();
    assert!(said == [17; 100_000]);
    // Once around.
    let next = (rank + 1) % size;
    match rank {
        0 => {
            team.send(next, 1, &[0]).unwrap();
            let hops = team.receive(size - 1, 1).unwrap();
            assert_eq!(hops.bytes, [(size - 1) as u8]);
        }
        _ => {
            let hops = team.receive(rank - 1, 1).unwrap().bytes[0];
            team.send(next, 1, &[hops + 1]).unwrap();
        }
    }
    team.barrier().unwrap();
    // The death of one ends the waits of all, over the network as well.
    if rank == 40 {
        // Not before all are out of the barrier.
        (1..size).for_each(|_| drop(team.receive(None, 2).unwrap()));
        std::process::abort();
    }
    team.send(40, 2, &[]).unwrap();
    let error = match rank % 2 {
        0 => team.barrier().unwrap_err(),
        _ => team.receive(40, 9).unwrap_err(),
    };
    assert!(error.to_string().contains("rank 40 of the team"), "{error}");
}

#[test]
fn sixty_four_members_on_eight_hosts() {
    if let Some(words) = told() {
        return match &words[0][..] {
            "serve" => serve(&words[1]),
            url => work(&Team::join(&connect(url), "far", MEMBERS).unwrap()),
        };
    }
    let hosts = match Hosts::new(HOSTS + 1) {
        Ok(hosts) => hosts,
        Err(why) => return testkit::skipped(&why),
    };
    let dir = std::env::temp_dir().join(format!("pario-far-{}", std::process::id()));
    let this = std::env::current_exe().unwrap();
    let start = |host: usize, said: &str| -> Child {
        let mut command: Command = hosts.command(host, &this);
        command
            .args([TEST, "--exact", "--nocapture"])
            .env("PARIO_TEST_TEAM", said);
        command.env("RUST_BACKTRACE", "0");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.spawn().unwrap()
    };
    let mut manager = start(0, &format!("serve {}", dir.display()));
    let said = BufReader::new(manager.stdout.take().unwrap());
    let mut said = said.lines().map(Result::unwrap);
    let url = said.find_map(|line| Some(line.strip_prefix("serves ")?.to_owned()));
    let url = url.expect("the manager says where");
    let all: Vec<Child> = (0..MEMBERS).map(|i| start(1 + i % HOSTS, &url)).collect();
    let failed = all.into_iter().map(|mut child| child.wait().unwrap());
    // The one that has died.
    assert_eq!(failed.filter(|status| !status.success()).count(), 1);
    drop(manager.stdin.take());
    all_good(vec![manager]);
    std::fs::remove_dir_all(&dir).unwrap();
}
