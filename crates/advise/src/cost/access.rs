//! What is asked about: who accesses which bytes, and where these are.
//!
//! Plain values. Numbers that do not fit (a server that does not exist) are brought into range, since a
//! prediction is never worth an error.

use layout::{FileOffset, Partition, View, ViewOffset};
use plan::{Part, Plan};

/// Reading or writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// From the file to the user's memory.
    Read,
    /// From the user's memory to the file.
    Write,
}

/// Where servers keep the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StoreKind {
    /// In their memory.
    Memory,
    /// On their disk.
    Disk,
}

/// One access of one process.
#[derive(Clone, Debug)]
pub struct Process {
    /// What it sees of the file.
    pub view: View,
    /// First byte of the view.
    pub lo: u64,
    /// First byte of the view that is not accessed.
    pub hi: u64,
    /// A server on its host.
    pub near: Option<usize>,
}

impl Process {
    /// The file range from its first to its last byte; empty when it accesses nothing.
    pub fn file_range(&self) -> std::ops::Range<FileOffset> {
        self.view
            .file_range(ViewOffset(self.lo)..ViewOffset(self.hi))
            .unwrap_or(FileOffset(0)..FileOffset(0))
    }

    /// Bytes accessed.
    pub fn bytes(&self) -> u64 {
        match self.file_range().is_empty() {
            true => 0,
            false => self.hi - self.lo,
        }
    }
}

/// Accesses of several processes at once.
#[derive(Clone, Copy, Debug)]
pub struct Access<'a> {
    /// Reading or writing.
    pub op: Op,
    /// Each with its view and range.
    pub processes: &'a [Process],
    /// Whether they are a team that accesses together.
    pub is_collective: bool,
    /// Where the bytes are kept.
    pub store: StoreKind,
}

/// Where a file's subfiles are.
#[derive(Clone, Copy, Debug)]
pub struct Home<'a> {
    /// The physical layout.
    pub partition: &'a Partition,
    /// The server of each subfile, below `server_count`; subfiles beyond the list are dealt out in turn.
    pub servers: &'a [usize],
    /// Number of servers.
    pub server_count: usize,
    /// The host of each server; servers beyond the list have a host of their own.
    pub hosts: &'a [usize],
}

impl Home<'_> {
    /// The server of a subfile; the header lies with the first.
    pub fn server_of(&self, part: Part) -> usize {
        let count = self.server_count.max(1);
        let subfile = part.element().unwrap_or(0);
        self.servers.get(subfile).map_or(subfile, |&s| s) % count
    }

    /// The host of a server. Hosts that are not given have numbers above all given ones.
    pub fn host_of(&self, server: usize) -> usize {
        let own = || self.hosts.iter().max().map_or(0, |&h| h + 1) + server;
        self.hosts.get(server).copied().unwrap_or_else(own)
    }
}

/// The plan of an access: process `i` against the subfiles, only the bytes of its range.
pub(super) fn plan(processes: &[Process], partition: &Partition) -> Plan {
    let accesses: Vec<_> = processes
        .iter()
        .map(|p| (p.view.clone(), p.file_range()))
        .collect();
    Plan::for_accesses(&accesses, partition)
}
