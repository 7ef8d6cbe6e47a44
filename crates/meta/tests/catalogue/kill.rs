//! Real processes and a real file: `kill -9` in the middle of creates, and a second opener.
//!
//! The child is this test binary, started again with a variable that names the catalogue. It prints
//! a line for every file whose creation was acknowledged; the parent kills it after some lines and
//! finds all of them.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use meta::catalogue::{Caller, Catalogue, CreateOptions, Credentials, Join, Severity, StoreKind};
use meta::{ClientId, MetaError, Time};

const CHILD: &str = "PARIO_TEST_CATALOGUE";

/// A directory that goes with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("pario-{name}-{}", std::process::id()));
        // Of a process with the same number that was killed.
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn join(catalogue: &mut Catalogue) {
    let join = Join {
        server: None,
        resumes: None,
        continues: None,
        address: "unix:/io".into(),
        local: None,
        store: StoreKind::Disk,
        capacity_bytes: 0,
        used_bytes: 0,
        distance: 0,
        identity: wire::message::Bytes::default(),
    };
    catalogue.transact(|b| b.join(&join)).unwrap().unwrap();
}

/// Creates files until it is killed; does nothing when it is run as a test.
#[test]
fn child_that_acknowledges() {
    let Some(path) = std::env::var_os(CHILD) else {
        return;
    };
    let mut catalogue = Catalogue::open(Path::new(&path)).unwrap();
    let root = Credentials::ROOT;
    let caller = Caller {
        client: ClientId(1),
        credentials: &root,
        now: Time(0),
    };
    let from = catalogue.snapshot().unwrap().counts().unwrap().files;
    let mut out = std::io::stdout().lock();
    for i in from.. {
        catalogue
            .transact(|b| b.create(&caller, &format!("/f{i}"), &CreateOptions::default()))
            .unwrap()
            .unwrap();
        writeln!(out, "\nacknowledged f{i}").unwrap();
        out.flush().unwrap();
    }
}

#[test]
fn acknowledged_creates_survive_kill_9() {
    let scratch = Scratch::new("catalogue-kill");
    let path = scratch.0.join("catalogue");
    join(&mut Catalogue::open(&path).unwrap());
    let mut acknowledged = Vec::new();
    for lives in 1..=4 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["kill::child_that_acknowledges", "--exact", "--nocapture"])
            .env(CHILD, &path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut told = || {
            let line = lines.next()?.unwrap();
            Some(line.strip_prefix("acknowledged ").map(str::to_owned))
        };
        while acknowledged.len() < 15 * lives {
            acknowledged.extend(told().expect("the child goes on until it is killed"));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // What it said before it died counts too.
        while let Some(line) = told() {
            acknowledged.extend(line);
        }
        let catalogue = Catalogue::open(&path).unwrap();
        let snapshot = catalogue.snapshot().unwrap();
        for name in &acknowledged {
            let stat = snapshot.stat(&Credentials::ROOT, &format!("/{name}"));
            assert!(stat.is_ok(), "{name} was acknowledged: {stat:?}");
        }
        let files = snapshot.counts().unwrap().files;
        assert!(
            files <= acknowledged.len() as u64 + lives as u64,
            "{files} files"
        );
        let findings = snapshot.check().unwrap();
        assert!(
            findings.iter().all(|f| f.severity() != Severity::Broken),
            "{findings:?}"
        );
        // The one under way when it died may be there without having been told.
        acknowledged = (0..files).map(|i| format!("f{i}")).collect();
    }
}

#[test]
fn second_opener_is_refused() {
    let scratch = Scratch::new("catalogue-twice");
    let path = scratch.0.join("catalogue");
    let first = Catalogue::open(&path).unwrap();
    assert_eq!(Catalogue::open(&path).unwrap_err(), MetaError::AlreadyOpen);
    assert_eq!(MetaError::AlreadyOpen.status(), wire::Status::InUse);
    drop(first);
    assert_eq!(Catalogue::open(&path).unwrap().starts(), Ok(2));
}
