//! A keeper, or a server that uses one, as a process that tests start and kill.
//!
//! The server is driven by lines and answers each with a line. What it keeps are texts, so that tests see what came back.

use std::io::{BufRead, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use keeper::{Keeper, KeeperOptions, KeptDescriptor};
use rustix::fs::MemfdFlags;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["keep", "--dir", dir, "--patience", seconds] => {
            let patience = Duration::from_secs(seconds.parse().expect("seconds"));
            match keeper::run(dir.as_ref(), patience) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => {
                    println!("{}{error}", keeper::FAILED);
                    ExitCode::FAILURE
                }
            }
        }
        ["serve", dir, seconds] => serve(dir.into(), seconds.parse().expect("seconds")),
        ["look", dir] => {
            match keeper::look(dir.as_ref()) {
                Ok(glance) => println!("{glance:?}"),
                Err(error) => println!("{error}"),
            }
            ExitCode::SUCCESS
        }
        _ => panic!("{words:?}"),
    }
}

fn serve(dir: PathBuf, seconds: u64) -> ExitCode {
    let options = KeeperOptions {
        dir,
        program: Some(std::env::current_exe().expect("this program")),
        arguments: vec!["keep".into()],
        patience: Duration::from_secs(seconds),
        held_wait: Duration::from_secs(2),
    };
    let (keeper, found) = match Keeper::connect(options) {
        Ok(connected) => connected,
        Err(error) => {
            println!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let found: Vec<String> = found.iter().map(text_of).collect();
    println!("[{}]", found.join(" "));
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("a line");
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["keep", name, text] => {
                let file = rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC).expect("memory");
                rustix::io::write(&file, text.as_bytes()).expect("a text");
                keeper.keep(name, file.as_fd()).expect("kept");
            }
            ["forget", name] => keeper.forget(name),
            ["away"] => {
                println!("{}", keeper.is_away());
                continue;
            }
            ["end"] => keeper.end(),
            _ => panic!("{words:?}"),
        }
        println!("done");
    }
    std::io::stdout().flush().expect("written");
    ExitCode::SUCCESS
}

fn text_of(kept: &KeptDescriptor) -> String {
    let mut text = [0; 64];
    let n = rustix::io::pread(&kept.descriptor, &mut text, 0).expect("what is kept");
    format!("{}={}", kept.name, String::from_utf8_lossy(&text[..n]))
}
