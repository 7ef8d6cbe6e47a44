//! The redistribution sweep of `pario bench kernels`: n x P for all kinds (statement 95 of the
//! redistribution source), with numbers of processors on and beside powers of two, and packets
//! at the conflict-free stride and at a power of two (`/conflict`).
//!
//! One processor's part of 1 MiB is packed and unpacked, as in the source's experiments. The value is
//! the rate of packing; `unpack_sync` and `unpack_async` are columns. Cyclic to Block packs
//! nothing, so its value is the rate of asynchronous unpacking. `share` packs with the engine that all accesses run on. `two-step` is GEN through
//! Cyclic(lcm), the whole way on all processors, against one step.

use console::Error;
use falls::{FallsSet, Periodic, Segment};
use kernels::Share;

use super::cases::Strides;
use super::contest::{Contestant, Effort, Job, contest, ratios};
use super::packers::{Distribution, Kind, Packets, Redistribution, UnpackOrder, between};
use super::{Row, Sheet, digits};

/// One point of the sweep.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    pub(crate) name: String,
    pub(crate) kind: Option<Kind>,
    from: Distribution,
    to: Distribution,
    element_bytes: u64,
    processors: u64,
    elements: u64,
    strides: Strides,
}

const COPY_BYTES: [u64; 5] = [4, 8, 32, 128, 1024];
const PROCESSORS: [u64; 8] = [4, 7, 8, 31, 32, 63, 64, 256];

/// All points, for local arrays of this many bytes; Cyclic(x) to Block among them.
pub(crate) fn points(local_bytes: u64) -> Vec<Point> {
    let mut points = Vec::new();
    for kind in Kind::ALL {
        for n in COPY_BYTES {
            for p in PROCESSORS {
                for strides in Strides::ALL {
                    // Nothing is packed, nothing can conflict.
                    if strides == Strides::Free || kind != Kind::Cbl {
                        points.push(point(kind, n, p, strides, local_bytes));
                    }
                }
            }
        }
    }
    for n in [1, 4, 8, 32, 128] {
        for p in [4, 7, 16] {
            let mut point = point(Kind::Gen, n, p, Strides::Free, local_bytes / 4);
            point.name = format!("redistribute/two-step/n={n}/P={p}");
            point.kind = None;
            points.push(point);
        }
    }
    points
}

/// Copies of `n` bytes: an element, or several elements of 4 bytes where the kind copies blocks.
fn point(kind: Kind, n: u64, p: u64, strides: Strides, local_bytes: u64) -> Point {
    use Distribution::Cyclic;
    let e = match kind {
        Kind::Kyy | Kind::Xkx1 | Kind::Xkx2 => 4,
        Kind::Bcy | Kind::Cbl | Kind::Gen => n,
    };
    let block = n / e;
    // A few elements more than divide evenly.
    let elements = (local_bytes / e).max(1) * p + 3;
    let (from, to) = match kind {
        Kind::Kyy => (Cyclic(block * p), Cyclic(block)),
        Kind::Xkx1 => (Cyclic(block), Cyclic(block * 2 * p)),
        Kind::Xkx2 => (Cyclic(block), Cyclic(block * (p / 2).max(2))),
        Kind::Bcy => (Distribution::block(elements, p), Cyclic(1)),
        Kind::Cbl => (Cyclic(1), Distribution::block(elements, p)),
        Kind::Gen => (Cyclic(3), Cyclic(2)),
    };
    let mut name = format!("redistribute/{}/n={n}/P={p}", kind.name());
    if strides == Strides::Conflict {
        name += "/conflict";
    }
    Point {
        name,
        kind: Some(kind),
        from,
        to,
        element_bytes: e,
        processors: p,
        elements,
        strides,
    }
}

impl Point {
    fn job(&self) -> Result<Redistribution, Error> {
        let Point {
            elements,
            element_bytes,
            processors,
            from,
            to,
            ..
        } = *self;
        let job = Redistribution::new(elements, element_bytes, processors, from, to)?;
        if self.strides == Strides::Free {
            return Ok(job);
        }
        let longest = job
            .places(0)
            .iter()
            .map(|(_, place)| place.len())
            .max()
            .unwrap_or(1);
        Ok(job.packed_at((longest as u64).next_power_of_two()))
    }
}

/// One in so many points is measured when it is to be quick.
const QUICKLY: usize = 16;

