//! A disk that exists in memory only and can lose power: the twin of [`super::device::Directory`].
//!
//! It keeps two images: the *live* one, which a running process sees, and the *durable* one. Writes go
//! to the live image and wait, page by page, until a sync moves them to the durable one. A
//! [`Twin::restart`] decides the fate of what waits:
//!
//! | loss | what it models |
//! |---|---|
//! | [`Loss::Nothing`] | the process was killed; the page cache survives |
//! | [`Loss::Evicted`] | the process was killed; pages that a failed sync has forgotten left the page cache |
//! | [`Loss::Everything`] | power cut, nothing unsynced had been written |
//! | [`Loss::After`] | power cut, the first n pages had been written, the next one torn |
//! | [`Loss::Random`] | power cut, any subset of pages in any mixture, some torn between sectors |
//!
//! Faults are planned by operation number ([`Twin::plan`]): operation n fails, is short, finds no
//! space, or is the last one before the power goes. Operations are all calls, reads included.
//!
//! After a failed sync the waiting pages are forgotten though readers still see them, which is what
//! Linux does; code that syncs again and believes it has lost data. Being clean they may leave the page cache at any
//! moment, and then the durable bytes are seen again.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::sync::Arc;

pub use random::Random;

use super::device::{Disk, DiskFile, Space};
use parking_lot::{Mutex, MutexGuard};

const PAGE: u64 = 4096;
const SECTOR: usize = 512;
const QUARANTINE: &str = "quarantine/";

/// What happens at a planned operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It fails with an I/O error, once.
    Error,
    /// It and all that follow fail with an I/O error.
    Broken,
    /// A write or read moves half of what it was asked to; other operations are not affected.
    Short,
    /// A write, a creation or a reservation finds no space, once; others are not affected.
    NoSpace,
    /// The power goes: a write leaves a part of its pages waiting, everything after fails.
    PowerCut,
}

/// What of the unsynced pages is lost in a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Nothing; only processes died.
    Nothing,
    /// Pages that a failed sync has forgotten and nobody has written again; only processes died.
    Evicted,
    /// All of them, unsynced names too.
    Everything,
    /// All but the first n pages; the next one is torn. Names survive.
    After(usize),
    /// A subset drawn from this seed; some are torn.
    Random(u64),
}

/// The disk. Clones share it.
#[derive(Clone, Default)]
pub struct Twin {
    world: Arc<Mutex<World>>,
}

#[derive(Clone, Default)]
struct World {
    name: Option<String>,
    live_names: BTreeMap<String, u64>,
    durable_names: BTreeMap<String, u64>,
    files: BTreeMap<u64, Image>,
    waiting: Vec<UnsyncedPage>,
    /// Pages that a failed sync has forgotten.
    forgotten: u64,
    /// Those of them that were not written again, by inode and page.
    evictable: BTreeSet<(u64, u64)>,
    /// The next sync of a file fails.
    fails_next_sync: bool,
    next_inode: u64,
    /// Grows with every restart; handles of earlier lives are dead.
    life: u64,
    operations: u64,
    plan: Option<(u64, Fault)>,
    broken: bool,
    capacity_bytes: Option<u64>,
    locked: bool,
    /// Told before each operation.
    watcher: Option<Watcher>,
}

type Watcher = Arc<dyn Fn(&Twin) + Send + Sync>;

#[derive(Clone, Default)]
struct Image {
    live: Pages,
    durable: Pages,
}

type Pages = BTreeMap<u64, Box<[u8; PAGE as usize]>>;

/// One unsynced page: the bytes it would have.
#[derive(Clone)]
struct UnsyncedPage {
    inode: u64,
    page: u64,
    /// `None` is a hole.
    bytes: Option<Box<[u8; PAGE as usize]>>,
}

impl fmt::Debug for Twin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let world = self.lock();
        f.debug_struct("Twin")
            .field("files", &world.live_names.len())
            .field("waiting_pages", &world.waiting.len())
            .finish()
    }
}

impl Twin {
    /// An empty disk without limit.
    pub fn new() -> Self {
        Twin::default()
    }

    /// A twin that is called so in messages.
    pub fn named(name: &str) -> Self {
        let twin = Twin::new();
        twin.lock().name = Some(name.to_owned());
        twin
    }

