//! Connecting and disconnecting, and ending the servers.
//!
//! The source has one connection per process, without a number; so `ViPIOS_Connect` is refused while there is one.

use std::ffi::c_int;
use std::sync::{Arc, Once};

use border::entry::{Failure, Outcome};
use client::{Client, ConnectOptions, ServiceUrl, Status};

use crate::answer::yes;
use crate::state::{OpenFile, new_number, state};
use crate::systems;

/// Connects to what a URL names; what its number is.
fn connect(url: &ServiceUrl) -> Outcome<Client> {
    static LISTEN: Once = Once::new();
    LISTEN.call_once(|| logging::listen(""));
    let directory = embedded::Options::from_env();
    Ok(embedded::connect(
        url,
        ConnectOptions::from_env()?,
        &directory,
    )?)
}

/// The connection of calls that name none.
pub(crate) fn client_of_calls() -> Outcome<(c_int, Client)> {
    let connections = state().connections.lock();
    let found = connections
        .of_calls
        .and_then(|number| Some((number, connections.all.get(&number)?.clone())));
    found.ok_or_else(|| {
        let text = "not connected; call ViPIOS_Connect first";
        Failure::new(Status::BadHandle, text)
    })
}

/// Closes everything that was opened through a connection, and the connection.
fn end(number: c_int) -> Outcome {
    let client = {
        let mut connections = state().connections.lock();
        if connections.of_calls == Some(number) {
            connections.of_calls = None;
        }
        connections.all.remove(&number)
    };
    let mut open: Vec<Arc<OpenFile>> = Vec::new();
    state().files.write().retain(|_, file| {
        let stays = file.connection != number;
        if !stays {
            open.push(Arc::clone(file));
        }
        stays
    });
    let mut failure = None;
    for file in open {
        if let Err(error) = file.close() {
            failure.get_or_insert(error);
        }
    }
    drop(client);
    failure.map_or(Ok(()), Err)
}

/// Makes the connection of calls that name none.
pub(crate) fn connect_calls(system: c_int) -> Outcome {
    let taken = || Failure::new(Status::InUse, "connected already; disconnect first");
    if state().connections.lock().of_calls.is_some() {
        return Err(taken());
    }
    let client = connect(&systems::url_of(system)?)?;
    let number = new_number()?;
    let mut connections = state().connections.lock();
    if connections.of_calls.is_some() {
        // Another thread was first.
        return Err(taken());
    }
    connections.all.insert(number, client);
    connections.of_calls = Some(number);
    Ok(())
}

/// Connects this process.
#[unsafe(no_mangle)]
extern "C" fn ViPIOS_Connect(system_id: c_int) -> bool {
    yes("ViPIOS_Connect", || connect_calls(system_id))
}

/// Closes all files, and ends the connection.
#[unsafe(no_mangle)]
extern "C" fn ViPIOS_Disconnect() -> bool {
    yes("ViPIOS_Disconnect", || end(client_of_calls()?.0))
}

/// Ends all server processes.
#[unsafe(no_mangle)]
extern "C" fn ViPIOS_Shutdown() -> bool {
    yes("ViPIOS_Shutdown", || {
        let (number, client) = client_of_calls()?;
        client.shutdown()?;
        // Nobody is left to close files at.
        let _ = end(number);
        Ok(())
    })
}
