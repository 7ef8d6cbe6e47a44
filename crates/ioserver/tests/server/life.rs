//! Restarts, lost memory, truncates, changed layouts, removals, and the end of a server.
//!
//! Servers with disks come back with what was synced; memory of an earlier start is lost, not zeros.

use std::time::{Duration, Instant};

use layout::View;
use wire::Status;
use wire::message::catalogue::{MoveState, Relayout, RelayoutProgress, Unlink, UnlinkHow};
use wire::message::file::{Grow, ListSubfiles, Preallocate, Size, SubfileName, Sync, Truncate};
use wire::message::session::Shutdown;

use crate::rig::{Client, File, Rig, pattern, request_number, start_meta};

fn whole() -> View {
    View::whole_file()
}

#[track_caller]
pub(crate) fn until(mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < deadline, "it never came true");
        std::thread::yield_now();
    }
}

#[test]
fn a_disk_server_comes_back_with_what_was_synced() {
    let mut rig = Rig::new(0);
    let store = rig.disk(0);
    std::fs::create_dir_all(rig.dir.path().join("disk-0")).unwrap();
    let server = rig.start_server(0, |o| o.store = store.clone());
    let number = server.server();
    rig.servers.push(Some(server));
    let mut client = rig.client();
    let file = client.open("/f", None, Some("striped(4KiB) over 1"));
    client.set_view(&file, 1, &whole());
    let data = pattern(300_000, 1);
    client.write(&file, 1, &whole(), 0, &data).unwrap();
    // A write with gaps keeps what is between.
    let odd = View::new(layout::FileOffset(0), 2, "{(1,1)}".parse().unwrap()).unwrap();
    client.set_view(&file, 2, &odd);
    let synced = client.ask(number.0, &Sync { view: 1 }).unwrap();
    assert!(synced.is_durable);
    rig.servers[0].take().unwrap().stop();
    client.lanes.clear();
    let server = rig.start_server(0, |o| o.store = store.clone());
    assert_eq!(server.server(), number);
    rig.servers[0] = Some(server);
    client.set_view(&file, 2, &odd);
    client.write(&file, 2, &odd, 1000, &[7; 50_000]).unwrap();
    client.set_view(&file, 1, &whole());
    let (back, _) = client.read(&file, 1, &whole(), 0, 300_000).unwrap();
    let mut expected = data;
    for k in 1000..51_000 {
        expected[2 * k + 1] = 7;
    }
    assert!(back == expected);
}

#[test]
fn a_memory_server_that_starts_again_is_another_one() {
    let mut rig = Rig::new(1);
    let mut client = rig.client();
    let file = client.open("/f", None, Some("striped(4KiB) over 1"));
    client.set_view(&file, 1, &whole());
    client.write(&file, 1, &whole(), 0, b"gone").unwrap();
    // It has no bytes of its former life, so it has no claim to its number either: whoever asks for
    // those bytes finds nobody, and never zeros.
    rig.servers[0].take().unwrap().stop();
    client.lanes.clear();
    let server = rig.start_server(0, |_| {});
    assert_ne!(server.server().0, file.state.owner.server);
    rig.servers[0] = Some(server);
    let unknown = client.read(&file, 1, &whole(), 0, 4);
    assert!(unknown.is_err());
}

#[test]
fn a_restarted_manager_finds_the_same_servers_with_their_bytes() {
    let mut rig = Rig::new(1);
    let mut client = rig.client();
    let file = client.open("/f", None, Some("striped(4KiB) over 1"));
    client.set_view(&file, 1, &whole());
    client.write(&file, 1, &whole(), 0, b"kept").unwrap();
    rig.meta.take().unwrap().stop();
    // Bytes are served without the manager.
    assert_eq!(client.read(&file, 1, &whole(), 0, 4).unwrap().0, b"kept");
    rig.meta = Some(start_meta(rig.dir.path(), &rig.meta_endpoint));
    let mut later = rig.client();
    until(|| {
        let members = later.members();
        members.len() == 1 && members[0].state == wire::message::catalogue::MemberState::Alive
    });
    assert_eq!(client.read(&file, 1, &whole(), 0, 4).unwrap().0, b"kept");
    let file = later.open("/f", None, None);
    later.set_view(&file, 1, &whole());
    assert_eq!(later.read(&file, 1, &whole(), 0, 4).unwrap().0, b"kept");
}

