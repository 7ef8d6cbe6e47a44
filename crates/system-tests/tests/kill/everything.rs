//! All processes die at once after `sync` has returned.
//! Names, sizes and bytes are compared with what was promised; what nobody promised is old or new.

use system_tests::{OpenHow, Store};

use crate::{assert_clean, create, open, read, rounds, service, some_time, whole};

const LAYOUTS: [&str; 4] = [
    "striped(4KiB) over 3",
    "striped(1000) over 2 from 1",
    "striped(17) over 3",
    "striped(100000) over 3",
];

#[test]
fn seed004_s13_everything_synced_is_there_after_all_processes_were_killed() {
    let mut service = service(3, Store::Disk);
    let mut synced: Vec<(String, usize, u64)> = Vec::new();
    for (round, mut random) in rounds(7, 3).enumerate() {
        let client = service.client();
        client.mkdir(&format!("/r{round}"), None).unwrap();
        for (k, text) in LAYOUTS.iter().enumerate() {
            let path = format!("/r{round}/f{k}");
            let file = create(&client, &path, text);
            let len = 1 + random.index(250_000);
            let tag = random.draw();
            file.write_at(0, &whole(0, len, tag)).unwrap();
            assert!(file.sync().unwrap().is_durable);
            synced.push((path, len, tag));
            if k == 1 {
                // Renamed and cut after the sync: both are promises by themselves.
                let to = format!("/r{round}/moved");
                client.rename(&synced.last().unwrap().0, &to).unwrap();
                file.resize(len as u64 / 2).unwrap();
                let last = synced.last_mut().unwrap();
                (last.0, last.1) = (to, len / 2);
            }
        }
        client
            .create(&format!("/r{round}/empty"), &client::OpenOptions::new())
            .unwrap();
        client
            .create(&format!("/r{round}/away"), &client::OpenOptions::new())
            .unwrap();
        client.unlink(&format!("/r{round}/away")).unwrap();
        // Others are busy with files of their own, which nobody has promised anything about.
        let mut busy = service.workers(2);
        for (k, text) in LAYOUTS.iter().enumerate().take(2) {
            let how = OpenHow::new("rwc").layout(Some(text));
            busy.one(k).open(0, &format!("/r{round}/busy{k}"), &how);
            busy.one(k).send("fill\t0\t0\t3000000\t5");
        }
        some_time(&mut random, 20_000);
        service.kill_all();
        drop(busy);
        service.start_all();
        let client = service.client();
        for (path, len, tag) in &synced {
            let found = client.stat(path).unwrap();
            assert_eq!(found.size, *len as u64, "{path}");
            let file = open(&client, path);
            assert_eq!(file.size().unwrap(), *len as u64, "{path}");
            assert!(read(&file, 0, len + 9) == whole(0, *len, *tag), "{path}");
            assert_eq!(file.scrub().unwrap().damaged, 0, "{path}");
        }
        let names: Vec<String> = client
            .list(&format!("/r{round}"))
            .unwrap()
            .map(|e| e.unwrap().name)
            .collect();
        assert_eq!(
            names,
            ["busy0", "busy1", "empty", "f0", "f2", "f3", "moved"]
        );
        for k in 0..2 {
            // Whatever is there can be read: old or new, and here there was nothing old.
            let file = open(&client, &format!("/r{round}/busy{k}"));
            let size = file.size().unwrap() as usize;
            let bytes = read(&file, 0, size);
            let wanted = whole(0, size, 5);
            let odd = (0..bytes.len()).find(|&x| bytes[x] != 0 && bytes[x] != wanted[x]);
            assert_eq!(odd, None, "busy{k}");
        }
        assert_clean(&service);
    }
}
