//! What one client was promised about its file, and what it had asked for when the power went.
//!
//! A punch writes zeros, with a tag of its own. A file is chunks that do not lie on any border. Per chunk: the tag that the last good sync found in it,
//! and the tags of all writes since. After the cut every byte of it is that of one of these tags; it may
//! be nothing only if no sync ever found it.

use client::{Client, File, OpenOptions};
use system_tests::files::{create, open, read, whole};
use system_tests::{Random, pattern_byte};

const CHUNK: usize = 11_003;
const CHUNKS: usize = 12;
const LAYOUTS: [&str; 4] = [
    "striped(4KiB) over 3",
    "striped(1000) over 2 from 1",
    "striped(64KiB) over 3",
    "striped(17) over 3",
];

/// The tag of zeros that were punched.
const PUNCHED: u64 = 0;

#[derive(Clone, Debug, Default)]
struct Chunk {
    synced: Option<u64>,
    since: Vec<u64>,
}

impl Chunk {
    fn synced(&mut self) {
        if let Some(&last) = self.since.last() {
            self.synced = Some(last);
            self.since.clear();
        }
    }
}

/// One file and what is known of it.
#[derive(Debug)]
pub(crate) struct Ledger {
    /// The name it has for certain, or the one it had and the one that was asked for.
    names: Vec<String>,
    chunks: Vec<Chunk>,
    /// Whether its creation was acknowledged.
    is_made: bool,
    renamed: u64,
    next_tag: u64,
    /// Good syncs, for the test to see that it tests something.
    pub(crate) syncs: u64,
}

impl Ledger {
    pub(crate) fn new(name: String) -> Ledger {
        Ledger {
            names: vec![name],
            chunks: vec![Chunk::default(); CHUNKS],
            is_made: false,
            renamed: 0,
            next_tag: 1,
            syncs: 0,
        }
    }

    /// Writes, syncs and renames until something fails, which is the power.
    pub(crate) fn work(&mut self, client: &Client, random: &mut Random) {
        let mut options = OpenOptions::new().read().write();
        if !self.is_made {
            let layout = LAYOUTS[random.index(LAYOUTS.len())];
            options = options.exclusive().layout(layout);
        }
        let Ok(file) = client.open(&self.names[0], &options) else {
            return;
        };
        self.is_made = true;
        while self.step(client, &file, random).is_ok() {}
    }

    fn step(&mut self, client: &Client, file: &File, random: &mut Random) -> client::Result<()> {
        match random.below(10) {
            0 => {
                let to = format!(
                    "{}-{}",
                    self.names[0].split('-').next().unwrap(),
                    self.renamed
                );
                self.renamed += 1;
                self.names.push(to.clone());
                client.rename(&self.names[0], &to)?;
                self.names = vec![to];
            }
            1..=3 => {
                file.sync()?;
                self.syncs += 1;
                self.chunks.iter_mut().for_each(Chunk::synced);
            }
            4 => {
                let first = random.index(CHUNKS);
                let last = (first + random.index(3)).min(CHUNKS - 1);
                for chunk in &mut self.chunks[first..=last] {
                    chunk.since.push(PUNCHED);
                }
                file.punch((first * CHUNK) as u64..((last + 1) * CHUNK) as u64)?;
            }
            _ => {
                let first = random.index(CHUNKS);
                let last = (first + random.index(3)).min(CHUNKS - 1);
                let tag = self.next_tag;
                self.next_tag += 1;
                for chunk in &mut self.chunks[first..=last] {
                    chunk.since.push(tag);
                }
                let at = (first * CHUNK) as u64;
                file.write_at(at, &whole(at, (last + 1 - first) * CHUNK, tag))?;
            }
        }
        Ok(())
    }

    /// Compares with what is there after the cut, which is then what is known.
    #[track_caller]
    pub(crate) fn verify(&mut self, client: &Client) {
        let there: Vec<&String> = self
            .names
            .iter()
            .filter(|n| client.stat(n).is_ok())
            .collect();
        if there.is_empty() && !self.is_made {
            return;
        }
        let [name] = there[..] else {
            panic!("one of {:?}, not {there:?}", self.names);
        };
        let file = open(client, name);
        let size = file.size().unwrap() as usize;
        // A punch does not make a file longer.
        let is_there = |c: &Chunk| c.synced.is_some_and(|tag| tag != PUNCHED);
        let synced_to = self.chunks.iter().rposition(is_there);
        let at_least = synced_to.map_or(0, |last| (last + 1) * CHUNK);
        assert!(size >= at_least, "{name}: {size} bytes of {at_least}");
        assert!(size <= CHUNKS * CHUNK, "{name}: {size} bytes");
        let bytes = read(&file, 0, CHUNKS * CHUNK);
        assert_eq!(bytes.len(), size, "{name}");
        for (k, chunk) in self.chunks.iter().enumerate() {
            let tags: Vec<u64> = chunk.synced.iter().chain(&chunk.since).copied().collect();
            let range = (k * CHUNK).min(size)..((k + 1) * CHUNK).min(size);
            for (x, &byte) in range.clone().zip(&bytes[range]) {
                let is_of = |tag| match tag {
                    PUNCHED => byte == 0,
                    tag => pattern_byte(tag, x as u64) == byte,
                };
                let is_known = tags.iter().any(|&tag| is_of(tag));
                let is_nothing = chunk.synced.is_none() && byte == 0;
                assert!(
                    is_known || is_nothing,
                    "{name}: byte {x} is {byte}, which is of none of {chunk:?}"
                );
            }
        }
        assert_eq!(file.scrub().unwrap().damaged, 0, "{name}");
        // Whole again, and durable: the next round begins with one known tag everywhere.
        let tag = self.next_tag;
        self.next_tag += 1;
        file.write_at(0, &whole(0, CHUNKS * CHUNK, tag)).unwrap();
        assert!(file.sync().unwrap().is_durable);
        self.names = vec![name.clone()];
        let known = Chunk {
            synced: Some(tag),
            since: Vec::new(),
        };
        self.chunks = vec![known; CHUNKS];
        self.is_made = true;
    }

    /// A file that is complete from the start.
    pub(crate) fn made(client: &Client, name: &str) -> Ledger {
        let mut ledger = Ledger::new(name.into());
        drop(create(client, name, LAYOUTS[0]));
        ledger.is_made = true;
        ledger.verify(client);
        ledger
    }
}
