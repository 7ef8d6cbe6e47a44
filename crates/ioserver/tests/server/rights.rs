//! Rights that are taken back end with the capability that a view was registered with.
//! Clients that still have the right get another one and notice nothing; that is the client's part.

use identity::{Keys, Secret};
use layout::View;
use wire::message::catalogue::{Chmod, RenewCapability};
use wire::url::Endpoint;
use wire::{Rights, Status};

use crate::life::until;
use crate::rig::{Client, File, Rig, pattern};

const ALICE: u32 = 1001;
const BOB: u32 = 1002;

/// A service whose capabilities last a second, for users that prove who they are.
fn rig() -> (Rig, Endpoint, Secret) {
    let mut rig = Rig::new(0);
    rig.meta.take().unwrap().stop();
    let secret = Secret::new(b"what users share");
    let keys = Keys {
        user: Some(secret.clone()),
        server: Some(Secret::new(b"what servers share")),
        tls: None,
    };
    let mut options = metaserver::Options::new(rig.dir.path().join("meta"));
    options.listen = vec![
        rig.meta_endpoint.clone(),
        "tcp:127.0.0.1:0".parse().unwrap(),
    ];
    options.keys = keys.clone();
    options.capability_seconds = 1;
    let meta = metaserver::start(options).unwrap();
    let tcp = meta.endpoints()[1].clone();
    rig.meta = Some(meta);
    let server = rig.start_server(0, |o| o.keys = keys.clone());
    rig.servers.push(Some(server));
    (rig, tcp, secret)
}

/// Writes as the client library does: with another capability when the one it has is over.
fn write(client: &mut Client, file: &mut File) -> Result<(), Status> {
    let whole = View::whole_file();
    let handle = file.opened.handle;
    loop {
        match client.write(file, 1, &whole, 0, &pattern(100, 1)) {
            Ok(_) => return Ok(()),
            Err((Status::ExpiredCapability, _)) => {}
            Err((status, text)) => panic!("{status}: {text}"),
        }
        let renewed = client.ask_manager(&RenewCapability { handle });
        file.opened.capability = renewed.map_err(|e| e.status())?;
        client.set_view(file, 1, &whole);
    }
}

#[test]
fn views_that_were_registered_before_end_with_their_capability() {
    let (_rig, tcp, secret) = rig();
    let mut alice = Client::of_user(&tcp, &secret, ALICE);
    let mut bob = Client::of_user(&tcp, &secret, BOB);
    let chmod = |alice: &mut Client, mode| {
        let path = "/f".into();
        alice.ask_manager(&Chmod { path, mode }).unwrap();
    };
    let mut hers = alice.open("/f", None, Some("striped(4KiB) over 1"));
    chmod(&mut alice, 0o666);
    let mut his = bob.open_for("/f", Rights::BOTH);
    for (client, file) in [(&mut alice, &mut hers), (&mut bob, &mut his)] {
        client.set_view(file, 1, &View::whole_file());
        write(client, file).unwrap();
    }
    chmod(&mut alice, 0o600);
    until(|| match write(&mut bob, &mut his) {
        Ok(()) => false,
        Err(status) => {
            assert_eq!(status, Status::PermissionDenied);
            true
        }
    });
    // For her it goes on, over the end of her capability too.
    write(&mut alice, &mut hers).unwrap();
    let before = hers.opened.capability.clone();
    until(|| {
        write(&mut alice, &mut hers).unwrap();
        hers.opened.capability != before
    });
}
