//! Clients that talk through one server: which one, what it forwards, and that bytes are the same either
//! way. The model is a plain vector of bytes.
//!
//! Counters of servers and of accesses are compared with what the layout says.

use std::collections::HashMap;
use std::sync::Barrier;

use client::{Client, ConnectOptions, Endpoint, File, Mapping, OpenOptions, ServerId, ServiceUrl};

use crate::service::{Service, TIMEOUT, create, pattern};

const GATEWAYS: [Mapping; 5] = [
    Mapping::Master,
    Mapping::RoundRobin,
    Mapping::Predict,
    Mapping::Hint,
    Mapping::Buddy,
];

fn options(mapping: Mapping) -> ConnectOptions {
    ConnectOptions::default()
        .with_timeout(TIMEOUT)
        .with_mapping(mapping)
}

fn connect(service: &Service, options: ConnectOptions) -> Client {
    let url = ServiceUrl::At(Endpoint::Unix(service.dir.join("meta")));
    Client::connect(&url, options).unwrap()
}

fn through(service: &Service, mapping: Mapping) -> Client {
    connect(service, options(mapping))
}

/// A client that talks through the server at an index.
fn through_server(service: &Service, index: usize) -> Client {
    let server = service.servers[index].server();
    connect(service, options(Mapping::Buddy).with_buddy(server))
}

/// Lets all servers get to know each other: what a server cannot forward, because it has not heard of one that joined
/// after it, its client repeats, and that would count.
fn acquaint(service: &Service) {
    for index in 0..service.servers.len() {
        let client = through_server(service, index);
        let layout = format!("striped(1) over {}", service.servers.len());
        let file = create(&client, &format!("/known-{index}"), "", &layout);
        file.write_at(0, &[1; 100]).unwrap();
    }
}

fn counter(service: &Service, index: usize, name: &str) -> u64 {
    let list = service.servers[index].statistics();
    list.iter().find(|c| c.name == name).unwrap().value
}

fn total(service: &Service, name: &str) -> u64 {
    (0..service.servers.len())
        .map(|i| counter(service, i, name))
        .sum()
}

fn open(client: &Client, path: &str) -> File {
    let options = OpenOptions::new().read().write();
    client.open(path, &options).unwrap()
}

/// The index of the server that has a byte of a file.
fn place(service: &Service, file: &File, byte: u64) -> usize {
    let state = file.layout();
    let piece = &state.pieces[0];
    let (subfile, _) = piece.partition.owner(layout::FileOffset(byte)).unwrap();
    let server = piece.places[subfile][0].server;
    let find = service.servers.iter().position(|s| s.server().0 == server);
    find.unwrap()
}

