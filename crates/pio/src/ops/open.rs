//! Opening: every process opens the file under one number, or none does.
//!
//! Answers bring the size of the file, which has to be the same everywhere, and the server that is nearest to each process.

use dsm::Epoch;

use super::{Pfd, Pio};
use crate::call::{Answer, Question};
use crate::error::{Error, Result};

/// What a file is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// To be read.
    Read,
    /// To be written, where there is none. It is there once it is written.
    Create,
    /// To be written in place of what is there, if anything is.
    Replace,
}

impl Pio<'_> {
    /// Opens a parallel file at all processes.
    ///
    /// # Errors
    ///
    /// If any process cannot; then it is open at none.
    pub fn open(&self, path: &str, mode: OpenMode, epoch: &mut Epoch) -> Result<Pfd> {
        self.alone(epoch, |nearest, _| {
            let is_new = mode == OpenMode::Create || mode == OpenMode::Replace && self.options.is_strict;
            if is_new && self.exists(path)? {
                return Err(Error::Process {
                    process: self.memory.rank(),
                    errno: client::Status::Exists.errno(),
                    text: match self.options.is_strict {
                        true => format!("{path} is there; in strict mode files do not change"),
                        false => format!("{path} is there; open it to be replaced"),
                    },
                });
            }
            let pfd = self.free_number();
            let question = Question::Open {
                pfd,
                path: path.to_owned(),
                reads: mode == OpenMode::Read,
            };
            let post = self.desk.pages.now();
            let opened = self.ask_all(&post, &question).and_then(|answers| {
                *nearest = Pio::servers(&answers);
                let size = |answer: &Answer| match answer {
                    Answer::Open { size, .. } => Some(*size),
                    _ => None,
                };
                let sizes: Vec<u64> = answers.iter().filter_map(size).collect();
                match sizes.iter().position(|size| *size != sizes[0]) {
                    Some(process) => Err(Error::argument(
                        "path",
                        format!(
                            "process {process} finds {} bytes in {path}, process 0 {}; all need the same service",
                            sizes[process], sizes[0]
                        ),
                    )),
                    None => Ok(Pfd(pfd)),
                }
            });
            if matches!(opened, Err(ref error) if !matches!(error, Error::Memory(_))) {
                // Nobody keeps what others could not open; who has not opened it says so, which is no matter.
                let _ = self.ask_all(&post, &Question::Close { pfd });
            }
            opened
        })
    }

    /// The smallest number that no file has.
    fn free_number(&self) -> u32 {
        let table = self.desk.table.lock();
        (0..)
            .find(|pfd| !table.contains_key(pfd))
            .unwrap_or(u32::MAX)
    }

    pub(super) fn exists(&self, path: &str) -> Result<bool> {
        match self.desk.client.attributes(path) {
            Ok(_) => Ok(true),
            Err(error) if error.status() == client::Status::NotFound => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}
