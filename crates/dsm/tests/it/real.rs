//! Real memory: members of a team in threads of this process, each with mappings of its own, under every protocol and every way to notice accesses.
//!
//! What this machine does not offer (userfaultfd) is skipped with its reason.

use std::time::Duration;

use client::Team;
use dsm::simulation::{Operation, Program, Shape, World};
use dsm::{
    Address, Backing, Epoch, Error, Heap, Options, Protocol, Setting, SharedMemory, Trouble,
};
use random::Random;

const PROTOCOLS: [Protocol; 3] = [
    Protocol::HomeBased,
    Protocol::Homeless,
    Protocol::Sequential,
];

fn backings() -> Vec<Backing> {
    let mut all = vec![Backing::Protection, Backing::Software];
    let options = Options {
        backing: Some(Backing::Userfault),
        address: Address::Any,
        ..Options::new(4096)
    };
    match SharedMemory::start(Team::threads(1).remove(0), &options) {
        Ok(_) => all.push(Backing::Userfault),
        Err(error) => testkit::skipped(&format!("userfaultfd: {error}")),
    }
    all
}

/// Runs a program at so many members.
fn run<R: Send>(
    count: usize,
    options: &Options,
    program: impl Fn(&SharedMemory, Epoch) -> (Epoch, R) + Sync,
) -> Vec<R> {
    let options = Options {
        address: Address::Any,
        ..options.clone()
    };
    std::thread::scope(|scope| {
        let members: Vec<_> = Team::threads(count)
            .into_iter()
            .map(|team| {
                let (options, program) = (&options, &program);
                scope.spawn(move || {
                    let (memory, epoch) =
                        SharedMemory::start(team, options).expect("a shared memory");
                    let (epoch, result) = program(&memory, epoch);
                    memory.exit(epoch).expect("all leave");
                    result
                })
            })
            .collect();
        members
            .into_iter()
            .map(|member| member.join().expect("a member"))
            .collect()
    })
}

fn everywhere(bytes: usize, each: impl Fn(&Options)) {
    for backing in backings() {
        for protocol in PROTOCOLS {
            each(&Options {
                backing: Some(backing),
                protocol,
                ..Options::new(bytes)
            });
        }
    }
}

#[test]
fn seed003_dsm03_real_pages_merge_neighbouring_bytes() {
    everywhere(3 * 4096, |options| {
        run(3, options, |memory, mut epoch| {
            let bytes = memory.array::<u8>(3 * 4096).expect("room");
            let me = memory.rank();
            for round in 0..3 {
                let view = memory.view(&epoch, bytes);
                for at in (me..bytes.len()).step_by(3 * 41) {
                    view.set(at, (at + round) as u8);
                }
                epoch = memory.barrier(round as u32, epoch).expect("a barrier");
                let view = memory.view(&epoch, bytes);
                for at in (0..3).flat_map(|other| (other..bytes.len()).step_by(3 * 41)) {
                    assert_eq!(view.get(at), (at + round) as u8, "{options:?}");
                }
                epoch = memory.barrier(10, epoch).expect("a barrier");
            }
            (epoch, ())
        });
    });
}

#[test]
fn seed003_dsm10_no_addition_under_a_lock_is_lost() {
    everywhere(4096, |options| {
        let sums = run(4, options, |memory, mut epoch| {
            let numbers = memory.array::<u64>(8).expect("room");
            for _ in 0..25 {
                let guard = memory.lock(1, &mut epoch).expect("a lock");
                let view = memory.view(&guard, numbers);
                view.set(3, view.get(3) + 1);
            }
            epoch = memory.barrier(0, epoch).expect("a barrier");
            let sum = memory.view(&epoch, numbers).get(3);
            (epoch, sum)
        });
        assert_eq!(sums, [100; 4], "{options:?}");
    });
}

/// One member's part of a random program; what its last loads saw.
fn perform(
    memory: &SharedMemory,
    mut epoch: Epoch,
    operations: &[Operation],
    bytes: usize,
) -> (Epoch, Vec<u8>) {
    let array = memory.array::<u8>(bytes).expect("room");
    let mut kept = 0;
    let mut seen = Vec::new();
    let mut operations = operations.iter();
    while let Some(operation) = operations.next() {
        match *operation {
            Operation::Acquire { lock } => {
                let guard = memory.lock(lock, &mut epoch).expect("a lock");
                let view = memory.view(&guard, array);
                for operation in operations.by_ref() {
                    if matches!(operation, Operation::Release { .. }) {
                        break;
                    }
                    access(&view, operation, &mut kept);
                }
            }
            Operation::Barrier { id } => {
                epoch = memory.barrier(id, epoch).expect("a barrier");
                seen.clear();
            }
            Operation::SetHome { .. } | Operation::Release { .. } => {}
            Operation::Load { at } => {
                kept = memory.view(&epoch, array).get(at);
                seen.push(kept);
            }
            ref operation => access(&memory.view(&epoch, array), operation, &mut kept),
        }
        if seen.len() == bytes {
            break;
        }
    }
    epoch = memory.barrier(99, epoch).expect("a barrier");
    (epoch, seen)
}

