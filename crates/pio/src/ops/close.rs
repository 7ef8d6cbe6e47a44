//! Closing: no process has the file open any more.
//!
//! Every process forgets the number, also where its own handle cannot be closed.

use dsm::Epoch;

use super::{Pfd, Pio};
use crate::call::Question;
use crate::error::{Error, Result};

impl Pio<'_> {
    /// Closes a parallel file at all processes. Its number may be that of another one from then on.
    ///
    /// # Errors
    ///
    /// If it is not open, or a process cannot close it.
    pub fn close(&self, file: Pfd, epoch: &mut Epoch) -> Result<()> {
        self.alone(epoch, |_, _| {
            if !self.desk.table.lock().contains_key(&file.0) {
                return Err(Error::NotOpen(file.0));
            }
            let post = self.desk.pages.now();
            self.ask_all(&post, &Question::Close { pfd: file.0 })
                .map(drop)
        })
    }
}
