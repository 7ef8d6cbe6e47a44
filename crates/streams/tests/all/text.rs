//! Bytes, lines and formatted text of all VPs at once, and operations beside the program.
//!
//! Each is compared with what the VPs were given; random programs have them among their statements, too.

use std::io::{SeekFrom, Write};

use streams::{Access, Context, Counts, Emulation, Shape, Stream, StreamOptions, StreamQueue};

use crate::place::{TestPlace, run};

const VPS: u64 = 30;

fn open(place: &TestPlace, team: &client::Team, access: Access, distribution: &str) -> Stream {
    let shape = Shape::new(&[VPS]).unwrap();
    let emulation = Emulation::new(&shape, distribution, team).unwrap();
    let options = StreamOptions::new(access);
    Stream::open(place.client(), team, "/t", &emulation, &options).unwrap()
}

fn everywhere() -> Context {
    Context::everywhere()
}

/// What a VP prints in a step: of the same length for all in even steps.
fn line(step: u64, vp: u64) -> String {
    match step.is_multiple_of(2) {
        true => format!("step {step} VP {vp:04}\n"),
        false => format!("{}\n", "x".repeat((vp % 7) as usize)),
    }
}

#[test]
fn texts_of_one_length_stay_in_the_fast_modes_and_others_do_not() {
    let place = TestPlace::new();
    run(3, |team| {
        let mut stream = open(&place, team, Access::Write, "(block)");
        let vps = stream.emulation().clone();
        for (step, counted) in [
            (0, [1, 0, 0]),
            (2, [2, 0, 0]),
            (3, [2, 0, 1]),
            (4, [2, 0, 2]),
        ] {
            let text = |local: usize, to: &mut Vec<u8>| {
                to.extend(line(step, vps.vp(local)).bytes());
                Ok(())
            };
            stream.print(&everywhere(), text).unwrap();
            let now = stream.statistics();
            assert_eq!([now.nb, now.cb, now.ib], counted, "after step {step}");
        }
        stream
            .putc(&everywhere(), &vec![b'!'; vps.count()])
            .unwrap();
        stream.close().unwrap();
    });
    run(2, |team| {
        let mut stream = open(&place, team, Access::Read, "(cyclic)");
        let vps = stream.emulation().clone();
        for step in [0, 2, 3, 4] {
            let lines = stream.gets(&everywhere(), 50).unwrap();
            for (local, found) in lines.into_iter().enumerate() {
                let expected = line(step, vps.vp(local)).into_bytes();
                assert_eq!(found, Some(expected), "step {step} VP {}", vps.vp(local));
            }
        }
        let mut bytes = vec![0; vps.count()];
        let counts = stream.getc(&everywhere(), &mut bytes).unwrap();
        assert!((0..vps.count()).all(|local| counts.of(local) == 1 && bytes[local] == b'!'));
        assert_eq!(
            stream.gets(&everywhere(), 50).unwrap(),
            vec![None; vps.count()]
        );
        assert!((0..vps.count()).all(|local| stream.is_at_end(local)));
        stream.close().unwrap();
    });
}

#[test]
fn lines_of_one_length_are_read_in_the_fast_modes_and_go_on_there() {
    let place = TestPlace::new();
    run(2, |team| {
        let mut stream = open(&place, team, Access::WriteUpdate, "(block)");
        let vps = stream.emulation().clone();
        let text = |local: usize, to: &mut Vec<u8>| write!(to, "{:03}\nab", vps.vp(local));
        stream.print(&everywhere(), text).unwrap();
        stream.rewind().unwrap();
        let numbers = stream.scan(&everywhere(), 20, |local, bytes| {
            assert_eq!(bytes, format!("{:03}\nab", vps.vp(local)).as_bytes());
            4
        });
        assert_eq!(numbers.unwrap(), Counts::Uniform(4));
        assert_eq!(stream.positions(), Counts::Uniform(4));
        assert!(!stream.is_at_end(0));
        // A VP takes what it wants of a mask, and no more than there is.
        let odd = everywhere().narrowed(vps.count(), |local| vps.vp(local) % 2 == 1);
        let taken = stream
            .scan(&odd, 9, |local, _| vps.vp(local) as usize)
            .unwrap();
        for local in 0..vps.count() {
            let number = vps.vp(local);
            let expected = if odd.is_active(local) {
                number.min(2)
            } else {
                0
            };
            assert_eq!(taken.of(local), expected);
            assert_eq!(stream.positions().of(local), 4 + expected);
            assert_eq!(stream.is_at_end(local), expected == 2);
        }
        stream.close().unwrap();
    });
}

