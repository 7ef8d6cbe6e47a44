//! Moving files into other layouts and onto other servers, and following that.
//!
//! The service moves; files are used meanwhile, and a move goes on whether or not anybody follows it, also after
//! a restart of the service. What is here only asks for moves and asks how far they have come.

use control::moves::crash_point;
use wire::message::catalogue::{
    ControlRelayout, Drain, DrainAnswer, DrainProgress, ListMoves, MoveControl, MoveIs,
    MoveOptions, MoveState, Progress, Rebalance, Relayout as Begin, RelayoutProgress, SubfileMove,
};
use wire::{FileId, ServerId, Status};

use crate::client::{Client, absolute};
use crate::error::{Error, Result};
use crate::transport::patience::pause_for;

impl Client {
    /// Moves a file into another layout. Returns when the move has begun.
    pub fn relayout(&self, path: &str, layout: &str) -> Result<Relayout> {
        self.relayout_with(path, layout, &MoveOptions::default())
    }

    /// Begins a re-layout with a limit, or in little space.
    pub fn relayout_with(
        &self,
        path: &str,
        layout: &str,
        options: &MoveOptions,
    ) -> Result<Relayout> {
        self.begin_move(path, layout, &[], options)
    }

    /// Moves the subfiles of a file to other servers, one after the other to the servers of the list; those
    /// that are there already stay as they are.
    pub fn move_subfiles(
        &self,
        path: &str,
        servers: &[ServerId],
        options: &MoveOptions,
    ) -> Result<Relayout> {
        self.begin_move(path, "", servers, options)
    }

    fn begin_move(
        &self,
        path: &str,
        layout: &str,
        servers: &[ServerId],
        options: &MoveOptions,
    ) -> Result<Relayout> {
        let path = absolute(path);
        let progress = self.session().manager(|| Begin {
            path: path.clone(),
            layout: layout.into(),
            servers: servers.iter().map(|s| s.0).collect(),
            options: options.clone(),
        })?;
        crash_point("client_after_relayout");
        Ok(Relayout::new(self, progress))
    }

    /// A move of a file that is under way or was the last, to be followed.
    pub fn follow_relayout(&self, path: &str) -> Result<Relayout> {
        let file = self.attributes(path)?.file;
        let progress = self.relayout_progress(file)?;
        Ok(Relayout::new(self, progress))
    }

    /// How far the move of a file has come.
    pub fn relayout_progress(&self, file: FileId) -> Result<Progress> {
        self.session().manager(|| RelayoutProgress { file })
    }

    /// All moves under way.
    pub fn moves(&self) -> Result<Vec<MoveIs>> {
        self.session().manager(|| ListMoves {})
    }

    /// Moves everything away from a server, which gets nothing new from now on. Returns when that has begun.
    pub fn drain(&self, server: ServerId, options: &MoveOptions) -> Result<DrainAnswer> {
        self.session().manager(|| Drain {
            server,
            is_over: false,
            options: options.clone(),
        })
    }

    /// Lets a server that was drained, or is being drained, take part again.
    pub fn end_drain(&self, server: ServerId) -> Result<DrainAnswer> {
        self.session().manager(|| Drain {
            server,
            is_over: true,
            options: MoveOptions::default(),
        })
    }

    /// How far the draining of a server has come.
    pub fn drain_progress(&self, server: ServerId) -> Result<DrainAnswer> {
        self.session().manager(|| DrainProgress { server })
    }

    /// Moves single subfiles of a file, or of all files, so that servers have equal shares; which. Returns when the
    /// moves have begun.
    pub fn rebalance(&self, path: Option<&str>, options: &MoveOptions) -> Result<Vec<SubfileMove>> {
        self.even_out(path, false, options)
    }

    /// What [`Client::rebalance`] would move.
    pub fn rebalance_trial(&self, path: Option<&str>) -> Result<Vec<SubfileMove>> {
        self.even_out(path, true, &MoveOptions::default())
    }

    fn even_out(
        &self,
        path: Option<&str>,
        is_trial: bool,
        options: &MoveOptions,
    ) -> Result<Vec<SubfileMove>> {
        let path = path.map(absolute).unwrap_or_default();
        self.session().manager(|| Rebalance {
            path: path.clone(),
            is_trial,
            options: options.clone(),
        })
    }

    fn control_move(&self, file: FileId, what: MoveControl, limit_bytes: u64) -> Result<Progress> {
        self.session().manager(|| ControlRelayout {
            file,
            what,
            limit_bytes,
        })
    }
}

/// A move under way.
#[derive(Debug)]
pub struct Relayout {
    client: Client,
    last: Progress,
}

impl Relayout {
    pub(crate) fn new(client: &Client, last: Progress) -> Relayout {
        Relayout {
            client: client.clone(),
            last,
        }
    }

    /// The file.
    pub fn file(&self) -> FileId {
        self.last.file
    }

    /// How far it has come.
    pub fn progress(&mut self) -> Result<Progress> {
        if !self.last.state.is_over() {
            self.last = self.client.relayout_progress(self.last.file)?;
        }
        Ok(self.last.clone())
    }

    /// Lets it rest; the file is used as it is meanwhile.
    pub fn pause(&mut self) -> Result<Progress> {
        self.control(MoveControl::Pause, 0)
    }

    /// Lets it go on.
    pub fn resume(&mut self) -> Result<Progress> {
        self.control(MoveControl::Resume, 0)
    }

    /// Moves everything back. That takes its time too, and is over when the state is
    /// [`MoveState::Cancelled`].
    pub fn cancel(&mut self) -> Result<Progress> {
        self.control(MoveControl::Cancel, 0)
    }

    /// Lets it move so many bytes a second at most; 0 is no limit.
    pub fn limit(&mut self, bytes_per_second: u64) -> Result<Progress> {
        self.control(MoveControl::Limit, bytes_per_second)
    }

    fn control(&mut self, what: MoveControl, limit_bytes: u64) -> Result<Progress> {
        self.last = self
            .client
            .control_move(self.last.file, what, limit_bytes)?;
        Ok(self.last.clone())
    }

    /// Waits until it is over: done or cancelled. One that is paused or waits for a server is waited for too.
    pub fn wait(mut self) -> Result<Progress> {
        let mut pause = std::time::Duration::from_millis(1);
        loop {
            let progress = self.progress()?;
            match progress.state {
                MoveState::Failed => {
                    return Err(Error::Refused {
                        status: Status::Io,
                        text: format!("the move cannot go on: {}", progress.failure),
                        server: None,
                    });
                }
                state if state.is_over() => return Ok(progress),
                _ => {
                    pause_for(pause);
                    pause = (pause * 2).min(std::time::Duration::from_millis(100));
                }
            }
        }
    }
}
