//! Files of plain bytes, and directories.
//!
//! The handles are the client's own, which has the rest of their tests.

use pario::{Kind, Status};

use crate::service::everywhere;

#[test]
fn files_are_opened_in_one_chain() {
    everywhere(|pario| {
        let file = pario.file("/log").read().write().create().open().unwrap();
        assert_eq!(file.append(b"one ").unwrap(), 0);
        assert_eq!(file.append(b"two").unwrap(), 4);
        assert_eq!(file.write_at(0, b"ONE").unwrap(), 3);
        let mut bytes = [0; 7];
        assert_eq!(file.read_at(0, &mut bytes).unwrap(), 7);
        assert_eq!(&bytes, b"ONE two");
        file.set_view_text("striped(1) over 2 [1]").unwrap();
        assert_eq!(file.read_at(0, &mut bytes).unwrap(), 3);
        assert_eq!(&bytes[..3], b"N w");
        file.sync().unwrap();
        file.close().unwrap();

        let again = pario.file("/log").write().new_only().open();
        assert_eq!(again.unwrap_err().status(), Status::Exists);
        let absent = pario.file("/absent").read().open();
        assert_eq!(absent.unwrap_err().status(), Status::NotFound);
        let append = pario.file("/log").append().open().unwrap();
        append.write(b"!").unwrap();
        assert_eq!(pario.stat("/log").unwrap().size, 8);
    });
}

#[test]
fn directories_are_made_listed_renamed_and_removed() {
    everywhere(|pario| {
        pario.make_directory("/a/b/c").unwrap();
        pario.make_directory("/a/b").unwrap();
        for name in ["two", "one"] {
            let file = pario.file(&format!("/a/b/{name}")).write().create();
            file.open().unwrap().close().unwrap();
        }
        let names = |path: &str| -> Vec<String> {
            let list = pario.list(path).unwrap();
            list.map(|entry| entry.unwrap().name).collect()
        };
        assert_eq!(names("/a/b"), ["c", "one", "two"]);
        pario.rename("/a/b/one", "/a/two").unwrap();
        assert!(!pario.exists("/a/b/one").unwrap() && pario.exists("/a/two").unwrap());
        assert_eq!(pario.stat("/a/b").unwrap().kind, Kind::Directory);
        assert_eq!(pario.remove("/a/b").unwrap_err().status(), Status::NotEmpty);
        pario.remove("/a/b/two").unwrap();
        pario.remove("/a/b/c").unwrap();
        pario.remove("/a/b").unwrap();
        assert_eq!(names("/a"), ["two"]);
        assert_eq!(pario.remove("/a/b").unwrap_err().status(), Status::NotFound);
    });
}
