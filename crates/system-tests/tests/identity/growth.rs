//! One file, two hosts: clients that store directly, that send messages on the host of the servers, and that are on another host grow,
//! append, truncate, punch, look, sync and close, one after the other. The model is a plain vector of bytes: a size or a
//! byte that one of them was told is never taken back.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdin, Stdio};

use system_tests::worker::{OpenHow, Worker};
use system_tests::{Random, digest, pattern_byte, programs};
use testkit::hosts::Hosts;

use crate::site::Site;

const LAYOUTS: [&str; 4] = [
    "striped(64KiB) over 2",
    "striped(1000) over 2",
    "striped(1MiB) over 1",
    "whole",
];

/// Servers of a job on the first host, as long as this lives.
struct Job {
    child: Child,
    input: Option<ChildStdin>,
    /// What a process of the job has in its environment.
    variables: Vec<(String, String)>,
}

impl Job {
    fn start(site: &Site) -> Job {
        let say = "env | grep ^PARIO_; echo; exec cat";
        let run = [
            "run",
            "--job",
            "--network",
            "--servers",
            "2",
            "--memory",
            "256MiB",
        ];
        let mut command = site.pario(0, &run);
        command.args(["--", "sh", "-c", say]);
        command.env("PARIO_JOB_ADDRESS", Hosts::address(0));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("pario starts");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let lines = lines.map(|line| line.expect("a line"));
        let said = lines.take_while(|line| !line.is_empty());
        let pair = |line: String| {
            let (name, value) = line.split_once('=').expect("a variable");
            (name.to_owned(), value.to_owned())
        };
        Job {
            variables: said.map(pair).collect(),
            input: child.stdin.take(),
            child,
        }
    }

    fn variable(&self, name: &str) -> &str {
        let found = self.variables.iter().find(|(n, _)| n == name);
        &found.unwrap_or_else(|| panic!("no {name}")).1
    }

    /// A client on the host of the servers.
    fn near(&self, site: &Site, direct: &str) -> Worker {
        let mut command = site.on(0, &programs::worker());
        command.arg(self.variable("PARIO_URL"));
        command.envs(self.variables.iter().map(|(n, v)| (n, v)));
        connected(command.env("PARIO_DIRECT", direct))
    }

    /// A client on the other host, which knows the address and the secret.
    fn far(&self, site: &Site) -> Worker {
        let secret = site.secret("secret");
        std::fs::write(&secret, self.variable("PARIO_JOB_SECRET")).expect("written");
        let mut command = site.on(1, &programs::worker());
        command.arg(self.variable("PARIO_JOB_MANAGER"));
        connected(command.env("PARIO_SECRET", &secret))
    }

    fn end(mut self) {
        self.input = None;
        assert!(self.child.wait().expect("it was started").success());
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn connected(command: &mut std::process::Command) -> Worker {
    let mut worker = Worker::of(command.env("PARIO_TIMEOUT", "10"));
    worker.answered();
    worker
}

/// One random program.
fn run(workers: &mut [Worker], path: &str, random: &mut Random) {
    let layout = LAYOUTS[random.index(LAYOUTS.len())];
    let how = OpenHow::new("rwc").layout(Some(layout));
    for worker in workers.iter_mut() {
        worker.open(0, path, &how);
    }
    workers[0].ask(&format!("chmod\t{path}\t666"));
    let mut model: Vec<u8> = Vec::new();
    for step in 1..=120u64 {
        let who = random.index(workers.len());
        let worker = &mut workers[who];
        let end = model.len() as u64;
        let what = format!("{path}, {layout}, step {step}, client {who}, {end} bytes");
        let write = |worker: &mut Worker, model: &mut Vec<u8>, at: u64, len: u64| {
            worker.fill(0, at, len, step);
            let stop = (at + len) as usize;
            model.resize(model.len().max(stop), 0);
            for x in at..at + len {
                model[x as usize] = pattern_byte(step, x);
            }
        };
        match random.below(16) {
            0..=5 => {
                let gap = [0, 0, 0, 1, 70_000][random.index(5)];
                let len = [1, 100, 4096, 4096, 70_000, 300_000][random.index(6)];
                write(worker, &mut model, end + gap, len);
            }
            6 | 7 => {
                let at = random.below(end + 1);
                write(worker, &mut model, at, 1 + random.below(20_000));
            }
            8 => {
                let len = 1 + random.below(5000);
                let at = worker.ask(&format!("append\t0\t{len}\t{step}"));
                assert_eq!(at, end.to_string(), "{what}");
                model.extend((0..len).map(|k| pattern_byte(step, k)));
            }
            9 => {
                let to = random.below(end + 100_000);
                worker.ask(&format!("resize\t0\t{to}"));
                model.resize(to as usize, 0);
            }
            10 | 11 => {
                let (lo, len) = (random.below(end + 10), random.below(300_000));
                worker.ask(&format!("punch\t0\t{lo}\t{}", lo + len));
                let stop = end.min(lo + len) as usize;
                model[(lo as usize).min(stop)..stop].fill(0);
            }
            12 => {
                worker.ask("close\t0");
                worker.open(0, path, &OpenHow::new("rw"));
            }
            13 => drop(worker.ask("sync\t0")),
            _ => {
                let size = worker.ask(&format!("stat\t{path}"));
                assert!(size.starts_with(&format!("{end} ")), "{what}: {size}");
            }
        }
        // Another is told the same at once.
        let other = random.index(workers.len());
        let size = workers[other].ask("size\t0");
        assert_eq!(size, model.len().to_string(), "{what}, asked by {other}");
        let at = random.below(model.len() as u64 + 1) as usize;
        let stop = model.len().min(at + 100_000);
        let found = workers[other].ask(&format!("digest\t0\t{at}\t100000"));
        let expected = format!("{} {}", stop - at, digest(&model[at..stop]));
        assert_eq!(found, expected, "{what}, {at} read by {other}");
    }
    for (who, worker) in workers.iter_mut().enumerate() {
        let found = worker.ask(&format!("digest\t0\t0\t{}", model.len() + 9));
        let expected = format!("{} {}", model.len(), digest(&model));
        assert_eq!(found, expected, "{path}, {layout}: all of it, client {who}");
    }
    for worker in workers.iter_mut() {
        worker.ask("close\t0");
    }
}

fn rounds(what: u64, rounds: u64) {
    let Some(site) = Site::new(2) else { return };
    let job = Job::start(&site);
    let mut workers = [
        job.near(&site, "1"),
        job.near(&site, "0"),
        job.far(&site),
        job.far(&site),
    ];
    for round in 0..rounds {
        let mut random = Random::of_run(what * 1000 + round);
        run(&mut workers, &format!("/{round}"), &mut random);
    }
    // Each went the way that it is here for.
    for (worker, is_direct) in workers.iter_mut().zip([true, false, false, false]) {
        let told = worker.ask("direct");
        let writes = told.split(' ').nth(2).expect("five numbers");
        assert_eq!(writes != "0", is_direct, "{told}");
    }
    workers.into_iter().for_each(Worker::end);
    job.end();
}

#[test]
fn what_clients_of_two_hosts_were_told_is_never_taken_back() {
    rounds(70, 3);
}

#[test]
#[ignore = "long: forty random programs of clients on two hosts"]
fn what_clients_of_two_hosts_were_told_is_never_taken_back_for_long() {
    rounds(71, 40);
}
