//! Collective reads directed by the disks: four schemes, equations 5.1 to 5.5 of the thesis with the
//! corrections of the specification (3.12, section 8), and the choice among them.
//!
//! ```text
//!  DDIO   I/O node  --record by record-->  compute nodes
//!  PB     I/O node  --a packet per node and block-->
//!  MB     I/O node  --a packet per node and M blocks-->  unpack
//!  2P     I/O node  --whole blocks-->  compute nodes  <--exchange-->  compute nodes
//! ```
//!
//! Per block an I/O node pays the slower of disk and its own work, which the printed equations leave out
//! because their records are small: with them work is the slower one. Times in microseconds, sizes in
//! bytes, rates in microseconds per byte, as Table 5.4 prints them.

/// How records get to compute nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// Record by record.
    Ddio,
    /// One packet per compute node and block.
    PacketBuilding,
    /// One packet per compute node and round of several blocks.
    MultiBlock,
    /// Blocks as they are, then an exchange among compute nodes.
    TwoPhase,
}

impl Scheme {
    /// All of them, in the order of the figures.
    pub const ALL: [Scheme; 4] = [
        Scheme::TwoPhase,
        Scheme::MultiBlock,
        Scheme::PacketBuilding,
        Scheme::Ddio,
    ];

    /// The short name of the figures.
    pub fn word(self) -> &'static str {
        match self {
            Scheme::Ddio => "DDIO",
            Scheme::PacketBuilding => "PB",
            Scheme::MultiBlock => "MB",
            Scheme::TwoPhase => "2P",
        }
    }
}

/// A network, disks and processors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// Start of a message.
    pub lambda: f64,
    /// A byte from an I/O node to a compute node.
    pub beta: f64,
    /// A byte in an exchange of all with all.
    pub beta_x: f64,
    /// Seek, rotation and first block.
    pub first_block: f64,
    /// Every further block.
    pub next_block: f64,
    /// Bytes of a block.
    pub block: u64,
    /// Blocks of a round of the multi-block scheme.
    pub round: u64,
    /// Packing takes this times what was measured: 1 as printed, 2/3 for the faster one of figure 5.9.
    pub packing: f64,
}

impl Machine {
    /// The Meiko CS-2 of Table 5.4.
    pub const MEIKO: Machine = Machine {
        lambda: 17.0,
        beta: 0.025,
        beta_x: 0.052,
        first_block: 13_000.0,
        next_block: 844.0,
        block: 8192,
        round: 16,
        packing: 1.0,
    };

    /// The faster network of Table 5.4, that of the DDIO papers.
    pub const FAST_NETWORK: Machine = Machine {
        lambda: 2.0,
        beta: 0.001667,
        beta_x: 0.003333,
        ..Machine::MEIKO
    };

    /// With disks so many times as fast, seeks excepted.
    pub fn with_disk_speed(self, times: f64) -> Machine {
        Machine {
            next_block: self.next_block / times,
            ..self
        }
    }

    /// This machine without a seek: the first block comes like every other, as in the rows of PB and MB that
    /// the figures print.
    pub fn without_seek(self) -> Machine {
        Machine {
            first_block: self.next_block,
            ..self
        }
    }

    /// Packing for `nodes` packets on a compute node, by record size (Tables 5.4 and 5.5).
    pub fn packing_at_node(&self, record: f64, nodes: u64) -> f64 {
        let few = between(&AT_NODE, record);
        // Measured for 8 bytes; misses of the address translation are per copy.
        let many = between(&AT_NODE_BY_NODES, nodes as f64) - AT_NODE_BY_NODES[0].1;
        self.packing * (few + many.max(0.0) * 8.0 / record.max(1.0))
    }

    /// Packing on an I/O node, whose packets of one block stay in few pages.
    pub fn packing_at_server(&self, record: f64) -> f64 {
        self.packing * between(&AT_SERVER, record)
    }

    /// Unpacking in pieces of so many bytes.
    pub fn unpacking(&self, piece: f64) -> f64 {
        between(&UNPACKING, piece)
    }
}

/// Table 5.5, and 256 from Table 6.2.
const AT_NODE: [(f64, f64); 9] = [
    (8.0, 0.159029),
    (16.0, 0.0905),
    (24.0, 0.0812),
    (32.0, 0.0749),
    (40.0, 0.0732),
    (48.0, 0.0706),
    (56.0, 0.0699),
    (64.0, 0.0677),
    (256.0, 0.063832),
];
const AT_SERVER: [(f64, f64); 9] = [
    (8.0, 0.1469),
    (16.0, 0.0747),
    (24.0, 0.0631),
    (32.0, 0.0574),
    (40.0, 0.0541),
    (48.0, 0.0516),
    (56.0, 0.0505),
    (64.0, 0.0485),
    (256.0, 0.04402),
];
/// Table 5.4: records of 8 bytes, by the number of packets.
const AT_NODE_BY_NODES: [(f64, f64); 4] = [
    (63.0, 0.159029),
    (64.0, 0.1769),
    (128.0, 0.2593),
    (256.0, 0.2803),
];
const UNPACKING: [(f64, f64); 6] = [
    (32.0, 0.1357),
    (64.0, 0.0982),
    (128.0, 0.0816),
    (256.0, 0.0744),
    (512.0, 0.0712),
    (1024.0, 0.0698),
];

