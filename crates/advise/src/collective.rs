//! Whether members of a team should access a file each for itself or in two phases: regrouped among
//! themselves first, so that each accesses one contiguous domain.
//!
//! ```text
//!  independent   every rank sends its own bytes; servers gather and scatter pieces
//!  two phases    ranks exchange bytes in memory; then contiguous domains travel, each byte once
//! ```
//!
//! A server that knows views moves exactly the bytes wanted, so two phases pay only where ranks want the
//! same bytes, or where pieces are so small that taking them apart at the server costs more than
//! regrouping them in memory by all ranks at once. The model compares choices; it is no prediction.

/// What an access of all ranks looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Ranks that take part.
    pub ranks: u64,
    /// Bytes of all ranks; what several want counts several times.
    pub bytes: u64,
    /// File bytes from the first to the last of them.
    pub span: u64,
    /// Pieces of the file that all ranks together access.
    pub pieces: u64,
}

/// What things cost, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Bytes that reach servers, per second, all ranks together.
    pub server_bytes_per_s: f64,
    /// Bytes that a rank copies to or from another, per second.
    pub exchange_bytes_per_s: f64,
    /// A piece, wherever it is taken apart.
    pub piece_s: f64,
    /// A step of an exchange: all wait for all.
    pub step_s: f64,
    /// Bytes of a rank that one step moves.
    pub step_bytes: u64,
}

impl Rates {
    /// Messages within a host and memory between its processes, rounded from two shared cores.
    pub const HOST: Rates = Rates {
        server_bytes_per_s: 2e9,
        exchange_bytes_per_s: 2e9,
        piece_s: 4e-9,
        step_s: 40e-6,
        step_bytes: 256 << 10,
    };
}

/// Seconds that either way takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Every rank for itself.
    pub independent_s: f64,
    /// In two phases.
    pub two_phase_s: f64,
}

impl Estimate {
    /// Whether two phases are worth it.
    pub fn two_phase_pays(&self) -> bool {
        self.two_phase_s < self.independent_s
    }
}

/// Estimates both ways.
///
/// ```
/// use advise::collective::{Access, Rates, estimate};
/// // Four ranks that all want the same 16 MiB, and four that want a quarter each.
/// let same = Access { ranks: 4, bytes: 64 << 20, span: 16 << 20, pieces: 4 };
/// let apart = Access { bytes: 16 << 20, ..same };
/// assert!(estimate(&same, &Rates::HOST).two_phase_pays());
/// assert!(!estimate(&apart, &Rates::HOST).two_phase_pays());
/// ```
pub fn estimate(access: &Access, rates: &Rates) -> Estimate {
    let ranks = access.ranks.max(1) as f64;
    let pieces_s = access.pieces as f64 * rates.piece_s;
    let served = |bytes: u64| bytes as f64 / rates.server_bytes_per_s;
    let each = access.bytes as f64 / ranks;
    let steps = (each / rates.step_bytes.max(1) as f64).ceil() + 2.0;
    Estimate {
        independent_s: served(access.bytes) + pieces_s,
        // Pieces are taken apart where they are sent from and where they arrive, by all ranks at once.
        two_phase_s: served(access.span)
            + 2.0 * each / rates.exchange_bytes_per_s
            + 2.0 * pieces_s / ranks
            + steps * rates.step_s,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pays(access: Access) -> bool {
        estimate(&access, &Rates::HOST).two_phase_pays()
    }

    #[test]
    fn two_phases_pay_for_shared_bytes_and_for_tiny_pieces() {
        let rows = Access {
            ranks: 4,
            bytes: 16 << 20,
            span: 16 << 20,
            pieces: 4,
        };
        assert!(!pays(rows), "nothing to regroup");
        let single_bytes = Access {
            pieces: 16 << 20,
            ..rows
        };
        assert!(pays(single_bytes), "bytes dealt out one by one");
        let all_want_all = Access {
            bytes: 64 << 20,
            ..rows
        };
        assert!(pays(all_want_all), "each byte travels once");
        let sparse = Access {
            span: 1 << 30,
            ..single_bytes
        };
        assert!(!pays(sparse), "holes would travel");
        let short = Access {
            ranks: 4,
            bytes: 256,
            span: 256,
            pieces: 64,
        };
        assert!(!pays(short), "meeting costs more than it saves");
    }
}
