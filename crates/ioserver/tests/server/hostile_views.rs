//! Views, ranges and collectives that would keep a server busy for years if it counted what they describe.
//!
//! Each is a few bytes on the wire and well formed. The server answers or refuses after work that the bytes of the
//! request pay for, others are served meanwhile, and a peer that goes away takes its work with it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Barrier, mpsc};
use std::thread;
use std::time::Duration;

use layout::{FileOffset, View};
use testkit::hostile::{self, Source};
use wire::Status;
use wire::message::access::{ANNOUNCED, Access, GO, READ, WHOLE, WRITE};
use wire::message::ahead::{Collective, ReadAhead};
use wire::message::directed::{HoldRange, Lead, RankRange};
use wire::message::mapping::{Choose, ChooseServer, Upcoming, Whole};
use wire::message::{Bytes, Request};

use crate::rig::{Client, File, Rig, header, pattern, refusal};

/// Far longer than anything here takes; what is not over by then never is.
const WATCHDOG: Duration = Duration::from_secs(60);

/// Runs something that might never end; the test ends all the same.
fn watched<T: Send + 'static>(what: &str, run: impl FnOnce() -> T + Send + 'static) -> T {
    let (told, heard) = mpsc::channel();
    let thread = thread::spawn(move || {
        let _ = told.send(run());
    });
    match heard.recv_timeout(WATCHDOG) {
        Ok(done) => {
            thread.join().unwrap();
            done
        }
        Err(mpsc::RecvTimeoutError::Disconnected) => {
            std::panic::resume_unwind(thread.join().unwrap_err())
        }
        Err(mpsc::RecvTimeoutError::Timeout) => {
            panic!("{what}: no answer within {} s", WATCHDOG.as_secs())
        }
    }
}

fn view(displacement: u64, period: u64, set: &str) -> View {
    View::new(FileOffset(displacement), period, set.parse().unwrap()).unwrap()
}

/// Asks for a part of a file by message.
fn read_part(
    client: &mut Client,
    server: u64,
    file: &File,
    number: u64,
    (lo, hi): (u64, u64),
    bytes: u64,
) -> Result<Vec<u8>, (Status, String)> {
    let mut control = Vec::new();
    file.access(number, lo, hi, bytes).encode(&mut control);
    let link = client.lane(server);
    link.send(header(READ, 0), &control, &[]).unwrap();
    let (answer, said) = link.receive().unwrap();
    if !answer.status.is_ok() {
        return Err(refusal(answer.status, said));
    }
    let mut payload = vec![0; answer.payload_bytes as usize];
    link.receive_payload(&mut payload).unwrap();
    Ok(payload)
}

#[test]
fn a_view_of_years_is_refused_and_holds_nobody_up() {
    let (rig, refused) = watched("a view of 2^59 bytes", || {
        let rig = Rig::new(1);
        let server = rig.number(0);
        let mut client = rig.client();
        let file = client.open("/f", None, Some("striped(64KiB) over 2"));
        let years = view(0, (1 << 61) - 1, &format!("{{(0,0,2,{})}}", 1u64 << 59));
        client.set_view(&file, 1, &years);
        let refused = read_part(&mut client, server, &file, 1, (0, 1 << 59), 4096).unwrap_err();
        (rig, refused)
    });
    assert_eq!(refused.0, Status::InvalidArgument, "{}", refused.1);
    assert!(refused.1.contains("4096"), "{}", refused.1);
    let mut other = rig.client();
    let file = other.open("/f", None, None);
    other.set_view(&file, 1, &View::whole_file());
    let data = pattern(200_000, 1);
    other
        .write(&file, 1, &View::whole_file(), 0, &data)
        .unwrap();
    let (read, _) = other
        .read(&file, 1, &View::whole_file(), 0, 200_000)
        .unwrap();
    assert_eq!(read, data);
}

/// What a client asks for whose search does not end in years.
#[derive(Clone, Copy, Debug)]
enum Endless {
    /// One search: the view interleaves with the subfiles of the server and never meets them.
    OneSearch,
    /// A search for every byte of a hint, which moves none of them: it meets other subfiles all the time.
    Hint,
    /// One search for all the ranks of a collective.
    Collective,
}

