//! Laws of the cost model: which ways there are, what they carry, and how they rank where the ranking is
//! known without a clock. What they cost on a real machine is measured elsewhere.

use advise::cost::{
    Access, Curve, DirectedWay, Home, Machine, Op, Prediction, Process, StoreKind, Way,
    alternatives,
};
use layout::{FileOffset, Partition, Pattern, View};

/// `count` blocks of `block` bytes in turn.
fn striped(block: u64, count: u64) -> Partition {
    let sets = (0..count).map(|i| {
        let text = format!("{{({},{})}}", i * block, (i + 1) * block - 1);
        text.parse().expect("valid")
    });
    Partition::from_start(Pattern::new(block * count, sets.collect()).expect("valid"))
}

/// Every `count`-th block of `block` bytes, from block `i` on.
fn cyclic(block: u64, count: u64, i: u64) -> View {
    let set = format!("{{(0,{})}}", block - 1);
    let displacement = FileOffset(i * block);
    View::new(displacement, block * count, set.parse().expect("valid")).expect("valid")
}

fn ask(
    op: Op,
    processes: &[Process],
    partition: &Partition,
    is_collective: bool,
) -> Vec<Prediction> {
    let servers: Vec<usize> = (0..partition.len()).collect();
    let hosts = vec![0; servers.len()];
    let home = Home {
        partition,
        servers: &servers,
        server_count: servers.len(),
        hosts: &hosts,
    };
    let access = Access {
        op,
        processes,
        is_collective,
        store: StoreKind::Memory,
    };
    alternatives(&Machine::HOST, &access, &home)
}

fn seconds(of: &[Prediction], way: impl Fn(Way) -> bool) -> f64 {
    let found = of.iter().find(|p| way(p.way));
    found.expect("this way is predicted").seconds
}

#[test]
fn every_way_carries_at_least_the_bytes_and_numbers_are_finite() {
    let partition = striped(4096, 4);
    for op in [Op::Read, Op::Write] {
        let processes: Vec<Process> = (0..3)
            .map(|i| Process {
                view: cyclic(8, 3, i),
                lo: 5,
                hi: 100_005,
                near: Some(0),
            })
            .collect();
        let all = ask(op, &processes, &partition, true);
        assert_eq!(all.len(), 10, "{all:?}");
        for p in &all {
            assert!(p.seconds.is_finite() && p.seconds > 0.0, "{p:?}");
            assert!(p.bytes >= 300_000, "{p:?}");
            assert_eq!(p.per_server.len(), 4);
            assert!((0.0..=1.0).contains(&p.matching));
        }
        assert!(all.windows(2).all(|w| w[0].seconds <= w[1].seconds));
    }
}

#[test]
fn nothing_accessed_costs_no_bytes() {
    let partition = striped(4096, 2);
    let nothing = Process {
        view: cyclic(8, 2, 0),
        lo: 40,
        hi: 40,
        near: None,
    };
    let all = ask(Op::Read, &[nothing], &partition, false);
    assert_eq!(all.len(), 1);
    assert_eq!((all[0].bytes, all[0].messages), (0, 0));
    assert!(all[0].seconds.is_finite());
}

#[test]
fn a_matching_view_is_a_message_and_a_fine_one_is_packed() {
    let partition = striped(1 << 16, 2);
    let one = |view| {
        vec![Process {
            view,
            lo: 0,
            hi: 1 << 20,
            near: None,
        }]
    };
    let same = ask(Op::Read, &one(cyclic(1 << 16, 2, 1)), &partition, false);
    assert_eq!(same[0].way, Way::Message);
    assert!(same[0].matching > 0.999);
    let fine = ask(Op::Read, &one(cyclic(8, 2, 1)), &partition, false);
    assert_eq!(fine[0].way, Way::Packed);
    assert!(fine[0].matching < 0.8 * same[0].matching);
    // One request per 8 bytes is far worse than any other way.
    assert_eq!(fine.last().expect("several").way, Way::Pieces);
}

