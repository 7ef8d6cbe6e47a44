//! Random programs against the oracle: masks, sizes per VP, elemental calls, seeks, several openings, on random shapes,
//! distributions and team sizes; each also with the modes forced, and read back by other teams.

use std::io::{Read, Seek, SeekFrom, Write};

use random::Random;
use streams::{
    Access, Context, Counts, Emulation, Mode, Shape, Stream, StreamOptions, StreamQueue, Variable,
    VariableMut,
};

use crate::model::{Appends, Model};
use crate::place::{TestPlace, run};

/// One statement of a program; numbers that differ by VP come from a seed.
#[derive(Clone, Debug)]
enum Statement {
    Write {
        mask: Mask,
        bytes: usize,
        gap: usize,
    },
    WriteEach {
        mask: Mask,
        seed: u64,
    },
    Read {
        mask: Mask,
        bytes: usize,
        gap: usize,
    },
    ReadEach {
        mask: Mask,
        seed: u64,
    },
    Seek {
        mask: Mask,
        to: SeekFrom,
    },
    SeekEach {
        mask: Mask,
        seed: u64,
    },
    Elemental {
        mask: Mask,
        seed: u64,
    },
    /// Texts, of one length for all where the seed is even.
    Print {
        mask: Mask,
        seed: u64,
    },
    /// Takes a part of what it is given.
    Scan {
        mask: Mask,
        seed: u64,
    },
    Flush,
}

#[derive(Clone, Copy, Debug)]
enum Mask {
    Everywhere,
    Of(u64),
}

impl Mask {
    fn has(self, vp: u64) -> bool {
        match self {
            Mask::Everywhere => true,
            Mask::Of(seed) => !random::mix(seed ^ random::mix(vp)).is_multiple_of(3),
        }
    }

    fn context(self, emulation: &Emulation) -> Context {
        match self {
            Mask::Everywhere => Context::everywhere(),
            Mask::Of(_) => {
                Context::everywhere().narrowed(emulation.count(), |vp| self.has(emulation.vp(vp)))
            }
        }
    }
}

/// The number of a VP in a statement.
fn number(seed: u64, vp: u64, below: u64) -> u64 {
    random::mix(seed ^ random::mix(vp + 1)) % below
}

/// What a VP writes in a statement.
fn text(step: usize, vp: u64, bytes: usize) -> Vec<u8> {
    let at = |i| random::mix((step as u64) << 40 ^ vp << 20 ^ i as u64) as u8;
    (0..bytes).map(at).collect()
}

#[derive(Clone, Debug)]
struct Opening {
    access: Access,
    size: usize,
    distribution: &'static str,
    statements: Vec<Statement>,
}

#[derive(Clone, Debug)]
struct Program {
    shape: Vec<u64>,
    openings: Vec<Opening>,
}

fn pick<'a, T>(random: &mut Random, of: &'a [T]) -> &'a T {
    &of[random.below(of.len() as u64) as usize]
}

fn mask(random: &mut Random) -> Mask {
    match random.below(3) {
        0 => Mask::Of(random.draw()),
        _ => Mask::Everywhere,
    }
}

fn statement(random: &mut Random, usual: usize) -> Statement {
    let bytes = match random.below(3) {
        0 => random.below(150) as usize,
        _ => usual,
    };
    let gap = match random.below(5) {
        0 => 3,
        _ => 0,
    };
    let (seed, mask) = (random.draw(), mask(random));
    match random.below(18) {
        0..6 => Statement::Write {
            mask: if random.below(2) == 0 {
                mask
            } else {
                Mask::Everywhere
            },
            bytes,
            gap,
        },
        6 => Statement::WriteEach { mask, seed },
        7..10 => Statement::Read { mask, bytes, gap },
        10 => Statement::ReadEach { mask, seed },
        11 | 12 => Statement::Seek {
            mask,
            to: match random.below(3) {
                0 => SeekFrom::Start(random.below(300)),
                1 => SeekFrom::Start(random.below(8) * usual as u64),
                _ => SeekFrom::End(random.below(60) as i64),
            },
        },
        13 => Statement::SeekEach { mask, seed },
        14 => Statement::Elemental { mask, seed },
        15 => Statement::Print { mask, seed },
        16 => Statement::Scan { mask, seed },
        _ => Statement::Flush,
    }
}

fn distribution(random: &mut Random, dimensions: usize) -> &'static str {
    match dimensions {
        1 => pick::<&'static str>(random, &["(block)", "(cyclic)", "(cyclic(2))"]),
        _ => pick::<&'static str>(
            random,
            &[
                "(block, *)",
                "(*, cyclic)",
                "(cyclic, *)",
                "(block, cyclic(2))",
            ],
        ),
    }
}