    /// An equal disk that goes its own way from here: to try several fates of one moment.
    pub fn fork(&self) -> Twin {
        let mut world = self.lock().clone();
        world.watcher = None;
        Twin {
            world: Arc::new(Mutex::new(world)),
        }
    }

    /// Calls a test before each operation, with a disk that is as this one is at that moment.
    pub fn watch(&self, watcher: impl Fn(&Twin) + Send + Sync + 'static) {
        self.lock().watcher = Some(Arc::new(watcher));
    }

    /// Gives it a size, in bytes of pages that hold data.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.lock().capacity_bytes = bytes;
    }

    /// Operation number `n` from now on, counted from 1, meets `fault`.
    pub fn plan(&self, n: u64, fault: Fault) {
        let mut world = self.lock();
        world.plan = Some((world.operations + n, fault));
    }

    /// The next sync of a file fails with an I/O error, once.
    pub fn fail_next_sync(&self) {
        self.lock().fails_next_sync = true;
    }

    /// Forgets a plan and mends a broken disk.
    pub fn mend(&self) {
        let mut world = self.lock();
        world.plan = None;
        world.broken = false;
    }

    /// Operations so far.
    pub fn operations(&self) -> u64 {
        self.lock().operations
    }

    /// Pages that wait for a sync.
    pub fn waiting(&self) -> usize {
        self.lock().waiting.len()
    }

    /// Pages that failed syncs have forgotten so far: readers see them, and no later sync makes them durable unless
    /// they are written again.
    pub fn forgotten(&self) -> u64 {
        self.lock().forgotten
    }

    /// The system writes what waits by itself, as it does after some seconds.
    pub fn sync_all(&self) {
        let mut world = self.lock();
        for page in std::mem::take(&mut world.waiting) {
            world.settle(&page, PAGE as usize);
        }
        world.durable_names = world.live_names.clone();
    }

    /// All processes are dead and the disk is back, having lost what `loss` says.
    pub fn restart(&self, loss: Loss) {
        let mut world = self.lock();
        world.life += 1;
        world.locked = false;
        world.plan = None;
        world.broken = false;
        if loss == Loss::Nothing {
            return;
        }
        for (inode, page) in std::mem::take(&mut world.evictable) {
            world.forget_page(inode, page);
        }
        if loss == Loss::Evicted {
            return;
        }
        let waiting = std::mem::take(&mut world.waiting);
        let mut random = Random::new(if let Loss::Random(seed) = loss {
            seed
        } else {
            0
        });
        for (n, page) in waiting.into_iter().enumerate() {
            let kept_bytes = match loss {
                Loss::After(kept) if n < kept => PAGE as usize,
                Loss::After(kept) if n == kept => random.index(8) * SECTOR,
                Loss::Random(_) => match random.index(4) {
                    0 => 0,
                    1 => random.index(8) * SECTOR,
                    _ => PAGE as usize,
                },
                _ => 0,
            };
            world.settle(&page, kept_bytes);
        }
        let live = std::mem::take(&mut world.live_names);
        let survives = |random: &mut Random| match loss {
            Loss::After(_) => true,
            Loss::Random(_) => random.index(2) == 0,
            _ => false,
        };
        for (name, inode) in &live {
            if world.durable_names.get(name) != Some(inode) && survives(&mut random) {
                world.durable_names.insert(name.clone(), *inode);
            }
        }
        let gone: Vec<String> = world
            .durable_names
            .keys()
            .filter(|name| !live.contains_key(*name))
            .cloned()
            .collect();
        for name in gone {
            if survives(&mut random) {
                world.durable_names.remove(&name);
            }
        }
        world.live_names = world.durable_names.clone();
        for image in world.files.values_mut() {
            image.live = image.durable.clone();
        }
    }

    /// Flips one bit of a file, in both images: what a decaying medium does.
    ///
    /// # Panics
    /// If there is no such file, or the byte is in a hole.
    pub fn flip_bit(&self, name: &str, offset: u64, bit: u8) {
        let mut world = self.lock();
        let inode = world.live_names[name];
        let image = world.files.get_mut(&inode).expect("a file of that name");
        for pages in [&mut image.live, &mut image.durable] {
            if let Some(page) = pages.get_mut(&(offset / PAGE)) {
                page[(offset % PAGE) as usize] ^= 1 << bit;
            }
        }
        assert!(image.live.contains_key(&(offset / PAGE)), "a hole");
    }

    /// The live bytes of a file, up to its last page with data.
    pub fn bytes(&self, name: &str) -> Option<Vec<u8>> {
        let world = self.lock();
        let image = &world.files[world.live_names.get(name)?];
        let pages = image.live.last_key_value().map_or(0, |(page, _)| page + 1);
        let mut bytes = vec![0; (pages * PAGE) as usize];
        for (page, data) in &image.live {
            bytes[(page * PAGE) as usize..][..PAGE as usize].copy_from_slice(&data[..]);
        }
        Some(bytes)
    }

    /// Puts a file there, durably, as if it had always been there.
    pub fn put(&self, name: &str, bytes: &[u8]) {
        let mut world = self.lock();
        let inode = world.next_inode;
        world.next_inode += 1;
        let mut image = Image::default();
        for (page, part) in bytes.chunks(PAGE as usize).enumerate() {
            if part.iter().any(|&b| b != 0) {
                let mut data = Box::new([0; PAGE as usize]);
                data[..part.len()].copy_from_slice(part);
                image.live.insert(page as u64, data);
            }
        }
        image.durable = image.live.clone();
        world.files.insert(inode, image);
        world.live_names.insert(name.to_owned(), inode);
        world.durable_names.insert(name.to_owned(), inode);
    }

    fn lock(&self) -> MutexGuard<'_, World> {
        self.world.lock()
    }
}

