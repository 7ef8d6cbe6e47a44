//! A rank of a parallel program, in one of a few roles. It needs a launcher or none, and no MPI library.
//!
//! ```text
//! rank write PATH BYTES      writes its part of a file that all ranks write together
//! rank check PATH BYTES      reads all of it, and compares
//! rank hold PATH FILE        writes, says that it is ready, and ends when FILE exists
//! rank program               makes files and directories in every way there is
//! rank summary               prints what there is: names, sizes, layouts and a sum of the bytes
//! ```
//!
//! The service is the one that `PARIO_URL` names.

use std::io::Write;
use std::path::Path;

use client::{Client, Kind, OpenOptions, View};
use system_tests::layouts::views_of;
use system_tests::{pattern, until};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let Err(error) = run(&words) {
        eprintln!("rank: {error}");
        std::process::exit(1);
    }
}

type Failure = Box<dyn std::error::Error>;

/// What the launcher says, or alone.
fn rank_and_size() -> (u64, u64) {
    let number = |names: [&str; 2]| {
        let found = names.iter().find_map(|name| std::env::var(name).ok());
        found.and_then(|text| text.parse().ok())
    };
    (
        number(["PMI_RANK", "OMPI_COMM_WORLD_RANK"]).unwrap_or(0),
        number(["PMI_SIZE", "OMPI_COMM_WORLD_SIZE"]).unwrap_or(1),
    )
}

fn run(words: &[&str]) -> Result<(), Failure> {
    let client = embedded::connect_here()?;
    let (rank, size) = rank_and_size();
    let whole = View::whole_file();
    match words {
        ["write", path, bytes] => {
            let bytes: u64 = bytes.parse()?;
            let (from, to) = (bytes * rank / size, bytes * (rank + 1) / size);
            let options = OpenOptions::new().read().write().create();
            let file = client.open(path, &options.layout("striped(64KiB)"))?;
            file.write_at(from, &pattern(&whole, from, (to - from) as usize, 1))?;
            file.close()?;
        }
        ["check", path, bytes] => {
            let bytes: usize = bytes.parse()?;
            let file = client.open(path, &OpenOptions::new().read())?;
            let mut found = vec![0; bytes + 1];
            let n = file.read_at(0, &mut found)?;
            if n != bytes || found[..n] != pattern(&whole, 0, bytes, 1) {
                return Err(format!("{path} has {n} bytes, or others than were written").into());
            }
            say(&format!("checked {}", client.members()?.len()));
        }
        ["hold", path, file] => {
            let made = client.open(path, &OpenOptions::new().write().create())?;
            made.write_at(0, &pattern(&whole, 0, 1 << 20, 1))?;
            made.close()?;
            say(&format!("ready {}", std::process::id()));
            until("the file that ends this", || Path::new(file).exists());
        }
        ["program"] => program(&client, rank, size)?,
        ["summary"] => summary(&client, "/")?,
        _ => return Err("write, check, hold, program or summary".into()),
    }
    Ok(())
}

fn say(line: &str) {
    let mut out = std::io::stdout();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// Uses files alike in every mode: together and alone, with views, appends, truncation and names.
fn program(client: &Client, rank: u64, size: u64) -> Result<(), Failure> {
    let rw = || OpenOptions::new().read().write().create();
    let matrix = rw().array("u8[64,64]").layout("(block, *) onto 2");
    let file = client.open("/matrix", &matrix)?;
    // Columns of a matrix that is stored by rows.
    let all = views_of(Some("u8[64,64]"), 0, &format!("(*, block) onto {size}"));
    let columns = all.into_iter().nth(rank as usize).ok_or("no such rank")?;
    file.set_view(&columns)?;
    let bytes = 64 * 64 / size;
    file.write_at(0, &pattern(&columns, 0, bytes as usize, 7))?;
    file.close()?;
    client.mkdir_all(&format!("/ranks/{rank}"), Some(0o750))?;
    let own = format!("/ranks/{rank}/own");
    let file = client.open(&own, &rw().layout("striped(4KiB) over 2"))?;
    for record in 0..20 {
        file.append(&[record + rank as u8; 1000])?;
    }
    file.resize(15_500)?;
    file.resize(16_000)?;
    file.write_at(40_000, b"behind a hole")?;
    file.close()?;
    client.rename(&own, &format!("/ranks/{rank}/renamed"))?;
    let gone = client.open(&format!("/ranks/{rank}/gone"), &rw())?;
    gone.write_at(0, b"gone")?;
    gone.close()?;
    client.unlink(&format!("/ranks/{rank}/gone"))?;
    Ok(())
}

fn summary(client: &Client, path: &str) -> Result<(), Failure> {
    for entry in client.list_with_attributes(path)? {
        let entry = entry?;
        let below = format!("{}/{}", path.trim_end_matches('/'), entry.name);
        let mode = entry.attributes.as_ref().map_or(0, |a| a.mode);
        if entry.kind == Kind::Directory {
            say(&format!("{below}/ {mode:o}"));
            summary(client, &below)?;
            continue;
        }
        let found = client.stat(&below)?;
        let file = client.open(&below, &OpenOptions::new().read())?;
        let mut bytes = vec![0; found.size as usize];
        let n = file.read_at(0, &mut bytes)?;
        let sum = bytes[..n]
            .iter()
            .fold(0u64, |sum, &b| sum.wrapping_mul(31).wrapping_add(b.into()));
        say(&format!(
            "{below} {mode:o} {} {:?} {sum:x}",
            found.size, found.layout
        ));
    }
    Ok(())
}
