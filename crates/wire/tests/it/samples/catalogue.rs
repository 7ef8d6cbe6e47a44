//! Samples of names, attributes, layouts, named views and members.
//!
//! Paths leave ASCII, times lie on both sides of 1970, and every choice shows all its variants.

use wire::message::Bytes;
use wire::message::backup::*;
use wire::message::catalogue::*;
use wire::message::hints::HintSource;
use wire::message::trees::RemoveTree;
use wire::{FileId, HandleId, Rights, ServerId, Time};

use super::stamps::stamped;
use super::{Samples, irregular_view, nested_view, one_piece, place, two_pieces};

const PATH: &str = "/daten/Größe π/行列 🦀";

fn spec() -> LayoutSpec {
    LayoutSpec {
        array: Some("f64[4096,4096]".into()),
        layout: Some("(block, cyclic(64)) onto 2x4".into()),
    }
}

fn create() -> CreateOptions {
    CreateOptions {
        mode: 0o7777,
        exclusive: true,
        layout: spec(),
        expected: Expectation {
            size: Some(1 << 40),
            clients: Some(64),
            access_bytes: None,
            near: Some(ServerId(3)),
        },
        hints: vec![super::hints::given(HintSource::Program)],
        values: values(),
    }
}

fn values() -> Vec<NamedValue> {
    let value = |name: &str, bytes: &[u8]| NamedValue {
        name: name.into(),
        value: Bytes(bytes.to_vec()),
    };
    vec![value("Größe", b"{\"m\": 3}"), value("leer", b"")]
}

/// A file whose truncate is under way.
fn file() -> Attributes {
    Attributes {
        file: FileId(1 << 40),
        kind: Kind::File,
        owner: 1000,
        group: 100,
        mode: 0o640,
        accessed: Time(-1),
        modified: Time(i64::MIN),
        changed: Time(i64::MAX),
        size: 1 << 62,
        epoch: 5,
        truncate_to: Some(0),
        array: Some("u8[10]".into()),
        layout: Some("(block) onto 2".into()),
        generation: 3,
        is_linked: false,
        delete_on_close: true,
    }
}

fn directory() -> Attributes {
    Attributes {
        file: FileId(1),
        kind: Kind::Directory,
        owner: 0,
        group: 0,
        mode: 0o1777,
        accessed: Time(0),
        modified: Time(1),
        changed: Time(-2_208_988_800_000_000_000),
        size: 0,
        epoch: 0,
        truncate_to: None,
        array: None,
        layout: None,
        generation: 0,
        is_linked: true,
        delete_on_close: false,
    }
}

pub(super) fn member(server: u64, store: StoreKind, state: MemberState) -> Member {
    Member {
        server: ServerId(server),
        address: format!("tcp:[fe80::1]:{}", 4000 + server),
        local: (state == MemberState::Alive).then(|| LocalAddress {
            host: "0b0e 4026531840 node".into(),
            address: format!("unix:/dev/shm/io-{server}.sock"),
        }),
        incarnation: 17,
        kept_since: 5,
        store,
        capacity_bytes: 1 << 44,
        used_bytes: 12_345_678_901,
        distance: 2,
        state,
        is_draining: server == 1,
    }
}

pub(super) fn members() -> Vec<Member> {
    vec![
        member(1, StoreKind::Memory, MemberState::Alive),
        member(2, StoreKind::Disk, MemberState::Dead),
        member(3, StoreKind::Disk, MemberState::Left),
    ]
}

fn opened(rights: Rights) -> OpenAnswer {
    OpenAnswer {
        handle: HandleId(99),
        rights,
        is_new: rights == Rights::BOTH,
        attributes: file(),
        layout: two_pieces(),
        capability: Bytes((0..64).collect()),
        hints: vec![super::hints::given(HintSource::Directory)],
    }
}

pub(super) fn add(list: &mut Samples) {
    add_handles(list);
    add_names(list);
    add_layouts(list);
    add_cluster(list);
}

fn add_handles(list: &mut Samples) {
    let path = || PATH.to_owned();
    for (word, rights, create) in [
        ("nothing", Rights::NONE, None),
        ("read", Rights::READ, None),
        ("write", Rights::WRITE, Some(CreateOptions::default())),
        ("both", Rights::BOTH, Some(create())),
    ] {
        let options = OpenOptions {
            rights,
            append: rights == Rights::WRITE,
            unique: create.is_some().then_some(rights.bits().into()),
            delete_on_close: rights == Rights::BOTH,
            create,
        };
        let path = path();
        list.pair(word, Open { path, options }, opened(rights));
    }
    let reopen = Reopen {
        capability: Bytes(vec![1, 2, 3]),
        unique: Some(0),
    };
    list.pair("", reopen, opened(Rights::READ));
    let handle = HandleId(u64::MAX);
    for (word, is_counted) in [("counted", true), ("in-doubt", false)] {
        let close = Close { handle, is_counted };
        list.pair(word, close, CloseAnswer { is_removed: true });
    }
    list.pair("", RenewCapability { handle }, Bytes(vec![0; 3]));
    let made = CreateAnswer {
        file: FileId(300),
        is_new: true,
    };
    let options = create();
    let path = path();
    list.pair("", Create { path, options }, made);
}

