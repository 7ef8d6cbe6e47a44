//! The steady state of an access allocates nothing, at the client and at the server.
//!
//! A program of its own, since every allocation of the process is counted: client and servers run in
//! its threads. What servers do beside accesses (a report to the metadata manager twice a second)
//! is the only thing that may allocate.

#[path = "../real/service.rs"]
mod service;

use std::alloc::System;

use service::{Service, create, pattern};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

#[test]
fn steady_accesses_allocate_nothing_at_either_end() {
    let service = Service::start(2);
    for is_direct in [true, false] {
        allocate_nothing(&service, is_direct);
    }
}

fn allocate_nothing(service: &Service, is_direct: bool) {
    let client = match is_direct {
        true => service.connect(),
        false => service.connect_how(false),
    };
    // Contiguous at the server, scattered at the server, scattered at both, announced.
    let cases = [
        ("striped(4KiB) over 2", "whole", 3000),
        ("(block,*) onto 2", "(*,block) onto 2 [1]", 12_000),
        ("(*,cyclic) onto 2", "(block,*) onto 2 [0]", 30_000),
    ];
    for (i, (layout, view, len)) in cases.into_iter().enumerate() {
        let file = create(&client, &format!("/{is_direct}-{i}"), "u8[256,256]", layout);
        if view != "whole" {
            file.set_view_text(view).unwrap();
        }
        let mut buffer = pattern(len, i);
        let mut run = |times: usize| {
            for _ in 0..times {
                file.write_at(5, &buffer).unwrap();
                file.read_at(5, &mut buffer).unwrap();
            }
        };
        run(50);
        // Reports come twice a second, so how many meet an access depends on how long all of this takes. Accesses that
        // allocate would do so in every batch.
        let is_clean = |_: &usize| {
            let region = Region::new(ALLOCATOR);
            run(5);
            let change = region.change();
            change.allocations + change.reallocations == 0
        };
        let clean = (0..100).filter(is_clean).count();
        assert!(
            clean >= 10,
            "{clean} of 100 batches of accesses of {len} bytes through {view} to {layout} allocate nothing"
        );
        assert_eq!(file.last_access().is_direct, is_direct);
    }
}
