//! The published models against the printed tables and figures: collective reads (statements 78 to 81, 89)
//! and prefetch (82). Where the print is damaged the specification says what reproduces it.

use advise::model::ddio::{
    Machine, Read, Scheme, choose, disk_us, exchange_us, last_round, read_us,
};
use advise::model::prefetch::{Case, Prefetch};

const FILE: u64 = 50 << 20;
const NODES: [u64; 6] = [8, 16, 32, 64, 128, 256];

/// A row of a figure: bandwidths in MB/s for 8, 16, .. 256 compute nodes.
struct Row {
    figure: &'static str,
    machine: Machine,
    /// Compute nodes per I/O node.
    ratio: u64,
    scheme: Option<Scheme>,
    printed: [f64; 6],
}

const MEIKO: Machine = Machine::MEIKO;
const FAST: Machine = Machine::FAST_NETWORK;

fn row(
    figure: &'static str,
    machine: Machine,
    ratio: u64,
    scheme: Option<Scheme>,
    printed: [f64; 6],
) -> Row {
    Row {
        figure,
        machine,
        ratio,
        scheme,
        printed,
    }
}

fn figures() -> Vec<Row> {
    use Scheme::{Ddio, MultiBlock, PacketBuilding, TwoPhase};
    let f52 = |s, p| row("5.2", MEIKO, 4, s, p);
    let f53 = |s, p| row("5.3", MEIKO, 8, s, p);
    let f54 = |s, p| row("5.4", FAST, 4, s, p);
    let f55 = |s, p| row("5.5", FAST, 8, s, p);
    vec![
        f52(None, [18.4, 36.7, 72.7, 142.7, 275.1, 513.5]),
        f52(Some(TwoPhase), [12.2, 24.3, 48.4, 92.9, 160.9, 295.5]),
        f52(Some(MultiBlock), [11.0, 21.9, 43.2, 84.2, 160.1, 288.7]),
        f52(Some(PacketBuilding), [10.1, 18.6, 32.0, 50.0, 69.7, 86.7]),
        f52(Some(Ddio), [0.9, 1.8, 3.5, 7.0, 14.0, 27.8]),
        f53(None, [9.2, 18.4, 36.7, 72.7, 142.7, 275.1]),
        f53(Some(TwoPhase), [7.4, 14.7, 29.3, 57.1, 104.3, 197.2]),
        f53(Some(MultiBlock), [5.5, 11.0, 21.7, 42.3, 80.6, 147.0]),
        f53(Some(PacketBuilding), [5.1, 9.3, 16.0, 25.0, 34.9, 43.4]),
        f53(Some(Ddio), [0.4, 0.9, 1.8, 3.5, 7.0, 14.0]),
        f54(Some(TwoPhase), [13.2, 26.4, 52.4, 100.5, 173.1, 322.2]),
        f54(Some(MultiBlock), [12.8, 25.6, 51.0, 101.3, 200.6, 392.9]),
        f54(Some(PacketBuilding), [12.7, 25.0, 48.7, 92.8, 169.2, 287.8]),
        f54(Some(Ddio), [7.5, 15.0, 29.9, 59.3, 116.8, 226.7]),
        f55(None, [9.2, 18.4, 36.7, 72.7, 142.7, 275.1]),
        f55(Some(TwoPhase), [7.7, 15.4, 30.7, 59.9, 109.3, 208.7]),
        f55(Some(MultiBlock), [6.4, 12.8, 25.6, 50.9, 100.9, 198.5]),
        f55(Some(PacketBuilding), [6.3, 12.5, 24.4, 46.4, 84.8, 144.3]),
        f55(Some(Ddio), [3.8, 7.5, 15.0, 29.9, 59.3, 116.8]),
    ]
}

fn rate(row: &Row, nodes: u64) -> f64 {
    let read = Read {
        nodes,
        servers: nodes / row.ratio,
        bytes: FILE,
        record: 8,
    };
    let us = match row.scheme {
        None => disk_us(&row.machine, &read),
        // Rows of PB and MB were printed without a seek (E-11).
        Some(s @ (Scheme::MultiBlock | Scheme::PacketBuilding)) => {
            read_us(&row.machine.without_seek(), &read, s)
        }
        Some(s) => read_us(&row.machine, &read, s),
    };
    read.rate(us)
}

