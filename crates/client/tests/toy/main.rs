//! The client against a service that is an oracle: every byte's place is asked of the layout alone, and
//! every access is checked to name exactly the bytes that lie at its server.
//!
//! Scripts make servers refuse, break off, change the layout or answer in another order.

mod accesses;
mod modes;
mod repairs;
mod service;

use client::{Client, ConnectOptions, File, OpenOptions};
use service::Toy;

/// A client of the service.
pub fn connect(toy: &Toy) -> Client {
    Client::connect(&toy.url(), ConnectOptions::default()).unwrap()
}

/// A new file for reading and writing.
pub fn create(client: &Client, path: &str, array: &str, layout: &str) -> File {
    let mut options = OpenOptions::new().read().write().create().layout(layout);
    if !array.is_empty() {
        options = options.array(array);
    }
    client.open(path, &options).unwrap()
}

/// Bytes that tell their place.
pub fn pattern(len: usize, seed: usize) -> Vec<u8> {
    (0..len)
        .map(|i| ((i + seed) * 31 % 251) as u8 + 1)
        .collect()
}
