//! Rates of streams beside compiled programs that move the same bytes, in cache: the figures of
//! `docs/benchmarks.md`. `cargo run --release -p kernels --example stream_rates`.

use std::hint::black_box;
use std::time::Instant;

use falls::{Falls, FallsSet, Periodic, Segment};
use kernels::{Nest, Program, Stream, copy};

/// Best seconds per call of either, in turns on the same target: where a buffer lies is worth more
/// than what is compared.
fn best(
    target: &mut [u8],
    mut one: impl FnMut(&mut [u8]),
    mut other: impl FnMut(&mut [u8]),
) -> (f64, f64) {
    let mut time = |work: &mut dyn FnMut(&mut [u8]), calls: u32| {
        let start = Instant::now();
        for _ in 0..calls {
            work(black_box(target));
        }
        start.elapsed().as_secs_f64() / f64::from(calls)
    };
    let calls = (0.004 / time(&mut one, 3).max(1e-8)).ceil() as u32;
    let mut fastest = (f64::MAX, f64::MAX);
    for _ in 0..25 {
        fastest.0 = fastest.0.min(time(&mut one, calls));
        fastest.1 = fastest.1.min(time(&mut other, calls));
    }
    fastest
}

/// A stream against nests that gather the same `bytes` bytes from offset 0 on.
fn row(name: &str, periodic: &Periodic, nests: &[Nest], bytes: u64) {
    let stream = Stream::new(periodic);
    let gather = Program::compile(nests);
    let back: Vec<Nest> = nests.iter().map(turned).collect();
    let scatter = Program::compile(&back);
    assert_eq!(gather.bytes(), bytes);
    let end = stream.select(bytes - 1).expect("there") + 1;
    let mut memory: Vec<u8> = (0..end).map(|i| (i * 7 % 251) as u8).collect();
    let mut packed = vec![0; bytes as usize];
    let mut other = packed.clone();
    stream
        .gather(0..bytes, memory[..].into(), 0, &mut packed)
        .expect("in bounds");
    copy(&gather, &memory, &mut other).expect("in bounds");
    assert!(packed == other, "{name}: not the same bytes");
    let gathered = best(
        &mut packed,
        |packed| {
            stream
                .gather(0..bytes, black_box(&memory[..]).into(), 0, packed)
                .expect("in bounds");
        },
        |packed| copy(&gather, black_box(&memory), packed).expect("in bounds"),
    );
    let scattered = best(
        &mut memory,
        |memory| {
            stream
                .scatter(0..bytes, black_box(&packed), memory.into(), 0)
                .expect("in bounds");
        },
        |memory| copy(&scatter, black_box(&packed), memory).expect("in bounds"),
    );
    let rate = |seconds: f64| bytes as f64 / seconds / 1e9;
    println!(
        "{name:32} gather {:6.2} {:6.2} {:5.2}   scatter {:6.2} {:6.2} {:5.2}",
        rate(gathered.0),
        rate(gathered.1),
        gathered.1 / gathered.0,
        rate(scattered.0),
        rate(scattered.1),
        scattered.1 / scattered.0,
    );
}

/// A nest with its sides exchanged.
fn turned(nest: &Nest) -> Nest {
    let (s, t, n) = (nest.target(), nest.source(), nest.count());
    let (ss, ts) = (nest.target_stride(), nest.source_stride());
    match nest.body() {
        kernels::Body::Bytes(len) => Nest::strided(s, t, n, ss, ts, *len).expect("valid"),
        kernels::Body::Nested(children) => {
            let children: Vec<Nest> = children.iter().map(turned).collect();
            Nest::nested(s, t, n, ss, ts, children).expect("valid")
        }
    }
}

fn family(len: u64, stride: u64) -> Periodic {
    let set = FallsSet::segment(0, len).expect("valid");
    Periodic::new(0, stride, set).expect("valid")
}

fn main() {
    println!("GB/s of the stream, of the program, and their ratio");
    for touched in [24 << 10, 384 << 10] {
        for (len, strides) in [
            (1, &[2u64, 5, 16][..]),
            (4, &[8, 64]),
            (8, &[16, 24, 64, 512, 4096]),
            (16, &[32, 256]),
            (100, &[128]),
            (512, &[1024]),
        ] {
            for &stride in strides {
                let count = (touched / stride).max(2);
                let nest =
                    Nest::strided(0, 0, count, stride as i64, len as i64, len).expect("valid");
                let name = format!("{len} every {stride}, {} KiB", touched >> 10);
                row(&name, &family(len, stride), &[nest], len * count);
            }
        }
        // Rows of 16 blocks of 8 bytes every 16, a hole of 64 bytes after each.
        let inner =
            FallsSet::new(vec![Falls::family(0, 8, 16, 16).expect("valid")]).expect("valid");
        let rows = touched / 320;
        let periodic = Periodic::new(0, 320, inner).expect("valid");
        let nest = Nest::strided(0, 0, 16, 16, 8, 8).expect("valid");
        let nest = Nest::nested(0, 0, rows, 320, 128, vec![nest]).expect("valid");
        let name = format!("rows of 16 x 8, {} KiB", touched >> 10);
        row(&name, &periodic, &[nest], 128 * rows);
        // Three blocks of unequal lengths in a small period.
        let periodic =
            Periodic::new(0, 64, "{(0,7),(20,23),(40,51)}".parse().expect("set")).expect("valid");
        let periods = touched / 64;
        let children: Vec<Nest> = [(0, 0, 8), (20, 8, 4), (40, 12, 12)]
            .map(|(s, t, len)| Nest::block(s, t, len).expect("valid"))
            .to_vec();
        let nest = Nest::nested(0, 0, periods, 64, 24, children).expect("valid");
        let name = format!("8, 4, 12 of 64, {} KiB", touched >> 10);
        row(&name, &periodic, &[nest], 24 * periods);
        // Irregular segments of 8 bytes.
        let count = touched / 24;
        let place = |i: u64| 24 * i + i * 2_654_435_761 % 16;
        let segments: Vec<Segment> = (0..count)
            .map(|i| Segment::new(place(i), 8).expect("valid"))
            .collect();
        let set = FallsSet::from_segments(&segments).expect("ascending");
        let periodic = Periodic::new(0, touched, set).expect("valid");
        let nests: Vec<Nest> = (0..count)
            .map(|i| Nest::block(place(i) as i64, 8 * i as i64, 8).expect("valid"))
            .collect();
        let name = format!("irregular 8, {} KiB", touched >> 10);
        row(&name, &periodic, &nests, 8 * count);
    }
    let block = Nest::block(0, 0, 1 << 20).expect("valid");
    row("1 MiB", &Periodic::everything(), &[block], 1 << 20);
    let block = Nest::block(0, 0, 64).expect("valid");
    row("64 bytes", &Periodic::everything(), &[block], 64);
    let blocks = Nest::strided(0, 0, 8, 16, 8, 8).expect("valid");
    row("8 x 8 every 16", &family(8, 16), &[blocks], 64);
}
