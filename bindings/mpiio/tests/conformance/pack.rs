//! `MPI_Pack` and `MPI_Unpack` on Pario's kernels, beside the MPI's own in the same process: random datatypes, every
//! predefined one, and what has to be refused.
//!
//! `PARIO_SEED` chooses the datatypes, `PARIO_ROUNDS` how many there are.

use crate::launch::{Mode, Site};
use crate::mpi::Mpi;
use crate::programs;

/// Runs the program with a value of the switch; `by` says who is to pack then.
fn packs(switch: Option<&str>, by: &str, rounds: &str) {
    let site = Site::new(Mode::Embedded);
    for mpi in Mpi::selected() {
        let mut run = site.run(mpi, 2, programs::c(mpi, "pack.c"));
        run = run.variable("PACKED_BY", by);
        for name in ["PARIO_SEED", "PARIO_ROUNDS"] {
            let said = std::env::var(name).ok();
            let usual = (name == "PARIO_ROUNDS").then(|| rounds.to_owned());
            if let Some(value) = said.or(usual) {
                run = run.variable(name, value);
            }
        }
        if let Some(value) = switch {
            run = run.variable("PARIO_MPI_PACK", value);
        }
        run.holds();
    }
}

#[test]
fn datatypes_are_packed_as_the_mpi_packs_them() {
    packs(Some("on"), "pario", "1500");
}

#[test]
fn nothing_is_taken_over_unless_it_is_asked_for() {
    packs(None, "host", "50");
    packs(Some("off"), "host", "50");
    packs(Some("perhaps"), "host", "50");
}

#[test]
#[ignore = "long: a hundred thousand datatypes"]
fn many_datatypes_are_packed_as_the_mpi_packs_them() {
    packs(Some("on"), "pario", "100000");
}
