//! Bytes that are answered from memory and written back later.
//!
//! Bounded, in the background, in the order of the disk, and never dropped.

use layout::View;
use wire::message::file::Sync;

use crate::rig::{Rig, pattern};

#[test]
fn writers_cannot_make_more_dirty_than_a_share_of_memory() {
    let limit = 24 << 20;
    let rig = Rig::on_disk(limit, false);
    let mut client = rig.client();
    let file = client.open("/behind", None, None);
    let view = View::whole_file();
    client.set_view(&file, 1, &view);
    let step = 512 << 10;
    let mut most = 0;
    for k in 0..160u64 {
        let bytes = pattern(step, k);
        let done = client.write_at(
            file.state.owner.server,
            file.access(1, k * step, (k + 1) * step, step),
            &file,
            &bytes,
        );
        done.unwrap();
        most = most.max(rig.count(0, "dirty_bytes"));
    }
    assert!(most > 0, "nothing was ever answered from memory");
    // A third, and what the one write that crosses it brings.
    assert!(most <= limit / 3 + step, "{most} bytes dirty");
    assert!(rig.count(0, "memory_bytes") <= limit);
    client
        .ask(file.state.owner.server, &Sync { view: 1 })
        .unwrap();
    assert_eq!(rig.count(0, "dirty_bytes"), 0);
    assert!(rig.count(0, "written_back_bytes") >= 160 * step);
    let mut link_bytes = vec![0; step as usize];
    for k in (0..160u64).rev() {
        read(&mut client, &file, k * step, &mut link_bytes);
        assert!(link_bytes == pattern(step, k), "piece {k}");
    }
    assert!(rig.count(0, "cache_miss_bytes") > 0);
}

/// Without the oracle of the rig, which goes byte by byte.
pub(crate) fn read(
    client: &mut crate::rig::Client,
    file: &crate::rig::File,
    at: u64,
    into: &mut [u8],
) {
    let len = into.len() as u64;
    let access = file.access(1, at, at + len, len);
    let mut control = Vec::new();
    access.encode(&mut control);
    let link = client.lane(file.state.owner.server);
    let header = crate::rig::header(wire::message::access::READ, 0);
    link.send(header, &control, &[]).unwrap();
    let (answer, said) = link.receive().unwrap();
    assert!(answer.status.is_ok(), "{:?}", String::from_utf8_lossy(said));
    assert_eq!(answer.payload_bytes, len);
    link.receive_payload(into).unwrap();
}
