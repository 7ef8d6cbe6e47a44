//! `pario backup`: the catalogue of a service in one file, while the service is used. Bytes of files are in no backup.
//!
//! Invariants
//! - The file gets its name when all of it is durable and was read again. A file that is there is never written over.
//! - Nobody but its owner can read it: it has names and attributes of all files.
//!
//! Left to others: the form of the file (`meta`), and making a catalogue of it (`restore`).

use std::fs::{self, File, OpenOptions};
use std::io::{BufReader, BufWriter, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use clap::Args;
use client::Client;
use metaserver::backup::{BackupHead, BackupReader, BackupWriter};
use serde_json::{Value, json};

use super::connection::{self, refused};
use super::output::{self, bytes, counted};
use super::{Error, names};

/// Arguments of `pario backup`.
#[derive(Args)]
#[command(after_help = "\
The file has everything that the catalogue knows at one moment: names, attributes, layouts, hints, profiles, views, servers.
The bytes of files are on the disks of the I/O servers and not in it, and neither is the key of the service. It is
written beside FILE, read again, and renamed; a file that is there is not written over. Only root and the user who runs
the service may do that.

Examples:
  pario backup /backup/catalogue-$(date +%F)
  pario backup --check /backup/catalogue-2026-11-19
  pario restore /backup/catalogue-2026-11-19 --dir /data/pario    make a catalogue of it again")]
pub(crate) struct Arguments {
    /// The file to write
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Write nothing: read FILE, compare it with its checksums, and say what it is of
    #[arg(long)]
    check: bool,

    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

/// Writes or checks a backup.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    let file = &arguments.file;
    let (head, rows) = match arguments.check {
        true => read(file)?,
        false => write(file)?,
    };
    let file_bytes = fs::metadata(file).map_err(|e| named(file, &e))?.len();
    if arguments.json {
        let mut told = to_json(&head, rows);
        told["file"] = json!(file);
        told["bytes"] = json!(file_bytes);
        return output::print(&format!("{told}\n"));
    }
    output::print(&format!(
        "{}: {}, {}, {}, as of {}\n",
        names::shown(&file.display().to_string()),
        counted(head.files, "file", "files"),
        counted(head.directories, "directory", "directories"),
        bytes(file_bytes),
        serving::utc(head.at_s),
    ))
}

/// What a backup is of, for machines.
pub(super) fn to_json(head: &BackupHead, rows: u64) -> Value {
    json!({
        "catalogue_version": head.catalogue_version,
        "as_of": serving::utc(head.at_s),
        "files": head.files,
        "directories": head.directories,
        "rows": rows,
    })
}

fn named(path: &Path, error: &impl ToString) -> Error {
    format!(
        "{}: {}",
        names::shown(&path.display().to_string()),
        error.to_string()
    )
    .into()
}

fn write(path: &Path) -> Result<(BackupHead, u64), Error> {
    if path.symlink_metadata().is_ok() {
        return Err(named(
            path,
            &"exists already, and a backup writes over nothing; give another name",
        ));
    }
    let client = connection::connect_to_existing()?;
    let mut aside = path.as_os_str().to_owned();
    aside.push(".part");
    let aside = PathBuf::from(aside);
    match fs::remove_file(&aside) {
        Err(e) if e.kind() != ErrorKind::NotFound => return Err(named(&aside, &e)),
        _ => {}
    }
    let made = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&aside)
        .map_err(|e| named(&aside, &e))?;
    let written = fetch(&client, made, &aside).and_then(|()| {
        let found = read(&aside)?;
        // Refuses what has come there meanwhile.
        fs::hard_link(&aside, path).map_err(|e| named(path, &e))?;
        lockfile::sync_name(path).map_err(|e| named(path, &e))?;
        Ok(found)
    });
    // What was not finished is of no use to anybody.
    let _ = fs::remove_file(&aside);
    written
}

/// Fetches all rows.
fn fetch(client: &Client, file: File, path: &Path) -> Result<(), Error> {
    let failed = |e: std::io::Error| named(path, &e);
    let mut part = client.backup(0, &[]).map_err(refused)?;
    let head = BackupHead {
        catalogue_version: part.catalogue_version,
        at_s: part.at_s,
        files: part.files,
        directories: part.directories,
    };
    let mut writer = BackupWriter::new(BufWriter::new(file), &head).map_err(failed)?;
    while let Some(last) = part.rows.last() {
        let rows = part.rows.iter();
        let rows = rows.map(|row| (&row.key.0[..], &row.value.0[..]));
        writer.rows(rows).map_err(failed)?;
        part = client.backup(part.backup, &last.key.0).map_err(refused)?;
    }
    let (out, _) = writer.finish().map_err(failed)?;
    let file = out.into_inner().map_err(|e| failed(e.into_error()))?;
    file.sync_all().map_err(failed)
}

/// Reads all of a backup; what it is of, and how many rows it has.
fn read(path: &Path) -> Result<(BackupHead, u64), Error> {
    let file = File::open(path).map_err(|e| named(path, &e))?;
    let mut reader = BackupReader::new(BufReader::new(file)).map_err(|e| named(path, &e))?;
    let mut rows = 0;
    while let Some(some) = reader.next_rows().map_err(|e| named(path, &e))? {
        rows += some.len() as u64;
    }
    Ok((reader.head().clone(), rows))
}
