//! VPs that go each for itself: lengths, positions and ends of their own, blocks and entries in any order, many VPs.
//!
//! What is written is told by the number of the VP, so that every member can say what all others have.

use std::io::{Read, Seek, SeekFrom, Write};

use client::Team;
use streams::{Access, Context, Counts, Emulation, Mode, Shape, Stream, StreamOptions};

use crate::place::{TestPlace, run};

fn open(place: &TestPlace, team: &Team, vps: u64, options: &StreamOptions) -> Stream {
    let emulation = Emulation::block(&Shape::new(&[vps]).unwrap(), team).unwrap();
    Stream::open(place.client(), team, "/s", &emulation, options).unwrap()
}

fn everywhere() -> Context {
    Context::everywhere()
}

/// What VP n has after [`write_uneven`].
fn uneven(n: u64) -> Vec<u8> {
    (0..n * 13 % 200).map(|i| (n * 31 + i) as u8).collect()
}

/// Every VP writes another amount, some bytes at a time, in turns.
fn write_uneven(place: &TestPlace, size: usize, vps: u64, options: &StreamOptions) {
    run(size, |team| {
        let mut stream = open(place, team, vps, options);
        for turn in 0..30 {
            stream
                .elemental(&everywhere(), |vp| {
                    let all = uneven(vp.number());
                    let from = (turn * 7).min(all.len());
                    vp.write_all(&all[from..(from + 7).min(all.len())])
                })
                .unwrap();
        }
        stream.close().unwrap();
    });
}

fn read_uneven(place: &TestPlace, size: usize, vps: u64, distribution: &str) {
    run(size, |team| {
        let shape = Shape::new(&[vps]).unwrap();
        let emulation = Emulation::new(&shape, distribution, team).unwrap();
        let options = StreamOptions::new(Access::Read);
        let mut stream = Stream::open(place.client(), team, "/s", &emulation, &options).unwrap();
        let mut memory = vec![0; 200 * emulation.count()];
        let counts = stream.read(&everywhere(), &mut memory, 200).unwrap();
        for (local, got) in memory.chunks_exact(200).enumerate() {
            let expected = uneven(emulation.vp(local));
            assert_eq!(counts.of(local) as usize, expected.len());
            assert_eq!(got[..expected.len()], expected);
        }
        stream.close().unwrap();
    });
}

#[test]
fn seed002_s03_any_number_of_members_reads_what_any_number_wrote() {
    for writers in [1, 2, 4] {
        let place = TestPlace::new();
        let options = StreamOptions::new(Access::Write)
            .ib_block(16)
            .superblock(4096);
        write_uneven(&place, writers, 50, &options);
        for (readers, distribution) in [
            (1, "(block)"),
            (3, "(block)"),
            (2, "(cyclic)"),
            (4, "(cyclic(3))"),
        ] {
            read_uneven(&place, readers, 50, distribution);
        }
    }
}

#[test]
fn seed002_s05_every_vp_has_a_position_and_an_end_of_its_own() {
    let place = TestPlace::new();
    write_uneven(&place, 2, 20, &StreamOptions::new(Access::Write));
    run(2, |team| {
        let mut stream = open(&place, team, 20, &StreamOptions::new(Access::Read));
        let count = stream.emulation().count();
        let sizes: Vec<usize> = (0..count).map(|local| local * 3).collect();
        let mut memory = vec![0; 60 * count];
        stream
            .read_each(&everywhere(), &mut memory, &sizes)
            .unwrap();
        for (local, size) in sizes.iter().enumerate() {
            let len = uneven(stream.emulation().vp(local)).len() as u64;
            assert_eq!(stream.lengths().unwrap().of(local), len);
            assert_eq!(stream.positions().of(local), len.min(*size as u64));
            assert_eq!(stream.is_at_end(local), len < *size as u64);
        }
        stream.close().unwrap();
    });
}

