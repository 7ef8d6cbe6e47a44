//! Wrong use, and processes that cannot do their part: everybody is told, and no file is lost.
//!
//! A process that cannot do its part has a client of another service.

use dsm::PAGE_BYTES;
use pio::{Error, OpenMode, Pfd, Pio, PioOptions};

use crate::members::{connect, get, pattern, put, run};

const PAGE: usize = PAGE_BYTES;

fn options() -> PioOptions {
    PioOptions {
        is_synced: false,
        ..PioOptions::default()
    }
}

#[test]
fn seed003_pio10_numbers_are_the_smallest_free_and_the_same_everywhere() {
    let dir = testkit::TempDir::new();
    let clients: Vec<_> = (0..3).map(|_| connect(dir.path(), 1)).collect();
    put(&clients[0], "/a", None, &pattern(10));
    run(&clients, &options(), 4, |memory, pio, mut epoch| {
        let array = memory.array::<u8>(PAGE).expect("room");
        if memory.rank() == 0 {
            let mut open = |mode| pio.open("/a", mode, &mut epoch).expect("open");
            assert_eq!(
                [OpenMode::Read, OpenMode::Replace, OpenMode::Read].map(&mut open),
                [0, 1, 2].map(Pfd)
            );
            pio.close(Pfd(1), &mut epoch).expect("closed");
        }
        epoch = memory.barrier(0, epoch).expect("a barrier");
        if memory.rank() == 2 {
            // Another process knows all of them.
            let mut open = |mode| pio.open("/a", mode, &mut epoch).expect("open");
            assert_eq!(
                [OpenMode::Read, OpenMode::Read].map(&mut open),
                [1, 3].map(Pfd)
            );
            pio.close(Pfd(0), &mut epoch).expect("closed");
            for refused in [
                pio.close(Pfd(0), &mut epoch).map(|()| 0),
                pio.read(Pfd(0), array, 10, &mut epoch),
                pio.write(Pfd(9), array, 10, &mut epoch),
                pio.accesses(Pfd(9), &mut epoch).map(|_| 0),
            ] {
                let error = refused.expect_err("it is not open");
                assert!(matches!(error, Error::NotOpen(0 | 9)), "{error}");
                assert_eq!(error.errno(), 9);
            }
        }
        epoch = memory.barrier(1, epoch).expect("a barrier");
        (epoch, ())
    });
}

#[test]
fn seed003_pio10_a_file_that_one_process_cannot_open_is_open_at_none() {
    let (dir, elsewhere) = (testkit::TempDir::new(), testkit::TempDir::new());
    let mut clients: Vec<_> = (0..3).map(|_| connect(dir.path(), 1)).collect();
    put(&clients[0], "/a", None, &pattern(10));
    put(&clients[0], "/b", None, &pattern(10));
    // Process 2 has another service, in which only one of the files is, with other bytes.
    clients[2] = connect(elsewhere.path(), 1);
    put(&clients[2], "/b", None, &pattern(11));
    run(&clients, &options(), 4, |memory, pio, mut epoch| {
        if memory.rank() == 1 {
            let error = pio
                .open("/a", OpenMode::Read, &mut epoch)
                .expect_err("not there");
            assert!(
                matches!(
                    error,
                    Error::Process {
                        process: 2,
                        errno: 2,
                        ..
                    }
                ),
                "{error}"
            );
            let error = pio
                .open("/b", OpenMode::Read, &mut epoch)
                .expect_err("another file");
            assert!(
                error.to_string().contains("process 2 finds 11 bytes"),
                "{error}"
            );
            for pfd in [0, 1] {
                let error = pio.close(Pfd(pfd), &mut epoch).expect_err("not open");
                assert!(matches!(error, Error::NotOpen(_)));
            }
            let file = pio
                .open("/c", OpenMode::Replace, &mut epoch)
                .expect("for writing");
            assert_eq!(file, Pfd(0), "no number is lost");
            pio.close(file, &mut epoch).expect("closed");
        }
        epoch = memory.barrier(0, epoch).expect("a barrier");
        (epoch, ())
    });
}

