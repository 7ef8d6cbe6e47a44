//! Files that change their layout again and again while everybody uses them: no wrong byte, no lost synced
//! write.
//!
//! Workers are processes that read, write, append, cut and sync at random and compare every byte
//! (`system_tests::firing`), some directly, some by message, some through a gateway; others write and read one file
//! collectively (`choir`). The test moves their files from one random layout to the next, pauses and cancels
//! moves, renames and removes files, stops clients and lets them go on late, and kills clients, servers and the
//! metadata manager, which coordinates moves, at named points. Whoever takes the place of a client that was killed
//! compares what that one has left. At the end a fresh client compares everything once more, after a restart of
//! all servers where they have disks.

mod battle;
mod calm;
mod choir;
mod crashes;
mod meanwhile;
mod statements;

use std::path::PathBuf;
use std::process::Command;

use client::{Client, OpenOptions};
use control::moves::CLIENT_POINTS;
use system_tests::firing::{self, Left, SHARED};
use system_tests::plain_file::assert_bytes;
use system_tests::{Random, Service, ServiceOptions, Store, Worker};

/// Numbers of this run, printed so that it can be repeated.
fn seeded(what: u64) -> Random {
    eprintln!("PARIO_SEED={:#x}", system_tests::seed::seed());
    Random::of_run(9000 + what)
}

/// Where clients can die. Bytes that a disk has to have, or that are elsewhere, are written by message, never by a copy of
/// the client.
fn client_points(options: &ServiceOptions) -> Vec<&'static str> {
    let mut points = CLIENT_POINTS.to_vec();
    let is_apart = options
        .environment
        .iter()
        .any(|(name, value)| name == "PARIO_DIRECT" && value == "0");
    let copies = options.store == Store::Memory && !is_apart;
    points.retain(|point| copies || *point != "client_in_copy");
    points
}

/// All bytes of a file.
#[track_caller]
fn contents(client: &Client, path: &str) -> Vec<u8> {
    let how = OpenOptions::new().read();
    let file = client
        .open(path, &how)
        .unwrap_or_else(|e| panic!("{path}: {e}"));
    let mut bytes = vec![0xee; file.size().expect("a size") as usize];
    let n = file.read_at(0, &mut bytes).expect("read");
    assert_eq!(n, bytes.len(), "{path}: bytes read");
    bytes
}

/// Compares everything with what the workers say that it must be.
#[track_caller]
fn compare(client: &Client, dir: &str, stop: &std::path::Path, all: u64) {
    let shared = contents(client, &format!("{dir}/shared"));
    assert_eq!(shared.len() as u64, SHARED);
    let log = contents(client, &format!("{dir}/log"));
    let mut taken: Vec<(u64, u64)> = Vec::new();
    for me in 0..all {
        let left = Left::read(stop, me);
        let own = contents(client, &format!("{dir}/own-{me}"));
        assert_bytes(&own, &left.own, &format!("own file of {me}"));
        let view = firing::element(system_tests::seed::seed(), me, all);
        let range = view.bytes().segments(0..SHARED);
        let mine: Vec<u8> = range
            .flat_map(|s| &shared[s.start() as usize..s.end() as usize])
            .copied()
            .collect();
        assert_bytes(&mine, &left.shared, &format!("element {me}"));
        for (at, number) in left.log {
            let record = firing::record(me, number);
            let end = at + record.len() as u64;
            let found = log.get(at as usize..end as usize).unwrap_or(&[]);
            assert_bytes(found, &record, &format!("record {number} of {me} at {at}"));
            taken.push((at, end));
        }
    }
    taken.sort_unstable();
    for pair in taken.windows(2) {
        assert!(pair[0].1 <= pair[1].0, "two records at one place: {pair:?}");
    }
}

/// What workers use, and how they are told to stop.
struct Ground {
    dir: String,
    stop: PathBuf,
    kills: Option<PathBuf>,
    all: u64,
}

