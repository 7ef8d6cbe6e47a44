//! The image behind the kernel's file system calls.
//!
//! Nothing is cached by the kernel: files are opened for direct I/O and attributes are valid for no
//! time, so that every write and every sync arrives here, in order. Locks are the kernel's own affair and
//! die with their processes. Times are numbers of operations: no clock is read.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, Filesystem, FopenFlags, Generation, INodeNo,
    LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory,
    ReplyEmpty, ReplyEntry, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite, Request, TimeOrNow,
    WriteFlags,
};
use parking_lot::Mutex;

use crate::image::{About, DIRECTORY, FILE, Image, PAGE};

/// Pages the file system has room for.
const CAPACITY_PAGES: u64 = (8 << 30) / PAGE;
const NO_TIME: Duration = Duration::ZERO;
const GENERATION: Generation = Generation(0);
const KEEP_SIZE: i32 = 1;
const PUNCH_HOLE: i32 = 2;
const SEEK_DATA: i32 = 3;
const SEEK_HOLE: i32 = 4;

/// The image as others share it. It is whole also after a panic under the lock: every change is one step.
pub(crate) type SharedImage = Arc<Mutex<Image>>;

/// Open directories by number, each with what it had in it when it was opened.
#[derive(Debug, Default)]
struct Listings {
    last: u64,
    open: BTreeMap<u64, Vec<(OsString, About)>>,
}

/// One mount of the image.
#[derive(Debug)]
pub(crate) struct ImageMount {
    image: SharedImage,
    listings: Mutex<Listings>,
}

impl ImageMount {
    pub(crate) fn new(image: SharedImage) -> ImageMount {
        ImageMount {
            image,
            listings: Mutex::default(),
        }
    }

    /// Looks at the image.
    fn look<T>(&self, work: impl FnOnce(&Image) -> Result<T, Errno>) -> Result<T, Errno> {
        let image = self.image.lock();
        image.check()?;
        work(&image)
    }

    /// Changes the image, or syncs it.
    fn change<T>(&self, work: impl FnOnce(&mut Image) -> Result<T, Errno>) -> Result<T, Errno> {
        let mut image = self.image.lock();
        image.count()?;
        work(&mut image)
    }
}

fn attributes(about: &About) -> FileAttr {
    let changed = UNIX_EPOCH + Duration::from_secs(about.changed);
    FileAttr {
        ino: INodeNo(about.node),
        size: about.len,
        blocks: about.pages * (PAGE / 512),
        atime: changed,
        mtime: changed,
        ctime: changed,
        crtime: UNIX_EPOCH,
        kind: about.kind,
        perm: about.mode as u16,
        nlink: 1,
        uid: about.owner.0,
        gid: about.owner.1,
        rdev: 0,
        blksize: PAGE as u32,
        flags: 0,
    }
}

fn entry(found: Result<About, Errno>, reply: ReplyEntry) {
    match found {
        Ok(about) => reply.entry(&NO_TIME, &attributes(&about), GENERATION),
        Err(e) => reply.error(e),
    }
}

fn done(result: Result<(), Errno>, reply: ReplyEmpty) {
    match result {
        Ok(()) => reply.ok(),
        Err(e) => reply.error(e),
    }
}

