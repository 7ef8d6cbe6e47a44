//! Pages that are replaced by contents of files, and pages whose contents go there: the machines' part, message by message.
//!
//! Left to others: what the layer above asks (`pio`), and real memory.

use dsm::{Access, Letter, Machine, PageMemory, Setting, Trouble};

use crate::cluster::{Cluster, PAGE};

/// A process replaces pages from the first on, which get these homes and are full of a byte. Whether all could.
fn fill(all: &mut Cluster, caller: u16, homes: &[(u32, u16)], byte: u8) -> Result<(), Trouble> {
    let count = homes.iter().map(|(count, _)| count).sum();
    let mut time = None;
    all.act(caller, |machine, _| {
        time = Some(machine.announce_fill(0, count));
    });
    for to in (0..all.machines.len() as u16).filter(|to| *to != caller) {
        all.act(caller, |machine, _| {
            machine.post_question(to, b"fill".to_vec())
        });
    }
    let own = Letter {
        from: caller,
        is_question: true,
        time: time.expect("a time"),
        records: Vec::new(),
        bytes: Vec::new(),
    };
    let mut posts = std::mem::take(&mut all.posts);
    posts.push((caller, own));
    let mut outcome = Ok(());
    for (process, post) in posts {
        all.act(process, |machine, _| {
            let begun = machine.begin_fill(&post, 0, homes);
            for page in 0..count {
                if machine.home_of(page) == process {
                    machine.memory.store(page, 0, &[byte; PAGE]);
                }
            }
            machine.end_fill(&post, 0, count);
            outcome = outcome.and(begun);
        });
        if process != caller {
            all.act(process, |machine, _| {
                machine.post_answer(caller, Vec::new())
            });
        }
    }
    let answers = std::mem::take(&mut all.posts);
    assert!(
        answers
            .iter()
            .all(|(at, post)| *at == caller && !post.is_question)
    );
    outcome
}

#[test]
fn seed003_pio04_pages_are_replaced_without_any_of_their_bytes_on_the_way() {
    for processes in [1, 2, 5] {
        let mut all = Cluster::new(&Setting::new(processes, 6));
        let homes = [(2, processes - 1), (4, 0)];
        let messages = all.counting(|all| fill(all, 0, &homes, 7).expect("no conflict"));
        assert_eq!(messages, 2 * (u64::from(processes) - 1));
        for kind in ["PageReply", "Flush"] {
            assert_eq!(all.total(|s| s.messages_of(kind)), 0);
        }
        all.barrier(0);
        for process in 0..processes {
            assert_eq!(all.load(process, 3), 7);
            assert_eq!(all.load(process, 5 * PAGE), 7);
        }
    }
}

#[test]
fn seed003_pio05_who_has_no_page_fetches_it_from_its_new_home() {
    let mut all = Cluster::new(&Setting::new(3, 6));
    fill(&mut all, 0, &[(6, 2)], 9).expect("no conflict");
    all.barrier(0);
    for process in 0..3 {
        assert!((0..6).all(|page| all.machine(process).home_of(page) == 2));
    }
    // A request and a reply, and the root is in neither.
    let before = all.machine(0).statistics().all_messages();
    assert_eq!(all.counting(|all| assert_eq!(all.load(1, 0), 9)), 2);
    assert_eq!(all.machine(0).statistics().all_messages(), before);
    assert_eq!(all.counting(|all| assert_eq!(all.load(2, 0), 9)), 0);
}

#[test]
fn seed003_pio03_a_change_of_before_that_comes_late_does_not_come_after_the_file() {
    for home in [2, 1, 0] {
        let mut all = Cluster::new(&Setting::new(3, 6));
        // Page 2 is at home at process 2. What process 1 wrote there is on its way while the page is replaced.
        all.holds = vec!["Flush"];
        all.store(1, 2 * PAGE, 1);
        all.barrier(0);
        fill(&mut all, 0, &[(2, 0), (1, home), (3, 0)], 5).expect("it happened before");
        all.let_go();
        all.barrier(1);
        for process in 0..3 {
            assert_eq!(all.load(process, 2 * PAGE), 5, "page 2 at {home}");
        }
        // And what comes after is seen.
        all.store(1, 2 * PAGE + 1, 6);
        all.barrier(2);
        for process in 0..3 {
            assert_eq!(all.load(process, 2 * PAGE + 1), 6);
        }
    }
}

