//! Views: setting, asking, and where their offsets are in the file.
//!
//! See the table of the standard for which functions these are.

use std::ffi::c_char;
use std::io::SeekFrom;
use std::sync::Arc;

use crate::datarep::Representation;
use crate::datatype;
use crate::entry::{Call, Outcome};
use crate::failure::{Class, Failure};
use crate::ffi::{HandleOut, Out, Text, Word};
use crate::info;
use crate::operation::view_offset;
use crate::view::CurrentView;

/// The longest text of a failure that other processes are told.
const MOST_TEXT: usize = 400;

/// `MPI_File_set_view`. All processes come to the same end.
pub(crate) fn set_view(
    call: &Call,
    disp: i64,
    etype: Word,
    filetype: Word,
    datarep: Text,
    info: Word,
) -> Outcome {
    let file = &call.file;
    let mine = prepare(call, disp, (etype, filetype), datarep, info);
    let note = told(&mine, file.file.has_used_shared_pointer());
    let bytes = mine.as_ref().ok().map(|view| &view.bytes);
    crate::requests::take_turn(file);
    let mut agreed = TeamAgreement::default();
    let set = file
        .file
        .set_view_noted(&file.driven, bytes, &note, |notes| {
            agreed = judge(notes)?;
            Ok::<_, Failure>(())
        });
    let mut view = mine?;
    view.is_together = agreed.is_together;
    // One that nobody has used is at the beginning.
    let set = set.and_then(|()| match agreed.has_used_shared_pointer {
        true => file.by_rank_0(|| Ok(file.file.seek_shared(SeekFrom::Start(0)).map(drop)?)),
        false => Ok(()),
    });
    if let Err(failure) = set {
        view.give_back(call.host);
        return Err(failure);
    }
    let old = {
        let mut current = file.view.write();
        std::mem::replace(&mut *current, Arc::new(view))
    };
    old.give_back(call.host);
    file.set_position(0);
    Ok(())
}

/// What a process can do by itself.
fn prepare(
    call: &Call,
    disp: i64,
    types: (Word, Word),
    datarep: Text,
    info: Word,
) -> Outcome<CurrentView> {
    let file = &call.file;
    file.check_idle()?;
    // The servers hear of a view when it is first used; that they are gone is told now.
    file.file.check_service()?;
    let disp = displacement(call, disp)?;
    let name = datarep
        .get()
        .ok_or_else(|| Failure::new(Class::Arg, "datarep is null; give a name, such as native"))?;
    let representation = Representation::find(&name)?;
    let view = CurrentView::new(call.host, disp, types, representation, &file.mode)?;
    match info::add(call, info) {
        Ok(()) => Ok(view),
        Err(failure) => {
            view.give_back(call.host);
            Err(failure)
        }
    }
}

/// The displacement that is meant.
fn displacement(call: &Call, disp: i64) -> Outcome<i64> {
    let file = &call.file;
    let is_current = disp == call.host.abi.displacement_current;
    match (file.mode.is_sequential, is_current) {
        (true, true) => {
            let at = file.file.position_shared()?;
            let at = file
                .current()
                .to_file(at)
                .and_then(|at| i64::try_from(at).ok());
            at.ok_or_else(|| Failure::new(Class::Arg, "the shared pointer is beyond 2^63 bytes"))
        }
        (true, false) => Err(Failure::new(
            Class::Arg,
            "disp has to be MPI_DISPLACEMENT_CURRENT for a file opened with MPI_MODE_SEQUENTIAL",
        )),
        (false, true) => Err(Failure::new(
            Class::Arg,
            "disp is MPI_DISPLACEMENT_CURRENT, which needs MPI_MODE_SEQUENTIAL; give a number of bytes",
        )),
        (false, false) if disp < 0 => Err(Failure::new(
            Class::Arg,
            format!("disp is {disp}; give 0 or more bytes"),
        )),
        (false, false) => Ok(disp),
    }
}

/// What holds for all processes.
#[derive(Default)]
struct TeamAgreement {
    /// All of them can access the file together.
    is_together: bool,
    /// One of them has used the shared pointer.
    has_used_shared_pointer: bool,
}

