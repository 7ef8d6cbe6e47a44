//! What `doctor` asks: does everything fit together?
//!
//! Transactions keep the catalogue consistent by themselves, so a finding of severity
//! [`Severity::Broken`] is a bug or a damaged disk. Lost bytes and servers that are missing are
//! reported too, since they are what users look for, but they are no flaw of the catalogue.
//!
//! Cost: reads every row once; memory in proportion to the number of files.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use wire::message::Field;
use wire::message::catalogue::{Member, NamedView, Severity};

use wire::{LayoutState, Place};

use super::Snapshot;
use super::hints::{read_failed, read_notes};
use super::member::{members, places_of};
use super::profiles::read_kept;
use super::record::{
    Counter, Node, ROOT, counter, decode, key, read_distribution, read_entry, read_move, read_node,
    read_removal, row_name,
};
use super::remove_tree::{directory_of, read_row};
use super::rows::Rows;
use crate::error::MetaError;
use crate::{FileId, ServerId};

/// Something that does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Finding {
    /// A row cannot be read.
    Unreadable(String),
    /// An entry leads nowhere.
    DanglingEntry {
        /// In which directory.
        directory: FileId,
        /// Which name.
        name: String,
    },
    /// An entry and what it leads to disagree about the name.
    MisnamedEntry {
        /// In which directory.
        directory: FileId,
        /// Which name.
        name: String,
        /// What it leads to.
        file: FileId,
    },
    /// A file or directory has no name and is not on the list of those that may lack one.
    Orphan(FileId),
    /// A directory cannot be reached from the root.
    Unreachable(FileId),
    /// A file has no layout that can be read.
    NoLayout(FileId),
    /// A layout, view or note belongs to no file.
    Stray(String),
    /// A layout names a server that never joined.
    UnknownServer {
        /// Of which file.
        file: FileId,
        /// Which.
        server: ServerId,
    },
    /// A counter is behind what it counts.
    Counter(&'static str),
    /// Bytes were in the memory of a start of a server that is gone.
    LostBytes {
        /// Of which file.
        file: FileId,
        /// Where they were.
        place: Place,
    },
}

impl Finding {
    /// How bad it is.
    pub fn severity(&self) -> Severity {
        match self {
            Finding::LostBytes { .. } => Severity::Lost,
            _ => Severity::Broken,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Finding::Unreadable(row) => write!(f, "{row} cannot be read"),
            Finding::DanglingEntry { directory, name } => {
                write!(f, "entry `{name}` of {directory} leads nowhere")
            }
            Finding::MisnamedEntry {
                directory,
                name,
                file,
            } => write!(
                f,
                "entry `{name}` of {directory} leads to {file}, which is elsewhere"
            ),
            Finding::Orphan(file) => write!(f, "{file} has no name"),
            Finding::Unreachable(file) => write!(f, "{file} cannot be reached from the root"),
            Finding::NoLayout(file) => write!(f, "{file} has no readable layout"),
            Finding::Stray(row) => write!(f, "{row} belongs to no file"),
            Finding::UnknownServer { file, server } => {
                write!(f, "the layout of {file} names {server}, which never joined")
            }
            Finding::Counter(name) => write!(f, "the counter of {name} is wrong"),
            Finding::LostBytes { file, place } => write!(
                f,
                "bytes of {file} are lost with start {} of server {}",
                place.incarnation, place.server
            ),
        }
    }
}

impl Snapshot {
    /// Everything that does not fit; empty when all is well.
    pub fn check(&self) -> Result<Vec<Finding>, MetaError> {
        Check::run(&self.rows)
    }
}

struct Check<'r> {
    rows: &'r dyn Rows,
    findings: Vec<Finding>,
    nodes: BTreeMap<FileId, Node>,
    /// Directories that were removed with all below them, and are not empty yet.
    removed: BTreeSet<FileId>,
}

impl<'r> Check<'r> {
    fn run(rows: &'r dyn Rows) -> Result<Vec<Finding>, MetaError> {
        let mut check = Check {
            rows,
            findings: Vec::new(),
            nodes: BTreeMap::new(),
            removed: BTreeSet::new(),
        };
        check.read_nodes()?;
        check.trees()?;
        check.entries()?;
        check.reach();
        check.transients()?;
        check.layouts()?;
        check.belongings()?;
        check.counters()?;
        Ok(check.findings)
    }

