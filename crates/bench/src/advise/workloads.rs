//! The workloads whose layouts are advised and measured: who reads or writes what.
//!
//! Sweeps of rows, columns, blocks, planes and pencils, cyclic ones, nested strides, blocks in no order, uneven parts,
//! and two phases in turn. Arrays have 16 MB, except where `tiny` makes them small.

/// What processes do.
pub(super) struct Workload {
    pub(super) name: &'static str,
    /// With `N` for the extent.
    array: &'static str,
    /// Views of rank `K`, one phase after the other.
    pub(super) views: &'static [&'static str],
    pub(super) op: &'static str,
}

pub(super) const WORKLOADS: &[Workload] = &[
    Workload {
        name: "rows",
        array: "f32[N,N]",
        views: &["(block, *) onto 4 [K]"],
        op: "read",
    },
    Workload {
        name: "columns",
        array: "f32[N,N]",
        views: &["(*, block) onto 4 [K]"],
        op: "read",
    },
    Workload {
        name: "blocks",
        array: "f32[N,N]",
        views: &["(block, block) onto 2x2 [K]"],
        op: "read",
    },
    Workload {
        name: "rows-written",
        array: "f32[N,N]",
        views: &["(block, *) onto 4 [K]"],
        op: "write",
    },
    Workload {
        name: "columns-written",
        array: "f32[N,N]",
        views: &["(*, block) onto 4 [K]"],
        op: "write",
    },
    Workload {
        name: "blocks-written",
        array: "f32[N,N]",
        views: &["(block, block) onto 2x2 [K]"],
        op: "write",
    },
    Workload {
        name: "planes-i",
        array: "f32[M,M,M]",
        views: &["(block, *, *) onto 4 [K]"],
        op: "read",
    },
    Workload {
        name: "planes-j",
        array: "f32[M,M,M]",
        views: &["(*, block, *) onto 4 [K]"],
        op: "read",
    },
    Workload {
        name: "planes-k",
        array: "f32[M,M,M]",
        views: &["(*, *, block) onto 4 [K]"],
        op: "read",
    },
    Workload {
        name: "pencils-ij",
        array: "f32[M,M,M]",
        views: &["(block, block, *) onto 2x2 [K]"],
        op: "read",
    },
    Workload {
        name: "pencils-ik",
        array: "f32[M,M,M]",
        views: &["(block, *, block) onto 2x2 [K]"],
        op: "read",
    },
    Workload {
        name: "pencils-jk",
        array: "f32[M,M,M]",
        views: &["(*, block, block) onto 2x2 [K]"],
        op: "read",
    },
    Workload {
        name: "cyclic-rows",
        array: "f32[N,N]",
        views: &["(cyclic, *) onto 4 [K]"],
        op: "read",
    },
    Workload {
        name: "cyclic-columns",
        array: "f32[N,N]",
        views: &["(*, cyclic(16)) onto 4 [K]"],
        op: "read",
    },
    Workload {
        name: "block-cyclic",
        array: "f32[N,N]",
        views: &["(cyclic(8), cyclic(64)) onto 2x2 [K]"],
        op: "read",
    },
    Workload {
        name: "block-cyclic-written",
        array: "f32[N,N]",
        views: &["(cyclic(16), cyclic(64)) onto 2x2 [K]"],
        op: "write",
    },
    Workload {
        name: "nested-strides",
        array: "f32[N,N]",
        views: &["(cyclic(4), cyclic(32)) onto 4x1 [K]"],
        op: "read",
    },
    Workload {
        name: "strided-bytes",
        array: "f32[N,N]",
        views: &["striped(4KiB) over 4 [K]"],
        op: "read",
    },
    Workload {
        name: "irregular",
        array: "f32[N,N]",
        views: &["blocks(16KiB: IRREGULAR) over 4 [K]"],
        op: "read",
    },
    Workload {
        name: "uneven",
        array: "f32[N,N]",
        views: &["(gen_block(UNEVEN), *) onto 4 [K]"],
        op: "read",
    },
    Workload {
        name: "rows-and-columns",
        array: "f32[N,N]",
        views: &["(block, *) onto 4 [K]", "(*, block) onto 4 [K]"],
        op: "read",
    },
    Workload {
        name: "blocks-and-rows",
        array: "f32[N,N]",
        views: &["(block, block) onto 2x2 [K]", "(block, *) onto 4 [K]"],
        op: "read",
    },
    Workload {
        name: "everything",
        array: "f32[N,N]",
        views: &["whole [0]"],
        op: "read",
    },
];

impl Workload {
    pub(super) fn array(&self, tiny: bool) -> String {
        let (n, m) = if tiny { ("256", "40") } else { ("2048", "160") };
        self.array.replace('N', n).replace('M', m)
    }

    pub(super) fn view(&self, phase: usize, rank: usize, tiny: bool) -> String {
        let n: u64 = if tiny { 256 } else { 2048 };
        let uneven = format!("{},{},{},{}", n / 2, n / 4, n / 8, n / 8);
        let view = self.views[phase];
        let view = match view.contains("IRREGULAR") {
            true => view.replace("IRREGULAR", &irregular(n * n * 4 / (16 << 10))),
            false => view.to_owned(),
        };
        view.replace("UNEVEN", &uneven)
            .replace("[K]", &format!("[{rank}]"))
    }
}

/// Owners in no order, the same every time.
fn irregular(blocks: u64) -> String {
    let mut random = random::Random::new(12345);
    // Everybody has one.
    let owners = (0..blocks.max(4)).map(|i| if i < 4 { i } else { random.below(4) });
    owners.map(|o| o.to_string()).collect::<Vec<_>>().join(",")
}
