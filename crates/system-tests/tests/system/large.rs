//! Large files: real ones beyond 200 MB, sparse ones beyond 4 GiB.
//!
//! The real one is moved in parts, so that the test itself stays small.

use client::View;
use system_tests::plain_file::assert_bytes;
use system_tests::{Random, ServiceOptions, pattern};

use crate::{create, open, read_all};

#[test]
fn seed004_s49_sparse_files_beyond_4_gib_take_what_was_written() {
    for options in [ServiceOptions::new(3), ServiceOptions::new(3).disk()] {
        let service = options.start();
        let client = service.client();
        for (number, layout) in ["striped(1MiB) over 3", "striped(1000) over 3", "whole"]
            .into_iter()
            .enumerate()
        {
            let path = format!("/file-{number}");
            let file = create(&client, &path, None, layout);
            let whole = View::whole_file();
            let places = [0, (5 << 30) - 7, 1 << 40, (1 << 40) + (1 << 33) + 12_345];
            for at in places {
                let bytes = pattern(&whole, at, 10_000, 49);
                file.write_at(at, &bytes).expect("written");
            }
            let end = places[3] + 10_000;
            file.sync().expect("synced");
            for handle in [&file, &open(&service.client(), &path)] {
                assert_eq!(handle.size().expect("a size"), end);
                for at in places {
                    // Zeros in front, the bytes, and what follows them.
                    let from = at.saturating_sub(500);
                    let mut found = vec![0xEE; 11_000];
                    let n = handle.read_at(from, &mut found).expect("read");
                    let mut expected = vec![0; (at - from) as usize];
                    expected.extend(pattern(&whole, at, 10_000, 49));
                    expected.resize(11_000.min((end - from) as usize), 0);
                    assert_bytes(&found[..n], &expected, &format!("{layout} around {at}"));
                }
                assert_eq!(handle.read_at(end, &mut [0; 1]).expect("read"), 0);
            }
            let allocated = client.allocated(&path).expect("allocated");
            assert!(allocated < 200 << 20, "{layout} takes {allocated}");
            // A view with wide strides meets the far end without touching what lies between.
            file.set_view_text_at(5, "falls{(0,0)} period 1GiB")
                .expect("a view");
            let mut seen = vec![0xEE; 2000];
            let n = file.read_at(0, &mut seen).expect("read");
            assert_eq!(n as u64, (end - 5).div_ceil(1 << 30));
            let shown = seen[..n].iter().enumerate().filter(|(_, b)| **b != 0);
            let at: Vec<usize> = shown.map(|(k, _)| k).collect();
            assert_eq!(at, [0, 5, 1024], "the bytes that were written");
            file.resize(1 << 32).expect("cut");
            assert_eq!(file.size().expect("a size"), 1 << 32);
            file.close().expect("closed");
        }
    }
}

#[test]
fn seed004_s49_files_of_more_than_200_mb_are_written_and_read() {
    // Less memory than bytes: hot extents have to be written back and loaded again.
    let service = ServiceOptions::new(3).disk().memory("32MiB").start();
    let client = service.client();
    let file = create(
        &client,
        "/file",
        Some("u8[2048,105000]"),
        "(block, *) onto 3",
    );
    let (rows, row) = (2048_u64, 105_000_u64);
    let part = 64 * row;
    let whole = View::whole_file();
    for k in 0..rows / 64 {
        let bytes = pattern(&whole, k * part, part as usize, 200);
        file.write_at(k * part, &bytes).expect("written");
    }
    assert_eq!(file.size().expect("a size"), rows * row);
    assert!(file.sync().expect("synced").is_durable);
    file.close().expect("closed");
    let file = open(&service.client(), "/file");
    let mut random = Random::of_run(200);
    // By rows in any order, and by a column block through a view.
    let mut parts: Vec<u64> = (0..rows / 64).collect();
    random.shuffle(&mut parts);
    let mut found = vec![0; part as usize];
    for k in parts {
        file.read_at(k * part, &mut found).expect("read");
        assert_bytes(
            &found,
            &pattern(&whole, k * part, part as usize, 200),
            "rows",
        );
    }
    file.set_view_text("(*, block) onto 100 [41]")
        .expect("a view");
    let view = file.view();
    let len = view.len_within(rows * row) as usize;
    assert_bytes(&read_all(&file), &pattern(&view, 0, len, 200), "columns");
}
