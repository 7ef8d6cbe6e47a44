//! Copies in memory: packing, unpacking and strided copies at several piece lengths, strides and sizes.
//!
//! A cell is an array that is dealt out in pieces of `n` bytes to `P` packets, all of which are built or
//! taken apart once. Cells of an even grid make the fit. What it is worth for lengths that it has not seen is
//! found by leaving lengths out of it, and stated; others, of lengths and strides between, are predicted too.
//!
//! Parts of an array, one for each processor, are copied whole and in pieces at a stride, alone and all at once: how
//! much longer that takes is what sharing the memory costs, and what a jump from piece to piece does.

use advise::cost::{Curve, Excess, JUMP_BYTES, Machine, Walk};
use advise::model::fit::{WalkFit, WalkSample, fit_walk, left_out};
use falls::{FallsSet, Periodic};
use kernels::{PageBuffer, Pages, Share};
use layout::{FileOffset, Partition, Pattern, View};
use plan::Plan;

use crate::{Cell, Fit, best_of};
use console::Error;

/// Bytes of the arrays: one that stays near a core and one that does not.
const SIZES: [u64; 2] = [256 << 10, 8 << 20];
/// Cells that are fitted to.
const GRID: [(u64, u64); 20] = [
    (8, 2),
    (8, 16),
    (8, 128),
    (12, 5),
    (16, 8),
    (24, 24),
    (32, 4),
    (32, 64),
    (48, 6),
    (64, 8),
    (128, 2),
    (128, 32),
    (200, 10),
    (512, 4),
    (1024, 64),
    (2048, 16),
    (4096, 8),
    (8192, 4),
    (32768, 4),
    (65536, 1),
];
/// Cells that are only predicted.
const UNSEEN: [(u64, u64); 6] = [(8, 6), (56, 12), (40, 10), (100, 5), (640, 24), (6000, 3)];

/// Times that all cells are gone through.
const SWEEPS: usize = 4;
/// Parts in which lengths are left out of a fit.
const FOLDS: usize = 4;
/// Bytes that each processor copies at once with the others: beyond its own cache, all together about the shared one.
const PART: u64 = 4 << 20;
/// Pieces in which it does; the first is the part as a whole.
const JUMPS: [u64; 3] = [PART, 8 << 10, 32 << 10];
/// Passes over a part in one time: threads do not begin and end at the same moment.
const PASSES: usize = 8;

/// What was measured in memory.
pub struct Local {
    /// Copies and walks.
    pub machine: Machine,
    /// How well its parts fit.
    pub fits: Vec<Fit>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    Pack,
    Unpack,
    Direct,
}

/// Measures and fits.
pub fn measure() -> Result<Local, Error> {
    let mut machine = Machine::HOST;
    // What is beyond a core's own cache still comes quickly while it is a small part of the shared one.
    let caches = kernels::cache_sizes();
    machine.walk = Walk {
        cache_bytes: caches.l2.max(caches.l3 / 8) as f64,
        ..machine.walk
    };
    machine.cores = std::thread::available_parallelism().map_or(1.0, |n| n.get() as f64);
    let most = SIZES[SIZES.len() - 1] as usize;
    let mut memory = Memory::new(most)?;
    let mut fits = Vec::new();
    let mut unseen = Vec::new();
    for (work, name) in [
        (Work::Pack, "pack"),
        (Work::Unpack, "unpack"),
        (Work::Direct, "direct"),
    ] {
        let (mut names, mut cells) = (Vec::new(), Vec::new());
        for size in SIZES {
            for (n, packets) in GRID {
                names.push(format!("{name}/n={n}/P={packets}/bytes={size}"));
                cells.push((size, n, packets));
            }
        }
        let fitted = cells.len();
        for (n, packets) in UNSEEN {
            names.push(format!("{name}/n={n}/P={packets}"));
            cells.push((SIZES[1], n, packets));
        }
        let mut walks = memory.sweep(work, &machine.walk, &cells)?;
        let others = walks.split_off(fitted);
        let fit = fit_walk(&walks, &machine.walk).ok_or("no copy took any time")?;
        let cell = |what: String, walk: &WalkSample| Cell {
            what,
            measured_s: walk.seconds,
            predicted_s: fit.predict(walk),
        };
        let last = names.split_off(fitted);
        unseen.extend(last.into_iter().zip(&others).map(|(what, w)| cell(what, w)));
        keep(&mut machine, work, &fit);
        let cells = names.into_iter().zip(&walks).map(|(what, w)| cell(what, w));
        let left = left_out(&walks, &machine.walk, FOLDS);
        fits.push(Fit::new(name, shown(&fit), cells.collect()).with_left_out(&left));
    }
    let what = "copies of lengths and strides that were not fitted".to_owned();
    fits.push(Fit::new("unseen", what, unseen));
    fits.push(crowd(&mut machine)?);
    Ok(Local { machine, fits })
}

