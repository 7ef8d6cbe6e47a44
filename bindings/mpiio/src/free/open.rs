//! `MPI_File_open`: whose file it is, and opening it together.
//!
//! All processes come to the same end: either all have the file, or none has, all report the same class and all have
//! `MPI_FILE_NULL`.

use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize};

use client::{Client, Team};
use parking_lot::{Mutex, RwLock};

use crate::entry::{self, Outcome};
use crate::failure::{Class, Failure};
use crate::ffi::{HandleOut, Text, Word};
use crate::host::{self, Host};
use crate::info;
use crate::open_file::{self, Mode, OpenFile};
use crate::progress;
use crate::roll_call::{self, RollCall, RollCallAnswer};
use crate::service::Target;
use crate::table;
use crate::view::CurrentView;

/// `MPI_File_open`.
pub(crate) fn open(comm: Word, filename: Text, amode: c_int, info: Word, fh: HandleOut) -> c_int {
    let theirs = || {
        entry::theirs("MPI_File_open", |host| {
            // SAFETY: the arguments are the caller's.
            host.files
                .File_open
                .map(|f| unsafe { f(comm, filename, amode, info, fh) })
        })
    };
    let (Some(host), Some(name)) = (host::get(), filename.get()) else {
        return theirs();
    };
    // What the host refuses anyway, it refuses in its own way.
    if comm == host.abi.comm_null || !host.is_running() {
        return theirs();
    }
    let mut target = Target::of(&name);
    // Rank 0 looks, for all.
    if i64::from(amode) & host.abi.mode_create == 0
        && host.comm_rank(comm).is_ok_and(|rank| rank == 0)
    {
        target.take_if(|target| target.is_of_host());
    }
    // Until it is open there is no file, whatever becomes of it: who ignores the error has none either.
    if target.is_some() {
        fh.set_file(host.abi.file_null);
    }
    match host.is_inter(comm) {
        Ok(false) => {}
        Ok(true) if target.is_some() => {
            return entry::of_no_file("MPI_File_open", &name, |_| {
                let text = "comm connects two groups; give one that has a single group";
                Err(Failure::new(Class::Comm, text))
            });
        }
        Ok(true) | Err(_) => return theirs(),
    }
    let (said, connected) = match &target {
        None => (RollCallAnswer::new(false, amode, 0, 0, None), None),
        Some(target) => {
            let ready = ready(host, target, amode, info);
            let failure = ready.as_ref().err().cloned();
            let hints = ready.as_ref().map_or(0, |ready| ready.new_file.len());
            let said = RollCallAnswer::new(true, amode, target.number(), hints, failure);
            (said, ready.ok())
        }
    };
    let roll_call = match RollCall::hold(host, comm, &said) {
        Ok(roll_call) if !roll_call.is_ours() => return theirs(),
        other => other,
    };
    entry::of_no_file("MPI_File_open", &name, |host| {
        let roll_call = roll_call?;
        roll_call.check()?;
        let (Some(target), Some(ready)) = (target, connected) else {
            return Err(Failure::new(
                Class::NotSame,
                "rank 0 named a file of Pario; all have to name the same",
            ));
        };
        progress::prepare();
        let new_file = roll_call.hints(host, comm, ready.new_file.clone())?;
        let team = roll_call.team(host, comm, &ready.client)?;
        let opening = Opening {
            host,
            comm,
            name: &name,
            target: &target,
            ready: &ready,
            new_file: info::read(&new_file),
            number: roll_call.number(),
        };
        let file = opening.run(&team)?;
        fh.set_file(file.handle);
        table::enter(Arc::new(file));
        Ok(0)
    })
}

/// What a process can find out by itself.
struct Ready {
    mode: Mode,
    hints: info::Pairs,
    /// Those for a new file, to be told.
    new_file: Vec<u8>,
    client: Client,
}