/// Sends a request that a server does not answer whose searches have no bound. It has the odd bytes.
fn send_endless(client: &mut Client, file: &File, server: u64, what: Endless) {
    let even = view(
        0,
        (1 << 60) + 2,
        &format!("{{(0,999,1002,{},{{(0,0,2,500)}})}}", 1u64 << 49),
    );
    let (lo, hi) = (0, 1u64 << 57);
    let version = Bytes(file.access(1, lo, hi, 0).version.to_vec());
    let upcoming = Some(Upcoming {
        offset: lo,
        size: hi,
    });
    let mut control = Vec::new();
    client.set_view_at(server, file, 1, &even).unwrap();
    let kind = match what {
        Endless::OneSearch => {
            file.access(1, lo, hi, 4096).encode(&mut control);
            READ
        }
        Endless::Hint => {
            let choose = ChooseServer {
                view: 1,
                by: Choose::ByHint,
                size: hi,
                upcoming,
                history: Bytes::default(),
            };
            wire::message::encode(&choose, &mut control);
            ChooseServer::KIND
        }
        Endless::Collective => {
            let rank = RankRange {
                client: client.welcome.client,
                view: 0,
                lo,
                hi,
            };
            let lead = Lead {
                view: 1,
                operation: 1,
                writes: false,
                by_record: false,
                block_bytes: 4096,
                blocks: 1,
                epoch: 0,
                version,
                ranks: vec![rank],
                views: vec![even],
            };
            wire::message::encode(&lead, &mut control);
            Lead::KIND
        }
    };
    let link = client.lane(server);
    link.send(header(kind, 0), &control, &[]).unwrap();
    // It is not answered: what is seen below is a search that was ended, not one that was over.
    link.set_timeout(Some(Duration::from_millis(200))).unwrap();
    let answer = link.receive().map(|(answer, text)| (answer, text.to_vec()));
    assert!(answer.is_err(), "{what:?}: answered with {answer:?}");
}

#[test]
fn a_connection_that_is_closed_ends_the_search_for_it() {
    for what in [Endless::OneSearch, Endless::Hint, Endless::Collective] {
        let ended = format!("{what:?}: a search for a client that has gone");
        watched(&ended, move || {
            let rig = Rig::with(2, |o| o.limits.search_steps = u64::MAX);
            let mut client = rig.client();
            // Rows of even length: server 0 has the even bytes, server 1 the odd ones.
            let array = Some("u8[1000,1002]");
            let layout = Some("(cyclic(1), cyclic(1)) onto 2x2");
            let file = client.open("/f", array, layout);
            send_endless(&mut client, &file, rig.number(1), what);
            client.lanes.clear();
            while (0..2).any(|server| rig.count(server, "clients") > 0) {
                thread::yield_now();
            }
        });
    }
}

/// Somebody who never does anything wrong and is always served.
struct Honest {
    client: Client,
    files: Vec<(File, Vec<u8>)>,
    done: u64,
}

impl Honest {
    fn new(rig: &Rig, paths: &[&str]) -> Honest {
        let mut client = rig.client();
        let whole = View::whole_file();
        let files = paths.iter().enumerate().map(|(i, path)| {
            let file = client.open(path, None, Some("striped(64KiB) over 2"));
            client.set_view(&file, i as u64, &whole);
            let data = pattern(150_000, i as u64);
            client.write(&file, i as u64, &whole, 0, &data).unwrap();
            (file, data)
        });
        Honest {
            files: files.collect(),
            client,
            done: 0,
        }
    }

    /// Reads what it has written, beside whatever else goes on.
    fn works(&mut self) {
        let at = self.done as usize % self.files.len();
        let (file, data) = &self.files[at];
        let whole = View::whole_file();
        let len = data.len() as u64;
        let read = self.client.read(file, at as u64, &whole, 0, len);
        assert!(&read.unwrap().0 == data, "read {}", self.done);
        self.done += 1;
    }
}

