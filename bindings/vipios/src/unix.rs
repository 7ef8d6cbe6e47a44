//! Unix-style calls (1.11 of the specification): descriptors, `-1` and `errno`.
//!
//! A descriptor is the number of a file, so the other calls take it too. A program that has not connected is connected with its
//! first call, as a program with Unix files does not connect.

use std::ffi::c_int;

use border::entry::{self, Failure, Outcome};
use border::ffi::{Address, ConstAddress, Text};
use client::{Client, OpenOptions, Status};

use crate::connection::{client_of_calls, connect_calls};
use crate::files::enter;
use crate::pattern::{Buffer, Pattern};
use crate::pointer::{VIPIOS_SEEK_CUR, VIPIOS_SEEK_END, VIPIOS_SEEK_SET, seek_plain};
use crate::state::{OpenFile, Position, file_of};

/// Most bytes that one call moves, as in Linux.
const MOST_BYTES: usize = 0x7fff_f000;

/// Runs what a call does; -1 and `errno` if it fails.
fn unix(name: &'static str, work: impl FnOnce() -> Outcome<i64>) -> i64 {
    match entry::outcome(name, work) {
        Ok(value) => value,
        Err(status) => {
            // SAFETY: the place of `errno` is that of this thread.
            unsafe { *libc::__errno_location() = status.errno() };
            -1
        }
    }
}

/// The connection of calls that name none; made if there is none.
fn client_here() -> Outcome<(c_int, Client)> {
    if let Ok(found) = client_of_calls() {
        return Ok(found);
    }
    match connect_calls(0) {
        // Another thread was first.
        Err(failure) if failure.status != Status::InUse => Err(failure),
        _ => client_of_calls(),
    }
}

fn options_of(flags: c_int, mode: c_int) -> Outcome<OpenOptions> {
    let options = OpenOptions::new();
    let mut options = match flags & libc::O_ACCMODE {
        libc::O_RDONLY => options.read(),
        libc::O_WRONLY => options.write(),
        libc::O_RDWR => options.read().write(),
        _ => return Err(Failure::argument("flags", "have no way of access")),
    };
    let known = libc::O_ACCMODE
        | libc::O_CREAT
        | libc::O_EXCL
        | libc::O_TRUNC
        | libc::O_APPEND
        | libc::O_CLOEXEC
        | libc::O_SYNC
        | libc::O_NOCTTY
        | libc::O_LARGEFILE;
    if flags & !known != 0 {
        let text = format!("are {flags:#x}, with bits that mean nothing here");
        return Err(Failure::argument("flags", text));
    }
    if flags & libc::O_APPEND != 0 {
        options = options.append();
    }
    if flags & libc::O_CREAT != 0 {
        let bits = u32::try_from(mode).ok().filter(|bits| *bits <= 0o7777);
        let bits = bits.ok_or_else(|| Failure::argument("mode", "is no permission bits"))?;
        options = options.create().mode(bits);
        if flags & libc::O_EXCL != 0 {
            options = options.exclusive();
        }
    }
    Ok(options)
}

/// Opens or creates a file.
#[unsafe(no_mangle)]
extern "C" fn vip_open(path: Text, flags: c_int, mode: c_int) -> c_int {
    let number = unix("vip_open", || {
        let (connection, client) = client_here()?;
        let options = options_of(flags, mode)?;
        let file = client.open(&path.required("path")?, &options)?;
        if flags & libc::O_TRUNC != 0 && !file.is_new() {
            file.resize(0)?;
        }
        let mut opened = OpenFile::new(file, connection);
        opened.appends = flags & libc::O_APPEND != 0;
        Ok(i64::from(enter(opened)?))
    });
    number as c_int
}

/// Closes a file.
#[unsafe(no_mangle)]
extern "C" fn vip_close(fd: c_int) -> c_int {
    unix("vip_close", || crate::files::close(fd).map(|()| 0)) as c_int
}

/// Moves memory: the bytes moved.
fn access(fd: c_int, position: Position, buffer: Buffer) -> Outcome<i64> {
    let opened = file_of(fd)?;
    opened.access(position, &Pattern::WHOLE, buffer)?;
    let moved = opened.last.lock().moved;
    Ok(moved as i64)
}

fn at(offset: i64) -> Outcome<Position> {
    let place = u64::try_from(offset);
    let place =
        place.map_err(|_| Failure::argument("offset", format!("is {offset}, before the start")))?;
    Ok(Position::At(place))
}

