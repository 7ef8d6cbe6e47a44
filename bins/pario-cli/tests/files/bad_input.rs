//! What users get wrong: one line with the remedy, and nothing is changed. Wrong usage is code 2, all else
//! code 1; the service goes on.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use crate::Service;

#[test]
fn mistakes_are_named_with_the_remedy() {
    let service = Service::start();
    service.write("in", b"bytes");
    service.silent(&["mkdir", "-p", "/d/in"]);
    service.silent(&["put", "in", "/file"]);

    service.refused(
        &["put", "no-such-file", "/x"],
        &["cannot read no-such-file", "No such file"],
    );
    service.refused(&["put", "in", "/no/such"], &["/no/such: no such", "; "]);
    // A directory of that name is in the way; and one cannot be written to.
    service.refused(
        &["put", "in", "/d"],
        &["/d/in: is a directory", "name a file"],
    );
    service.refused(
        &["put", "-", "/d"],
        &["/d is a directory", "name a file in it"],
    );
    service.refused(
        &["put", "in", "/file/below"],
        &["/file/below: not a directory", "; "],
    );
    service.refused(&["put", "-r", ".", "/file"], &["/file: exists", "; "]);
    service.refused(
        &["get", "/nothing", "x"],
        &["/nothing: no such", "pario ls"],
    );
    assert!(!service.local("x").exists());
    service.refused(&["get", "/file", "no/such/x"], &["cannot write no/such/x"]);
    service.refused(&["get", "/d", "-"], &["/d is a directory"]);
    service.refused(&["get", "--json", "/file", "-"], &["--json"]);
    service.refused(&["cat", "/d"], &["/d: is a directory", "; "]);
    service.refused(&["cat", "/nothing"], &["no such"]);
    service.refused(&["ls", "/nothing"], &["no such"]);
    service.refused(&["ls", "/file/"], &["/file/: not a directory"]);
    service.refused(
        &["create", "/x", "--size", "many"],
        &["--size: 'many' is no size", "64KiB"],
    );
    service.refused(
        &["create", "/x", "--array", "f64[0]"],
        &["--array", "no bytes"],
    );
    service.refused(&["create", "/d"], &["/d", "directory", "; "]);
    service.refused(
        &["create", "/x", "--layout", "slice[0:2]"],
        &["--layout", "is a view"],
    );
    service.refused(
        &["create", "/x", "--layout", "(block, *) onto 2"],
        &["--layout: `(block, *) onto 2`"],
    );
    let long = format!("/{}", "n".repeat(300));
    service.refused(&["mkdir", &long], &["300 bytes", "255"]);
    // Nothing of that was stored.
    assert_eq!(service.text_of(&["ls"]), "d/\nfile\n");
    assert_eq!(service.bytes_of(&["cat", "/file"]), b"bytes");
}

#[test]
fn layouts_are_refused_at_the_character() {
    let service = Service::start();
    service.write("in", b"bytes");
    for command in [
        &["create", "/x"][..],
        &["put", "in", "/x"],
        &["relayout", "/x"],
    ] {
        let arguments = [command, &["--layout", "(blok, *) onto 4"]].concat();
        let output = service.pario(&arguments).output().expect("pario starts");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {errors}");
        let lines: Vec<&str> = errors.lines().collect();
        assert!(
            lines[0].starts_with("pario: --layout: expected a distribution"),
            "{errors}"
        );
        assert_eq!((lines.len(), lines[2].trim()), (3, "^"), "{errors}");
    }
    assert_eq!(service.text_of(&["ls"]), "");
}

#[test]
fn wrong_usage_is_code_2() {
    let service = Service::start();
    for arguments in [
        &["put", "in"][..],
        &["stat"],
        &["mv", "/a"],
        &["rm"],
        &["mkdir"],
        &["mkdir", "-m", "9", "/x"],
        &["cat"],
        &["create"],
        &["relayout", "/x"],
        &["du", "-s", "-a"],
        &["punch", "/x"],
        &["punch", "/x", "--range", "9..3"],
        &["ls", "/", "/"],
    ] {
        let output = service.pario(arguments).output().expect("pario starts");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
        assert!(errors.contains("--help"), "{arguments:?}: {errors}");
    }
    // Names that are no UTF-8 cannot be asked for.
    let name = OsStr::from_bytes(b"/\xff");
    let output = service
        .pario(&["stat"])
        .arg(name)
        .output()
        .expect("pario starts");
    assert_eq!(output.status.code(), Some(2));
    let local = service.local("tree").join(OsStr::from_bytes(b"\xff"));
    fs::create_dir(service.local("tree")).expect("made");
    fs::write(local, "").expect("written");
    service.refused(&["put", "-r", "tree", "/tree"], &["no UTF-8", "rename it"]);
}

#[test]
fn nobody_there_is_said_soon() {
    let service = Service::start();
    let none = format!("unix:{}/none.sock", service.dir.display());
    let output = service
        .pario(&["ls", "--url", &none])
        .env("PARIO_TIMEOUT", "0.2")
        .output()
        .expect("pario starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(
        errors.contains("cannot be reached") && errors.contains("none.sock"),
        "{errors}"
    );
    assert_eq!(errors.lines().count(), 1, "{errors}");
}