/// What all processors at once cost, and jumps.
fn crowd(machine: &mut Machine) -> Result<Fit, Error> {
    let parts = (machine.cores as u64).clamp(4, 16);
    let count = parts.min(machine.cores as u64);
    let len = parts * PART;
    let mut array = PageBuffer::new(len as usize, Pages::Small)?;
    array.fill(1);
    let mut packed = Vec::new();
    for _ in 0..count {
        let mut own = PageBuffer::new(PART as usize, Pages::Small)?;
        own.fill(2);
        packed.push(own);
    }
    let mut alone = [f64::INFINITY; JUMPS.len()];
    let mut together = alone;
    for sweep in 0..2 * SWEEPS {
        for (i, n) in JUMPS.into_iter().enumerate() {
            let sets = (0..parts).map(|p| FallsSet::segment(p * n, n));
            let sets: Result<Vec<FallsSet>, _> = sets.collect();
            let partition = Partition::from_start(Pattern::new(parts * n, sets?)?);
            let whole = Periodic::everything();
            let shares: Vec<Share> = partition
                .subfiles()
                .map(|s| Share::new(&whole, &s))
                .collect();
            // All of them, and the first alone.
            let crowd = if sweep % 2 == 0 { count } else { 1 } as usize;
            let start = std::sync::Barrier::new(crowd);
            let (array, start) = (&array[..], &start);
            let slowest = std::thread::scope(|scope| {
                let threads: Vec<_> = packed[..crowd]
                    .iter_mut()
                    .zip(&shares)
                    .map(|(own, share)| {
                        scope.spawn(move || {
                            start.wait();
                            let mut is_good = true;
                            let seconds = best_of(1, 0.0, || {
                                for _ in 0..PASSES {
                                    let own = (&mut own[..]).into();
                                    let outcome =
                                        share.copy_left_to_right(0..len, array.into(), 0, own, 0);
                                    is_good &= outcome.is_ok();
                                }
                            });
                            match is_good {
                                true => seconds / PASSES as f64,
                                false => f64::INFINITY,
                            }
                        })
                    })
                    .collect();
                let ended = threads
                    .into_iter()
                    .map(|t| t.join().unwrap_or(f64::INFINITY));
                ended.fold(0.0, f64::max)
            });
            let times = match crowd {
                1 => &mut alone,
                _ => &mut together,
            };
            times[i] = times[i].min(slowest);
        }
    }
    if count == 1 {
        together = alone;
    }
    let jumps = |n: u64| (PART / n) as f64 * (n as f64 / JUMP_BYTES).min(1.0);
    let mean = |values: &mut dyn Iterator<Item = f64>| {
        let logs: Vec<f64> = values.map(f64::ln).collect();
        (logs.iter().sum::<f64>() / logs.len().max(1) as f64).exp()
    };
    let ratio = mean(&mut alone.iter().zip(&together).map(|(a, t)| t / a));
    if ratio.is_finite() {
        machine.crowd = ratio.max(1.0);
        // Pieces that take no longer than the whole cost nothing.
        let jump = |i: usize| (together[i] - together[0]) / jumps(JUMPS[i]);
        machine.walk.jump_s =
            mean(&mut (1..JUMPS.len()).map(|i| jump(i).max(1e-9))) / machine.crowd;
    }
    let shown = format!(
        "{:.2} times as long with {count} processors at once, {:.0} ns a jump to other pages",
        machine.crowd,
        machine.walk.jump_s * 1e9
    );
    let predicted = |i: usize| {
        let jumps = if i == 0 { 0.0 } else { jumps(JUMPS[i]) };
        (alone[0] + jumps * machine.walk.jump_s) * machine.crowd
    };
    let cells = (0..JUMPS.len()).map(|i| Cell {
        what: format!("crowd/n={}/P={parts}", JUMPS[i]),
        measured_s: together[i],
        predicted_s: predicted(i),
    });
    Ok(Fit::new("crowd", shown, cells.collect()))
}

