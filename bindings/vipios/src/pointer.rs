//! The pointer of a file, counts, and the state of accesses.
//!
//! Nothing here asks a server, but for seeking from the end of a file.

use std::cell::UnsafeCell;
use std::ffi::{c_char, c_int};

use border::entry::{Failure, Outcome};
use border::ffi::Out;
use client::Status;

use crate::answer::{Number, code, store, yes};
use crate::descriptor::Descriptor;
use crate::requests::request_of;
use crate::state::{Last, OpenFile, file_of};

pub(crate) const VIPIOS_SEEK_SET: c_int = 0;
pub(crate) const VIPIOS_SEEK_CUR: c_int = 1;
pub(crate) const VIPIOS_SEEK_END: c_int = 2;

const TEXT_BYTES: usize = 232;

/// The state of a file's last access, or of a request.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(non_camel_case_types)] // the name of C
pub(crate) struct ViPIOS_State {
    handle: c_int,
    error: c_int,
    is_end_of_file: c_int,
    is_done: c_int,
    outstanding: c_int,
    reserved: c_int,
    requested: i64,
    count: i64,
    position: i64,
    text: [c_char; TEXT_BYTES],
}

impl ViPIOS_State {
    const EMPTY: ViPIOS_State = ViPIOS_State {
        handle: 0,
        error: 0,
        is_end_of_file: 0,
        is_done: 0,
        outstanding: 0,
        reserved: 0,
        requested: 0,
        count: 0,
        position: -1,
        text: [0; TEXT_BYTES],
    };

    fn failed(&mut self, failure: &Failure) {
        self.error = failure.status.code().into();
        let mut end = failure.text.len().min(TEXT_BYTES - 1);
        while !failure.text.is_char_boundary(end) {
            end -= 1;
        }
        for (at, byte) in self.text.iter_mut().zip(failure.text[..end].bytes()) {
            *at = byte.cast_signed() as c_char;
        }
    }

    fn went(&mut self, last: &Last) {
        let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        self.requested = number(last.requested);
        self.count = number(last.moved);
        self.is_end_of_file = last.is_end_of_file().into();
        if let Some(failure) = &last.failure {
            self.failed(failure);
        }
    }
}

/// A place that all threads may point at; it never changes.
static NO_STATE: ViPIOS_State = ViPIOS_State::EMPTY;

thread_local! {
    static STATE: UnsafeCell<ViPIOS_State> = const { UnsafeCell::new(ViPIOS_State::EMPTY) };
}

/// Moves the pointer; `end` tells where the end is.
fn seek(
    opened: &OpenFile,
    offset: i64,
    base: c_int,
    end: impl FnOnce() -> Outcome<u64>,
) -> Outcome {
    let mut pointer = opened.pointer.lock();
    let from = match base {
        VIPIOS_SEEK_SET => 0,
        VIPIOS_SEEK_CUR => *pointer,
        VIPIOS_SEEK_END => end()?,
        other => {
            let text = format!("is {other}; give VIPIOS_SEEK_SET, _CUR or _END");
            return Err(Failure::argument("base", text));
        }
    };
    let to = from.checked_add_signed(offset);
    *pointer = to.filter(|to| *to <= falls::MAX_OFFSET).ok_or_else(|| {
        let text = format!("{offset} from {from} is before the start, or beyond 2^63 - 1");
        Failure::argument("offset", text)
    })?;
    Ok(())
}

pub(crate) fn seek_plain(fid: c_int, offset: i64, base: c_int) -> Outcome {
    let opened = file_of(fid)?;
    seek(&opened, offset, base, || Ok(opened.file.size()?))
}

fn seek_struct<N: Number>(fid: c_int, offset: N, base: c_int, desc: Descriptor<N>) -> Outcome {
    let opened = file_of(fid)?;
    let pattern = opened.pattern(0, desc.get()?)?;
    seek(&opened, offset.into(), base, || {
        pattern.bytes_within(opened.file.size()?)
    })
}

/// Moves the pointer, in bytes of the file.
#[unsafe(no_mangle)]
extern "C" fn ViPIOS_Seek(fid: c_int, offset: c_int, base: c_int) -> bool {
    yes("ViPIOS_Seek", || seek_plain(fid, offset.into(), base))
}

