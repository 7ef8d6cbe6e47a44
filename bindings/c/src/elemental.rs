//! Elemental functions of C: called once for each active VP, which they may read, write and seek, also as a real `FILE`.
//!
//! ```text
//!  pario_stream_elemental -> function(vp) -> pario_vp_write ...         the VP of this thread that has this number
//!                                         -> pario_vp_file -> fprintf -> stdio's buffer -> the same VP
//! ```
//!
//! A `pario_vp *` is a number, as handles are: it is looked up among the VPs whose functions run in this thread. A file of a VP is
//! a stream of stdio (`fopencookie`), so that everything that takes a `FILE *` works on it; what is in its buffer goes to the VP
//! before any other call for the VP, and when the function returns.
//!
//! Invariants
//! - Nothing is exchanged, and no other VP is reached.
//! - A VP is known only while its function runs, and its file is closed when it returns.

use std::cell::{Cell, RefCell};
use std::ffi::{c_char, c_int, c_void};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

use client::Status;
use libc::{FILE, off64_t, size_t, ssize_t};
use streams::{Access, VpStream};

use crate::access::target_of;
use crate::entry::{Failure, Outcome, answer};
use crate::ffi::{Address, ConstAddress, List, Out};
use crate::streams::{OpenStream, context_of, with};
use crate::structs::*;
use crate::table::Handle;

/// What a program has of a VP: a number.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VpToken(usize);

/// A VP whose function runs in this thread.
#[derive(Clone, Copy)]
struct Frame {
    token: VpToken,
    vp: *mut VpStream<'static>,
    /// Null unless the program asked for it, or has closed it.
    file: *mut FILE,
    access: Access,
}

thread_local! {
    static FRAMES: RefCell<Vec<Frame>> = const { RefCell::new(Vec::new()) };
    /// The next number of a VP.
    static NEXT: Cell<usize> = const { Cell::new(1) };
}

/// The frame of a VP.
fn find(token: VpToken) -> Option<Frame> {
    FRAMES.with_borrow(|frames| {
        let mut latest = frames.iter().rev();
        latest.find(|frame| frame.token == token).copied()
    })
}

fn set_file(token: VpToken, file: *mut FILE) {
    FRAMES.with_borrow_mut(|frames| {
        if let Some(frame) = frames.iter_mut().find(|frame| frame.token == token) {
            frame.file = file;
        }
    });
}

fn unknown() -> Failure {
    let text = "the VP is not one whose function runs in this thread";
    Failure::new(Status::BadHandle, text)
}

