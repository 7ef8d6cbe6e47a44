//! What I/O servers ask about files: their durable state, their sizes, truncates.
//!
//! Only servers of the cluster may ask. A truncate is asked by the owner of a file for a client, whose
//! handle is checked here once more. A server that does not own the file any more, and was not told so, is refused what
//! only the owner may do, with the state that says who does.

use meta::catalogue::{Batch, Caller, Identity};
use wire::message::cluster::{BeginTruncate, FileState, FileStateIs, FinishTruncate, ReportSize};
use wire::message::session::Credentials;
use wire::message::{Bytes, Refusal, Request};
use wire::{FileId, ServerId, SizeState, Status};

use crate::committer::Refused;
use crate::manager::{Manager, Session, now};
use crate::note::Note;

impl Manager {
    pub(crate) fn file_state(
        &self,
        session: &mut Session,
        r: FileState,
    ) -> Result<FileStateIs, Refused> {
        session.demand_server()?;
        let snapshot = self.snapshot()?;
        let attributes = snapshot.stat_file(r.file)?;
        let note = Note {
            path: snapshot.path_of(r.file)?.unwrap_or_default(),
            array: attributes.array,
            layout: attributes.layout,
            next: snapshot.next_layout(r.file)?,
        };
        Ok(FileStateIs {
            layout: snapshot.layout(r.file)?.decode()?,
            size: snapshot.size(r.file)?,
            owner: attributes.owner,
            group: attributes.group,
            mode: attributes.mode,
            directory: snapshot.parent_of(r.file)?,
            note: Bytes(note.encode()),
        })
    }

    pub(crate) fn report_size(
        &self,
        session: &mut Session,
        r: ReportSize,
    ) -> Result<SizeState, Refused> {
        let server = session.demand_server()?;
        self.committer.run(move |b| {
            demand_owner(b, r.file, server)?;
            Ok(b.report_size(r.file, r.epoch, r.size, r.modified)?)
        })
    }

    pub(crate) fn begin_truncate(
        &self,
        session: &mut Session,
        r: BeginTruncate,
    ) -> Result<SizeState, Refused> {
        let server = session.demand_server()?;
        let now = now();
        // A round of a move and a truncate take turns.
        let _turn = match self.moves.len() {
            0 => None,
            _ => {
                let (client, handle) = (r.client, r.handle);
                let file = self.committer.run(move |b| {
                    let caller = Caller {
                        client,
                        credentials: &Credentials::ROOT,
                        now,
                    };
                    Ok(b.opened(&caller, handle)?.file)
                })?;
                self.moves.cutting(file)
            }
        };
        self.committer.run(move |b| {
            let caller = Caller {
                client: r.client,
                // The handle says what it may; who is behind it was asked when it was opened.
                credentials: &Credentials::ROOT,
                now,
            };
            let file = b.opened(&caller, r.handle)?.file;
            demand_owner(b, file, server)?;
            let asked = Identity {
                client: r.client,
                number: r.request,
                kind: BeginTruncate::KIND,
                // The owner is not told; a client that comes back late is refused before this.
                is_repeated: false,
            };
            Ok(b.begin_truncate_once(&caller, asked, r.handle, r.to)?)
        })
    }

    pub(crate) fn finish_truncate(
        &self,
        session: &mut Session,
        r: FinishTruncate,
    ) -> Result<SizeState, Refused> {
        let server = session.demand_server()?;
        self.committer.run(move |b| {
            demand_owner(b, r.file, server)?;
            Ok(b.finish_truncate(r.file, r.epoch)?)
        })
    }
}

/// Refuses a server that does not own the file.
fn demand_owner(b: &Batch<'_>, file: FileId, server: ServerId) -> Result<(), Refused> {
    let layout = b.layout(file)?;
    let owner = ServerId(layout.owner()?.server);
    if owner == server {
        return Ok(());
    }
    let text = format!("{file} is owned by {owner}, not by {server}");
    let detail = Bytes(layout.bytes().to_vec());
    Err(Refused(Status::StaleLayout, Refusal { text, detail }))
}
