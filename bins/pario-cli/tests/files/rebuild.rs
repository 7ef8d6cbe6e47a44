//! Files of a service whose catalogue is lost come back in another one, out of the stores alone: bytes, arrays, layouts, modes.
//! What no store knows does not come back, and is not claimed to.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::{Service, pattern};

/// The directories with data files of a service that has ended, one per server.
fn old_servers(service: &Service) -> Vec<String> {
    let entries = fs::read_dir(service.dir.join("service")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let has_data = |path: &PathBuf| {
        let names = fs::read_dir(path).into_iter().flatten().flatten();
        let mut names = names.map(|entry| entry.file_name());
        names.any(|name| name.to_string_lossy().ends_with(".sub"))
    };
    let mut found: Vec<String> = paths
        .filter(has_data)
        .map(|p| p.display().to_string())
        .collect();
    found.sort();
    found
}

/// Ends a service and takes its catalogue away.
fn lose(service: &Service) {
    let dir = service.dir.join("service");
    let ended = service
        .pario(&["down", "--dir"])
        .arg(&dir)
        .output()
        .unwrap();
    assert!(ended.status.success());
    for entry in fs::read_dir(&dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.starts_with("meta") || name.starts_with("catalogue") {
            let _ = fs::remove_dir_all(&path);
            let _ = fs::remove_file(&path);
        }
    }
}

#[test]
fn files_of_a_lost_catalogue_are_rebuilt_from_the_stores() {
    let old = Service::start_on("disk");
    let matrix = pattern(64 * 48 * 8, 1);
    let stripes = pattern(1_500_000, 2);
    let plain = pattern(70_000, 3);
    old.write("matrix", &matrix);
    old.write("stripes", &stripes);
    old.write("plain", &plain);
    old.silent(&["mkdir", "/results"]);
    let layout = "(block, cyclic(5)) onto 2x2";
    old.silent(&[
        "put",
        "-q",
        "matrix",
        "/results/matrix",
        "--array",
        "f64[64,48]",
        "--layout",
        layout,
    ]);
    old.silent(&[
        "put",
        "-q",
        "stripes",
        "/stripes",
        "--layout",
        "striped(4KiB) over [2,0]",
    ]);
    old.silent(&["put", "-q", "plain", "/results/plain"]);
    old.text_of(&[
        "relayout",
        "/results/plain",
        "--layout",
        "striped(1000) over 3",
    ]);
    // Until the bytes of the old layout are gone, the stores alone do not tell which layout counts.
    let names = |dir: &String| {
        fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
    };
    let is_moved = || {
        let all: Vec<OsString> = old_servers(&old).iter().flat_map(names).collect();
        let all: Vec<&str> = all.iter().filter_map(|name| name.to_str()).collect();
        let mut moved = all.iter().filter_map(|name| name.split_once("-2-"));
        moved.all(|(file, _)| {
            !all.iter()
                .any(|name| name.starts_with(&format!("{file}-1-")))
        })
    };
    let end = Instant::now() + Duration::from_secs(60);
    while !is_moved() {
        assert!(
            Instant::now() < end,
            "the subfiles of the old layout are still there"
        );
        std::thread::park_timeout(Duration::from_millis(10));
    }
    lose(&old);

    let new = Service::start_on("disk");
    let servers = old_servers(&old);
    assert!(servers.len() > 1, "{servers:?}");
    let mut rebuild = vec!["doctor", "--json", "--rebuild"];
    for server in &servers {
        rebuild.extend(["--from", server]);
    }
    // Of a run that was cut short.
    new.silent(&["mkdir", "/results"]);
    new.write("part", &plain[..100]);
    new.silent(&["put", "-q", "part", "/results/plain.rebuilding"]);
    for (files, already_there) in [(3, 0), (0, 3)] {
        let told = new.json_of(&rebuild);
        assert_eq!(told["files"], files, "{told}");
        assert_eq!(told["already_there"], already_there, "{told}");
        for (path, bytes) in [
            ("/results/matrix", &matrix),
            ("/stripes", &stripes),
            ("/results/plain", &plain),
        ] {
            assert!(new.bytes_of(&["cat", path]) == *bytes, "{path}");
        }
    }
    let facts = new.json_of(&["layout", "/results/matrix", "--json"]);
    assert_eq!(
        (&facts["array"], &facts["layout"]),
        (&"f64[64,48]".into(), &layout.into())
    );
    let listed = new.text_of(&["ls", "/results"]);
    assert!(!listed.contains("rebuilding"), "{listed}");
    // Stores that are none, and stores that are in use.
    new.refused(&["doctor", "--rebuild", "--from", "/"], &["no data files"]);
    let in_use = old_servers(&new);
    new.refused(
        &["doctor", "--rebuild", "--from", &in_use[0]],
        &["end its server first"],
    );
}