/// What an operation is to do.
enum Turn {
    Go,
    Half,
    Last,
}

impl World {
    /// Counts an operation and applies the plan.
    fn turn(&mut self, can_lack_space: bool) -> io::Result<Turn> {
        self.operations += 1;
        if let Some(watcher) = &self.watcher {
            let mut moment = self.clone();
            moment.watcher = None;
            let world = Arc::new(Mutex::new(moment));
            watcher(&Twin { world });
        }
        if self.broken {
            return Err(io::Error::other("the disk is broken"));
        }
        let Some((_, fault)) = self.plan.take_if(|(n, _)| *n == self.operations) else {
            return Ok(Turn::Go);
        };
        match fault {
            Fault::Error => Err(io::Error::other("planned error")),
            Fault::Broken => {
                self.broken = true;
                Err(io::Error::other("the disk broke"))
            }
            Fault::Short => Ok(Turn::Half),
            Fault::NoSpace if can_lack_space => Err(io::ErrorKind::StorageFull.into()),
            Fault::NoSpace => Ok(Turn::Go),
            Fault::PowerCut => {
                self.broken = true;
                Ok(Turn::Last)
            }
        }
    }

    fn used_bytes(&self) -> u64 {
        let named = self.live_names.values();
        named.map(|i| self.files[i].live.len() as u64).sum::<u64>() * PAGE
    }

    fn write(&mut self, inode: u64, offset: u64, source: &[u8]) -> io::Result<usize> {
        let mut done = 0;
        while done < source.len() {
            let at = offset + done as u64;
            let within = (at % PAGE) as usize;
            let len = (PAGE as usize - within).min(source.len() - done);
            let page = at / PAGE;
            if !self.files[&inode].live.contains_key(&page)
                && self
                    .capacity_bytes
                    .is_some_and(|c| self.used_bytes() + PAGE > c)
            {
                if done == 0 {
                    return Err(io::ErrorKind::StorageFull.into());
                }
                return Ok(done);
            }
            let image = self.files.get_mut(&inode).expect("an open file");
            let data = image
                .live
                .entry(page)
                .or_insert_with(|| Box::new([0; PAGE as usize]));
            data[within..within + len].copy_from_slice(&source[done..done + len]);
            let bytes = Some(data.clone());
            self.evictable.remove(&(inode, page));
            self.waiting.push(UnsyncedPage { inode, page, bytes });
            done += len;
        }
        Ok(done)
    }

    fn punch(&mut self, inode: u64, offset: u64, len: u64) {
        assert!(
            offset.is_multiple_of(PAGE) && len.is_multiple_of(PAGE),
            "whole pages only"
        );
        let pages = offset / PAGE..(offset + len) / PAGE;
        let image = self.files.get_mut(&inode).expect("an open file");
        let found: Vec<u64> = image.live.range(pages).map(|(page, _)| *page).collect();
        for page in found {
            image.live.remove(&page);
            self.evictable.remove(&(inode, page));
            self.waiting.push(UnsyncedPage {
                inode,
                page,
                bytes: None,
            });
        }
    }

