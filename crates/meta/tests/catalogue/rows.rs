//! Rows that nobody vouches for: noise, and damaged rows of a real catalogue, through every decoder.
//!
//! None panics, and none takes more memory than its input pays for. The seed is fixed. The fuzz target `catalogue_rows` feeds
//! the same function.

use allocation_counter::measure;
use meta::catalogue::read_row;
use redb::{ReadableDatabase, ReadableTable, TableDefinition};

use crate::format::write_image;
use crate::simulated::Disk;
use random::Random;

/// What a byte of input may cost in memory. The dearest is an empty element of a partition: one byte, a set of its own.
const FACTOR: u64 = 800;
/// What any input may cost: texts of errors, and the smallest set.
const FIXED: u64 = 8192;
const ROUNDS: u64 = 20_000;

type Row = (Vec<u8>, Vec<u8>);

/// All rows of a catalogue with something of everything.
fn real_rows() -> Vec<Row> {
    let disk = Disk::with(write_image());
    let db = redb::Database::builder().create_with_backend(disk).unwrap();
    let rows: TableDefinition<'_, &'static [u8], &'static [u8]> = TableDefinition::new("catalogue");
    let table = db.begin_read().unwrap().open_table(rows).unwrap();
    let rows = table.iter().unwrap().map(Result::unwrap);
    rows.map(|(key, value)| (key.value().to_vec(), value.value().to_vec()))
        .collect()
}

fn damage(bytes: &mut Vec<u8>, random: &mut Random, others: &[Row]) {
    let place = random.below(bytes.len() as u64 + 1) as usize;
    let byte = random.below(256) as u8;
    match random.below(6) {
        0 if place < bytes.len() => bytes[place] = byte,
        1 if place < bytes.len() => drop(bytes.remove(place)),
        2 => bytes.insert(place, byte),
        3 => bytes.truncate(place),
        4 => {
            let other = &random.pick(others).1;
            let from = random.below(other.len() as u64 + 1) as usize;
            bytes.splice(place.., other[from..].iter().copied());
        }
        // A number of the largest kind, where a length may stand.
        _ => drop(bytes.splice(place..place, [0xff; 9].into_iter().chain([1]))),
    }
}

fn feed(key: &[u8], value: &[u8]) {
    let cost = measure(|| drop(read_row(key, value)));
    let most = FACTOR * (key.len() + value.len()) as u64 + FIXED;
    assert!(
        cost.bytes_max <= most,
        "{} bytes for {key:02x?} {value:02x?}",
        cost.bytes_max
    );
}

#[test]
fn real_rows_are_read() {
    let rows = real_rows();
    let tags: std::collections::BTreeSet<u8> = rows.iter().map(|(key, _)| key[0]).collect();
    assert!(tags.len() >= 10, "{tags:?}");
    for (key, value) in &rows {
        read_row(key, value).unwrap_or_else(|e| panic!("{key:02x?}: {e}"));
    }
}

#[test]
fn rows_of_every_kind_that_end_within_a_number_are_refused() {
    // Kind 6 has keys alone; 15 is the last.
    for kind in (0..=15).filter(|&kind| kind != 6) {
        let key = [kind; 17];
        assert!(read_row(&key, &[0x80]).is_err(), "kind {kind}");
    }
}

#[test]
fn damaged_rows_are_refused_and_never_more() {
    let rows = real_rows();
    let mut random = Random::new(7);
    for _ in 0..ROUNDS {
        let (mut key, mut value) = random.pick(&rows).clone();
        for _ in 0..=random.below(4) {
            damage(&mut value, &mut random, &rows);
        }
        if random.below(4) == 0 {
            damage(&mut key, &mut random, &rows);
        }
        feed(&key, &value);
    }
}

#[test]
fn noise_is_refused_and_never_more() {
    let mut random = Random::new(11);
    for _ in 0..ROUNDS {
        let len = random.below(64);
        let value: Vec<u8> = (0..len).map(|_| random.below(256) as u8).collect();
        let key: Vec<u8> = [random.below(18) as u8]
            .into_iter()
            .chain((0..16).map(|_| random.below(3) as u8))
            .collect();
        feed(&key, &value);
    }
}
