//! Programs over MPI that use files of Pario, under every MPI that is installed.
//!
//! ```text
//!  test --- mpi       which MPIs there are, their compilers and launchers
//!    |----- programs  compiles conformance/* once for each MPI
//!    |----- launch    mpiexec with the library preloaded, a service, a time limit
//! ```
//!
//! The programs are unmodified MPI: what they may expect is the standard's, and they run over the MPI's
//! own implementation as well. `PARIO_MPI` names the MPIs to use, or `all` of them; the two of Debian by
//! default.

mod launch;
mod mpi;
mod programs;

mod inputs;
mod large;
mod libraries;
mod pack;
mod python;
mod random;
mod redistribute;
mod requests;
mod seed_001;
mod seed_004;
mod service_lost;
mod waiting;
