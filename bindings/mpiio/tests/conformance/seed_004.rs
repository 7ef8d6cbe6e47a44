//! Statements of source 004 (ViPIOS) about MPI-IO, one test each.
//!
//! The cases are in `conformance/`, under names that begin like those of the tests here; all cases of a
//! statement run in one `mpiexec`.

use crate::launch::{Mode, Site, cases_hold, cases_hold_in};
use crate::mpi::Mpi;
use crate::programs;

#[test]
fn seed004_s16_client_ranks_are_those_of_mpiexec() {
    for mode in [Mode::Service, Mode::Embedded] {
        cases_hold_in(mode, "opening.c", "seed004_s16", 4);
    }
}

#[test]
fn seed004_s50_opens_that_differ_are_reported_on_all() {
    cases_hold("opening.c", "seed004_s50", 3);
}

#[test]
fn seed004_s51_modes_are_enforced() {
    cases_hold("opening.c", "seed004_s51", 3);
}

#[test]
fn seed004_s52_preallocate_never_shrinks_and_pointers_stay() {
    cases_hold("opening.c", "seed004_s52", 2);
}

#[test]
fn seed004_s53_set_view_resets_checks_and_is_told_back() {
    cases_hold("views.c", "seed004_s53", 3);
}

#[test]
fn seed004_s54_complementary_views_cover_the_file() {
    cases_hold("views.c", "seed004_s54", 3);
}

#[test]
fn seed004_s55_positions_are_in_etypes() {
    cases_hold("views.c", "seed004_s55", 2);
}

#[test]
fn seed004_s56_nonblocking_access_moves_pointers_at_the_call() {
    cases_hold("access.c", "seed004_s56", 2);
}

#[test]
fn seed004_s57_memory_and_file_types_both_derived() {
    cases_hold("access.c", "seed004_s57", 3);
}

#[test]
fn seed004_s58_collective_access_gives_what_independent_access_gives() {
    cases_hold("access.c", "seed004_s58", 3);
}

#[test]
fn seed004_s59_arrays_are_owned_as_counted_by_hand() {
    cases_hold("views.c", "seed004_s59", 4);
}

#[test]
fn seed004_s60_wrong_arguments_of_array_types_are_refused() {
    cases_hold("views.c", "seed004_s60", 2);
}

#[test]
fn seed004_s61_shared_pointers_lose_nothing_and_go_in_order() {
    cases_hold("access.c", "seed004_s61", 4);
}

#[test]
fn seed004_s62_split_access_is_one_at_a_time() {
    cases_hold("access.c", "seed004_s62", 2);
}

#[test]
fn seed004_s63_atomic_writes_never_mix() {
    cases_hold("access.c", "seed004_s63", 3);
}

#[test]
fn seed004_s64_representations_convert_and_unknown_ones_are_refused() {
    cases_hold("access.c", "seed004_s64", 2);
}

#[test]
fn seed004_s65_statuses_count_what_moved() {
    cases_hold("access.c", "seed004_s65", 2);
}

#[test]
fn seed004_s66_delete_tells_missing_and_open_files() {
    cases_hold("opening.c", "seed004_s66", 2);
}

#[test]
fn seed004_s85_other_bytes_are_neither_moved_nor_changed() {
    cases_hold("access.c", "seed004_s85", 4);
}

#[test]
fn seed004_s88_files_close_in_any_order_and_stale_handles_fail() {
    cases_hold("opening.c", "seed004_s88", 4);
}

#[test]
fn seed004_s89_handles_grow_without_limit() {
    cases_hold("opening.c", "seed004_s89", 1);
}

#[test]
fn seed004_s67_ranks_connect_by_themselves_and_leave_at_the_end() {
    let mut site = Site::new(Mode::Service);
    for mpi in Mpi::selected() {
        let run = site.run(mpi, 3, programs::c(mpi, "opening.c"));
        run.argument("seed004_s67").holds();
        // Nobody is left that holds a file, and nothing waits to be removed.
        site.service().wait_for_nothing();
    }
}

#[test]
fn seed004_s68_fortran_of_each_kind_works() {
    let site = Site::new(Mode::Service);
    for mpi in Mpi::selected() {
        for source in ["mpifh.f90", "usempi.f90", "usempif08.f90"] {
            if let Some(program) = programs::fortran(mpi, source) {
                site.run(mpi, 3, program).holds();
            }
        }
    }
}

fn testmpio_holds(mode: Mode) {
    let site = Site::new(mode);
    for mpi in Mpi::selected() {
        let run = site.run(mpi, 3, programs::c(mpi, "testmpio.c"));
        run.argument("seed004_s87").holds();
    }
}

#[test]
fn seed004_s87_testmpio_passes_with_a_service() {
    testmpio_holds(Mode::Service);
}

#[test]
fn seed004_s87_testmpio_passes_in_a_job() {
    testmpio_holds(Mode::Job);
}

#[test]
fn seed004_s87_testmpio_passes_embedded() {
    testmpio_holds(Mode::Embedded);
}

/// All of them, so that a change that suits Debian's two is noticed if it breaks another.
#[test]
fn seed004_s87_testmpio_passes_under_every_mpi() {
    let site = Site::new(Mode::Service);
    for mpi in Mpi::all() {
        let run = site.run(mpi, 2, programs::c(mpi, "testmpio.c"));
        run.argument("seed004_s87").holds();
    }
}