fn access(view: &dsm::View<'_, u8>, operation: &Operation, kept: &mut u8) {
    match *operation {
        Operation::Store { at, value } => view.set(at, value),
        Operation::Add { at, value } => view.set(at, view.get(at).wrapping_add(value)),
        Operation::Load { at } => *kept = view.get(at),
        Operation::LoadIf { expected, at } if *kept == expected => *kept = view.get(at),
        Operation::StoreIf { expected, at } if *kept == expected => view.set(at, *kept),
        _ => {}
    }
}

#[test]
fn seed003_dsm01_real_memory_ends_as_simulated_memory() {
    let shape = Shape {
        processes: 3,
        threads: 1,
        pages: 3,
        page_bytes: 4096,
        locks: 2,
        phases: 3,
        actions: 12,
    };
    for seed in 0..4 {
        let mut random = Random::of_run(seed);
        let program = Program::drawn(shape.clone(), &mut random);
        let simulated = World::new(program.clone(), &Setting::new(1, 1), random)
            .run()
            .expect("a right run");
        everywhere(shape.bytes(), |options| {
            let seen = run(3, options, |memory, epoch| {
                perform(
                    memory,
                    epoch,
                    &program.threads[memory.rank()],
                    shape.bytes(),
                )
            });
            for mut seen in seen {
                let mut expected = simulated.memory.clone();
                for flag in &program.flags {
                    (seen[*flag], expected[*flag]) = (0, 0);
                }
                assert!(seen == expected, "seed {seed}, {options:?}");
            }
        });
    }
}

#[test]
fn seed003_dsm05_a_thread_stores_while_intervals_end() {
    everywhere(4096, |options| {
        let last = run(2, options, |memory, mut epoch| {
            let words = memory.array::<u64>(64).expect("room");
            if memory.rank() == 0 {
                std::thread::scope(|scope| {
                    scope.spawn(|| {
                        let epoch = memory.epoch_of_thread();
                        let view = memory.view(&epoch, words);
                        for value in 0..2000 {
                            view.set(9, value + 1);
                            assert_eq!(view.get(9), value + 1, "{options:?}");
                        }
                    });
                    lock_often(memory, &mut epoch, words);
                });
            } else {
                lock_often(memory, &mut epoch, words);
            }
            epoch = memory.barrier(0, epoch).expect("a barrier");
            let view = memory.view(&epoch, words);
            let last = (view.get(9), view.get(0));
            (epoch, last)
        });
        assert_eq!(last, [(2000, 60); 2], "{options:?}");
    });
}

fn lock_often(memory: &SharedMemory, epoch: &mut Epoch, words: dsm::SharedArray<u64>) {
    for _ in 0..30 {
        let guard = memory.lock(0, epoch).expect("a lock");
        let view = memory.view(&guard, words);
        view.set(0, view.get(0) + 1);
    }
}

#[test]
fn seed003_dsm14_threads_that_miss_one_page_fetch_it_once() {
    everywhere(2 * 4096, |options| {
        let fetches = run(2, options, |memory, epoch| {
            let words = memory.array::<u64>(1024).expect("room");
            if memory.rank() == 0 {
                memory.view(&epoch, words).set(5, 55);
            }
            let epoch = memory.barrier(0, epoch).expect("a barrier");
            let before = memory.statistics().fetches;
            if memory.rank() == 1 {
                std::thread::scope(|scope| {
                    for _ in 0..4 {
                        scope.spawn(|| {
                            let epoch = memory.epoch_of_thread();
                            assert_eq!(memory.view(&epoch, words).get(5), 55);
                        });
                    }
                });
            }
            let has_written = memory.rank() == 0;
            if cfg!(target_arch = "x86_64") {
                assert_eq!(memory.accesses(words)[0].1 != 0, has_written, "{options:?}");
            }
            let fetches = memory.statistics().fetches - before;
            (memory.barrier(1, epoch).expect("a barrier"), fetches)
        });
        assert_eq!(fetches[1], 1, "{options:?}");
    });
}

#[test]
fn locks_are_tried_and_given_up() {
    let options = Options {
        backing: Some(Backing::Software),
        ..Options::new(4096)
    };
    run(2, &options, |memory, mut epoch| {
        // Another thread's epoch comes to the barriers while the lock is held.
        let barrier = |id, epoch| memory.barrier(id, epoch).expect("a barrier");
        if memory.rank() == 0 {
            let guard = memory.lock(0, &mut epoch).expect("a lock");
            let other = barrier(0, memory.epoch_of_thread());
            barrier(1, other);
            drop(guard);
        } else {
            let mut other = barrier(0, epoch);
            assert!(memory.try_lock(0, &mut other).is_none());
            let is_late = matches!(
                memory.lock_for(0, &mut other, Duration::from_millis(5)),
                Err(Error::TimedOut { lock: 0, .. })
            );
            assert!(is_late);
            epoch = barrier(1, other);
            drop(
                memory
                    .lock_for(0, &mut epoch, Duration::from_secs(60))
                    .expect("a lock that was let go"),
            );
        }
        (epoch, ())
    });
}

