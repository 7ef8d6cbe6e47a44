//! The others, as the owner of files sees them: the metadata manager, the members, and this server without a socket.
//!
//! What servers ask of each other about a file (cut, how far, fence, tell) is answered by functions of [`Files`]; for
//! this server they are called.

use std::sync::Arc;

use wire::message::Request;
use wire::message::cluster::{
    ApplyTruncate, AskEnd, AskNumber, BeginTruncate, EndIs, Fence, FileState, FileStateIs,
    FinishTruncate, ReportSize, Tell,
};
use wire::{FileId, ServerId, SizeState, Time};

use super::now;
use crate::files::Files;
use crate::owner;
use crate::refused::Refused;

/// See the [module](self).
pub(crate) struct Others(pub(crate) Arc<Files>);

impl Others {
    fn ask_manager<R: Request>(&self, request: &R) -> Result<R::Answer, Refused> {
        Ok(self.0.cluster.manager.ask(request)?)
    }

    fn ask<R: Request>(
        &self,
        server: ServerId,
        request: &R,
        here: impl FnOnce(&Files) -> Result<R::Answer, Refused>,
    ) -> Result<R::Answer, Refused> {
        match server == self.0.identity.server {
            true => here(&self.0),
            false => Ok(self.0.cluster.ask_member(server, request)?),
        }
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

    fn file_state(&self, file: FileId) -> Result<FileStateIs, Refused> {
        Ok(self.0.cluster.ask_manager(&FileState { file })?)
    }

    fn report_size(&self, request: &ReportSize) -> Result<SizeState, Refused> {
        Ok(self.0.cluster.ask_manager(request)?)
    }

    fn begin_truncate(&self, request: &BeginTruncate) -> Result<SizeState, Refused> {
        self.ask_manager(request)
    }

    fn finish_truncate(&self, request: &FinishTruncate) -> Result<SizeState, Refused> {
        self.ask_manager(request)
    }

    fn apply_truncate(&self, server: ServerId, request: &ApplyTruncate) -> Result<(), Refused> {
        self.ask(server, request, |files| files.apply_truncate(request))
    }

    fn ask_end(&self, server: ServerId, file: FileId) -> Result<EndIs, Refused> {
        self.ask(server, &AskEnd { file }, |files| files.ask_end(file))
    }

    fn fence(&self, server: ServerId, request: &Fence) -> Result<(), Refused> {
        self.ask(server, request, |files| files.fence(request.client))
    }

    fn tell(&self, server: ServerId, request: &Tell) -> Result<(), Refused> {
        self.ask(server, request, |files| files.tell(request))
    }

    fn ask_number(&self, server: ServerId, file: FileId) -> Result<u64, Refused> {
        self.ask(server, &AskNumber { file }, |files| {
            Ok(files.entry(file).number())
        })
    }
}
