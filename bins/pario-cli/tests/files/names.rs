//! Directories and names: making, listing, moving, removing, and names that a terminal would obey.
//! Nothing here looks at bytes of files.

use std::time::{Duration, Instant};

use crate::Service;

#[test]
fn directories_are_made_listed_and_removed() {
    let service = Service::start();
    assert_eq!(service.text_of(&["ls"]), "");
    service.silent(&["mkdir", "/a", "/b"]);
    service.silent(&["mkdir", "-p", "/a/x/y", "/a/x"]);
    service.silent(&["create", "/a/file"]);
    assert_eq!(service.text_of(&["ls"]), "a/\nb/\n");
    assert_eq!(service.text_of(&["ls", "a"]), "file\nx/\n");
    assert_eq!(service.text_of(&["ls", "/a/file"]), "file\n");
    let listing = service.json_of(&["ls", "--json", "/a"]);
    assert_eq!(listing["path"], "/a");
    assert_eq!(listing["entries"][0]["name"], "file");
    assert_eq!(listing["entries"][0]["size"], 0);
    assert_eq!(listing["entries"][1]["kind"], "directory");

    service.refused(&["mkdir", "/a"], &["/a: exists", "; "]);
    service.refused(&["mkdir", "/no/such"], &["/no/such: no such", "pario ls"]);
    service.refused(&["mkdir", "-p", "/a/file/z"], &["/a/file", "; "]);
    service.refused(&["rm", "/a"], &["/a", "not empty", "rm -r"]);
    service.refused(&["rm", "/a/nothing"], &["no such", "pario ls"]);
    service.refused(
        &["rm", "-r", "/"],
        &["'/' cannot be removed", "name what is in it"],
    );
    service.silent(&["rm", "-f", "/a/nothing", "/a/nothing/below"]);
    service.silent(&["rm", "/b"]);
    service.silent(&["rm", "-r", "/a"]);
    assert_eq!(service.text_of(&["ls"]), "");
}

