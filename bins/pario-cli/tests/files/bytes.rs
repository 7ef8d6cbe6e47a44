//! Bytes in and out: files, directories, pipes, holes. Everything is compared byte for byte.
//! Layouts are the default here, and the subject of `layouts`.

use std::fs;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::process::Stdio;

use crate::{Service, pattern, space_of};

#[test]
fn bytes_come_back_as_they_were() {
    let service = Service::start();
    for len in [
        0,
        1,
        4095,
        1 << 20,
        (1 << 20) + 1,
        (8 << 20) + 1,
        30_000_001,
    ] {
        let bytes = pattern(len, len as u64);
        let local = service.write("in", &bytes);
        service.silent(&["put", &local, "/file"]);
        service.silent(&["get", "/file", "out"]);
        assert!(service.read("out") == bytes, "{len} bytes by put and get");
        assert!(
            service.bytes_of(&["cat", "/file"]) == bytes,
            "{len} bytes by cat"
        );
        assert!(
            service.bytes_of(&["get", "/file", "-"]) == bytes,
            "{len} bytes by get -"
        );
        let printed = service.bytes_with_input(&["put", "-", "/piped"], &bytes);
        assert_eq!(printed, b"");
        service.silent(&["get", "/piped", "out"]);
        assert!(service.read("out") == bytes, "{len} bytes by put -");
        assert_eq!(service.json_of(&["stat", "--json", "/piped"])["size"], len);
    }
    let both = service.bytes_of(&["cat", "/file", "/piped"]);
    assert_eq!(both.len(), 60_000_002);
    let facts = service
        .json_of(&["put", "--json", "in", "/file"])
        .to_string();
    assert!(facts.contains("\"bytes\":30000001"), "{facts}");
}

#[test]
fn memory_is_not_called_durable() {
    let service = Service::start();
    service.write("in", b"bytes");
    let output = service
        .pario(&["put", "--sync", "in", "/file"])
        .output()
        .expect("pario starts");
    assert!(output.status.success());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        errors.contains("in memory") && errors.lines().count() == 1,
        "{errors}"
    );
}

#[test]
fn holes_stay_holes() {
    let service = Service::start();
    let len = 100 << 20;
    let file = fs::File::create(service.local("sparse")).expect("created");
    let bytes = pattern(70_000, 3);
    file.write_all_at(&bytes, 0).expect("written");
    file.write_all_at(&bytes, (50 << 20) + 123)
        .expect("written");
    file.set_len(len).expect("resized");
    service.silent(&["put", "sparse", "/sparse"]);
    let facts = service.json_of(&["du", "-s", "--json", "/sparse"]);
    assert_eq!(facts["rows"][0]["size_bytes"], len);
    let allocated = facts["rows"][0]["allocated_bytes"]
        .as_u64()
        .expect("a number");
    assert!((140_000..20 << 20).contains(&allocated), "{allocated}");
    service.silent(&["get", "/sparse", "back"]);
    assert!(service.read("back") == service.read("sparse"));
    assert!(space_of(&service.local("back")) < 20 << 20);
    // Zeros that are sent come back as holes, too.
    let zeros = vec![0; 3 << 20];
    service.bytes_with_input(&["put", "-", "/zeros"], &zeros);
    service.silent(&["get", "/zeros", "zeros"]);
    assert!(service.read("zeros") == zeros);
}

#[test]
fn seed001_s13_punched_ranges_are_zero_and_give_their_space_back() {
    let service = Service::start();
    let mut bytes = pattern(3 << 20, 3);
    let file = service.write("in", &bytes);
    service.silent(&["put", &file, "/file"]);
    let facts = service.json_of(&["punch", "/file", "--range", "1MiB..2MiB", "--json"]);
    assert_eq!(
        (&facts["start"], &facts["end"]),
        (&(1 << 20).into(), &(2 << 20).into())
    );
    let freed = facts["freed_bytes"].as_u64().expect("a number");
    assert!(freed >= 1 << 19, "{freed}");
    let text = service.text_of(&["punch", "/file", "--range", "3000000.."]);
    assert!(
        text.starts_with("/file: bytes 3000000..3145728 are zero, "),
        "{text}"
    );
    bytes[1 << 20..2 << 20].fill(0);
    bytes[3_000_000..].fill(0);
    service.silent(&["get", "/file", "back"]);
    assert!(service.read("back") == bytes);
    service.refused(&["punch", "/nothing", "--range", "0..1"], &["no such"]);
}

