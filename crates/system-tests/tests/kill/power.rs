//! Hosts that lose power between a write and its sync: the server comes back under its number, and what was
//! in the page cache is gone.
//!
//! One machine plays such a host: the server is killed, its disk is put back as it was before the write, and its
//! next start is told of another boot. A start of the server alone, on the same boot, keeps the page cache.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};

use client::{
    Client, ConnectOptions, Error, File, Hints, Mapping, OpenOptions, Places, ServerId,
    SharedBytes, Status, Team,
};
use system_tests::files::{create, open, read, whole};
use system_tests::{Service, ServiceOptions, Store};

use crate::service;

const BYTES: usize = 1 << 20;

/// Copies everything below a directory that is on its disk: no sockets.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            copy(&entry.path(), &target);
        } else if kind.is_file() {
            fs::copy(entry.path(), &target).unwrap();
        }
    }
}

/// What the disk of a server has at this moment.
struct Image {
    index: usize,
    kept: PathBuf,
}

impl Image {
    fn take(service: &Service, index: usize) -> Image {
        let kept = service.dir().join(format!("kept-{index}"));
        copy(&service.disk(index), &kept);
        Image { index, kept }
    }

    /// The host loses power and starts again with the disk as it was.
    fn power_cut(self, service: &mut Service) {
        service.kill_io_with_keeper(self.index);
        let disk = service.disk(self.index);
        fs::remove_dir_all(&disk).unwrap();
        fs::rename(&self.kept, &disk).unwrap();
        static BOOTS: AtomicU64 = AtomicU64::new(1);
        let boot = BOOTS.fetch_add(1, Ordering::Relaxed).to_string();
        service.start_io_with(self.index, "PARIO_BOOT", &boot);
    }
}

