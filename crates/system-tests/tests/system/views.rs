//! Views: any number of them at once, overlapping ones, tiling from a displacement, and memory with
//! gaps on the other side.

use client::{OpenOptions, Sequence, View};
use system_tests::layouts::{LOGICAL, view_of, views_of};
use system_tests::plain_file::assert_bytes;
use system_tests::{PlainFile, Random, ServiceOptions, pattern};

use crate::{check_whole, create, open, read_all};

#[test]
fn seed000_s32_any_number_of_views_of_one_file_are_used_at_once() {
    let service = ServiceOptions::new(3).start();
    let (client, other) = (service.client(), service.client());
    let file = create(
        &client,
        "/file",
        Some("u8[17,19]"),
        "(cyclic(2), block) onto 3x1",
    );
    let mut model = PlainFile::new();
    let mut random = Random::of_run(32);
    let bytes = random.bytes(7000);
    file.write_at(0, &bytes).expect("written");
    model.write(&View::whole_file(), 0, &bytes);
    // Two handles for every view of the table, of two clients; all stay open.
    let views: Vec<View> = LOGICAL.iter().map(|l| l.view()).collect();
    let handles: Vec<_> = views
        .iter()
        .flat_map(|view| {
            [
                (view, open(&client, "/file")),
                (view, open(&other, "/file")),
            ]
        })
        .collect();
    for (view, handle) in &handles {
        handle.set_view(view).expect("a view");
    }
    for round in 0..3 {
        for (view, handle) in &handles {
            assert_bytes(
                &read_all(handle),
                &model.seen(view),
                &format!("round {round}"),
            );
            let there = view.len_within(model.size());
            let (at, bytes) = (random.below(there + 1), random.bytes(40));
            handle.write_at(at, &bytes).expect("written");
            model.write(view, at, &bytes);
        }
    }
    check_whole(&file, model.bytes());
}

#[test]
fn overlapping_views_show_the_same_bytes() {
    let service = ServiceOptions::new(4).start();
    let mut workers = service.workers(4);
    let client = service.client();
    let array = "u8[32,32]";
    let file = create(&client, "/file", Some(array), "(block, block) onto 2x2");
    // Halos: each worker's rows and one more on either side.
    let rows = |w: usize| (w * 8).saturating_sub(1)..(w * 8 + 9).min(32);
    workers.all(|_| "open\t0\t/file\trw\t\t".into());
    workers.all(|w| format!("view\t0\t0\t{array}\tslice[{}:{}, :]", w * 8, w * 8 + 8));
    workers.all(|w| format!("fill\t0\t0\t256\t{}", w + 1));
    workers.all(|w| {
        format!(
            "view\t0\t0\t{array}\tslice[{}:{}, :]",
            rows(w).start,
            rows(w).end
        )
    });
    let mut model = PlainFile::new();
    for w in 0..4 {
        let view = view_of(
            Some(array),
            0,
            &format!("slice[{}:{}, :]", w * 8, w * 8 + 8),
        );
        model.write(&view, 0, &pattern(&view, 0, 256, w as u64 + 1));
    }
    check_whole(&file, model.bytes());
    // All write what they see, with one tag: every byte gets the same from everybody who sees it.
    workers.all(|w| format!("fill\t0\t0\t{}\t9", rows(w).len() * 32));
    let whole = View::whole_file();
    check_whole(&file, &pattern(&whole, 0, 1024, 9));
    // One of them alone changes what the others see of its halo.
    workers.one(1).fill(0, 0, 320, 10);
    workers.one(0).check(0, 7 * 32, 64, 10);
    workers.one(2).check(0, 0, 64, 10);
    assert_eq!(workers.one(3).check(0, 0, 1, 9), 1, "not in anybody's halo");
}

#[test]
fn seed001_s24_views_tile_without_end_from_their_displacement() {
    let service = ServiceOptions::new(3).start();
    let client = service.client();
    let file = create(&client, "/file", None, "striped(13) over 3");
    let mut model = PlainFile::new();
    // The second byte pair of five, from byte 3 on, over thousands of tiles.
    let view = view_of(None, 3, "falls{(2,3)} period 10");
    file.set_view(&view).expect("a view");
    let bytes = Random::of_run(24).bytes(6000);
    file.write_at(4001, &bytes).expect("written");
    model.write(&view, 4001, &bytes);
    assert_eq!(file.size().expect("a size"), model.size());
    assert_eq!(model.size(), 3 + 10 * 5000 + 2 + 1);
    check_whole(&file, model.bytes());
    file.set_view(&view).expect("a view");
    assert_bytes(&read_all(&file), &model.seen(&view), "through the view");
}