#[test]
fn cost_is_found_without_walking_the_file() {
    // 2^40 bytes in pieces of 8: 2^36 of them per process. Ends at once or never.
    let partition = striped(1 << 20, 8);
    let huge = Process {
        view: cyclic(8, 2, 0),
        lo: 0,
        hi: 1 << 39,
        near: Some(0),
    };
    let all = ask(Op::Write, &[huge], &partition, false);
    let pieces: u64 = all[0].per_server.iter().map(|s| s.pieces).sum();
    assert_eq!(pieces, 1 << 36);
}

#[test]
fn unbalanced_views_show_as_contention() {
    let partition = striped(1 << 16, 4);
    // All processes want the bytes of one server.
    let on_first = |_| Process {
        view: cyclic(1 << 16, 4, 0),
        lo: 0,
        hi: 1 << 20,
        near: None,
    };
    let spread = |i| Process {
        view: cyclic(1 << 16, 4, i),
        lo: 0,
        hi: 1 << 20,
        near: None,
    };
    let one: Vec<Process> = (0..4).map(on_first).collect();
    let all: Vec<Process> = (0..4).map(spread).collect();
    let (one, all) = (
        ask(Op::Read, &one, &partition, false),
        ask(Op::Read, &all, &partition, false),
    );
    let busiest = |p: &Prediction| p.per_server.iter().map(|s| s.bytes).max();
    assert_eq!(busiest(&one[0]), Some(4 << 20));
    assert_eq!(busiest(&all[0]), Some(1 << 20));
    assert!(one[0].seconds > 1.5 * all[0].seconds);
}

#[test]
fn a_server_on_another_host_is_reached_by_message_only() {
    let partition = striped(1 << 16, 2);
    let home = |hosts: &'static [usize]| Home {
        partition: &partition,
        servers: &[0, 1],
        server_count: 2,
        hosts,
    };
    let whole = [Process {
        view: View::whole_file(),
        lo: 0,
        hi: 1 << 20,
        near: Some(0),
    }];
    let access = Access {
        op: Op::Read,
        processes: &whole,
        is_collective: false,
        store: StoreKind::Memory,
    };
    let ways = |hosts| -> Vec<Way> {
        let all = alternatives(&Machine::HOST, &access, &home(hosts));
        all.iter().map(|p| p.way).collect()
    };
    assert!(ways(&[0, 0]).contains(&Way::Direct));
    assert!(!ways(&[0, 1]).contains(&Way::Direct));
}

#[test]
fn faster_packing_never_makes_a_way_slower() {
    let partition = striped(1 << 12, 4);
    let processes: Vec<Process> = (0..4)
        .map(|i| Process {
            view: cyclic(16, 4, i),
            lo: 0,
            hi: 1 << 20,
            near: None,
        })
        .collect();
    let home = Home {
        partition: &partition,
        servers: &[0, 1, 2, 3],
        server_count: 4,
        hosts: &[0, 1, 2, 3],
    };
    let access = Access {
        op: Op::Read,
        processes: &processes,
        is_collective: true,
        store: StoreKind::Disk,
    };
    let halved = |c: Curve| Curve {
        a: c.a / 2.0,
        c: c.c / 2.0,
        ..c
    };
    let fast = Machine {
        pack: halved(Machine::HOST.pack),
        unpack: halved(Machine::HOST.unpack),
        ..Machine::HOST
    };
    let before = alternatives(&Machine::HOST, &access, &home);
    let after = alternatives(&fast, &access, &home);
    for p in &before {
        let same = |way| way == p.way;
        assert!(seconds(&after, same) <= seconds(&before, same), "{p:?}");
    }
    let by_piece = |way| way == Way::DiskDirected(DirectedWay::Piece);
    assert_eq!(
        seconds(&after, by_piece),
        seconds(&before, by_piece),
        "who sends piece by piece packs nothing"
    );
}
