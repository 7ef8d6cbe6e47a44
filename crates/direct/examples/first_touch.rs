//! The first copy into shared memory that a server has committed: through a fresh mapping, through a
//! fresh mapping whose units were made ready, by `pwrite` on the descriptor, and the second copy.
//!
//! `cargo run --release -p direct --example first_touch` prints the best of seven in GB/s.

use std::os::fd::AsFd;
use std::time::Instant;

use direct::{MappedSegment, UNIT_BYTES};
use rustix::fs::{MemfdFlags, SealFlags};

const BYTES: u64 = 64 << 20;

fn main() {
    let file = rustix::fs::memfd_create("first", MemfdFlags::ALLOW_SEALING).expect("a memory file");
    rustix::fs::ftruncate(&file, BYTES).expect("a length");
    let seals = SealFlags::SHRINK | SealFlags::GROW;
    rustix::fs::fcntl_add_seals(&file, seals).expect("seals");
    let source = vec![7u8; BYTES as usize];
    let map = || MappedSegment::map(file.as_fd(), BYTES, true).expect("a mapping");
    // The server's mapping: the memory is there, and stays.
    let server = map();
    server.make_ready(0, BYTES);
    let copy = |segment: &MappedSegment| {
        for at in (0..BYTES).step_by(UNIT_BYTES as usize) {
            let part = &source[at as usize..(at + UNIT_BYTES) as usize];
            segment.bytes_mut(at, UNIT_BYTES).copy_from(part.into());
        }
    };
    let best = |name: &str, job: &mut dyn FnMut() -> f64| {
        let seconds = (0..7).map(|_| job()).fold(f64::INFINITY, f64::min);
        println!("{name:<28} {:5.2} GB/s", BYTES as f64 / seconds / 1e9);
    };
    let timed = |job: &mut dyn FnMut()| {
        let start = Instant::now();
        job();
        start.elapsed().as_secs_f64()
    };
    best("fresh mapping, page by page", &mut || {
        let fresh = map();
        timed(&mut || copy(&fresh))
    });
    best("fresh mapping, made ready", &mut || {
        let fresh = map();
        timed(&mut || {
            fresh.make_ready(0, BYTES);
            copy(&fresh);
        })
    });
    best("pwrite on the descriptor", &mut || {
        timed(&mut || {
            for (i, part) in source.chunks(UNIT_BYTES as usize).enumerate() {
                let at = i as u64 * UNIT_BYTES;
                rustix::io::pwrite(&file, part, at).expect("a write");
            }
        })
    });
    let warm = map();
    copy(&warm);
    best("warm mapping", &mut || timed(&mut || copy(&warm)));
}
