//! What the file looks like: segments, blocks, superblocks, and what becomes of files of other programs.
//!
//! Places are computed here from the rules of the format page, not asked of the code.

use std::io::{Read, Seek, SeekFrom, Write};

use client::Team;
use streams::{Access, Context, Counts, Emulation, Mode, Report, Shape, Stream, StreamOptions};

use crate::place::{TestPlace, run};

fn shape(vps: u64) -> Shape {
    Shape::new(&[vps]).unwrap()
}

fn open(place: &TestPlace, team: &Team, vps: u64, options: &StreamOptions) -> Stream {
    let emulation = Emulation::block(&shape(vps), team).unwrap();
    Stream::open(place.client(), team, "/s", &emulation, options).unwrap()
}

/// Bytes of every VP of the member: VP v's i-th byte of a write is `10 v + i`, from a start on.
fn of_vps(stream: &Stream, start: usize, bytes: usize) -> Vec<u8> {
    let emulation = stream.emulation();
    let all = (0..emulation.count()).flat_map(|local| {
        let vp = emulation.vp(local) as usize;
        (start..start + bytes).map(move |i| (10 * vp + i) as u8)
    });
    all.collect()
}

fn root_text(place: &TestPlace) -> String {
    place.client().get_view("/s", streams::RECORD).unwrap().text
}

#[test]
fn seed002_s21_block_j_of_vp_v_is_where_the_rule_says() {
    for size in [1, 2, 3] {
        let place = TestPlace::new();
        run(size, |team| {
            let mut stream = open(
                &place,
                team,
                7,
                &StreamOptions::new(Access::Write).cb_block(16),
            );
            for start in [0, 4] {
                let bytes = of_vps(&stream, start, 4);
                stream.write(&Context::everywhere(), &bytes, 4).unwrap();
            }
            let bytes = of_vps(&stream, 8, 20);
            stream.write(&Context::everywhere(), &bytes, 20).unwrap();
            stream.close().unwrap();
        });
        let file = place.bytes("/s");
        for vp in 0..7 {
            for at in 0..28 {
                let address = match at {
                    0..8 => (at / 4 * 7 + vp) * 4 + at % 4,
                    _ => 4096 + ((at - 8) / 16 * 7 + vp) * 16 + (at - 8) % 16,
                };
                assert_eq!(
                    file[address],
                    (10 * vp + at) as u8,
                    "VP {vp} byte {at} by {size}"
                );
            }
        }
    }
}

#[test]
fn seed002_s22_a_file_of_whole_arrays_is_the_plain_dump_of_them() {
    let array = |step: u8| (0..96).map(|i| i * 2 + step).collect::<Vec<u8>>();
    for (size, distribution) in [(1, "(block)"), (3, "(block)"), (2, "(cyclic)")] {
        let place = TestPlace::new();
        run(size, |team| {
            let emulation = Emulation::new(&shape(12), distribution, team).unwrap();
            let options = StreamOptions::new(Access::Write);
            let mut stream =
                Stream::open(place.client(), team, "/s", &emulation, &options).unwrap();
            for step in [0, 1] {
                let all = array(step);
                let vps = (0..emulation.count()).map(|l| emulation.vp(l) as usize * 8);
                let mine: Vec<u8> = vps.flat_map(|at| all[at..at + 8].to_vec()).collect();
                stream.write(&Context::everywhere(), &mine, 8).unwrap();
            }
            let done = stream.statistics();
            assert_eq!((done.nb, done.cb, done.ib), (2, 0, 0));
            stream.close().unwrap();
        });
        assert_eq!(place.bytes("/s"), [array(0), array(1)].concat());
    }
}

#[test]
fn seed002_s23_the_root_has_everything_that_reading_needs() {
    let place = TestPlace::new();
    run(2, |team| {
        let options = StreamOptions::new(Access::Write)
            .cb_block(32)
            .ib_block(16)
            .superblock(4096);
        let mut stream = open(&place, team, 5, &options);
        let all = Context::everywhere();
        let bytes = of_vps(&stream, 0, 8);
        stream.write(&all, &bytes, 8).unwrap();
        let bytes = of_vps(&stream, 8, 24);
        stream.write(&all, &bytes, 24).unwrap();
        stream.elemental(&all, |vp| vp.write_all(b"x")).unwrap();
        stream.close().unwrap();
    });
    let text = root_text(&place);
    assert!(
        text.starts_with("pario-stream 1\nshape [5]\ndistribution (block)\n"),
        "{text}"
    );
    assert!(text.contains("nb base 0 block 8 bytes 8\n"), "{text}");
    assert!(text.contains("cb base 4096 block 32 bytes 24\n"), "{text}");
    assert!(
        text.contains("ib base 8192 superblock 4096 block 16 pointers 6 "),
        "{text}"
    );
    let record = Stream::record(place.client(), "/s").unwrap().unwrap();
    assert_eq!(record.shape, shape(5));
}

