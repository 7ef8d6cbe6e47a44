//! Teams with sockets among their members: messages, collective operations, and strangers.
//!
//! Members are threads with clients of their own that join by name, so everything goes through sockets.

use std::io::{Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};

use client::{Number, Reduction, Status, Team};
use random::Random;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::collective::run_cases;
use crate::service::Service;

/// Runs members of a new team, each in a thread.
fn members(service: &Service, name: &str, size: usize, work: impl Fn(&Team) + Sync) {
    std::thread::scope(|scope| {
        for _ in 0..size {
            scope.spawn(|| {
                let client = service.connect();
                work(&Team::join(&client, name, size).unwrap());
            });
        }
    });
}

fn bytes(of: u64, len: usize) -> Vec<u8> {
    let mut random = Random::new(of);
    let word = random.draw().to_le_bytes();
    (0..len)
        .map(|i| word[i % 8].wrapping_add(i as u8))
        .collect()
}

fn slices(parts: &[Vec<u8>]) -> Vec<&[u8]> {
    parts.iter().map(|part| &part[..]).collect()
}

/// One step of a program that all members draw alike; `random` is the same at all of them.
fn step(team: &Team, random: &mut Random, kept: &mut Vec<Vec<u8>>) {
    let (rank, size) = (team.rank(), team.size());
    let lens = [0, 1, 100, 5000, 70_000, 300_000];
    let number = random.draw();
    let given = |from: usize, to: usize| {
        let of = number ^ (from * 1000 + to) as u64;
        bytes(of, lens[Random::new(of).index(lens.len())])
    };
    let root = (number % size as u64) as usize;
    match random.below(7) {
        0 => {
            let all = team.allgather(&given(rank, 0)).unwrap();
            (0..size).for_each(|from| assert!(all[from] == given(from, 0)));
        }
        1 => {
            let parts: Vec<_> = (0..size).map(|to| given(rank, to)).collect();
            team.exchange_into(&slices(&parts), kept).unwrap();
            (0..size).for_each(|from| assert!(kept[from] == given(from, rank)));
        }
        2 => assert!(team.broadcast(root, &given(rank, 0)).unwrap() == given(root, 0)),
        3 => {
            let all = team.gather(root, &given(rank, 0)).unwrap();
            assert_eq!(all.is_some(), rank == root);
            for (from, came) in all.into_iter().flatten().enumerate() {
                assert!(came == given(from, 0));
            }
        }
        4 => {
            let count = [1, 3, 20_000][root % 3];
            reduced(team, count, |rank, i| {
                (rank * 7 + i) as u64 ^ (number >> 40)
            });
            reduced(team, count, |rank, i| {
                (number as i32) as i64 - (rank * i) as i64
            });
            reduced(team, count, |rank, i| {
                (number >> 20) as f64 / (rank + i + 1) as f64
            });
        }
        5 => team.barrier().unwrap(),
        _ => {
            // To every other member, in another order at each; tags come in the order they are asked for.
            for step in 1..size {
                let to = (rank + step) % size;
                team.send(to, 1, &given(rank, to)).unwrap();
                team.send(to, 2, &[rank as u8]).unwrap();
            }
            for from in (0..size).filter(|&from| from != rank).rev() {
                assert_eq!(team.receive(from, 2).unwrap().bytes, [from as u8]);
                assert!(team.receive(from, 1).unwrap().bytes == given(from, rank));
            }
            // No later program's messages come here.
            team.barrier().unwrap();
        }
    }
}

fn reduced<T: Number + PartialEq + std::fmt::Debug>(
    team: &Team,
    count: usize,
    value: impl Fn(usize, usize) -> T,
) {
    let of = |rank: usize| (0..count).map(|i| value(rank, i)).collect::<Vec<T>>();
    for how in [Reduction::Sum, Reduction::Min, Reduction::Max] {
        let combined = |i: usize| {
            (1..team.size()).try_fold(value(0, i), |sum, r| sum.combine(value(r, i), how))
        };
        let right: Option<Vec<T>> = (0..count).map(combined).collect();
        let found = team.all_reduce(&of(team.rank()), how);
        assert!(found.ok() == right, "{how:?} of {count}");
    }
}

#[test]
fn random_programs_do_what_a_model_says() {
    let service = Service::start(0);
    for (seed, size) in [(1, 1), (2, 2), (3, 3), (4, 5), (5, 8)] {
        members(&service, "model", size, |team| {
            let (mut random, mut kept) = (Random::new(seed), Vec::new());
            for _ in 0..40 {
                step(team, &mut random, &mut kept);
            }
        });
    }
}

