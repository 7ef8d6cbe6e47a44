//! Single steps of the protocols, with exact numbers of messages.
//!
//! Process `p` of `n` is at home to pages `p`, `p + n`, ...; a page has 64 bytes.

use dsm::{Access, Message, Permission, Protocol, Setting, State, Trouble, Wakes};

use crate::cluster::{Cluster, PAGE};

const WEAK: [Protocol; 2] = [Protocol::HomeBased, Protocol::Homeless];
const ALL: [Protocol; 3] = [
    Protocol::HomeBased,
    Protocol::Homeless,
    Protocol::Sequential,
];

fn cluster(processes: u16, protocol: Protocol) -> Cluster {
    Cluster::new(&Setting {
        protocol,
        ..Setting::new(processes, 8)
    })
}

#[test]
fn seed003_dsm03_neighbouring_bytes_of_different_writers_merge() {
    for protocol in ALL {
        let mut all = cluster(4, protocol);
        for at in 0..2 * PAGE {
            all.store((at % 4) as u16, at, at as u8 | 1);
        }
        all.barrier(0);
        for process in 0..4 {
            for at in 0..2 * PAGE {
                assert_eq!(all.load(process, at), at as u8 | 1, "{protocol:?}");
            }
        }
    }
}

#[test]
fn seed003_dsm06_what_was_written_before_a_release_is_seen_over_third_processes_and_locks() {
    for protocol in ALL {
        let mut all = cluster(3, protocol);
        all.load(2, 5);
        all.acquire(0, 0);
        all.store(0, 5, 77);
        all.release(0, 0);
        all.acquire(1, 0);
        all.release(1, 0);
        all.acquire(1, 1);
        all.release(1, 1);
        all.acquire(2, 1);
        assert_eq!(all.load(2, 5), 77, "{protocol:?}");
    }
}

#[test]
fn seed003_dsm07_locks_and_barriers_carry_no_contents() {
    for protocol in WEAK {
        let mut all = cluster(2, protocol);
        all.holds = vec!["LockGrant", "BarrierArrive", "BarrierDepart"];
        for at in 0..8 * PAGE {
            all.store(0, at, 0xab);
        }
        let _ = all.act(1, |machine, ticket| machine.acquire(0, ticket));
        for (_, _, message) in &all.held {
            let mut bytes = Vec::new();
            dsm::Code::put(message, &mut bytes);
            assert!(!bytes.contains(&0xab) && bytes.len() < 80, "{message:?}");
        }
        assert_eq!(all.held.len(), 1);
    }
}

#[test]
fn seed003_dsm08_only_noticed_pages_are_taken() {
    for protocol in WEAK {
        let mut all = cluster(2, protocol);
        for page in 0..8 {
            all.load(1, page * PAGE);
        }
        all.store(0, 2 * PAGE, 1);
        all.barrier(0);
        let open = all
            .machine(1)
            .memory
            .allowed
            .iter()
            .map(|allowed| *allowed == Permission::Reading);
        let expected = (0..8).map(|page| page != 2);
        assert!(open.eq(expected), "{protocol:?}");
        let faults = all.machine(1).statistics().read_faults;
        for page in 0..8 {
            all.load(1, page * PAGE);
        }
        assert_eq!(all.machine(1).statistics().read_faults - faults, 1);
    }
}

#[test]
fn seed003_dsm09_locks_take_as_many_messages_as_they_must() {
    for protocol in ALL {
        let mut all = cluster(3, protocol);
        // Lock 0 is managed, and at first held, by process 0.
        assert_eq!(all.counting(|all| all.acquire(0, 0)), 0);
        all.release(0, 0);
        assert_eq!(
            all.counting(|all| all.acquire(1, 0)),
            2,
            "the manager holds it"
        );
        all.release(1, 0);
        assert_eq!(all.counting(|all| all.acquire(1, 0)), 0, "held here last");
        all.release(1, 0);
        assert_eq!(
            all.counting(|all| all.acquire(2, 0)),
            3,
            "request, forward, grant"
        );
        all.release(2, 0);
        assert_eq!(all.counting(|all| all.acquire(0, 0)), 2, "the manager asks");
        all.release(0, 0);
        assert_eq!(all.counting(|all| all.barrier(0)), 4, "a barrier");
    }
}

