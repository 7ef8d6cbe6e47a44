//! The mounted disk, by the system calls that servers use.
//!
//! Without root or `/dev/fuse` these are skipped, with the reason.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use lossyfs::{Disk, Loss};
use rustix::fs::{FallocateFlags, SeekFrom};

/// A mounted disk in a directory that ends with its test.
struct Place {
    disk: Option<Disk>,
    path: PathBuf,
}

impl Place {
    fn new(name: &str) -> Option<Place> {
        if let Some(why) = lossyfs::lacks() {
            testkit::skipped(&why);
            return None;
        }
        let path = std::env::temp_dir().join(format!("pario-lossy-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        let disk = Disk::mount(&path).unwrap();
        let disk = Some(disk);
        Some(Place { disk, path })
    }

    fn disk(&mut self) -> &mut Disk {
        self.disk.as_mut().unwrap()
    }

    fn sync_names(&self) {
        File::open(&self.path).unwrap().sync_all().unwrap();
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.disk = None;
        let _ = fs::remove_dir(&self.path);
    }
}

#[test]
fn synced_files_survive_a_power_cut_and_others_do_not() {
    let Some(mut place) = Place::new("basic") else {
        return;
    };
    let (kept, lost) = (place.path.join("kept"), place.path.join("lost"));
    let mut file = File::create(&kept).unwrap();
    file.write_all(&[1; 10_000]).unwrap();
    file.sync_data().unwrap();
    place.sync_names();
    file.write_all_at(&[2; 5000], 100).unwrap();
    fs::write(&lost, [3; 5000]).unwrap();
    assert_eq!(fs::read(&lost).unwrap(), [3; 5000]);
    assert_eq!(fs::read(&kept).unwrap()[100..5100], [2; 5000]);
    assert!(place.disk().waiting() > 0);
    drop(file);
    place.disk().restart(Loss::Everything).unwrap();
    assert_eq!(fs::read(&kept).unwrap(), [1; 10_000]);
    assert_eq!(fs::read(&lost).unwrap_err().kind(), ErrorKind::NotFound);
    let counts = place.disk().counts();
    assert_eq!((counts.file_syncs, counts.directory_syncs), (1, 1));
}

#[test]
fn files_of_processes_that_live_keep_the_disk_from_restarting() {
    let Some(mut place) = Place::new("busy") else {
        return;
    };
    let file = File::create(place.path.join("open")).unwrap();
    place.disk().cut();
    assert!(file.sync_all().is_err(), "the power is gone");
    assert!(place.disk().restart(Loss::Everything).is_err());
    drop(file);
}

#[test]
fn power_goes_at_the_operation_that_was_named() {
    let Some(mut place) = Place::new("counted") else {
        return;
    };
    let file = File::create(place.path.join("f")).unwrap();
    place.sync_names();
    place.disk().cut_after(4);
    file.write_all_at(b"one", 0).unwrap();
    file.sync_all().unwrap();
    file.write_all_at(b"two", 0).unwrap();
    assert!(!place.disk().is_cut());
    assert!(file.sync_all().is_err());
    assert!(place.disk().is_cut());
    assert!(file.write_all_at(b"two", 0).is_err());
    drop(file);
    place.disk().restart(Loss::Everything).unwrap();
    assert_eq!(fs::read(place.path.join("f")).unwrap(), b"one");
}

#[test]
fn holes_cuts_renames_appends_and_locks_are_as_on_any_disk() {
    let Some(mut place) = Place::new("calls") else {
        return;
    };
    let path = place.path.join("f");
    let file = File::create_new(&path).unwrap();
    file.write_all_at(&[7; 40_960], 0).unwrap();
    let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    rustix::fs::fallocate(&file, punch, 4096, 8192).unwrap();
    rustix::fs::fallocate(&file, FallocateFlags::KEEP_SIZE, 0, 1 << 20).unwrap();
    assert_eq!(file.metadata().unwrap().len(), 40_960);
    assert_eq!(rustix::fs::seek(&file, SeekFrom::Data(4096)), Ok(12_288));
    file.set_len(20_000).unwrap();
    assert_eq!(file.metadata().unwrap().len(), 20_000);
    let end = rustix::fs::seek(&file, SeekFrom::Data(20_000));
    assert_eq!(end, Err(rustix::io::Errno::NXIO));
    let mut log = OpenOptions::new().append(true).open(&path).unwrap();
    log.write_all(b"tail").unwrap();
    log.write_all(b"tail").unwrap();
    assert_eq!(file.metadata().unwrap().len(), 20_008);
    file.sync_all().unwrap();
    rustix::fs::fcntl_lock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive).unwrap();
    drop((file, log));
    fs::create_dir_all(place.path.join("a/b")).unwrap();
    fs::rename(&path, place.path.join("a/b/g")).unwrap();
    assert_eq!(fs::read_dir(&place.path).unwrap().count(), 1);
    place.sync_names();
    for directory in ["a", "a/b"] {
        let directory = File::open(place.path.join(directory)).unwrap();
        directory.sync_all().unwrap();
    }
    place.disk().restart(Loss::Everything).unwrap();
    let bytes = fs::read(place.path.join("a/b/g")).unwrap();
    assert_eq!(bytes.len(), 20_008);
    assert_eq!(bytes[4095..4097], [7, 0]);
    assert_eq!(&bytes[20_000..], b"tailtail");
    fs::remove_dir_all(place.path.join("a")).unwrap();
    let socket = place.path.join("socket");
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    place.disk().restart(Loss::Nothing).unwrap();
    assert!(socket.exists() && !path.exists());
}