#[test]
fn collective_accesses_over_sockets_move_what_independent_ones_do() {
    let service = Service::start_how(2, false);
    members(&service, "ranks", 3, |team| {
        run_cases(&service.connect_how(false), team, 0..40, false);
    });
}

#[test]
fn long_blocks_of_all_to_all_and_of_messages_end() {
    let service = Service::start(0);
    members(&service, "long", 4, |team| {
        let block = |from: usize, to: usize| bytes((from * 10 + to) as u64, (8 << 20) + from + to);
        let parts: Vec<_> = (0..4).map(|to| block(team.rank(), to)).collect();
        let got = team.exchange(&slices(&parts)).unwrap();
        (0..4).for_each(|from| assert!(got[from] == block(from, team.rank())));
        // All send before anybody receives.
        let (next, before) = ((team.rank() + 1) % 4, (team.rank() + 3) % 4);
        team.send(next, 0, &parts[next]).unwrap();
        assert!(team.receive(before, 0).unwrap().bytes == block(before, team.rank()));
        // A message that lies in front of a part, and a member that comes late.
        if team.rank() == 0 {
            team.send(2, 9, &parts[2]).unwrap();
        }
        assert_eq!(team.all_reduce(&[1u64], Reduction::Sum).unwrap(), [4]);
        if team.rank() == 2 {
            assert!(team.receive(None, None).unwrap().bytes == block(0, 2));
        }
    });
}

#[test]
fn reductions_say_what_is_wrong_and_the_team_goes_on() {
    let service = Service::start(0);
    members(&service, "wrong", 3, |team| {
        let odd = vec![1u64; 2 + team.rank() / 2];
        let error = team.all_reduce(&odd, Reduction::Sum).unwrap_err();
        assert!(
            error.to_string().contains("rank 2 has another number"),
            "{error}"
        );
        for error in [
            team.all_reduce(&[u64::MAX], Reduction::Sum).unwrap_err(),
            team.all_reduce(&[1.5], Reduction::And).unwrap_err(),
            team.all_reduce(&vec![i64::MIN; 10_000], Reduction::Sum)
                .unwrap_err(),
            team.broadcast(3, b"").unwrap_err(),
            team.send(3, 0, b"").unwrap_err(),
            team.try_receive(3, None).unwrap_err(),
        ] {
            assert_eq!(error.status(), Status::InvalidArgument, "{error}");
        }
        assert_eq!(
            team.all_reduce(&[6u64 | team.rank() as u64], Reduction::And)
                .unwrap(),
            [6]
        );
        let or = team
            .reduce(1, &[1i64 << team.rank()], Reduction::Or)
            .unwrap();
        assert_eq!(or, (team.rank() == 1).then(|| vec![7]));
    });
}

#[test]
fn members_in_different_operations_are_told() {
    let service = Service::start(0);
    members(&service, "mixed", 2, |team| {
        let failed = match team.rank() {
            0 => team.barrier().map(drop),
            _ => team.broadcast(0, b"").map(drop),
        };
        assert!(failed.is_err() || team.barrier().is_err());
    });
}

fn is_readable(team: &Team, wait_s: i64) -> bool {
    let descriptor = team.descriptor().unwrap();
    let mut fds = [PollFd::new(&descriptor, PollFlags::IN)];
    let time = Timespec {
        tv_sec: wait_s,
        tv_nsec: 0,
    };
    poll(&mut fds, Some(&time)).unwrap() == 1
}

#[test]
fn the_descriptor_is_readable_while_a_message_waits() {
    let service = Service::start(0);
    members(&service, "poll", 2, |team| {
        if team.rank() == 1 {
            team.send(0, 1, b"first").unwrap();
            team.send(0, 2, b"second").unwrap();
            return team.barrier().unwrap();
        }
        // Also what was taken from the socket with another message.
        for tag in [2, 1] {
            while team.try_receive(None, tag).unwrap().is_none() {
                assert!(is_readable(team, 60));
            }
            assert!(tag == 1 || is_readable(team, 60));
        }
        team.send(0, 3, b"to itself").unwrap();
        assert!(is_readable(team, 60));
        assert_eq!(team.receive(0, 3).unwrap().bytes, b"to itself");
        team.barrier().unwrap();
    });
    let alone = Team::threads(2);
    assert!(!is_readable(&alone[0], 0));
    alone[1].send(0, 5, b"x").unwrap();
    assert!(is_readable(&alone[0], 60));
    assert_eq!(alone[0].try_receive(1, 5).unwrap().unwrap().bytes, b"x");
    assert!(!is_readable(&alone[0], 0));
}

