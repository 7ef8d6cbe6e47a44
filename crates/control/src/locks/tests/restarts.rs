//! Managers that begin again: which numbers they give, and what becomes of what was granted before.
//!
//! What servers remember decides, and the era of the manager where they remember nothing.

use super::*;

#[test]
fn restarted_manager_voids_what_was_granted() {
    let (mut m, effects) = LockManager::restarted(SERVERS, 0);
    assert_eq!(effects, [Effect::AskNumber(SERVERS.to_vec())]);
    let whole = View::whole_file();
    assert_eq!(m.handle(admit(0, 0, &whole)), []);
    let is = |server, number| Event::NumberIs { server, number };
    assert_eq!(m.handle(is(SERVERS[0], 4)), []);
    let effects = m.handle(is(SERVERS[1], 7));
    let tell = Effect::Tell {
        number: 8,
        servers: SERVERS.to_vec(),
    };
    assert_eq!(effects, [tell]);
    m.handle(Event::Told {
        server: SERVERS[0],
        number: 8,
    });
    let effects = m.handle(Event::Told {
        server: SERVERS[1],
        number: 8,
    });
    let lease = Effect::Lease {
        client: ClientId(0),
        handle: HandleId(0),
        number: 8,
    };
    assert_eq!(effects, [lease]);
    // A server that joins is asked for its number, told one, and told who is being fenced.
    m.handle(Event::Died(ClientId(0)));
    let effects = m.handle(Event::ServerAdded(ServerId(5)));
    let servers = vec![ServerId(5)];
    assert_eq!(
        effects,
        [
            Effect::Fence {
                client: ClientId(0),
                servers: servers.clone()
            },
            Effect::AskNumber(servers.clone()),
        ]
    );
    let effects = m.handle(is(ServerId(5), 0));
    assert_eq!(effects, [Effect::Tell { number: 8, servers }]);
}

#[test]
fn a_server_that_remembers_more_raises_the_number_of_all() {
    let (mut m, _) = LockManager::restarted([SERVERS[0]], 0);
    let is = |server, number| Event::NumberIs { server, number };
    m.handle(is(SERVERS[0], 0));
    settle(
        &mut m,
        Event::Told {
            server: SERVERS[0],
            number: 2,
        },
    );
    let view = View::whole_file();
    settle(&mut m, admit(0, 0, &view));
    assert_eq!(m.number(), 2);
    // It was there before, under a manager of which nothing is known any more.
    m.handle(Event::ServerAdded(SERVERS[1]));
    let effects = m.handle(is(SERVERS[1], 9));
    let tell = Effect::Tell {
        number: 10,
        servers: SERVERS.to_vec(),
    };
    assert_eq!(effects, [tell]);
    for server in SERVERS {
        m.handle(Event::Told { server, number: 10 });
    }
    let lease = Effect::Lease {
        client: ClientId(0),
        handle: HandleId(0),
        number: 10,
    };
    assert_eq!(m.handle(admit(0, 0, &view)), [lease]);
}

#[test]
fn managers_of_later_eras_begin_above_all_numbers_of_earlier_ones() {
    // The file was made at one server, the manager started again there, went to another and started again there.
    let lives = [(1, 4), (1, 5), (2, 1), (2, 3), (1 << 40, 1), (1 << 40, 2)];
    let mut highest = 1;
    for (step, start) in lives {
        let (mut m, _) = LockManager::restarted(SERVERS, era(step, start));
        assert_eq!(m.told(), None);
        // Servers that were all started again remember nothing.
        for server in SERVERS {
            m.handle(Event::NumberIs { server, number: 0 });
        }
        assert!(m.number() > highest, "step {step}, start {start}");
        assert_eq!(m.told(), Some((m.number(), vec![])));
        // Some are counted before it ends.
        highest = m.number() + 1000;
    }
}

#[test]
fn whoever_is_dead_is_told_with_the_number() {
    let mut m = LockManager::new(SERVERS);
    m.handle(Event::Died(ClientId(3)));
    m.handle(Event::Died(ClientId(1)));
    assert_eq!(m.told(), Some((1, vec![ClientId(1), ClientId(3)])));
}

#[test]
fn eras_ascend_by_step_and_then_by_start_however_many_there_were() {
    assert!(era(3, u64::MAX) < era(4, 0));
    assert!(era(3, 7) < era(3, 8));
    assert_eq!(era(0, u64::MAX), (1 << 20) - 1);
    assert_eq!(era(u64::MAX, u64::MAX), (1 << 40) - 1);
}

#[test]
fn no_era_is_above_the_last() {
    let number_in = |era| {
        let (mut m, _) = LockManager::restarted(SERVERS, era);
        for server in SERVERS {
            m.handle(Event::NumberIs { server, number: 0 });
        }
        m.number()
    };
    assert_eq!(number_in(u64::MAX), number_in(era(u64::MAX, u64::MAX)));
}