/// Runs the points that are wanted.
pub(crate) fn run(effort: Effort, sheet: &mut Sheet) -> Result<(), Error> {
    let step = sheet.step(QUICKLY);
    for point in points(1 << 20).into_iter().step_by(step) {
        if sheet.wants(&point.name) {
            let row = match point.kind {
                Some(_) => measure(&point, effort),
                None => measure_two_steps(&point, effort),
            };
            sheet.push(row.map_err(|error| format!("{}: {error}", point.name))?)?;
        }
    }
    Ok(())
}

fn measure(point: &Point, effort: Effort) -> Result<Row, Error> {
    let job = point.job()?;
    let me = (point.processors / 2) as usize;
    let bytes = job.source_len(me);
    let local = vec![1; bytes];
    let mut packets = job.pack(me, &local)?;
    let again = packets.clone();

    // What arrives: packets of the right lengths, the bytes do not matter.
    let placements = job.placements(me);
    let arriving: Vec<Vec<u8>> = placements
        .iter()
        .map(|placement| vec![2; placement.bytes() as usize])
        .collect();
    let received: Vec<&[u8]> = arriving.iter().map(|packet| &packet[..]).collect();
    let unpacked_bytes = job.target_len(me);
    let target = std::cell::RefCell::new(vec![0; unpacked_bytes]);

    let mut pack = Job(|| {
        let _ = job.pack_again(me, &local, &mut packets);
    });
    let mut flat = vec![0; bytes];
    let mut memcpy = Job(|| flat.copy_from_slice(std::hint::black_box(&local)));
    let naive = std::cell::RefCell::new(again);
    let mut plain = Job(|| plain_pack(point, me as u64, &local, &naive.borrow()));
    let shares: Vec<Share> = (0..point.processors)
        .map(|peer| {
            let from = part(point, point.from, me as u64)?;
            Ok(Share::new(&from, &part(point, point.to, peer)?))
        })
        .collect::<Result<_, falls::FallsError>>()?;
    let array = 0..point.elements * point.element_bytes;
    let mut gathered = vec![0; bytes];
    let mut by_shares = Job(|| {
        let mut rest = &mut gathered[..];
        for share in &shares {
            let (packet, behind) = rest.split_at_mut(share.count(array.clone()) as usize);
            rest = behind;
            let _ = share.gather_left(array.clone(), local[..].into(), 0, packet);
        }
    });
    let mut in_order = Job(|| {
        let _ = job.unpack(
            me,
            &received,
            &mut target.borrow_mut(),
            UnpackOrder::Synchronous,
        );
    });
    let mut by_arrival = Job(|| {
        for (placement, packet) in placements.iter().zip(&received) {
            let _ = job.unpack_packet(placement, packet, &mut target.borrow_mut());
        }
    });
    let cbl = job.kind() == Kind::Cbl;
    let contestants: &mut [&mut dyn Contestant] = if cbl {
        &mut [&mut by_arrival, &mut memcpy, &mut in_order]
    } else {
        &mut [
            &mut pack,
            &mut memcpy,
            &mut plain,
            &mut by_shares,
            &mut in_order,
            &mut by_arrival,
        ]
    };
    let outcomes = contest(effort, contestants);
    let own = outcomes[0].ok_or("no time measured")?;
    let rate =
        |index: usize, bytes: usize| outcomes[index].map(|outcome| bytes as f64 / outcome.best);
    let names: &[_] = if cbl {
        &["memcpy"]
    } else {
        &["memcpy", "loop", "share"]
    };
    let moved = if cbl { unpacked_bytes } else { bytes };
    let mut row = Row::rate(&point.name, moved as u64, own)
        .ratios(ratios(names.iter().copied(), &outcomes))
        .column("bytes", bytes);
    let (sync, arrival) = if cbl { (2, 0) } else { (4, 5) };
    for (name, index) in [("unpack_sync", sync), ("unpack_async", arrival)] {
        if let Some(rate) = rate(index, unpacked_bytes) {
            row.set(name, digits(rate, 2));
        }
    }
    Ok(row)
}

/// The bytes of the array that a processor holds, in the words of the engine that accesses run on.
fn part(point: &Point, dealt: Distribution, processor: u64) -> Result<Periodic, falls::FallsError> {
    let block = dealt.unit() * point.element_bytes;
    let set = FallsSet::from_segments(&[Segment::new(0, block)?])?;
    Periodic::new(processor * block, block * point.processors, set)
}

