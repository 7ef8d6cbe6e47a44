//! Reading ahead into the buffer of a handle: used where it may be, void where it must be.
//!
//! Handles here are far from their servers: everything goes by message.

use client::{Client, File, Hints, OpenOptions};

use crate::service::{Service, create, pattern};

const LEN: usize = 1 << 20;

fn with_prefetch(client: &Client, path: &str, more: &[(&str, &str)]) -> File {
    let options = OpenOptions::new().read().write();
    let file = client.open(path, &options).unwrap();
    let mut hints = Hints::new();
    hints.set("prefetch", "on").unwrap();
    for (name, value) in more {
        hints.set(name, value).unwrap();
    }
    file.set_hints(&hints).unwrap();
    file
}

fn filled(service: &Service, path: &str) -> (Client, Vec<u8>) {
    let client = service.connect_how(false);
    let file = create(&client, path, "", "striped(10000) over 2");
    let bytes = pattern(LEN, 1);
    file.write_at(0, &bytes).unwrap();
    (client, bytes)
}

fn check(file: &File, expected: &[u8], at: usize, len: usize) {
    let mut bytes = vec![0; len];
    let n = file.read_at(at as u64, &mut bytes).unwrap();
    let end = (at + len).min(expected.len());
    assert_eq!(n, end.saturating_sub(at));
    assert!(bytes[..n] == expected[at.min(end)..end], "at {at}");
}

fn counted(service: &Service, name: &str) -> u64 {
    let all = service.servers.iter().flat_map(|s| s.statistics());
    all.filter(|c| c.name == name).map(|c| c.value).sum()
}

#[test]
fn seed004_s43_what_was_read_ahead_and_used_can_be_seen() {
    let service = Service::start(2);
    let (client, bytes) = filled(&service, "/f");
    let file = with_prefetch(&client, "/f", &[("prefetch_bytes", "300000")]);
    for at in (0..LEN).step_by(4096) {
        check(&file, &bytes, at, 4096);
        let seen = file.prefetch_statistics();
        assert!(seen.prefetched_bytes - seen.hit_bytes - seen.wasted_bytes <= 300_000);
    }
    let seen = file.prefetch_statistics();
    assert!(
        seen.hits > 200 && seen.hit_bytes > LEN as u64 / 2,
        "{seen:?}"
    );
    assert!(seen.prefetched_bytes <= LEN as u64 + 300_000, "{seen:?}");
    assert_eq!(file.last_access().moved, 4096);
    // Backwards and in strides too.
    let before = file.prefetch_statistics().hits;
    for k in (0..100).rev() {
        check(&file, &bytes, k * 8192, 1000);
    }
    assert!(file.prefetch_statistics().hits > before + 50);
    // Whoever turns it off, or has his bytes in reach, has none.
    let other = client.open("/f", &OpenOptions::new().read()).unwrap();
    let near = with_prefetch(&service.connect_how(true), "/f", &[]);
    for at in (0..LEN).step_by(65536) {
        check(&other, &bytes, at, 65536);
        check(&near, &bytes, at, 65536);
    }
    assert_eq!(other.prefetch_statistics().prefetched_bytes, 0);
    let near = near.prefetch_statistics();
    assert!(near.hits <= 2, "{near:?}");
    // Servers are told about ranges, and how far to look.
    let before = counted(&service, "ahead_hints");
    other.will_read(0..LEN as u64).unwrap();
    assert_eq!(counted(&service, "ahead_hints"), before + 2);
    assert_eq!(other.prefetch_statistics().announced, 2);
    other.will_read(u64::MAX - 1..u64::MAX).unwrap();
    other.will_read(5..5).unwrap();
}

#[test]
fn seed004_s42_own_writes_void_what_was_read_ahead() {
    let service = Service::start(2);
    let (client, mut bytes) = filled(&service, "/f");
    let file = with_prefetch(&client, "/f", &[]);
    let twin = with_prefetch(&client, "/f", &[("prefetch_depth", "7")]);
    let plain = client
        .open("/f", &OpenOptions::new().read().write())
        .unwrap();
    let mut x = 5u64;
    let mut random = |n: usize| {
        x = x
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        ((x >> 33) % n as u64) as usize
    };
    let mut at = 0;
    for step in 0..1500 {
        match random(10) {
            0 => {
                let writer = [&file, &twin, &plain][random(3)];
                let (to, len) = (random(bytes.len().max(1)), 1 + random(20_000));
                let new = pattern(len, step);
                writer.write_at(to as u64, &new).unwrap();
                bytes.resize(bytes.len().max(to + len), 0);
                bytes[to..to + len].copy_from_slice(&new);
            }
            1 if random(10) == 0 => {
                let size = LEN / 2 + random(LEN);
                [&file, &twin, &plain][random(3)]
                    .resize(size as u64)
                    .unwrap();
                bytes.resize(size, 0);
            }
            1 => at = random(bytes.len()),
            2 => file.will_read(random(LEN) as u64..LEN as u64).unwrap(),
            _ => {
                let reader = [&file, &twin][random(2)];
                check(reader, &bytes, at, 3000);
                at += 3000;
                if at >= bytes.len() {
                    at = 0;
                }
            }
        }
    }
    assert!(file.prefetch_statistics().hits > 50);
    // Through another view the same bytes mean something else.
    for view in ["striped(100) over 2 [0]", "striped(100) over 2 [1]"] {
        file.set_view_text(view).unwrap();
        let mut piece = vec![0; 2000];
        for k in 0..20 {
            file.read_at(k * 2000, &mut piece).unwrap();
            let first = usize::from(view.ends_with("[1]")) * 100;
            for (i, byte) in piece.iter().enumerate() {
                let v = k as usize * 2000 + i;
                assert_eq!(*byte, bytes[v / 100 * 200 + first + v % 100]);
            }
        }
    }
}

/// What others wrote and synced is seen by who syncs after that, as MPI-IO says.
#[test]
fn what_others_synced_is_seen_after_a_sync() {
    let service = Service::start(2);
    let (client, bytes) = filled(&service, "/f");
    let file = with_prefetch(&client, "/f", &[]);
    let other = service.connect_how(false);
    let writer = other
        .open("/f", &OpenOptions::new().read().write())
        .unwrap();
    let mut expected = bytes;
    for round in 0..20 {
        // The reader has read ahead of where it stands.
        for k in 0..8 {
            check(&file, &expected, k * 4096, 4096);
        }
        let new = pattern(LEN, round + 3);
        writer.write_at(0, &new).unwrap();
        writer.sync().unwrap();
        file.sync().unwrap();
        expected = new;
        check(&file, &expected, 8 * 4096, 4096);
    }
    assert!(file.prefetch_statistics().hits > 20);
    // Atomic handles see everything at once, whatever hints say.
    file.set_atomic(true).unwrap();
    let before = file.prefetch_statistics();
    for k in 0..20 {
        writer.write_at(k * 100, &[k as u8; 100]).unwrap();
        let mut byte = [0; 100];
        file.read_at(k * 100, &mut byte).unwrap();
        assert_eq!(byte, [k as u8; 100]);
    }
    assert_eq!(file.prefetch_statistics(), before);
}
