//! The options of `pario serve` and `pario up` that move the limits of clients and users.
//!
//! Owns their names, which refusals of servers mention, and their way from `pario up` to the servers it starts.

use console::notation::size_argument;
use std::process::Command;
use std::time::Duration;

use clap::Args;

/// Limits of clients and users; the defaults are above what programs need.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Limits of clients and users")]
pub(crate) struct Limits {
    /// Connections that a server takes [default: what its descriptors are enough for, 16384 at most]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    connections: Option<u64>,

    /// Connections that a server takes of one user [default: three in four]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    connections_per_user: Option<u64>,

    /// Bytes of messages beyond the first MiB of each that are under way, half of them for one user [default: 256MiB]
    #[arg(long, value_name = "SIZE", value_parser = size_argument)]
    long_message_bytes: Option<u64>,

    /// Files that one client has open at a time; a user 16 times as many [default: 65536]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    open_files: Option<u64>,

    /// Views that one client has registered at an I/O server; a user 16 times as many [default: 16384]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    views: Option<u64>,

    /// Bytes that describe the views of one client at an I/O server; a user 16 times as many [default: 16MiB]
    #[arg(long, value_name = "SIZE", value_parser = size_argument)]
    view_bytes: Option<u64>,

    /// Locks, places behind the end and shared pointers that one client has in one file [default: 16384]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    locks: Option<u64>,

    /// Steps that a request takes to find its bytes, besides those that its bytes pay for [default: 1048576]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    search_steps: Option<u64>,

    /// Seconds that a request waits for a buffer before peers that stand still lose theirs [default: 10]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=3600))]
    buffer_wait: Option<u64>,
}

impl Limits {
    /// Connections, for either server.
    pub(crate) fn connections(&self) -> serving::Limits {
        let small = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        let mut limits = match self.connections {
            Some(n) => serving::Limits::of(small(n)),
            None => serving::Limits::default(),
        };
        if let Some(n) = self.connections_per_user {
            limits.connections_per_user = small(n);
        }
        if let Some(n) = self.long_message_bytes {
            limits.long_message_bytes = small(n);
        }
        limits
    }

    /// Sets those of the metadata manager.
    pub(crate) fn apply_to_meta(&self, options: &mut metaserver::Options) {
        options.connections = self.connections();
        options.open_files = self.open_files.unwrap_or(options.open_files);
    }

    /// Sets those of an I/O server.
    pub(crate) fn apply_to_io(&self, options: &mut ioserver::Options) {
        let limits = &mut options.limits;
        limits.connections = self.connections();
        let small = |n: Option<u64>| n.map(|n| usize::try_from(n).unwrap_or(usize::MAX));
        limits.views = small(self.views).unwrap_or(limits.views);
        limits.locks = small(self.locks).unwrap_or(limits.locks);
        limits.view_bytes = self.view_bytes.unwrap_or(limits.view_bytes);
        limits.search_steps = self.search_steps.unwrap_or(limits.search_steps);
        let wait = self.buffer_wait.map(Duration::from_secs);
        limits.buffer_wait = wait.unwrap_or(limits.buffer_wait);
    }

    /// Hands them on to a server that is started as a process of its own.
    pub(crate) fn hand_on(&self, command: &mut Command) {
        let all = [
            ("--connections", self.connections),
            ("--connections-per-user", self.connections_per_user),
            ("--long-message-bytes", self.long_message_bytes),
            ("--open-files", self.open_files),
            ("--views", self.views),
            ("--view-bytes", self.view_bytes),
            ("--locks", self.locks),
            ("--search-steps", self.search_steps),
            ("--buffer-wait", self.buffer_wait),
        ];
        for (name, value) in all {
            if let Some(value) = value {
                command.arg(name).arg(value.to_string());
            }
        }
    }
}