/// Reads at the pointer.
#[unsafe(no_mangle)]
extern "C" fn vip_read(fd: c_int, buf: Address, bytes: usize) -> isize {
    unix("vip_read", || {
        let into = Buffer::Into(buf.target("buf", bytes.min(MOST_BYTES))?);
        access(fd, Position::Pointer, into)
    }) as isize
}

/// Writes at the pointer.
#[unsafe(no_mangle)]
extern "C" fn vip_write(fd: c_int, buf: ConstAddress, bytes: usize) -> isize {
    unix("vip_write", || {
        let bytes = bytes.min(MOST_BYTES);
        let opened = file_of(fd)?;
        if !opened.appends {
            let from = Buffer::From(buf.source("buf", bytes)?);
            return access(fd, Position::Pointer, from);
        }
        let mut pointer = opened.pointer.lock();
        let at = opened.file.append(buf.slice("buf", bytes)?)?;
        *pointer = at + bytes as u64;
        Ok(bytes as i64)
    }) as isize
}

/// Reads somewhere else.
#[unsafe(no_mangle)]
extern "C" fn vip_pread(fd: c_int, buf: Address, bytes: usize, offset: i64) -> isize {
    unix("vip_pread", || {
        let into = Buffer::Into(buf.target("buf", bytes.min(MOST_BYTES))?);
        access(fd, at(offset)?, into)
    }) as isize
}

/// Writes somewhere else.
#[unsafe(no_mangle)]
extern "C" fn vip_pwrite(fd: c_int, buf: ConstAddress, bytes: usize, offset: i64) -> isize {
    unix("vip_pwrite", || {
        let from = Buffer::From(buf.source("buf", bytes.min(MOST_BYTES))?);
        access(fd, at(offset)?, from)
    }) as isize
}

/// Moves the pointer: where it is then.
#[unsafe(no_mangle)]
extern "C" fn vip_lseek(fd: c_int, offset: i64, whence: c_int) -> i64 {
    unix("vip_lseek", || {
        let base = match whence {
            libc::SEEK_SET => VIPIOS_SEEK_SET,
            libc::SEEK_CUR => VIPIOS_SEEK_CUR,
            libc::SEEK_END => VIPIOS_SEEK_END,
            other => return Err(Failure::argument("whence", format!("is {other}"))),
        };
        seek_plain(fd, offset, base)?;
        let place = *file_of(fd)?.pointer.lock();
        Ok(place as i64)
    })
}

/// Sets the size of a file.
#[unsafe(no_mangle)]
extern "C" fn vip_ftruncate(fd: c_int, size: i64) -> c_int {
    unix("vip_ftruncate", || {
        crate::files::set_size(fd, size).map(|()| 0)
    }) as c_int
}

/// The size of a file.
#[unsafe(no_mangle)]
extern "C" fn vip_fsize(fd: c_int) -> i64 {
    unix("vip_fsize", || Ok(file_of(fd)?.file.size()? as i64))
}

/// Makes what was written durable.
#[unsafe(no_mangle)]
extern "C" fn vip_fsync(fd: c_int) -> c_int {
    unix("vip_fsync", || {
        file_of(fd)?.file.sync()?;
        Ok(0)
    }) as c_int
}

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident = $method:ident;)*) => {$(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        extern "C" fn $name(path: Text) -> c_int {
            unix(stringify!($name), || {
                let (_, client) = client_here()?;
                client.$method(&path.required("path")?)?;
                Ok(0)
            }) as c_int
        }
    )*};
}

names! {
    /// Removes the name of a file; its bytes go with its last descriptor.
    vip_unlink = unlink;
    /// Removes an empty directory.
    vip_rmdir = rmdir;
}

/// Makes a directory.
#[unsafe(no_mangle)]
extern "C" fn vip_mkdir(path: Text, mode: c_int) -> c_int {
    unix("vip_mkdir", || {
        let (_, client) = client_here()?;
        let bits = u32::try_from(mode).ok().filter(|bits| *bits <= 0o7777);
        client.mkdir(&path.required("path")?, bits)?;
        Ok(0)
    }) as c_int
}

/// Gives a file or directory another name.
#[unsafe(no_mangle)]
extern "C" fn vip_rename(from: Text, to: Text) -> c_int {
    unix("vip_rename", || {
        let (_, client) = client_here()?;
        client.rename(&from.required("from")?, &to.required("to")?)?;
        Ok(0)
    }) as c_int
}
