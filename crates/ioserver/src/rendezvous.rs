//! From which payload on a write is announced first.
//!
//! An announcement costs one round trip and saves nothing if the server has room at once; it shall
//! cost a twentieth of the transfer at most. So the threshold is twenty round trips' worth of bytes,
//! both measured at start over a pair of sockets of this host; a network is slower and its round trip
//! longer, and the product grows with it, so what is measured here is the low end. The median of the
//! round trips counts: the best is one without a wake-up on another core, which most have. 1 MiB over
//! TCP between two cores took 345 us announced and 275 us at once, so the lower bound is there.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Instant;

/// Bounds of the threshold.
const LEAST: u64 = 1 << 20;
const MOST: u64 = 16 << 20;
const ROUNDS: u32 = 50;
const BULK: usize = 4 << 20;

/// Measures for a few milliseconds; a machine that has no sockets to spare gets the lower bound.
pub(crate) fn measure() -> u64 {
    measured().unwrap_or(LEAST)
}

fn measured() -> Option<u64> {
    let (mut near, mut far) = UnixStream::pair().ok()?;
    let echo = thread::Builder::new()
        .name("measure".into())
        .spawn(move || {
            let mut byte = [0; 64];
            for _ in 0..ROUNDS {
                far.read_exact(&mut byte).ok()?;
                far.write_all(&byte).ok()?;
            }
            let mut block = vec![0; 256 << 10];
            let mut left = 2 * BULK;
            while left > 0 {
                left -= far.read(&mut block).ok().filter(|&n| n > 0)?.min(left);
            }
            Some(())
        });
    let echo = echo.ok()?;
    let mut byte = [0; 64];
    let mut rounds_ns = [0; ROUNDS as usize];
    for round_ns in &mut rounds_ns {
        let start = Instant::now();
        near.write_all(&byte).ok()?;
        near.read_exact(&mut byte).ok()?;
        *round_ns = elapsed_ns(start);
    }
    rounds_ns.sort_unstable();
    let round_ns = rounds_ns[rounds_ns.len() / 2];
    // The first pass warms both sides.
    let block = vec![0; 256 << 10];
    let mut start = Instant::now();
    for pass in 0..2 {
        if pass == 1 {
            start = Instant::now();
        }
        for _ in 0..BULK / block.len() {
            near.write_all(&block).ok()?;
        }
    }
    let bulk_ns = elapsed_ns(start).max(1);
    drop(near);
    drop(echo.join());
    Some(threshold(round_ns, BULK as u64, bulk_ns))
}

fn elapsed_ns(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Twenty round trips' worth of bytes, within bounds.
fn threshold(round_trip_ns: u64, bytes: u64, ns: u64) -> u64 {
    let product = u128::from(round_trip_ns) * u128::from(bytes) / u128::from(ns.max(1));
    let product = product.saturating_mul(20);
    u64::try_from(product).unwrap_or(MOST).clamp(LEAST, MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threshold_is_twenty_round_trips_of_bytes_within_bounds() {
        // 20 microseconds and 4 GB/s: 80 KB a round trip.
        assert_eq!(threshold(20_000, 4_000_000_000, 1_000_000_000), 1_600_000);
        assert_eq!(threshold(1, 1, 1), LEAST);
        assert_eq!(threshold(u64::MAX, u64::MAX, 1), MOST);
        assert!((LEAST..=MOST).contains(&measure()));
    }
}
