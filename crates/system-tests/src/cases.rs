//! One case of the matrix: a file with a physical layout, a view on it, and an operation; everything
//! that is done to the file is done to a plain file, and compared byte for byte.
//!
//! A case leaves nothing behind. Sizes are a few kilobytes, many periods of every layout.

use client::{Client, File, OpenOptions, Places, Sequence, ServerId, View};

use crate::layouts::{LOGICAL, PHYSICAL, Physical, views_of};
use crate::plain_file::{PlainFile, assert_bytes};
use crate::seed::{Random, pattern};
use crate::worker::{OpenHow, Workers};

/// What is done with the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Written through the view, read through others.
    WriteReadOther,
    /// A write cut into pieces in any order leaves the subfiles that one write leaves.
    Cuts,
    /// Writes far behind the end.
    Holes,
    /// Shrunk and grown in the middle of patterns.
    Truncate,
    /// Appended between writes.
    Append,
    /// Strided writes of two handles, one in the gaps of the other.
    Strided,
    /// Several operations under way at once.
    NonBlocking,
    /// Memory with gaps, in any order.
    Memory,
    /// The pointer of a handle, and a shared one.
    Pointers,
    /// Processes that each write their element of another layout.
    Processes,
}

/// All of them.
pub const OPERATIONS: &[Operation] = &[
    Operation::WriteReadOther,
    Operation::Cuts,
    Operation::Holes,
    Operation::Truncate,
    Operation::Append,
    Operation::Strided,
    Operation::NonBlocking,
    Operation::Memory,
    Operation::Pointers,
    Operation::Processes,
];

/// Indices of [`PHYSICAL`], [`LOGICAL`] and [`OPERATIONS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Case {
    /// The layout of the file.
    pub physical: usize,
    /// The view.
    pub logical: usize,
    /// What is done.
    pub operation: usize,
}

impl std::fmt::Display for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (physical, logical) = (PHYSICAL[self.physical], LOGICAL[self.logical]);
        let or_none = |text: Option<&'static str>| text.unwrap_or("-");
        write!(
            f,
            "{:?} of {} `{}` through {} `{}` from {}",
            OPERATIONS[self.operation],
            or_none(physical.array),
            or_none(physical.text),
            or_none(logical.array),
            logical.text,
            logical.displacement
        )
    }
}

/// Where cases run.
#[derive(Debug)]
pub struct Bench {
    /// Who writes.
    pub client: Client,
    /// Who reads what the other has written.
    pub reader: Client,
    /// Processes with their own clients.
    pub workers: Workers,
    /// Numbers of the I/O servers.
    pub servers: Vec<ServerId>,
}

impl Bench {
    /// Runs a case; panics if anything differs.
    pub fn run(&mut self, case: &Case, seed: u64) {
        let mut random = Random::new(seed);
        let physical = PHYSICAL[case.physical];
        let view = LOGICAL[case.logical].view();
        let path = format!("/case-{seed:x}");
        let draw = &mut random;
        match OPERATIONS[case.operation] {
            Operation::WriteReadOther => self.write_read_other(&path, physical, view, draw),
            Operation::Cuts => self.cuts(&path, physical, view, draw),
            Operation::Holes => self.holes(&path, physical, view, draw),
            Operation::Truncate => self.truncate(&path, physical, view, draw),
            Operation::Append => self.append(&path, physical, view, draw),
            Operation::Strided => self.strided(&path, physical, view, draw),
            Operation::NonBlocking => self.non_blocking(&path, physical, view, draw),
            Operation::Memory => self.memory(&path, physical, view, draw),
            Operation::Pointers => self.pointers(&path, physical, view, draw),
            Operation::Processes => self.processes(&path, physical, case.logical, draw),
        }
    }

    fn create(&self, path: &str, physical: Physical) -> Both {
        let mut options = OpenOptions::new().read().write().exclusive();
        if let Some(array) = physical.array {
            options = options.array(array);
        }
        if let Some(text) = physical.text(&self.servers) {
            options = options.layout(text);
        }
        let file = self.client.open(path, &options).expect("a new file");
        Both {
            file,
            model: PlainFile::new(),
            view: View::whole_file(),
        }
    }

    /// Everything that others see of the file, then its end.
    fn finish(&self, path: &str, both: Both) {
        let file = self
            .reader
            .open(path, &OpenOptions::new().read())
            .expect("the file");
        let size = file.size().expect("a size");
        assert_eq!(size, both.model.size(), "the size for others");
        let mut reader = Both {
            file,
            model: both.model.clone(),
            view: View::whole_file(),
        };
        reader.check_all();
        reader.file.close().expect("closed");
        both.file.close().expect("closed");
        self.client.unlink(path).expect("removed");
    }