#[test]
fn directories_go_and_come_with_all_that_is_in_them() {
    let service = Service::start();
    for (name, text) in [
        ("a", "1"),
        ("deep/er/b", "22"),
        ("deep/c", ""),
        ("deep/er/d e", "4"),
    ] {
        let path = service.local("tree").join(name);
        fs::create_dir_all(path.parent().expect("a directory")).expect("made");
        fs::write(path, text).expect("written");
    }
    fs::create_dir(service.local("tree/empty")).expect("made");
    service.refused(&["put", "tree", "/tree"], &["tree is a directory", "-r"]);
    service.silent(&["put", "-r", "tree", "/tree"]);
    assert_eq!(service.text_of(&["ls", "/tree"]), "a\ndeep/\nempty/\n");
    // Into a directory that is there, under its name; and over itself.
    service.silent(&["put", "-r", "tree", "/tree"]);
    assert_eq!(service.bytes_of(&["cat", "/tree/tree/deep/er/b"]), b"22");
    service.silent(&["put", "-r", "tree/.", "/"]);
    assert_eq!(service.bytes_of(&["cat", "/deep/er/d e"]), b"4");

    service.refused(&["get", "/tree", "x"], &["/tree is a directory", "-r"]);
    service.silent(&["get", "-r", "/tree/tree", "copy"]);
    service.silent(&["get", "-r", "/tree/tree", "."]);
    let output = std::process::Command::new("diff")
        .args(["-r", "copy", "tree"])
        .current_dir(service.local(""))
        .output()
        .expect("diff starts");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
    let facts = service.json_of(&["get", "-r", "--json", "/tree/tree", "more"]);
    assert_eq!((&facts["files"], &facts["bytes"]), (&4.into(), &4.into()));

    // What no service can keep is named, and the rest is stored.
    std::os::unix::fs::symlink("nowhere", service.local("tree/link")).expect("linked");
    let output = service
        .pario(&["put", "-r", "tree", "/links"])
        .output()
        .expect("pario starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(
        errors.contains("tree/link is left out") && errors.contains("1 entry was left out"),
        "{errors}"
    );
    assert_eq!(service.bytes_of(&["cat", "/links/deep/er/b"]), b"22");
}

#[test]
fn files_go_into_directories_under_their_names() {
    let service = Service::start();
    service.write("name", b"bytes");
    service.silent(&["mkdir", "/d"]);
    service.silent(&["put", "name", "/d"]);
    service.silent(&["put", "name", "/"]);
    assert_eq!(
        service.bytes_of(&["cat", "/d/name", "/name"]),
        b"bytesbytes"
    );
    fs::create_dir(service.local("there")).expect("made");
    service.silent(&["get", "/d/name", "there"]);
    assert_eq!(service.read("there/name"), b"bytes");
    service.silent(&["get", "/d/name", "/dev/null"]);
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let service = Service::start();
    service.write("in", &pattern(20 << 20, 1));
    service.silent(&["put", "in", "/large"]);
    for arguments in [
        &["cat", "/large", "/large"][..],
        &["get", "/large", "-"],
        &["ls", "-l"],
        &["du"],
    ] {
        let mut child = service
            .pario(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("pario starts");
        let mut stdout = child.stdout.take().expect("a pipe");
        if arguments[0] == "cat" {
            stdout.read_exact(&mut [0; 100]).expect("the beginning");
        }
        drop(stdout);
        let output = child.wait_with_output().expect("pario ends");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            (output.status.code(), &*errors),
            (Some(0), ""),
            "{arguments:?}"
        );
    }
    let full = fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .expect("there");
    let output = service
        .pario(&["cat", "/large"])
        .stdout(full)
        .output()
        .expect("pario starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        errors.starts_with("pario: cannot write to standard output: "),
        "{errors}"
    );
}

#[test]
fn a_directory_needs_no_service() {
    let service = Service::start();
    let bytes = pattern(3_000_001, 4);
    service.write("in", &bytes);
    let run = |arguments: &[&str]| {
        let output = service.pario(arguments).env_remove("PARIO_URL").output();
        crate::succeeded(arguments, output.expect("pario starts"))
    };
    let refused = service
        .pario(&["ls"])
        .env_remove("PARIO_URL")
        .output()
        .expect("pario starts");
    let errors = String::from_utf8_lossy(&refused.stderr);
    assert!(errors.contains("nothing is stored in .pario"), "{errors}");
    assert!(!service.local(".pario").exists(), "looking makes nothing");
    run(&["put", "in", "/file"]);
    assert!(run(&["cat", "/file"]) == bytes);
    assert!(run(&["cat", "--url", "dir:.pario", "/file"]) == bytes);
    assert_eq!(run(&["ls"]), b"file\n");
    assert_eq!(service.text_of(&["ls"]), "", "the service has other files");
}
