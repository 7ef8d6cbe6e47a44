//! The manager and servers die while a file moves into another layout.
//! The bytes are equal afterwards in whichever layout, another move works, and nothing is left over.

use system_tests::{Store, until};

use crate::{create, open, read, rounds, service, some_time, whole};

const LEN: usize = 6_000_000;
const BEFORE: &str = "striped(64KiB) over 3";
const AFTER: &str = "striped(1000) over 3 from 1";

#[test]
fn move_that_was_interrupted_leaves_equal_bytes_and_can_be_repeated() {
    for store in [Store::Disk, Store::Memory] {
        let mut service = service(3, store);
        for (round, mut random) in rounds(10, 2).enumerate() {
            // A memory server that dies takes its bytes with it, whatever moves.
            let victims: &[Option<usize>] = match store {
                Store::Disk => &[None, Some(0), Some(1)],
                Store::Memory => &[None],
            };
            for victim in victims {
                let path = format!("/f-{round}-{victim:?}");
                eprintln!("{path} {store:?}");
                let client = service.client();
                let file = create(&client, &path, BEFORE);
                file.write_at(0, &whole(0, LEN, 6)).unwrap();
                file.sync().unwrap();
                let moving = client.relayout(&path, AFTER).unwrap();
                some_time(&mut random, 40_000);
                match victim {
                    None => service.kill_meta(),
                    Some(index) => service.kill_io(*index),
                }
                service.start_all();
                service.wait_for_members(3);
                // It ends, one way or the other; a restarted manager may know nothing of it.
                let _ = moving.wait();
                assert!(
                    read(&file, 0, LEN) == whole(0, LEN, 6),
                    "{path}: the open handle"
                );
                let fresh = service.client();
                let second = open(&fresh, &path);
                assert!(read(&second, 0, LEN) == whole(0, LEN, 6), "{path}");
                let text = fresh.layout(&path).unwrap().text;
                assert!([BEFORE, AFTER].contains(&text.as_str()), "{path}: {text}");
                // Writes go to the layout that holds, and another move takes them along.
                second.write_at(100, &whole(100, 5000, 7)).unwrap();
                let other = if text == BEFORE { AFTER } else { BEFORE };
                fresh.relayout(&path, other).unwrap().wait().unwrap();
                let mut expected = whole(0, LEN, 6);
                expected[100..5100].copy_from_slice(&whole(100, 5000, 7));
                assert!(
                    read(&file, 0, LEN) == expected,
                    "{path}: after another move"
                );
                assert_eq!(fresh.layout(&path).unwrap().text, other);
                file.close().unwrap();
                second.close().unwrap();
                fresh.unlink(&path).unwrap();
            }
        }
        crate::assert_clean(&service);
        // A manager that was started again keeps unlinked files for a while: somebody may have them open.
        let client = service.client();
        until("the end of unlinked files", || {
            client.counts().unwrap().files == 0
        });
        service.wait_for_nothing();
    }
}
