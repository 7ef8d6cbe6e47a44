//! Names, attributes, layouts and named views, as programs use them.
//!
//! What the catalogue itself guarantees is tested with it; here it is what the client makes of it.

use std::time::{Duration, Instant};

use client::{Hints, Kind, LayoutSpec, OpenOptions, SetTime, Status, Time, View};

use crate::service::{Service, create, pattern};

#[test]
fn names_come_and_go() {
    let service = Service::start(2);
    let client = service.connect();
    client.mkdir_all("a/b/ç d/\u{1f600}", None).unwrap();
    client.mkdir_all("/a/b", None).unwrap();
    let path = "/a/b/ç d/\u{1f600}/file";
    assert!(client.create(path, &OpenOptions::new()).unwrap());
    assert!(!client.create(path, &OpenOptions::new()).unwrap());
    let taken = client
        .create(path, &OpenOptions::new().exclusive())
        .unwrap_err();
    assert_eq!(taken.status(), Status::Exists);
    client.rename(path, "/moved").unwrap();
    assert_eq!(
        client.attributes(path).unwrap_err().status(),
        Status::NotFound
    );
    assert_eq!(client.stat("moved").unwrap().kind, Kind::File);
    assert_eq!(client.rmdir("/a").unwrap_err().status(), Status::NotEmpty);
    client.chmod("/moved", 0o600).unwrap();
    let time = Time(1_000_000_007);
    client
        .utimes("/moved", SetTime::Keep, SetTime::To(time))
        .unwrap();
    let found = client.stat("/moved").unwrap();
    assert_eq!((found.mode & 0o777, found.modified), (0o600, time));
    client.chown("/moved", None, Some(found.group)).unwrap();
    client.unlink("/moved").unwrap();
    assert_eq!(
        client.unlink("/moved").unwrap_err().status(),
        Status::NotFound
    );
    assert_eq!(client.mkdir_all("/a/b", None), Ok(()));
    assert!(client.counts().unwrap().directories >= 4);
    assert_eq!(client.check().unwrap(), []);
    assert_eq!(client.members().unwrap().len(), 2);
}

#[test]
fn long_lists_come_in_parts() {
    let service = Service::start(1);
    let client = service.connect();
    client.mkdir("/many", None).unwrap();
    for i in 0..1200 {
        client.mkdir(&format!("/many/{i:05}"), None).unwrap();
    }
    let names: Vec<String> = client
        .list("/many")
        .unwrap()
        .map(|e| e.unwrap().name)
        .collect();
    assert_eq!(names.len(), 1200);
    assert!(names.is_sorted());
    let first = client.list_with_attributes("/many").unwrap().next();
    assert!(first.unwrap().unwrap().attributes.is_some());
    assert!(client.list("/nothing").is_err());
}

#[test]
fn stat_tells_the_latest_size() {
    let service = Service::start(3);
    let (writer, reader) = (service.connect(), service.connect());
    let file = create(&writer, "/f", "", "striped(1KiB) over 3");
    file.write_at(0, &pattern(5000, 0)).unwrap();
    assert_eq!(reader.stat("/f").unwrap().size, 5000);
    file.resize(10).unwrap();
    assert_eq!(reader.stat("/f").unwrap().size, 10);
    assert!(writer.allocated("/f").unwrap() > 0);
    file.close().unwrap();
    assert_eq!(
        reader.attributes("/f").unwrap().size,
        10,
        "durable after closing"
    );
}

#[test]
fn values_and_extents_are_kept_with_the_file() {
    let service = Service::start(2);
    let client = service.connect();
    let options = OpenOptions::new().read().write().create();
    let options = options.array("u8[4,6]").layout("(block, *) onto 2");
    let file = client
        .open("/f", &options.value("unit", "m").value("scale", "10"))
        .unwrap();
    file.write_at(0, &pattern(24, 0)).unwrap();
    client
        .change_values("/f", &[("unit".into(), b"s".into())], &["scale".into()])
        .unwrap();
    let values = client.values("/f").unwrap();
    assert_eq!(values, [("unit".to_owned(), b"s".to_vec())]);
    let is = client.change_array("/f", "u8[4,6]", "u8[5,6]").unwrap();
    assert!(is.is_changed);
    assert!(
        !client
            .change_array("/f", "u8[4,6]", "u8[7,6]")
            .unwrap()
            .is_changed
    );
    // A row that is added has a home, and those before it stay.
    file.write_at(24, &pattern(6, 24)).unwrap();
    let again = client.open("/f", &OpenOptions::new().read()).unwrap();
    assert_eq!(again.array().unwrap().extents(), [5, 6]);
    let mut row = [0; 6];
    again.set_view_text("slice[4, :]").unwrap();
    again.read_at(0, &mut row).unwrap();
    assert_eq!(row[..], pattern(6, 24));
    let mut all = [0; 30];
    again.set_view(&View::whole_file()).unwrap();
    again.read_at(0, &mut all).unwrap();
    assert_eq!(all[..], pattern(30, 0));
}

