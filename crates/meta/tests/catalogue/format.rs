//! The format on disk: images of every version are opened, newer ones are refused.
//!
//! `testdata/catalogue-v1.image` was written by [`write_image`] when version 1 was new. It is kept
//! as its 4 KiB pages that are not zero, each behind its number, since most of the file is zero.
//! A version without an image fails, and leaves one to be committed.

use std::path::PathBuf;

use meta::catalogue::{
    Caller, Catalogue, CreateOptions, Credentials, Finding, Identity, Join, Kind, LayoutSpec,
    Member, MoveRecord, MoveTarget, NamedValue, NamedView, OpenOptions, Snapshot, StoreKind,
    TreeSurvey, UnlinkHow, VERSION,
};
use meta::{ClientId, MetaError, Rights, ServerId, Time};
use redb::{ReadableTable, TableDefinition};

use crate::simulated::Disk;

const PAGE: usize = 4096;

fn image_path(version: u64) -> PathBuf {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    root.join(format!("../../testdata/catalogue-v{version}.image"))
}

fn pack(content: &[u8]) -> Vec<u8> {
    let mut out = (content.len() as u64).to_le_bytes().to_vec();
    for (number, page) in content.chunks(PAGE).enumerate() {
        if page.iter().any(|&b| b != 0) {
            out.extend((number as u64).to_le_bytes());
            out.extend(page);
        }
    }
    out
}

fn unpack(image: &[u8]) -> Vec<u8> {
    let number = |at: usize| u64::from_le_bytes(image[at..at + 8].try_into().unwrap()) as usize;
    let mut content = vec![0; number(0)];
    let mut at = 8;
    while at < image.len() {
        let start = number(at) * PAGE;
        let len = PAGE.min(content.len() - start);
        content[start..start + len].copy_from_slice(&image[at + 8..at + 8 + len]);
        at += 8 + len;
    }
    content
}

/// Something of everything.
pub(crate) fn write_image() -> Vec<u8> {
    let disk = Disk::default();
    let mut catalogue = Catalogue::open_on(disk.clone()).unwrap();
    let alice = Credentials::new(1001, 100);
    let caller = Caller {
        client: ClientId(1),
        credentials: &alice,
        now: Time(1_600_000_000_000_000_000),
    };
    let create = |array: Option<&str>, layout: Option<&str>| CreateOptions {
        mode: 0o640,
        exclusive: true,
        layout: LayoutSpec {
            array: array.map(str::to_owned),
            layout: layout.map(str::to_owned),
        },
        ..CreateOptions::default()
    };
    catalogue
        .transact(|b| -> Result<(), MetaError> {
            for store in [StoreKind::Disk, StoreKind::Memory] {
                b.join(&Join {
                    server: None,
                    resumes: None,
                    continues: None,
                    address: "tcp:io:7000".into(),
                    local: None,
                    store,
                    capacity_bytes: 1 << 40,
                    used_bytes: 1 << 30,
                    distance: 3,
                    identity: wire::message::Bytes::default(),
                })?;
            }
            b.mkdir(&caller, "/données", 0o750)?;
            let matrix = create(Some("f64[64,64]"), Some("(block, *) onto 2"));
            let file = b.create(&caller, "/données/matrix", &matrix)?.file;
            b.report_size(file, 0, 32768, Time(1_700_000_000_000_000_000))?;
            let rows = NamedView {
                text: "first row".into(),
                view: layout::View::new(layout::FileOffset(0), 32768, "{(0,511)}".parse().unwrap())
                    .unwrap(),
            };
            b.put_view(&caller, "/données/matrix", "row", &rows)?;
            let unit = NamedValue {
                name: "Einheit".into(),
                value: wire::message::Bytes(b"\"m/s\"".to_vec()),
            };
            b.change_values(&caller, "/données/matrix", &[unit], &[])?;
            let target = MoveTarget {
                layout: "(*, block) onto 2".into(),
                ..MoveTarget::default()
            };
            let mut record = MoveRecord {
                why: "by user 7".into(),
                is_paused: true,
                ..MoveRecord::default()
            };
            record.options.lanes = 2;
            record.options.limit_bytes = 1 << 20;
            let now = Time(1_600_000_000_000_000_000);
            b.begin_relayout(file, &target, 32768, record, now)?;
            b.advance_relayout(file, 2, Vec::from_iter([0..4096]).as_slice())?;
            b.set_draining(ServerId(1), true)?;
            b.create(&caller, "/bytes", &create(None, None))?;
            let options = OpenOptions {
                rights: Rights::BOTH,
                ..OpenOptions::default()
            };
            let handle = b.open(&caller, "/bytes", &options)?.handle;
            b.begin_truncate(&caller, handle, 77)?;
            b.create(&caller, "/gone", &create(None, Some("whole")))?;
            b.unlink(&caller, "/gone", UnlinkHow::EvenIfOpen)?;
            b.create(&caller, "/open", &create(None, Some("whole")))?;
            b.open(&caller, "/open", &options)?;
            b.unlink(&caller, "/open", UnlinkHow::EvenIfOpen)?;
            let done = Identity {
                client: ClientId(1 << 32),
                number: 9,
                kind: 7,
                is_repeated: false,
            };
            b.once(
                done,
                |b| Ok((b.mkdir(&caller, "/done", 0o755)?, b"as it was".into())),
                |_, _| unreachable!(),
            )?;
            // Removed, and not cleared yet.
            b.mkdir(&caller, "/tree", 0o755)?;
            b.mkdir(&caller, "/tree/below", 0o755)?;
            let root = Caller {
                credentials: &Credentials::ROOT,
                ..caller
            };
            b.remove_tree(&root, "/tree", &TreeSurvey::default())?;
            Ok(())
        })
        .unwrap()
        .unwrap();
    drop(catalogue);
    disk.content()
}