    fn write_read_other(&self, path: &str, physical: Physical, view: View, random: &mut Random) {
        let mut both = self.create(path, physical);
        both.fill(random.within(1..6000), random);
        both.set_view(view.clone());
        for _ in 0..3 {
            let there = both.view.len_within(both.model.size());
            let (at, len) = (random.below(there + 1), random.within(1..1500));
            both.write(at, &random.bytes(len as usize));
            both.read(random.below(there + 1), random.within(0..2000) as usize);
        }
        both.read(0, 0);
        both.check_seen();
        both.set_view(LOGICAL[random.index(LOGICAL.len())].view());
        both.check_seen();
        self.finish(path, both);
    }

    fn cuts(&self, path: &str, physical: Physical, view: View, random: &mut Random) {
        let other_path = format!("{path}-cut");
        let (mut one, mut many) = (
            self.create(path, physical),
            self.create(&other_path, physical),
        );
        let (at, len) = (random.below(300), random.within(2..2000));
        let bytes = random.bytes(len as usize);
        one.set_view(view.clone());
        many.set_view(view);
        one.write(at, &bytes);
        let mut cuts: Vec<usize> = (0..random.below(7))
            .map(|_| random.index(bytes.len()))
            .collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let mut parts: Vec<_> = cuts.windows(2).map(|w| w[0]..w[1]).collect();
        random.shuffle(&mut parts);
        for part in parts {
            many.write(at + part.start as u64, &bytes[part]);
        }
        assert_eq!(one.model, many.model);
        for (left, right) in one.subfiles().iter().zip(&many.subfiles()) {
            assert_eq!(left, right, "the same subfile in the same place");
            one.set_view(left.clone());
            many.set_view(right.clone());
            one.check_seen();
            many.check_seen();
        }
        self.finish(path, one);
        self.finish(&other_path, many);
    }

    fn holes(&self, path: &str, physical: Physical, view: View, random: &mut Random) {
        let mut both = self.create(path, physical);
        both.set_view(view);
        for _ in 0..3 {
            let there = both.view.len_within(both.model.size());
            let (gap, len) = (random.below(1200), random.within(1..200));
            both.write(there + gap, &random.bytes(len as usize));
            both.check_seen();
        }
        both.set_view(View::whole_file());
        let gap = random.below(9000);
        both.write(both.model.size() + gap, &random.bytes(10));
        both.check_seen();
        self.finish(path, both);
    }

    fn truncate(&self, path: &str, physical: Physical, view: View, random: &mut Random) {
        let mut both = self.create(path, physical);
        both.fill(random.within(500..5000), random);
        both.set_view(view);
        for step in 0..4 {
            let size = both.model.size();
            let to = match step % 2 {
                0 => random.below(size + 1),
                _ => size + random.below(1500),
            };
            both.resize(to);
            both.check_seen();
            let there = both.view.len_within(to);
            both.write(random.below(there + 1), &random.bytes(37));
            both.check_seen();
        }
        both.resize(0);
        both.check_seen();
        both.resize(random.within(1..700));
        both.check_seen();
        self.finish(path, both);
    }

    fn append(&self, path: &str, physical: Physical, view: View, random: &mut Random) {
        let mut both = self.create(path, physical);
        both.set_view(view);
        for _ in 0..4 {
            let bytes = random.bytes(random.clone().within(1..900) as usize);
            let expected = both.model.append(&bytes);
            let at = both.file.append(&bytes).expect("appended");
            assert_eq!(at, expected, "where it was appended");
            let there = both.view.len_within(both.model.size());
            both.write(random.below(there + 1), &random.bytes(50));
            both.check_seen();
        }
        self.finish(path, both);
    }

    fn strided(&self, path: &str, physical: Physical, view: View, random: &mut Random) {
        let mut both = self.create(path, physical);
        both.fill(random.within(1000..4000), random);
        // What lies in the gaps of the view is written by another client meanwhile; nothing that was
        // read before may be written back over it.
        let gaps = falls_gaps(&view);
        let other = self
            .reader
            .open(path, &OpenOptions::new().read().write())
            .expect("the file");
        for _ in 0..3 {
            both.set_view(view.clone());
            let there = both.view.len_within(both.model.size());
            both.write(random.below(there + 1), &random.bytes(300));
            if let Some(gaps) = &gaps {
                other.set_view(gaps).expect("a view");
                let there = gaps.len_within(both.model.size());
                let (at, bytes) = (random.below(there + 1), random.bytes(200));
                other.write_at(at, &bytes).expect("written");
                both.model.write(gaps, at, &bytes);
            }
            both.check_seen();
        }
        other.close().expect("closed");
        self.finish(path, both);
    }

