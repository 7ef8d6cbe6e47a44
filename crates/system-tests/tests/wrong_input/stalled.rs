//! Peers that stop in the middle: one that reads no further, one that sends no further.
//! Servers that are stopped belong here too: nobody waits for them who does not have to.

use client::ServerId;
use layout::{FileOffset, View};
use system_tests::raw::{Raw, access, version_of};
use system_tests::{ServiceOptions, Store, pattern};
use wire::describe;
use wire::message::Bytes;
use wire::message::access::{ANNOUNCED, READ, WRITE};
use wire::message::file::SetView;

use crate::{assert_alive, create, read, second, whole};

const LEN: usize = 8 << 20;
const PART: u64 = 1 << 20;

/// Every other 16 bytes: nothing of it goes straight, all of it through buffers.
fn scattered() -> View {
    View::new(FileOffset(0), 32, "{(0,15)}".parse().unwrap()).unwrap()
}

/// More stalled peers than there are buffers, and everybody else goes on, through buffers too.
#[test]
fn seed004_s17_stalled_peers_do_not_exhaust_the_buffers() {
    for store in [Store::Memory, Store::Disk] {
        let options = ServiceOptions::new(1).store(store);
        let options = options.io_arguments(["--buffers", "4MiB", "--buffer", "1MiB"]);
        // Copies by the client itself would need no buffer.
        let options = options.direct(false);
        let mut service = options.start();
        let client = service.client();
        let file = create(&client, "/f", "striped(4KiB) over 1");
        file.write_at(0, &whole(0, LEN, 1)).unwrap();
        let mut manager = Raw::client(&service.meta().endpoint().clone());
        let opened = manager.open("/f");
        let index = service.index_of(ServerId(opened.layout.owner.server));
        let endpoint = service.io(index).endpoint().clone();
        let version = version_of(&opened);
        let epoch = opened.attributes.epoch;
        let view = scattered();
        let mut description = Vec::new();
        describe::put_view(&mut description, &view);
        let set_view = SetView {
            view: 1,
            file: opened.attributes.file,
            capability: opened.capability.clone(),
            description_bytes: description.len() as u64,
            description: Bytes(description),
        };
        let mut stalled = Vec::new();
        for k in 0..8 {
            // A large read of which nothing is taken.
            let mut reader = manager.beside(&endpoint);
            reader.ask(&set_view).unwrap();
            let part = access(1, 0, 2 * PART, epoch, &version);
            reader.begin(READ, 0, &part, 0).unwrap();
            stalled.push(reader);
            // A write of which only a part comes: in one frame, and announced.
            let mut writer = manager.beside(&endpoint);
            writer.ask(&set_view).unwrap();
            let part = access(1, 2 * PART, PART, epoch, &version);
            if k % 2 == 0 {
                writer.begin(WRITE, 0, &part, PART).unwrap();
                writer.send(&[0xdd; 1000]).unwrap();
            } else {
                // A buffer may be lent to it; nothing comes.
                writer.begin(WRITE, ANNOUNCED, &part, 0).unwrap();
            }
            stalled.push(writer);
        }
        // The same file and others, by somebody else, large and small.
        let other = second(&service);
        let same = crate::open(&other, "/f");
        assert!(read(&same, 0, 3 * PART as usize) == whole(0, 3 * PART as usize, 1));
        let far = 6 * PART;
        same.write_at(far, &whole(far, PART as usize, 2)).unwrap();
        assert!(read(&same, far, PART as usize) == whole(far, PART as usize, 2));
        let rounds = service.counter(&other, index, "rounds");
        same.set_view(&view).unwrap();
        let mut part = vec![0; PART as usize];
        assert_eq!(same.read_at(0, &mut part).unwrap(), part.len());
        assert!(part == pattern(&view, 0, part.len(), 1));
        same.write_at(7 * PART / 2, &part[..part.len() / 2])
            .unwrap();
        let passed = service.counter(&other, index, "rounds") - rounds;
        assert!(passed >= 2, "{passed} rounds");
        same.set_view(&View::whole_file()).unwrap();
        same.write_at(7 * PART, &whole(7 * PART, PART as usize, 1))
            .unwrap();
        assert_alive(&mut service);
        // With their ends all is given back; what never came has changed nothing else.
        drop(stalled);
        let now = read(&same, 0, LEN);
        let untouched = 4 * PART as usize;
        assert!(now[..untouched] == whole(0, untouched, 1));
        assert!(now[far as usize..7 * PART as usize] == whole(far, PART as usize, 2));
        same.write_at(0, &whole(0, LEN, 3)).unwrap();
        assert!(read(&same, 0, LEN) == whole(0, LEN, 3));
        assert_alive(&mut service);
    }
}

/// A server that does not answer is waited for by those who wait, and by nobody else.
#[test]
fn seed004_s18_calls_that_do_not_block_return_while_a_server_is_stopped() {
    // A direct access would not notice.
    let mut service = ServiceOptions::new(2).direct(false).start();
    let client = service.client();
    let file = create(&client, "/f", "striped(4KiB) over 2");
    file.write_at(0, &whole(0, LEN, 1)).unwrap();
    let owner = service.index_of(ServerId(file.layout().owner.server));
    let victim = 1 - owner;
    let paused = service.io(victim).pause();
    let requests: Vec<_> = (0..4)
        .map(|k| {
            let at = k * PART;
            file.write_at_nonblocking(at, whole(at, PART as usize, 2))
        })
        .collect();
    // All have returned, none is done; the other server goes on serving.
    assert!(requests.iter().all(|r| !r.test()));
    let here = service.server_id(owner);
    let state = file.layout();
    let other = second(&service);
    let same = crate::open(&other, "/f");
    let piece = &state.pieces[0];
    let mine = piece.places.iter().position(|p| p[0].server == here.0);
    let element = piece.partition.subfiles().nth(mine.unwrap()).unwrap();
    let displacement = layout::FileOffset(element.displacement());
    let view = layout::View::new(displacement, element.period(), element.set().clone());
    same.set_view(&view.unwrap()).unwrap();
    let mut part = vec![0; 1 << 16];
    let at = 5 * PART / 2;
    assert_eq!(same.read_at(at, &mut part).unwrap(), part.len());
    assert!(part == system_tests::pattern(&same.view(), at, part.len(), 1));
    drop(paused);
    for request in requests {
        let (written, _) = request.wait();
        assert_eq!(written.expect("a write"), PART as usize);
    }
    assert!(read(&file, 0, 4 * PART as usize) == whole(0, 4 * PART as usize, 2));
    assert_alive(&mut service);
}