fn check(rows: impl Iterator<Item = Row>, tolerance: f64) {
    let mut seen = 0;
    for row in rows {
        for (nodes, printed) in NODES.into_iter().zip(row.printed) {
            let got = rate(&row, nodes);
            // Half a unit of the last printed digit belongs to the print.
            assert!(
                (got - printed).abs() <= tolerance + 0.05 + 1e-9,
                "figure {} {:?} with {nodes} nodes: {got:.2} instead of {printed}",
                row.figure,
                row.scheme
            );
            seen += 1;
        }
    }
    assert!(seen >= 18, "only {seen} values compared");
}

#[test]
fn seed002_s78_record_by_record_and_two_phase_reads_are_those_of_the_figures() {
    let all = |scheme| figures().into_iter().filter(move |r| r.scheme == scheme);
    check(all(Some(Scheme::Ddio)), 0.0);
    check(all(Some(Scheme::TwoPhase)), 0.1);
}

#[test]
fn seed002_s79_packet_building_reads_and_the_limit_of_the_disks_are_those_of_the_figures() {
    let all = |scheme| figures().into_iter().filter(move |r| r.scheme == scheme);
    check(all(Some(Scheme::PacketBuilding)), 0.1);
    check(all(Some(Scheme::MultiBlock)), 0.1);
    check(all(None), 0.2);
}

#[test]
fn seed002_s80_predicted_times_are_those_of_table_5_2() {
    // Compute nodes, MB, I/O nodes; predicted ms of DDIO, PB, MB.
    let table = [
        (12, 10, 4, [5720.0, 517.0, 458.0]),
        (12, 10, 2, [11427.0, 1032.0, 912.0]),
        (12, 50, 4, [28547.0, 2580.0, 2277.0]),
        (12, 50, 2, [57082.0, 5159.0, 4548.0]),
        (8, 10, 4, [5720.0, 495.0, 459.0]),
        (8, 10, 2, [11427.0, 989.0, 910.0]),
        (8, 50, 4, [28547.0, 2471.0, 2271.0]),
        (8, 50, 2, [57082.0, 4941.0, 4535.0]),
    ];
    for (nodes, mb, servers, printed) in table {
        let read = Read {
            nodes,
            servers,
            bytes: mb << 20,
            record: 8,
        };
        // No seek: the first block of PB and MB costs nothing beyond its work (D1 from 0 to 0.8 ms).
        let unsought = Machine {
            first_block: 0.4e3,
            ..MEIKO
        };
        let got = [
            read_us(&MEIKO, &read, Scheme::Ddio) / 1e3,
            read_us(&unsought, &read, Scheme::PacketBuilding) / 1e3,
            read_us(&unsought, &read, Scheme::MultiBlock) / 1e3,
        ];
        for (got, printed) in got.into_iter().zip(printed) {
            assert!(
                (got - printed).abs() <= 1.0 + 0.5,
                "{nodes} nodes, {mb} MB, {servers} I/O nodes: {got:.1} ms instead of {printed}"
            );
        }
    }
}

#[test]
fn seed002_s81_redistribution_times_are_those_of_table_5_3() {
    let table = [
        (10, [(16, 138.0), (12, 184.0), (8, 277.0)]),
        (50, [(16, 691.0), (12, 922.0), (8, 1383.0)]),
    ];
    for (mb, columns) in table {
        for (nodes, printed) in columns {
            let read = Read {
                nodes,
                servers: 4,
                bytes: mb << 20,
                record: 8,
            };
            let got = exchange_us(&MEIKO, &read) / 1e3;
            assert!(
                (got - printed).abs() <= 1.0,
                "{mb} MB, {nodes} nodes: {got:.1} ms instead of {printed}"
            );
        }
    }
}

