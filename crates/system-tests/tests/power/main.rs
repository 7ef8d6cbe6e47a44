//! The power of the host goes: all processes die, and the disk under manager and I/O servers loses what
//! no sync made durable ([`lossyfs`]). `kill -9` alone keeps the page cache, and a sync that does nothing would
//! pass every test of it.
//!
//! A promise is what an operation returned: names, layouts and sizes that were acknowledged are there, synced
//! bytes are there byte for byte, and every other byte is one that somebody wrote there, or nothing.
//!
//! It takes root and `/dev/fuse`; where they are missing the tests are skipped with the reason.

mod alive;
mod anywhen;
mod failed_sync;
mod ledger;
mod promises;
mod quota;
mod truncate;

use std::path::PathBuf;
use std::time::Duration;

use client::{Client, ConnectOptions};
use lossyfs::{Disk, Loss};
use rustix::process::{Pid, Signal, kill_process};
use system_tests::{Service, ServiceOptions, TempDir, until};

/// A host with a service and one disk under all of it.
struct Host {
    service: Service,
    disk: Disk,
    boots: u64,
    // Last, so that it is removed after the disk is gone.
    place: TempDir,
}

impl Host {
    /// Starts a service of disk servers; nothing where there can be no such disk, and that is said.
    fn start(servers: usize) -> Option<Host> {
        Host::start_with(servers, |options, _| options)
    }

    /// Starts a service of disk servers that write through.
    fn start_through(servers: usize) -> Option<Host> {
        let through = ["--writes", "through"];
        Host::start_with(servers, |options, _| options.io_arguments(through))
    }

    /// Starts one disk server that answers writes from its memory, which a keeper keeps in a place beside the disk.
    fn start_behind() -> Option<Host> {
        Host::start_with(1, |options, place| {
            let state = place.join("state");
            let state = state.to_str().expect("a name in UTF-8");
            options.io_arguments(["--writes", "behind", "--state", state])
        })
    }

    fn start_with(
        servers: usize,
        further: impl FnOnce(ServiceOptions, &TempDir) -> ServiceOptions,
    ) -> Option<Host> {
        if let Some(why) = lossyfs::lacks() {
            testkit::skipped(&why);
            return None;
        }
        let place = TempDir::new();
        let mount: PathBuf = place.join("disk");
        std::fs::create_dir(&mount).expect("a place for the disk");
        let disk = Disk::mount(&mount).expect("a disk");
        let options = ServiceOptions::new(servers).disk().directories(&mount);
        let mut options = further(options, &place);
        options.environment.push(("PARIO_BOOT".into(), "0".into()));
        Some(Host {
            service: options.start(),
            disk,
            boots: 0,
            place,
        })
    }

    /// The host dies, now or already, and comes back with what is left on its disk.
    #[track_caller]
    fn lose_power(&mut self, loss: Loss) {
        self.disk.cut();
        self.service.kill_all();
        self.kill_keepers();
        self.disk
            .restart(loss)
            .expect("the disk, without its users");
        self.boots += 1;
        self.service
            .set_variable("PARIO_BOOT", &self.boots.to_string());
        self.service.start_all();
        self.service.wait_for_members(self.service.servers());
    }

    /// Processes that hold the memory of servers die with their host, too.
    #[track_caller]
    fn kill_keepers(&self) {
        let place = self.place.path().as_os_str().as_encoded_bytes();
        let is_keeper = |process: &Pid| {
            let path = format!("/proc/{}/cmdline", process.as_raw_nonzero());
            let words = std::fs::read(path).unwrap_or_default();
            let has = |wanted: &[u8]| words.windows(wanted.len()).any(|part| part == wanted);
            has(b"\0keeper\0") && has(place)
        };
        let entries = std::fs::read_dir("/proc").expect("processes").flatten();
        let number = |entry: std::fs::DirEntry| entry.file_name().to_str()?.parse().ok();
        let processes = entries.filter_map(|entry| Pid::from_raw(number(entry)?));
        for keeper in processes.filter(is_keeper) {
            // It may have ended.
            let _ = kill_process(keeper, Signal::KILL);
            // Its memory goes first; until it is a zombie or gone it has files open.
            let path = format!("/proc/{}/stat", keeper.as_raw_nonzero());
            until("the end of a keeper", || {
                let stat = std::fs::read_to_string(&path);
                stat.map_or(true, |stat| stat.contains(") Z "))
            });
        }
    }

    /// All processes but keepers die and come back; the host and what it has in its page cache live on, but for what `loss` says.
    #[track_caller]
    fn lose_processes(&mut self, loss: Loss) {
        self.service.kill_all();
        self.disk
            .restart(loss)
            .expect("the disk, without its users");
        self.service.start_all();
        self.service.wait_for_members(self.service.servers());
    }

    /// How clients connect that give up soon.
    fn impatient(&self) -> ConnectOptions {
        let mut options = self.service.connect_options();
        options.timeout = Duration::from_secs(2);
        options.busy_timeout = Duration::from_secs(2);
        options
    }

    /// Such a client.
    #[track_caller]
    fn client(&self) -> Client {
        Client::connect(&self.service.url(), self.impatient()).expect("a client")
    }

    /// Neither the catalogue nor the stores have anything that does not fit.
    #[track_caller]
    fn assert_well(&self) {
        let findings = self.service.client().check().expect("check");
        assert!(findings.is_empty(), "{findings:?}");
        let output = self.service.pario().arg("doctor").output().expect("doctor");
        let said = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "pario doctor:\n{said}{errors}");
        assert!(
            said.contains("all is well"),
            "pario doctor:\n{said}{errors}"
        );
    }
}
