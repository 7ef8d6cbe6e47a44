//! Types that were read, kept with the host's types as attributes.
//!
//! The value of the attribute is one reference to the type. The host calls [`forget`] when its type goes, or
//! when the value is replaced. Looking a type up takes one call of the host and allocates nothing.

use std::cell::RefCell;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use super::Type;
use crate::entry::Outcome;
use crate::ffi::Word;
use crate::host::Host;
use parking_lot::Mutex;

static KEY: OnceLock<Option<c_int>> = OnceLock::new();
/// Held from asking for a value until it has a reference of its own, so that no other thread replaces it
/// between.
static ASKING: Mutex<()> = Mutex::new(());

/// Raised whenever a type goes, and before its handle can mean another one.
static GONE: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The type that this thread asked for last, with the state of `GONE` before.
    static LAST: RefCell<Option<(Word, u64, Arc<Type>)>> = const { RefCell::new(None) };
}

/// The type that is kept with a handle; no call of the host if this thread asked for the same one before.
pub(super) fn find_again(host: &Host, handle: Word) -> Outcome<Option<Arc<Type>>> {
    let gone = GONE.load(Ordering::Acquire);
    let known = LAST.try_with(|last| match &*last.borrow() {
        Some((of, at, known)) if *of == handle && *at == gone => Some(Arc::clone(known)),
        _ => None,
    });
    if let Ok(Some(known)) = known {
        return Ok(Some(known));
    }
    let found = find(host, handle)?;
    let new = found.clone().map(|found| (handle, gone, found));
    // A thread that ends keeps nothing. What was there before is dropped when the cell is free again.
    let _before = LAST.try_with(|last| last.replace(new));
    Ok(found)
}

fn key(host: &Host) -> Option<c_int> {
    *KEY.get_or_init(|| host.type_keyval(forget).ok())
}

/// The type that is kept with a handle.
pub(super) fn find(host: &Host, handle: Word) -> Outcome<Option<Arc<Type>>> {
    let Some(key) = key(host) else {
        return Ok(None);
    };
    let _asking = ASKING.lock();
    let Some(value) = host.type_attribute(handle, key)? else {
        return Ok(None);
    };
    let kept = value as *const Type;
    // SAFETY: values under this key are references made by `keep`, which live until `forget`; that is not
    // called while the lock is held by another thread than one that replaces a value, and that one holds it.
    let kept = unsafe {
        Arc::increment_strong_count(kept);
        Arc::from_raw(kept)
    };
    Ok(Some(kept))
}

/// Keeps a type with a handle. If that fails it is read again next time.
pub(super) fn keep(host: &Host, handle: Word, read: &Arc<Type>) {
    let Some(key) = key(host) else { return };
    let _asking = ASKING.lock();
    let value = Arc::into_raw(Arc::clone(read));
    if host
        .set_type_attribute(handle, key, value as usize)
        .is_err()
    {
        // SAFETY: nobody else has this reference.
        drop(unsafe { Arc::from_raw(value) });
    }
}

/// The host's type goes, and with it what was kept.
extern "C" fn forget(_handle: Word, _key: c_int, value: *mut c_void, _extra: *mut c_void) -> c_int {
    GONE.fetch_add(1, Ordering::AcqRel);
    // SAFETY: the value is a reference made by `keep`, and the host gives it back once.
    drop(unsafe { Arc::from_raw(value as *const Type) });
    0
}
