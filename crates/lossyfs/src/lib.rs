//! A file system that loses what was not synced when its power is cut: for tests of whole services.
//!
//! `kill -9` of a process leaves the page cache alone, so no test with plain directories notices when a
//! sync does nothing. Here it does:
//!
//! ```text
//!   process --- write, rename ---> live image        what everybody sees
//!                                     | fsync
//!                                     v
//!                                  durable image     what is there after [`Disk::restart`]
//! ```
//!
//! The file system runs in threads of the test, behind the kernel's FUSE, so real servers use it through
//! real system calls; one disk under all of them loses the bytes of the stores and the catalogue of the
//! manager in the same moment. The order of events: [`Disk::cut_after`] or [`Disk::cut`] (from then on every
//! operation of every process fails), the test kills its processes, [`Disk::restart`], the test
//! starts them again on what is left.
//!
//! What is promised is what POSIX promises, no more: bytes by a sync of the file, names by a sync of their
//! directory, and that for every directory up to the mount.
//!
//! It takes root and `/dev/fuse`; [`lacks`] says what is missing. Nothing that ships depends on it.
#![forbid(unsafe_code)]

mod image;
mod mounted;

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use fuser::{BackgroundSession, Config, MountOption, SessionACL};

pub use crate::image::{Counts, Loss};
use crate::mounted::{ImageMount, SharedImage};

/// The name in the list of mounts, before the number of the process that serves it.
const SOURCE: &str = "lossyfs-";

/// Why there can be no such disk here; nothing if there can.
pub fn lacks() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("only root can mount a file system".into());
    }
    let device = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/fuse");
    device.err().map(|e| format!("/dev/fuse: {e}"))
}

/// A mounted disk. Dropped, it is gone with everything on it.
#[derive(Debug)]
pub struct Disk {
    image: SharedImage,
    place: PathBuf,
    session: Option<BackgroundSession>,
}

impl Disk {
    /// An empty disk, mounted on a directory.
    pub fn mount(place: &Path) -> io::Result<Disk> {
        unmount_left_behind();
        let mut disk = Disk {
            image: Arc::new(image::Image::new().into()),
            place: place.to_owned(),
            session: None,
        };
        disk.attach()?;
        Ok(disk)
    }

    fn attach(&mut self) -> io::Result<()> {
        let mut config = Config::default();
        config.mount_options = vec![
            MountOption::FSName(format!("{SOURCE}{}", std::process::id())),
            MountOption::NoAtime,
        ];
        config.acl = SessionACL::Owner;
        config.n_threads = Some(2);
        let mounted = ImageMount::new(self.image.clone());
        self.session = Some(fuser::spawn_mount(mounted, &self.place, &config)?);
        Ok(())
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        &self.place
    }

    /// What was asked of it.
    pub fn counts(&self) -> Counts {
        self.image.lock().counts()
    }

    /// Pages and names that wait for a sync.
    pub fn waiting(&self) -> usize {
        self.image.lock().waiting()
    }

    /// The power goes now.
    pub fn cut(&self) {
        self.image.lock().cut_after(0);
    }

    /// The power goes at the n-th operation from now that changes or syncs something, counted from 1: that
    /// one fails already.
    pub fn cut_after(&self, n: u64) {
        self.image.lock().cut_after(n.max(1));
    }

    /// The n-th sync from now, counted from 1, of a file whose name ends so fails with an I/O error, once: what it was
    /// to make durable is seen and never will be, unless it is written again.
    pub fn fail_sync(&self, n: u64, ending: &str) {
        self.image.lock().fail_sync(n, ending);
    }

    /// The quota is exhausted when so many pages more are written; `None` lifts it.
    pub fn set_quota(&self, pages: Option<u64>) {
        self.image.lock().set_quota(pages);
    }

    /// Whether the power is gone.
    pub fn is_cut(&self) -> bool {
        self.image.lock().is_cut()
    }

    /// The host comes back with what is left on the disk. All its processes have to be dead: one that
    /// still has something open is an error.
    pub fn restart(&mut self, loss: Loss) -> io::Result<()> {
        self.image.lock().cut_after(0);
        if let Some(session) = self.session.take() {
            match session.umount_and_join() {
                // The kernel says so to a thread that fetches a request while the mount goes: it is gone.
                Err(e) if e.kind() == io::ErrorKind::ConnectionAborted => {}
                other => other?,
            }
        }
        self.image.lock().settle(loss);
        self.attach()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // A process that still uses it gets errors from now on, and keeps nobody from unmounting.
        self.image.lock().cut_after(0);
        detach(&self.place);
        self.session = None;
    }
}

/// A test that was killed leaves a mount that answers nothing; the next one takes it away.
fn unmount_left_behind() {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    for line in mounts.lines() {
        let mut words = line.split(' ');
        let (Some(source), Some(place)) = (words.next(), words.next()) else {
            continue;
        };
        let Some(process) = source.strip_prefix(SOURCE) else {
            continue;
        };
        if !Path::new("/proc").join(process).exists() {
            detach(Path::new(place));
        }
    }
}

/// Takes a mount out of the tree, also when a process still uses it.
fn detach(place: &Path) {
    let _ = Command::new("umount").arg("-l").arg(place).output();
}
