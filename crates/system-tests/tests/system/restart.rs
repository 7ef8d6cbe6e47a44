//! Ending and starting again: what was there is there, and it is what a plain writer would have left.
//!
//! Death without warning is tested elsewhere.

use client::{OpenOptions, View};
use system_tests::layouts::{LOGICAL, PHYSICAL};
use system_tests::plain_file::assert_bytes;
use system_tests::{PlainFile, Random, ServiceOptions, Store, Transport, pattern};

use crate::{create, open, read_all};

#[test]
fn seed004_s13_after_a_shutdown_every_file_is_found_with_bytes_and_layout() {
    for transport in [Transport::Unix, Transport::TcpSecret] {
        let mut service = ServiceOptions::new(3).disk().transport(transport).start();
        let mut random = Random::of_run(13);
        let ids: Vec<_> = (0..3).map(|i| service.server_id(i)).collect();
        let mut files = Vec::new();
        {
            let client = service.client();
            client.mkdir("/dir", None).expect("a directory");
            for (number, physical) in PHYSICAL.iter().enumerate() {
                let path = format!("/dir/file-{number}");
                let mut options = OpenOptions::new().read().write().exclusive();
                if let Some(array) = physical.array {
                    options = options.array(array);
                }
                if let Some(text) = physical.text(&ids) {
                    options = options.layout(text);
                }
                let file = client.open(&path, &options).expect("a new file");
                let view = LOGICAL[number % LOGICAL.len()].view();
                file.set_view(&view).expect("a view");
                let bytes = random.bytes(2000);
                file.write_at(3, &bytes).expect("written");
                let mut model = PlainFile::new();
                model.write(&view, 3, &bytes);
                // Neither synced nor, half of them, closed: the shutdown has to do it.
                if number % 2 == 0 {
                    file.close().expect("closed");
                } else {
                    std::mem::forget(file);
                }
                files.push((path.clone(), model, client.layout(&path).expect("a layout")));
            }
            std::mem::forget(client);
        }
        for round in 0..2 {
            service.end_all();
            service.start_all();
            let client = service.client();
            for (path, model, layout) in &files {
                let now = client.layout(path).expect("a layout");
                assert_eq!((&now.text, &now.array), (&layout.text, &layout.array));
                assert_eq!(
                    now.state.pieces[0].partition,
                    layout.state.pieces[0].partition
                );
                let file = open(&client, path);
                let what = format!("{path} after end {round}, {}", layout.text);
                assert_eq!(file.size().expect("a size"), model.size(), "{what}");
                assert_bytes(&read_all(&file), model.bytes(), &what);
                assert_eq!(file.scrub().expect("scrubbed").damaged, 0);
            }
            assert_eq!(client.counts().expect("counts").files as usize, files.len());
            assert!(client.check().expect("checked").is_empty());
        }
    }
}

#[test]
fn clients_go_on_when_a_disk_service_was_restarted() {
    let mut service = ServiceOptions::new(2)
        .disk()
        .transport(Transport::Tcp)
        .start();
    let client = service.client();
    let file = create(&client, "/file", None, "striped(100) over 2");
    let whole = View::whole_file();
    file.write_at(0, &pattern(&whole, 0, 5000, 1))
        .expect("written");
    file.set_view_text("striped(30) over 2 [1]")
        .expect("a view");
    let view = file.view();
    for index in 0..2 {
        service.io(index).end();
        service.start_io(index);
        let bytes = pattern(&view, 0, 1000, 2 + index as u64);
        file.write_at(0, &bytes)
            .expect("written after a restart of a server");
        let mut found = vec![0; 1000];
        file.read_at(0, &mut found).expect("read");
        assert_bytes(&found, &bytes, "after a restart of a server");
    }
    service.meta().end();
    service.start_meta();
    file.write_at(0, &pattern(&view, 0, 1000, 9))
        .expect("written");
    client.mkdir("/after", None).expect("a directory");
    assert_eq!(file.size().expect("a size"), 5000);
    file.close().expect("closed");
}

#[test]
fn seed004_s38_an_exported_file_equals_the_one_a_plain_writer_leaves() {
    for store in [Store::Memory, Store::Disk] {
        let service = ServiceOptions::new(3).store(store).start();
        let client = service.client();
        let mut random = Random::of_run(38);
        for (number, layout) in [
            "striped(100) over 3",
            "(*, block) onto 3",
            "(cyclic, block) onto 3x2",
        ]
        .into_iter()
        .enumerate()
        {
            let path = format!("/file-{number}");
            let file = create(&client, &path, Some("f64[20,30]"), layout);
            // The plain writer: the same accesses on a file of this host.
            let plain = service.dir().join(format!("plain-{number}"));
            let mut model = PlainFile::new();
            for logical in LOGICAL.iter().skip(number).step_by(3) {
                let view = logical.view();
                file.set_view(&view).expect("a view");
                let (at, bytes) = (random.below(500), random.bytes(700));
                file.write_at(at, &bytes).expect("written");
                model.write(&view, at, &bytes);
            }
            std::fs::write(&plain, model.bytes()).expect("a plain file");
            let exported = service.dir().join(format!("exported-{number}"));
            let output = service
                .pario()
                .args(["get", "--quiet", &path])
                .arg(&exported)
                .output()
                .expect("pario get");
            assert!(output.status.success(), "{output:?}");
            let (left, right) = (std::fs::read(&exported), std::fs::read(&plain));
            assert_bytes(&left.expect("exported"), &right.expect("plain"), layout);
            // And back: onto the file it keeps its layout.
            let back = service
                .pario()
                .args(["put", "--quiet"])
                .arg(&plain)
                .arg(&path)
                .output()
                .expect("pario put");
            assert!(back.status.success(), "{back:?}");
            assert_eq!(client.layout(&path).expect("a layout").text, layout);
            crate::check_whole(&open(&client, &path), model.bytes());
        }
    }
}
