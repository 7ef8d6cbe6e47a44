//! What a client was told about names it gives again without a message, until something that it depends on has changed.
//!
//! Left to others: which rows an answer depends on (`meta`), the memory of the stamps (`direct`).

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use client::{Client, ConnectOptions, OpenOptions, ServiceUrl, SetTime, Status};
use random::Random;
use wire::Time;

use crate::many::{listed, messages};
use crate::service::{Service, TIMEOUT, create, pattern};

/// A client that shares no memory with the metadata manager.
fn connect_from_elsewhere(service: &Service) -> Client {
    let manager = service.manager.as_ref().expect("it runs");
    let url = ServiceUrl::At(manager.endpoints()[1].clone());
    let options = ConnectOptions::default().with_timeout(TIMEOUT);
    Client::connect(&url, options).unwrap()
}

/// What `stat` says, as far as it is compared: number, size, mode and time of change; or that nothing is there.
fn seen(client: &Client, path: &str) -> Option<(u64, u64, u32, i64)> {
    match client.stat(path) {
        Ok(found) => Some((found.file.0, found.size, found.mode, found.modified.0)),
        Err(e) if e.status() == Status::NotFound => None,
        Err(e) => panic!("{path}: {e}"),
    }
}

/// Asks until the answer is known; it has to be after a few times.
fn know(client: &Client, path: &str) {
    for _ in 0..5 {
        if messages(client, |client| {
            let _ = seen(client, path);
        }) == 0
        {
            return;
        }
    }
    panic!("{path} is not known");
}

#[test]
fn a_known_answer_costs_no_message_until_something_it_depends_on_changes() {
    let service = Service::start(2);
    let (other, client, fresh) = (service.connect(), service.connect(), service.connect());
    other.mkdir_all("/a/b", None).unwrap();
    for path in ["/a/b/f", "/a/b/g", "/other"] {
        let file = create(&other, path, "", "striped(1KiB) over 2");
        file.write_at(0, &pattern(3000, 1)).unwrap();
        file.close().unwrap();
    }
    type Change = fn(&Client);
    let changes: [(&str, &str, Change); 14] = [
        ("chmod", "/a/b/f", |c| c.chmod("/a/b/f", 0o600).unwrap()),
        ("chmod above", "/a/b/f", |c| c.chmod("/a", 0o700).unwrap()),
        ("utimes", "/a/b/f", |c| {
            c.utimes("/a/b/f", SetTime::Keep, SetTime::To(Time(7)))
                .unwrap();
        }),
        ("unlinked", "/a/b/f", |c| c.unlink("/a/b/f").unwrap()),
        ("created", "/a/b/f", |c| {
            c.create("/a/b/f", &OpenOptions::new().write()).unwrap();
        }),
        ("written", "/a/b/f", |c| {
            let file = c.open("/a/b/f", &OpenOptions::new().write()).unwrap();
            file.write_at(0, &pattern(77, 1)).unwrap();
            file.close().unwrap();
        }),
        ("cut", "/a/b/f", |c| {
            let file = c.open("/a/b/f", &OpenOptions::new().write()).unwrap();
            file.resize(5).unwrap();
            file.close().unwrap();
        }),
        ("replaced", "/a/b/f", |c| {
            c.rename("/other", "/a/b/f").unwrap()
        }),
        ("renamed", "/a/b/f", |c| {
            c.rename("/a/b/f", "/a/b/h").unwrap()
        }),
        ("renamed to", "/a/b/f", |c| {
            c.rename("/a/b/h", "/a/b/f").unwrap()
        }),
        ("renamed above", "/a/b/f", |c| {
            c.rename("/a/b", "/a/c").unwrap()
        }),
        ("renamed back above", "/a/b/f", |c| {
            c.rename("/a/c", "/a/b").unwrap()
        }),
        ("new in a directory", "/a/b", |c| {
            c.mkdir("/a/b/d", None).unwrap()
        }),
        ("removed", "/a/b/d", |c| c.rmdir("/a/b/d").unwrap()),
    ];
    for (what, path, change) in changes {
        know(&client, path);
        let before = seen(&client, path);
        change(&other);
        let after = seen(&client, path);
        // One that has no memory of it asks.
        assert_eq!(after, seen(&fresh, path), "{what}");
        if what != "chmod above" {
            assert_ne!(after, before, "{what}");
        }
    }
    // While a client may write, its size is asked for.
    know(&client, "/a/b/f");
    let file = other.open("/a/b/f", &OpenOptions::new().write()).unwrap();
    for size in [4000, 5000] {
        file.write_at(size - 1, &[1]).unwrap();
        assert_eq!(seen(&client, "/a/b/f").unwrap().1, size);
        assert_eq!(client.stat("/a/b/f").unwrap().size, size);
    }
    file.close().unwrap();
    know(&client, "/a/b/f");
    // Neighbours in the same directory do not disturb it.
    let found = messages(&client, |client| {
        other
            .create("/a/b/new", &OpenOptions::new().write())
            .unwrap();
        other.unlink("/a/b/new").unwrap();
        assert_eq!(seen(client, "/a/b/f").unwrap().1, 5000);
    });
    assert_eq!(found, 0);
}

