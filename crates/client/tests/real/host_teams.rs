//! Teams of real processes of this host. The test program starts itself again as the other members.
//!
//! Members are processes: exchanges of any length, and members that die or leave.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use client::{Status, Team};

const NAME: &str = "PARIO_TEST_TEAM";

/// A process that runs the test of this name as a member.
pub(crate) fn member(test: &str, said: &str) -> Child {
    start(&std::env::current_exe().unwrap(), test, said, |_| {})
}

/// A process that runs the test of this name, of a copy of this program, started in a way of its own.
pub(crate) fn start(
    program: &Path,
    test: &str,
    said: &str,
    how: impl FnOnce(&mut Command),
) -> Child {
    let mut command = Command::new(program);
    command
        .args([test, "--exact", "--nocapture", "--include-ignored"])
        .env(NAME, said)
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit());
    how(&mut command);
    command.spawn().unwrap()
}

/// What a member was told, if this process is one.
pub(crate) fn told() -> Option<Vec<String>> {
    let said = std::env::var(NAME).ok()?;
    Some(said.split(' ').map(str::to_owned).collect())
}

/// All members, rank 0 in this process and the others in processes of their own.
pub(crate) fn team(test: &str, size: usize, more: &str) -> (Team, Vec<Child>) {
    let (team, name) = Team::host_create(size).unwrap();
    let others = (1..size).map(|rank| member(test, &format!("{name} {rank} {size} {more}")));
    let others = others.collect();
    team.meet().unwrap();
    assert!(
        !std::path::Path::new(&name).exists(),
        "it has no name any more"
    );
    (team, others)
}

/// The member that this process was told to be.
pub(crate) fn join(words: &[String]) -> Team {
    let (rank, size) = (words[1].parse().unwrap(), words[2].parse().unwrap());
    let team = Team::host_attach(&words[0], rank, size).unwrap();
    team.meet().unwrap();
    team
}

pub(crate) fn all_good(others: Vec<Child>) {
    for mut other in others {
        assert!(other.wait().unwrap().success());
    }
}

fn bytes(rank: usize, round: usize) -> Vec<u8> {
    let len = [0, 1, 100, 5000, 300_000, 700_001][(rank + round) % 6];
    (0..len)
        .map(|i| (i * 7 + rank * 31 + round) as u8)
        .collect()
}

fn many_rounds(team: &Team) {
    let (rank, size) = (team.rank(), team.size());
    // Longer and shorter parts come into the same memory.
    let mut kept = Vec::new();
    for round in 0..60 {
        let all = team.allgather(&bytes(rank, round)).unwrap();
        for (from, got) in all.iter().enumerate() {
            assert!(*got == bytes(from, round), "round {round}, of {from}");
        }
        let parts: Vec<Vec<u8>> = (0..size).map(|to| bytes(rank + to, round)).collect();
        let parts: Vec<&[u8]> = parts.iter().map(|part| &part[..]).collect();
        team.exchange_into(&parts, &mut kept).unwrap();
        for (from, got) in kept.iter().enumerate() {
            assert!(
                *got == bytes(from + rank, round),
                "round {round}, of {from}"
            );
        }
    }
    for _ in 0..500 {
        team.barrier().unwrap();
    }
}

#[test]
fn processes_of_a_host_exchange_bytes_of_any_length() {
    if let Some(words) = told() {
        return many_rounds(&join(&words));
    }
    let (team, others) = team(
        "host_teams::processes_of_a_host_exchange_bytes_of_any_length",
        4,
        "",
    );
    assert!(team.is_near());
    many_rounds(&team);
    all_good(others);
}

#[test]
fn a_member_that_is_killed_is_told_to_all_survivors() {
    if let Some(words) = told() {
        let team = join(&words);
        team.barrier().unwrap();
        if team.rank() == 2 {
            // Until it is killed.
            let _ = std::io::stdin().read(&mut [0]);
            loop {
                std::thread::park();
            }
        }
        let error = team.barrier().unwrap_err();
        assert_eq!(error.status(), Status::Unreachable);
        assert!(
            error.to_string().contains("rank 2 of the team has died"),
            "{error}"
        );
        return;
    }
    let (team, mut others) = team(
        "host_teams::a_member_that_is_killed_is_told_to_all_survivors",
        4,
        "",
    );
    team.barrier().unwrap();
    others[1].kill().unwrap();
    // It stays unburied: dead all the same.
    let started = Instant::now();
    let error = team.barrier().unwrap_err();
    assert!(
        error.to_string().contains("rank 2 of the team has died"),
        "{error}"
    );
    assert!(started.elapsed() < Duration::from_secs(20));
    // And again, without waiting.
    assert!(team.barrier().is_err());
    let killed = others.remove(1);
    all_good(others);
    assert!(!{ killed }.wait().unwrap().success());
}

/// Rows of a matrix become its columns, in processes, from memory that others read in place and from memory of its own;
/// then rank 2 dies while the others wait for its bytes.
#[test]
fn a_member_that_is_killed_ends_a_redistribution_of_all() {
    let test = "host_teams::a_member_that_is_killed_ends_a_redistribution_of_all";
    if let Some(words) = told() {
        return redistribute_until_one_dies(&join(&words), None);
    }
    let (team, name) = Team::host_create_for_data(4).unwrap();
    let others = (1..4).map(|rank| member(test, &format!("{name} {rank} 4")));
    let mut others: Vec<Child> = others.collect();
    team.meet().unwrap();
    redistribute_until_one_dies(&team, Some(&mut others[1]));
    let killed = others.remove(1);
    all_good(others);
    assert!(!{ killed }.wait().unwrap().success());
}

