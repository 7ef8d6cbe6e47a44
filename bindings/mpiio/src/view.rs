//! The view of a handle: displacement, etype, filetype, representation.
//!
//! ```text
//!  filetype as it is in the file --ascends--> periodic set of bytes      `client` sees them as one stream
//!                                --else-----> scattered                  piece by piece, in view order
//! ```
//!
//! The standard wants displacements in etype and filetype that do not descend, and no overlap if the file may
//! be written. What remains beyond sets are filetypes that show a byte twice, for reading, and tiles
//! that lie into each other.
//!
//! Invariants
//! - Handles of types are duplicates of ours, unless they are predefined; they are given back once, by a thread of
//!   the program ([`CurrentView::give_back`]).
//! - `etype_bytes` is at least 1.
//!
//! Left to others: agreeing with the other processes (`verbs/view`).

use std::sync::Arc;

use client::View;
use layout::mpi::FileView;
use layout::{LayoutErrorKind, ViewOffset};

use crate::abi::Family;
use crate::datarep::Representation;
use crate::datatype::{self, Type};
use crate::entry::Outcome;
use crate::failure::{Class, Failure};
use crate::ffi::Word;
use crate::host::Host;

/// What a process sees of a file through a handle.
#[derive(Debug)]
pub(crate) struct CurrentView {
    pub(crate) displacement: i64,
    pub(crate) etype: Arc<Type>,
    pub(crate) filetype: Arc<Type>,
    /// Handles to give to whoever asks for the view.
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
    pub(crate) scattered: Option<FileView>,
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
        is_writable: bool,
    ) -> Outcome<CurrentView> {
        let etype = named(datatype::of(host, etype_handle), "etype")?;
        let filetype = named(datatype::of(host, filetype_handle), "filetype")?;
        // The standard gives no class for these; programs get that which their library has.
        let unfit = match host.abi.family {
            Family::OpenMpi => Class::Type,
            Family::Mpich | Family::Standard => Class::Io,
        };
        let types: (&Type, &Type) = (&etype, &filetype);
        let (in_file, bytes, scattered) =
            shown(displacement, types, &representation, is_writable, unfit)?;
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
            Some(view) => u64::try_from(view.select(byte)?).ok(),
            None if self.filetype.size() == 0 => Some(self.displacement.unsigned_abs()),
            None => self.bytes.view_to_file(ViewOffset(byte)).map(|at| at.0),
        }
    }

    /// Bytes of the view in a file of `file_len` bytes. Of a scattered one those before the first that is beyond.
    pub(crate) fn len_within(&self, file_len: u64) -> u64 {
        match &self.scattered {
            Some(view) => scattered_within(view, file_len),
            None => self.bytes.len_within(file_len),
        }
    }
}

/// Bytes of a scattered view before the first that is not below `file_len`. Copies at one place count once.
fn scattered_within(view: &FileView, file_len: u64) -> u64 {
    let filetype = view.filetype();
    let reach = i128::from(filetype.true_lb()) + i128::from(filetype.true_extent());
    let room = i128::from(file_len) - i128::from(view.displacement()) - reach;
    let whole = match i128::from(filetype.extent()) {
        _ if room < 0 => 0,
        0 => 1,
        extent => u64::try_from(room / extent + 1).unwrap_or(u64::MAX),
    };
    let before = whole.saturating_mul(filetype.size());
    if filetype.extent() == 0 && whole == 1 {
        return before;
    }
    // Displacements do not descend, so bytes of the next copy lie within up to one of them.
    let is_within = |k: u64| {
        view.select(before + k)
            .is_some_and(|at| at.unsigned_abs() < file_len)
    };
    let (mut low, mut high) = (0, filetype.size());
    while low < high {
        let middle = low + (high - low) / 2;
        match is_within(middle) {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    before.saturating_add(low)
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
    is_writable: bool,
    unfit: Class,
) -> Outcome<(FileView, View, Option<FileView>)> {
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
            let sequence = datatype.to_sequence();
            if descends(&sequence) {
                let text = format!("{argument} has displacements that descend");
                return Err(Failure::new(unfit, text));
            }
            if is_writable {
                let text = format!(
                    "{argument} holds bytes twice, which only files opened with MPI_MODE_RDONLY may have"
                );
                return Err(Failure::new(unfit, text));
            }
        }
    }
    let view = FileView::new(displacement, &etype_in_file, &filetype_in_file)
        .map_err(|error| Failure::new(Class::Arg, error.to_string()))?;
    match view.to_periodic() {
        Ok(bytes) => Ok((view, bytes.into(), None)),
        Err(error) if *error.kind() == LayoutErrorKind::NotMonotone => {
            if filetype_in_file.extent() < 0 {
                let text =
                    "filetype has a negative extent; its copies would lie before the displacement";
                return Err(Failure::new(unfit, text));
            }
            Ok((view.clone(), View::whole_file(), Some(view)))
        }
        Err(error) => Err(Failure::new(unfit, error.to_string())),
    }
}

/// Blocks of a type map that are looked at to see whether they descend.
const MOST_RUNS: usize = 1 << 20;

/// Whether a block of the type map begins before the one before it.
fn descends(sequence: &layout::Sequence) -> bool {
    let mut last = i64::MIN;
    sequence.runs().take(MOST_RUNS).any(|run| {
        let is_before = run.start < last;
        last = run.start;
        is_before
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_holds_the_bytes_of_a_scattered_view_up_to_the_first_beyond_it() {
        let short = layout::mpi::Datatype::basic(2).unwrap();
        let far = layout::mpi::Datatype::hindexed(&[1, 1], &[0, 14], &short).unwrap();
        let tile = |extent| layout::mpi::Datatype::resized(0, extent, &far).unwrap();
        let view = FileView::new(100, &short, &tile(4)).unwrap();
        for (file_len, bytes) in [
            (0, 0),
            (100, 0),
            (101, 1),
            (102, 2),
            (115, 3),
            (116, 6),
            (119, 7),
            (120, 10),
        ] {
            let naive = (0..)
                .take_while(|k| view.select(*k).unwrap() < file_len)
                .count();
            assert_eq!(
                scattered_within(&view, file_len as u64),
                bytes,
                "{file_len}"
            );
            assert_eq!(naive as u64, bytes, "{file_len}");
        }
        let still = FileView::new(0, &short, &tile(0)).unwrap();
        assert_eq!(scattered_within(&still, 16), 4);
        assert_eq!(scattered_within(&still, 15), 3);
    }

    #[test]
    fn blocks_that_overlap_do_not_descend() {
        let sequence =
            |blocks: &[(i64, u64)]| layout::Sequence::from_blocks(blocks.iter().copied()).unwrap();
        assert!(!descends(&sequence(&[(0, 4), (2, 4), (2, 1)])));
        assert!(descends(&sequence(&[(8, 4), (0, 4)])));
    }
}
