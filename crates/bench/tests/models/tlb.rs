//! Misses of the address translation while packets are built, for three ways to replace entries, and
//! simulators that show them (sections 4.4.1 and 4.4.2 of the thesis; 3.9 of the specification).
//!
//! Packing goes round over `P` packets, one page each. With at most `T_E` packets nothing is missed; beyond
//! that it depends on who has to leave. `k` accesses that are no multiple of `P` leave a part of a round,
//! which some policies profit from.

/// Which entry leaves for a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Replacement {
    /// The one unused for longest.
    Lru,
    /// The lowest that is not marked; when all are marked all marks go.
    PseudoLru,
    /// Any.
    Random,
}

/// Entries that packing itself needs: source, stack, packet pointers, program, library.
pub(crate) const OWN_ENTRIES: u64 = 5;

/// Entries left for packets of a translation with `entries`.
pub(crate) fn effective_entries(entries: u64) -> u64 {
    entries.saturating_sub(OWN_ENTRIES)
}

/// Share of accesses that hit when `entries` are replaced at random and `packets` are used in turn:
/// `h = ((T-1)/T)^((1-h)(P-1))` (equation 4.3), the solution below 1 where there is one.
///
/// ```
/// use bench::models::tlb::random_hit_ratio;
/// assert!((random_hit_ratio(64, 256) - 0.0195).abs() < 5e-4);
/// assert!((random_hit_ratio(64, 128) - 0.203).abs() < 5e-4);
/// ```
pub(crate) fn random_hit_ratio(entries: u64, packets: u64) -> f64 {
    if packets <= entries || entries < 2 {
        return if packets <= entries { 1.0 } else { 0.0 };
    }
    let base = (entries as f64 - 1.0) / entries as f64;
    let next = |h: f64| base.powf((1.0 - h) * (packets as f64 - 1.0));
    // h = 1 always solves it; from below the iteration rises to the smallest solution.
    let mut h = 0.0;
    for _ in 0..10_000 {
        let better = next(h);
        if (better - h).abs() < 1e-14 {
            break;
        }
        h = better;
    }
    h
}

/// Runs of KYY in pieces of 8 bytes from which misses are told: seconds per MB for few packets, for one
/// more than fit, and for 256.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TlbRuns {
    /// `phi(8, 8)`: nothing missed.
    pub(crate) few: f64,
    /// `phi(8, T_E + 1)`; not used for random replacement.
    pub(crate) just_too_many: f64,
    /// `phi(8, 256)`.
    pub(crate) many: f64,
}

/// Seconds per MB that misses add when pieces of `n` bytes go to `packets` packets.
pub(crate) fn miss_cost(
    replacement: Replacement,
    entries: u64,
    runs: &TlbRuns,
    n: f64,
    packets: u64,
) -> f64 {
    let effective = effective_entries(entries);
    if packets <= effective {
        return 0.0;
    }
    let per_piece = 8.0 / n.max(1.0);
    match replacement {
        Replacement::Lru | Replacement::PseudoLru => {
            let first = effective as f64 + 1.0;
            let share = match (256.0 - first).abs() < f64::EPSILON {
                true => 1.0,
                false => (packets as f64 - first) / (256.0 - first),
            };
            per_piece * (runs.just_too_many + (runs.many - runs.just_too_many) * share - runs.few)
        }
        Replacement::Random => {
            let missed_256 = 1.0 - random_hit_ratio(entries, 256);
            if missed_256 <= 0.0 {
                return 0.0;
            }
            per_piece * (runs.many - runs.few) / missed_256
                * (1.0 - random_hit_ratio(entries, packets))
        }
    }
}

/// Which part of [`miss_cost`] is left when `k` accesses are made in rounds over `packets` packets
/// (section 4.4.2): 1 unless the last round is a part that fits.
pub(crate) fn large_k_share(replacement: Replacement, entries: u64, packets: u64, k: u64) -> f64 {
    let effective = effective_entries(entries);
    if packets == 0 || k <= packets || packets <= effective {
        return 1.0;
    }
    let rest = k % packets;
    match replacement {
        Replacement::Random => 1.0,
        Replacement::Lru if rest > 0 && rest <= effective => (k - rest) as f64 / k as f64,
        Replacement::Lru => 1.0,
        // Theorem 4.2, which needs k <= 2P; beyond it is only sketched and taken as no help.
        Replacement::PseudoLru => {
            let holds = rest > 0
                && rest <= effective
                && k <= 2 * packets
                && k > 2 * effective
                && packets < 2 * effective;
            match holds {
                true => 2.0 * (packets - effective) as f64 / k as f64,
                false => 1.0,
            }
        }
    }
}

/// Misses per `k` accesses once the state repeats: packets 0, 1, .. `packets - 1` in turn, starting with 0
/// again after every `k`. `seed` is for random replacement only.
pub(crate) fn simulate_misses(
    replacement: Replacement,
    entries: u64,
    packets: u64,
    k: u64,
    seed: u64,
) -> f64 {
    let entries = entries.max(1) as usize;
    let mut state = Translation::new(replacement, entries, seed);
    let warm = 8;
    let counted = 16;
    let mut misses = 0u64;
    for turn in 0..warm + counted {
        for access in 0..k {
            let missed = state.access(access % packets.max(1));
            misses += u64::from(missed && turn >= warm);
        }
    }
    misses as f64 / counted as f64
}

struct Translation {
    replacement: Replacement,
    entries: usize,
    /// Packet, and when it was last used (LRU) or whether it is marked (pseudo-LRU).
    held: Vec<(u64, u64)>,
    now: u64,
    random: random::Random,
}

impl Translation {
    fn new(replacement: Replacement, entries: usize, seed: u64) -> Self {
        Translation {
            replacement,
            entries,
            held: Vec::with_capacity(entries),
            now: 0,
            random: random::Random::new(seed),
        }
    }

    /// Whether the packet was not there.
    fn access(&mut self, packet: u64) -> bool {
        self.now += 1;
        let stamp = match self.replacement {
            Replacement::PseudoLru => 1,
            _ => self.now,
        };
        if let Some(known) = self.held.iter_mut().find(|held| held.0 == packet) {
            known.1 = stamp;
            return false;
        }
        if self.held.len() < self.entries {
            self.held.push((packet, stamp));
            return true;
        }
        let slot = match self.replacement {
            Replacement::Lru => (0..self.entries)
                .min_by_key(|&i| self.held[i].1)
                .expect("there are entries"),
            Replacement::PseudoLru => {
                if self.held.iter().all(|held| held.1 == 1) {
                    self.held.iter_mut().for_each(|held| held.1 = 0);
                }
                let unmarked = self.held.iter().position(|held| held.1 == 0);
                unmarked.expect("marks are gone")
            }
            Replacement::Random => self.random.below(self.entries as u64) as usize,
        };
        self.held[slot] = (packet, stamp);
        true
    }
}
