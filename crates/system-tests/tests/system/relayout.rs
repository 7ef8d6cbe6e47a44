//! Moving files into other layouts while they are open: views, handles and readers go on.
//!
//! A move lets accesses wait; what they read and write is what they would have without it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use client::{OpenOptions, View};
use system_tests::layouts::{LOGICAL, PHYSICAL, view_of};
use system_tests::plain_file::assert_bytes;
use system_tests::{PlainFile, Random, ServiceOptions, Store, pattern, until};

use crate::{check_whole, create, open, read_all};

#[test]
fn seed000_s31_mappings_of_an_old_layout_are_not_used_for_the_new_one() {
    for store in [Store::Memory, Store::Disk] {
        let service = ServiceOptions::new(3).store(store).start();
        let (client, other) = (service.client(), service.client());
        let mut random = Random::of_run(31);
        let file = create(&client, "/file", Some("u8[24,24]"), "(block, *) onto 3");
        let view = view_of(Some("u8[24,24]"), 0, "(*, cyclic(5)) onto 3 [1]");
        file.set_view(&view).expect("a view");
        let elsewhere = open(&other, "/file");
        let mut model = PlainFile::new();
        let layouts = [
            "(*, block) onto 3",
            "(cyclic, cyclic) onto 2x2",
            "striped(7) over 3",
            "whole",
            "chunks(5,5) over 3",
            "(block, *) onto 3",
        ];
        for layout in layouts {
            // Used before, so that both sides have compiled it.
            let bytes = random.bytes(300);
            let at = random.below(400);
            file.write_at(at, &bytes).expect("written");
            model.write(&view, at, &bytes);
            assert_bytes(&read_all(&file), &model.seen(&view), layout);
            let done = other
                .relayout("/file", layout)
                .expect("begun")
                .wait()
                .expect("moved");
            assert_eq!(done.moved_bytes, done.total_bytes, "{done:?}");
            // The same handles with the same views, without being told.
            let bytes = random.bytes(300);
            file.write_at(at + 50, &bytes).expect("written");
            model.write(&view, at + 50, &bytes);
            assert_bytes(&read_all(&elsewhere), model.bytes(), layout);
            assert_bytes(&read_all(&file), &model.seen(&view), layout);
            assert_eq!(client.layout("/file").expect("a layout").text, layout);
        }
        // Nothing is left of the old generations.
        for handle in [file, elsewhere] {
            handle.close().expect("closed");
        }
        until("old subfiles", || {
            client.counts().expect("counts").removals == 0
        });
        let generation = client.layout("/file").expect("a layout").state.pieces[0].generation;
        for index in 0..3 {
            let left = client.subfiles(service.server_id(index)).expect("subfiles");
            assert!(left.iter().all(|s| s.generation == generation), "{left:?}");
        }
    }
}

