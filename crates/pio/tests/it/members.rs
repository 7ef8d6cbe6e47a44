//! Members of a team that are threads, each with a memory and a client of its own.
//!
//! And files as other faces of the service make and see them.

use std::path::Path;

use client::{Client, ConnectOptions, OpenOptions, Team};
use dsm::{Address, Epoch, Options, PAGE_BYTES, SharedMemory};
use pio::{Pio, PioOptions};

/// A client of a directory with so many servers.
pub(crate) fn connect(dir: &Path, servers: usize) -> Client {
    let url = format!("dir:{}", dir.display());
    let options = embedded::Options {
        servers,
        ..embedded::Options::default()
    };
    let url = url.parse().expect("a directory");
    embedded::connect(&url, ConnectOptions::default(), &options).expect("a client")
}

/// Runs a program at as many members as there are clients.
pub(crate) fn run<R: Send>(
    clients: &[Client],
    options: &PioOptions,
    pages: usize,
    program: impl Fn(&SharedMemory, &Pio<'_>, Epoch) -> (Epoch, R) + Sync,
) -> Vec<R> {
    let memory_options = Options {
        address: Address::Any,
        ..Options::new(pages * PAGE_BYTES)
    };
    std::thread::scope(|scope| {
        let members: Vec<_> = Team::threads(clients.len())
            .into_iter()
            .zip(clients)
            .map(|(team, client)| {
                let (memory_options, program) = (&memory_options, &program);
                scope.spawn(move || {
                    let (memory, epoch) =
                        SharedMemory::start(team, memory_options).expect("a shared memory");
                    let pio = Pio::start(&memory, client, options.clone()).expect("parallel files");
                    let (epoch, result) = program(&memory, &pio, epoch);
                    // Nobody ends while another may call.
                    let epoch = memory.barrier(u32::MAX - 1, epoch).expect("a barrier");
                    drop(pio);
                    memory.exit(epoch).expect("all leave");
                    result
                })
            })
            .collect();
        members
            .into_iter()
            .map(|member| member.join().expect("a member"))
            .collect()
    })
}

/// A file as other faces of the service make it.
pub(crate) fn put(client: &Client, path: &str, layout: Option<&str>, bytes: &[u8]) {
    let mut options = OpenOptions::new().write().create();
    if let Some(layout) = layout {
        options = options.layout(layout);
    }
    let file = client.open(path, &options).expect("a new file");
    let mut done = 0;
    while done < bytes.len() {
        done += file
            .write_at(done as u64, &bytes[done..])
            .expect("it is written");
    }
    file.close().expect("it is closed");
}

/// What other faces see of a file.
pub(crate) fn get(client: &Client, path: &str) -> Vec<u8> {
    let file = client
        .open(path, &OpenOptions::new().read())
        .expect("a file");
    let mut bytes = vec![0; file.size().expect("a size") as usize];
    let got = file.read_at(0, &mut bytes).expect("it is read");
    assert_eq!(got, bytes.len());
    file.close().expect("it is closed");
    bytes
}

/// Bytes of which no two neighbours, and no two pages, are alike.
pub(crate) fn pattern(len: usize) -> Vec<u8> {
    let byte = |at: usize| (at.wrapping_mul(31) ^ (at >> 12).wrapping_mul(7)) as u8;
    (0..len).map(byte).collect()
}
