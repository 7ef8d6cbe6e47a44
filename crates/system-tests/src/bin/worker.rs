//! A client in a process of its own, driven by lines on its input; see `system_tests::worker`.
//!
//! Ends with its input. Every line gets one line as answer, errors of operations included.

use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::sync::Barrier;
use std::time::Duration;

use client::{Client, ConnectOptions, File, OpenOptions, Team};
use system_tests::firing::{Orders, fire};
use system_tests::layouts::view_of;
use system_tests::pounding::{open_many, pound_reads, pound_writes, shake, storm};
use system_tests::raw::Raw;
use system_tests::{Random, digest, pattern, pattern_byte};
use wire::message::file::{Admit, Lock};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Bytes of one access of the long programs.
const RECORD: u64 = 1 << 12;

fn main() {
    let url = std::env::args().nth(1).expect("usage: worker URL");
    let mut worker = match connect(&url) {
        Ok(client) => Worker {
            client,
            files: HashMap::new(),
            held: Vec::new(),
            teams: Vec::new(),
            url,
        },
        Err(error) => return say(Err(error)),
    };
    say(Ok(std::process::id().to_string()));
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { return };
        let fields: Vec<&str> = line.split('\t').collect();
        say(worker.run(&fields));
    }
}

fn connect(url: &str) -> Result<Client, Failure> {
    system_tests::service::connect(&url.parse()?, ConnectOptions::from_env()?, 1)
}

fn say(answer: Result<String, Failure>) {
    let line = match answer {
        Ok(text) => format!("ok {text}"),
        Err(error) => match error.downcast_ref::<client::Error>() {
            Some(known) => format!("error {:?} {known}", known.status()),
            None => format!("error {error}"),
        },
    };
    // Whoever reads may be gone; then the input ends as well.
    let _ = writeln!(std::io::stdout(), "{}", line.replace('\n', " "));
}

struct Worker {
    client: Client,
    files: HashMap<usize, File>,
    held: Vec<Vec<Raw>>,
    teams: Vec<Team>,
    url: String,
}

