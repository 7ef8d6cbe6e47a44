//! Real processes that write into a memory store and are killed, one after the other; each adopts what the one before had.
//!
//! The parent holds the descriptors, as a keeper does, and knows from the number of an operation what it was. What was
//! acknowledged must be there; of what was not, each byte is as it was or as it should become.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use store::conformance::{identity, pattern};
use store::disk::twin::Random;
use store::ledger::twin::KeeperTwin;
use store::{Keeping, Ledger, MemoryStore, Pool, PoolOptions, Store, Subfile};

/// Set for the child: descriptors of the parent to adopt, and from which operation to go on.
const CHILD: &str = "PARIO_STORE_KILLED_CHILD";
const STAMP: &[u8] = b"kill test";
/// Writers of a process, each with a subfile of its own.
const WRITERS: u64 = 2;

fn options() -> PoolOptions {
    PoolOptions {
        keep_warm_bytes: 1 << 20,
        segment_bytes: 4 << 20,
        segments: 64,
        ..PoolOptions::for_limit(64 << 20)
    }
}

enum Operation {
    Write(u64, Vec<u8>),
    Truncate(u64),
    Punch(u64, u64),
    Preallocate(u64, u64),
}

impl Operation {
    /// The n-th of a writer.
    fn of(writer: u64, n: u64) -> Operation {
        let mut random = Random::new(1 + writer + n * WRITERS);
        let place = random.below(600_000);
        let most = *random.pick(&[100, 5000, 300_000]);
        let len = 1 + random.below(most);
        match random.index(8) {
            0..=4 => Operation::Write(place, pattern(place, len as usize, n)),
            5 => Operation::Truncate(place),
            6 => Operation::Punch(place, place + len),
            _ => Operation::Preallocate(place, place + len),
        }
    }

    fn apply(&self, subfile: &dyn Subfile) {
        match self {
            Operation::Write(at, bytes) => subfile.write_at(*at, bytes),
            Operation::Truncate(len) => subfile.truncate(*len),
            Operation::Punch(from, to) => subfile.punch(*from..*to),
            Operation::Preallocate(from, to) => subfile.preallocate(*from..*to),
        }
        .unwrap();
    }

    fn model(&self, bytes: &mut Vec<u8>) {
        match self {
            Operation::Write(at, new) => {
                let end = *at as usize + new.len();
                bytes.resize(bytes.len().max(end), 0);
                bytes[*at as usize..end].copy_from_slice(new);
            }
            Operation::Truncate(len) => bytes.resize(*len as usize, 0),
            Operation::Punch(from, to) => {
                let to = bytes.len().min(*to as usize);
                if (*from as usize) < to {
                    bytes[*from as usize..to].fill(0);
                }
            }
            Operation::Preallocate(_, to) => bytes.resize(bytes.len().max(*to as usize), 0),
        }
    }
}

/// Tells the parent which descriptor to take, and waits until it has.
#[derive(Debug)]
struct PipeKeeping(Mutex<()>);

impl Keeping for PipeKeeping {
    fn keep(&self, name: &str, descriptor: BorrowedFd<'_>) -> std::io::Result<()> {
        let _one = self.0.lock().unwrap();
        say(&format!("keep {name} {}", descriptor.as_raw_fd()));
        std::io::stdin().lock().read_line(&mut String::new())?;
        Ok(())
    }

    fn forget(&self, name: &str) {
        say(&format!("forget {name}"));
    }
}

/// A line of its own, whatever else is printed.
fn say(what: &str) {
    let mut out = std::io::stdout().lock();
    write!(out, "\n{what}\n").unwrap();
    out.flush().unwrap();
}

/// Adopts what `said` names, or begins anew.
fn store_of(said: &mut std::str::SplitWhitespace<'_>) -> MemoryStore {
    let keeping: Arc<dyn Keeping> = Arc::new(PipeKeeping(Mutex::new(())));
    let open = |path: &str| -> OwnedFd {
        let file = OpenOptions::new().read(true).write(true).open(path);
        file.unwrap().into()
    };
    let mut given: BTreeMap<String, OwnedFd> = BTreeMap::new();
    while let (Some(name), Some(path)) = (said.next(), said.next()) {
        given.insert(name.to_owned(), open(path));
    }
    let Some(ledger) = given.remove("ledger") else {
        let ledger = Ledger::new(keeping, STAMP).unwrap();
        return MemoryStore::with_ledger(Pool::with_ledger(options(), ledger.clone()), ledger);
    };
    let ledger = Ledger::adopt(ledger, keeping, STAMP).unwrap();
    let number = |name: &str| name["segment-".len()..].parse().unwrap();
    let segments = given.into_iter().map(|(name, fd)| (number(&name), fd));
    let pool = Pool::adopt(options(), ledger.clone(), segments.collect()).unwrap();
    let store = MemoryStore::adopt(pool, ledger).unwrap();
    store.clear_ahead();
    store
}

