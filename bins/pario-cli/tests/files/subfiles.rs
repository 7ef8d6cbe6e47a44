//! Subfiles as files of their own: fetched, changed and stored again, and refused where there are none. The bytes of a
//! subfile are those that the rule of its layout gives it.

use crate::{Service, pattern};

#[test]
fn a_subfile_is_fetched_and_stored_as_a_file() {
    let service = Service::start();
    let bytes = pattern(40_000, 9);
    service.write("m", &bytes);
    let layout = "striped(1KiB) over 3";
    service.silent(&["put", "-q", "m", "/m", "--layout", layout]);
    // What the rule says each of them has.
    let share = |k: usize| -> Vec<u8> {
        let stripes = bytes.chunks(1024).enumerate();
        let mine = stripes.filter(|(n, _)| n % 3 == k);
        mine.flat_map(|(_, stripe)| stripe.to_vec()).collect()
    };
    for k in 0..3 {
        let number = k.to_string();
        service.silent(&["get", "-q", "--subfile", &number, "/m", "part"]);
        assert_eq!(service.read("part"), share(k), "subfile {k}");
        let printed = service.bytes_of(&["get", "-q", "--subfile", &number, "/m", "-"]);
        assert_eq!(printed, share(k), "subfile {k}");
    }
    // Onto one of them: the others stay, and so does what is behind.
    let new = pattern(5000, 3);
    service.write("new", &new);
    service.silent(&["put", "-q", "--subfile", "1", "new", "/m"]);
    let mut wanted = bytes.clone();
    for (at, byte) in new.iter().enumerate() {
        wanted[(at / 1024 * 3 + 1) * 1024 + at % 1024] = *byte;
    }
    assert_eq!(service.bytes_of(&["cat", "/m"]), wanted);
    service.refused(
        &["get", "--subfile", "3", "/m", "part"],
        &["subfile: 3, but the file has 3"],
    );
    service.refused(&["put", "--subfile", "0", "new", "/none"], &["/none"]);
    // Another layout has other subfiles.
    service.text_of(&["relayout", "/m", "--layout", "striped(4KiB) over 2"]);
    service.silent(&["get", "-q", "--subfile", "1", "/m", "part"]);
    let stripes = wanted.chunks(4096).enumerate();
    let mine = stripes.filter(|(n, _)| n % 2 == 1);
    let mine: Vec<u8> = mine.flat_map(|(_, stripe)| stripe.to_vec()).collect();
    assert_eq!(service.read("part"), mine);
}