fn members_of(snapshot: &Snapshot) -> impl Iterator<Item = Member> {
    snapshot.members().unwrap().into_iter()
}

trait Ranges {
    fn map_ranges(&self) -> Vec<Vec<std::ops::Range<u64>>>;
}

impl Ranges for Vec<wire::Piece> {
    fn map_ranges(&self) -> Vec<Vec<std::ops::Range<u64>>> {
        self.iter().map(|p| p.ranges.clone()).collect()
    }
}

#[test]
fn every_version_is_read() {
    for version in 1..=VERSION {
        let path = image_path(version);
        if !path.exists() && version == VERSION {
            std::fs::write(&path, pack(&write_image())).unwrap();
            panic!("version {version} had no image; it is there now, to be committed");
        }
        let image = std::fs::read(path).unwrap();
        let mut catalogue = Catalogue::open_on(Disk::with(unpack(&image))).unwrap();
        let snapshot = catalogue.snapshot().unwrap();
        assert_eq!(snapshot.check().unwrap(), []);
        let root = Credentials::ROOT;
        let directory = snapshot.stat(&root, "/données").unwrap();
        assert_eq!(
            (
                directory.kind,
                directory.owner,
                directory.group,
                directory.mode
            ),
            (Kind::Directory, 1001, 100, 0o750)
        );
        let matrix = snapshot.stat(&root, "/données/matrix").unwrap();
        assert_eq!((matrix.size, matrix.epoch, matrix.mode), (32768, 0, 0o640));
        assert_eq!(matrix.array.as_deref(), Some("f64[64,64]"));
        assert_eq!(matrix.layout.as_deref(), Some("(block, *) onto 2"));
        assert_eq!(matrix.changed, Time(1_600_000_000_000_000_000));
        assert_eq!(matrix.modified, Time(1_700_000_000_000_000_000));
        let state = snapshot.layout(matrix.file).unwrap().decode().unwrap();
        let generations: Vec<u64> = state.pieces.iter().map(|p| p.generation).collect();
        assert_eq!(generations, [1, 2]);
        assert!(state.pieces.iter().all(|p| p.stores == [p.generation; 2]));
        let record = snapshot.move_record(matrix.file).unwrap();
        let draining: Vec<bool> = members_of(&snapshot).map(|m| m.is_draining).collect();
        // Version 1 knew neither steps nor how moves go on, and served from the first piece only.
        match version {
            1 => {
                assert_eq!(state.step, 1);
                assert_eq!(
                    state.pieces.map_ranges(),
                    [vec![0..32768], vec![32768..u64::MAX]]
                );
                assert_eq!(record, None);
                assert_eq!(draining, [false, false]);
            }
            _ => {
                assert_eq!(state.step, 3);
                assert_eq!(
                    state.pieces.map_ranges(),
                    [vec![4096..32768], vec![0..4096, 32768..u64::MAX]]
                );
                let record = record.unwrap();
                assert!(record.is_paused && record.why == "by user 7");
                assert_eq!(record.total_bytes, 32768);
                assert_eq!(record.options.limit_bytes, 1 << 20);
                assert_eq!(draining, [false, true]);
            }
        }
        // Version 4 knows which requests were done; what version 3 knew is dropped.
        let done = Identity {
            client: ClientId(1 << 32),
            number: 9,
            kind: 7,
            is_repeated: true,
        };
        let note = snapshot.note_of(done).unwrap();
        assert_eq!(note.as_deref(), (version >= 4).then_some(&b"as it was"[..]));
        let other = Identity { kind: 8, ..done };
        assert_eq!(snapshot.note_of(other).is_err(), version >= 4);
        let view = snapshot.view(&root, "/données/matrix", "row").unwrap();
        assert_eq!(
            (view.text.as_str(), view.view.bytes().size()),
            ("first row", 512)
        );
        // Version 5 keeps values with files.
        let values = snapshot.values(&root, "/données/matrix").unwrap();
        let values: Vec<_> = values
            .iter()
            .map(|v| (v.name.as_str(), &v.value.0[..]))
            .collect();
        match version {
            5.. => assert_eq!(values, [("Einheit", &b"\"m/s\""[..])]),
            _ => assert_eq!(values, []),
        }
        let bytes = snapshot.stat(&root, "/bytes").unwrap();
        // Images before version 5 were written when the size before a truncate was not kept yet.
        let told = match version {
            5.. => (0, 0, Some(77)),
            _ => (77, 1, Some(77)),
        };
        assert_eq!((bytes.size, bytes.epoch, bytes.truncate_to), told);
        let members = snapshot.members().unwrap();
        assert_eq!((members.len(), members[0].store), (2, StoreKind::Disk));
        assert_eq!(
            (members[1].capacity_bytes, members[1].distance),
            (1 << 40, 3)
        );
        // The file without a name went to no list yet: a client may still have it open.
        let counts = snapshot.counts().unwrap();
        assert_eq!(counts.files, 3);
        // Version 6 knows of trees that are to be cleared.
        let trees = u64::from(version >= 6);
        assert_eq!((counts.trees, counts.tree_directories), (trees, trees));
        drop(snapshot);
        while catalogue
            .transact(|b| b.clear_trees(Time(0)))
            .unwrap()
            .unwrap()
        {}
        assert_eq!(catalogue.snapshot().unwrap().counts().unwrap().trees, 0);
        assert_eq!(
            catalogue.transact(|b| b.end_recovery()).unwrap().unwrap(),
            1
        );
        let snapshot = catalogue.snapshot().unwrap();
        let waiting: usize = (0..2)
            .map(|s| snapshot.removals(ServerId(s), None, 9).unwrap().len())
            .sum();
        assert_eq!(waiting, 2);
    }
}

