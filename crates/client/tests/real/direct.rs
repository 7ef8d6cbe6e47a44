//! Direct access gives the bytes that messages give: random views, layouts and accesses, ends, holes,
//! pointers, and what it costs once it is warm.
//!
//! The model is a plain vector of bytes; a second client sends everything by message.

use client::{Client, File, Hints, OpenOptions, Status, View};
use layout::ViewOffset;
use random::Random;

use crate::service::{Service, create, pattern};

/// What a file should hold.
struct Model {
    bytes: Vec<u8>,
    places: Vec<(u64, usize)>,
}

impl Model {
    /// Where bytes of a view lie in the file.
    fn places(&mut self, view: &View, at: u64, len: usize) {
        self.places.clear();
        if len == 0 {
            return;
        }
        let range = ViewOffset(at)..ViewOffset(at + len as u64);
        let file = view.file_range(range).unwrap();
        let segments = view.bytes().segments(file.start.0..file.end.0);
        self.places
            .extend(segments.map(|s| (s.start(), s.len() as usize)));
    }

    fn write(&mut self, view: &View, at: u64, bytes: &[u8]) {
        self.places(view, at, bytes.len());
        let mut rest = bytes;
        for &(start, len) in &self.places {
            let start = start as usize;
            if self.bytes.len() < start + len {
                self.bytes.resize(start + len, 0);
            }
            self.bytes[start..start + len].copy_from_slice(&rest[..len]);
            rest = &rest[len..];
        }
    }

    fn check(&mut self, file: &File, at: u64, len: usize, what: &str) {
        let mut buffer = vec![0xee; len];
        let n = file.read_at(at, &mut buffer).unwrap();
        let view = file.view();
        let shown = view.len_within(self.bytes.len() as u64).saturating_sub(at);
        assert_eq!(n as u64, shown.min(len as u64), "{what}");
        self.places(&view, at, n);
        let mut done = 0;
        for &(start, len) in &self.places {
            let expected = &self.bytes[start as usize..start as usize + len];
            assert!(&buffer[done..done + len] == expected, "{what} at {start}");
            done += len;
        }
        assert_eq!(done, n);
        assert!(buffer[n..].iter().all(|b| *b == 0xee), "nothing behind");
    }
}

const LAYOUTS: &[&str] = &[
    "whole",
    "striped(4KiB) over 3",
    "striped(1000) over 3",
    "(block, *) onto 3",
    "(*, block) onto 3",
    "(*, cyclic(8)) onto 3",
    "(block, block) onto 2x2",
    "chunks(50, 30) over 3",
];

const VIEWS: &[&str] = &[
    "whole",
    "(block, *) onto 4 [1]",
    "(*, block) onto 4 [2]",
    "(cyclic, *) onto 4 [3]",
    "(*, cyclic(4)) onto 4 [0]",
    "(block, block) onto 2x2 [3]",
    "slice[1:200:2, 5:150]",
    "striped(7) over 2 [1]",
];

#[test]
fn any_view_of_any_layout_gives_the_same_bytes_directly_and_by_message() {
    let service = Service::start(3);
    let clients = [service.connect(), service.connect_how(false)];
    let mut random = Random::new(20_261);
    for case in 0..64 {
        let (layout, view) = (*random.pick(LAYOUTS), *random.pick(VIEWS));
        let path = format!("/{case}");
        let files = clients.each_ref().map(|client| {
            let file = create(client, &path, "u16[200,300]", layout);
            file.set_view_text_at(random.below(3) * 2, view).unwrap();
            file
        });
        files[1].set_view(&files[0].view()).unwrap();
        let view = files[0].view();
        let mut model = Model {
            bytes: Vec::new(),
            places: Vec::new(),
        };
        let longest = [300, 5000, 70_000, 140_000][random.below(4) as usize];
        for step in 0..40 {
            let what = format!("case {case}, step {step}: {layout} under {view:?}");
            let file = &files[random.below(2) as usize];
            let at = random.below(60_000);
            let len = 1 + random.below(longest) as usize;
            match random.below(20) {
                0 => {
                    let size = random.below(150_000);
                    file.resize(size).unwrap();
                    model.bytes.resize(size as usize, 0);
                }
                1..10 => {
                    let bytes = pattern(len, step);
                    assert_eq!(file.write_at(at, &bytes).unwrap(), len, "{what}");
                    model.write(&view, at, &bytes);
                }
                _ => model.check(file, at, len, &what),
            }
        }
        for file in &files {
            model.check(file, 0, 200_000, "at the end");
            file.close().unwrap();
        }
        clients[0].unlink(&path).unwrap();
    }
    let direct = clients[0].direct_statistics();
    assert!(direct.reads > 100 && direct.writes > 100, "{direct:?}");
    assert_eq!(direct.attached, 3);
    assert_eq!(clients[1].direct_statistics(), Default::default());
}

