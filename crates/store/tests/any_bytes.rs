//! Data files, identities of disks and logs of subfiles made of arbitrary bytes: errors or bytes, never a panic. The
//! same harness as the fuzz target `data_files`.

mod bytes;

use store::disk::twin::Random;

#[test]
fn any_bytes_give_an_error_or_bytes() {
    let mut random = Random::new(14);
    for round in 0..600 {
        let len = match round % 3 {
            0 => random.index(40),
            1 => random.index(600),
            _ => random.index(20_000),
        };
        let mut data = vec![(round % 5) as u8];
        // Values at the edges are where arithmetic breaks.
        let byte = |random: &mut Random| match random.index(3) {
            0 => 0xff,
            1 => 0,
            _ => random.index(256) as u8,
        };
        data.extend((0..len).map(|_| byte(&mut random)));
        bytes::any_bytes(&data);
    }
}

#[test]
fn every_byte_of_a_header_and_a_table_may_be_anything() {
    for place in (0u16..200).chain(8192..8192 + 260) {
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            let [low, high] = place.to_le_bytes();
            // Both sides, so that no good one is left.
            let [low_too, high_too] = (place + 4096).to_le_bytes();
            bytes::any_bytes(&[2, low, high, value, low_too, high_too, value]);
        }
    }
}

#[test]
fn numbers_at_the_end_of_their_range_are_damage() {
    for field in [16u16, 24, 32, 40, 104] {
        let mut data = vec![2];
        for byte in 0..8 {
            for place in [field + byte, field + byte + 4096] {
                data.extend(place.to_le_bytes());
                data.push(0xff);
            }
        }
        bytes::any_bytes(&data);
    }
}
