//! Reading and writing whole files, of every size and distribution, by teams of several sizes.
//!
//! What comes and goes is compared with what other faces of the service see.

use dsm::{PAGE_BYTES, SharedMemory};
use pio::{OpenMode, Pfd, PioOptions};

use crate::members::{connect, get, pattern, put, run};

const PAGE: usize = PAGE_BYTES;

fn options() -> PioOptions {
    PioOptions {
        is_synced: false,
        ..PioOptions::default()
    }
}

/// Sends of a kind by all, so far.
fn sent(memory: &SharedMemory, kind: &str) -> u64 {
    memory.statistics().messages_of(kind)
}

#[test]
fn seed003_pio03_blocks_lie_in_order_whatever_the_distribution() {
    let dir = testkit::TempDir::new();
    let clients: Vec<_> = (0..3).map(|_| connect(dir.path(), 3)).collect();
    let bytes = pattern(9 * PAGE + 100);
    let layouts = [
        "blocks(4KiB: 0,1,2,2,0,0,1,0,0,2)",
        "striped(4KiB) over 3",
        "striped(6000) over 2",
        "striped(1MiB) over 1",
    ];
    for (number, layout) in layouts.iter().enumerate() {
        put(&clients[0], &format!("/{number}"), Some(layout), &bytes);
    }
    let seen = run(&clients, &options(), 16, |memory, pio, mut epoch| {
        let target = memory.array::<u8>(bytes.len()).expect("room");
        let mut seen = Vec::new();
        for number in 0..layouts.len() {
            if memory.rank() == number % 3 {
                // Not only the first process may call.
                let file = pio.open(&format!("/{number}"), OpenMode::Read, &mut epoch);
                let file = file.expect("it is open");
                let read = pio.read(file, target, u64::MAX, &mut epoch).expect("read");
                assert_eq!(read, bytes.len() as u64);
                pio.close(file, &mut epoch).expect("it is closed");
            }
            epoch = memory.barrier(0, epoch).expect("a barrier");
            let mut all = vec![0; bytes.len()];
            memory.view(&epoch, target).copy_to(0, &mut all);
            seen.push(all == bytes);
            epoch = memory.barrier(1, epoch).expect("a barrier");
        }
        (epoch, seen)
    });
    assert_eq!(seen, [[true; 4]; 3]);
}

#[test]
fn seed003_pio04_reading_sends_no_byte_of_the_file_and_two_messages_to_every_other() {
    let dir = testkit::TempDir::new();
    let clients: Vec<_> = (0..4).map(|_| connect(dir.path(), 2)).collect();
    let bytes = pattern(12 * PAGE);
    put(&clients[0], "/a", None, &bytes);
    let counts = run(&clients, &options(), 16, |memory, pio, mut epoch| {
        let target = memory.array::<u8>(bytes.len()).expect("room");
        let mut calls = Vec::new();
        epoch = memory.barrier(0, epoch).expect("a barrier");
        let mut file = Pfd(0);
        for call in 0..3 {
            let before = memory.statistics();
            epoch = memory.barrier(1, epoch).expect("a barrier");
            if memory.rank() == 0 {
                match call {
                    0 => file = pio.open("/a", OpenMode::Read, &mut epoch).expect("open"),
                    1 => {
                        let read = pio.read(file, target, 1 << 20, &mut epoch);
                        assert_eq!(read.expect("read"), bytes.len() as u64);
                    }
                    _ => pio.close(file, &mut epoch).expect("closed"),
                }
            }
            epoch = memory.barrier(2, epoch).expect("a barrier");
            let after = memory.statistics();
            let count = |kind| after.messages_of(kind) - before.messages_of(kind);
            calls.push((
                count("Post"),
                count("PageReply") + count("Flush") + count("Data"),
                after.all_messages()
                    - before.all_messages()
                    - count("Post")
                    - count("BarrierArrive")
                    - count("BarrierDepart"),
            ));
        }
        // Now, when all have counted, the bytes travel, to who wants them and has them not.
        epoch = memory.barrier(4, epoch).expect("a barrier");
        let mut all = vec![0; bytes.len()];
        memory.view(&epoch, target).copy_to(0, &mut all);
        assert_eq!(all, bytes);
        epoch = memory.barrier(3, epoch).expect("a barrier");
        (epoch, (calls, sent(memory, "PageReply")))
    });
    for call in 0..3 {
        let sum = |of: fn(&(u64, u64, u64)) -> u64| -> u64 {
            counts.iter().map(|(calls, _)| of(&calls[call])).sum()
        };
        assert_eq!(sum(|c| c.0), 2 * 3, "questions and answers of call {call}");
        assert_eq!(sum(|c| c.1), 0, "messages with bytes of call {call}");
        assert_eq!(sum(|c| c.2), 0, "other messages of call {call}");
    }
    let replies: u64 = counts.iter().map(|(_, replies)| replies).sum();
    assert_eq!(replies, 12 * 3, "each page from its home to three others");
}