impl Worker {
    fn run(&mut self, fields: &[&str]) -> Result<String, Failure> {
        let number = |i: usize| -> Result<u64, Failure> {
            let text = fields.get(i).ok_or("a field is missing")?;
            Ok(text.parse()?)
        };
        let slot = || -> Result<usize, Failure> { Ok(number(1)? as usize) };
        let text = |i: usize| fields.get(i).copied().filter(|t| !t.is_empty());
        let nothing = String::new;
        match fields[0] {
            "open" => {
                let path = text(2).ok_or("no path")?;
                let file = self
                    .client
                    .open(path, &options(text(3), text(4), text(5)))?;
                let id = file.id();
                self.files.insert(slot()?, file);
                return Ok(format!("{id}"));
            }
            // Creates a file that is to have so many bytes.
            "expect" => {
                let options = options(Some("rwx"), None, None).expected_size(number(3)?);
                let file = self.client.open(text(2).ok_or("no path")?, &options)?;
                self.files.insert(slot()?, file);
                return Ok(nothing());
            }
            // Joins a team, opens a file with it and sets a view with it.
            "together" => {
                let (path, name) = (text(2).ok_or("no path")?, text(3).ok_or("no team")?);
                let (rank, size) = (number(4)? as usize, number(5)? as usize);
                let team = Team::processes(&self.client, name, rank, size)?;
                let options = options(Some("rwc"), text(6), None);
                let file = self.client.open_together(&team, path, &options)?;
                file.set_view_text_together(&team, text(7).ok_or("no view")?)?;
                let words = file.distribution()?;
                self.files.insert(slot()?, file);
                self.teams.push(team);
                return Ok(words);
            }
            // Waits for everybody else in the last team.
            "barrier" => {
                self.teams.last().ok_or("no team")?.barrier()?;
                return Ok(nothing());
            }
            "unlink" => {
                self.client.unlink(text(1).ok_or("no path")?)?;
                return Ok(nothing());
            }
            "stat" => {
                let found = self.client.stat(text(1).ok_or("no path")?)?;
                return Ok(format!("{} {:?}", found.size, found.layout));
            }
            "chmod" => {
                let mode = u32::from_str_radix(text(2).ok_or("no mode")?, 8)?;
                self.client.chmod(text(1).ok_or("no path")?, mode)?;
                return Ok(nothing());
            }
            "relayout" => {
                let (path, layout) = (text(1).ok_or("no path")?, text(2).ok_or("no layout")?);
                self.client.relayout(path, layout)?.wait()?;
                return Ok(nothing());
            }
            // Another client, which waits so many milliseconds for a server that cannot be reached.
            "patience" => {
                let limit = Duration::from_millis(number(1)?);
                let options = ConnectOptions::from_env()?.with_timeout(limit);
                self.client = system_tests::service::connect(&self.url.parse()?, options, 1)?;
                return Ok(nothing());
            }
            // What was counted about direct accesses.
            "direct" => {
                let s = self.client.direct_statistics();
                let all = [s.attached, s.reads, s.writes, s.revoked, s.fallbacks];
                return Ok(all.map(|n| n.to_string()).join(" "));
            }
            "storm" => {
                let (path, stop) = (text(1).ok_or("no path")?, text(5).ok_or("no end")?);
                let (me, all) = (number(2)? as u8, number(3)? as u8);
                let told = storm(&self.client, path, me, all, number(4)?, stop.as_ref())?;
                return Ok(format!("{} {told:?}", told.accesses));
            }
            // Opens files and keeps them open.
            "many" => {
                let dir = text(1).ok_or("no directory")?;
                let (files, is_direct) =
                    open_many(&self.client, dir, number(2)?, number(3)? as usize)?;
                self.files.extend(files.into_iter().enumerate());
                return Ok(is_direct.to_string());
            }
            "shake" => {
                let (path, stop) = (text(1).ok_or("no path")?, text(3).ok_or("no end")?);
                let layouts: Vec<&str> = text(4).ok_or("no layouts")?.split(';').collect();
                let done = shake(&self.client, path, &layouts, number(2)?, stop.as_ref())?;
                return Ok(done.to_string());
            }
            // Uses files while they move, and compares everything.
            "fire" => {
                let orders = Orders {
                    dir: fields.get(1).ok_or("no directory")?.to_string(),
                    me: number(2)?,
                    all: number(3)?,
                    seed: number(4)?,
                    stop: text(5).ok_or("no end")?.into(),
                    kills: text(6).map(Into::into),
                };
                let fired = fire(&self.client, &orders)?;
                let all = [fired.accesses, fired.syncs, fired.settled, fired.moves];
                return Ok(all.map(|n| n.to_string()).join(" "));
            }
            "create" => {
                let options = OpenOptions::new().exclusive();
                self.client.create(text(1).ok_or("no path")?, &options)?;
                return Ok(nothing());
            }
            "mkdir" => {
                self.client.mkdir(text(1).ok_or("no path")?, None)?;
                return Ok(nothing());
            }
            "rename" => {
                let (from, to) = (text(1).ok_or("no path")?, text(2).ok_or("no path")?);
                self.client.rename(from, to)?;
                return Ok(nothing());
            }
            // A client of its own that locks a range and never lets go.
            "hold" => {
                let path = text(1).ok_or("no path")?;
                self.held.push(hold(&self.url, path, number(2)?)?);
                return Ok(nothing());
            }
            // Goes on as its own child; what the parent had open stays open.
            "fork" => {
                nix::unistd::daemon(true, true)?;
                return Ok(std::process::id().to_string());
            }
            "mix" => {
                let (threads, rounds) = (number(2)?, number(3)?);
                return self.mix(text(1).ok_or("no path")?, threads, rounds, number(4)?);
            }
            _ => {}
        }
        let file = self.files.get(&slot()?).ok_or("nothing is open there")?;
        match fields[0] {
            "view" => {
                let text_of = text(4).ok_or("no view")?;
                file.set_view(&view_of(text(3), number(2)?, text_of))?;
                Ok(nothing())
            }
            "fill" => {
                let (offset, len) = (number(2)?, number(3)? as usize);
                let bytes = pattern(&file.view(), offset, len, number(4)?);
                Ok(file.write_at(offset, &bytes)?.to_string())
            }
            "check" => {
                let (offset, len) = (number(2)?, number(3)? as usize);
                let mut bytes = vec![0; len];
                let n = file.read_at(offset, &mut bytes)?;
                let expected = pattern(&file.view(), offset, n, number(4)?);
                match bytes[..n].iter().zip(&expected).position(|(a, b)| a != b) {
                    None => Ok(n.to_string()),
                    Some(at) => {
                        let x = file
                            .view()
                            .view_to_file(layout::ViewOffset(offset + at as u64));
                        Err(format!(
                            "view byte {} (file byte {x:?}) is {}, expected {}",
                            offset + at as u64,
                            bytes[at],
                            expected[at]
                        )
                        .into())
                    }
                }
            }
            // Which tag the bytes of a range have, if all have the same.
            "tag" => {
                let (offset, len) = (number(2)?, number(3)? as usize);
                let mut bytes = vec![0; len];
                let n = file.read_at(offset, &mut bytes)?;
                for tag in number(4)?..number(5)? {
                    if pattern(&file.view(), offset, n, tag) == bytes[..n] {
                        return Ok(tag.to_string());
                    }
                }
                Err("bytes of several tags".into())
            }
            // So many bytes, and a number that stands for them.
            "digest" => {
                let (offset, len) = (number(2)?, number(3)? as usize);
                let mut bytes = vec![0; len];
                let n = file.read_at(offset, &mut bytes)?;
                Ok(format!("{n} {}", digest(&bytes[..n])))
            }
            "punch" => {
                file.punch(number(2)?..number(3)?)?;
                Ok(nothing())
            }
            "pound" => {
                let (offset, len) = (number(3)?, number(4)? as usize);
                let stop = text(6).ok_or("no end")?.as_ref();
                let pounded = match text(2) {
                    Some("w") => pound_writes(file, offset, len, number(5)?, stop)?,
                    _ => pound_reads(file, offset, len, number(5)?, stop)?,
                };
                let tag = pounded.tag.map_or("mixed".into(), |tag| tag.to_string());
                Ok(format!("{} {tag}", pounded.rounds))
            }
            "append" => {
                let (len, tag) = (number(2)?, number(3)?);
                let bytes: Vec<u8> = (0..len).map(|k| pattern_byte(tag, k)).collect();
                Ok(file.append(&bytes)?.to_string())
            }
            "write_shared" => {
                let (len, tag) = (number(2)?, number(3)?);
                let bytes: Vec<u8> = (0..len).map(|k| pattern_byte(tag, k)).collect();
                Ok(file.write_shared(&bytes)?.to_string())
            }
            "atomic" => {
                file.set_atomic(text(2) == Some("on"))?;
                Ok(nothing())
            }
            "resize" => {
                file.resize(number(2)?)?;
                Ok(nothing())
            }
            "size" => Ok(file.size()?.to_string()),
            "sync" => Ok(file.sync()?.is_durable.to_string()),
            "close" => {
                let slot = slot()?;
                let file = self.files.remove(&slot).expect("found above");
                file.close()?;
                Ok(nothing())
            }
            other => Err(format!("no such line: {other}").into()),
        }
    }

