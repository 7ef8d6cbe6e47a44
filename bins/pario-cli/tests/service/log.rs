//! What servers and clients tell by `PARIO_LOG`, with levels and fields, and that they are quiet without it.
//!
//! Which texts the variable may have is tested in `logging`.

use nix::sys::signal::Signal;

use crate::scratch::{Foreground, Scratch, wait_until};

/// A metadata manager and an I/O server that tell what is asked for.
fn service(scratch: &Scratch, log: Option<&str>) -> (Foreground, Foreground, String) {
    let start = |arguments: &[&str]| {
        let mut command = scratch.pario(arguments);
        command.envs(log.map(|log| ("PARIO_LOG", log)));
        let mut process = Foreground::new(command);
        let line = process.line();
        let url = line.strip_prefix("listening on ").expect("a URL");
        (process, url.to_owned())
    };
    let (meta, url) = start(&["serve", "meta", "--dir", "meta"]);
    let (io, _) = start(&["serve", "io", "--meta", &url, "--memory", "64MiB"]);
    (meta, io, url)
}

/// Stores a file, with what the client tells.
fn put(scratch: &Scratch, url: &str, log: Option<&str>) -> String {
    std::fs::write(scratch.path("a"), "abc").unwrap();
    let mut command = scratch.pario(&["put", "a", "/a", "--url", url]);
    let output = command.envs(log.map(|log| ("PARIO_LOG", log))).output();
    let output = output.expect("pario runs");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn servers_tell_who_comes_and_goes_with_fields() {
    let scratch = Scratch::new("log");
    let (mut meta, mut io, url) = service(&scratch, Some("warn,ioserver=info,metaserver=info"));
    put(&scratch, &url, None);
    let said = |process: &Foreground, what: &str| {
        wait_until(what, || {
            let text = process.errors();
            let line = text.lines().find(|line| line.contains(what));
            line.map(str::to_owned)
        })
    };
    let joined = said(&meta, "server joined");
    let of_process = format!(" pario[{}]  INFO metaserver::members: ", meta.pid());
    assert!(joined.contains(&of_process), "{joined}");
    assert!(joined.contains("server joined server=0 incarnation="));
    let client = said(&io, "client came client=");
    assert!(client.contains("INFO ioserver::service: "), "{client}");
    let number = client.split("client=").nth(1).unwrap();
    let number = number.split(' ').next().unwrap();
    said(&meta, &format!("client came client={number} "));
    said(&io, &format!("client went client={number}"));
    io.terminate();
    said(&meta, "server left server=0");
    meta.terminate();
}

#[test]
fn what_goes_well_is_not_told_unless_it_is_asked_for() {
    let scratch = Scratch::new("quiet");
    let (mut meta, mut io, url) = service(&scratch, None);
    assert_eq!(put(&scratch, &url, None), "");
    assert_eq!(meta.errors() + &io.errors(), "");
    let told = put(&scratch, &url, Some("client=debug"));
    for what in ["file opened path=\"/a\" file=", "file closed path=\"/a\""] {
        assert!(told.contains(what), "{told}");
    }
    // One that is killed is missed, and that is told.
    io.signal(Signal::SIGKILL);
    wait_until("the manager says so", || {
        let text = meta.errors();
        text.contains("WARN metaserver::members: server is away")
            .then_some(())
    });
    io.ended();
    meta.terminate();
}

#[test]
fn value_that_cannot_be_read_is_named_and_stops_nothing() {
    let scratch = Scratch::new("badlog");
    let (mut meta, mut io, url) = service(&scratch, Some("warn,iosever=debug"));
    let told = put(&scratch, &url, Some("warn,iosever=debug"));
    for said in [told, meta.errors()] {
        let begin = "pario: PARIO_LOG is 'warn,iosever=debug': 'iosever' is no part; give ";
        assert!(said.starts_with(begin), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
    io.terminate();
    meta.terminate();
}

#[test]
fn log_of_a_detached_service_is_begun_anew_when_it_is_long() {
    let scratch = Scratch::new("long-log");
    scratch.text(&["up", "--detach", "--servers", "1", "--memory", "64MiB"]);
    let (log, before) = (scratch.path(".pario/log"), scratch.path(".pario/log.1"));
    let len = |path| std::fs::metadata(path).map_or(0, |found| found.len());
    let long = (64 << 20) + 1;
    let file = std::fs::OpenOptions::new().append(true).open(&log);
    file.unwrap().set_len(long).unwrap();
    wait_until("the log begins anew", || {
        (len(&before) == long && len(&log) < long).then_some(())
    });
    scratch.text(&["down"]);
}
