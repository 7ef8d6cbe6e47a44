//! Bytes in and out: all layouts against all views, cuts, holes, ends, messages.
//!
//! The model is a plain vector of bytes; the service checks every message against the layout.

use client::{File, OpenOptions, Places, Sequence, View};
use wire::message::access::{DATA, READ, WRITE};

use crate::service::Toy;
use crate::{connect, create, pattern};

/// Layouts of an array of 6 x 8 entries of 2 bytes, and of plain bytes.
const LAYOUTS: &[(&str, &str)] = &[
    ("u16[6,8]", "(block, *) onto 3"),
    ("u16[6,8]", "(*, block) onto 4"),
    ("u16[6,8]", "(block, cyclic) onto 2x2"),
    ("u16[6,8]", "(cyclic(2), block(3)) onto 2x3"),
    ("u16[6,8]", "chunks(4,3) over 3"),
    ("u16[6,8]", "chunks(2,2)"),
    ("", "striped(5) over 3"),
    ("", "blocks(4: 0,1,1,0,2)"),
    ("", "vesta(4, 3)"),
    ("", "falls{(0,0,3,4); (1,2,3,4)} period 12"),
    ("", "whole"),
];

const VIEWS: &[(&str, &str)] = &[
    ("u16[6,8]", "(block, *) onto 2 [1]"),
    ("u16[6,8]", "(*, cyclic) onto 3 [0]"),
    ("u16[6,8]", "slice[1:6:2, 2:7]"),
    ("u16[6,8]", "whole"),
    ("", "striped(7) over 2 [1]"),
    ("", "strided(3, 4: 3x9) period 40"),
    ("", "falls{(0,3,8,2,{(0,0,2,2)})} period 20"),
    ("", "whole"),
];

/// What a view shows, as file offsets of its bytes.
fn places(view: &View, range: std::ops::Range<u64>) -> Vec<usize> {
    range
        .map(|k| view.view_to_file(layout::ViewOffset(k)).unwrap().0 as usize)
        .collect()
}

/// Writes through the view and notes it in a plain file.
fn write(file: &File, model: &mut Vec<u8>, offset: u64, bytes: &[u8]) {
    assert_eq!(file.write_at(offset, bytes).unwrap(), bytes.len());
    for (x, byte) in places(&file.view(), offset..offset + bytes.len() as u64)
        .into_iter()
        .zip(bytes)
    {
        if model.len() <= x {
            model.resize(x + 1, 0);
        }
        model[x] = *byte;
    }
}

/// Reads through the view and compares with the plain file.
fn read(file: &File, model: &[u8], offset: u64, len: usize) {
    let mut buffer = vec![0xee; len];
    let n = file.read_at(offset, &mut buffer).unwrap();
    let shown = file.view().len_within(model.len() as u64);
    assert_eq!(n as u64, shown.saturating_sub(offset).min(len as u64));
    let expected: Vec<u8> = places(&file.view(), offset..offset + n as u64)
        .into_iter()
        .map(|x| model[x])
        .collect();
    assert!(buffer[..n] == expected[..], "{n} bytes at {offset}");
    assert!(buffer[n..].iter().all(|b| *b == 0xee), "nothing behind");
    assert_eq!(file.last_access().is_end_of_file, n < len);
}

#[test]
fn every_layout_under_every_view_is_a_plain_file() {
    for servers in [1, 2, 3, 5] {
        let toy = Toy::start(servers);
        let client = connect(&toy);
        for (l, (array, layout)) in LAYOUTS.iter().enumerate() {
            for (v, (needs, view)) in VIEWS.iter().enumerate() {
                if !needs.is_empty() && needs != array {
                    continue;
                }
                let path = format!("/{l}-{v}");
                let file = create(&client, &path, array, layout);
                let mut model = Vec::new();
                file.set_view_text_at(v as u64 % 5, view).unwrap();
                write(&file, &mut model, 3, &pattern(29, l));
                write(&file, &mut model, 0, &pattern(1, v));
                write(&file, &mut model, 90, &pattern(70, l + v));
                for (offset, len) in [(0, 1), (2, 40), (0, 200), (159, 9), (500, 3), (60, 40)] {
                    read(&file, &model, offset, len);
                }
                file.set_view(&View::whole_file()).unwrap();
                read(&file, &model, 0, model.len() + 10);
                assert_eq!(toy.bytes(&path), model, "{layout} under {view}");
                assert_eq!(file.size().unwrap(), model.len() as u64);
                file.close().unwrap();
            }
        }
        // Nothing is left behind.
        assert!(toy.lock().views_left() == 0);
    }
}

