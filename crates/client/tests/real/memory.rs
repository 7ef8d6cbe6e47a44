//! Described memory: the bytes of an access lie anywhere in the user's memory, and move as those of a
//! contiguous one do, directly and by message.

use client::{Client, File, Hints, Memory, Places, Sequence, SharedBytes, SharedBytesMut};

use crate::service::{Service, create, pattern};

fn shapes() -> Vec<(&'static str, Sequence)> {
    let bytes = |start, len| Sequence::bytes(start, len).unwrap();
    let column = bytes(0, 8).repeat(300, 2400).unwrap();
    vec![
        ("contiguous", bytes(16, 300_000)),
        (
            "every second 8 bytes",
            bytes(0, 8).repeat(40_000, 16).unwrap(),
        ),
        (
            "a subarray with ghost cells",
            bytes(1032, 1000).repeat(300, 1040).unwrap(),
        ),
        (
            "columns of a matrix, one after the other",
            column.repeat(100, 8).unwrap(),
        ),
        ("backwards", bytes(400_000, 40).repeat(4000, -100).unwrap()),
        ("short", bytes(3, 5).repeat(100, 9).unwrap()),
        (
            "between short and long",
            bytes(3, 50).repeat(300, 90).unwrap(),
        ),
    ]
}

fn check(file: &File, name: &str, places: &Sequence, at: u64) {
    let memory = pattern(1 << 20, at as usize);
    let compiled = Places::new(places);
    let packed: Vec<u8> = places
        .runs()
        .flat_map(|run| memory[run.start as usize..run.start as usize + run.len as usize].to_vec())
        .collect();
    let source = SharedBytes::from_slice(&memory);
    let n = file.write_at_memory(at, source, 0, &compiled);
    assert_eq!(n, Ok(packed.len()), "{name}");
    let mut plain = vec![0; packed.len()];
    assert_eq!(file.read_at(at, &mut plain), Ok(packed.len()), "{name}");
    assert!(plain == packed, "{name}: what was written");
    let mut back = vec![0; 1 << 20];
    let target = SharedBytesMut::from_slice(&mut back);
    let n = file.read_at_memory(at, target, 0, &compiled);
    assert_eq!(n, Ok(packed.len()), "{name}");
    let mut model = vec![0; 1 << 20];
    for run in places.runs() {
        let range = run.start as usize..run.start as usize + run.len as usize;
        model[range.clone()].copy_from_slice(&memory[range]);
    }
    assert!(back == model, "{name}: what was read");
    // Short at the end of the file.
    let size = file.view().len_within(file.size().unwrap());
    let n = file.read_at_memory(size - 100, back[..].as_mut().into(), 0, &compiled);
    assert_eq!(n, Ok(packed.len().min(100)), "{name}: at the end");
}

#[test]
fn described_memory_moves_as_contiguous_memory_does() {
    let service = Service::start(3);
    for is_direct in [true, false] {
        let client = service.connect_how(is_direct);
        for view in ["whole", "striped(24) over 3 [1]"] {
            for (i, (name, places)) in shapes().iter().enumerate() {
                let path = format!("/{is_direct}-{}-{i}", view.len());
                let file = create(&client, &path, "", "striped(10000) over 3");
                file.set_view_text(view).unwrap();
                // Growing first, then inside, then with windows and locks.
                check(&file, name, places, 7);
                check(&file, name, places, 11);
                assert_eq!(file.last_access().is_direct, is_direct, "{name} {view}");
                if view != "whole" {
                    let hints = Hints::new().with("strategy", "sieving").unwrap();
                    file.set_hints(&hints).unwrap();
                    check(&file, name, places, 3);
                }
            }
        }
    }
}

#[test]
fn the_last_access_is_all_of_a_long_one_that_was_packed_in_parts() {
    let service = Service::start(2);
    let client = service.connect_how(false);
    let file = create(&client, "/f", "", "striped(1MiB) over 2");
    // Longer than what is packed at a time, twice.
    let size = 17 << 20;
    let places = Places::new(
        &Sequence::bytes(0, 512)
            .unwrap()
            .repeat(size / 512, 513)
            .unwrap(),
    );
    let mut memory = vec![3u8; 513 * (size as usize / 512)];
    let check = |sent: u64| {
        let last = file.last_access();
        assert_eq!((last.requested, last.moved), (size, sent));
        assert_eq!(last.is_end_of_file, sent < size);
        let at: Vec<u64> = last.servers.iter().map(|s| s.bytes).collect();
        assert_eq!((at.len(), at.iter().sum::<u64>()), (2, sent), "{at:?}");
        assert!(last.messages() >= sent >> 20, "{}", last.messages());
    };
    file.write_at_memory(0, memory[..].into(), 0, &places)
        .unwrap();
    check(size);
    file.resize(size - 100).unwrap();
    let into = memory[..].as_mut().into();
    assert_eq!(
        file.read_at_memory(0, into, 0, &places),
        Ok(size as usize - 100)
    );
    check(size - 100);
}