#[test]
fn seed002_s07_counts_are_short_where_a_stream_ends() {
    let place = TestPlace::new();
    write_uneven(&place, 3, 20, &StreamOptions::new(Access::Write));
    run(2, |team| {
        let mut stream = open(&place, team, 20, &StreamOptions::new(Access::Read));
        let count = stream.emulation().count();
        let mut memory = vec![0xaa; 100 * count];
        let counts = stream.read(&everywhere(), &mut memory, 100).unwrap();
        for local in 0..count {
            let all = uneven(stream.emulation().vp(local));
            assert_eq!(counts.of(local) as usize, all.len().min(100));
            // Memory behind what was read is as it was.
            let rest = &memory[local * 100..][counts.of(local) as usize..100];
            assert!(local + 1 < count || rest.iter().all(|byte| *byte == 0xaa));
        }
        stream.close().unwrap();
    });
}

#[test]
fn seed002_s10_a_million_vps_have_streams_in_one_file() {
    const VPS: u64 = 1 << 20;
    let place = TestPlace::new();
    run(2, |team| {
        let mut stream = open(&place, team, VPS, &StreamOptions::new(Access::WriteUpdate));
        let emulation = stream.emulation().clone();
        let numbers: Vec<u8> = (0..emulation.count())
            .flat_map(|local| emulation.vp(local).to_le_bytes())
            .collect();
        stream.write(&everywhere(), &numbers, 8).unwrap();
        let few = everywhere().narrowed(emulation.count(), |local| local % 100_000 == 7);
        stream
            .elemental(&few, |vp| write!(vp, "more of {}", vp.number()))
            .unwrap();
        stream.close().unwrap();
    });
    run(3, |team| {
        let mut stream = open(&place, team, VPS, &StreamOptions::new(Access::Read));
        let emulation = stream.emulation().clone();
        let mut memory = vec![0; 8 * emulation.count()];
        stream.read(&everywhere(), &mut memory, 8).unwrap();
        for (local, bytes) in memory.chunks_exact(8).enumerate() {
            assert_eq!(bytes, emulation.vp(local).to_le_bytes());
        }
        let lengths = stream.lengths().unwrap();
        let longer = (0..emulation.count())
            .filter(|local| lengths.of(*local) > 8)
            .count();
        let told = team.allgather(&[longer as u8]).unwrap().concat();
        let written = (VPS / 2 - 7).div_ceil(100_000) * 2;
        assert_eq!(told.iter().map(|n| u64::from(*n)).sum::<u64>(), written);
        stream.close().unwrap();
    });
    let names = place.client().list("/").unwrap().count();
    assert_eq!(names, 1);
}

#[test]
fn seed002_s26_what_no_member_wrote_is_never_read() {
    let place = TestPlace::new();
    // One member fills many superblocks, the others take some and hardly use them.
    run(4, |team| {
        let options = StreamOptions::new(Access::Write)
            .ib_block(32)
            .superblock(4096);
        let mut stream = open(&place, team, 8, &options);
        stream
            .elemental(&everywhere(), |vp| {
                let n = if vp.number() < 2 { 40_000 } else { 1 };
                vp.write_all(&vec![vp.number() as u8 + 1; n])
            })
            .unwrap();
        stream.close().unwrap();
    });
    run(2, |team| {
        let mut stream = open(&place, team, 8, &StreamOptions::new(Access::Read));
        stream
            .elemental(&everywhere(), |vp| {
                let mut got = Vec::new();
                vp.read_to_end(&mut got)?;
                assert_eq!(got.len(), if vp.number() < 2 { 40_000 } else { 1 });
                assert!(got.iter().all(|byte| *byte == vp.number() as u8 + 1));
                Ok(())
            })
            .unwrap();
        stream.close().unwrap();
    });
}

#[test]
fn seed002_s28_closing_writes_superblocks_and_the_records_that_changed() {
    let place = TestPlace::new();
    run(2, |team| {
        let options = StreamOptions::new(Access::Write)
            .ib_block(16)
            .superblock(4096)
            .pointers(2);
        let mut stream = open(&place, team, 64, &options);
        for turn in 0..20u8 {
            stream
                .elemental(&everywhere(), |vp| vp.write_all(&[turn; 10]))
                .unwrap();
        }
        stream.flush().unwrap();
        // No entry is patched: each is written with the superblock it is on.
        assert_eq!(stream.statistics().small_writes, 0);
        stream.close().unwrap();
    });
    // Nothing changed, nothing is written.
    let root = || place.client().get_view("/s", streams::RECORD).unwrap().text;
    let before = (root(), place.bytes("/s"));
    run(2, |team| {
        let mut stream = open(&place, team, 64, &StreamOptions::new(Access::Update));
        stream.lengths().unwrap();
        stream.close().unwrap();
    });
    assert!(before == (root(), place.bytes("/s")));
}