#[test]
fn seed003_pio17_a_write_that_one_process_cannot_do_leaves_the_file_as_it_was() {
    let (dir, elsewhere) = (testkit::TempDir::new(), testkit::TempDir::new());
    let mut clients: Vec<_> = (0..3).map(|_| connect(dir.path(), 1)).collect();
    put(&clients[0], "/a", None, &pattern(5 * PAGE));
    clients[1] = connect(elsewhere.path(), 1);
    run(&clients, &options(), 9, |memory, pio, mut epoch| {
        let array = memory.array::<u8>(6 * PAGE).expect("room");
        if memory.rank() == 0 {
            let file = pio.open("/a", OpenMode::Replace, &mut epoch).expect("open");
            let error = pio
                .write(file, array, 6 * 4096, &mut epoch)
                .expect_err("process 1 cannot");
            assert!(
                matches!(
                    error,
                    Error::Process {
                        process: 1,
                        errno: 2,
                        ..
                    }
                ),
                "{error}"
            );
            pio.close(file, &mut epoch).expect("closed");
        }
        epoch = memory.barrier(0, epoch).expect("a barrier");
        (epoch, ())
    });
    assert!(get(&clients[0], "/a") == pattern(5 * PAGE));
    let names = clients[0].list("/").expect("a listing");
    assert_eq!(names.count(), 1, "nothing else is left");
}

#[test]
fn wrong_use_is_named_and_changes_nothing() {
    let dir = testkit::TempDir::new();
    let clients: Vec<_> = (0..2).map(|_| connect(dir.path(), 1)).collect();
    put(&clients[0], "/a", None, &pattern(3 * PAGE));
    run(&clients, &options(), 9, |memory, pio, mut epoch| {
        let array = memory.array::<u8>(2 * PAGE).expect("room");
        if memory.rank() == 0 {
            let error = pio
                .open("/a", OpenMode::Create, &mut epoch)
                .expect_err("there");
            assert!(
                error.errno() == 17 && error.to_string().contains("/a is there"),
                "{error}"
            );
            let error = pio
                .open("/no", OpenMode::Read, &mut epoch)
                .expect_err("nowhere");
            assert_eq!(error.errno(), 2, "{error}");
            let reads = pio.open("/a", OpenMode::Read, &mut epoch).expect("open");
            let writes = pio.open("/b", OpenMode::Create, &mut epoch).expect("open");
            let refused = [
                pio.read(reads, array, u64::MAX, &mut epoch),
                pio.read(writes, array, 1, &mut epoch),
                pio.write(reads, array, 1, &mut epoch),
                pio.write(writes, array, 2 * 4096 + 1, &mut epoch),
            ];
            let texts = refused.map(|outcome| outcome.expect_err("refused").to_string());
            assert!(
                texts[0].contains("array: has 8192 bytes, 12288"),
                "{}",
                texts[0]
            );
            assert!(texts[1].contains("open it for reading"), "{}", texts[1]);
            assert!(texts[2].contains("created or replaced"), "{}", texts[2]);
            assert!(texts[3].contains("8193 are to be written"), "{}", texts[3]);
            let error = pio.accesses(reads, &mut epoch).expect_err("not read yet");
            assert!(error.to_string().contains("was not read"), "{error}");
            for file in [reads, writes] {
                pio.close(file, &mut epoch).expect("closed");
            }
            // What was never written is not there.
            let error = pio
                .open("/b", OpenMode::Read, &mut epoch)
                .expect_err("nowhere");
            assert_eq!(error.errno(), 2);
        }
        epoch = memory.barrier(0, epoch).expect("a barrier");
        (epoch, ())
    });
    assert!(get(&clients[0], "/a") == pattern(3 * PAGE));
}

#[test]
fn who_has_ended_parallel_files_is_named_to_who_calls() {
    use dsm::{Address, Options, SharedMemory};
    let dir = testkit::TempDir::new();
    let client = connect(dir.path(), 1);
    put(&client, "/a", None, &pattern(10));
    let memory_options = Options {
        address: Address::Any,
        ..Options::new(PAGE)
    };
    std::thread::scope(|scope| {
        for team in client::Team::threads(2) {
            let (client, memory_options) = (&client, &memory_options);
            scope.spawn(move || {
                let (memory, epoch) = SharedMemory::start(team, memory_options).expect("memory");
                let pio = Pio::start(&memory, client, options()).expect("parallel files");
                let mut epoch = memory.barrier(0, epoch).expect("a barrier");
                if memory.rank() == 1 {
                    drop(pio);
                    epoch = memory.barrier(1, epoch).expect("a barrier");
                } else {
                    epoch = memory.barrier(1, epoch).expect("a barrier");
                    let error = pio
                        .open("/a", OpenMode::Read, &mut epoch)
                        .expect_err("alone");
                    assert!(matches!(error, Error::Ended { process: 1 }), "{error}");
                    drop(pio);
                }
                memory.exit(epoch).expect("all leave");
            });
        }
    });
}

