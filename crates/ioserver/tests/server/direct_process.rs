//! Clients in processes of their own: stopped and killed while they copy.
//!
//! The other process is this test program, told by its environment to run [`plays_a_client`].

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use wire::message::file::Truncate;
use wire::url::Endpoint;

use crate::direct::whole;
use crate::direct_revoke::NEVER;
use crate::life::until;
use crate::rig::{Client, File, Rig, pattern, request_number};
use crate::sharer::Sharer;

const META: &str = "PARIO_TEST_DIRECT_META";
const SERVER: &str = "PARIO_TEST_DIRECT_SERVER";
const LEN: u64 = 1 << 20;

/// Claims a slot, stores until it is told to stop, ends the claim and says whether it counted.
#[test]
fn plays_a_client() {
    let (Ok(meta), Ok(server)) = (std::env::var(META), std::env::var(SERVER)) else {
        return;
    };
    let mut client = Client::new(&meta.parse::<Endpoint>().unwrap());
    let file = client.open("/f", None, None);
    client.set_view(&file, 1, &whole());
    let mut sharer = Sharer::attach(&mut client, server.parse().unwrap()).unwrap();
    let mapped = sharer.map(&file, 1, true, &[(0, 0, LEN)]).unwrap();
    let claim = sharer.claim(&mapped, true);
    assert!(sharer.is_current(&mapped));
    let late = vec![0xaa; LEN as usize];
    sharer.mark(&mapped, 0, 0..LEN);
    sharer.store(&mapped, 0, 0, &late);
    println!("ready");
    let stop = std::thread::spawn(|| {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).unwrap();
    });
    while !stop.is_finished() {
        sharer.store(&mapped, 0, 0, &late);
    }
    println!("counts {}", claim.end());
}

pub(crate) struct Player {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Player {
    pub(crate) fn start(rig: &Rig) -> Player {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "direct_process::plays_a_client", "--nocapture"])
            .env(META, rig.meta_endpoint.to_string())
            .env(SERVER, rig.number(0).to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let mut player = Player {
            child,
            stdin,
            stdout,
        };
        player.wait_for("ready");
        player
    }

    fn wait_for(&mut self, word: &str) -> String {
        loop {
            let mut line = String::new();
            assert_ne!(self.stdout.read_line(&mut line).unwrap(), 0, "{word}");
            if line.contains(word) {
                return line;
            }
        }
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn prepare(rig: Rig) -> (Rig, Client, File, Vec<u8>) {
    let mut client = rig.client();
    let file = client.open("/f", None, Some("striped(4MiB) over 1"));
    client.set_view(&file, 1, &whole());
    let data = pattern(LEN, 1);
    client.write(&file, 1, &whole(), 0, &data).unwrap();
    (rig, client, file, data)
}

fn truncate(client: &mut Client, file: &mut File, to: u64) {
    let cut = Truncate {
        view: 1,
        handle: file.opened.handle,
        to,
        request: request_number(),
    };
    file.epoch = client.ask(file.state.owner.server, &cut).unwrap().epoch;
}

#[test]
fn a_stopped_writer_holds_nobody_up_and_its_late_stores_are_nowhere() {
    let (rig, mut client, mut file, data) = prepare(Rig::new(1));
    let mut player = Player::start(&rig);
    player.signal(Signal::STOP);
    truncate(&mut client, &mut file, LEN / 2);
    let chmod = wire::message::catalogue::Chmod {
        path: "/f".into(),
        mode: 0o644,
    };
    client.ask_manager(&chmod).unwrap();
    client.write(&file, 1, &whole(), 0, &data).unwrap();
    player.signal(Signal::CONT);
    // It stores on, into what nobody reads.
    for _ in 0..20 {
        let (back, _) = client.read(&file, 1, &whole(), 0, LEN).unwrap();
        assert!(back == data);
    }
    assert!(rig.count(0, "direct_quarantined_bytes") >= LEN);
    player.stdin.write_all(b"stop\n").unwrap();
    assert!(player.wait_for("counts").contains("false"));
    until(|| rig.count(0, "direct_quarantined_bytes") == 0);
    let (back, _) = client.read(&file, 1, &whole(), 0, LEN).unwrap();
    assert!(back == data);
}

#[test]
fn a_stopped_writer_that_is_killed_leaves_nothing() {
    let (rig, mut client, mut file, data) = prepare(Rig::new(1));
    let mut player = Player::start(&rig);
    player.signal(Signal::STOP);
    truncate(&mut client, &mut file, 0);
    assert!(rig.count(0, "direct_quarantined_bytes") >= LEN);
    player.child.kill().unwrap();
    player.child.wait().unwrap();
    until(|| rig.count(0, "direct_quarantined_bytes") == 0 && rig.count(0, "direct_clients") == 0);
    client.write(&file, 1, &whole(), 0, &data).unwrap();
    assert!(client.read(&file, 1, &whole(), 0, LEN).unwrap().0 == data);
}

#[test]
fn the_death_of_a_writer_is_not_waited_out() {
    let (rig, mut client, mut file, data) =
        prepare(Rig::with(1, |options| options.claim_wait = NEVER));
    let mut player = Player::start(&rig);
    player.child.kill().unwrap();
    player.child.wait().unwrap();
    truncate(&mut client, &mut file, 0);
    assert_eq!(rig.count(0, "direct_quarantined_bytes"), 0);
    assert_eq!(rig.count(0, "direct_claims_revoked"), 0);
    until(|| rig.count(0, "direct_clients") == 0);
    client.write(&file, 1, &whole(), 0, &data).unwrap();
    assert!(client.read(&file, 1, &whole(), 0, LEN).unwrap().0 == data);
}
