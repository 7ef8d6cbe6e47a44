//! Peers that stand still in the middle of an access, with a staging buffer or a stage of the gateway in the hands of
//! the server: others get on all the same.

use std::time::Duration;

use layout::{FileOffset, View};
use wire::message::access::{ANNOUNCED, GO, READ, WHOLE, WRITE};
use wire::message::mapping::{Choose, Whole};

use crate::rig::{Client, File, Rig, header, pattern};
use crate::write_behind::read;

const BUFFER: u64 = 64 << 10;
/// Bytes of one access, more than goes without a buffer.
const BYTES: u64 = 256 << 10;

/// A server with four buffers, which does not wait long for those who stand still.
fn rig() -> Rig {
    Rig::with(1, |o| {
        o.buffer_bytes = BUFFER;
        o.buffers_bytes = 4 * BUFFER;
        o.message_bytes = BYTES;
        o.direct = false;
        o.limits.buffer_wait = Duration::from_millis(200);
    })
}

/// Every other 16 bytes: nothing of it goes straight.
fn scattered() -> View {
    View::new(FileOffset(0), 32, "{(0,15)}".parse().unwrap()).unwrap()
}

fn open(rig: &Rig) -> (Client, File) {
    let mut client = rig.client();
    let file = client.open("/f", None, Some("striped(4KiB) over 2"));
    client.set_view(&file, 1, &scattered());
    (client, file)
}

fn access(file: &File) -> Vec<u8> {
    let mut control = Vec::new();
    file.access(1, 0, BYTES, BYTES).encode(&mut control);
    control
}

/// Reads and writes through buffers, whatever others do.
fn gets_on(rig: &Rig) {
    let (mut client, file) = open(rig);
    let data = pattern(BYTES, 3);
    let rounds = rig.count(0, "rounds");
    client.write(&file, 1, &scattered(), 0, &data).unwrap();
    let (read, _) = client.read(&file, 1, &scattered(), 0, BYTES).unwrap();
    assert_eq!(read, data);
    assert!(
        rig.count(0, "rounds") >= rounds + 8,
        "it goes through buffers"
    );
}

#[test]
fn writers_that_got_a_buffer_and_send_nothing_lose_it_to_others() {
    let rig = rig();
    gets_on(&rig);
    let server = rig.number(0);
    let mut stalled = Vec::new();
    // All four buffers would be theirs, were there no shares.
    for _ in 0..4 {
        let (mut client, file) = open(&rig);
        let link = client.lane(server);
        link.send(header(WRITE, ANNOUNCED), &access(&file), &[])
            .unwrap();
        stalled.push((client, file));
    }
    // Those within the share of their user have theirs.
    for (client, _) in stalled.iter_mut().take(2) {
        let (answer, _) = client.lane(server).receive().unwrap();
        assert_eq!(answer.flags, GO);
    }
    assert_eq!(rig.count(0, "buffers_lent"), 2);
    gets_on(&rig);
    let ended = |client: &mut Client| client.lane(server).receive().is_err();
    assert!(ended(&mut stalled[0].0) && ended(&mut stalled[1].0));
    // They may come back.
    let (mut client, file) = stalled.swap_remove(0);
    client.lanes.clear();
    client.set_view(&file, 1, &scattered());
    client
        .write(&file, 1, &scattered(), 0, &pattern(BYTES, 4))
        .unwrap();
}

#[test]
fn readers_that_take_nothing_lose_their_buffers_to_others() {
    let rig = rig();
    gets_on(&rig);
    let server = rig.number(0);
    let mut stalled = Vec::new();
    for _ in 0..4 {
        let (mut client, file) = open(&rig);
        let control = access(&file);
        let link = client.lane(server);
        // More answers than the socket holds.
        for _ in 0..8 {
            link.send(header(READ, 0), &control, &[]).unwrap();
        }
        stalled.push(client);
    }
    while rig.count(0, "buffers_lent") < 2 {
        std::thread::yield_now();
    }
    gets_on(&rig);
    drop(stalled);
    gets_on(&rig);
}

/// The bytes of a straight read stay in memory until its client has taken them.
#[test]
fn straight_readers_that_take_nothing_lose_their_memory_to_others() {
    const LIMIT: u64 = 4 << 20;
    const PART: u64 = 512 << 10;
    let rig = Rig::on_disk(LIMIT, true);
    let server = rig.number(0);
    let whole = View::whole_file();
    let open = |client: &mut Client| {
        let file = client.open("/f", None, Some("striped(4KiB) over 1"));
        client.set_view(&file, 1, &whole);
        file
    };
    let mut other = rig.client();
    let file = open(&mut other);
    for k in 0..16 {
        let access = file.access(1, k * PART, (k + 1) * PART, PART);
        let bytes = pattern(PART, k);
        other.write_at(server, access, &file, &bytes).unwrap();
    }
    // More than there is memory for.
    let waits = rig.count(0, "room_waits");
    let mut stalled = Vec::new();
    for k in 0..10 {
        let mut client = rig.client();
        let file = open(&mut client);
        let mut control = Vec::new();
        let access = file.access(1, k * PART, (k + 1) * PART, PART);
        access.encode(&mut control);
        let link = client.lane(server);
        link.send(header(READ, 0), &control, &[]).unwrap();
        stalled.push(client);
    }
    while rig.count(0, "room_waits") == waits {
        std::thread::yield_now();
    }
    let mut found = vec![0; PART as usize];
    for k in 12..16 {
        read(&mut other, &file, k * PART, &mut found);
        assert!(found == pattern(PART, k));
    }
    // All that held memory were ended, and those who came behind them were served.
    let ended = |client: &mut Client| {
        let link = client.lane(server);
        let (answer, _) = link.receive().unwrap();
        let mut payload = vec![0; answer.payload_bytes as usize];
        link.receive_payload(&mut payload).is_err()
    };
    let ended = stalled.iter_mut().map(ended).filter(|ended| *ended).count();
    assert!((1..10).contains(&ended), "{ended} of 10");
}

#[test]
fn whole_requests_that_are_not_sent_lose_their_stage_to_others() {
    let rig = rig();
    let server = rig.number(0);
    let whole = |file: &File| {
        let mut control = Vec::new();
        let whole = Whole {
            by: Choose::Keep,
            size: falls::MAX_OFFSET,
            ends: None,
            upcoming: None,
            history: &[],
            access: file.access(1, 0, BYTES, BYTES),
        };
        whole.encode(&mut control);
        control
    };
    // There is one stage.
    let (mut first, file) = open(&rig);
    let link = first.lane(server);
    link.send(header(WRITE, WHOLE | ANNOUNCED), &whole(&file), &[])
        .unwrap();
    let (answer, _) = link.receive().unwrap();
    assert_eq!(answer.flags, GO);
    let (mut second, file) = open(&rig);
    let link = second.lane(server);
    let data = pattern(BYTES, 5);
    link.send(header(WRITE, WHOLE), &whole(&file), &[&data])
        .unwrap();
    let (answer, _) = link.receive().unwrap();
    assert!(answer.status.is_ok());
    assert!(first.lane(server).receive().is_err());
}