#[test]
fn seed000_s20_every_cut_of_a_write_gives_the_same_file() {
    let toy = Toy::start(3);
    let client = connect(&toy);
    let bytes = pattern(60, 4);
    for (i, cuts) in [&[][..], &[1], &[30], &[7, 8, 31], &[10, 20, 30, 40, 50]]
        .iter()
        .enumerate()
    {
        let path = format!("/{i}");
        let file = create(&client, &path, "u16[6,8]", "(block, cyclic) onto 2x2");
        file.set_view_text_at(6, "(cyclic, *) onto 2 [1]").unwrap();
        let mut from = 0;
        for &to in cuts.iter().chain([&60]) {
            file.write_at(from as u64, &bytes[from..to]).unwrap();
            from = to;
        }
        file.close().unwrap();
        assert_eq!(toy.bytes(&path), toy.bytes("/0"), "cut at {cuts:?}");
    }
}

#[test]
fn seed000_s16_servers_without_a_byte_get_no_message() {
    let toy = Toy::start(4);
    let client = connect(&toy);
    let file = create(&client, "/f", "", "striped(8) over 4");
    file.write_at(0, &pattern(64, 0)).unwrap();
    // Every fourth stripe, so two subfiles of the view's own; one interval in one of them.
    file.set_view_text("falls{(0,7),(24,31)} period 32")
        .unwrap();
    let before = toy.count(&[READ, WRITE]);
    let mut buffer = [0; 8];
    file.read_at(0, &mut buffer).unwrap();
    assert_eq!(toy.count(&[READ, WRITE]) - before, 1);
    assert_eq!(file.last_access().servers.len(), 1);
    file.read_at(4, &mut buffer).unwrap();
    assert_eq!(toy.count(&[READ, WRITE]) - before, 3);
    // Nothing at all is asked for nothing.
    assert_eq!(file.read_at(0, &mut []).unwrap(), 0);
    assert_eq!(file.write_at(0, &[]).unwrap(), 0);
    assert_eq!(toy.count(&[READ, WRITE]) - before, 3);
}

#[test]
fn messages_are_as_many_as_derived() {
    let toy = Toy::with_limits(3, 4096, 1000);
    let client = connect(&toy);
    let file = create(&client, "/f", "", "striped(100) over 3");
    // 200 bytes of 2 servers: a message each, none announced, and the end told once.
    file.write_at(0, &pattern(200, 0)).unwrap();
    assert_eq!((toy.count(&[WRITE]), toy.count(&[DATA])), (2, 0));
    // 3600 bytes in all, 1200 each: announced, so two messages each.
    file.write_at(0, &pattern(3600, 0)).unwrap();
    assert_eq!((toy.count(&[WRITE]), toy.count(&[DATA])), (5, 3));
    // 30000 bytes each: eight rounds.
    file.write_at(0, &pattern(90_000, 0)).unwrap();
    assert_eq!((toy.count(&[WRITE]), toy.count(&[DATA])), (29, 27));
    assert_eq!(file.last_access().messages(), 48);
    let mut back = vec![0; 90_000];
    assert_eq!(file.read_at(0, &mut back).unwrap(), 90_000);
    assert_eq!(toy.count(&[READ]), 24);
    assert!(back == pattern(90_000, 0));
    // Scattered in the view's memory, in rounds too; several subfiles at one server.
    let toy = Toy::with_limits(2, 4096, 100);
    let client = connect(&toy);
    let file = create(&client, "/f", "", "striped(3) over 7");
    file.set_view_text_at(1, "falls{(0,4)} period 9").unwrap();
    let bytes = pattern(50_000, 3);
    file.write_at(11, &bytes).unwrap();
    let mut back = vec![0; 50_000];
    assert_eq!(file.read_at(11, &mut back).unwrap(), 50_000);
    assert!(back == bytes);
    // Four of seven subfiles lie at one server: 28572 bytes in 7 rounds, and 21428 in 6.
    assert_eq!(toy.count(&[READ]), 13);
    // A hint makes messages shorter, never longer.
    file.set_hints(
        &client::Hints::new()
            .with("rendezvous_bytes", "9000")
            .unwrap(),
    )
    .unwrap();
    let data = toy.count(&[DATA]);
    file.write_at(11, &bytes).unwrap();
    assert_eq!(toy.count(&[DATA]), data);
}

