//! The view of a handle: displacement, etype, filetype, representation.
//!
//! The standard wants displacements in etype and filetype that do not descend, and no overlap if the file may be written. What
//! remains is a set, or a [`ScatteredView`].
//!
//! Invariants
//! - Handles of types are duplicates of ours, unless they are predefined; they are given back once, by a thread of
//!   the program ([`CurrentView::give_back`]).
//! - `etype_bytes` is at least 1.
//!
//! Left to others: agreeing with the other processes (`verbs/view`).

use std::sync::Arc;

use client::{ScatteredView, View, type_map_descends};
use layout::ViewOffset;
use layout::mpi::FileView;

use crate::abi::Family;
use crate::datarep::Representation;
use crate::datatype::{self, Type};
use crate::entry::Outcome;
use crate::failure::{Class, Failure};
use crate::ffi::Word;
use crate::host::Host;
use crate::open_file::Mode;

/// What a process sees of a file through a handle.
#[derive(Debug)]
pub(crate) struct CurrentView {
    pub(crate) displacement: i64,
    pub(crate) etype: Arc<Type>,
    pub(crate) filetype: Arc<Type>,
    /// Handles to give to a program that asks for the view.
    pub(crate) etype_handle: Word,
    pub(crate) filetype_handle: Word,
    pub(crate) representation: Representation,
    /// Bytes of an etype in the file.
    pub(crate) etype_bytes: u64,
    /// Extent of an etype in the file.
    pub(crate) etype_extent: i64,
    /// What `client` is told: the bytes that it shows, all of them in the order of the file if it is scattered.
    pub(crate) bytes: View,
    /// Set if its bytes are no ascending set.
    pub(crate) scattered: Option<ScatteredView>,
    /// Whether collective accesses go through all processes: no one's view is scattered, and no function of the
    /// program has to be called.
    pub(crate) is_together: bool,
}

impl CurrentView {
    /// The whole file as bytes, which a file is opened with.
    pub(crate) fn whole(host: &Host) -> Outcome<CurrentView> {
        let byte = datatype::of(host, host.abi.byte)?;
        Ok(CurrentView {
            displacement: 0,
            etype: Arc::clone(&byte),
            filetype: byte,
            etype_handle: host.abi.byte,
            filetype_handle: host.abi.byte,
            representation: Representation::Native,
            etype_bytes: 1,
            etype_extent: 1,
            bytes: View::whole_file(),
            scattered: None,
            is_together: true,
        })
    }

    /// A view of the arguments of a call; what the standard forbids is refused. Its handles are duplicates.
    pub(crate) fn new(
        host: &Host,
        displacement: i64,
        (etype_handle, filetype_handle): (Word, Word),
        representation: Representation,
        mode: &Mode,
    ) -> Outcome<CurrentView> {
        let etype = named(datatype::of(host, etype_handle), "etype")?;
        let filetype = named(datatype::of(host, filetype_handle), "filetype")?;
        // The standard gives no class for these; programs get that which their library has.
        let unfit = match host.abi.family {
            Family::OpenMpi => Class::Type,
            Family::Mpich | Family::Standard => Class::Io,
        };
        let types: (&Type, &Type) = (&etype, &filetype);
        let (in_file, bytes, scattered) = shown(displacement, types, &representation, mode, unfit)?;
        let duplicate = |datatype: &Type, handle| match datatype.is_predefined {
            true => Ok(handle),
            false => host.type_dup(handle),
        };
        let first = duplicate(&etype, etype_handle)?;
        let second = duplicate(&filetype, filetype_handle).inspect_err(|_| {
            if !etype.is_predefined {
                let _ = host.type_free(first);
            }
        })?;
        Ok(CurrentView {
            displacement,
            etype_handle: first,
            filetype_handle: second,
            etype,
            filetype,
            etype_bytes: in_file.etype().size(),
            etype_extent: in_file.etype().extent(),
            is_together: scattered.is_none()
                && !matches!(representation, Representation::Registered(_)),
            representation,
            bytes,
            scattered,
        })
    }

    /// Gives the handles of its types back to the host. For threads of the program, once.
    pub(crate) fn give_back(&self, host: &Host) {
        for (datatype, handle) in [
            (&self.etype, self.etype_handle),
            (&self.filetype, self.filetype_handle),
        ] {
            if !datatype.is_predefined {
                let _ = host.type_free(handle);
            }
        }
    }

    /// Where a byte of the view is in the file; where it would be, if a view without bytes had some.
    pub(crate) fn to_file(&self, byte: u64) -> Option<u64> {
        match &self.scattered {
            Some(view) => view.to_file(byte),
            None if self.filetype.size() == 0 => Some(self.displacement.unsigned_abs()),
            None => self.bytes.view_to_file(ViewOffset(byte)).map(|at| at.0),
        }
    }

    /// Bytes of the view in a file of `file_len` bytes. Of a scattered one those before the first that is beyond.
    pub(crate) fn len_within(&self, file_len: u64) -> u64 {
        match &self.scattered {
            Some(view) => view.len_within(file_len),
            None => self.bytes.len_within(file_len),
        }
    }
}

/// An argument that a refusal is about.
fn named(read: Outcome<Arc<Type>>, argument: &str) -> Outcome<Arc<Type>> {
    read.map_err(|failure| Failure {
        text: format!("{argument}: {}", failure.text),
        ..failure
    })
}

/// What a view shows of the file: as MPI has it, as a set, and whether the set does not do. `unfit` is the class of a
/// type map that no view may have.
fn shown(
    displacement: i64,
    (etype, filetype): (&Type, &Type),
    representation: &Representation,
    mode: &Mode,
    unfit: Class,
) -> Outcome<(FileView, View, Option<ScatteredView>)> {
    if let (Some(a), Some(b)) = (etype.uniform(), filetype.uniform())
        && !a.matches(b)
    {
        return Err(Failure::new(
            Class::Arg,
            "filetype holds other values than etype; build it of etypes",
        ));
    }
    let etype_in_file = representation.in_file(etype)?;
    let filetype_in_file = representation.in_file(filetype)?;
    for (argument, datatype) in [("etype", &etype_in_file), ("filetype", &filetype_in_file)] {
        if datatype.size() > 0 && datatype.true_lb() < 0 {
            let text = format!(
                "{argument} has a byte at {}; displacements must not be negative",
                datatype.true_lb()
            );
            return Err(Failure::new(unfit, text));
        }
        if !datatype.is_monotone() {
            if type_map_descends(datatype) {
                let text = format!("{argument} has displacements that descend");
                return Err(Failure::new(unfit, text));
            }
            if mode.is_write {
                let text = format!(
                    "{argument} holds bytes twice, which only files opened with MPI_MODE_RDONLY may have"
                );
                return Err(Failure::new(unfit, text));
            }
        }
    }
    let view = FileView::new(displacement, &etype_in_file, &filetype_in_file)
        .map_err(|error| Failure::new(Class::Arg, error.to_string()))?;
    let unfit = |error: layout::LayoutError| Failure::new(unfit, error.to_string());
    let (bytes, scattered) = ScatteredView::unless_ascending(&view).map_err(unfit)?;
    Ok((view, bytes, scattered))
}
