//! System tests: real processes over real sockets, compared with plain files.
//!
//! What is needed to start services and to kill parts of them is in the library of this crate.

mod cuts;
mod file_systems;
mod flipped;
mod holes;
mod irregular;
mod large;
mod many_clients;
mod many_files;
mod matrix;
mod messages;
mod order;
mod relayout;
mod restart;
mod views;
mod waiting;

use client::{Client, File, OpenOptions, View};
use system_tests::plain_file::assert_bytes;

/// A new file for reading and writing.
#[track_caller]
fn create(client: &Client, path: &str, array: Option<&str>, layout: &str) -> File {
    let mut options = OpenOptions::new().read().write().exclusive().layout(layout);
    if let Some(array) = array {
        options = options.array(array);
    }
    client.open(path, &options).expect("a new file")
}

/// A file that is there, for reading and writing.
#[track_caller]
fn open(client: &Client, path: &str) -> File {
    let options = OpenOptions::new().read().write();
    client.open(path, &options).expect("the file")
}

/// All that a handle's view shows.
#[track_caller]
fn read_all(file: &File) -> Vec<u8> {
    let len = file.view().len_within(file.size().expect("a size"));
    let mut bytes = vec![0; len as usize];
    let n = file.read_at(0, &mut bytes).expect("read");
    assert_eq!(n as u64, len, "bytes read");
    bytes
}

/// The file as a whole, whatever the view of the handle.
#[track_caller]
fn check_whole(file: &File, expected: &[u8]) {
    file.set_view(&View::whole_file()).expect("a view");
    assert_bytes(&read_all(file), expected, "the whole file");
}

/// The subfiles of a file as views, in order.
fn subfiles(file: &File) -> Vec<View> {
    let state = file.layout();
    let view = |p: falls::Periodic| {
        let displacement = layout::FileOffset(p.displacement());
        View::new(displacement, p.period(), p.set().clone()).expect("a view")
    };
    state.pieces[0].partition.subfiles().map(view).collect()
}