fn ready(host: &Host, target: &Target, amode: c_int, info: Word) -> Outcome<Ready> {
    let mode = Mode::of(amode, &host.abi)?;
    if target.path.trim_matches('/').is_empty() {
        return Err(Failure::new(
            Class::BadFile,
            "the name has no path; give one as in pario:results",
        ));
    }
    let hints = info::hints_of(host, info)?;
    let new_file = match mode.is_create {
        true => info::put(&info::of_new_file(&hints)),
        false => Vec::new(),
    };
    Ok(Ready {
        mode,
        hints,
        new_file,
        client: target.client()?,
    })
}

/// Everything that an opening needs.
struct Opening<'a> {
    host: &'static Host,
    comm: Word,
    name: &'a str,
    target: &'a Target,
    ready: &'a Ready,
    /// What a new file is to be like, as rank 0 wishes.
    new_file: info::Pairs,
    /// The number of the shared pointer.
    number: u64,
}

impl Opening<'_> {
    fn run(&self, team: &Team) -> Outcome<OpenFile> {
        let driven = roll_call::driven(team);
        let mut opened = self.open_file(&driven, &self.new_file);
        if !self.new_file.is_empty() && matches!(&opened, Err(e) if e.class == Class::Arg) {
            // The same at all ranks. What the service cannot do of the hints is passed over.
            opened = self.open_file(&driven, &[]);
        }
        // Everything that can fail comes before the processes agree; then nobody turns back.
        let mine = opened.and_then(|file| self.around(file, team.clone(), driven.clone()));
        let handle = mine.as_ref().ok().map(|open| (open.handle, open.group));
        open_file::agree(&driven, mine, &[], "").inspect_err(|_| {
            if let Some((handle, group)) = handle {
                let _ = self.host.close_nothing(handle);
                let _ = self.host.group_free(group);
            }
        })
    }

    /// Opens the file at the service.
    fn open_file(&self, team: &Team, new_file: &[(String, String)]) -> Outcome<client::File> {
        let Ready {
            mode,
            hints,
            client,
            ..
        } = self.ready;
        if self.target.makes_parents
            && mode.is_create
            && team.rank() == 0
            && let Some((parent, _)) = self.target.path.rsplit_once('/')
            && !parent.is_empty()
        {
            // If it fails, the opening says why.
            let _ = client.mkdir_all(parent, None);
        }
        let hints = [&info::of_access(hints)[..], new_file].concat();
        let mut options = info::options(&hints, mode).shared_pointer(self.number);
        if mode.is_read {
            options = options.read();
        }
        if mode.is_write {
            options = options.write();
        }
        if mode.is_create {
            options = options.create();
        }
        if mode.is_create && mode.is_exclusive {
            options = options.exclusive();
        }
        if mode.is_delete {
            options = options.delete_on_close();
        }
        if mode.is_unique {
            options = options.unique();
        }
        let opened = client.open_together(team, &self.target.path, &options);
        opened.map_err(|error| {
            let mut failure = Failure::from(error);
            if failure.class == Class::NoSuchFile && mode.is_create {
                failure.text += "; make its directory first, as with pario mkdir";
            }
            failure
        })
    }

    /// The file with all that MPI keeps of it.
    fn around(&self, file: client::File, team: Team, driven: Team) -> Outcome<OpenFile> {
        let Ready { mode, hints, .. } = self.ready;
        let view = CurrentView::whole(self.host)?;
        let end = match mode.is_append {
            true => file.size()?,
            false => 0,
        };
        if mode.is_append && driven.rank() == 0 {
            file.seek_shared(std::io::SeekFrom::Start(end))?;
        }
        let group = self.host.comm_group(self.comm)?;
        let handle = self.host.open_nothing().inspect_err(|_| {
            let _ = self.host.group_free(group);
        })?;
        Ok(OpenFile {
            handle,
            name: self.name.to_owned(),
            mode: *mode,
            group,
            team,
            driven,
            file,
            view: RwLock::new(Arc::new(view)),
            position: AtomicU64::new(end),
            split: Mutex::new(None),
            hints: Mutex::new(hints.clone()),
            pending: AtomicUsize::new(0),
            ordered: crate::queue::new(),
        })
    }
}