fn redistribute_until_one_dies(team: &Team, third: Option<&mut Child>) {
    const N: usize = 1024;
    let (rank, size) = (team.rank(), team.size());
    let edge = N / size;
    let byte = |row: usize, column: usize| (row * 31 + column * 7 + row * column / 5) as u8;
    let view = |text: String| {
        let layout: client::Layout = text.parse().unwrap();
        let array = "u8[1024,1024]".parse().unwrap();
        let element = layout.on_array(&array).unwrap().element(0).unwrap();
        client::View::new(layout::FileOffset(0), 1 << 20, element).unwrap()
    };
    let rows = view(format!("(block, *) onto {size} [{rank}]"));
    let columns = view(format!("(*, block) onto {size} [{rank}]"));
    let plan = client::Redistribution::new(team, &rows, &columns, 1 << 20).unwrap();
    let mine: Vec<u8> = (0..edge * N)
        .map(|i| byte(rank * edge + i / N, i % N))
        .collect();
    let wanted: Vec<u8> = (0..edge * N)
        .map(|i| byte(i / edge, rank * edge + i % edge))
        .collect();
    let mut common = client::CommonBytes::new(mine.len()).unwrap();
    let mut lent = common.bytes_mut();
    lent.reborrow().copy_from(mine[..].into());
    let mut new = vec![0; wanted.len()];
    for round in 0..20 {
        new.fill(0);
        // Some lend, some do not, and not always the same.
        let from = match (rank + round) % 3 {
            0 => lent.as_shared(),
            _ => mine[..].into(),
        };
        plan.run(from, new[..].as_mut().into()).unwrap();
        assert!(new == wanted, "round {round}, rank {rank}");
    }
    if rank == 2 {
        loop {
            // Until it is killed.
            std::thread::park();
        }
    }
    if let Some(third) = third {
        third.kill().unwrap();
    }
    let started = Instant::now();
    let error = plan
        .run(mine[..].into(), new[..].as_mut().into())
        .unwrap_err();
    assert_eq!(error.status(), Status::Unreachable);
    assert!(
        error.to_string().contains("rank 2 of the team has died"),
        "{error}"
    );
    assert!(started.elapsed() < Duration::from_secs(20));
    assert!(team.barrier().is_err(), "the team is over");
}

/// A member that the kernel does not let read the memory of another gets its bytes through the ring.
#[test]
fn lent_memory_that_may_not_be_read_goes_another_way() {
    let test = "host_teams::lent_memory_that_may_not_be_read_goes_another_way";
    if let Some(words) = told() {
        let team = join(&words);
        // From here on it is nobody, and may not look into processes of root.
        let nobody = rustix::process::Uid::from_raw(65534);
        rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
        return lend(&team);
    }
    if !rustix::process::geteuid().is_root() {
        testkit::skipped("only root can become somebody else");
        return;
    }
    let (team, name) = Team::host_create_for_data(2).unwrap();
    let other = member(test, &format!("{name} 1 2"));
    team.meet().unwrap();
    lend(&team);
    all_good(vec![other]);
}

fn lend(team: &Team) {
    let half = |which: usize| {
        let set = falls::FallsSet::segment(5000 * which as u64, 5000).unwrap();
        client::View::new(layout::FileOffset(0), 10_000, set).unwrap()
    };
    let rank = team.rank();
    let plan = client::Redistribution::new(team, &half(rank), &half(1 - rank), 10_000).unwrap();
    let mut common = client::CommonBytes::new(5000).unwrap();
    let mut lent = common.bytes_mut();
    lent.reborrow().copy_from([7 + rank as u8; 5000][..].into());
    let mut new = [0; 5000];
    plan.run(lent.as_shared(), new[..].as_mut().into()).unwrap();
    assert_eq!(new, [8 - rank as u8; 5000]);
}

#[test]
fn a_member_that_is_dropped_is_told_to_all() {
    if let Some(words) = told() {
        let team = join(&words);
        if team.rank() == 1 {
            return;
        }
        let error = team.barrier().unwrap_err();
        return assert!(error.to_string().contains("rank 1 of the team"), "{error}");
    }
    let (team, others) = team("host_teams::a_member_that_is_dropped_is_told_to_all", 3, "");
    let error = team.barrier().unwrap_err();
    assert!(error.to_string().contains("rank 1 of the team"), "{error}");
    drop(team);
    all_good(others);
}

#[test]
fn what_cannot_be_attached_to_is_refused_at_once() {
    let missing = Team::host_attach("/dev/shm/pario-team-none", 1, 2).unwrap_err();
    assert_eq!(missing.status(), Status::Unreachable);
    let (team, name) = Team::host_create(3).unwrap();
    let refused = |rank, size| Team::host_attach(&name, rank, size).is_err();
    assert!(refused(0, 3), "rank 0 is there");
    assert!(refused(3, 3) && refused(1, 4) && refused(1, 2));
    let first = Team::host_attach(&name, 1, 3).unwrap();
    assert!(refused(1, 3), "and so is rank 1");
    drop((team, first));
    assert!(
        !std::path::Path::new(&name).exists(),
        "nothing is left behind"
    );
}
