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
