//! Matrix multiplication as the source has it: two matrices of 1024 x 1024 integers are read from files, a row is a page, and their product is written to one.
//!
//! Results are compared with the product that one process computes, and fetches with the published table.

use dsm::{SharedArray, SharedMemory};
use pio::{OpenMode, Pfd, Pio};

use crate::members::{connect, get, put};
use crate::processes::{Place, all_do};

const N: usize = 1024;
const BYTES: u64 = (N * N * 4) as u64;

fn input(seed: usize) -> Vec<i32> {
    let value = |at: usize| {
        (at.wrapping_mul(2_654_435_761).wrapping_add(seed * 97) >> 9 & 0xff) as i32 - 128
    };
    (0..N * N).map(value).collect()
}

fn bytes(values: &[i32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

/// Adds rows of the product.
fn multiply(a: &[i32], b: &[i32]) -> Vec<i32> {
    let mut product = vec![0; a.len()];
    for (row, of) in a.chunks(N).zip(product.chunks_mut(N)) {
        for (factor, other) in row.iter().zip(b.chunks(N)) {
            for (sum, value) in of.iter_mut().zip(other) {
                *sum += factor * value;
            }
        }
    }
    product
}

fn read(pio: &Pio<'_>, path: &str, array: SharedArray<i32>, epoch: &mut dsm::Epoch) -> Pfd {
    let file = pio.open(path, OpenMode::Read, epoch).expect("open");
    assert_eq!(pio.read(file, array, BYTES, epoch).expect("read"), BYTES);
    file
}

/// Reads rows of an array, and counts the pages that came for it.
fn rows(
    memory: &SharedMemory,
    epoch: &dsm::Epoch,
    array: SharedArray<i32>,
    from: usize,
    to: usize,
) -> (Vec<i32>, u64) {
    let before = memory.statistics().fetches;
    let mut values = vec![0; (to - from) * N];
    memory.view(epoch, array).copy_to(from * N, &mut values);
    (values, memory.statistics().fetches - before)
}

/// One run: fetches of rows of the first matrix, and of the second.
fn one_run(place: &Place, to: &str, turn: usize) -> Vec<u64> {
    place.run(3 * BYTES as usize, "matrix", |memory, pio, mut epoch| {
        let [a, b, c] = [(); 3].map(|()| memory.array::<i32>(N * N).expect("room"));
        let is_root = memory.rank() == 0;
        let mut files = None;
        if is_root {
            files = Some([
                read(pio, "/a", a, &mut epoch),
                read(pio, "/b", b, &mut epoch),
            ]);
        }
        epoch = memory.barrier(0, epoch).expect("a barrier");
        let (me, all) = (memory.rank(), memory.size());
        let (from, end) = (me * N / all, (me + 1) * N / all);
        let (mine, of_a) = rows(memory, &epoch, a, from, end);
        let (other, of_b) = rows(memory, &epoch, b, 0, N);
        memory
            .view(&epoch, c)
            .copy_from(from * N, &multiply(&mine, &other));
        epoch = memory.barrier(1, epoch).expect("a barrier");
        if let Some(files) = files {
            for (file, path) in files.into_iter().zip(["/a", "/b"]) {
                let accesses = pio.accesses(file, &mut epoch).expect("accesses");
                if turn == 0 {
                    pio.keep(path, &accesses).expect("kept");
                }
                pio.close(file, &mut epoch).expect("closed");
            }
            let file = pio.open(to, OpenMode::Create, &mut epoch).expect("open");
            assert_eq!(
                pio.write(file, c, BYTES, &mut epoch).expect("written"),
                BYTES
            );
            pio.close(file, &mut epoch).expect("closed");
        }
        (epoch, vec![of_a, of_b])
    })
}

pub(crate) fn member(place: &Place) -> Vec<u64> {
    let mut told = one_run(place, "/first", 0);
    told.extend(one_run(place, "/second", 1));
    told
}

#[test]
fn seed003_pio15_matrix_multiplication_with_real_files_fetches_what_the_published_table_says() {
    for (processes, of_b) in [(8, 7168), (4, 3072)] {
        let dir = testkit::TempDir::new();
        let client = connect(dir.path(), 2);
        for (path, seed) in [("/a", 1), ("/b", 2)] {
            put(
                &client,
                path,
                Some("striped(4KiB) over 2"),
                &bytes(&input(seed)),
            );
        }
        let told = all_do(dir.path(), processes, "matrix");
        let expected = bytes(&multiply(&input(1), &input(2)));
        assert!(get(&client, "/first") == expected);
        assert!(get(&client, "/second") == expected);
        let sum = |number: usize| told.iter().map(|told| told[number]).sum::<u64>();
        assert!(sum(0) > 0, "the first matrix lay elsewhere");
        assert_eq!(
            [sum(1), sum(2), sum(3)],
            [of_b, 0, of_b],
            "{processes} processes"
        );
    }
}
