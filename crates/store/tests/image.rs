//! An old image: a data file of format version 1, as an earlier program left it when it was killed.
//!
//! `testdata/disk-store-v1.txt` lists its bytes that are not zero, one run per line: offset and bytes
//! in hexadecimal. What the image holds, and why, stands in `docs/formats/disk-store.md`.

mod harness;

use harness::twin_store;
use store::disk::twin::{Loss, Twin};
use store::{Domain, Identity, Recovery, Store, SubfileId};

const NAME: &str = "00000000000000ab-2-3.sub";

fn identity() -> Identity {
    Identity {
        id: SubfileId {
            file: 0xab,
            generation: 2,
            index: 3,
        },
        domain: Domain {
            owner: 1000,
            group: 100,
            mode: 0o640,
            directory: 17,
        },
        incarnation: 5,
        note: b"/data/matrix (block, *) onto 4".to_vec(),
    }
}

fn block(text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize(4096, 0);
    bytes
}

/// What was done to the subfile before the program was killed.
fn make(twin: &Twin) {
    let store = twin_store(twin, 16 << 20);
    let subfile = store.create(&identity()).unwrap();
    subfile.write_at(0, &block("first, synced")).unwrap();
    subfile.write_at(4096, &block("stays")).unwrap();
    subfile.write_at(300 * 4096, b"far away").unwrap();
    subfile.sync().unwrap();
    subfile.write_at(0, &block("second, flushed")).unwrap();
    subfile.flush().unwrap();
    subfile.write_at(0, &block("third, flushed")).unwrap();
    subfile.flush().unwrap();
}

fn dump(bytes: &[u8]) -> String {
    let mut text = String::new();
    let mut at = 0;
    while let Some(first) = (at..bytes.len()).find(|&i| bytes[i] != 0) {
        let quiet = |i: usize| bytes[i..].iter().take(8).all(|&b| b == 0);
        let end = (first..bytes.len())
            .find(|&i| quiet(i))
            .unwrap_or(bytes.len());
        text += &format!("{first:x} ");
        for byte in &bytes[first..end] {
            text += &format!("{byte:02x}");
        }
        text += "\n";
        at = end;
    }
    text
}

fn parse(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for line in text.lines() {
        let (at, run) = line.split_once(' ').unwrap();
        let at = usize::from_str_radix(at, 16).unwrap();
        bytes.resize(bytes.len().max(at + run.len() / 2), 0);
        for (k, pair) in run.as_bytes().chunks(2).enumerate() {
            let pair = std::str::from_utf8(pair).unwrap();
            bytes[at + k] = u8::from_str_radix(pair, 16).unwrap();
        }
    }
    bytes
}

fn check(twin: &Twin) {
    let store = twin_store(twin, 16 << 20);
    assert_eq!(store.list().unwrap(), [identity()]);
    let subfile = store.open(identity().id).unwrap();
    assert_eq!(subfile.len(), 300 * 4096 + 8);
    let recovery = store.recovery(identity().id).unwrap();
    let expected = Recovery {
        was_open: true,
        kept_blocks: 1,
        dropped_blocks: 0,
    };
    assert_eq!(recovery, expected);
    let mut found = vec![0; 8192];
    subfile.read_at(0, &mut found).unwrap();
    assert!(found == [block("third, flushed"), block("stays")].concat());
    let mut far = [0; 10];
    subfile.read_at(300 * 4096 - 1, &mut far).unwrap();
    assert_eq!(&far, b"\0far away\0");
    assert!(subfile.scrub().unwrap().damaged.is_empty());
    subfile.write_at(0, b"and writable").unwrap();
    subfile.sync().unwrap();
}

#[test]
fn old_image_is_read() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../testdata/disk-store-v1.txt"
    );
    let text = std::fs::read_to_string(path).unwrap();
    let twin = Twin::new();
    twin.put(NAME, &parse(&text));
    check(&twin);
}

#[test]
fn image_made_now_has_the_same_shape() {
    let twin = Twin::new();
    make(&twin);
    let bytes = twin.bytes(NAME).unwrap();
    if std::env::var_os("PARIO_WRITE_IMAGE").is_some() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../testdata/disk-store-v1.txt"
        );
        std::fs::write(path, dump(&bytes)).unwrap();
    }
    assert!(parse(&dump(&bytes)) == bytes[..parse(&dump(&bytes)).len()]);
    // Byte for byte the same but for the tag, which is random, and the checksums it enters.
    assert_eq!(&bytes[..8], b"PARIOSUB");
    assert_eq!(&bytes[8192..8200], b"PARIOGRP");
    twin.restart(Loss::Nothing);
    check(&twin);
}
