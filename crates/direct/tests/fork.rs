//! A process that forks with files open: the child gets a clear error from every handle and has none of
//! the shared memory, and the parent goes on with slots and pages that are its own.
//!
//! It is here because forking takes unsafe code; the service is a real one.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use client::{Error, File};
use system_tests::files::{create, open, read, whole};
use system_tests::{Service, ServiceOptions};

const LEN: usize = 1 << 20;

fn service() -> Service {
    let mut options = ServiceOptions::new(2).direct(true);
    let on = ("PARIO_DIRECT".into(), "1".into());
    options.environment.push(on);
    options.start()
}

/// Runs something in a child of this process; what it returned, if it came to an end by itself.
fn in_child(run: impl FnOnce() -> u8) -> Option<i32> {
    // SAFETY: the child has this thread only. It uses what the C library keeps usable over a fork
    // (memory, system calls), and leaves without running anything of the parent's.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "{}", std::io::Error::last_os_error());
    if pid == 0 {
        // A panic must not unwind into the test.
        let run = std::panic::AssertUnwindSafe(run);
        let code = std::panic::catch_unwind(run).map_or(99, i32::from);
        // SAFETY: ends this process, nothing else.
        unsafe { libc::_exit(code) };
    }
    let mut status = 0;
    // SAFETY: waits for a child of this process, and writes to memory of this frame.
    let ended = unsafe { libc::waitpid(pid, &mut status, 0) };
    assert_eq!(ended, pid);
    libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status))
}

/// What a child can do with what its parent had open: nothing. Returns 0 if all is as it should be.
fn try_all(file: &File) -> u8 {
    let mut bytes = [0; 4096];
    let long = vec![9; LEN];
    let mut back = vec![0; LEN];
    let refused = [
        file.read_at(0, &mut bytes).err(),
        file.write_at(0, &[9; 4096]).err(),
        file.read_at(0, &mut back).err(),
        file.write_at(0, &long).err(),
        file.size().err(),
        file.resize(0).err(),
        file.sync().err(),
    ];
    if let Some(at) = refused.iter().position(|e| *e != Some(Error::Forked)) {
        return 1 + at as u8;
    }
    if bytes != [0; 4096] || back.iter().any(|b| *b != 0) {
        return 20;
    }
    // It has no mapping of what servers share.
    match std::fs::read_to_string("/proc/self/maps") {
        Ok(maps) if !maps.contains("/memfd:pario-") => 0,
        _ => 21,
    }
}

#[test]
fn forked_child_is_refused_and_its_parent_goes_on_directly() {
    let service = service();
    let client = service.client();
    let file = create(&client, "/f", "striped(64KiB) over 2");
    for _ in 0..2 {
        file.write_at(0, &whole(0, LEN, 1)).unwrap();
        assert!(read(&file, 0, 4096) == whole(0, 4096, 1));
        assert!(read(&file, 0, LEN) == whole(0, LEN, 1));
    }
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    assert!(maps.contains("/memfd:pario-page") && maps.contains("/memfd:pario-segment"));
    let before = client.direct_statistics();
    assert!(before.reads > 0 && before.writes > 0 && before.attached == 2);
    assert_eq!(in_child(|| try_all(&file)), Some(0));
    // Also one that gives up its copy of everything, in order.
    let (mut client, mut file) = (Some(client), Some(file));
    let is_dropped = in_child(|| {
        let code = file.as_ref().map_or(50, try_all);
        // Memory of its own, which may lie where the parent has what servers share.
        let own: Vec<Vec<u8>> = (0..200).map(|i| vec![i; LEN]).collect();
        let closed = file.take().map(|file| file.close());
        drop(client.take());
        let is_whole = |(i, bytes): (u8, &Vec<u8>)| bytes.iter().all(|b| *b == i);
        match closed {
            Some(Err(Error::Forked)) if (0..).zip(&own).all(is_whole) => code,
            _ => 30,
        }
    });
    assert_eq!(is_dropped, Some(0));
    let (client, file) = (client.unwrap(), file.unwrap());
    // The parent's handle, maps and page are as they were.
    assert!(read(&file, 0, LEN) == whole(0, LEN, 1));
    assert!(file.last_access().is_direct);
    file.write_at(0, &whole(0, LEN, 2)).unwrap();
    assert!(file.last_access().is_direct);
    let other = service.client();
    assert!(read(&open(&other, "/f"), 0, LEN) == whole(0, LEN, 2));
    let after = client.direct_statistics();
    assert_eq!(after.revoked, before.revoked);
    assert_eq!(after.maps_asked, before.maps_asked);
    assert_eq!(after.attached, 2);
}

#[test]
fn forks_while_other_threads_copy_disturb_no_copy() {
    let service = service();
    let client = service.client();
    let file = create(&client, "/f", "striped(64KiB) over 2");
    file.write_at(0, &whole(0, LEN, 1)).unwrap();
    file.write_at(0, &whole(0, LEN, 1)).unwrap();
    let done = &AtomicBool::new(false);
    let rounds = &[const { AtomicU64::new(0) }; 2];
    let file = &file;
    std::thread::scope(|scope| {
        let copies: Vec<_> = (rounds.iter())
            .map(|rounds| {
                scope.spawn(move || {
                    while !done.load(Ordering::Relaxed) {
                        assert!(read(file, 0, LEN) == whole(0, LEN, 1));
                        file.write_at(0, &whole(0, LEN, 1)).unwrap();
                        rounds.fetch_add(1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        // Both copy before anybody forks; one that fails is found below.
        let copies_all = || rounds.iter().all(|n| n.load(Ordering::Relaxed) > 0);
        while !copies_all() && !copies.iter().any(|copy| copy.is_finished()) {
            std::thread::yield_now();
        }
        let children: Vec<Option<i32>> = (0..20)
            .map(|_| in_child(|| u8::from(file.size() != Err(Error::Forked))))
            .collect();
        done.store(true, Ordering::Relaxed);
        for copy in copies {
            copy.join().unwrap();
        }
        assert!(children.iter().all(|c| *c == Some(0)), "{children:?}");
    });
    let counted = client.direct_statistics();
    assert_eq!(counted.revoked, 0);
    // No slot is left claimed: a change of the file waits for nobody.
    file.resize(0).unwrap();
    let look = |name: &str| -> u64 { service.counters(&client, name).iter().sum() };
    assert_eq!(
        (look("direct_claims_waited"), look("direct_claims_revoked")),
        (0, 0)
    );
}
