//! Reading and writing in the caller's thread: at an offset, at the pointers, at the end, in described memory.
//!
//! Offsets are in bytes of the file's view. A read is shorter than asked for only at the end of the file.
//!
//! Cost: an access through its own view that goes directly costs what it costs a Rust program, and one lock of the
//! handle's slot.

use std::ffi::c_int;
use std::io::SeekFrom;

use crate::entry::{Failure, Outcome, answer};
use crate::ffi::{Address, ConstAddress, Out};
use crate::open::OpenFile;
use crate::patterns::Pattern;
use crate::structs::{PARIO_FROM_END, PARIO_FROM_HERE, PARIO_FROM_START};
use crate::table::Handle;

/// Reads at an offset.
#[unsafe(no_mangle)]
extern "C" fn pario_read_at(
    file: Handle<OpenFile>,
    offset: u64,
    buffer: Address,
    bytes: usize,
    moved: Out<u64>,
) -> c_int {
    answer("pario_read_at", || {
        moved.set(0);
        let target = buffer.target("buffer", bytes)?;
        let n = file.with(|opened| Ok(opened.file.read_at_shared(offset, target)?))?;
        moved.set(n as u64);
        Ok(())
    })
}

/// Writes at an offset.
#[unsafe(no_mangle)]
extern "C" fn pario_write_at(
    file: Handle<OpenFile>,
    offset: u64,
    buffer: ConstAddress,
    bytes: usize,
    moved: Out<u64>,
) -> c_int {
    answer("pario_write_at", || {
        moved.set(0);
        let source = buffer.source("buffer", bytes)?;
        let n = file.with(|opened| Ok(opened.file.write_at_shared(offset, source)?))?;
        moved.set(n as u64);
        Ok(())
    })
}

/// Reads at an offset into memory that a pattern describes.
#[unsafe(no_mangle)]
extern "C" fn pario_read_pattern_at(
    file: Handle<OpenFile>,
    offset: u64,
    base: Address,
    pattern: Handle<Pattern>,
    count: u64,
    moved: Out<u64>,
) -> c_int {
    answer("pario_read_pattern_at", || {
        moved.set(0);
        let (opened, places) = (file.get()?, pattern.get()?.places(count)?);
        let n = opened.file.access_at(offset, places.target(base)?)?;
        moved.set(n as u64);
        Ok(())
    })
}

/// Writes at an offset from memory that a pattern describes.
#[unsafe(no_mangle)]
extern "C" fn pario_write_pattern_at(
    file: Handle<OpenFile>,
    offset: u64,
    base: ConstAddress,
    pattern: Handle<Pattern>,
    count: u64,
    moved: Out<u64>,
) -> c_int {
    answer("pario_write_pattern_at", || {
        moved.set(0);
        let (opened, places) = (file.get()?, pattern.get()?.places(count)?);
        let n = opened.file.access_at(offset, places.source(base)?)?;
        moved.set(n as u64);
        Ok(())
    })
}

macro_rules! at_pointers {
    ($($(#[$doc:meta])* $name:ident($of:ty) = $method:ident;)*) => {$(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        extern "C" fn $name(
            file: Handle<OpenFile>,
            buffer: $of,
            bytes: usize,
            moved: Out<u64>,
        ) -> c_int {
            answer(stringify!($name), || {
                moved.set(0);
                let opened = file.get()?;
                let _place = opened.pointer.lock();
                let n = opened.file.$method(buffer.slice("buffer", bytes)?)?;
                moved.set(n as u64);
                Ok(())
            })
        }
    )*};
}

at_pointers! {
    /// Reads at the pointer of the file and moves it.
    pario_read(Address) = read;
    /// Writes at the pointer of the file and moves it.
    pario_write(ConstAddress) = write;
    /// Reads at the shared pointer and moves it.
    pario_read_shared(Address) = read_shared;
    /// Writes at the shared pointer and moves it.
    pario_write_shared(ConstAddress) = write_shared;
}