/// A file of so many bytes, warm for both kinds of accesses.
fn warm(client: &Client, path: &str, layout: &str, bytes: usize) -> File {
    let file = create(client, path, "", layout);
    file.write_at(0, &pattern(bytes, 0)).unwrap();
    for _ in 0..4 {
        file.write_at(0, &pattern(bytes.min(100), 0)).unwrap();
        file.read_at(0, &mut vec![0; bytes]).unwrap();
    }
    file
}

#[test]
fn warm_accesses_send_nothing() {
    let service = Service::start(2);
    let client = service.connect();
    for (i, layout) in ["whole", "striped(4KiB) over 2", "striped(100) over 2"]
        .into_iter()
        .enumerate()
    {
        let file = warm(&client, &format!("/{i}"), layout, 300_000);
        let sent = client.messages_sent();
        let before = client.direct_statistics();
        let mut buffer = vec![0; 70_000];
        for round in 0..1000 {
            let at = round as u64 * 211 % 200_000;
            let len = [1, 50, 4096, 9000, 70_000][round % 5];
            let bytes = pattern(len, round);
            assert_eq!(file.write_at(at, &bytes), Ok(len));
            assert_eq!(file.read_at(at, &mut buffer[..len]), Ok(len));
            assert!(buffer[..len] == bytes[..]);
            let last = file.last_access();
            assert!(last.is_direct && last.messages() == 0);
            assert_eq!((last.requested, last.moved), (len as u64, len as u64));
        }
        assert_eq!(client.messages_sent(), sent, "{layout}");
        let after = client.direct_statistics();
        assert_eq!(after.reads - before.reads, 1000);
        assert_eq!(after.writes - before.writes, 1000);
        assert_eq!(
            after.read_bytes - before.read_bytes,
            after.written_bytes - before.written_bytes
        );
        assert_eq!(after.fallbacks, before.fallbacks);
    }
}

#[test]
fn direct_access_is_switched_off_by_options_and_hints() {
    let service = Service::start(1);
    let client = service.connect();
    let file = warm(&client, "/f", "whole", 100_000);
    assert!(file.last_access().is_direct);
    file.set_hints(&Hints::new().with("direct", "off").unwrap())
        .unwrap();
    for len in [10, 90_000] {
        let before = client.messages_sent().1;
        assert_eq!(file.read_at(0, &mut vec![0; len]), Ok(len));
        assert!(!file.last_access().is_direct);
        assert!(client.messages_sent().1 > before);
    }
    file.set_hints(&Hints::new().with("direct", "on").unwrap())
        .unwrap();
    file.read_at(0, &mut [0; 10]).unwrap();
    assert!(file.last_access().is_direct, "maps were kept");
    let error = Hints::new().with("direct", "maybe").unwrap_err();
    assert!(error.to_string().contains("on or off"), "{error}");
    let plain = service.connect_how(false);
    let file = plain.open("/f", &OpenOptions::new().read()).unwrap();
    for _ in 0..10 {
        file.read_at(0, &mut vec![0; 90_000]).unwrap();
        assert!(!file.last_access().is_direct);
    }
    assert_eq!(plain.direct_statistics(), Default::default());
}

