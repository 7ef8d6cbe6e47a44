//! Claims against revocation, with threads as client and server: every access counts exactly once or
//! learns that it does not, whatever the server does meanwhile.
//!
//! Both sides map the same files, as two processes would.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use direct::{ClientPage, ClientTable, MappedSegment, ServerPage, ServerTable};

fn pair() -> (ServerTable, ServerPage, ClientTable, ClientPage) {
    let table = ServerTable::new().unwrap();
    let page = ServerPage::new().unwrap();
    let client_table = ClientTable::map(table.descriptor(), table.len()).unwrap();
    let client_page = ClientPage::map(page.descriptor(), page.len()).unwrap();
    (table, page, client_table, client_page)
}

#[test]
fn a_claim_is_seen_and_its_end_counts() {
    let (table, page, client_table, client_page) = pair();
    let entry = table.take().unwrap();
    let epoch = table.epoch(entry);
    let claim = client_page.claim(entry, epoch, true).unwrap();
    assert!(client_table.is_current(entry, epoch, 0));
    let raised = table.raise(entry);
    let found: Vec<_> = page.active(entry, raised).collect();
    assert_eq!(found.len(), 1);
    assert!(found[0].writes() && page.is_active(&found[0]));
    assert_eq!(page.active(entry + 1, 7).count(), 0, "of another file");
    assert!(claim.end(), "it ended before anybody took it back");
    assert!(!page.is_active(&found[0]));
    assert!(!page.revoke(&found[0]), "what ended counts");
    assert!(!client_table.is_current(entry, epoch, 0));
}

#[test]
fn a_revoked_claim_learns_it_and_says_when_it_is_done() {
    let (table, page, _, client_page) = pair();
    let entry = table.take().unwrap();
    let claim = client_page.claim(entry, table.epoch(entry), false).unwrap();
    let raised = table.raise(entry);
    let found = page.active(entry, raised).next().unwrap();
    assert!(!found.writes());
    assert!(page.revoke(&found));
    assert!(page.is_revoked(found.slot()));
    assert!(!claim.end());
    assert!(!page.is_revoked(found.slot()));
    assert!(
        client_page.claim(entry, raised, true).is_some(),
        "the slot is free again"
    );
}

#[test]
fn a_claim_with_the_new_epoch_is_nobodys_business() {
    let (table, page, client_table, client_page) = pair();
    let entry = table.take().unwrap();
    let raised = table.raise(entry);
    let claim = client_page.claim(entry, raised, true).unwrap();
    assert!(client_table.is_current(entry, raised, 0));
    assert_eq!(page.active(entry, raised).count(), 0);
    assert!(claim.end());
}

#[test]
fn a_fence_stops_those_who_come_and_shows_those_who_are_there() {
    let (table, page, client_table, client_page) = pair();
    let entry = table.take().unwrap();
    let epoch = table.epoch(entry);
    table.set_fence(entry, 2 * 7);
    assert!(client_table.is_current(entry, epoch, 7));
    assert!(!client_table.is_current(entry, epoch, 6), "planned before");
    let claim = client_page.claim(entry, epoch, true).unwrap();
    table.set_fence(entry, 2 * 7 + 1);
    assert!(!client_table.is_current(entry, epoch, 7), "a window moves");
    assert!(client_table.is_good(entry, epoch), "maps stay");
    let found: Vec<_> = page.claims(entry).collect();
    assert_eq!(found.len(), 1);
    assert_eq!(page.claims(entry + 1).count(), 0);
    assert!(claim.end() && !page.is_active(&found[0]));
    table.set_fence(entry, 2 * 8);
    assert!(!client_table.is_current(entry, epoch, 7));
    assert!(client_table.is_current(entry, epoch, 8));
}

#[test]
fn an_entry_that_goes_to_another_file_has_other_epochs() {
    let table = ServerTable::new().unwrap();
    let first = table.take().unwrap();
    let epoch = table.epoch(first);
    table.give(first);
    let again = table.take().unwrap();
    assert_eq!(first, again);
    assert!(table.epoch(again) > epoch);
}

#[test]
fn slots_and_entries_run_out_without_harm() {
    let (table, _, _, client_page) = pair();
    let claims: Vec<_> = std::iter::from_fn(|| client_page.claim(1, 1, true)).collect();
    assert_eq!(claims.len(), direct::SLOTS);
    drop(claims);
    assert!(client_page.claim(1, 1, true).is_some());
    let entries = std::iter::from_fn(|| table.take()).count();
    assert_eq!(entries, direct::ENTRIES as usize);
}

