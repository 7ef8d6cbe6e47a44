//! Programs without data races, drawn from a seed.
//!
//! Time is cut into phases by barriers. In each, every byte belongs to one thread, to a lock, or to nobody and may then be read by all. Neighbouring bytes belong to
//! different threads, so nearly every page is falsely shared. Threads also hand bytes to each other by flags under locks, directly and through a third.

use random::Random;

/// What a simulated thread does next. A place is a byte of the shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Stores a byte.
    Store {
        /// Where.
        at: usize,
        /// What.
        value: u8,
    },
    /// Loads a byte, compares it, and keeps it.
    Load {
        /// Where.
        at: usize,
    },
    /// Adds to a byte.
    Add {
        /// Where.
        at: usize,
        /// How much.
        value: u8,
    },
    /// Loads a byte if what was kept last is as expected.
    LoadIf {
        /// What is expected.
        expected: u8,
        /// Where.
        at: usize,
    },
    /// Stores what was kept last if it is as expected.
    StoreIf {
        /// What is expected.
        expected: u8,
        /// Where.
        at: usize,
    },
    /// Waits for a lock.
    Acquire {
        /// Which.
        lock: u32,
    },
    /// Lets it go.
    Release {
        /// Which.
        lock: u32,
    },
    /// Gives pages another home with the next barrier.
    SetHome {
        /// The page.
        page: u32,
        /// Its home.
        to: u16,
    },
    /// Waits for all.
    Barrier {
        /// Which.
        id: u32,
    },
}

/// How big a program is.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Processes.
    pub processes: u16,
    /// Threads of each.
    pub threads: usize,
    /// Pages of the memory.
    pub pages: usize,
    /// Bytes of a page.
    pub page_bytes: usize,
    /// Locks.
    pub locks: usize,
    /// Phases between barriers.
    pub phases: usize,
    /// Actions of a thread in a phase.
    pub actions: usize,
}

impl Shape {
    /// A small one.
    pub fn drawn(random: &mut Random) -> Shape {
        Shape {
            processes: 1 + random.below(5) as u16,
            threads: 1 + random.index(2),
            pages: 1 + random.index(5),
            page_bytes: 24 + 8 * random.index(4),
            locks: random.index(4),
            phases: 1 + random.index(4),
            actions: 2 + random.index(12),
        }
    }

    /// Bytes of the memory.
    pub fn bytes(&self) -> usize {
        self.pages * self.page_bytes
    }
}

/// What every thread does: those of process 0 first.
#[derive(Clone, Debug)]
pub struct Program {
    /// How big it is.
    pub shape: Shape,
    /// Operations by thread.
    pub threads: Vec<Vec<Operation>>,
    /// Bytes whose last value depends on the order of threads.
    pub flags: Vec<usize>,
}

impl Program {
    /// Draws one.
    pub fn drawn(shape: Shape, random: &mut Random) -> Program {
        let count = usize::from(shape.processes) * shape.threads;
        let mut threads = vec![Vec::new(); count];
        let mut places: Vec<usize> = (0..shape.bytes()).collect();
        random.shuffle(&mut places);
        // Each lock has bytes that are added to under it, and a flag.
        let of_lock: Vec<Vec<usize>> = (0..shape.locks)
            .map(|_| places.split_off(places.len() - 3))
            .collect();
        let flags: Vec<usize> = (0..shape.locks)
            .map(|_| places.pop().expect("a memory has room for flags"))
            .collect();
        for phase in 0..shape.phases {
            random.shuffle(&mut places);
            let common = places.len() / 4;
            let part = (places.len() - common) / count;
            for (thread, operations) in threads.iter_mut().enumerate() {
                let own = &places[common + thread * part..][..part];
                for _ in 0..shape.actions {
                    draw_action(operations, random, own, &places[..common], &of_lock);
                }
                if random.below(4) == 0 {
                    let page = random.below(shape.pages as u64) as u32;
                    let to = random.below(u64::from(shape.processes)) as u16;
                    operations.push(Operation::SetHome { page, to });
                }
            }
            // A byte goes from one thread to another by a flag, and to a third by another flag.
            if shape.locks >= 2 && count >= 2 && part >= 2 {
                hand_over(
                    &mut threads,
                    random,
                    &places,
                    common,
                    part,
                    &flags,
                    phase as u8 + 1,
                );
            }
            for operations in &mut threads {
                operations.push(Operation::Barrier { id: phase as u32 });
            }
        }
        for thread in (0..count).step_by(shape.threads) {
            threads[thread].extend((0..shape.bytes()).map(|at| Operation::Load { at }));
        }
        for operations in &mut threads {
            operations.push(Operation::Barrier { id: 99 });
        }
        Program {
            shape,
            threads,
            flags,
        }
    }
}

fn draw_action(
    operations: &mut Vec<Operation>,
    random: &mut Random,
    own: &[usize],
    common: &[usize],
    of_lock: &[Vec<usize>],
) {
    match random.below(8) {
        0..=3 if own.len() > 1 => {
            // The first byte is kept for handing over.
            let at = *random.pick(&own[1..]);
            operations.push(Operation::Store {
                at,
                value: random.draw() as u8,
            });
        }
        4 if own.len() > 1 => operations.push(Operation::Load {
            at: *random.pick(&own[1..]),
        }),
        5 if !common.is_empty() => operations.push(Operation::Load {
            at: *random.pick(common),
        }),
        _ if !of_lock.is_empty() => {
            let lock = random.index(of_lock.len());
            operations.push(Operation::Acquire { lock: lock as u32 });
            for _ in 0..1 + random.index(3) {
                let at = *random.pick(&of_lock[lock]);
                operations.push(Operation::Add {
                    at,
                    value: random.draw() as u8,
                });
            }
            operations.push(Operation::Release { lock: lock as u32 });
        }
        _ => {}
    }
}

fn hand_over(
    threads: &mut [Vec<Operation>],
    random: &mut Random,
    places: &[usize],
    common: usize,
    part: usize,
    flags: &[usize],
    value: u8,
) {
    let maker = random.index(threads.len());
    let at = places[common + maker * part];
    let locked = |operations: &mut Vec<Operation>, lock: usize, inside: Operation| {
        operations.push(Operation::Acquire { lock: lock as u32 });
        operations.push(inside);
        operations.push(Operation::Release { lock: lock as u32 });
    };
    threads[maker].push(Operation::Store {
        at,
        value: random.draw() as u8,
    });
    locked(
        &mut threads[maker],
        0,
        Operation::Store {
            at: flags[0],
            value,
        },
    );
    for (thread, operations) in threads.iter_mut().enumerate() {
        if thread == maker {
            continue;
        }
        // Half of them hear it from the maker and pass it on, half from those.
        if thread % 2 == 0 {
            locked(operations, 0, Operation::Load { at: flags[0] });
            operations.push(Operation::LoadIf {
                expected: value,
                at,
            });
            locked(operations, 0, Operation::Load { at: flags[0] });
            locked(
                operations,
                1,
                Operation::StoreIf {
                    expected: value,
                    at: flags[1],
                },
            );
        } else {
            locked(operations, 1, Operation::Load { at: flags[1] });
            operations.push(Operation::LoadIf {
                expected: value,
                at,
            });
        }
    }
}
