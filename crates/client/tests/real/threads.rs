//! Several threads and clients at once: appends, the shared pointer, atomic mode, overlapping views.
//!
//! What must hold is checked by what is left in the file, or by what readers see on the way.

use client::{Memory, OpenOptions, Places, Sequence, SharedBytes, Team, View};

use crate::service::{Service, create, pattern};

#[test]
fn appends_of_eight_threads_lie_behind_each_other() {
    let service = Service::start(3);
    let clients = [service.connect(), service.connect()];
    let options = OpenOptions::new()
        .append()
        .create()
        .layout("striped(7) over 3");
    let files = clients.each_ref().map(|c| c.open("/f", &options).unwrap());
    std::thread::scope(|scope| {
        for t in 0..8u8 {
            let file = &files[usize::from(t) % 2];
            scope.spawn(move || {
                for _ in 0..20 {
                    assert_eq!(file.write(&[t + 1; 13]).unwrap(), 13);
                }
            });
        }
    });
    let file = clients[0].open("/f", &OpenOptions::new().read()).unwrap();
    let mut bytes = vec![0; 3000];
    assert_eq!(file.read_at(0, &mut bytes).unwrap(), 8 * 20 * 13);
    let mut counts = [0; 9];
    for record in bytes[..2080].chunks(13) {
        assert!(record.iter().all(|b| *b == record[0]), "records are whole");
        counts[record[0] as usize] += 1;
    }
    assert_eq!(counts[1..], [20; 8]);
}

#[test]
fn a_shared_pointer_deals_out_places() {
    let service = Service::start(2);
    let clients = [service.connect(), service.connect()];
    let options = OpenOptions::new().read().write().create().shared_pointer(7);
    let files = clients.each_ref().map(|c| c.open("/f", &options).unwrap());
    std::thread::scope(|scope| {
        for t in 0..4u8 {
            let file = &files[usize::from(t) % 2];
            scope.spawn(move || {
                for _ in 0..25 {
                    assert_eq!(file.write_shared(&[t + 1; 6]).unwrap(), 6);
                }
            });
        }
    });
    let mut bytes = vec![0; 700];
    assert_eq!(files[0].read_at(0, &mut bytes).unwrap(), 600);
    assert!(
        bytes[..600]
            .chunks(6)
            .all(|r| r[0] > 0 && r.iter().all(|b| *b == r[0]))
    );
    assert_eq!(files[1].position_shared().unwrap(), 600);
}

#[test]
fn atomic_writes_through_overlapping_views_are_seen_whole() {
    let service = Service::start(2);
    let clients: Vec<_> = (0..3).map(|_| service.connect()).collect();
    create(&clients[0], "/f", "", "striped(16) over 2")
        .write_at(0, &[1; 200])
        .unwrap();
    let options = OpenOptions::new().read().write().atomic();
    std::thread::scope(|scope| {
        for (t, client) in clients.iter().enumerate() {
            let options = &options;
            scope.spawn(move || {
                let file = client.open("/f", options).unwrap();
                for i in 0..15 {
                    file.write_at(0, &[(t * 20 + i) as u8 + 1; 200]).unwrap();
                    let mut seen = [0; 200];
                    assert_eq!(file.read_at(0, &mut seen).unwrap(), 200);
                    assert!(seen.iter().all(|b| *b == seen[0]), "half a write: {seen:?}");
                }
                file.close().unwrap();
            });
        }
    });
}

#[test]
fn disjoint_views_of_threads_make_one_file() {
    let service = Service::start(3);
    let client = service.connect();
    create(&client, "/f", "u8[60,40]", "(block, block) onto 2x2");
    let options = OpenOptions::new().read().write();
    std::thread::scope(|scope| {
        for t in 0..4 {
            let (client, options) = (&client, &options);
            scope.spawn(move || {
                let file = client.open("/f", options).unwrap();
                file.set_view_text(&format!("(*, block) onto 4 [{t}]"))
                    .unwrap();
                let bytes = pattern(600, t);
                for at in (0..600).step_by(100) {
                    file.write_at(at as u64, &bytes[at..at + 100]).unwrap();
                }
                let mut back = [0; 600];
                assert_eq!(file.read_at(0, &mut back).unwrap(), 600);
                assert_eq!(back[..], bytes, "own writes are read");
            });
        }
    });
    let file = client.open("/f", &options).unwrap();
    file.set_view(&View::whole_file()).unwrap();
    let mut all = vec![0; 2400];
    assert_eq!(file.read_at(0, &mut all).unwrap(), 2400);
    for (x, byte) in all.iter().enumerate() {
        let (row, column) = (x / 40, x % 40);
        assert_eq!(*byte, pattern(600, column / 10)[row * 10 + column % 10]);
    }
}