#[test]
fn seed004_s07_bytes_are_the_same_whoever_has_them_and_whoever_is_asked() {
    let service = Service::start(3);
    let direct = service.connect();
    let layouts = [
        ("", "striped(5) over 3"),
        ("", "whole"),
        ("u16[60,80]", "(cyclic(2), block(30)) onto 2x3"),
    ];
    let views = ["", "striped(7) over 2 [1]", "strided(3, 4: 3x9) period 40"];
    for (i, mapping) in GATEWAYS.into_iter().enumerate() {
        let client = through(&service, mapping);
        for (j, (array, layout)) in layouts.into_iter().enumerate() {
            let path = format!("/same-{i}-{j}");
            let plain = create(&direct, &path, array, layout);
            let file = open(&client, &path);
            let mut model = vec![0u8; 9600];
            for (k, view) in views.into_iter().enumerate() {
                for handle in [&file, &plain] {
                    match view {
                        "" => handle.set_view(&client::View::whole_file()).unwrap(),
                        text => {
                            let view = layout::Layout::on_bytes(&text.parse().unwrap()).unwrap();
                            let view = client::View::new(
                                layout::FileOffset(0),
                                view.period(),
                                view.element(0).unwrap(),
                            );
                            handle.set_view(&view.unwrap()).unwrap();
                        }
                    }
                }
                // Writes in several steps, irregular ones among them, grow the file.
                let shown = file.view().len_within(9600) as usize;
                let bytes = pattern(shown, 100 * i + 10 * j + k);
                let mut at = 0;
                for step in [1usize, 700, 13, 999, usize::MAX] {
                    let n = step.min(shown - at);
                    file.hint_next((shown - at) as u64, 3).unwrap();
                    file.hint_following(7, 5).unwrap();
                    assert_eq!(file.write_at(at as u64, &bytes[at..at + n]).unwrap(), n);
                    at += n;
                }
                for (v, byte) in bytes.iter().enumerate() {
                    let x = file.view().view_to_file(layout::ViewOffset(v as u64));
                    model[x.unwrap().0 as usize] = *byte;
                }
                for reader in [&plain, &file] {
                    let mut read = vec![0xee; shown + 20];
                    assert_eq!(reader.read_at(0, &mut read).unwrap(), shown);
                    assert!(read[..shown] == bytes, "{mapping} {layout} {view}");
                    assert!(read[shown..].iter().all(|b| *b == 0xee));
                    // Backwards, and beyond the end.
                    for at in (0..shown).step_by(1001).rev() {
                        let mut some = vec![0; 50.min(shown - at)];
                        assert_eq!(reader.read_at(at as u64, &mut some).unwrap(), some.len());
                        assert_eq!(some, bytes[at..at + some.len()]);
                    }
                    assert_eq!(reader.read_at(shown as u64 + 1, &mut [0; 9]).unwrap(), 0);
                }
            }
            let mut read = vec![0; model.len()];
            plain.set_view(&client::View::whole_file()).unwrap();
            let size = plain.size().unwrap() as usize;
            assert_eq!(plain.read_at(0, &mut read).unwrap(), size);
            assert!(read[..size] == model[..size], "{mapping} {layout}");
            assert!(model[size..].iter().all(|b| *b == 0));
        }
    }
    assert_eq!(total(&service, "whole_requests_broken"), 0);
}

/// Requests beyond the message limit and beyond the threshold of announced writes.
#[test]
fn seed001_s47_long_requests_and_wrong_predictions_give_the_right_bytes() {
    let service = Service::start(3);
    let client = through(&service, Mapping::Predict);
    let file = create(&client, "/long", "", "striped(1000) over 3");
    let bytes = pattern(3 << 20, 5);
    assert_eq!(file.write_at(0, &bytes).unwrap(), bytes.len());
    let phases = file.last_access();
    assert!(phases.messages() >= 12, "{}", phases.messages());
    assert_eq!(phases.own_bytes + phases.bytes_between, bytes.len() as u64);
    let mut read = vec![0; bytes.len()];
    assert_eq!(file.read_at(0, &mut read).unwrap(), bytes.len());
    assert!(read == bytes);
    // Regular for a while, then somewhere else, again and again.
    for round in 0..20u64 {
        for i in 0..4 {
            let at = (round * 77_777 + i * 3000) % (3 << 20);
            let mut some = vec![0; 900];
            let n = file.read_at(at, &mut some).unwrap();
            assert!(some[..n] == bytes[at as usize..at as usize + n]);
        }
    }
}

#[test]
fn seed001_s33_between_servers_travels_what_the_contacted_one_lacks() {
    let service = Service::start(3);
    acquaint(&service);
    let names = ["matching_sum_millionths", "whole_requests"];
    let before = names.map(|name| total(&service, name));
    let plain = create(&service.connect(), "/lacks", "", "striped(100) over 3");
    let bytes = pattern(3000, 1);
    plain.write_at(0, &bytes).unwrap();
    for index in 0..3 {
        let client = through_server(&service, index);
        let file = open(&client, "/lacks");
        for (at, len) in [
            (0u64, 3000usize),
            (50, 100),
            (0, 100),
            (120, 460),
            (2999, 1),
        ] {
            let there = (at..at + len as u64)
                .filter(|x| place(&service, &file, *x) == index)
                .count() as u64;
            let before = total(&service, "internal_bytes");
            let mut read = vec![0; len];
            file.read_at(at, &mut read).unwrap();
            assert!(read == bytes[at as usize..at as usize + len]);
            let phases = file.last_access();
            assert_eq!(phases.own_bytes, there);
            assert_eq!(phases.bytes_between, len as u64 - there);
            assert_eq!(phases.matching(), there as f64 / len as f64);
            let moved = total(&service, "internal_bytes") - before;
            assert_eq!(moved, len as u64 - there, "{at} {len} at {index}");
        }
    }
    let after = names.map(|name| total(&service, name));
    let (sum, count) = (after[0] - before[0], after[1] - before[1]);
    assert!(count == 15 && sum > 0 && sum < count * 1_000_000);
    assert_eq!(
        total(&service, "forwarded_bytes"),
        total(&service, "internal_bytes")
    );
}

