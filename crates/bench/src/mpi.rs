//! The MPI libraries that are installed: how programs for them are compiled and started, with Pario's library loaded
//! before theirs. Both give the processor away while they wait: there are more processes than processors.
//!
//! Left to others: what the programs do.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use clap::ValueEnum;
use console::{Error, preload};

use super::yardsticks::{self, Source};

/// A program that comes along as text: what all have in common, then its own.
pub(crate) struct Text {
    name: &'static str,
    text: &'static str,
}

/// An array through `MPI_File_*`.
pub(crate) const ARRAY: Text = Text {
    name: "mpiio",
    text: concat!(
        include_str!("../yardsticks/together.h"),
        include_str!("../yardsticks/mpiio.c")
    ),
};

/// New files through `MPI_File_*`.
pub(crate) const FRESH: Text = Text {
    name: "fresh",
    text: concat!(
        include_str!("../yardsticks/together.h"),
        include_str!("../yardsticks/fresh.c")
    ),
};

/// Arrays that change their distribution in the memory of processes.
pub(crate) const REDISTRIBUTE: Text = Text {
    name: "redistribute",
    text: concat!(
        "#define _GNU_SOURCE\n",
        include_str!("../yardsticks/together.h"),
        include_str!("../yardsticks/redistribute.c")
    ),
};

/// An MPI library that is installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mpi {
    /// MPICH, with a progress that yields
    Mpich,
    /// Open MPI: OMPIO, and ROMIO in a run of its own
    Openmpi,
}

impl Mpi {
    /// As it stands in reports.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Mpi::Mpich => "mpich",
            Mpi::Openmpi => "openmpi",
        }
    }

    fn launcher(self) -> String {
        format!("mpiexec.{}", self.word())
    }

    /// How its processes wait for each other.
    pub(crate) fn progress(self) -> &'static str {
        match self {
            Mpi::Mpich => "yields (preloaded)",
            Mpi::Openmpi => "yields (--oversubscribe)",
        }
    }

    /// Compiles a program for it on first use.
    pub(crate) fn compile(self, text: &Text) -> Result<MpiProgram, Error> {
        // A program that was compiled before is of no use without its launcher.
        let launcher = self.launcher();
        let found = Command::new(&launcher).arg("--version").output();
        found.map_err(|e| format!("{launcher}: {e}"))?;
        let library = preload::library().ok_or(
            "libpario_mpiio.so is not beside the program; build it (cargo build --release), or name it with \
             PARIO_MPIIO_LIBRARY",
        )?;
        let source = Source {
            name: &format!("{}-{}", text.name, self.word()),
            text: text.text,
            options: &["-pthread", "-ldl"],
        };
        let program = yardsticks::compile(&source, &format!("mpicc.{}", self.word()))?;
        let preload = match self {
            Mpi::Mpich => {
                let source = Source {
                    name: "mpich-yields",
                    text: include_str!("../../../bindings/mpiio/conformance/yield.c"),
                    options: &["-shared", "-fPIC", "-ldl"],
                };
                let yielding = yardsticks::compile(&source, "cc")?;
                format!("{}:{}", library.display(), yielding.display())
            }
            Mpi::Openmpi => library.display().to_string(),
        };
        Ok(MpiProgram {
            mpi: self,
            program,
            preload,
        })
    }
}

/// A program that was compiled for one of them.
#[derive(Clone, Debug)]
pub(crate) struct MpiProgram {
    mpi: Mpi,
    program: PathBuf,
    preload: String,
}

impl MpiProgram {
    /// So many processes of it, with a service for `pario:` and options of the library; its arguments are still to come.
    pub(crate) fn command(&self, processes: u64, options: &[&str], service: &str) -> Command {
        let mut command = Command::new(self.mpi.launcher());
        if self.mpi == Mpi::Openmpi {
            command.arg("--oversubscribe");
        }
        command
            .args(options)
            .args(["-n", &processes.to_string()])
            .arg(&self.program)
            .env("LD_PRELOAD", &self.preload)
            .env("PARIO_URL", service)
            .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
            .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
            .stdin(Stdio::null())
            .stderr(Stdio::inherit());
        command
    }

    /// Runs such a command; what it printed.
    pub(crate) fn output(&self, mut command: Command, what: &str) -> Result<String, Error> {
        let out = command
            .output()
            .map_err(|e| format!("cannot run mpiexec of {:?}: {e}", self.mpi))?;
        match out.status.success() {
            true => Ok(String::from_utf8_lossy(&out.stdout).into_owned()),
            false => Err(format!("{what} ended with {}", out.status).into()),
        }
    }
}
