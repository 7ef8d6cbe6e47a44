//! Copies in memory: packing, unpacking and strided copies at several piece lengths, strides and sizes.
//!
//! A cell is an array that is dealt out in pieces of `n` bytes to `P` packets, all of which are built or
//! taken apart once. Cells of an even grid make the fit; others, of lengths and strides between, show
//! what it is worth for what it has not seen.

use advise::cost::{Curve, Excess, Machine, Walk};
use advise::model::fit::{WalkFit, Walked, fit_walk};
use falls::{FallsSet, Periodic};
use kernels::{PageBuffer, Pages, Share};
use layout::{FileOffset, Partition, Pattern, View};
use plan::Plan;

use super::{Cell, Fit, best_of};
use crate::commands::Error;

/// Bytes of the arrays: one that stays near a core and one that does not.
const SIZES: [u64; 2] = [256 << 10, 8 << 20];
/// Cells that are fitted to.
const GRID: [(u64, u64); 17] = [
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
    (4096, 8),
    (32768, 4),
];
/// Cells that are only predicted.
const UNSEEN: [(u64, u64); 6] = [(8, 6), (56, 12), (40, 10), (100, 5), (640, 24), (6000, 3)];

/// Times that all cells are gone through.
const SWEEPS: usize = 4;

/// What was measured in memory.
pub(crate) struct Local {
    /// Copies and walks.
    pub(crate) machine: Machine,
    pub(crate) fits: Vec<Fit>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    Pack,
    Unpack,
    Direct,
}

/// Measures and fits.
pub(crate) fn measure() -> Result<Local, Error> {
    let mut machine = Machine::HOST;
    // What is beyond a core's own cache still comes quickly while it is a small part of the shared one.
    let caches = kernels::cache_sizes();
    machine.walk = Walk {
        cache_bytes: caches.l2.max(caches.l3 / 8) as f64,
        ..machine.walk
    };
    machine.cores = std::thread::available_parallelism().map_or(1.0, |n| n.get() as f64);
    let most = SIZES[SIZES.len() - 1] as usize;
    let mut memory = Memory {
        array: PageBuffer::new(most, Pages::Small)?,
        packed: PageBuffer::new(most, Pages::Small)?,
    };
    // Pages that were never written are all the same page.
    memory.array.fill(1);
    memory.packed.fill(2);
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
        let cell = |what: String, walk: &Walked| Cell {
            what,
            measured_s: walk.seconds,
            predicted_s: fit.predict(walk),
        };
        let last = names.split_off(fitted);
        unseen.extend(last.into_iter().zip(&others).map(|(what, w)| cell(what, w)));
        keep(&mut machine, work, &fit);
        let cells = names.into_iter().zip(&walks).map(|(what, w)| cell(what, w));
        fits.push(Fit::new(name, shown(&fit), cells.collect()));
    }
    let what = "copies of lengths and strides that were not fitted".to_owned();
    fits.push(Fit::new("unseen", what, unseen));
    Ok(Local { machine, fits })
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
    /// All cells several times over, the best time of each: whoever else uses the machine for a moment
    /// disturbs one pass of a few cells, not all passes of one.
    fn sweep(
        &mut self,
        work: Work,
        walk: &Walk,
        cells: &[(u64, u64, u64)],
    ) -> Result<Vec<Walked>, Error> {
        let mut best: Vec<Walked> = Vec::new();
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
    ) -> Result<Walked, Error> {
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
        let mut counted = Walked {
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
