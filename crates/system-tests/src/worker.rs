//! Worker processes: clients in processes of their own, driven line by line.
//!
//! ```text
//!  line to the worker                         its answer, one line
//!  open SLOT PATH HOW [ARRAY] [LAYOUT]        ok FILE
//!  view SLOT DISPLACEMENT ARRAY TEXT          ok
//!  fill SLOT OFFSET LEN TAG                   ok BYTES          writes the pattern of the places
//!  check SLOT OFFSET LEN TAG                  ok BYTES          reads, and compares with it
//!  ...                                        error STATUS TEXT
//! ```
//!
//! Fields are separated by tabs. The program is `src/bin/worker.rs`; it ends with its input, so
//! workers never outlive a test. Sending to all before the first answer is read makes them start
//! together ([`Workers::all`]).

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::programs;
use crate::service::is_direct;

/// How a worker opens a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenHow {
    /// Letters: `r`ead, `w`rite, `c`reate, e`x`clusive, `a`tomic, `e`nd (append), `d`elete on close,
    /// `s`hared pointer, `u`nique.
    pub letters: String,
    /// What a new file holds.
    pub array: Option<String>,
    /// How a new file is laid out.
    pub layout: Option<String>,
}

impl OpenHow {
    /// By letters alone.
    pub fn new(letters: &str) -> OpenHow {
        OpenHow {
            letters: letters.into(),
            ..OpenHow::default()
        }
    }

    /// With an array.
    pub fn array(mut self, array: Option<&str>) -> OpenHow {
        self.array = array.map(Into::into);
        self
    }

    /// With a layout.
    pub fn layout(mut self, layout: Option<&str>) -> OpenHow {
        self.layout = layout.map(Into::into);
        self
    }

    /// The line that opens a file.
    pub fn line(&self, slot: usize, path: &str) -> String {
        let or_none = |text: &Option<String>| text.clone().unwrap_or_default();
        format!(
            "open\t{slot}\t{path}\t{}\t{}\t{}",
            self.letters,
            or_none(&self.array),
            or_none(&self.layout)
        )
    }
}

/// A process with a client of its own.
#[derive(Debug)]
pub struct Worker {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Worker {
    /// Starts one; it is connected when this returns.
    #[track_caller]
    pub fn start(url: &str, secret: Option<&Path>) -> Worker {
        let mut worker = Worker::start_unconnected(url, secret);
        worker.answered();
        worker
    }

    /// Starts one; its first answer says whether it is connected.
    pub fn start_unconnected(url: &str, secret: Option<&Path>) -> Worker {
        Worker::start_how(url, secret, is_direct())
    }

    /// Starts a worker that copies directly where it can, or sends everything by message.
    pub fn start_how(url: &str, secret: Option<&Path>, direct: bool) -> Worker {
        let mut command = Command::new(programs::worker());
        command.arg(url).env_remove("PARIO_SECRET");
        command.env("PARIO_DIRECT", if direct { "1" } else { "0" });
        if let Some(secret) = secret {
            command.env("PARIO_SECRET", secret);
        }
        Worker::of(&mut command)
    }

    /// Starts any program that is driven by lines.
    pub fn of(command: &mut Command) -> Worker {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a worker");
        Worker {
            input: child.stdin.take(),
            output: BufReader::new(child.stdout.take().expect("piped")),
            child,
        }
    }

    /// Its process number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a line.
    pub fn send(&mut self, line: &str) {
        assert!(!line.contains('\n'), "one line");
        let input = self.input.as_mut().expect("it was not closed");
        // A dead worker is noticed when its answer is read.
        let _ = writeln!(input, "{line}");
    }

    /// Its next answer: what follows `ok`, or what follows `error`. The end of a worker is an error.
    pub fn answer(&mut self) -> Result<String, String> {
        let mut line = String::new();
        match self.output.read_line(&mut line) {
            Ok(n) if n > 0 => {}
            _ => return Err("the worker has ended".into()),
        }
        let line = line.trim_end_matches('\n');
        match line.strip_prefix("ok") {
            Some(rest) => Ok(rest.trim_start().into()),
            None => Err(line.strip_prefix("error ").unwrap_or(line).into()),
        }
    }

    /// Its next answer, which has to be good.
    #[track_caller]
    pub fn answered(&mut self) -> String {
        match self.answer() {
            Ok(text) => text,
            Err(why) => panic!("worker {}: {why}", self.pid()),
        }
    }

    /// Sends a line and waits for its answer.
    pub fn try_ask(&mut self, line: &str) -> Result<String, String> {
        self.send(line);
        self.answer()
    }

    /// Asks a worker; the answer has to be good.
    #[track_caller]
    pub fn ask(&mut self, line: &str) -> String {
        match self.try_ask(line) {
            Ok(text) => text,
            Err(why) => panic!("worker {}: {line:?}: {why}", self.pid()),
        }
    }

    /// Opens a file.
    #[track_caller]
    pub fn open(&mut self, slot: usize, path: &str, how: &OpenHow) {
        self.ask(&how.line(slot, path));
    }

    /// Sets a view.
    #[track_caller]
    pub fn view(&mut self, slot: usize, displacement: u64, array: Option<&str>, text: &str) {
        let array = array.unwrap_or_default();
        self.ask(&format!("view\t{slot}\t{displacement}\t{array}\t{text}"));
    }

    /// Writes the pattern of a tag.
    #[track_caller]
    pub fn fill(&mut self, slot: usize, offset: u64, len: u64, tag: u64) {
        self.ask(&format!("fill\t{slot}\t{offset}\t{len}\t{tag}"));
    }

    /// Reads and compares with the pattern of a tag; the number of bytes that were there.
    #[track_caller]
    pub fn check(&mut self, slot: usize, offset: u64, len: u64, tag: u64) -> u64 {
        let answer = self.ask(&format!("check\t{slot}\t{offset}\t{len}\t{tag}"));
        answer.parse().expect("a number of bytes")
    }

    /// Whether its process is there.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// `kill -9`.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Lets it end by itself, with goodbyes.
    #[track_caller]
    pub fn end(mut self) {
        self.input = None;
        let status = self.child.wait().expect("it was started");
        assert!(status.success(), "a worker ended: {status}");
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Several workers.
#[derive(Debug)]
pub struct Workers(Vec<Worker>);

impl Workers {
    /// Starts them at once.
    #[track_caller]
    pub fn start(count: usize, url: &str, secret: Option<&Path>) -> Workers {
        Workers::start_how(count, url, secret, is_direct())
    }

    /// Starts workers that copy directly where they can, or send everything by message.
    #[track_caller]
    pub fn start_how(count: usize, url: &str, secret: Option<&Path>, direct: bool) -> Workers {
        let mut workers: Vec<Worker> = (0..count)
            .map(|_| Worker::start_how(url, secret, direct))
            .collect();
        for worker in &mut workers {
            worker.answered();
        }
        Workers(workers)
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// One of them.
    pub fn one(&mut self, index: usize) -> &mut Worker {
        &mut self.0[index]
    }

    /// Sends every worker its line before the first answer is read; all answers have to be good.
    #[track_caller]
    pub fn all(&mut self, line: impl Fn(usize) -> String) -> Vec<String> {
        for (index, worker) in self.0.iter_mut().enumerate() {
            worker.send(&line(index));
        }
        self.0.iter_mut().map(Worker::answered).collect()
    }
}
