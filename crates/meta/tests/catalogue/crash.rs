//! What survives: random operations against the model, with the disk crashing at any point.
//!
//! After every crash the catalogue is opened again on what the disk kept. It has to show every batch
//! that was acknowledged, and of the one that was under way all or nothing; `check` has to find
//! nothing broken. Then it goes on from there.

use meta::catalogue::{Catalogue, CreateOptions, Credentials, Severity};
use meta::{ClientId, Time};

use crate::fixture::Fixture;
use crate::model::{Model, Step};
use crate::simulated::Disk;
use random::Random;

/// Images tried per crash.
const FATES: u64 = 40;

#[track_caller]
fn sound(catalogue: &Catalogue, seed: u64) {
    let findings = catalogue.snapshot().unwrap().check().unwrap();
    let broken: Vec<_> = findings
        .iter()
        .filter(|f| f.severity() == Severity::Broken)
        .collect();
    assert!(broken.is_empty(), "seed {seed}: {broken:?}");
}

/// A batch of random steps; what the model is afterwards, if all were done.
fn batch(
    catalogue: &mut Catalogue,
    model: &Model,
    random: &mut Random,
) -> (Model, Result<(), meta::MetaError>) {
    let mut after = model.clone();
    let count = 1 + random.below(4);
    let result = catalogue.transact(|b| {
        for _ in 0..count {
            let step = Step::random(random, &after);
            if after.step(b, &step).is_err() {
                return;
            }
        }
    });
    (after, result)
}

fn end_recovery(catalogue: &mut Catalogue, model: &mut Model) {
    catalogue.transact(|b| b.end_recovery()).unwrap().unwrap();
    model.end_recovery();
}

#[test]
fn agrees_with_the_model() {
    for seed in 0..40 {
        let mut random = Random::new(seed);
        let disk = Disk::default();
        let mut catalogue = Catalogue::open_on(disk.clone()).unwrap();
        let mut model = Model::new();
        for round in 0..60 {
            let (after, result) = batch(&mut catalogue, &model, &mut random);
            result.unwrap();
            model = after;
            if round % 20 == 19 {
                drop(catalogue);
                catalogue = Catalogue::open_on(disk.clone()).unwrap();
                model.restart();
                end_recovery(&mut catalogue, &mut model);
            }
            if round % 6 == 5 {
                let difference = model.differs(&catalogue);
                assert_eq!(difference, None, "seed {seed}");
                sound(&catalogue, seed);
            }
        }
    }
}

#[test]
fn acknowledged_changes_survive_crashes() {
    let (mut crashes, mut kept_unacknowledged) = (0, 0);
    for seed in 0..60 {
        let mut random = Random::new(1_000 + seed);
        let mut disk = Disk::default();
        let mut catalogue = Catalogue::open_on(disk.clone()).unwrap();
        let mut model = Model::new();
        for _ in 0..6 {
            disk.crash_after(random.below(120));
            let mut batches = 0;
            let after = loop {
                batches += 1;
                assert!(
                    batches < 1000,
                    "seed {seed}: acknowledged without using the disk"
                );
                let (after, result) = batch(&mut catalogue, &model, &mut random);
                if result.is_err() {
                    // Nothing is acknowledged any more.
                    assert!(catalogue.transact(|_| ()).is_err());
                    break after;
                }
                model = after;
                if disk.has_crashed() {
                    break model.clone();
                }
            };
            crashes += 1;
            drop(catalogue);
            disk = disk.after_crash(&mut random);
            // It may crash again while it recovers.
            for _ in 0..2 {
                disk.crash_after(random.below(60));
                drop(Catalogue::open_on(disk.clone()));
                disk = disk.after_crash(&mut random);
            }
            catalogue = Catalogue::open_on(disk.clone()).unwrap();
            sound(&catalogue, seed);
            if let Some(difference) = model.differs(&catalogue) {
                assert_eq!(after.differs(&catalogue), None, "seed {seed}: {difference}");
                model = after;
                kept_unacknowledged += 1;
            }
            model.restart();
            end_recovery(&mut catalogue, &mut model);
            assert_eq!(model.differs(&catalogue), None, "seed {seed}");
        }
    }
    assert_eq!(crashes, 360);
    assert!(
        kept_unacknowledged > 0,
        "no crash came between commit and answer"
    );
}

