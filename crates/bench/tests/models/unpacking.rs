//! Unpacking packets as they arrive: pieces placed with a constant stride, and what cache and address
//! translation add (section 4.8 of the thesis; 3.10 of the specification with its corrections).

use advise::cost::Curve;

/// Bytes of a MB, in which rates are given.
pub(crate) const MB: f64 = 1048576.0;

/// A processor's memory as unpacking sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Memory {
    /// Seconds of one miss of the address translation.
    pub(crate) theta_s: f64,
    /// Seconds of one cache miss.
    pub(crate) kappa_s: f64,
    /// Seconds per MB without either, by the bytes of a piece.
    pub(crate) efficient: Curve,
    /// Bytes of a page.
    pub(crate) page: u64,
    /// Bytes of a cache block.
    pub(crate) block: u64,
    /// Entries of the address translation that unpacking can use.
    pub(crate) entries: u64,
}

/// Four runs over 1 MB: seconds for pieces of 8 and 32 bytes from 8 and 124 packets, and for 1024 from 8.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Runs {
    /// `v(8, 8)`: every access misses the cache.
    pub v8_8: f64,
    /// `v(8, 124)`: no collisions.
    pub v8_124: f64,
    /// `v(32, 8)`.
    pub v32_8: f64,
    /// `v(32, 124)`.
    pub v32_124: f64,
    /// `v(1024, 8)`.
    pub v1024_8: f64,
}

impl Memory {
    /// What the runs tell (equations 4.6 and 4.7): differences in which all but one effect cancel.
    pub(crate) fn from_runs(runs: &Runs, page: u64, block: u64, entries: u64) -> Option<Memory> {
        let (psi, b) = (page as f64, block as f64);
        let theta_s = (runs.v32_124 - runs.v32_8) * psi / (116.0 * MB);
        let efficient_8_8 = runs.v8_124 - runs.v32_124 + runs.v32_8;
        let pieces = (b - 8.0) / b * (MB / 8.0);
        if pieces <= 0.0 {
            return None;
        }
        let kappa_s = (runs.v8_8 - efficient_8_8) / pieces;
        let translated = 8.0 * MB * theta_s / psi;
        let points = [
            (8.0, efficient_8_8 - translated),
            (32.0, runs.v32_8 - translated),
            (1024.0, runs.v1024_8 - translated),
        ];
        Some(Memory {
            theta_s: theta_s.max(0.0),
            kappa_s: kappa_s.max(0.0),
            efficient: advise::model::fit::fit_curve(&points)?,
            page,
            block,
            entries,
        })
    }

    /// Seconds for misses of the address translation while `local` bytes are placed in pieces of `n` from
    /// `packets` packets (equation 4.5). Valid from `page x entries` bytes on.
    pub(crate) fn translation_s(&self, local: f64, n: f64, packets: f64) -> f64 {
        let psi = self.page as f64;
        let stride = n * packets;
        if stride <= psi {
            local * packets * self.theta_s / psi
        } else if stride < local / self.entries.max(1) as f64 {
            // Every piece is on a page of its own, and some on two.
            local * self.theta_s / n * (1.0 + (n - 1.0) / psi)
        } else {
            local * self.theta_s / psi
        }
    }

    /// Seconds to place `local` bytes in pieces of `n` from `packets` packets; `is_efficient` where cache
    /// blocks stay until their other pieces come.
    pub(crate) fn unpacking_s(&self, local: f64, n: u64, packets: u64, is_efficient: bool) -> f64 {
        let excess = match is_efficient {
            true => 0.0,
            false => self.kappa_s * excess_misses(local, n, self.block),
        };
        local / MB * self.efficient.at(n as f64)
            + self.translation_s(local, n as f64, packets as f64)
            + excess
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    match b {
        0 => a,
        _ => gcd(b, a % b),
    }
}

fn lcm(a: u64, b: u64) -> u64 {
    a / gcd(a, b).max(1) * b
}

/// Misses beyond the first of a block, in a run of pieces as long as the least common multiple of piece and
/// block (theorem 4.3).
///
/// ```
/// use bench::models::unpacking::excess_per_period;
/// assert_eq!(excess_per_period(12, 32), 7);
/// assert_eq!(excess_per_period(56, 32), 3);
/// assert_eq!(excess_per_period(64, 32), 0);
/// ```
pub(crate) fn excess_per_period(n: u64, block: u64) -> u64 {
    if n == 0 || block == 0 || n.is_multiple_of(block) {
        return 0;
    }
    lcm(n, block) / n - 1
}

/// Excess misses over `local` bytes (equation 4.8).
pub(crate) fn excess_misses(local: f64, n: u64, block: u64) -> f64 {
    if n == 0 || block == 0 {
        return 0.0;
    }
    local / lcm(n, block) as f64 * excess_per_period(n, block) as f64
}

/// A place that comes so near to an earlier one in the cache that they may drive each other out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Collision {
    /// How many times round the cache.
    pub(crate) round: u64,
    /// Number of the element that lies nearest, in strides.
    pub(crate) element: u64,
    /// Bytes between the two in the cache.
    pub(crate) distance: u64,
    /// Whether the later one lies before the earlier one.
    pub(crate) is_left: bool,
}

/// Potential collisions of elements at distance `stride` in a cache of `cache` bytes and blocks of `block`
/// with element 0, in an array of `local` bytes (definitions 4.1 to 4.3).
pub(crate) fn collisions(local: u64, cache: u64, stride: u64, block: u64) -> Vec<Collision> {
    if cache == 0 || stride == 0 {
        return Vec::new();
    }
    let mut found = Vec::new();
    for round in 1..=local / cache {
        let at = round * cache;
        let before = at / stride;
        let left = at - before * stride;
        if left < block {
            found.push(Collision {
                round,
                element: before,
                distance: left,
                is_left: true,
            });
        }
        if stride - left < block {
            found.push(Collision {
                round,
                element: before + 1,
                distance: stride - left,
                is_left: false,
            });
        }
    }
    found
}

/// Share of the pieces of 8 bytes that miss because of the collisions: the first one counts, by the share of
/// alignments at which it is real and the share of the array behind it.
pub(crate) fn collision_share(local: u64, cache: u64, stride: u64, block: u64) -> f64 {
    let Some(first) = collisions(local, cache, stride, block).into_iter().next() else {
        return 0.0;
    };
    let real = 1.0 - first.distance as f64 / block as f64;
    // Elements from the first collision on are involved, and so are those they collide with.
    let behind = local.saturating_sub(first.element * stride) as f64 / local.max(1) as f64;
    real * (2.0 * behind).min(1.0)
}
