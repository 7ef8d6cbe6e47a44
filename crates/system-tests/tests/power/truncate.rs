//! A truncate that not all servers have applied when the power goes: those that have do not cut a second time.
//! Truncates that are cut off before a server has heard of them are in `kill/truncate.rs`.

use client::ServerId;
use layout::FileOffset;
use lossyfs::Loss;
use system_tests::files::{create, open, read, whole};
use system_tests::raw::{Raw, access, version_of};
use system_tests::until;
use wire::Status;
use wire::message::file::Sync;

use crate::Host;

const STRIPE: usize = 4096;
const LEN: usize = 30 * STRIPE;

#[test]
fn server_that_came_back_and_cut_does_not_cut_what_was_synced_since() {
    server_cuts_once(false);
}

/// The log of truncates is written anew at each start.
#[test]
fn server_that_cut_and_was_started_again_does_not_cut_what_was_synced_since() {
    server_cuts_once(true);
}

fn server_cuts_once(is_started_again: bool) {
    let Some(mut host) = Host::start(3) else {
        return;
    };
    let client = host.client();
    let file = create(&client, "/f", "striped(4KiB) over 3");
    file.write_at(0, &whole(0, LEN, 1)).unwrap();
    file.sync().unwrap();
    let state = file.layout();
    let owner = host.service.index_of(ServerId(state.owner.server));
    // The one that is back cuts; without the other the truncate is never finished.
    let (back, away) = ((owner + 1) % 3, (owner + 2) % 3);
    let server = host.service.server_id(back);
    host.service.kill_io(back);
    host.service.kill_io(away);
    let cut = std::thread::spawn(move || file.resize(STRIPE as u64));
    let mut manager = Raw::client(&host.service.meta().endpoint().clone());
    until("the intent", || {
        manager.open("/f").attributes.truncate_to.is_some()
    });
    host.service.start_io(back);
    let opened = manager.open("/f");
    let endpoint = host.service.io(back).endpoint().clone();
    let piece = &state.pieces[0];
    let is_theirs = |at: u64| {
        let (element, _) = piece.partition.owner(FileOffset(at)).unwrap();
        piece.places[element][0].server == server.0
    };
    let mut stripes = (10..30).map(|k| k * STRIPE as u64);
    let at = stripes.find(|at| is_theirs(*at)).unwrap();
    let version = version_of(&opened);
    let bytes = whole(at, STRIPE, 2);
    let mut raw = manager.beside(&endpoint);
    raw.set_view(1, &opened).unwrap();
    let part = access(1, at, STRIPE as u64, 1, &version);
    until("the cut", || {
        raw.write(&part, &bytes).unwrap() == Status::Ok
    });
    assert!(raw.ask(&Sync { view: 1 }).unwrap().is_durable);
    drop(raw);
    if is_started_again {
        host.service.kill_io(back);
        host.service.start_io(back);
        until("the server", || {
            let mut raw = manager.beside(&endpoint);
            raw.set_view(1, &opened).is_ok()
        });
    }
    // Whether the truncate was acknowledged is not what this is about.
    host.lose_power(Loss::Everything);
    let _ = cut.join().unwrap();
    let again = open(&host.service.client(), "/f");
    assert!(read(&again, 0, STRIPE) == whole(0, STRIPE, 1));
    assert!(
        read(&again, at, STRIPE) == bytes,
        "what was synced behind the cut is cut off"
    );
    assert!(read(&again, at - STRIPE as u64, STRIPE) == [0; STRIPE]);
    host.assert_well();
}
