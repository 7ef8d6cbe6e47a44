//! The service behind the files: one connection of the process, and which names are ours.

use std::sync::{Mutex, PoisonError};

use client::Client;

use crate::entry::Outcome;
use crate::failure::{Class, Failure};

static CLIENT: Mutex<Option<Client>> = Mutex::new(None);

/// The connection to what PARIO_URL names; made when it is first needed.
pub(crate) fn client() -> Outcome<Client> {
    let mut client = CLIENT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(client) = &*client {
        return Ok(client.clone());
    }
    let new = embedded::connect_here().map_err(|e| Failure::new(Class::Io, e.to_string()))?;
    *client = Some(new.clone());
    Ok(new)
}

/// The path in Pario of a name that is ours.
pub(crate) fn path_of(name: &str) -> Option<String> {
    name.strip_prefix("pario:").map(str::to_owned)
}
