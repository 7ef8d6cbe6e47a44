//! `pario import` and `pario export`: files of numpy and Zarr there and back, and what is refused.
//!
//! Left to others: numpy, zarr-python and h5py themselves (`bindings/python/tests/test_program.py`).

use std::fs;

use super::Service;

/// A head as numpy writes it, and entries.
fn npy(descr: &str, order: &str, shape: &str, entries: &[u8]) -> Vec<u8> {
    let mut head = format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}");
    while (10 + head.len() + 1) % 64 != 0 {
        head.push(' ');
    }
    head.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((head.len() as u16).to_le_bytes());
    bytes.extend(head.into_bytes());
    bytes.extend(entries);
    bytes
}

fn entries(count: usize) -> Vec<u8> {
    (0..count).map(|n| (n * 37 % 251) as u8).collect()
}

fn run(service: &Service, arguments: &[&str]) -> (bool, String) {
    let output = service
        .pario(arguments)
        .current_dir(service.dir.join("local"))
        // Where there is no Python at all.
        .env("PARIO_PYTHON", "/nothing/python3")
        .output()
        .expect("pario starts");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.success(), errors)
}

#[track_caller]
fn succeeds(service: &Service, arguments: &[&str]) {
    let (is_good, errors) = run(service, arguments);
    assert!(is_good, "{arguments:?}: {errors}");
}

#[track_caller]
fn fails(service: &Service, arguments: &[&str], due: &str) {
    let (is_good, errors) = run(service, arguments);
    assert!(!is_good && errors.contains(due), "{arguments:?}: {errors}");
}

#[test]
fn files_of_numpy_come_back_byte_for_byte() {
    let service = Service::start();
    let local = service.dir.join("local");
    for (number, (descr, order, shape, count)) in [
        ("'<f8'", "False", "(30, 40)", 9600),
        ("'<i2'", "True", "(30, 40)", 2400),
        ("'>f4'", "False", "(7,)", 28),
        ("'<M8[ns]'", "False", "(2, 3, 4)", 192),
        ("[('a', '<i4'), ('b', '<f8', (2,))]", "False", "(5,)", 100),
        ("'|b1'", "False", "()", 1),
        ("'<f4'", "False", "(0, 3)", 0),
    ]
    .into_iter()
    .enumerate()
    {
        let bytes = npy(descr, order, shape, &entries(count));
        let (from, to, path) = (
            format!("in{number}.npy"),
            format!("out{number}.npy"),
            format!("/a{number}"),
        );
        fs::write(local.join(&from), &bytes).expect("written");
        succeeds(&service, &["import", &from, &path]);
        succeeds(&service, &["export", &path, &to]);
        assert!(
            fs::read(local.join(&to)).expect("exported") == bytes,
            "{descr}"
        );
        let raw = format!("out{number}.bin");
        succeeds(&service, &["export", &path, &raw]);
        assert!(
            fs::read(local.join(raw)).expect("exported") == entries(count),
            "{descr}"
        );
    }
    // Again, onto what is there, in a layout of its own.
    let layout = "(*, block) onto 3";
    succeeds(&service, &["import", "in0.npy", "/a0", "--layout", layout]);
    succeeds(&service, &["export", "/a0", "again.npy"]);
    let again = fs::read(local.join("again.npy")).expect("exported");
    assert!(again == fs::read(local.join("in0.npy")).expect("the first"));
    // Several at once.
    succeeds(&service, &["export", "/", "all.npz"]);
    succeeds(&service, &["import", "all.npz", "/copy"]);
    for number in 0..7 {
        let (path, to) = (format!("/copy/a{number}"), format!("copy{number}.npy"));
        succeeds(&service, &["export", &path, &to]);
        let (copy, first) = (
            fs::read(local.join(&to)),
            fs::read(local.join(format!("in{number}.npy"))),
        );
        assert!(
            copy.expect("a copy") == first.expect("the first"),
            "{number}"
        );
    }
}