/// A value between those of a table, straight over the logarithm; the ends go on as they are, the lower one
/// like a cost per copy.
fn between(table: &[(f64, f64)], at: f64) -> f64 {
    let (first, last) = (table[0], table[table.len() - 1]);
    if at <= first.0 {
        return first.1;
    }
    if at >= last.0 {
        return last.1;
    }
    let above = table.iter().position(|p| p.0 >= at).expect("inside");
    let ((x0, y0), (x1, y1)) = (table[above - 1], table[above]);
    y0 + (y1 - y0) * (at / x0).ln() / (x1 / x0).ln()
}

/// What is read: a file of records that are dealt out to compute nodes one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// Compute nodes.
    pub nodes: u64,
    /// I/O nodes.
    pub servers: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// Bytes of a record.
    pub record: u64,
}

impl Read {
    /// Most blocks of one I/O node.
    pub fn blocks(&self, block: u64) -> u64 {
        self.bytes
            .div_ceil(block.max(1))
            .div_ceil(self.servers.max(1))
    }

    /// MB (2^20 bytes) per second when it takes so many microseconds.
    pub fn rate(&self, microseconds: f64) -> f64 {
        self.bytes as f64 / 1048576.0 / (microseconds / 1e6)
    }
}

/// Blocks of the last round: `(B + M - 1) mod M + 1`.
pub fn last_round(blocks: u64, round: u64) -> u64 {
    let round = round.max(1);
    (blocks + round - 1) % round + 1
}

/// Microseconds that a read takes with a scheme.
pub fn read_us(machine: &Machine, read: &Read, scheme: Scheme) -> f64 {
    let blocks = read.blocks(machine.block) as f64;
    if blocks == 0.0 {
        return 0.0;
    }
    let block = machine.block as f64;
    let nodes = read.nodes.max(1);
    let (lambda, record) = (machine.lambda, read.record.max(1));
    // What waits for the disk is no shorter than the disk.
    let or_disk = |work: f64| work.max(machine.next_block);
    match scheme {
        Scheme::Ddio => {
            let records = machine.block.div_ceil(record) as f64;
            machine.first_block + blocks * or_disk(records * lambda + block * machine.beta_x)
        }
        Scheme::PacketBuilding => {
            let packing = machine.packing_at_server(record as f64) * block;
            let messages = receivers(nodes, 1, machine.block, record) as f64 * lambda;
            machine.first_block + blocks * or_disk(packing + messages + block * machine.beta)
        }
        Scheme::MultiBlock => {
            let packing = block * (machine.packing_at_server(record as f64) + machine.beta);
            let round = machine.round.max(1);
            let rounds = (blocks as u64).div_ceil(round) as f64;
            let messages = rounds * receivers(nodes, round, machine.block, record) as f64 * lambda;
            let work = blocks * packing + messages;
            let part = machine.block.div_ceil(nodes) as f64;
            let piece = (machine.block / nodes).max(1) as f64;
            let last = last_round(blocks as u64, round) as f64;
            machine.first_block
                + work.max(blocks * machine.next_block)
                + machine.unpacking(piece) * read.servers as f64 * last * part
        }
        Scheme::TwoPhase => {
            machine.first_block
                + machine.next_block * (blocks - 1.0)
                + lambda
                + block * machine.beta
                + exchange_us(machine, read)
        }
    }
}

/// Compute nodes that get something of so many blocks.
fn receivers(nodes: u64, blocks: u64, block: u64, record: u64) -> u64 {
    nodes.min((blocks * block).div_ceil(record.max(1)))
}

/// The second phase alone: packing and exchange among compute nodes (Table 5.3).
pub fn exchange_us(machine: &Machine, read: &Read) -> f64 {
    let own = read.bytes.div_ceil(read.nodes.max(1)) as f64;
    machine.packing_at_node(read.record as f64, read.nodes) * own
        + read.nodes as f64 * machine.lambda
        + machine.beta_x * own
}

/// What the disks alone take, the limit of all schemes.
pub fn disk_us(machine: &Machine, read: &Read) -> f64 {
    machine.first_block + read.blocks(machine.block) as f64 * machine.next_block
}

/// The scheme with the smallest predicted time.
pub fn choose(machine: &Machine, read: &Read) -> Scheme {
    let time = |s: &Scheme| read_us(machine, read, *s);
    let best = Scheme::ALL
        .into_iter()
        .min_by(|a, b| time(a).total_cmp(&time(b)));
    best.expect("there are schemes")
}