#[test]
fn holes_and_ends_read_as_by_message_and_are_not_asked_for_again_and_again() {
    let service = Service::start(2);
    let client = service.connect();
    let file = create(&client, "/f", "", "striped(64KiB) over 2");
    file.write_at(8 << 20, &[7]).unwrap();
    let mut buffer = vec![1; 100_000];
    for _ in 0..300 {
        assert_eq!(file.read_at(1 << 20, &mut buffer), Ok(100_000));
        assert!(buffer.iter().all(|b| *b == 0));
    }
    let asked = client.direct_statistics().maps_asked;
    assert!(asked < 60, "{asked} questions about one hole");
    // What is written into the hole by somebody else is seen.
    let other = service.connect_how(false);
    let writer = other.open("/f", &OpenOptions::new().write()).unwrap();
    writer.write_at(1 << 20, &pattern(100_000, 3)).unwrap();
    assert_eq!(file.read_at(1 << 20, &mut buffer), Ok(100_000));
    assert!(buffer == pattern(100_000, 3));
    // Short at the end, also where the extent goes on.
    let n = file.read_at((8 << 20) - 3, &mut buffer).unwrap();
    assert_eq!((n, &buffer[..4]), (4, &[0, 0, 0, 7][..]));
    assert!(file.last_access().is_end_of_file);
    assert_eq!(file.read_at(9 << 20, &mut buffer), Ok(0));
}

#[test]
fn growing_and_appending_are_seen_by_everybody() {
    let service = Service::start(2);
    let (a, b) = (service.connect(), service.connect());
    let file = create(&a, "/f", "", "striped(64KiB) over 2");
    let other = b.open("/f", &OpenOptions::new().read()).unwrap();
    let mut model = Vec::new();
    // The first by message, and what follows where there is space ahead.
    for (round, len) in [100, 900_000, 5000, 2 << 20, 1].into_iter().enumerate() {
        let bytes = pattern(len, round);
        file.write_at(model.len() as u64, &bytes).unwrap();
        assert_eq!(file.last_access().is_direct, round > 0, "{len}");
        model.extend_from_slice(&bytes);
        assert_eq!(other.size().unwrap(), model.len() as u64);
        let mut back = vec![0; model.len() + 10];
        assert_eq!(other.read_at(0, &mut back), Ok(model.len()));
        assert!(back[..model.len()] == model);
    }
    let options = OpenOptions::new().write().append();
    let append = b.open("/f", &options).unwrap();
    for round in 0..20 {
        append.write(&pattern(100, round)).unwrap();
        assert!(!append.last_access().is_direct);
        model.extend_from_slice(&pattern(100, round));
    }
    let mut back = vec![0; model.len()];
    assert_eq!(file.read_at(0, &mut back), Ok(model.len()));
    assert!(back == model);
}

#[test]
fn pointers_atomic_handles_and_described_memory_are_served() {
    let service = Service::start(2);
    let client = service.connect();
    let file = warm(&client, "/f", "striped(4KiB) over 2", 200_000);
    let mut buffer = [0; 1000];
    for i in 0..100 {
        assert_eq!(file.read(&mut buffer), Ok(1000));
        assert_eq!(file.position(), (i + 1) * 1000);
    }
    assert_eq!(buffer[..], pattern(200_000, 0)[99_000..100_000]);
    let places =
        client::Places::new(&client::Sequence::from_blocks([(0, 700), (1000, 300)]).unwrap());
    let mut memory = vec![0; 1300];
    let target = memory[..].as_mut().into();
    assert_eq!(file.read_at_memory(5, target, 0, &places), Ok(1000));
    assert!(file.last_access().is_direct);
    assert_eq!(memory[..700], pattern(200_000, 0)[5..705]);
    assert_eq!(memory[1000..], pattern(200_000, 0)[705..1005]);
    // Atomic handles go by message, and take nothing from others.
    let atomic = client
        .open("/f", &OpenOptions::new().read().write())
        .unwrap();
    atomic.read_at(0, &mut [0; 4096]).unwrap();
    atomic.read_at(0, &mut [0; 4096]).unwrap();
    atomic.read_at(0, &mut [0; 4096]).unwrap();
    assert!(atomic.last_access().is_direct);
    atomic.set_atomic(true).unwrap();
    for i in 0..10 {
        atomic.write_at(i, &[9; 10]).unwrap();
        assert!(!atomic.last_access().is_direct);
    }
    file.read_at(0, &mut buffer).unwrap();
    assert!(file.last_access().is_direct);
    assert_eq!(buffer[..19], [9; 19]);
    atomic.set_atomic(false).unwrap();
    atomic.read_at(0, &mut buffer[..10]).unwrap();
    assert!(atomic.last_access().is_direct);
}