fn add_names(list: &mut Samples) {
    let path = || PATH.to_owned();
    let mode = 0o755;
    list.pair("", Mkdir { path: path(), mode }, ());
    for (word, how) in [
        ("even-if-open", UnlinkHow::EvenIfOpen),
        ("unless-open", UnlinkHow::UnlessOpen),
    ] {
        list.pair(word, Unlink { path: path(), how }, ());
    }
    list.pair("", RemoveTree { path: path() }, ());
    list.pair("", Rmdir { path: path() }, ());
    let rename = Rename {
        from: path(),
        to: "/é/e\u{301}".into(),
    };
    list.pair("", rename, ());
    for (word, attributes, owner) in [
        ("file", file(), Some(place(3, 17))),
        ("directory", directory(), None),
    ] {
        let is_file = owner.is_some();
        let found = StatEntry {
            attributes,
            is_latest: is_file,
            owner,
        };
        let answer = StatAnswer {
            found: Some(found),
            stamped: is_file.then(stamped),
        };
        let ask = Stat {
            path: path(),
            with_latest_size: is_file,
            wants_stamps: is_file,
        };
        list.pair(word, ask, answer);
    }
    let missing = StatAnswer {
        found: None,
        stamped: Some(stamped()),
    };
    let ask = Stat {
        path: path(),
        with_latest_size: true,
        wants_stamps: true,
    };
    list.pair("missing", ask, missing);
    let entry = |name: &str, attributes: Option<Attributes>| Entry {
        name: name.into(),
        file: FileId(8),
        kind: attributes.as_ref().map_or(Kind::File, |a| a.kind),
        attributes,
    };
    let listing = Listing {
        entries: vec![
            entry("a", None),
            entry("ß", Some(directory())),
            entry("🦀", Some(file())),
        ],
        has_more: true,
        stamped: Some(stamped()),
    };
    let ask = List {
        path: path(),
        after: Some("\u{10ffff}".into()),
        limit: u32::MAX,
        with_attributes: true,
        wants_stamps: true,
    };
    list.pair("", ask, listing);
    list.pair("", Chmod { path: path(), mode }, ());
    let chown = Chown {
        path: path(),
        owner: Some(u32::MAX),
        group: None,
    };
    list.pair("", chown, ());
    for (word, accessed, modified) in [
        ("now", SetTime::Keep, SetTime::Now),
        (
            "given",
            SetTime::To(Time(-1_500_000_000)),
            SetTime::To(Time(i64::MIN)),
        ),
    ] {
        let utimes = Utimes {
            path: path(),
            accessed,
            modified,
        };
        list.pair(word, utimes, ());
    }
}

fn add_layouts(list: &mut Samples) {
    let path = || PATH.to_owned();
    let set_layout = SetLayout {
        path: path(),
        spec: spec(),
    };
    list.pair("", set_layout, one_piece());
    let answer = LayoutAnswer {
        file: FileId(12),
        array: None,
        text: "striped(1MiB) over 4 from 2".into(),
        state: two_pieces(),
        lost: vec![place(2, 300), place(1, 1)],
        distribution: "striped by the rule: 4 servers, größter freier Platz".into(),
    };
    list.pair("", GetLayout { path: path() }, answer);
    let by_views = LayOutByViews {
        handle: HandleId(1 << 33),
        handles: vec![HandleId(1 << 33), HandleId(7)],
        views: vec![nested_view(), irregular_view()],
    };
    let laid_out = LayOutAnswer {
        is_by_views: true,
        distribution: "views of 2 ranks".into(),
        state: one_piece(),
    };
    list.pair("", by_views, laid_out);
    let handle = HandleId(1 << 33);
    list.pair("", GetState { handle }, two_pieces());
    let subfile = SubfileIs {
        generation: 3,
        count: 200,
        view: nested_view(),
        places: vec![place(1 << 40, 7), place(3, 1)],
    };
    list.pair("", GetSubfile { handle, index: 150 }, subfile);
    for (word, view) in [("nested", nested_view()), ("irregular", irregular_view())] {
        let view = NamedView {
            text: "falls{…} als Sicht".into(),
            view,
        };
        let name = "Spalte 3".to_owned();
        let path = path();
        let put = PutView {
            path: path.clone(),
            name: name.clone(),
            view: view.clone(),
        };
        list.pair(word, put, ());
        list.pair(word, GetView { path, name }, view);
    }
    let name = String::new();
    list.pair("", RemoveView { path: path(), name }, ());
    let ask = ListViews {
        path: path(),
        after: None,
        limit: 0,
    };
    let change = ChangeValues {
        path: path(),
        put: values(),
        remove: vec!["alt".into()],
    };
    list.pair("", change, ());
    list.pair("", GetValues { path: path() }, values());
    let change = ChangeArray {
        path: path(),
        from: "f64[0,8]".into(),
        to: "f64[6,8]".into(),
    };
    let array = ArrayIs {
        is_changed: true,
        array: "f64[6,8]".into(),
    };
    list.pair("", change, array);
    let names = ["eins", "zwei"].map(|name| ViewName {
        name: name.into(),
        text: format!("(block, *) onto 4 # {name}"),
    });
    list.pair("", ask, names.into());
}

