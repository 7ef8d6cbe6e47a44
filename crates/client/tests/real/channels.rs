//! Channels between two programs: every element arrives, whatever the layouts and the sizes of the teams are; what does not
//! fit is refused on both sides; the end of either ends every wait.
//!
//! Members are threads with clients of their own; those that are killed are processes.

use std::io::{BufRead, BufReader};
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use client::{
    ChannelArray, ChannelMode, ChannelOptions, ChannelSource, ChannelTarget, Client, Layout,
    Result, SharedBytes, SharedBytesMut, Status, Team, View,
};
use layout::{ArrayType, FileOffset};
use random::Random;

use crate::host_teams::{member, told};
use crate::service::{Service, connect_at};

fn part(array: &str, text: &str, rank: usize) -> ChannelArray {
    let array: ArrayType = array.parse().unwrap();
    let layout: Layout = text.parse().unwrap();
    let applied = layout.on_array(&array).unwrap();
    let set = applied.element(rank as u64).unwrap();
    let view = View::new(FileOffset(0), applied.period(), set).unwrap();
    ChannelArray::new(array, view).unwrap()
}

/// The value of a byte of the array in a turn.
fn value(at: u64, turn: u64) -> u8 {
    random::mix(at ^ (turn << 40)) as u8
}

fn shown(part: &ChannelArray, turn: u64) -> Vec<u8> {
    let segments = part.part.bytes().segments(0..part.array.bytes());
    let bytes = segments.flat_map(|s| s.start()..s.start() + s.len());
    bytes.map(|at| value(at, turn)).collect()
}

fn source(
    client: &Client,
    team: &Team,
    name: &str,
    part: ChannelArray,
    buffering: ChannelMode,
) -> Result<ChannelSource> {
    let options = ChannelOptions::default();
    ChannelSource::open(client, team, name, Ok(part), buffering, &options)
}

fn target(client: &Client, team: &Team, name: &str, part: ChannelArray) -> Result<ChannelTarget> {
    ChannelTarget::open(client, team, name, Ok(part), &ChannelOptions::default())
}

fn put(channel: &ChannelSource, bytes: &[u8]) -> Result<()> {
    channel.put(SharedBytes::from_slice(bytes))
}

fn get(channel: &ChannelTarget, bytes: &mut [u8]) -> Result<Option<u64>> {
    channel.get(SharedBytesMut::from_slice(bytes))
}

/// A layout of a two-dimensional array over so many members.
fn any_layout(random: &mut Random, members: u64) -> String {
    let k = 1 + random.below(4);
    match random.below(7) {
        0 => format!("(block, *) onto {members}"),
        1 => format!("(*, block) onto {members}"),
        2 => format!("(cyclic({k}), *) onto {members}"),
        3 => format!("(*, cyclic({k})) onto {members}"),
        4 => format!("(cyclic, block) onto {members}x1"),
        5 => format!("(cyclic({k}), cyclic) onto 1x{members}"),
        _ => format!("(block, cyclic({k})) onto {members}x1"),
    }
}

/// Two programs of so many members, which exchange some turns.
fn couple(service: &Service, name: &str, array: &str, sides: [(&str, usize); 2], how: ChannelMode) {
    const TURNS: u64 = 5;
    let [(from, givers), (to, takers)] = sides;
    let (giving, taking) = (Team::threads(givers), Team::threads(takers));
    std::thread::scope(|scope| {
        for team in &giving {
            scope.spawn(move || {
                let mine = part(array, from, team.rank());
                let channel = source(&service.connect(), team, name, mine.clone(), how).unwrap();
                assert_eq!(channel.other_size(), takers);
                for turn in 0..TURNS {
                    put(&channel, &shown(&mine, turn)).unwrap();
                }
                assert_eq!(channel.turns(), TURNS);
                channel.close().unwrap();
            });
        }
        for team in &taking {
            scope.spawn(move || {
                let mine = part(array, to, team.rank());
                let channel = target(&service.connect(), team, name, mine.clone()).unwrap();
                assert_eq!((channel.other_size(), channel.buffering()), (givers, how));
                let mut got = vec![0; channel.part_bytes() as usize];
                for turn in 0..TURNS {
                    assert_eq!(get(&channel, &mut got).unwrap(), Some(turn));
                    let wanted = shown(&mine, turn);
                    assert!(got == wanted, "{array}, {from} to {to}, turn {turn}");
                }
                assert_eq!(get(&channel, &mut got).unwrap(), None, "the end");
                assert_eq!(get(&channel, &mut got).unwrap(), None, "and again");
                channel.close().unwrap();
            });
        }
    });
}