#[test]
fn longer_records_bring_schemes_to_the_speed_of_the_disks() {
    // Figures 5.6 to 5.9: 32 compute nodes, 4 I/O nodes; values of the specification for MB and 2P.
    let at = |machine: &Machine, record, scheme| {
        let read = Read {
            nodes: 32,
            servers: 4,
            bytes: FILE,
            record,
        };
        read.rate(read_us(machine, &read, scheme))
    };
    let printed = [(8, 21.5, 29.3), (16, 36.4, 31.3), (24, 36.6, 31.6)];
    for (record, mb, two_phase) in printed {
        assert!((at(&MEIKO, record, Scheme::MultiBlock) - mb).abs() <= 0.15);
        assert!((at(&MEIKO, record, Scheme::TwoPhase) - two_phase).abs() <= 0.15);
    }
    let limit = |machine: &Machine| at(machine, 64, Scheme::MultiBlock);
    // 5.6: packets of every block cost PB messages it cannot hide.
    assert!(at(&MEIKO, 16, Scheme::PacketBuilding) < 0.8 * limit(&MEIKO));
    // 5.7: with a fast network DDIO itself keeps up from 24 bytes on.
    assert!(at(&FAST, 16, Scheme::Ddio) < 0.9 * limit(&FAST));
    assert!(at(&FAST, 24, Scheme::Ddio) > 0.99 * limit(&FAST));
    assert!(at(&FAST, 16, Scheme::PacketBuilding) > 0.99 * limit(&FAST));
    // 5.8: disks twice as fast leave less to hide behind; 2P gains over MB.
    let quick = MEIKO.with_disk_speed(2.0);
    let lead = |m: &Machine, e| at(m, e, Scheme::MultiBlock) / at(m, e, Scheme::TwoPhase);
    assert!(lead(&quick, 16) < lead(&MEIKO, 16));
    assert!(at(&quick, 8, Scheme::TwoPhase) > 1.3 * at(&MEIKO, 8, Scheme::TwoPhase));
    // 5.9: faster packing closes the gap at 8 bytes more than a faster network does.
    let packing = Machine {
        packing: 2.0 / 3.0,
        ..MEIKO
    };
    assert!(lead(&packing, 8) > lead(&FAST, 8) && lead(&FAST, 8) > lead(&MEIKO, 8));
}

#[test]
fn seed002_s89_the_choice_is_the_fastest_and_flips_as_table_5_7_says() {
    let read = |nodes, servers, record| Read {
        nodes,
        servers,
        bytes: FILE,
        record,
    };
    let time = |m: &Machine, r: &Read, s| read_us(m, r, s);
    let mut machines = vec![MEIKO, FAST, MEIKO.with_disk_speed(4.0)];
    machines.push(MEIKO.without_seek());
    for machine in &machines {
        for nodes in NODES {
            for record in [8, 16, 24, 32, 64] {
                let r = read(nodes, (nodes / 4).max(1), record);
                let best = time(machine, &r, choose(machine, &r));
                for scheme in Scheme::ALL {
                    assert!(best <= time(machine, &r, scheme), "{r:?} {scheme:?}");
                }
            }
        }
    }
    let chosen = |m: Machine, nodes, servers, record| choose(&m, &read(nodes, servers, record));
    // Compute nodes per I/O node, upwards: towards 2P.
    assert_eq!(chosen(FAST, 256, 64, 8), Scheme::MultiBlock);
    assert_eq!(chosen(FAST, 256, 16, 8), Scheme::TwoPhase);
    // Disk bandwidth, upwards: towards 2P.
    // Slow disks hide everything, and what is hidden is least with PB, which leaves nothing to unpack.
    assert_eq!(
        chosen(MEIKO.with_disk_speed(0.5), 32, 4, 16),
        Scheme::PacketBuilding
    );
    assert_eq!(chosen(MEIKO, 32, 4, 16), Scheme::MultiBlock);
    assert_eq!(
        chosen(MEIKO.with_disk_speed(4.0), 32, 4, 16),
        Scheme::TwoPhase
    );
    // Message latency, downwards: towards PB and DDIO, which send many; 2P hardly changes.
    let with_latency = |lambda| Machine { lambda, ..FAST };
    let r = read(32, 4, 24);
    let gain = |s| time(&with_latency(17.0), &r, s) / time(&with_latency(0.1), &r, s);
    assert!(gain(Scheme::Ddio) > gain(Scheme::PacketBuilding));
    assert!(gain(Scheme::PacketBuilding) >= gain(Scheme::MultiBlock));
    assert!(gain(Scheme::TwoPhase) < 1.01);
    let slow_packing = |lambda| Machine {
        packing: 3.0,
        ..with_latency(lambda)
    };
    assert_eq!(choose(&slow_packing(0.1), &r), Scheme::Ddio);
    assert_ne!(choose(&slow_packing(17.0), &r), Scheme::Ddio);
    // Packing speed, upwards: away from 2P, which cannot win where all is hidden.
    let packing = |packing| Machine { packing, ..MEIKO };
    assert_eq!(chosen(packing(1.0), 32, 4, 8), Scheme::TwoPhase);
    assert_eq!(chosen(packing(0.4), 32, 4, 8), Scheme::MultiBlock);
    let unpacked = |p| time(&packing(p), &read(32, 4, 8), Scheme::Ddio);
    assert_eq!(unpacked(1.0), unpacked(0.4));
    // Record size, upwards: as packing speed.
    assert_eq!(chosen(MEIKO, 32, 4, 8), Scheme::TwoPhase);
    assert_eq!(chosen(MEIKO, 32, 4, 16), Scheme::MultiBlock);
    // Compute nodes, upwards at the same ratio: 2P loses to address translation.
    assert_eq!(chosen(FAST, 32, 8, 8), Scheme::TwoPhase);
    assert_eq!(chosen(FAST, 128, 32, 8), Scheme::MultiBlock);
    let by_record = |nodes| {
        let r = read(nodes, nodes / 4, 8);
        time(&FAST.without_seek(), &r, Scheme::Ddio) * (nodes as f64)
    };
    assert!(
        (by_record(32) / by_record(256) - 1.0).abs() < 0.02,
        "DDIO is unaffected"
    );
}