/// The loss names the server; whoever writes again can sync.
#[track_caller]
fn assert_lost(result: Result<impl std::fmt::Debug, Error>, server: ServerId) {
    let error = result.expect_err("bytes that are gone were called safe");
    let Error::LostWrites { servers, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(servers[..], [server], "{error}");
    assert_eq!(error.status(), Status::Lost);
    assert!(error.to_string().contains(&server.to_string()), "{error}");
}

/// Ways for bytes to get to servers.
fn ways(service: &Service) -> Vec<(&'static str, ConnectOptions)> {
    let directly = service.connect_options();
    let parts = directly.clone().with_direct(false);
    let master = directly.clone().with_mapping(Mapping::Master);
    vec![
        ("directly", directly),
        ("parts", parts),
        ("gateway", master),
    ]
}

#[test]
fn sync_after_a_power_cut_is_an_error_whichever_way_bytes_went() {
    let mut service = service(2, Store::Disk);
    let named = |service: &Service, index| service.server_id(index);
    for (way, options) in ways(&service) {
        let client = Client::connect(&service.url(), options).unwrap();
        let path = format!("/{way}");
        let file = create(&client, &path, "striped(64KiB) over 2");
        file.write_at(0, &whole(0, BYTES, 1)).unwrap();
        assert!(file.sync().unwrap().is_durable);
        let victim = 1;
        let server = named(&service, victim);
        let image = Image::take(&service, victim);
        file.write_at(0, &whole(0, BYTES, 2)).unwrap();
        image.power_cut(&mut service);
        assert_lost(file.sync(), server);
        // The bytes are gone indeed.
        let now = read(&file, 0, BYTES);
        assert!(now != whole(0, BYTES, 2), "{way}: nothing was lost");
        // As with fsync it is said once; what is written again is safe.
        file.write_at(0, &whole(0, BYTES, 3)).unwrap();
        assert!(file.sync().unwrap().is_durable, "{way}");
        assert!(read(&file, 0, BYTES) == whole(0, BYTES, 3), "{way}");
    }
}

/// Every rank has bytes at the server, whichever rank has sent them.
#[test]
fn sync_of_a_team_after_a_power_cut_is_an_error_with_every_strategy() {
    let mut service = service(2, Store::Disk);
    let (victim, members) = (1, 2);
    let server = service.server_id(victim);
    for strategy in ["views", "two_phase", "ddio", "mb_ddio", "two_phase_ddio"] {
        let path = format!("/{strategy}");
        create(&service.client(), &path, "striped(64KiB) over 2");
        // Everybody has written; the power was cut.
        let (written, cut) = (Barrier::new(members + 1), Barrier::new(members + 1));
        let first = Barrier::new(members + 1);
        let clients: Vec<Client> = (0..members).map(|_| service.client()).collect();
        let outcomes = std::thread::scope(|scope| {
            let member = |(team, client): (Team, Client)| {
                let (path, first, written, cut) = (&path, &first, &written, &cut);
                scope.spawn(move || {
                    let hints = Hints::new().with("strategy", strategy).unwrap();
                    let how = OpenOptions::new().read().write().hints(hints);
                    let file = client.open_together(&team, path, &how).unwrap();
                    let view = format!("striped(1000) over {members} [{}]", team.rank());
                    file.set_view_text_together(&team, &view).unwrap();
                    let len = file.view().len_within(BYTES as u64) as usize;
                    let write = |tag: u8| {
                        let bytes = vec![tag; len];
                        let memory = SharedBytes::from_slice(&bytes);
                        let places = Places::bytes(len as u64);
                        let n = file.write_at_all(&team, 0, memory, 0, &places);
                        assert_eq!(n.unwrap(), len);
                    };
                    write(1);
                    assert!(file.sync().unwrap().is_durable);
                    first.wait();
                    first.wait();
                    write(2);
                    written.wait();
                    cut.wait();
                    file.sync()
                })
            };
            let team = Team::threads(members).into_iter();
            let running: Vec<_> = team.zip(clients).map(member).collect();
            first.wait();
            let image = Image::take(&service, victim);
            first.wait();
            written.wait();
            image.power_cut(&mut service);
            cut.wait();
            let ended = running.into_iter().map(|thread| thread.join().unwrap());
            ended.collect::<Vec<_>>()
        });
        for (rank, outcome) in outcomes.into_iter().enumerate() {
            assert!(outcome.is_err(), "{strategy}: rank {rank} heard of no loss");
            assert_lost(outcome, server);
        }
    }
}

#[test]
fn close_and_append_after_a_power_cut_are_errors() {
    let mut service = service(1, Store::Disk);
    let client = service.client();
    let server = service.server_id(0);
    let file = create(&client, "/f", "striped(64KiB) over 1");
    file.write_at(0, &whole(0, 4096, 1)).unwrap();
    file.sync().unwrap();
    let image = Image::take(&service, 0);
    let appending = OpenOptions::new().write().append();
    let appending: File = client.open("/f", &appending).unwrap();
    appending.write(&[7; 100]).unwrap();
    file.write_at(0, &[8; 10]).unwrap();
    // A handle that has written nothing since its sync has nothing to fear.
    let other = open(&client, "/f");
    other.write_at(20, &[1]).unwrap();
    other.sync().unwrap();
    image.power_cut(&mut service);
    assert_lost(file.close(), server);
    assert_lost(appending.sync(), server);
    appending.close().unwrap();
    other.sync().unwrap();
    other.close().unwrap();
}

#[test]
fn start_of_a_server_on_the_same_boot_keeps_what_was_written() {
    let mut service = service(2, Store::Disk);
    let client = service.client();
    let file = create(&client, "/f", "striped(64KiB) over 2");
    file.write_at(0, &whole(0, BYTES, 1)).unwrap();
    for index in 0..2 {
        service.kill_io(index);
        service.start_io(index);
    }
    assert!(file.sync().unwrap().is_durable);
    assert!(read(&file, 0, BYTES) == whole(0, BYTES, 1));
    file.write_at(0, &whole(0, BYTES, 2)).unwrap();
    file.close().unwrap();
}

/// A memory server whose keeper has died with it, as they do with their host, has nothing of its last start, and says so, also
/// of what was written without asking it. With its keeper it has everything, and a sync finds nothing lost.
#[test]
fn memory_server_that_starts_again_loses_what_was_written_only_without_its_keeper() {
    let mut service = ServiceOptions::new(1).start();
    let cases = [(false, false), (true, false), (false, true), (true, true)];
    for (is_direct, is_kept) in cases {
        let options = service.connect_options().with_direct(is_direct);
        let client = Client::connect(&service.url(), options).unwrap();
        let path = format!("/{is_direct}-{is_kept}");
        let file = create(&client, &path, "striped(64KiB) over 1");
        // The first one asks for the memory.
        for tag in [1, 2] {
            file.write_at(0, &whole(0, BYTES, tag)).unwrap();
        }
        assert_eq!(file.last_access().is_direct, is_direct);
        service.kill_io(0);
        if !is_kept {
            service.kill_keeper(0);
        }
        service.start_io(0);
        match is_kept {
            true => assert!(!file.sync().unwrap().is_durable),
            false => {
                let error = file.sync().unwrap_err();
                assert_eq!(error.status(), Status::Lost, "{error}");
            }
        }
    }
}
