//! The others, as the owner of files sees them: the metadata manager, the members, and this server without a socket.
//!
//! What servers ask of each other about a file (cut, how far, fence, tell) is answered by functions of [`Files`]; for
//! this server they are called.

use std::sync::Arc;

use wire::message::cluster::{
    ApplyTruncate, AskEnd, AskNumber, BeginTruncate, EndIs, Fence, FileState, FileStateIs,
    FinishTruncate, ReportSize, Tell,
};
use wire::message::{Refusal, Request};
use wire::{FileId, ServerId, SizeState, Status, Time};

use super::now;
use crate::files::Files;
use crate::owner;
use crate::refused::Refused;

/// See the [module](self).
pub(crate) struct Others(pub(crate) Arc<Files>);

type Tuple = (Status, Refusal);

fn plain<T>(result: Result<T, Refused>) -> Result<T, Tuple> {
    result.map_err(|r| (r.status, r.refusal))
}

impl Others {
    fn ask_manager<R: Request>(&self, request: &R) -> Result<R::Answer, Tuple> {
        plain(self.0.cluster.manager.ask(request).map_err(Refused::from))
    }

    fn ask<R: Request>(
        &self,
        server: ServerId,
        request: &R,
        here: impl FnOnce(&Files) -> Result<R::Answer, Refused>,
    ) -> Result<R::Answer, Tuple> {
        plain(match server == self.0.identity.server {
            true => here(&self.0),
            false => self
                .0
                .cluster
                .ask_member(server, request)
                .map_err(Refused::from),
        })
    }
}

impl owner::Cluster for Others {
    fn own_server(&self) -> ServerId {
        self.0.identity.server
    }

    fn incarnation(&self) -> u64 {
        self.0.identity.incarnation()
    }

    fn now(&self) -> Time {
        now()
    }

    fn file_state(&self, file: FileId) -> Result<FileStateIs, Tuple> {
        self.ask_manager(&FileState { file })
    }

    fn report_size(&self, request: &ReportSize) -> Result<SizeState, Tuple> {
        self.ask_manager(request)
    }

    fn begin_truncate(&self, request: &BeginTruncate) -> Result<SizeState, Tuple> {
        self.ask_manager(request)
    }

    fn finish_truncate(&self, request: &FinishTruncate) -> Result<SizeState, Tuple> {
        self.ask_manager(request)
    }

    fn apply_truncate(&self, server: ServerId, request: &ApplyTruncate) -> Result<(), Tuple> {
        self.ask(server, request, |files| files.apply_truncate(request))
    }

    fn ask_end(&self, server: ServerId, file: FileId) -> Result<EndIs, Tuple> {
        self.ask(server, &AskEnd { file }, |files| files.ask_end(file))
    }

    fn fence(&self, server: ServerId, request: &Fence) -> Result<(), Tuple> {
        self.ask(server, request, |files| files.fence(request.client))
    }

    fn tell(&self, server: ServerId, request: &Tell) -> Result<(), Tuple> {
        self.ask(server, request, |files| files.tell(request))
    }

    fn ask_number(&self, server: ServerId, file: FileId) -> Result<u64, Tuple> {
        self.ask(server, &AskNumber { file }, |files| {
            Ok(files.entry(file).number())
        })
    }
}
