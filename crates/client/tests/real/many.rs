//! Questions about many files: one message each at most, and never an answer that was not true any more.
//!
//! Left to others: which files are settled (`control`), and what becomes of names (`names`, and the tests of the catalogue).

use std::collections::BTreeMap;

use client::{Client, File, OpenOptions};
use random::Random;

use crate::service::{Service, create, pattern};

pub(crate) fn messages(client: &Client, run: impl FnOnce(&Client)) -> u64 {
    let before = client.messages_sent().0;
    run(client);
    client.messages_sent().0 - before
}

pub(crate) fn listed(client: &Client, path: &str) -> BTreeMap<String, u64> {
    let entries = client.list_with_attributes(path).unwrap();
    entries
        .map(|entry| {
            let entry = entry.unwrap();
            (entry.name, entry.attributes.unwrap().size)
        })
        .collect()
}

#[test]
fn each_question_about_files_is_one_message_at_most() {
    let mut service = Service::start(3);
    let (writer, reader) = (service.connect(), service.connect());
    writer.mkdir("/d", None).unwrap();
    let mut expected = BTreeMap::new();
    let mut open = Vec::new();
    for i in 0..40u64 {
        let name = format!("f{i:02}");
        let path = format!("/d/{name}");
        let file = create(&writer, &path, "", "striped(1KiB) over 3");
        // Some were never written to, some are closed, some are written to yet, by message and directly.
        let size = if i % 4 == 0 { 0 } else { i * 700 };
        if size > 0 {
            file.write_at(0, &pattern(size as usize, 1)).unwrap();
        }
        if i % 3 == 0 {
            open.push(file);
        }
        expected.insert(name, size);
    }
    // The first question of a session is asked without stamps, the second with them, after they were asked for.
    for _ in 0..2 {
        reader.stat("/d").unwrap();
    }
    for turn in 0..2 {
        assert_eq!(
            messages(&reader, |client| assert_eq!(listed(client, "/d"), expected)),
            1,
            "somebody writes to files in it"
        );
        for (i, (name, size)) in expected.iter().enumerate() {
            let path = format!("/d/{name}");
            let found = messages(&reader, |client| {
                assert_eq!(client.stat(&path).unwrap().size, *size, "{name}");
            });
            let is_known = turn == 1 && i % 3 != 0;
            assert_eq!(found, u64::from(!is_known), "{name}");
        }
    }
    // Of what nobody has open for writing no server is asked: there is none any more.
    drop(open);
    for server in service.servers.drain(..) {
        server.stop();
    }
    let found = messages(&reader, |client| assert_eq!(listed(client, "/d"), expected));
    assert_eq!(found, 1);
    for (i, (name, size)) in expected.iter().enumerate() {
        let path = format!("/d/{name}");
        let found = messages(&reader, |client| {
            assert_eq!(client.stat(&path).unwrap().size, *size, "{name}");
        });
        assert_eq!(found, u64::from(i % 3 == 0), "{name}");
    }
    let found = messages(&reader, |client| assert_eq!(listed(client, "/d"), expected));
    assert_eq!(found, 0);
}

/// What becomes of the metadata manager meanwhile.
#[derive(Clone, Copy, PartialEq)]
enum Manager {
    Stays,
    Restarts,
}

/// One after the other, clients do whatever they like to the same names; each answer is compared with what is so.
fn random_program(seed: u64, manager: Manager) {
    let mut random = Random::new(seed);
    let mut service = Service::start(2);
    let clients: Vec<Client> = (0..3).map(|i| service.connect_how(i != 2)).collect();
    clients[0].mkdir("/d", None).unwrap();
    let mut sizes: BTreeMap<String, u64> = BTreeMap::new();
    let mut open: Vec<(String, File)> = Vec::new();
    for step in 0..150 {
        let what = random.below(12);
        let client = &clients[random.index(clients.len())];
        let name = format!("f{}", random.below(5));
        let path = format!("/d/{name}");
        let about = format!("seed {seed}, step {step}, {what} of {name}");
        match what {
            0 | 1 => {
                let options = OpenOptions::new().read().write().create();
                let options = options.layout("striped(1KiB) over 2");
                let file = client.open(&path, &options).unwrap();
                sizes.entry(name.clone()).or_default();
                open.push((name, file));
            }
            2..=4 if !open.is_empty() => {
                let (name, file) = &open[random.index(open.len())];
                let (at, len) = (random.below(9000), random.within(1..9000));
                file.write_at(at, &pattern(len as usize, 1)).unwrap();
                if let Some(size) = sizes.get_mut(name) {
                    *size = (*size).max(at + len);
                }
            }
            5 if !open.is_empty() => {
                let (name, file) = &open[random.index(open.len())];
                let to = random.below(12_000);
                file.resize(to).unwrap();
                if let Some(size) = sizes.get_mut(name) {
                    *size = to;
                }
            }
            6 if !open.is_empty() => {
                let (_, file) = open.swap_remove(random.index(open.len()));
                file.close().unwrap();
            }
            7 => assert_eq!(
                client.unlink(&path).is_ok(),
                sizes.remove(&name).is_some(),
                "{about}"
            ),
            8 => {
                let to = format!("f{}", random.below(5));
                let is_there = client.rename(&path, &format!("/d/{to}")).is_ok();
                assert_eq!(is_there, sizes.contains_key(&name), "{about}");
                if is_there && to != name {
                    let size = sizes.remove(&name).expect("there");
                    sizes.insert(to.clone(), size);
                }
                if is_there {
                    // Handles stay with their files, whatever the names.
                    if to != name {
                        open.retain(|(open, _)| *open != to);
                    }
                    for (open, _) in open.iter_mut().filter(|(open, _)| *open == name) {
                        open.clone_from(&to);
                    }
                }
            }
            9 if manager == Manager::Restarts && random.below(4) == 0 => {
                service.manager = None;
                service.start_manager();
            }
            // Servers that have not come back yet cannot be asked for a listing; a client that asks for one file waits for them.
            10 if manager == Manager::Stays => assert_eq!(listed(client, "/d"), sizes, "{about}"),
            _ => {
                let found = client.stat(&path).ok().map(|found| found.size);
                assert_eq!(found, sizes.get(&name).copied(), "{about}");
            }
        }
        if what == 7 {
            // What is written to a file without a name is nobody's size.
            open.retain(|(open, _)| sizes.contains_key(open));
        }
    }
}

#[test]
fn sizes_are_the_latest_whoever_writes_and_asks() {
    for seed in 0..12 {
        random_program(random::seed().wrapping_add(seed), Manager::Stays);
    }
}

#[test]
fn sizes_are_the_latest_after_the_manager_was_started_again() {
    for seed in 100..104 {
        random_program(random::seed().wrapping_add(seed), Manager::Restarts);
    }
}