/// A file of a thousand bytes over two servers, and who wrote it.
fn written(rig: &Rig) -> (Client, File) {
    let mut client = rig.client();
    let file = client.open("/f", None, Some("striped(100) over 2"));
    client.set_view(&file, 1, &whole());
    client
        .write(&file, 1, &whole(), 0, &pattern(1000, 1))
        .unwrap();
    (client, file)
}

fn truncate(file: &File, to: u64) -> Truncate {
    Truncate {
        view: 1,
        handle: file.opened.handle,
        to,
        request: request_number(),
    }
}

/// The answer to the first one was lost; another client has written meanwhile.
#[test]
fn truncate_that_comes_twice_cuts_once() {
    let rig = Rig::new(2);
    let (mut client, file) = written(&rig);
    let owner = file.state.owner.server;
    let cut = truncate(&file, 0);
    let first = client.ask(owner, &cut).unwrap();
    assert_eq!((first.size, first.epoch), (0, 1));
    let mut other = rig.client();
    let mut theirs = other.open("/f", None, None);
    theirs.epoch = first.epoch;
    other.set_view(&theirs, 1, &whole());
    other
        .write(&theirs, 1, &whole(), 0, &pattern(300, 2))
        .unwrap();
    let grow = Grow {
        view: 1,
        epoch: first.epoch,
        end: 300,
    };
    other.ask(owner, &grow).unwrap();
    let again = client.ask(owner, &cut).unwrap();
    assert_eq!((again.size, again.epoch), (300, 1));
    let (back, _) = other.read(&theirs, 1, &whole(), 0, 300).unwrap();
    assert_eq!(back, pattern(300, 2), "the second one cut what was written");
    // Another one is another one.
    let next = client.ask(owner, &truncate(&file, 0)).unwrap();
    assert_eq!((next.size, next.epoch), (0, 2));
    // And the first is still known.
    let again = client.ask(owner, &cut).unwrap();
    assert_eq!((again.size, again.epoch), (0, 2));
}

#[test]
fn truncated_bytes_are_gone_and_late_writers_are_told() {
    let rig = Rig::new(2);
    let (mut client, mut file) = written(&rig);
    let owner = file.state.owner.server;
    let size = client.ask(owner, &truncate(&file, 350)).unwrap();
    assert_eq!((size.size, size.epoch), (350, 1));
    let late = client.write(&file, 1, &whole(), 0, &[1; 300]).unwrap_err();
    assert_eq!(late.0, Status::StaleEpoch);
    file.epoch = size.epoch;
    client.write(&file, 1, &whole(), 900, &[9; 10]).unwrap();
    let (back, _) = client.read(&file, 1, &whole(), 0, 910).unwrap();
    assert_eq!(back[..350], pattern(1000, 1)[..350]);
    assert!(back[350..900].iter().all(|&b| b == 0));
    assert_eq!(back[900..], [9; 10]);
    let size = client.ask(owner, &Size { view: 1 }).unwrap();
    assert_eq!(size.epoch, 1);
}

#[test]
fn seed000_s31_a_new_layout_makes_stored_mappings_void() {
    let rig = Rig::new(3);
    let mut client = rig.client();
    let mut file = client.open("/f", None, Some("striped(64) over 3"));
    let odd = View::new(layout::FileOffset(1), 2, "{(0,0)}".parse().unwrap()).unwrap();
    client.set_view(&file, 1, &whole());
    client.set_view(&file, 2, &odd);
    let data = pattern(100_000, 4);
    client.write(&file, 1, &whole(), 0, &data).unwrap();
    let before = client.read(&file, 2, &odd, 0, 40_000).unwrap().0;
    let owner = file.state.owner.server;
    let end = wire::message::file::Grow {
        view: 1,
        epoch: 0,
        end: 100_000,
    };
    client.ask(owner, &end).unwrap();
    let request = Relayout {
        path: "/f".into(),
        layout: "striped(1000) over 2".into(),
        servers: Vec::new(),
        options: Default::default(),
    };
    client.ask_manager(&request).unwrap();
    until(|| {
        let asked = RelayoutProgress { file: file.id };
        let progress = client.ask_manager(&asked).unwrap();
        assert_ne!(progress.state, MoveState::Failed, "{progress:?}");
        progress.state == MoveState::Done
    });
    // What was planned with the old layout is answered with the new one.
    let stale = client.read(&file, 1, &whole(), 0, 100).unwrap_err();
    assert_eq!(stale.0, Status::StaleLayout);
    file.state = client.open("/f", None, None).state;
    for server in file.servers() {
        let _ = client.set_view_at(server, &file, 1, &whole());
        let _ = client.set_view_at(server, &file, 2, &odd);
    }
    assert!(client.read(&file, 1, &whole(), 0, 100_000).unwrap().0 == data);
    assert!(client.read(&file, 2, &odd, 0, 40_000).unwrap().0 == before);
}