#[test]
fn seed003_dsm10_locks_go_in_the_order_of_arrival_and_survive_who_gives_up() {
    let mut all = cluster(4, Protocol::HomeBased);
    all.acquire(0, 0);
    let tickets: Vec<u64> = (1..4)
        .map(|process| all.act(process, |machine, ticket| machine.acquire(0, ticket)))
        .collect();
    assert!(tickets.iter().all(|ticket| !all.is_ready(*ticket)));
    // The second gives up: the token passes it by.
    assert!(all.machines[2].abandon(0, tickets[1]).is_some());
    all.release(0, 0);
    assert_eq!(all.ready.last(), Some(&(1, tickets[0])));
    all.release(1, 0);
    assert_eq!(all.ready.last(), Some(&(3, tickets[2])));
    assert!(!all.is_ready(tickets[1]));
    assert!(
        all.machines[3].abandon(0, tickets[2]).is_none(),
        "it has the lock"
    );
    // Trying asks for the token without waiting.
    assert!(all.machines[1].try_acquire(0).is_none());
    all.release(3, 0);
    all.settle();
    assert!(all.machines[1].try_acquire(0).is_some());
    assert_eq!(
        all.machines[2].release(0),
        Err(Trouble::NotHeld { lock: 0 })
    );
}

#[test]
fn seed003_dsm11_processes_at_different_barriers_are_told() {
    let mut all = cluster(3, Protocol::HomeBased);
    let first = all.act(0, |machine, ticket| machine.arrive(7, ticket));
    all.act(2, |machine, ticket| machine.arrive(8, ticket));
    assert!(!all.is_ready(first) && all.failed.is_empty());
    all.act(1, |machine, ticket| machine.arrive(7, ticket));
    let trouble = Trouble::BarriersDiffer { process: 2 };
    assert_eq!(
        all.failed.iter().map(|f| f.2).collect::<Vec<_>>(),
        [trouble; 3]
    );
    assert!(trouble.to_string().contains("process 2"));
}

#[test]
fn seed003_dsm11_behind_a_barrier_all_know_the_same() {
    for protocol in WEAK {
        let mut all = cluster(3, protocol);
        for process in 0..3 {
            all.store(process, usize::from(process), 9);
        }
        all.barrier(0);
        assert!((1..3).all(|p| all.machine(p).time() == all.machine(0).time()));
        assert!((0..3).all(|p| all.machine(0).time().of(p) == 1));
    }
}

#[test]
fn seed003_dsm12_a_miss_takes_one_request_and_one_reply() {
    let mut all = cluster(2, Protocol::HomeBased);
    all.store(0, 0, 1);
    all.barrier(0);
    assert_eq!(all.counting(|all| assert_eq!(all.load(1, 0), 1)), 2);
    assert_eq!(all.counting(|all| assert_eq!(all.load(1, 1), 0)), 0);
    // A release says one thing to each home it changed something at.
    all.acquire(1, 1);
    all.store(1, 0, 3);
    all.store(1, PAGE, 3);
    all.store(1, 2 * PAGE, 3);
    let flushes = |all: &Cluster| all.total(|s| s.messages_of("Flush"));
    let before = flushes(&all);
    all.release(1, 1);
    assert_eq!(flushes(&all), before, "nobody waits for the lock");
    all.acquire(0, 1);
    assert_eq!(flushes(&all), before + 1);
}

#[test]
fn seed003_dsm12_a_home_answers_when_it_has_what_is_needed() {
    let mut all = cluster(3, Protocol::HomeBased);
    all.holds = vec!["Flush"];
    all.acquire(1, 1);
    all.store(1, 0, 5);
    all.release(1, 1);
    all.acquire(2, 1);
    let ticket = all.act(2, |machine, ticket| machine.fault(0, Access::Read, ticket));
    assert!(!all.is_ready(ticket), "the change is still on its way");
    all.acquire(0, 1 + 3);
    all.let_go();
    assert!(all.is_ready(ticket));
    assert_eq!(all.load(2, 0), 5);
}