/// Moves the pointer, in bytes of the file.
#[unsafe(no_mangle)]
extern "C" fn ViPIOS_Seek64(fid: c_int, offset: i64, base: c_int) -> bool {
    yes("ViPIOS_Seek64", || seek_plain(fid, offset, base))
}

/// Moves the pointer, in bytes that a descriptor shows.
#[unsafe(no_mangle)]
extern "C" fn ViPIOS_Seek_struct(
    fid: c_int,
    offset: c_int,
    base: c_int,
    desc: Descriptor<i32>,
) -> bool {
    yes("ViPIOS_Seek_struct", || {
        seek_struct(fid, offset, base, desc)
    })
}

/// Moves the pointer, in bytes that a descriptor shows.
#[unsafe(no_mangle)]
extern "C" fn ViPIOS_Seek_struct64(
    fid: c_int,
    offset: i64,
    base: c_int,
    desc: Descriptor<i64>,
) -> bool {
    yes("ViPIOS_Seek_struct64", || {
        seek_struct(fid, offset, base, desc)
    })
}

fn get_position<N: Number>(fid: c_int, pos: Out<N>) -> Outcome {
    let at = *file_of(fid)?.pointer.lock();
    store(pos.required("pos")?, "pos", at)
}

/// Where the pointer is.
#[unsafe(no_mangle)]
extern "C" fn ViPIOS_File_get_position(fid: c_int, pos: Out<c_int>) -> c_int {
    code("ViPIOS_File_get_position", || get_position(fid, pos))
}

/// Where the pointer is.
#[unsafe(no_mangle)]
extern "C" fn ViPIOS_File_get_position64(fid: c_int, pos: Out<i64>) -> c_int {
    code("ViPIOS_File_get_position64", || get_position(fid, pos))
}

fn get_count<N: Number>(fid: c_int, count: Out<N>) -> Outcome {
    let moved = file_of(fid)?.last.lock().moved;
    store(count.required("count")?, "count", moved)
}

/// The bytes that the last access has moved.
#[unsafe(no_mangle)]
extern "C" fn ViPIOS_File_get_count(fid: c_int, count: Out<c_int>) -> c_int {
    code("ViPIOS_File_get_count", || get_count(fid, count))
}

/// The bytes that the last access has moved.
#[unsafe(no_mangle)]
extern "C" fn ViPIOS_File_get_count64(fid: c_int, count: Out<i64>) -> c_int {
    code("ViPIOS_File_get_count64", || get_count(fid, count))
}

/// The state of a file or of a request.
fn state_of(handle: c_int) -> ViPIOS_State {
    let mut state = ViPIOS_State {
        handle,
        ..ViPIOS_State::EMPTY
    };
    if let Ok(request) = request_of(handle) {
        let done = request.last();
        state.is_done = done.is_some().into();
        state.outstanding = done.is_none().into();
        match done {
            Some(last) => state.went(&last),
            None => state.requested = i64::try_from(request.requested).unwrap_or(i64::MAX),
        }
        return state;
    }
    match file_of(handle) {
        Ok(opened) => {
            let outstanding = opened.outstanding();
            state.outstanding = c_int::try_from(outstanding).unwrap_or(c_int::MAX);
            state.is_done = (outstanding == 0).into();
            state.position = i64::try_from(*opened.pointer.lock()).unwrap_or(i64::MAX);
            state.went(&opened.last.lock());
        }
        Err(failure) => state.failed(&failure),
    }
    state
}

/// The state of a file or of a request; never a null pointer.
#[unsafe(no_mangle)]
extern "C" fn Vipios_IOState(handle: c_int) -> *const ViPIOS_State {
    let found = border::entry::outcome("Vipios_IOState", || Ok(state_of(handle)));
    let found = found.unwrap_or(ViPIOS_State {
        handle,
        error: Status::Internal.code().into(),
        ..ViPIOS_State::EMPTY
    });
    let kept = STATE.try_with(|place| {
        // SAFETY: only this thread has the place, and nothing refers to it here.
        unsafe { place.get().write(found) };
        place.get().cast_const()
    });
    // A thread that is ending has no place any more.
    kept.unwrap_or(&raw const NO_STATE)
}
