//! Random datatypes, views and operations, against an image by hand, and in every second round beside
//! the MPI's own implementation on a local file.
//!
//! `PARIO_SEED` chooses the programs, `PARIO_ROUNDS` how many there are.

use crate::launch::{Mode, Site};
use crate::mpi::Mpi;
use crate::programs;

/// Runs some rounds with each of these numbers of ranks.
fn rounds_hold(mpis: &[Mpi], ranks: &[usize], rounds: usize) {
    let said = std::env::var("PARIO_ROUNDS").ok();
    let rounds = said.map_or(rounds, |text| text.parse().expect("PARIO_ROUNDS: a number"));
    let seed = std::env::var("PARIO_SEED").unwrap_or_else(|_| "1".into());
    let site = Site::new(Mode::Service);
    for &mpi in mpis {
        for &ranks in ranks {
            let host = site.dir().join("host");
            std::fs::create_dir_all(&host).expect("a directory");
            let run = site.run(mpi, ranks, programs::c(mpi, "random.c"));
            let run = run.argument(rounds.to_string());
            let run = run.variable("CONFORMANCE_HOST", host.display().to_string());
            let run = run.variable("PARIO_SEED", &seed);
            run.limit(3600).holds();
        }
    }
}

#[test]
fn one_rank_does_what_the_standard_says() {
    rounds_hold(&Mpi::selected(), &[1], 120);
}

#[test]
fn several_ranks_do_what_the_standard_says() {
    rounds_hold(&Mpi::selected(), &[2, 3, 4], 20);
}
