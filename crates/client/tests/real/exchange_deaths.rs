//! Members of a team that die or leave: every wait of the others ends.
//!
//! Members that are killed are processes; the test program starts itself again as them.

use std::io::{BufRead, BufReader};
use std::time::Duration;

use client::{Reduction, Status, Team};

use crate::host_teams::{all_good, member, told};
use crate::service::{Service, connect_at};

const SIZE: usize = 4;

/// What members wait in when rank 3 dies, by name.
fn wait_in(team: &Team, what: &str) -> client::Error {
    let others = vec![1u8; 8 << 20];
    match what {
        "reduction" => team.all_reduce(&[1u64], Reduction::Sum).unwrap_err(),
        "exchange" => team.exchange(&[&others[..]; SIZE]).unwrap_err(),
        "broadcast" => team.broadcast(3, b"").unwrap_err(),
        "receive" => team.receive(3, 1).unwrap_err(),
        // Of a member that is alive and sends nothing.
        "receive-other" => team.receive((team.rank() + 1) % 3, 1).unwrap_err(),
        "receive-any" => team.receive(None, None).unwrap_err(),
        _ => team.send(3, 1, &others).unwrap_err(),
    }
}

#[test]
fn a_member_that_is_killed_ends_every_wait() {
    if let Some(words) = told() {
        let client = connect_at(words[0].as_ref(), true);
        let rank: usize = words[1].parse().unwrap();
        let team = Team::processes_for(&client, &words[2], rank, SIZE, None).unwrap();
        if rank == 3 {
            println!("there");
            loop {
                std::thread::park();
            }
        }
        let error = wait_in(&team, &words[2]);
        assert_eq!(error.status(), Status::Unreachable, "{error}");
        assert!(error.to_string().contains("rank 3 of the team"), "{error}");
        // And again, without waiting.
        assert!(team.barrier().is_err());
        return;
    }
    let service = Service::start(0);
    let test = "exchange_deaths::a_member_that_is_killed_ends_every_wait";
    for what in [
        "reduction",
        "exchange",
        "broadcast",
        "receive",
        "receive-other",
        "receive-any",
        "send",
    ] {
        let start = |rank| member(test, &format!("{} {rank} {what}", service.dir.display()));
        let mut all: Vec<_> = (0..SIZE).map(start).collect();
        let mut victim = all.pop().unwrap();
        let said = BufReader::new(victim.stdout.take().unwrap());
        let is_there = |line: std::io::Result<String>| line.unwrap().contains("there");
        assert!(said.lines().any(is_there), "{what}");
        victim.kill().unwrap();
        all_good(all);
        assert!(!victim.wait().unwrap().success());
    }
}

#[test]
fn a_member_that_leaves_is_missed_only_where_it_is_waited_for() {
    let service = Service::start(0);
    std::thread::scope(|scope| {
        for rank in 0..3 {
            let service = &service;
            scope.spawn(move || {
                let client = service.connect();
                let team = Team::processes_for(&client, "leaving", rank, 3, None).unwrap();
                if rank == 2 {
                    team.send(0, 1, b"the last word").unwrap();
                    return;
                }
                let error = team.receive(2, 7).unwrap_err();
                assert_eq!(error.status(), Status::Unreachable, "{error}");
                assert!(
                    error.to_string().contains("rank 2 of the team has"),
                    "{error}"
                );
                if rank == 0 {
                    assert_eq!(team.receive(2, 1).unwrap().bytes, b"the last word");
                }
                // The others go on.
                team.send(1 - rank, 3, &[rank as u8]).unwrap();
                assert_eq!(team.receive(1 - rank, 3).unwrap().bytes, [1 - rank as u8]);
                let error = team.barrier().unwrap_err();
                assert!(
                    error.to_string().contains("rank 2 of the team has"),
                    "{error}"
                );
            });
        }
    });
}

#[test]
fn waits_have_their_limit() {
    let team = Team::threads_for(2, Duration::from_millis(20));
    let error = team[0].receive(1, 0).unwrap_err();
    assert_eq!(error.status(), Status::TimedOut);
    // One that is waited for in vain is still there.
    team[1].send(0, 0, b"late").unwrap();
    assert_eq!(team[0].try_receive(1, 0).unwrap().unwrap().bytes, b"late");
}

#[test]
fn members_outlive_the_manager_they_met_at() {
    let mut service = Service::start(0);
    let clients = [service.connect(), service.connect()];
    let team: Vec<Team> = std::thread::scope(|scope| {
        let join = |client| scope.spawn(move || Team::join(client, "orphans", 2).unwrap());
        let all: Vec<_> = clients.iter().map(join).collect();
        let mut all: Vec<_> = all.into_iter().map(|t| t.join().unwrap()).collect();
        all.sort_by_key(Team::rank);
        all
    });
    service.manager = None;
    let sum = |member: &Team| member.all_reduce(&[2u64], Reduction::Sum).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| assert_eq!(sum(&team[0]), [4]));
        assert_eq!(sum(&team[1]), [4]);
    });
    service.start_manager();
}
