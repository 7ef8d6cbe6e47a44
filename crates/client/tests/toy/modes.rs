//! Pointers, appends, atomic mode, non-blocking operations, closing.
//!
//! What threads do at once is checked by what is left, or by holding servers until all are there.

use std::io::SeekFrom;
use std::sync::Arc;

use client::{Error, OpenOptions, Status};

use crate::service::{Toy, Trick};
use crate::{connect, create, pattern};

#[test]
fn seed004_s10_state_calls_send_no_message() {
    let toy = Toy::start(2);
    let client = connect(&toy);
    let file = create(&client, "/f", "", "striped(4) over 2");
    file.write(&pattern(10, 0)).unwrap();
    let before = (toy.count_all(), client.messages_sent());
    assert_eq!(file.position(), 10);
    assert_eq!(file.last_access().moved, 10);
    assert_eq!(file.seek(SeekFrom::Start(3)).unwrap(), 3);
    assert_eq!(file.seek(SeekFrom::Current(-2)).unwrap(), 1);
    let _ = (file.view(), file.handle(), file.hints(), file.layout());
    let _ = (file.is_atomic(), file.rights(), file.id(), file.array());
    assert_eq!((toy.count_all(), client.messages_sent()), before);
}

#[test]
fn seed004_s31_pointers_follow_seeks_from_start_here_and_end() {
    let toy = Toy::start(2);
    let client = connect(&toy);
    let file = create(&client, "/f", "", "striped(4) over 2");
    file.write(&pattern(20, 0)).unwrap();
    // An explicit offset leaves the pointer alone.
    file.write_at(2, &[7]).unwrap();
    assert_eq!(file.position(), 20);
    assert_eq!(file.seek(SeekFrom::End(-5)).unwrap(), 15);
    let mut buffer = [0; 8];
    assert_eq!(file.read(&mut buffer).unwrap(), 5);
    assert_eq!(buffer[..5], pattern(20, 0)[15..]);
    assert_eq!(file.position(), 20);
    assert_eq!(file.seek(SeekFrom::End(4)).unwrap(), 24);
    file.write(&[9]).unwrap();
    assert_eq!((file.size().unwrap(), file.position()), (25, 25));
    // In view space: every other byte, so 13 of 25.
    file.set_view_text("striped(1) over 2 [0]").unwrap();
    assert_eq!(file.position(), 0);
    assert_eq!(file.seek(SeekFrom::End(0)).unwrap(), 13);
    assert_eq!(file.seek(SeekFrom::Current(-13)).unwrap(), 0);
    assert!(file.seek(SeekFrom::Current(-1)).is_err());
    assert_eq!(file.position(), 0, "a refused seek moves nothing");
}

#[test]
fn seed004_s34_the_end_of_the_file_is_a_short_count_and_a_flag() {
    let toy = Toy::start(2);
    let client = connect(&toy);
    let file = create(&client, "/f", "", "striped(4) over 2");
    file.write_at(0, &pattern(10, 0)).unwrap();
    let mut buffer = [0; 8];
    for (offset, count) in [(0, 8), (2, 8), (3, 7), (9, 1), (10, 0), (99, 0)] {
        assert_eq!(file.read_at(offset, &mut buffer).unwrap(), count);
        let state = file.last_access();
        assert_eq!(
            (state.moved, state.is_end_of_file),
            (count as u64, count < 8)
        );
    }
}