/// Reads at the pointer of the file into memory that a pattern describes, and moves it.
#[unsafe(no_mangle)]
extern "C" fn pario_read_pattern(
    file: Handle<OpenFile>,
    base: Address,
    pattern: Handle<Pattern>,
    count: u64,
    moved: Out<u64>,
) -> c_int {
    answer("pario_read_pattern", || {
        moved.set(0);
        let (opened, places) = (file.get()?, pattern.get()?.places(count)?);
        let _place = opened.pointer.lock();
        let at = opened.file.position();
        let n = opened.file.access_at(at, places.target(base)?)? as u64;
        opened.file.seek(SeekFrom::Start(at.saturating_add(n)))?;
        moved.set(n);
        Ok(())
    })
}

/// Writes at the pointer of the file from memory that a pattern describes, and moves it.
#[unsafe(no_mangle)]
extern "C" fn pario_write_pattern(
    file: Handle<OpenFile>,
    base: ConstAddress,
    pattern: Handle<Pattern>,
    count: u64,
    moved: Out<u64>,
) -> c_int {
    answer("pario_write_pattern", || {
        moved.set(0);
        let (opened, places) = (file.get()?, pattern.get()?.places(count)?);
        let _place = opened.pointer.lock();
        if opened.is_append {
            // The end is found with the bytes at hand, in one message.
            let n = opened.file.write(&places.packed(base)?)?;
            moved.set(n as u64);
            return Ok(());
        }
        let at = opened.file.position();
        let n = opened.file.access_at(at, places.source(base)?)? as u64;
        opened.file.seek(SeekFrom::Start(at.saturating_add(n)))?;
        moved.set(n);
        Ok(())
    })
}

/// Writes behind the end of the file, wherever that is by then.
#[unsafe(no_mangle)]
extern "C" fn pario_append(
    file: Handle<OpenFile>,
    buffer: ConstAddress,
    bytes: usize,
    offset: Out<u64>,
) -> c_int {
    answer("pario_append", || {
        let opened = file.get()?;
        let at = opened.file.append(buffer.slice("buffer", bytes)?)?;
        offset.set(at);
        Ok(())
    })
}

/// A place that a seek names.
pub(crate) fn target_of(offset: i64, whence: c_int) -> Outcome<SeekFrom> {
    match whence {
        PARIO_FROM_START => match u64::try_from(offset) {
            Ok(offset) => Ok(SeekFrom::Start(offset)),
            Err(_) => Err(Failure::argument(
                "offset",
                format!("is {offset}, before the start"),
            )),
        },
        PARIO_FROM_HERE => Ok(SeekFrom::Current(offset)),
        PARIO_FROM_END => Ok(SeekFrom::End(offset)),
        other => Err(Failure::argument(
            "whence",
            format!("is {other}; give PARIO_FROM_START, PARIO_FROM_HERE or PARIO_FROM_END"),
        )),
    }
}

/// Moves the pointer of the file, in bytes of the view.
#[unsafe(no_mangle)]
extern "C" fn pario_seek(
    file: Handle<OpenFile>,
    offset: i64,
    whence: c_int,
    position: Out<u64>,
) -> c_int {
    answer("pario_seek", || {
        let opened = file.get()?;
        let _place = opened.pointer.lock();
        position.set(opened.file.seek(target_of(offset, whence)?)?);
        Ok(())
    })
}

/// Moves the shared pointer, in bytes of the view.
#[unsafe(no_mangle)]
extern "C" fn pario_seek_shared(
    file: Handle<OpenFile>,
    offset: i64,
    whence: c_int,
    position: Out<u64>,
) -> c_int {
    answer("pario_seek_shared", || {
        let opened = file.get()?;
        position.set(opened.file.seek_shared(target_of(offset, whence)?)?);
        Ok(())
    })
}

/// Where the pointer of the file stands.
#[unsafe(no_mangle)]
extern "C" fn pario_tell(file: Handle<OpenFile>, position: Out<u64>) -> c_int {
    answer("pario_tell", || {
        let at = file.with(|opened| Ok(opened.file.position()))?;
        position.required("position")?.set(at);
        Ok(())
    })
}

/// Where the shared pointer stands.
#[unsafe(no_mangle)]
extern "C" fn pario_tell_shared(file: Handle<OpenFile>, position: Out<u64>) -> c_int {
    answer("pario_tell_shared", || {
        let at = file.get()?.file.position_shared()?;
        position.required("position")?.set(at);
        Ok(())
    })
}
