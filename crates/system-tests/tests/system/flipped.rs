//! A network that turns a bit of a payload: noticed by the checksum that travels with it, and sent again.
//!
//! A relay stands before one of two servers. Without checksums the same bit gets through, so the relay does turn it.

use client::{
    Client, ConnectOptions, Endpoint, File, Hints, Mapping, MoveState, OpenOptions, Places,
    ServerId, SharedBytes, SharedBytesMut, Status, Team,
};
use system_tests::files::{create, read, whole};
use system_tests::{Direction, Relay, Service, ServiceOptions, Transport, until};

const SIZES: [usize; 3] = [3_000, 300_000, 3 << 20];

/// Two servers on TCP; everybody reaches the second through the relay.
fn service() -> (Service, Relay) {
    service_with(None)
}

/// A service behind a relay, with servers that want checksums from others or not.
fn service_with(checksums: Option<&str>) -> (Service, Relay) {
    let options = ServiceOptions::new(2).disk().transport(Transport::Tcp);
    let mut service = options.start();
    let relay = Relay::start();
    let told = |command: &mut std::process::Command| {
        if let Some(checksums) = checksums {
            command.env("PARIO_CHECKSUMS", checksums);
        }
    };
    if checksums.is_some() {
        service.kill_io(0);
        let mut command = service.io_command(0);
        told(&mut command);
        service.io(0).start(&mut command);
    }
    service.kill_io(1);
    let mut command = service.io_command(1);
    command.args(["--advertise", &format!("tcp:{}", relay.address())]);
    told(&mut command);
    service.io(1).start(&mut command);
    let Endpoint::Tcp { host, port } = service.io(1).endpoint().clone() else {
        panic!("not over TCP");
    };
    relay.lead_to(format!("{host}:{port}").parse().unwrap());
    service.wait_for_members(2);
    (service, relay)
}

/// By parts from the client, and through a gateway that reaches the second server as clients do.
fn ways(service: &Service) -> Vec<(&'static str, ConnectOptions)> {
    let plain = service.connect_options();
    let master = plain.clone().with_mapping(Mapping::Master);
    vec![("parts", plain), ("gateway", master)]
}

#[test]
fn bit_that_is_turned_once_is_noticed_and_repaired() {
    let (service, relay) = service();
    for (way, options) in ways(&service) {
        let client = Client::connect(&service.url(), options).unwrap();
        for (tag, size) in SIZES.into_iter().enumerate() {
            let path = format!("/{way}-{tag}");
            let file = create(&client, &path, "striped(1KiB) over 2");
            let before = relay.flipped();
            relay.flip(Direction::ToServer, 1);
            file.write_at(0, &whole(0, size, 1)).unwrap();
            assert_eq!(relay.flipped(), before + 1, "{way}, {size}: nothing passed");
            assert!(read(&file, 0, size) == whole(0, size, 1), "{way}, {size}");
            relay.flip(Direction::FromServer, 1);
            assert!(read(&file, 0, size) == whole(0, size, 1), "{way}, {size}");
            assert_eq!(relay.flipped(), before + 2, "{way}, {size}: nothing passed");
        }
    }
}

#[test]
fn bits_that_are_turned_always_are_an_error_and_touch_nothing_else() {
    let (service, relay) = service();
    for (way, options) in ways(&service) {
        let client = Client::connect(&service.url(), options).unwrap();
        let file = create(&client, &format!("/{way}"), "striped(1KiB) over 2");
        let size = 400_000;
        file.write_at(0, &whole(0, size, 1)).unwrap();
        relay.flip(Direction::FromServer, u64::MAX);
        let error = file.read_at(0, &mut vec![0; size]).unwrap_err();
        assert_eq!(error.status(), Status::Damaged, "{way}: {error}");
        relay.flip(Direction::ToServer, u64::MAX);
        let written = 100_000..200_000;
        let error = file
            .write_at(100_000, &whole(100_000, 100_000, 2))
            .unwrap_err();
        assert_eq!(error.status(), Status::Damaged, "{way}: {error}");
        assert!(error.to_string().contains("damaged"), "{error}");
        relay.flip(Direction::ToServer, 0);
        // The range of the write is undefined, everything around it is as it was.
        let (now, old) = (read(&file, 0, size), whole(0, size, 1));
        assert!(now[..written.start] == old[..written.start], "{way}");
        assert!(now[written.end..] == old[written.end..], "{way}");
        file.write_at(100_000, &whole(100_000, 100_000, 2)).unwrap();
        assert!(read(&file, 100_000, 100_000) == whole(100_000, 100_000, 2));
    }
}