#[test]
fn marks_are_taken_once() {
    let (_, page, _, client_page) = pair();
    assert!(!page.take_mark(direct::MARKS - 1));
    client_page.mark(direct::MARKS - 1);
    client_page.mark(direct::MARKS - 1);
    assert!(page.has_mark(direct::MARKS - 1) && !page.has_mark(direct::MARKS - 2));
    assert!(page.take_mark(direct::MARKS - 1));
    assert!(!page.take_mark(direct::MARKS - 1));
}

#[test]
fn what_is_not_shared_memory_of_the_right_form_is_refused() {
    use std::os::fd::AsFd;
    let (table, page, _, _) = pair();
    let text = |e: std::io::Error| e.to_string();
    let long = table.len() + 4096;
    assert!(text(ClientTable::map(table.descriptor(), long).unwrap_err()).contains("length"));
    assert!(text(ClientTable::map(page.descriptor(), page.len()).unwrap_err()).contains("short"));
    let plain = std::fs::File::open("/proc/self/exe").unwrap();
    assert!(text(ClientPage::map(plain.as_fd(), 1 << 20).unwrap_err()).contains("memory file"));
    let loose = rustix::fs::memfd_create("loose", rustix::fs::MemfdFlags::ALLOW_SEALING).unwrap();
    rustix::fs::ftruncate(&loose, 1 << 20).unwrap();
    let loose = MappedSegment::map(loose.as_fd(), 1 << 20, true);
    assert!(text(loose.unwrap_err()).contains("cut off"));
}

/// The server moves a number per thread to another place again and again, revoking claims of slow ones;
/// clients raise their number where the map says it is. A number that counted is never lost, and one
/// that was revoked is at most one ahead, as if it had been repeated by message.
#[test]
fn what_counted_is_never_lost() {
    const MOVES: usize = 3000;
    const THREADS: usize = 2;
    let (table, page, client_table, client_page) = pair();
    let entry = table.take().unwrap();
    let place = || [const { AtomicU64::new(0) }; THREADS];
    let places: Arc<Vec<[AtomicU64; THREADS]>> = Arc::new((0..=MOVES).map(|_| place()).collect());
    // What a map message would say: where the numbers are in which epoch.
    let home = AtomicUsize::new(0);
    let first_epoch = table.epoch(entry);
    let is_over = AtomicBool::new(false);
    let counted = place();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (places, counted) = (&places, &counted[thread]);
            let (home, is_over) = (&home, &is_over);
            let (client_page, client_table) = (&client_page, &client_table);
            scope.spawn(move || {
                let mut number = 0;
                while !is_over.load(Ordering::Relaxed) {
                    let at = home.load(Ordering::SeqCst);
                    let epoch = first_epoch + at as u64;
                    let Some(claim) = client_page.claim(entry, epoch, true) else {
                        continue;
                    };
                    if !client_table.is_current(entry, epoch, 0) {
                        continue;
                    }
                    places[at][thread].store(number + 1, Ordering::Relaxed);
                    if at.is_multiple_of(7) {
                        std::thread::yield_now();
                    }
                    if claim.end() {
                        number += 1;
                        counted.store(number, Ordering::Relaxed);
                    }
                }
            });
        }
        // Moves begin when the others do.
        while counted.iter().any(|n| n.load(Ordering::Relaxed) == 0) {
            std::thread::yield_now();
        }
        for at in 0..MOVES {
            let raised = table.raise(entry);
            for claim in page.active(entry, raised) {
                for _ in 0..at % 3 {
                    std::thread::yield_now();
                }
                page.revoke(&claim);
            }
            for thread in 0..THREADS {
                let number = places[at][thread].load(Ordering::Relaxed);
                places[at + 1][thread].store(number, Ordering::Relaxed);
            }
            home.store(at + 1, Ordering::SeqCst);
        }
        is_over.store(true, Ordering::Relaxed);
    });
    for thread in 0..THREADS {
        let last = places[MOVES][thread].load(Ordering::Relaxed);
        let counted = counted[thread].load(Ordering::Relaxed);
        assert!(
            counted > 0 && (last == counted || last == counted + 1),
            "{last} {counted}"
        );
    }
}
