//! Files as most tests use them: made, opened, filled with the pattern of a tag, read.
//!
//! Whatever fails here fails the test; tests of failures use the client itself.

use client::{Client, File, OpenOptions, View};

use crate::pattern;

/// A new file for reading and writing.
#[track_caller]
pub fn create(client: &Client, path: &str, layout: &str) -> File {
    let options = OpenOptions::new().read().write().exclusive().layout(layout);
    client.open(path, &options).expect("a new file")
}

/// A file that is there, for reading and writing.
#[track_caller]
pub fn open(client: &Client, path: &str) -> File {
    let options = OpenOptions::new().read().write();
    client.open(path, &options).expect("the file")
}

/// The pattern of a tag for a whole file.
pub fn whole(at: u64, len: usize, tag: u64) -> Vec<u8> {
    pattern(&View::whole_file(), at, len, tag)
}

/// What a file has there; shorter at its end.
#[track_caller]
pub fn read(file: &File, at: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0xee; len];
    let n = file.read_at(at, &mut bytes).expect("read");
    bytes.truncate(n);
    bytes
}