#[test]
fn seed003_dsm13_a_page_is_asked_for_again_if_something_newer_was_noticed() {
    let mut all = cluster(3, Protocol::HomeBased);
    all.holds = vec!["PageReply"];
    let ticket = all.act(2, |machine, ticket| machine.fault(0, Access::Read, ticket));
    all.store(0, 0, 5);
    all.acquire(0, 0);
    all.release(0, 0);
    all.acquire(2, 0);
    assert!(!all.is_ready(ticket));
    all.let_go();
    assert!(all.is_ready(ticket));
    assert_eq!(all.machine(2).statistics().repeated_fetches, 1);
    assert_eq!(all.load(2, 0), 5);
}

#[test]
fn seed003_dsm14_two_threads_that_miss_a_page_fetch_it_once() {
    for protocol in ALL {
        let mut all = cluster(2, protocol);
        all.holds = vec!["PageReply", "Data"];
        let tickets: Vec<u64> = (0..2)
            .map(|_| all.act(1, |machine, ticket| machine.fault(0, Access::Read, ticket)))
            .collect();
        assert_eq!(all.held.len(), 1, "{protocol:?}");
        all.let_go();
        assert!(tickets.iter().all(|ticket| all.is_ready(*ticket)));
    }
}

#[test]
fn seed003_dsm15_a_fault_that_was_served_meanwhile_goes_on() {
    for protocol in ALL {
        let mut all = cluster(2, protocol);
        all.store(1, 0, 1);
        let faults = [Access::Read, Access::Write]
            .map(|kind| all.act(1, |machine, ticket| machine.fault(0, kind, ticket)));
        assert!(faults.iter().all(|ticket| all.is_ready(*ticket)));
        assert_eq!(all.machine(1).state_of(0), State::Dirty);
    }
}

#[test]
fn seed003_dsm16_records_go_with_a_barrier_or_when_all_know_them() {
    let mut all = Cluster::new(&Setting {
        kept_most: 6,
        ..Setting::new(3, 8)
    });
    for round in 0..100 {
        for process in 0..3 {
            all.acquire(process, 0);
            let value = all.load(process, 9);
            all.store(process, 9, value.wrapping_add(1));
            all.release(process, 0);
            // One interval more than the limit may be there while times are asked for.
            let kept = all.machine(process).kept_records();
            assert!(kept <= 8, "{kept} records in round {round}");
        }
    }
    assert!(all.total(|s| s.polls) > 10);
    assert_eq!(all.load(2, 9), 44);
    all.barrier(0);
    assert!((0..3).all(|process| all.machine(process).kept_records() == 0));
}

#[test]
fn seed003_dsm17_one_copy_of_each_page_is_left_by_a_collection() {
    let mut all = Cluster::new(&Setting {
        protocol: Protocol::Homeless,
        kept_most: 0,
        ..Setting::new(3, 8)
    });
    for at in 0..4 * PAGE {
        all.store((at % 3) as u16, at, 1 + at as u8 % 100);
    }
    for process in 0..3 {
        all.load(process, 7 * PAGE);
    }
    all.barrier(0);
    for page in 0..8 {
        let copies = (0..3)
            .filter(|process| all.machine(*process).state_of(page) != State::Empty)
            .count();
        assert_eq!(copies, 1, "page {page}");
        let keeper = all.machine(0).home_of(page);
        assert_ne!(all.machine(keeper).state_of(page), State::Empty);
    }
    assert_eq!(all.total(|s| s.collections), 3);
    for process in 0..3 {
        for at in 0..4 * PAGE {
            assert_eq!(all.load(process, at), 1 + at as u8 % 100);
        }
    }
}

