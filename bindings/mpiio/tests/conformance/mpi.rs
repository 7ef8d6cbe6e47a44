//! The MPIs that programs are compiled and run with.
//!
//! Debian's two are installed by `scripts/setup`, the others by `scripts/mpi-environments`, each in a
//! virtual environment below `.mpi`. Always called by their full names: plain `mpicc` is whichever was
//! installed last.

use std::path::PathBuf;
use std::process::Command;

/// An MPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Mpi {
    /// Debian's MPICH.
    DebianMpich,
    /// Debian's Open MPI.
    DebianOpen,
    /// MPICH 5 from PyPI.
    Mpich5,
    /// MPICH through the ABI that the standard defines.
    StandardAbi,
    /// Open MPI 5 from PyPI.
    Open5,
}

const ALL: [Mpi; 5] = [
    Mpi::DebianMpich,
    Mpi::DebianOpen,
    Mpi::Mpich5,
    Mpi::StandardAbi,
    Mpi::Open5,
];

impl Mpi {
    /// All of them.
    pub(crate) fn all() -> [Mpi; 5] {
        ALL
    }

    /// Those that this run is for: what `PARIO_MPI` names, or Debian's two.
    pub(crate) fn selected() -> Vec<Mpi> {
        match std::env::var("PARIO_MPI") {
            Err(_) => vec![Mpi::DebianMpich, Mpi::DebianOpen],
            Ok(text) if text == "all" => ALL.to_vec(),
            Ok(text) => text.split(',').map(Mpi::named).collect(),
        }
    }

    fn named(name: &str) -> Mpi {
        let found = ALL.into_iter().find(|mpi| mpi.name() == name);
        found.unwrap_or_else(|| {
            let names = ALL.map(Mpi::name).join(", ");
            panic!("PARIO_MPI: there is no `{name}`; it is `all`, or some of {names}")
        })
    }

    /// What `PARIO_MPI` calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Mpi::DebianMpich => "debian-mpich",
            Mpi::DebianOpen => "debian-openmpi",
            Mpi::Mpich5 => "mpich5",
            Mpi::StandardAbi => "standard-abi",
            Mpi::Open5 => "openmpi5",
        }
    }

    /// Whether it is a kind of MPICH, which polls without end.
    pub(crate) fn is_mpich(self) -> bool {
        !matches!(self, Mpi::DebianOpen | Mpi::Open5)
    }

    /// Its compiler for C.
    pub(crate) fn compiler(self) -> PathBuf {
        match self {
            Mpi::DebianMpich => "mpicc.mpich".into(),
            Mpi::DebianOpen => "mpicc.openmpi".into(),
            Mpi::Mpich5 => environment("mpich5/bin/mpicc"),
            Mpi::StandardAbi => environment("mpich5/bin/mpicc_abi"),
            Mpi::Open5 => environment("openmpi5/bin/mpicc"),
        }
    }

    /// Its compiler for Fortran; the wheels have none.
    pub(crate) fn fortran(self) -> Option<PathBuf> {
        match self {
            Mpi::DebianMpich => Some("mpifort.mpich".into()),
            Mpi::DebianOpen => Some("mpifort.openmpi".into()),
            _ => None,
        }
    }

    /// An interpreter that has mpi4py over this MPI. No wheel is for the standard ABI: that one is
    /// compiled by `scripts/mpi-environments --all`.
    pub(crate) fn python(self) -> PathBuf {
        environment(&format!("{}/bin/python", self.name()))
    }

    /// `mpiexec` with so many ranks; the program and its arguments follow.
    pub(crate) fn mpiexec(self, ranks: usize) -> Command {
        let mut command = match self {
            Mpi::DebianMpich => Command::new("mpiexec.mpich"),
            Mpi::DebianOpen => Command::new("mpiexec.openmpi"),
            Mpi::Mpich5 | Mpi::StandardAbi => Command::new(environment("mpich5/bin/mpiexec")),
            Mpi::Open5 => Command::new(environment("openmpi5/bin/mpiexec")),
        };
        if !self.is_mpich() {
            command.arg("--oversubscribe");
            command.env("OMPI_ALLOW_RUN_AS_ROOT", "1");
            command.env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        }
        command.args(["-n", &ranks.to_string()]);
        command
    }
}

/// Something below `.mpi`.
pub(crate) fn environment(name: &str) -> PathBuf {
    let path = root().join(".mpi").join(name);
    let there = path.exists();
    assert!(
        there,
        "{} is not there; scripts/mpi-environments makes it, with --all what is compiled",
        path.display()
    );
    path
}

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    let this = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    this.ancestors().nth(2).expect("two folders above").into()
}