fn program(random: &mut Random) -> Program {
    let shape: Vec<u64> = match random.below(3) {
        0 => vec![1 + random.below(9)],
        1 => vec![1 + random.below(40)],
        _ => vec![1 + random.below(5), 1 + random.below(7)],
    };
    let usual = *pick(random, &[1usize, 8, 24, 64, 100]);
    let first = *pick(random, &[Access::Write, Access::WriteUpdate]);
    let later = [
        Access::Update,
        Access::Append,
        Access::AppendUpdate,
        Access::Read,
        Access::Update,
    ];
    let count = 1 + random.below(3) as usize;
    let openings = (0..count).map(|n| Opening {
        access: if n == 0 { first } else { *pick(random, &later) },
        size: 1 + random.below(4) as usize,
        distribution: distribution(random, shape.len()),
        statements: (0..random.below(14))
            .map(|_| statement(random, usual))
            .collect(),
    });
    Program {
        openings: openings.collect(),
        shape: shape.clone(),
    }
}

/// Bytes of a VP's text, and bytes that it takes.
fn printed(seed: u64, vp: u64) -> usize {
    match seed.is_multiple_of(2) {
        true => 11,
        false => number(seed, vp, 40) as usize,
    }
}

fn taken(seed: u64, vp: u64) -> usize {
    match seed.is_multiple_of(2) {
        true => 5,
        false => number(seed, vp, 40) as usize,
    }
}

fn can_read(access: Access) -> bool {
    !matches!(access, Access::Write | Access::Append)
}

/// Does a statement to the model; what each VP reads.
fn model_step(model: &mut Model, step: usize, access: Access, s: &Statement) -> Vec<Vec<u8>> {
    let mut got = vec![Vec::new(); model.streams.len()];
    for (vp, got) in got.iter_mut().enumerate() {
        let v = vp as u64;
        let has = |mask: &Mask| mask.has(v);
        match s {
            Statement::Write { mask, bytes, .. } if access != Access::Read && has(mask) => {
                model.write(vp, &text(step, v, *bytes));
            }
            Statement::WriteEach { mask, seed } if access != Access::Read && has(mask) => {
                model.write(vp, &text(step, v, number(*seed, v, 90) as usize));
            }
            Statement::Read { mask, bytes, .. } if can_read(access) && has(mask) => {
                *got = model.read(vp, *bytes);
            }
            Statement::ReadEach { mask, seed } if can_read(access) && has(mask) => {
                *got = model.read(vp, number(*seed, v, 90) as usize);
            }
            Statement::Print { mask, seed } if access != Access::Read && has(mask) => {
                model.write(vp, &text(step, v, printed(*seed, v)));
            }
            Statement::Scan { mask, seed } if can_read(access) && has(mask) => {
                *got = model.read(vp, 30);
                let left = got.len() - taken(*seed, v).min(got.len());
                model.positions[vp] -= left as u64;
            }
            Statement::Seek { mask, to } if has(mask) => {
                model.positions[vp] = match to {
                    SeekFrom::Start(to) => *to,
                    SeekFrom::End(by) => model.streams[vp].len() as u64 + *by as u64,
                    SeekFrom::Current(by) => model.positions[vp] + *by as u64,
                };
            }
            Statement::SeekEach { mask, seed } if has(mask) => {
                model.positions[vp] = number(*seed, v, 400);
            }
            Statement::Elemental { mask, seed } if has(mask) => {
                let n = number(*seed, v, 40) as usize;
                if access != Access::Read {
                    model.write(vp, &text(step, v, n));
                }
                if can_read(access) {
                    if number(*seed, v, 2) == 0 {
                        model.positions[vp] = number(*seed, v, 50);
                    }
                    *got = model.read(vp, n);
                }
            }
            _ => {}
        }
    }
    got
}