#[test]
fn the_last_round_holds_between_one_and_all_blocks() {
    assert_eq!(
        (last_round(32, 16), last_round(33, 16), last_round(1, 16)),
        (16, 1, 1)
    );
}

/// A figure of chapter 6: bandwidth for buffers of 512 KB to 8 MB.
fn prefetched(case: impl Fn(u64) -> Case, how: Prefetch, fixed: bool) -> [f64; 5] {
    [512 << 10, 1 << 20, 2 << 20, 4 << 20, 8 << 20].map(|buffer| {
        let case = case(buffer);
        let us = match fixed {
            true => case.fulfil_us(how, (buffer / 8192).min(case.blocks())),
            false => case.simulate_us(how, buffer, 2000, 6),
        };
        case.read.rate(us)
    })
}

fn near(got: [f64; 5], printed: [f64; 5], tolerance: f64, what: &str) {
    for (got, printed) in got.into_iter().zip(printed) {
        assert!(
            (got / printed - 1.0).abs() <= tolerance,
            "{what}: {got:.1} instead of {printed}"
        );
    }
}

fn case(machine: Machine, nodes: u64, servers: u64, bytes: u64, record: u64) -> Case {
    Case {
        machine,
        read: Read {
            nodes,
            servers,
            bytes,
            record,
        },
    }
}

