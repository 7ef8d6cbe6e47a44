//! `MPI_File_create_errhandler`: handlers of the program, whose answer is the code that a call returns.
//!
//! A handler gets a pointer to the code "to be returned by the MPI routine that raised the error" and may change what is
//! there. Handlers are the host's, and it calls them for us (`MPI_File_call_errhandler`), but does not say what they
//! answered. So a handler is made with a function of ours that calls the program's and takes note.
//!
//! Invariants
//! - Arguments pass as they come: what they are in another language is the host's affair.
//! - There are [`PLACES`] functions of ours. The program's own is used when all are taken: then the answer is not known.
//! - A function of the program has one place for ever; handlers that are freed may still belong to files.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::entry;
use crate::ffi::{HandleOut, Word};

/// A handler: the file, the code, and what the library adds, which is at most two words in all of them.
type Handler = extern "C-unwind" fn(*mut c_void, *mut c_int, *mut c_void, *mut c_void);

/// How many functions of a program can be handlers with an answer.
const PLACES: usize = 16;

/// The functions of the program; 0 where none is.
static FUNCTIONS: [AtomicUsize; PLACES] = [const { AtomicUsize::new(0) }; PLACES];

/// Ours, one for each place.
static OURS: [Handler; PLACES] = [
    pass::<0>, pass::<1>, pass::<2>, pass::<3>, pass::<4>, pass::<5>, pass::<6>, pass::<7>,
    pass::<8>, pass::<9>, pass::<10>, pass::<11>, pass::<12>, pass::<13>, pass::<14>, pass::<15>,
];

thread_local! {
    /// What the handler that was called last by this thread answered.
    static ANSWER: Cell<Option<c_int>> = const { Cell::new(None) };
}

/// `MPI_File_create_errhandler`.
pub(crate) fn create_errhandler(function: Word, errhandler: HandleOut) -> c_int {
    let function = place(function.0).map_or(function, |place| Word(OURS[place] as usize));
    entry::theirs("MPI_File_create_errhandler", |host| {
        // SAFETY: the arguments are the caller's, or a function of ours in place of his.
        host.files
            .File_create_errhandler
            .map(|f| unsafe { f(function, errhandler) })
    })
}

/// The code that a handler answers with when `call` has it called with `code`; `code` itself where that is not known.
pub(crate) fn answer_of(code: c_int, call: impl FnOnce()) -> c_int {
    ANSWER.set(None);
    call();
    ANSWER.take().unwrap_or(code)
}

/// The place of a function of the program, which is taken if it has none; nothing if all are taken, or for no function.
fn place(function: usize) -> Option<usize> {
    if function == 0 {
        return None;
    }
    FUNCTIONS.iter().position(|place| {
        let taken = place.compare_exchange(0, function, Ordering::AcqRel, Ordering::Acquire);
        taken.is_ok() || taken == Err(function)
    })
}

/// Calls the program's handler at a place.
extern "C-unwind" fn pass<const PLACE: usize>(
    file: *mut c_void,
    code: *mut c_int,
    first: *mut c_void,
    second: *mut c_void,
) {
    let function = FUNCTIONS[PLACE].load(Ordering::Acquire);
    // SAFETY: the program gave it as a handler. Those that take fewer arguments do not look at the others.
    let handler: Handler = unsafe { std::mem::transmute(function) };
    handler(file, code, first, second);
    if !code.is_null() {
        // SAFETY: the host gives a place for a code.
        ANSWER.set(Some(unsafe { code.read() }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    extern "C-unwind" fn forgives(
        _: *mut c_void,
        code: *mut c_int,
        _: *mut c_void,
        _: *mut c_void,
    ) {
        // SAFETY: the test gives a code.
        unsafe { *code = 0 };
    }

    extern "C-unwind" fn looks(_: *mut c_void, _: *mut c_int, _: *mut c_void, _: *mut c_void) {}

    #[test]
    fn the_answer_is_what_a_handler_leaves_and_the_code_where_it_is_not_known() {
        let call = |handler: Handler, mut code: c_int| {
            let at = place(handler as usize).expect("a place");
            assert_eq!(place(handler as usize), Some(at), "one place for ever");
            let nothing = std::ptr::null_mut();
            answer_of(code, || OURS[at](nothing, &raw mut code, nothing, nothing))
        };
        assert_eq!(call(forgives, 7), 0);
        assert_eq!(call(looks, 7), 7);
        assert_eq!(answer_of(9, || ()), 9, "nothing is left from before");
        assert_eq!(place(0), None);
    }
}
