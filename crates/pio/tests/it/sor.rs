//! Successive over-relaxation as the source has it: an array of 2000 x 1000 numbers that is read from a file and written to one, by bands of rows; red and
//! black elements in turns, with a barrier between.

use dsm::{Element, Epoch, SharedArray, SharedMemory};
use pio::OpenMode;

use crate::members::{connect, get, put};
use crate::processes::{Place, all_do};

const ROWS: usize = 2000;
const COLUMNS: usize = 1000;
const ITERATIONS: usize = 2;

pub(crate) trait Real: Element + Into<f64> {
    fn of(value: f64) -> Self;
    fn bytes(values: &[Self]) -> Vec<u8>;
}

impl Real for f32 {
    fn of(value: f64) -> f32 {
        value as f32
    }

    fn bytes(values: &[f32]) -> Vec<u8> {
        values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect()
    }
}

impl Real for f64 {
    fn of(value: f64) -> f64 {
        value
    }

    fn bytes(values: &[f64]) -> Vec<u8> {
        values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect()
    }
}

fn input<T: Real>() -> Vec<T> {
    let value = |at: usize| T::of((at.wrapping_mul(2_654_435_761) >> 7 & 0xffff) as f64);
    (0..ROWS * COLUMNS).map(value).collect()
}

/// Elements of one colour in a row get the mean of their neighbours.
fn relax<T: Real>(
    row: usize,
    colour: usize,
    get: impl Fn(usize) -> T,
    mut set: impl FnMut(usize, T),
) {
    let first = 1 + (row + colour) % 2;
    for column in (first..COLUMNS - 1).step_by(2) {
        let at = row * COLUMNS + column;
        let sum: f64 = [at - COLUMNS, at - 1, at + 1, at + COLUMNS]
            .map(|at| get(at).into())
            .iter()
            .sum();
        set(at, T::of(sum / 4.0));
    }
}

fn alone<T: Real>() -> Vec<T> {
    let cells: Vec<std::cell::Cell<T>> =
        input::<T>().into_iter().map(std::cell::Cell::new).collect();
    for _ in 0..ITERATIONS {
        for colour in 0..2 {
            for row in 1..ROWS - 1 {
                relax(
                    row,
                    colour,
                    |at| cells[at].get(),
                    |at, value| cells[at].set(value),
                );
            }
        }
    }
    cells.into_iter().map(|cell| cell.get()).collect()
}

/// One half of an iteration, by this process.
fn sweep<T: Real>(memory: &SharedMemory, epoch: &Epoch, array: SharedArray<T>, colour: usize) {
    let (me, all) = (memory.rank(), memory.size());
    let view = memory.view(epoch, array);
    let band = (me * ROWS / all).max(1)..((me + 1) * ROWS / all).min(ROWS - 1);
    for row in band {
        relax(
            row,
            colour,
            |at| view.get(at),
            |at, value| view.set(at, value),
        );
    }
}

/// A run that reads, computes, and writes. Fetches up to the first barrier, blocks, the most blocks of a process and blocks with one accessor by what was noted.
fn one_run<T: Real>(place: &Place, to: &str, turn: usize) -> Vec<u64> {
    let bytes = ROWS * COLUMNS * size_of::<T>();
    place.run(bytes, "sor", |memory, pio, mut epoch| {
        let array = memory.array::<T>(ROWS * COLUMNS).expect("room");
        let is_root = memory.rank() == 0;
        if is_root {
            let file = pio.open("/in", OpenMode::Read, &mut epoch).expect("open");
            let read = pio
                .read(file, array, bytes as u64, &mut epoch)
                .expect("read");
            assert_eq!(read, bytes as u64);
        }
        epoch = memory.barrier(0, epoch).expect("a barrier");
        let before = memory.statistics().fetches;
        sweep(memory, &epoch, array, 0);
        let fetches = memory.statistics().fetches - before;
        for half in 1..2 * ITERATIONS {
            epoch = memory.barrier(1, epoch).expect("a barrier");
            sweep(memory, &epoch, array, half % 2);
        }
        epoch = memory.barrier(2, epoch).expect("a barrier");
        let mut told = vec![fetches];
        if is_root {
            let accesses = pio.accesses(pio::Pfd(0), &mut epoch).expect("accesses");
            let accessors = accesses.accessors();
            let several = (0..accesses.blocks()).filter(|block| accesses.writers(*block).len() > 1);
            told.push(accessors.iter().filter(|set| set.len() == 1).count() as u64);
            told.push(several.count() as u64);
            if turn == 0 {
                pio.keep("/in", &accesses).expect("kept");
            }
            pio.close(pio::Pfd(0), &mut epoch).expect("closed");
            let file = pio.open(to, OpenMode::Create, &mut epoch).expect("open");
            let written = pio
                .write(file, array, bytes as u64, &mut epoch)
                .expect("written");
            assert_eq!(written, bytes as u64);
            pio.close(file, &mut epoch).expect("closed");
        }
        (epoch, told)
    })
}

/// Two runs: the first finds the file at one server and learns, the second has the blocks where they are accessed.
pub(crate) fn member<T: Real>(place: &Place) -> Vec<u64> {
    let mut told = one_run::<T>(place, "/first", 0);
    told.extend(one_run::<T>(place, "/second", 1));
    told
}

fn case<T: Real>(processes: usize, learned: u64, one_accessor: u64, several_writers: u64) {
    let dir = testkit::TempDir::new();
    let client = connect(dir.path(), 2);
    put(
        &client,
        "/in",
        Some("striped(64KiB) over 2"),
        &T::bytes(&input::<T>()),
    );
    let what = format!("sor{}", size_of::<T>());
    let told = all_do(dir.path(), processes, &what);
    let expected = T::bytes(&alone::<T>());
    assert!(get(&client, "/first") == expected, "the first result");
    assert!(get(&client, "/second") == expected, "the second result");
    // Process 0 tells three numbers for each run, the others one.
    let fetches = |run: usize| -> u64 {
        told.iter()
            .enumerate()
            .map(|(process, told)| told[run * if process == 0 { 3 } else { 1 }])
            .sum()
    };
    assert_eq!(fetches(1), learned, "{processes} processes, after learning");
    assert!(fetches(0) > 10 * learned, "{} before", fetches(0));
    for run in [0, 3] {
        assert_eq!(told[0][run + 1], one_accessor, "blocks with one accessor");
        assert_eq!(
            told[0][run + 2],
            several_writers,
            "blocks with several writers"
        );
    }
}

#[test]
fn seed003_pio16_sor_with_real_files_fetches_3_pages_on_2_processes_after_learning() {
    case::<f32>(2, 3, 1951, 1);
}

#[test]
fn seed003_pio16_sor_with_real_files_fetches_9_pages_on_4_processes_after_learning() {
    case::<f32>(4, 9, 1945, 3);
}

#[test]
fn seed003_pio16_sor_with_real_files_fetches_20_pages_on_8_processes_after_learning() {
    case::<f32>(8, 20, 1934, 7);
}

#[test]
fn seed003_pio16_sor_with_longer_numbers_fetches_15_and_34_pages_after_learning() {
    case::<f64>(4, 15, 3892, 3);
    case::<f64>(8, 34, 3873, 7);
}
