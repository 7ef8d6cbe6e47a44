//! Samples of what servers ask of each other.
//!
//! Joining for the first time and again, sizes with and without a truncate, both shapes of a state.

use wire::message::Bytes;
use wire::message::catalogue::{LocalAddress, MemberState, StoreKind};
use wire::message::cluster::*;
use wire::message::direct::SegmentIs;
use wire::message::file::SizeIs;
use wire::{ClientId, FileId, HandleId, ServerId, SizeState, Time};

use super::catalogue::{member, members};
use super::{Samples, two_pieces};

fn pointers() -> Vec<PointerIs> {
    let member = |client, request| PointerMember {
        client: ClientId(client),
        request,
        answer: 1 << 33,
    };
    vec![PointerIs {
        group: 3,
        position: 1 << 40,
        members: vec![member(7, 0), member(300, 12)],
    }]
}

pub(super) fn add(list: &mut Samples) {
    for (word, server, resumes, store) in [
        ("first", None, None, StoreKind::Memory),
        ("again", Some(ServerId(2)), Some(16), StoreKind::Disk),
    ] {
        let join = Join {
            server,
            resumes,
            continues: resumes.map(|_| u64::MAX),
            address: "unix:/tmp/größe/io-2.sock".into(),
            local: resumes.map(|_| LocalAddress {
                host: "0b0e 4026531840 node".into(),
                address: "unix:/tmp/io-2.sock".into(),
            }),
            store,
            capacity_bytes: 0,
            used_bytes: 1,
            distance: 300,
            identity: Bytes(resumes.map_or(vec![], |_| (32..64).collect())),
        };
        let joined = JoinAnswer {
            member: member(2, store, MemberState::Alive),
            key: Bytes((1..33).collect()),
            members: members(),
        };
        list.pair(word, join, joined);
    }
    let removal = |file| Removal {
        file: FileId(file),
        generation: 2,
        incarnation: 16,
        subfiles: if file == 1 { vec![] } else { vec![0, 300] },
    };
    let report = Report {
        capacity_bytes: 1 << 40,
        used_bytes: 1 << 39,
        load: 1 << 30,
        removed: vec![removal(1), removal(u64::MAX)],
    };
    let reported = ReportAnswer {
        removals: vec![removal(300)],
        members: members(),
    };
    list.pair("", report, reported);
    add_sizes(list);
    add_moves(list);
}

fn add_sizes(list: &mut Samples) {
    let file = FileId(1 << 21);
    let size = |truncate_to| SizeState {
        size: 1 << 45,
        epoch: 6,
        truncate_to,
    };
    let state = FileStateIs {
        layout: two_pieces(),
        size: size(Some(77)),
        owner: 1000,
        group: 100,
        mode: 0o600,
        directory: FileId(1),
        note: Bytes("/Maße f64[2,2]".into()),
    };
    list.pair("", FileState { file }, state);
    let report = ReportSize {
        file,
        epoch: 6,
        size: 1 << 45,
        modified: Time(-1),
    };
    list.pair("", report, size(None));
    let begin = BeginTruncate {
        client: ClientId(77),
        handle: HandleId(99),
        to: 0,
        request: 12,
    };
    list.pair("", begin, size(Some(0)));
    list.pair("", FinishTruncate { file, epoch: 7 }, size(None));
    let apply = ApplyTruncate {
        file,
        epoch: 7,
        to: 1,
    };
    list.pair("", apply, ());
    let end = EndIs {
        epoch: 7,
        end: falls::MAX_OFFSET,
        grows: true,
    };
    list.pair("", AskEnd { file }, end);
    list.pair("", Announce { file }, ());
    let files = vec![file, FileId(u64::MAX)];
    let sizes = vec![
        Some(SizeIs {
            size: falls::MAX_OFFSET,
            epoch: 3,
        }),
        None,
    ];
    list.pair("", AskSizes { files }, sizes);
}

fn add_moves(list: &mut Samples) {
    let file = FileId(5);
    let client = ClientId(128);
    list.pair("", Fence { client }, ());
    list.pair("", Tell { file, number: 127 }, ());
    list.pair("", AskNumber { file }, 128);
    let at_rest = SizeAtRest {
        size: 1 << 30,
        epoch: 2,
        end: (1 << 30) + 7,
    };
    add_windows(list, at_rest);
    list.pair("", TakeLayout { file }, ());
    list.pair("", Redomain { file }, ());
}

fn add_windows(list: &mut Samples, size: SizeAtRest) {
    let file = FileId(5);
    let range = |start| ByteRange {
        start,
        end: 1 << 41,
    };
    for (word, flag) in [("first", true), ("next", false)] {
        let fence = FenceWindows {
            file,
            from: 3,
            step: 4,
            moved: vec![range(0), range(1 << 40)],
            windows: if flag { vec![] } else { vec![range(77)] },
            round: 1 << 40,
            frees: if flag { vec![] } else { vec![range(3)] },
            hands_over: !flag,
            is_settling: flag,
            asks_size: flag,
        };
        let fenced = FenceAnswer {
            accesses: 300,
            size: size.clone(),
            pointers: if flag { vec![] } else { pointers() },
        };
        list.pair(word, fence, fenced);
    }
    let windows = || vec![range(1), range(1 << 39)];
    let pull = PullWindows {
        file,
        round: 9,
        step: 4,
        windows: windows(),
    };
    list.pair("", pull, 1 << 40);
    let lend = Lend {
        file,
        round: 9,
        step: 4,
        windows: windows(),
    };
    let lent = LendAnswer {
        extents: vec![LentExtent {
            store: 7,
            subfile: 1,
            offset: 2 << 20,
            len: 65536,
            segment: 5,
            at: 1 << 29,
        }],
        segments: vec![SegmentIs {
            segment: 5,
            bytes: 1 << 30,
            is_writable: false,
        }],
        gone: vec![u64::MAX],
    };
    list.pair("", lend, lent);
    let pointers = pointers();
    list.pair("", TakePointers { file, pointers }, ());
    let taken = TakeServerAnswer {
        number: 1 << 44 | 3,
        fenced: vec![ClientId(4), ClientId(9)],
    };
    list.pair("", TakeServer { file, start: None }, taken.clone());
    let start = Some(6);
    list.pair("started again", TakeServer { file, start }, taken);
}
