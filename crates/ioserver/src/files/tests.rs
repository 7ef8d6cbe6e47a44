//! Gates of many files: which are forgotten, and which are kept.
//!
//! What a gate lets in is tested through the server.

use super::*;

#[test]
fn gates_that_nobody_needs_are_forgotten_and_others_are_not() {
    let files = Entries::default();
    let before = |file: FileId| (u64::from(file.0 == 2), 1);
    let used = files.entry(FileId(1), before);
    files.entry(FileId(2), |_| (0, 1));
    files
        .entry(FileId(3), before)
        .fence(9, std::slice::from_ref(&(0..1)));
    for file in 10..3 * KEPT_GATES as u64 {
        files.entry(FileId(file), before);
        assert!(files.by_file.lock().len() <= KEPT_GATES);
    }
    for file in [1, 2, 3] {
        assert!(files.by_file.lock().contains_key(&FileId(file)), "{file}");
    }
    assert!(Arc::ptr_eq(&used, &files.entry(FileId(1), before)));
}
