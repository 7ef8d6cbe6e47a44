//! `SetView`: registering a view. The capability is checked, the description validated, the quota kept.
//!
//! A long description arrives in parts (`SetViewPart`); it counts against the quota from its announcement on.

use std::sync::Arc;

use control::capability::{Capability, RequestNeeds};
use layout::View;
use wire::describe::{self, Assembly};
use wire::message::file::SetView;
use wire::{ClientId, FileId, Reader, Rights, Status};

use crate::context::{Identity, now_ms};
use crate::files::Files;
use crate::refused::Refused;
use crate::sessions::{PendingView, Session};
use crate::views::RegisteredView;

/// What a capability allows, and to whom.
pub(crate) struct Permit {
    pub(crate) rights: Rights,
    /// Until when, in milliseconds since 1970.
    pub(crate) expires_ms: u64,
    /// The client that another server works for.
    pub(crate) works_for: Option<ClientId>,
    /// As it was shown.
    pub(crate) capability: Vec<u8>,
}

/// What the whole file is described by.
fn whole_file() -> Vec<u8> {
    let mut out = Vec::new();
    describe::put_view(&mut out, &View::whole_file());
    out
}

/// Serves [`SetView`]: registers a view, or begins to.
pub(crate) fn set_view(files: &Files, session: &Session, request: SetView) -> Result<(), Refused> {
    let (view, file, client) = (request.view, request.file.0, session.client.id.0);
    let done = try_set_view(files, session, request);
    if let Err(refused) = &done {
        let (status, why) = (refused.status, &refused.refusal.text);
        tracing::info!(client, file, view, %status, why, "view refused");
    }
    done
}

fn try_set_view(files: &Files, session: &Session, request: SetView) -> Result<(), Refused> {
    let permit = check_capability(&files.identity, session, &request)?;
    let client = &session.client;
    let described = request.description.0.len() as u64;
    let announced = request.description_bytes;
    if described > announced {
        let text = format!("description: {described} bytes where {announced} were announced");
        return Err(Refused::new(Status::InvalidArgument, text));
    }
    // A number that is used again stands for the new view only.
    if let Some(before) = client.take_pending(request.view) {
        client.give_up(before.announced);
    }
    if announced == 0 {
        let description = whole_file();
        client.take_quota(description.len() as u64)?;
        return register(
            files,
            session,
            request.view,
            request.file,
            &permit,
            description,
        );
    }
    client.take_quota(announced)?;
    if described == announced {
        return register(
            files,
            session,
            request.view,
            request.file,
            &permit,
            request.description.0,
        );
    }
    let mut assembly = Assembly::new(announced, files.storage.limits.view_bytes)?;
    assembly.add(&request.description.0)?;
    let pending = PendingView {
        file: request.file,
        permit,
        announced,
        assembly,
    };
    client.put_pending(request.view, pending)
}

fn check_capability(
    identity: &Identity,
    session: &Session,
    request: &SetView,
) -> Result<Permit, Refused> {
    let token = &request.capability.0;
    let works_for = match session.is_server() {
        true if token.is_empty() => {
            return Ok(Permit {
                rights: Rights::READ,
                expires_ms: u64::MAX,
                works_for: None,
                capability: Vec::new(),
            });
        }
        // Another server works for the client that the capability was issued to.
        true => match Capability::unseal(token, &identity.key) {
            Ok(capability) => Some(capability.client),
            Err(e) => return Err(Refused::new(e.status(), e.to_string())),
        },
        false => None,
    };
    let wanted = RequestNeeds {
        file: request.file,
        oldest_generation: 0,
        rights: Rights::NONE,
        client: works_for.unwrap_or(session.client.id),
    };
    match Capability::verify(token, &identity.key, now_ms(), &wanted) {
        Ok(capability) => Ok(Permit {
            rights: capability.rights,
            expires_ms: capability.expires_ms,
            works_for,
            capability: token.clone(),
        }),
        Err(e) => Err(Refused::new(e.status(), e.to_string())),
    }
}

/// Validates a description whose quota was taken, and binds the number to it.
pub(super) fn register(
    files: &Files,
    session: &Session,
    number: u64,
    file: FileId,
    permit: &Permit,
    description: Vec<u8>,
) -> Result<(), Refused> {
    let mut reader = Reader::new(&description);
    let view = describe::view(&mut reader).and_then(|view| reader.finish().map(|()| view));
    match view {
        Ok(view) => {
            let entry = files.entry(file);
            let description = Arc::from(description);
            let registered = RegisteredView::new(
                entry,
                view,
                description,
                permit,
                session.client.id,
                Arc::clone(&files.sessions.seen_uses),
            );
            session.client.register(number, registered);
            Ok(())
        }
        Err(e) => {
            session.client.give_up(description.len() as u64);
            Err(Refused::new(
                Status::InvalidArgument,
                format!("description: {e}"),
            ))
        }
    }
}
