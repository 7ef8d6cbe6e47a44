//! Noticing the death of processes: children of the test that live until they are killed.
//!
//! A child reads from a pipe that the test holds, so none outlives it.

use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use serving::Watch;

const WAIT: Duration = Duration::from_secs(30);

struct Victim(Child);

impl Victim {
    fn start() -> Victim {
        let child = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn();
        Victim(child.unwrap())
    }

    fn pid(&self) -> u64 {
        u64::from(self.0.id())
    }

    /// Kills it; it stays a zombie until the test takes notice.
    fn kill(&mut self) {
        self.0.kill().unwrap();
    }

    fn bury(&mut self) {
        self.0.wait().unwrap();
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn telling(sender: &Sender<u32>, what: u32) -> impl FnOnce() + Send + use<> {
    let sender = sender.clone();
    move || {
        let _ = sender.send(what);
    }
}

/// Nothing was told, and nobody is left who could tell anything.
fn is_silent(told: &Receiver<u32>) {
    assert_eq!(told.recv_timeout(WAIT), Err(RecvTimeoutError::Disconnected));
}

#[test]
fn a_killed_process_is_told_of_once() {
    let watch = Watch::start().unwrap();
    let (sender, told) = channel();
    let mut victims: Vec<Victim> = (0..3).map(|_| Victim::start()).collect();
    for (i, victim) in victims.iter().enumerate() {
        let tell = telling(&sender, i as u32);
        watch.add(i as u64, victim.pid(), tell).unwrap();
    }
    for i in [1, 0, 2] {
        // A zombie is dead already; that it is waited for later changes nothing.
        victims[i].kill();
        assert_eq!(told.recv_timeout(WAIT), Ok(i as u32));
        victims[i].bury();
    }
    drop(sender);
    is_silent(&told);
}

#[test]
fn a_process_that_is_dead_already_is_told_of_at_once() {
    let watch = Watch::start().unwrap();
    let (sender, told) = channel();
    let mut gone = Victim::start();
    gone.kill();
    gone.bury();
    watch.add(1, gone.pid(), telling(&sender, 1)).unwrap();
    // No waiting: it was told before `add` returned.
    assert_eq!(told.try_recv(), Ok(1));
    let mut zombie = Victim::start();
    zombie.kill();
    watch.add(2, zombie.pid(), telling(&sender, 2)).unwrap();
    assert_eq!(told.recv_timeout(WAIT), Ok(2));
    drop(sender);
    is_silent(&told);
}

#[test]
fn after_remove_nothing_is_told() {
    let watch = Watch::start().unwrap();
    let (sender, told) = channel();
    let (mut removed, mut kept) = (Victim::start(), Victim::start());
    watch.add(1, removed.pid(), telling(&sender, 1)).unwrap();
    watch.add(2, kept.pid(), telling(&sender, 2)).unwrap();
    watch.remove(1);
    watch.remove(77);
    removed.kill();
    removed.bury();
    kept.kill();
    assert_eq!(told.recv_timeout(WAIT), Ok(2));
    drop(sender);
    is_silent(&told);
}

#[test]
fn a_second_watch_of_a_key_replaces_the_first() {
    let watch = Watch::start().unwrap();
    let (sender, told) = channel();
    let (mut first, mut second) = (Victim::start(), Victim::start());
    watch.add(1, first.pid(), telling(&sender, 1)).unwrap();
    watch.add(1, second.pid(), telling(&sender, 2)).unwrap();
    first.kill();
    second.kill();
    assert_eq!(told.recv_timeout(WAIT), Ok(2));
    // Also one that is told at once.
    let mut third = Victim::start();
    watch.add(1, third.pid(), telling(&sender, 3)).unwrap();
    first.bury();
    watch.add(1, first.pid(), telling(&sender, 4)).unwrap();
    assert_eq!(told.try_recv(), Ok(4));
    third.kill();
    third.bury();
    drop(sender);
    is_silent(&told);
}

#[test]
fn a_callback_that_panics_does_not_silence_the_others() {
    let watch = Watch::start().unwrap();
    let (sender, told) = channel();
    let (mut first, mut second) = (Victim::start(), Victim::start());
    let tell = telling(&sender, 1);
    let panics = move || {
        tell();
        panic!("as the test wants it");
    };
    watch.add(1, first.pid(), panics).unwrap();
    watch.add(2, second.pid(), telling(&sender, 2)).unwrap();
    first.kill();
    assert_eq!(told.recv_timeout(WAIT), Ok(1));
    second.kill();
    assert_eq!(told.recv_timeout(WAIT), Ok(2));
}

#[test]
fn a_watch_that_is_dropped_tells_nobody() {
    let watch = Watch::start().unwrap();
    let (sender, told) = channel();
    let victim = Victim::start();
    watch.add(1, victim.pid(), telling(&sender, 1)).unwrap();
    drop((watch, sender));
    is_silent(&told);
}

#[test]
fn a_number_that_is_no_process_is_refused() {
    let watch = Watch::start().unwrap();
    for pid in [0, u64::MAX] {
        let error = watch.add(1, pid, || panic!("nobody died")).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    }
}