/// The model: every element of random arrays between random layouts and teams, blocking and with two buffers.
#[test]
fn every_element_arrives_whatever_the_layouts_and_the_teams() {
    let service = Service::start(0);
    let mut random = Random::of_run(18);
    for round in 0..24 {
        let (rows, columns) = (1 + random.below(23), 1 + random.below(19));
        let element = random.pick(&["u8", "i16", "f64", "bytes(3)"]);
        let order = random.pick(&["", ":fortran"]);
        let array = format!("{element}[{rows},{columns}]{order}");
        let sizes = [1 + random.below(4), 1 + random.below(4)];
        let sides = sizes.map(|size| (any_layout(&mut random, size), size as usize));
        let [(from, givers), (to, takers)] = &sides;
        let how = *random.pick(&[ChannelMode::Blocking, ChannelMode::Double]);
        println!("round {round}: {array}, {from} to {to}, {how:?}");
        let name = format!("model {round}");
        couple(
            &service,
            &name,
            &array,
            [(from, *givers), (to, *takers)],
            how,
        );
    }
}

/// Parts of several pieces, and of members with nothing.
#[test]
fn long_and_empty_parts_arrive() {
    let service = Service::start(0);
    for how in [ChannelMode::Blocking, ChannelMode::Double] {
        let sides = [("(block, *) onto 2", 2), ("(*, cyclic) onto 3", 3)];
        couple(&service, "long", "f64[700,901]", sides, how);
        let sides = [("(block, *) onto 4", 4), ("(*, block) onto 3", 3)];
        couple(&service, "empty", "f32[2,2]", sides, how);
    }
}

#[test]
fn of_bytes_that_several_give_the_lowest_rank_counts_and_others_stay() {
    let service = Service::start(0);
    let giving = Team::threads(3);
    let range = |start: u64, len: u64| {
        let set = falls::FallsSet::segment(start, len).unwrap();
        let view = View::new(FileOffset(0), 64, set).unwrap();
        ChannelArray::new(ARRAY.parse().unwrap(), view).unwrap()
    };
    std::thread::scope(|scope| {
        for team in &giving {
            let client = service.connect();
            // Ranks 1 and 2 both give 30..40; nobody gives 50..64.
            let mine = range([0, 20, 30][team.rank()], 20);
            scope.spawn(move || {
                let channel = source(&client, team, "common", mine, ChannelMode::Double).unwrap();
                put(&channel, &[team.rank() as u8 + 1; 20]).unwrap();
                channel.close().unwrap();
            });
        }
        let client = service.connect();
        let channel = target(&client, &Team::alone(), "common", whole()).unwrap();
        let mut got = [99; 64];
        assert_eq!(get(&channel, &mut got).unwrap(), Some(0));
        let wanted = [vec![1; 20], vec![2; 20], vec![3; 10], vec![99; 14]].concat();
        assert_eq!(got[..], wanted[..]);
        assert_eq!(get(&channel, &mut got).unwrap(), None);
    });
}

/// A member for each of two programs of one.
fn pair(
    service: &Service,
    giver: impl FnOnce(Client, Team) + Send,
    taker: impl FnOnce(Client, Team) + Send,
) {
    std::thread::scope(|scope| {
        scope.spawn(|| giver(service.connect(), Team::alone()));
        scope.spawn(|| taker(service.connect(), Team::alone()));
    });
}

const ARRAY: &str = "u8[64]";

fn whole() -> ChannelArray {
    part(ARRAY, "(block) onto 1", 0)
}

#[test]
fn a_put_returns_while_the_other_side_still_reads_and_no_more_than_is_bounded() {
    // Turns that are given before one is asked for: none, or two here and two there.
    for (how, ahead) in [(ChannelMode::Blocking, 0), (ChannelMode::Double, 4)] {
        let service = Service::start(0);
        let (has_begun, has_given) = (AtomicBool::new(false), AtomicBool::new(ahead == 0));
        pair(
            &service,
            |client, team| {
                let channel = source(&client, &team, "buffers", whole(), how).unwrap();
                for turn in 0..8 {
                    put(&channel, &shown(&whole(), turn)).unwrap();
                    if turn + 1 == ahead {
                        // The other side asks only now.
                        assert!(!has_begun.load(Ordering::SeqCst));
                        has_given.store(true, Ordering::SeqCst);
                    }
                    assert!(
                        turn < ahead || has_begun.load(Ordering::SeqCst),
                        "turn {turn}"
                    );
                }
                channel.close().unwrap();
            },
            |client, team| {
                let channel = target(&client, &team, "buffers", whole()).unwrap();
                while !has_given.load(Ordering::SeqCst) {
                    std::thread::yield_now();
                }
                has_begun.store(true, Ordering::SeqCst);
                let mut got = [0; 64];
                for turn in 0..8 {
                    assert_eq!(get(&channel, &mut got).unwrap(), Some(turn));
                    assert_eq!(got[..], shown(&whole(), turn), "turn {turn}");
                }
                assert_eq!(get(&channel, &mut got).unwrap(), None);
            },
        );
    }
}

