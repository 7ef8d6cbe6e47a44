//! What a process has: made when it is first asked for, and anew in a child that was forked off.
//!
//! A child begins with nothing. What its parent had stays where it is: memory of the parent's threads may be half changed, and locks
//! that they held at the fork are never released.
//!
//! Invariant: no lock that another thread held at the fork is ever taken.
//!
//! Cost: two loads.

use std::sync::Once;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// Forks that lie between the first process and this one.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// What a child does first.
extern "C" fn forked() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// Forks that lie between the first process that asked and this one.
#[inline]
pub fn forks() -> u32 {
    FORKS.load(Ordering::Relaxed)
}

/// See the [module](self).
#[derive(Debug)]
pub struct PerProcess<T: 'static> {
    kept: AtomicPtr<Generation<T>>,
    make: fn() -> T,
}

#[derive(Debug)]
struct Generation<T> {
    forks: u32,
    value: T,
}

impl<T: Send + Sync> PerProcess<T> {
    /// Made by a function in each process.
    pub const fn new(make: fn() -> T) -> Self {
        PerProcess {
            kept: AtomicPtr::new(std::ptr::null_mut()),
            make,
        }
    }

    /// That of this process.
    #[inline]
    pub fn get(&'static self) -> &'static T {
        // SAFETY: what was stored is never freed.
        match unsafe { self.kept.load(Ordering::Acquire).as_ref() } {
            Some(kept) if kept.forks == forks() => &kept.value,
            _ => self.renew(),
        }
    }

    #[cold]
    fn renew(&'static self) -> &'static T {
        static WATCH: Once = Once::new();
        WATCH.call_once(|| {
            // SAFETY: the function changes an atomic only, which is allowed in a child.
            unsafe { libc::pthread_atfork(None, None, Some(forked)) };
        });
        let now = forks();
        let old = self.kept.load(Ordering::Acquire);
        // SAFETY: what was stored is never freed.
        if let Some(kept) = unsafe { old.as_ref() }
            && kept.forks == now
        {
            return &kept.value;
        }
        let new = Box::into_raw(Box::new(Generation {
            forks: now,
            value: (self.make)(),
        }));
        match self
            .kept
            .compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire)
        {
            // SAFETY: it is stored now, and never freed.
            Ok(_) => unsafe { &(*new).value },
            Err(other) => {
                // SAFETY: nobody else has seen the new one.
                drop(unsafe { Box::from_raw(new) });
                // SAFETY: what was stored is never freed; another thread of this process has stored it.
                unsafe { &(*other).value }
            }
        }
    }
}
