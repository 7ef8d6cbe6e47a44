//! Clients that die while they arrive or have admitted something, and servers that say which number they know.
//!
//! What is told to whom is compared event by event; whole lives are walked through in the module above.

use super::*;

#[test]
fn what_a_dead_client_has_admitted_stays_until_it_is_fenced() {
    let mut m = manager();
    let all = view(0, 8, "{(0,7,8,1)}");
    settle(&mut m, admit(0, 0, &all));
    m.handle(Event::Died(ClientId(0)));
    let leave = Event::Leave {
        client: ClientId(0),
        handle: HandleId(0),
    };
    assert_eq!(m.handle(leave), []);
    assert_eq!(m.handle(Event::Left(ClientId(0))), []);
    // Client 0 may still write with its lease, so client 1 gets none.
    let effects = m.handle(admit(1, 1, &all));
    let leases = |e: &Effect| matches!(e, Effect::Lease { .. });
    assert!(!effects.iter().any(leases), "{effects:?}");
    let tells = |e: &Effect| matches!(e, Effect::Tell { .. });
    assert!(effects.iter().any(tells), "{effects:?}");
}

#[test]
fn client_that_dies_while_it_arrives_is_not_admitted_and_the_next_one_is() {
    let mut m = manager();
    let all = view(0, 8, "{(0,7,8,1)}");
    settle(&mut m, admit(0, 0, &all));
    let effects = m.handle(admit(1, 1, &all));
    let Some(Effect::Tell { number, .. }) = effects.first().cloned() else {
        panic!("{effects:?}");
    };
    m.handle(admit(2, 2, &all));
    assert_eq!(m.handle(Event::Died(ClientId(1))), []);
    let told = |m: &mut LockManager, server| settle(m, Event::Told { server, number });
    let mut effects = told(&mut m, SERVERS[0]);
    effects.extend(told(&mut m, SERVERS[1]));
    let admitted = |client: u64| {
        let is_theirs =
            |e: &Effect| matches!(e, Effect::UseLocks { client: c, .. } if c.0 == client);
        effects.iter().any(is_theirs)
    };
    assert_eq!([0, 1, 2].map(admitted), [true, false, true], "{effects:?}");
}

#[test]
fn server_that_knows_the_number_is_told_it_and_nobody_else_is() {
    let mut m = manager();
    let all = view(0, 8, "{(0,7,8,1)}");
    let effects = settle(&mut m, admit(0, 0, &all));
    let lease = effects.iter().find_map(|e| match e {
        Effect::Lease { number, .. } => Some(*number),
        _ => None,
    });
    let now = lease.unwrap();
    let server = SERVERS[0];
    let says = |number| Event::NumberIs { server, number };
    let tell = |number, servers: &[ServerId]| {
        let servers = servers.to_vec();
        vec![Effect::Tell { number, servers }]
    };
    assert_eq!(m.handle(says(now - 1)), tell(now, &[server]));
    assert_eq!(m.handle(says(now)), tell(now, &[server]));
    // One that knows more makes it void for all.
    assert_eq!(m.handle(says(now + 1)), tell(now + 2, &SERVERS));
}

/// A bound per client counts handles that wait as well as those that are in, and locks of either kind.
#[test]
fn claims_of_a_client_are_its_handles_and_its_locks() {
    let (mut m, whole) = (manager(), View::whole_file());
    let second = Event::Admit {
        client: ClientId(1),
        handle: HandleId(9),
        key: ViewKey(0),
        view: whole.clone(),
    };
    let claims = |m: &LockManager| [0, 1, 2].map(|client| m.claims(ClientId(client)));
    settle(&mut m, admit(1, 0, &whole));
    assert_eq!(claims(&m), [0, 1, 0]);
    // Now two overlap, and servers have to be told before the second is in.
    let told = m.handle(second);
    assert_eq!(claims(&m), [0, 2, 0]);
    let [Effect::Tell { number, servers }] = &told[..] else {
        panic!("{told:?}");
    };
    for &server in servers {
        let number = *number;
        m.handle(Event::Told { server, number });
    }
    assert_eq!(claims(&m), [0, 2, 0]);
    settle(&mut m, admit(2, 0, &whole));
    assert_eq!(claims(&m), [0, 2, 1]);
    for request in 0..3 {
        settle(&mut m, lock(1, request, 0..10, Mode::Exclusive));
    }
    settle(&mut m, lock(2, 7, 0..10, Mode::Exclusive));
    assert_eq!(claims(&m), [0, 5, 2]);
    settle(&mut m, Event::Unlock(ticket(1, 2)));
    settle(
        &mut m,
        Event::Leave {
            client: ClientId(2),
            handle: HandleId(2),
        },
    );
    assert_eq!(m.claims(ClientId(1)), 4);
}

#[test]
fn events_of_clients_say_whose_they_are() {
    let (server, number) = (SERVERS[0], 1);
    let client = ClientId(4);
    let handle = HandleId(4);
    let of_the_client = [
        admit(4, 0, &View::whole_file()),
        Event::Leave { client, handle },
        lock(4, 0, 0..1, Mode::Shared),
        Event::Unlock(ticket(4, 0)),
        Event::Left(client),
        Event::Died(client),
        Event::Fenced { server, client },
    ];
    for event in of_the_client {
        assert_eq!(event.client(), Some(client), "{event:?}");
    }
    let of_servers = [
        Event::Told { server, number },
        Event::NumberIs { server, number },
        Event::ServerGone(server),
        Event::ServerAdded(server),
    ];
    for event in of_servers {
        assert_eq!(event.client(), None, "{event:?}");
    }
}
