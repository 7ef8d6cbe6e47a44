//! Disks that go missing: a server with two of them, one replaced by an empty directory, by that of another server, or
//! declared lost. What was on it is an error that names it, never zeros, and is there again when the disk is.

use std::path::Path;
use std::process::Output;

use crate::scratch::{Foreground, Scratch, refusal_of, text_of, wait_until};

const FILES: u32 = 6;

fn content(file: u32) -> String {
    format!("what is in file {file}\n").repeat(50)
}

struct Rig {
    scratch: Scratch,
    url: String,
    _meta: Foreground,
}

impl Rig {
    fn new(name: &str) -> Rig {
        let scratch = Scratch::new(name);
        let (meta, url) = scratch.serve(&["meta", "--dir", "meta"]);
        Rig {
            scratch,
            url,
            _meta: meta,
        }
    }

    /// The server on some disks, with some options.
    fn serve(&self, disks: &[&str], options: &[&str]) -> Foreground {
        let disks = disks.iter().flat_map(|disk| ["--disk", disk]);
        let disks: Vec<&str> = disks.collect();
        let place = ["io", "--meta", &self.url, "--listen", "unix:io.sock"];
        let (server, _) = self.scratch.serve(&[&place, &disks[..], options].concat());
        server
    }

    fn refused_to_serve(&self, disks: &[&str]) -> String {
        let disks: Vec<&str> = disks.iter().flat_map(|disk| ["--disk", disk]).collect();
        let place = [
            "serve",
            "io",
            "--meta",
            &self.url,
            "--listen",
            "unix:x.sock",
        ];
        refusal_of(self.scratch.pario(&[&place, &disks[..]].concat()), 1)
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = self.scratch.pario(arguments);
        command.env("PARIO_URL", &self.url);
        command.output().expect("pario starts")
    }

    #[track_caller]
    fn text(&self, arguments: &[&str]) -> String {
        let mut command = self.scratch.pario(arguments);
        command.env("PARIO_URL", &self.url);
        text_of(command)
    }

    fn put(&self, file: u32, text: &str) -> Output {
        std::fs::write(self.scratch.path("source"), text).expect("written");
        self.run(&["put", "source", &format!("/f{file}"), "-q"])
    }

    /// Files that can be read, all of them as they were written; the others fail and name the directory.
    #[track_caller]
    fn readable(&self, lost: &str) -> Vec<u32> {
        let is_readable = |file: &u32| {
            let output = self.run(&["cat", &format!("/f{file}")]);
            let errors = String::from_utf8_lossy(&output.stderr);
            if output.status.success() {
                let found = String::from_utf8_lossy(&output.stdout);
                assert_eq!(found, content(*file), "file {file} has other bytes");
                return true;
            }
            assert_eq!(output.status.code(), Some(1), "{errors}");
            assert!(
                output.stdout.is_empty(),
                "bytes of a file that is not there"
            );
            assert!(errors.contains(lost), "{errors}");
            false
        };
        (0..FILES).filter(is_readable).collect()
    }

    fn data_files(&self, disk: &str) -> usize {
        let names = std::fs::read_dir(self.scratch.path(disk)).expect("a directory");
        let name = |e: std::io::Result<std::fs::DirEntry>| e.expect("a name").file_name();
        let is_data = |n: &std::ffi::OsString| n.to_string_lossy().ends_with(".sub");
        names.map(name).filter(is_data).count()
    }

    /// What the doctor finds; it exits with 1 then.
    #[track_caller]
    fn findings(&self) -> String {
        let output = self.run(&["doctor"]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(1), "{text}");
        text
    }

    #[track_caller]
    fn is_well(&self) {
        wait_until("all is well", || {
            let output = self.run(&["doctor"]);
            let text = String::from_utf8_lossy(&output.stdout);
            text.contains("all is well").then_some(())
        });
    }
}

fn swap_for_an_empty_one(disk: &Path) {
    std::fs::rename(disk, disk.with_extension("kept")).expect("renamed");
    std::fs::create_dir(disk).expect("made");
}

#[test]
fn missing_disk_is_an_error_that_names_it_and_its_files_are_back_with_it() {
    let rig = Rig::new("missing");
    let mut server = rig.serve(&["a", "b"], &[]);
    for file in 0..FILES {
        assert!(rig.put(file, &content(file)).status.success());
    }
    server.terminate();
    let (on_a, on_b) = (rig.data_files("a"), rig.data_files("b"));
    assert_eq!(on_a + on_b, FILES as usize);
    assert!(
        on_a > 0 && on_b > 0,
        "{on_a} on one disk, {on_b} on the other"
    );

    // Either of them, the first too.
    for (gone, count) in [("a", on_b), ("b", on_a)] {
        let dir = rig.scratch.path(gone);
        swap_for_an_empty_one(&dir);
        let mut server = rig.serve(&["a", "b"], &[]);
        let shown = dir.display().to_string();
        let said = wait_until("the server says so", || {
            Some(server.errors()).filter(|text| text.contains(&shown))
        });
        assert!(said.contains("--forget-disk"), "{said}");
        let readable = rig.readable(&shown);
        assert_eq!(readable.len(), count, "without {gone}");
        let found = rig.findings();
        assert!(found.contains("disk ") && found.contains(&shown), "{found}");
        let status = rig.text(&["status"]);
        let named = status.lines().find(|line| line.contains(&shown));
        let named = named.unwrap_or_else(|| panic!("no disk is named: {status}"));
        assert!(
            named.contains(": disk ") && named.contains(" is missing: "),
            "{named}"
        );
        let json = rig.text(&["status", "--json"]);
        assert!(
            json.contains("\"state\": \"missing\"") && json.contains(&shown),
            "{json}"
        );
        // No second copy is made, and new files go where there is a disk.
        for file in (0..FILES).filter(|file| !readable.contains(file)) {
            let output = rig.put(file, "other");
            assert_eq!(output.status.code(), Some(1), "file {file} was written");
        }
        assert!(rig.put(99, "new").status.success());
        assert_eq!(rig.text(&["cat", "/f99"]), "new");
        assert!(rig.run(&["rm", "/f99"]).status.success());
        assert_eq!(
            rig.data_files(gone),
            0,
            "something is in the place of the disk"
        );
        server.terminate();
        std::fs::remove_dir_all(&dir).expect("removed");
        std::fs::rename(dir.with_extension("kept"), &dir).expect("back");
    }
    let mut server = rig.serve(&["b", "a"], &[]);
    assert_eq!(rig.readable("").len(), FILES as usize, "both are back");
    rig.is_well();
    server.terminate();
    // Left out of the command line is missing too.
    let mut server = rig.serve(&["a"], &[]);
    assert_eq!(rig.readable("is not given").len(), on_a);
    server.terminate();
}

