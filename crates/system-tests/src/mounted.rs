//! Directories on file systems of other kinds: images on loop devices, and a directory of another host by sshfs.
//!
//! What a machine has not (root, loop devices, `mkfs.xfs`, `/dev/fuse`) is told as the reason why there is none. Everything goes with
//! the value.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use testkit::TempDir;

use crate::waiting::until;

/// Kinds of file systems.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSystem {
    /// On a loop device.
    Ext4,
    /// On a loop device.
    Xfs,
    /// On a loop device.
    Btrfs,
    /// Over a connection to a server of files, as from another host.
    Sshfs,
}

impl FileSystem {
    /// All of them.
    pub const ALL: [FileSystem; 4] = [
        FileSystem::Ext4,
        FileSystem::Xfs,
        FileSystem::Btrfs,
        FileSystem::Sshfs,
    ];

    /// The command that makes one, and its arguments.
    fn maker(self) -> (&'static str, &'static [&'static str]) {
        match self {
            FileSystem::Ext4 => ("mkfs.ext4", &["-q", "-F"]),
            FileSystem::Xfs => ("mkfs.xfs", &["-q", "-f"]),
            FileSystem::Btrfs => ("mkfs.btrfs", &["-q", "-f"]),
            FileSystem::Sshfs => ("sshfs", &[]),
        }
    }

    /// Mounts a new one; or why that cannot be done here.
    pub fn mount(self) -> Result<MountPoint, String> {
        if !rustix::process::geteuid().is_root() {
            return Err("mounting needs root".into());
        }
        let temporary = TempDir::new();
        let dir = temporary.join("mounted");
        fs::create_dir(&dir).map_err(|e| e.to_string())?;
        match self {
            FileSystem::Sshfs => by_sshfs(temporary, dir),
            _ => self.on_loop(temporary, dir),
        }
    }

    fn on_loop(self, temporary: TempDir, dir: PathBuf) -> Result<MountPoint, String> {
        let image = temporary.join("image");
        let made = File::create(&image).and_then(|file| file.set_len(IMAGE_BYTES));
        made.map_err(|e| format!("{}: {e}", image.display()))?;
        let (maker, arguments) = self.maker();
        run(Command::new(maker).args(arguments).arg(&image))?;
        run(Command::new("mount")
            .args(["-o", "loop"])
            .arg(&image)
            .arg(&dir))?;
        Ok(MountPoint {
            dir,
            server: None,
            _temporary: temporary,
        })
    }
}

/// Room of a file system on a loop device; the image takes what is used of it. XFS wants 300 MiB.
const IMAGE_BYTES: u64 = 512 << 20;

const SFTP_SERVER: &str = "/usr/lib/openssh/sftp-server";

fn run(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => format!("{name} is not installed"),
        _ => format!("{name}: {e}"),
    })?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(format!("{name} fails here: {}", said.trim()))
        }
    }
}

/// The file server is started in place of ssh, so that no host and no key is needed.
fn by_sshfs(temporary: TempDir, dir: PathBuf) -> Result<MountPoint, String> {
    if !Path::new("/dev/fuse").exists() {
        return Err("/dev/fuse is not there".into());
    }
    if !Path::new(SFTP_SERVER).exists() {
        return Err(format!("{SFTP_SERVER} is not installed"));
    }
    let failed = |e: std::io::Error| e.to_string();
    let remote = temporary.join("remote");
    fs::create_dir(&remote).map_err(failed)?;
    let ssh = temporary.join("ssh");
    let mut script = File::create(&ssh).map_err(failed)?;
    writeln!(script, "#!/bin/sh\nexec {SFTP_SERVER}").map_err(failed)?;
    let executable = fs::Permissions::from_mode(0o755);
    script.set_permissions(executable).map_err(failed)?;
    drop(script);
    let mut server = Command::new("sshfs")
        .arg("-f")
        .arg("-o")
        .arg(format!("ssh_command={}", ssh.display()))
        .arg(format!("host:{}", remote.display()))
        .arg(&dir)
        .stdout(Stdio::null())
        .spawn()
        .map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => "sshfs is not installed".to_owned(),
            _ => format!("sshfs: {e}"),
        })?;
    let is_mounted = || {
        let table = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        table.contains(&format!(" {} fuse.sshfs ", dir.display()))
    };
    let mut ended = None;
    until("sshfs has mounted", || {
        ended = server.try_wait().ok().flatten();
        ended.is_some() || is_mounted()
    });
    if let Some(status) = ended {
        return Err(format!("sshfs fails here: {status}"));
    }
    Ok(MountPoint {
        dir,
        server: Some(server),
        _temporary: temporary,
    })
}

/// A mounted file system.
#[derive(Debug)]
pub struct MountPoint {
    dir: PathBuf,
    server: Option<Child>,
    _temporary: TempDir,
}

impl MountPoint {
    /// Its directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

impl Drop for MountPoint {
    fn drop(&mut self) {
        // A process that still has a file of it keeps it until then.
        let _ = Command::new("umount").arg("-l").arg(&self.dir).output();
        if let Some(server) = &mut self.server {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}