/// Does something with the stream of a VP. Nothing of the program runs meanwhile.
fn on_stream<R>(frame: Frame, work: impl FnOnce(&mut VpStream<'_>) -> R) -> R {
    // SAFETY: the frame is on the stack of this thread, so the stream it points to is lent to the function that runs; nothing that
    // uses it calls the program, so it is used once at a time.
    let vp = unsafe { &mut *frame.vp };
    work(vp)
}

/// Hands what is in the buffer of a VP's file to the VP, or goes back to where the program has read to.
fn settle(frame: Frame) -> Outcome {
    // SAFETY: a file that is noted is open.
    match frame.file.is_null() || unsafe { libc::fflush(frame.file) } == 0 {
        true => Ok(()),
        false => Err(failed(&io::Error::last_os_error())),
    }
}

/// Does something with a VP.
fn with_vp<R>(token: VpToken, work: impl FnOnce(&mut VpStream<'_>) -> io::Result<R>) -> Outcome<R> {
    let frame = find(token).ok_or_else(unknown)?;
    settle(frame)?;
    on_stream(frame, work).map_err(|error| failed(&error))
}

/// What an error of a stream is to the program.
fn failed(error: &io::Error) -> Failure {
    let inner = error.get_ref();
    match inner.and_then(|inner| inner.downcast_ref::<client::Error>()) {
        Some(error) => error.clone().into(),
        None => Failure::new(Status::Io, error.to_string()),
    }
}

/// Runs the function of the program for one VP.
fn call(
    vp: &mut VpStream<'_>,
    access: Access,
    function: extern "C" fn(VpToken, *mut c_void) -> c_int,
    user: Address,
) -> Outcome {
    let number = vp.number();
    let token = NEXT.with(|next| {
        let token = next.get();
        next.set(token.wrapping_add(2));
        VpToken(token)
    });
    let frame = Frame {
        token,
        vp: std::ptr::from_mut(vp).cast(),
        file: std::ptr::null_mut(),
        access,
    };
    FRAMES.with_borrow_mut(|frames| frames.push(frame));
    let code = function(token, user.pointer());
    let file = find(token).map_or(std::ptr::null_mut(), |frame| frame.file);
    let mut closed = Ok(());
    if !file.is_null() {
        // SAFETY: the file is open, and nothing uses it any more. A flush goes back to where the program has read to.
        let done = unsafe { libc::fflush(file) | libc::fclose(file) };
        if done != 0 {
            closed = Err(failed(&io::Error::last_os_error()));
        }
    }
    FRAMES.with_borrow_mut(|frames| frames.retain(|frame| frame.token != token));
    match code {
        0 => closed,
        code => {
            let text = format!("the function answered {code} for VP {number}");
            Err(Failure::argument("function", text))
        }
    }
}

/// Calls a function for every active VP.
#[unsafe(no_mangle)]
extern "C" fn pario_stream_elemental(
    stream: Handle<OpenStream>,
    active: List<u8>,
    function: ElementalCallback,
    user: Address,
) -> c_int {
    answer("pario_stream_elemental", || {
        let function = function.ok_or_else(|| Failure::argument("function", "is a null pointer"));
        with(stream, |stream, opened| {
            let function = function?;
            let context = context_of(active, opened.emulation.count())?;
            let mut failure = None;
            let done = stream.elemental(&context, |vp| {
                call(vp, opened.access, function, user).map_err(|why| {
                    failure = Some(why);
                    io::Error::other("the function failed")
                })
            });
            match (failure, done) {
                (Some(why), _) => Err(why),
                (None, done) => done.map_err(|error| failed(&error)),
            }
        })
    })
}

/// The number of a VP, and its place at this member.
#[unsafe(no_mangle)]
extern "C" fn pario_vp_about(vp: VpToken, number: Out<u64>, local: Out<usize>) -> c_int {
    answer("pario_vp_about", || {
        let frame = find(vp).ok_or_else(unknown)?;
        on_stream(frame, |stream| {
            number.set(stream.number());
            local.set(stream.local());
        });
        Ok(())
    })
}

/// Writes bytes of a VP.
#[unsafe(no_mangle)]
extern "C" fn pario_vp_write(vp: VpToken, memory: ConstAddress, bytes: usize) -> c_int {
    answer("pario_vp_write", || {
        let memory = memory.slice("memory", bytes)?;
        with_vp(vp, |stream| stream.write_all(memory))
    })
}

/// Reads up to so many bytes of a VP.
#[unsafe(no_mangle)]
extern "C" fn pario_vp_read(vp: VpToken, memory: Address, bytes: usize, moved: Out<u64>) -> c_int {
    answer("pario_vp_read", || {
        moved.set(0);
        let memory = memory.slice("memory", bytes)?;
        let read = with_vp(vp, |stream| stream.read(memory))?;
        moved.set(read as u64);
        Ok(())
    })
}

/// Moves a VP; where it is then.
#[unsafe(no_mangle)]
extern "C" fn pario_vp_seek(vp: VpToken, offset: i64, whence: c_int, place: Out<u64>) -> c_int {
    answer("pario_vp_seek", || {
        let target = target_of(offset, whence)?;
        place.set(with_vp(vp, |stream| stream.seek(target))?);
        Ok(())
    })
}

/// Whether the last read of a VP came to the end.
#[unsafe(no_mangle)]
extern "C" fn pario_vp_eof(vp: VpToken, at_end: Out<c_int>) -> c_int {
    answer("pario_vp_eof", || {
        let found = with_vp(vp, |stream| Ok(stream.is_at_end()))?;
        at_end.required("at_end")?.set(c_int::from(found));
        Ok(())
    })
}

/// Reads a line of a VP into a text of at most `room` bytes, its zero among them; an empty one is the end.
#[unsafe(no_mangle)]
extern "C" fn pario_vp_gets(vp: VpToken, line: Address, room: usize) -> c_int {
    answer("pario_vp_gets", || {
        if room < 2 {
            let text = "leaves no room for a line; give 2 bytes or more";
            return Err(Failure::argument("room", text));
        }
        let line = line.slice("line", room)?;
        line[0] = 0;
        let found = with_vp(vp, |stream| stream.gets(room - 1))?.unwrap_or_default();
        line[..found.len()].copy_from_slice(&found);
        line[found.len()] = 0;
        Ok(())
    })
}

/// The four functions of a file of `fopencookie`.
#[repr(C)]
struct CookieFunctions {
    read: extern "C" fn(*mut c_void, *mut c_char, size_t) -> ssize_t,
    write: extern "C" fn(*mut c_void, *const c_char, size_t) -> ssize_t,
    seek: extern "C" fn(*mut c_void, *mut off64_t, c_int) -> c_int,
    close: extern "C" fn(*mut c_void) -> c_int,
}

unsafe extern "C" {
    fn fopencookie(
        cookie: *mut c_void,
        mode: *const c_char,
        functions: CookieFunctions,
    ) -> *mut FILE;
}

/// Does something for stdio; `errno` says what failed.
fn for_stdio<R>(
    cookie: *mut c_void,
    work: impl FnOnce(&mut VpStream<'_>) -> io::Result<R>,
) -> Option<R> {
    let done = match find(VpToken(cookie as usize)) {
        // No panic reaches stdio.
        Some(frame) => catch_unwind(AssertUnwindSafe(|| on_stream(frame, work)))
            .unwrap_or_else(|_| Err(io::Error::from_raw_os_error(libc::EIO))),
        None => Err(io::Error::from_raw_os_error(libc::EBADF)),
    };
    done.map_err(|error| {
        let failure = failed(&error);
        let errno = error
            .raw_os_error()
            .unwrap_or_else(|| failure.status.errno());
        // SAFETY: `errno` of this thread is always there.
        unsafe { *libc::__errno_location() = errno }
    })
    .ok()
}

extern "C" fn read_cookie(cookie: *mut c_void, to: *mut c_char, bytes: size_t) -> ssize_t {
    if bytes == 0 {
        return 0;
    }
    // SAFETY: stdio gives so many bytes to fill.
    let to = unsafe { std::slice::from_raw_parts_mut(to.cast::<u8>(), bytes) };
    for_stdio(cookie, |stream| stream.read(to)).map_or(-1, |read| read as ssize_t)
}

extern "C" fn write_cookie(cookie: *mut c_void, from: *const c_char, bytes: size_t) -> ssize_t {
    if bytes == 0 {
        return 0;
    }
    // SAFETY: stdio gives so many bytes to write.
    let from = unsafe { std::slice::from_raw_parts(from.cast::<u8>(), bytes) };
    // For stdio 0 is the failure of a write.
    for_stdio(cookie, |stream| stream.write_all(from)).map_or(0, |()| bytes as ssize_t)
}

extern "C" fn seek_cookie(cookie: *mut c_void, place: *mut off64_t, whence: c_int) -> c_int {
    // SAFETY: stdio gives a place for the offset.
    let offset = unsafe { *place };
    let target = match whence {
        libc::SEEK_SET => u64::try_from(offset).ok().map(SeekFrom::Start),
        libc::SEEK_CUR => Some(SeekFrom::Current(offset)),
        libc::SEEK_END => Some(SeekFrom::End(offset)),
        _ => None,
    };
    let to = for_stdio(cookie, |stream| match target {
        Some(target) => stream.seek(target),
        None => Err(io::Error::from_raw_os_error(libc::EINVAL)),
    });
    let Some(to) = to else { return -1 };
    // SAFETY: as above.
    unsafe { *place = to as off64_t }
    0
}

/// The program closes a file itself, or its VP is done.
extern "C" fn close_cookie(cookie: *mut c_void) -> c_int {
    set_file(VpToken(cookie as usize), std::ptr::null_mut());
    0
}

/// A real `FILE` of a VP, until its function returns.
#[unsafe(no_mangle)]
extern "C" fn pario_vp_file(vp: VpToken, file: Out<*mut FILE>) -> c_int {
    answer("pario_vp_file", || {
        file.required("file")?.set(std::ptr::null_mut());
        let frame = find(vp).ok_or_else(unknown)?;
        if !frame.file.is_null() {
            file.set(frame.file);
            return Ok(());
        }
        let mode = match frame.access {
            Access::Read => c"r",
            Access::Update | Access::WriteUpdate => c"r+",
            Access::Write => c"w",
            Access::Append => c"a",
            Access::AppendUpdate => c"a+",
        };
        let functions = CookieFunctions {
            read: read_cookie,
            write: write_cookie,
            seek: seek_cookie,
            close: close_cookie,
        };
        // SAFETY: the mode ends with a zero, and the functions take any cookie.
        let made = unsafe { fopencookie(vp.0 as *mut c_void, mode.as_ptr(), functions) };
        if made.is_null() {
            return Err(failed(&io::Error::last_os_error()));
        }
        set_file(vp, made);
        file.set(made);
        Ok(())
    })
}
