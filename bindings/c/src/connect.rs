//! Clients: connecting by URL, and the end of a connection.
//!
//! Everything that was opened through a client goes with it. Options are those of the environment, unless the program
//! gives its own.

use std::ffi::c_int;
use std::time::Duration;

use client::{Client, ConnectOptions, Hints, ServiceUrl};

use crate::entry::{Failure, Outcome, answer};
use crate::ffi::{In, List, Out, Text};
use crate::structs::{PARIO_OFF, PARIO_ON, pario_connect_options, pario_hint};
use crate::table::{AnyResource, Handle, close_owned};

/// A connection of the program.
#[derive(Debug)]
pub(crate) struct Connection(pub(crate) Client);

/// Hints of a program.
pub(crate) fn hints_of(hints: List<pario_hint>, count: usize) -> Outcome<Hints> {
    let mut all = Hints::new();
    for hint in hints.get("hints", count)? {
        let name = hint.name.required("hint name")?;
        all.set(&name, &hint.value.required("hint value")?)?;
    }
    Ok(all)
}

/// What a member that is on, off or left alone says.
fn switch(name: &str, value: c_int) -> Outcome<Option<bool>> {
    match value {
        0 => Ok(None),
        PARIO_ON => Ok(Some(true)),
        PARIO_OFF => Ok(Some(false)),
        other => Err(Failure::argument(
            name,
            format!("is {other}; give 0, PARIO_ON or PARIO_OFF"),
        )),
    }
}

fn connection_of(given: &pario_connect_options) -> Outcome<(ConnectOptions, embedded::Options)> {
    let is_alone = given.no_environment != 0;
    let (mut options, mut directory) = match is_alone {
        true => (ConnectOptions::default(), embedded::Options::default()),
        false => (ConnectOptions::from_env()?, embedded::Options::from_env()),
    };
    if let Some(file) = given.secret_file.get("secret_file")? {
        options = options.with_secret_file(file.as_ref())?;
    }
    if let Some(application) = given.application.get("application")? {
        options = options.with_application(&application);
    }
    if given.hint_count > 0 {
        options = options.with_hints(hints_of(given.hints, given.hint_count)?)?;
    }
    if given.timeout_ms > 0 {
        options = options.with_timeout(Duration::from_millis(given.timeout_ms));
    }
    if given.processes > 0 {
        if given.rank >= given.processes {
            let text = format!("is {}, but there are {}", given.rank, given.processes);
            return Err(Failure::argument("rank", text));
        }
        options = options.with_rank(given.rank, given.processes);
    }
    if let Some(direct) = switch("direct", given.direct)? {
        options = options.with_direct(direct);
    }
    if let Some(checksums) = switch("checksums", given.checksums)? {
        options = options.with_checksums(checksums);
    }
    if let Some(profile) = switch("profile", given.profile)? {
        options = options.with_profile(profile);
    }
    if given.servers > 0 {
        directory.servers = usize::try_from(given.servers)
            .ok()
            .filter(|n| *n <= 1024)
            .ok_or_else(|| Failure::argument("servers", "are more than 1024"))?;
    }
    if given.memory_bytes > 0 {
        directory.memory_bytes = given.memory_bytes;
    }
    Ok((options, directory))
}

/// Connects to what a URL names; to what `PARIO_URL` names if there is none.
#[unsafe(no_mangle)]
extern "C" fn pario_connect(
    url: Text,
    options: In<pario_connect_options>,
    client: Out<Handle<Connection>>,
) -> c_int {
    answer("pario_connect", || {
        client.required("client")?.set(Handle::NULL);
        static LISTEN: std::sync::Once = std::sync::Once::new();
        LISTEN.call_once(|| logging::listen(""));
        let url = match url.get("url")? {
            Some(text) => text.parse::<ServiceUrl>().map_err(|e| {
                let text = format!("{e}; give dir:PATH, job:, unix:PATH or tcp:HOST:PORT");
                Failure::argument("url", text)
            })?,
            None => embedded::url_here()?,
        };
        let (options, directory) = connection_of(&options.get("options")?)?;
        let connection = Connection(embedded::connect(&url, options, &directory)?);
        client.set(Handle::enter(connection, Handle::NULL)?);
        Ok(())
    })
}

/// Closes everything that was opened through a client, and the client.
#[unsafe(no_mangle)]
extern "C" fn pario_disconnect(client: Handle<Connection>) -> c_int {
    answer("pario_disconnect", || {
        let connection = client.close()?;
        let mut failure = None;
        for kept in close_owned(client) {
            if let AnyResource::OpenFile(file) = &kept
                && let Err(error) = file.close()
            {
                failure.get_or_insert(error);
            }
            // A request or team that is left goes on by itself to its end.
        }
        drop(connection);
        failure.map_or(Ok(()), Err)
    })
}

/// The number of a client in its service.
#[unsafe(no_mangle)]
extern "C" fn pario_client_number(client: Handle<Connection>, number: Out<u64>) -> c_int {
    answer("pario_client_number", || {
        number.required("number")?;
        number.set(client.get()?.0.id().0);
        Ok(())
    })
}
