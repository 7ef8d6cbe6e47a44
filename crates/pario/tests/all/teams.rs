//! Collective access: members of a team get what they would get alone, and one that errs keeps nobody waiting.
//!
//! Members are threads, with one connection for all or one each. How bytes go is forced by hints.

use pario::{Hints, Pario, Result, Team};

use crate::service::Service;

const RANKS: usize = 3;
const SHAPE: [u64; 2] = [30, 50];

/// Runs all members, each in a thread.
fn run(team: &[Team], work: impl Fn(&Team) + Sync) {
    std::thread::scope(|scope| {
        for member in team {
            let work = &work;
            scope.spawn(move || work(member));
        }
    });
}

/// Columns out of rows, by one member.
fn transpose(pario: &Pario, team: &Team, path: &str, strategy: &str) -> Result<()> {
    let hints = match strategy {
        "" => Hints::new(),
        strategy => Hints::new().with("strategy", strategy)?,
    };
    let matrix = pario.create_array::<u32>(path, &SHAPE).replace();
    let matrix = matrix.layout("(*, cyclic(7)) onto 2").hints(hints);
    let matrix = matrix.create_together(team)?;
    let rank = team.rank();
    let rows = matrix.part_of("(block, *) onto 3", rank)?.join(team)?;
    let first = rank as u32 * rows.len() as u32;
    let values: Vec<u32> = (first..).take(rows.len()).collect();
    for _ in 0..2 {
        rows.write(&values)?;
        assert_eq!(rows.read()?, values, "{strategy}");
    }
    team.barrier()?;
    let columns = matrix.part_of("(*, cyclic) onto 3", rank)?;
    let mine = columns.read_together(team)?;
    let mut at = 0;
    for row in 0..SHAPE[0] {
        for column in (rank as u64..SHAPE[1]).step_by(RANKS) {
            assert_eq!(u64::from(mine[at]), row * SHAPE[1] + column, "{strategy}");
            at += 1;
        }
    }
    assert_eq!(at, mine.len());
    // And alone, through the same part.
    assert_eq!(columns.read()?, mine);
    columns.write_together(team, &vec![rank as u32; mine.len()])?;
    team.barrier()?;
    assert_eq!(matrix.region(&[4..5, 0..3])?.read()?, [0, 1, 2]);
    team.barrier()
}

#[test]
fn members_read_columns_of_what_they_wrote_by_rows() {
    let strategies = [
        "",
        "views",
        "two_phase",
        "sieving",
        "ddio",
        "pb_ddio",
        "mb_ddio",
        "two_phase_ddio",
    ];
    for is_direct in [true, false] {
        for service in [Service::directory(), Service::start(2)] {
            let shared = service.connect_how(is_direct);
            for strategy in strategies {
                run(&Team::threads(RANKS), |team| {
                    transpose(&shared, team, "/shared", strategy).unwrap();
                });
                run(&Team::threads(RANKS), |team| {
                    let own = service.connect_how(is_direct);
                    transpose(&own, team, "/own", strategy).unwrap();
                });
            }
        }
    }
}

#[test]
fn parts_of_a_team_become_the_subfiles() {
    let service = Service::start(3);
    let pario = service.connect();
    run(&Team::threads(RANKS), |team| {
        let array = pario.create_array::<f64>("/by_views", &SHAPE);
        let array = array.create_together(team).unwrap();
        let mine = array.part_of("(*, block) onto 3", team.rank()).unwrap();
        mine.write_together(team, &vec![1.0; mine.len()]).unwrap();
        team.barrier().unwrap();
        let told = array.layout().unwrap();
        assert!(told.distribution.contains("view"), "{}", told.distribution);
        assert_eq!(array.read().unwrap(), [1.0; 1500]);
        team.barrier().unwrap();
    });
}

#[test]
fn a_member_with_a_wrong_buffer_keeps_nobody_waiting() {
    for (is_direct, strategy) in [(true, "views"), (false, "two_phase"), (false, "ddio")] {
        let service = Service::start(2);
        let pario = service.connect_how(is_direct);
        run(&Team::threads(RANKS), |team| {
            let hints = Hints::new().with("strategy", strategy).unwrap();
            let array = pario.create_array::<u8>("/a", &[9]).hints(hints);
            let array = array.create_together(team).unwrap();
            let mine = array.part_of("(block) onto 3", team.rank()).unwrap();
            let mine = mine.join(team).unwrap();
            mine.write(&[5; 3]).unwrap();
            team.barrier().unwrap();
            for wrong in [2, 4] {
                let len = if team.rank() == 1 { wrong } else { 3 };
                let written = mine.write(&vec![6; len]);
                let mut values = vec![0; len];
                let read = mine.read_into(&mut values);
                let is_right = team.rank() != 1;
                assert_eq!((written.is_ok(), read.is_ok()), (is_right, is_right));
                if let Err(error) = read {
                    let text = error.to_string();
                    assert!(text.starts_with(&format!("values: {wrong}, but")), "{text}");
                }
            }
            team.barrier().unwrap();
            assert_eq!(array.read().unwrap(), [6, 6, 6, 5, 5, 5, 6, 6, 6]);
            team.barrier().unwrap();
        });
    }
}

#[test]
fn members_join_by_name() {
    let service = Service::start(1);
    std::thread::scope(|scope| {
        for rank in 0..2 {
            let service = &service;
            scope.spawn(move || {
                let pario = service.connect();
                let team = pario.team("pair", rank, 2).unwrap();
                let array = pario.create_array::<i16>("/pair", &[2]);
                let array = array.new_only().create_together(&team).unwrap();
                let mine = array.part_of("(block) onto 2", rank).unwrap();
                mine.write_together(&team, &[rank as i16 + 1]).unwrap();
                team.barrier().unwrap();
                assert_eq!(array.read().unwrap(), [1, 2]);
                team.barrier().unwrap();
            });
        }
    });
}

#[test]
fn what_cannot_be_replaced_is_refused_to_all_members() {
    let service = Service::start(1);
    let pario = service.connect();
    pario.make_directory("/taken/by").unwrap();
    run(&Team::threads(RANKS), |team| {
        let array = pario.create_array::<u8>("/taken", &[9]).replace();
        assert!(array.create_together(team).is_err());
        team.barrier().unwrap();
    });
    assert!(
        pario
            .create_array::<u8>("/taken", &[9])
            .replace()
            .create()
            .is_err()
    );
    assert!(pario.exists("/taken/by").unwrap());
}
