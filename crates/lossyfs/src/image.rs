//! The two images of the file system, *live* and *durable*, without any kernel.
//!
//! Every change goes to the live image at once and waits, page by page and name by name, until a sync
//! makes it durable. [`Image::settle`] is the power cut: it decides what became of the changes that
//! wait, and makes the live image equal to the durable one.
//!
//! Invariants
//! - A sync of a file makes its bytes and its length durable, not its name. A sync of a directory makes
//!   its names durable, not what they lead to. Nothing else makes anything durable, `close` neither.
//! - A change of names is one step: of a rename both names change, or none.
//! - Modes and owners are durable at once; nothing here depends on them.
//! - A sync of a file that was planned to fail forgets what waited, as Linux does: readers see it, and no later sync makes it
//!   durable. It is seen until [`Loss::Evicted`], or until it is written again.
//! - After the power is gone ([`Image::cut_after`]) every operation fails and changes nothing.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::sync::Arc;

use fuser::Errno;
use random::Random;

/// Bytes of a page, the unit that a disk takes.
pub(crate) const PAGE: u64 = 4096;
const SECTOR: u64 = 512;
/// The directory at the top.
pub(crate) const ROOT: u64 = 1;

type Page = Arc<[u8; PAGE as usize]>;
type Result<T> = std::result::Result<T, Errno>;

/// What becomes of changes that no sync made durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Only processes died; the page cache lives on.
    Nothing,
    /// Only processes died, and what failed syncs have forgotten has left the page cache.
    Evicted,
    /// All of them are gone.
    Everything,
    /// Each is there, gone, or torn between sectors, by a seed.
    Random(u64),
}

/// What was asked of the file system since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Everything that changes something or syncs.
    pub operations: u64,
    /// Writes.
    pub writes: u64,
    /// Syncs of files.
    pub file_syncs: u64,
    /// Syncs of directories.
    pub directory_syncs: u64,
}

/// Bytes of a file in one image.
#[derive(Clone, Debug, Default)]
struct Bytes {
    len: u64,
    pages: BTreeMap<u64, Page>,
}

impl Bytes {
    fn set_len(&mut self, len: u64) {
        self.pages.split_off(&len.div_ceil(PAGE));
        if !len.is_multiple_of(PAGE)
            && let Some(page) = self.pages.get_mut(&(len / PAGE))
        {
            Arc::make_mut(page)[(len % PAGE) as usize..].fill(0);
        }
        self.len = len;
    }
}

/// A change of a file that waits for a sync.
#[derive(Clone, Debug)]
enum UnsyncedChange {
    /// A page has other bytes, or none; the file is at least so long if they end before.
    Page {
        page: u64,
        bytes: Option<Page>,
        end: u64,
    },
    /// The file was cut or extended.
    Length(u64),
}

impl UnsyncedChange {
    /// Applies the first `kept` bytes of it.
    fn apply(&self, to: &mut Bytes, kept: u64) {
        match self {
            UnsyncedChange::Length(len) => {
                if kept == PAGE {
                    to.set_len(*len);
                }
            }
            UnsyncedChange::Page { page, bytes, end } if kept > 0 => {
                match bytes {
                    Some(bytes) if kept == PAGE => drop(to.pages.insert(*page, bytes.clone())),
                    None if kept == PAGE => drop(to.pages.remove(page)),
                    torn => {
                        let old = to.pages.entry(*page).or_insert_with(zeros);
                        let kept = kept as usize;
                        match torn {
                            Some(new) => Arc::make_mut(old)[..kept].copy_from_slice(&new[..kept]),
                            None => Arc::make_mut(old)[..kept].fill(0),
                        }
                    }
                }
                to.len = to.len.max((*end).min(page * PAGE + kept));
            }
            UnsyncedChange::Page { .. } => {}
        }
    }
}

fn zeros() -> Page {
    Arc::new([0; PAGE as usize])
}

/// One step of names: in a directory a name leads to something, or to nothing any more.
#[derive(Clone, Debug)]
struct Step(Vec<(u64, OsString, Option<u64>)>);

