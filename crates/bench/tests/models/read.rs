//! The published models against the printed tables and figures: collective reads (statements 78 to 81, 89)
//! and prefetch (82). Where the print is damaged the specification says what reproduces it.

use bench::models::ddio::{Machine, Read, Scheme, choose, exchange_us, last_round, read_us};
use bench::models::figures::{BUFFERS, NODES, READS, ReadRow, prefetch_figures};
use bench::models::prefetch::Prefetch;

const FILE: u64 = 50 << 20;
const MEIKO: Machine = Machine::MEIKO;
const FAST: Machine = Machine::FAST_NETWORK;

fn check(rows: impl Iterator<Item = ReadRow>, tolerance: f64) {
    let mut seen = 0;
    for row in rows {
        for (nodes, printed) in NODES.into_iter().zip(row.printed) {
            let got = row.model(nodes);
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
    let all = |scheme| READS.into_iter().filter(move |r| r.scheme == scheme);
    check(all(Some(Scheme::Ddio)), 0.0);
    check(all(Some(Scheme::TwoPhase)), 0.1);
}

#[test]
fn seed002_s79_packet_building_reads_and_the_limit_of_the_disks_are_those_of_the_figures() {
    let all = |scheme| READS.into_iter().filter(move |r| r.scheme == scheme);
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

/// Printed and modelled bandwidths of one scheme of a figure of chapter 6.
fn prefetched(figure: &str, how: Prefetch) -> ([f64; 5], [f64; 5]) {
    let all = prefetch_figures();
    let found = all.iter().find(|f| f.figure == figure).expect("a figure");
    let row = Prefetch::ALL
        .iter()
        .position(|h| *h == how)
        .expect("listed");
    let got = BUFFERS.map(|buffer| found.model(how, buffer, 2000));
    (got, found.printed[row])
}

fn near(figure: &str, how: Prefetch, tolerance: f64) {
    let (got, printed) = prefetched(figure, how);
    for (got, printed) in got.into_iter().zip(printed) {
        assert!(
            (got / printed - 1.0).abs() <= tolerance,
            "{figure} {how:?}: {got:.1} instead of {printed}"
        );
    }
}

#[test]
fn seed002_s82_prefetched_reads_are_those_of_figures_6_1_6_3_and_6_9() {
    use Prefetch::{Disk, Exchanged, None, Packets};
    for how in Prefetch::ALL {
        near("6.1", how, 0.02);
        near("6.9", how, 0.02);
    }
    for how in [None, Disk, Packets] {
        near("6.3", how, 0.02);
    }
    near("6.3", Exchanged, 0.025);
    // Within the limits of section 4.4: large machine, and everything prefetched.
    near("6.6", None, 0.01);
    near("6.6", Packets, 0.04);
    near("6.6", Exchanged, 0.08);
    near("6.8", None, 0.01);
    near("6.8", Packets, 0.05);
    let (got, printed) = prefetched("6.8", Exchanged);
    for (i, (got, printed)) in got.into_iter().zip(printed).enumerate() {
        let mb = 4.0 * f64::from(1 << i);
        let missing_ms = (mb / printed - mb / got) * 1e3;
        assert!(
            (missing_ms - 2.4).abs() < 0.4,
            "6.8 PBX: {missing_ms:.2} ms too fast"
        );
    }
}

#[test]
fn large_grained_prefetch_has_the_order_and_trends_of_the_figures() {
    for figure in ["6.2", "6.4", "6.5", "6.7"] {
        let [none, disk, packets, exchanged] = Prefetch::ALL.map(|how| prefetched(figure, how).0);
        for i in 0..5 {
            for other in [none[i], disk[i], exchanged[i]] {
                // Tied within 5 percent: in 6.7 the equations put PBX that far ahead at 8 MB, where the
                // print has PB ahead.
                assert!(packets[i] >= 0.95 * other, "{figure}: {packets:?} {other}");
            }
            if i <= 2 {
                assert!(disk[i] >= 0.99 * none[i], "{figure}: {disk:?} {none:?}");
            }
        }
        assert!(
            packets.windows(2).all(|w| w[1] >= 0.999 * w[0]),
            "{figure}: {packets:?}"
        );
    }
    // Figure 6.7: nearly everything prefetched, nothing left to overlap with: worse than nothing.
    let last = |how| prefetched("6.7", how).0[4];
    assert!(last(Prefetch::Disk) < last(Prefetch::None));
}
