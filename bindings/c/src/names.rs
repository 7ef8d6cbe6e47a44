//! Everything that goes by path names: removing, renaming, directories, attributes.
//!
//! Paths are UTF-8 with `/` between names, from the root of the service on. Nothing here has an open file.

use std::ffi::c_int;

use client::{Kind, Listing, Metadata, SetTime, Status, Time};
use parking_lot::Mutex;

use crate::connect::Connection;
use crate::entry::{Failure, Outcome, answer};
use crate::ffi::{Out, Text, set_struct};
use crate::structs::{
    PARIO_DIRECTORY, PARIO_FILE, PARIO_KEEP_TIME, PARIO_TIME_NOW, PARIO_TIME_TO, TextOut,
    pario_stat_info,
};
use crate::table::Handle;

/// A directory that is being read.
#[derive(Debug)]
pub(crate) struct OpenDirectory(Mutex<Listing>);

/// Permission bits of a program; nothing for the usual ones.
pub(crate) fn mode_of(mode: c_int) -> Outcome<Option<u32>> {
    match u32::try_from(mode) {
        Ok(0) => Ok(None),
        Ok(mode) if mode <= 0o7777 => Ok(Some(mode)),
        _ => Err(Failure::argument(
            "mode",
            format!("is {mode:o}; give permission bits, or 0 for the usual ones"),
        )),
    }
}

fn kind_of(kind: Kind) -> c_int {
    match kind {
        Kind::Directory => PARIO_DIRECTORY,
        _ => PARIO_FILE,
    }
}

fn shown(known: &Metadata, out: Out<pario_stat_info>) -> Outcome {
    let info = pario_stat_info {
        size: 0,
        file: known.file.0,
        bytes: known.size,
        generation: known.generation,
        accessed_ns: known.accessed.0,
        modified_ns: known.modified.0,
        changed_ns: known.changed.0,
        kind: kind_of(known.kind),
        mode: known.mode as c_int,
        owner: known.owner,
        group: known.group,
    };
    set_struct(out, "info", &info)
}

macro_rules! by_path {
    ($($(#[$doc:meta])* $name:ident = $method:ident;)*) => {$(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        extern "C" fn $name(client: Handle<Connection>, path: Text) -> c_int {
            answer(stringify!($name), || {
                let client = client.get()?;
                Ok(client.0.$method(&path.required("path")?)?)
            })
        }
    )*};
}

by_path! {
    /// Removes the name of a file; its bytes go with its last handle.
    pario_unlink = unlink;
    /// Removes a file unless a client has it open.
    pario_unlink_unless_open = unlink_unless_open;
    /// Removes an empty directory.
    pario_rmdir = rmdir;
}

/// Gives a file or directory another name; what has that name is replaced.
#[unsafe(no_mangle)]
extern "C" fn pario_rename(client: Handle<Connection>, from: Text, to: Text) -> c_int {
    answer("pario_rename", || {
        let client = client.get()?;
        Ok(client
            .0
            .rename(&from.required("from")?, &to.required("to")?)?)
    })
}

/// Creates a directory; mode 0 is the usual one.
#[unsafe(no_mangle)]
extern "C" fn pario_mkdir(client: Handle<Connection>, path: Text, mode: c_int) -> c_int {
    answer("pario_mkdir", || {
        let client = client.get()?;
        Ok(client.0.mkdir(&path.required("path")?, mode_of(mode)?)?)
    })
}

/// Creates a directory and those above it; one that exists is fine.
#[unsafe(no_mangle)]
extern "C" fn pario_mkdir_all(client: Handle<Connection>, path: Text, mode: c_int) -> c_int {
    answer("pario_mkdir_all", || {
        let client = client.get()?;
        Ok(client
            .0
            .mkdir_all(&path.required("path")?, mode_of(mode)?)?)
    })
}

/// Tells what is known about a file or directory, with the latest size.
#[unsafe(no_mangle)]
extern "C" fn pario_stat(
    client: Handle<Connection>,
    path: Text,
    info: Out<pario_stat_info>,
) -> c_int {
    answer("pario_stat", || {
        let client = client.get()?;
        shown(&client.0.stat(&path.required("path")?)?, info)
    })
}

/// Whether there is a file or directory of this name.
#[unsafe(no_mangle)]
extern "C" fn pario_exists(client: Handle<Connection>, path: Text, exists: Out<c_int>) -> c_int {
    answer("pario_exists", || {
        let client = client.get()?;
        exists.required("exists")?;
        match client.0.attributes(&path.required("path")?) {
            Ok(_) => exists.set(1),
            Err(e) if e.status() == Status::NotFound => exists.set(0),
            Err(e) => return Err(e.into()),
        }
        Ok(())
    })
}

