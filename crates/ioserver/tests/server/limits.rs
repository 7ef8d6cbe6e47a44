//! What a client and a user may take of a server: the refusal names the limit and the option, and there is room again when
//! something was given back.

use layout::View;
use wire::Status;
use wire::ask::AskError;
use wire::frame::{CONTINUED, Header, MAX_CONTROL_BYTES};
use wire::link::Link;
use wire::message::file::{DropView, SetView};
use wire::message::session::Ping;
use wire::message::{Bytes, Request};

use crate::rig::{Client, Rig};

#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T, AskError>, option: &str) {
    match result {
        Err(AskError::Refused(Status::QuotaExceeded, refusal)) => {
            assert!(refusal.text.contains(option), "{}", refusal.text);
        }
        other => panic!("expected a refusal that names {option}, got {other:?}"),
    }
}

/// Connects until that is refused; what was had until then.
fn as_many_as_possible(client: &mut Client, server: u64, option: &str) -> Vec<Link> {
    let mut links = Vec::new();
    loop {
        let role = client.role();
        match client.connect(server, role) {
            Ok((link, _)) => links.push(link),
            no => {
                refused(no.map(drop), option);
                return links;
            }
        }
        assert!(links.len() < 100, "there is a limit");
    }
}

/// Connects, as soon as somebody has given a connection back.
fn again(client: &mut Client, server: u64) -> Link {
    for _ in 0..10_000 {
        let role = client.role();
        if let Ok((link, _)) = client.connect(server, role) {
            return link;
        }
        std::thread::yield_now();
    }
    panic!("a connection that was closed is free again");
}

#[test]
fn connections_of_a_user_are_limited() {
    let rig = Rig::with(1, |o| o.limits.connections.connections_per_user = 5);
    let server = rig.number(0);
    let mut client = rig.client();
    let mut links = as_many_as_possible(&mut client, server, "--connections-per-user");
    assert_eq!(links.len(), 5);
    // Another client of the same user has none left either.
    refused(
        rig.client().connect_as_itself(server),
        "--connections-per-user",
    );
    for link in &mut links {
        link.ask(1, &Ping {}, &mut Vec::new()).unwrap();
    }
    links.truncate(4);
    let mut link = again(&mut client, server);
    link.ask(1, &Ping {}, &mut Vec::new()).unwrap();
}

#[test]
fn connections_of_a_server_are_limited_and_servers_find_room() {
    let rig = Rig::with(2, |o| {
        o.limits.connections = serving::Limits {
            connections: 6,
            connections_per_user: 1000,
            ..serving::Limits::of(6)
        }
    });
    let server = rig.number(0);
    let mut client = rig.client();
    let links = as_many_as_possible(&mut client, server, "--connections");
    assert!(!links.is_empty() && links.len() <= 6);
    // The metadata manager and the other server still reach it: a file on both can be made and removed.
    let mut other = rig.client();
    let file = other.open("/f", None, Some("striped(4KiB) over 2"));
    drop(links);
    let mut link = again(&mut client, server);
    link.ask(1, &Ping {}, &mut Vec::new()).unwrap();
    drop(link);
    let whole = View::whole_file();
    for server in file.servers() {
        other
            .lanes
            .insert(server, again(&mut other_connection(&rig, &other), server));
    }
    other.set_view(&file, 1, &whole);
    other.write(&file, 1, &whole, 0, &[7; 9000]).unwrap();
}

/// A second handle on the same client.
fn other_connection(rig: &Rig, client: &Client) -> Client {
    let mut again = rig.client();
    again.welcome = client.welcome.clone();
    again
}

#[test]
fn views_and_their_descriptions_are_limited() {
    let rig = Rig::with(1, |o| {
        o.limits.views = 8;
        o.limits.view_bytes = 4096;
    });
    let server = rig.number(0);
    let mut client = rig.client();
    let file = client.open("/f", None, None);
    let whole = View::whole_file();
    for number in 0..8 {
        client.set_view_at(server, &file, number, &whole).unwrap();
    }
    refused(client.set_view_at(server, &file, 8, &whole), "--views");
    client.ask(server, &DropView { view: 3, maps: 0 }).unwrap();
    client.set_view_at(server, &file, 8, &whole).unwrap();
    client.ask(server, &DropView { view: 8, maps: 0 }).unwrap();
    let long = SetView {
        view: 9,
        file: file.id,
        capability: file.opened.capability.clone(),
        description_bytes: 5000,
        description: Bytes(vec![0]),
    };
    refused(client.ask(server, &long), "--view-bytes");
    client.write(&file, 1, &whole, 0, b"alive").unwrap();
}

