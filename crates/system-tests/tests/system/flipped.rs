//! A network that turns a bit of a payload: noticed by the checksum that travels with it, and sent again.
//!
//! A relay stands before one of two servers. Without checksums the same bit gets through, so the relay does turn it.

use client::{Client, ConnectOptions, Endpoint, Mapping, Status};
use system_tests::files::{create, read, whole};
use system_tests::{Direction, Relay, Service, ServiceOptions, Transport};

const SIZES: [usize; 3] = [3_000, 300_000, 3 << 20];

/// Two servers on TCP; everybody reaches the second through the relay.
fn service() -> (Service, Relay) {
    let options = ServiceOptions::new(2).disk().transport(Transport::Tcp);
    let mut service = options.start();
    let relay = Relay::start();
    service.kill_io(1);
    let mut command = service.io_command(1);
    command.args(["--advertise", &format!("tcp:{}", relay.address())]);
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