/// Sends one thing that a client could send to hurt, lets others work, and takes the answer if one is to come.
///
/// What others use is read only: whoever may write may also destroy, and hold others up for a while.
fn attack(
    client: &mut Client,
    server: u64,
    file: &File,
    is_own: bool,
    number: u64,
    seed: u64,
    others_work: impl Fn(),
) {
    let source = &mut Source::seeded(seed);
    let bad = View::from(hostile::periodic(source));
    if client.set_view_at(server, file, 1, &bad).is_err() {
        return;
    }
    let size = bad.bytes().size();
    let lo = source.any_size(size);
    let hi = match source.below(3) {
        0 => lo.saturating_add(1 + source.below(1 << 20)),
        1 => lo.saturating_add(source.any_size(1 << 62)),
        _ => u64::MAX >> source.below(3),
    };
    let choice = match source.below(8) {
        2 | 6 if !is_own => 0,
        choice => choice,
    };
    // Every byte that is written may take a block of its own on the disk.
    let most = if choice == 2 { 1 << 8 } else { 1 << 18 };
    let bytes = match source.below(3) {
        0 => hi.saturating_sub(lo).min(most),
        1 => source.below(most),
        _ => source.below(64),
    };
    let access = file.access(1, lo, hi, bytes);
    let mut control = Vec::new();
    let upcoming = Some(Upcoming {
        offset: lo,
        size: hi.wrapping_sub(lo),
    });
    let version = Bytes(access.version.to_vec());
    let (kind, flags) = match choice {
        0 | 1 => {
            access.encode(&mut control);
            (READ, 0)
        }
        2 => {
            access.encode(&mut control);
            (WRITE, [0, ANNOUNCED][source.below(2) as usize])
        }
        3 => {
            let whole = Whole {
                by: Choose::ByHint,
                size: hi,
                ends: None,
                upcoming,
                history: &[],
                access: Access {
                    bytes: hi.saturating_sub(lo),
                    ..access
                },
            };
            whole.encode(&mut control);
            (READ, WHOLE)
        }
        4 => {
            let ahead = ReadAhead {
                view: 1,
                depth: source.number(),
                upcoming,
                collective: Collective::Nothing,
                bytes: source.number(),
            };
            wire::message::encode(&ahead, &mut control);
            (ReadAhead::KIND, 0)
        }
        5 => {
            let choose = ChooseServer {
                view: 1,
                by: Choose::ByHint,
                size: hi,
                upcoming,
                history: Bytes::default(),
            };
            wire::message::encode(&choose, &mut control);
            (ChooseServer::KIND, 0)
        }
        6 => {
            let hold = HoldRange {
                view: 1,
                lo,
                hi,
                version,
            };
            wire::message::encode(&hold, &mut control);
            (HoldRange::KIND, 0)
        }
        _ => {
            // The second rank has no bytes: nobody waits for it.
            let other = View::from(hostile::periodic(source));
            let rank = |view, lo, hi| RankRange {
                client: client.welcome.client,
                view,
                lo,
                hi,
            };
            let lead = Lead {
                view: 1,
                operation: number,
                writes: is_own && source.below(2) == 0,
                by_record: source.below(2) == 0,
                block_bytes: 512 << source.below(12),
                blocks: source.any_size(u64::MAX),
                epoch: 0,
                version,
                ranks: vec![rank(0, lo, hi), rank(1, lo, lo)],
                views: vec![bad.clone(), other],
            };
            wire::message::encode(&lead, &mut control);
            (Lead::KIND, 0)
        }
    };
    let payload = match (kind, flags) {
        (WRITE, 0) => vec![7; bytes as usize],
        _ => Vec::new(),
    };
    let link = client.lane(server);
    if kind == Lead::KIND {
        // The server waits for bytes that never come; so would the attacker for its answer.
        link.set_timeout(Some(Duration::from_millis(100))).unwrap();
    }
    if link
        .send(header(kind, flags), &control, &[&payload])
        .is_err()
    {
        client.lanes.clear();
        return;
    }
    others_work();
    let link = client.lane(server);
    let answer = link.receive().map(|(answer, _)| answer);
    let is_over = match answer {
        // What is held is let go of with the connection, or the attacker keeps itself out.
        Ok(_) if kind == HoldRange::KIND => false,
        Ok(answer) if kind == Lead::KIND || answer.flags & GO != 0 => false,
        Ok(answer) => {
            let mut bytes = vec![0; answer.payload_bytes as usize];
            link.receive_payload(&mut bytes).is_ok()
        }
        Err(_) => false,
    };
    // In the middle of something: whoever goes away takes it with him.
    if !is_over || source.below(8) == 0 {
        client.lanes.clear();
    }
}

