//! A file system that is full while bytes wait in the memory of a server: the client that wrote them hears it, at the sync at the
//! latest, and what was synced before stays.

use std::path::{Path, PathBuf};
use std::process::Command;

use client::OpenOptions;
use system_tests::ServiceOptions;
use testkit::TempDir;

use crate::{MIB, start};

/// A small file system, unmounted with the value.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts one of so many MiB; `None` where that is not allowed.
    fn mount(place: &Path, mebibytes: u64) -> Option<SmallDisk> {
        std::fs::create_dir_all(place).expect("a directory");
        let size = format!("size={mebibytes}m");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &size, "none"]).arg(place);
        let is_done = mount.status().is_ok_and(|status| status.success());
        is_done.then(|| SmallDisk(place.to_owned()))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// How clients reach their server.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Direct,
    Message,
}

/// A client writes until the server says that the disk is full, and syncs; then it looks at what was synced before.
fn fill(way: Way) {
    let dir = TempDir::new();
    let Some(_disk) = SmallDisk::mount(&dir.join("io-0"), 96) else {
        return testkit::skipped("file systems cannot be mounted");
    };
    let options = ServiceOptions::new(1).disk().memory("256MiB");
    let options = options.io_arguments(["--writes", "behind"]);
    let options = options.directories(dir.path());
    let mut service = match way {
        Way::Direct => start(options),
        Way::Message => options.direct(false).start(),
    };
    let client = service.client();
    let new = OpenOptions::new().read().write().create();
    let kept = client.open("/kept", &new).unwrap();
    let bytes = vec![7; 8 * MIB as usize];
    kept.write_at(0, &bytes).unwrap();
    kept.sync().unwrap();
    let full = client.open("/full", &new).unwrap();
    let piece = vec![9; MIB as usize];
    let mut heard = None;
    for k in 0..256 {
        if let Err(e) = full.write_at(k * MIB, &piece) {
            heard = Some(e);
            break;
        }
    }
    // 256 MiB do not fit 96: a write is refused, or the sync.
    let heard = heard.or_else(|| full.sync().err());
    let status = heard.expect("the disk is full").status();
    assert_eq!(status, wire::Status::NoSpace);
    // Not once only.
    assert!(full.sync().is_err() || full.write_at(200 * MIB, &piece).is_err());
    // Cut, it can go on; and others can.
    full.resize(0).unwrap();
    full.sync().unwrap();
    full.write_at(0, &piece).unwrap();
    full.sync().unwrap();
    kept.write_at(0, &piece).unwrap();
    kept.sync().unwrap();
    drop((kept, full, client));
    service.kill_io(0);
    service.start_io(0);
    let client = service.client();
    let kept = client.open("/kept", &OpenOptions::new().read()).unwrap();
    let mut back = vec![0; 8 * MIB as usize];
    assert_eq!(kept.read_at(0, &mut back).unwrap(), back.len());
    assert!(back[..MIB as usize] == piece && back[MIB as usize..] == bytes[MIB as usize..]);
}

#[test]
fn a_full_disk_is_heard_by_those_who_store_directly() {
    fill(Way::Direct);
}

#[test]
fn a_full_disk_is_heard_by_those_who_write_by_message() {
    fill(Way::Message);
}

/// Space of a new file is taken on the disk, so the disk is full for others; it goes back when the file is closed, when its client is
/// killed, and when its server was.
#[test]
fn expected_space_is_taken_on_the_disk_and_goes_back() {
    let dir = TempDir::new();
    let place = dir.join("io-0");
    let Some(_disk) = SmallDisk::mount(&place, 96) else {
        return testkit::skipped("file systems cannot be mounted");
    };
    let options = ServiceOptions::new(1).disk().memory("64MiB");
    let mut service = options.directories(dir.path()).start();
    let client = service.client();
    let expecting = |mebibytes: u64| {
        let new = OpenOptions::new().read().write().exclusive();
        new.expected_size(mebibytes * MIB)
    };
    let free = || {
        let stat = rustix::fs::statvfs(&place).expect("the disk");
        stat.f_bavail * stat.f_frsize
    };
    let all = free();
    let refused = |path: &str, mebibytes: u64| {
        let error = client.open(path, &expecting(mebibytes)).unwrap_err();
        assert_eq!(error.status(), wire::Status::NoSpace, "{error}");
        assert!(error.to_string().contains("expected_size"), "{error}");
        let found = client.stat(path).unwrap_err();
        assert_eq!(found.status(), wire::Status::NotFound, "{found}");
    };
    refused("/never", 200);
    assert!(free() + MIB > all, "{} of {all} bytes", free());
    let file = client.open("/f", &expecting(60)).unwrap();
    assert!(free() + 60 * MIB <= all, "{} of {all} bytes", free());
    refused("/other", 60);
    let bytes = vec![3; 5 * MIB as usize];
    file.write_at(0, &bytes).unwrap();
    file.sync().unwrap();
    file.close().unwrap();
    assert!(free() + 16 * MIB > all, "{} of {all} bytes", free());
    // A client that is killed closes nothing.
    let mut worker = service.worker();
    worker.ask("expect\t0\t/k\t62914560");
    assert!(free() + 60 * MIB <= all, "{} of {all} bytes", free());
    worker.kill();
    system_tests::until("space of a dead client", || free() + 16 * MIB > all);
    // Nor does a server, and its next start does not know.
    let mut worker = service.worker();
    worker.ask("expect\t0\t/g\t52428800");
    assert!(free() + 50 * MIB <= all, "{} of {all} bytes", free());
    service.kill_io(0);
    worker.kill();
    service.start_io(0);
    let again = client
        .open("/g", &OpenOptions::new().read().write())
        .unwrap();
    again.write_at(0, b"it lives").unwrap();
    assert!(free() + 16 * MIB > all, "{} of {all} bytes", free());
    let file = client.open("/f", &OpenOptions::new().read()).unwrap();
    let mut got = vec![0; bytes.len()];
    assert_eq!(file.read_at(0, &mut got).unwrap(), bytes.len());
    assert!(got == bytes);
}
