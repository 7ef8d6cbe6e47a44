//! The same file written and read in different ways has the same bytes: one after the other, in parallel,
//! coordinated, and the largest cube of the thesis piece by piece.

use client::{File, Hints, OpenOptions};

use crate::service::{Service, create, pattern};

const ARRAY: &str = "i32[12,10]";
const LEN: usize = 12 * 10 * 4;
const LAYOUT: &str = "(block, block) onto 2x2";

fn everything(file: &File) -> Vec<u8> {
    let mut bytes = vec![0; LEN + 1];
    let n = file.read_at(0, &mut bytes).unwrap();
    bytes.truncate(n);
    bytes
}

#[test]
fn seed004_s76_sequential_parallel_and_coordinated_accesses_give_the_same_bytes() {
    let service = Service::start(3);
    let client = service.connect();
    let model = pattern(LEN, 4);
    // Sequential: one process, its pointer, pieces of any length.
    let sequential = create(&client, "/sequential", ARRAY, LAYOUT);
    for piece in model.chunks(37) {
        assert_eq!(sequential.write(piece).unwrap(), piece.len());
    }
    // Parallel: four processes, each its rows, at the same time.
    create(&client, "/parallel", ARRAY, LAYOUT);
    std::thread::scope(|scope| {
        for (rank, part) in model.chunks(LEN / 4).enumerate() {
            let client = service.connect();
            scope.spawn(move || {
                let options = OpenOptions::new().read().write();
                let file = client.open("/parallel", &options).unwrap();
                file.set_view_text(&format!("(block, *) onto 4 [{rank}]"))
                    .unwrap();
                assert_eq!(file.write_at(0, part).unwrap(), part.len());
            });
        }
    });
    // Coordinated: one pointer for all, moved by whoever has the next piece.
    create(&client, "/coordinated", ARRAY, LAYOUT);
    let options = OpenOptions::new().read().write().shared_pointer(7);
    let clients = [service.connect(), service.connect()];
    let handles = clients
        .each_ref()
        .map(|c| c.open("/coordinated", &options).unwrap());
    for (i, piece) in model.chunks(29).enumerate() {
        handles[i % 2].write_shared(piece).unwrap();
    }
    for path in ["/sequential", "/parallel", "/coordinated"] {
        let file = client.open(path, &OpenOptions::new().read()).unwrap();
        assert!(everything(&file) == model, "{path} as a whole");
        let mut by_pointer = Vec::new();
        let mut piece = [0; 41];
        loop {
            match file.read(&mut piece).unwrap() {
                0 => break,
                n => by_pointer.extend_from_slice(&piece[..n]),
            }
        }
        assert!(by_pointer == model, "{path} piece by piece");
        for rank in 0..4 {
            file.set_view_text(&format!("(block, *) onto 4 [{rank}]"))
                .unwrap();
            let mut part = vec![0; LEN / 4];
            assert_eq!(file.read_at(0, &mut part).unwrap(), part.len());
            assert!(
                part == model[rank * LEN / 4..][..LEN / 4],
                "{path} in parts"
            );
        }
    }
}

#[test]
fn seed001_s88_striped_cubes_of_4096_mib_take_strided_accesses() {
    let service = Service::start(3);
    let client = service.connect();
    create(&client, "/cube", "i32[1024,1024,1024]", "striped(65536)");
    let part = 512 * 512 * 512 * 4u64;
    const ROW: usize = 512 * 4;
    for strategy in ["views", "sieving"] {
        let hints = Hints::new().with("strategy", strategy).unwrap();
        let options = OpenOptions::new().read().write().hints(hints);
        let file = client.open("/cube", &options).unwrap();
        // The blocks at both ends, their first bytes, some in the middle, and the last ones.
        let places = [0, part / 2 + 12, part - 40_000];
        for rank in [0, 7] {
            let view = format!("(block, block, block) onto 2x2x2 [{rank}]");
            file.set_view_text(&view).unwrap();
            for (i, &at) in places.iter().enumerate() {
                let bytes = pattern(40_000, rank + i + strategy.len());
                assert_eq!(file.write_at(at, &bytes).unwrap(), bytes.len());
            }
        }
        for rank in [7, 0] {
            let view = format!("(block, block, block) onto 2x2x2 [{rank}]");
            file.set_view_text(&view).unwrap();
            for (i, &at) in places.iter().enumerate() {
                let mut found = vec![0; 40_000];
                assert_eq!(file.read_at(at, &mut found).unwrap(), found.len());
                let expected = pattern(40_000, rank + i + strategy.len());
                assert!(found == expected, "{strategy}: block {rank} at {at}");
            }
        }
        // And they lie where they belong: the first and the last row of a block, each at its place in the file.
        let plain = client.open("/cube", &OpenOptions::new().read()).unwrap();
        for rank in [0, 7] {
            let begin = u64::from(rank == 7) * 512;
            for (i, x) in [(0, begin), (2, begin + 511)] {
                let row = ((x << 10 | x) << 10 | begin) * 4;
                let mut found = vec![0; ROW];
                assert_eq!(plain.read_at(row, &mut found).unwrap(), ROW);
                let written = pattern(40_000, rank + i + strategy.len());
                let expected = match i {
                    0 => &written[..ROW],
                    _ => &written[written.len() - ROW..],
                };
                assert!(found == expected, "{strategy}: block {rank}, row at {row}");
            }
        }
        assert_eq!(file.size().unwrap(), 4096 << 20);
    }
}
