//! What a peer can cause as often as it likes is told seldom.
//! The lines are counted in a process of their own, since all tests of a process write to one log.

#[allow(dead_code, reason = "not every test file uses all of the toy")]
#[path = "it/toy/mod.rs"]
mod toy;

use std::sync::atomic::{AtomicU64, Ordering};

use toy::{Served, greeted, refused};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use wire::Status;
use wire::message::session::GetSupervisor;

static LINES: AtomicU64 = AtomicU64::new(0);

/// Counts lines.
struct Counter;

impl Subscriber for Counter {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("serving") && *metadata.level() <= tracing::Level::INFO
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {
        LINES.fetch_add(1, Ordering::Relaxed);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[test]
fn ten_thousand_refusals_are_a_few_lines() {
    tracing::subscriber::set_global_default(Counter).unwrap();
    let toy = Served::start(None);
    let mut link = greeted(toy.unix(), 1);
    let mut out = Vec::new();
    for request in 0..10_000 {
        let answer = link.ask(request, &GetSupervisor {}, &mut out);
        assert_eq!(refused(answer).0, Status::QuotaExceeded);
    }
    let lines = LINES.load(Ordering::Relaxed);
    assert!((1..20).contains(&lines), "{lines} lines");
}