impl Filesystem for ImageMount {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found = self.look(|image| {
            let node = image.lookup(parent.0, name)?;
            image.about(node)
        });
        entry(found, reply);
    }

    fn getattr(&self, _: &Request, node: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.look(|image| image.about(node.0)) {
            Ok(about) => reply.attr(&NO_TIME, &attributes(&about)),
            Err(e) => reply.error(e),
        }
    }

    fn setattr(
        &self,
        _: &Request,
        node: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let changed = self.change(|image| {
            if let Some(mode) = mode {
                image.set_mode(node.0, mode)?;
            }
            if uid.is_some() || gid.is_some() {
                image.set_owner(node.0, uid, gid)?;
            }
            if let Some(len) = size {
                image.set_len(node.0, len)?;
            }
            image.about(node.0)
        });
        match changed {
            Ok(about) => reply.attr(&NO_TIME, &attributes(&about)),
            Err(e) => reply.error(e),
        }
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        _: u32,
        reply: ReplyEntry,
    ) {
        let owner = (request.uid(), request.gid());
        let made = self.change(|image| image.make(parent.0, name, mode & !umask, owner));
        entry(made, reply);
    }

    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        reply: ReplyEntry,
    ) {
        let owner = (request.uid(), request.gid());
        let mode = DIRECTORY | (mode & !umask & 0o7777);
        let made = self.change(|image| image.make(parent.0, name, mode, owner));
        entry(made, reply);
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        _: i32,
        reply: ReplyCreate,
    ) {
        let owner = (request.uid(), request.gid());
        let mode = FILE | (mode & !umask & 0o7777);
        match self.change(|image| image.make(parent.0, name, mode, owner)) {
            Ok(about) => {
                let direct = FopenFlags::FOPEN_DIRECT_IO;
                reply.created(
                    &NO_TIME,
                    &attributes(&about),
                    GENERATION,
                    FileHandle(0),
                    direct,
                );
            }
            Err(e) => reply.error(e),
        }
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let removed = self.change(|image| image.remove(parent.0, name, false));
        done(removed, reply);
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let removed = self.change(|image| image.remove(parent.0, name, true));
        done(removed, reply);
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let renamed = self.change(|image| {
            if !flags.is_empty() {
                // Neither an exchange nor a refusal to replace is used here.
                return Err(Errno::EINVAL);
            }
            image.rename((parent.0, name), (new_parent.0, new_name))
        });
        done(renamed, reply);
    }

    fn open(&self, _: &Request, node: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        match self.look(|image| image.about(node.0)) {
            Ok(_) => reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO),
            Err(e) => reply.error(e),
        }
    }

    fn read(
        &self,
        _: &Request,
        node: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        match self.look(|image| image.read(node.0, offset, size.into())) {
            Ok(bytes) => reply.data(&bytes),
            Err(e) => reply.error(e),
        }
    }

    fn write(
        &self,
        _: &Request,
        node: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match self.change(|image| image.write(node.0, offset, data)) {
            Ok(()) => reply.written(data.len() as u32),
            Err(e) => reply.error(e),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        // Closing a file promises nothing.
        reply.ok();
    }

    fn fsync(&self, _: &Request, node: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        done(self.change(|image| image.sync_file(node.0)), reply);
    }

    fn opendir(&self, _: &Request, node: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        match self.look(|image| image.list(node.0)) {
            Ok(list) => {
                let mut listings = self.listings.lock();
                listings.last += 1;
                let handle = listings.last;
                listings.open.insert(handle, list);
                reply.opened(FileHandle(handle), FopenFlags::empty());
            }
            Err(e) => reply.error(e),
        }
    }

    fn readdir(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let listings = self.listings.lock();
        let list = listings.open.get(&handle.0).into_iter().flatten();
        for (place, (name, about)) in list.enumerate().skip(offset as usize) {
            let next = place as u64 + 1;
            if reply.add(INodeNo(about.node), next, about.kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn releasedir(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        reply: ReplyEmpty,
    ) {
        self.listings.lock().open.remove(&handle.0);
        reply.ok();
    }

    fn fsyncdir(&self, _: &Request, node: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        done(self.change(|image| image.sync_directory(node.0)), reply);
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        match self.look(|image| Ok(image.pages())) {
            Ok(used) => {
                let free = CAPACITY_PAGES.saturating_sub(used);
                let page = PAGE as u32;
                reply.statfs(
                    CAPACITY_PAGES,
                    free,
                    free,
                    1 << 20,
                    1 << 20,
                    page,
                    255,
                    page,
                );
            }
            Err(e) => reply.error(e),
        }
    }

    fn fallocate(
        &self,
        _: &Request,
        node: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let changed = self.change(|image| match mode {
            KEEP_SIZE => Ok(()),
            0 => {
                let end = offset.checked_add(length).ok_or(Errno::EFBIG)?;
                if end > image.about(node.0)?.len {
                    image.set_len(node.0, end)?;
                }
                Ok(())
            }
            mode if mode == KEEP_SIZE | PUNCH_HOLE => image.punch(node.0, offset, length),
            _ => Err(Errno::EOPNOTSUPP),
        });
        done(changed, reply);
    }

    fn lseek(
        &self,
        _: &Request,
        node: INodeNo,
        _: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        let found = self.look(|image| {
            let at = u64::try_from(offset).map_err(|_| Errno::EINVAL)?;
            match whence {
                SEEK_DATA => image.seek(node.0, at, true),
                SEEK_HOLE => image.seek(node.0, at, false),
                _ => Err(Errno::EINVAL),
            }
        });
        match found {
            Ok(at) => reply.offset(at as i64),
            Err(e) => reply.error(e),
        }
    }
}