    /// Lets readers see the durable bytes of a page.
    fn forget_page(&mut self, inode: u64, page: u64) {
        let Some(image) = self.files.get_mut(&inode) else {
            return;
        };
        match image.durable.get(&page) {
            Some(bytes) => image.live.insert(page, bytes.clone()),
            None => image.live.remove(&page),
        };
    }

    /// Lets the first bytes of a waiting page reach the durable image.
    fn settle(&mut self, waiting: &UnsyncedPage, kept_bytes: usize) {
        let Some(image) = self.files.get_mut(&waiting.inode) else {
            return;
        };
        if kept_bytes == 0 {
            return;
        }
        match &waiting.bytes {
            Some(bytes) => {
                let page = image
                    .durable
                    .entry(waiting.page)
                    .or_insert_with(|| Box::new([0; PAGE as usize]));
                page[..kept_bytes].copy_from_slice(&bytes[..kept_bytes]);
            }
            None => {
                image.durable.remove(&waiting.page);
            }
        }
    }
}

impl Disk for Twin {
    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let mut world = self.lock();
        if let Turn::Last = world.turn(true)? {
            return Err(io::Error::other("power cut"));
        }
        if world.live_names.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let inode = world.next_inode;
        world.next_inode += 1;
        world.files.insert(inode, Image::default());
        world.live_names.insert(name.to_owned(), inode);
        let life = world.life;
        drop(world);
        Ok(Box::new(TwinFile {
            twin: self.clone(),
            inode,
            life,
        }))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let mut world = self.lock();
        world.turn(false)?;
        let inode = *world.live_names.get(name).ok_or(io::ErrorKind::NotFound)?;
        let life = world.life;
        drop(world);
        Ok(Box::new(TwinFile {
            twin: self.clone(),
            inode,
            life,
        }))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut world = self.lock();
        world.turn(false)?;
        let removed = world.live_names.remove(name);
        removed.map(|_| ()).ok_or(io::ErrorKind::NotFound.into())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut world = self.lock();
        if let Turn::Last = world.turn(false)? {
            return Err(io::Error::other("power cut"));
        }
        let inode = world.live_names.remove(from);
        let inode = inode.ok_or(io::ErrorKind::NotFound)?;
        world.live_names.insert(to.to_owned(), inode);
        Ok(())
    }

    fn quarantine(&self, name: &str) -> io::Result<String> {
        let aside = format!("{QUARANTINE}{name}");
        self.rename(name, &aside)?;
        self.sync_names()?;
        Ok(aside)
    }

    fn quarantined(&self) -> io::Result<Vec<String>> {
        let world = self.lock();
        let names = world.live_names.keys();
        let aside = names.filter(|n| n.starts_with(QUARANTINE));
        Ok(aside.cloned().collect())
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let mut world = self.lock();
        world.turn(false)?;
        let names = world.live_names.keys();
        let own = names.filter(|n| !n.starts_with(QUARANTINE));
        Ok(own.cloned().collect())
    }

    fn sync_names(&self) -> io::Result<()> {
        let mut world = self.lock();
        if let Turn::Last = world.turn(false)? {
            return Err(io::Error::other("power cut"));
        }
        world.durable_names = world.live_names.clone();
        Ok(())
    }

    fn space(&self) -> io::Result<Space> {
        let mut world = self.lock();
        world.turn(false)?;
        let total_bytes = world.capacity_bytes.unwrap_or(1 << 40);
        Ok(Space {
            free_bytes: total_bytes.saturating_sub(world.used_bytes()),
            total_bytes,
        })
    }

    fn lock(&self) -> io::Result<Box<dyn fmt::Debug + Send + Sync>> {
        let mut world = Twin::lock(self);
        if std::mem::replace(&mut world.locked, true) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let life = world.life;
        drop(world);
        Ok(Box::new(TwinLock {
            twin: self.clone(),
            life,
        }))
    }

    fn label(&self) -> String {
        let world = Twin::lock(self);
        world.name.clone().unwrap_or_else(|| "twin".to_owned())
    }
}

#[derive(Debug)]
struct TwinLock {
    twin: Twin,
    life: u64,
}

