//! What the thesis prints: bandwidths of figures 5.2 to 5.5 and 6.1 to 6.9, in MB (2^20 bytes) per second.
//!
//! Values only, with the setting each belongs to; the models are in [`super::ddio`] and [`super::prefetch`].
//! The numbers of figure 5.4 are lost in print; those here are what its equations give (specification 4.3).

use super::ddio::{Machine, Read, Scheme, disk_us, read_us};
use super::prefetch::{Case, Prefetch};

/// Compute nodes of the columns of figures 5.2 to 5.5.
pub const NODES: [u64; 6] = [8, 16, 32, 64, 128, 256];

/// Buffers of the columns of figures 6.1 to 6.9, per I/O node.
pub const BUFFERS: [u64; 5] = [512 << 10, 1 << 20, 2 << 20, 4 << 20, 8 << 20];

/// A row of figures 5.2 to 5.5: 50 MB, records of 8 bytes, by number of compute nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReadRow {
    /// The figure.
    pub figure: &'static str,
    /// The machine.
    pub machine: Machine,
    /// Compute nodes per I/O node.
    pub ratio: u64,
    /// The scheme; nothing for the limit of the disks.
    pub scheme: Option<Scheme>,
    /// Bandwidths for [`NODES`].
    pub printed: [f64; 6],
}

impl ReadRow {
    /// The bandwidth that the model gives. Rows of PB and MB were printed without a seek (E-11).
    pub fn model(&self, nodes: u64) -> f64 {
        let read = Read {
            nodes,
            servers: nodes / self.ratio,
            bytes: 50 << 20,
            record: 8,
        };
        let us = match self.scheme {
            None => disk_us(&self.machine, &read),
            Some(scheme @ (Scheme::MultiBlock | Scheme::PacketBuilding)) => {
                read_us(&self.machine.without_seek(), &read, scheme)
            }
            Some(scheme) => read_us(&self.machine, &read, scheme),
        };
        read.rate(us)
    }
}

/// Figures 5.2 to 5.5.
pub const READS: [ReadRow; 19] = {
    use Scheme::{Ddio, MultiBlock, PacketBuilding, TwoPhase};
    const MEIKO: Machine = Machine::MEIKO;
    const FAST: Machine = Machine::FAST_NETWORK;
    const fn row(
        figure: &'static str,
        machine: Machine,
        ratio: u64,
        scheme: Option<Scheme>,
        printed: [f64; 6],
    ) -> ReadRow {
        ReadRow {
            figure,
            machine,
            ratio,
            scheme,
            printed,
        }
    }
    const LIMIT_4: [f64; 6] = [18.4, 36.7, 72.7, 142.7, 275.1, 513.5];
    const LIMIT_8: [f64; 6] = [9.2, 18.4, 36.7, 72.7, 142.7, 275.1];
    const P52: [[f64; 6]; 4] = [
        [12.2, 24.3, 48.4, 92.9, 160.9, 295.5],
        [11.0, 21.9, 43.2, 84.2, 160.1, 288.7],
        [10.1, 18.6, 32.0, 50.0, 69.7, 86.7],
        [0.9, 1.8, 3.5, 7.0, 14.0, 27.8],
    ];
    const P53: [[f64; 6]; 4] = [
        [7.4, 14.7, 29.3, 57.1, 104.3, 197.2],
        [5.5, 11.0, 21.7, 42.3, 80.6, 147.0],
        [5.1, 9.3, 16.0, 25.0, 34.9, 43.4],
        [0.4, 0.9, 1.8, 3.5, 7.0, 14.0],
    ];
    const P54: [[f64; 6]; 4] = [
        [13.2, 26.4, 52.4, 100.5, 173.1, 322.2],
        [12.8, 25.6, 51.0, 101.3, 200.6, 392.9],
        [12.7, 25.0, 48.7, 92.8, 169.2, 287.8],
        [7.5, 15.0, 29.9, 59.3, 116.8, 226.7],
    ];
    const P55: [[f64; 6]; 4] = [
        [7.7, 15.4, 30.7, 59.9, 109.3, 208.7],
        [6.4, 12.8, 25.6, 50.9, 100.9, 198.5],
        [6.3, 12.5, 24.4, 46.4, 84.8, 144.3],
        [3.8, 7.5, 15.0, 29.9, 59.3, 116.8],
    ];
    [
        row("5.2", MEIKO, 4, None, LIMIT_4),
        row("5.2", MEIKO, 4, Some(TwoPhase), P52[0]),
        row("5.2", MEIKO, 4, Some(MultiBlock), P52[1]),
        row("5.2", MEIKO, 4, Some(PacketBuilding), P52[2]),
        row("5.2", MEIKO, 4, Some(Ddio), P52[3]),
        row("5.3", MEIKO, 8, None, LIMIT_8),
        row("5.3", MEIKO, 8, Some(TwoPhase), P53[0]),
        row("5.3", MEIKO, 8, Some(MultiBlock), P53[1]),
        row("5.3", MEIKO, 8, Some(PacketBuilding), P53[2]),
        row("5.3", MEIKO, 8, Some(Ddio), P53[3]),
        row("5.4", FAST, 4, Some(TwoPhase), P54[0]),
        row("5.4", FAST, 4, Some(MultiBlock), P54[1]),
        row("5.4", FAST, 4, Some(PacketBuilding), P54[2]),
        row("5.4", FAST, 4, Some(Ddio), P54[3]),
        row("5.5", FAST, 8, None, LIMIT_8),
        row("5.5", FAST, 8, Some(TwoPhase), P55[0]),
        row("5.5", FAST, 8, Some(MultiBlock), P55[1]),
        row("5.5", FAST, 8, Some(PacketBuilding), P55[2]),
        row("5.5", FAST, 8, Some(Ddio), P55[3]),
    ]
};