#[test]
fn seed003_pio06_files_of_all_sizes_come_and_go_for_any_number_of_processes() {
    let dir = testkit::TempDir::new();
    let all_clients: Vec<_> = (0..5).map(|_| connect(dir.path(), 3)).collect();
    let sizes = [0, 1, PAGE - 1, PAGE, PAGE + 1, 7 * PAGE - 3, 300 * PAGE + 5];
    for size in sizes {
        put(
            &all_clients[0],
            &format!("/in-{size}"),
            None,
            &pattern(size),
        );
    }
    for processes in [1, 2, 5] {
        run(
            &all_clients[..processes],
            &options(),
            310,
            |memory, pio, mut epoch| {
                let target = memory.array::<u8>(301 * PAGE).expect("room");
                for size in sizes {
                    if memory.rank() == 0 {
                        let from = format!("/in-{size}");
                        let file = pio.open(&from, OpenMode::Read, &mut epoch).expect("open");
                        let read = pio.read(file, target, 1 << 30, &mut epoch).expect("read");
                        assert_eq!(read, size as u64);
                        pio.close(file, &mut epoch).expect("closed");
                        let to = format!("/out-{processes}-{size}");
                        let file = pio.open(&to, OpenMode::Create, &mut epoch).expect("open");
                        let written = pio.write(file, target, size as u64, &mut epoch);
                        assert_eq!(written.expect("written"), size as u64);
                        pio.close(file, &mut epoch).expect("closed");
                    }
                    epoch = memory.barrier(0, epoch).expect("a barrier");
                }
                (epoch, ())
            },
        );
        for size in sizes {
            let out = get(&all_clients[0], &format!("/out-{processes}-{size}"));
            assert!(out == pattern(size), "{size} bytes by {processes}");
        }
    }
}

#[test]
fn seed003_pio07_what_lies_behind_the_file_in_its_last_page_stays() {
    let dir = testkit::TempDir::new();
    let clients: Vec<_> = (0..3).map(|_| connect(dir.path(), 3)).collect();
    put(&clients[0], "/a", None, &pattern(2 * PAGE + 100));
    run(&clients, &options(), 8, |memory, pio, mut epoch| {
        let target = memory.array::<u8>(4 * PAGE).expect("room");
        let view = memory.view(&epoch, target);
        for at in (memory.rank()..4 * PAGE).step_by(3) {
            view.set(at, 0xee);
        }
        epoch = memory.barrier(0, epoch).expect("a barrier");
        if memory.rank() == 1 {
            let file = pio.open("/a", OpenMode::Read, &mut epoch).expect("open");
            // Fewer bytes than the file has, then all.
            for wanted in [PAGE + 10, 3 * PAGE] {
                let read = pio.read(file, target, wanted as u64, &mut epoch);
                let read = read.expect("read") as usize;
                assert_eq!(read, wanted.min(2 * PAGE + 100));
                let mut all = vec![0; 4 * PAGE];
                memory.view(&epoch, target).copy_to(0, &mut all);
                assert!(all[..read] == pattern(read));
                assert!(all[read..].iter().all(|byte| *byte == 0xee));
            }
            pio.close(file, &mut epoch).expect("closed");
        }
        epoch = memory.barrier(1, epoch).expect("a barrier");
        let mut all = vec![0; 4 * PAGE];
        memory.view(&epoch, target).copy_to(0, &mut all);
        assert!(all[..2 * PAGE + 100] == pattern(2 * PAGE + 100));
        assert!(all[2 * PAGE + 100..].iter().all(|byte| *byte == 0xee));
        epoch = memory.barrier(2, epoch).expect("a barrier");
        (epoch, ())
    });
}

