//! Redistribution in memory against the definition: every byte of the array has a value, every member fills its
//! source by the bytes its view shows and finds its target as its other view shows it.

use client::{
    CommonBytes, GivesMemory, Layout, PartMemory, Parts, Redistribution, Redistributions,
    SharedBytes, SharedBytesMut, SourcePlace, Team, View,
};
use layout::{ArrayType, FileOffset};

fn view(array: &ArrayType, text: &str, rank: usize) -> View {
    let layout: Layout = text.parse().expect("a layout");
    let applied = layout.on_array(array).expect("fits the array");
    let element = applied.element(rank as u64).expect("an element");
    View::new(FileOffset(0), applied.period(), element).expect("a view")
}

fn value(at: u64) -> u8 {
    (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

fn shown(view: &View, len: u64) -> Vec<u8> {
    let segments = view.bytes().segments(0..len);
    segments
        .flat_map(|s| s.start()..s.start() + s.len())
        .map(value)
        .collect()
}

/// Members with lanes, as processes of a host have them.
fn with_lanes(members: usize) -> Vec<Team> {
    let (first, name) = Team::host_create_for_data(members).expect("a team");
    let others =
        (1..members).map(|rank| Team::host_attach(&name, rank, members).expect("attaches"));
    let teams: Vec<Team> = std::iter::once(first).chain(others).collect();
    std::thread::scope(|scope| {
        for team in &teams {
            scope.spawn(|| team.meet().expect("all are there"));
        }
    });
    teams
}

fn check(array: &str, from: &str, to: &str, members: usize) {
    check_with(&Team::threads(members), array, from, to);
    check_with(&with_lanes(members), array, from, to);
}

fn check_with(teams: &[Team], array: &str, from: &str, to: &str) {
    let array: ArrayType = array.parse().expect("an array");
    let len = array.bytes();
    std::thread::scope(|scope| {
        for team in teams {
            let array = &array;
            scope.spawn(move || {
                let rank = team.rank();
                let (source, target) = (view(array, from, rank), view(array, to, rank));
                let plan = Redistribution::new(team, &source, &target, len).expect("a plan");
                let mine = shown(&source, len);
                let wanted = shown(&target, len);
                assert_eq!(plan.source_bytes() as usize, mine.len());
                assert_eq!(plan.target_bytes() as usize, wanted.len());
                for _ in 0..2 {
                    let mut new = vec![0; wanted.len()];
                    plan.run(
                        SharedBytes::from_slice(&mine),
                        SharedBytesMut::from_slice(&mut new),
                    )
                    .expect("runs");
                    assert!(new == wanted, "{from} to {to}, rank {rank}");
                }
                let mut common = CommonBytes::new(mine.len().max(1)).expect("memory");
                let mut lent = common.bytes_mut().range(0..mine.len()).expect("inside");
                lent.reborrow().copy_from(SharedBytes::from_slice(&mine));
                let mut new = vec![0; wanted.len()];
                plan.run(lent.as_shared(), SharedBytesMut::from_slice(&mut new))
                    .expect("runs");
                assert!(new == wanted, "read in place, {from} to {to}, rank {rank}");
                let mut place = mine.clone();
                place.resize(mine.len().max(wanted.len()), 0);
                plan.run_in_place(SharedBytesMut::from_slice(&mut place))
                    .expect("runs in place");
                assert!(place[..wanted.len()] == wanted, "in place, {from} to {to}");
            });
        }
    });
}

#[test]
fn every_layout_becomes_every_other() {
    let layouts = [
        "(block, *) onto 4",
        "(*, block) onto 4",
        "(block, block) onto 2x2",
        "(cyclic(3), cyclic(5)) onto 2x2",
        "(cyclic, *) onto 4",
        "striped(7) over 4",
    ];
    for from in layouts {
        for to in layouts {
            check("u8[12,10]", from, to, 4);
        }
    }
    check(
        "f64[6,5,4]",
        "(block, *, cyclic) onto 3x2",
        "(*, cyclic(2), block) onto 2x3",
        6,
    );
}

/// Pieces of many rings, of members with nothing, and of members with parts of other lengths.
#[test]
fn long_and_empty_and_uneven_parts_flow_through_lanes() {
    let teams = with_lanes(3);
    for (from, to) in [
        ("(block, *) onto 3", "(*, block) onto 3"),
        ("(*, cyclic) onto 3", "(block, *) onto 3"),
        ("(cyclic(7), *) onto 3", "(*, cyclic(5)) onto 3"),
        ("(block(1290), *) onto 3", "(*, block(1000)) onto 3"),
    ] {
        check_with(&teams, "f64[1291,1301]", from, to);
    }
    check_with(
        &with_lanes(2),
        "f64[2048,2048]",
        "(block, *) onto 2",
        "(*, block) onto 2",
    );
    check_with(
        &with_lanes(1),
        "f64[100,100]",
        "(block, *) onto 1",
        "(*, block) onto 1",
    );
}

#[test]
fn bytes_that_several_hold_come_from_the_lowest_rank_and_others_stay() {
    overlapping(&Team::threads(3));
    overlapping(&with_lanes(3));
}

fn overlapping(teams: &[Team]) {
    std::thread::scope(|scope| {
        for team in teams {
            scope.spawn(move || {
                let rank = team.rank() as u64;
                let range = |start: u64, len: u64| {
                    let set = falls::FallsSet::segment(start, len).expect("a segment");
                    View::new(FileOffset(0), 100, set).expect("a view")
                };
                // Ranks 1 and 2 both hold 10..20; nobody holds 30..40.
                let source = match rank {
                    0 => range(0, 10),
                    _ => range(10, 10 * rank),
                };
                let target = range(5, 30);
                let plan = Redistribution::new(team, &source, &target, 100).expect("a plan");
                let mine = vec![rank as u8 + 1; plan.source_bytes() as usize];
                let mut new = vec![99; 30];
                plan.run(
                    SharedBytes::from_slice(&mine),
                    SharedBytesMut::from_slice(&mut new),
                )
                .expect("runs");
                let wanted = [vec![1; 5], vec![2; 10], vec![3; 10], vec![99; 5]].concat();
                assert_eq!(new, wanted);
            });
        }
    });
}

/// Memory that is all for every plan.
struct PlainMemory<'a>(&'a [u8], &'a mut [u8]);

impl GivesMemory for PlainMemory<'_> {
    fn memory(&mut self, plan: &Redistribution) -> PartMemory<'_> {
        assert_eq!(plan.source_bytes(), self.0.len() as u64);
        let to = SharedBytesMut::from_slice(self.1);
        PartMemory::Between(SharedBytes::from_slice(self.0), to)
    }
}

