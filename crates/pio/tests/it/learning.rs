//! What a run accesses, and what the next one makes of it.
//!
//! Homes and fetches are counted, and bytes compared.

use advise::profile::template::Template;
use dsm::PAGE_BYTES;
use pio::{Accesses, OpenMode, PioOptions, Planner};

use crate::members::{connect, get, pattern, put, run};

const PAGE: usize = PAGE_BYTES;

fn options() -> PioOptions {
    PioOptions {
        application: "learning".into(),
        is_synced: false,
        ..PioOptions::default()
    }
}

/// A run of three processes over a file of seven pages with the accesses of Figure 2 of the source, and page 6 read by two. Homes, fetches of all, and
/// accesses.
fn one_run(
    clients: &[client::Client],
    path: &str,
    options: &PioOptions,
) -> (Vec<u16>, u64, Accesses) {
    let touches = [vec![0, 4, 5, 6], vec![1, 6], vec![2, 3]];
    let results = run(clients, options, 16, |memory, pio, mut epoch| {
        let array = memory.array::<u8>(7 * PAGE - 50).expect("room");
        if memory.rank() == 0 {
            let file = pio.open(path, OpenMode::Read, &mut epoch).expect("open");
            pio.read(file, array, u64::MAX, &mut epoch).expect("read");
        }
        epoch = memory.barrier(0, epoch).expect("a barrier");
        let before = memory.statistics().fetches;
        let view = memory.view(&epoch, array);
        for page in &touches[memory.rank()] {
            assert_eq!(
                view.get(page * PAGE + 9),
                pattern(7 * PAGE)[page * PAGE + 9]
            );
        }
        let fetches = memory.statistics().fetches - before;
        epoch = memory.barrier(1, epoch).expect("a barrier");
        let runs = memory.pages().homes(array.first_page(), 7);
        let homes = runs
            .iter()
            .flat_map(|(count, home)| vec![*home; *count as usize]);
        let homes: Vec<u16> = homes.collect();
        // A write of another makes copies invalid; the reads of before are remembered (PIO-13).
        if memory.rank() == 2 {
            for page in 0..7 {
                memory.view(&epoch, array).set(page * PAGE + 1, 1);
            }
        }
        epoch = memory.barrier(2, epoch).expect("a barrier");
        let mut accesses = None;
        if memory.rank() == 0 {
            let file = pio::Pfd(0);
            accesses = Some(pio.accesses(file, &mut epoch).expect("accesses"));
            pio.close(file, &mut epoch).expect("closed");
        }
        epoch = memory.barrier(3, epoch).expect("a barrier");
        (epoch, (homes, fetches, accesses))
    });
    let fetches = results.iter().map(|(_, fetches, _)| fetches).sum();
    let mut results = results.into_iter();
    let (homes, _, accesses) = results.next().expect("process 0");
    (homes, fetches, accesses.expect("accesses"))
}

#[test]
fn seed003_pio13_accesses_are_remembered_also_of_pages_that_became_invalid() {
    let dir = testkit::TempDir::new();
    let clients: Vec<_> = (0..3).map(|_| connect(dir.path(), 3)).collect();
    put(
        &clients[0],
        "/a",
        Some("striped(1MiB) over 1"),
        &pattern(7 * PAGE - 50),
    );
    let (_, _, accesses) = one_run(&clients, "/a", &options());
    let expected = [
        vec![0, 2],
        vec![1, 2],
        vec![2],
        vec![2],
        vec![0, 2],
        vec![0, 2],
        vec![0, 1, 2],
    ];
    assert_eq!(accesses.accessors(), expected);
    assert!((0..7).all(|block| accesses.writers(block) == [2]));
}