#[test]
fn seed003_pio08_every_page_is_written_once_whoever_wrote_or_read_it() {
    let dir = testkit::TempDir::new();
    let clients: Vec<_> = (0..4).map(|_| connect(dir.path(), 2)).collect();
    const PAGES: usize = 12;
    run(&clients, &options(), 16, |memory, pio, mut epoch| {
        let array = memory.array::<u8>(PAGES * PAGE).expect("room");
        let (me, all) = (memory.rank(), memory.size());
        for round in 1..4u8 {
            let view = memory.view(&epoch, array);
            // Pages 0 to 3 by all, 4 to 7 by one each, 8 and 9 read by all, the rest by nobody.
            for page in 0..4 {
                for at in (me..PAGE).step_by(all) {
                    view.set(page * PAGE + at, round * 10 + me as u8);
                }
            }
            view.set((4 + me) * PAGE, round);
            let sum: u64 = (8 * PAGE..10 * PAGE)
                .map(|at| u64::from(view.get(at)))
                .sum();
            assert_eq!(sum, 0);
            epoch = memory.barrier(0, epoch).expect("a barrier");
            // The flushes of the others may still be under way when this one writes.
            let caller = usize::from(round) % all;
            if me == caller {
                let file = pio
                    .open("/out", OpenMode::Replace, &mut epoch)
                    .expect("open");
                let written = pio.write(file, array, (PAGES * PAGE) as u64, &mut epoch);
                assert_eq!(written.expect("written"), (PAGES * PAGE) as u64);
                pio.close(file, &mut epoch).expect("closed");
                let out = get(&clients[me], "/out");
                let byte = |at: usize| match at / PAGE {
                    0..4 => round * 10 + (at % PAGE % all) as u8,
                    4..8 if at.is_multiple_of(PAGE) => round,
                    _ => 0,
                };
                assert!(out.len() == PAGES * PAGE);
                for (at, found) in out.iter().enumerate() {
                    assert_eq!(*found, byte(at), "byte {at} of round {round}");
                }
            }
            epoch = memory.barrier(1, epoch).expect("a barrier");
        }
        (epoch, ())
    });
}

#[test]
fn seed003_pio08_what_was_written_under_a_lock_is_in_the_file_without_a_barrier() {
    let dir = testkit::TempDir::new();
    let clients: Vec<_> = (0..3).map(|_| connect(dir.path(), 1)).collect();
    run(&clients, &options(), 16, |memory, pio, mut epoch| {
        let counters = memory.array::<u64>(6 * 512).expect("room");
        epoch = memory.barrier(0, epoch).expect("a barrier");
        loop {
            let mut guard = memory.lock(3, &mut epoch).expect("a lock");
            let view = memory.view(&guard, counters);
            let count = view.get(0);
            if count == 60 {
                break;
            }
            view.set(0, count + 1);
            // A page of its own for each, and one for all.
            view.set((1 + count as usize % 5) * 512, count + 1);
            if count == 59 {
                let file = pio.open("/n", OpenMode::Replace, &mut guard).expect("open");
                let bytes = counters.bytes() as u64;
                assert_eq!(
                    pio.write(file, counters, bytes, &mut guard)
                        .expect("written"),
                    bytes
                );
                pio.close(file, &mut guard).expect("closed");
            }
        }
        epoch = memory.barrier(1, epoch).expect("a barrier");
        (epoch, ())
    });
    let out = get(&clients[0], "/n");
    let word = |at: usize| u64::from_le_bytes(out[at * 8..][..8].try_into().expect("8 bytes"));
    assert_eq!(word(0), 60);
    for page in 0..5 {
        assert_eq!(word((1 + page) * 512), 56 + page as u64);
    }
}

#[test]
fn seed003_pio09_the_layout_of_what_is_written_names_the_homes() {
    let dir = testkit::TempDir::new();
    let clients: Vec<_> = (0..3).map(|_| connect(dir.path(), 3)).collect();
    let homes = run(&clients, &options(), 16, |memory, pio, mut epoch| {
        let array = memory.array::<u8>(7 * PAGE).expect("room");
        // Figure 2 of the source: blocks 0, 4, 5 at process 0, 1 and 6 at process 1, 2 and 3 at process 2.
        if memory.rank() == 0 {
            for (page, home) in [0, 1, 2, 2, 0, 0, 1].into_iter().enumerate() {
                memory.set_home(array, page * PAGE..(page + 1) * PAGE, home);
            }
        }
        epoch = memory.barrier(0, epoch).expect("a barrier");
        let view = memory.view(&epoch, array);
        for at in (memory.rank()..7 * PAGE).step_by(3) {
            view.set(at, pattern(7 * PAGE)[at]);
        }
        epoch = memory.barrier(1, epoch).expect("a barrier");
        if memory.rank() == 0 {
            let file = pio.open("/f", OpenMode::Create, &mut epoch).expect("open");
            pio.write(file, array, (7 * PAGE) as u64, &mut epoch)
                .expect("written");
            pio.close(file, &mut epoch).expect("closed");
        }
        epoch = memory.barrier(2, epoch).expect("a barrier");
        (epoch, memory.pages().homes(array.first_page(), 7))
    });
    assert_eq!(homes[0], homes[2]);
    assert!(get(&clients[0], "/f") == pattern(7 * PAGE));
    let state = clients[0].layout("/f").expect("a layout").state;
    let owner = |block: u64| {
        state.pieces[0]
            .partition
            .owner(layout::FileOffset(block * 4096))
    };
    let owners: Vec<usize> = (0..7)
        .map(|block| owner(block).expect("a block").0)
        .collect();
    assert_eq!(owners, [0, 1, 2, 2, 0, 0, 1]);
    let headers: Vec<Vec<u64>> = pio::portions_of_owners(&owners, 3)
        .iter()
        .map(pio::Portion::header)
        .collect();
    assert_eq!(
        headers,
        [vec![7, 3, 0, 4, 5], vec![7, 2, 1, 6], vec![7, 2, 2, 3]]
    );
}