#[test]
fn seed004_s37_readers_see_the_same_bytes_while_the_layout_changes() {
    let service = ServiceOptions::new(4).start();
    let client = service.client();
    let file = create(&client, "/file", Some("f32[64,64]"), "(block, *) onto 4");
    let whole = View::whole_file();
    let bytes = pattern(&whole, 0, 40_000, 37);
    file.write_at(0, &bytes).expect("written");
    let mut model = PlainFile::new();
    model.write(&whole, 0, &bytes);
    let is_over = AtomicBool::new(false);
    let reads: [AtomicU64; 4] = Default::default();
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..4)
            .map(|r| {
                let (service, model, is_over) = (&service, &model, &is_over);
                let reads = &reads[r as usize];
                scope.spawn(move || {
                    let client = service.client();
                    let mut random = Random::of_run(370 + r);
                    let options = OpenOptions::new().read();
                    let file = client.open("/file", &options).expect("the file");
                    while !is_over.load(Ordering::Relaxed) {
                        let view = LOGICAL[random.index(LOGICAL.len())].view();
                        file.set_view(&view).expect("a view");
                        assert_bytes(&read_all(&file), &model.seen(&view), "while it moves");
                        reads.fetch_add(1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        // Everybody reads before the first move, between any two, and after the last.
        let all_read = || {
            let counts = || reads.iter().map(|n| n.load(Ordering::Relaxed));
            let before: Vec<u64> = counts().collect();
            until("readers that go on", || {
                readers.iter().any(|r| r.is_finished())
                    || counts().zip(&before).all(|(n, b)| n > *b)
            });
        };
        let layouts = [
            "(*, block) onto 4",
            "(block, block) onto 2x2",
            "striped(100) over 4",
            "chunks(10,10) over 3",
            "(cyclic, *) onto 4",
        ];
        for layout in layouts {
            all_read();
            let moved = client.relayout("/file", layout).expect("begun");
            moved.wait().expect("moved");
        }
        all_read();
        is_over.store(true, Ordering::Relaxed);
        for reader in readers {
            reader.join().expect("a reader");
        }
    });
    check_whole(&file, &bytes);
}

#[test]
fn seed004_s37_writers_and_appenders_wait_and_lose_nothing() {
    let service = ServiceOptions::new(3).start();
    let client = service.client();
    let file = create(&client, "/file", None, "striped(100) over 3");
    file.resize(30_000).expect("resized");
    let appended = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..3)
            .map(|w: u64| {
                let service = &service;
                scope.spawn(move || {
                    let client = service.client();
                    let file = open(&client, "/file");
                    let view = view_of(None, 0, &format!("striped(50) over 3 [{w}]"));
                    file.set_view(&view).expect("a view");
                    let mut offsets = Vec::new();
                    for tag in 0..15 {
                        let bytes = pattern(&view, 0, 10_000, tag);
                        file.write_at(0, &bytes).expect("written");
                        offsets.push(file.append(&[w as u8 + 1; 100]).expect("appended"));
                    }
                    offsets
                })
            })
            .collect();
        for layout in ["striped(64) over 3 from 1", "striped(1000) over 2", "whole"] {
            client
                .relayout("/file", layout)
                .expect("begun")
                .wait()
                .expect("moved");
        }
        let all: Vec<Vec<u64>> = writers
            .into_iter()
            .map(|w| w.join().expect("a writer"))
            .collect();
        all
    });
    let mut expected = pattern(&View::whole_file(), 0, 30_000, 14);
    expected.resize(30_000 + 45 * 100, 0);
    for (w, offsets) in appended.iter().enumerate() {
        for at in offsets {
            let place = &mut expected[*at as usize..*at as usize + 100];
            assert!(place.iter().all(|b| *b == 0), "appended once each");
            place.fill(w as u8 + 1);
        }
    }
    check_whole(&file, &expected);
}

#[test]
fn seed004_s37_every_layout_is_moved_into_the_next() {
    let service = ServiceOptions::new(4).start();
    let client = service.client();
    let ids: Vec<_> = (0..4).map(|i| service.server_id(i)).collect();
    // Plain bytes can be moved into every layout without an array, arrays into those of their rank.
    let plain: Vec<String> = PHYSICAL
        .iter()
        .filter(|p| p.array.is_none())
        .filter_map(|p| p.text(&ids))
        .collect();
    let file = create(&client, "/file", None, &plain[plain.len() - 1]);
    let bytes = Random::of_run(38).bytes(12_345);
    file.write_at(0, &bytes).expect("written");
    for layout in &plain {
        client
            .relayout("/file", layout)
            .expect("begun")
            .wait()
            .expect("moved");
        check_whole(&file, &bytes);
    }
    // A server that came later takes part from then on; one that is not there is refused.
    drop(file);
    let error = client.relayout("/file", "striped(10) over [77]");
    assert!(
        error.and_then(|m| m.wait()).is_err(),
        "nobody has that number"
    );
    check_whole(&open(&client, "/file"), &bytes);
}

#[test]
fn seed004_s37_a_server_that_joins_later_takes_its_part() {
    let mut service = ServiceOptions::new(2).disk().start();
    let client = service.client();
    let file = create(&client, "/file", None, "striped(100) over 2");
    let bytes = Random::of_run(39).bytes(50_000);
    file.write_at(0, &bytes).expect("written");
    let third = service.add_io();
    let moved = client.relayout("/file", "striped(100) over 3");
    moved.expect("begun").wait().expect("moved");
    check_whole(&file, &bytes);
    let there = client.subfiles(service.server_id(third)).expect("subfiles");
    assert!(
        there.iter().any(|s| s.file == file.id() && s.len > 0),
        "{there:?}"
    );
}