    /// Passes readable rows on and notes the others.
    fn each<T>(
        &mut self,
        prefix: &[u8],
        read: impl Fn(&[u8], &[u8]) -> Result<T, MetaError>,
        mut visit: impl FnMut(&mut Self, &[u8], T),
    ) -> Result<(), MetaError> {
        let rows = self.rows;
        rows.for_each(prefix, &mut |key, bytes| {
            match read(key, bytes) {
                Ok(value) => visit(self, key, value),
                Err(error) if error.is_fatal() => return Err(error),
                Err(_) => self.findings.push(Finding::Unreadable(row_name(key))),
            }
            Ok(())
        })
    }

    fn file_of(key: &[u8]) -> FileId {
        FileId(key::number(key, 0).unwrap_or(0))
    }

    fn is_file(&self, file: FileId) -> bool {
        self.nodes.get(&file).is_some_and(|n| !n.is_directory())
    }

    fn read_nodes(&mut self) -> Result<(), MetaError> {
        self.each(&key::nodes(), read_node, |check, key, node| {
            check.nodes.insert(Self::file_of(key), node);
        })
    }

    fn trees(&mut self) -> Result<(), MetaError> {
        self.each(&key::trees(), read_row, |check, key, _| {
            let directory = directory_of(key).unwrap_or(FileId(0));
            match check.nodes.get(&directory).is_some_and(Node::is_directory) {
                true => drop(check.removed.insert(directory)),
                false => check.findings.push(Finding::Stray(row_name(key))),
            }
        })
    }

    fn entries(&mut self) -> Result<(), MetaError> {
        let mut named = BTreeSet::from([ROOT]);
        named.extend(&self.removed);
        self.each(&key::entries(), read_entry, |check, key, file| {
            let directory = Self::file_of(key);
            let name = key::name(key, 1).unwrap_or_default().to_owned();
            let holder = check.nodes.get(&directory);
            match check.nodes.get(&file) {
                None => check
                    .findings
                    .push(Finding::DanglingEntry { directory, name }),
                Some(node)
                    if (node.parent, &node.name) != (directory, &name)
                        || !holder.is_some_and(Node::is_directory) =>
                {
                    check.findings.push(Finding::MisnamedEntry {
                        directory,
                        name,
                        file,
                    });
                }
                Some(_) => {
                    named.insert(file);
                }
            }
        })?;
        for (file, node) in &self.nodes {
            let unlinked = node.file().is_some_and(|body| body.unlinked);
            if named.contains(file) == unlinked {
                self.findings.push(Finding::Orphan(*file));
            }
        }
        Ok(())
    }

    /// Every directory leads to the root in at most as many steps as there are directories.
    fn reach(&mut self) {
        let mut reached = BTreeSet::from([ROOT]);
        reached.extend(&self.removed);
        for (file, node) in &self.nodes {
            let mut way = Vec::new();
            let mut at = if node.is_directory() {
                *file
            } else {
                node.parent
            };
            let arrives = loop {
                if reached.contains(&at) {
                    break true;
                }
                if way.contains(&at) {
                    break false;
                }
                way.push(at);
                match self.nodes.get(&at) {
                    Some(node) => at = node.parent,
                    None => break false,
                }
            };
            if arrives {
                reached.extend(way);
            } else if node.file().is_none_or(|body| !body.unlinked) {
                self.findings.push(Finding::Unreachable(*file));
            }
        }
    }

    fn transients(&mut self) -> Result<(), MetaError> {
        let mut listed = BTreeSet::new();
        self.each(
            &key::transients(),
            |_, _| Ok(()),
            |check, key, ()| {
                let file = Self::file_of(key);
                listed.insert(file);
                let fits = check
                    .nodes
                    .get(&file)
                    .and_then(Node::file)
                    .is_some_and(|body| body.unlinked || body.delete_on_close);
                if !fits {
                    check.findings.push(Finding::Stray(row_name(key)));
                }
            },
        )?;
        for (file, node) in &self.nodes {
            let needs = node
                .file()
                .is_some_and(|body| body.unlinked || body.delete_on_close);
            if needs && !listed.contains(file) {
                self.findings.push(Finding::Orphan(*file));
            }
        }
        Ok(())
    }