impl Ground {
    /// A directory with the files that all share.
    #[track_caller]
    fn new(service: &Service, all: u64, is_deadly: bool) -> Ground {
        let client = service.client();
        client.mkdir("/fire", None).expect("a directory");
        let new = OpenOptions::new().read().write().exclusive();
        let file = |name: &str, options: OpenOptions| {
            client
                .open(&format!("/fire/{name}"), &options)
                .expect("a new file")
        };
        // An array whose repetitions are longer than some windows and shorter than the file.
        let shared = file("shared", new.clone().array("u16[97,113]"));
        shared.resize(SHARED).expect("resized");
        shared.close().expect("closed");
        for me in 0..all {
            let own = file(&format!("own-{me}"), new.clone().array("u8[61,83]"));
            own.close().expect("closed");
        }
        file("log", new.clone()).close().expect("closed");
        file("atomic", new.clone()).close().expect("closed");
        let together = file("together", new);
        together.resize(choir::SIZE).expect("resized");
        together.close().expect("closed");
        Ground {
            dir: "/fire".into(),
            stop: service.dir().join("stop"),
            kills: is_deadly.then(|| service.dir().join("kills")),
            all,
        }
    }

    /// What a worker is told.
    fn order(&self, me: u64, seed: u64) -> String {
        let kills = self.kills.as_ref();
        let kills = kills.map_or(String::new(), |path| path.display().to_string());
        format!(
            "fire\t{}\t{me}\t{}\t{seed}\t{}\t{kills}",
            self.dir,
            self.all,
            self.stop.display()
        )
    }

    /// Starts workers, of which some go by message only and some through a gateway.
    fn open_fire(&self, service: &Service, random: &mut Random) -> Vec<Worker> {
        (0..self.all)
            .map(|me| {
                let mut worker = self.recruit(service, me);
                worker.send(&self.order(me, random.draw()));
                worker
            })
            .collect()
    }

    /// A worker that has connected.
    #[track_caller]
    fn recruit(&self, service: &Service, me: u64) -> Worker {
        self.recruit_for(service, me, None)
    }

    /// Starts a worker that dies when it gets to a point for the n-th time.
    #[track_caller]
    fn recruit_for(&self, service: &Service, me: u64, point: Option<&str>) -> Worker {
        let url = service.url().to_string();
        let is_direct = system_tests::service::is_direct() && !me.is_multiple_of(3);
        let mut command = Command::new(system_tests::programs::worker());
        command.arg(&url).env_remove("PARIO_SECRET");
        command.env("PARIO_DIRECT", if is_direct { "1" } else { "0" });
        // Of four one goes through a gateway.
        let is_through = me % 4 == 3;
        command.env("PARIO_MAPPING", if is_through { "buddy" } else { "" });
        if let Some(point) = point {
            command.env("PARIO_CRASH_AT", point);
        }
        let mut worker = Worker::of(&mut command);
        worker.answered();
        worker
    }

    /// Lets workers end; what each has done.
    #[track_caller]
    fn cease_fire(&self, workers: Vec<Worker>) {
        std::fs::write(&self.stop, "").expect("a file");
        for (me, mut worker) in workers.into_iter().enumerate() {
            match worker.answer() {
                Ok(done) => eprintln!("worker {me}: accesses, syncs, settled, moves: {done}"),
                Err(error) => panic!("worker {me}: {error}"),
            }
        }
        self.assert_good();
    }

    /// No worker has found anything wrong so far, also none that was killed since.
    #[track_caller]
    fn assert_good(&self) {
        for me in 0..self.all {
            if let Some(text) = firing::failure(&self.stop, me) {
                panic!("worker {me}: {text}");
            }
        }
    }

    /// Files that are moved: a path, and the array that it holds.
    fn paths(&self) -> Vec<(String, Option<(u64, u64)>)> {
        let mut paths = vec![
            (format!("{}/shared", self.dir), Some((97, 113))),
            (format!("{}/log", self.dir), None),
            (format!("{}/atomic", self.dir), None),
            (format!("{}/together", self.dir), None),
        ];
        let own = (0..self.all).map(|me| (format!("{}/own-{me}", self.dir), Some((61, 83))));
        paths.extend(own);
        paths
    }
}
