//! [`StreamQueue`]: operations of a stream that go on beside the program (T-11, X-16).
//!
//! They are done in the order in which they were asked for, by a thread of the queue, so all members of a team ask for the same in
//! the same order, as ever. Memory goes with the request and comes back with what came of it.
//!
//! Invariants
//! - An operation that was asked for is done, also if its request is dropped.
//! - The stream comes back by [`StreamQueue::finish`], behind everything that was asked for.

use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError};

use client::{Error, Jobs, Result};

use crate::context::Context;
use crate::stream::Stream;
use crate::transfer::Counts;

/// A stream with a thread that does what is asked for, one after the other.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = std::env::temp_dir().join(format!("pario-doc-queue-{}", std::process::id()));
/// # let url = format!("dir:{}", dir.display()).parse()?;
/// # let client = embedded::connect(&url, client::ConnectOptions::default(), &embedded::Options::default())?;
/// use streams::{Access, Context, Emulation, Shape, Stream, StreamOptions, StreamQueue};
/// let team = client::Team::alone();
/// let emulation = Emulation::block(&Shape::new(&[4])?, &team)?;
/// let stream = Stream::open(&client, &team, "/s", &emulation, &StreamOptions::new(Access::Write))?;
/// let queue = StreamQueue::new(stream);
/// let first = queue.write(Context::everywhere(), vec![1; 4 * 8], 8);
/// let second = queue.write(Context::everywhere(), vec![2; 4 * 8], 8);
/// // ... the program computes ...
/// let memory = first.wait()?;
/// second.wait()?;
/// assert_eq!(memory, [1; 32]);
/// queue.finish()?.close()?;
/// # drop(client);
/// # std::fs::remove_dir_all(&dir).ok();
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct StreamQueue {
    stream: Arc<Mutex<Option<Stream>>>,
    jobs: Jobs<'static>,
}

/// An operation that goes on beside the program.
#[derive(Debug)]
pub struct StreamRequest<T> {
    outcome: Receiver<Result<T>>,
    /// What came already.
    came: Option<Result<T>>,
}

impl StreamQueue {
    /// A queue for a stream.
    pub fn new(stream: Stream) -> StreamQueue {
        StreamQueue {
            stream: Arc::new(Mutex::new(Some(stream))),
            jobs: Jobs::new("pario-stream", 1, || ()),
        }
    }

    /// Asks for anything that a stream does.
    pub fn perform<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Stream) -> Result<T> + Send + 'static,
    ) -> StreamRequest<T> {
        self.ask(|stream| stream.as_mut().map_or(Err(Error::Closed), work))
    }

    fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Option<Stream>) -> Result<T> + Send + 'static,
    ) -> StreamRequest<T> {
        let (tell, outcome) = channel();
        let stream = Arc::clone(&self.stream);
        let job = Box::new(move || {
            let mut stream = stream.lock().unwrap_or_else(PoisonError::into_inner);
            let done = work(&mut stream);
            drop(stream);
            // A request that was dropped wants to know nothing.
            let _ = tell.send(done);
        });
        let came = self.jobs.submit(job).err().map(|(_, error)| {
            Err(Error::Argument {
                name: "queue",
                text: format!("has no thread for the operation: {error}"),
            })
        });
        StreamRequest { outcome, came }
    }

    /// Begins [`Stream::write`]. The variable comes back.
    pub fn write(
        &self,
        context: Context,
        variable: Vec<u8>,
        bytes: usize,
    ) -> StreamRequest<Vec<u8>> {
        self.perform(move |stream| {
            stream.write(&context, &variable, bytes)?;
            Ok(variable)
        })
    }

    /// Begins [`Stream::write_each`]. The variable comes back.
    pub fn write_each(
        &self,
        context: Context,
        variable: Vec<u8>,
        sizes: Vec<usize>,
    ) -> StreamRequest<Vec<u8>> {
        self.perform(move |stream| {
            stream.write_each(&context, &variable, &sizes)?;
            Ok(variable)
        })
    }

    /// Begins [`Stream::read`].
    pub fn read(
        &self,
        context: Context,
        mut variable: Vec<u8>,
        bytes: usize,
    ) -> StreamRequest<(Vec<u8>, Counts)> {
        self.perform(move |stream| {
            let counts = stream.read(&context, &mut variable, bytes)?;
            Ok((variable, counts))
        })
    }

    /// Begins [`Stream::read_each`].
    pub fn read_each(
        &self,
        context: Context,
        mut variable: Vec<u8>,
        sizes: Vec<usize>,
    ) -> StreamRequest<(Vec<u8>, Counts)> {
        self.perform(move |stream| {
            let counts = stream.read_each(&context, &mut variable, &sizes)?;
            Ok((variable, counts))
        })
    }

    /// Waits until everything is done, and gives the stream back.
    pub fn finish(self) -> Result<Stream> {
        self.ask(|stream| stream.take().ok_or(Error::Closed)).wait()
    }
}

impl Drop for StreamQueue {
    fn drop(&mut self) {
        self.jobs.stop();
    }
}

impl<T> StreamRequest<T> {
    /// Whether it is done.
    pub fn is_done(&mut self) -> bool {
        if self.came.is_none() {
            self.came = match self.outcome.try_recv() {
                Ok(outcome) => Some(outcome),
                Err(TryRecvError::Empty) => None,
                Err(TryRecvError::Disconnected) => Some(Err(Error::Closed)),
            };
        }
        self.came.is_some()
    }

    /// Waits for it: what came of it.
    pub fn wait(self) -> Result<T> {
        let StreamRequest { outcome, came } = self;
        came.unwrap_or_else(|| outcome.recv().unwrap_or(Err(Error::Closed)))
    }
}
