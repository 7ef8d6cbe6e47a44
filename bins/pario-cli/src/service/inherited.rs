//! What a process finds open that another one has started for itself. Used by the holders, which ranks of
//! MPI jobs start: a launcher waits until nobody has the pipes and sockets of its ranks any more.

use std::os::fd::RawFd;

/// Closes everything but the three standard descriptors. Call it before anything is opened.
pub(crate) fn close_inherited() {
    let entries = std::fs::read_dir("/proc/self/fd").into_iter().flatten();
    let open: Vec<RawFd> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|fd| *fd > 2)
        .collect();
    for fd in open {
        // The descriptor of the listing itself is gone already.
        let _ = nix::unistd::close(fd);
    }
}
