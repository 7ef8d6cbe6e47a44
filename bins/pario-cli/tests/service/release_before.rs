//! A service directory that the release before left behind: everything in it is found, can be written
//! again, and is there after the next start.
//!
//! `testdata/service-v1.txt` has every file of the directory: `file PATH MODE LENGTH`, then the runs of its bytes
//! that are not zero, one per line: offset and bytes in hexadecimal. It was written by protocol version 1, disk
//! store version 1 and catalogue version 2: two servers of `pario up`, and one with two disks started by hand.

use std::os::unix::fs::{DirBuilderExt, FileExt, PermissionsExt};
use std::path::Path;

use crate::scratch::{Foreground, Scratch, text_of, wait_until};

/// What a file of the image holds; `name` is added so that no two files are alike.
fn content(len: u64, name: u64) -> Vec<u8> {
    let bytes = 0..len;
    bytes.map(|i| (i * 7 + i / 251 + name) as u8).collect()
}

const FILES: [(&str, u64, u64); 4] = [
    ("/plain", 3000, 1),
    ("/results/matrix", 4096, 2),
    ("/results/moved", 6144, 3),
    ("/owned", 2000, 4),
];

fn unpack(image: &Path, into: &Path) {
    let text = std::fs::read_to_string(image).expect("the image");
    let mut file = None;
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["file", path, mode, len] => {
                let path = into.join(path);
                let mut dir = std::fs::DirBuilder::new();
                let dir = dir.recursive(true).mode(0o700);
                dir.create(path.parent().expect("a directory"))
                    .expect("made");
                let made = std::fs::File::create(&path).expect("made");
                made.set_len(len.parse().expect("a length")).expect("room");
                let mode = u32::from_str_radix(mode, 8).expect("a mode");
                let mode = std::fs::Permissions::from_mode(mode);
                std::fs::set_permissions(&path, mode).expect("a mode");
                file = Some(made);
            }
            [offset, hex] => {
                let offset = u64::from_str_radix(offset, 16).expect("an offset");
                let pairs = hex.as_bytes().chunks(2);
                let byte = |pair| u8::from_str_radix(std::str::from_utf8(pair).expect("text"), 16);
                let bytes: Result<Vec<u8>, _> = pairs.map(byte).collect();
                let file = file.as_ref().expect("a file before its bytes");
                let bytes = bytes.expect("hexadecimal");
                file.write_all_at(&bytes, offset).expect("written");
            }
            _ => panic!("{line}"),
        }
    }
}

/// The service on the directory: its servers, and the one with two disks.
fn start(scratch: &Scratch) -> Foreground {
    scratch.up(&["--dir", "svc", "--servers", "2"]);
    let meta = format!("unix:{}", scratch.path("svc/meta.sock").display());
    let io = "unix:svc/io-two.sock";
    let disks = ["--disk", "svc/disk-a", "--disk", "svc/disk-b"];
    let place = ["io", "--meta", &meta, "--listen", io];
    let (server, _) = scratch.serve(&[&place[..], &disks[..]].concat());
    wait_until("all three servers serve", || {
        let status = run(scratch, &["status", "--json"]);
        let status: serde_json::Value = serde_json::from_str(&status).expect("JSON");
        let servers = status["servers"].as_array().expect("a list");
        let alive = servers.iter().filter(|s| s["state"] == "alive").count();
        (alive == 3).then_some(())
    });
    server
}

fn stop(scratch: &Scratch, mut server: Foreground) {
    server.terminate();
    run(scratch, &["down", "--dir", "svc"]);
}

#[track_caller]
fn run(scratch: &Scratch, arguments: &[&str]) -> String {
    let mut command = scratch.pario(arguments);
    if arguments[0] != "down" {
        let url = format!("unix:{}", scratch.path("svc/meta.sock").display());
        command.env("PARIO_URL", url);
    }
    text_of(command)
}

#[track_caller]
fn check(scratch: &Scratch, path: &str, expected: &[u8]) {
    run(scratch, &["get", path, "copy", "-q"]);
    let found = std::fs::read(scratch.path("copy")).expect("the copy");
    assert!(found == expected, "{path} has other bytes");
}

/// Waits until the doctor finds nothing: removals that the release before began may still be under way.
#[track_caller]
fn is_well(scratch: &Scratch) {
    let url = format!("unix:{}", scratch.path("svc/meta.sock").display());
    wait_until("all is well", || {
        let mut doctor = scratch.pario(&["doctor", "--scrub"]);
        let output = doctor.env("PARIO_URL", &url).output().expect("it runs");
        let text = String::from_utf8_lossy(&output.stdout);
        let is_well = output.status.success() && text.contains("all is well");
        if !is_well {
            eprintln!("{text}");
        }
        is_well.then_some(())
    });
}

#[test]
fn directory_of_the_release_before_is_served() {
    let scratch = Scratch::new("before");
    let image = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/service-v1.txt");
    unpack(&image, &scratch.path("svc"));

    let server = start(&scratch);
    for (path, len, name) in FILES {
        check(&scratch, path, &content(len, name));
    }
    check(&scratch, "/results/holes", &vec![0; 1 << 20]);
    let hints = run(&scratch, &["hint", "/results"]);
    assert!(hints.contains("sequential"), "{hints}");
    let stat = run(&scratch, &["stat", "/owned", "--json"]);
    let stat: serde_json::Value = serde_json::from_str(&stat).expect("JSON");
    assert_eq!(stat["size"], 2000, "{stat}");
    is_well(&scratch);

    // Written again by this release, moved, and made anew.
    for (path, len, name) in FILES {
        std::fs::write(scratch.path("source"), content(len, name + 100)).expect("written");
        run(&scratch, &["put", "source", path, "-q"]);
    }
    run(
        &scratch,
        &[
            "relayout",
            "/results/matrix",
            "--layout",
            "(*, block) onto 3",
            "-q",
        ],
    );
    run(&scratch, &["put", "source", "/results/new"]);
    stop(&scratch, server);

    let server = start(&scratch);
    for (path, len, name) in FILES {
        check(&scratch, path, &content(len, name + 100));
    }
    check(&scratch, "/results/new", &content(2000, 104));
    is_well(&scratch);
    stop(&scratch, server);
}
