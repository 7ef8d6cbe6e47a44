//! Growth, holes, truncation and regrowth, and bytes that no view covers.
//!
//! Everything against a plain file; sizes are chosen to fall into the middle of patterns.

use client::View;
use system_tests::layouts::{view_of, views_of};
use system_tests::{PlainFile, Random, ServiceOptions};

use crate::{check_whole, create, open};

#[test]
fn seed000_s18_bytes_before_a_displacement_are_kept_and_reached() {
    let service = ServiceOptions::new(3).start();
    let client = service.client();
    let array = Some("u8[10,10]");
    for (number, layout) in [
        "(block, *) onto 3",
        "(*, cyclic(3)) onto 3",
        "striped(7) over 3",
    ]
    .into_iter()
    .enumerate()
    {
        let path = format!("/file-{number}");
        let file = create(&client, &path, array, layout);
        let mut model = PlainFile::new();
        let header = Random::of_run(18).bytes(137);
        file.write_at(0, &header).expect("written");
        model.write(&View::whole_file(), 0, &header);
        // Elements from a displacement on cover everything behind the header.
        for (index, view) in views_of(array, 137, "(block, block) onto 2x2")
            .iter()
            .enumerate()
        {
            file.set_view(view).expect("a view");
            let bytes = vec![index as u8 + 1; 60];
            file.write_at(0, &bytes).expect("written");
            model.write(view, 0, &bytes);
        }
        check_whole(&file, model.bytes());
        assert_eq!(model.bytes()[..137], header);
        // A view that begins before the array sees both.
        let view = view_of(None, 130, "strided(1, 3: 5x7)");
        file.set_view(&view).expect("a view");
        assert_eq!(crate::read_all(&file), model.seen(&view));
    }
}

#[test]
fn bytes_that_no_view_covers_read_as_zeros_and_stay_as_they_are() {
    let service = ServiceOptions::new(2).start();
    let client = service.client();
    let file = create(&client, "/file", None, "striped(11) over 2");
    let view = view_of(None, 50, "falls{(2,4); (9,9)} period 13 [0]");
    let mut model = PlainFile::new();
    file.set_view(&view).expect("a view");
    file.write_at(0, &[9; 100]).expect("written");
    model.write(&view, 0, &[9; 100]);
    check_whole(&file, model.bytes());
    assert!(model.bytes()[..52].iter().all(|b| *b == 0));
    // Written by somebody else, they stay when the view is written again.
    file.write_at(0, &[1; 52]).expect("written");
    model.write(&View::whole_file(), 0, &[1; 52]);
    file.set_view(&view).expect("a view");
    file.write_at(10, &[8; 80]).expect("written");
    model.write(&view, 10, &[8; 80]);
    check_whole(&file, model.bytes());
}

#[test]
fn seed001_s13_truncated_bytes_are_gone_for_everybody_and_grow_again_as_zeros() {
    for options in [ServiceOptions::new(3), ServiceOptions::new(3).disk()] {
        let service = options.start();
        let (client, other) = (service.client(), service.client());
        let file = create(
            &client,
            "/file",
            Some("u16[9,7]"),
            "(cyclic, block) onto 3x2",
        );
        let elsewhere = open(&other, "/file");
        let mut model = PlainFile::new();
        let mut random = Random::of_run(13);
        for step in 0..30 {
            let size = model.size();
            match step % 3 {
                0 => {
                    let bytes = random.bytes(random.clone().within(1..700) as usize);
                    let at = random.below(size + 200);
                    file.write_at(at, &bytes).expect("written");
                    model.write(&View::whole_file(), at, &bytes);
                }
                1 => {
                    let to = random.below(size + 1);
                    elsewhere.resize(to).expect("resized");
                    model.resize(to);
                }
                _ => {
                    let to = size + random.below(400);
                    file.resize(to).expect("resized");
                    model.resize(to);
                }
            }
            for handle in [&file, &elsewhere] {
                assert_eq!(handle.size().expect("a size"), model.size(), "step {step}");
                check_whole(handle, model.bytes());
            }
        }
        assert_eq!(client.stat("/file").expect("stat").size, model.size());
    }
}

#[test]
fn seed001_s14_open_close_delete_read_write_and_resize_do_what_mpi_says() {
    let service = ServiceOptions::new(2).start();
    let client = service.client();
    let file = create(&client, "/file", None, "striped(64) over 2");
    assert!(file.is_new() && file.size().expect("a size") == 0);
    assert_eq!(file.read_at(0, &mut [0; 10]).expect("read"), 0);
    file.write_at(10, b"0123456789").expect("written");
    let mut found = [0xEE; 30];
    assert_eq!(
        file.read_at(5, &mut found).expect("read"),
        15,
        "short at the end"
    );
    assert_eq!(&found[..15], b"\0\0\0\0\x000123456789");
    file.preallocate(1000).expect("preallocated");
    assert_eq!(file.size().expect("a size"), 1000);
    file.preallocate(10).expect("preallocated");
    assert_eq!(file.size().expect("a size"), 1000, "never shrinks");
    file.resize(12).expect("resized");
    assert_eq!(crate::read_all(&file), b"\0\0\0\0\0\0\0\0\0\x0001");
    client.unlink("/file").expect("removed while open");
    assert!(client.stat("/file").is_err());
    file.write_at(12, b"23").expect("written without a name");
    assert_eq!(file.size().expect("a size"), 14);
    file.close().expect("closed");
    assert!(file.read_at(0, &mut [0; 1]).is_err(), "closed");
    assert!(
        client
            .open("/file", &client::OpenOptions::new().read())
            .is_err()
    );
    service.wait_for_nothing();
}