#[test]
fn seed003_dsm18_a_miss_asks_the_last_writers_only() {
    let mut all = cluster(4, Protocol::Homeless);
    // Each knows what those before it wrote, so the last has all.
    for process in 0..4 {
        all.acquire(process, 0);
        all.store(process, usize::from(process), 5);
        all.release(process, 0);
    }
    all.acquire(0, 0);
    assert_eq!(
        all.counting(|all| assert_eq!(
            (0..4).map(|at| all.load(0, at)).collect::<Vec<_>>(),
            [5; 4]
        )),
        2
    );
    all.release(0, 0);
    // Two that do not know of each other are both asked.
    all.store(1, 10, 1);
    all.store(2, 11, 2);
    all.barrier(0);
    let asked = |all: &Cluster| all.machine(3).statistics().patch_requests;
    let before = asked(&all);
    assert_eq!([all.load(3, 10), all.load(3, 11)], [1, 2]);
    assert_eq!(asked(&all) - before, 2);
}

#[test]
fn seed003_dsm18_a_late_patch_covers_several_intervals() {
    let mut all = cluster(2, Protocol::Homeless);
    for round in 0..5 {
        all.acquire(0, 1);
        all.store(0, round, 1 + round as u8);
        all.release(0, 1);
        all.acquire(1, 1);
        all.release(1, 1);
    }
    assert_eq!(all.machine(0).statistics().diffs_made, 0);
    assert_eq!(all.machine(1).time().of(0), 5);
    assert_eq!(
        (0..5).map(|at| all.load(1, at)).collect::<Vec<_>>(),
        [1, 2, 3, 4, 5]
    );
    assert_eq!(all.machine(0).statistics().diffs_made, 1);
}

#[test]
fn seed003_dsm22_who_waits_is_told_that_a_process_has_ended() {
    for protocol in ALL {
        let mut all = cluster(3, protocol);
        all.acquire(2, 0);
        all.holds = vec!["PageReply", "Data"];
        let fault = all.act(1, |machine, ticket| machine.fault(2, Access::Read, ticket));
        let lock = all.act(1, |machine, ticket| machine.acquire(0, ticket));
        let barrier = all.act(0, |machine, ticket| machine.arrive(0, ticket));
        all.act(0, |machine, _| machine.lose(2));
        let trouble = Trouble::Lost { process: 2 };
        assert_eq!(
            all.failed,
            [
                (0, barrier, trouble),
                (1, fault, trouble),
                (1, lock, trouble)
            ]
        );
        let late = all.act(1, |machine, ticket| machine.arrive(0, ticket));
        assert_eq!(all.failed.last(), Some(&(1, late, trouble)));
    }
}

#[test]
fn seed003_dsm23_a_home_moves_to_its_only_writer_without_contents() {
    let mut all = cluster(3, Protocol::HomeBased);
    all.store(1, 0, 8);
    all.machines[1].set_home(0, 1, 1);
    all.store(1, 3 * PAGE, 9);
    all.store(2, 3 * PAGE + 1, 9);
    all.machines[1].set_home(3, 1, 1);
    let requests = |all: &Cluster| all.total(|s| s.messages_of("PageRequest"));
    let before = requests(&all);
    all.barrier(0);
    assert_eq!(
        requests(&all) - before,
        1,
        "only the page with two writers was fetched"
    );
    assert!((0..3).all(|process| [0, 3].map(|page| all.machine(process).home_of(page)) == [1, 1]));
    assert_eq!(
        [
            all.load(2, 0),
            all.load(0, 3 * PAGE),
            all.load(0, 3 * PAGE + 1)
        ],
        [8, 9, 9]
    );
    assert_eq!(all.machine(1).statistics().homes_moved, 2);
}

#[test]
fn seed003_dsm27_what_falsely_shared_pages_cost_is_counted() {
    // Two processes write halves of one page for ten rounds.
    let cost = |protocol| {
        let mut all = cluster(2, protocol);
        for round in 0..10 {
            for process in 0..2 {
                all.store(process, usize::from(process) * 32, round);
            }
            all.barrier(0);
        }
        (
            all.total(|s| s.fetches),
            all.total(|s| s.diffs_made),
            all.total(|s| s.invalidations),
        )
    };
    // The home reads its own memory; the other fetches every round. Homeless, it fetches once what the first has written already.
    assert_eq!(cost(Protocol::HomeBased), (10, 10, 9 + 1));
    assert_eq!(cost(Protocol::Homeless), (1, 20, 19));
    assert_eq!(cost(Protocol::Sequential), (10, 0, 19));
}

