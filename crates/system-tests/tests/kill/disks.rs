//! Servers on disks that answered from memory and were killed, and whose next start is not like the one before: a disk is missing, was declared
//! lost, or the server is to write through. What was written and not synced is adopted, or waits for its disk, or its loss is told.

use client::{Client, File, Status};
use system_tests::{Service, ServiceOptions, Store, until};

use crate::{create, read, whole};

const FILES: u64 = 8;
const BYTES: usize = 60_000;

/// One server on two disks, with a keeper in its state directory.
fn on_two_disks() -> Service {
    ServiceOptions::new(1)
        .store(Store::Disk)
        .io_arguments(["--disk", "second", "--state", "state", "--writes", "behind"])
        .start()
}

fn write(client: &Client, tag: u64) -> Vec<File> {
    let write = |k: u64| {
        let file = create(client, &format!("/f{tag}-{k}"), "striped(64KiB) over 1");
        file.write_at(0, &whole(0, BYTES, tag + k)).expect("write");
        file
    };
    (0..FILES).map(write).collect()
}

#[track_caller]
fn assert_whole(files: &[File], tag: u64) {
    for (k, file) in files.iter().enumerate() {
        assert!(
            read(file, 0, BYTES + 1) == whole(0, BYTES, tag + k as u64),
            "file {k}"
        );
    }
}

/// What an I/O server says that does not start.
#[track_caller]
fn refused_to_start(service: &Service) -> String {
    let output = service.io_command(0).output().expect("pario starts");
    assert!(!output.status.success(), "it serves");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn memory_waits_for_a_disk_that_is_missing_however_often_the_server_is_started() {
    let mut service = on_two_disks();
    let client = service.client();
    let files = write(&client, 10);
    service.kill_io(0);
    let (second, aside) = (service.dir().join("second"), service.dir().join("aside"));
    std::fs::rename(&second, &aside).unwrap();
    std::fs::create_dir(&second).unwrap();
    for _ in 0..4 {
        let said = refused_to_start(&service);
        assert!(said.contains("second"), "{said}");
        assert!(said.contains("--forget-disk"), "{said}");
    }
    std::fs::remove_dir_all(&second).unwrap();
    std::fs::rename(&aside, &second).unwrap();
    service.start_io(0);
    assert_eq!(service.counter(&client, 0, "memory_was_adopted"), 1);
    assert_whole(&files, 10);
    for file in &files {
        file.sync().expect("nothing is lost");
    }
}

#[test]
fn memory_for_a_disk_that_is_declared_lost_goes_and_the_rest_is_adopted() {
    let mut service = on_two_disks();
    let client = service.client();
    let files = write(&client, 20);
    service.kill_io(0);
    let second = service.dir().join("second");
    std::fs::remove_dir_all(&second).unwrap();
    std::fs::create_dir(&second).unwrap();
    let said = refused_to_start(&service);
    let (_, id) = said.split_once("--forget-disk ").expect("a remedy");
    let is_of_id = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let id: String = id.chars().take_while(|&c| is_of_id(c)).collect();
    let mut command = service.io_command(0);
    let started = service
        .io(0)
        .try_start(command.args(["--forget-disk", &id]));
    started.expect("it starts");
    let mut lost = 0;
    for (k, file) in files.iter().enumerate() {
        let mut found = vec![0; BYTES];
        match file.read_at(0, &mut found) {
            Ok(_) => assert!(found == whole(0, BYTES, 20 + k as u64), "file {k}"),
            Err(error) => {
                assert_eq!(error.status(), Status::Lost, "{error}");
                lost += 1;
            }
        }
    }
    assert!((1..FILES).contains(&lost), "{lost} files were on that disk");
    let again = write(&client, 40);
    assert_whole(&again, 40);
}

#[test]
fn server_that_is_to_write_through_adopts_what_was_written_behind() {
    for options in [&["--writes", "through"][..], &["--no-keeper"]] {
        let mut service = ServiceOptions::new(1).store(Store::Disk).start();
        let client = service.client();
        service.io(0).kill();
        let start = |service: &mut Service, options: &[&str]| {
            let mut command = service.io_command(0);
            let started = service.io(0).try_start(command.args(options));
            started.expect("it starts");
        };
        start(&mut service, &["--writes", "behind"]);
        let files = write(&client, 30);
        service.kill_io(0);
        start(&mut service, options);
        assert_whole(&files, 30);
        for file in &files {
            file.write_at(0, &whole(0, BYTES, 50)).expect("write");
        }
        service.kill_io(0);
        start(&mut service, &["--writes", "behind"]);
        for file in &files {
            assert!(read(file, 0, BYTES) == whole(0, BYTES, 50), "newer bytes");
            file.sync().expect("nothing is lost");
        }
    }
}

#[test]
fn several_disks_and_writes_behind_need_a_place_for_the_keeper() {
    let service = ServiceOptions::new(1).store(Store::Disk).start();
    let mut command = service.io_command(0);
    let output = command
        .args(["--disk", "second", "--writes", "behind"])
        .output();
    let output = output.expect("pario starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && said.contains("--state"),
        "{said}"
    );
    until("the server that runs is not disturbed", || {
        service.client().members().is_ok()
    });
}