#[test]
fn seed002_s24_there_is_no_directory_without_independent_blocks() {
    let place = TestPlace::new();
    run(2, |team| {
        let mut stream = open(&place, team, 5, &StreamOptions::new(Access::Write));
        let bytes = of_vps(&stream, 0, 8);
        stream.write(&Context::everywhere(), &bytes, 8).unwrap();
        let bytes = of_vps(&stream, 8, 3);
        stream.write(&Context::everywhere(), &bytes, 3).unwrap();
        stream.close().unwrap();
    });
    assert!(!root_text(&place).contains("table"));
    run(2, |team| {
        let mut stream = open(&place, team, 5, &StreamOptions::new(Access::Append));
        stream
            .elemental(&Context::everywhere(), |vp| vp.putc(1))
            .unwrap();
        stream.close().unwrap();
    });
    assert!(root_text(&place).contains("table a\n"));
}

#[test]
fn seed002_s30_independent_blocks_go_out_as_superblocks() {
    let place = TestPlace::new();
    run(2, |team| {
        let options = StreamOptions::new(Access::Write)
            .at_least(Mode::Ib)
            .ib_block(64)
            .superblock(4096);
        let mut stream = open(&place, team, 64, &options);
        for step in 0..32 {
            let bytes = of_vps(&stream, step, 64);
            stream.write(&Context::everywhere(), &bytes, 64).unwrap();
        }
        // 32 VPs of a member have 64 KiB in 16 superblocks of 64 blocks each, and entries of 6 pointers.
        let before = stream.statistics();
        assert_eq!(before.small_writes, 0);
        assert!((15..=16).contains(&before.superblock_writes), "{before:?}");
        stream.flush().unwrap();
        let after = stream.statistics();
        assert_eq!(after.small_writes, 0);
        let entries = (32 * 6 * 64u64).div_ceil(4096);
        assert!(after.superblock_writes <= 16 + entries + 1, "{after:?}");
        stream.close().unwrap();
    });
}

#[test]
fn seed002_s31_one_transfer_for_every_array_and_every_round() {
    let place = TestPlace::new();
    run(2, |team| {
        let mut stream = open(
            &place,
            team,
            8,
            &StreamOptions::new(Access::Write).cb_block(32),
        );
        let all = Context::everywhere();
        for step in 0..5 {
            let bytes = of_vps(&stream, step, 8);
            stream.write(&all, &bytes, 8).unwrap();
        }
        assert_eq!(stream.statistics().transfers, 5);
        for step in 0..4 {
            let bytes = of_vps(&stream, step, 24);
            stream.write(&all, &bytes, 24).unwrap();
        }
        // 96 bytes of every VP are three blocks of 32.
        assert_eq!(stream.statistics().transfers, 5 + 3);
        stream.close().unwrap();
    });
}

#[test]
fn seed002_s32_buffers_fill_and_empty_together() {
    let place = TestPlace::new();
    run(2, |team| {
        let options = StreamOptions::new(Access::Write)
            .at_least(Mode::Cb)
            .cb_block(32);
        let mut stream = open(&place, team, 6, &options);
        let all = Context::everywhere();
        let bytes = of_vps(&stream, 0, 24);
        stream.write(&all, &bytes, 24).unwrap();
        assert_eq!(stream.statistics().transfers, 0);
        let bytes = of_vps(&stream, 24, 24);
        stream.write(&all, &bytes, 24).unwrap();
        assert_eq!(stream.statistics().transfers, 1);
        stream.close().unwrap();
    });
    // One round and the 16 bytes that were buffered; readers see no padding.
    assert!(root_text(&place).contains("cb base 0 block 32 bytes 48\n"));
    assert_eq!(place.bytes("/s").len(), 2 * 6 * 32);
}

