//! The calls, one file each.
//!
//! Any process may call; calls of several take turns by a lock of the memory, whose manager is process 0, so that they cost process 0, which calls all of them in
//! programs as the source has them, no message for it.

mod close;
mod learn;
mod open;
mod read;
mod write;

use std::sync::Arc;
use std::thread::JoinHandle;

use client::Client;
use dsm::{Epoch, Protocol, SharedMemory};
use parking_lot::Mutex;

use crate::accesses;
use crate::call::{Answer, Question};
use crate::error::{Error, Result};
use crate::homes::Planner;
use crate::serve::Desk;

pub use open::OpenMode;

/// The number of an open parallel file, the same at all processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pfd(pub u32);

/// What all processes agree on.
#[derive(Clone, Debug)]
pub struct PioOptions {
    /// Under which name accesses are kept with a file, and looked for.
    pub application: String,
    /// How blocks are placed by accesses of an earlier run.
    pub planner: Planner,
    /// Whether accesses of an earlier run place blocks at all.
    pub follows_accesses: bool,
    /// Whether what is written is on disk before it takes the place of what was there.
    pub is_synced: bool,
    /// Whether only what the source has is allowed: process 0 makes all calls, a file is read as a whole and written once, where there was none, and nobody
    /// writes to memory that goes into a file.
    pub is_strict: bool,
}

impl Default for PioOptions {
    /// Named after the program; the published rules; synced.
    fn default() -> PioOptions {
        let program = std::env::current_exe().ok();
        let name = program.as_deref().and_then(|path| path.file_stem());
        PioOptions {
            application: name.map_or("program".into(), |name| name.to_string_lossy().into_owned()),
            planner: Planner::default(),
            follows_accesses: true,
            is_synced: true,
            is_strict: false,
        }
    }
}

/// Parallel files of a process that shares memory.
#[derive(Debug)]
pub struct Pio<'m> {
    memory: &'m SharedMemory,
    desk: Arc<Desk>,
    thread: Option<JoinHandle<()>>,
    options: PioOptions,
    /// Who calls from here; and the nearest server of every process, once it was told.
    calling: Mutex<Vec<Option<u64>>>,
    lock: u32,
}

impl<'m> Pio<'m> {
    /// Takes part in parallel files. All processes do, each with a client of its own, before the first call of any.
    ///
    /// # Errors
    ///
    /// If the memory's protocol is not the home-based one: others have no process for each page that has all of it.
    pub fn start(
        memory: &'m SharedMemory,
        client: &Client,
        options: PioOptions,
    ) -> Result<Pio<'m>> {
        if memory.protocol() != Protocol::HomeBased {
            return Err(Error::argument(
                "memory",
                "its protocol has no homes; make it with Protocol::HomeBased",
            ));
        }
        let pages = memory.pages();
        pages.open_desk();
        let desk = Arc::new(Desk {
            pages,
            client: client.clone(),
            table: Mutex::default(),
        });
        let serving = desk.clone();
        let thread = std::thread::Builder::new()
            .name("pio-serve".to_owned())
            .spawn(move || serving.serve())
            .expect("a thread of the parallel files");
        let size = memory.size() as u32;
        let options = PioOptions {
            application: accesses::name_of(&options.application),
            ..options
        };
        Ok(Pio {
            memory,
            desk,
            thread: Some(thread),
            options,
            calling: Mutex::default(),
            lock: u32::MAX / size * size,
        })
    }

    /// The path of an open file.
    ///
    /// # Errors
    ///
    /// If it is not open.
    pub fn path_of(&self, file: Pfd) -> Result<String> {
        let table = self.desk.table.lock();
        let open = table.get(&file.0).ok_or(Error::NotOpen(file.0))?;
        Ok(open.path.clone())
    }

    /// Does something while no other process calls.
    fn alone<R>(
        &self,
        epoch: &mut Epoch,
        act: impl FnOnce(&mut Vec<Option<u64>>, &mut Epoch) -> Result<R>,
    ) -> Result<R> {
        if self.options.is_strict && self.memory.rank() != 0 {
            let text = format!(
                "{} calls; in strict mode process 0 makes all calls",
                self.memory.rank()
            );
            return Err(Error::argument("process", text));
        }
        let mut guard = self.memory.lock(self.lock, epoch)?;
        let mut nearest = self.calling.lock();
        act(&mut nearest, &mut guard)
    }

    /// Asks all processes, this one included; answers by rank. The first failure is told, once all have answered.
    fn ask_all(&self, post: &dsm::Post, question: &Question) -> Result<Vec<Answer>> {
        let (me, size) = (self.memory.rank(), self.memory.size());
        let bytes = question.save();
        for to in (0..size).filter(|to| *to != me) {
            self.desk.pages.ask(to, bytes.clone());
        }
        let mut answers: Vec<Option<Answer>> = vec![None; size];
        let mut ended = None;
        answers[me] = Some(self.desk.answer(post, question));
        for _ in 1..size {
            let post = self.desk.pages.next_answer()?;
            match Answer::load(post.bytes()) {
                Some(answer) => answers[post.from()] = Some(answer),
                None => ended = ended.or(Some(post.from())),
            }
        }
        if let Some(process) = ended {
            return Err(Error::Ended { process });
        }
        let answers: Vec<Answer> = answers.into_iter().flatten().collect();
        let failed = |(process, answer): (usize, &Answer)| match answer {
            Answer::Failed { errno, text } => Some(Error::Process {
                process,
                errno: *errno as i32,
                text: text.clone(),
            }),
            _ => None,
        };
        match answers.iter().enumerate().find_map(failed) {
            Some(error) => Err(error),
            None => Ok(answers),
        }
    }

    /// The nearest servers of all.
    fn servers(answers: &[Answer]) -> Vec<Option<u64>> {
        let server = |answer: &Answer| match answer {
            Answer::Open { server, .. } => server.checked_sub(1),
            _ => None,
        };
        answers.iter().map(server).collect()
    }

    /// Pages that all have done together.
    fn pages_done(answers: &[Answer]) -> u64 {
        let pages = |answer: &Answer| match answer {
            Answer::Done { pages, .. } => u64::from(*pages),
            _ => 0,
        };
        answers.iter().map(pages).sum()
    }
}

impl Drop for Pio<'_> {
    fn drop(&mut self) {
        self.desk.pages.close_desk();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
