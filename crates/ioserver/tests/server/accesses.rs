//! Reads and writes: straight or staged, inline or announced, cut in any way, give the same bytes.
//!
//! The file space is small, so that every byte can be followed.

use falls::FallsSet;
use layout::{FileOffset, View};
use wire::message::access::ANNOUNCED;

use crate::rig::{Rig, memory, pattern};

fn view(displacement: u64, period: u64, set: &str) -> View {
    let set: FallsSet = set.parse().unwrap();
    View::new(FileOffset(displacement), period, set).unwrap()
}

fn whole() -> View {
    View::whole_file()
}

#[test]
fn seed000_s20_any_cutting_of_a_write_gives_equal_subfiles() {
    let rig = Rig::new(3);
    let mut client = rig.client();
    let sparse = view(3, 11, "{(0,1,4,2),(9,9)}");
    let data = pattern(700, 1);
    let mut seen: Option<Vec<u8>> = None;
    for (i, step) in [700usize, 1, 7, 64, 333].into_iter().enumerate() {
        for (j, layout) in [
            "striped(5) over 3",
            "striped(16) over 2",
            "striped(1KiB) over 1",
        ]
        .iter()
        .enumerate()
        {
            let file = client.open(&format!("/cut-{i}-{j}"), None, Some(layout));
            client.set_view(&file, 1, &sparse);
            client.set_view(&file, 2, &whole());
            for (n, part) in data.chunks(step).enumerate() {
                client
                    .write(&file, 1, &sparse, (n * step) as u64, part)
                    .unwrap();
            }
            let (back, _) = client.read(&file, 1, &sparse, 0, 700).unwrap();
            assert_eq!(back, data, "step {step}, {layout}");
            let (all, _) = client.read(&file, 2, &whole(), 0, 1600).unwrap();
            match &seen {
                Some(before) => assert_eq!(*before, all, "step {step}, {layout}"),
                None => seen = Some(all),
            }
        }
    }
    // What no view covers was never written.
    let all = seen.unwrap();
    assert!(all[..3].iter().all(|&b| b == 0));
    assert_eq!(rig.count(0, "requests_to_servers"), 0);
}

#[test]
fn seed000_s17_contiguous_accesses_skip_the_copy_and_others_are_scattered() {
    let rig = Rig::new(1);
    let mut client = rig.client();
    let file = client.open("/f", None, Some("striped(4KiB) over 1"));
    let data = pattern(100_000, 2);
    client.set_view(&file, 1, &whole());
    let done = client.write(&file, 1, &whole(), 0, &data).unwrap();
    assert_eq!(done[0].rounds, 0);
    let (back, done) = client.read(&file, 1, &whole(), 5, 99_000).unwrap();
    assert_eq!((&back[..], done[0].rounds), (&data[5..99_000], 0));
    assert_eq!(rig.count(0, "straight_accesses"), 2);

    let odd = view(0, 8, "{(1,1,2,4)}");
    client.set_view(&file, 2, &odd);
    let odd_bytes = pattern(1000, 3);
    let done = client.write(&file, 2, &odd, 10, &odd_bytes).unwrap();
    assert_eq!(done[0].rounds, 1);
    let mut expected = data;
    for (k, byte) in odd_bytes.iter().enumerate() {
        expected[(10 + k) * 2 + 1] = *byte;
    }
    let (back, _) = client.read(&file, 1, &whole(), 0, 100_000).unwrap();
    assert_eq!(back, expected);
    let (back, done) = client.read(&file, 2, &odd, 10, 1010).unwrap();
    assert_eq!((back, done[0].rounds), (odd_bytes, 1));
}

#[test]
fn seed004_s47_any_buffer_size_gives_the_same_bytes_in_the_expected_rounds() {
    for buffer in [1 << 10, 4 << 10, 64 << 10, 1 << 20] {
        let rig = Rig::with(1, |o| {
            o.buffer_bytes = buffer;
            o.buffers_bytes = buffer;
        });
        let mut client = rig.client();
        let file = client.open("/f", None, Some("striped(4KiB) over 1"));
        let every_third = view(1, 3, "{(0,0)}");
        client.set_view(&file, 1, &every_third);
        let data = pattern(200_001, buffer);
        let done = client.write(&file, 1, &every_third, 7, &data).unwrap();
        assert_eq!(done[0].rounds, 200_001u64.div_ceil(buffer));
        let (back, done) = client.read(&file, 1, &every_third, 7, 200_008).unwrap();
        assert_eq!(done[0].rounds, 200_001u64.div_ceil(buffer));
        assert!(back == data, "buffer of {buffer}");
        assert_eq!(rig.count(0, "buffers_lent_most"), 1);
    }
}

