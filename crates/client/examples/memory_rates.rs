//! What non-contiguous memory costs beside contiguous memory, through direct access.
//!
//! `cargo run --release -p client --example memory_rates`. One server in a thread of the program, one
//! client, warm. Numbers for people; nothing is asserted.

use std::time::Instant;

use client::{Client, ConnectOptions, Endpoint, OpenOptions, Places, Sequence, ServiceUrl};
use ioserver::StoreOptions;

/// Nanoseconds of one call: the least of some rounds.
fn time(calls: usize, mut call: impl FnMut()) -> f64 {
    call();
    let rounds = (0..7).map(|_| {
        let started = Instant::now();
        for _ in 0..calls {
            call();
        }
        started.elapsed().as_nanos() as f64 / calls as f64
    });
    rounds.fold(f64::MAX, f64::min)
}

fn main() {
    let dir = std::env::temp_dir().join(format!("pario-memory-rates-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let socket = |name: &str| Endpoint::Unix(dir.join(name));
    let mut options = metaserver::Options::new(dir.join("catalogue"));
    options.listen = vec![socket("meta")];
    let manager = metaserver::start(options).unwrap();
    let store = StoreOptions::Memory {
        limit_bytes: 512 << 20,
    };
    let options = ioserver::Options::new(socket("meta"), socket("io"), store);
    let server = ioserver::start(options).unwrap();
    let url = ServiceUrl::At(socket("meta"));
    let client = Client::connect(&url, ConnectOptions::from_env().unwrap()).unwrap();
    println!("view      bytes memory                      write us  ratio   read us  ratio");
    for view in ["whole", "striped(64) over 4 [1]"] {
        for size in [64u64 << 10, 1 << 20, 16 << 20] {
            let options = OpenOptions::new().read().write().create().layout("whole");
            let file = client.open(&format!("/{size}"), &options).unwrap();
            file.write_at(0, &vec![1; 4 * size as usize]).unwrap();
            file.set_view_text(view).unwrap();
            let rows = 1u64 << ((size / 8).ilog2() / 2);
            let columns = size / 8 / rows;
            let shapes: [(&str, Sequence); 6] = [
                ("contiguous", Sequence::bytes(0, size).unwrap()),
                ("8 of 16", repeat(0, 8, size / 8, 16)),
                ("1 KiB of 1040", repeat(1032, 1024, size / 1024, 1040)),
                ("256 of 512", repeat(0, 256, size / 256, 512)),
                ("columns: 8 of 64", repeat(0, 8, size / 8, 64)),
                (
                    "transposed",
                    repeat(0, 8, rows, 8 * columns as i64)
                        .repeat(columns, 8)
                        .unwrap(),
                ),
            ];
            let mut base = (0.0, 0.0);
            for (name, sequence) in shapes {
                let places = Places::new(&sequence);
                let mut memory = vec![1u8; places.hull().unwrap().end as usize];
                let calls = ((64 << 20) / size).clamp(4, 500) as usize;
                let write = time(calls, || {
                    let source = memory[..].into();
                    file.write_at_memory(0, source, 0, &places).unwrap();
                });
                let read = time(calls, || {
                    let target = memory[..].as_mut().into();
                    file.read_at_memory(0, target, 0, &places).unwrap();
                });
                assert!(file.last_access().is_direct);
                if base.0 == 0.0 {
                    base = (write, read);
                }
                println!(
                    "{:7} {size:>8} {name:28} {:>9.1} {:>6.2} {:>9.1} {:>6.2}",
                    &view[..5],
                    write / 1e3,
                    write / base.0,
                    read / 1e3,
                    read / base.1
                );
            }
        }
    }
    drop(client);
    server.stop();
    drop(manager);
    let _ = std::fs::remove_dir_all(&dir);
}

fn repeat(start: i64, len: u64, count: u64, stride: i64) -> Sequence {
    Sequence::bytes(start, len)
        .unwrap()
        .repeat(count, stride)
        .unwrap()
}
