//! The disk store on file systems of all kinds: the suite that every store passes, and services that are killed and started again.
//!
//! A machine without root, loop devices or one of the programs skips the kinds that it cannot mount, with the reason.

use client::OpenOptions;
use store::conformance::{self, Harness};
use store::{
    Directory, DiskOptions, DiskSpec, DiskStore, FileIo, Pool, PoolOptions, Store, direct_io,
};
use system_tests::mounted::{FileSystem, MountPoint};
use system_tests::{ServiceOptions, TempDir};

/// A disk store in two directories of a file system.
struct Disks<'a> {
    store: Option<DiskStore>,
    place: TempDir,
    io: FileIo,
    kind: FileSystem,
    _on: &'a MountPoint,
}

impl Disks<'_> {
    fn new(on: &MountPoint, kind: FileSystem, io: FileIo) -> Disks<'_> {
        let mut disks = Disks {
            store: None,
            place: TempDir::inside(on.dir()),
            io,
            kind,
            _on: on,
        };
        disks.start();
        disks
    }

    fn start(&mut self) {
        let disks = ["a", "b"].map(|name| {
            let directory = Directory::new(self.place.join(name)).unwrap();
            DiskSpec::new(directory.with_io(self.io))
        });
        let pool = Pool::new(PoolOptions::for_limit(64 << 20));
        let store = DiskStore::new(pool, disks.into(), DiskOptions { open_files: 2 });
        self.store = Some(store.unwrap());
    }
}

impl Harness for Disks<'_> {
    fn store(&self) -> &dyn Store {
        self.store.as_ref().unwrap()
    }

    fn restart(&mut self) {
        self.store = None;
        self.start();
    }

    fn evict(&self) {
        self.store.as_ref().unwrap().evict();
    }

    /// What sshfs talks to punches no holes.
    fn frees(&self) -> bool {
        self.kind != FileSystem::Sshfs
    }

    /// Nor does it reserve space: there is room, or there is none (`docs/adr/0056-space-before-bytes.md`).
    fn reserves(&self) -> bool {
        self.kind != FileSystem::Sshfs
    }
}

/// Every check of the suite; how many there were.
fn conforms(on: &MountPoint, kind: FileSystem, io: FileIo) -> usize {
    let mut ran = 0;
    for check in conformance::CHECKS {
        let mut disks = Disks::new(on, kind, io);
        if (check.applies)(&disks.store().capabilities()) {
            eprintln!("check {}", check.name);
            (check.run)(&mut disks);
            ran += 1;
        }
    }
    ran
}

/// The suite, through the page cache and past it, where the file system can.
fn all_of_it(kind: FileSystem) {
    let on = match kind.mount() {
        Ok(on) => on,
        Err(why) => return testkit::skipped(&why),
    };
    for io in [FileIo::Buffered, FileIo::Direct] {
        assert!(conforms(&on, kind, io) > 20, "{io:?}");
    }
}

#[test]
fn seed004_s48_the_disk_store_conforms_on_sshfs() {
    all_of_it(FileSystem::Sshfs);
}

#[test]
fn seed004_s48_the_disk_store_conforms_on_ext4() {
    all_of_it(FileSystem::Ext4);
}

#[test]
fn seed004_s48_the_disk_store_conforms_on_xfs() {
    all_of_it(FileSystem::Xfs);
}

#[test]
fn seed004_s48_the_disk_store_conforms_on_btrfs() {
    all_of_it(FileSystem::Btrfs);
}

fn bytes_of(seed: u64, len: usize) -> Vec<u8> {
    (0..len as u64)
        .map(|i| system_tests::pattern_byte(seed, i))
        .collect()
}

/// A service whose directories lie there: written, killed, started again, moved, ended in order, started again.
fn a_service_lives(kind: FileSystem) {
    const LEN: usize = 3_000_000;
    let on = match kind.mount() {
        Ok(on) => on,
        Err(why) => return testkit::skipped(&why),
    };
    let mut service = ServiceOptions::new(2).disk().directories(on.dir()).start();
    let bytes = bytes_of(7, LEN);
    let options = OpenOptions::new().read().write().create();
    {
        let client = service.client();
        let file = client.open("/f", &options.clone().layout("striped(64KiB) over 2"));
        let file = file.unwrap();
        file.write_at(0, &bytes).unwrap();
        assert!(file.sync().unwrap().is_durable);
        for index in 0..2 {
            // Its socket lies in the directory, which not every file system can have.
            match service.keeper(index).is_some() {
                true => service.kill_io_with_keeper(index),
                false => service.kill_io(index),
            }
        }
        service.start_io(0);
        service.start_io(1);
        let mut found = vec![0; LEN];
        assert_eq!(file.read_at(0, &mut found).unwrap(), LEN);
        assert!(found == bytes, "{kind:?}: after a kill");
        file.close().unwrap();
    }
    service.kill_meta();
    service.start_meta();
    {
        let client = service.client();
        client
            .relayout("/f", "striped(100000) over [1,0]")
            .unwrap()
            .wait()
            .unwrap();
        client.rename("/f", "/g").unwrap();
    }
    service.end_all();
    service.start_all();
    let client = service.client();
    let file = client.open("/g", &options).unwrap();
    let mut found = vec![0; LEN];
    assert_eq!(file.read_at(0, &mut found).unwrap(), LEN);
    assert!(found == bytes, "{kind:?}: after an end");
    file.close().unwrap();
    client.unlink("/g").unwrap();
    drop(client);
    service.end_all();
}

#[test]
fn a_service_lives_on_sshfs() {
    a_service_lives(FileSystem::Sshfs);
}

#[test]
#[ignore = "long: mounts each kind; sshfs always runs"]
fn a_service_lives_on_every_file_system() {
    for kind in FileSystem::ALL {
        a_service_lives(kind);
    }
}

/// What is found in a directory counts from the next start on, and is told.
#[test]
fn direct_io_is_used_where_it_was_found_to_pay_and_is_told() {
    let on = match FileSystem::Ext4.mount() {
        Ok(on) => on,
        Err(why) => return testkit::skipped(&why),
    };
    let mut service = ServiceOptions::new(1).disk().directories(on.dir()).start();
    let disk = service.disk(0);
    let status = |service: &system_tests::Service| {
        let output = service.pario().arg("status").output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(!status(&service).contains("direct I/O"));
    let mut command = service.pario();
    let output = command
        .args(["calibrate", "--json", "--disk"])
        .arg(&disk)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{told}");
    assert!(
        told.contains("\"direct_pays\"") && told.contains("\"buffered\""),
        "{told}"
    );
    let found = direct_io::kept(&disk).unwrap();
    let pays = told.contains("\"direct_pays\": true");
    assert_eq!(found == FileIo::Direct, pays, "{told}");
    // Whatever was found here: both are used.
    let options = OpenOptions::new().read().write().create();
    let bytes = bytes_of(3, 1_000_001);
    for io in [FileIo::Direct, FileIo::Buffered, FileIo::Direct] {
        service.end_all();
        direct_io::keep(&disk, io).unwrap();
        service.start_all();
        let told = status(&service);
        let line = "server 0: 1 of 1 disks with direct I/O";
        assert_eq!(told.contains(line), io == FileIo::Direct, "{told}");
        let client = service.client();
        let file = client.open("/f", &options).unwrap();
        let mut found = vec![0; bytes.len()];
        let n = file.read_at(0, &mut found).unwrap();
        assert!(
            n == 0 || found == bytes,
            "what was written the other way is read"
        );
        file.write_at(0, &bytes).unwrap();
        assert!(file.sync().unwrap().is_durable);
        file.close().unwrap();
    }
}
