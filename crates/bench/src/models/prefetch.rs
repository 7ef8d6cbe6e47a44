//! Prefetch of a collective read by the I/O nodes while the program computes: equations 6.1 to 6.10 of the
//! thesis (3.14 of the specification), and the workload of its figures.
//!
//! ```text
//!  none       |---- compute ----|request|-- MB on everything --|
//!  disk       |== read ahead ===|request|- pack, send -|- MB on the rest -|
//!  packets    |== read, pack ===|request|- send -|- MB on the rest -|  unpack
//!  exchanged  |== read, pack, exchange ==|request|- send -|- MB on the rest -|
//! ```
//!
//! The time to compute is random, exponential with a mean of what a disk takes for its part; how many blocks
//! can be prefetched follows from it and from the buffer. Microseconds and microseconds per byte.

use random::Random;

use super::ddio::{Machine, Read, last_round};

/// What is done before the request comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Prefetch {
    /// Nothing.
    None,
    /// Blocks are read.
    Disk,
    /// Blocks are read and packets built.
    Packets,
    /// Packets are exchanged among I/O nodes too, so that one node has all of a compute node's bytes.
    Exchanged,
}

impl Prefetch {
    /// In the order of the figures.
    pub const ALL: [Prefetch; 4] = [
        Prefetch::None,
        Prefetch::Disk,
        Prefetch::Packets,
        Prefetch::Exchanged,
    ];

    /// The name of the figures.
    pub fn word(self) -> &'static str {
        match self {
            Prefetch::None => "NO-PRE",
            Prefetch::Disk => "DISK-PRE",
            Prefetch::Packets => "PB-PRE",
            Prefetch::Exchanged => "PBX-PRE",
        }
    }
}

/// A read that can be prefetched, on a machine whose curves are those of Table 6.2.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Case {
    /// Network, disks, packing on compute nodes.
    pub machine: Machine,
    /// The read.
    pub read: Read,
}

impl Case {
    /// Packing on I/O nodes as Table 6.2 has it for 8 bytes, as Table 5.5 otherwise.
    fn pack_at_server(&self) -> f64 {
        match self.read.record {
            8 => 0.1474 * self.machine.packing,
            record => self.machine.packing_at_server(record as f64),
        }
    }

    /// Packing out of a large buffer, which pays for address translation as on a compute node.
    fn pack_from_buffer(&self) -> f64 {
        match (self.read.record, self.read.nodes) {
            (256, nodes) if nodes >= 256 => 0.06762 * self.machine.packing,
            (record, nodes) => self.machine.packing_at_node(record as f64, nodes),
        }
    }

    /// Grain of unpacking.
    fn piece(&self) -> f64 {
        (self.machine.block / self.read.nodes.max(1)).max(self.read.record) as f64
    }

    fn unpack_at_node(&self) -> f64 {
        4.094 / self.piece().powf(1.864) + 0.0687
    }

    fn unpack_at_server(&self) -> f64 {
        4.094 / self.piece().powf(1.864) + 0.0503
    }

    /// Blocks of one I/O node.
    pub fn blocks(&self) -> u64 {
        self.read.blocks(self.machine.block)
    }

    /// Whether packing a block takes longer than reading it.
    pub fn is_fine_grained(&self) -> bool {
        self.pack_at_server() * self.machine.block as f64 > self.machine.next_block
    }

    /// `P_S(q, l)`: nodes that get something of `blocks` blocks.
    fn receivers(&self, nodes: u64, blocks: u64) -> f64 {
        nodes.min((blocks * self.machine.block).div_ceil(self.read.record.max(1))) as f64
    }

    /// A compute node's part of a block of every I/O node.
    fn part(&self) -> f64 {
        let part = self.machine.block.div_ceil(self.read.nodes.max(1));
        self.read.servers as f64 * part as f64
    }