#[test]
fn seed001_s25_memory_with_gaps_file_with_gaps_and_both() {
    let service = ServiceOptions::new(3).start();
    let client = service.client();
    let mut random = Random::of_run(25);
    let block = Sequence::from_blocks([(8, 4), (0, 6)]).expect("blocks");
    let gaps = block.repeat(3000, 16).expect("a sequence");
    let solid = Sequence::bytes(0, gaps.size()).expect("a sequence");
    let memory = random.bytes(48_000);
    for (number, (view, places)) in [
        ("whole", &gaps),
        ("strided(1, 3: 4x9)", &solid),
        ("strided(1, 3: 4x9)", &gaps),
    ]
    .into_iter()
    .enumerate()
    {
        let file = create(
            &client,
            &format!("/file-{number}"),
            None,
            "striped(100) over 3",
        );
        let view = view_of(None, 2, view);
        file.set_view(&view).expect("a view");
        let n = file
            .write_at_memory(7, memory[..].into(), 0, &client::Places::new(places))
            .expect("written");
        assert_eq!(n as u64, places.size());
        let packed: Vec<u8> = (0..places.size())
            .map(|k| memory[places.select(k).expect("a byte") as usize])
            .collect();
        let mut model = PlainFile::new();
        model.write(&view, 7, &packed);
        assert_bytes(&read_all(&file), &model.seen(&view), "packed");
        let mut back = vec![0; memory.len()];
        let n = file
            .read_at_memory(7, back[..].as_mut().into(), 0, &client::Places::new(places))
            .expect("read");
        assert_eq!(n as u64, places.size());
        for k in 0..places.size() {
            let at = places.select(k).expect("a byte") as usize;
            assert_eq!(back[at], memory[at], "byte {k}");
        }
        let touched = back.iter().filter(|b| **b != 0).count();
        assert_eq!(touched as u64, places.size(), "nothing between");
        check_whole(&file, model.bytes());
    }
}

#[test]
fn seed001_s80_a_view_is_known_to_all_servers_as_soon_as_it_is_set() {
    let service = ServiceOptions::new(4).start();
    let client = service.client();
    let file = create(
        &client,
        "/file",
        Some("u8[40,40]"),
        "(block, block) onto 2x2",
    );
    let other = open(&service.client(), "/file");
    let mut model = PlainFile::new();
    let mut random = Random::of_run(80);
    // Each view is used at once for an access that meets all servers; the handle that had the view
    // before and the one of another client are not disturbed.
    for round in 0..40 {
        let index = random.index(4);
        let view = &views_of(Some("u8[40,40]"), 0, "(*, cyclic(3)) onto 4")[index];
        file.set_view(view).expect("a view");
        let bytes = random.bytes(view.len_within(1600) as usize);
        file.write_at(0, &bytes).expect("written");
        model.write(view, 0, &bytes);
        assert_bytes(&read_all(&other), model.bytes(), &format!("round {round}"));
        assert_bytes(
            &read_all(&file),
            &model.seen(view),
            &format!("round {round}"),
        );
    }
}

#[test]
fn seed001_s17_everybody_is_told_the_same_about_a_file() {
    let service = ServiceOptions::new(3).start();
    let client = service.client();
    let file = create(&client, "/file", Some("f32[8,8]"), "(block, *) onto 3");
    file.write_at(0, &[1; 200]).expect("written");
    let seen: Vec<_> = (0..4)
        .map(|_| {
            let client = service.client();
            let stat = client.stat("/file").expect("stat");
            (stat, client.layout("/file").expect("a layout"))
        })
        .collect();
    assert!(seen.windows(2).all(|w| w[0] == w[1]), "{seen:?}");
    assert_eq!(seen[0].0.size, 200);
    assert_eq!(*file.layout(), seen[0].1.state);
    // Each server has the subfile that the layout says, of the same generation.
    let piece = &seen[0].1.state.pieces[0];
    for (index, places) in piece.places.iter().enumerate() {
        let all = client
            .subfiles(client::ServerId(places[0].server))
            .expect("subfiles");
        let is_there = all.iter().any(|s| {
            s.file == file.id() && s.index as usize == index && s.generation == piece.generation
        });
        let has_bytes = piece.partition.subfile_len(index, 200) > 0;
        assert!(is_there || !has_bytes, "subfile {index}: {all:?}");
    }
}

#[test]
fn seed001_s20_the_logical_size_is_the_same_for_blocks_and_for_views() {
    let service = ServiceOptions::new(3).start();
    let client = service.client();
    for (number, layout) in [
        "striped(10) over 3",
        "(*, block) onto 3",
        "(cyclic, *) onto 3",
    ]
    .into_iter()
    .enumerate()
    {
        let path = format!("/file-{number}");
        let file = create(&client, &path, Some("u8[12,12]"), layout);
        let view = view_of(Some("u8[12,12]"), 0, "(*, block) onto 3 [1]");
        let reader = open(&service.client(), &path);
        for end in [1, 7, 48, 49, 200] {
            file.set_view(&view).expect("a view");
            file.write_at(end - 1, &[5]).expect("written");
            let x = view
                .view_to_file(layout::ViewOffset(end - 1))
                .expect("a byte");
            assert_eq!(reader.size().expect("a size"), x.0 + 1, "{layout}");
            assert_eq!(client.stat(&path).expect("stat").size, x.0 + 1);
        }
    }
    let options = OpenOptions::new().read();
    assert_eq!(
        client
            .open("/file-0", &options)
            .expect("open")
            .array()
            .expect("an array")
            .bytes(),
        144
    );
}
