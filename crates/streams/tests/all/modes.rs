//! Which mode is taken, what it costs to find, and that it does not matter for what is read.
//!
//! Modes are those that streams count, not those that they are believed to be in.

use std::io::{Read, SeekFrom, Write};

use streams::{
    Access, Context, Emulation, Shape, Stream, StreamOptions, StreamStatistics, Variable,
};

use crate::place::{TestPlace, run};

const VPS: usize = 6;

/// Runs a program on two members; the modes of its parts, as rank 0 counted them.
fn modes(program: impl Fn(&mut Stream, usize) + Sync) -> [u64; 3] {
    let place = TestPlace::new();
    let all = run(2, |team| {
        let emulation = Emulation::block(&Shape::new(&[VPS as u64]).unwrap(), team).unwrap();
        let options = StreamOptions::new(Access::WriteUpdate)
            .cb_block(16)
            .ib_block(16);
        let mut stream = Stream::open(place.client(), team, "/s", &emulation, &options).unwrap();
        program(&mut stream, team.rank());
        let done = stream.statistics();
        stream.close().unwrap();
        [done.nb, done.cb, done.ib]
    });
    assert_eq!(all[0], all[1], "members went different ways");
    all[0]
}

fn everywhere() -> Context {
    Context::everywhere()
}

fn put(stream: &mut Stream, bytes: usize) {
    let memory = vec![5; bytes * stream.emulation().count()];
    stream.write(&everywhere(), &memory, bytes).unwrap();
}

fn some(stream: &Stream) -> Context {
    everywhere().narrowed(stream.emulation().count(), |vp| vp == 0)
}

#[test]
fn seed002_s11_modes_follow_mask_size_stride_seek_and_elemental_calls() {
    assert_eq!(modes(|s, _| put(s, 8)), [1, 0, 0]);
    // A mask that is true for all, and sizes per VP that are equal.
    assert_eq!(
        modes(|s, _| {
            let count = s.emulation().count();
            let all = everywhere().narrowed(count, |_| true);
            s.write(&all, &vec![1; 8 * count], 8).unwrap();
            s.write_each(&everywhere(), &vec![1; 8 * count], &vec![8; count])
                .unwrap();
        }),
        [2, 0, 0]
    );
    // A mask that is not, and sizes that differ.
    assert_eq!(
        modes(|s, _| {
            let context = some(s);
            s.write(&context, &vec![1; 8 * s.emulation().count()], 8)
                .unwrap();
        }),
        [0, 0, 1]
    );
    assert_eq!(
        modes(|s, _| {
            let count = s.emulation().count();
            let sizes: Vec<usize> = (0..count).collect();
            s.write_each(&everywhere(), &vec![1; 8 * count], &sizes)
                .unwrap();
        }),
        [0, 0, 1]
    );
    // An elemental call leads to IB, one that does nothing does not.
    let elemental = |s: &mut Stream, bytes: &[u8]| {
        s.elemental(&everywhere(), |vp| vp.write_all(bytes))
            .unwrap();
    };
    assert_eq!(
        modes(|s, _| {
            elemental(s, b"x");
            put(s, 8);
        }),
        [0, 0, 1]
    );
    assert_eq!(
        modes(|s, _| {
            elemental(s, b"");
            put(s, 8);
        }),
        [1, 0, 0]
    );
}

#[test]
fn seed002_s12_the_first_write_fixes_the_block() {
    assert_eq!(modes(|s, _| (0..4).for_each(|_| put(s, 24))), [4, 0, 0]);
}

#[test]
fn seed002_s13_another_size_leads_to_collective_buffers_not_to_independent_ones() {
    assert_eq!(
        modes(|s, _| {
            put(s, 24);
            put(s, 8);
        }),
        [1, 1, 0]
    );
}

#[test]
fn seed002_s14_the_first_segment_is_never_continued_after_it_was_left() {
    assert_eq!(
        modes(|s, _| {
            put(s, 24);
            put(s, 8);
            put(s, 24);
        }),
        [1, 2, 0]
    );
}

#[test]
fn seed002_s15_strided_variables_go_through_collective_buffers() {
    assert_eq!(
        modes(|s, _| {
            let memory = vec![1; 20 * s.emulation().count()];
            let member = Variable::strided(&memory, 4, 20);
            s.write(&everywhere(), member, 8).unwrap();
        }),
        [0, 1, 0]
    );
}

#[test]
fn seed002_s16_one_member_in_an_elemental_call_takes_all_along() {
    assert_eq!(
        modes(|s, rank| {
            put(s, 8);
            let one = everywhere().narrowed(s.emulation().count(), |vp| rank == 1 && vp == 2);
            s.elemental(&one, |vp| vp.write_all(b"y")).unwrap();
            put(s, 8);
        }),
        [1, 0, 1]
    );
}

#[test]
fn seed002_s17_sizes_that_differ_between_members_are_independent() {
    assert_eq!(
        modes(|s, rank| {
            let count = s.emulation().count();
            let bytes = 4 + rank;
            s.write_each(&everywhere(), &vec![1; bytes * count], &vec![bytes; count])
                .unwrap();
        }),
        [0, 0, 1]
    );
}

