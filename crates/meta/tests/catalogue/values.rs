//! Values kept with files, and arrays that get another extent, by example.
//!
//! That both survive crashes is seen in `crash`, over the model.

use meta::catalogue::{
    CreateOptions, MAX_VALUE_BYTES, MAX_VALUES, MAX_VALUES_BYTES, MoveRecord, NamedValue, UnlinkHow,
};
use wire::Status;
use wire::message::Bytes;

use crate::fixture::{ALICE, BOB, Fixture, laid_out, plain, refused, who};

fn value(name: &str, bytes: &[u8]) -> NamedValue {
    NamedValue {
        name: name.into(),
        value: Bytes(bytes.to_vec()),
    }
}

fn kept(f: &Fixture, path: &str) -> Vec<(String, Vec<u8>)> {
    let values = f.catalogue.snapshot().unwrap().values(&who(BOB), path);
    let pair = |v: NamedValue| (v.name, v.value.0);
    values.unwrap().into_iter().map(pair).collect()
}

#[test]
fn values_are_kept_with_the_file() {
    let mut f = Fixture::new(1);
    let options = CreateOptions {
        values: vec![value("made by", b"a test")],
        ..plain()
    };
    f.by(ALICE, |b, c| b.create(c, "/x", &options)).unwrap();
    // Creating what is there changes nothing.
    let other = CreateOptions {
        values: vec![value("made by", b"somebody else")],
        ..plain()
    };
    f.by(ALICE, |b, c| b.create(c, "/x", &other)).unwrap();
    let all = [value("ü", b""), value("a", b"1"), value("b", b"2")];
    f.by(ALICE, |b, c| b.change_values(c, "/x", &all, &[]))
        .unwrap();
    f.by(ALICE, |b, c| b.rename(c, "/x", "/y")).unwrap();
    let remove = ["b".to_owned(), "never".to_owned()];
    f.by(ALICE, |b, c| {
        b.change_values(c, "/y", &[value("a", b"3")], &remove)
    })
    .unwrap();
    let due = [("a", &b"3"[..]), ("made by", b"a test"), ("ü", b"")];
    let due: Vec<_> = due.map(|(n, v)| (n.to_owned(), v.to_vec())).into();
    assert_eq!(kept(&f, "/y"), due);
    let mut f = f.restart();
    assert_eq!(kept(&f, "/y"), due);
    let put = [value("c", b"")];
    refused(
        f.by(BOB, |b, c| b.change_values(c, "/y", &put, &[])),
        Status::PermissionDenied,
    );
    refused(
        f.by(ALICE, |b, c| b.change_values(c, "/", &put, &[])),
        Status::IsDirectory,
    );
    refused(
        f.by(ALICE, |b, c| b.change_values(c, "/q", &put, &[])),
        Status::NotFound,
    );
    f.by(ALICE, |b, c| b.unlink(c, "/y", UnlinkHow::EvenIfOpen))
        .unwrap();
    f.catalogue.transact(|b| b.end_recovery()).unwrap().unwrap();
    f.clean();
}

#[test]
fn what_a_file_keeps_is_bounded_and_refused_as_a_whole() {
    let mut f = Fixture::new(1);
    f.create(ALICE, "/x").unwrap();
    let longest = vec![7; MAX_VALUE_BYTES];
    let mut put = |values: &[NamedValue]| f.by(ALICE, |b, c| b.change_values(c, "/x", values, &[]));
    put(&[value("good", &longest)]).unwrap();
    for bad in [
        value("", b""),
        value("a/b", b""),
        value("long", &[&longest[..], &[7]].concat()),
    ] {
        refused(put(&[value("before", b""), bad]), Status::InvalidArgument);
    }
    let count = MAX_VALUES_BYTES / MAX_VALUE_BYTES;
    let much: Vec<_> = (1..count)
        .map(|i| value(&i.to_string(), &longest))
        .collect();
    refused(put(&much), Status::InvalidArgument);
    let many: Vec<_> = (0..MAX_VALUES)
        .map(|i| value(&i.to_string(), b""))
        .collect();
    refused(put(&many), Status::InvalidArgument);
    put(&many[1..]).unwrap();
    assert_eq!(kept(&f, "/x").len(), MAX_VALUES);
    refused(
        f.by(ALICE, |b, c| {
            let options = CreateOptions {
                values: vec![value("a/b", b"")],
                ..plain()
            };
            b.create(c, "/bad", &options)
        }),
        Status::InvalidArgument,
    );
    assert_eq!(f.names("/"), ["x"]);
    f.clean();
}