/// What a node is.
#[derive(Clone, Debug)]
enum Kind {
    File {
        live: Bytes,
        durable: Bytes,
        waiting: Vec<UnsyncedChange>,
        /// A sync failed, and what waited is seen and not durable.
        has_forgotten: bool,
    },
    Directory {
        live: BTreeMap<OsString, u64>,
        durable: BTreeMap<OsString, u64>,
    },
    /// A socket or a pipe: the type bits of its mode.
    Special(u32),
}

/// What the kernel is told about a node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct About {
    pub(crate) node: u64,
    pub(crate) kind: fuser::FileType,
    pub(crate) mode: u32,
    pub(crate) owner: (u32, u32),
    pub(crate) len: u64,
    pub(crate) pages: u64,
    /// Number of the operation that changed it last.
    pub(crate) changed: u64,
}

#[derive(Clone, Debug)]
struct Node {
    kind: Kind,
    mode: u32,
    owner: (u32, u32),
    changed: u64,
}

/// The file system.
#[derive(Debug)]
pub(crate) struct Image {
    nodes: BTreeMap<u64, Node>,
    names: Vec<Step>,
    next: u64,
    counts: Counts,
    /// The operation at which the power goes.
    cut_at: Option<u64>,
    is_cut: bool,
    /// How many syncs of files with such an ending of their name are to come before one fails.
    failing: Option<(u64, String)>,
    /// Pages that all files may hold together.
    quota: Option<u64>,
}

impl Image {
    pub(crate) fn new() -> Image {
        let root = Node {
            kind: Kind::Directory {
                live: BTreeMap::new(),
                durable: BTreeMap::new(),
            },
            mode: 0o755,
            owner: (0, 0),
            changed: 0,
        };
        Image {
            nodes: BTreeMap::from([(ROOT, root)]),
            names: Vec::new(),
            next: ROOT + 1,
            counts: Counts::default(),
            cut_at: None,
            is_cut: false,
            failing: None,
            quota: None,
        }
    }

    /// The n-th sync from now, counted from 1, of a file whose name ends so fails.
    pub(crate) fn fail_sync(&mut self, n: u64, ending: &str) {
        self.failing = Some((n.max(1), ending.to_owned()));
    }

    /// So many pages more may be written before the quota is exhausted; `None` is no quota.
    pub(crate) fn set_quota(&mut self, more: Option<u64>) {
        let pages = self.pages();
        self.quota = more.map(|more| pages + more);
    }

    /// Whether a write into a file needs pages beyond the quota.
    fn exceeds_quota(&self, node: u64, first: u64, end: u64) -> bool {
        let Some(quota) = self.quota else {
            return false;
        };
        let has = |page: &u64| match self.nodes.get(&node).map(|node| &node.kind) {
            Some(Kind::File { live, .. }) => live.pages.contains_key(page),
            _ => false,
        };
        let new = (first..end).filter(|page| !has(page)).count() as u64;
        new > 0 && self.pages() + new > quota
    }

    /// Whether this sync of a file is to fail.
    fn fails_sync(&mut self, node: u64) -> bool {
        let Some((left, ending)) = &mut self.failing else {
            return false;
        };
        let is_it = |node_and_name: (&OsString, &u64)| {
            let (name, to) = node_and_name;
            *to == node && name.as_encoded_bytes().ends_with(ending.as_bytes())
        };
        let is_named = self.nodes.values().any(|found| match &found.kind {
            Kind::Directory { live, .. } => live.iter().any(is_it),
            _ => false,
        });
        *left -= u64::from(is_named);
        let fails = *left == 0;
        if fails {
            self.failing = None;
        }
        fails
    }

    pub(crate) fn counts(&self) -> Counts {
        self.counts
    }

    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// The power goes at operation `n` from now, counted from 1; 0 is now.
    pub(crate) fn cut_after(&mut self, n: u64) {
        self.cut_at = Some(self.counts.operations + n);
        self.is_cut |= n == 0;
    }

    /// Changes of files and names that wait for a sync.
    pub(crate) fn waiting(&self) -> usize {
        let of_file = |node: &Node| match &node.kind {
            Kind::File { waiting, .. } => waiting.len(),
            _ => 0,
        };
        self.nodes.values().map(of_file).sum::<usize>() + self.names.len()
    }

