//! `kill -9` of everything, at times that a printed seed chooses: clients, I/O servers, the metadata
//! manager, all of them. What was promised before has to be true after.
//!
//! A promise is what an operation returned: an acknowledged change of names is there after a restart of
//! the metadata manager, synced bytes after a restart of disk servers, and everything else is old or
//! new or reported, never something third.

mod adoption;
mod clients;
mod disks;
mod everything;
mod given_up;
mod io_servers;
mod manager;
mod power;
mod relayout;
mod trees;
mod truncate;

use std::time::Duration;

use client::{Client, ConnectOptions, File, View};
use system_tests::files::{create, open, read, whole};
use system_tests::{Random, Service, ServiceOptions, Store, pause};

/// Seeds of one test, printed as they are used.
fn rounds(what: u64, count: u64) -> impl Iterator<Item = Random> {
    let seed = system_tests::seed::seed();
    (0..count).map(move |round| {
        eprintln!("PARIO_SEED={seed:#x}, round {round} of {count}");
        Random::of_run(what * 1000 + round)
    })
}

/// A service with bytes in memory or on disk.
fn service(servers: usize, store: Store) -> Service {
    ServiceOptions::new(servers).store(store).start()
}

/// Options of a client that gives up soon.
fn impatient(service: &Service, seconds: u64) -> ConnectOptions {
    let mut options = service.connect_options();
    options.timeout = Duration::from_secs(seconds);
    options.busy_timeout = Duration::from_secs(seconds);
    options
}

/// Such a client.
#[track_caller]
fn impatient_client(service: &Service, seconds: u64) -> Client {
    Client::connect(&service.url(), impatient(service, seconds)).expect("a client")
}

/// Waits up to so many microseconds, so that a kill comes at any time.
fn some_time(random: &mut Random, most_us: u64) {
    pause(Duration::from_micros(random.below(most_us + 1)));
}

/// The subfiles of a file as views, with the server of each.
fn subfiles(file: &File) -> Vec<(View, u64)> {
    let state = file.layout();
    let piece = &state.pieces[0];
    let views = piece.partition.subfiles().map(|p| {
        let displacement = layout::FileOffset(p.displacement());
        View::new(displacement, p.period(), p.set().clone()).expect("a view")
    });
    let servers = piece.places.iter().map(|places| places[0].server);
    views.zip(servers).collect()
}

/// Neither the catalogue nor the stores have anything that does not fit.
#[track_caller]
fn assert_clean(service: &Service) {
    let findings = service.client().check().expect("check");
    assert!(findings.is_empty(), "{findings:?}");
    let output = service.pario().arg("doctor").output().expect("doctor");
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "pario doctor:\n{said}{errors}");
}