    /// Threads that each write and read their records of one file, and a file of their own. Every
    /// record of the shared file belongs to one thread of one worker; what others have written is
    /// read too, and has to be one of their rounds.
    fn mix(&self, path: &str, threads: u64, rounds: u64, id: u64) -> Result<String, Failure> {
        let barrier = Barrier::new(threads as usize);
        let shared = self.client.open(path, &OpenOptions::new().read().write())?;
        let run = |thread: u64| -> Result<u64, Failure> {
            let me = id * threads + thread;
            let mut random = Random::of_run(me);
            let rw = OpenOptions::new().read().write().create();
            let own_path = format!("{path}-{me}");
            barrier.wait();
            let own = self.client.open(&own_path, &rw)?;
            let (mut moved, mut buffer) = (0, vec![0; RECORD as usize]);
            let whole = client::View::whole_file();
            for round in 0..rounds {
                let at = me * RECORD;
                let tag = me * 1000 + round;
                shared.write_at(at, &pattern(&whole, at, RECORD as usize, tag))?;
                let n = shared.read_at(at, &mut buffer)?;
                if buffer[..n] != pattern(&whole, at, RECORD as usize, tag) {
                    return Err(format!("record {me}: not what was written").into());
                }
                // Somebody else's: not there yet, or of some round, perhaps while it is written.
                let other = random.below(me + 1);
                shared.read_at(other * RECORD, &mut buffer)?;
                let own_at = random.below(64) * 1000;
                own.write_at(own_at, &pattern(&whole, own_at, 1500, tag))?;
                let n = own.read_at(own_at, &mut buffer[..1500])?;
                if buffer[..n] != pattern(&whole, own_at, 1500, tag) {
                    return Err(format!("{own_path}: not what was written").into());
                }
                moved += 2 * RECORD + 3000;
            }
            own.close()?;
            self.client.unlink(&own_path)?;
            Ok(moved)
        };
        let results: Vec<Result<u64, Failure>> = std::thread::scope(|scope| {
            let all: Vec<_> = (0..threads).map(|t| scope.spawn(move || run(t))).collect();
            all.into_iter()
                .map(|t| t.join().unwrap_or_else(|_| Err("a thread panicked".into())))
                .collect()
        });
        let mut moved = 0;
        for result in results {
            moved += result?;
        }
        Ok(moved.to_string())
    }
}

/// Locks the first `len` bytes of a file; the connections that hold the lock.
fn hold(url: &str, path: &str, len: u64) -> Result<Vec<Raw>, Failure> {
    let mut manager = Raw::client(&url.parse()?);
    let opened = manager.open(path);
    let owner = opened.layout.owner.server;
    let members = manager.ask(&wire::message::catalogue::Members {})?;
    let member = members.iter().find(|m| m.server.0 == owner);
    let mut server = manager.beside(&member.ok_or("no owner")?.address.parse()?);
    server.set_view(1, &opened)?;
    let handle = opened.handle;
    server.ask(&Admit { view: 1, handle })?;
    server.ask(&Lock {
        view: 1,
        handle,
        request: 1,
        lo: 0,
        hi: len,
        is_exclusive: true,
    })?;
    Ok(vec![manager, server])
}

fn options(letters: Option<&str>, array: Option<&str>, layout: Option<&str>) -> OpenOptions {
    let mut options = OpenOptions::new();
    for letter in letters.unwrap_or_default().chars() {
        options = match letter {
            'r' => options.read(),
            'w' => options.write(),
            'c' => options.create(),
            'x' => options.exclusive(),
            'a' => options.atomic(),
            'e' => options.append(),
            'd' => options.delete_on_close(),
            'u' => options.unique(),
            's' => options.shared_pointer(1),
            other => panic!("no such letter: {other}"),
        };
    }
    if let Some(array) = array {
        options = options.array(array);
    }
    match layout {
        Some(layout) => options.layout(layout),
        None => options,
    }
}