    /// Operations that only look begin here.
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_cut { Err(Errno::EIO) } else { Ok(()) }
    }

    /// Operations that change something or sync begin here, and are counted.
    pub(crate) fn count(&mut self) -> Result<()> {
        self.counts.operations += 1;
        let at = self.cut_at;
        self.is_cut |= at.is_some_and(|at| self.counts.operations >= at.max(1));
        self.check()
    }

    fn node(&self, node: u64) -> Result<&Node> {
        self.nodes.get(&node).ok_or(Errno::ENOENT)
    }

    fn node_mut(&mut self, node: u64) -> Result<&mut Node> {
        let changed = self.counts.operations;
        let node = self.nodes.get_mut(&node).ok_or(Errno::ENOENT)?;
        node.changed = changed;
        Ok(node)
    }

    fn entries(&self, directory: u64) -> Result<&BTreeMap<OsString, u64>> {
        match &self.node(directory)?.kind {
            Kind::Directory { live, .. } => Ok(live),
            _ => Err(Errno::ENOTDIR),
        }
    }

    pub(crate) fn about(&self, node: u64) -> Result<About> {
        let found = self.node(node)?;
        let (kind, len, pages) = match &found.kind {
            Kind::File { live, .. } => (
                fuser::FileType::RegularFile,
                live.len,
                live.pages.len() as u64,
            ),
            Kind::Directory { .. } => (fuser::FileType::Directory, 0, 0),
            Kind::Special(SOCKET) => (fuser::FileType::Socket, 0, 0),
            Kind::Special(_) => (fuser::FileType::NamedPipe, 0, 0),
        };
        Ok(About {
            node,
            kind,
            mode: found.mode,
            owner: found.owner,
            len,
            pages,
            changed: found.changed,
        })
    }

    pub(crate) fn lookup(&self, directory: u64, name: &OsStr) -> Result<u64> {
        self.entries(directory)?
            .get(name)
            .copied()
            .ok_or(Errno::ENOENT)
    }

    pub(crate) fn list(&self, directory: u64) -> Result<Vec<(OsString, About)>> {
        let entries = self.entries(directory)?.iter();
        entries
            .map(|(name, node)| Ok((name.clone(), self.about(*node)?)))
            .collect()
    }

    /// Pages that hold bytes, of all files.
    pub(crate) fn pages(&self) -> u64 {
        let of_file = |node: &Node| match &node.kind {
            Kind::File { live, .. } => live.pages.len() as u64,
            _ => 0,
        };
        self.nodes.values().map(of_file).sum()
    }

    fn step(&mut self, changes: Vec<(u64, OsString, Option<u64>)>) -> Result<()> {
        for (directory, name, to) in &changes {
            match &mut self.node_mut(*directory)?.kind {
                Kind::Directory { live, .. } => put(live, name, *to),
                _ => return Err(Errno::ENOTDIR),
            }
        }
        self.names.push(Step(changes));
        Ok(())
    }

    /// A new file, directory or special node, by the type bits of its mode.
    pub(crate) fn make(
        &mut self,
        directory: u64,
        name: &OsStr,
        mode: u32,
        owner: (u32, u32),
    ) -> Result<About> {
        if self.entries(directory)?.contains_key(name) {
            return Err(Errno::EEXIST);
        }
        let kind = match mode & TYPE {
            DIRECTORY => Kind::Directory {
                live: BTreeMap::new(),
                durable: BTreeMap::new(),
            },
            FILE => Kind::File {
                live: Bytes::default(),
                durable: Bytes::default(),
                waiting: Vec::new(),
                has_forgotten: false,
            },
            special @ (SOCKET | PIPE) => Kind::Special(special),
            _ => return Err(Errno::EPERM),
        };
        let number = self.next;
        self.next += 1;
        let node = Node {
            kind,
            mode: mode & 0o7777,
            owner,
            changed: self.counts.operations,
        };
        self.nodes.insert(number, node);
        self.step(vec![(directory, name.to_owned(), Some(number))])?;
        self.about(number)
    }

    /// Removes a name; of a directory only if nothing is in it.
    pub(crate) fn remove(
        &mut self,
        directory: u64,
        name: &OsStr,
        wants_directory: bool,
    ) -> Result<()> {
        let node = self.lookup(directory, name)?;
        match (&self.node(node)?.kind, wants_directory) {
            (Kind::Directory { live, .. }, true) if !live.is_empty() => {
                return Err(Errno::ENOTEMPTY);
            }
            (Kind::Directory { .. }, false) => return Err(Errno::EISDIR),
            (Kind::Directory { .. }, true) => {}
            (_, true) => return Err(Errno::ENOTDIR),
            (_, false) => {}
        }
        self.step(vec![(directory, name.to_owned(), None)])
    }

    /// Renames; what had the new name has it no more.
    pub(crate) fn rename(&mut self, from: (u64, &OsStr), to: (u64, &OsStr)) -> Result<()> {
        let node = self.lookup(from.0, from.1)?;
        if let Ok(there) = self.lookup(to.0, to.1)
            && let Kind::Directory { live, .. } = &self.node(there)?.kind
            && !live.is_empty()
        {
            return Err(Errno::ENOTEMPTY);
        }
        if from == to {
            return Ok(());
        }
        self.step(vec![
            (from.0, from.1.to_owned(), None),
            (to.0, to.1.to_owned(), Some(node)),
        ])
    }

    pub(crate) fn set_mode(&mut self, node: u64, mode: u32) -> Result<()> {
        self.node_mut(node)?.mode = mode & 0o7777;
        Ok(())
    }

    pub(crate) fn set_owner(
        &mut self,
        node: u64,
        user: Option<u32>,
        group: Option<u32>,
    ) -> Result<()> {
        let owner = &mut self.node_mut(node)?.owner;
        *owner = (user.unwrap_or(owner.0), group.unwrap_or(owner.1));
        Ok(())
    }

    fn file(&mut self, node: u64) -> Result<(&mut Bytes, &mut Vec<UnsyncedChange>)> {
        match &mut self.node_mut(node)?.kind {
            Kind::File { live, waiting, .. } => Ok((live, waiting)),
            Kind::Directory { .. } => Err(Errno::EISDIR),
            Kind::Special(_) => Err(Errno::EINVAL),
        }
    }

    pub(crate) fn read(&self, node: u64, at: u64, len: u64) -> Result<Vec<u8>> {
        let Kind::File { live, .. } = &self.node(node)?.kind else {
            return Err(Errno::EISDIR);
        };
        let end = at.saturating_add(len).min(live.len);
        let mut bytes = Vec::new();
        let mut at = at;
        while at < end {
            let within = (at % PAGE) as usize;
            let part = (PAGE - at % PAGE).min(end - at) as usize;
            match live.pages.get(&(at / PAGE)) {
                Some(page) => bytes.extend_from_slice(&page[within..within + part]),
                None => bytes.resize(bytes.len() + part, 0),
            }
            at += part as u64;
        }
        Ok(bytes)
    }

    pub(crate) fn write(&mut self, node: u64, at: u64, bytes: &[u8]) -> Result<()> {
        self.counts.writes += 1;
        let end = at.checked_add(bytes.len() as u64).ok_or(Errno::EFBIG)?;
        if self.exceeds_quota(node, at / PAGE, end.div_ceil(PAGE)) {
            return Err(Errno::EDQUOT);
        }
        let (live, waiting) = self.file(node)?;
        let mut rest = bytes;
        let mut at = at;
        while !rest.is_empty() {
            let within = (at % PAGE) as usize;
            let part = (PAGE as usize - within).min(rest.len());
            let page = live.pages.entry(at / PAGE).or_insert_with(zeros);
            Arc::make_mut(page)[within..within + part].copy_from_slice(&rest[..part]);
            waiting.push(UnsyncedChange::Page {
                page: at / PAGE,
                bytes: Some(page.clone()),
                end,
            });
            rest = &rest[part..];
            at += part as u64;
        }
        live.len = live.len.max(end);
        Ok(())
    }

    pub(crate) fn set_len(&mut self, node: u64, len: u64) -> Result<()> {
        let (live, waiting) = self.file(node)?;
        live.set_len(len);
        waiting.push(UnsyncedChange::Length(len));
        Ok(())
    }

    /// Frees a range, which reads as zeros; the length stays.
    pub(crate) fn punch(&mut self, node: u64, at: u64, len: u64) -> Result<()> {
        let (live, waiting) = self.file(node)?;
        let end = at.saturating_add(len);
        let pages: Vec<u64> = live
            .pages
            .range(at / PAGE..end.div_ceil(PAGE))
            .map(|(page, _)| *page)
            .collect();
        for page in pages {
            let start = at.max(page * PAGE) - page * PAGE;
            let stop = end.min((page + 1) * PAGE) - page * PAGE;
            let bytes = if stop - start == PAGE {
                live.pages.remove(&page);
                None
            } else {
                let bytes = live.pages.get_mut(&page).expect("a page of the list");
                Arc::make_mut(bytes)[start as usize..stop as usize].fill(0);
                Some(bytes.clone())
            };
            waiting.push(UnsyncedChange::Page {
                page,
                bytes,
                end: 0,
            });
        }
        Ok(())
    }

    /// The next data or hole from an offset on, as `lseek` finds it.
    pub(crate) fn seek(&self, node: u64, at: u64, wants_data: bool) -> Result<u64> {
        let Kind::File { live, .. } = &self.node(node)?.kind else {
            return Err(Errno::EINVAL);
        };
        if at >= live.len {
            return Err(Errno::ENXIO);
        }
        if wants_data {
            let next = live.pages.range(at / PAGE..).next();
            let next = next.map(|(page, _)| at.max(page * PAGE));
            return next.filter(|at| *at < live.len).ok_or(Errno::ENXIO);
        }
        let mut page = at / PAGE;
        while live.pages.contains_key(&page) {
            page += 1;
        }
        Ok(at.max(page * PAGE).min(live.len))
    }

    /// Makes bytes and length of a file durable.
    pub(crate) fn sync_file(&mut self, node: u64) -> Result<()> {
        self.counts.file_syncs += 1;
        let fails = self.fails_sync(node);
        if let Kind::File {
            durable,
            waiting,
            has_forgotten,
            ..
        } = &mut self.node_mut(node)?.kind
        {
            if fails {
                waiting.clear();
                *has_forgotten = true;
                return Err(Errno::EIO);
            }
            for change in waiting.drain(..) {
                change.apply(durable, PAGE);
            }
        }
        Ok(())
    }

    /// Makes the names in a directory durable.
    pub(crate) fn sync_directory(&mut self, node: u64) -> Result<()> {
        self.counts.directory_syncs += 1;
        self.entries(node)?;
        let (ours, others) = std::mem::take(&mut self.names)
            .into_iter()
            .partition(|step| step.0.iter().any(|(directory, ..)| *directory == node));
        self.names = others;
        for step in ours {
            self.apply(step);
        }
        Ok(())
    }

    fn apply(&mut self, step: Step) {
        for (directory, name, to) in step.0 {
            if let Some(node) = self.nodes.get_mut(&directory)
                && let Kind::Directory { durable, .. } = &mut node.kind
            {
                put(durable, &name, to);
            }
        }
    }

    /// The power is back: what waited is there or gone as `loss` says, and nobody has anything open.
    pub(crate) fn settle(&mut self, loss: Loss) {
        self.is_cut = false;
        self.cut_at = None;
        if loss == Loss::Nothing {
            return;
        }
        for node in self.nodes.values_mut() {
            if let Kind::File {
                live,
                durable,
                waiting,
                has_forgotten,
            } = &mut node.kind
                && std::mem::take(has_forgotten)
            {
                live.clone_from(durable);
                for change in waiting.iter() {
                    change.apply(live, PAGE);
                }
            }
        }
        if loss == Loss::Evicted {
            return;
        }
        let mut random = Random::new(match loss {
            Loss::Random(seed) => seed,
            _ => 0,
        });
        let mut kept = || match loss {
            Loss::Random(_) => match random.below(4) {
                0 => 0,
                1 => random.below(PAGE / SECTOR) * SECTOR,
                _ => PAGE,
            },
            _ => 0,
        };
        for node in self.nodes.values_mut() {
            if let Kind::File {
                live,
                durable,
                waiting,
                ..
            } = &mut node.kind
            {
                for change in waiting.drain(..) {
                    change.apply(durable, kept());
                }
                *live = durable.clone();
            }
        }
        for step in std::mem::take(&mut self.names) {
            if kept() == PAGE {
                self.apply(step);
            }
        }
        for node in self.nodes.values_mut() {
            if let Kind::Directory { live, durable } = &mut node.kind {
                live.clone_from(durable);
            }
        }
        self.forget_unnamed();
    }

    /// Nobody can reach what no durable name leads to.
    fn forget_unnamed(&mut self) {
        let mut reached = BTreeMap::new();
        let mut ahead = vec![ROOT];
        while let Some(number) = ahead.pop() {
            if let Some(node) = self.nodes.remove(&number) {
                if let Kind::Directory { live, .. } = &node.kind {
                    ahead.extend(live.values());
                }
                reached.insert(number, node);
            }
        }
        self.nodes = reached;
    }
}