#[test]
fn pieces_that_go_back_and_repeat_move_in_their_order() {
    let service = Service::start(2);
    let client = service.connect();
    let file = create(&client, "/f", "", "striped(10000) over 2");
    let stored = pattern(50_000, 5);
    file.write_at(0, &stored).unwrap();
    let pieces = [40_000..45_000, 10..20, 0..30_000, 12..18, 49_000..50_000];
    let size: u64 = pieces.iter().map(|piece| piece.end - piece.start).sum();
    let naive: Vec<u8> = pieces
        .iter()
        .flat_map(|piece| &stored[piece.start as usize..piece.end as usize])
        .copied()
        .collect();
    let places = Places::new(&Sequence::bytes(0, 2).unwrap().repeat(size / 2, 3).unwrap());
    let mut memory = vec![0u8; 3 * size as usize];
    let target = Memory::target(memory[..].as_mut().into(), 0, &places).unwrap();
    assert_eq!(file.access_in_pieces(pieces.clone(), target), Ok(size));
    let mut packed = vec![0; size as usize];
    places.pack(memory[..].into(), 0, 0, &mut packed).unwrap();
    assert!(packed == naive);
    // The end of the file ends a read, and nothing behind it is asked for.
    let mut short = [0u8; 100];
    let run = Places::bytes(100);
    let target = Memory::target(short[..].as_mut().into(), 0, &run).unwrap();
    assert_eq!(
        file.access_in_pieces([49_990..50_040, 0..50], target),
        Ok(10)
    );
    // A write that goes back: what comes later stays.
    let bytes = [[1u8; 20], [2; 20]].concat();
    let run = Places::bytes(40);
    let source = Memory::source(bytes[..].into(), 0, &run).unwrap();
    assert_eq!(file.access_in_pieces([100..120, 90..110], source), Ok(40));
    let mut there = [0; 30];
    file.read_at(90, &mut there).unwrap();
    assert_eq!(there[..20], [2; 20]);
    assert_eq!(there[20..], [1; 10]);
}

#[test]
fn long_described_writes_that_grow_the_file_go_directly() {
    let service = Service::start(2);
    let client = service.connect();
    let file = create(&client, "/f", "", "striped(64KiB) over 2");
    let memory = pattern(4 << 20, 1);
    let places = Places::new(&Sequence::bytes(0, 8).unwrap().repeat(1 << 18, 16).unwrap());
    let n = file.write_at_memory(0, memory[..].into(), 0, &places);
    assert_eq!(n, Ok(2 << 20));
    assert!(file.last_access().is_direct);
    assert_eq!(file.size(), Ok(2 << 20));
}

#[test]
fn threads_share_a_handle_with_memory_of_their_own() {
    fn is_shared<T: Clone + Send + Sync + 'static>() {}
    is_shared::<File>();
    is_shared::<Client>();
    is_shared::<Places>();
    let service = Service::start(2);
    let client = service.connect();
    let file = create(&client, "/f", "", "striped(10000) over 2");
    let bytes = pattern(800_000, 0);
    file.write_at(0, &bytes).unwrap();
    std::thread::scope(|scope| {
        for i in 0..3u64 {
            let (file, bytes) = (file.clone(), &bytes);
            scope.spawn(move || {
                let places = Sequence::bytes(0, 8)
                    .unwrap()
                    .repeat(10_000, 16 + 8 * i as i64);
                let places = Places::new(&places.unwrap());
                for round in 0..20 {
                    let mut memory = vec![0u8; 400_000];
                    let at = 1000 * i + round;
                    let target = memory[..].as_mut().into();
                    assert_eq!(file.read_at_memory(at, target, 0, &places), Ok(80_000));
                    let mut packed = vec![0; 80_000];
                    places.pack(memory[..].into(), 0, 0, &mut packed).unwrap();
                    assert!(packed == bytes[at as usize..at as usize + 80_000]);
                }
            });
        }
    });
}

#[test]
fn a_steady_described_access_allocates_nothing() {
    let service = Service::start(2);
    let client = service.connect();
    for (layout, view) in [
        ("striped(10000) over 2", "whole"),
        ("striped(10000) over 2", "striped(24) over 3 [1]"),
        ("whole", "whole"),
    ] {
        let file = create(&client, &format!("/{layout} {view}"), "", layout);
        file.set_view_text(view).unwrap();
        for (name, sequence) in shapes() {
            let places = Places::new(&sequence);
            let mut memory = vec![1; 1 << 20];
            let mut both = || {
                let source = SharedBytes::from_slice(&memory);
                file.write_at_memory(5, source, 0, &places).unwrap();
                let target = SharedBytesMut::from_slice(&mut memory);
                file.read_at_memory(5, target, 0, &places).unwrap();
            };
            (0..3).for_each(|_| both());
            let info = allocation_counter::measure(both);
            assert!(file.last_access().is_direct, "{name}");
            assert_eq!(info.count_total, 0, "{name}, {view} of {layout}");
        }
    }
}
