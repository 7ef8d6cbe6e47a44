//! Space ahead of the length: made for clients that store, or asked for.
//!
//! What clients store there is checked with the other stores of bytes, in the module above.

use super::{Harness, identity, pattern, read, same};
use crate::{Error, Subfile};

/// Space is made ahead of what clients store, counts as far as they say, and the rest goes back.
pub(super) fn space_ahead_is_no_length(harness: &mut dyn Harness) {
    let store = harness.store();
    let subfile = store.create(&identity(1)).unwrap();
    subfile.reserve(0..4 << 20).unwrap();
    assert_eq!(subfile.len(), 0);
    let mapped = subfile.extents(0..4 << 20, 1000, 3).unwrap();
    assert!(!mapped.is_empty());
    assert!(mapped.iter().all(|l| subfile.let_store(l.offset, 3)));
    // Zeros that were written are as long as other bytes.
    subfile.stored_to(100_000).unwrap();
    subfile.mark_written(0..4 << 20).unwrap();
    assert_eq!(subfile.len(), 100_000);
    let used = store.usage().memory_bytes;
    subfile.trim();
    assert_eq!(store.usage().memory_bytes, used, "a client may store there");
    subfile.sync().unwrap();
    subfile.unmap(4);
    subfile.trim();
    let left = store.usage().memory_bytes;
    assert!(left <= 2 << 20, "{left} of {used} bytes are kept");
    assert_eq!(subfile.len(), 100_000);
    same(&read(&*subfile, 0..100_000), &vec![0; 100_000], "zeros");
    subfile.truncate(10).unwrap();
    assert_eq!(subfile.len(), 10);
}

/// Space that was asked for is no length, stays where other space ahead goes back, and goes back when it is not asked for any more.
pub(super) fn space_kept_ahead(harness: &mut dyn Harness) {
    let store = harness.store();
    let (reserves, frees) = (harness.reserves(), harness.frees());
    let counts = |subfile: &dyn Subfile, least: u64, most: u64, when: &str| {
        let bytes = subfile.allocated().unwrap();
        let least = if reserves { least } else { 0 };
        let most = if frees { most } else { u64::MAX };
        assert!((least..=most).contains(&bytes), "{bytes} bytes {when}");
    };
    let subfile = store.create(&identity(1)).unwrap();
    subfile.keep_ahead(4 << 20).unwrap();
    assert_eq!(subfile.len(), 0);
    subfile.trim();
    counts(&*subfile, 4 << 20, 6 << 20, "are kept");
    let bytes = pattern(0, 100_000, 3);
    subfile.write_at(1 << 20, &bytes).unwrap();
    assert_eq!(subfile.len(), (1 << 20) + 100_000);
    // A file that is cut goes on in the same space.
    subfile.truncate(10).unwrap();
    counts(&*subfile, 4 << 20, 6 << 20, "are kept behind a cut");
    subfile.write_at(1 << 20, &bytes).unwrap();
    subfile.sync().unwrap();
    // Less is kept, and then nothing.
    subfile.keep_ahead(3 << 20).unwrap();
    counts(&*subfile, 3 << 20, 5 << 20, "of less");
    subfile.keep_ahead(0).unwrap();
    counts(&*subfile, 1 << 20, (3 << 20) + (1 << 19), "are left");
    let mut expected = vec![0; 1 << 20];
    expected.extend_from_slice(&bytes);
    same(
        &read(&*subfile, 0..expected.len() as u64),
        &expected,
        "what was written",
    );
    let argument = subfile.keep_ahead(u64::MAX).unwrap_err();
    assert!(matches!(argument, Error::Argument { .. }), "{argument}");
    // One that is gone keeps nothing.
    store.remove(identity(1).id).unwrap();
    assert!(subfile.keep_ahead(1 << 20).is_err());
}