#[test]
fn seed001_s10_space_is_taken_at_the_first_write_and_freed_on_removal() {
    let rig = Rig::new(1);
    let mut client = rig.client();
    let file = client.open("/f", None, Some("striped(4KiB) over 1"));
    client.set_view(&file, 1, &whole());
    let used = || rig.count(0, "memory_bytes");
    assert_eq!((used(), rig.count(0, "subfiles")), (0, 0));
    client.write(&file, 1, &whole(), 0, &[1; 100]).unwrap();
    assert_eq!(rig.count(0, "subfiles"), 1);
    assert!(used() > 0);
    let preallocate = Preallocate {
        view: 1,
        epoch: 0,
        size: 1 << 20,
    };
    client.ask(rig.number(0), &preallocate).unwrap();
    assert!(used() >= 1 << 20);
    let unlink = Unlink {
        path: "/f".into(),
        how: UnlinkHow::EvenIfOpen,
    };
    client.ask_manager(&unlink).unwrap();
    let close = wire::message::catalogue::Close {
        handle: file.opened.handle,
        is_counted: false,
    };
    client.ask_manager(&close).unwrap();
    // Counted when it is done.
    until(|| rig.count(0, "removals") >= 1);
    assert_eq!((used(), rig.count(0, "subfiles")), (0, 0));
}

#[test]
fn subfiles_are_listed_page_by_page_and_each_once() {
    let rig = Rig::on_disk(64 << 20, true);
    let (mut client, server) = (rig.client(), rig.number(0));
    let mut expected = Vec::new();
    for k in 0..5 {
        let file = client.open(&format!("/f{k}"), None, Some("striped(100) over 2"));
        client.set_view(&file, k, &whole());
        client.write(&file, k, &whole(), 0, &[1; 200]).unwrap();
        expected.extend([(file.id, 0), (file.id, 1)]);
    }
    expected.sort_unstable();
    let mut found = Vec::new();
    let mut after = None;
    for page in 0.. {
        let list = client
            .ask(server, &ListSubfiles { after, most: 3 })
            .unwrap();
        found.extend(list.entries.iter().map(|e| (e.file, e.index)));
        let is_last = page == 3;
        let len = if is_last { 1 } else { 3 };
        assert_eq!(
            (list.entries.len(), list.has_more),
            (len, !is_last),
            "{page}"
        );
        if is_last {
            break;
        }
        let last = list.entries.last().unwrap();
        after = Some(SubfileName {
            file: last.file,
            generation: last.generation,
            index: last.index,
        });
    }
    assert_eq!(found, expected);
    // A page that all of them fill has nothing behind it.
    let after = None;
    let list = client.ask(server, &ListSubfiles { after, most: 10 });
    let list = list.unwrap();
    assert_eq!((list.entries.len(), list.has_more), (10, false));
}

#[test]
fn shutdown_ends_the_wait() {
    let rig = Rig::new(1);
    let mut client = rig.client();
    client.ask(rig.number(0), &Shutdown {}).unwrap();
    rig.servers[0].as_ref().unwrap().wait();
}

/// The note of the number can be taken away: the server is known by its identity, and keeps what is on its disk. A disk that
/// was emptied but for the identity keeps nothing, and says so.
#[test]
fn server_is_known_by_its_identity() {
    let rig = Rig::new(0);
    let dir = rig.dir.path().join("disk-0");
    let start = || rig.start_server(0, |o| o.store = rig.disk(0));
    let first = start();
    let (server, mut client) = (first.server(), rig.client());
    client.open("/made", None, Some("whole"));
    first.stop();
    let before = client.members();
    std::fs::remove_file(dir.join("server")).unwrap();
    let again = start();
    assert_eq!(again.server(), server);
    again.stop();
    let after = client.members();
    assert_eq!(after.len(), 1);
    assert_eq!(after[0].kept_since, before[0].kept_since);
    for entry in std::fs::read_dir(&dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => std::fs::remove_dir_all(path).unwrap(),
            false if path.ends_with("identity") => {}
            false => std::fs::remove_file(path).unwrap(),
        }
    }
    let emptied = start();
    assert_eq!(emptied.server(), server);
    emptied.stop();
    let last = client.members();
    assert_eq!(last.len(), 1);
    assert_eq!(last[0].kept_since, last[0].incarnation);
}
