//! Statements of source 001 (MEMFS) about MPI-IO, one test each.
//!
//! The cases are in `conformance/`, under names that begin like those of the tests here; all cases of a
//! statement run in one `mpiexec`.

use crate::launch::{Mode, cases_hold, cases_hold_in};

#[test]
fn seed001_s05_servers_are_not_seen_by_the_program() {
    // Servers of a job and of a directory are started by the ranks themselves, or around them.
    for mode in [Mode::Service, Mode::Job, Mode::Embedded] {
        cases_hold_in(mode, "opening.c", "seed001_s05", 3);
    }
}

#[test]
fn seed001_s21_all_functions_of_a_device_work() {
    cases_hold("access.c", "seed001_s21", 2);
}

#[test]
fn seed001_s23_pointers_are_individual_or_shared_by_all() {
    cases_hold("access.c", "seed001_s23", 3);
}

#[test]
fn seed001_s26_every_type_constructor_works_in_memory_and_file() {
    cases_hold("views.c", "seed001_s26", 2);
}

#[test]
fn seed001_s27_all_levels_of_access_give_the_same_bytes() {
    cases_hold("access.c", "seed001_s27", 4);
}

#[test]
fn seed001_s28_unknown_hints_pass() {
    cases_hold("opening.c", "seed001_s28", 2);
}
