//! Paths that are not there, handles that are closed, views that do not fit.
//! Refused by the library or by the service, before anything is changed.

use client::{Error, OpenOptions, Status, View};
use falls::FallsSet;
use layout::FileOffset;
use system_tests::ServiceOptions;

use crate::{assert_alive, create, read, whole};

#[test]
fn unknown_and_wrong_paths_are_named() {
    let mut service = ServiceOptions::new(2).start();
    let client = service.client();
    create(&client, "/file", "striped(1000) over 2")
        .close()
        .unwrap();
    client.mkdir("/dir", None).unwrap();
    let rw = OpenOptions::new().read().write();
    let status = |error: Error| error.status();
    assert_eq!(
        status(client.open("/none", &rw).unwrap_err()),
        Status::NotFound
    );
    assert_eq!(
        status(client.open("/none/deep", &rw).unwrap_err()),
        Status::NotFound
    );
    assert_eq!(status(client.stat("/none").unwrap_err()), Status::NotFound);
    assert_eq!(
        status(client.unlink("/none").unwrap_err()),
        Status::NotFound
    );
    assert_eq!(
        status(client.rename("/none", "/x").unwrap_err()),
        Status::NotFound
    );
    assert_eq!(
        status(client.layout("/none").unwrap_err()),
        Status::NotFound
    );
    assert_eq!(
        status(client.relayout("/none", "whole").unwrap_err()),
        Status::NotFound
    );
    assert_eq!(
        status(client.open("/file/x", &rw).unwrap_err()),
        Status::NotDirectory
    );
    assert_eq!(
        status(client.open("/dir", &rw).unwrap_err()),
        Status::IsDirectory
    );
    assert_eq!(
        status(client.unlink("/dir").unwrap_err()),
        Status::IsDirectory
    );
    assert_eq!(
        status(client.rmdir("/file").unwrap_err()),
        Status::NotDirectory
    );
    assert_eq!(
        status(client.mkdir("/dir", None).unwrap_err()),
        Status::Exists
    );
    assert_eq!(
        status(client.rmdir("/").unwrap_err()),
        Status::InvalidArgument
    );
    assert_eq!(
        status(client.rename("/dir", "/dir/in").unwrap_err()),
        Status::InvalidArgument
    );
    for path in ["", "no-slash", "/a//b", "/a/../b", "/zero\0byte"] {
        let error = client.open(path, &rw).unwrap_err();
        let known = [
            Status::InvalidArgument,
            Status::NotFound,
            Status::IsDirectory,
        ];
        assert!(known.contains(&error.status()), "{path:?}: {error}");
    }
    let long = format!("/{}", "x".repeat(100_000));
    let error = client.create(&long, &OpenOptions::new()).unwrap_err();
    assert!(
        error.to_string().len() < 2000,
        "an error of {} bytes",
        error.to_string().len()
    );
    for text in [
        "striped(0) over 2",
        "striped(1000) over 2000000000",
        "nonsense",
        "(block) onto",
    ] {
        let error = client
            .open("/new", &rw.clone().create().layout(text))
            .unwrap_err();
        let known = [Status::InvalidArgument, Status::TooLarge];
        assert!(known.contains(&error.status()), "{text}: {error}");
    }
    assert_eq!(status(client.stat("/new").unwrap_err()), Status::NotFound);
    assert_alive(&mut service);
}

#[test]
fn closed_handles_are_refused_and_others_are_not() {
    let mut service = ServiceOptions::new(2).start();
    let client = service.client();
    let closed = create(&client, "/f", "striped(1000) over 2");
    closed.write_at(0, &whole(0, 5000, 1)).unwrap();
    let other = crate::open(&client, "/f");
    closed.close().unwrap();
    closed.close().unwrap();
    let mut buffer = [0; 10];
    assert_eq!(closed.read_at(0, &mut buffer), Err(Error::Closed));
    assert_eq!(closed.write_at(0, b"x"), Err(Error::Closed));
    assert_eq!(closed.size(), Err(Error::Closed));
    assert_eq!(closed.resize(0), Err(Error::Closed));
    assert_eq!(closed.append(b"x"), Err(Error::Closed));
    assert_eq!(closed.set_view(&View::whole_file()), Err(Error::Closed));
    assert!(closed.sync().is_err() && closed.set_atomic(true).is_err());
    assert!(read(&other, 0, 9000) == whole(0, 5000, 1));
    let reader = client.open("/f", &OpenOptions::new().read()).unwrap();
    let error = reader.write_at(0, b"x").unwrap_err();
    assert_eq!(error.status(), Status::PermissionDenied, "{error}");
    assert_alive(&mut service);
}

#[test]
fn views_that_do_not_fit_are_refused() {
    let mut service = ServiceOptions::new(2).start();
    let client = service.client();
    let file = create(&client, "/f", "striped(1000) over 2");
    file.write_at(0, &whole(0, 5000, 1)).unwrap();
    // No bytes at all: reading finds the end, and there is nowhere to write.
    let nothing = View::new(FileOffset(0), 8, FallsSet::empty());
    if let Ok(view) = nothing
        && file.set_view(&view).is_ok()
    {
        let mut buffer = [0; 4];
        let read = file.read_at(0, &mut buffer);
        assert!(!matches!(read, Ok(n) if n > 0), "{read:?}");
        let error = file.write_at(0, b"xxxx").unwrap_err();
        assert_eq!(error.status(), Status::InvalidArgument, "{error}");
    }
    file.set_view(&View::whole_file()).unwrap();
    // In words: several elements, none, nonsense, too large, negative.
    for text in [
        "striped(10) over 4",
        "striped(10) over 4 [4]",
        "striped(10) over 4 [-1]",
        "striped(-10) over 4 [0]",
        "striped(99999999999999999999) over 4 [0]",
        "striped(9223372036854775807) over 4 [3]",
        "falls{}",
        "falls{(5,3,8,2)}",
        "",
    ] {
        let error = file.set_view_text(text).unwrap_err();
        assert_eq!(error.status(), Status::InvalidArgument, "{text}: {error}");
        assert!(
            file.view() == View::whole_file(),
            "{text}: the view has changed"
        );
    }
    assert!(View::new(FileOffset(0), 2, "{(0,3,4,1)}".parse().unwrap()).is_err());
    assert!(View::new(FileOffset(u64::MAX), 4, "{(0,3,4,1)}".parse().unwrap()).is_err());
    // Offsets beyond the largest.
    for offset in [u64::MAX, u64::MAX - 3, i64::MAX as u64] {
        let error = file.write_at(offset, b"xxxx").unwrap_err();
        assert_eq!(error.status(), Status::InvalidArgument, "{offset}: {error}");
        let mut buffer = [0; 4];
        let read = file.read_at(offset, &mut buffer);
        assert!(!matches!(read, Ok(n) if n > 0), "{offset}: {read:?}");
    }
    assert!(file.resize(u64::MAX).is_err() && file.preallocate(u64::MAX).is_err());
    let error = file.preallocate(1 << 40).unwrap_err();
    let known = [Status::NoMemory, Status::NoSpace];
    assert!(known.contains(&error.status()), "{error}");
    assert!(read(&file, 0, 9000) == whole(0, 5000, 1));
    assert_eq!(file.size().unwrap(), 5000);
    assert_alive(&mut service);
}