#[test]
fn seed003_dsm11_members_at_different_barriers_get_an_error() {
    let options = Options {
        backing: Some(Backing::Software),
        address: Address::Any,
        ..Options::new(4096)
    };
    std::thread::scope(|scope| {
        for team in Team::threads(2) {
            let options = &options;
            scope.spawn(move || {
                let (memory, epoch) = SharedMemory::start(team, options).expect("a shared memory");
                let outcome = memory.barrier(memory.rank() as u32, epoch);
                assert!(
                    matches!(
                        outcome,
                        Err(Error::Trouble(Trouble::BarriersDiffer { process: 1 }))
                    ),
                    "{outcome:?}"
                );
                // Both stay until both were told.
                assert!(memory.statistics().barriers == 0);
            });
        }
    });
}

#[test]
fn seed003_dsm22_a_member_that_leaves_early_is_noticed() {
    let options = Options {
        backing: Some(Backing::Software),
        address: Address::Any,
        ..Options::new(4096)
    };
    std::thread::scope(|scope| {
        for team in Team::threads(2) {
            let options = &options;
            scope.spawn(move || {
                let (memory, epoch) = SharedMemory::start(team, options).expect("a shared memory");
                if memory.rank() == 0 {
                    let text = memory
                        .barrier(0, epoch)
                        .expect_err("a member is gone")
                        .to_string();
                    assert!(
                        text.contains("rank 1") || text.contains("process 1 of"),
                        "{text}"
                    );
                }
            });
        }
    });
}

#[test]
fn arrays_have_bounds() {
    let options = Options {
        backing: Some(Backing::Software),
        ..Options::new(4096)
    };
    run(1, &options, |memory, epoch| {
        assert!(matches!(
            memory.array::<u64>(513),
            Err(Error::Full {
                bytes: 4104,
                left: 4096
            })
        ));
        let array = memory.array::<f64>(512).expect("room");
        let outside = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            memory.view(&epoch, array).get(512)
        }));
        assert!(outside.is_err());
        memory.view(&epoch, array).copy_from(510, &[1.5, -2.5]);
        let mut two = [0.0; 2];
        memory.view(&epoch, array).copy_to(510, &mut two);
        assert_eq!(two, [1.5, -2.5]);
        (epoch, ())
    });
}

#[test]
fn any_process_allocates_memory_of_its_own_and_what_is_freed_is_used_again() {
    let pages = 80;
    let options = Options::new(Heap::bytes_for(pages * 4096));
    run(3, &options, |memory, mut epoch| {
        let heap = Heap::new(memory, pages * 4096).expect("room");
        let me = memory.rank() as u64;
        let mut random = Random::new(me + 1);
        let mut mine = Vec::new();
        for round in 0..12 {
            let bytes = random.index(3 * 4096);
            let array = heap.allocate(memory, bytes, &mut epoch).expect("room");
            assert_eq!(array.bytes(), bytes);
            let view = memory.view(&epoch, array);
            for at in 0..bytes {
                view.set(at, (me * 50 + round) as u8);
            }
            mine.push((array, (me * 50 + round) as u8));
            if mine.len() > 3 {
                let (array, _) = mine.remove(random.index(3));
                assert!(heap.free(memory, array.start(), &mut epoch).expect("freed"));
            }
        }
        epoch = memory.barrier(0, epoch).expect("a barrier");
        for (array, value) in &mine {
            let view = memory.view(&epoch, *array);
            assert!((0..array.bytes()).all(|at| view.get(at) == *value));
        }
        // Of an allocation the rest, from any place on; of none nothing.
        let (array, _) = mine[0];
        let rest = heap.at(memory, array.start() + array.bytes() / 2, &mut epoch);
        let len = array.bytes().div_ceil(2);
        assert_eq!(rest.expect("asked").map_or(0, |rest| rest.bytes()), len);
        let beside = heap.at(memory, array.start() + array.bytes(), &mut epoch);
        assert!(beside.expect("asked").is_none());
        for (array, _) in mine {
            assert!(heap.free(memory, array.start(), &mut epoch).expect("freed"));
        }
        epoch = memory.barrier(1, epoch).expect("a barrier");
        if me == 2 {
            let all = heap
                .allocate(memory, pages * 4096, &mut epoch)
                .expect("all of it");
            let error = heap.allocate(memory, 1, &mut epoch).expect_err("no room");
            assert!(
                matches!(error, Error::Full { bytes: 1, left: 0 }),
                "{error}"
            );
            assert!(
                !heap
                    .free(memory, all.start() + 4096, &mut epoch)
                    .expect("asked")
            );
            assert!(!heap.free(memory, 0, &mut epoch).expect("asked"));
            for is_there in [true, false] {
                let freed = heap.free(memory, all.start(), &mut epoch);
                assert_eq!(freed.expect("asked"), is_there);
            }
        }
        epoch = memory.barrier(2, epoch).expect("a barrier");
        (epoch, ())
    });
}
