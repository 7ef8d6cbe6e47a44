//! Every layout, view and operation on services of every kind, byte for byte against plain files.
//!
//! `make test` runs a selection in which every two values of two factors meet; the seed is printed,
//! `PARIO_SEED` names another. The full cross is marked as long: `make test-full` runs of it, in any
//! order, what fits into `PARIO_FULL_SECONDS` (300 by default; all of it takes hours).

use std::time::{Duration, Instant};

use system_tests::Random;
use system_tests::matrix::{SERVERS, all_cases, kinds, pairwise, run};
use system_tests::seed::seed;

fn selection(servers: usize) {
    println!("PARIO_SEED={:#x}", seed());
    let start = Instant::now();
    let mut done = 0;
    for (kind, cases) in pairwise() {
        if kind.servers == servers {
            done += run(kind, &cases, None);
        }
    }
    assert!(done > 0);
    println!("{done} cases in {:.1?}", start.elapsed());
}

#[test]
fn seed004_s36_any_layout_is_read_through_any_view_with_1_server() {
    selection(1);
}

#[test]
fn seed004_s36_any_layout_is_read_through_any_view_with_2_servers() {
    selection(2);
}

#[test]
fn seed004_s36_any_layout_is_read_through_any_view_with_3_servers() {
    selection(3);
}

#[test]
fn seed004_s36_any_layout_is_read_through_any_view_with_4_servers() {
    selection(4);
}

#[test]
fn seed004_s36_any_layout_is_read_through_any_view_with_7_servers() {
    selection(7);
}

#[test]
fn the_selection_has_every_number_of_servers_and_every_pair() {
    let selection = pairwise();
    assert!(
        SERVERS
            .iter()
            .all(|n| selection.keys().any(|k| k.servers == *n))
    );
    assert_eq!(selection.len(), kinds().len(), "every kind of service");
    let count: usize = selection.values().map(Vec::len).sum();
    println!("{count} cases on {} services", selection.len());
}

/// As much of the full cross as there is time for.
fn cross(servers: usize) {
    let seconds = std::env::var("PARIO_FULL_SECONDS").map_or(300, |text| {
        text.parse().expect("PARIO_FULL_SECONDS is a number")
    });
    println!("PARIO_SEED={:#x}", seed());
    let kinds: Vec<_> = kinds()
        .into_iter()
        .filter(|k| k.servers == servers)
        .collect();
    let each = Duration::from_secs(seconds) / kinds.len() as u32;
    let (mut done, mut of) = (0, 0);
    for (index, kind) in kinds.into_iter().enumerate() {
        let cases = all_cases(&mut Random::of_run((1000 * servers + index) as u64));
        let count = run(kind, &cases, Some(Instant::now() + each));
        println!("{kind:?}: {count} of {} cases", cases.len());
        (done, of) = (done + count, of + cases.len());
    }
    println!("{done} of {of} cases");
}

#[test]
#[ignore = "long: the full cross, for PARIO_FULL_SECONDS"]
fn the_full_cross_with_1_server() {
    cross(1);
}

#[test]
#[ignore = "long: the full cross, for PARIO_FULL_SECONDS"]
fn the_full_cross_with_2_servers() {
    cross(2);
}

#[test]
#[ignore = "long: the full cross, for PARIO_FULL_SECONDS"]
fn the_full_cross_with_3_servers() {
    cross(3);
}

#[test]
#[ignore = "long: the full cross, for PARIO_FULL_SECONDS"]
fn the_full_cross_with_4_servers() {
    cross(4);
}

#[test]
#[ignore = "long: the full cross, for PARIO_FULL_SECONDS"]
fn the_full_cross_with_7_servers() {
    cross(7);
}