/// The model has one walk: its terms are the mean of those of packing and unpacking.
fn keep(machine: &mut Machine, work: Work, fit: &WalkFit) {
    match work {
        Work::Pack => (machine.pack, machine.walk) = (fit.curve, fit.walk),
        Work::Unpack => {
            machine.unpack = fit.curve;
            let (walk, other) = (&mut machine.walk, &fit.walk);
            walk.line_s = (walk.line_s + other.line_s) / 2.0;
            walk.far_line_s = (walk.far_line_s + other.far_line_s) / 2.0;
            walk.page_s = (walk.page_s + other.page_s) / 2.0;
            walk.far_byte_s = (walk.far_byte_s + other.far_byte_s) / 2.0;
            walk.odd_piece_s = (walk.odd_piece_s + other.odd_piece_s) / 2.0;
        }
        Work::Direct => machine.direct = fit.curve,
    }
}

fn shown(fit: &WalkFit) -> String {
    let Curve { a, b, c } = fit.curve;
    let walk = &fit.walk;
    format!(
        "{:.2} ns / n^{b:.2} + {:.3} ns a byte; {:.2} ns a line, {:.2} more from afar, {:.1} a page, {:.3} a far byte, {:.1} an odd piece, {:.0} a transfer",
        a * 1e9,
        c * 1e9,
        walk.line_s * 1e9,
        walk.far_line_s * 1e9,
        walk.page_s * 1e9,
        walk.far_byte_s * 1e9,
        walk.odd_piece_s * 1e9,
        fit.start_s * 1e9
    )
}

struct Memory {
    array: PageBuffer,
    packed: PageBuffer,
}

impl Memory {
    fn new(bytes: usize) -> Result<Memory, Error> {
        let mut memory = Memory {
            array: PageBuffer::new(bytes, Pages::Small)?,
            packed: PageBuffer::new(bytes, Pages::Small)?,
        };
        // Pages that were never written are all the same page.
        memory.array.fill(1);
        memory.packed.fill(2);
        Ok(memory)
    }

    /// All cells several times over, the best time of each: another program that uses the machine for a moment
    /// disturbs one pass of a few cells, not all passes of one.
    fn sweep(
        &mut self,
        work: Work,
        walk: &Walk,
        cells: &[(u64, u64, u64)],
    ) -> Result<Vec<WalkSample>, Error> {
        let mut best: Vec<WalkSample> = Vec::new();
        for sweep in 0..SWEEPS {
            for (i, &(size, n, packets)) in cells.iter().enumerate() {
                let walked = self.cell(work, walk, size, n, packets)?;
                match sweep {
                    0 => best.push(walked),
                    _ => best[i].seconds = best[i].seconds.min(walked.seconds),
                }
            }
        }
        Ok(best)
    }

    /// One cell.
    fn cell(
        &mut self,
        work: Work,
        walk: &Walk,
        size: u64,
        n: u64,
        packets: u64,
    ) -> Result<WalkSample, Error> {
        let period = n * packets;
        let len = size / period * period;
        let sets = (0..packets).map(|p| FallsSet::segment(p * n, n));
        let sets: Result<Vec<FallsSet>, _> = sets.collect();
        let partition = Partition::from_start(Pattern::new(period, sets?)?);
        let whole = Periodic::everything();
        let shares: Vec<Share> = partition
            .subfiles()
            .map(|s| Share::new(&whole, &s))
            .collect();
        let view = (View::whole_file(), FileOffset(0)..FileOffset(len));
        let plan = Plan::for_accesses(std::slice::from_ref(&view), &partition);
        let mut counted = WalkSample {
            n: n as f64,
            bytes: len as f64,
            transfers: packets as f64,
            excess: Excess::default(),
            seconds: 0.0,
        };
        for transfer in plan.transfers() {
            let counts = transfer.counts();
            let excess = walk.excess(counts.bytes, &counts.source, len);
            counted.excess.lines += excess.lines;
            counted.excess.far_lines += excess.far_lines;
            counted.excess.pages += excess.pages;
            counted.excess.far_bytes += excess.far_bytes;
            counted.excess.odd_pieces += excess.odd_pieces;
        }
        let (array, packed) = (&mut self.array[..len as usize], &mut self.packed);
        let part = (len / packets) as usize;
        let mut failed = None;
        counted.seconds = best_of(2, 0.0, || {
            for (p, share) in shares.iter().enumerate() {
                let packed = &mut packed[p * part..(p + 1) * part];
                let outcome = match work {
                    Work::Pack => share.gather_left(0..len, (&*array).into(), 0, packed),
                    Work::Unpack => share.scatter_left(0..len, packed, array.into(), 0),
                    // As a direct access of one process to one subfile after the other does it.
                    Work::Direct => {
                        share.copy_left_to_right(0..len, (&*array).into(), 0, packed.into(), 0)
                    }
                };
                failed = failed.take().or(outcome.err());
            }
        });
        match failed {
            Some(error) => Err(error.into()),
            None => Ok(counted),
        }
    }
}