#[test]
fn non_blocking_requests_overlap_at_real_servers() {
    let service = Service::start(3);
    let client = service.connect();
    let file = create(&client, "/f", "", "striped(100) over 3");
    let requests: Vec<_> = (0..50)
        .map(|i| file.write_at_nonblocking(i * 1000, pattern(1000, i as usize)))
        .collect();
    for request in requests {
        assert_eq!(request.wait().0.unwrap(), 1000);
    }
    let reads: Vec<_> = (0..50)
        .map(|i| file.read_at_nonblocking(i * 1000, vec![0; 1000]))
        .collect();
    for (i, request) in reads.into_iter().enumerate() {
        let (result, buffer) = request.wait();
        assert_eq!(result.unwrap(), 1000);
        assert_eq!(buffer[..], pattern(1000, i));
    }
}

/// Collective accesses of a team that each member has begun and computes beside; described memory, in the order of the
/// calls.
#[test]
fn collective_operations_overlap_with_their_callers() {
    const MEMBERS: usize = 3;
    let service = Service::start(2);
    let first = service.connect();
    create(&first, "/f", "", "striped(100) over 2");
    std::thread::scope(|scope| {
        for team in Team::threads(MEMBERS) {
            let client = service.connect();
            scope.spawn(move || {
                let options = OpenOptions::new().read().write();
                let file = client.open("/f", &options).unwrap();
                let rank = team.rank();
                // Every other byte of memory.
                let byte = Sequence::bytes(0, 1).unwrap();
                let places = Places::new(&byte.repeat(300, 2).unwrap());
                let rounds: Vec<Vec<u8>> = (0..4).map(|r| pattern(600, rank * 10 + r)).collect();
                let mut back = vec![vec![0; 300]; 4];
                let at = |round: usize| ((round * MEMBERS + rank) * 300) as u64;
                file.overlap(|beside| {
                    let begun: Vec<_> = rounds
                        .iter()
                        .enumerate()
                        .map(|(round, bytes)| {
                            let bytes = SharedBytes::from_slice(bytes);
                            let memory = Memory::source(bytes, 0, &places).unwrap();
                            beside.access_at_all(&team, at(round), memory)
                        })
                        .collect();
                    let read: Vec<_> = back
                        .iter_mut()
                        .enumerate()
                        .map(|(round, part)| {
                            beside.access_at_all(&team, at(round), part[..].as_mut().into())
                        })
                        .collect();
                    for operation in begun.into_iter().chain(read) {
                        assert_eq!(operation.wait().unwrap(), 300);
                    }
                });
                for (round, bytes) in rounds.iter().enumerate() {
                    let every_other: Vec<u8> = bytes.iter().copied().step_by(2).collect();
                    assert_eq!(back[round], every_other, "rank {rank} round {round}");
                }
            });
        }
    });
}

#[test]
fn seed004_s08_requests_of_clients_at_the_same_time_are_never_mixed() {
    // Both clients count views and requests alike, so only the connection and the numbers in the
    // headers tell their messages apart.
    let service = Service::start(2);
    std::thread::scope(|scope| {
        for c in 0..2 {
            let client = service.connect();
            scope.spawn(move || {
                let file = create(&client, &format!("/{c}"), "", "striped(100) over 2");
                for round in 0..200 {
                    let len = 150 + 7 * (round % 30);
                    let bytes = pattern(len, c * 1000 + round);
                    file.write_at(0, &bytes).unwrap();
                    // Several at once on one session: answers find the request they belong to.
                    let reads: Vec<_> = [0, 50, 101]
                        .into_iter()
                        .map(|at| (at, file.read_at_nonblocking(at as u64, vec![0; 40])))
                        .collect();
                    for (at, read) in reads {
                        let (count, buffer) = read.wait();
                        assert_eq!(count.unwrap(), 40);
                        assert_eq!(&buffer[..], &bytes[at..at + 40], "{c} {round} {at}");
                    }
                }
            });
        }
    });
}
