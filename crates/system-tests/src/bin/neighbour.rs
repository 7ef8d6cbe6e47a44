//! A process that uses a directory without a service, in one of a few roles.
//!
//! ```text
//! neighbour ROLE DIR
//! ```
//!
//! It says on standard output how far it has come, and ends when its standard input does.

use std::io::{Read, Write};
use std::path::PathBuf;

use client::{ConnectOptions, OpenOptions};
use embedded::Options;
use system_tests::files::whole;
use wire::url::ServiceUrl;

fn main() {
    let mut arguments = std::env::args_os().skip(1);
    let role = arguments.next().expect("a role");
    let dir = PathBuf::from(arguments.next().expect("a directory"));
    let url = ServiceUrl::Directory(dir);
    let client = embedded::connect(&url, ConnectOptions::default(), &Options::default())
        .expect("the directory");
    let options = OpenOptions::new().read().write().create();
    match role.to_str().expect("a role") {
        "hold" => {
            say("ready");
            until_told();
        }
        "write" => {
            let file = client.open("/log", &options).expect("the log");
            for i in 0.. {
                let record = whole(0, 1000, i);
                file.write_at(i * 1000, &record).expect("written");
                say(&format!("wrote {i}"));
            }
        }
        "append" => {
            let file = client.open("/journal", &options).expect("the journal");
            for _ in 0..9 {
                file.append(&whole(0, 5000, 3)).expect("appended");
                say("appended");
            }
            until_told();
        }
        "daemon" => {
            let file = client.open("/kept", &options).expect("the file");
            file.write_at(0, b"kept").expect("written");
            say("ready");
            nix::unistd::daemon(true, true).expect("a child");
            let error = file
                .write_at(4, b"x")
                .expect_err("the handle is the parent's");
            let is_clear = matches!(error, client::Error::Forked);
            say(&format!("child: {}", if is_clear { "forked" } else { "?" }));
            // It stays, with all that the parent had open, until the test has seen it.
            std::mem::forget((file, client));
            until_told();
        }
        other => panic!("no role {other}"),
    }
}

fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}").expect("somebody listens");
    out.flush().expect("somebody listens");
}

fn until_told() {
    let mut rest = Vec::new();
    std::io::stdin()
        .read_to_end(&mut rest)
        .expect("a standard input");
}