#[test]
fn zarr_arrays_come_back() {
    let service = Service::start();
    let local = service.dir.join("local");
    for (number, (order, chunks)) in [("False", "7,11"), ("True", "30,1"), ("False", "64,64")]
        .into_iter()
        .enumerate()
    {
        let bytes = npy("'<i4'", order, "(30, 40)", &entries(4800));
        fs::write(local.join("in.npy"), &bytes).expect("written");
        succeeds(&service, &["import", "in.npy", "/a"]);
        let zarr = format!("a{number}.zarr");
        succeeds(&service, &["export", "/a", &zarr, "--chunks", chunks]);
        fails(&service, &["export", "/a", &zarr], "is there already");
        succeeds(&service, &["import", &zarr, "/b"]);
        succeeds(&service, &["export", "/b", "out.npy"]);
        assert!(
            fs::read(local.join("out.npy")).expect("exported") == bytes,
            "{order} {chunks}"
        );
    }
    // A chunk that is not there is full of the fill value.
    fs::remove_file(local.join("a0.zarr/c/0/0")).expect("removed");
    let json = local.join("a0.zarr/zarr.json");
    let text = fs::read_to_string(&json).expect("metadata");
    let changed = text.replace("\"fill_value\": 0", "\"fill_value\": 9");
    assert_ne!(text, changed);
    fs::write(&json, &changed).expect("written");
    succeeds(&service, &["import", "a0.zarr", "/c"]);
    succeeds(&service, &["export", "/c", "c.bin"]);
    let found = fs::read(local.join("c.bin")).expect("exported");
    assert_eq!(found[..28], [9, 0, 0, 0].repeat(7));
    // One that is cut off is damage.
    fs::write(local.join("a0.zarr/c/1/1"), b"short").expect("written");
    fails(
        &service,
        &["import", "a0.zarr", "/d"],
        "has 5 bytes, and 308 is a chunk",
    );
    fails(&service, &["export", "/d", "d.npy"], "/d");
    // What is compressed is left to Python, which is not there.
    let packed = changed.replace("\"codecs\": [", "\"codecs\": [{ \"name\": \"zstd\" },");
    fs::write(&json, packed).expect("written");
    fails(
        &service,
        &["import", "a0.zarr", "/d"],
        "/nothing/python3 is not there",
    );
}

#[test]
fn what_cannot_be_is_refused() {
    let service = Service::start();
    let local = service.dir.join("local");
    let whole = npy("'<f8'", "False", "(30, 40)", &entries(9600));
    fs::write(local.join("short.npy"), &whole[..5000]).expect("written");
    fails(
        &service,
        &["import", "short.npy", "/x"],
        "of 9600 bytes of its array",
    );
    fails(&service, &["export", "/x", "x.npy"], "/x");
    fs::write(local.join("x.npy"), npy("'|O'", "False", "(3,)", &[])).expect("written");
    fails(&service, &["import", "x.npy", "/x"], "no fixed size");
    fs::write(local.join("x.bin"), entries(100)).expect("written");
    fails(&service, &["import", "x.bin", "/x"], "give --array");
    fails(
        &service,
        &["import", "x.bin", "/x", "--array", "f64[4,4]"],
        "takes 128",
    );
    succeeds(&service, &["import", "x.bin", "/x", "--array", "u8[10,10]"]);
    fails(
        &service,
        &["export", "/x", "x.zarr", "--chunks", "3"],
        "one length of at least 1",
    );
    fails(
        &service,
        &["export", "/x", "x.h5"],
        "name one, as in x.h5:/data",
    );
    fs::write(local.join("x.h5"), b"no HDF5 at all").expect("written");
    fails(
        &service,
        &["import", "x.h5:/data", "/y"],
        "/nothing/python3 is not there",
    );
    fails(
        &service,
        &["import", "missing.npy", "/y"],
        "cannot read missing.npy",
    );
    fails(
        &service,
        &["import", "x.bin", "/y", "--format", "xls"],
        "'xls' is unknown",
    );
}