#[test]
fn a_known_listing_costs_no_message_until_a_name_or_a_size_in_it_changes() {
    let service = Service::start(2);
    let (other, client) = (service.connect(), service.connect());
    other.mkdir("/d", None).unwrap();
    let mut expected = BTreeMap::new();
    let make = |name: &str, size: u64| {
        let file = create(&other, &format!("/d/{name}"), "", "striped(1KiB) over 2");
        if size > 0 {
            file.write_at(size - 1, &[1]).unwrap();
        }
        file.close().unwrap();
    };
    for i in 0..30u64 {
        make(&format!("f{i}"), i * 100);
        expected.insert(format!("f{i}"), i * 100);
    }
    let ask = |expected: &BTreeMap<String, u64>| {
        messages(&client, |client| {
            assert_eq!(listed(client, "/d"), *expected)
        })
    };
    for _ in 0..3 {
        ask(&expected);
    }
    assert_eq!(ask(&expected), 0);
    other.unlink("/d/f3").unwrap();
    expected.remove("f3");
    assert_eq!(ask(&expected), 1);
    make("new", 7);
    expected.insert("new".into(), 7);
    ask(&expected);
    make("f5", 50_000);
    expected.insert("f5".into(), 50_000);
    ask(&expected);
    other.rename("/d/f6", "/d/f4").unwrap();
    expected.remove("f6");
    expected.insert("f4".into(), 600);
    ask(&expected);
    ask(&expected);
    assert_eq!(ask(&expected), 0);
    let names = |client: &Client| client.list("/d").unwrap().count();
    assert_eq!(names(&client), expected.len());
    assert_eq!(
        messages(&client, |client| {
            names(client);
        }),
        0
    );
}

#[test]
fn what_a_manager_said_that_is_gone_is_not_believed() {
    let mut service = Service::start(1);
    let (client, other) = (service.connect(), service.connect());
    for path in ["/f", "/g"] {
        let file = create(&other, path, "", "striped(1KiB) over 1");
        file.close().unwrap();
        know(&client, path);
    }
    know(&client, "/none");
    service.manager = None;
    service.start_manager();
    other.unlink("/f").unwrap();
    create(&other, "/none", "", "striped(1KiB) over 1")
        .close()
        .unwrap();
    assert_eq!(seen(&client, "/f"), None);
    assert!(seen(&client, "/none").is_some());
    assert!(seen(&client, "/g").is_some());
    // What the new one says is known again, but of files that clients of the time before may still have open.
    know(&client, "/f");
    know(&client, "/none");
}

/// One state of a name, and between which moments it began.
#[derive(Clone, Copy, Debug)]
struct Version {
    begins: u64,
    begun: u64,
    state: Option<(u64, u32)>,
}

