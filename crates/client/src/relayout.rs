//! Following a move of a file into another layout.
//!
//! The move is done by the service and goes on whether or not anybody follows it.

use wire::FileId;
use wire::message::catalogue::{MoveState, Progress};

use crate::client::Client;
use crate::error::{Error, Result};
use crate::patience::pause_for;

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

    /// Waits until it is done or has failed.
    pub fn wait(mut self) -> Result<Progress> {
        let mut pause = std::time::Duration::from_millis(1);
        loop {
            let progress = self.progress()?;
            match progress.state {
                MoveState::Done => return Ok(progress),
                MoveState::Failed => {
                    return Err(Error::Refused {
                        status: wire::Status::Io,
                        text: format!("the move cannot go on: {}", progress.failure),
                        server: None,
                    });
                }
                MoveState::Cancelled => {
                    return Err(Error::Refused {
                        status: wire::Status::Busy,
                        text: "the move was cancelled, the file is in its old layout".into(),
                        server: None,
                    });
                }
                _ => {
                    pause_for(pause);
                    pause = (pause * 2).min(std::time::Duration::from_millis(100));
                }
            }
        }
    }
}