#[test]
fn seed003_pio12_reading_a_file_is_no_access_and_what_was_before_is_forgotten() {
    let mut all = Cluster::new(&Setting::new(2, 6));
    all.load(1, 0);
    all.barrier(0);
    fill(&mut all, 0, &[(3, 1), (3, 0)], 5).expect("no conflict");
    all.barrier(1);
    let accesses = |all: &Cluster, process| {
        (0..6)
            .map(|page| all.machine(process).accesses_of(page))
            .collect::<Vec<_>>()
    };
    assert!((0..2).all(|process| accesses(&all, process) == [(0, 0); 6]));
    // The first access of a home is seen too, though nothing has to be fetched.
    all.load(1, 0);
    all.store(0, 5 * PAGE, 1);
    assert_eq!(all.total(|s| s.fetches), 1, "that of before");
    assert_eq!(accesses(&all, 1)[0], (1, 0));
    assert_eq!(accesses(&all, 0)[5], (0, 1));
}

#[test]
fn seed003_pio08_a_page_is_ready_to_be_written_when_all_changes_of_it_are_at_its_home() {
    let mut all = Cluster::new(&Setting::new(3, 6));
    all.holds = vec!["Flush"];
    // Both others write page 0, so that after the barrier nobody has a valid copy, and its home lacks both changes.
    all.store(1, 1, 1);
    all.store(2, 2, 2);
    all.barrier(0);
    let ticket = all.act(0, |machine, ticket| machine.settle(0, 6, ticket));
    assert!(!all.is_ready(ticket));
    let at_once = all.act(1, |machine, ticket| machine.settle(0, 6, ticket));
    assert!(all.is_ready(at_once), "nothing is missing at process 1");
    all.let_go();
    assert!(all.is_ready(ticket));
    let contents =
        |machine: &mut Machine<_>| PageMemory::copy_out(&mut machine.memory, 0)[..3].to_vec();
    assert_eq!(contents(&mut all.machines[0]), [0, 1, 2]);
}

#[test]
fn what_was_written_under_a_lock_only_is_known_where_pages_are_written() {
    let mut all = Cluster::new(&Setting::new(3, 6));
    all.acquire(1, 7);
    all.store(1, 2 * PAGE, 4);
    all.release(1, 7);
    all.acquire(0, 7);
    all.release(0, 7);
    // Process 2, the home, was at no point of synchronisation; what process 0 asks it tells it what process 0 knows.
    all.holds = vec!["Flush"];
    all.act(0, |machine, _| machine.post_question(2, b"save".to_vec()));
    let (_, post) = all.posts.pop().expect("a question");
    all.act(2, |machine, _| machine.take_notices(&post));
    assert!(all.machine(2).time().covers(&post.time));
    all.let_go();
    assert_eq!(all.load(2, 2 * PAGE), 4);
}

#[test]
fn a_process_that_writes_what_another_replaces_is_told_and_so_are_all() {
    // Written and not yet ended, and ended but unknown to the one that replaces.
    for is_ended in [false, true] {
        let mut all = Cluster::new(&Setting::new(3, 6));
        all.acquire(1, 0);
        all.store(1, PAGE, 1);
        all.release(1, 0);
        if is_ended {
            all.acquire(2, 0);
        }
        let trouble = Trouble::Unsynchronised { process: 1 };
        assert_eq!(fill(&mut all, 0, &[(6, 0)], 5), Err(trouble));
        assert!(
            trouble.to_string().contains("process 1") && trouble.to_string().contains("barrier")
        );
        for process in 0..3 {
            assert_eq!(all.machine(process).trouble(), Some(trouble));
        }
    }
}

#[test]
fn who_asks_at_a_home_of_before_is_sent_to_the_new_one() {
    let mut all = Cluster::new(&Setting::new(3, 6));
    let mut time = None;
    all.act(0, |machine, _| time = Some(machine.announce_fill(0, 6)));
    for to in [1, 2] {
        all.act(0, |machine, _| machine.post_question(to, b"fill".to_vec()));
    }
    let own = Letter {
        from: 0,
        is_question: true,
        time: time.expect("a time"),
        records: Vec::new(),
        bytes: Vec::new(),
    };
    let [one, two]: [(u16, Letter); 2] = std::mem::take(&mut all.posts)
        .try_into()
        .expect("two questions");
    let begin = |all: &mut Cluster, process, letter: &Letter| {
        all.act(process, |machine, _| {
            machine
                .begin_fill(letter, 0, &[(6, 0)])
                .expect("no conflict");
        });
    };
    // Process 2, at home in page 2 so far, knows the new home; process 1 knows only that the page is replaced.
    begin(&mut all, 2, &two.1);
    all.act(1, |machine, _| machine.take_notices(&one.1));
    all.holds = vec!["PageReply"];
    let ticket = all.act(1, |machine, ticket| machine.fault(2, Access::Read, ticket));
    assert!(!all.is_ready(ticket));
    begin(&mut all, 1, &one.1);
    begin(&mut all, 0, &own);
    all.act(0, |machine, _| {
        machine.memory.store(2, 0, &[8; PAGE]);
        machine.end_fill(&own, 0, 6);
    });
    all.let_go();
    assert!(all.is_ready(ticket), "the page came from its new home");
    assert_eq!(all.load(1, 2 * PAGE), 8);
}