#[test]
fn threads_of_one_member_wait_beside_each_other() {
    let service = Service::start(0);
    members(&service, "busy", 2, |team| {
        if team.rank() == 1 {
            // Answers questions in the order in which they come.
            for _ in 0..200 {
                let asked = team.receive(0, None).unwrap();
                team.send(0, asked.tag, &asked.bytes).unwrap();
            }
            return;
        }
        std::thread::scope(|scope| {
            for tag in 0..4 {
                scope.spawn(move || {
                    for i in 0..50u8 {
                        team.send(1, tag, &vec![i; 1000 * tag as usize]).unwrap();
                        let answer = team.receive(1, tag).unwrap();
                        assert_eq!(answer.bytes, vec![i; 1000 * tag as usize]);
                    }
                });
            }
        });
    });
}

#[test]
fn two_teams_meet_by_name() {
    let service = Service::start(0);
    let side = |name: &'static str, size: usize, other: usize| {
        members(&service, name, size, |team| {
            let client = service.connect();
            let both = team.meet_team(&client, "bridge").unwrap();
            assert_eq!(
                (both.other_size(), both.all().size()),
                (other, size + other)
            );
            for to in 0..other {
                both.send(to, 4, &[team.rank() as u8, to as u8]).unwrap();
            }
            for from in 0..other {
                let came = both.receive(from, 4).unwrap();
                assert_eq!(came.bytes, [from as u8, team.rank() as u8]);
            }
            assert!(both.send(other, 0, b"").is_err());
            both.send(0, 5, &[9]).unwrap();
            if team.rank() == 0 {
                let mut came: Vec<_> = (0..other)
                    .map(|_| both.receive(None, 5).unwrap().from)
                    .collect();
                came.sort_unstable();
                assert_eq!(came, (0..other).collect::<Vec<_>>());
            }
            let sum = both.all().all_reduce(&[1u64], Reduction::Sum).unwrap();
            assert_eq!(sum, [(size + other) as u64]);
            assert!(!matches!(both.try_receive(None, None), Ok(Some(_))));
            // The team itself goes on as before.
            assert_eq!(
                team.all_reduce(&[1u64], Reduction::Sum).unwrap(),
                [size as u64]
            );
        });
    };
    std::thread::scope(|scope| {
        scope.spawn(|| side("left", 2, 3));
        scope.spawn(|| side("right", 3, 2));
    });
}

/// Names under which members of this user listen, of whatever team.
fn listening() -> Vec<String> {
    let table = std::fs::read_to_string("/proc/net/unix").unwrap();
    let names = table.lines().filter_map(|line| line.split_once('@'));
    let names = names.map(|(_, name)| name.trim().to_owned());
    names
        .filter(|name| name.starts_with("pario-team-"))
        .collect()
}

#[test]
fn strangers_are_refused_and_disturb_nobody() {
    let service = Service::start(0);
    members(&service, "private", 3, |team| {
        team.barrier().unwrap();
        if team.rank() == 0 {
            let mut strangers = Vec::new();
            for name in listening() {
                let address = SocketAddr::from_abstract_name(&name).unwrap();
                for said in [&b""[..], b"pario-t1", &[7; 80], &[0; 100_000]] {
                    let Ok(mut stranger) = UnixStream::connect_addr(&address) else {
                        continue;
                    };
                    stranger.set_nonblocking(true).unwrap();
                    // It may be closed before it has said all.
                    let _ = stranger.write(said);
                    strangers.push((said.len(), stranger));
                }
            }
            // Not before all have heard them.
            team.barrier().unwrap();
            for (said, mut stranger) in strangers.into_iter().filter(|(said, _)| *said >= 80) {
                stranger.set_nonblocking(false).unwrap();
                let limit = std::time::Duration::from_millis(1);
                stranger.set_read_timeout(Some(limit)).unwrap();
                // Never an answer.
                assert!(
                    !matches!(stranger.read(&mut [0; 8]), Ok(n) if n > 0),
                    "{said}"
                );
            }
        } else {
            team.barrier().unwrap();
        }
        let all = team.allgather(&[team.rank() as u8]).unwrap();
        assert_eq!(all, [[0], [1], [2]]);
        assert!(!matches!(team.try_receive(None, None), Ok(Some(_))));
    });
}