/// The child: writes and says so, until it is killed.
#[test]
fn child_that_writes() {
    let Ok(said) = std::env::var(CHILD) else {
        return;
    };
    let mut said = said.split_whitespace();
    let from: Vec<u64> = (0..WRITERS)
        .map(|_| said.next().unwrap().parse().unwrap())
        .collect();
    let store = store_of(&mut said);
    std::thread::scope(|scope| {
        for (writer, from) in from.into_iter().enumerate() {
            let (store, writer) = (&store, writer as u64);
            scope.spawn(move || {
                let id = identity(writer);
                let subfile = store.open(id.id).or_else(|_| store.create(&id)).unwrap();
                for n in from.. {
                    Operation::of(writer, n).apply(&*subfile);
                    say(&format!("did {writer} {n}"));
                }
            });
        }
    });
}

/// One life of the child, until it has done so many operations; how many each writer has done then.
fn live(keeper: &KeeperTwin, held: &[(String, OwnedFd)], done: &mut [u64], operations: u64) {
    let me = std::process::id();
    let from = done.iter().map(u64::to_string);
    let path = |(name, fd): &(String, OwnedFd)| format!("{name} /proc/{me}/fd/{}", fd.as_raw_fd());
    let said: Vec<String> = from.chain(held.iter().map(path)).collect();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_that_writes", "--nocapture"])
        .env(CHILD, said.join(" "))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let pid = child.id();
    let mut count = 0;
    let mut is_over = false;
    // What it said before it died counts too.
    while let Some(Ok(line)) = lines.next() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["keep", name, fd] if !is_over => {
                let file = File::options()
                    .read(true)
                    .write(true)
                    .open(format!("/proc/{pid}/fd/{fd}"))
                    .unwrap();
                keeper.keep(name, file.as_fd()).unwrap();
                writeln!(stdin, "ok").unwrap();
            }
            ["forget", name] => keeper.forget(name),
            ["did", writer, n] => {
                let n: u64 = n.parse().unwrap();
                done[writer.parse::<usize>().unwrap()] = n + 1;
                count += 1;
                if count == operations {
                    child.kill().unwrap();
                    is_over = true;
                }
            }
            _ => {}
        }
    }
    child.wait().unwrap();
    assert!(is_over, "the child goes on until it is killed");
}

#[test]
fn a_killed_process_loses_nothing_that_it_acknowledged() {
    let mut random = Random::new(4);
    let keeper = KeeperTwin::new();
    let mut done = [0; WRITERS as usize];
    let mut models = vec![Vec::new(); WRITERS as usize];
    for life in 0..25 {
        let before = done;
        let operations = 1 + random.below(60);
        let held: Vec<(String, OwnedFd)> = keeper
            .names()
            .into_iter()
            .map(|name| (name.clone(), keeper.descriptor(&name).unwrap()))
            .collect();
        live(&keeper, &held, &mut done, operations);
        // Looked at in a copy: the next life gets it as it was left.
        let copy = keeper.copy();
        let ledger = Ledger::adopt(copy.ledger(), copy.keeping(), STAMP).unwrap();
        let pool = Pool::adopt(options(), ledger.clone(), copy.segments()).unwrap();
        let store = MemoryStore::adopt(pool, ledger).unwrap();
        store.clear_ahead();
        for writer in 0..WRITERS {
            let k = writer as usize;
            let model: &mut Vec<u8> = &mut models[k];
            for n in before[k]..done[k] {
                Operation::of(writer, n).model(model);
            }
            let Ok(subfile) = store.open(identity(writer).id) else {
                assert_eq!(done[k], 0, "life {life}: an acknowledged subfile is gone");
                continue;
            };
            // One more may have begun, or even ended.
            let mut after = model.clone();
            Operation::of(writer, done[k]).model(&mut after);
            let len = subfile.len() as usize;
            assert!(
                [model.len(), after.len()].contains(&len),
                "life {life}: {len}, not {} or {}",
                model.len(),
                after.len()
            );
            let mut found = vec![0xee; len + 1000];
            subfile.read_at(0, &mut found).unwrap();
            let byte = |bytes: &[u8], i: usize| bytes.get(i).copied().unwrap_or(0);
            for (i, &found) in found.iter().enumerate() {
                let either = match i < len {
                    true => [byte(model, i), byte(&after, i)],
                    false => [0, 0],
                };
                assert!(either.contains(&found), "life {life}: byte {i} of {len}");
            }
            found.truncate(len);
            *model = found;
            done[k] += 1;
        }
    }
    assert!(done.iter().sum::<u64>() > 200, "{done:?}");
}
