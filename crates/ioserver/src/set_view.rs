//! Registering views: the capability is checked, the description validated, the quota kept.
//!
//! A long description arrives in parts; it counts against the quota from its announcement on.

use std::sync::Arc;

use control::capability::{Capability, Wanted};
use layout::View;
use wire::describe::{self, Assembly};
use wire::message::file::{DropView, SetView, SetViewPart};
use wire::{FileId, Reader, Rights, Status};

use crate::context::{Context, now};
use crate::refused::Refused;
use crate::sessions::{Pending, QUOTA_BYTES, Session};
use crate::views::Registered;

/// What the whole file is described by.
fn whole_file() -> Vec<u8> {
    let mut out = Vec::new();
    describe::put_view(&mut out, &View::whole_file());
    out
}

/// Registers a view, or begins to.
pub(crate) fn set_view(
    context: &Context,
    session: &Session,
    request: SetView,
) -> Result<(), Refused> {
    let rights = check_capability(context, session, &request)?;
    let client = &session.client;
    let described = request.description.0.len() as u64;
    let announced = request.description_bytes;
    if described > announced {
        return Err(Refused::new(
            Status::InvalidArgument,
            format!("description: {described} bytes where {announced} were announced"),
        ));
    }
    // A number that is used again stands for the new view only.
    if let Some(before) = client.take_pending(request.view) {
        client.give_up(before.announced);
    }
    if announced == 0 {
        let description = whole_file();
        client.take_quota(description.len() as u64)?;
        return register(
            context,
            session,
            request.view,
            request.file,
            rights,
            description,
        );
    }
    client.take_quota(announced)?;
    if described == announced {
        return register(
            context,
            session,
            request.view,
            request.file,
            rights,
            request.description.0,
        );
    }
    let mut assembly = Assembly::new(announced, QUOTA_BYTES)?;
    assembly.add(&request.description.0)?;
    let pending = Pending {
        file: request.file,
        rights,
        announced,
        assembly,
    };
    client.put_pending(request.view, pending)
}

/// Adds a part; the last one registers the view.
pub(crate) fn set_view_part(
    context: &Context,
    session: &Session,
    request: &SetViewPart,
) -> Result<(), Refused> {
    let client = &session.client;
    let Some(mut pending) = client.take_pending(request.view) else {
        return Err(Refused::new(
            Status::UnknownView,
            format!("view {} has no description on its way", request.view),
        ));
    };
    if let Err(e) = pending.assembly.add(&request.part.0) {
        client.give_up(pending.announced);
        return Err(e.into());
    }
    match pending.assembly.complete().map(<[u8]>::to_vec) {
        Some(description) => register(
            context,
            session,
            request.view,
            pending.file,
            pending.rights,
            description,
        ),
        None => client.put_pending(request.view, pending),
    }
}

/// Forgets a view.
pub(crate) fn drop_view(session: &Session, request: &DropView) -> Result<(), Refused> {
    session.client.drop_view(request.view)
}

fn check_capability(
    context: &Context,
    session: &Session,
    request: &SetView,
) -> Result<Rights, Refused> {
    if session.is_server() {
        return Ok(Rights::READ);
    }
    let wanted = Wanted {
        file: request.file,
        oldest_generation: 0,
        rights: Rights::NONE,
        client: session.client.id,
    };
    let now_ms = u64::try_from(now().0 / 1_000_000).unwrap_or(0);
    match Capability::verify(&request.capability.0, &context.key, now_ms, &wanted) {
        Ok(capability) => Ok(capability.rights),
        Err(e) => Err(Refused::new(e.status(), e.to_string())),
    }
}

/// Validates a description whose quota was taken, and binds the number to it.
fn register(
    context: &Context,
    session: &Session,
    number: u64,
    file: FileId,
    rights: Rights,
    description: Vec<u8>,
) -> Result<(), Refused> {
    let mut reader = Reader::new(&description);
    let view = describe::view(&mut reader).and_then(|view| reader.finish().map(|()| view));
    match view {
        Ok(view) => {
            let entry = context.entry(file);
            let description = Arc::from(description);
            session
                .client
                .register(number, Registered::new(entry, rights, view, description));
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
