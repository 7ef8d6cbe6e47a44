//! Hints of files and directories, and servers whose disks failed: what the catalogue knows about them.
//!
//! Who may say what is decided here as far as it depends on the connection: that a disk failed says
//! the server itself, or a client with an open file that is partly there; that it is mended says
//! the user who runs the service.

use wire::Status;
use wire::message::hints::*;

use crate::committer::Refused;
use crate::manager::{Manager, Session, Who, now};

impl Manager {
    pub(crate) fn set_hints(&self, session: &mut Session, r: SetHints) -> Result<(), Refused> {
        self.change_once(session, move |b, caller| {
            b.set_hints(caller, &r.path, &r.set, &r.unset)
        })
    }

    pub(crate) fn get_hints(
        &self,
        session: &mut Session,
        r: GetHints,
    ) -> Result<HintsAre, Refused> {
        let snapshot = self.read(session)?;
        Ok(snapshot.hints(&session.credentials, &r.path)?)
    }

    pub(crate) fn disk_failed(&self, session: &mut Session, r: DiskFailed) -> Result<(), Refused> {
        let from = match session.who {
            Who::Member { server, .. } | Who::Server(server) => Some(server),
            _ => None,
        };
        match (from, r.handle) {
            (Some(server), None) if server == r.server => {
                let at = now();
                self.committer
                    .run(move |b| Ok(b.disk_failed(server, &r.why, false, at)?))
            }
            (None, Some(handle)) => self.change_once(session, move |b, caller| {
                b.disk_failed_hint(caller, handle, r.server, &r.why)
            }),
            _ => Err(Refused::new(
                Status::PermissionDenied,
                "disk_failed: only the server itself says so, or a program with a handle of a file there",
            )),
        }
    }

    pub(crate) fn clear_failed(
        &self,
        session: &mut Session,
        r: ClearFailed,
    ) -> Result<(), Refused> {
        self.demand_operator(session)?;
        self.change_once(session, move |b, _| b.clear_failed(r.server))
    }

    pub(crate) fn list_failed(
        &self,
        session: &mut Session,
        _: ListFailed,
    ) -> Result<Vec<FailedServer>, Refused> {
        Ok(self.read(session)?.failed_servers()?)
    }
}
