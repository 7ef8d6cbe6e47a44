//! Opening, creating and closing files, and the array that a file holds.
//!
//! A program says what a file holds as a text (`f64[4096,4096]`) or by element type and shape. Closing waits for
//! operations of the file that run beside the program.

use std::ffi::c_int;

use client::{Client, File, OpenOptions};
use layout::{ArrayType, ElementType, Order};
use parking_lot::Mutex;

use crate::connect::{Connection, hints_of};
use crate::entry::{Failure, Outcome, answer};
use crate::ffi::{In, List, Out, Text, set_struct};
use crate::names::mode_of;
use crate::requests::OperationCount;
use crate::structs::*;
use crate::table::Handle;
use crate::teams::Member;

/// An open file of the program.
#[derive(Debug)]
pub(crate) struct OpenFile {
    pub(crate) file: File,
    /// Operations that run beside the program.
    pub(crate) running: OperationCount,
    /// Held while an operation takes its place at the pointer.
    pub(crate) pointer: Mutex<()>,
    /// Whether writes at the pointer go to the end of the file.
    pub(crate) is_append: bool,
}

impl OpenFile {
    fn new(file: File) -> OpenFile {
        OpenFile {
            file,
            running: OperationCount::default(),
            pointer: Mutex::new(()),
            is_append: false,
        }
    }

    /// Waits until no operation runs beside the program.
    pub(crate) fn wait(&self) {
        self.running.wait();
    }

    /// Closes it when its operations are done.
    pub(crate) fn close(&self) -> Outcome {
        self.wait();
        Ok(self.file.close()?)
    }
}

/// Element types by their numbers; bytes are apart.
const ELEMENTS: [(c_int, ElementType); 14] = [
    (PARIO_BOOL, ElementType::Bool),
    (PARIO_U8, ElementType::U8),
    (PARIO_U16, ElementType::U16),
    (PARIO_U32, ElementType::U32),
    (PARIO_U64, ElementType::U64),
    (PARIO_I8, ElementType::I8),
    (PARIO_I16, ElementType::I16),
    (PARIO_I32, ElementType::I32),
    (PARIO_I64, ElementType::I64),
    (PARIO_F16, ElementType::F16),
    (PARIO_F32, ElementType::F32),
    (PARIO_F64, ElementType::F64),
    (PARIO_C64, ElementType::C64),
    (PARIO_C128, ElementType::C128),
];

fn element_of(element: c_int, bytes: u64) -> Outcome<ElementType> {
    if element == PARIO_BYTES && bytes > 0 {
        return Ok(ElementType::Bytes(bytes));
    }
    let known = ELEMENTS.iter().find(|(number, _)| *number == element);
    known.map(|(_, element)| *element).ok_or_else(|| {
        let text = format!(
            "is {element}; give PARIO_F64 or another type, or PARIO_BYTES with element_bytes"
        );
        Failure::argument("element", text)
    })
}

/// Which index varies fastest.
pub(crate) fn order_of(order: c_int) -> Outcome<Order> {
    match order {
        PARIO_ORDER_C => Ok(Order::C),
        PARIO_ORDER_FORTRAN => Ok(Order::Fortran),
        other => Err(Failure::argument(
            "order",
            format!("is {other}; give PARIO_ORDER_C or PARIO_ORDER_FORTRAN"),
        )),
    }
}

fn array_of(
    element: c_int,
    element_bytes: u64,
    shape: List<u64>,
    dimensions: usize,
    order: c_int,
) -> Outcome<ArrayType> {
    let element = element_of(element, element_bytes)?;
    let shape = shape.get("shape", dimensions)?;
    let array = ArrayType::new(element, shape, order_of(order)?);
    array.map_err(|e| Failure::argument("shape", e.detail()))
}

const ALL_FLAGS: c_int = PARIO_READ
    | PARIO_WRITE
    | PARIO_APPEND
    | PARIO_CREATE
    | PARIO_EXCLUSIVE
    | PARIO_TRUNCATE
    | PARIO_UNIQUE
    | PARIO_DELETE_ON_CLOSE
    | PARIO_ATOMIC;

/// What a flag, or a number, changes about the options of the client.
type Change = fn(OpenOptions) -> OpenOptions;
type ChangeByNumber = fn(OpenOptions, u64) -> OpenOptions;