#[test]
fn seed002_s33_readers_do_not_see_what_fills_the_last_block() {
    let place = TestPlace::new();
    let options = StreamOptions::new(Access::Write)
        .at_least(Mode::Cb)
        .cb_block(32);
    run(2, |team| {
        let mut stream = open(&place, team, 6, &options);
        let bytes = of_vps(&stream, 0, 24);
        stream.write(&Context::everywhere(), &bytes, 24).unwrap();
        stream.close().unwrap();
    });
    run(3, |team| {
        let mut stream = open(&place, team, 6, &StreamOptions::new(Access::Read));
        let mut bytes = vec![0; 30 * stream.emulation().count()];
        let counts = stream.read(&Context::everywhere(), &mut bytes, 30).unwrap();
        assert_eq!(counts, Counts::Uniform(24));
        stream.close().unwrap();
    });
}

#[test]
fn seed002_s34_the_last_collective_block_is_left_once_and_whole() {
    let place = TestPlace::new();
    run(2, |team| {
        let options = StreamOptions::new(Access::WriteUpdate)
            .at_least(Mode::Cb)
            .cb_block(32);
        let mut stream = open(&place, team, 6, &options);
        let all = Context::everywhere();
        let bytes = of_vps(&stream, 0, 20);
        stream.write(&all, &bytes, 20).unwrap();
        // One member leaves alone, inside an elemental function.
        let one = Context::everywhere().narrowed(stream.emulation().count(), |_| team.rank() == 0);
        stream.elemental(&one, |vp| vp.write_all(b"abc")).unwrap();
        let bytes = of_vps(&stream, 20, 5);
        stream.write(&all, &bytes, 5).unwrap();
        assert_eq!(stream.statistics().transfers, 0);
        stream.rewind().unwrap();
        stream
            .elemental(&all, |vp| {
                let mut got = Vec::new();
                vp.read_to_end(&mut got)?;
                let number = vp.number() as usize;
                let byte = |i: usize| (10 * number + i) as u8;
                let mut expected: Vec<u8> = (0..20).map(byte).collect();
                expected.extend(if team.rank() == 0 { &b"abc"[..] } else { b"" });
                expected.extend((20..25).map(byte));
                assert_eq!(got, expected, "VP {number}");
                Ok(())
            })
            .unwrap();
        stream.close().unwrap();
    });
}

#[test]
fn seed002_s36_reading_in_the_order_of_writing_reads_each_superblock_about_once() {
    let place = TestPlace::new();
    let bytes = 32 * 64 * 32;
    run(1, |team| {
        let options = StreamOptions::new(Access::Write)
            .at_least(Mode::Ib)
            .ib_block(64)
            .superblock(4096);
        let mut stream = open(&place, team, 64, &options);
        for step in 0..32 {
            let bytes = of_vps(&stream, step, 32);
            stream.write(&Context::everywhere(), &bytes, 32).unwrap();
        }
        stream.close().unwrap();
        let options = StreamOptions::new(Access::Read).read_buffers(2);
        let mut stream = open(&place, team, 64, &options);
        let mut values = vec![0; 64 * 64];
        for _ in 0..16 {
            stream
                .read(&Context::everywhere(), &mut values, 64)
                .unwrap();
        }
        let superblocks = bytes / 4096;
        let entries = (64 * 3 * 64u64).div_ceil(4096);
        let reads = stream.statistics().reads;
        assert!(reads <= superblocks + 3 * entries + 2, "{reads} reads");
        stream.close().unwrap();
    });
}

#[test]
fn seed002_s44_writing_in_place_changes_nothing_else() {
    let place = TestPlace::new();
    for (least, size) in [(Mode::Nb, 2), (Mode::Cb, 1), (Mode::Ib, 3)] {
        run(size, |team| {
            let options = StreamOptions::new(Access::Write)
                .at_least(least)
                .ib_block(16);
            let mut stream = open(&place, team, 9, &options);
            let bytes = of_vps(&stream, 0, 60);
            stream.write(&Context::everywhere(), &bytes, 60).unwrap();
            stream.close().unwrap();
        });
        let before = place.bytes("/s").len();
        run(4 - size, |team| {
            let options = StreamOptions::new(Access::Update).at_least(least);
            let mut stream = open(&place, team, 9, &options);
            stream
                .seek(&Context::everywhere(), SeekFrom::Start(10))
                .unwrap();
            let bytes = vec![0xff; 20 * stream.emulation().count()];
            stream.write(&Context::everywhere(), &bytes, 20).unwrap();
            stream.close().unwrap();
        });
        run(2, |team| {
            let mut stream = open(&place, team, 9, &StreamOptions::new(Access::Read));
            let mut expected = of_vps(&stream, 0, 60);
            for of_vp in expected.chunks_exact_mut(60) {
                of_vp[10..30].fill(0xff);
            }
            let mut bytes = vec![0; expected.len()];
            stream.read(&Context::everywhere(), &mut bytes, 60).unwrap();
            assert_eq!(bytes, expected, "{least:?}");
            stream.close().unwrap();
        });
        assert_eq!(
            place.bytes("/s").len(),
            before,
            "{least:?} was not in place"
        );
    }
}