#[test]
fn seed003_pio19_a_template_places_another_file_of_the_same_shape() {
    let dir = testkit::TempDir::new();
    let clients: Vec<_> = (0..3).map(|_| connect(dir.path(), 3)).collect();
    let layout = Some("striped(1MiB) over 1");
    for path in ["/a", "/b"] {
        put(&clients[0], path, layout, &pattern(7 * PAGE - 50));
    }
    let (_, first, _) = one_run(&clients, "/a", &options());
    // Only what was read counts for the next run: a run of its own notes it.
    let reads = run(&clients, &options(), 16, |memory, pio, mut epoch| {
        let array = memory.array::<u8>(7 * PAGE - 50).expect("room");
        if memory.rank() == 0 {
            let file = pio.open("/a", OpenMode::Read, &mut epoch).expect("open");
            pio.read(file, array, u64::MAX, &mut epoch).expect("read");
        }
        epoch = memory.barrier(0, epoch).expect("a barrier");
        let touches = [vec![0, 4, 5, 6], vec![1, 6], vec![2, 3]];
        for page in &touches[memory.rank()] {
            memory.view(&epoch, array).get(page * PAGE);
        }
        epoch = memory.barrier(1, epoch).expect("a barrier");
        if memory.rank() == 0 {
            let accesses = pio.accesses(pio::Pfd(0), &mut epoch).expect("accesses");
            pio.keep("/a", &accesses).expect("kept");
            pio.close(pio::Pfd(0), &mut epoch).expect("closed");
        }
        epoch = memory.barrier(2, epoch).expect("a barrier");
        (epoch, ())
    });
    assert_eq!(reads.len(), 3);
    let (homes, learned, _) = one_run(&clients, "/a", &options());
    assert_eq!(homes, [0, 1, 2, 2, 0, 0, 0]);
    assert_eq!(learned, 1, "page 6, which two read; {first} before");
    // As `pario profile --export` and `--import` carry it.
    let template = Template {
        array: String::new(),
        file_bytes: (7 * PAGE - 50) as u64,
        profile: clients[0].profile("/a").expect("a profile").profile,
    };
    let template = Template::load(&template.save()).expect("a template");
    let fitted = template
        .fit(None, (7 * PAGE - 50) as u64, 3)
        .expect("the same shape");
    clients[1].replace_profile("/b", &fitted).expect("kept");
    let (homes, of_template, _) = one_run(&clients, "/b", &options());
    assert_eq!(homes, [0, 1, 2, 2, 0, 0, 0]);
    assert_eq!(of_template, learned);
    // Who does not want it, or is another program, has the file as it lies.
    let alone = PioOptions {
        follows_accesses: false,
        ..options()
    };
    let other = PioOptions {
        application: "another".into(),
        ..options()
    };
    for without in [alone, other] {
        let (homes, ..) = one_run(&clients, "/b", &without);
        assert_ne!(homes, [0, 1, 2, 2, 0, 0, 0]);
    }
    // Another planner: as few fetches, no larger load.
    let balanced = PioOptions {
        planner: Planner::Balanced,
        ..options()
    };
    let (homes, fetches, _) = one_run(&clients, "/b", &balanced);
    assert_eq!(homes, [0, 1, 2, 2, 0, 0, 1]);
    assert_eq!(fetches, 1);
}

#[test]
fn seed003_pio18_a_file_that_lies_as_planned_is_not_moved_and_moving_changes_no_byte() {
    let dir = testkit::TempDir::new();
    let clients: Vec<_> = (0..3).map(|_| connect(dir.path(), 3)).collect();
    put(
        &clients[0],
        "/a",
        Some("striped(1MiB) over 1"),
        &pattern(7 * PAGE - 50),
    );
    let (_, _, accesses) = one_run(&clients, "/a", &options());
    run(&clients, &options(), 16, |memory, pio, mut epoch| {
        if memory.rank() == 0 {
            assert!(
                pio.redistribute("/a", &mut epoch)
                    .expect("nothing is kept")
                    .is_none()
            );
            pio.keep("/a", &accesses).expect("kept");
            let moved = pio.redistribute("/a", &mut epoch).expect("it may move");
            moved
                .expect("it lies otherwise")
                .wait()
                .expect("it is moved");
            assert!(
                pio.redistribute("/a", &mut epoch)
                    .expect("it may")
                    .is_none()
            );
        }
        epoch = memory.barrier(0, epoch).expect("a barrier");
        (epoch, ())
    });
    assert!(get(&clients[0], "/a") == pattern(7 * PAGE - 50));
    let text = clients[0].layout("/a").expect("a layout").text;
    assert!(text.starts_with("blocks(4KiB: "), "{text}");
    // Also who does not look at accesses has the blocks where they lie now.
    let lies = PioOptions {
        follows_accesses: false,
        ..options()
    };
    let place = Planner::Seed.place(&accesses);
    let (homes, ..) = one_run(&clients, "/a", &lies);
    assert_eq!(
        homes
            .iter()
            .map(|home| usize::from(*home))
            .collect::<Vec<_>>(),
        place
    );
}