impl Drop for TwinLock {
    fn drop(&mut self) {
        let mut world = self.twin.lock();
        if world.life == self.life {
            world.locked = false;
        }
    }
}

#[derive(Debug)]
struct TwinFile {
    twin: Twin,
    inode: u64,
    life: u64,
}

impl TwinFile {
    /// The world, and the turn this operation takes in it.
    fn turn(&self, can_lack_space: bool) -> io::Result<(MutexGuard<'_, World>, Turn)> {
        let mut world = self.twin.lock();
        if world.life != self.life {
            return Err(io::Error::other("this process is dead"));
        }
        let turn = world.turn(can_lack_space)?;
        Ok((world, turn))
    }
}

impl DiskFile for TwinFile {
    fn read_at(&self, offset: u64, target: &mut [u8]) -> io::Result<usize> {
        let (world, turn) = self.turn(false)?;
        let live = &world.files[&self.inode].live;
        let end = live
            .last_key_value()
            .map_or(0, |(page, _)| (page + 1) * PAGE);
        let mut len = target.len().min(end.saturating_sub(offset) as usize);
        if let (Turn::Half, true) = (turn, len > 1) {
            len /= 2;
        }
        let mut done = 0;
        while done < len {
            let at = offset + done as u64;
            let within = (at % PAGE) as usize;
            let part = (PAGE as usize - within).min(len - done);
            match live.get(&(at / PAGE)) {
                Some(page) => {
                    target[done..done + part].copy_from_slice(&page[within..within + part])
                }
                None => target[done..done + part].fill(0),
            }
            done += part;
        }
        Ok(len)
    }

    fn write_at(&self, offset: u64, source: &[u8]) -> io::Result<usize> {
        let (mut world, turn) = self.turn(true)?;
        match turn {
            Turn::Go => world.write(self.inode, offset, source),
            Turn::Half => {
                let half = source.len().div_ceil(2);
                world.write(self.inode, offset, &source[..half])
            }
            Turn::Last => {
                // The page cache takes whole pages; a process that dies leaves a prefix of them.
                let pages = source.len() / PAGE as usize / 2;
                world.write(self.inode, offset, &source[..pages * PAGE as usize])?;
                Err(io::Error::other("power cut"))
            }
        }
    }

    fn sync(&self) -> io::Result<()> {
        let inode = self.inode;
        let mut world = self.twin.lock();
        if world.life != self.life {
            return Err(io::Error::other("this process is dead"));
        }
        let mut turn = world.turn(false);
        if turn.is_ok() && std::mem::take(&mut world.fails_next_sync) {
            turn = Err(io::Error::other("planned error"));
        }
        match turn {
            Ok(Turn::Last) => Err(io::Error::other("power cut")),
            Ok(_) => {
                let all = std::mem::take(&mut world.waiting);
                let (ours, others): (Vec<_>, Vec<_>) =
                    all.into_iter().partition(|w| w.inode == inode);
                world.waiting = others;
                for page in &ours {
                    world.settle(page, PAGE as usize);
                }
                Ok(())
            }
            Err(e) => {
                if !world.broken {
                    let all = std::mem::take(&mut world.waiting);
                    let (ours, others): (Vec<_>, Vec<_>) =
                        all.into_iter().partition(|w| w.inode == inode);
                    world.waiting = others;
                    world.forgotten += ours.len() as u64;
                    let pages = ours.iter().map(|w| (inode, w.page));
                    world.evictable.extend(pages);
                }
                Err(e)
            }
        }
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        let (mut world, turn) = self.turn(false)?;
        if let Turn::Last = turn {
            return Err(io::Error::other("power cut"));
        }
        world.punch(self.inode, offset, len);
        Ok(())
    }

    fn reserve(&self, _offset: u64, len: u64) -> io::Result<()> {
        let (world, _) = self.turn(true)?;
        let used = world.used_bytes();
        if world.capacity_bytes.is_some_and(|c| used + len > c) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<u64>> {
        let (world, _) = self.turn(false)?;
        let live = &world.files[&self.inode].live;
        let next = live.range(offset / PAGE..).next();
        Ok(next.map(|(page, _)| (page * PAGE).max(offset)))
    }

    fn allocated(&self) -> io::Result<u64> {
        let (world, _) = self.turn(false)?;
        Ok(world.files[&self.inode].live.len() as u64 * PAGE)
    }
}
