//! Moving a file into another layout while it is used, and following that by asking or by being called.
//!
//! The service moves; a move goes on whether or not anybody follows it.

use std::ffi::c_int;
use std::time::Duration;

use client::{Client, MoveOptions, MoveState, Progress, Relayout, ServerId, Status};
use parking_lot::{Condvar, Mutex};

use crate::connect::Connection;
use crate::entry::{Failure, Outcome, answer};
use crate::ffi::{Address, In, List, Out, Text, set_struct};
use crate::structs::*;
use crate::table::Handle;

/// First and longest pause between two looks at a move.
const PAUSES: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(100));

/// A move that is followed.
#[derive(Debug)]
pub(crate) struct Move(Mutex<Relayout>);

fn state_of(state: MoveState) -> c_int {
    match state {
        MoveState::Done => PARIO_DONE,
        MoveState::Failed => PARIO_FAILED,
        MoveState::Paused => PARIO_PAUSED,
        MoveState::Waiting => PARIO_WAITING,
        MoveState::Cancelling => PARIO_CANCELLING,
        MoveState::Cancelled => PARIO_CANCELLED,
        _ => PARIO_MOVING,
    }
}

fn shown(progress: &Progress) -> pario_progress {
    pario_progress {
        size: size_of::<pario_progress>(),
        file: progress.file.0,
        generation: progress.generation,
        moved_bytes: progress.moved_bytes,
        total_bytes: progress.total_bytes,
        rate_bytes: progress.rate_bytes,
        lanes: progress.lanes,
        limit_bytes: progress.limit_bytes,
        state: state_of(progress.state),
        is_over: c_int::from(progress.state.is_over()),
    }
}

fn show(progress: &Progress, out: Out<pario_progress>) -> Outcome {
    match out.address().is_null() {
        true => Ok(()),
        false => set_struct(out, "progress", &shown(progress)),
    }
}

fn options_of(options: In<pario_move_options>) -> Outcome<MoveOptions> {
    let given = options.get("options")?;
    Ok(MoveOptions {
        limit_bytes: given.limit_bytes,
        window_bytes: given.window_bytes,
        lanes: given.lanes,
        in_place: given.in_place != 0,
    })
}

fn begin(
    client: Handle<Connection>,
    relayout: Out<Handle<Move>>,
    begin: impl FnOnce(&Client) -> Outcome<Relayout>,
) -> Outcome {
    relayout.required("relayout")?.set(Handle::NULL);
    let begun = begin(&client.get()?.0)?;
    relayout.set(Handle::enter(Move(Mutex::new(begun)), client)?);
    Ok(())
}

/// Begins to move a file into another layout.
#[unsafe(no_mangle)]
extern "C" fn pario_relayout(
    client: Handle<Connection>,
    path: Text,
    layout: Text,
    options: In<pario_move_options>,
    relayout: Out<Handle<Move>>,
) -> c_int {
    answer("pario_relayout", || {
        let (path, layout) = (path.required("path")?, layout.required("layout")?);
        let options = options_of(options)?;
        begin(client, relayout, |client| {
            Ok(client.relayout_with(&path, &layout, &options)?)
        })
    })
}

/// Begins to move the subfiles of a file to other servers.
#[unsafe(no_mangle)]
extern "C" fn pario_move_subfiles(
    client: Handle<Connection>,
    path: Text,
    servers: List<u64>,
    count: usize,
    options: In<pario_move_options>,
    relayout: Out<Handle<Move>>,
) -> c_int {
    answer("pario_move_subfiles", || {
        let (path, options) = (path.required("path")?, options_of(options)?);
        let servers = servers.get("servers", count)?;
        let servers: Vec<ServerId> = servers.into_iter().map(ServerId).collect();
        begin(client, relayout, |client| {
            Ok(client.move_subfiles(&path, &servers, &options)?)
        })
    })
}

/// Follows a move that is under way, or was the last.
#[unsafe(no_mangle)]
extern "C" fn pario_follow_relayout(
    client: Handle<Connection>,
    path: Text,
    relayout: Out<Handle<Move>>,
) -> c_int {
    answer("pario_follow_relayout", || {
        let path = path.required("path")?;
        begin(
            client,
            relayout,
            |client| Ok(client.follow_relayout(&path)?),
        )
    })
}

/// How far a move has come.
#[unsafe(no_mangle)]
extern "C" fn pario_relayout_progress(
    relayout: Handle<Move>,
    progress: Out<pario_progress>,
) -> c_int {
    answer("pario_relayout_progress", || {
        progress.required("progress")?;
        let now = relayout.get()?.0.lock().progress()?;
        show(&now, progress)
    })
}

macro_rules! controls {
    ($($(#[$doc:meta])* $name:ident = $method:ident;)*) => {$(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        extern "C" fn $name(relayout: Handle<Move>) -> c_int {
            answer(stringify!($name), || {
                relayout.get()?.0.lock().$method()?;
                Ok(())
            })
        }
    )*};
}

controls! {
    /// Lets a move rest.
    pario_relayout_pause = pause;
    /// Lets a move go on.
    pario_relayout_resume = resume;
    /// Moves everything back.
    pario_relayout_cancel = cancel;
}

/// Lets a move take so many bytes a second at most; 0 is no limit.
#[unsafe(no_mangle)]
extern "C" fn pario_relayout_limit(relayout: Handle<Move>, bytes_per_second: u64) -> c_int {
    answer("pario_relayout_limit", || {
        relayout.get()?.0.lock().limit(bytes_per_second)?;
        Ok(())
    })
}

/// Nobody tells the end of a move: it is asked for again after a pause.
fn rest(pause: Duration) {
    let nobody = Condvar::new();
    nobody.wait_for(&mut Mutex::new(()).lock(), pause);
}

/// Waits until a move is over; the program's function hears how far it is, and may end the wait.
#[unsafe(no_mangle)]
extern "C" fn pario_relayout_wait(
    relayout: Handle<Move>,
    callback: ProgressCallback,
    user: Address,
    progress: Out<pario_progress>,
) -> c_int {
    answer("pario_relayout_wait", || {
        let follow = relayout.get()?;
        let (mut pause, longest) = PAUSES;
        loop {
            // Not held while the program is called, or others may not pause the move.
            let now = follow.0.lock().progress()?;
            let shown = shown(&now);
            let ends = callback.is_some_and(|call| call(&raw const shown, user.pointer()) != 0);
            show(&now, progress)?;
            match now.state {
                MoveState::Failed => {
                    let text = format!("the move cannot go on: {}", now.failure);
                    return Err(Failure::new(Status::Io, text));
                }
                state if state.is_over() || ends => return Ok(()),
                _ => rest(pause),
            }
            pause = (pause * 2).min(longest);
        }
    })
}

/// Why a move failed, is paused or waits; an empty text if it does not.
#[unsafe(no_mangle)]
extern "C" fn pario_relayout_why(relayout: Handle<Move>, text: TextOut) -> c_int {
    answer("pario_relayout_why", || {
        text.required("text")?.set(std::ptr::null_mut());
        let now = relayout.get()?.0.lock().progress()?;
        text.set_text(&now.failure)
    })
}

/// Stops following a move, which goes on.
#[unsafe(no_mangle)]
extern "C" fn pario_relayout_free(relayout: Handle<Move>) -> c_int {
    answer("pario_relayout_free", || relayout.close().map(drop))
}