#[test]
fn whoever_comes_first_waits_as_long_as_its_patience_lasts() {
    let service = Service::start(0);
    let client = service.connect();
    let hasty = ChannelOptions::default().with_patience(Duration::from_millis(50));
    let team = Team::alone();
    let error = ChannelTarget::open(&client, &team, "nobody", Ok(whole()), &hasty).unwrap_err();
    assert_eq!(error.status(), Status::TimedOut);
    let text = error.to_string();
    assert!(
        text.contains("channel 'nobody': no program that gives"),
        "{text}"
    );
    // One that has given up is not met any more.
    for first_gives in [true, false] {
        let other_may_come = AtomicBool::new(false);
        let wait = |is_first: bool| {
            while !is_first && !other_may_come.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
        };
        pair(
            &service,
            |client, team| {
                wait(first_gives);
                other_may_come.store(true, Ordering::SeqCst);
                let channel =
                    source(&client, &team, "nobody", whole(), ChannelMode::Blocking).unwrap();
                put(&channel, &shown(&whole(), 7)).unwrap();
                channel.close().unwrap();
            },
            |client, team| {
                wait(!first_gives);
                other_may_come.store(true, Ordering::SeqCst);
                let channel = target(&client, &team, "nobody", whole()).unwrap();
                let mut got = [0; 64];
                assert_eq!(get(&channel, &mut got).unwrap(), Some(0));
                assert_eq!(got[..], shown(&whole(), 7));
            },
        );
    }
}

/// What both sides are told.
fn refused(service: &Service, giver: &'static str, taker: &'static str) -> [String; 2] {
    let said = parking_lot::Mutex::new([String::new(), String::new()]);
    pair(
        service,
        |client, team| {
            let mine = part(giver, "(block, *) onto 1", 0);
            let error = source(&client, &team, "differs", mine, ChannelMode::Double).unwrap_err();
            assert_eq!(error.status(), Status::InvalidArgument);
            said.lock()[0] = error.to_string();
        },
        |client, team| {
            let mine = part(taker, "(*, block) onto 1", 0);
            let error = target(&client, &team, "differs", mine).unwrap_err();
            assert_eq!(error.status(), Status::InvalidArgument);
            said.lock()[1] = error.to_string();
        },
    );
    said.into_inner()
}

#[test]
fn arrays_that_differ_are_refused_by_name_on_both_sides() {
    let service = Service::start(0);
    for (giver, taker, what) in [
        ("f64[4,6]", "f64[6,4]", "shapes"),
        ("f64[4,6]", "i64[4,6]", "element types"),
        ("f64[4,6]", "f64[4,6]:fortran", "orders"),
    ] {
        let wanted = format!(
            "array: the {what} of channel 'differs' differ: the program that gives has {giver}, the one that takes \
             {taker}; give the same"
        );
        for said in refused(&service, giver, taker) {
            assert_eq!(said, wanted);
        }
    }
    // Both give.
    let give = |client: Client, team: Team| {
        let error = source(&client, &team, "twice", whole(), ChannelMode::Blocking).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("both programs give through channel 'twice'"),
            "{text}"
        );
    };
    pair(&service, give, give);
    // Members of one program.
    let team = Team::threads(2);
    std::thread::scope(|scope| {
        for member in &team {
            let client = service.connect();
            scope.spawn(move || {
                let array = ["u8[8]", "u8[9]"][member.rank()];
                let mine = part(array, "(block) onto 2", member.rank());
                let error = target(&client, member, "odd", mine).unwrap_err();
                let wanted = "array: rank 0 says u8[8] for channel 'odd' and rank 1 u8[9]; give the same at all ranks";
                assert_eq!(error.to_string(), wanted);
            });
        }
    });
    let array: ArrayType = "i32[4]".parse().unwrap();
    let set = falls::FallsSet::segment(0, 6).unwrap();
    let cut = View::new(FileOffset(0), 16, set).unwrap();
    let error = ChannelArray::new(array, cut).unwrap_err();
    assert!(
        error.to_string().contains("cuts entries of i32[4]"),
        "{error}"
    );
}

#[test]
fn memory_of_another_length_is_refused_and_takes_no_turn() {
    let service = Service::start(0);
    pair(
        &service,
        |client, team| {
            let channel = source(&client, &team, "short", whole(), ChannelMode::Double).unwrap();
            let error = put(&channel, &[0; 63]).unwrap_err();
            assert_eq!(
                error.to_string(),
                "from: has 63 bytes, and this member's part of channel 'short' has 64; give as many"
            );
            put(&channel, &shown(&whole(), 3)).unwrap();
            channel.close().unwrap();
        },
        |client, team| {
            let channel = target(&client, &team, "short", whole()).unwrap();
            assert!(get(&channel, &mut [0; 65]).is_err());
            let mut got = [0; 64];
            assert_eq!(get(&channel, &mut got).unwrap(), Some(0));
            assert_eq!(got[..], shown(&whole(), 3));
            assert_eq!(get(&channel, &mut got).unwrap(), None);
        },
    );
}