#[test]
fn lost_writes_are_reported_once_at_sync_or_close() {
    let toy = Toy::start(2);
    let client = connect(&toy);
    let file = create(&client, "/f", "", "striped(4) over 2");
    let other = client
        .open("/f", &OpenOptions::new().read().write())
        .unwrap();
    file.write_at(0, &pattern(16, 0)).unwrap();
    other.write_at(0, &[1]).unwrap();
    file.sync().unwrap();
    // The host of server 2 starts again: what was synced is not compared, what was written to server 1 is kept.
    file.write_at(0, &[5]).unwrap();
    toy.lock().boots.insert(2, 1);
    file.sync().unwrap();
    // Written before and after another start of the host.
    file.write_at(4, &[5]).unwrap();
    toy.lock().boots.insert(2, 2);
    file.write_at(4, &[6]).unwrap();
    let lost = file.sync().unwrap_err();
    let Error::LostWrites { servers, .. } = &lost else {
        panic!("{lost}");
    };
    assert_eq!(servers[..], [client::ServerId(2)]);
    assert!(lost.to_string().contains("server 2"), "{lost}");
    assert_eq!(lost.status(), Status::Lost);
    // As with fsync the handle is good again; whoever wrote has to write again.
    file.sync().unwrap();
    file.write_at(4, &[7]).unwrap();
    // Handles hear of their own writes. A close compares as well.
    toy.lock().boots.insert(2, 3);
    other.sync().unwrap();
    let lost = file.close().unwrap_err();
    assert!(matches!(lost, Error::LostWrites { .. }), "{lost}");
    file.close().unwrap();
    other.write_at(0, &[9]).unwrap();
    other.close().unwrap();
}

#[test]
fn seed004_s30_after_close_everything_fails() {
    let toy = Toy::start(2);
    let client = connect(&toy);
    let file = create(&client, "/f", "", "striped(4) over 2");
    file.write_at(0, &pattern(10, 0)).unwrap();
    let clone = file.clone();
    file.close().unwrap();
    file.close().unwrap();
    assert_eq!(clone.read_at(0, &mut [0]).unwrap_err(), Error::Closed);
    assert_eq!(clone.write_at(0, &[0]).unwrap_err(), Error::Closed);
    assert_eq!(clone.append(&[0]).unwrap_err(), Error::Closed);
    assert_eq!(clone.size().unwrap_err(), Error::Closed);
    assert_eq!(clone.sync().unwrap_err(), Error::Closed);
    assert_eq!(clone.set_view_text("whole").unwrap_err(), Error::Closed);
    assert_eq!(clone.seek(SeekFrom::Start(0)).unwrap_err(), Error::Closed);
    let (result, buffer) = clone.read_at_nonblocking(0, vec![0; 3]).wait();
    assert_eq!((result, buffer.len()), (Err(Error::Closed), 3));
    assert_eq!(Error::Closed.errno(), 9);
}

#[test]
fn rights_are_checked_before_anything_is_sent() {
    let toy = Toy::start(1);
    let client = connect(&toy);
    create(&client, "/f", "", "whole");
    let reader = client.open("/f", &OpenOptions::new().read()).unwrap();
    let error = reader.write_at(0, &[1]).unwrap_err();
    assert_eq!(error.status(), Status::PermissionDenied);
    let writer = client.open("/f", &OpenOptions::new().write()).unwrap();
    assert_eq!(
        writer.read(&mut [0]).unwrap_err().status(),
        Status::PermissionDenied
    );
}

#[test]
fn seed004_s35_requests_overlap_and_tests_never_wait() {
    let toy = Toy::start(1);
    let client = connect(&toy);
    let file = create(&client, "/f", "", "whole");
    file.write_at(0, &pattern(80, 0)).unwrap();
    // Eight are held at the server at once, which blocking calls of one thread could not be.
    toy.script(1, &vec![Trick::Hold; 8]);
    let requests: Vec<_> = (0..8)
        .map(|i| file.read_at_nonblocking(i * 10, vec![0; 10]))
        .collect();
    toy.wait_held(8);
    assert!(requests.iter().all(|r| !r.test()));
    toy.release();
    for (i, request) in requests.into_iter().enumerate() {
        let (result, buffer) = request.wait();
        assert_eq!(result.unwrap(), 10);
        assert_eq!(buffer[..], pattern(80, 0)[i * 10..i * 10 + 10]);
    }
    // More than there are workers only wait longer.
    let shared: Arc<[u8]> = pattern(10, 5).into();
    let many: Vec<_> = (0..40)
        .map(|i| file.write_at_nonblocking(i * 10, shared.clone()))
        .collect();
    for request in many {
        assert_eq!(request.wait().0.unwrap(), 10);
    }
    assert_eq!(toy.bytes("/f"), pattern(10, 5).repeat(40));
}