#[test]
fn seed002_s29_entries_have_any_number_of_pointers() {
    for pointers in [2, 6, 14, 30] {
        let place = TestPlace::new();
        let options = StreamOptions::new(Access::Write)
            .ib_block(8)
            .superblock(4096)
            .pointers(pointers);
        write_uneven(&place, 2, 30, &options);
        let text = place.client().get_view("/s", streams::RECORD).unwrap().text;
        assert!(text.contains(&format!(" pointers {pointers} ")), "{text}");
        read_uneven(&place, 3, 30, "(block)");
    }
}

#[test]
fn seed002_s35_vps_fill_blocks_in_any_order_and_at_any_time() {
    let place = TestPlace::new();
    run(2, |team| {
        let options = StreamOptions::new(Access::Write)
            .ib_block(16)
            .superblock(4096);
        let mut stream = open(&place, team, 16, &options);
        let count = stream.emulation().count();
        for turn in 0..100 {
            let some = everywhere().narrowed(count, |local| (local * 7 + turn) % 3 == 0);
            stream
                .elemental(&some, |vp| vp.write_all(&(turn as u32).to_le_bytes()))
                .unwrap();
        }
        stream.close().unwrap();
    });
    run(1, |team| {
        let mut stream = open(&place, team, 16, &StreamOptions::new(Access::Read));
        stream
            .elemental(&everywhere(), |vp| {
                let mut got = Vec::new();
                vp.read_to_end(&mut got)?;
                let local = vp.local() % 8;
                let turns = (0..100).filter(|turn| (local * 7 + turn) % 3 == 0);
                let expected: Vec<u8> = turns.flat_map(|t| (t as u32).to_le_bytes()).collect();
                assert_eq!(got, expected);
                Ok(())
            })
            .unwrap();
        stream.close().unwrap();
    });
}

#[test]
fn seed002_s37_reading_in_another_order_reads_the_same() {
    let place = TestPlace::new();
    let options = StreamOptions::new(Access::Write)
        .ib_block(16)
        .superblock(4096)
        .pointers(2);
    write_uneven(&place, 2, 40, &options);
    run(2, |team| {
        let options = StreamOptions::new(Access::Read).read_buffers(2);
        let mut stream = open(&place, team, 40, &options);
        let emulation = stream.emulation().clone();
        // The last VP first, and each from its end to its beginning.
        for local in (0..emulation.count()).rev() {
            let one = everywhere().narrowed(emulation.count(), |other| other == local);
            stream
                .elemental(&one, |vp| {
                    let expected = uneven(vp.number());
                    for at in (0..expected.len()).rev().step_by(5) {
                        vp.seek(SeekFrom::Start(at as u64))?;
                        assert_eq!(vp.getc()?, Some(expected[at]));
                    }
                    Ok(())
                })
                .unwrap();
        }
        stream.close().unwrap();
    });
}

#[test]
fn seed002_s38_one_request_goes_over_all_segments() {
    let place = TestPlace::new();
    run(2, |team| {
        let options = StreamOptions::new(Access::WriteUpdate)
            .cb_block(32)
            .ib_block(16);
        let mut stream = open(&place, team, 5, &options);
        let count = stream.emulation().count();
        for (bytes, of) in [(8, 1), (8, 2), (20, 3), (21, 4)] {
            stream
                .write(&everywhere(), &vec![of; bytes * count], bytes)
                .unwrap();
        }
        stream
            .elemental(&everywhere(), |vp| vp.write_all(&[5; 33]))
            .unwrap();
        let expected = [
            vec![1; 8],
            vec![2; 8],
            vec![3; 20],
            vec![4; 21],
            vec![5; 33],
        ]
        .concat();
        for start in [0, 3, 9, 20, 50, 70] {
            stream
                .seek(&everywhere(), SeekFrom::Start(start as u64))
                .unwrap();
            let mut memory = vec![0; 100 * count];
            let counts = stream.read(&everywhere(), &mut memory, 100).unwrap();
            for (local, got) in memory.chunks_exact(100).enumerate() {
                let n = counts.of(local) as usize;
                assert_eq!(got[..n], expected[start..], "from {start}");
            }
        }
        stream.close().unwrap();
    });
}