    fn non_blocking(&self, path: &str, physical: Physical, view: View, random: &mut Random) {
        let mut both = self.create(path, physical);
        both.set_view(view);
        let mut parts: Vec<(u64, Vec<u8>)> = (0..6)
            .map(|i| {
                (
                    i * 150,
                    random.bytes(random.clone().within(1..150) as usize),
                )
            })
            .collect();
        random.shuffle(&mut parts);
        let under_way: Vec<_> = parts
            .iter()
            .map(|(at, bytes)| both.file.write_at_nonblocking(*at, bytes.clone()))
            .collect();
        for (at, bytes) in &parts {
            both.model.write(&both.view, *at, bytes);
        }
        for (request, (_, bytes)) in under_way.into_iter().zip(&parts) {
            let (result, _) = request.wait();
            assert_eq!(result.expect("written"), bytes.len());
        }
        let under_way: Vec<_> = parts
            .iter()
            .map(|(at, bytes)| both.file.read_at_nonblocking(*at, vec![0; bytes.len()]))
            .collect();
        for (request, (_, bytes)) in under_way.into_iter().zip(&parts) {
            let (result, found) = request.wait();
            assert_eq!(result.expect("read"), bytes.len());
            assert_bytes(found.as_ref(), bytes, "read without blocking");
        }
        both.check_seen();
        self.finish(path, both);
    }

    fn memory(&self, path: &str, physical: Physical, view: View, random: &mut Random) {
        let mut both = self.create(path, physical);
        both.set_view(view);
        // Three blocks out of order, again and again.
        let block = Sequence::from_blocks([(40, 10), (3, 7), (20, 15)]).expect("blocks");
        let places = block.repeat(9, 64).expect("a sequence");
        let compiled = Places::new(&places);
        let memory = random.bytes(600);
        let packed: Vec<u8> = (0..places.size())
            .map(|k| memory[places.select(k).expect("a byte") as usize])
            .collect();
        let at = random.below(200);
        let n = both
            .file
            .write_at_memory(at, memory[..].into(), 0, &compiled);
        assert_eq!(n.expect("written"), packed.len());
        both.model.write(&both.view, at, &packed);
        both.check_seen();
        let mut back = vec![0; 600];
        let n = both
            .file
            .read_at_memory(at, back[..].as_mut().into(), 0, &compiled);
        assert_eq!(n.expect("read"), packed.len());
        let mut expected = vec![0; 600];
        for (k, byte) in packed.iter().enumerate() {
            expected[places.select(k as u64).expect("a byte") as usize] = *byte;
        }
        assert_bytes(&back, &expected, "read into described memory");
        self.finish(path, both);
    }

    fn pointers(&self, path: &str, physical: Physical, view: View, random: &mut Random) {
        let mut both = self.create(path, physical);
        both.set_view(view.clone());
        let mut at = 0;
        for _ in 0..3 {
            let bytes = random.bytes(random.clone().within(1..400) as usize);
            assert_eq!(both.file.write(&bytes).expect("written"), bytes.len());
            both.model.write(&view, at, &bytes);
            at += bytes.len() as u64;
            assert_eq!(both.file.position(), at);
        }
        let end = both.file.seek(std::io::SeekFrom::End(0)).expect("moved");
        assert_eq!(end, view.len_within(both.model.size()));
        both.file.seek(std::io::SeekFrom::Start(5)).expect("moved");
        let mut found = vec![0; 100];
        let n = both.file.read(&mut found).expect("read");
        assert_bytes(
            &found[..n],
            &both.model.read(&view, 5, 100),
            "at the pointer",
        );
        // One pointer for two clients: each record is written once, in the order of the calls.
        let options = OpenOptions::new().read().write().shared_pointer(7);
        let one = self.client.open(path, &options).expect("the file");
        let two = self.reader.open(path, &options).expect("the file");
        one.set_view(&view).expect("a view");
        two.set_view(&view).expect("a view");
        let mut at = 0;
        for i in 0..4 {
            let bytes = random.bytes(60);
            let handle = [&one, &two][i % 2];
            assert_eq!(handle.write_shared(&bytes).expect("written"), 60);
            both.model.write(&view, at, &bytes);
            at += 60;
        }
        assert_eq!(one.position_shared().expect("asked"), at);
        one.close().expect("closed");
        two.close().expect("closed");
        both.check_seen();
        self.finish(path, both);
    }