fn options_of(given: &pario_open_options) -> Outcome<OpenOptions> {
    if given.flags & !ALL_FLAGS != 0 {
        let text = format!("are {:#x}, with bits that mean nothing", given.flags);
        return Err(Failure::argument("flags", text));
    }
    let has = |flag: c_int| given.flags & flag != 0;
    let mut options = OpenOptions::new();
    let simple: [(c_int, Change); 8] = [
        (PARIO_READ, OpenOptions::read),
        (PARIO_WRITE, OpenOptions::write),
        (PARIO_APPEND, OpenOptions::append),
        (PARIO_CREATE, OpenOptions::create),
        (PARIO_EXCLUSIVE, OpenOptions::exclusive),
        (PARIO_UNIQUE, OpenOptions::unique),
        (PARIO_DELETE_ON_CLOSE, OpenOptions::delete_on_close),
        (PARIO_ATOMIC, OpenOptions::atomic),
    ];
    for (flag, apply) in simple {
        if has(flag) {
            options = apply(options);
        }
    }
    if has(PARIO_TRUNCATE) && !has(PARIO_WRITE) && !has(PARIO_APPEND) {
        let text = "have PARIO_TRUNCATE; that takes PARIO_WRITE too";
        return Err(Failure::argument("flags", text));
    }
    if let Some(mode) = mode_of(given.mode)? {
        options = options.mode(mode);
    }
    match (given.array.get("array")?, given.element) {
        (Some(_), element) if element != PARIO_NO_ELEMENT => {
            let text = "is given as a text and by element type; give one of them";
            return Err(Failure::argument("array", text));
        }
        (Some(text), _) => options = options.array(text),
        (None, PARIO_NO_ELEMENT) if given.dimensions > 0 => {
            let text = "is given without an element type";
            return Err(Failure::argument("shape", text));
        }
        (None, PARIO_NO_ELEMENT) => {}
        (None, element) => {
            let (shape, dimensions) = (given.shape, given.dimensions);
            let array = array_of(element, given.element_bytes, shape, dimensions, given.order)?;
            options = options.array(array.to_string());
        }
    }
    if let Some(layout) = given.layout.get("layout")? {
        options = options.layout(layout);
    }
    if given.hint_count > 0 {
        options = options.hints(hints_of(given.hints, given.hint_count)?);
    }
    if given.shared_pointer > 0 {
        options = options.shared_pointer(given.shared_pointer);
    }
    let expected: [(u64, ChangeByNumber); 3] = [
        (given.expected_bytes, OpenOptions::expected_size),
        (given.expected_clients, OpenOptions::expected_clients),
        (given.expected_access_bytes, OpenOptions::expected_access),
    ];
    for (number, apply) in expected {
        if number > 0 {
            options = apply(options, number);
        }
    }
    Ok(options)
}

/// Opens by whatever way, and enters the file.
fn enter(
    client: Handle<Connection>,
    options: In<pario_open_options>,
    file: Out<Handle<OpenFile>>,
    open: impl FnOnce(&Client, &OpenOptions) -> Outcome<File>,
) -> Outcome {
    file.required("file")?.set(Handle::NULL);
    let connection = client.get()?;
    let given = options.get("options")?;
    let is_append = given.flags & PARIO_APPEND != 0;
    let mut opened = OpenFile::new(open(&connection.0, &options_of(&given)?)?);
    opened.is_append = is_append;
    if given.flags & PARIO_TRUNCATE != 0 && !opened.file.is_new() {
        opened.file.resize(0)?;
    }
    file.set(Handle::enter(opened, client)?);
    Ok(())
}

/// Opens one subfile of a file as a file.
#[unsafe(no_mangle)]
extern "C" fn pario_open_subfile(
    client: Handle<Connection>,
    path: Text,
    index: u64,
    options: In<pario_open_options>,
    file: Out<Handle<OpenFile>>,
) -> c_int {
    answer("pario_open_subfile", || {
        enter(client, options, file, |client, options| {
            Ok(client.open_subfile(&path.required("path")?, index, options)?)
        })
    })
}