#[test]
fn arrays_get_another_extent_along_their_slowest_dimension() {
    let mut f = Fixture::new(2);
    let change = |f: &mut Fixture, path: &str, from: &str, to: &str| {
        f.by(ALICE, |b, c| b.change_array(c, path, from, to))
    };
    let array = Some("f64[8,6]");
    let rows = laid_out(array, Some("(block, *) onto 2"));
    let stripes = laid_out(array, Some("striped(96) over 2"));
    let columns = laid_out(Some("u8[3,4]:fortran"), None);
    for (path, options) in [("/rows", rows), ("/stripes", stripes), ("/f", columns)] {
        f.by(ALICE, |b, c| b.create(c, path, &options)).unwrap();
    }
    let homes = |f: &Fixture, path: &str| {
        let snapshot = f.catalogue.snapshot().unwrap();
        let stat = snapshot.stat(&who(ALICE), path).unwrap();
        let state = snapshot.layout(stat.file).unwrap();
        (stat.array.unwrap(), stat.layout.unwrap(), state)
    };
    let before = homes(&f, "/rows");
    let is = change(&mut f, "/rows", "f64[8, 6]", "f64[9,6]").unwrap();
    assert!(is.is_changed && is.array == "f64[9,6]");
    let (array, layout, state) = homes(&f, "/rows");
    assert_eq!(array, "f64[9,6]");
    assert_eq!(state, before.2, "bytes have other homes");
    // The text says where the bytes are, which are not blocks of nine rows.
    assert_eq!(layout, "falls{(0,191,-,1); (192,383,-,1)}");
    // Who knows an older array is told, and changes nothing.
    let is = change(&mut f, "/rows", "f64[8,6]", "f64[10,6]").unwrap();
    assert!(!is.is_changed && is.array == "f64[9,6]");
    let is = change(&mut f, "/stripes", "f64[8,6]", "f64[0,6]").unwrap();
    assert!(is.is_changed);
    assert_eq!(homes(&f, "/stripes").1, "striped(96) over 2");
    let is = change(&mut f, "/f", "u8[3,4]:fortran", "u8[3,9]:fortran").unwrap();
    assert!(is.is_changed);
    for (path, from, to) in [
        ("/rows", "f64[9,6]", "f64[9,7]"),
        ("/rows", "f64[9,6]", "f32[9,6]"),
        ("/rows", "f64[9,6]", "f64[9,6,1]"),
        ("/rows", "f64[9,6]", "f64[9,6]:fortran"),
        ("/f", "u8[3,9]:fortran", "u8[4,9]:fortran"),
    ] {
        refused(change(&mut f, path, from, to), Status::InvalidArgument);
    }
    refused(
        f.by(BOB, |b, c| {
            b.change_array(c, "/rows", "f64[9,6]", "f64[10,6]")
        }),
        Status::PermissionDenied,
    );
    let to = meta::catalogue::MoveTarget {
        layout: "striped(64) over 2".into(),
        ..Default::default()
    };
    let file = f.by(ALICE, |b, c| b.find(c, "/rows")).unwrap();
    let record = MoveRecord::default();
    f.by(ALICE, |b, c| b.begin_relayout(file, &to, 0, record, c.now))
        .unwrap();
    refused(
        change(&mut f, "/rows", "f64[9,6]", "f64[10,6]"),
        Status::Busy,
    );
    f.clean();
}