#[test]
fn seed004_s02_what_the_buddy_has_causes_no_internal_message() {
    let service = Service::start(3);
    let plain = create(&service.connect(), "/mine", "", "striped(100) over 3");
    plain.write_at(0, &pattern(900, 2)).unwrap();
    let client = through_server(&service, place(&service, &plain, 0));
    let file = open(&client, "/mine");
    let mut read = [0; 100];
    file.read_at(0, &mut read).unwrap();
    file.write_at(300, &read).unwrap();
    assert_eq!(total(&service, "internal_directed"), 0);
    assert_eq!(file.last_access().hops, 1);
}

#[test]
fn seed004_s03_every_other_owner_gets_one_directed_request_and_nobody_a_broadcast() {
    let service = Service::start(4);
    acquaint(&service);
    let plain = create(&service.connect(), "/owners", "", "striped(10) over 4");
    plain.write_at(0, &pattern(4000, 3)).unwrap();
    let client = through_server(&service, 0);
    let file = open(&client, "/owners");
    for (len, owners) in [(4000u64, 4u64), (30, 3), (20, 2), (10, 1)] {
        let has_first = (0..len).any(|x| place(&service, &file, x) == 0);
        let expected = owners - u64::from(has_first);
        for is_write in [false, true] {
            let before = total(&service, "internal_directed");
            match is_write {
                true => file.write_at(0, &vec![7; len as usize]).unwrap(),
                false => file.read_at(0, &mut vec![0; len as usize]).unwrap(),
            };
            let sent = total(&service, "internal_directed") - before;
            assert_eq!(sent, expected, "{len}");
            assert_eq!(file.last_access().internal_messages, expected);
        }
    }
    assert_eq!(total(&service, "internal_broadcast"), 0);
}

#[test]
fn seed004_s04_a_server_that_serves_a_forwarded_request_asks_nobody() {
    let service = Service::start(3);
    acquaint(&service);
    let plain = create(&service.connect(), "/once", "", "striped(10) over 3");
    plain.write_at(0, &pattern(300, 3)).unwrap();
    let file = open(&through_server(&service, 1), "/once");
    let now = || {
        let names = ["internal_directed", "forwarded_requests"];
        [0, 1, 2].map(|index| names.map(|name| counter(&service, index, name)))
    };
    let before = now();
    file.read_at(0, &mut [0; 300]).unwrap();
    let after = now();
    for (index, sent, served) in [(0, 0, 1), (1, 2, 0), (2, 0, 1)] {
        let change: Vec<u64> = (0..2).map(|i| after[index][i] - before[index][i]).collect();
        assert_eq!(change, [sent, served], "{index}");
    }
}

/// Nobody is asked for what he does not have: owners stand in the layout, so there is no broadcast to drop.
#[test]
fn seed004_s05_servers_without_bytes_of_a_request_hear_nothing_of_it() {
    let service = Service::start(3);
    let plain = create(&service.connect(), "/two", "", "striped(10) over 2");
    plain.write_at(0, &pattern(100, 3)).unwrap();
    let has = |i| (0..100).any(|x| place(&service, &plain, x) == i);
    let without = (0..3).find(|i| !has(*i)).unwrap();
    let with = (0..3).find(|i| has(*i)).unwrap();
    let file = open(&through_server(&service, with), "/two");
    let mut read = [0; 100];
    file.read_at(0, &mut read).unwrap();
    assert!(read[..] == pattern(100, 3));
    assert_eq!(counter(&service, without, "forwarded_requests"), 0);
    assert_eq!(total(&service, "internal_broadcast"), 0);
    // A gateway without a byte of the file serves it all the same.
    let file = open(&through_server(&service, without), "/two");
    file.write_at(95, &[9; 10]).unwrap();
    assert_eq!(
        (file.size().unwrap(), file.last_access().own_bytes),
        (105, 0)
    );
    plain.read_at(5, &mut read).unwrap();
    assert!(read[..90] == pattern(100, 3)[5..95] && read[90..] == [9; 10]);
}

