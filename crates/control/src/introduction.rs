//! What both ends of a connection compute to get acquainted: the secret between hosts, the proof that
//! a peer knows it, and how a process names itself.
//!
//! The secret itself never travels: the server sends random bytes, the peer seals them together with
//! what it said about itself. Left to others: sending and believing.

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

use wire::message::Field;
use wire::message::session::{Hello, Process};

use crate::capability::seal;

/// What the processes of a service on several hosts share.
#[derive(Clone)]
pub struct Secret([u8; 32]);

impl Secret {
    /// From the contents of a file: anything of at least 16 bytes, surrounding white space aside.
    pub fn read(path: &Path) -> io::Result<Secret> {
        let bytes = fs::read(path)?;
        let text = bytes.trim_ascii();
        if text.len() < 16 {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!(
                    "{}: a secret has at least 16 bytes; make one with `head -c 32 /dev/urandom | base64`",
                    path.display()
                ),
            ));
        }
        Ok(Secret::new(text))
    }

    /// From any bytes.
    pub fn new(bytes: &[u8]) -> Secret {
        Secret(seal(b"pario secret", &[bytes]))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// What proves knowledge of the secret to whoever sent the challenge.
pub fn proof(secret: &Secret, challenge: &[u8], hello: &Hello) -> [u8; 32] {
    let mut said = Vec::new();
    hello.put(&mut said);
    seal(&secret.0, &[challenge, &said])
}

/// This process, as it introduces itself.
pub fn this_process() -> Process {
    Process {
        pid: u64::from(std::process::id()),
        host: host(),
    }
}

/// This host, as far as sockets in its file system and memory are shared: the kernel's boot id, the
/// network and, where one machine plays several hosts, the name in `PARIO_HOST`.
pub fn local_host() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let network = fs::read_link("/proc/self/ns/net")
        .map(|p| p.display().to_string())
        .unwrap_or_default();
    let name = std::env::var("PARIO_HOST").unwrap_or_default();
    format!("{} {network} {name}", boot.trim())
}

/// The kernel's boot id and the space of process numbers.
fn host() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let space = fs::read_link("/proc/self/ns/pid")
        .map(|p| p.display().to_string())
        .unwrap_or_default();
    format!("{} {space}", boot.trim())
}
