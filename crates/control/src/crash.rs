//! Places where a test can let a process die, stay for a while, or meet a bug.
//!
//! They exist in builds with debug assertions only. What is released has none: the build profile decides, not a
//! feature, which any crate of a workspace could switch on for all others. `tidy` looks after that.

/// Kills this process if a test wants it to die here: `PARIO_CRASH_AT` names the point, with `:n` for the n-th
/// time that it is passed. Keeps the thread here if `PARIO_STAY_AT` names the point, until there is a file with the name in
/// `PARIO_STAY_UNTIL`; one with `.reached` behind that name says that the thread is here.
#[inline]
pub fn crash_point(name: &str) {
    #[cfg(debug_assertions)]
    {
        wanted::crash(name);
        wanted::stay(name);
    }
    let _ = name;
}

/// Panics if a test wants a bug here: `PARIO_PANIC_AT` names the point, with `:n` for the n-th time that it is
/// passed.
#[inline]
pub fn panic_point(name: &str) {
    #[cfg(debug_assertions)]
    wanted::panic(name);
    let _ = name;
}

#[cfg(debug_assertions)]
mod wanted {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// A point that was named, and how often it was passed.
    struct CrashPoint {
        named: OnceLock<Option<(String, u64)>>,
        passed: AtomicU64,
    }

    impl CrashPoint {
        const fn new() -> CrashPoint {
            CrashPoint {
                named: OnceLock::new(),
                passed: AtomicU64::new(0),
            }
        }

        /// Whether it is to happen here and now.
        fn is_now(&self, variable: &str, name: &str) -> bool {
            let named = self.named.get_or_init(|| {
                let text = std::env::var(variable).ok()?;
                match text.rsplit_once(':') {
                    Some((name, n)) => Some((name.to_owned(), n.parse().ok()?)),
                    None => Some((text, 1)),
                }
            });
            let Some((point, times)) = named else {
                return false;
            };
            point == name && self.passed.fetch_add(1, Ordering::SeqCst) + 1 == *times
        }
    }

    pub(super) fn crash(name: &str) {
        static CRASH: CrashPoint = CrashPoint::new();
        if CRASH.is_now("PARIO_CRASH_AT", name) {
            std::process::abort();
        }
    }

    #[expect(clippy::disallowed_methods, reason = "another process makes the file")]
    pub(super) fn stay(name: &str) {
        static STAY: CrashPoint = CrashPoint::new();
        if STAY.is_now("PARIO_STAY_AT", name)
            && let Ok(file) = std::env::var("PARIO_STAY_UNTIL")
        {
            let _ = std::fs::write(format!("{file}.reached"), "");
            while !std::path::Path::new(&file).exists() {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
        }
    }

    pub(super) fn panic(name: &str) {
        static PANIC: CrashPoint = CrashPoint::new();
        assert!(
            !PANIC.is_now("PARIO_PANIC_AT", name),
            "a test wants a bug at {name}"
        );
    }
}
