//! A catalogue as one file: the same when it is made a catalogue again, with numbers far above those of the backup; refused where a
//! byte of it is wrong.

use std::path::Path;

use meta::catalogue::Catalogue;
use meta::catalogue::backup::{BackupError, BackupReader, BackupWriter, restore};
use meta::{FileId, MetaError, Rights};
use wire::message::Bytes;
use wire::message::catalogue::MemberState;

use crate::fixture::{ALICE, BOB, Fixture, disk};

/// The file of a state, in blocks as the service fetches them.
fn written(catalogue: &Catalogue) -> Vec<u8> {
    let snapshot = catalogue.snapshot().unwrap();
    let head = snapshot.backup_head(1_795_120_382).unwrap();
    let mut writer = BackupWriter::new(Vec::new(), &head).unwrap();
    let mut after: Option<Vec<u8>> = None;
    loop {
        let rows = snapshot.rows_after(after.as_deref()).unwrap();
        let Some((last, _)) = rows.last() else {
            return writer.finish().unwrap().0;
        };
        after = Some(last.clone());
        let rows = rows.iter().map(|(key, value)| (&key[..], &value[..]));
        writer.rows(rows).unwrap();
    }
}

fn restored(bytes: &[u8], path: &Path) -> Result<u64, BackupError> {
    restore(path, &mut BackupReader::new(bytes)?)
}

/// Two servers on disks, a thousand files in ten directories.
fn fixture() -> Fixture {
    let mut f = Fixture::new(0);
    for identity in [1, 2] {
        let mut join = disk(None, Some(0));
        join.identity = Bytes(vec![identity; 32]);
        f.join(join);
    }
    for directory in 0..10 {
        let path = format!("/{directory}");
        f.by(ALICE, |b, c| b.mkdir(c, &path, 0o755).map(drop))
            .unwrap();
        for file in 0..100 {
            f.create(ALICE, &format!("{path}/{file}")).unwrap();
        }
    }
    f
}

#[test]
fn restored_catalogue_is_the_same_with_numbers_far_above() {
    let dir = testkit::TempDir::new();
    let path = dir.join("catalogue");
    let mut f = fixture();
    let file = f.open(ALICE, "/3/7", Rights::READ).unwrap().attributes.file;
    let bytes = written(&f.catalogue);
    // What happens afterwards is in no backup: a file, and starts of a server.
    let later = f.create(ALICE, "/later").unwrap();
    let members = f.catalogue.snapshot().unwrap().members().unwrap();
    let mut last = Some(members[0].incarnation);
    for _ in 0..5 {
        let mut join = disk(Some(0), last);
        join.identity = Bytes(vec![1; 32]);
        last = Some(f.join(join).incarnation);
    }
    let rows = restored(&bytes, &path).unwrap();
    assert!(rows > 2000, "{rows}");

    let mut again = Catalogue::open(&path).unwrap();
    let snapshot = again.snapshot().unwrap();
    assert_eq!(snapshot.check().unwrap(), []);
    let counts = snapshot.counts().unwrap();
    assert_eq!((counts.files, counts.directories), (1000, 11));
    assert_eq!(counts.restored_from_s, 1_795_120_382);
    let credentials = crate::fixture::who(BOB);
    let found = snapshot.stat(&credentials, "/3/7").unwrap();
    assert_eq!((found.file, found.owner), (file, ALICE));
    let gone = snapshot.stat(&credentials, "/later").unwrap_err();
    assert!(matches!(gone, MetaError::NotFound(_)), "{gone}");
    // A server that remembers something of the file has something older.
    let (before, now) = (f.catalogue.snapshot().unwrap(), &snapshot);
    let step = |s: &meta::catalogue::Snapshot| s.layout(file).unwrap().decode().unwrap().step;
    assert!(step(now) > step(&before) + 1000);
    let dead = snapshot.members().unwrap();
    assert!(dead.iter().all(|m| m.state == MemberState::Dead));

    // The server that was started since has everything still, and is given a start that nobody has had.
    let mut join = disk(Some(0), last);
    join.identity = Bytes(vec![1; 32]);
    let member = again.transact(|b| b.join(&join)).unwrap().unwrap();
    assert_eq!(
        Some(member.kept_since),
        before.members().unwrap().first().map(|m| m.kept_since)
    );
    assert!(member.incarnation > last.unwrap() + 1000);
    let lost = again.snapshot().unwrap().lost(file).unwrap();
    assert_eq!(lost, []);
    // One that runs on as it was is not taken, since its key is another one.
    join.continues = last;
    let refused = again.transact(|b| b.join(&join)).unwrap().unwrap_err();
    assert!(
        matches!(refused, MetaError::StaleIncarnation(_)),
        "{refused}"
    );
    // The number of a file that was made after the backup is not given out again.
    let caller = meta::catalogue::Caller {
        client: meta::ClientId(1),
        credentials: &crate::fixture::who(ALICE),
        now: meta::Time(1),
    };
    let created = again.transact(|b| b.create(&caller, "/new", &crate::fixture::plain()));
    let FileId(number) = created.unwrap().unwrap().file;
    assert!(number > later.0 + 1000, "{number}");
}

#[test]
fn backup_is_of_one_moment() {
    let dir = testkit::TempDir::new();
    let mut f = fixture();
    let snapshot = f.catalogue.snapshot().unwrap();
    let first = snapshot.rows_after(None).unwrap();
    let before = written(&f.catalogue);
    f.by(ALICE, |b, c| b.chmod(c, "/9/99", 0o600)).unwrap();
    f.create(ALICE, "/aaa").unwrap();
    assert_eq!(snapshot.rows_after(None).unwrap(), first);
    assert_ne!(written(&f.catalogue), before);
    restored(&before, &dir.join("catalogue")).unwrap();
    let again = Catalogue::open(&dir.join("catalogue")).unwrap();
    assert_eq!(again.snapshot().unwrap().counts().unwrap().files, 1000);
}

#[test]
fn what_is_wrong_is_refused_before_there_is_a_catalogue() {
    let dir = testkit::TempDir::new();
    let path = dir.join("catalogue");
    let mut f = Fixture::new(1);
    f.create(ALICE, "/file").unwrap();
    let bytes = written(&f.catalogue);
    // Each byte changed, each length cut.
    for at in 0..bytes.len() {
        let mut wrong = bytes.clone();
        wrong[at] ^= 0x10;
        let error = restored(&wrong, &path).unwrap_err();
        assert!(!matches!(error, BackupError::Io(_)), "byte {at}: {error}");
        assert!(!path.exists(), "byte {at}");
        let error = restored(&bytes[..at], &path).unwrap_err();
        let is_told = matches!(error, BackupError::Damaged(_) | BackupError::NoBackup);
        assert!(is_told, "cut at {at}: {error}");
    }
    assert!(!path.exists());
    let newer = [b"pario-backup 2\n", &bytes[15..]].concat();
    let error = restored(&newer, &path).unwrap_err();
    assert!(error.to_string().contains("later release"), "{error}");
    restored(&bytes, &path).unwrap();
    // What is there is not written over.
    let error = restored(&bytes, &path).unwrap_err();
    assert!(error.to_string().contains("exists already"), "{error}");
}