/// Which subfile a file was opened as.
#[unsafe(no_mangle)]
extern "C" fn pario_subfile_about(
    file: Handle<OpenFile>,
    index: Out<u64>,
    count: Out<u64>,
    generation: Out<u64>,
    bytes: Out<u64>,
) -> c_int {
    answer("pario_subfile_about", || {
        let opened = file.get()?;
        let whole = || Failure::argument("file", "was opened as a whole; use pario_open_subfile");
        let subfile = opened.file.subfile().ok_or_else(whole)?;
        index.set(subfile.index);
        count.set(subfile.count);
        generation.set(subfile.generation);
        bytes.set(opened.file.view_len()?);
        Ok(())
    })
}

/// Opens a file.
#[unsafe(no_mangle)]
extern "C" fn pario_open(
    client: Handle<Connection>,
    path: Text,
    options: In<pario_open_options>,
    file: Out<Handle<OpenFile>>,
) -> c_int {
    answer("pario_open", || {
        enter(client, options, file, |client, options| {
            Ok(client.open(&path.required("path")?, options)?)
        })
    })
}

/// Opens a file together with the other members of a team.
#[unsafe(no_mangle)]
extern "C" fn pario_open_all(
    client: Handle<Connection>,
    team: Handle<Member>,
    path: Text,
    options: In<pario_open_options>,
    file: Out<Handle<OpenFile>>,
) -> c_int {
    answer("pario_open_all", || {
        let member = team.get()?;
        member.wait();
        enter(client, options, file, |client, options| {
            Ok(client.open_together(&member.team, &path.required("path")?, options)?)
        })
    })
}

/// Creates a file without opening it.
#[unsafe(no_mangle)]
extern "C" fn pario_create(
    client: Handle<Connection>,
    path: Text,
    options: In<pario_open_options>,
    is_new: Out<c_int>,
) -> c_int {
    answer("pario_create", || {
        let connection = client.get()?;
        let options = options_of(&options.get("options")?)?;
        let created = connection.0.create(&path.required("path")?, &options)?;
        is_new.set(c_int::from(created));
        Ok(())
    })
}

/// Closes a file once operations on it that run beside the program are done.
#[unsafe(no_mangle)]
extern "C" fn pario_close(file: Handle<OpenFile>) -> c_int {
    answer("pario_close", || file.close()?.close())
}

/// Whether a file was created by this opening.
#[unsafe(no_mangle)]
extern "C" fn pario_is_new(file: Handle<OpenFile>, is_new: Out<c_int>) -> c_int {
    answer("pario_is_new", || {
        let new = file.with(|opened| Ok(opened.file.is_new()))?;
        is_new.required("is_new")?.set(c_int::from(new));
        Ok(())
    })
}

/// The array that a file holds; element `PARIO_NO_ELEMENT` if its creator has not said so.
#[unsafe(no_mangle)]
extern "C" fn pario_array(file: Handle<OpenFile>, info: Out<pario_array_info>) -> c_int {
    answer("pario_array", || {
        let opened = file.get()?;
        let Some(array) = opened.file.array() else {
            return set_struct(info, "info", &crate::ffi::Options::DEFAULT);
        };
        let element = array.element();
        let number = ELEMENTS.iter().find(|(_, known)| *known == element);
        let mut shape = [0; 32];
        for (kept, extent) in shape.iter_mut().zip(array.extents()) {
            *kept = *extent;
        }
        let found = pario_array_info {
            size: 0,
            element: number.map_or(PARIO_BYTES, |(number, _)| *number),
            order: match array.order() {
                Order::C => PARIO_ORDER_C,
                Order::Fortran => PARIO_ORDER_FORTRAN,
            },
            element_bytes: element.size(),
            bytes: array.bytes(),
            dimensions: array.dimensions(),
            shape,
        };
        set_struct(info, "info", &found)
    })
}

/// Writes an array as the layout language has it: `f64[4096,4096]`.
#[unsafe(no_mangle)]
extern "C" fn pario_array_text(
    element: c_int,
    element_bytes: u64,
    shape: List<u64>,
    dimensions: usize,
    order: c_int,
    text: TextOut,
) -> c_int {
    answer("pario_array_text", || {
        text.required("text")?.set(std::ptr::null_mut());
        let array = array_of(element, element_bytes, shape, dimensions, order)?;
        text.set_text(&array.to_string())
    })
}
