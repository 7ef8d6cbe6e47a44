//! Servers and users know different secrets, keys travel wrapped, and a number belongs to one server.
//!
//! Over TCP of this host, where everybody has to prove himself although the kernel knows him.

use identity::{Acquainted, Keys, read_private};
use metaserver::Endpoint;
use wire::Status;
use wire::ask::AskError;
use wire::message::Bytes;
use wire::message::cluster::Join;
use wire::message::session::{Credentials, Ping, Role};

use crate::fixture::*;

fn meet(endpoint: &Endpoint, role: Role, keys: &Keys) -> Result<Acquainted, AskError> {
    identity::connect(endpoint, role, Credentials::ROOT, keys, PATIENCE)
}

#[test]
fn whoever_knows_the_secret_of_users_only_cannot_be_a_server() {
    let (_scratch, manager, members) = with_members("impostor", 1);
    let tcp = &manager.endpoints()[1];
    let seal = members[0].role();
    for role in [Role::NewServer, seal] {
        // As the secret of servers, since an impostor says what he likes.
        let impostor = Keys {
            user: None,
            server: Some(secret()),
            tls: None,
        };
        let error = meet(tcp, role.clone(), &impostor).unwrap_err();
        assert_eq!(error.status(), Status::Unauthenticated, "{role:?}: {error}");
        let text = error.to_string();
        assert!(text.contains("PARIO_SERVER_SECRET"), "{text}");
        let error = meet(tcp, role.clone(), &Keys::of_user(Some(secret()))).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("--server-secret"), "{text}");
        meet(tcp, role, &keys()).unwrap();
    }
    // Nor does the secret of servers make anybody a user.
    let server = Keys {
        user: Some(server_secret()),
        ..Keys::default()
    };
    let error = meet(tcp, Role::NewClient, &server).unwrap_err();
    assert_eq!(error.status(), Status::Unauthenticated, "{error}");
}

#[test]
fn the_key_of_the_cluster_travels_wrapped() {
    let scratch = Scratch::new("wrapped");
    let manager = scratch.start();
    let key = read_private(&scratch.path().join("meta/key")).unwrap();
    let tcp = &manager.endpoints()[1];
    let mut met = meet(tcp, Role::NewServer, &keys()).unwrap();
    // What is not wrapped for this connection is nobody's identity.
    let error = met.link.ask(2, &join("tcp:node:1"), &mut Vec::new());
    assert_eq!(error.unwrap_err().status(), Status::InvalidArgument);
    let mut other = meet(tcp, Role::NewServer, &keys()).unwrap();
    let identity = other.channel.wrap("identity", &[9; 32]);
    let request = Join {
        identity: Bytes(identity.clone()),
        ..join("tcp:node:1")
    };
    let error = met.link.ask(3, &request, &mut Vec::new());
    assert_eq!(error.unwrap_err().status(), Status::InvalidArgument);
    assert!(!identity.windows(4).any(|w| w == [9; 4]));
    let joined = other.link.ask(2, &request, &mut Vec::new()).unwrap();
    assert_ne!(joined.key.0[..32], key[..]);
    assert_eq!(joined.key.0.len(), 64);
    let found = other.channel.unwrap("cluster", &joined.key.0).unwrap();
    assert_eq!(found[..], key[..]);
    assert_eq!(met.channel.unwrap("cluster", &joined.key.0), None);
    // On a socket of this host it need not be.
    assert_eq!(Joiner::new(&scratch.socket()).joined.key.0, key);
}

#[test]
fn a_live_server_is_replaced_only_by_one_that_proves_to_be_it() {
    let (scratch, manager, mut members) = with_members("replaced", 2);
    let socket = scratch.socket();
    let server = members[0].server();
    let address = members[0].joined.member.address.clone();
    let continues = Some(members[0].joined.member.incarnation);
    for (number, continues) in [(server, None), (server, continues)] {
        let mut thief = Asker::as_role(&socket, Role::NewServer).unwrap();
        let other = Join {
            server: Some(number),
            continues,
            identity: Bytes(vec![8; 32]),
            ..join("unix:/thief.sock")
        };
        let text = thief.refused(&other, Status::PermissionDenied);
        assert!(text.contains("identity"), "{text}");
        let none = Join {
            identity: Bytes::default(),
            ..other
        };
        thief.refused(&none, Status::InvalidArgument);
    }
    members[0].report();
    // Not even a server with the seal of the cluster may be another one.
    let mut sealed = Asker::as_role(&socket, members[0].role()).unwrap();
    let other = Join {
        server: Some(server),
        identity: Bytes(vec![8; 32]),
        ..join("unix:/thief.sock")
    };
    sealed.refused(&other, Status::PermissionDenied);
    members[0].report();
    // It survives the manager.
    drop(members);
    manager.stop();
    let _manager = scratch.start();
    let mut thief = Asker::as_role(&socket, Role::NewServer).unwrap();
    thief.refused(&other, Status::PermissionDenied);
    let right = Join {
        server: Some(server),
        address: "unix:/it.sock".into(),
        ..join(&address)
    };
    let joiner = Joiner::with(&socket, right);
    assert_eq!(joiner.server(), server);
}

#[test]
fn a_caller_with_a_secret_goes_on_with_nobody_who_does_not_know_it() {
    let scratch = Scratch::new("false-manager");
    // A listener that does not ask for the secret, and would learn what is written to it.
    let open = metaserver::Options {
        keys: Keys::default(),
        ..scratch.options()
    };
    let manager = metaserver::start(open).unwrap();
    let tcp = &manager.endpoints()[1];
    let error = meet(tcp, Role::NewClient, &Keys::of_user(Some(secret()))).unwrap_err();
    assert_eq!(error.status(), Status::Unauthenticated);
    assert!(error.to_string().contains("has not proven"), "{error}");
    meet(tcp, Role::NewClient, &Keys::default()).unwrap();
    // On a Unix socket the file system says who listens.
    let local = &manager.endpoints()[0];
    let mut met = meet(local, Role::NewClient, &Keys::of_user(Some(secret()))).unwrap();
    met.link.ask(2, &Ping {}, &mut Vec::new()).unwrap();
}
