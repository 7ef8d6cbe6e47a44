//! Turns through `MPI_File_*`: one `mpiexec` each, in which Pario and the MPI library's own implementation do the same.
//!
//! The program is C, compiled for each MPI library that there is. Left to others: what a cell is (`cell`), and the MPI libraries.

use console::Error;

use super::cell::{Cell, Pledge, Side, Turn};
use super::{Place, Runner};
use crate::mpi::{self, Mpi, MpiProgram};

/// A program that hangs is ended after so many seconds, by its own launcher.
const LIMIT: &str = "300";

/// See the [module](self).
pub(super) struct Programs {
    word: &'static str,
    program: MpiProgram,
    options: &'static [&'static str],
}

impl Programs {
    /// The program of one MPI library; an error where there is none.
    pub(super) fn new(
        word: &'static str,
        library: Mpi,
        options: &'static [&'static str],
    ) -> Result<Programs, Error> {
        Ok(Programs {
            word,
            program: library.compile(&mpi::FRESH)?,
            options,
        })
    }
}

impl Runner for Programs {
    fn word(&self) -> &'static str {
        self.word
    }

    fn has_collectives(&self) -> bool {
        true
    }

    fn turn(
        &self,
        place: &Place<'_>,
        cell: &Cell,
        pledge: Pledge,
        turn: u64,
    ) -> Result<Turn, Error> {
        let mut command = self
            .program
            .command(cell.processes, self.options, place.site.url());
        command
            .env("MPIEXEC_TIMEOUT", LIMIT)
            .arg(place.shared.join("barrier"))
            .arg(cell.pattern.word())
            .args([cell.transfer, cell.count].map(|n| n.to_string()))
            .args([cell.how(), pledge.word()])
            .arg((turn + 1).to_string());
        for side in Side::order(turn) {
            let path = match side {
                Side::Pario => "pario:/fresh".to_owned(),
                Side::Own => place.own.join("fresh").display().to_string(),
                Side::Memcpy => String::new(),
            };
            command.arg(format!("{}={path}", side.word()));
        }
        let text = self.program.output(command, "the program")?;
        Ok(Turn::parse(&text))
    }
}
