//! Handles whose writes return when their bytes are in the data files, at servers that answer others from memory:
//! whichever way the bytes go, what the servers count as dirty stays nothing.

use client::{Client, ConnectOptions, Endpoint, File, Hints, Mapping, OpenOptions, ServiceUrl};

use crate::service::{Service, TIMEOUT, pattern};

const BYTES: usize = 300_000;

/// Two servers on disks that answer writes from memory.
fn service() -> Service {
    let mut service = Service::start(0);
    for i in 0..2 {
        let dir = service.dir.join(format!("disk-{i}"));
        std::fs::create_dir_all(&dir).unwrap();
        let store = ioserver::StoreOptions::Disk {
            dirs: vec![dir],
            memory_limit_bytes: 64 << 20,
        };
        let meta = Endpoint::Unix(service.dir.join("meta"));
        let listen = Endpoint::Unix(service.dir.join(format!("d{i}")));
        let mut options = ioserver::Options::new(meta, listen, store);
        options.write_through = false;
        service.servers.push(ioserver::start(options).unwrap());
    }
    service
}

fn dirty_bytes(service: &Service) -> u64 {
    let all = service.servers.iter().flat_map(|s| s.statistics());
    let dirty = all.filter(|c| c.name == "dirty_bytes");
    dirty.map(|c| c.value).sum()
}

/// With a hint that its directory has for it.
fn create(client: &Client, directory: &str, name: &str) -> File {
    let options = OpenOptions::new().read().write().create();
    let options = options.layout("striped(4KiB) over 2");
    client
        .open(&format!("{directory}/{name}"), &options)
        .unwrap()
}

fn directories(client: &Client) {
    let hints = Hints::new().with("write_through", "on").unwrap();
    client.mkdir("/through", None).unwrap();
    client.mkdir("/behind", None).unwrap();
    client.set_hints("/through", &hints, &[]).unwrap();
}

#[test]
fn writes_through_are_in_data_files_whichever_way_they_go() {
    let service = service();
    directories(&service.connect());
    let through_one = |mapping| {
        let url = ServiceUrl::At(Endpoint::Unix(service.dir.join("meta")));
        let options = ConnectOptions::default().with_timeout(TIMEOUT);
        Client::connect(&url, options.with_mapping(mapping)).unwrap()
    };
    let clients = [
        ("direct", service.connect()),
        ("message", service.connect_how(false)),
        ("gateway", through_one(Mapping::Master)),
    ];
    for (way, client) in &clients {
        let file = create(client, "/through", way);
        let bytes = pattern(BYTES, 3);
        file.write_at(0, &bytes).unwrap();
        assert_eq!(dirty_bytes(&service), 0, "{way}: new bytes");
        for k in 0..40 {
            file.write_at(k * 5000, &bytes[..100]).unwrap();
        }
        assert_eq!(dirty_bytes(&service), 0, "{way}: short writes");
        assert_eq!(client.direct_statistics().writes, 0, "{way}");
        let mut found = vec![0; BYTES];
        assert_eq!(file.read_at(0, &mut found).unwrap(), BYTES, "{way}");
        let mut wanted = bytes.clone();
        for k in 0..40 {
            wanted[k * 5000..][..100].copy_from_slice(&bytes[..100]);
        }
        assert!(found == wanted, "{way}");
        // It can be taken back, also in the middle of a run that was found before.
        let off = Hints::new().with("write_through", "off").unwrap();
        file.set_hints(&off).unwrap();
        file.write_at(0, &bytes).unwrap();
        match *way {
            "direct" => assert!(client.direct_statistics().writes > 0),
            _ => assert!(dirty_bytes(&service) > 0, "{way}: nothing was behind"),
        }
        let on = Hints::new().with("write_through", "on").unwrap();
        file.set_hints(&on).unwrap();
        let before = client.direct_statistics().writes;
        file.write_at(0, &bytes).unwrap();
        assert_eq!(client.direct_statistics().writes, before, "{way}");
        file.sync().unwrap();
        assert_eq!(dirty_bytes(&service), 0, "{way}: after a sync");
        file.close().unwrap();
    }
}

#[test]
fn files_beside_them_are_answered_from_memory() {
    let service = service();
    let client = service.connect_how(false);
    directories(&client);
    let file = create(&client, "/behind", "f");
    file.write_at(0, &pattern(BYTES, 5)).unwrap();
    assert!(dirty_bytes(&service) > 0, "nothing was behind");
}
