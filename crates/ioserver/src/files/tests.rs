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

/// The owner is told of growth, asks at once, is told that nothing grows here, and then the server hears that the
/// owner knew. Believing that, it would count growth that nobody asks for.
#[test]
fn an_announcement_that_an_answer_overtook_does_not_count() {
    let entry = FileEntry::new(FileId(1), 0, 1);
    let owner = wire::Place {
        server: 2,
        incarnation: 3,
    };
    let begun = entry.begin_announcement(owner).unwrap();
    entry.forget_announcement();
    assert!(!entry.end_announcement(owner, begun));
    assert!(!entry.is_announced());
    let begun = entry.begin_announcement(owner).unwrap();
    assert!(entry.end_announcement(owner, begun));
    assert!(entry.is_announced() && entry.begin_announcement(owner).is_none());
    let next = wire::Place {
        server: 4,
        incarnation: 1,
    };
    assert!(entry.begin_announcement(next).is_some());
}

#[test]
fn a_file_that_grew_by_message_is_said_to_grow_once() {
    let entry = FileEntry::new(FileId(1), 0, 1);
    assert!(!entry.take_grew());
    entry.grew();
    assert!(entry.take_grew() && !entry.take_grew());
}