#[test]
fn seed002_s45_any_plain_file_is_one_segment() {
    let place = TestPlace::new();
    let bytes: Vec<u8> = (0..120).collect();
    place.put("/s", &bytes);
    for size in [1, 3] {
        run(size, |team| {
            let mut stream = open(&place, team, 5, &StreamOptions::new(Access::Read));
            for step in 0..3 {
                let mut got = vec![0; 8 * stream.emulation().count()];
                let counts = stream.read(&Context::everywhere(), &mut got, 8).unwrap();
                assert_eq!(counts, Counts::Uniform(8));
                for (local, got) in got.chunks_exact(8).enumerate() {
                    let at = step * 40 + stream.emulation().vp(local) as usize * 8;
                    assert_eq!(got, &bytes[at..at + 8]);
                }
            }
            assert_eq!(stream.statistics().nb, 3);
            stream.close().unwrap();
        });
    }
    // A file that ends within a row is filled up, for collective calls and single VPs alike.
    place.put("/s", &bytes[..100]);
    run(2, |team| {
        let options = StreamOptions::new(Access::Read).nb_block(8).pad(b'#');
        let mut stream = open(&place, team, 5, &options);
        let mut all = Vec::new();
        for _ in 0..3 {
            let mut got = vec![0; 8 * stream.emulation().count()];
            stream.read(&Context::everywhere(), &mut got, 8).unwrap();
            all.push(got);
        }
        for local in 0..stream.emulation().count() {
            let at = 80 + stream.emulation().vp(local) as usize * 8;
            let byte = |i: usize| if i < 100 { bytes[i] } else { b'#' };
            let expected: Vec<u8> = (at..at + 8).map(byte).collect();
            assert_eq!(all[2][local * 8..][..8], expected);
        }
        stream
            .elemental(&Context::everywhere(), |vp| {
                vp.seek(SeekFrom::Start(16))?;
                let mut got = [0; 8];
                vp.read_exact(&mut got)?;
                assert_eq!(got, all[2][vp.local() * 8..][..8]);
                Ok(())
            })
            .unwrap();
        stream.close().unwrap();
    });
}

#[test]
fn seed002_s40_files_with_any_blocks_are_read_under_any_options() {
    let place = TestPlace::new();
    for (cb, ib) in [(8, 8), (32, 16), (100, 48)] {
        run(2, |team| {
            let options = StreamOptions::new(Access::Write)
                .at_least(Mode::Cb)
                .cb_block(cb)
                .ib_block(ib);
            let mut stream = open(&place, team, 7, &options);
            let bytes = of_vps(&stream, 0, 50);
            stream.write(&Context::everywhere(), &bytes, 50).unwrap();
            stream
                .elemental(&Context::everywhere(), |vp| vp.write_all(&[9; 70]))
                .unwrap();
            stream.close().unwrap();
        });
        run(3, |team| {
            let options = StreamOptions::new(Access::Read)
                .cb_block(64)
                .ib_block(8)
                .superblock(4096);
            let mut stream = open(&place, team, 7, &options);
            // One request goes over the end of a segment (statement 38).
            let mut got = vec![0; 120 * stream.emulation().count()];
            let counts = stream.read(&Context::everywhere(), &mut got, 120).unwrap();
            let head = of_vps(&stream, 0, 50);
            for (local, got) in got.chunks_exact(120).enumerate() {
                assert_eq!(counts.of(local), 120);
                assert_eq!(got[..50], head[local * 50..][..50]);
                assert_eq!(got[50..], [9; 70]);
            }
            stream.close().unwrap();
        });
    }
}

