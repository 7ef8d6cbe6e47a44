//! What calibration measured of a machine and its network, as the numbers that costs are made of.
//!
//! All in seconds. Copy costs are curves over the bytes of a piece, `phi(n) = a / n^b + c` seconds per
//! byte, to which cache lines and pages are added that a walk touches and does not fill.

use plan::EndCounts;

/// Seconds per byte of a copy in pieces of `n` bytes: `a / n^b + c`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Curve {
    /// What a piece of one byte costs beyond [`Curve::c`].
    pub a: f64,
    /// How fast that vanishes with longer pieces.
    pub b: f64,
    /// What long pieces cost.
    pub c: f64,
}

impl Curve {
    /// Seconds per byte in pieces of `n` bytes; shorter than one byte counts as one.
    ///
    /// ```
    /// use advise::cost::Curve;
    /// let curve = Curve { a: 2e-9, b: 1.0, c: 1e-10 };
    /// assert!((curve.at(8.0) - 3.5e-10).abs() < 1e-20);
    /// ```
    pub fn at(&self, n: f64) -> f64 {
        self.a / n.max(1.0).powf(self.b) + self.c
    }
}

/// Bytes over which a jump to other pages is paid for. Measured with four processes on two cores: 21 ns a piece of
/// 2 KiB, 66 of 8 KiB, 150 of 25 KiB, 305 of 32 KiB, less again per byte beyond.
pub const JUMP_BYTES: f64 = 32768.0;

/// What a walk over memory pays for what it touches and does not use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Walk {
    /// Bytes that address translation covers: accesses to less pay for no pages.
    pub tlb_bytes: f64,
    /// A page that is touched and not filled, beyond that.
    pub page_s: f64,
    /// A line that is touched and not filled.
    pub line_s: f64,
    /// Bytes that stay near a core: accesses to less come from there.
    pub cache_bytes: f64,
    /// What such a line costs more in an access beyond that.
    pub far_line_s: f64,
    /// A byte of an access beyond that.
    pub far_byte_s: f64,
    /// What a piece costs more whose length kernels have no loop of their own for.
    pub odd_piece_s: f64,
    /// What a piece of [`JUMP_BYTES`] or more of a direct access beyond the caches costs more if it lies on
    /// other pages than the one before: what the hardware fetches ahead, and translates, ends there.
    pub jump_s: f64,
}

/// What a walk pays for beyond its pieces.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Excess {
    /// Lines that are touched and not filled.
    pub lines: f64,
    /// Those of them that come from afar.
    pub far_lines: f64,
    /// Pages that are touched and not filled, where that counts.
    pub pages: f64,
    /// Bytes that come from afar.
    pub far_bytes: f64,
    /// Pieces of lengths that kernels have no loop of their own for.
    pub odd_pieces: f64,
    /// Pieces from afar on other pages than the ones before, those below [`JUMP_BYTES`] in parts.
    pub jumps: f64,
}

/// Whether kernels have a loop of its own for a length: one, two or three loads and stores.
fn has_loop(n: u64) -> bool {
    matches!(
        n,
        1 | 2 | 4 | 8 | 16 | 32 | 64 | 12 | 20 | 24 | 40 | 48 | 56
    )
}

impl Walk {
    /// What is paid for along one end of a transfer of `bytes`, in an access to `extent` bytes in all.
    pub fn excess(&self, bytes: u64, end: &EndCounts, extent: u64) -> Excess {
        let extent = extent.max(bytes) as f64;
        let far = f64::from(extent > self.cache_bytes);
        let wide = f64::from(extent > self.tlb_bytes);
        let unfilled = |touched: f64, granule: f64| {
            let filled = bytes as f64 / granule + 1.0;
            (touched - filled).max(0.0)
        };
        let lines = unfilled(end.lines, 64.0);
        Excess {
            lines,
            far_lines: far * lines,
            pages: wide * unfilled(end.pages, 4096.0),
            far_bytes: far * bytes as f64,
            odd_pieces: match end.runs {
                0 | 1 => 0.0,
                runs if !bytes.is_multiple_of(runs) => runs as f64,
                runs => f64::from(!has_loop(bytes / runs)) * runs as f64,
            },
            // Several pieces to a page are one walk along it. What is lost at a jump is lost over the next
            // pages: shorter pieces lose less each.
            jumps: match end.runs as f64 <= end.pages {
                true => {
                    let n = bytes as f64 / end.runs.max(1) as f64;
                    far * end.runs.saturating_sub(1) as f64 * (n / JUMP_BYTES).min(1.0)
                }
                false => 0.0,
            },
        }
    }