#[test]
fn seed000_s18_bytes_before_a_displacement_are_kept() {
    let toy = Toy::start(2);
    let client = connect(&toy);
    let file = create(&client, "/f", "", "striped(4) over 2");
    let mut model = Vec::new();
    write(&file, &mut model, 0, &pattern(20, 0));
    file.set_view_text_at(7, "striped(3) over 2 [0]").unwrap();
    write(&file, &mut model, 0, &pattern(12, 9));
    file.set_view(&View::whole_file()).unwrap();
    read(&file, &model, 0, 40);
    assert_eq!(model[..7], pattern(20, 0)[..7]);
}

#[test]
fn seed000_s19_holes_read_as_zeros_and_ends_are_short() {
    let toy = Toy::start(3);
    let client = connect(&toy);
    let file = create(&client, "/f", "", "striped(4) over 3");
    let mut model = Vec::new();
    let mut buffer = [1; 4];
    assert_eq!(file.read_at(0, &mut buffer).unwrap(), 0);
    assert!(file.last_access().is_end_of_file);
    write(&file, &mut model, 50, &pattern(3, 0));
    read(&file, &model, 0, 60);
    read(&file, &model, 49, 2);
    // Shrink and grow in the middle of the pattern: what is regrown is zero.
    write(&file, &mut model, 0, &pattern(53, 1));
    file.resize(17).unwrap();
    model.truncate(17);
    read(&file, &model, 0, 60);
    file.resize(30).unwrap();
    model.resize(30, 0);
    read(&file, &model, 0, 60);
    // Another client sees the same, and its growth is seen here.
    let other = connect(&toy)
        .open("/f", &OpenOptions::new().read().write())
        .unwrap();
    read(&other, &model, 5, 50);
    write(&other, &mut model, 40, &pattern(9, 2));
    read(&file, &model, 0, 60);
}

#[test]
fn seed001_s25_memory_and_file_may_both_have_gaps() {
    let toy = Toy::start(2);
    let client = connect(&toy);
    let file = create(&client, "/f", "u8[8,8]", "(block, *) onto 2");
    file.set_view_text("(*, block) onto 2 [1]").unwrap();
    // The 32 bytes of the view, column by column of a 8 x 4 memory with a margin.
    let column = Sequence::bytes(0, 1).unwrap().repeat(8, 4).unwrap();
    let places = Places::new(&column.repeat(4, 1).unwrap());
    let memory = pattern(40, 0);
    assert_eq!(
        file.write_at_memory(0, memory[..].into(), 5, &places)
            .unwrap(),
        32
    );
    let mut plain = [0; 32];
    assert_eq!(file.read_at(0, &mut plain).unwrap(), 32);
    for (j, byte) in plain.iter().enumerate() {
        assert_eq!(*byte, memory[5 + j / 8 + j % 8 * 4]);
    }
    let mut back = [0; 40];
    assert_eq!(
        file.read_at_memory(0, back[..].as_mut().into(), 5, &places)
            .unwrap(),
        32
    );
    assert_eq!(back[5..37], memory[5..37]);
    assert_eq!((&back[..5], &back[37..]), (&[0; 5][..], &[0; 3][..]));
    // Short at the end, and refused where it leaves the memory or names a byte twice.
    assert_eq!(
        file.read_at_memory(30, back[..].as_mut().into(), 5, &places)
            .unwrap(),
        2
    );
    let error = file
        .read_at_memory(0, back[..].as_mut().into(), 9, &places)
        .unwrap_err();
    assert!(error.to_string().contains("outside the memory"), "{error}");
    let twice = Places::new(&Sequence::bytes(0, 2).unwrap().repeat(2, 1).unwrap());
    assert!(
        file.read_at_memory(0, back[..].as_mut().into(), 0, &twice)
            .is_err()
    );
    assert_eq!(
        file.write_at_memory(0, memory[..].into(), 0, &twice)
            .unwrap(),
        4
    );
}

