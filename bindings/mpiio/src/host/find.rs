//! Finding the MPI library among the objects that are loaded.
//!
//! `dlsym(RTLD_NEXT)` is not enough: Python loads MPI for itself, outside the global scope. So all loaded
//! objects are looked at, and the one that is an MPI is reopened without loading anything.

use std::ffi::{CStr, CString, c_int, c_void};

use crate::abi::{Abi, Constants, Family};
use crate::entries::HostFiles;
use crate::ffi::Word;

use super::{Calls, Host};

/// File names that an MPI library begins with.
const PREFIXES: &[&str] = &["libmpi.so", "libmpich.so", "libmpi_abi.so", "libmpi-"];

/// Names of loaded objects.
fn loaded() -> Vec<String> {
    unsafe extern "C" fn note(
        info: *mut libc::dl_phdr_info,
        _size: libc::size_t,
        data: *mut c_void,
    ) -> c_int {
        // SAFETY: dl_iterate_phdr hands over a valid description and our own list.
        let (name, names) = unsafe { ((*info).dlpi_name, &mut *data.cast::<Vec<String>>()) };
        if !name.is_null() {
            // SAFETY: the name is terminated and lives while the object is loaded.
            names.push(
                unsafe { CStr::from_ptr(name) }
                    .to_string_lossy()
                    .into_owned(),
            );
        }
        0
    }
    let mut names: Vec<String> = Vec::new();
    // SAFETY: `note` matches what is asked for, and the list outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(note), (&raw mut names).cast()) };
    names
}

/// A library that is loaded already.
#[derive(Clone, Copy)]
struct Library(*mut c_void);

impl Library {
    fn reopen(name: &str) -> Option<Library> {
        let name = CString::new(name).ok()?;
        // SAFETY: nothing is loaded; the handle is kept for ever, so that addresses stay good.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_LAZY) };
        (!handle.is_null()).then_some(Library(handle))
    }

    fn symbol(self, name: &CStr) -> Option<*const c_void> {
        // SAFETY: the handle is that of a loaded library.
        let found = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        (!found.is_null()).then_some(found.cast_const())
    }

    /// Whether MPI has been initialised in it.
    fn is_initialized(self) -> bool {
        let Some(function) = self.symbol(c"PMPI_Initialized") else {
            return false;
        };
        // SAFETY: the function has this type in every MPI, and may be called at any time.
        unsafe {
            let ask: unsafe extern "C" fn(*mut c_int) -> c_int = std::mem::transmute(function);
            let mut flag = 0;
            ask(&raw mut flag) == 0 && flag != 0
        }
    }
}

/// A function of a library that is loaded.
pub(super) fn function(path: &str, name: &CStr) -> Option<*const c_void> {
    let library = Library::reopen(path).unwrap_or(Library(libc::RTLD_NEXT));
    library.symbol(name)
}

/// The MPI library of the process: the one that has been initialised, if there are several.
pub(super) fn find() -> Option<Host> {
    let mut candidates: Vec<(String, Library)> = Vec::new();
    for path in loaded() {
        let file = path.rsplit('/').next().unwrap_or(&path);
        if !PREFIXES.iter().any(|prefix| file.starts_with(prefix)) {
            continue;
        }
        if let Some(library) = Library::reopen(&path)
            && library.symbol(c"PMPI_File_open").is_some()
        {
            candidates.push((path, library));
        }
    }
    if candidates.is_empty() {
        // Linked into the program itself.
        let next = Library(libc::RTLD_NEXT);
        if next.symbol(c"PMPI_Init").is_some() && next.symbol(c"PMPI_File_open").is_some() {
            candidates.push(("the program".into(), next));
        }
    }
    let chosen = candidates
        .iter()
        .position(|(_, library)| library.is_initialized())
        .unwrap_or(0);
    let (path, library) = candidates.into_iter().nth(chosen)?;
    Some(host_of(path, library))
}

fn host_of(path: String, library: Library) -> Host {
    let file = path.rsplit('/').next().unwrap_or(&path);
    let family = if library.symbol(c"ompi_mpi_comm_world").is_some() {
        Family::OpenMpi
    } else if file.starts_with("libmpi_abi") {
        Family::Standard
    } else {
        Family::Mpich
    };
    // A program that names a global of the library may have it copied into itself; then the library uses that
    // copy, and only the global scope shows it.
    let everywhere = Library(libc::RTLD_DEFAULT);
    let address = |name: &CStr| {
        Word(
            everywhere
                .symbol(name)
                .or_else(|| library.symbol(name))
                .map_or(crate::abi::ABSENT_HANDLE, |at| at as usize),
        )
    };
    let constants = match family {
        Family::Mpich => Constants::mpich(),
        Family::OpenMpi => Constants::openmpi(&address),
        Family::Standard => Constants::standard(),
    };
    let find = |name: &CStr| library.symbol(name);
    Host {
        abi: Abi { family, constants },
        files: HostFiles::load(&find),
        calls: Calls::load(&find),
        path,
    }
}
