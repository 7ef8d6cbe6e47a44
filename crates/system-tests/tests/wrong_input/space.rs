//! No room: a full disk, an exhausted memory limit; and a directory that is taken.
//! The small disk is a file system of its own; where none can be mounted the test says so and is skipped.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use client::{Error, File, Status};
use system_tests::server::Server;
use system_tests::{Service, ServiceOptions, TempDir, pause, until};

use crate::{assert_alive, create, open, read, whole};

/// Far longer than a server takes to find out that it cannot start.
const PATIENCE: Duration = Duration::from_secs(20);

/// A small file system, if this host lets us have one.
struct Small(PathBuf);

impl Small {
    fn mount(path: &Path, size: &str) -> Result<Small, String> {
        std::fs::create_dir_all(path).map_err(|e| e.to_string())?;
        let options = format!("size={size},mode=0700");
        let output = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "tmpfs"])
            .arg(path)
            .output()
            .map_err(|e| format!("mount: {e}"))?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
        }
        Ok(Small(path.to_owned()))
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}

/// Fills a file until something is refused; what, and how far it came.
fn fill(file: &File, step: usize, most: u64) -> (Error, u64) {
    let mut at = 0;
    while at < most {
        match file.write_at(at, &whole(at, step, 2)) {
            Ok(_) => at += step as u64,
            Err(error) => return (error, at),
        }
        // On a disk it is the sync at the latest that has to say so.
        if let Err(error) = file.sync() {
            return (error, at);
        }
    }
    panic!("{most} bytes fit");
}

#[test]
fn seed001_s12_exhausted_memory_is_an_error_and_space_comes_back() {
    let mut service = ServiceOptions::new(2).memory("8MiB").start();
    let client = service.client();
    let kept = create(&client, "/kept", "striped(4KiB) over 2");
    kept.write_at(0, &whole(0, 300_000, 1)).unwrap();
    for round in 0..3 {
        let big = create(&client, "/big", "striped(64KiB) over 2");
        let (error, at) = fill(&big, 1 << 20, 64 << 20);
        eprintln!("round {round}: after {at} bytes: {error}");
        assert_eq!(error.status(), Status::NoMemory, "{error}");
        assert!(at >= 4 << 20, "{at} bytes of 16 MiB");
        if let Error::Partial { confirmed, .. } = error {
            let len = at as usize + confirmed as usize;
            assert!(
                read(&big, 0, len) == whole(0, len, 2),
                "what is called safe"
            );
        }
        // Full, and still usable: what is there is read, and written where it has space.
        assert!(read(&big, 0, at as usize) == whole(0, at as usize, 2));
        big.write_at(0, &whole(0, 4096, 3)).unwrap();
        assert!(read(&kept, 0, 400_000) == whole(0, 300_000, 1));
        kept.write_at(0, &whole(0, 4096, 1)).unwrap();
        assert!(client.list("/").unwrap().count() >= 2);
        big.close().unwrap();
        client.unlink("/big").unwrap();
        until("space", || {
            let probe = open(&client, "/kept");
            probe.write_at(1 << 20, &whole(1 << 20, 3 << 20, 5)).is_ok()
        });
        kept.resize(300_000).unwrap();
    }
    assert!(read(&kept, 0, 400_000) == whole(0, 300_000, 1));
    assert_alive(&mut service);
}