/// The loop a programmer writes: the owner of every element by its formula, one copy each.
fn plain_pack(point: &Point, me: u64, local: &[u8], packets: &Packets) {
    let mut buffers: Vec<Vec<u8>> = Vec::new();
    buffers.resize_with(point.processors as usize, Vec::new);
    for (peer, place) in packets.places() {
        buffers[*peer].reserve_exact(place.len());
    }
    let (x, y, p) = (point.from.unit(), point.to.unit(), point.processors);
    for (i, element) in local.chunks_exact(point.element_bytes as usize).enumerate() {
        let i = i as u64;
        let global = i % x + (p * (i / x) + me) * x;
        buffers[(global / y % p) as usize].extend_from_slice(element);
    }
    std::hint::black_box(&buffers);
}

fn measure_two_steps(point: &Point, effort: Effort) -> Result<Row, Error> {
    let Point {
        elements,
        element_bytes,
        processors,
        from,
        to,
        ..
    } = *point;
    let one = point.job()?;
    let middle = between(from.unit(), to.unit()).ok_or("lcm too large")?;
    let first = Redistribution::new(elements, element_bytes, processors, from, middle)?;
    let second = Redistribution::new(elements, element_bytes, processors, middle, to)?;
    let locals: Vec<Vec<u8>> = (0..processors as usize)
        .map(|me| vec![1; one.source_len(me)])
        .collect();
    let mut two_steps = Job(|| {
        let halfway = first
            .run(&locals, UnpackOrder::Asynchronous)
            .unwrap_or_default();
        std::hint::black_box(
            second
                .run(&halfway, UnpackOrder::Asynchronous)
                .unwrap_or_default(),
        );
    });
    let mut one_step = Job(|| {
        std::hint::black_box(
            one.run(&locals, UnpackOrder::Synchronous)
                .unwrap_or_default(),
        );
    });
    let outcomes = contest(effort, &mut [&mut two_steps, &mut one_step]);
    let own = outcomes[0].ok_or("no time measured")?;
    let bytes = elements * element_bytes;
    let row = Row::rate(&point.name, bytes, own).column("bytes", bytes);
    Ok(row.ratios(ratios(["one-step"], &outcomes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Local arrays by dealing out one element after the other.
    fn dealt_naive(point: &Point, distribution: Distribution) -> Vec<Vec<u8>> {
        let mut locals = vec![Vec::new(); point.processors as usize];
        for g in 0..point.elements {
            let owner = distribution.owner(g, point.processors) as usize;
            locals[owner].extend((0..point.element_bytes).map(|k| (g * 31 + k) as u8));
        }
        locals
    }

    #[test]
    fn seed002_s95_the_sweep_covers_all_kinds_and_moves_the_right_bytes() {
        let points = points(1 << 20);
        let mut names: Vec<&str> = points.iter().map(|point| &point.name[..]).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
        for kind in Kind::ALL {
            let of_kind: Vec<&Point> = points
                .iter()
                .filter(|point| point.kind == Some(kind))
                .collect();
            for n in COPY_BYTES {
                let processors: Vec<u64> = of_kind
                    .iter()
                    .filter(|point| point.name.contains(&format!("/n={n}/")))
                    .map(|point| point.processors)
                    .collect();
                assert!(
                    processors.iter().any(|p| p.is_power_of_two()),
                    "{kind:?} n={n}"
                );
                assert!(
                    processors.iter().any(|p| !p.is_power_of_two()),
                    "{kind:?} n={n}"
                );
            }
            for point in of_kind {
                assert_eq!(point.job().expect("valid").kind(), kind, "{}", point.name);
            }
        }
        // The same list with small arrays, moved and compared.
        for point in super::points(1 << 8) {
            let job = point.job().expect("valid");
            let before = dealt_naive(&point, point.from);
            for unpacking in [UnpackOrder::Synchronous, UnpackOrder::Asynchronous] {
                let after = job.run(&before, unpacking).expect("valid");
                assert!(
                    after == dealt_naive(&point, point.to),
                    "{} {unpacking:?}",
                    point.name
                );
            }
        }
    }

    #[test]
    fn a_point_of_every_kind_can_be_measured() {
        let effort = Effort::new(7, 1.0);
        for kind in Kind::ALL {
            let row = measure(&point(kind, 8, 7, Strides::Free, 1 << 8), effort).expect("measured");
            assert!(row.value > 0.0 && row.ratio("memcpy").is_some());
        }
    }
}