/// Bits of what a process says of itself.
const IS_TOGETHER: u8 = 1;
const HAS_USED_SHARED_POINTER: u8 = 2;

/// Whether all processes have a view, with etypes of one extent and one representation. If not, all fail alike.
fn judge(notes: &[&[u8]]) -> Outcome<TeamAgreement> {
    // The class of a failure and its text, or nothing and what has to be alike.
    let parts: Vec<(u8, u8, &[u8])> = notes
        .iter()
        .map(|said| match said.split_at_checked(2) {
            Some((head, rest)) => (head[0], head[1], rest),
            None => (Class::Intern.index() + 1, 0, &[][..]),
        })
        .collect();
    if let Some(rank) = parts.iter().position(|(class, ..)| *class > 0) {
        let (class, _, text) = parts[rank];
        return Err(Failure::new(
            Class::of_index(class - 1),
            format!("rank {rank}: {}", String::from_utf8_lossy(text)),
        ));
    }
    if let Some(rank) = parts.iter().position(|(.., said)| *said != parts[0].2) {
        return Err(Failure::new(
            Class::NotSame,
            format!(
                "ranks 0 and {rank} gave etypes of different extents or different data representations; all have to give the same"
            ),
        ));
    }
    Ok(TeamAgreement {
        is_together: parts.iter().all(|(_, bits, _)| bits & IS_TOGETHER != 0),
        has_used_shared_pointer: parts
            .iter()
            .any(|(_, bits, _)| bits & HAS_USED_SHARED_POINTER != 0),
    })
}

/// What the other processes are told.
fn told(mine: &Outcome<CurrentView>, has_used_shared_pointer: bool) -> Vec<u8> {
    match mine {
        Ok(view) => {
            let mut bits = 0;
            if view.is_together {
                bits |= IS_TOGETHER;
            }
            if has_used_shared_pointer {
                bits |= HAS_USED_SHARED_POINTER;
            }
            let mut said = vec![0, bits];
            said.extend_from_slice(&view.etype_extent.to_le_bytes());
            said.extend_from_slice(view.representation.name().as_bytes());
            said
        }
        Err(failure) => {
            let mut said = vec![failure.class.index() + 1, 0];
            let text = failure.text.as_bytes();
            said.extend_from_slice(&text[..text.len().min(MOST_TEXT)]);
            said
        }
    }
}

/// `MPI_File_get_view`.
pub(crate) fn get_view(
    call: &Call,
    disp: Out<i64>,
    etype: HandleOut,
    filetype: HandleOut,
    datarep: Out<c_char>,
) -> Outcome {
    let host = call.host;
    let view = call.file.current();
    let copy = |is_predefined: bool, handle| match is_predefined {
        true => Ok(handle),
        false => host.type_dup(handle),
    };
    let first = copy(view.etype.is_predefined, view.etype_handle)?;
    let second = copy(view.filetype.is_predefined, view.filetype_handle)?;
    disp.set(view.displacement);
    etype.set(first);
    filetype.set(second);
    let room = host.abi.max_datarep_string as usize;
    datarep.set_text(view.representation.name(), room);
    Ok(())
}

/// `MPI_File_get_type_extent`.
pub(crate) fn get_type_extent(call: &Call, datatype: Word, extent: Out<i64>) -> Outcome {
    let datatype = datatype::of(call.host, datatype)?;
    let view = call.file.current();
    extent.set(view.representation.in_file(&datatype)?.extent());
    Ok(())
}

/// `MPI_File_get_byte_offset`.
pub(crate) fn get_byte_offset(call: &Call, offset: i64, disp: Out<i64>) -> Outcome {
    call.file.check_random("the shared pointer")?;
    let view = call.file.current();
    let at = view_offset(&view, offset)?;
    let at = view.to_file(at).and_then(|at| i64::try_from(at).ok());
    let at = at.ok_or_else(|| {
        Failure::new(
            Class::Arg,
            format!("offset {offset} is beyond 2^63 bytes of the file"),
        )
    })?;
    disp.set(at);
    Ok(())
}