#[test]
fn seed002_s82_prefetched_reads_are_those_of_figures_6_1_6_3_and_6_9() {
    use Prefetch::{Disk, Exchanged, None, Packets};
    // Fine-grained figures were made without seeks.
    let quick = MEIKO.without_seek();
    let f61 = |_| case(quick, 32, 4, 50 << 20, 8);
    for how in [None, Disk] {
        near(prefetched(f61, how, false), [21.6; 5], 0.02, "6.1 none");
    }
    near(
        prefetched(f61, Packets, false),
        [22.3, 23.1, 24.6, 27.5, 32.9],
        0.02,
        "6.1 PB",
    );
    near(
        prefetched(f61, Exchanged, false),
        [22.3, 23.0, 24.3, 26.6, 29.5],
        0.02,
        "6.1 PBX",
    );
    let f63 = |_| case(quick, 32, 4, 10 << 20, 8);
    near(prefetched(f63, None, false), [21.5; 5], 0.02, "6.3 none");
    near(
        prefetched(f63, Packets, false),
        [25.2, 28.6, 34.5, 36.1, 36.1],
        0.02,
        "6.3 PB",
    );
    near(
        prefetched(f63, Exchanged, false),
        [24.7, 27.1, 29.7, 30.3, 30.3],
        0.025,
        "6.3 PBX",
    );
    let f69 = |buffer: u64| case(quick, 32, 16, 32 * buffer, 8);
    near(
        prefetched(f69, None, true),
        [84.2, 85.3, 85.8, 86.1, 86.3],
        0.02,
        "6.9 none",
    );
    near(
        prefetched(f69, Packets, true),
        [144.0, 147.6, 149.5, 150.4, 150.9],
        0.02,
        "6.9 PB",
    );
    near(
        prefetched(f69, Exchanged, true),
        [144.7, 148.0, 149.7, 150.5, 150.9],
        0.02,
        "6.9 PBX",
    );
    // Within the limits of section 4.4: large machine, and everything prefetched.
    let f66 = |_| case(quick, 256, 128, 500 << 20, 8);
    near(prefetched(f66, None, false), [589.8; 5], 0.01, "6.6 none");
    near(
        prefetched(f66, Packets, false),
        [646.0, 694.5, 761.8, 779.1, 779.1],
        0.04,
        "6.6 PB",
    );
    near(
        prefetched(f66, Exchanged, false),
        [646.4, 689.6, 741.7, 773.8, 773.8],
        0.08,
        "6.6 PBX",
    );
    let f68 = |buffer: u64| case(quick, 32, 8, 8 * buffer, 8);
    near(
        prefetched(f68, None, true),
        [42.1, 42.6, 42.9, 43.1, 43.1],
        0.01,
        "6.8 none",
    );
    near(
        prefetched(f68, Packets, true),
        [170.9, 172.0, 173.0, 173.5, 173.8],
        0.05,
        "6.8 PB",
    );
    let exchanged = prefetched(f68, Exchanged, true);
    for (i, (got, printed)) in exchanged
        .into_iter()
        .zip([256.2, 278.6, 291.3, 298.1, 301.6])
        .enumerate()
    {
        let bytes = 4.0 * f64::from(1 << i);
        let missing_ms = (bytes / printed - bytes / got) * 1e3;
        assert!(
            (missing_ms - 2.4).abs() < 0.4,
            "6.8 PBX: {missing_ms:.2} ms too fast"
        );
    }
}

#[test]
fn large_grained_prefetch_has_the_order_and_trends_of_the_figures() {
    use Prefetch::{Disk, Exchanged, None, Packets};
    let settings = [
        (MEIKO, 32, 4, 50u64 << 20),
        (MEIKO, 32, 4, 10 << 20),
        (FAST, 32, 4, 50 << 20),
        (MEIKO, 256, 128, 500 << 20),
    ];
    for (machine, nodes, servers, bytes) in settings {
        let of = |how| prefetched(|_| case(machine, nodes, servers, bytes, 256), how, false);
        let (none, disk, packets, exchanged) = (of(None), of(Disk), of(Packets), of(Exchanged));
        for i in 0..5 {
            for other in [none[i], disk[i], exchanged[i]] {
                // Tied within 5 percent: in 6.7 the equations put PBX that far ahead at 8 MB, where the
                // print has PB ahead.
                assert!(
                    packets[i] >= 0.95 * other,
                    "PB is best or tied: {packets:?} {other}"
                );
            }
            if i <= 2 {
                assert!(disk[i] >= 0.99 * none[i], "{disk:?} {none:?}");
            }
        }
        assert!(
            packets.windows(2).all(|w| w[1] >= 0.999 * w[0]),
            "{packets:?}"
        );
    }
    // Figure 6.7: nearly everything prefetched, nothing left to overlap with: worse than nothing.
    let of = |how| prefetched(|_| case(MEIKO, 256, 128, 500 << 20, 256), how, false);
    assert!(of(Disk)[4] < of(None)[4]);
}
