//! Samples of what clients ask of I/O servers about a file.
//!
//! A view is registered in all three ways: the whole file, in one part, in several.

use wire::message::Bytes;
use wire::message::file::*;
use wire::{FileId, HandleId, describe};

use super::{Samples, nested_view};

pub(super) fn add(list: &mut Samples) {
    add_views(list);
    add_sizes(list);
    add_pointers(list);
    add_locks(list);
    let view = 7;
    let scrubbed = ScrubAnswer {
        blocks: 1 << 20,
        damaged: 3,
    };
    list.pair("", Scrub { view }, scrubbed);
    let entries = [0, u32::MAX].map(|index| SubfileEntry {
        file: FileId(12),
        generation: 8,
        index,
        len: 1 << 33,
        allocated_bytes: 65536,
        state: SubfileState::Here,
    });
    let first = ListSubfiles {
        after: None,
        most: 1000,
    };
    let next = ListSubfiles {
        after: Some(SubfileName {
            file: FileId(12),
            generation: 8,
            index: 3,
        }),
        most: 1,
    };
    let some = |has_more| SubfileList {
        entries: entries.clone().into(),
        has_more,
    };
    list.pair("first", first, some(true));
    list.pair("next", next, some(false));
    let disk = DiskEntry {
        id: 0x1234_5678_9abc_def0,
        place: "/data/a".into(),
        state: DiskState::Missing,
        why: "the directory is empty".into(),
        subfiles: 7,
        free_bytes: 1 << 40,
        total_bytes: 1 << 41,
    };
    let disks = DiskList {
        disks: vec![disk],
        quarantined: vec!["/data/b/quarantine/x.sub".into()],
        conflicts: vec!["subfile 1.2.3 is there more than once".into()],
    };
    let subfile = SubfileName {
        file: FileId(12),
        generation: 8,
        index: 3,
    };
    for (word, is_removed) in [("aside", false), ("removed", true)] {
        let discard = Discard {
            subfile,
            is_removed,
        };
        list.pair(word, discard, "/data/b/quarantine/x.sub".to_owned());
    }
    list.pair("", ListDisks {}, disks);
}

fn add_views(list: &mut Samples) {
    let mut description = Vec::new();
    describe::put_view(&mut description, &nested_view());
    let (first, rest) = description.split_at(5);
    let set_view = |part: &[u8], bytes: usize| SetView {
        view: 7,
        file: FileId(12),
        capability: Bytes((0..64).collect()),
        description_bytes: bytes as u64,
        description: Bytes(part.to_vec()),
    };
    list.pair("file", set_view(&[], 0), ());
    list.pair("whole", set_view(&description, description.len()), ());
    list.pair("begun", set_view(first, description.len()), ());
    let part = SetViewPart {
        view: 7,
        part: Bytes(rest.to_vec()),
    };
    list.pair("", part, ());
    let verifiers = Verifiers { kept: 3, life: 4 };
    list.pair("", DropView { view: 7, maps: 300 }, verifiers);
}

fn add_sizes(list: &mut Samples) {
    let (view, epoch) = (7, 3);
    let verifiers = Verifiers {
        kept: 0x0123_4567_89ab_cdef,
        life: u64::MAX,
    };
    let size = || SizeIs {
        size: 1 << 34,
        epoch,
    };
    list.pair("", Size { view }, size());
    let end = 1 << 34;
    list.pair("", Grow { view, epoch, end }, size());
    let truncate = Truncate {
        view,
        handle: HandleId(99),
        to: 100,
        request: 12,
    };
    list.pair("", truncate, size());
    let size_bytes = falls::MAX_OFFSET;
    let preallocate = Preallocate {
        view,
        epoch,
        size: size_bytes,
    };
    list.pair("", preallocate, ());
    let keep_ahead = KeepAhead {
        view,
        epoch,
        size: 1 << 40,
    };
    list.pair("", keep_ahead, ());
    let punch = Punch {
        view,
        lo: 100,
        hi: 1 << 33,
        epoch,
        number: 5,
        is_through: true,
        version: Bytes(vec![1, 2]),
    };
    let punched = PunchAnswer {
        start: 6,
        verifier: verifiers.life,
    };
    list.pair("", punch, punched);
    list.pair("", Verify {}, verifiers);
    for (word, is_durable) in [("memory", false), ("disk", true)] {
        let synced = SyncAnswer {
            is_durable,
            verifiers,
        };
        list.pair(word, Sync { view }, synced);
    }
    list.pair("", Release { view }, ());
    list.pair("", Allocation { view }, 0);
    let request = 12;
    let reserve = Reserve {
        view,
        request,
        len: 4096,
    };
    let offset = 1 << 20;
    list.pair("", reserve, ReserveAnswer { offset, epoch });
    let appended = FinishAppend {
        view,
        request,
        epoch,
        end: (1 << 20) + 4096,
    };
    list.pair("", appended, size());
}

fn add_pointers(list: &mut Samples) {
    let (view, group) = (7, 0x1234_5678_9abc_def0);
    let join = JoinPointer {
        view,
        group,
        position: 1 << 50,
    };
    list.pair("", join, ());
    list.pair("", LeavePointer { view, group }, ());
    for (word, how, amount) in [
        ("add", PointerMove::Add, 512),
        ("to", PointerMove::To, u64::MAX),
        ("stay", PointerMove::Stay, 0),
    ] {
        let request = 13;
        let go = MovePointer {
            view,
            group,
            request,
            how,
            amount,
        };
        list.pair(word, go, 1 << 50);
    }
}

fn add_locks(list: &mut Samples) {
    let (view, handle, request) = (7, HandleId(99), 14);
    for (word, use_locks) in [("lease", false), ("locks", true)] {
        let number = 127 + u64::from(use_locks);
        let admitted = AdmitAnswer { number, use_locks };
        list.pair(word, Admit { view, handle }, admitted);
    }
    list.pair("", LeaveAtomic { view, handle }, ());
    for (word, is_exclusive) in [("shared", false), ("exclusive", true)] {
        let lock = Lock {
            view,
            handle,
            request,
            lo: 128,
            hi: 1 << 42,
            is_exclusive,
        };
        list.pair(word, lock, ());
    }
    list.pair("", Unlock { view, request }, ());
}