fn put(names: &mut BTreeMap<OsString, u64>, name: &OsStr, to: Option<u64>) {
    match to {
        Some(node) => drop(names.insert(name.to_owned(), node)),
        None => drop(names.remove(name)),
    }
}

/// Type bits of a mode.
const TYPE: u32 = 0o170_000;
pub(crate) const DIRECTORY: u32 = 0o040_000;
pub(crate) const FILE: u32 = 0o100_000;
const SOCKET: u32 = 0o140_000;
const PIPE: u32 = 0o010_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> &OsStr {
        OsStr::new(text)
    }

    fn file(image: &mut Image, called: &str) -> u64 {
        let made = image.make(ROOT, name(called), FILE | 0o600, (0, 0));
        made.unwrap().node
    }

    #[test]
    fn unsynced_names_and_bytes_are_lost_and_synced_ones_stay() {
        let mut image = Image::new();
        let [kept, nameless, empty] = ["kept", "nameless", "empty"].map(|n| file(&mut image, n));
        for node in [kept, nameless, empty] {
            image.write(node, 5000, b"bytes").unwrap();
        }
        image.sync_file(kept).unwrap();
        image.sync_file(nameless).unwrap();
        image.remove(ROOT, name("nameless"), false).unwrap();
        image.sync_directory(ROOT).unwrap();
        image.write(kept, 5000, b"later").unwrap();
        image.write(kept, 9000, b"later").unwrap();
        image.settle(Loss::Everything);
        assert_eq!(image.lookup(ROOT, name("nameless")), Err(Errno::ENOENT));
        assert_eq!(image.about(kept).unwrap().len, 5005);
        assert_eq!(image.read(kept, 4999, 99).unwrap(), b"\0bytes");
        assert_eq!(image.about(empty).unwrap().len, 0);
        assert_eq!(image.waiting(), 0);
    }

    #[test]
    fn directories_are_as_durable_as_their_own_names() {
        let mut image = Image::new();
        let made = image.make(ROOT, name("d"), DIRECTORY | 0o700, (0, 0));
        let directory = made.unwrap().node;
        image
            .make(directory, name("f"), FILE | 0o600, (0, 0))
            .unwrap();
        image.sync_directory(directory).unwrap();
        image.settle(Loss::Everything);
        assert_eq!(image.lookup(ROOT, name("d")), Err(Errno::ENOENT));
    }

    #[test]
    fn cuts_and_holes_wait_too() {
        let mut image = Image::new();
        let node = file(&mut image, "f");
        image.write(node, 0, &[7; 3 * PAGE as usize]).unwrap();
        image.sync_file(node).unwrap();
        image.sync_directory(ROOT).unwrap();
        image.set_len(node, 100).unwrap();
        image.set_len(node, 3 * PAGE).unwrap();
        assert_eq!(image.read(node, 99, 2).unwrap(), [7, 0]);
        assert_eq!(image.seek(node, PAGE, true), Err(Errno::ENXIO));
        image.settle(Loss::Everything);
        assert_eq!(image.read(node, 99, 2).unwrap(), [7, 7]);
        image.punch(node, 10, 2 * PAGE).unwrap();
        assert_eq!(image.seek(node, 0, false), Ok(PAGE));
        assert_eq!(image.seek(node, PAGE, true), Ok(2 * PAGE));
        image.sync_file(node).unwrap();
        image.settle(Loss::Everything);
        assert_eq!(image.read(node, 9, 2).unwrap(), [7, 0]);
        assert_eq!(image.read(node, 2 * PAGE + 9, 2).unwrap(), [0, 7]);
        assert_eq!(image.about(node).unwrap().len, 3 * PAGE);
    }

    #[test]
    fn renames_are_whole_or_did_not_happen() {
        let mut seen = [false; 2];
        for seed in 0..40 {
            let mut image = Image::new();
            let old = file(&mut image, "f");
            let new = file(&mut image, "f.new");
            image.sync_directory(ROOT).unwrap();
            let from = (ROOT, name("f.new"));
            image.rename(from, (ROOT, name("f"))).unwrap();
            image.settle(Loss::Random(seed));
            let found = image.lookup(ROOT, name("f")).unwrap();
            let left = image.lookup(ROOT, name("f.new"));
            seen[usize::from(found == new)] = true;
            assert_eq!(left.is_ok(), found == old, "{seed}: both or none");
        }
        assert_eq!(seen, [true; 2], "every seed has the same fate");
    }

    #[test]
    fn random_losses_keep_what_was_synced_and_tear_what_was_not() {
        let (mut torn, mut kept, mut gone) = (0, 0, 0);
        for seed in 0..60 {
            let mut image = Image::new();
            let node = file(&mut image, "f");
            image.write(node, 0, &[1; PAGE as usize]).unwrap();
            image.sync_file(node).unwrap();
            image.sync_directory(ROOT).unwrap();
            image.write(node, 0, &[2; PAGE as usize]).unwrap();
            image.settle(Loss::Random(seed));
            let bytes = image.read(node, 0, PAGE).unwrap();
            let new = bytes.iter().take_while(|b| **b == 2).count();
            assert!(bytes[new..].iter().all(|b| *b == 1));
            assert_eq!(new % SECTOR as usize, 0);
            match new as u64 {
                0 => gone += 1,
                PAGE => kept += 1,
                _ => torn += 1,
            }
        }
        assert!(torn > 3 && kept > 3 && gone > 3, "{torn} {kept} {gone}");
    }

    #[test]
    fn failed_sync_forgets_what_waited_and_shows_it_until_it_is_evicted() {
        let mut image = Image::new();
        let (node, other) = (file(&mut image, "f.sub"), file(&mut image, "g"));
        image.sync_directory(ROOT).unwrap();
        image.write(node, 0, &[1; 5000]).unwrap();
        image.sync_file(node).unwrap();
        image.write(node, 0, &[2; 9000]).unwrap();
        image.write(other, 0, &[2; 10]).unwrap();
        image.fail_sync(1, ".sub");
        image.sync_file(other).unwrap();
        assert_eq!(image.sync_file(node), Err(Errno::EIO));
        // The next one finds nothing to do.
        image.sync_file(node).unwrap();
        image.settle(Loss::Nothing);
        assert_eq!(image.read(node, 0, 9999).unwrap(), [2; 9000]);
        image.write(node, 8192, &[3; 10]).unwrap();
        image.settle(Loss::Evicted);
        let mut left = vec![1; 5000];
        left.resize(8192, 0);
        left.extend([3; 10]);
        assert!(image.read(node, 0, left.len() as u64).unwrap() == left);
        image.settle(Loss::Everything);
        assert_eq!(image.read(node, 0, 9999).unwrap(), [1; 5000]);
        assert_eq!(image.read(other, 0, 9999).unwrap(), [2; 10]);
    }

    #[test]
    fn nothing_works_after_the_power_is_gone() {
        let mut image = Image::new();
        let node = file(&mut image, "f");
        image.cut_after(2);
        image.count().unwrap();
        image.check().unwrap();
        assert_eq!(image.count(), Err(Errno::EIO));
        assert_eq!(image.check(), Err(Errno::EIO));
        image.settle(Loss::Nothing);
        image.count().unwrap();
        assert!(image.about(node).is_ok(), "only processes died");
    }
}