    fn layouts(&mut self) -> Result<(), MetaError> {
        let members: BTreeMap<ServerId, Member> = members(self.rows)?
            .into_iter()
            .map(|m| (m.server, m))
            .collect();
        let mut with_layout = BTreeSet::new();
        let read = |key: &[u8], bytes: &[u8]| decode(key, bytes, LayoutState::read);
        self.each(&key::layouts(), read, |check, key, state| {
            let file = Self::file_of(key);
            if !check.is_file(file) {
                check.findings.push(Finding::Stray(row_name(key)));
                return;
            }
            with_layout.insert(file);
            let mut seen = BTreeSet::new();
            for (_, place) in places_of(&state) {
                if !seen.insert((place.server, place.incarnation)) {
                    continue;
                }
                let server = ServerId(place.server);
                match members.get(&server) {
                    None => check.findings.push(Finding::UnknownServer { file, server }),
                    Some(m) if !m.keeps(place.incarnation) => {
                        check.findings.push(Finding::LostBytes { file, place });
                    }
                    Some(_) => {}
                }
            }
            let body = check.nodes[&file].file();
            let moving = body.is_some_and(|b| b.next_layout.is_some());
            let newest = state.pieces.iter().map(|p| p.generation).max();
            if moving != (state.pieces.len() == 2)
                || body.is_some_and(|b| newest >= Some(b.next_generation))
            {
                check.findings.push(Finding::NoLayout(file));
            }
        })?;
        for (file, node) in &self.nodes {
            if !node.is_directory() && !with_layout.contains(file) {
                self.findings.push(Finding::NoLayout(*file));
            }
        }
        Ok(())
    }

    fn belongings(&mut self) -> Result<(), MetaError> {
        self.each(&key::movings(), read_move, |check, key, _| {
            let node = check.nodes.get(&Self::file_of(key));
            let body = node.and_then(Node::file);
            if body.is_none_or(|body| body.next_layout.is_none()) {
                check.findings.push(Finding::Stray(row_name(key)));
            }
        })?;
        self.each(&key::distributions(), read_distribution, |check, key, _| {
            if !check.is_file(Self::file_of(key)) {
                check.findings.push(Finding::Stray(row_name(key)));
            }
        })?;
        self.each(&key::profiles(), read_kept, |check, key, _| {
            if !check.is_file(Self::file_of(key)) {
                check.findings.push(Finding::Stray(row_name(key)));
            }
        })?;
        let read = |key: &[u8], bytes: &[u8]| decode(key, bytes, NamedView::read);
        self.each(&key::views(), read, |check, key, _| {
            if !check.is_file(Self::file_of(key)) {
                check.findings.push(Finding::Stray(row_name(key)));
            }
        })?;
        self.each(
            &key::values(),
            |_, bytes| Ok(bytes.len()),
            |check, key, _| {
                if !check.is_file(Self::file_of(key)) {
                    check.findings.push(Finding::Stray(row_name(key)));
                }
            },
        )?;
        let members: BTreeSet<u64> = members(self.rows)?.iter().map(|m| m.server.0).collect();
        self.each(&key::all_hints(), read_notes, |check, key, _| {
            if !check.nodes.contains_key(&Self::file_of(key)) {
                check.findings.push(Finding::Stray(row_name(key)));
            }
        })?;
        self.each(&key::failed_servers(), read_failed, |check, key, _| {
            if !key::number(key, 0).is_some_and(|server| members.contains(&server)) {
                check.findings.push(Finding::Stray(row_name(key)));
            }
        })?;
        self.each(
            &key::identities(),
            |_, bytes| Ok(bytes.len()),
            |check, key, _| {
                if !key::number(key, 0).is_some_and(|server| members.contains(&server)) {
                    check.findings.push(Finding::Stray(row_name(key)));
                }
            },
        )?;
        self.each(&key::removals(), read_removal, |check, key, _| {
            if !key::number(key, 0).is_some_and(|server| members.contains(&server)) {
                check.findings.push(Finding::Stray(row_name(key)));
            }
        })
    }

    fn counters(&mut self) -> Result<(), MetaError> {
        let rows = self.rows;
        let files = self.nodes.values().filter(|n| !n.is_directory()).count() as u64;
        let directories = self.nodes.len() as u64 - files;
        let next_file = self.nodes.keys().next_back().map_or(0, |f| f.0 + 1);
        let members = members(rows)?;
        let next_server = members.last().map_or(0, |m| m.server.0 + 1);
        let incarnation = members.iter().map(|m| m.incarnation).max().unwrap_or(0);
        for (name, fits) in [
            ("files", counter(rows, Counter::Files)? == files),
            (
                "directories",
                counter(rows, Counter::Directories)? == directories,
            ),
            (
                "file numbers",
                counter(rows, Counter::NextFile)? >= next_file,
            ),
            (
                "server numbers",
                counter(rows, Counter::NextServer)? >= next_server,
            ),
            (
                "incarnations",
                counter(rows, Counter::NextIncarnation)? >= incarnation,
            ),
        ] {
            if !fits {
                self.findings.push(Finding::Counter(name));
            }
        }
        Ok(())
    }
}