#[test]
fn what_one_member_cannot_print_fails_at_all_and_writes_nothing() {
    let place = TestPlace::new();
    run(3, |team| {
        let mut stream = open(&place, team, Access::Write, "(block)");
        let rank = team.rank();
        let error = stream.print(&everywhere(), |_, to| match rank {
            1 => Err(std::io::Error::other("no paper")),
            _ => to.write_all(b"text"),
        });
        let error = error.unwrap_err().to_string();
        assert!(error.contains("no paper"), "{error}");
        assert_eq!(stream.lengths().unwrap(), Counts::Uniform(0));
        stream
            .print(&everywhere(), |_, to| to.write_all(b"text"))
            .unwrap();
        stream.close().unwrap();
    });
    assert_eq!(place.bytes("/t"), b"text".repeat(VPS as usize));
}

/// Several operations are asked for before the first is waited for; they are done in their order, and requests can be dropped.
#[test]
fn operations_beside_the_program_are_done_in_their_order() {
    let place = TestPlace::new();
    run(2, |team| {
        let stream = open(&place, team, Access::WriteUpdate, "(cyclic)");
        let vps = stream.emulation().clone();
        let count = vps.count();
        let queue = StreamQueue::new(stream);
        let of = |step: u8| {
            (0..count)
                .flat_map(|l| [vps.vp(l) as u8, step])
                .collect::<Vec<u8>>()
        };
        let mut requests: Vec<_> = (0..8)
            .map(|step| queue.write(everywhere(), of(step), 2))
            .collect();
        let sizes: Vec<usize> = (0..count).map(|l| (vps.vp(l) % 3) as usize).collect();
        drop(queue.write_each(everywhere(), vec![9; 2 * count], sizes.clone()));
        let back = queue.perform(|stream| stream.seek(&everywhere(), SeekFrom::Start(4)));
        let read = queue.read(everywhere(), vec![0; 12 * count], 12);
        let rest = queue.read_each(everywhere(), vec![0; 5 * count], vec![5; count]);
        back.wait().unwrap();
        let (room, counts) = read.wait().unwrap();
        for local in 0..count {
            assert_eq!(counts.of(local), 12);
            let expected: Vec<u8> = (2..8)
                .flat_map(|step| [vps.vp(local) as u8, step])
                .collect();
            assert_eq!(room[local * 12..][..12], expected);
        }
        // What came before is done, too.
        assert!(requests.iter_mut().all(streams::StreamRequest::is_done));
        for (step, request) in (0..).zip(requests) {
            assert_eq!(request.wait().unwrap(), of(step));
        }
        let (room, counts) = rest.wait().unwrap();
        for local in 0..count {
            assert_eq!(counts.of(local), sizes[local] as u64);
            assert!(
                room[local * 5..][..sizes[local]]
                    .iter()
                    .all(|byte| *byte == 9)
            );
        }
        queue.finish().unwrap().close().unwrap();
    });
}

#[test]
fn an_operation_beside_the_program_says_why_it_failed() {
    let place = TestPlace::new();
    run(2, |team| {
        let queue = StreamQueue::new(open(&place, team, Access::Write, "(block)"));
        let error = queue.read(everywhere(), vec![0; 15], 1).wait().unwrap_err();
        assert!(
            error.to_string().contains("not open for reading"),
            "{error}"
        );
        queue.write(everywhere(), vec![1; 15], 1).wait().unwrap();
        queue.finish().unwrap().close().unwrap();
    });
    assert_eq!(place.bytes("/t"), vec![1; VPS as usize]);
}