/// What the checksum is for: without it the bit gets through, and is stored with a good checksum.
#[test]
fn without_checksums_a_bit_gets_through() {
    let (service, relay) = service();
    let options = service.connect_options().with_checksums(false);
    let client = Client::connect(&service.url(), options).unwrap();
    let file = create(&client, "/f", "striped(1KiB) over 2");
    let size = 300_000;
    relay.flip(Direction::ToServer, 1);
    file.write_at(0, &whole(0, size, 1)).unwrap();
    assert_eq!(relay.flipped(), 1);
    let now = read(&file, 0, size);
    let wrong = now.iter().zip(whole(0, size, 1)).filter(|(a, b)| **a != *b);
    assert_eq!(wrong.count(), 1);
    assert_eq!(file.scrub().unwrap().damaged, 0);
    relay.flip(Direction::FromServer, 1);
    assert!(read(&file, 0, size) != now);
}

/// A file whose bytes all come from the second server when it is moved.
fn file_to_move(client: &Client, size: usize) -> File {
    let file = create(client, "/moved", "striped(64KiB) over [1]");
    file.write_at(0, &whole(0, size, 1)).unwrap();
    file.sync().unwrap();
    file
}

const ELSEWHERE: &str = "striped(16KiB) over [0]";

#[test]
fn bit_that_is_turned_on_the_way_of_a_move_is_noticed_and_moved_again() {
    let (service, relay) = service();
    let client = Client::connect(&service.url(), service.connect_options()).unwrap();
    let size = 3 << 20;
    let file = file_to_move(&client, size);
    relay.flip(Direction::FromServer, 2);
    client
        .relayout("/moved", ELSEWHERE)
        .unwrap()
        .wait()
        .unwrap();
    assert_eq!(relay.flipped(), 2, "nothing passed");
    assert!(read(&file, 0, size) == whole(0, size, 1));
    // And back, so that bytes come from where they were taken.
    let back = client
        .relayout("/moved", "striped(64KiB) over [1]")
        .unwrap();
    back.wait().unwrap();
    assert!(read(&file, 0, size) == whole(0, size, 1));
}

#[test]
fn move_whose_bits_are_always_turned_rests_and_the_file_stays_as_it_is() {
    let (service, relay) = service();
    let client = Client::connect(&service.url(), service.connect_options()).unwrap();
    let size = 1 << 20;
    let file = file_to_move(&client, size);
    relay.flip(Direction::FromServer, u64::MAX);
    let mut moving = client.relayout("/moved", ELSEWHERE).unwrap();
    until("the move rests", || {
        moving.progress().unwrap().state == MoveState::Paused
    });
    let progress = moving.progress().unwrap();
    assert!(
        progress.failure.contains("damaged on the way"),
        "{progress:?}"
    );
    assert_eq!(progress.moved_bytes, 0, "{progress:?}");
    relay.flip(Direction::FromServer, 0);
    assert!(read(&file, 0, size) == whole(0, size, 1));
    moving.resume().unwrap();
    moving.wait().unwrap();
    assert!(read(&file, 0, size) == whole(0, size, 1));
}

/// So the relay does turn bits of moves.
#[test]
fn without_checksums_a_bit_of_a_move_gets_through() {
    let (service, relay) = service_with(Some("0"));
    let client = Client::connect(&service.url(), service.connect_options()).unwrap();
    let size = 1 << 20;
    let file = file_to_move(&client, size);
    relay.flip(Direction::FromServer, 1);
    client
        .relayout("/moved", ELSEWHERE)
        .unwrap()
        .wait()
        .unwrap();
    assert_eq!(relay.flipped(), 1);
    let now = read(&file, 0, size);
    let wrong = now.iter().zip(whole(0, size, 1)).filter(|(a, b)| **a != *b);
    assert_eq!(wrong.count(), 1);
}

const RANKS: usize = 2;

/// Two ranks, each with every second KiB of the file, whose accesses servers direct.
fn ranks(
    service: &Service,
    options: &ConnectOptions,
    hints: &[(&str, &str)],
    program: impl Fn(&File, &Team) + Sync,
) {
    std::thread::scope(|scope| {
        for team in Team::threads(RANKS) {
            let program = &program;
            scope.spawn(move || {
                let client = Client::connect(&service.url(), options.clone()).unwrap();
                let open = OpenOptions::new().read().write();
                let file = client.open_together(&team, "/directed", &open).unwrap();
                let mut all = Hints::new();
                for (name, value) in hints {
                    all.set(name, value).unwrap();
                }
                file.set_hints_together(&team, &all).unwrap();
                let view = format!("striped(1KiB) over {RANKS} [{}]", team.rank());
                file.set_view_text_together(&team, &view).unwrap();
                program(&file, &team);
                team.barrier().unwrap();
            });
        }
    });
}

