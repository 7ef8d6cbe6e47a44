//! How a process names itself and its host: by what the kernel tells apart.
//!
//! Equal names mean that process numbers, or sockets in the file system, can be looked up here.

use std::fs;

use wire::message::session::Process;

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

/// Whether payloads are sealed, as `PARIO_CHECKSUMS` says (1 or 0); nothing if it says nothing: over networks only.
pub fn checksums() -> Option<bool> {
    match std::env::var("PARIO_CHECKSUMS").as_deref() {
        Ok("1" | "on" | "true") => Some(true),
        Ok("0" | "off" | "false") => Some(false),
        _ => None,
    }
}

/// The boot of this host: what its kernel holds and no disk has dies with it. `PARIO_BOOT` stands for it where one
/// machine plays a host that is started again. Empty if the system does not say.
pub fn boot() -> String {
    if let Ok(boot) = std::env::var("PARIO_BOOT") {
        return boot;
    }
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    boot.trim().to_owned()
}

/// The kernel's boot id and the space of process numbers.
fn host() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let space = fs::read_link("/proc/self/ns/pid")
        .map(|p| p.display().to_string())
        .unwrap_or_default();
    format!("{} {space}", boot.trim())
}