/// How much of a file is prefetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// What a random time to compute allows; the file has so many bytes.
    Random {
        /// Bytes of the file.
        bytes: u64,
    },
    /// All of it: one buffer per I/O node.
    Whole,
    /// Half of it: two buffers per I/O node.
    Half,
}

/// A figure of chapter 6.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrefetchFigure {
    /// Its number.
    pub figure: &'static str,
    /// The machine; without seeks for small records, as section 4.4 of the specification found.
    pub machine: Machine,
    /// Compute nodes.
    pub nodes: u64,
    /// I/O nodes.
    pub servers: u64,
    /// Bytes of a record.
    pub record: u64,
    /// How much is prefetched.
    pub workload: Workload,
    /// Bandwidths for [`BUFFERS`]: none, disk, packets, exchanged.
    pub printed: [[f64; 5]; 4],
}

impl PrefetchFigure {
    /// The read with a buffer of so many bytes per I/O node.
    pub fn case(&self, buffer: u64) -> Case {
        let bytes = match self.workload {
            Workload::Random { bytes } => bytes,
            Workload::Whole => self.servers * buffer,
            Workload::Half => 2 * self.servers * buffer,
        };
        Case {
            machine: self.machine,
            read: Read {
                nodes: self.nodes,
                servers: self.servers,
                bytes,
                record: self.record,
            },
        }
    }

    /// The bandwidth that the model gives; random workloads over `runs` runs.
    pub fn model(&self, how: Prefetch, buffer: u64, runs: u64) -> f64 {
        let case = self.case(buffer);
        let us = match self.workload {
            Workload::Random { .. } => case.simulate_us(how, buffer, runs, 6),
            _ => case.fulfil_us(how, (buffer / self.machine.block).min(case.blocks())),
        };
        case.read.rate(us)
    }
}

/// Figures 6.1 to 6.9.
pub fn prefetch_figures() -> Vec<PrefetchFigure> {
    let unsought = Machine::MEIKO.without_seek();
    let (meiko, fast) = (Machine::MEIKO, Machine::FAST_NETWORK);
    let figure = |figure, machine, (nodes, servers), record, workload, printed| PrefetchFigure {
        figure,
        machine,
        nodes,
        servers,
        record,
        workload,
        printed,
    };
    let file = |mb: u64| Workload::Random { bytes: mb << 20 };
    vec![
        figure(
            "6.1",
            unsought,
            (32, 4),
            8,
            file(50),
            [
                [21.6; 5],
                [21.6; 5],
                [22.3, 23.1, 24.6, 27.5, 32.9],
                [22.3, 23.0, 24.3, 26.6, 29.5],
            ],
        ),
        figure(
            "6.2",
            meiko,
            (32, 4),
            256,
            file(50),
            [
                [36.6; 5],
                [37.3, 37.5, 37.9, 38.5, 39.7],
                [38.2, 39.4, 41.8, 46.8, 57.5],
                [38.0, 39.1, 41.3, 45.7, 53.5],
            ],
        ),
        figure(
            "6.3",
            unsought,
            (32, 4),
            8,
            file(10),
            [
                [21.5; 5],
                [21.5; 5],
                [25.2, 28.6, 34.5, 36.1, 36.1],
                [24.7, 27.1, 29.7, 30.3, 30.3],
            ],
        ),
        figure(
            "6.4",
            meiko,
            (32, 4),
            256,
            file(10),
            [
                [34.8; 5],
                [42.6, 43.6, 45.2, 44.4, 44.4],
                [49.3, 57.6, 76.6, 81.9, 81.9],
                [41.6, 46.5, 54.8, 57.9, 57.9],
            ],
        ),
        figure(
            "6.5",
            fast,
            (32, 4),
            256,
            file(50),
            [
                [36.7; 5],
                [37.6, 38.1, 39.1, 41.1, 44.6],
                [38.5, 40.0, 43.3, 50.6, 68.6],
                [38.5, 40.0, 43.3, 50.6, 68.8],
            ],
        ),
        figure(
            "6.6",
            unsought,
            (256, 128),
            8,
            file(500),
            [
                [589.8; 5],
                [589.8; 5],
                [646.0, 694.5, 761.8, 779.1, 779.1],
                [646.4, 689.6, 741.7, 773.8, 773.8],
            ],
        ),
        figure(
            "6.7",
            meiko,
            (256, 128),
            256,
            file(500),
            [
                [1134.4; 5],
                [1230.4, 1243.0, 1264.2, 1112.5, 1112.5],
                [1345.8, 1475.1, 1751.1, 1796.2, 1796.2],
                [1269.6, 1357.6, 1491.6, 1616.4, 1616.4],
            ],
        ),
        figure(
            "6.8",
            unsought,
            (32, 8),
            8,
            Workload::Whole,
            [
                [42.1, 42.6, 42.9, 43.1, 43.1],
                [42.1, 42.6, 42.9, 43.1, 43.1],
                [170.9, 172.0, 173.0, 173.5, 173.8],
                [256.2, 278.6, 291.3, 298.1, 301.6],
            ],
        ),
        figure(
            "6.9",
            unsought,
            (32, 16),
            8,
            Workload::Half,
            [
                [84.2, 85.3, 85.8, 86.1, 86.3],
                [84.2, 85.3, 85.8, 86.1, 86.3],
                [144.0, 147.6, 149.5, 150.4, 150.9],
                [144.7, 148.0, 149.7, 150.5, 150.9],
            ],
        ),
    ]
}