#[test]
fn layouts_and_views_are_kept_with_the_file() {
    let service = Service::start(2);
    let client = service.connect();
    let file = create(&client, "/f", "f32[4,6]", "(block, *) onto 2");
    let layout = client.layout("/f").unwrap();
    assert_eq!(layout.text, "(block, *) onto 2");
    assert_eq!(layout.array.as_deref(), Some("f32[4,6]"));
    assert_eq!(file.array().unwrap().bytes(), 96);
    file.set_view_text("(*, block) onto 3 [1]").unwrap();
    client
        .put_view("/f", "middle", "(*, block) onto 3 [1]", &file.view())
        .unwrap();
    assert_eq!(client.get_view("/f", "middle").unwrap().view, file.view());
    assert_eq!(client.list_views("/f").unwrap().len(), 1);
    client.remove_view("/f", "middle").unwrap();
    assert!(client.get_view("/f", "middle").is_err());
    file.close().unwrap();
    let spec = LayoutSpec {
        array: None,
        layout: Some("striped(8) over 2".into()),
    };
    client.set_layout("/f", spec).unwrap();
    let file = client
        .open("/f", &OpenOptions::new().read().write())
        .unwrap();
    file.set_view(&View::whole_file()).unwrap();
    file.write_at(0, &pattern(100, 0)).unwrap();
    let mut back = [0; 100];
    file.read_at(0, &mut back).unwrap();
    assert_eq!(back[..], pattern(100, 0));
    let bad = OpenOptions::new().write().create().layout("strped(8)");
    assert!(client.open("/g", &bad).is_err());
}

#[test]
fn a_file_moves_into_another_layout_while_it_is_open() {
    let service = Service::start(3);
    let client = service.connect();
    let file = create(&client, "/f", "", "striped(7) over 2");
    let bytes = pattern(10_000, 0);
    file.write_at(0, &bytes).unwrap();
    // Servers that have just joined may not know each other yet.
    let until = Instant::now() + Duration::from_secs(60);
    let progress = loop {
        let moved = client.relayout("/f", "striped(100) over 3");
        match moved.and_then(|relayout| relayout.wait()) {
            Ok(progress) => break progress,
            Err(e) => assert!(Instant::now() < until, "{e}"),
        }
    };
    assert_eq!(progress.file, file.id());
    let mut back = vec![0; 10_100];
    assert_eq!(file.read_at(0, &mut back).unwrap(), 10_000);
    assert!(back[..10_000] == bytes);
    file.write_at(9_990, &[1; 20]).unwrap();
    assert_eq!(file.size().unwrap(), 10_010);
    assert_eq!(client.layout("/f").unwrap().text, "striped(100) over 3");
}

#[test]
fn seed001_s11_block_size_is_chosen_per_file_or_the_documented_default() {
    let service = Service::start(3);
    let client = service.connect();
    let layout = |path: &str, options: OpenOptions| {
        client.create(path, &options).unwrap();
        client.layout(path).unwrap().text
    };
    assert_eq!(
        layout("/default", OpenOptions::new()),
        "striped(1MiB) over 3"
    );
    let hints = Hints::new().with("striping_unit", "5000").unwrap();
    assert_eq!(
        layout("/unit", OpenOptions::new().hints(hints.clone())),
        "striped(5000) over 3"
    );
    let both = hints.with("striping_factor", "2").unwrap();
    assert_eq!(
        layout("/both", OpenOptions::new().hints(both)),
        "striped(5000) over 2"
    );
    assert_eq!(
        layout("/text", OpenOptions::new().layout("striped(64KiB)")),
        "striped(64KiB) over 3"
    );
    // The size is really that of the blocks: the second one lies at another server.
    let file = client
        .open("/unit", &OpenOptions::new().read().write())
        .unwrap();
    file.write_at(0, &pattern(5000, 1)).unwrap();
    assert_eq!(file.last_access().servers.len(), 1);
    file.write_at(0, &pattern(5001, 1)).unwrap();
    assert_eq!(file.last_access().servers.len(), 2);
}