#[test]
fn long_lists_are_fetched_in_parts() {
    let service = Service::start();
    let names: Vec<String> = (0..1500).map(|k| format!("/d/{k:04}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    service.silent(&[&["mkdir", "-p"], &names[..]].concat());
    let text = service.text_of(&["ls", "/d"]);
    assert_eq!(text.lines().count(), 1500);
    assert!(text.starts_with("0000/\n0001/\n") && text.ends_with("1499/\n"));
    let listing = service.json_of(&["ls", "/d", "--json"]);
    assert_eq!(listing["entries"].as_array().map(Vec::len), Some(1500));
    service.silent(&["rm", "-r", "/d"]);
    assert_eq!(service.text_of(&["ls"]), "");
    // What they were the names of is cleared meanwhile, and `status` says how far that is.
    let counted = |name: &str| {
        service.json_of(&["status", "--json"])[name]
            .as_u64()
            .unwrap()
    };
    let deadline = Instant::now() + Duration::from_secs(60);
    while counted("trees") > 0 {
        assert!(counted("directories") <= 1502 && counted("tree_names") <= 1500);
        assert!(Instant::now() < deadline, "it is never cleared");
    }
    assert_eq!(
        (counted("directories"), counted("tree_directories")),
        (1, 0)
    );
}

#[test]
fn names_move_like_files_of_this_host() {
    let service = Service::start();
    let one = service.write("one", b"1");
    let two = service.write("two", b"22");
    service.silent(&["mkdir", "/d", "/e"]);
    service.silent(&["put", &one, "/one"]);
    service.silent(&["put", &two, "/two"]);
    service.silent(&["mv", "/one", "/uno"]);
    assert_eq!(service.text_of(&["ls"]), "d/\ne/\ntwo\nuno\n");
    // Over another file, which is gone then.
    service.silent(&["mv", "/uno", "/two"]);
    assert_eq!(service.bytes_of(&["cat", "/two"]), b"1");
    service.silent(&["mv", "/two", "/d"]);
    assert_eq!(service.bytes_of(&["cat", "/d/two"]), b"1");
    service.silent(&["mv", "/d", "/e/"]);
    assert_eq!(service.text_of(&["ls", "/e/d"]), "two\n");

    service.refused(&["mv", "/nothing", "/x"], &["/nothing", "no such"]);
    service.refused(&["mv", "/e", "/e/d/x"], &["; "]);
    service.refused(&["mv", "/", "/x"], &["'/'", "; "]);
    service.refused(&["mv", "/e/d/two", "/no/such"], &["no such", "; "]);
    service.silent(&["put", &one, "/file"]);
    service.refused(&["mv", "/e", "/file"], &["not a directory", "; "]);
    service.silent(&["mkdir", "/f", "/f/e", "/f/e/full"]);
    service.refused(&["mv", "/e", "/f"], &["not empty", "; "]);
}

#[test]
fn names_of_any_kind_come_back_as_they_were() {
    let service = Service::start();
    let names = [
        "two words",
        "line\nbreak",
        "crab 🦀",
        "\u{1b}[31mred",
        "back\\slash",
        "-r",
        "..hidden",
        "tab\there",
        "e\u{301}",
        "right\u{202e}left",
    ];
    service.silent(&["mkdir", "/d"]);
    for (k, name) in names.iter().enumerate() {
        let text = k.to_string();
        service.bytes_with_input(&["put", "-", &format!("/d/{name}")], text.as_bytes());
        assert_eq!(service.text_of(&["cat", &format!("/d/{name}")]), text);
    }
    let listing = service.json_of(&["ls", "--json", "/d"]);
    let mut expected: Vec<&str> = names.to_vec();
    expected.sort_unstable();
    let found: Vec<&str> = listing["entries"]
        .as_array()
        .expect("entries")
        .iter()
        .map(|entry| entry["name"].as_str().expect("a name"))
        .collect();
    assert_eq!(found, expected);

    for arguments in [&["ls", "/d"][..], &["ls", "-l", "/d"], &["du", "-a", "/d"]] {
        let text = service.text_of(arguments);
        for name in [
            "two words",
            "line\\nbreak",
            "crab 🦀",
            "\\u{1b}[31mred",
            "back\\\\slash",
            "right\\u{202e}left",
        ] {
            assert!(text.contains(&format!("{name}\n")), "{name}: {text}");
        }
        let obeyed = |c: char| c.is_control() && c != '\n';
        assert!(!text.contains(obeyed), "{text}");
    }
    service.refused(
        &["cat", "/d/no\nsuch\u{1b}"],
        &["/d/no\\nsuch\\u{1b}: no such"],
    );

    service.silent(&["get", "-r", "/d", "."]);
    for (k, name) in names.iter().enumerate() {
        assert_eq!(
            service.read(&format!("d/{name}")),
            k.to_string().into_bytes()
        );
    }
    service.silent(&["put", "-r", "d", "/again"]);
    let again = service.json_of(&["ls", "--json", "/again"]);
    assert_eq!(again["entries"].as_array().map(Vec::len), Some(names.len()));
}

#[test]
fn facts_about_files_are_aligned_and_complete() {
    let service = Service::start();
    let local = service.write("local", &[7; 70_000]);
    service.silent(&["mkdir", "-m", "750", "/d"]);
    service.silent(&["put", &local, "/file"]);
    service.silent(&["create", "/small", "--mode", "600", "--size", "5"]);
    let text = service.text_of(&["ls", "-l"]);
    let lines: Vec<Vec<&str>> = text
        .lines()
        .map(|l| l.split_whitespace().collect())
        .collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert_eq!((lines[0][0], lines[0].last()), ("drwxr-x---", Some(&"d/")));
    assert!(
        lines[1][0].starts_with("-rw") && text.contains(" 70000 B "),
        "{text}"
    );
    assert_eq!(
        (lines[2][0], lines[2].last()),
        ("-rw-------", Some(&"small"))
    );
    let time = lines[1][lines[1].len() - 2];
    assert!(
        time.len() == 20 && time.ends_with('Z') && &time[10..11] == "T",
        "{time}"
    );
    // The column of the times is the same in all lines.
    let columns: Vec<Option<usize>> = text
        .lines()
        .map(|l| l.find("T").filter(|_| l.contains('Z')))
        .collect();
    assert!(columns.windows(2).all(|pair| pair[0] == pair[1]), "{text}");

    let facts = service.json_of(&["stat", "--json", "file"]);
    assert_eq!(
        (&facts["path"], &facts["kind"]),
        (&"/file".into(), &"file".into())
    );
    assert_eq!(
        (&facts["size"], &facts["array"]),
        (&70_000.into(), &serde_json::Value::Null)
    );
    assert_eq!(facts["layout"], "striped(1MiB) over 3");
    assert_eq!(facts["owner"], rustix::process::getuid().as_raw());
    let text = service.text_of(&["stat", "/file"]);
    for line in [
        "path       /file\n",
        "kind       file\n",
        "size       70000 B\n",
    ] {
        assert!(text.contains(line), "{text}");
    }
    assert!(
        service
            .text_of(&["stat", "/d"])
            .contains("mode       0750 drwxr-x---\n")
    );
    service.refused(&["stat", "/nothing"], &["/nothing: no such", "pario ls"]);
}