#[test]
fn only_the_protocol_with_homes_has_parallel_files() {
    use dsm::{Address, Options, Protocol, SharedMemory};
    let dir = testkit::TempDir::new();
    let client = connect(dir.path(), 1);
    for protocol in [Protocol::Homeless, Protocol::Sequential] {
        let memory_options = Options {
            protocol,
            address: Address::Any,
            ..Options::new(PAGE)
        };
        let team = client::Team::threads(1).remove(0);
        let (memory, epoch) = SharedMemory::start(team, &memory_options).expect("memory");
        let error = Pio::start(&memory, &client, options()).expect_err("no homes");
        assert!(error.to_string().contains("HomeBased"), "{error}");
        memory.exit(epoch).expect("left");
    }
}

#[test]
fn seed003_pio11_strict_mode_allows_what_the_source_has_and_names_the_rest() {
    let dir = testkit::TempDir::new();
    let clients: Vec<_> = (0..3).map(|_| connect(dir.path(), 1)).collect();
    put(&clients[0], "/a", None, &pattern(2 * PAGE));
    let strict = PioOptions {
        is_strict: true,
        ..options()
    };
    // A way to wait for each other that the memory knows nothing of.
    let stop = std::sync::Barrier::new(3);
    run(&clients, &strict, 9, |memory, pio, mut epoch| {
        let array = memory.array::<u8>(2 * PAGE).expect("room");
        let me = memory.rank();
        if me == 1 {
            let error = pio
                .open("/a", OpenMode::Read, &mut epoch)
                .expect_err("not the first");
            assert!(
                error.to_string().contains("process 0 makes all calls"),
                "{error}"
            );
            memory.view(&epoch, array).set(PAGE, 9);
        }
        stop.wait();
        if me == 0 {
            let error = pio
                .open("/a", OpenMode::Replace, &mut epoch)
                .expect_err("there");
            assert!(
                error.errno() == 17 && error.to_string().contains("do not change"),
                "{error}"
            );
            let file = pio.open("/a", OpenMode::Read, &mut epoch).expect("open");
            let error = pio.read(file, array, 100, &mut epoch).expect_err("not all");
            assert!(error.to_string().contains("100 of 8192"), "{error}");
            pio.close(file, &mut epoch).expect("closed");
            memory.view(&epoch, array).set(0, 1);
            let file = pio.open("/b", OpenMode::Create, &mut epoch).expect("open");
            let error = pio
                .write(file, array, 2 * 4096, &mut epoch)
                .expect_err("unfinished");
            assert!(
                error.to_string().contains("process 1 has written to it"),
                "{error}"
            );
            pio.close(file, &mut epoch).expect("closed");
        }
        stop.wait();
        epoch = memory.barrier(0, epoch).expect("a barrier");
        if me == 0 {
            // The first attempt has left nothing.
            let file = pio.open("/b", OpenMode::Create, &mut epoch).expect("open");
            assert_eq!(
                pio.write(file, array, 2 * 4096, &mut epoch)
                    .expect("written"),
                2 * 4096
            );
            let error = pio
                .write(file, array, 2 * 4096, &mut epoch)
                .expect_err("once");
            assert!(error.to_string().contains("it was written"), "{error}");
            pio.close(file, &mut epoch).expect("closed");
        }
        epoch = memory.barrier(1, epoch).expect("a barrier");
        (epoch, ())
    });
    let written = get(&clients[0], "/b");
    assert!(written.len() == 2 * PAGE && written[0] == 1 && written[PAGE] == 9);
    assert!(get(&clients[0], "/a") == pattern(2 * PAGE));
}

#[test]
fn seed003_pio17_what_a_run_that_died_has_left_is_in_nobodys_way() {
    let dir = testkit::TempDir::new();
    let clients: Vec<_> = (0..2).map(|_| connect(dir.path(), 1)).collect();
    put(&clients[0], "/a", None, &pattern(10));
    // The name under which the first file of this client is written.
    let left = format!("/a.pio-{}-0", clients[0].id().0);
    put(&clients[0], &left, None, &pattern(PAGE));
    run(&clients, &options(), 4, |memory, pio, mut epoch| {
        let array = memory.array::<u8>(PAGE).expect("room");
        if memory.rank() == 0 {
            memory.view(&epoch, array).set(0, 3);
            let file = pio.open("/a", OpenMode::Replace, &mut epoch).expect("open");
            assert_eq!(pio.write(file, array, 5, &mut epoch).expect("written"), 5);
            pio.close(file, &mut epoch).expect("closed");
        }
        epoch = memory.barrier(0, epoch).expect("a barrier");
        (epoch, ())
    });
    assert_eq!(get(&clients[0], "/a"), [3, 0, 0, 0, 0]);
    assert_eq!(clients[0].list("/").expect("a listing").count(), 1);
}