fn statistics(size: usize, program: impl Fn(&mut Stream) + Sync) -> StreamStatistics {
    let place = TestPlace::new();
    let all = run(size, |team| {
        let emulation = Emulation::block(&Shape::new(&[VPS as u64]).unwrap(), team).unwrap();
        let options = StreamOptions::new(Access::WriteUpdate);
        let mut stream = Stream::open(place.client(), team, "/s", &emulation, &options).unwrap();
        program(&mut stream);
        let done = stream.statistics();
        stream.close().unwrap();
        done
    });
    all[0]
}

#[test]
fn seed002_s18_scalar_sizes_are_not_compared() {
    // Neither are VPs looked at nor members asked: no exchange in a hundred calls, but the one with which the array of all VPs
    // is first seen; none at all if the members came to go each for itself when they opened the file.
    let done = statistics(3, |s| (0..100).for_each(|_| put(s, 8)));
    assert!(done.nb == 100 && done.reductions <= 1, "{done:?}");
}

#[test]
fn seed002_s19_one_exchange_at_most_for_a_collective_call() {
    let done = statistics(3, |s| {
        put(s, 8);
        // At most the one with which the array of all VPs is first seen.
        let first = s.statistics().reductions;
        assert!(first <= 1);
        let all = everywhere().narrowed(s.emulation().count(), |_| true);
        for n in 1..=5 {
            s.write(&all, &vec![1; 8 * s.emulation().count()], 8)
                .unwrap();
            assert_eq!(s.statistics().reductions, first + n);
        }
        // From here on all know that VPs go for themselves.
        s.write(&some(s), &vec![1; 8 * s.emulation().count()], 8)
            .unwrap();
        put(s, 8);
        s.write(&some(s), &vec![1; 8 * s.emulation().count()], 8)
            .unwrap();
        assert_eq!(s.statistics().reductions, first + 6);
    });
    assert_eq!((done.nb, done.ib), (6, 3));
}

/// What finding the mode costs in time is a claim of `make bench-check`; that it takes no exchange is shown here.
#[test]
fn seed002_s20_programs_whose_text_settles_the_mode_exchange_nothing_for_it() {
    let done = statistics(3, |s| {
        put(s, 8);
        let before = s.statistics().reductions;
        for _ in 0..50 {
            put(s, 8);
        }
        put(s, 24);
        s.rewind().unwrap();
        let mut room = vec![0; 8 * s.emulation().count()];
        for _ in 0..50 {
            s.read(&everywhere(), &mut room, 8).unwrap();
        }
        assert_eq!(s.statistics().reductions, before);
    });
    assert_eq!((done.nb, done.cb, done.ib), (101, 1, 0));
}

#[test]
fn seed002_s42_a_seek_of_all_leads_back_to_the_fast_modes() {
    assert_eq!(
        modes(|s, _| {
            put(s, 8);
            put(s, 8);
            s.elemental(&everywhere(), |vp| vp.write_all(b"tail"))
                .unwrap();
            s.seek(&everywhere(), SeekFrom::Start(8)).unwrap();
            put(s, 8);
            // Not at a multiple of the block: through buffers.
            s.seek(&everywhere(), SeekFrom::Start(4)).unwrap();
            put(s, 8);
            // Behind the segment every VP is for itself again.
            put(s, 8);
        }),
        [3, 2, 1]
    );
}

#[test]
fn seed002_s39_the_first_segment_is_read_through_buffers_of_its_own_block() {
    let place = TestPlace::new();
    run(2, |team| {
        let emulation = Emulation::block(&Shape::new(&[VPS as u64]).unwrap(), team).unwrap();
        let options = StreamOptions::new(Access::WriteUpdate).cb_block(64);
        let mut stream = Stream::open(place.client(), team, "/s", &emulation, &options).unwrap();
        (0..4).for_each(|_| put(&mut stream, 8));
        stream.rewind().unwrap();
        let mut got = vec![0; 4 * emulation.count()];
        for _ in 0..8 {
            stream.read(&everywhere(), &mut got, 4).unwrap();
        }
        let done = stream.statistics();
        // Blocks of 8 bytes: one transfer for two reads of 4.
        assert_eq!((done.cb, done.transfers), (8, 4 + 4));
        stream.close().unwrap();
    });
}

#[test]
fn seed002_s04_only_active_vps_act() {
    let place = TestPlace::new();
    run(2, |team| {
        let emulation = Emulation::block(&Shape::new(&[VPS as u64]).unwrap(), team).unwrap();
        let options = StreamOptions::new(Access::WriteUpdate);
        let mut stream = Stream::open(place.client(), team, "/s", &emulation, &options).unwrap();
        put(&mut stream, 8);
        let one = some(&stream);
        stream
            .write(&one, &vec![6; 8 * emulation.count()], 8)
            .unwrap();
        for local in 0..emulation.count() {
            let expected = if local == 0 { 16 } else { 8 };
            assert_eq!(stream.positions().of(local), expected);
            assert_eq!(stream.lengths().unwrap().of(local), expected);
        }
        stream.close().unwrap();
    });
}

#[test]
fn seed002_s06_elemental_calls_exchange_nothing() {
    let done = statistics(2, |s| {
        let all = everywhere();
        for _ in 0..20 {
            s.elemental(&all, |vp| write!(vp, "{} ", vp.number()))
                .unwrap();
        }
        s.rewind().unwrap();
        s.elemental(&all, |vp| {
            let mut text = String::new();
            vp.read_to_string(&mut text)?;
            assert_eq!(text, format!("{} ", vp.number()).repeat(20));
            Ok(())
        })
        .unwrap();
    });
    assert_eq!(done.reductions, 0);
}