fn add_cluster(list: &mut Samples) {
    list.pair("", Members {}, members());
    let counts = Counts {
        files: 10_000,
        directories: 1,
        removals: u64::MAX,
        restored_from_s: 1_795_120_382,
        trees: 2,
        tree_names: 1 << 20,
        tree_directories: 5,
    };
    list.pair("", Count {}, counts);
    let findings = [Severity::Broken, Severity::Lost].map(|severity| Finding {
        severity,
        text: format!("{PATH} hat zwei Einträge"),
    });
    list.pair("", Check {}, findings.into());
    for (word, state, failure) in [
        ("moving", MoveState::Moving, ""),
        ("done", MoveState::Done, ""),
        ("failed", MoveState::Failed, "server 3: no space"),
        ("paused", MoveState::Paused, "by user 7"),
        ("waiting", MoveState::Waiting, "server 3 is away"),
        ("cancelling", MoveState::Cancelling, ""),
        ("cancelled", MoveState::Cancelled, ""),
    ] {
        let file = FileId(12);
        let progress = Progress {
            file,
            generation: 8,
            moved_bytes: 1 << 30,
            total_bytes: 1 << 31,
            rate_bytes: 5_000_000_000,
            lanes: 3,
            limit_bytes: 1 << 27,
            state,
            failure: failure.into(),
        };
        let relayout = Relayout {
            path: PATH.into(),
            layout: "(*, block) onto 7".into(),
            servers: vec![0, 300],
            options: MoveOptions {
                limit_bytes: 1 << 27,
                window_bytes: 1 << 24,
                lanes: 4,
                in_place: state == MoveState::Moving,
            },
        };
        list.pair(word, relayout, progress.clone());
        let moves = vec![MoveIs {
            path: PATH.into(),
            progress: progress.clone(),
        }];
        list.pair(word, ListMoves {}, moves);
        list.pair(word, RelayoutProgress { file }, progress);
    }
    add_controls(list);
}

fn add_controls(list: &mut Samples) {
    let file = FileId(12);
    for (word, what) in [
        ("pause", MoveControl::Pause),
        ("resume", MoveControl::Resume),
        ("cancel", MoveControl::Cancel),
        ("limit", MoveControl::Limit),
    ] {
        let control = ControlRelayout {
            file,
            what,
            limit_bytes: 1 << 20,
        };
        let progress = Progress {
            file,
            generation: 8,
            moved_bytes: 0,
            total_bytes: 1,
            rate_bytes: 0,
            lanes: 1,
            limit_bytes: 1 << 20,
            state: MoveState::Paused,
            failure: String::new(),
        };
        list.pair(word, control, progress);
    }
    let server = ServerId(300);
    for (word, is_over) in [("begin", false), ("over", true)] {
        let drain = Drain {
            server,
            is_over,
            options: MoveOptions::default(),
        };
        let draining = DrainAnswer {
            server,
            is_draining: !is_over,
            files: 9,
            bytes: 1 << 40,
            moves: 2,
            failure: "server 3 is away".into(),
        };
        list.pair(word, drain, draining.clone());
        list.pair(word, DrainProgress { server }, draining);
    }
    let rebalance = Rebalance {
        path: PATH.into(),
        is_trial: true,
        options: MoveOptions::default(),
    };
    let moves = vec![SubfileMove {
        file,
        path: PATH.into(),
        subfile: 3,
        from: server,
        to: ServerId(0),
        bytes: 1 << 33,
    }];
    list.pair("", rebalance, moves);
    let rows = [(1, "value"), (255, "")].map(|(tag, value)| CatalogueRow {
        key: Bytes(vec![tag, 0, 7]),
        value: Bytes(value.into()),
    });
    let part = BackupPart {
        backup: 3,
        catalogue_version: 5,
        at_s: 1_795_120_382,
        files: 10_000,
        directories: 2,
        rows: rows.into(),
    };
    let next = Backup {
        backup: 3,
        after: Bytes(vec![1, 0, 7]),
    };
    list.pair("", next, part);
}