#[test]
fn seed004_s80_full_disk_is_an_error_loses_nothing_and_recovers() {
    let temp = TempDir::new();
    let disk = temp.join("disk");
    let small = match Small::mount(&disk, "12m") {
        Ok(small) => small,
        Err(why) => {
            testkit::skipped(&format!("no small file system can be mounted here: {why}"));
            return;
        }
    };
    let options = ServiceOptions::new(1).disk().memory("16MiB");
    let mut service = Service::start(options);
    // A second server, on the small disk.
    let mut command = service.io_command(1);
    let arguments: Vec<_> = command.get_args().map(|a| a.to_owned()).collect();
    let mut replaced = Command::new(command.get_program());
    let mut is_disk = false;
    for argument in arguments {
        replaced.arg(if is_disk { disk.as_os_str() } else { &argument });
        is_disk = argument == "--disk";
    }
    command = replaced;
    command.current_dir(service.dir().path());
    command.env_remove("PARIO_URL").env_remove("PARIO_SECRET");
    let mut second = Server::new("small", temp.join("small.log"));
    second.start(&mut command);
    service.wait_for_members(2);
    let client = service.client();
    let kept = create(&client, "/kept", "striped(4KiB) over 2");
    kept.write_at(0, &whole(0, 300_000, 1)).unwrap();
    kept.sync().unwrap();
    for round in 0..2 {
        until("room at both servers", || {
            let members = client.members().unwrap();
            let room = members.iter().map(|m| m.capacity_bytes - m.used_bytes);
            room.min() > Some(9 << 20)
        });
        let big = create(&client, "/big", "striped(64KiB) over 2");
        let (error, at) = fill(&big, 1 << 20, 64 << 20);
        eprintln!("round {round}: after {at} bytes: {error}\n{}", second.log());
        assert_eq!(error.status(), Status::NoSpace, "{error}");
        assert!(at >= 8 << 20, "{at} bytes");
        // What was synced is there, and what is there can be changed and read.
        assert!(read(&big, 0, at as usize) == whole(0, at as usize, 2));
        assert!(read(&kept, 0, 400_000) == whole(0, 300_000, 1));
        let _ = big.close();
        client.unlink("/big").unwrap();
        // Files go elsewhere as long as the disk is full; with the removal it counts again.
        until("room at both servers", || {
            let members = client.members().unwrap();
            let room = members.iter().map(|m| m.capacity_bytes - m.used_bytes);
            room.min() > Some(9 << 20)
        });
        let probe = create(&client, "/probe", "striped(64KiB) over 2");
        probe.write_at(0, &whole(0, 6 << 20, 5)).unwrap();
        probe.sync().unwrap();
        probe.close().unwrap();
        client.unlink("/probe").unwrap();
    }
    assert!(read(&kept, 0, 400_000) == whole(0, 300_000, 1));
    assert_eq!(kept.scrub().unwrap().damaged, 0);
    // After a restart too.
    second.kill();
    second.start(&mut command);
    service.wait_for_members(2);
    assert!(read(&kept, 0, 400_000) == whole(0, 300_000, 1));
    assert_alive(&mut service);
    // Clients first: they would look for their servers.
    drop((kept, client));
    second.kill();
    drop((service, small));
}

/// What a program that has to give up says. One that goes on is ended, so that it fails a test and does not stop it.
#[track_caller]
fn ended(mut command: Command) -> Output {
    command.stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it was started");
    let end = Instant::now() + PATIENCE;
    while child.try_wait().expect("a child").is_none() {
        if Instant::now() > end {
            child.kill().expect("killed");
            let output = child.wait_with_output().expect("its output");
            panic!("{command:?} goes on: {output:?}");
        }
        pause(Duration::from_millis(5));
    }
    child.wait_with_output().expect("its output")
}

#[test]
fn second_service_on_the_same_directory_is_refused() {
    let mut service = ServiceOptions::new(1).disk().start();
    let client = service.client();
    let file = create(&client, "/f", "striped(4KiB) over 1");
    file.write_at(0, &whole(0, 9000, 1)).unwrap();
    file.sync().unwrap();
    let temp = TempDir::new();
    // The directories of both servers, with sockets of their own.
    let elsewhere = |command: Command, name: &str| {
        let socket = format!("unix:{}", temp.join(name).display());
        let mut changed = Command::new(command.get_program());
        let mut is_listen = false;
        for argument in command.get_args() {
            changed.arg(if is_listen { socket.as_ref() } else { argument });
            is_listen = argument == "--listen";
        }
        changed.env_remove("PARIO_URL").env_remove("PARIO_SECRET");
        changed
    };
    for (name, command) in [
        ("meta", service.meta_command()),
        ("io", service.io_command(0)),
    ] {
        let output = ended(elsewhere(command, name));
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{name}: {errors}");
        assert_eq!(errors.lines().count(), 1, "one clear line: {errors}");
        assert!(
            errors.contains(service.dir().path().to_str().unwrap()),
            "{errors}"
        );
    }
    // The same sockets: refused as well, and the service keeps its own.
    for command in [service.meta_command(), service.io_command(0)] {
        assert_eq!(ended(command).status.code(), Some(1));
    }
    assert!(read(&file, 0, 9999) == whole(0, 9000, 1));
    assert_alive(&mut service);
}