#[test]
fn rights_are_those_of_the_handle() {
    let service = Service::start(1);
    let client = service.connect();
    let file = warm(&client, "/f", "whole", 100_000);
    file.close().unwrap();
    let reader = client.open("/f", &OpenOptions::new().read()).unwrap();
    for _ in 0..5 {
        reader.read_at(0, &mut [0; 100]).unwrap();
    }
    assert!(reader.last_access().is_direct);
    let error = reader.write_at(0, &[1; 100]).unwrap_err();
    assert_eq!(error.status(), Status::PermissionDenied);
    let writer = client.open("/f", &OpenOptions::new().write()).unwrap();
    for _ in 0..5 {
        writer.write_at(0, &[1; 100]).unwrap();
    }
    assert!(writer.last_access().is_direct);
    let error = writer.read_at(0, &mut [1; 100]).unwrap_err();
    assert_eq!(error.status(), Status::PermissionDenied);
    reader.close().unwrap();
    let error = reader.read_at(0, &mut [0; 100]).unwrap_err();
    assert_eq!(error, client::Error::Closed);
}

#[test]
fn a_change_of_view_is_followed_at_once() {
    let service = Service::start(2);
    let client = service.connect();
    let file = warm(&client, "/f", "striped(64KiB) over 2", 300_000);
    let all = pattern(300_000, 0);
    let mut buffer = [0; 10];
    for round in 0..50 {
        file.set_view_text_at(round, "striped(10) over 2 [1]")
            .unwrap();
        for _ in 0..3 {
            assert_eq!(file.read_at(10, &mut buffer), Ok(10));
            let at = round as usize + 30;
            assert_eq!(buffer, all[at..at + 10]);
        }
        file.set_view_text("whole").unwrap();
        assert_eq!(file.read_at(round, &mut buffer), Ok(10));
        assert_eq!(buffer, all[round as usize..round as usize + 10]);
    }
}

#[test]
fn a_thousand_files_need_few_descriptors_and_mappings() {
    let service = Service::start(2);
    let client = service.connect();
    let descriptors = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let mappings = || {
        let text = std::fs::read_to_string("/proc/self/maps").unwrap();
        text.lines().filter(|l| l.contains("memfd:")).count()
    };
    let mut files = Vec::new();
    let mut before = (0, 0);
    for i in 0..1000 {
        let file = create(&client, &format!("/{i}"), "", "whole");
        file.write_at(0, &pattern(5000, i)).unwrap();
        for _ in 0..3 {
            let mut back = [0; 5000];
            assert_eq!(file.read_at(0, &mut back), Ok(5000));
            assert_eq!(back[..], pattern(5000, i));
        }
        assert!(file.last_access().is_direct);
        files.push(file);
        if i == 100 {
            before = (descriptors(), mappings());
        }
    }
    let after = (descriptors(), mappings());
    // Segments are shared by files; servers of the test have theirs in the same process.
    assert!(after.0 < before.0 + 50, "descriptors: {before:?} {after:?}");
    assert!(after.1 < before.1 + 50, "mappings: {before:?} {after:?}");
    let sent = client.messages_sent();
    for (i, file) in files.iter().enumerate() {
        let mut back = [0; 5000];
        file.read_at(0, &mut back).unwrap();
        assert_eq!(back[..], pattern(5000, i));
    }
    assert_eq!(client.messages_sent(), sent);
}
