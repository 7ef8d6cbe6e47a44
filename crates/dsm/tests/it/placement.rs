//! What homes that follow earlier accesses save: SOR and matrix multiplication as the source has them, page by page.
//!
//! The machines are driven with the pages that each process touches; what they note of it is placed by the published rules, and a second run
//! counts its fetches. Files are not read here: homes stand for the disks that blocks lie on.

use std::ops::Range;

use dsm::Setting;

use crate::cluster::{Cluster, PAGE};

/// Bytes of a page of the programs; pages of the cluster are shorter, which no fetch is about.
const BLOCK: usize = 4096;
const ROWS: usize = 2000;

/// The pages of some rows of an array.
fn pages(rows: Range<usize>, row_bytes: usize) -> Range<usize> {
    rows.start * row_bytes / BLOCK..(rows.end * row_bytes).div_ceil(BLOCK)
}

fn band(process: usize, processes: usize, rows: usize) -> Range<usize> {
    process * rows / processes..(process + 1) * rows / processes
}

/// SOR: the pages that each process reads (its band and a row at either side) and writes (its band).
fn sor(processes: usize, row_bytes: usize) -> (Vec<Range<usize>>, Vec<Range<usize>>) {
    let bands = (0..processes).map(|process| band(process, processes, ROWS));
    let reads = |band: &Range<usize>| {
        pages(
            band.start.saturating_sub(1)..(band.end + 1).min(ROWS),
            row_bytes,
        )
    };
    let bands: Vec<Range<usize>> = bands.collect();
    (
        bands.iter().map(reads).collect(),
        bands
            .into_iter()
            .map(|band| pages(band, row_bytes))
            .collect(),
    )
}

/// A run up to its first barrier: the fetches, and which processes accessed each page.
fn run(count: usize, reads: &[Range<usize>], homes: impl Fn(u32) -> u16) -> (u64, Vec<Vec<usize>>) {
    let processes = reads.len() as u16;
    let mut all = Cluster::with_homes(&Setting::new(processes, count as u32), homes);
    for (process, pages) in reads.iter().enumerate() {
        for page in pages.clone() {
            all.load(process as u16, page * PAGE);
        }
    }
    let has_read = |page, process: &usize| all.machine(*process as u16).accesses_of(page).0 != 0;
    let touched = |page: u32| {
        (0..reads.len())
            .filter(|process| has_read(page, process))
            .collect()
    };
    let accessors = (0..count as u32).map(touched).collect();
    (all.total(|s| s.fetches), accessors)
}

struct Row {
    row_bytes: usize,
    processes: usize,
    one_accessor: usize,
    loads: &'static [u64],
    fetches_of_root: u64,
    fetches_interleaved: u64,
    fetches_learned: u64,
    several_writers: usize,
}

/// The published table: all cases of it that state numbers.
fn table() -> [Row; 5] {
    let case =
        |row_bytes, processes, one_accessor, loads, fetches: [u64; 3], several_writers| Row {
            row_bytes,
            processes,
            one_accessor,
            loads,
            fetches_of_root: fetches[0],
            fetches_interleaved: fetches[1],
            fetches_learned: fetches[2],
            several_writers,
        };
    [
        case(4000, 2, 1951, &[977, 977], [979, 978, 3], 1),
        case(4000, 4, 1945, &[489, 488, 488, 489], [1473, 1472, 9], 3),
        case(
            4000,
            8,
            1934,
            &[245, 244, 244, 244, 244, 244, 244, 245],
            [1728, 1727, 20],
            7,
        ),
        case(8000, 4, 3892, &[977, 977, 976, 977], [2943, 2942, 15], 3),
        case(
            8000,
            8,
            3873,
            &[489, 488, 488, 489, 488, 488, 488, 489],
            [3450, 3449, 34],
            7,
        ),
    ]
}

#[test]
fn seed003_pio16_sor_fetches_what_is_shared_and_no_more() {
    for expected in table() {
        let processes = expected.processes;
        let (reads, _) = sor(processes, expected.row_bytes);
        let count = (ROWS * expected.row_bytes).div_ceil(BLOCK);
        let (of_root, accessors) = run(count, &reads, |_| 0);
        assert_eq!(of_root, expected.fetches_of_root, "all pages at process 0");
        let (interleaved, _) = run(count, &reads, |page| (page as usize % processes) as u16);
        assert_eq!(
            interleaved, expected.fetches_interleaved,
            "pages dealt in turn"
        );
        let place = advise::place::seed(&accessors, processes);
        let (learned, again) = run(count, &reads, |page| place[page as usize] as u16);
        assert_eq!(
            learned, expected.fetches_learned,
            "{processes} processes, rows of {}",
            expected.row_bytes
        );
        // What is learned does not depend on where pages were.
        assert_eq!(again, accessors);
    }
}

#[test]
fn seed003_pio15_accesses_of_sor_are_those_of_the_published_table() {
    for expected in table() {
        let processes = expected.processes;
        let (reads, writes) = sor(processes, expected.row_bytes);
        let count = (ROWS * expected.row_bytes).div_ceil(BLOCK);
        let (_, accessors) = run(count, &reads, |_| 0);
        let by_one = accessors.iter().filter(|a| a.len() == 1).count();
        assert_eq!(by_one, expected.one_accessor);
        assert!(accessors.iter().all(|a| a.len() == 1 || a.len() == 2));
        let place = advise::place::seed(&accessors, processes);
        assert_eq!(advise::place::loads(&place, processes), expected.loads);
        // After a barrier these pages have no valid copy in the homeless protocol; here each has its home.
        let mut all = Cluster::with_homes(&Setting::new(processes as u16, count as u32), |page| {
            place[page as usize] as u16
        });
        for (process, pages) in writes.iter().enumerate() {
            for page in pages.clone() {
                // Each writer its own byte.
                all.store(process as u16, page * PAGE + process, 1 + process as u8);
            }
        }
        all.barrier(0);
        let writers = |page: usize| {
            (0..processes)
                .filter(|p| writes[*p].contains(&page))
                .collect::<Vec<_>>()
        };
        let shared: Vec<usize> = (0..count).filter(|page| writers(*page).len() > 1).collect();
        assert_eq!(shared.len(), expected.several_writers);
        for page in shared {
            let home = all.machine(0).home_of(page as u32);
            for writer in writers(page) {
                assert_eq!(
                    all.load(home, page * PAGE + writer),
                    1 + writer as u8,
                    "page {page} at its home"
                );
            }
        }
    }
}

#[test]
fn seed003_pio15_fetches_of_matrix_multiplication_are_those_of_the_published_table() {
    // 1024 rows of one page each; the first matrix is read in bands, the second by all.
    let bands: Vec<Range<usize>> = (0..8).map(|process| band(process, 8, 1024)).collect();
    let (of_root, accessors) = run(1024, &bands, |_| 0);
    assert_eq!(of_root, 896);
    let place = advise::place::seed(&accessors, 8);
    assert_eq!(run(1024, &bands, |page| place[page as usize] as u16).0, 0);
    for (processes, fetches) in [(8, 7168), (4, 3072)] {
        let all = vec![0..1024; processes];
        let (of_root, accessors) = run(1024, &all, |_| 0);
        let place = advise::place::seed(&accessors, processes);
        let (learned, _) = run(1024, &all, |page| place[page as usize] as u16);
        assert_eq!((of_root, learned), (fetches, fetches));
    }
}