#[test]
fn seed003_pio24_what_some_processes_write_others_read() {
    let dir = testkit::TempDir::new();
    let clients: Vec<_> = (0..5).map(|_| connect(dir.path(), 4)).collect();
    let bytes = pattern(20 * PAGE + 9);
    put(&clients[0], "/0", None, &bytes);
    for (step, processes) in [4, 2, 5, 1].into_iter().enumerate() {
        run(
            &clients[..processes],
            &options(),
            32,
            |memory, pio, mut epoch| {
                let array = memory.array::<u8>(bytes.len()).expect("room");
                if memory.rank() == 0 {
                    let from = format!("/{step}");
                    let file = pio.open(&from, OpenMode::Read, &mut epoch).expect("open");
                    let all = bytes.len() as u64;
                    assert_eq!(pio.read(file, array, all, &mut epoch).expect("read"), all);
                    pio.close(file, &mut epoch).expect("closed");
                    let to = format!("/{}", step + 1);
                    let file = pio.open(&to, OpenMode::Create, &mut epoch).expect("open");
                    assert_eq!(
                        pio.write(file, array, all, &mut epoch).expect("written"),
                        all
                    );
                    pio.close(file, &mut epoch).expect("closed");
                }
                epoch = memory.barrier(0, epoch).expect("a barrier");
                (epoch, ())
            },
        );
        assert!(
            get(&clients[0], &format!("/{}", step + 1)) == bytes,
            "by {processes}"
        );
    }
}

#[test]
fn who_reads_need_not_be_who_opened() {
    let dir = testkit::TempDir::new();
    let clients: Vec<_> = (0..3).map(|_| connect(dir.path(), 3)).collect();
    let layout = Some("blocks(4KiB: 0,1,2,2,0,0,1)");
    put(&clients[0], "/a", layout, &pattern(7 * PAGE));
    let homes = run(&clients, &options(), 16, |memory, pio, mut epoch| {
        let array = memory.array::<u8>(7 * PAGE).expect("room");
        let mut all = Vec::new();
        for reader in [0, 1, 2] {
            if memory.rank() == 0 {
                pio.open("/a", OpenMode::Read, &mut epoch).expect("open");
            }
            epoch = memory.barrier(0, epoch).expect("a barrier");
            if memory.rank() == reader {
                let read = pio.read(Pfd(0), array, u64::MAX, &mut epoch).expect("read");
                assert_eq!(read, 7 * PAGE as u64);
            }
            epoch = memory.barrier(1, epoch).expect("a barrier");
            all.push(memory.pages().homes(array.first_page(), 7));
            let mut contents = vec![0; 7 * PAGE];
            memory.view(&epoch, array).copy_to(0, &mut contents);
            assert!(contents == pattern(7 * PAGE));
            epoch = memory.barrier(2, epoch).expect("a barrier");
            if memory.rank() == 2 {
                pio.close(Pfd(0), &mut epoch).expect("closed");
            }
            epoch = memory.barrier(3, epoch).expect("a barrier");
        }
        (epoch, all)
    });
    for seen in &homes {
        assert!(seen.iter().all(|runs| *runs == homes[0][0]), "{homes:?}");
    }
    // A process for each server, so each process has what lies at one.
    let of_one: Vec<u16> = homes[0][0].iter().map(|(_, home)| *home).collect();
    assert_eq!(
        (of_one.len(), of_one[0], of_one[1]),
        (5, of_one[3], of_one[4])
    );
}