#[test]
fn a_side_that_closes_or_drops_its_end_ends_the_waits_of_the_other() {
    let service = Service::start(0);
    for how in [ChannelMode::Blocking, ChannelMode::Double] {
        pair(
            &service,
            |client, team| {
                let channel = source(&client, &team, "closed", whole(), how).unwrap();
                put(&channel, &[1; 64]).unwrap();
                let error = loop {
                    if let Err(error) = put(&channel, &[2; 64]) {
                        break error;
                    }
                };
                assert_eq!(error.status(), Status::Unreachable);
                let text = error.to_string();
                assert!(
                    text.contains(
                        "channel 'closed': the program that takes closed it after 1 turns"
                    ),
                    "{text}"
                );
                assert_eq!(channel.close().unwrap_err(), error);
            },
            |client, team| {
                let channel = target(&client, &team, "closed", whole()).unwrap();
                assert_eq!(get(&channel, &mut [0; 64]).unwrap(), Some(0));
                channel.close().unwrap();
            },
        );
        pair(
            &service,
            |client, team| {
                let channel = source(&client, &team, "dropped", whole(), how).unwrap();
                drop(channel);
            },
            |client, team| {
                let channel = target(&client, &team, "dropped", whole()).unwrap();
                let error = get(&channel, &mut [0; 64]).unwrap_err();
                assert_eq!(error.status(), Status::Unreachable);
                assert!(error.to_string().contains("channel 'dropped'"), "{error}");
            },
        );
    }
}

/// Waits until a process has said that it is there.
fn is_there(child: &mut Child) {
    let said = BufReader::new(child.stdout.take().unwrap());
    let is_there = |line: std::io::Result<String>| line.unwrap().contains("there");
    assert!(said.lines().any(is_there));
}

const KILLED: &str =
    "channels::the_death_of_either_program_ends_every_wait_and_a_new_one_takes_its_place";

#[test]
fn the_death_of_either_program_ends_every_wait_and_a_new_one_takes_its_place() {
    if let Some(words) = told() {
        let client = connect_at(words[0].as_ref(), true);
        let team = Team::alone();
        let _channel: Box<dyn std::any::Any> = match &words[1][..] {
            "gives" => {
                Box::new(source(&client, &team, "killed", whole(), ChannelMode::Double).unwrap())
            }
            "takes" => Box::new(target(&client, &team, "killed", whole()).unwrap()),
            _ => {
                println!("there");
                let _ = target(&client, &team, "killed", whole());
                unreachable!("nobody comes");
            }
        };
        println!("there");
        loop {
            std::thread::park();
        }
    }
    let service = Service::start(0);
    let start = |what: &str| member(KILLED, &format!("{} {what}", service.dir.display()));
    // One that dies while it waits for the other program is not met.
    let mut alone = start("waits");
    is_there(&mut alone);
    alone.kill().unwrap();
    alone.wait().unwrap();
    for victim in ["gives", "takes"] {
        let mut child = start(victim);
        let team = Team::threads(2);
        std::thread::scope(|scope| {
            let (met, has_met) = std::sync::mpsc::channel();
            for member in &team {
                let (client, met) = (service.connect(), met.clone());
                scope.spawn(move || {
                    let mine = part(ARRAY, "(block) onto 2", member.rank());
                    let error = match victim {
                        "gives" => {
                            let channel = target(&client, member, "killed", mine).unwrap();
                            met.send(()).unwrap();
                            get(&channel, &mut [0; 32]).unwrap_err()
                        }
                        _ => {
                            let how = ChannelMode::Blocking;
                            let channel = source(&client, member, "killed", mine, how).unwrap();
                            met.send(()).unwrap();
                            put(&channel, &[0; 32]).unwrap_err()
                        }
                    };
                    assert_eq!(error.status(), Status::Unreachable, "{error}");
                    let text = error.to_string();
                    assert!(text.starts_with("channel 'killed': rank "), "{text}");
                    assert!(
                        text.contains(&format!("the program that {victim}"))
                            || text.contains("the one that takes"),
                        "{text}"
                    );
                });
            }
            is_there(&mut child);
            has_met.recv().unwrap();
            has_met.recv().unwrap();
            child.kill().unwrap();
        });
        child.wait().unwrap();
    }
    // Under the same name a new program is met, and nothing of the old ones comes.
    let sides = [("(block) onto 1", 1), ("(cyclic) onto 3", 3)];
    couple(&service, "killed", ARRAY, sides, ChannelMode::Double);
}