#[test]
fn seed002_s41_every_vp_seeks_to_a_place_of_its_own() {
    let place = TestPlace::new();
    run(2, |team| {
        let mut stream = open(&place, team, 9, &StreamOptions::new(Access::WriteUpdate));
        let emulation = stream.emulation().clone();
        let count = emulation.count();
        let memory: Vec<u8> = (0..count).flat_map(|_| 0..40).collect();
        stream.write(&everywhere(), &memory, 40).unwrap();
        let places: Vec<u64> = (0..count).map(|local| emulation.vp(local) * 4).collect();
        stream.seek_each(&everywhere(), &places).unwrap();
        assert_eq!(stream.positions(), Counts::Each(places.clone()));
        let mut got = vec![0; count];
        stream.read(&everywhere(), &mut got, 1).unwrap();
        let expected: Vec<u8> = places.iter().map(|place| *place as u8).collect();
        assert_eq!(got, expected);
        stream.close().unwrap();
    });
}

#[test]
fn seed002_s43_blocks_that_are_written_in_part_keep_the_rest() {
    for least in [Mode::Nb, Mode::Cb, Mode::Ib] {
        let place = TestPlace::new();
        run(2, |team| {
            let options = StreamOptions::new(Access::WriteUpdate)
                .at_least(least)
                .cb_block(32)
                .ib_block(32);
            let mut stream = open(&place, team, 6, &options);
            let count = stream.emulation().count();
            stream
                .write(&everywhere(), &vec![1; 40 * count], 40)
                .unwrap();
            for at in [3, 35, 12] {
                stream.seek(&everywhere(), SeekFrom::Start(at)).unwrap();
                stream.write(&everywhere(), &vec![2; 4 * count], 4).unwrap();
            }
            stream.rewind().unwrap();
            let mut memory = vec![0; 40 * count];
            stream.read(&everywhere(), &mut memory, 40).unwrap();
            let mut expected = [1; 40];
            for at in [3, 35, 12] {
                expected[at..at + 4].fill(2);
            }
            assert!(
                memory.chunks_exact(40).all(|of_vp| of_vp == expected),
                "{least:?}"
            );
            stream.close().unwrap();
        });
    }
}

#[test]
fn what_was_flushed_is_there_for_others_and_what_was_not_is_not() {
    for least in [Mode::Nb, Mode::Cb, Mode::Ib] {
        let place = TestPlace::new();
        run(2, |team| {
            let options = StreamOptions::new(Access::Write)
                .at_least(least)
                .ib_block(16);
            let mut stream = open(&place, team, 6, &options);
            let count = stream.emulation().count();
            let write = |stream: &mut Stream, of: u8| {
                stream
                    .write(&everywhere(), &vec![of; 24 * count], 24)
                    .unwrap();
            };
            write(&mut stream, 1);
            write(&mut stream, 2);
            stream.flush().unwrap();
            write(&mut stream, 3);
            team.barrier().unwrap();
            // The member is dropped without closing, as by a crash of its program.
        });
        run(1, |team| {
            let client = place.connect_again();
            let shape = Shape::new(&[6]).unwrap();
            let emulation = Emulation::block(&shape, team).unwrap();
            let options = StreamOptions::new(Access::AppendUpdate).at_least(least);
            let mut stream = Stream::open(&client, team, "/s", &emulation, &options).unwrap();
            assert_eq!(stream.lengths().unwrap().of(3), 48, "{least:?}");
            // What is appended now lies where the lost bytes were.
            stream.write(&everywhere(), &vec![4; 6 * 30], 30).unwrap();
            stream.rewind().unwrap();
            let mut memory = vec![0; 6 * 90];
            let counts = stream.read(&everywhere(), &mut memory, 90).unwrap();
            for (local, got) in memory.chunks_exact(90).enumerate() {
                assert_eq!(counts.of(local), 78);
                let expected = [vec![1; 24], vec![2; 24], vec![4; 30]].concat();
                assert_eq!(got[..78], expected, "{least:?}");
            }
            stream.close().unwrap();
        });
    }
}