/// In the normal way every server answers the client itself. Through a gateway all come by it, because
/// the client has no other.
#[test]
fn seed004_s06_parts_reach_the_client_without_passing_another_server() {
    let service = Service::start(3);
    let client = service.connect();
    let file = create(&client, "/direct", "", "striped(10) over 3");
    file.write_at(0, &pattern(90, 3)).unwrap();
    file.read_at(0, &mut [0; 90]).unwrap();
    let phases = file.last_access();
    assert_eq!((phases.gateway, phases.internal_messages), (None, 0));
    assert_eq!((phases.bytes_between, phases.matching()), (0, 1.0));
    let parts: Vec<u64> = phases.servers.iter().map(|s| s.bytes).collect();
    assert_eq!(parts, [30, 30, 30]);
    assert_eq!(
        total(&service, "internal_directed") + total(&service, "whole_requests"),
        0
    );
}

#[test]
fn seed001_s40_parts_of_the_normal_way_are_disjoint_complete_and_where_they_lie() {
    let service = Service::start(3);
    let client = service.connect();
    let file = create(&client, "/parts", "", "striped(7) over 3");
    file.write_at(0, &pattern(1000, 3)).unwrap();
    for (at, len) in [(0u64, 1000usize), (3, 5), (5, 4), (100, 333)] {
        file.read_at(at, &mut vec![0; len]).unwrap();
        let phases = file.last_access();
        let mut expected: HashMap<u64, u64> = HashMap::new();
        for x in at..at + len as u64 {
            let server = service.servers[place(&service, &file, x)].server();
            *expected.entry(server.0).or_default() += 1;
        }
        let parts: HashMap<u64, u64> = phases.servers.iter().map(|s| (s.server, s.bytes)).collect();
        assert_eq!(parts.len(), phases.servers.len(), "no server twice");
        assert_eq!(parts, expected);
    }
    assert_eq!(total(&service, "internal_bytes"), 0);
}

#[test]
fn seed001_s41_each_involved_server_gets_one_message() {
    let service = Service::start(3);
    let client = connect(&service, ConnectOptions::default().with_direct(false));
    let file = create(&client, "/messages", "u16[60,80]", "(cyclic, *) onto 3");
    file.write_at(0, &pattern(9600, 3)).unwrap();
    file.set_view_text("(*, block) onto 4 [1]").unwrap();
    for (at, len, servers) in [(0, 2400, 3), (0, 40, 1), (30, 20, 2)] {
        file.read_at(at, &mut vec![0; len]).unwrap();
        let phases = file.last_access();
        assert_eq!(phases.servers.len(), servers, "{at} {len}");
        assert!(phases.servers.iter().all(|s| s.messages == 1));
    }
}

#[test]
fn seed001_s35_round_robin_goes_on_over_files() {
    let service = Service::start(2);
    let direct = service.connect();
    let clients: Vec<Client> = (0..3)
        .map(|_| through(&service, Mapping::RoundRobin))
        .collect();
    let mut assigned = Vec::new();
    for path in ["/one", "/two"] {
        create(&direct, path, "", "striped(10) over 2");
        for client in &clients {
            assigned.push(open(client, path).server().unwrap());
        }
    }
    let (a, b) = (service.servers[0].server(), service.servers[1].server());
    assert_eq!(assigned, [a, b, a, b, a, b]);
}

#[test]
fn seed001_s50b_round_robin_stays_even_when_many_clients_open_at_once() {
    let service = Service::start(3);
    create(&service.connect(), "/shared", "", "striped(10) over 3");
    let barrier = Barrier::new(6);
    let assigned: Vec<ServerId> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..6)
            .map(|_| {
                scope.spawn(|| {
                    let client = through(&service, Mapping::RoundRobin);
                    barrier.wait();
                    let files: Vec<File> = (0..5).map(|_| open(&client, "/shared")).collect();
                    files.iter().map(|f| f.server().unwrap()).collect()
                })
            })
            .collect();
        let lists = threads.into_iter().map(|t| t.join().unwrap());
        lists.collect::<Vec<Vec<ServerId>>>().concat()
    });
    for server in &service.servers {
        let count = assigned.iter().filter(|s| **s == server.server()).count();
        assert_eq!(count, 10);
    }
}