/// Sets the permission bits.
#[unsafe(no_mangle)]
extern "C" fn pario_chmod(client: Handle<Connection>, path: Text, mode: c_int) -> c_int {
    answer("pario_chmod", || {
        let client = client.get()?;
        let bits = u32::try_from(mode).ok().filter(|bits| *bits <= 0o7777);
        let bits = bits.ok_or_else(|| Failure::argument("mode", "is no permission bits"))?;
        Ok(client.0.chmod(&path.required("path")?, bits)?)
    })
}

/// Gives a file or directory to another owner or group; -1 leaves one as it is.
#[unsafe(no_mangle)]
extern "C" fn pario_chown(client: Handle<Connection>, path: Text, owner: i64, group: i64) -> c_int {
    answer("pario_chown", || {
        let client = client.get()?;
        let number = |name: &str, number: i64| match number {
            -1 => Ok(None),
            n => u32::try_from(n)
                .map(Some)
                .map_err(|_| Failure::argument(name, format!("is {n}"))),
        };
        let (owner, group) = (number("owner", owner)?, number("group", group)?);
        Ok(client.0.chown(&path.required("path")?, owner, group)?)
    })
}

/// Sets the times of access and change.
#[unsafe(no_mangle)]
extern "C" fn pario_utimes(
    client: Handle<Connection>,
    path: Text,
    accessed: c_int,
    accessed_ns: i64,
    modified: c_int,
    modified_ns: i64,
) -> c_int {
    answer("pario_utimes", || {
        let client = client.get()?;
        let time = |name: &str, how: c_int, ns: i64| match how {
            PARIO_KEEP_TIME => Ok(SetTime::Keep),
            PARIO_TIME_NOW => Ok(SetTime::Now),
            PARIO_TIME_TO => Ok(SetTime::To(Time(ns))),
            other => Err(Failure::argument(
                name,
                format!("is {other}; give PARIO_KEEP_TIME, PARIO_TIME_NOW or PARIO_TIME_TO"),
            )),
        };
        let accessed = time("accessed", accessed, accessed_ns)?;
        let modified = time("modified", modified, modified_ns)?;
        Ok(client
            .0
            .utimes(&path.required("path")?, accessed, modified)?)
    })
}

/// Begins to read the names in a directory.
#[unsafe(no_mangle)]
extern "C" fn pario_opendir(
    client: Handle<Connection>,
    path: Text,
    directory: Out<Handle<OpenDirectory>>,
) -> c_int {
    answer("pario_opendir", || {
        directory.required("directory")?.set(Handle::NULL);
        let listing = client
            .get()?
            .0
            .list_with_attributes(&path.required("path")?)?;
        let opened = OpenDirectory(Mutex::new(listing));
        directory.set(Handle::enter(opened, client)?);
        Ok(())
    })
}

/// The next name in a directory; null behind the last. Attributes have the latest size, as pario_stat has.
#[unsafe(no_mangle)]
extern "C" fn pario_readdir(
    directory: Handle<OpenDirectory>,
    name: TextOut,
    info: Out<pario_stat_info>,
) -> c_int {
    answer("pario_readdir", || {
        name.required("name")?.set(std::ptr::null_mut());
        let directory = directory.get()?;
        let next = directory.0.lock().next().transpose()?;
        let Some(entry) = next else {
            return Ok(());
        };
        if let (Some(known), false) = (&entry.attributes, info.address().is_null()) {
            shown(known, info)?;
        }
        name.set_text(&entry.name)
    })
}

/// Ends the reading of a directory.
#[unsafe(no_mangle)]
extern "C" fn pario_closedir(directory: Handle<OpenDirectory>) -> c_int {
    answer("pario_closedir", || directory.close().map(drop))
}

/// The array and the layout of a file, as they were written.
#[unsafe(no_mangle)]
extern "C" fn pario_layout_of(
    client: Handle<Connection>,
    path: Text,
    array: TextOut,
    layout: TextOut,
) -> c_int {
    answer("pario_layout_of", || {
        array.set(std::ptr::null_mut());
        layout.required("layout")?.set(std::ptr::null_mut());
        let found = client.get()?.0.layout(&path.required("path")?)?;
        if let (Some(text), false) = (&found.array, array.address().is_null()) {
            array.set_text(text)?;
        }
        layout.set_text(&found.text)
    })
}
