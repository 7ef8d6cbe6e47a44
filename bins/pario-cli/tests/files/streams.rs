//! `pario stream` and what other commands do with stream files, as users run them.
//!
//! Files are made of plain arrays by `pario stream meta`; those of programs are in the tests of `streams`.

use crate::{Service, pattern};

#[test]
fn seed002_s48_files_of_other_programs_get_a_shape_and_streams_become_plain_arrays() {
    let service = Service::start();
    // Two records of 6 VPs with 8 bytes each, and a part of a third.
    let bytes = pattern(2 * 48 + 20, 5);
    let local = service.write("plain", &bytes);
    service.silent(&["put", "-q", &local, "/plain"]);
    let meta = ["stream", "meta", "/plain", "--shape", "2,3", "--block", "8"];
    service.refused(&meta, &["block: /plain has 116 bytes", "give a pad"]);
    service.text_of(&[&meta[..], &["--pad", "255"]].concat());
    let info = service.json_of(&["stream", "info", "--json", "/plain"]);
    assert_eq!(
        (&info["shape"][1], &info["longest"]),
        (&3.into(), &24.into())
    );
    assert_eq!(info["is_plain_array"], true);
    let stream = |vp: usize| {
        let at = |step: usize| step * 48 + vp * 8..step * 48 + vp * 8 + 8;
        let all = (0..3).flat_map(at);
        all.map(|i| bytes.get(i).copied().unwrap_or(255))
            .collect::<Vec<u8>>()
    };
    for vp in [0, 2, 5] {
        let dumped = service.bytes_of(&["stream", "dump", "/plain", "--vp", &vp.to_string()]);
        assert_eq!(dumped, stream(vp));
    }
    service.refused(
        &["stream", "dump", "/plain", "--vp", "6"],
        &["vp: 6", "0 to 5"],
    );
    service.text_of(&["stream", "nb", "/plain", "/array", "--block", "8"]);
    let mut padded = bytes.clone();
    padded.resize(144, 255);
    assert_eq!(service.bytes_of(&["cat", "/array"]), padded);
}

#[test]
fn stream_files_are_one_for_all_commands() {
    let service = Service::start();
    let bytes = pattern(96, 6);
    let local = service.write("plain", &bytes);
    service.silent(&["put", "-q", &local, "/a"]);
    service.refused(
        &["stream", "info", "/a"],
        &["no stream file", "pario stream meta"],
    );
    service.text_of(&["stream", "meta", "/a", "--shape", "12", "--block", "4"]);
    service.silent(&["mv", "/a", "/b"]);
    assert_eq!(service.json_of(&["stat", "--json", "/b"])["streams"][0], 12);
    // Fetched and stored again it has the same streams; another file under its name has none.
    service.silent(&["mkdir", "/d"]);
    service.silent(&["mv", "/b", "/d/b"]);
    service.silent(&["get", "-q", "-r", "/d", "copy"]);
    service.silent(&["put", "-q", "-r", "copy", "/e"]);
    assert_eq!(service.text_of(&["ls", "/e"]).trim(), "b");
    let first = service.bytes_of(&["stream", "dump", "/d/b", "--vp", "7"]);
    assert_eq!(
        service.bytes_of(&["stream", "dump", "/e/b", "--vp", "7"]),
        first
    );
    service.silent(&["put", "-q", &local, "/e/b"]);
    service.refused(&["stream", "check", "/e/b"], &["no stream file"]);
    // A newer format is refused by its number.
    let beside = service.local("copy/b.pario-stream");
    let text = std::fs::read_to_string(&beside).unwrap();
    std::fs::write(&beside, text.replace("pario-stream 1", "pario-stream 7")).unwrap();
    service.refused(&["put", "-q", "copy/b", "/f"], &["format 7", "newer"]);
    service.silent(&["rm", "/d/b"]);
    service.refused(&["stream", "info", "/d/b"], &["/d/b"]);
}
