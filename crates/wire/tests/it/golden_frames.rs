//! Golden frames: every message, byte for byte as version 5 writes it.
//!
//! `testdata/wire-v5.txt` has a line per sample: name, direction, and header with control part in
//! hexadecimal. `PARIO_BLESS=1` writes it anew, which is right for a message that is new and wrong
//! for one that was released: that is a new protocol version.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::{env, fs};

use crate::samples::Sample;
use wire::DecodeError;
use wire::frame::{HEADER_BYTES, Header};
use wire::message::{KINDS, access};

const HEAD: &str = "# Frames of protocol version 5: name, direction, header and control part. See docs/formats/wire.md.\n";

fn repository(path: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path)
}

fn line(sample: &Sample) -> String {
    let hex: String = sample.frame().iter().map(|b| format!("{b:02x}")).collect();
    format!("{} {} {hex}", sample.name, sample.direction)
}

#[test]
fn every_frame_is_as_it_was() {
    let path = repository("testdata/wire-v5.txt");
    let samples = crate::samples::all();
    let mut names = BTreeSet::new();
    for sample in &samples {
        let fresh = names.insert((&sample.name, sample.direction));
        assert!(fresh, "two samples {} {}", sample.name, sample.direction);
    }
    let lines: Vec<String> = samples.iter().map(line).collect();
    if env::var_os("PARIO_BLESS").is_some() {
        fs::write(&path, format!("{HEAD}{}\n", lines.join("\n"))).unwrap();
    }
    let text = fs::read_to_string(&path).unwrap();
    let kept: Vec<&str> = text.lines().filter(|l| !l.starts_with('#')).collect();
    let split = |line: &str| {
        let (name, hex) = line.rsplit_once(' ').expect("name, direction, bytes");
        (name.to_owned(), hex.to_owned())
    };
    let kept_frames: BTreeMap<_, _> = kept.iter().map(|l| split(l)).collect();
    let frames: BTreeMap<_, _> = lines.iter().map(|l| split(l)).collect();
    for (name, hex) in &frames {
        let was = kept_frames.get(name).unwrap_or_else(|| {
            panic!("{name} has no golden frame; PARIO_BLESS=1 adds it");
        });
        assert_eq!(was, hex, "{name} is written differently now");
    }
    for name in kept_frames.keys() {
        assert!(frames.contains_key(name), "{name} has no sample any more");
    }
    assert_eq!(kept, lines, "the lines stand in the order of the samples");
}

#[test]
fn every_kind_has_a_request_and_an_answer() {
    let samples = crate::samples::all();
    let accesses = [access::READ, access::WRITE, access::DATA];
    let numbers: BTreeSet<u16> = KINDS.iter().map(|k| k.number).chain(accesses).collect();
    assert_eq!(numbers.len(), KINDS.len() + 3, "a number is used twice");
    let names: BTreeSet<&str> = KINDS.iter().map(|k| k.name).collect();
    assert_eq!(names.len(), KINDS.len(), "a name is used twice");
    for direction in ["request", "answer"] {
        let shown: BTreeSet<u16> = samples
            .iter()
            .filter(|s| s.direction == direction && s.header.status.is_ok())
            .map(|s| s.header.kind)
            .collect();
        assert_eq!(shown, numbers, "kinds with a sample of an {direction}");
    }
    for kind in KINDS {
        let of_it = samples
            .iter()
            .filter(|s| s.header.kind == kind.number && s.header.status.is_ok());
        for sample in of_it {
            let recode = match sample.direction {
                "request" => kind.recode_request,
                _ => kind.recode_answer,
            };
            let name = sample.name.split('/').next();
            assert_eq!(name, Some(kind.name), "kind {:#04x}", kind.number);
            assert_eq!(recode(&sample.control).as_ref(), Ok(&sample.control));
        }
    }
}

#[test]
fn frames_decode_to_what_they_were() {
    for sample in crate::samples::all() {
        let frame = sample.frame();
        let (head, control) = frame.split_first_chunk::<HEADER_BYTES>().unwrap();
        assert_eq!(Header::decode(head), Ok(sample.header), "{}", sample.name);
        assert_eq!(Header::verify(head, control), Ok(()), "{}", sample.name);
        assert_eq!((sample.check)(control), Ok(()), "{}", sample.name);
    }
}

#[test]
fn every_truncation_and_every_trailing_byte_is_refused() {
    for sample in crate::samples::all() {
        let Sample { name, control, .. } = &sample;
        for cut in 0..control.len() {
            let found = (sample.check)(&control[..cut]);
            assert!(found.is_err(), "{name} cut at {cut} of {}", control.len());
        }
        let mut longer = control.clone();
        longer.push(0);
        for byte in 0..=255 {
            *longer.last_mut().unwrap() = byte;
            let found = (sample.check)(&longer);
            assert_eq!(found, Err(DecodeError::Trailing(1)), "{name} and {byte}");
        }
    }
}

/// The page of the protocol and the table of kinds name the same messages.
#[test]
fn the_page_lists_the_kinds() {
    let page = fs::read_to_string(repository("docs/formats/wire.md")).unwrap();
    let rows: Vec<(u16, &str)> = page
        .lines()
        .filter_map(|line| {
            let mut cells = line.strip_prefix("| `0x")?.split('|');
            let number = cells.next()?.trim().trim_end_matches('`');
            let name = cells.next()?.trim().trim_matches('`');
            Some((u16::from_str_radix(number, 16).ok()?, name))
        })
        .collect();
    let mut expected: Vec<(u16, &str)> = KINDS.iter().map(|k| (k.number, k.name)).collect();
    expected.extend([
        (access::READ, "READ"),
        (access::WRITE, "WRITE"),
        (access::DATA, "DATA"),
    ]);
    expected.sort_unstable();
    assert_eq!(rows, expected);
}