#[test]
fn seed001_s16_files_are_created_wholly_or_not_at_all() {
    let caller = meta::catalogue::Caller {
        client: ClientId(1),
        credentials: &Credentials::ROOT,
        now: Time(0),
    };
    let prepared = {
        let disk = Disk::default();
        let mut catalogue = Catalogue::open_on(disk.clone()).unwrap();
        let join = meta::catalogue::Join {
            server: None,
            resumes: None,
            continues: None,
            address: "unix:/io".into(),
            local: None,
            store: meta::catalogue::StoreKind::Disk,
            capacity_bytes: 0,
            used_bytes: 0,
            distance: 0,
            identity: wire::message::Bytes::default(),
        };
        for _ in 0..3 {
            catalogue.transact(|b| b.join(&join)).unwrap().unwrap();
        }
        drop(catalogue);
        disk.content()
    };
    let (mut there, mut absent) = (0, 0);
    for step in 0.. {
        let disk = Disk::with(prepared.clone());
        let Ok(mut catalogue) = Catalogue::open_on(disk.clone()) else {
            unreachable!("opens before the crash is set");
        };
        disk.crash_after(step);
        let options = CreateOptions {
            mode: 0o644,
            ..CreateOptions::default()
        };
        let result = catalogue.transact(|b| b.create(&caller, "/x", &options));
        let acknowledged = result.is_ok_and(|r| r.is_ok());
        let finished = !disk.has_crashed();
        drop(catalogue);
        for fate in 0..FATES {
            let found = disk.after_crash(&mut Random::new(step * FATES + fate));
            let catalogue = Catalogue::open_on(found).unwrap();
            sound(&catalogue, step);
            let snapshot = catalogue.snapshot().unwrap();
            match snapshot.stat(&Credentials::ROOT, "/x") {
                Ok(stat) => {
                    // On all servers, with one set of parameters.
                    let state = snapshot.layout(stat.file).unwrap().decode().unwrap();
                    assert_eq!(state.pieces[0].places.len(), 3);
                    assert_eq!(stat.layout.as_deref(), Some("striped(1MiB) over 3"));
                    there += 1;
                }
                Err(_) => {
                    assert!(!acknowledged, "step {step}: acknowledged, but not there");
                    assert_eq!(snapshot.counts().unwrap().files, 0);
                    absent += 1;
                }
            }
        }
        if finished {
            assert!(acknowledged);
            break;
        }
    }
    assert!(there > FATES, "no crash came between commit and answer");
    assert!(absent > FATES, "no crash came before the commit");
}

/// A sync fails, the manager ends, and the next one finds in the page cache what may be nowhere else. What it builds
/// upon and acknowledges has to survive a power cut.
#[test]
fn what_is_acknowledged_after_a_failed_sync_survives_a_power_cut() {
    let mut failed = 0;
    for syncs in 0..12 {
        let mut fixture = Fixture::new(2);
        let disk = fixture.disk.clone();
        let create = |catalogue: &mut Catalogue, names: std::ops::Range<u32>| {
            let credentials = Credentials::ROOT;
            let caller = meta::catalogue::Caller {
                client: ClientId(1),
                credentials: &credentials,
                now: Time(1_000),
            };
            catalogue.transact(|b| {
                for name in names {
                    let path = format!("/a-name-of-some-length-{name:05}");
                    if b.create(&caller, &path, &CreateOptions::default()).is_err() {
                        return; // of a store that failed, which says so at the end
                    }
                }
            })
        };
        create(&mut fixture.catalogue, 0..400).unwrap();
        // Many pages change at once; the next one fails for good.
        disk.fail_sync_after(syncs % 4);
        let mut told = Ok(());
        for round in 0..4 {
            told = create(&mut fixture.catalogue, 400 + round * 300..700 + round * 300);
            if told.is_err() {
                break;
            }
        }
        assert!(
            told.is_err() && !disk.is_to_fail(),
            "after {syncs}: the failure was not told"
        );
        assert!(
            create(&mut fixture.catalogue, 9000..9001).is_err(),
            "it goes on"
        );
        failed += 1;
        let Fixture { catalogue, .. } = fixture;
        drop(catalogue);
        let mut catalogue = Catalogue::open_on(disk.clone()).unwrap();
        create(&mut catalogue, 9100..9101 + syncs as u32 / 4).unwrap();
        let names = |catalogue: &Catalogue| {
            let snapshot = catalogue.snapshot().unwrap();
            let listing = snapshot
                .list(&Credentials::ROOT, "/", None, 10_000)
                .unwrap();
            listing
                .entries
                .into_iter()
                .map(|e| e.name)
                .collect::<Vec<_>>()
        };
        let found = names(&catalogue);
        assert!(found.len() > 400);
        let left = disk.after_power_cut();
        let again = Catalogue::open_on(left).unwrap_or_else(|e| panic!("after {syncs}: {e}"));
        assert_eq!(names(&again), found, "after {syncs}");
        sound(&again, syncs);
    }
    assert!(failed > 8, "only {failed} syncs failed");
}