/// A layout of an array of bytes.
fn odd_layout(source: &mut Source) -> String {
    let (length, count) = (1 + source.below(100_003), 1 + source.below(9));
    match source.below(4) {
        0 => format!("striped({length}) over {count}"),
        1 => format!("striped({}) over {count}", 1 + length % 7),
        2 => format!("(cyclic({length})) onto {count}"),
        _ => format!("(block) onto {count}"),
    }
}

/// Pages of memory that this process has.
fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = text.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

/// Attacks from some clients at once; an honest one works beside them and is through first.
fn battle(rig: Rig, attackers: u64, attacks: u64) {
    watched("hostile requests", move || {
        let server = rig.number(0);
        let mut honest = Honest::new(&rig, &["/f", "/other"]);
        let before = resident_bytes();
        let reads = AtomicU64::new(0);
        // Attackers fill the memory with what they write, and then no file can be made.
        let begins = Barrier::new(attackers as usize);
        thread::scope(|scope| {
            let mut running = Vec::new();
            for attacker in 0..attackers {
                let (rig, reads, begins) = (&rig, &reads, &begins);
                running.push(scope.spawn(move || {
                    // One that begins after the attack was sent is over before its answer is taken.
                    let honest_reads = || {
                        let sent = reads.load(Ordering::SeqCst);
                        while reads.load(Ordering::SeqCst) < sent + 2 {
                            thread::yield_now();
                        }
                    };
                    let mut client = rig.client();
                    let shared = client.open("/f", None, None);
                    let seed_of = |attack_number| attacker * 1_000_003 + attack_number;
                    let mut odd = Vec::new();
                    for attack_number in (0..attacks).step_by(16) {
                        let text = odd_layout(&mut Source::seeded(!seed_of(attack_number)));
                        let path = format!("/odd-{attacker}-{attack_number}");
                        odd.push(client.open(&path, Some("u8[100003]"), Some(&text)));
                    }
                    begins.wait();
                    for attack_number in 0..attacks {
                        let seed = seed_of(attack_number);
                        let is_own = attack_number % 2 == 1;
                        let file = match is_own {
                            true => &odd[attack_number as usize / 16],
                            false => &shared,
                        };
                        attack(
                            &mut client,
                            server,
                            file,
                            is_own,
                            attack_number,
                            seed,
                            honest_reads,
                        );
                    }
                }));
            }
            // Each of its reads is answered while attacks are under way.
            while running.iter().any(|thread| !thread.is_finished()) {
                honest.works();
                reads.fetch_add(1, Ordering::SeqCst);
            }
            for thread in running {
                thread.join().unwrap();
            }
        });
        assert!(
            honest.done >= attacks / 2,
            "{} reads beside {attacks} attacks",
            honest.done
        );
        let grown = resident_bytes().saturating_sub(before);
        assert!(grown < 512 << 20, "{grown} bytes more than before");
        // Nothing of it runs on, and everybody can come again.
        honest.works();
        let mut client = rig.client();
        let file = client.open("/f", None, None);
        client.set_view(&file, 3, &View::whole_file());
        client
            .write(&file, 3, &View::whole_file(), 0, b"alive")
            .unwrap();
        assert_eq!(rig.count(0, "buffers_lent"), 0);
    });
}

#[test]
fn random_hostile_requests_hurt_nobody_in_memory() {
    let rig = Rig::with(1, |o| o.limits.search_steps = 1 << 16);
    battle(rig, 3, cases(120));
}

#[test]
fn random_hostile_requests_hurt_nobody_on_a_disk() {
    let rig = Rig::on_disk(64 << 20, true);
    battle(rig, 2, cases(60));
}

fn cases(usual: u64) -> u64 {
    let asked = std::env::var("PROPTEST_CASES").ok();
    asked.and_then(|n| n.parse().ok()).unwrap_or(usual)
}