    fn processes(&mut self, path: &str, physical: Physical, logical: usize, random: &mut Random) {
        let mut both = self.create(path, physical);
        let cut = PHYSICAL[logical % PHYSICAL.len()];
        let text = cut
            .text(&self.servers)
            .unwrap_or_else(|| "striped(100) over 3".into());
        let array = cut.text.and(cut.array);
        let displacement = random.below(40);
        let elements = views_of(array, displacement, &text);
        let tag = random.below(1 << 30);
        let workers = self.workers.len();
        self.workers.all(|_| OpenHow::new("rw").line(0, path));
        let size = random.within(500..3000);
        let rounds = elements.len().div_ceil(workers);
        for round in 0..rounds {
            // Each its element; those that have none have a rest.
            let mine = |w: usize| round * workers + w;
            let array = array.unwrap_or_default();
            self.workers.all(|w| match mine(w) < elements.len() {
                true => format!("view\t0\t{displacement}\t{array}\t{text} [{}]", mine(w)),
                false => "size\t0".into(),
            });
            self.workers.all(|w| match elements.get(mine(w)) {
                Some(view) => format!("fill\t0\t0\t{}\t{tag}", view.len_within(size)),
                None => "size\t0".into(),
            });
        }
        for view in &elements {
            let len = view.len_within(size) as usize;
            both.model.write(view, 0, &pattern(view, 0, len, tag));
        }
        // Read by everybody through the view of this case, in one go and from the middle.
        let seen = LOGICAL[logical];
        let view = seen.view();
        let from = view.len_within(displacement);
        let there = view.len_within(both.model.size()) - from;
        self.workers.all(|_| {
            let array = seen.array.unwrap_or_default();
            format!("view\t0\t{}\t{array}\t{}", seen.displacement, seen.text)
        });
        let answers = self
            .workers
            .all(|_| format!("check\t0\t{from}\t{}\t{tag}", there + 100));
        assert!(
            answers.iter().all(|a| *a == there.to_string()),
            "{answers:?}"
        );
        self.workers.all(|_| "close\t0".into());
        both.check_seen();
        self.finish(path, both);
    }
}

/// What a view leaves out behind its displacement; nothing if it shows all of that.
fn falls_gaps(view: &View) -> Option<View> {
    let bytes = view.bytes();
    let gaps = bytes.set().complement(bytes.period()).expect("a set");
    if gaps.is_empty() {
        return None;
    }
    let displacement = layout::FileOffset(bytes.displacement());
    Some(View::new(displacement, bytes.period(), gaps).expect("a view"))
}

/// A file and what it must hold.
struct Both {
    file: File,
    model: PlainFile,
    view: View,
}

impl Both {
    fn set_view(&mut self, view: View) {
        self.file.set_view(&view).expect("a view");
        self.view = view;
    }

    /// Writes random bytes from the beginning on, through the whole file.
    fn fill(&mut self, len: u64, random: &mut Random) {
        self.set_view(View::whole_file());
        self.write(0, &random.bytes(len as usize));
    }

    fn write(&mut self, at: u64, bytes: &[u8]) {
        let n = self.file.write_at(at, bytes).expect("written");
        assert_eq!(n, bytes.len(), "bytes written");
        self.model.write(&self.view, at, bytes);
    }

    fn read(&self, at: u64, len: usize) {
        let mut found = vec![0xEE; len];
        let n = self.file.read_at(at, &mut found).expect("read");
        let expected = self.model.read(&self.view, at, len);
        assert_bytes(&found[..n], &expected, &format!("{len} bytes at {at}"));
        assert!(found[n..].iter().all(|b| *b == 0xEE), "behind the end");
    }

    fn resize(&mut self, to: u64) {
        self.file.resize(to).expect("resized");
        self.model.resize(to);
        assert_eq!(self.file.size().expect("a size"), to);
    }

    /// Compares all that the view shows, and asks for more.
    fn check_seen(&self) {
        let len = self.view.len_within(self.model.size()) as usize;
        self.read(0, len + 10);
    }

    /// The subfiles as views.
    fn subfiles(&self) -> Vec<View> {
        let state = self.file.layout();
        let partition = &state.pieces[0].partition;
        let view = |p: falls::Periodic| {
            let displacement = layout::FileOffset(p.displacement());
            View::new(displacement, p.period(), p.set().clone()).expect("a view")
        };
        partition.subfiles().map(view).collect()
    }

    /// Compares the file as a whole and subfile by subfile.
    fn check_all(&mut self) {
        self.set_view(View::whole_file());
        self.check_seen();
        for view in self.subfiles() {
            if !view.bytes().is_empty() {
                self.set_view(view);
                self.check_seen();
            }
        }
    }
}