    /// The multi-block scheme on `blocks` blocks of every I/O node (6.1, 6.2); none take no time.
    pub fn multi_block_us(&self, blocks: u64) -> f64 {
        if blocks == 0 {
            return 0.0;
        }
        let m = &self.machine;
        let (b, block) = (blocks as f64, m.block as f64);
        let last = last_round(blocks, m.round);
        let unpack = self.part() * last as f64 * self.unpack_at_node();
        if self.is_fine_grained() {
            let rounds = blocks.div_ceil(m.round.max(1)) as f64;
            m.first_block
                + b * block * (self.pack_at_server() + m.beta)
                + rounds * self.receivers(self.read.nodes, m.round) * m.lambda
                + unpack
        } else {
            m.first_block
                + (b - 1.0) * m.next_block
                + self.pack_at_server() * block
                + m.lambda * self.receivers(self.read.nodes, last)
                + block * last as f64 * m.beta
                + unpack
        }
    }

    /// Unpacking of everything, or the rest of the read where that takes longer (6.3).
    fn rest_us(&self, ahead: u64) -> f64 {
        let rest = self.blocks().saturating_sub(ahead);
        let unpack = self.part() * (ahead + rest) as f64 * self.unpack_at_node();
        unpack.max(self.multi_block_us(rest))
    }

    /// Time to prefetch `ahead` blocks at every I/O node (6.4, 6.6, 6.7, 6.9).
    pub fn prefetch_us(&self, how: Prefetch, ahead: u64) -> f64 {
        if ahead == 0 {
            return 0.0;
        }
        let m = &self.machine;
        let (b, block) = (ahead as f64, m.block as f64);
        let read = m.first_block + (b - 1.0) * m.next_block;
        match how {
            Prefetch::None => 0.0,
            Prefetch::Disk => read,
            Prefetch::Packets if self.is_fine_grained() => {
                m.first_block + b * block * self.pack_from_buffer()
            }
            Prefetch::Packets => read + block * self.pack_from_buffer(),
            Prefetch::Exchanged => {
                let work = block * b * (self.pack_at_server() + m.beta_x)
                    + ahead.div_ceil(m.round.max(1)) as f64
                        * self.receivers(self.read.servers, m.round)
                        * m.lambda
                    + block * b * self.unpack_at_server();
                m.first_block + work
            }
        }
    }

    /// Time from the request to its end with `ahead` blocks prefetched (6.5, 6.8, 6.10).
    pub fn fulfil_us(&self, how: Prefetch, ahead: u64) -> f64 {
        let m = &self.machine;
        let ahead = ahead.min(self.blocks());
        // For small records packing is what takes the time, and blocks in memory do not shorten it.
        let is_no_help = how == Prefetch::None || (how == Prefetch::Disk && self.is_fine_grained());
        if ahead == 0 || is_no_help {
            return self.multi_block_us(self.blocks());
        }
        let sent = m.block as f64 * ahead as f64;
        let messages = m.lambda * self.receivers(self.read.nodes, ahead);
        match how {
            Prefetch::Disk => {
                sent * (self.pack_from_buffer() + m.beta) + messages + self.rest_us(ahead)
            }
            Prefetch::Packets => sent * m.beta + messages + self.rest_us(ahead),
            _ => {
                let own = self.read.nodes.div_ceil(self.read.servers.max(1)) as f64;
                own * m.lambda + sent * m.beta + self.multi_block_us(self.blocks() - ahead)
            }
        }
    }

    /// Most blocks that can be prefetched in the time there is, with a buffer of so many bytes.
    pub fn ahead_within(&self, how: Prefetch, available_us: f64, buffer: u64) -> u64 {
        let most = (buffer / self.machine.block.max(1)).min(self.blocks());
        // The time grows with the blocks, so the last that fits is found by halving.
        let (mut fits, mut too_many) = (0, most + 1);
        while too_many - fits > 1 {
            let middle = fits + (too_many - fits) / 2;
            match self.prefetch_us(how, middle) <= available_us {
                true => fits = middle,
                false => too_many = middle,
            }
        }
        fits
    }

    /// Mean time from request to end over `runs` random computation times, in microseconds.
    pub fn simulate_us(&self, how: Prefetch, buffer: u64, runs: u64, seed: u64) -> f64 {
        let mean_us =
            self.read.bytes as f64 / (10_485_760.0 * self.read.servers.max(1) as f64) * 1e6;
        let mut random = Random::new(seed);
        let mut sum = 0.0;
        for _ in 0..runs.max(1) {
            let available = random.exponential(mean_us);
            sum += self.fulfil_us(how, self.ahead_within(how, available, buffer));
        }
        sum / runs.max(1) as f64
    }
}