#[test]
fn seed001_s24_filetypes_tile_without_end_from_their_displacement() {
    let toy = Toy::start(3);
    let client = connect(&toy);
    let file = create(&client, "/f", "", "striped(16) over 3");
    let mut model = vec![0; 5];
    let view = View::new(layout::FileOffset(5), 7, "{(1,2),(5,5)}".parse().unwrap()).unwrap();
    file.set_view(&view).unwrap();
    write(&file, &mut model, 0, &pattern(300, 0));
    assert_eq!(model.len(), 5 + 99 * 7 + 6);
    read(&file, &model, 100, 300);
}

#[test]
fn views_that_are_no_single_element_are_refused() {
    let toy = Toy::start(1);
    let client = connect(&toy);
    let file = create(&client, "/f", "", "whole");
    for (text, remedy) in [
        ("striped(4) over 2", "pick one"),
        ("(block) onto 2 [0]", "cuts an array"),
        ("striped(4) over 2 [2]", "element"),
        ("strped(4)", "expected"),
    ] {
        let error = file.set_view_text(text).unwrap_err().to_string();
        assert!(error.contains(remedy), "{text}: {error}");
    }
    let empty = View::new(layout::FileOffset(0), 4, falls::FallsSet::empty()).unwrap();
    file.set_view(&empty).unwrap();
    assert!(
        file.write_at(0, &[1])
            .unwrap_err()
            .to_string()
            .contains("shows no byte")
    );
    assert_eq!(file.read_at(0, &mut [1]).unwrap(), 0);
    file.set_view(&View::whole_file()).unwrap();
    let far = file.write_at(u64::MAX - 1, &[1, 2]).unwrap_err();
    assert!(far.to_string().contains("2^63"), "{far}");
}

#[test]
fn a_view_of_many_pieces_travels_in_parts() {
    let toy = Toy::start(2);
    let client = connect(&toy);
    let file = create(&client, "/f", "", "striped(1000) over 2");
    let mut at = 0;
    let list: Vec<falls::Segment> = (0..200_000u64)
        .map(|i| {
            at += 3 + i * i % 5;
            falls::Segment::new(at - 2, 1).unwrap()
        })
        .collect();
    let set = falls::FallsSet::from_segments(&list).unwrap();
    let view = View::new(layout::FileOffset(0), set.end(), set).unwrap();
    file.set_view(&view).unwrap();
    let mut model = Vec::new();
    write(&file, &mut model, 100_000, &pattern(500, 0));
    read(&file, &model, 99_990, 520);
}

#[test]
fn a_steady_access_allocates_nothing() {
    let toy = Toy::with_limits(3, 1 << 20, 4096);
    let client = connect(&toy);
    let file = create(&client, "/f", "", "striped(64) over 3");
    let mut buffer = pattern(4096, 0);
    for (view, len) in [
        ("whole", 40),
        ("whole", 4096),
        ("striped(8) over 3 [1]", 3000),
    ] {
        file.set_view_text(view).unwrap();
        for _ in 0..3 {
            file.write_at(5, &buffer[..len]).unwrap();
            file.read_at(5, &mut buffer[..len]).unwrap();
        }
        let info = allocation_counter::measure(|| {
            file.write_at(5, &buffer[..len]).unwrap();
            file.read_at(5, &mut buffer[..len]).unwrap();
        });
        assert_eq!(info.count_total, 0, "{len} bytes of {view}");
    }
}