    /// Seconds for that, without jumps: packing walks along a whole array, packet by packet, and finds what it
    /// jumps over already near.
    pub fn excess_s(&self, excess: &Excess) -> f64 {
        excess.lines * self.line_s
            + excess.far_lines * self.far_line_s
            + excess.pages * self.page_s
            + excess.far_bytes * self.far_byte_s
            + excess.odd_pieces * self.odd_piece_s
    }
}

/// Messages between a client and a server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// From a short request to its answer.
    pub round_trip_s: f64,
    /// What one more message under way costs either end.
    pub message_s: f64,
    /// A byte of payload, streaming.
    pub byte_s: f64,
}

/// Bytes that a server keeps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StoreCost {
    /// Before the first byte.
    pub latency_s: f64,
    /// A byte read.
    pub read_byte_s: f64,
    /// A byte written.
    pub write_byte_s: f64,
    /// Bytes that are read or written as a whole, however few of them are wanted.
    pub block_bytes: u64,
}

/// What things cost for one client's host and the hosts of the servers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// Strided to contiguous.
    pub pack: Curve,
    /// Contiguous to strided.
    pub unpack: Curve,
    /// Between the user's memory and that of a server on the same host.
    pub direct: Curve,
    /// What a direct access pays per server before its first byte.
    pub direct_s: f64,
    /// Cache and address translation.
    pub walk: Walk,
    /// To a server of the same host.
    pub near: Link,
    /// To a server of another host.
    pub far: Link,
    /// Between ranks of a team: `round_trip_s` is a step in which all wait for all.
    pub exchange: Link,
    /// Bytes of a rank that one step of an exchange moves.
    pub exchange_bytes: u64,
    /// Subfiles in memory.
    pub memory: StoreCost,
    /// Subfiles on disk, not in a cache.
    pub disk: StoreCost,
    /// A piece of a lazy meeting, which a cursor finds.
    pub lazy_piece_s: f64,
    /// Processors of a host; processes and servers of a host share them.
    pub cores: f64,
    /// How many times as long a copy beyond the caches takes when all processors copy: they share the memory.
    pub crowd: f64,
    /// Longest payload of one message.
    pub message_bytes: u64,
}

impl Machine {
    /// Two shared cores, memory of some 10 GB/s, sockets within the host; rounded. For machines that
    /// have not been calibrated: good enough to rank, not to predict.
    pub const HOST: Machine = Machine {
        pack: Curve {
            a: 2.0e-9,
            b: 1.0,
            c: 1.0e-10,
        },
        unpack: Curve {
            a: 2.0e-9,
            b: 1.0,
            c: 1.2e-10,
        },
        direct: Curve {
            a: 2.5e-9,
            b: 1.0,
            c: 1.2e-10,
        },
        direct_s: 4e-7,
        walk: Walk {
            tlb_bytes: 6291456.0,
            page_s: 8e-9,
            line_s: 5e-10,
            cache_bytes: 1048576.0,
            far_line_s: 1.5e-9,
            far_byte_s: 5e-11,
            odd_piece_s: 2e-9,
            jump_s: 2.5e-7,
        },
        near: Link {
            round_trip_s: 3e-5,
            message_s: 6e-6,
            byte_s: 4e-10,
        },
        far: Link {
            round_trip_s: 1e-4,
            message_s: 1e-5,
            byte_s: 1e-9,
        },
        exchange: Link {
            round_trip_s: 4e-5,
            message_s: 1e-6,
            byte_s: 1.5e-9,
        },
        exchange_bytes: 256 << 10,
        memory: StoreCost {
            latency_s: 5e-7,
            read_byte_s: 0.0,
            write_byte_s: 5e-11,
            block_bytes: 1,
        },
        disk: StoreCost {
            latency_s: 1e-4,
            read_byte_s: 1e-9,
            write_byte_s: 1e-9,
            block_bytes: 64 << 10,
        },
        lazy_piece_s: 1.3e-7,
        cores: 2.0,
        crowd: 1.3,
        message_bytes: 4 << 20,
    };