#[test]
fn operations_on_memory_of_the_caller_overlap_with_it_and_each_other() {
    let toy = Toy::start(1);
    let client = connect(&toy);
    let file = create(&client, "/f", "", "whole");
    file.write_at(0, &pattern(80, 0)).unwrap();
    toy.script(1, &vec![Trick::Hold; 8]);
    let mut memory = vec![0; 80];
    let more = pattern(10, 3);
    let failed = file.overlap(|beside| {
        let parts = memory.chunks_mut(10).enumerate();
        let begun: Vec<_> = parts
            .map(|(i, part)| beside.read_at(i as u64 * 10, part))
            .collect();
        // All of them are at the server while the caller goes on.
        toy.wait_held(8);
        assert!(begun.iter().all(|b| !b.test()));
        toy.release();
        for operation in begun {
            assert_eq!(operation.wait().unwrap(), 10);
        }
        // Not waited for: done all the same when the call returns.
        let _ = beside.write_at(80, &more);
        beside.write_at(u64::MAX - 2, &more).wait()
    });
    assert_eq!(memory, pattern(80, 0));
    assert!(failed.is_err());
    assert_eq!(toy.bytes("/f")[80..], more);
    // A caller that panics leaves no operation behind.
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        file.overlap(|beside| {
            let _ = beside.write_at(0, &more);
            panic!("on purpose");
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(toy.bytes("/f")[..10], more);
}

#[test]
fn seed001_s22_wait_returns_after_completion() {
    let toy = Toy::start(2);
    let client = connect(&toy);
    let file = create(&client, "/f", "", "striped(4) over 2");
    toy.script(2, &[Trick::Hold]);
    let request = file.write_at_nonblocking(0, pattern(16, 0));
    toy.wait_held(1);
    assert!(!request.test());
    toy.release();
    let (result, buffer) = request.wait();
    assert_eq!(result.unwrap(), 16);
    assert_eq!(toy.bytes("/f"), buffer[..]);
    // Errors come back with the buffer, and closing waits for what is under way.
    toy.script(1, &[Trick::Refuse(Status::NoSpace)]);
    let failed = file.write_at_nonblocking(0, pattern(4, 0));
    assert_eq!(failed.wait().0.unwrap_err().status(), Status::NoSpace);
    let last = file.write_at_nonblocking(16, pattern(4, 1));
    file.close().unwrap();
    assert!(last.test());
    assert_eq!(last.wait().0.unwrap(), 4);
    assert_eq!(toy.bytes("/f").len(), 20);
}

#[test]
fn seed004_s84_answers_in_any_order_complete_once() {
    let toy = Toy::start(3);
    let client = connect(&toy);
    let file = create(&client, "/f", "", "striped(10) over 3");
    file.write_at(0, &pattern(25, 0)).unwrap();
    for held in [
        vec![1],
        vec![2],
        vec![3],
        vec![1, 2],
        vec![1, 3],
        vec![2, 3],
    ] {
        for &server in &held {
            toy.script(server, &[Trick::Hold]);
        }
        let before = toy.held();
        let request = file.read_at_nonblocking(0, vec![0; 40]);
        toy.wait_held(before + held.len() as u64);
        assert!(!request.test(), "not all bytes are there");
        toy.release();
        let (result, buffer) = request.wait();
        assert_eq!(result.unwrap(), 25);
        assert_eq!(buffer[..25], pattern(25, 0)[..]);
        let state = file.last_access();
        assert_eq!((state.moved, state.is_end_of_file), (25, true));
        assert_eq!(state.servers.iter().map(|s| s.bytes).sum::<u64>(), 25);
    }
}

#[test]
fn appends_of_threads_lie_behind_each_other() {
    let toy = Toy::start(3);
    let client = connect(&toy);
    let options = OpenOptions::new()
        .append()
        .create()
        .layout("striped(7) over 3");
    let file = client.open("/f", &options).unwrap();
    std::thread::scope(|scope| {
        for t in 0..8u8 {
            let file = &file;
            scope.spawn(move || {
                for _ in 0..20 {
                    assert_eq!(file.write(&[t + 1; 13]).unwrap(), 13);
                }
            });
        }
    });
    let bytes = toy.bytes("/f");
    assert_eq!(bytes.len(), 8 * 20 * 13);
    let mut counts = [0; 9];
    for record in bytes.chunks(13) {
        assert!(record.iter().all(|b| *b == record[0]), "records are whole");
        counts[record[0] as usize] += 1;
    }
    assert_eq!(counts[1..], [20; 8]);
    assert_eq!(file.append(&[1]).unwrap(), 2080);
}

#[test]
fn a_shared_pointer_deals_out_places() {
    let toy = Toy::start(2);
    let (a, b) = (connect(&toy), connect(&toy));
    let options = OpenOptions::new().read().write().create().shared_pointer(7);
    let (one, two) = (
        a.open("/f", &options).unwrap(),
        b.open("/f", &options).unwrap(),
    );
    std::thread::scope(|scope| {
        for (file, byte) in [(&one, 1u8), (&one, 2), (&two, 3), (&two, 4)] {
            scope.spawn(move || {
                for _ in 0..25 {
                    assert_eq!(file.write_shared(&[byte; 6]).unwrap(), 6);
                }
            });
        }
    });
    let bytes = toy.bytes("/f");
    assert_eq!(bytes.len(), 600);
    assert!(
        bytes
            .chunks(6)
            .all(|r| r[0] > 0 && r.iter().all(|b| *b == r[0]))
    );
    assert_eq!(one.position_shared().unwrap(), 600);
    assert_eq!(two.seek_shared(SeekFrom::End(-6)).unwrap(), 594);
    let mut record = [0; 9];
    assert_eq!(one.read_shared(&mut record).unwrap(), 6);
    assert_eq!(two.position_shared().unwrap(), 603);
    let plain = a.open("/f", &OpenOptions::new().read()).unwrap();
    assert!(plain.read_shared(&mut record).is_err());
}

#[test]
fn atomic_accesses_carry_their_lease_and_take_locks_when_told() {
    let toy = Toy::start(2);
    let client = connect(&toy);
    let file = create(&client, "/f", "", "striped(4) over 2");
    file.set_atomic(true).unwrap();
    assert!(file.is_atomic());
    // Several messages take a lock, one does not: a lease may end between two.
    file.write_at(0, &pattern(20, 0)).unwrap();
    assert_eq!((toy.count(&[0x81]), toy.count(&[0x82])), (1, 1));
    file.write_at(5, &[8; 2]).unwrap();
    file.read_at(9, &mut [0; 2]).unwrap();
    assert_eq!((toy.count(&[0x81]), toy.count(&[0x82])), (1, 1));
    // The lease changes under the handle: it asks again and goes on, with locks.
    toy.set_locks(true);
    file.write_at(5, &[9; 2]).unwrap();
    assert_eq!((toy.count(&[0x81]), toy.count(&[0x82])), (2, 2));
    assert_eq!(
        toy.bytes("/f")[4..8],
        [pattern(20, 0)[4], 9, 9, pattern(20, 0)[7]]
    );
    // Also released when the access fails.
    toy.script(2, &[Trick::Refuse(Status::NoSpace)]);
    assert!(file.write_at(0, &pattern(20, 1)).is_err());
    assert_eq!((toy.count(&[0x81]), toy.count(&[0x82])), (3, 3));
    file.set_view_text("striped(2) over 2 [0]").unwrap();
    assert!(file.is_atomic());
    file.read_at(0, &mut [0; 8]).unwrap();
    file.set_atomic(false).unwrap();
    let before = toy.count(&[0x81]);
    file.read_at(0, &mut [0; 8]).unwrap();
    assert_eq!(toy.count(&[0x81]), before);
}

#[test]
fn seed001_s20_sizes_are_logical_whatever_the_layout() {
    let toy = Toy::start(3);
    let client = connect(&toy);
    for (i, layout) in [
        "striped(4) over 3",
        "whole",
        "falls{(0,0,3,4); (1,2,3,4)} period 12",
    ]
    .iter()
    .enumerate()
    {
        let file = create(&client, &format!("/{i}"), "", layout);
        assert_eq!(file.size().unwrap(), 0);
        file.write_at(1000, &[1]).unwrap();
        assert_eq!(file.size().unwrap(), 1001);
        file.set_view_text_at(5, "striped(3) over 4 [2]").unwrap();
        file.write_at(300, &[1]).unwrap();
        assert_eq!(file.size().unwrap(), 5 + 100 * 12 + 6 + 1);
        file.preallocate(5000).unwrap();
        assert_eq!(file.size().unwrap(), 5000);
        file.preallocate(10).unwrap();
        assert_eq!(file.size().unwrap(), 5000);
        file.resize(7).unwrap();
        assert_eq!(file.size().unwrap(), 7);
        file.punch(3..1 << 40).unwrap();
        assert_eq!(file.size().unwrap(), 7);
        assert!(!file.sync().unwrap().is_durable);
    }
}

#[test]
fn seed004_s18_a_non_blocking_call_returns_at_once() {
    let toy = Toy::start(1);
    let client = connect(&toy);
    let file = create(&client, "/f", "", "whole");
    // The only server answers nothing until this thread says so: a call that waited would never
    // come back.
    toy.script(1, &vec![Trick::Hold; 20]);
    let requests: Vec<_> = (0..20)
        .map(|i| file.write_at_nonblocking(i, vec![i as u8 + 1]))
        .collect();
    assert!(requests.iter().all(|r| !r.test()));
    toy.wait_held(1);
    toy.lock().tricks.clear();
    while requests.iter().any(|r| !r.test()) {
        toy.release();
    }
    let sum: usize = requests.into_iter().map(|r| r.wait().0.unwrap()).sum();
    assert_eq!((sum, toy.bytes("/f").len()), (20, 20));
}

#[test]
fn seed001_s30_a_long_write_is_announced_and_ends_when_all_servers_have_it() {
    let toy = Toy::with_limits(3, 1 << 20, 1000);
    let client = connect(&toy);
    let file = create(&client, "/f", "", "striped(100) over 3");
    for (len, data) in [(3000, 0), (3300, 3)] {
        toy.script(3, &[Trick::Hold]);
        let before = (toy.count(&[0x91]), toy.count(&[0x92]), toy.held());
        let request = file.write_at_nonblocking(0, pattern(len, len));
        toy.wait_held(before.2 + 1);
        assert!(!request.test(), "one server has not written");
        toy.release();
        assert_eq!(request.wait().0.unwrap(), len);
        let after = (toy.count(&[0x91]), toy.count(&[0x92]));
        // Announce, data, result; short ones carry their bytes with the request.
        assert_eq!((after.0 - before.0, after.1 - before.1), (3, data));
        assert_eq!(toy.bytes("/f"), pattern(len, len));
    }
}

#[test]
fn a_view_set_after_a_request_does_not_move_it() {
    let toy = Toy::start(1);
    let client = connect(&toy);
    let file = create(&client, "/f", "", "whole");
    let requests: Vec<_> = (0..30)
        .map(|i| file.write_at_nonblocking(i, vec![i as u8 + 1]))
        .collect();
    file.set_view_text("striped(1) over 2 [1]").unwrap();
    assert!(requests.iter().all(|r| r.test()));
    assert_eq!(toy.bytes("/f"), (1..=30).collect::<Vec<u8>>());
}
