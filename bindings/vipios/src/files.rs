//! Opening, closing and removing files, their sizes, sync and mode.
//!
//! A file is atomic from its opening on. Left to others: numbers of files (`state`).

use std::ffi::c_int;
use std::sync::Arc;

use border::entry::{Failure, Outcome};
use border::ffi::{Out, Text};
use client::OpenOptions;

use crate::answer::{Number, code, not_negative, store, yes};
use crate::connection::client_of_calls;
use crate::state::{OpenFile, file_of, new_number, state, unknown};

pub(crate) const VIPIOS_R: c_int = 1;
pub(crate) const VIPIOS_W: c_int = 2;
pub(crate) const VIPIOS_CREATE: c_int = 4;
pub(crate) const VIPIOS_EXCLUSIVE: c_int = 8;
pub(crate) const VIPIOS_DELETE_ON_CLOSE: c_int = 16;
pub(crate) const VIPIOS_UNIQUE: c_int = 32;

const ALL_FLAGS: c_int =
    VIPIOS_R | VIPIOS_W | VIPIOS_CREATE | VIPIOS_EXCLUSIVE | VIPIOS_DELETE_ON_CLOSE | VIPIOS_UNIQUE;

/// What a flag changes about the options of the client.
type Change = fn(OpenOptions) -> OpenOptions;

fn options_of(flags: c_int) -> Outcome<OpenOptions> {
    let refuse = |text: String| Err(Failure::argument("flags", text));
    if flags & !ALL_FLAGS != 0 {
        return refuse(format!("are {flags:#x}, with bits that mean nothing"));
    }
    let has = |flag| flags & flag != 0;
    if !has(VIPIOS_R) && !has(VIPIOS_W) {
        return refuse("have none of VIPIOS_R, VIPIOS_W and VIPIOS_RW".into());
    }
    if (has(VIPIOS_CREATE) || has(VIPIOS_EXCLUSIVE)) && !has(VIPIOS_W) {
        return refuse("create a file that cannot be written; add VIPIOS_W".into());
    }
    let mut options = OpenOptions::new().atomic();
    let changes: [(c_int, Change); 6] = [
        (VIPIOS_R, OpenOptions::read),
        (VIPIOS_W, OpenOptions::write),
        (VIPIOS_CREATE, OpenOptions::create),
        (VIPIOS_EXCLUSIVE, OpenOptions::exclusive),
        (VIPIOS_DELETE_ON_CLOSE, OpenOptions::delete_on_close),
        (VIPIOS_UNIQUE, OpenOptions::unique),
    ];
    for (flag, change) in changes {
        if has(flag) {
            options = change(options);
        }
    }
    Ok(options)
}

/// Gives an open file its number.
pub(crate) fn enter(opened: OpenFile) -> Outcome<c_int> {
    let number = new_number()?;
    state().files.write().insert(number, Arc::new(opened));
    Ok(number)
}

/// Closes a file once its requests are done.
pub(crate) fn close(fid: c_int) -> Outcome {
    let closed = state().files.write().remove(&fid);
    closed.ok_or_else(|| unknown("file", fid))?.close()
}

/// Opens a file, or creates it.
#[unsafe(no_mangle)]
extern "C" fn ViPIOS_Open(filename: Text, flags: c_int, fid: Out<c_int>) -> bool {
    yes("ViPIOS_Open", || {
        fid.required("fid")?.set(-1);
        let (connection, client) = client_of_calls()?;
        let file = client.open(&filename.required("filename")?, &options_of(flags)?)?;
        fid.set(enter(OpenFile::new(file, connection))?);
        Ok(())
    })
}

/// Closes a file once its requests are done.
#[unsafe(no_mangle)]
extern "C" fn ViPIOS_Close(fid: c_int) -> bool {
    yes("ViPIOS_Close", || close(fid))
}

/// Removes a file that no program has open.
#[unsafe(no_mangle)]
extern "C" fn ViPIOS_Remove(filename: Text) -> bool {
    yes("ViPIOS_Remove", || {
        let (_, client) = client_of_calls()?;
        Ok(client.unlink_unless_open(&filename.required("filename")?)?)
    })
}

pub(crate) fn set_size(fid: c_int, size: i64) -> Outcome {
    let opened = file_of(fid)?;
    Ok(opened.file.resize(not_negative("size", size)?)?)
}

fn get_size<N: Number>(fid: c_int, size: Out<N>) -> Outcome {
    let opened = file_of(fid)?;
    store(size.required("size")?, "size", opened.file.size()?)
}

/// Sets the size of a file.
#[unsafe(no_mangle)]
extern "C" fn ViPIOS_File_set_size(fid: c_int, size: c_int) -> c_int {
    code("ViPIOS_File_set_size", || set_size(fid, size.into()))
}

/// Sets the size of a file, in 64 bits.
#[unsafe(no_mangle)]
extern "C" fn ViPIOS_File_set_size64(fid: c_int, size: i64) -> c_int {
    code("ViPIOS_File_set_size64", || set_size(fid, size))
}

/// The size of a file.
#[unsafe(no_mangle)]
extern "C" fn ViPIOS_File_get_size(fid: c_int, size: Out<c_int>) -> c_int {
    code("ViPIOS_File_get_size", || get_size(fid, size))
}

/// The size of a file, in 64 bits.
#[unsafe(no_mangle)]
extern "C" fn ViPIOS_File_get_size64(fid: c_int, size: Out<i64>) -> c_int {
    code("ViPIOS_File_get_size64", || get_size(fid, size))
}

/// Makes what was written durable.
#[unsafe(no_mangle)]
extern "C" fn ViPIOS_File_sync(fid: c_int) -> c_int {
    code("ViPIOS_File_sync", || {
        file_of(fid)?.file.sync()?;
        Ok(())
    })
}

/// Whether accesses of a file are atomic.
#[unsafe(no_mangle)]
extern "C" fn ViPIOS_Set_atomic(fid: c_int, is_atomic: c_int) -> c_int {
    code("ViPIOS_Set_atomic", || {
        Ok(file_of(fid)?.file.set_atomic(is_atomic != 0)?)
    })
}