    /// Seconds to copy `bytes` along one end of a transfer with `curve`, in an access to `extent` bytes in
    /// all. Contiguous ends cost what long pieces cost.
    pub fn walk_s(&self, curve: &Curve, bytes: u64, end: &EndCounts, extent: u64) -> f64 {
        if bytes == 0 {
            return 0.0;
        }
        let n = bytes as f64 / end.runs.max(1) as f64;
        bytes as f64 * curve.at(n) + self.walk.excess_s(&self.walk.excess(bytes, end, extent))
    }
}

/// Every number of a machine by its name; one list, so that writing and reading agree.
macro_rules! parameters {
    ($($name:literal $($field:ident).+;)*) => {
        impl Machine {
            /// All numbers with their names, as they are kept and shown.
            pub fn parameters(&self) -> Vec<(&'static str, f64)> {
                vec![$(($name, self.$($field).+ as f64)),*]
            }

            /// Sets a number by its name. Names that are not known and values that no measurement gives
            /// change nothing; says whether it was set.
            pub fn set(&mut self, name: &str, value: f64) -> bool {
                if !value.is_finite() || value < 0.0 {
                    return false;
                }
                match name {
                    $($name => self.$($field).+ = value as _,)*
                    _ => return false,
                }
                true
            }
        }
    };
}

parameters! {
    "pack.a" pack.a;
    "pack.b" pack.b;
    "pack.c" pack.c;
    "unpack.a" unpack.a;
    "unpack.b" unpack.b;
    "unpack.c" unpack.c;
    "direct.a" direct.a;
    "direct.b" direct.b;
    "direct.c" direct.c;
    "direct_s" direct_s;
    "walk.tlb_bytes" walk.tlb_bytes;
    "walk.page_s" walk.page_s;
    "walk.line_s" walk.line_s;
    "walk.cache_bytes" walk.cache_bytes;
    "walk.far_line_s" walk.far_line_s;
    "walk.far_byte_s" walk.far_byte_s;
    "walk.odd_piece_s" walk.odd_piece_s;
    "walk.jump_s" walk.jump_s;
    "near.round_trip_s" near.round_trip_s;
    "near.message_s" near.message_s;
    "near.byte_s" near.byte_s;
    "far.round_trip_s" far.round_trip_s;
    "far.message_s" far.message_s;
    "far.byte_s" far.byte_s;
    "exchange.round_trip_s" exchange.round_trip_s;
    "exchange.message_s" exchange.message_s;
    "exchange.byte_s" exchange.byte_s;
    "exchange_bytes" exchange_bytes;
    "memory.latency_s" memory.latency_s;
    "memory.read_byte_s" memory.read_byte_s;
    "memory.write_byte_s" memory.write_byte_s;
    "memory.block_bytes" memory.block_bytes;
    "disk.latency_s" disk.latency_s;
    "disk.read_byte_s" disk.read_byte_s;
    "disk.write_byte_s" disk.write_byte_s;
    "disk.block_bytes" disk.block_bytes;
    "lazy_piece_s" lazy_piece_s;
    "cores" cores;
    "crowd" crowd;
    "message_bytes" message_bytes;
}
