//! Views: which bytes of a file a handle shows, by notation or as values made of layouts and patterns.
//!
//! A view is a set of bytes that recurs from its displacement on. One that was made belongs to no file; setting it copies it.

use std::ffi::c_int;

use client::View;
use layout::mpi::{Datatype, FileView};
use layout::{AppliedLayout, ArrayType, FileOffset, Layout, ViewOffset};

use crate::entry::{Failure, Outcome, answer};
use crate::ffi::{Out, Text};
use crate::layouts::{LayoutValue, apply};
use crate::open::OpenFile;
use crate::patterns::Pattern;
use crate::table::Handle;
use crate::teams::Member;

/// A view of the program.
#[derive(Debug)]
pub(crate) struct ViewValue(pub(crate) View);

fn make(
    name: &'static str,
    view: Out<Handle<ViewValue>>,
    value: impl FnOnce() -> Outcome<View>,
) -> c_int {
    answer(name, || {
        view.required("view")?.set(Handle::NULL);
        view.set(Handle::enter(ViewValue(value()?), Handle::NULL)?);
        Ok(())
    })
}

/// The view that a layout with one element is.
fn of_layout(layout: &Layout, applied: &AppliedLayout, displacement: u64) -> Outcome<View> {
    if applied.count() != 1 {
        let text = format!(
            "`{layout}` has {} elements; pick one, as in `{layout} [0]`",
            applied.count()
        );
        return Err(Failure::argument("view", text));
    }
    let set = applied.element(0)?;
    Ok(View::new(FileOffset(displacement), applied.period(), set)?)
}

/// A view in the layout language, on an array or on plain bytes.
pub(crate) fn of_text(text: &str, array: Option<&ArrayType>) -> Outcome<View> {
    let layout: Layout = text.parse()?;
    let applied = match array {
        Some(array) => layout.on_array(array)?,
        None => layout.on_bytes()?,
    };
    of_layout(&layout, &applied, 0)
}

/// A view in the layout language, on an array or on plain bytes.
#[unsafe(no_mangle)]
extern "C" fn pario_view_parse(
    text: Text,
    array: Text,
    displacement: u64,
    view: Out<Handle<ViewValue>>,
) -> c_int {
    make("pario_view_parse", view, || {
        let layout: Layout = text.required("text")?.parse()?;
        of_layout(&layout, &apply(&layout, array)?, displacement)
    })
}

/// A view of one element of a layout, on an array or on plain bytes.
#[unsafe(no_mangle)]
extern "C" fn pario_view_of_layout(
    layout: Handle<LayoutValue>,
    element: u64,
    array: Text,
    displacement: u64,
    view: Out<Handle<ViewValue>>,
) -> c_int {
    make("pario_view_of_layout", view, || {
        let layout = layout.get()?.0.clone();
        let layout = match layout.picked() {
            Some(_) => layout,
            None => layout.pick(element)?,
        };
        of_layout(&layout, &apply(&layout, array)?, displacement)
    })
}

/// A view of a pattern, again and again by its extent.
#[unsafe(no_mangle)]
extern "C" fn pario_view_of_pattern(
    pattern: Handle<Pattern>,
    displacement: u64,
    view: Out<Handle<ViewValue>>,
) -> c_int {
    make("pario_view_of_pattern", view, || {
        let displacement = i64::try_from(displacement)
            .map_err(|_| Failure::argument("displacement", "is beyond 2^63 - 1"))?;
        let datatype = pattern.get()?.datatype.clone();
        let periodic =
            FileView::new(displacement, &Datatype::basic(1)?, &datatype)?.to_periodic()?;
        let set = periodic.set().clone();
        Ok(View::new(
            FileOffset(periodic.displacement()),
            periodic.period(),
            set,
        )?)
    })
}

/// The byte of a file that a byte of a view is.
#[unsafe(no_mangle)]
extern "C" fn pario_view_to_file(view: Handle<ViewValue>, byte: u64, offset: Out<u64>) -> c_int {
    answer("pario_view_to_file", || {
        let found = view.get()?.0.view_to_file(ViewOffset(byte));
        let text = || Failure::argument("byte", format!("{byte} is behind the end of the view"));
        offset.required("offset")?.set(found.ok_or_else(text)?.0);
        Ok(())
    })
}

/// The byte of a view that a byte of a file is, if it is one.
#[unsafe(no_mangle)]
extern "C" fn pario_file_to_view(
    view: Handle<ViewValue>,
    offset: u64,
    is_seen: Out<c_int>,
    byte: Out<u64>,
) -> c_int {
    answer("pario_file_to_view", || {
        is_seen.required("is_seen")?;
        let found = view.get()?.0.file_to_view(FileOffset(offset));
        is_seen.set(c_int::from(found.is_some()));
        byte.set(found.map_or(0, |byte| byte.0));
        Ok(())
    })
}

/// Bytes of a view in a file of so many bytes.
#[unsafe(no_mangle)]
extern "C" fn pario_view_bytes(view: Handle<ViewValue>, file_bytes: u64, bytes: Out<u64>) -> c_int {
    answer("pario_view_bytes", || {
        let len = view.get()?.0.len_within(file_bytes);
        bytes.required("bytes")?.set(len);
        Ok(())
    })
}

/// Ends a view; files that show it go on doing so.
#[unsafe(no_mangle)]
extern "C" fn pario_view_free(view: Handle<ViewValue>) -> c_int {
    answer("pario_view_free", || view.close().map(drop))
}

/// Sets the view of a file in the layout language; the whole file for a null pointer.
#[unsafe(no_mangle)]
extern "C" fn pario_set_view(file: Handle<OpenFile>, displacement: u64, text: Text) -> c_int {
    answer("pario_set_view", || {
        let opened = file.get()?;
        opened.wait();
        match text.get("text")? {
            Some(text) => opened.file.set_view_text_at(displacement, &text)?,
            None if displacement == 0 => opened.file.set_view(&View::whole_file())?,
            None => opened.file.set_view_text_at(displacement, "whole")?,
        }
        Ok(())
    })
}

/// Sets the view of a file to one that was made.
#[unsafe(no_mangle)]
extern "C" fn pario_apply_view(file: Handle<OpenFile>, view: Handle<ViewValue>) -> c_int {
    answer("pario_apply_view", || {
        let (opened, view) = (file.get()?, view.get()?);
        opened.wait();
        Ok(opened.file.set_view(&view.0)?)
    })
}

/// Sets the view of a file in the layout language while all other members of the team set theirs.
#[unsafe(no_mangle)]
extern "C" fn pario_set_view_all(
    file: Handle<OpenFile>,
    team: Handle<Member>,
    text: Text,
) -> c_int {
    answer("pario_set_view_all", || {
        let (opened, member) = (file.get()?, team.get()?);
        let text = text.required("text")?;
        opened.wait();
        member.wait();
        Ok(opened.file.set_view_text_together(&member.team, &text)?)
    })
}

/// Sets the view of a file to one that was made while all other members of the team set theirs.
#[unsafe(no_mangle)]
extern "C" fn pario_apply_view_all(
    file: Handle<OpenFile>,
    team: Handle<Member>,
    view: Handle<ViewValue>,
) -> c_int {
    answer("pario_apply_view_all", || {
        let (opened, member, view) = (file.get()?, team.get()?, view.get()?);
        opened.wait();
        member.wait();
        Ok(opened.file.set_view_together(&member.team, &view.0)?)
    })
}