/// Does a statement to the stream of one member, and compares what its VPs read.
fn stream_step(
    stream: &mut Stream,
    step: usize,
    access: Access,
    s: &Statement,
    expected: &[Vec<u8>],
) {
    let emulation = stream.emulation().clone();
    let count = emulation.count();
    let vp_of = |local: usize| emulation.vp(local);
    let check = |local: usize, read: u64, bytes: &[u8]| {
        let vp = vp_of(local);
        let expected = &expected[vp as usize];
        assert_eq!(
            read as usize,
            expected.len(),
            "step {step}: count of VP {vp}"
        );
        assert_eq!(&bytes[..expected.len()], expected, "step {step}: VP {vp}");
    };
    let checked = |counts: &Counts, memory: &[u8], stride: usize, context: &Context| {
        for local in context.active(count) {
            check(local, counts.of(local), &memory[local * stride..]);
        }
    };
    match s {
        Statement::Write { mask, bytes, gap } if access != Access::Read => {
            let context = mask.context(&emulation);
            let stride = bytes + gap;
            let mut memory = vec![0xee; stride * count];
            for local in 0..count {
                memory[local * stride..][..*bytes].copy_from_slice(&text(
                    step,
                    vp_of(local),
                    *bytes,
                ));
            }
            match gap {
                0 => stream.write(&context, &memory, *bytes).unwrap(),
                _ => {
                    let variable = Variable::strided(&memory, 0, stride);
                    stream.write(&context, variable, *bytes).unwrap();
                }
            }
        }
        Statement::WriteEach { mask, seed } if access != Access::Read => {
            let context = mask.context(&emulation);
            let sizes: Vec<usize> = (0..count)
                .map(|l| number(*seed, vp_of(l), 90) as usize)
                .collect();
            let mut memory = vec![0xee; 90 * count];
            for (local, n) in sizes.iter().enumerate() {
                memory[local * 90..][..*n].copy_from_slice(&text(step, vp_of(local), *n));
            }
            stream.write_each(&context, &memory, &sizes).unwrap();
        }
        Statement::Read { mask, bytes, gap } if can_read(access) => {
            let context = mask.context(&emulation);
            let stride = bytes + gap;
            let mut memory = vec![0xee; stride * count];
            let counts = match gap {
                0 => stream.read(&context, &mut memory, *bytes).unwrap(),
                _ => {
                    let variable = VariableMut::strided(&mut memory, 0, stride);
                    stream.read(&context, variable, *bytes).unwrap()
                }
            };
            checked(&counts, &memory, stride, &context);
        }
        Statement::ReadEach { mask, seed } if can_read(access) => {
            let context = mask.context(&emulation);
            let sizes: Vec<usize> = (0..count)
                .map(|l| number(*seed, vp_of(l), 90) as usize)
                .collect();
            let mut memory = vec![0xee; 90 * count];
            let counts = stream.read_each(&context, &mut memory, &sizes).unwrap();
            checked(&counts, &memory, 90, &context);
        }
        Statement::Seek { mask, to } => {
            stream.seek(&mask.context(&emulation), *to).unwrap();
        }
        Statement::SeekEach { mask, seed } => {
            let places: Vec<u64> = (0..count).map(|l| number(*seed, vp_of(l), 400)).collect();
            stream
                .seek_each(&mask.context(&emulation), &places)
                .unwrap();
        }
        Statement::Elemental { mask, seed } => {
            let context = mask.context(&emulation);
            let function = |vp: &mut streams::VpStream<'_>| {
                let v = vp.number();
                let n = number(*seed, v, 40) as usize;
                if access != Access::Read {
                    vp.write_all(&text(step, v, n))?;
                }
                if can_read(access) {
                    if number(*seed, v, 2) == 0 {
                        vp.seek(SeekFrom::Start(number(*seed, v, 50)))?;
                    }
                    let mut bytes = vec![0; n];
                    let read = vp.read(&mut bytes)?;
                    check(vp.local(), read as u64, &bytes);
                }
                Ok(())
            };
            stream.elemental(&context, function).unwrap();
        }
        Statement::Print { mask, seed } if access != Access::Read => {
            let function = |local: usize, to: &mut Vec<u8>| {
                let vp = vp_of(local);
                to.write_all(&text(step, vp, printed(*seed, vp)))
            };
            stream.print(&mask.context(&emulation), function).unwrap();
        }
        Statement::Scan { mask, seed } if can_read(access) => {
            let function = |local: usize, bytes: &[u8]| {
                check(local, bytes.len() as u64, bytes);
                taken(*seed, vp_of(local))
            };
            stream
                .scan(&mask.context(&emulation), 30, function)
                .unwrap();
        }
        Statement::Flush => drop(stream.flush().unwrap()),
        _ => {}
    }
}

/// Reads all streams by a team of another size.
fn read_back(place: &TestPlace, shape: &Shape, model: &Model, size: usize, distribution: &str) {
    run(size, |team| {
        let emulation = Emulation::new(shape, distribution, team).unwrap();
        let options = StreamOptions::new(Access::Read);
        let mut stream = Stream::open(place.client(), team, "/s", &emulation, &options).unwrap();
        let longest = model.streams.iter().map(Vec::len).max().unwrap_or(0);
        let chunk = 37;
        let mut got: Vec<Vec<u8>> = vec![Vec::new(); emulation.count()];
        for _ in 0..longest / chunk + 1 {
            let mut memory = vec![0; chunk * emulation.count()];
            let counts = stream
                .read(&Context::everywhere(), &mut memory, chunk)
                .unwrap();
            for (local, got) in got.iter_mut().enumerate() {
                let n = counts.of(local) as usize;
                got.extend(&memory[local * chunk..][..n]);
            }
        }
        for (local, got) in got.iter().enumerate() {
            let vp = emulation.vp(local) as usize;
            assert_eq!(
                got, &model.streams[vp],
                "VP {vp} of {shape} by {size} {distribution}"
            );
            assert!(stream.is_at_end(local));
        }
        stream.close().unwrap();
    });
}