/// What a rank has of the file.
fn share(rank: usize, size: usize, tag: u64) -> Vec<u8> {
    let all = whole(0, size, tag);
    let kib = all.chunks(1 << 10).enumerate();
    let mine = kib.filter(|(i, _)| i % RANKS == rank);
    mine.flat_map(|(_, kib)| kib.to_vec()).collect()
}

fn read_together(file: &File, team: &Team, size: usize) -> client::Result<Vec<u8>> {
    let len = size / RANKS;
    let mut memory = vec![0; len];
    let into = SharedBytesMut::from_slice(&mut memory);
    let places = Places::bytes(len as u64);
    file.read_at_all(team, 0, into, 0, &places).map(|_| memory)
}

fn write_together(file: &File, team: &Team, bytes: &[u8]) -> client::Result<usize> {
    let places = Places::bytes(bytes.len() as u64);
    let from = SharedBytes::from_slice(bytes);
    file.write_at_all(team, 0, from, 0, &places)
}

const DIRECTED: [(&str, &str); 3] = [
    ("strategy", "mb_ddio"),
    ("ddio_block_size", "4096"),
    ("ddio_blocks", "4"),
];

#[test]
fn bit_of_a_packet_that_a_server_directs_is_noticed_and_repaired() {
    let (service, relay) = service();
    let options = service.connect_options();
    let client = Client::connect(&service.url(), options.clone()).unwrap();
    let size = 512 << 10;
    let file = create(&client, "/directed", "striped(4KiB) over [0,1]");
    file.write_at(0, &whole(0, size, 1)).unwrap();
    let directed = || -> u64 {
        let counters = client.server_statistics(ServerId(1)).unwrap();
        let counter = counters.iter().find(|c| c.name == "directed_operations");
        counter.unwrap().value
    };
    let before = directed();
    ranks(&service, &options, &DIRECTED, |file, team| {
        let flip = |direction| {
            team.barrier().unwrap();
            if team.rank() == 0 {
                relay.flip(direction, 1);
            }
            team.barrier().unwrap();
        };
        let share = |tag| share(team.rank(), size, tag);
        flip(Direction::FromServer);
        assert!(read_together(file, team, size).unwrap() == share(1));
        team.barrier().unwrap();
        assert_eq!(relay.flipped(), 1, "nothing passed");
        assert!(read_together(file, team, size).unwrap() == share(1));
        flip(Direction::ToServer);
        write_together(file, team, &share(2)).unwrap();
        team.barrier().unwrap();
        assert_eq!(relay.flipped(), 2, "nothing passed");
        assert!(read_together(file, team, size).unwrap() == share(2));
        // Connections are in step.
        write_together(file, team, &share(3)).unwrap();
        assert!(read_together(file, team, size).unwrap() == share(3));
    });
    // Ranks did by themselves what was damaged; everything else was directed.
    assert_eq!(directed() - before, 6, "not directed");
    assert!(read(&file, 0, size) == whole(0, size, 3));
}

/// So the relay does turn bits of these packets.
#[test]
fn without_checksums_a_bit_of_a_packet_gets_through() {
    let (service, relay) = service();
    let options = service.connect_options().with_checksums(false);
    let client = Client::connect(&service.url(), options.clone()).unwrap();
    let size = 512 << 10;
    let file = create(&client, "/directed", "striped(4KiB) over [0,1]");
    file.write_at(0, &whole(0, size, 1)).unwrap();
    let wrong = std::sync::atomic::AtomicUsize::new(0);
    ranks(&service, &options, &DIRECTED, |file, team| {
        if team.rank() == 0 {
            relay.flip(Direction::FromServer, 1);
        }
        team.barrier().unwrap();
        let found = read_together(file, team, size).unwrap();
        let right = share(team.rank(), size, 1);
        let count = found.iter().zip(right).filter(|(a, b)| **a != *b).count();
        wrong.fetch_add(count, std::sync::atomic::Ordering::SeqCst);
    });
    assert_eq!(relay.flipped(), 1);
    assert_eq!(wrong.into_inner(), 1);
}