/// Clients create, write, chmod, rename and remove a few names, one at a time; others ask all the time. Each answer was so at some
/// moment between question and answer.
fn nobody_is_told_what_was_no_longer_so(seed: u64, askers: Vec<Client>, changers: Vec<Client>) {
    const NAMES: usize = 4;
    const STEPS: u64 = 400;
    let clock = AtomicU64::new(1);
    let tick = || clock.fetch_add(1, Ordering::SeqCst);
    let is_over = AtomicBool::new(false);
    let path = |name: usize| format!("/t/f{name}");
    let history: Vec<Mutex<Vec<Version>>> = (0..NAMES)
        .map(|_| {
            Mutex::new(vec![Version {
                begins: 0,
                begun: 0,
                state: None,
            }])
        })
        .collect();
    let asked = std::thread::scope(|scope| {
        let asking: Vec<_> = askers
            .iter()
            .enumerate()
            .map(|(who, client)| {
                let (is_over, tick, path) = (&is_over, &tick, &path);
                scope.spawn(move || {
                    let mut random = Random::new(seed * 31 + who as u64);
                    let mut answers = Vec::new();
                    while !is_over.load(Ordering::SeqCst) {
                        let name = random.index(NAMES);
                        let start = tick();
                        let listed: BTreeMap<String, (u64, u32)> = match random.below(4) {
                            0 => {
                                let entries = client.list_with_attributes("/t").unwrap();
                                let entries = entries.map(|e| e.unwrap());
                                entries
                                    .map(|e| {
                                        let a = e.attributes.unwrap();
                                        (e.name, (a.size, a.mode))
                                    })
                                    .collect()
                            }
                            _ => {
                                let found = match client.stat(&path(name)) {
                                    Ok(a) => Some((a.size, a.mode)),
                                    Err(e) if e.status() == Status::NotFound => None,
                                    Err(e) => panic!("{e}"),
                                };
                                answers.push((who, name, start, tick(), found));
                                continue;
                            }
                        };
                        let end = tick();
                        for name in 0..NAMES {
                            let found = listed.get(&format!("f{name}")).copied();
                            answers.push((who, name, start, end, found));
                        }
                    }
                    answers
                })
            })
            .collect();
        let mut random = Random::new(seed);
        for step in 0..STEPS {
            let client = &changers[random.index(changers.len())];
            let (name, to) = (random.index(NAMES), random.index(NAMES));
            let now = |name: usize| history[name].lock().unwrap().last().unwrap().state;
            let change = |name: usize, begins: u64, state: Option<(u64, u32)>| {
                let begun = tick();
                let version = Version {
                    begins,
                    begun,
                    state,
                };
                history[name].lock().unwrap().push(version);
            };
            let begins = tick();
            match (random.below(6), now(name)) {
                (0 | 1, None) => {
                    let mode = 0o600;
                    let options = OpenOptions::new().write().exclusive().mode(mode);
                    client.create(&path(name), &options).unwrap();
                    change(name, begins, Some((0, mode)));
                }
                (0, Some((size, mode))) => {
                    let file = client.open(&path(name), &OpenOptions::new().write());
                    let file = file.unwrap();
                    file.write_at(size + step, &[1]).unwrap();
                    file.close().unwrap();
                    change(name, begins, Some((size + step + 1, mode)));
                }
                (1 | 2, Some((size, _))) => {
                    let mode = 0o600 + random.below(64) as u32;
                    client.chmod(&path(name), mode).unwrap();
                    change(name, begins, Some((size, mode)));
                }
                (3, Some(_)) => {
                    client.unlink(&path(name)).unwrap();
                    change(name, begins, None);
                }
                (_, Some(state)) if to != name => {
                    client.rename(&path(name), &path(to)).unwrap();
                    change(name, begins, None);
                    change(to, begins, Some(state));
                }
                _ => {}
            }
        }
        is_over.store(true, Ordering::SeqCst);
        let asking = asking.into_iter();
        asking.flat_map(|a| a.join().unwrap()).collect::<Vec<_>>()
    });
    let mut fits = 0;
    for (who, name, start, end, found) in asked {
        let history = history[name].lock().unwrap();
        let is_so = history.iter().enumerate().any(|(i, version)| {
            let has_ended = history.get(i + 1).is_some_and(|next| next.begun < start);
            version.state == found && version.begins <= end && !has_ended
        });
        assert!(
            is_so,
            "seed {seed}: client {who} was told {found:?} of f{name} between {start} and {end}; it was {history:?}"
        );
        fits += 1;
    }
    assert!(fits > 100, "only {fits} answers");
}

#[test]
fn a_client_elsewhere_is_told_before_a_change_can_be_seen() {
    let service = Service::start(2);
    let (other, client) = (service.connect(), connect_from_elsewhere(&service));
    other.mkdir("/d", None).unwrap();
    let file = create(&other, "/d/f", "", "striped(1KiB) over 2");
    file.write_at(0, &pattern(3000, 1)).unwrap();
    file.close().unwrap();
    // The thread that listens sends messages too: the manager says whether it was asked.
    let stats = || {
        let counters = other.meta_statistics().unwrap();
        let of_stat = counters.iter().find(|c| c.name == "requests_stat");
        of_stat.map_or(0, |c| c.value)
    };
    let wait_until_known = |path: &str| {
        let mut tries = 0;
        loop {
            let before = stats();
            let _ = seen(&client, path);
            if stats() == before {
                return;
            }
            tries += 1;
            assert!(tries < 100_000, "{path} is never known");
            std::thread::yield_now();
        }
    };
    for mode in [0o600, 0o640, 0o644] {
        for path in ["/d/f", "/d/none"] {
            wait_until_known(path);
        }
        other.chmod("/d/f", mode).unwrap();
        assert_eq!(seen(&client, "/d/f").unwrap().2, mode);
        create(&other, "/d/none", "", "striped(1KiB) over 2")
            .close()
            .unwrap();
        assert!(seen(&client, "/d/none").is_some());
        other.unlink("/d/none").unwrap();
        assert_eq!(seen(&client, "/d/none"), None);
    }
}

#[test]
fn random_changes_are_seen_by_everybody_who_asks_after_them() {
    for seed in 0..3 {
        let service = Service::start(2);
        let seed = random::seed().wrapping_add(seed);
        // Those over TCP are like clients of another host.
        let mut askers: Vec<Client> = (0..2).map(|_| service.connect()).collect();
        askers.extend((0..2).map(|_| connect_from_elsewhere(&service)));
        let changers = vec![service.connect(), connect_from_elsewhere(&service)];
        changers[0].mkdir("/t", None).unwrap();
        nobody_is_told_what_was_no_longer_so(seed % 1_000_000, askers, changers);
    }
}
