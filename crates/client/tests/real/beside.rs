//! Accesses beside the view of a handle: side views, ranges in any order, inserting; alone and among others that do the same.
//!
//! The model is a plain vector of bytes.

use client::{Memory, OpenOptions, Places, Sequence, SharedBytes, SharedBytesMut, Status, View};
use layout::{FileOffset, ViewOffset};

use crate::service::{Service, create, pattern};

fn view(displacement: u64, period: u64, set: &str) -> View {
    View::new(FileOffset(displacement), period, set.parse().unwrap()).unwrap()
}

#[test]
fn many_views_are_used_beside_each_other() {
    for direct in [true, false] {
        let service = Service::start_how(3, direct);
        let client = service.connect_how(direct);
        let file = create(&client, "/f", "", "striped(64) over 3");
        let mut model = pattern(5000, 1);
        file.write_at(0, &model).unwrap();
        let views = [
            view(0, 9, "{(2,4,9,1)}"),
            view(100, 500, "{(0,99,100,3,{(0,1,10,10)})}"),
            view(7, 1, "{(0,0,1,1)}"),
        ];
        let sides = views.each_ref().map(|view| file.side_view(view).unwrap());
        for round in 0..4 {
            for (view, side) in views.iter().zip(&sides) {
                let offset = round as u64 * 31;
                let bytes = pattern(200, round);
                assert_eq!(side.access_at(offset, bytes[..].into()).unwrap(), 200);
                for (k, byte) in (offset..).zip(&bytes) {
                    let at = view.view_to_file(ViewOffset(k)).unwrap().0 as usize;
                    model.resize(model.len().max(at + 1), 0);
                    model[at] = *byte;
                }
                let mut read = vec![0; 200];
                assert_eq!(side.access_at(offset, (&mut read[..]).into()).unwrap(), 200);
                assert_eq!(read, bytes);
            }
        }
        let mut all = vec![0; model.len() + 1];
        assert_eq!(file.read_at(0, &mut all).unwrap(), model.len());
        assert!(
            all[..model.len()] == model[..],
            "the handle still sees the whole file"
        );
        // Behind the end nothing is read; scattered memory works as ever.
        let end = views[0].len_within(model.len() as u64);
        let mut read = vec![0xee; 20];
        let every_other = Places::new(&Sequence::bytes(0, 1).unwrap().repeat(10, 2).unwrap());
        let memory = Memory::target(SharedBytesMut::from_slice(&mut read), 0, &every_other);
        assert_eq!(sides[0].access_at(end - 3, memory.unwrap()).unwrap(), 3);
        assert_eq!(read.iter().filter(|b| **b == 0xee).count(), 17);
        // Those that are dropped are forgotten with the next one, and the file closes with all of them.
        drop(sides);
        for _ in 0..20 {
            let side = file.side_view(&views[0]).unwrap();
            side.access_at(0, (&mut read[..4]).into()).unwrap();
        }
        file.close().unwrap();
        let closed = file.side_view(&views[0]);
        assert_eq!(closed.unwrap_err().status(), Status::BadHandle);
    }
}

#[test]
fn ranges_in_any_order_are_one_access() {
    let service = Service::start(2);
    let client = service.connect();
    let file = create(&client, "/f", "", "striped(8) over 2");
    file.write_at(0, &pattern(100, 3)).unwrap();
    let ranges = [40..50, 10..20, 45..55u64, 12..12, 90..120];
    let mut read = [0xee; 60];
    let n = file
        .access_ranges(ranges.iter().cloned(), (&mut read[..]).into())
        .unwrap();
    let model = pattern(100, 3);
    let expected = [&model[40..50], &model[10..20], &model[45..55], &model[90..]].concat();
    assert_eq!(
        (n, &read[..40]),
        (40, &expected[..]),
        "short where the file ends"
    );
    let bytes = pattern(15, 9);
    let memory = Memory::source(SharedBytes::from_slice(&bytes), 0, &Places::bytes(15)).map(|m| {
        file.access_ranges([50..60, 0..9u64].into_iter(), m)
            .unwrap()
    });
    assert_eq!(memory.unwrap(), 15, "no more than there is memory");
    let mut read = vec![0; 60];
    file.read_at(0, &mut read).unwrap();
    assert_eq!((&read[..5], &read[5..10]), (&bytes[10..], &model[5..10]));
    assert_eq!(read[50..], bytes[..10]);
}

#[test]
fn seed004_s28_inserting_moves_what_is_behind() {
    let service = Service::start(2);
    let client = service.connect();
    for atomic in [false, true] {
        let file = create(&client, &format!("/f{atomic}"), "", "striped(5) over 2");
        file.set_atomic(atomic).unwrap();
        let mut model = Vec::new();
        for (at, len) in [(0, 10), (10, 3), (0, 7), (5, 1), (30, 4), (2, 0), (33, 200)] {
            let bytes = pattern(len, at);
            file.insert_at(at as u64, &bytes).unwrap();
            if len > 0 && model.len() < at {
                model.resize(at, 0);
            }
            model.splice(at.min(model.len())..at.min(model.len()), bytes);
            let mut read = vec![0; model.len() + 1];
            assert_eq!(file.read_at(0, &mut read).unwrap(), model.len());
            assert_eq!(read[..model.len()], model[..], "inserted at {at}");
        }
        let refused = file.insert_at(i64::MAX as u64, b"x").unwrap_err();
        assert_eq!(refused.status(), Status::InvalidArgument);
    }
}

/// Clients insert and write through side views at the same time: whole accesses, whichever comes first.
#[test]
fn seed004_s63_accesses_beside_a_view_are_atomic_too() {
    const LEN: usize = 6000;
    let service = Service::start(3);
    let setup = service.connect();
    create(&setup, "/f", "", "striped(100) over 3")
        .write_at(0, &[0; 2 * LEN])
        .unwrap();
    let even = view(0, 2, "{(0,0,2,1)}");
    std::thread::scope(|scope| {
        for me in 1..=2u8 {
            let (client, even) = (service.connect(), &even);
            scope.spawn(move || {
                let options = OpenOptions::new().read().write().atomic();
                let file = client.open("/f", &options).unwrap();
                let side = file.side_view(even).unwrap();
                for round in 0..20 {
                    side.access_at(0, (&[me; LEN][..]).into()).unwrap();
                    let mut seen = [0; LEN];
                    match round % 2 {
                        0 => side.access_at(0, (&mut seen[..]).into()).unwrap() as u64,
                        _ => {
                            let bytes = (0..LEN as u64).map(|k| 2 * k..2 * k + 1).rev();
                            let seen = (&mut seen[..]).into();
                            file.access_ranges(bytes.take(LEN), seen).unwrap()
                        }
                    };
                    assert!(seen.iter().all(|b| *b == seen[0]), "a mix of two writers");
                }
            });
        }
    });
    // In atomic mode a handle that sees a part of the file has no accesses beside it.
    let options = OpenOptions::new().read().write().atomic();
    let file = setup.open("/f", &options).unwrap();
    file.set_view(&even).unwrap();
    let side = file.side_view(&view(1, 2, "{(0,0,2,1)}")).unwrap();
    let refused = side.access_at(0, (&[1][..]).into()).unwrap_err();
    assert_eq!(refused.status(), Status::InvalidArgument);
}