#[test]
fn image_round_trips_through_its_packed_form() {
    let content = write_image();
    assert_eq!(unpack(&pack(&content)), content);
}

/// The table of the catalogue.
type Table<'t> = redb::Table<'t, &'static [u8], &'static [u8]>;

/// Changes rows behind the catalogue's back.
fn tampered(change: impl FnOnce(&mut Table<'_>)) -> Disk {
    let disk = Disk::with(write_image());
    let db = redb::Database::builder()
        .create_with_backend(disk.clone())
        .unwrap();
    let txn = db.begin_write().unwrap();
    let rows: TableDefinition<'_, &'static [u8], &'static [u8]> = TableDefinition::new("catalogue");
    change(&mut txn.open_table(rows).unwrap());
    txn.commit().unwrap();
    drop(db);
    disk
}

fn format_row(version: u8) -> Vec<u8> {
    let mut row = vec![15];
    row.extend(b"pario catalogue");
    row.push(version);
    row
}

#[test]
fn newer_version_is_refused_clearly() {
    let disk = tampered(|rows| {
        let mut newer = format_row(VERSION as u8 + 1);
        newer.extend(b"whatever a newer version keeps here");
        rows.insert(&[0][..], &newer[..]).unwrap();
    });
    let before = disk.content();
    let error = Catalogue::open_on(disk.clone()).unwrap_err();
    let newer = VERSION + 1;
    assert_eq!(
        error,
        MetaError::NewerFormat {
            found: newer,
            known: VERSION
        }
    );
    assert!(error.to_string().contains("use a newer program"), "{error}");
    // Refused means untouched: the newer program finds its rows.
    let reopened = Catalogue::open_on(Disk::with(before)).unwrap_err();
    assert_eq!(reopened, error);
}

#[test]
fn other_databases_are_refused() {
    let disk = tampered(|rows| {
        rows.remove(&[0][..]).unwrap();
    });
    assert_eq!(
        Catalogue::open_on(disk).unwrap_err(),
        MetaError::NotACatalogue
    );
    let garbage = Disk::with(vec![0x5a; 10_000]);
    assert!(matches!(
        Catalogue::open_on(garbage),
        Err(MetaError::Store(_))
    ));
}

fn key(tag: u8, numbers: &[u64], name: &str) -> Vec<u8> {
    let mut key = vec![tag];
    for n in numbers {
        key.extend(n.to_be_bytes());
    }
    key.extend(name.as_bytes());
    key
}

#[test]
fn check_finds_rows_of_files_and_servers_that_are_not_there() {
    // Kind, its name, a file or server that may have such a row, and a row.
    let kinds: [(u8, &str, u64, &[u8]); 7] = [
        (9, "distribution", 4, &[0; 2]),
        (10, "move", 3, &[0; 8]),
        (12, "profile", 4, &[0; 6]),
        (13, "hints", 4, &[0; 3]),
        (14, "failed server", 1, &[0; 3]),
        (16, "identity", 1, b"any"),
        (17, "value", 4, b"any"),
    ];
    for (kind, name, there, row) in kinds {
        for number in [there, 77] {
            let disk = tampered(|rows| {
                rows.insert(&key(kind, &[number], "")[..], row).unwrap();
            });
            let catalogue = Catalogue::open_on(disk).unwrap();
            let findings = catalogue.snapshot().unwrap().check().unwrap();
            let is_stray = findings.contains(&Finding::Stray(format!("row `{name} {number}`")));
            assert_eq!(is_stray, number == 77, "{name} {number}: {findings:?}");
        }
    }
}

#[test]
fn check_finds_what_does_not_fit() {
    let expect = |words: &[&str], change: &dyn Fn(&mut Table<'_>)| {
        let catalogue = Catalogue::open_on(tampered(|rows| change(rows))).unwrap();
        let findings = catalogue.snapshot().unwrap().check().unwrap();
        let text: Vec<String> = findings.iter().map(ToString::to_string).collect();
        for word in words {
            assert!(text.iter().any(|t| t.contains(word)), "{word}: {text:?}");
        }
    };
    // Numbers: root 1, directory 2, matrix 3, bytes 4, gone 5, open 6.
    expect(&["entry `ghost` of file 1 leads nowhere"], &|rows| {
        rows.insert(&key(2, &[1], "ghost")[..], &[99][..]).unwrap();
    });
    expect(&["entry `again` of file 1 leads to file 4"], &|rows| {
        rows.insert(&key(2, &[1], "again")[..], &[4][..]).unwrap();
    });
    expect(&["file 4 has no name"], &|rows| {
        rows.remove(&key(2, &[1], "bytes")[..]).unwrap();
    });
    expect(&["file 4 has no readable layout"], &|rows| {
        rows.remove(&key(8, &[4], "")[..]).unwrap();
    });
    expect(
        &[
            "row `layout 4` cannot be read",
            "file 4 has no readable layout",
        ],
        &|rows| {
            rows.insert(&key(8, &[4], "")[..], &[1, 2, 3][..]).unwrap();
        },
    );
    expect(&["names server 1, which never joined"], &|rows| {
        rows.remove(&key(4, &[1], "")[..]).unwrap();
    });
    expect(&["row `view 77` belongs to no file"], &|rows| {
        let view = rows
            .get(&key(3, &[3], "row")[..])
            .unwrap()
            .unwrap()
            .value()
            .to_vec();
        rows.insert(&key(3, &[77], "row")[..], &view[..]).unwrap();
    });
    expect(&["row `node 4` cannot be read"], &|rows| {
        rows.insert(&key(1, &[4], "")[..], &[9][..]).unwrap();
    });
    expect(&["counter of files is wrong"], &|rows| {
        rows.insert(&[7, 5][..], &[50][..]).unwrap();
    });
    expect(&["counter of file numbers is wrong"], &|rows| {
        rows.insert(&[7, 0][..], &[3][..]).unwrap();
    });
    expect(&["file 2 cannot be reached"], &|rows| {
        // A directory in itself.
        let node = rows
            .get(&key(1, &[2], "")[..])
            .unwrap()
            .unwrap()
            .value()
            .to_vec();
        let mut own = node.clone();
        own[1] = 2;
        rows.insert(&key(1, &[2], "")[..], &own[..]).unwrap();
    });
    expect(&["row `transient 3` belongs to no file"], &|rows| {
        rows.insert(&key(6, &[3], "")[..], &[][..]).unwrap();
    });
}