/// Plans are kept by a member's own parts, which may be the same where those of others are not.
#[test]
fn kept_plans_are_used_only_where_all_members_mean_the_same() {
    for teams in [Team::threads(2), with_lanes(2)] {
        std::thread::scope(|scope| {
            for team in &teams {
                scope.spawn(move || {
                    let plans = Redistributions::new(team.clone());
                    let array: ArrayType = "u8[64,64]".parse().expect("an array");
                    let rank = team.rank();
                    let views = [
                        "(block, *) onto 2",
                        "(*, block) onto 2",
                        "(cyclic, *) onto 2",
                    ]
                    .map(|text| view(&array, text, rank));
                    for round in 0..12 {
                        // Rank 0 always does the same; what rank 1 wants changes.
                        let to = match rank {
                            0 => 1,
                            _ => 1 + round % 2,
                        };
                        let (source, target) = (views[0].clone(), views[to].clone());
                        let mine = shown(&source, 4096);
                        let wanted = shown(&target, 4096);
                        let mut new = vec![0; wanted.len()];
                        let parts = Parts {
                            source,
                            target,
                            len: 4096,
                        };
                        if round == 7 && rank == 1 {
                            let wrong = client::Error::Argument {
                                name: "here",
                                text: "is wrong".into(),
                            };
                            let place = SourcePlace::Apart(mine.as_ptr());
                            let mut memory = PlainMemory(&mine, &mut new);
                            let done = plans.run(Err(wrong.clone()), place, &mut memory);
                            assert_eq!(done, Err(wrong));
                            continue;
                        }
                        let place = SourcePlace::Apart(mine.as_ptr());
                        let mut memory = PlainMemory(&mine, &mut new);
                        let done = plans.run(Ok(parts), place, &mut memory);
                        match round {
                            7 => assert!(done.expect_err("rank 1").to_string().contains("here")),
                            _ => {
                                done.expect("runs");
                                assert!(new == wanted, "round {round}, rank {rank}");
                            }
                        }
                    }
                });
            }
        });
    }
}

#[test]
fn a_member_with_wrong_arguments_fails_for_all() {
    wrong_arguments(&Team::threads(2));
    wrong_arguments(&with_lanes(2));
}

fn wrong_arguments(teams: &[Team]) {
    std::thread::scope(|scope| {
        for team in teams {
            scope.spawn(move || {
                let array: ArrayType = "u8[4,4]".parse().expect("an array");
                let rows = view(&array, "(block, *) onto 2", team.rank());
                let other = Redistribution::new(team, &rows, &rows, 16 + team.rank() as u64);
                assert!(
                    other
                        .expect_err("lengths differ")
                        .to_string()
                        .contains("len")
                );
                let plan = Redistribution::new(team, &rows, &rows, 16).expect("a plan");
                let mine = vec![0; 8 - team.rank()];
                let mut new = vec![0; 8];
                let failed = plan.run(
                    SharedBytes::from_slice(&mine),
                    SharedBytesMut::from_slice(&mut new),
                );
                failed.expect_err("the memory of rank 1 is too short");
            });
        }
    });
}