#[test]
fn disk_of_another_server_is_refused() {
    let rig = Rig::new("foreign");
    let mut server = rig.serve(&["a", "b"], &[]);
    assert!(rig.put(0, &content(0)).status.success());
    server.terminate();
    let mut other = rig.serve(&["c"], &[]);
    other.terminate();
    for disks in [["a", "c"], ["c", "b"]] {
        let said = rig.refused_to_serve(&disks);
        assert!(said.contains("of another server"), "{said}");
        assert!(said.contains("expected there"), "{said}");
    }
    // One that carries the right name but was swapped is told with what belongs there.
    let expected = std::fs::read_to_string(rig.scratch.path("a/disk")).expect("an identity");
    let id = expected.lines().find_map(|line| line.strip_prefix("disk "));
    let kept = rig.scratch.path("a.kept");
    std::fs::rename(rig.scratch.path("a"), &kept).expect("renamed");
    std::fs::rename(rig.scratch.path("c"), rig.scratch.path("a")).expect("renamed");
    let said = rig.refused_to_serve(&["b", "a"]);
    assert!(said.contains(id.expect("a number")), "{said}");
}

#[test]
fn disk_that_is_declared_lost_makes_room_for_a_new_one() {
    let rig = Rig::new("forget");
    let mut server = rig.serve(&["a", "b"], &[]);
    for file in 0..FILES {
        assert!(rig.put(file, &content(file)).status.success());
    }
    server.kill();
    let identity = std::fs::read_to_string(rig.scratch.path("a/disk")).expect("an identity");
    let id = identity.lines().find_map(|line| line.strip_prefix("disk "));
    let id = id.expect("a number").to_owned();
    let on_b = rig.data_files("b");
    swap_for_an_empty_one(&rig.scratch.path("a"));
    let mut server = rig.serve(&["a", "b"], &["--forget-disk", &id]);
    // Lost is another answer than empty.
    assert_eq!(rig.readable("declared lost").len(), on_b);
    let found = rig.findings();
    assert!(found.contains("lost "), "{found}");
    server.terminate();
    // It stays so, and the directory is a disk like any other now.
    let mut server = rig.serve(&["a", "b"], &[]);
    let readable = rig.readable("declared lost");
    assert_eq!(readable.len(), on_b);
    for file in (0..FILES).filter(|file| !readable.contains(file)) {
        assert!(rig.run(&["rm", &format!("/f{file}")]).status.success());
        assert!(
            rig.put(file, &content(file)).status.success(),
            "file {file}"
        );
    }
    assert_eq!(rig.readable("").len(), FILES as usize);
    rig.is_well();
    assert!(rig.data_files("a") > 0);
    server.terminate();
    // The old one does not come back by itself.
    std::fs::rename(rig.scratch.path("a"), rig.scratch.path("a.new")).expect("renamed");
    std::fs::rename(rig.scratch.path("a.kept"), rig.scratch.path("a")).expect("renamed");
    let said = rig.refused_to_serve(&["a", "a.new", "b"]);
    assert!(said.contains("declared lost"), "{said}");
}

#[test]
fn data_file_that_is_gone_is_not_a_hole() {
    let rig = Rig::new("gone");
    let mut server = rig.serve(&["a"], &["--state", "state"]);
    assert!(rig.put(0, &content(0)).status.success());
    assert!(rig.put(1, &content(1)).status.success());
    rig.text(&["create", "/empty", "--size", "100"]);
    server.terminate();
    let names = std::fs::read_dir(rig.scratch.path("a")).expect("a directory");
    let mut names: Vec<_> = names.map(|e| e.expect("a name").path()).collect();
    names.retain(|path| path.extension().is_some_and(|e| e == "sub"));
    names.sort();
    std::fs::remove_file(&names[0]).expect("removed");
    let mut server = rig.serve(&["a"], &["--state", "state"]);
    let output = rig.run(&["cat", "/f0"]);
    assert_eq!(output.status.code(), Some(1));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("lost"), "{errors}");
    assert_eq!(rig.text(&["cat", "/f1"]), content(1));
    let found = rig.findings();
    assert!(found.contains("/f0"), "{found}");
    server.terminate();
    // The whole directory replaced while the server keeps its number: it does not start.
    swap_for_an_empty_one(&rig.scratch.path("a"));
    let place = ["serve", "io", "--meta", &rig.url, "--listen", "unix:x.sock"];
    let disks = ["--disk", "a", "--state", "state"];
    let said = refusal_of(rig.scratch.pario(&[&place[..], &disks].concat()), 1);
    assert!(said.contains("is missing"), "{said}");
}