#[test]
fn seed004_s09_inline_and_announced_writes_give_identical_results() {
    let rig = Rig::with(2, |o| o.rendezvous_bytes = Some(12345));
    let mut client = rig.client();
    let gaps = view(2, 9, "{(0,4)}");
    let data = pattern(300_000, 5);
    let mut results = Vec::new();
    for (name, flags) in [("/inline", 0), ("/announced", ANNOUNCED)] {
        let file = client.open(name, None, Some("striped(1KiB) over 2"));
        client.set_view(&file, 1, &gaps);
        client.set_view(&file, 2, &whole());
        client.flags = flags;
        client.write(&file, 1, &gaps, 0, &data).unwrap();
        client.write(&file, 2, &whole(), 600_000, &data).unwrap();
        client.flags = 0;
        results.push(client.read(&file, 2, &whole(), 0, 900_000).unwrap().0);
    }
    assert!(results[0] == results[1]);
    assert_eq!(rig.count(0, "announced_writes"), 2);
    // The choice is the client's, by a threshold that is told and can be set.
    let role = client.role();
    let (_, welcome) = client.connect(rig.number(0), role).unwrap();
    assert_eq!(welcome.rendezvous_bytes, 12345);
    assert_eq!(rig.count(0, "rendezvous_bytes"), 12345);
    let measured = Rig::new(1);
    let threshold = measured.count(0, "rendezvous_bytes");
    assert!((256 << 10..=16 << 20).contains(&threshold));
}

#[test]
fn seed000_s32_any_number_of_views_per_file() {
    let rig = Rig::new(2);
    let mut client = rig.client();
    let file = client.open("/f", None, Some("striped(7) over 2"));
    let views: Vec<_> = (0..300u64)
        .map(|i| view(i, 400, &format!("{{({},{})}}", i % 13, i % 13 + 20)))
        .collect();
    client.set_view(&file, 1000, &whole());
    let data = pattern(2000, 6);
    client.write(&file, 1000, &whole(), 0, &data).unwrap();
    for (i, v) in views.iter().enumerate() {
        client.set_view(&file, i as u64, v);
    }
    for (i, v) in views.iter().enumerate() {
        let (back, _) = client.read(&file, i as u64, v, 0, 40).unwrap();
        let expected: Vec<u8> = (0..40)
            .map(|k| data[v.view_to_file(layout::ViewOffset(k)).unwrap().0 as usize])
            .collect();
        assert_eq!(back, expected, "view {i}");
    }
    assert_eq!(rig.count(0, "views"), 301);
}

#[test]
fn seed001_s13_holes_and_bytes_behind_the_end_read_as_zeros() {
    let rig = Rig::new(2);
    let mut client = rig.client();
    let file = client.open("/f", None, Some("striped(100) over 2"));
    client.set_view(&file, 1, &whole());
    assert_eq!(
        client.read(&file, 1, &whole(), 0, 500).unwrap().0,
        vec![0; 500]
    );
    client.write(&file, 1, &whole(), 300_000, &[9; 10]).unwrap();
    let (back, _) = client.read(&file, 1, &whole(), 299_990, 300_100).unwrap();
    let mut expected = vec![0; 110];
    expected[10..20].fill(9);
    assert_eq!(back, expected);
}

#[test]
fn seed001_s12_exhausted_memory_is_an_error_and_the_server_stays_usable() {
    let rig = Rig::with(1, |o| o.store = memory(8 << 20));
    let mut client = rig.client();
    let file = client.open("/f", None, Some("striped(1MiB) over 1"));
    client.set_view(&file, 1, &whole());
    let block = pattern(2 << 20, 7);
    let mut at = 0;
    let refused = loop {
        match client.write(&file, 1, &whole(), at, &block) {
            Ok(_) => at += block.len() as u64,
            Err(refused) => break refused,
        }
        assert!(at <= 8 << 20, "no limit was noticed");
    };
    assert_eq!(refused.0, wire::Status::NoMemory, "{}", refused.1);
    // The connection is in step, and what was there is there.
    let (back, _) = client.read(&file, 1, &whole(), 0, 2 << 20).unwrap();
    assert!(back == block);
    let odd = view(0, 8, "{(1,1,2,4)}");
    client.set_view(&file, 2, &odd);
    let refused = client.write(&file, 2, &odd, 8 << 20, &block[..100_000]);
    assert_eq!(refused.unwrap_err().0, wire::Status::NoMemory);
    client.write(&file, 1, &whole(), 0, &block[..10]).unwrap();
}
