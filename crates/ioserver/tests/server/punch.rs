//! `Punch` at one server: what it refuses, and that a disk has its space back with the next sync.
//! Whole files are punched in the tests of the client.

use layout::View;
use wire::ask::AskError;
use wire::message::Bytes;
use wire::message::file::{Allocation, Punch, Sync};
use wire::{Rights, Status};

use crate::direct::whole;
use crate::rig::{Client, File, Rig, pattern};

fn request(file: &File, lo: u64, hi: u64) -> Punch {
    let mut version = Vec::new();
    file.state.version().put(&mut version);
    Punch {
        view: 1,
        lo,
        hi,
        epoch: 0,
        number: 0,
        is_through: false,
        version: Bytes(version),
    }
}

#[track_caller]
fn refused(client: &mut Client, server: u64, request: &Punch) -> Status {
    match client.ask(server, request).unwrap_err() {
        AskError::Refused(status, _) => status,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_no_range_not_allowed_or_planned_with_something_old_is_refused() {
    let rig = Rig::new(1);
    let server = rig.number(0);
    let mut client = rig.client();
    let file = client.open("/f", None, Some("striped(100) over 1"));
    client.set_view(&file, 1, &whole());
    client.write(&file, 1, &whole(), 0, &[5; 1000]).unwrap();
    for (lo, hi) in [(5, 5), (6, 5), (0, 1 << 63)] {
        let wrong = refused(&mut client, server, &request(&file, lo, hi));
        assert_eq!(wrong, Status::InvalidArgument, "{lo}..{hi}");
    }
    let older = Punch {
        version: Bytes(Vec::new()),
        ..request(&file, 0, 10)
    };
    assert_eq!(refused(&mut client, server, &older), Status::StaleLayout);
    let unknown = Punch {
        view: 9,
        ..request(&file, 0, 10)
    };
    assert_eq!(refused(&mut client, server, &unknown), Status::UnknownView);
    let mut reader = rig.client();
    let same = reader.open_for("/f", Rights::READ);
    reader.set_view(&same, 1, &View::whole_file());
    let status = refused(&mut reader, server, &request(&same, 0, 10));
    assert_eq!(status, Status::PermissionDenied);
    let answer = client.ask(server, &request(&file, 10, 990)).unwrap();
    assert_ne!(answer.verifier, 0);
    let mut expected = vec![5; 1000];
    expected[10..990].fill(0);
    let found = client.read(&file, 1, &whole(), 0, 1000).unwrap();
    assert!(found.0 == expected);
    // Nothing of another file is here, so nothing can get lost.
    let empty = client.open("/g", None, Some("striped(100) over 1"));
    client.set_view(&empty, 2, &whole());
    let nothing = Punch {
        view: 2,
        ..request(&empty, 0, 1 << 40)
    };
    assert_eq!(client.ask(server, &nothing).unwrap().verifier, 0);
}

#[test]
fn a_disk_has_the_space_back_with_the_next_sync_whenever_it_was_written() {
    const LEN: u64 = 2 << 20;
    const PART: u64 = LEN / 8;
    for write_through in [true, false] {
        let rig = Rig::on_disk(64 << 20, write_through);
        let server = rig.number(0);
        let mut client = rig.client();
        let file = client.open("/f", None, Some("striped(1MiB) over 1"));
        client.set_view(&file, 1, &whole());
        let mut model = pattern(LEN, 3);
        for at in (0..LEN).step_by(PART as usize) {
            let part = &model[at as usize..(at + PART) as usize];
            client.write(&file, 1, &whole(), at, part).unwrap();
        }
        client.ask(server, &Sync { view: 1 }).unwrap();
        let full = client.ask(server, &Allocation { view: 1 }).unwrap();
        // Some of it is overwritten and not synced before it is punched.
        let again = pattern(PART, 4);
        client.write(&file, 1, &whole(), 2 * PART, &again).unwrap();
        let (lo, hi) = (2 * PART + 100, LEN - 100);
        client.ask(server, &request(&file, lo, hi)).unwrap();
        client.ask(server, &Sync { view: 1 }).unwrap();
        let left = client.ask(server, &Allocation { view: 1 }).unwrap();
        assert!(full - left >= 6 * PART - (64 << 10), "{full}, then {left}");
        model[2 * PART as usize..][..100].copy_from_slice(&again[..100]);
        model[lo as usize..hi as usize].fill(0);
        for at in (0..LEN).step_by(PART as usize) {
            let (found, _) = client.read(&file, 1, &whole(), at, at + PART).unwrap();
            let expected = &model[at as usize..(at + PART) as usize];
            let wrong = found.iter().zip(expected).position(|(a, b)| a != b);
            assert_eq!(wrong, None, "behind {at}");
        }
    }
}