#[test]
fn views_of_a_user_are_limited_over_all_his_clients() {
    let rig = Rig::with(1, |o| {
        o.limits.views = 2;
        o.limits.view_bytes = 4096;
    });
    let server = rig.number(0);
    let whole = View::whole_file();
    let mut clients: Vec<(Client, _)> = Vec::new();
    for _ in 0..serving::CLIENTS_OF_A_USER {
        let mut client = rig.client();
        let file = client.open("/f", None, None);
        for number in 0..2 {
            client.set_view_at(server, &file, number, &whole).unwrap();
        }
        clients.push((client, file));
    }
    let mut last = rig.client();
    let file = last.open("/f", None, None);
    refused(last.set_view_at(server, &file, 0, &whole), "--views");
    // What a client drops, or takes with it when it goes, is free.
    clients[0]
        .0
        .ask(server, &DropView { view: 1, maps: 0 })
        .unwrap();
    last.set_view_at(server, &file, 0, &whole).unwrap();
    refused(last.set_view_at(server, &file, 1, &whole), "--views");
    drop(clients);
    for attempt in 0.. {
        if last.set_view_at(server, &file, 1, &whole).is_ok() {
            break;
        }
        assert!(
            attempt < 100_000,
            "what a client had is free when it has gone"
        );
        std::thread::yield_now();
    }
}

#[test]
fn descriptions_of_a_user_are_limited_over_all_his_clients() {
    let rig = Rig::with(1, |o| o.limits.view_bytes = 4096);
    let server = rig.number(0);
    let mut clients = Vec::new();
    let announced = |file: &crate::rig::File| SetView {
        view: 9,
        file: file.id,
        capability: file.opened.capability.clone(),
        description_bytes: 4096,
        description: Bytes(vec![0]),
    };
    for _ in 0..serving::CLIENTS_OF_A_USER {
        let mut client = rig.client();
        let file = client.open("/f", None, None);
        client.ask(server, &announced(&file)).unwrap();
        clients.push((client, file));
    }
    let mut last = rig.client();
    let file = last.open("/f", None, None);
    refused(last.ask(server, &announced(&file)), "--view-bytes");
    clients[3]
        .0
        .ask(server, &DropView { view: 9, maps: 0 })
        .unwrap();
    last.ask(server, &announced(&file)).unwrap();
}

#[test]
fn a_client_that_stops_inside_a_message_or_does_not_read_loses_its_connection() {
    let rig = Rig::with(1, |o| {
        o.limits.connections.patience = std::time::Duration::from_millis(100);
    });
    let server = rig.number(0);
    let mut client = rig.client();
    let (mut other, _) = client.connect_as_itself(server).unwrap();
    let header = |flags| Header {
        kind: Ping::KIND,
        status: Status::Ok,
        flags,
        request: 5,
        control_bytes: MAX_CONTROL_BYTES,
        payload_bytes: 0,
    };
    let (mut begun, _) = client.connect_as_itself(server).unwrap();
    let part = vec![0; MAX_CONTROL_BYTES as usize];
    let head = header(CONTINUED).encode(&part);
    for bytes in [&head[..], &part] {
        let mut sent = 0;
        while sent < bytes.len() {
            sent += rustix::io::write(&begun, &bytes[sent..]).unwrap();
        }
    }
    assert_eq!(begun.receive().unwrap_err().status(), Status::Unreachable);
    let (mut deaf, _) = client.connect_as_itself(server).unwrap();
    let stopped = loop {
        if let Err(no) = deaf.send(header(0), &[], &[]) {
            break no;
        }
    };
    assert_eq!(stopped.status(), Status::Unreachable, "{stopped}");
    other.ask(1, &Ping {}, &mut Vec::new()).unwrap();
}
