//! Many files, names of every kind, and that nothing is left of what was removed.
//!
//! Creating and removing go by many clients at once, since they are a matter of round trips.

use std::collections::BTreeSet;

use client::{OpenOptions, Status};
use system_tests::ServiceOptions;

use crate::{create, read_all};

#[test]
fn ten_thousand_files_are_created_listed_and_removed() {
    let service = ServiceOptions::new(3).start();
    let client = service.client();
    client.mkdir("/many", None).expect("a directory");
    let (threads, each) = (8, 1250);
    let name = |t: usize, i: usize| format!("/many/{t}-{i:04}");
    // As many clients as threads, since creating is a matter of round trips.
    std::thread::scope(|scope| {
        for t in 0..threads {
            let service = &service;
            scope.spawn(move || {
                let client = service.client();
                for i in 0..each {
                    let options = OpenOptions::new().write().exclusive();
                    let file = client.open(&name(t, i), &options).expect("a new file");
                    if i % 10 == 0 {
                        file.write_at(0, format!("{t} {i}").as_bytes())
                            .expect("written");
                    }
                    file.close().expect("closed");
                }
            });
        }
    });
    let listed: Vec<String> = client
        .list("/many")
        .expect("names")
        .map(|e| e.expect("a name").name)
        .collect();
    assert_eq!(listed.len(), threads * each);
    assert!(listed.is_sorted(), "ascending");
    assert_eq!(listed.iter().collect::<BTreeSet<_>>().len(), threads * each);
    assert_eq!(
        client.counts().expect("counts").files as usize,
        threads * each
    );
    for (t, i) in [(0, 0), (3, 640), (7, 1240), (5, 7)] {
        let path = name(t, i);
        let text = if i % 10 == 0 {
            format!("{t} {i}")
        } else {
            String::new()
        };
        assert_eq!(client.stat(&path).expect("stat").size, text.len() as u64);
        let file = client
            .open(&path, &OpenOptions::new().read())
            .expect("the file");
        assert_eq!(read_all(&file), text.as_bytes());
    }
    assert_eq!(
        client.rmdir("/many").expect_err("not empty").status(),
        Status::NotEmpty
    );
    std::thread::scope(|scope| {
        for t in 0..threads {
            let service = &service;
            scope.spawn(move || {
                let client = service.client();
                for i in 0..each {
                    client.unlink(&name(t, i)).expect("removed");
                }
            });
        }
    });
    client.rmdir("/many").expect("empty now");
    assert_eq!(client.counts().expect("counts").files, 0);
    service.wait_for_nothing();
    assert!(client.check().expect("checked").is_empty());
}

#[test]
fn seed001_s19_removing_a_file_removes_all_its_parts_on_all_servers() {
    for options in [ServiceOptions::new(3), ServiceOptions::new(3).disk()] {
        let service = options.start();
        let client = service.client();
        let held = |id| -> usize {
            let of = |i| client.subfiles(service.server_id(i)).expect("subfiles");
            (0..3)
                .map(|i| of(i).iter().filter(|s| s.file == id).count())
                .sum()
        };
        let file = create(&client, "/file", None, "striped(100) over 3");
        file.write_at(0, &[1; 5000]).expect("written");
        let id = file.id();
        let view = client::View::whole_file();
        client
            .put_view("/file", "all", "whole", &view)
            .expect("kept");
        assert_eq!(held(id), 3);
        // Open, it keeps its bytes without a name; with the last handle they go.
        client.unlink("/file").expect("removed");
        assert_eq!(read_all(&file), [1; 5000]);
        assert_eq!(held(id), 3);
        file.close().expect("closed");
        service.wait_for_nothing();
        assert_eq!(held(id), 0);
        // A file of the same name is another one.
        let again = create(&client, "/file", None, "striped(100) over 3");
        assert_ne!(again.id(), id);
        assert!(read_all(&again).is_empty());
        assert!(client.list_views("/file").expect("views").is_empty());
        again.close().expect("closed");
        client.unlink("/file").expect("removed");
        service.wait_for_nothing();
    }
}

#[test]
fn names_are_any_utf_8() {
    let service = ServiceOptions::new(2).start();
    let client = service.client();
    let names = [
        "plain",
        " ",
        "with space",
        "tab\tnewline\nbell\u{7}",
        "\u{1b}[31mred\u{1b}[0m",
        "ümlaut",        // composed
        "u\u{308}mlaut", // combining; another name
        "日本語のファイル",
        "🗂️👩‍🔬",
        "\u{202e}right to left",
        "-rf",
        "...",
        ".hidden",
        "back\\slash",
        "quote'\"`$()",
        "\u{ffff}",
        "\u{feff}",
        &"x".repeat(255),
        &"é".repeat(127),
    ];
    for (number, name) in names.iter().enumerate() {
        let path = format!("/{name}");
        let file = create(&client, &path, None, "striped(3) over 2");
        file.write_at(0, format!("file {number}").as_bytes())
            .expect("written");
        file.close().expect("closed");
        client.mkdir(&format!("/{name}-d"), None).err();
    }
    let listed: BTreeSet<String> = client
        .list("/")
        .expect("names")
        .map(|e| e.expect("a name").name)
        .collect();
    for (number, name) in names.iter().enumerate() {
        assert!(listed.contains(*name), "{name:?} of {listed:?}");
        let options = OpenOptions::new().read();
        let file = client
            .open(&format!("/{name}"), &options)
            .expect("the file");
        assert_eq!(
            read_all(&file),
            format!("file {number}").as_bytes(),
            "{name:?}"
        );
    }
    // As long as a name may be, and no longer; nothing, and what would be two names.
    let refused = [
        "x".repeat(256),
        "é".repeat(128),
        ".".into(),
        "..".into(),
        "a\0b".into(),
    ];
    for name in refused {
        let options = OpenOptions::new().write().create();
        let error = client.open(&format!("/{name}"), &options);
        let error = error.expect_err("no name for a file");
        assert!(!error.to_string().contains('\n'), "{error}");
    }
    for name in names {
        client
            .rename(&format!("/{name}"), "/other")
            .expect("renamed");
        client.unlink("/other").expect("removed");
    }
}
