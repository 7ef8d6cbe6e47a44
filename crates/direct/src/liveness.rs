//! A word that says whether a process lives, written by the kernel when it dies.
//!
//! A thread of the server holds the word as a robust futex: it contains the thread's number, and
//! the kernel sets `FUTEX_OWNER_DIED` in it when the thread ends in any way, SIGKILL included. No
//! waiter and no message is needed. An orderly end stores 0.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use crate::mapping::Mapping;

/// Set by the kernel when the holder has died.
const OWNER_DIED: u32 = 0x4000_0000;

/// Whether a liveness word is that of a living process.
#[inline]
pub(crate) fn is_alive(word: u32) -> bool {
    word != 0 && word & OWNER_DIED == 0
}

/// Holds a liveness word until it is dropped.
#[derive(Debug)]
pub struct Liveness {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Liveness {
    /// Starts the thread that holds the word; it holds it when this returns.
    pub(crate) fn begin(mapping: Arc<Mapping>, at: usize) -> io::Result<Liveness> {
        let (end, ended) = channel();
        let (began, begun) = channel();
        let thread = std::thread::Builder::new()
            .name("liveness".into())
            .stack_size(64 << 10)
            .spawn(move || {
                let word = mapping.half_word(at);
                let node = RobustNode::hold(word);
                let _ = began.send(node.is_ok());
                if let Ok(node) = node {
                    wait(&ended);
                    word.store(0, Ordering::SeqCst);
                    node.release();
                }
            })?;
        match begun.recv() {
            Ok(true) => Ok(Liveness {
                end: Some(end),
                thread: Some(thread),
            }),
            _ => Err(io::Error::other(
                "the kernel keeps no list of robust futexes",
            )),
        }
    }
}

fn wait(ended: &Receiver<()>) {
    // Ends when the sender is dropped.
    let _ = ended.recv();
}

impl Drop for Liveness {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The list that the kernel walks when a thread ends, with one node. Its form is the kernel's.
#[repr(C)]
struct RobustHead {
    next: *const RobustNext,
    futex_offset: libc::c_long,
    pending: *const RobustNext,
}

#[repr(C)]
struct RobustNext {
    next: *const RobustNext,
}

/// A word that this thread holds.
struct RobustNode {
    memory: Box<(RobustHead, RobustNext)>,
}

impl RobustNode {
    /// Makes this thread the holder.
    fn hold(word: &AtomicU32) -> io::Result<RobustNode> {
        let mut memory = Box::new((
            RobustHead {
                next: std::ptr::null(),
                futex_offset: 0,
                pending: std::ptr::null(),
            },
            RobustNext {
                next: std::ptr::null(),
            },
        ));
        let head = std::ptr::from_ref(&memory.0).cast::<RobustNext>();
        let node = std::ptr::from_ref(&memory.1);
        memory.0.futex_offset = word.as_ptr() as libc::c_long - node as libc::c_long;
        memory.1.next = head;
        memory.0.next = node;
        set_list(&memory.0)?;
        let thread = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        word.store(thread, Ordering::SeqCst);
        Ok(RobustNode { memory })
    }

    /// Ends the holding; the word is no longer the kernel's to write.
    fn release(mut self) {
        self.memory.0.next = std::ptr::from_ref(&self.memory.0).cast::<RobustNext>();
        // The thread ends soon, and with it its list: the memory has to outlive it.
        std::mem::forget(self.memory);
    }
}

fn set_list(head: &RobustHead) -> io::Result<()> {
    let bytes = std::mem::size_of::<RobustHead>();
    // SAFETY: the kernel keeps the address and reads through it when this thread ends; the memory is a
    // box that is held, or forgotten, until then. The C library's own list of this thread is replaced,
    // and the thread takes no robust mutex of it.
    let done = unsafe { libc::syscall(libc::SYS_set_robust_list, std::ptr::from_ref(head), bytes) };
    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_orderly_end_clears_the_word() {
        let (_file, mapping) = Mapping::create(c"test", 4096).unwrap();
        let mapping = Arc::new(mapping);
        let held = Liveness::begin(Arc::clone(&mapping), 16).unwrap();
        assert!(is_alive(mapping.half_word(16).load(Ordering::SeqCst)));
        drop(held);
        assert!(!is_alive(mapping.half_word(16).load(Ordering::SeqCst)));
    }

    #[test]
    fn a_thread_that_ends_without_release_is_noticed_by_the_kernel() {
        let (_file, mapping) = Mapping::create(c"test", 4096).unwrap();
        let mapping = Arc::new(mapping);
        let inner = Arc::clone(&mapping);
        std::thread::spawn(move || {
            let node = RobustNode::hold(inner.half_word(16)).unwrap();
            assert!(is_alive(inner.half_word(16).load(Ordering::SeqCst)));
            std::mem::forget(node.memory);
        })
        .join()
        .unwrap();
        // The list is walked by the kernel before the thread can be joined.
        let word = mapping.half_word(16).load(Ordering::SeqCst);
        assert!(word & OWNER_DIED != 0 && !is_alive(word), "{word:#x}");
    }
}
