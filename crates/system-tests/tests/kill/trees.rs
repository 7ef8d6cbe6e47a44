//! A large directory is removed with all that is in it, and the manager dies before it is cleared. Its next start goes on.
//!
//! Who may remove what, and every step of the clearing, is in the tests of `meta`.

use client::OpenOptions;
use system_tests::{Store, until};

use crate::{assert_clean, create, read, service, whole};

const FILES: usize = 1500;

#[test]
fn removed_tree_is_cleared_over_deaths_of_the_manager() {
    let mut service = service(2, Store::Disk);
    let client = service.client();
    for k in 0..3 {
        client.mkdir_all(&format!("/t/{k}/deep"), None).unwrap();
    }
    let new = OpenOptions::new().write();
    std::thread::scope(|scope| {
        for k in 0..4 {
            let (client, new) = (service.client(), &new);
            scope.spawn(move || {
                for n in (k..FILES).step_by(4) {
                    let path = format!("/t/{}/deep/{n}", n % 3);
                    client.create(&path, new).unwrap();
                }
            });
        }
    });
    // Some have bytes, one of them is open, and one file has nothing to do with it.
    for n in 0..20 {
        let file = create(&client, &format!("/t/0/bytes-{n}"), "striped(4KiB) over 2");
        file.write_at(0, &whole(0, 50_000, 1)).unwrap();
        file.close().unwrap();
    }
    let open = client
        .open("/t/0/bytes-7", &OpenOptions::new().read())
        .unwrap();
    let stays = create(&client, "/stays", "striped(4KiB) over 2");
    stays.write_at(0, &whole(0, 50_000, 2)).unwrap();
    stays.sync().unwrap();
    client.remove_tree("/t").unwrap();
    let left = client.counts().unwrap();
    assert!(left.trees == 1 && left.files > 1000, "{left:?}");
    let names = || -> Vec<String> {
        let listed = client.list("/").unwrap();
        listed.map(|entry| entry.unwrap().name).collect()
    };
    assert_eq!(names(), ["stays"]);
    let mut before = left.files;
    for _ in 0..3 {
        service.kill_meta();
        service.start_meta();
        let left = client.counts().unwrap();
        assert!(left.files <= before, "{left:?}");
        before = left.files;
        assert_eq!(names(), ["stays"]);
    }
    until("the end of clearing", || {
        client.counts().unwrap().trees == 0
    });
    assert!(read(&open, 0, 50_000) == whole(0, 50_000, 1));
    open.close().unwrap();
    until("files that are gone", || {
        let left = client.counts().unwrap();
        (left.files, left.directories, left.removals) == (1, 1, 0)
    });
    let id = stays.id();
    for index in 0..2 {
        let kept = client.subfiles(service.server_id(index)).unwrap();
        assert!(kept.iter().all(|subfile| subfile.file == id), "{kept:?}");
    }
    assert!(read(&stays, 0, 50_000) == whole(0, 50_000, 2));
    assert_clean(&service);
}
