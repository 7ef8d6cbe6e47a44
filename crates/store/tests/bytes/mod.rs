//! Arbitrary bytes where a store expects its own: a typed error or bytes, never a panic, and no more memory than the
//! store may have. Shared by the property test and the fuzz target.
//!
//! The first byte says what the rest is: a data file as it is; changes to a good one, with or without checksums that fit;
//! the identity of a disk; the log of subfiles.

use store::conformance::{identity, pattern};
use store::disk::twin::{Loss, Twin};
use store::{DiskOptions, DiskSpec, DiskStore, Pool, PoolOptions, Store};

const NAME: &str = "0000000000000001-1-0.sub";
const PAGE: usize = 4096;
/// Most bytes that are read of a subfile, whatever its header says.
const READ: u64 = 4 << 20;

/// CRC-32C, bit by bit.
fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| (crc >> 1) ^ (0x82f6_3b78 & 0u32.wrapping_sub(crc & 1));
    let byte = |crc: u32, byte: &u8| (0..8).fold(crc ^ u32::from(*byte), step);
    !bytes.iter().fold(!0, byte)
}

fn store(twin: &Twin) -> store::Result<DiskStore> {
    let pool = Pool::new(PoolOptions {
        limit_bytes: 8 << 20,
        keep_warm_bytes: 1 << 20,
        segment_bytes: 8 << 20,
        segments: 4,
        ..PoolOptions::for_limit(8 << 20)
    });
    let disks = vec![DiskSpec::new(twin.clone())];
    DiskStore::new(pool, disks, DiskOptions::default())
}

/// A data file with two epochs, the second one unfinished.
fn good() -> Vec<u8> {
    let twin = Twin::new();
    let store = store(&twin).expect("a store");
    let subfile = store.create(&identity(1)).expect("made");
    subfile
        .write_at(0, &pattern(0, 5 * PAGE, 1))
        .expect("written");
    subfile.sync().expect("synced");
    subfile
        .write_at(PAGE as u64, &pattern(0, PAGE, 2))
        .expect("written");
    subfile.flush().expect("flushed");
    twin.bytes(NAME).expect("a data file")
}

/// Changes bytes of the pages that decide: `place, value` again and again, three bytes each.
fn changed(image: &mut [u8], changes: &[u8], fits: bool) {
    for change in changes.chunks_exact(3) {
        let place = u16::from_le_bytes([change[0], change[1]]) as usize % (4 * PAGE);
        image[place] = change[2];
    }
    if fits {
        for (page, crc) in [(0, 116), (1, 116), (2, 40), (3, 40)] {
            let page = &mut image[page * PAGE..(page + 1) * PAGE];
            page[crc..crc + 4].fill(0);
            let sum = crc32c(page);
            page[crc..crc + 4].copy_from_slice(&sum.to_le_bytes());
        }
    }
}

/// Uses whatever is there as a server would.
fn use_all(twin: &Twin) {
    let Ok(store) = store(twin) else {
        return;
    };
    store.look(None, 10);
    let _ = store.list();
    store.scan();
    let Ok(subfile) = store.open(identity(1).id) else {
        return;
    };
    let mut bytes = vec![0; 64 << 10];
    let mut at = 0;
    while at < subfile.len().min(READ) {
        let _ = subfile.read_at(at, &mut bytes);
        at += bytes.len() as u64;
    }
    let _ = subfile.read_at(subfile.len().saturating_sub(100), &mut bytes[..50]);
    let _ = subfile.scrub();
    let _ = subfile.write_at(10, b"over it");
    let _ = subfile.truncate(100);
    let _ = subfile.sync();
    let _ = store.close();
}

/// The harness.
pub(crate) fn any_bytes(data: &[u8]) {
    let Some((how, rest)) = data.split_first() else {
        return;
    };
    let twin = Twin::new();
    match how % 5 {
        0 => twin.put(NAME, rest),
        1 | 2 => {
            let mut image = good();
            changed(&mut image, rest, how % 5 == 2);
            twin.put(NAME, &image);
        }
        3 => twin.put("disk", rest),
        _ => {
            drop(store(&twin).expect("a store"));
            twin.restart(Loss::Nothing);
            let mut log = twin.bytes("subfiles").expect("a log");
            let kept = 48 * usize::from(*rest.first().unwrap_or(&0) % 2);
            let end = (kept + rest.len()).min(log.len());
            log[kept..end].copy_from_slice(&rest[..end - kept]);
            twin.put("subfiles", &log);
        }
    }
    use_all(&twin);
    // And once more, after whatever that did.
    twin.restart(Loss::Nothing);
    use_all(&twin);
}
