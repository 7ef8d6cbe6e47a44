//! A catalogue with servers, and shorthands for the tests by example.
//!
//! Users are numbers; a client has the number of its user.

use crate::simulated::Disk;
use meta::catalogue::{
    Caller, Catalogue, CreateOptions, Credentials, Join, LayoutSpec, OpenOptions, OpenedFile,
    StoreKind,
};
use meta::{ClientId, FileId, MetaError, Rights, ServerId, Time};
use wire::Status;

pub(crate) const ALICE: u32 = 1001;
pub(crate) const BOB: u32 = 1002;

/// A catalogue with servers, and shorthands.
pub(crate) struct Fixture {
    pub(crate) disk: Disk,
    pub(crate) catalogue: Catalogue,
}

pub(crate) fn who(user: u32) -> Credentials {
    Credentials::new(user, user)
}

impl Fixture {
    pub(crate) fn new(servers: u64) -> Self {
        let disk = Disk::default();
        let mut fixture = Fixture {
            catalogue: Catalogue::open_on(disk.clone()).unwrap(),
            disk,
        };
        for _ in 0..servers {
            fixture.join(memory(None));
        }
        fixture
    }

    pub(crate) fn join(&mut self, join: Join) -> meta::catalogue::Member {
        self.catalogue.transact(|b| b.join(&join)).unwrap().unwrap()
    }

    /// One operation as a user.
    pub(crate) fn by<T>(
        &mut self,
        user: u32,
        work: impl FnOnce(&mut meta::catalogue::Batch<'_>, &Caller<'_>) -> Result<T, MetaError>,
    ) -> Result<T, MetaError> {
        let credentials = who(user);
        let caller = Caller {
            client: ClientId(u64::from(user)),
            credentials: &credentials,
            now: Time(1_000),
        };
        self.catalogue.transact(|b| work(b, &caller)).unwrap()
    }

    pub(crate) fn create(&mut self, user: u32, path: &str) -> Result<FileId, MetaError> {
        self.by(user, |b, c| b.create(c, path, &plain()))
            .map(|c| c.file)
    }

    pub(crate) fn open(
        &mut self,
        user: u32,
        path: &str,
        rights: Rights,
    ) -> Result<OpenedFile, MetaError> {
        let options = OpenOptions {
            rights,
            ..OpenOptions::default()
        };
        self.by(user, |b, c| b.open(c, path, &options))
    }

    pub(crate) fn names(&self, path: &str) -> Vec<String> {
        let listing = self
            .catalogue
            .snapshot()
            .unwrap()
            .list(&Credentials::ROOT, path, None, 1000)
            .unwrap();
        listing.entries.into_iter().map(|e| e.name).collect()
    }

    pub(crate) fn status(&self, user: u32, path: &str) -> Status {
        match self.catalogue.snapshot().unwrap().stat(&who(user), path) {
            Ok(_) => Status::Ok,
            Err(e) => e.status(),
        }
    }

    pub(crate) fn restart(self) -> Self {
        drop(self.catalogue);
        Fixture {
            catalogue: Catalogue::open_on(self.disk.clone()).unwrap(),
            disk: self.disk,
        }
    }

    pub(crate) fn removals(&self, server: u64) -> Vec<(u64, u64)> {
        let snapshot = self.catalogue.snapshot().unwrap();
        let list = snapshot.removals(ServerId(server), None, 100).unwrap();
        list.iter().map(|r| (r.file.0, r.generation)).collect()
    }

    #[track_caller]
    pub(crate) fn clean(&self) {
        assert_eq!(self.catalogue.snapshot().unwrap().check().unwrap(), []);
    }
}

pub(crate) fn plain() -> CreateOptions {
    CreateOptions {
        mode: 0o644,
        ..CreateOptions::default()
    }
}

pub(crate) fn laid_out(array: Option<&str>, layout: Option<&str>) -> CreateOptions {
    CreateOptions {
        mode: 0o644,
        exclusive: false,
        layout: LayoutSpec {
            array: array.map(str::to_owned),
            layout: layout.map(str::to_owned),
        },
        ..CreateOptions::default()
    }
}

pub(crate) fn memory(server: Option<u64>) -> Join {
    Join {
        server: server.map(ServerId),
        resumes: None,
        continues: None,
        address: "unix:/run/io".into(),
        local: None,
        store: StoreKind::Memory,
        capacity_bytes: 1 << 30,
        used_bytes: 0,
        distance: 1,
        identity: wire::message::Bytes::default(),
    }
}

pub(crate) fn disk(server: Option<u64>, resumes: Option<u64>) -> Join {
    Join {
        resumes,
        store: StoreKind::Disk,
        ..memory(server)
    }
}

#[track_caller]
pub(crate) fn refused<T: std::fmt::Debug>(result: Result<T, MetaError>, status: Status) {
    let error = result.unwrap_err();
    assert_eq!(error.status(), status, "{error}");
    assert!(!error.to_string().is_empty());
}
