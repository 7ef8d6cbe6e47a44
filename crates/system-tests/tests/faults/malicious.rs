//! A client of another, unprivileged user that forges its page, tries its descriptors for more than they
//! were given with, asks for nonsense, and never lets go. Servers and other clients go on, and it gets
//! nothing.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use client::{Client, OpenOptions};
use system_tests::files::whole;
use system_tests::process::holds;
use system_tests::{OpenHow, Service, Worker, programs, until};

use crate::{MIB, goes_on, make, pound, print_seed, service, stop_file, sum, timed};

/// A user who owns nothing.
const NOBODY: u32 = 65534;
const LEN: u64 = 4 * MIB;
const LAYOUTS: [&str; 2] = ["striped(64KiB) over 1", "striped(16KiB) over 1"];

/// A service with a file that everybody may read, one that is the malicious user's, one that is
/// neither, and somebody honest who uses them.
struct Scene {
    service: Service,
    client: Client,
    honest: Vec<Worker>,
    end: std::path::PathBuf,
}

impl Scene {
    fn new() -> Option<Scene> {
        if !rustix::process::getuid().is_root() {
            testkit::skipped("only root can become another user");
            return None;
        }
        print_seed();
        let service = service(1);
        let open_to_all = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(service.dir().path(), open_to_all).unwrap();
        let client = service.client();
        for (path, mode, tag) in [("/shown", 0o644, 1), ("/hidden", 0o600, 2)] {
            let options = OpenOptions::new().read().write().exclusive();
            let file = client
                .open(path, &options.mode(mode).layout(LAYOUTS[0]))
                .unwrap();
            file.write_at(0, &whole(0, LEN as usize, tag)).unwrap();
        }
        client.mkdir("/all", Some(0o777)).unwrap();
        client.chmod("/all", 0o777).unwrap();
        let end = stop_file(&service, "honest");
        let honest = [("/shown", "r", 2), ("/hidden", "w", 2), ("/hidden", "r", 3)];
        let honest = honest.map(|(path, how, tag)| {
            let mut worker = service.worker();
            worker.open(0, path, &OpenHow::new("rw"));
            worker.send(&pound(how, 0, LEN, tag, &end));
            worker
        });
        Some(Scene {
            honest: honest.into(),
            service,
            client,
            end,
        })
    }

    /// The malicious client, with maps of two files of its own: one for reading, one for both.
    fn malicious(&self) -> Worker {
        // Where anybody may run it, wherever this was built.
        let program = self.service.dir().join("malicious");
        if !program.exists() {
            std::fs::copy(programs::malicious(), &program).unwrap();
        }
        let mut command = Command::new(program);
        command.arg(self.service.url().to_string());
        command.uid(NOBODY).gid(NOBODY);
        let mut malicious = Worker::of(&mut command);
        let pid = malicious.answered();
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let user = status.lines().find(|l| l.starts_with("Uid:")).unwrap();
        assert!(!user.split_whitespace().skip(1).any(|u| u == "0"), "{user}");
        let hidden = malicious.try_ask("open\t3\t/hidden\tr").unwrap_err();
        assert!(hidden.contains("denied"), "{hidden}");
        malicious.ask("open\t2\t/all/own\trw");
        malicious.ask("open\t4\t/all/read\trw");
        // Their bytes come by message, from a client that keeps to the rules.
        for path in ["/all/own", "/all/read"] {
            let own = self.client.open(path, &OpenOptions::new().read().write());
            own.unwrap()
                .write_at(0, &whole(0, LEN as usize, 4))
                .unwrap();
        }
        malicious.ask("open\t1\t/all/read\tr");
        // It may read this one, but its memory has neighbours that may come to be hidden.
        malicious.ask("open\t5\t/shown\tr");
        let shown = malicious.try_ask("map\t5").unwrap_err();
        assert!(shown.contains("by message"), "{shown}");
        malicious.ask("map\t1");
        malicious.ask("map\t2");
        malicious
    }

    /// Changes everything that the malicious client has maps of, and what it has none of, with
    /// something of it before each change.
    fn change_all(&self, rounds: usize, mut before: impl FnMut()) {
        let rw = OpenOptions::new().read().write();
        let own = self.client.open("/all/own", &rw).unwrap();
        let other = self.client.open("/other", &rw.clone().create()).unwrap();
        // It may have grown what is its own to any size.
        let read = self.client.open("/all/read", &rw).unwrap();
        timed("truncate of what it reads", || read.resize(LEN).unwrap());
        for round in 0..rounds {
            let len = LEN + MIB * (round as u64 % 2);
            let layout = LAYOUTS[(round + 1) % 2];
            let relayout = |path: &str| self.client.relayout(path, layout).unwrap().wait().unwrap();
            before();
            timed("truncate of its own", || own.resize(len / 3).unwrap());
            before();
            timed("regrow of its own", || own.resize(len).unwrap());
            before();
            timed("relayout of what it reads", || relayout("/all/read"));
            before();
            timed("relayout of its own", || relayout("/all/own"));
            before();
            other.write_at(0, &whole(0, LEN as usize, 7)).unwrap();
            timed("truncate of another", || other.resize(0).unwrap());
        }
        other.close().unwrap();
        self.client.unlink("/other").unwrap();
    }

