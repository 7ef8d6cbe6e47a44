//! Requests that come twice are done once, and what is kept for that is bounded.
//!
//! Which requests are repeated, and over which connections, is tested with the metadata manager.

use meta::catalogue::{Caller, Catalogue, Credentials, Identity, WINDOW};
use meta::{ClientId, MetaError, Time};

use crate::simulated::Disk;

const CLIENT: ClientId = ClientId(1 << 32);
const OTHER: ClientId = ClientId((1 << 32) + 1);

fn identity(number: u64) -> Identity {
    identity_of(CLIENT, number)
}

fn identity_of(client: ClientId, number: u64) -> Identity {
    Identity {
        client,
        number,
        kind: 7,
        is_repeated: false,
    }
}

/// A request that makes a directory, or, without one, changes nothing; whether it was done now.
fn ask(catalogue: &mut Catalogue, number: u64, path: Option<&str>) -> Result<bool, MetaError> {
    ask_as(catalogue, CLIENT, number, path)
}

fn ask_as(
    catalogue: &mut Catalogue,
    client: ClientId,
    number: u64,
    path: Option<&str>,
) -> Result<bool, MetaError> {
    let identity = identity_of(client, number);
    let done = catalogue.transact(|b| {
        let caller = Caller {
            client,
            credentials: &Credentials::ROOT,
            now: Time(0),
        };
        b.request(|b| {
            let work = |b: &mut meta::catalogue::Batch<'_>| {
                if let Some(path) = path {
                    b.mkdir(&caller, path, 0o755)?;
                }
                Ok((true, number.to_le_bytes().to_vec()))
            };
            b.once(identity, work, |_, note| {
                assert_eq!(note, number.to_le_bytes());
                Ok(false)
            })
        })
    });
    done.unwrap().unwrap()
}

/// Rows of the catalogue that notes are in, by what a snapshot finds.
fn durable(catalogue: &Catalogue, numbers: std::ops::Range<u64>) -> usize {
    let snapshot = catalogue.snapshot().unwrap();
    let found = |number: &u64| snapshot.note_of(identity(*number)).unwrap().is_some();
    numbers.filter(found).count()
}

#[test]
fn the_last_requests_are_known_and_no_more_is_kept() {
    let window = WINDOW as u64;
    let disk = Disk::default();
    let mut catalogue = Catalogue::open_on(disk.clone()).unwrap();
    let all = 1..3 * window;
    for number in all.clone() {
        assert!(ask(&mut catalogue, number, Some(&format!("/{number}"))).unwrap());
    }
    let check = |catalogue: &mut Catalogue| {
        assert_eq!(durable(catalogue, all.clone()), WINDOW);
        let last = all.end - window..all.end;
        for number in last.clone() {
            assert_eq!(ask(catalogue, number, None), Ok(false), "{number}");
        }
        for number in 1..last.start {
            let answer = ask(catalogue, number, Some("/again"));
            assert_eq!(answer, Err(MetaError::Forgotten), "{number}");
        }
    };
    check(&mut catalogue);
    drop(catalogue);
    check(&mut Catalogue::open_on(disk).unwrap());
}

#[test]
fn what_changes_nothing_writes_nothing_even_when_older_notes_are_dropped() {
    let disk = Disk::default();
    let mut catalogue = Catalogue::open_on(disk.clone()).unwrap();
    let window = WINDOW as u64;
    for number in 1..=window {
        ask(&mut catalogue, number, Some(&format!("/{number}"))).unwrap();
    }
    let commits = catalogue.commits();
    for number in window + 1..=2 * window {
        assert!(ask(&mut catalogue, number, None).unwrap());
    }
    assert_eq!(catalogue.commits(), commits);
    assert_eq!(ask(&mut catalogue, window, None), Err(MetaError::Forgotten));
    // The next change takes a slot that is free, and says what was dropped before it.
    ask(&mut catalogue, 2 * window + 1, Some("/next")).unwrap();
    assert!(durable(&catalogue, 1..3 * window) <= WINDOW);
    drop(catalogue);
    let mut catalogue = Catalogue::open_on(disk).unwrap();
    let late = ask(&mut catalogue, window, Some("/again"));
    assert!(!matches!(late, Ok(true)), "{late:?}");
    assert_eq!(ask(&mut catalogue, 2 * window + 1, None), Ok(false));
}