#[test]
fn seed001_s36_all_clients_can_talk_to_one_server() {
    let service = Service::start(3);
    let direct = service.connect();
    create(&direct, "/master", "", "striped(10) over 3");
    let mut servers = Vec::new();
    for i in 0..4u8 {
        let file = open(&through(&service, Mapping::Master), "/master");
        file.write_at(u64::from(i) * 30, &[i + 1; 30]).unwrap();
        servers.push(file.server().unwrap());
    }
    servers.dedup();
    assert_eq!(servers.len(), 1);
    let mut read = [0; 120];
    open(&direct, "/master").read_at(0, &mut read).unwrap();
    assert!((0..120).all(|x| read[x] == (x / 30) as u8 + 1));
}

/// Views of whole servers, so that the best server is plain to see.
fn own_view(file: &File, k: usize) {
    file.set_view_text(&format!("striped(100) over 3 [{k}]"))
        .unwrap();
}

#[test]
fn seed001_s44_a_view_begins_at_the_server_of_its_first_bytes() {
    let service = Service::start(3);
    create(&service.connect(), "/first", "", "striped(100) over 3");
    for mapping in [Mapping::Predict, Mapping::Hint] {
        let client = through(&service, mapping);
        let file = open(&client, "/first");
        let server = |x| service.servers[place(&service, &file, x)].server();
        assert_eq!(file.server(), Some(server(0)), "straight after opening");
        for k in [2, 0, 1, 1] {
            own_view(&file, k);
            assert_eq!(file.server(), Some(server(100 * k as u64)), "{mapping} {k}");
        }
    }
}

#[test]
fn seed001_s49_a_client_stays_where_its_whole_subfile_is() {
    let service = Service::start(3);
    create(&service.connect(), "/stay", "", "striped(100) over 3");
    let file = open(&through(&service, Mapping::Predict), "/stay");
    own_view(&file, 1);
    let server = file.server();
    for at in [0u64, 50, 100, 7, 900, 3, 3, 2000] {
        file.write_at(at, &[1; 60]).unwrap();
        assert_eq!(file.server(), server);
        assert_eq!(file.last_access().matching(), 1.0);
    }
    assert_eq!(total(&service, "internal_directed"), 0);
    own_view(&file, 2);
    assert_ne!(file.server(), server);
}

#[test]
fn seed004_s39_data_that_is_laid_out_as_it_is_accessed_needs_no_internal_message() {
    let service = Service::start(3);
    let direct = service.connect();
    create(&direct, "/match", "u8[90,40]", "(block, *) onto 3");
    for k in 0..3 {
        let file = open(&through(&service, Mapping::Predict), "/match");
        file.set_view_text(&format!("(block, *) onto 3 [{k}]"))
            .unwrap();
        let bytes = pattern(1200, k);
        file.write_at(0, &bytes).unwrap();
        let mut read = vec![0; 1200];
        file.read_at(0, &mut read).unwrap();
        assert!(read == bytes);
        assert_eq!(file.last_access().matching(), 1.0);
    }
    assert_eq!(total(&service, "internal_directed"), 0);
}

#[test]
fn seed001_s39_a_server_named_in_an_answer_is_used_from_the_next_operation_on() {
    let service = Service::start(3);
    create(&service.connect(), "/next", "", "striped(100) over 3");
    let file = open(&through(&service, Mapping::Predict), "/next");
    let server = |x| service.servers[place(&service, &file, x)].server();
    // Sequential stripes: after two steps the next stripe is expected, at the next server.
    let mut used = Vec::new();
    for i in 0..9u64 {
        let before = file.server().unwrap();
        file.write_at(i * 100, &[i as u8; 100]).unwrap();
        assert_eq!(file.last_access().gateway, Some(before), "never during one");
        used.push(before);
    }
    let expected: Vec<ServerId> = (0..9).map(|i| server(i * 100)).collect();
    assert_eq!(used[3..], expected[3..]);
    // Re-evaluated after a hint, too.
    let hinted = open(&through(&service, Mapping::Hint), "/next");
    hinted.hint_next(250, 50).unwrap();
    assert_eq!(hinted.server(), Some(server(250)));
}