#[test]
fn seed002_s25_members_never_write_the_same_superblock() {
    // All members fill independent blocks at the same time, unevenly; every byte comes back.
    let place = TestPlace::new();
    run(4, |team| {
        let options = StreamOptions::new(Access::Write)
            .ib_block(16)
            .superblock(4096)
            .pointers(2);
        let mut stream = open(&place, team, 40, &options);
        stream
            .elemental(&Context::everywhere(), |vp| {
                let n = vp.number() as usize;
                vp.write_all(&vec![n as u8; n * n * 5])
            })
            .unwrap();
        stream.close().unwrap();
    });
    run(3, |team| {
        let mut stream = open(&place, team, 40, &StreamOptions::new(Access::Read));
        stream
            .elemental(&Context::everywhere(), |vp| {
                let n = vp.number() as usize;
                let mut got = Vec::new();
                vp.read_to_end(&mut got)?;
                assert_eq!(got, vec![n as u8; n * n * 5]);
                Ok(())
            })
            .unwrap();
        stream.close().unwrap();
    });
}

#[test]
fn seed002_s27_every_block_is_reached_once() {
    let place = TestPlace::new();
    run(3, |team| {
        let options = StreamOptions::new(Access::Write)
            .ib_block(16)
            .superblock(4096)
            .pointers(2);
        let mut stream = open(&place, team, 30, &options);
        for turn in 0..9 {
            stream
                .elemental(&Context::everywhere(), |vp| {
                    let n = (vp.number() as usize * 7 + turn) % 40;
                    vp.write_all(&vec![turn as u8; n])
                })
                .unwrap();
            stream.flush().unwrap();
        }
        stream.close().unwrap();
    });
    let report = Report::of_file(place.client(), "/s").unwrap();
    assert_eq!(report.findings, [""; 0]);
    // A pointer that leads to another VP's block is found.
    let mut bytes = place.bytes("/s");
    let text = root_text(&place);
    let word = |name: &str| -> u64 {
        let rest = text.split(&format!("{name} ")).last().unwrap();
        rest.split([' ', '\n']).next().unwrap().parse().unwrap()
    };
    let stamp = word("stamp");
    let entry = |vp: u64, bytes: &[u8]| {
        let mark = (stamp ^ vp).to_le_bytes();
        let at = bytes
            .chunks_exact(8)
            .position(|chunk| chunk == mark)
            .unwrap();
        at * 8
    };
    let (one, other) = (entry(5, &bytes), entry(9, &bytes));
    bytes.copy_within(one + 16..one + 24, other + 16);
    let file = client::OpenOptions::new().write();
    let file = place.client().open("/s", &file).unwrap();
    file.write_at(0, &bytes).unwrap();
    file.close().unwrap();
    let report = Report::of_file(place.client(), "/s").unwrap();
    assert!(
        report.findings[0].starts_with("two blocks"),
        "{:?}",
        report.findings
    );
}

#[test]
fn seed002_s49_the_three_rules_give_plain_arrays_and_a_tool_tells() {
    let place = TestPlace::new();
    let modes = |program: &(dyn Fn(&mut Stream) + Sync)| {
        run(2, |team| {
            let mut stream = open(&place, team, 6, &StreamOptions::new(Access::Write));
            program(&mut stream);
            stream.close().unwrap();
        });
        let report = Report::of_file(place.client(), "/s").unwrap();
        let modes: Vec<Mode> = report.parts.iter().map(|part| part.mode).collect();
        assert_eq!(report.is_plain_array(), modes == [Mode::Nb]);
        assert!(
            report
                .parts
                .iter()
                .all(|p| p.mode == Mode::Nb || !p.remedy.is_empty())
        );
        modes
    };
    let write = |stream: &mut Stream, bytes: usize| {
        let memory = of_vps(stream, 0, bytes);
        stream
            .write(&Context::everywhere(), &memory, bytes)
            .unwrap();
    };
    assert_eq!(modes(&|s| (0..3).for_each(|_| write(s, 8))), [Mode::Nb]);
    let two = modes(&|s| [8, 12].into_iter().for_each(|n| write(s, n)));
    assert_eq!(two, [Mode::Nb, Mode::Cb]);
    let masked = modes(&|s| {
        write(s, 8);
        let some = Context::everywhere().narrowed(s.emulation().count(), |vp| vp == 0);
        let memory = of_vps(s, 0, 8);
        s.write(&some, &memory, 8).unwrap();
    });
    assert_eq!(masked, [Mode::Nb, Mode::Ib]);
}