    /// All that is not its own is as it was, to those who copy and to those who ask.
    fn check(&mut self) {
        for worker in &self.honest {
            goes_on(worker, &self.end);
        }
        make(&self.end);
        for (worker, tag) in self.honest.iter_mut().zip(["1", "mixed", "2"]) {
            let said = worker.answered();
            let (_, seen) = said.split_once(' ').unwrap();
            assert_eq!(seen, tag, "{said}");
        }
        let by_message = self.service.connect_options().with_direct(false);
        let by_message = Client::connect(&self.service.url(), by_message).unwrap();
        for (path, tag) in [("/shown", 1), ("/hidden", 2)] {
            for client in [&self.client, &by_message] {
                let file = client.open(path, &OpenOptions::new().read()).unwrap();
                let mut bytes = vec![0; LEN as usize];
                file.read_at(0, &mut bytes).unwrap();
                assert!(bytes == whole(0, LEN as usize, tag), "{path}");
            }
        }
        assert!(self.service.io(0).is_running() && self.service.meta().is_running());
        // A handler that panics is a connection that ends, which clients make good.
        for log in [self.service.io(0).log(), self.service.meta().log()] {
            assert!(!log.contains("panicked at"), "{log}");
        }
    }

    /// Nothing is left of clients that are gone.
    fn check_leaks(&mut self) {
        let client = &self.client;
        client.unlink("/all/own").unwrap();
        client.unlink("/all/read").unwrap();
        client.unlink("/shown").unwrap();
        client.unlink("/hidden").unwrap();
        self.honest.clear();
        let of = |name: &str| sum(&self.service, client, name);
        until("pages of clients that are gone", || {
            of("direct_clients") == 1
        });
        assert_eq!(of("direct_quarantined_bytes"), 0);
        self.service.wait_for_nothing();
        // Freed outside of all locks, so a moment later.
        until("memory that files used", || of("memory_bytes") == 0);
        let pid = self.service.io(0).pid();
        until("descriptors of clients that are gone", || {
            let now = holds(pid);
            // Each once more for the keeper.
            now.of_kind("/memfd:pario-page") == 2 && now.of_kind("anon_inode:[pidfd]") <= 3
        });
    }
}

#[test]
fn malicious_client_gets_no_more_out_of_descriptors_than_they_were_given_with() {
    let Some(mut scene) = Scene::new() else {
        return;
    };
    let mut malicious = scene.malicious();
    eprintln!("{}", malicious.ask("reopen"));
    eprintln!("{}", malicious.ask("hostile\t200"));
    malicious.ask("punch");
    scene.change_all(1, || ());
    // Once more, with what came since.
    malicious.ask("reopen");
    scene.check();
    malicious.kill();
    scene.check_leaks();
}

#[test]
fn malicious_client_that_forges_its_page_delays_nobody_and_changes_nothing() {
    let Some(mut scene) = Scene::new() else {
        return;
    };
    let mut malicious = scene.malicious();
    let never = stop_file(&scene.service, "never");
    malicious.send(&format!("forge\t{}", never.display()));
    scene.change_all(2, || ());
    // Not before the server has met what is forged.
    until("claims that are forged", || {
        scene.change_all(1, || ());
        sum(&scene.service, &scene.client, "direct_claims_waited") > 0
    });
    scene.check();
    malicious.kill();
    scene.check_leaks();
}

#[test]
fn malicious_client_that_never_lets_go_delays_nobody_for_long() {
    let Some(mut scene) = Scene::new() else {
        return;
    };
    let mut malicious = scene.malicious();
    let revoked = || sum(&scene.service, &scene.client, "direct_claims_revoked");
    let mut slot = 10;
    scene.change_all(1, || {
        // Maps of the files as they are now, and claims of them that never end.
        slot += 2;
        malicious.ask(&format!("open\t{slot}\t/all/read\tr"));
        malicious.ask(&format!("open\t{}\t/all/own\trw", slot + 1));
        malicious.ask(&format!("map\t{slot}"));
        malicious.ask(&format!("map\t{}", slot + 1));
        malicious.ask("hold");
    });
    assert!(revoked() >= 4 * 16, "{} claims revoked", revoked());
    scene.check();
    malicious.kill();
    scene.check_leaks();
}

/// What was given stays given; what is written after the rights were taken away is elsewhere, and so are
/// files that it never had.
#[test]
fn malicious_client_sees_nothing_that_is_written_after_its_rights_were_taken_away() {
    let Some(mut scene) = Scene::new() else {
        return;
    };
    let rw = OpenOptions::new().read().write();
    let secret = rw.clone().exclusive().mode(0o600).layout(LAYOUTS[0]);
    let secret = scene.client.open("/all/secret", &secret).unwrap();
    secret.write_at(0, &whole(0, LEN as usize, 9)).unwrap();
    let mut malicious = scene.malicious();
    assert_ne!(malicious.ask("spy\t4"), "0", "what is its own");
    let file = scene.client.open("/all/own", &rw).unwrap();
    timed("another owner and mode", || {
        scene.client.chown("/all/own", Some(0), Some(0)).unwrap();
        scene.client.chmod("/all/own", 0o600).unwrap();
    });
    for tag in [7, 8] {
        file.write_at(0, &whole(0, LEN as usize, tag)).unwrap();
    }
    assert!(file.last_access().is_direct);
    let refused = malicious.try_ask("open\t20\t/all/own\tr").unwrap_err();
    assert!(refused.contains("denied"), "{refused}");
    // What it has open it may use on, by message: the memory is shared with the secret now.
    let refused = malicious.try_ask("map\t2").unwrap_err();
    assert!(refused.contains("by message"), "{refused}");
    for tag in [7, 8, 9] {
        assert_eq!(malicious.ask(&format!("spy\t{tag}")), "0", "tag {tag}");
    }
    scene.check();
    malicious.kill();
    scene.client.unlink("/all/secret").unwrap();
    drop(file);
    drop(secret);
    scene.check_leaks();
}