#[test]
fn seed001_s46_the_server_with_most_of_the_predicted_bytes_is_chosen() {
    let service = Service::start(3);
    create(&service.connect(), "/most", "", "striped(100) over 3");
    let file = open(&through(&service, Mapping::Predict), "/most");
    let server = |x| service.servers[place(&service, &file, x)].server();
    // 90 bytes every 300 from 70 on: 30 in one stripe, 60 in the next.
    for i in 0..4u64 {
        file.write_at(70 + 300 * i, &[1; 90]).unwrap();
    }
    assert_eq!(file.server(), Some(server(100)));
    file.write_at(70 + 1200, &[1; 90]).unwrap();
    assert_eq!(file.last_access().matching(), 60.0 / 90.0);
}

#[test]
fn seed001_s45_a_new_view_begins_without_history() {
    let service = Service::start(3);
    create(&service.connect(), "/forget", "", "striped(100) over 3");
    let file = open(&through(&service, Mapping::Predict), "/forget");
    for i in 0..5u64 {
        file.write_at(i * 100, &[1; 100]).unwrap();
    }
    // With its history it would now expect the stripe after the one it is at.
    file.set_view(&client::View::whole_file()).unwrap();
    let first = service.servers[place(&service, &file, 0)].server();
    assert_eq!(file.server(), Some(first));
    file.write_at(500, &[1; 100]).unwrap();
    assert_eq!(file.server(), Some(first), "one access is no pattern");
}

#[test]
fn seed001_s50a_the_history_goes_with_the_client() {
    let service = Service::start(3);
    create(&service.connect(), "/along", "", "striped(100) over 3");
    let file = open(&through(&service, Mapping::Predict), "/along");
    // Each access is at another server, which would know one access of three by itself.
    let mut matched = 0;
    for i in 0..12u64 {
        file.write_at(i * 100, &[1; 100]).unwrap();
        matched += u64::from(file.last_access().matching() == 1.0);
    }
    assert!(matched >= 9, "{matched}");
    assert!(total(&service, "clients_remapped") >= 8);
}

#[test]
fn seed001_s48_hints_name_the_server_and_wrong_ones_do_no_harm() {
    let service = Service::start(3);
    create(&service.connect(), "/hint", "", "striped(100) over 3");
    let file = open(&through(&service, Mapping::Hint), "/hint");
    let bytes = pattern(1000, 9);
    file.write_at(0, &bytes).unwrap();
    let server = |x| service.servers[place(&service, &file, x)].server();
    // Irregular, but announced: always the right one.
    for at in [420u64, 110, 830, 250, 17] {
        file.hint_next(at, 50).unwrap();
        assert_eq!(file.server(), Some(server(at)));
        let mut read = [0; 50];
        file.read_at(at, &mut read).unwrap();
        assert!(read[..] == bytes[at as usize..][..50]);
        assert_eq!(file.last_access().matching(), 1.0);
    }
    // In view bytes: byte 30 of this view is byte 130 of the file.
    own_view(&file, 1);
    file.hint_next(30, 10).unwrap();
    assert_eq!(file.server(), Some(server(130)));
    file.set_view(&client::View::whole_file()).unwrap();
    // Piggybacked on the operation before.
    file.hint_following(250, 10).unwrap();
    file.read_at(0, &mut [0; 10]).unwrap();
    assert_eq!(file.server(), Some(server(250)));
    // Wrong hints: as right as ever.
    for wrong in [0, 5000, u64::MAX / 4] {
        file.hint_next(wrong, 100).unwrap();
        let mut read = [0; 1000];
        assert_eq!(file.read_at(0, &mut read).unwrap(), 1000);
        assert!(read[..] == bytes);
    }
}

#[test]
fn seed001_s34_there_is_a_server_for_every_handle_at_any_time() {
    let mut service = Service::start(3);
    let direct = service.connect();
    create(&direct, "/any", "", "striped(100) over 1");
    let home = place(&service, &open(&direct, "/any"), 0);
    let clients: Vec<Client> = GATEWAYS.map(|m| through(&service, m)).into();
    let files: Vec<File> = clients.iter().map(|c| open(c, "/any")).collect();
    for file in &files {
        assert!(file.server().is_some());
        file.write_at(0, &[1; 250]).unwrap();
    }
    // Those whose server goes get another one, as long as there is one.
    for index in (0..3).rev().filter(|i| *i != home) {
        service.servers.remove(index).stop();
        for file in &files {
            assert_eq!(file.read_at(0, &mut [0; 250]).unwrap(), 250);
            assert!(file.server().is_some());
        }
    }
}