/// Options that make small programs meet the edges of blocks, entries and superblocks.
fn options(access: Access, least: Mode, sizes: u64) -> StreamOptions {
    let options = StreamOptions::new(access).at_least(least);
    match sizes % 4 {
        0 => options,
        1 => options
            .cb_block(8)
            .ib_block(16)
            .pointers(2)
            .superblock(4096)
            .read_buffers(2),
        2 => options
            .cb_block(32)
            .ib_block(64)
            .pointers(6)
            .superblock(4096),
        _ => options
            .cb_block(24)
            .ib_block(8)
            .pointers(14)
            .superblock(8192),
    }
}

fn run_program(program: &Program, least: Mode, sizes: u64) {
    let place = TestPlace::new();
    let shape = Shape::new(&program.shape).unwrap();
    let mut model = Model::new(shape.count() as usize);
    let mut step = 0;
    for opening in &program.openings {
        let access = opening.access;
        model.reopen(match access {
            Access::Append | Access::AppendUpdate => Appends::Always,
            _ => Appends::No,
        });
        let begin = step;
        let mut expected = Vec::new();
        for statement in &opening.statements {
            expected.push(model_step(&mut model, step, access, statement));
            step += 1;
        }
        run(opening.size, |team| {
            let emulation = Emulation::new(&shape, opening.distribution, team).unwrap();
            let options = options(access, least, sizes);
            let mut stream =
                Stream::open(place.client(), team, "/s", &emulation, &options).unwrap();
            // Every other program goes on beside its members: all is asked for before the first is done.
            if sizes % 2 == 1 {
                let queue = StreamQueue::new(stream);
                let ask = |(n, statement): (usize, &Statement)| {
                    let (statement, expected) = (statement.clone(), expected[n].clone());
                    queue.perform(move |stream| {
                        stream_step(stream, begin + n, access, &statement, &expected);
                        Ok(())
                    })
                };
                let requests: Vec<_> = opening.statements.iter().enumerate().map(ask).collect();
                requests
                    .into_iter()
                    .for_each(|request| request.wait().unwrap());
                stream = queue.finish().unwrap();
            } else {
                for (n, statement) in opening.statements.iter().enumerate() {
                    stream_step(&mut stream, begin + n, access, statement, &expected[n]);
                }
            }
            stream.close().unwrap();
        });
        read_back(&place, &shape, &model, 1 + step % 3, opening.distribution);
    }
    let block = if program.shape.len() == 1 {
        "(block)"
    } else {
        "(block, *)"
    };
    read_back(&place, &shape, &model, 3, block);
}

fn run_many(seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let program = program(&mut Random::new(seed));
        for least in [Mode::Nb, Mode::Cb, Mode::Ib] {
            let shown = std::panic::AssertUnwindSafe(|| run_program(&program, least, seed));
            if let Err(cause) = std::panic::catch_unwind(shown) {
                eprintln!("program {seed}, at least {least:?}: {program:#?}");
                std::panic::resume_unwind(cause);
            }
        }
    }
}

#[test]
fn seed002_s01_random_programs_read_what_each_vp_wrote() {
    run_many(0..24);
}

#[test]
fn seed002_s02_forced_modes_read_what_chosen_modes_read() {
    // Programs that stay in the fast modes as long as they can, and are forced out of them.
    let writes = |n: usize| Statement::Write {
        mask: Mask::Everywhere,
        bytes: n,
        gap: 0,
    };
    let back = Statement::Seek {
        mask: Mask::Everywhere,
        to: SeekFrom::Start(16),
    };
    let reads = Statement::Read {
        mask: Mask::Everywhere,
        bytes: 24,
        gap: 0,
    };
    let statements = [
        vec![writes(8); 6],
        vec![back.clone(), reads.clone(), writes(8)],
        vec![writes(20), writes(100), back, reads.clone(), reads],
    ];
    let opening = Opening {
        access: Access::WriteUpdate,
        size: 3,
        distribution: "(cyclic)",
        statements: statements.concat(),
    };
    let program = Program {
        shape: vec![23],
        openings: vec![opening],
    };
    for least in [Mode::Nb, Mode::Cb, Mode::Ib] {
        (0..4).for_each(|sizes| run_program(&program, least, sizes));
    }
}

#[test]
#[ignore = "long: many more random programs"]
fn seed002_s01_many_random_programs_read_what_each_vp_wrote() {
    run_many(1000..2500);
}
