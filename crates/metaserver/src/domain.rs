//! Changes of who may use a file, told to the servers that have its bytes.
//!
//! Servers keep bytes of files with different owner, group, mode or directory in different memory, because
//! they share it with clients. So they are told when one of these changes, and have moved the bytes when
//! the change is answered. A server that cannot be told learns it when it next asks for the file's state;
//! the change itself never fails for that.

use std::time::Duration;

use meta::FileId;
use meta::catalogue::{Kind, Snapshot};
use wire::LayoutState;
use wire::message::cluster::Redomain;

use crate::committer::Refused;
use crate::manager::{Manager, Session};

/// How long a server may take to move the bytes of a file.
const LIMIT: Duration = Duration::from_secs(20);

/// What memory is kept apart by: owner, group, mode, directory.
type Domain = (u32, u32, u32, FileId);

fn domain_of(snapshot: &Snapshot, file: FileId) -> Option<Domain> {
    let found = snapshot.stat_file(file).ok()?;
    let directory = snapshot.parent_of(file).ok()?;
    (found.kind == Kind::File).then_some((found.owner, found.group, found.mode, directory))
}

impl Manager {
    /// Runs a change of what is at `path`, which is at `to` afterwards if that is another one, and tells
    /// the servers of the file if their memory has to follow.
    pub(crate) fn with_domain(
        &self,
        session: &mut Session,
        path: &str,
        to: Option<&str>,
        change: impl FnOnce(&Manager, &mut Session) -> Result<(), Refused>,
    ) -> Result<(), Refused> {
        let find = |session: &Session, path: &str| {
            let snapshot = self.snapshot().ok()?;
            let file = snapshot.stat(&session.credentials, path).ok()?.file;
            Some((file, domain_of(&snapshot, file)?))
        };
        let before = find(session, path);
        change(self, session)?;
        let after = find(session, to.unwrap_or(path));
        if let (Some((file, before)), Some((same, after))) = (before, after)
            && file == same
            && before != after
        {
            self.tell_domain(file);
        }
        Ok(())
    }

    fn tell_domain(&self, file: FileId) {
        let Ok(snapshot) = self.snapshot() else {
            return;
        };
        let state: Option<LayoutState> = snapshot.layout(file).and_then(|l| l.decode()).ok();
        let Some((state, mut members)) = state.zip(snapshot.members().ok()) else {
            return;
        };
        let places = state.pieces.iter().flat_map(|p| p.places.iter().flatten());
        let servers: Vec<u64> = places.map(|place| place.server).collect();
        members
            .retain(|m| servers.contains(&m.server.0) && self.members.has(m.server, m.incarnation));
        drop(self.ask_all(&members, &Redomain { file }, LIMIT));
    }
}