#[test]
fn request_of_several_transactions_has_one_note_which_is_the_last() {
    let disk = Disk::default();
    let mut catalogue = Catalogue::open_on(disk.clone()).unwrap();
    ask(&mut catalogue, 1, Some("/first")).unwrap();
    let mut note = |step: u64, path: Option<&str>| {
        let caller = Caller {
            client: CLIENT,
            credentials: &Credentials::ROOT,
            now: Time(0),
        };
        let noted = catalogue.transact(|b| {
            if let Some(path) = path {
                b.mkdir(&caller, path, 0o755)?;
            }
            b.note(identity(2), step.to_le_bytes().to_vec());
            Ok::<(), MetaError>(())
        });
        noted.unwrap().unwrap();
    };
    // More than there are slots, and the last in a transaction that changes nothing else.
    let steps = 2 * WINDOW as u64;
    for step in 0..steps {
        note(step, Some(&format!("/{step}")));
    }
    note(steps, None);
    drop(catalogue);
    let mut catalogue = Catalogue::open_on(disk).unwrap();
    let last = catalogue.transact(|b| b.note_of(identity(2))).unwrap();
    assert_eq!(last, Ok(Some(steps.to_le_bytes().to_vec())));
    assert_eq!(ask(&mut catalogue, 1, None), Ok(false), "it was dropped");
}

#[test]
fn one_number_is_for_one_request() {
    let mut catalogue = Catalogue::open_on(Disk::default()).unwrap();
    for (number, path) in [(1, Some("/d")), (2, None)] {
        ask(&mut catalogue, number, path).unwrap();
        let other = Identity {
            kind: 8,
            ..identity(number)
        };
        let answer = catalogue.transact(|b| b.note_of(other)).unwrap();
        let refused = answer.unwrap_err().to_string();
        assert!(refused.contains("its number was used"), "{refused}");
        assert_eq!(ask(&mut catalogue, number, path), Ok(false));
    }
}

#[test]
fn client_that_comes_back_late_keeps_what_it_does_then() {
    let disk = Disk::default();
    let mut catalogue = Catalogue::open_on(disk.clone()).unwrap();
    for (client, path) in [(CLIENT, "/a"), (OTHER, "/b")] {
        ask_as(&mut catalogue, client, 1, Some(path)).unwrap();
    }
    drop(catalogue);
    let mut catalogue = Catalogue::open_on(disk.clone()).unwrap();
    catalogue.transact(|b| b.forget_absent(|_| false)).unwrap();
    // Notes of both are to be removed with the next commit, which is one of the client that comes late.
    assert!(ask(&mut catalogue, 5, Some("/c")).unwrap());
    let note = |catalogue: &Catalogue, client, number| {
        let snapshot = catalogue.snapshot().unwrap();
        snapshot.note_of(identity_of(client, number)).unwrap()
    };
    ask(&mut catalogue, 6, Some("/d")).unwrap();
    assert!(note(&catalogue, CLIENT, 5).is_some() && note(&catalogue, CLIENT, 6).is_some());
    assert_eq!(note(&catalogue, OTHER, 1), None);
    assert_eq!(ask(&mut catalogue, 5, None), Ok(false));
    drop(catalogue);
    let mut catalogue = Catalogue::open_on(disk).unwrap();
    assert_eq!(ask(&mut catalogue, 5, None), Ok(false));
}

#[test]
fn client_that_comes_back_late_repeats_nothing_and_writes_over_its_notes() {
    let disk = Disk::default();
    let mut catalogue = Catalogue::open_on(disk.clone()).unwrap();
    for number in 1..=3 {
        ask(&mut catalogue, number, Some(&format!("/{number}"))).unwrap();
    }
    drop(catalogue);
    let mut catalogue = Catalogue::open_on(disk.clone()).unwrap();
    catalogue.transact(|b| b.forget_absent(|_| false)).unwrap();
    for number in 7..=10 {
        assert!(ask(&mut catalogue, number, Some(&format!("/{number}"))).unwrap());
        // What it did before is not known, so nothing below its first number is done.
        for earlier in [2, 6] {
            let again = ask(&mut catalogue, earlier, Some("/again"));
            assert_eq!(again, Err(MetaError::Forgotten), "{earlier}");
        }
    }
    // Three rows were written over, and the fourth is a new one: no old note is left, and no new one lost.
    assert_eq!(durable(&catalogue, 1..7), 0);
    drop(catalogue);
    let mut catalogue = Catalogue::open_on(disk).unwrap();
    for number in 7..=10 {
        assert_eq!(ask(&mut catalogue, number, None), Ok(false), "{number}");
    }
}