#[test]
fn seed001_s31_a_server_behind_the_gateway_that_is_gone_fails_the_request_with_its_name() {
    let mut service = Service::start(3);
    create(&service.connect(), "/gone", "", "striped(100) over 3");
    let file = open(&through_server(&service, 0), "/gone");
    file.write_at(0, &pattern(3000, 1)).unwrap();
    let gone = service.servers.remove(2);
    let name = format!("server {}", gone.server().0);
    gone.stop();
    let error = file.read_at(0, &mut [0; 3000]).unwrap_err().to_string();
    assert!(error.contains(&name), "{error}");
    let error = file.write_at(0, &[1; 3000]).unwrap_err().to_string();
    assert!(error.contains(&name), "{error}");
    // What does not need it goes on.
    let there = (0..30).find(|i| place_number(&file, i * 100) == service.servers[1].server().0);
    file.read_at(there.unwrap() * 100, &mut [0; 100]).unwrap();
}

fn place_number(file: &File, byte: u64) -> u64 {
    let state = file.layout();
    let piece = &state.pieces[0];
    let (subfile, _) = piece.partition.owner(layout::FileOffset(byte)).unwrap();
    piece.places[subfile][0].server
}

/// Three clients, each through another server, all of whose bytes are elsewhere, all at once.
#[test]
fn seed001_s08_servers_that_all_forward_to_each_other_go_on() {
    let service = Service::start(3);
    let direct = service.connect();
    create(&direct, "/ring", "", "striped(4096) over 3");
    let rounds = 12;
    std::thread::scope(|scope| {
        for index in 0..6usize {
            let service = &service;
            scope.spawn(move || {
                let file = open(&through_server(service, index % 3), "/ring");
                let len = 600_000;
                for round in 0..rounds {
                    let bytes = pattern(len, index + round);
                    file.write_at((index * len) as u64, &bytes).unwrap();
                    let mut read = vec![0; len];
                    file.read_at((index * len) as u64, &mut read).unwrap();
                    assert!(read == bytes, "{index} {round}");
                }
            });
        }
    });
    assert_eq!(total(&service, "whole_requests_broken"), 0);
}

#[test]
fn seed004_s01_every_client_has_exactly_one_buddy_which_may_have_many_clients() {
    let service = Service::start(3);
    let clients: Vec<Client> = (0..7).map(|_| service.connect()).collect();
    let mut count: HashMap<u64, u64> = HashMap::new();
    for client in &clients {
        let buddy = client.buddy().unwrap();
        assert_eq!(buddy.client, client.id());
        assert_eq!(client.buddy().unwrap(), buddy, "always the same");
        *count.entry(buddy.server.0).or_default() += 1;
    }
    // All are near; load decides.
    let mut counts: Vec<u64> = count.into_values().collect();
    counts.sort_unstable();
    assert_eq!(counts, [2, 2, 3]);
    assert!(!clients[0].buddy_statistics().unwrap().is_empty());
    // One that leaves makes room: its server has the lowest number of the emptiest.
    let left = clients[0].buddy().unwrap().server;
    let mut rest = clients;
    rest.remove(0);
    crate::profile::until("its farewell is heard", || {
        let counters = rest[0].meta_statistics().unwrap();
        let clients = counters.iter().find(|c| c.name == "clients");
        clients.unwrap().value == 6
    });
    assert_eq!(service.connect().buddy().unwrap().server, left);
}

#[test]
fn seed004_s81_the_buddy_is_of_the_same_host_and_can_be_named() {
    let service = Service::start(3);
    let buddy = service.connect().buddy().unwrap();
    assert!(buddy.is_same_host);
    for server in &service.servers {
        let client = connect(
            &service,
            options(Mapping::Buddy).with_buddy(server.server()),
        );
        assert_eq!(client.buddy().unwrap().server, server.server());
    }
    let url = ServiceUrl::At(Endpoint::Unix(service.dir.join("meta")));
    let none = ConnectOptions::default().with_buddy(ServerId(99));
    let error = Client::connect(&url, none).unwrap_err().to_string();
    assert!(error.contains("buddy") && error.contains("99"), "{error}");
}
