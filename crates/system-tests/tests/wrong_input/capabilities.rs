//! Capabilities that are forged, of another file, of another client, or too old.
//! Shown to I/O servers by a peer that speaks the protocol by hand.

use client::{ServerId, Status};
use system_tests::raw::{Raw, access, version_of};
use system_tests::{Service, ServiceOptions, pause};
use wire::message::Bytes;
use wire::message::file::{Admit, Sync};
use wire::message::session::Role;

use crate::{assert_alive, create, open, read, whole};

/// A raw client with a file of one server; the connection to it.
fn raw(service: &mut Service, path: &str) -> (Raw, wire::message::catalogue::OpenAnswer, Raw) {
    let mut manager = Raw::client(&service.meta().endpoint().clone());
    let opened = manager.open(path);
    let index = service.index_of(ServerId(opened.layout.owner.server));
    let server = manager.beside(&service.io(index).endpoint().clone());
    (manager, opened, server)
}

#[test]
fn forged_and_borrowed_capabilities_open_nothing() {
    let mut service = ServiceOptions::new(1).start();
    let client = service.client();
    let file = create(&client, "/secret", "striped(4KiB) over 1");
    file.write_at(0, &whole(0, 4096, 1)).unwrap();
    create(&client, "/open", "striped(4KiB) over 1");
    let (_secret_manager, secret, mut known) = raw(&mut service, "/secret");
    let (_manager, mine, mut server) = raw(&mut service, "/open");
    known.set_view(1, &secret).unwrap();

    let status = |answer: Result<(), wire::ask::AskError>| answer.unwrap_err().status();
    // Of another client, and of another file.
    assert_eq!(status(server.set_view(1, &secret)), Status::BadCapability);
    let other = server.set_view_with(1, &secret, mine.capability.clone());
    assert_eq!(status(other), Status::BadCapability);
    // Every bit counts, and so does the length.
    let good = &mine.capability.0;
    for bit in (0..good.len() * 8).step_by(3) {
        let mut forged = good.clone();
        forged[bit / 8] ^= 1 << (bit % 8);
        let answer = server.set_view_with(2, &mine, Bytes(forged));
        let said = status(answer);
        let known = [
            Status::BadCapability,
            Status::ExpiredCapability,
            Status::Malformed,
        ];
        assert!(known.contains(&said), "bit {bit}: {said:?}");
    }
    for len in [0, 1, good.len() - 1] {
        let answer = server.set_view_with(2, &mine, Bytes(good[..len].to_vec()));
        assert_eq!(status(answer), Status::Malformed, "{len} bytes");
    }
    // Nothing was registered by all that, and views of others are not ours.
    let version = version_of(&secret);
    let unknown = server.read(&access(1, 0, 4096, 0, &version)).unwrap();
    assert_eq!(unknown, Err(Status::UnknownView));
    let handle = secret.handle;
    let admit = server.ask(&Admit { view: 1, handle }).unwrap_err();
    assert_eq!(admit.status(), Status::UnknownView);
    // A session that nobody has sealed.
    let index = service.index_of(ServerId(mine.layout.owner.server));
    let endpoint = service.io(index).endpoint().clone();
    let stolen = Role::Client {
        client: known.id(),
        session: server.welcome.session.clone(),
    };
    let refused = Raw::connect(&endpoint, stolen, identity::this_process());
    assert_eq!(refused.unwrap_err().status(), Status::Unauthenticated);
    let seal = Role::Server {
        server: ServerId(1),
        seal: Bytes(vec![7; 32]),
    };
    for endpoint in [endpoint, service.meta().endpoint().clone()] {
        let refused = Raw::connect(&endpoint, seal.clone(), identity::this_process());
        assert_eq!(refused.unwrap_err().status(), Status::Unauthenticated);
    }
    // The right one opens.
    server.set_view(1, &mine).unwrap();
    assert!(known.ask(&Sync { view: 1 }).is_ok());
    assert!(read(&file, 0, 4096) == whole(0, 4096, 1));
    assert_alive(&mut service);
}

#[test]
fn expired_capabilities_are_refused_and_the_client_renews_them() {
    let options = ServiceOptions::new(1).meta_arguments(["--capability-seconds", "1"]);
    let mut service = options.start();
    let client = service.client();
    let file = create(&client, "/f", "striped(4KiB) over 1");
    file.write_at(0, &whole(0, 4096, 1)).unwrap();
    let (_manager, opened, mut server) = raw(&mut service, "/f");
    let mut waited = 0;
    let refused = loop {
        match server.set_view(1, &opened) {
            Ok(()) => {
                assert!(waited < 100, "it never expires");
                pause(std::time::Duration::from_millis(100));
                waited += 1;
            }
            Err(refused) => break refused,
        }
    };
    assert_eq!(refused.status(), Status::ExpiredCapability, "{refused}");
    // The library asks for another one: a new view, and a server that was started anew.
    file.set_view_text("striped(100) over 2 [1]").unwrap();
    let mut part = [0; 100];
    assert_eq!(file.read_at(0, &mut part).unwrap(), 100);
    assert!(part[..] == whole(100, 100, 1));
    let again = open(&client, "/f");
    assert!(read(&again, 0, 4096) == whole(0, 4096, 1));
    assert_alive(&mut service);
}