#[test]
fn conditions_wake_in_order_and_with_their_lock() {
    let mut all = cluster(3, Protocol::HomeBased);
    let mut waits = Vec::new();
    for process in 1..3 {
        all.acquire(process, 0);
        waits.push(all.act(process, |machine, ticket| {
            machine.wait_for(0, 1, ticket).expect("the lock is held")
        }));
    }
    // Both let the lock go.
    all.acquire(0, 0);
    all.store(0, 5, 55);
    all.act(0, |machine, _| machine.signal(1, Wakes::One));
    assert!(!all.is_ready(waits[0]), "the lock is still held");
    all.release(0, 0);
    assert!(all.is_ready(waits[0]) && !all.is_ready(waits[1]));
    assert_eq!(all.load(1, 5), 55);
    all.act(1, |machine, _| machine.signal(1, Wakes::All));
    all.release(1, 0);
    assert!(all.is_ready(waits[1]));
    let without = all.machines[1].wait_for(0, 1, 999);
    assert_eq!(without, Err(Trouble::NotHeld { lock: 0 }));
}

#[test]
fn a_signal_overtakes_no_wait() {
    let mut all = cluster(3, Protocol::HomeBased);
    all.acquire(1, 0);
    all.holds = vec!["ConditionWait"];
    let wait = all.act(1, |machine, ticket| {
        machine.wait_for(0, 2, ticket).expect("the lock is held")
    });
    let other = all.act(0, |machine, ticket| machine.acquire(0, ticket));
    assert!(!all.is_ready(other), "the lock goes when the wait is noted");
    all.let_go();
    assert!(all.is_ready(other));
    all.act(0, |machine, _| machine.signal(2, Wakes::One));
    all.release(0, 0);
    assert!(all.is_ready(wait));
}

#[test]
fn missing_pages_with_one_home_come_together() {
    let mut all = Cluster::new(&Setting {
        prefetch: 15,
        ..Setting::new(1, 1)
    });
    assert_eq!(all.load(0, 0), 0);
    let mut all = Cluster::new(&Setting {
        prefetch: 7,
        ..Setting::new(2, 8)
    });
    for page in 0..8 {
        all.machines[0].set_home(page, 1, 0);
    }
    all.barrier(0);
    for page in 0..8 {
        all.store(0, page * PAGE, page as u8);
    }
    all.barrier(0);
    let took = all.counting(|all| {
        for page in 0..8 {
            assert_eq!(all.load(1, page * PAGE), page as u8);
        }
    });
    assert_eq!(took, 2);
    assert_eq!(all.machine(1).statistics().prefetched, 7);
}

#[test]
fn messages_that_are_cut_short_are_refused() {
    let mut all = cluster(2, Protocol::HomeBased);
    all.holds = Message::KINDS.to_vec();
    all.store(0, 0, 1);
    let _ = all.act(1, |machine, ticket| machine.acquire(0, ticket));
    let _ = all.act(1, |machine, ticket| machine.fault(0, Access::Read, ticket));
    let _ = all.act(1, |machine, ticket| machine.arrive(0, ticket));
    assert_eq!(all.held.len(), 3);
    for (_, _, message) in &all.held {
        let mut bytes = Vec::new();
        dsm::Code::put(message, &mut bytes);
        for len in 0..bytes.len() {
            let cut: Option<Message> = dsm::Code::take(&mut dsm::Reader::new(&bytes[..len]));
            assert_eq!(cut, None);
        }
        let whole: Option<Message> = dsm::Code::take(&mut dsm::Reader::new(&bytes));
        assert_eq!(whole.as_ref(), Some(message));
    }
}
