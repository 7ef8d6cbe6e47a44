//! `pario punch`: a range of a stored file becomes zero and gives its space back. The size stays.
//! How servers do it is said where `Punch` is.

use clap::Args;
use client::OpenOptions;
use layout::ByteSize;
use serde_json::json;

use super::Error;
use super::connection::{self, refused};
use super::names::{absolute, shown};
use super::output::{self, bytes};

/// Arguments of `pario punch`.
#[derive(Args)]
#[command(after_help = "\
The file keeps its size. What was punched is synced, so that disks have the space back when this ends;
space goes back in the units of the stores, and what is left of a unit at either end is kept as zeros.

Examples:
  pario punch /results/log --range 0..64MiB
  pario punch /scratch/queue --range 1GiB..
  pario punch /results/log --range 4096..8192 --json | jq .freed_bytes")]
pub(crate) struct Arguments {
    /// File
    path: String,

    /// From the first byte to before the last one: 0..64MiB, 4096.. to the end, or ..4KiB
    #[arg(long, value_name = "A..B", value_parser = range)]
    range: ByteRange,

    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

/// A range as users write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ByteRange {
    start: u64,
    /// The size of the file, where nothing is said.
    end: Option<u64>,
}

/// Reads a range on the command line.
fn range(text: &str) -> Result<ByteRange, String> {
    let size = |part: &str| match part.trim() {
        "" => Ok(None),
        part => match part.parse::<ByteSize>() {
            Ok(ByteSize(bytes)) => Ok(Some(bytes)),
            Err(_) => Err(format!(
                "'{part}' is no size; give one such as 4096 or 64KiB"
            )),
        },
    };
    let Some((start, end)) = text.split_once("..") else {
        return Err("is no range; give one such as 0..64MiB, or 4096.. to the end".into());
    };
    let range = ByteRange {
        start: size(start)?.unwrap_or(0),
        end: size(end)?,
    };
    match range.end {
        Some(end) if end < range.start => Err("ends before it begins".into()),
        _ => Ok(range),
    }
}

/// Punches.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    let client = connection::connect_to_existing()?;
    let path = absolute(&arguments.path);
    let ByteRange { start, end } = arguments.range;
    let file = client
        .open(&path, &OpenOptions::new().write())
        .map_err(refused)?;
    let size = file.size().map_err(refused)?;
    let end = end.unwrap_or(size.max(start));
    // What waits in the memory of servers has no space on their disks yet, which would be missing in the difference.
    file.sync().map_err(refused)?;
    let before = file.allocated().map_err(refused)?;
    file.punch(start..end).map_err(refused)?;
    let is_durable = file.sync().map_err(refused)?.is_durable;
    let freed = before.saturating_sub(file.allocated().map_err(refused)?);
    file.close().map_err(refused)?;
    let text = match arguments.json {
        true => {
            let facts = json!({
                "path": path,
                "start": start,
                "end": end,
                "freed_bytes": freed,
                "is_durable": is_durable,
            });
            format!("{facts:#}\n")
        }
        false => format!(
            "{}: bytes {start}..{end} are zero, {} given back\n",
            shown(&path),
            bytes(freed)
        ),
    };
    output::print(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_have_both_ends_or_one() {
        let of = |start, end| Ok(ByteRange { start, end });
        assert_eq!(range("0..64MiB"), of(0, Some(64 << 20)));
        assert_eq!(range("4096.."), of(4096, None));
        assert_eq!(range("..4KiB"), of(0, Some(4096)));
        assert_eq!(range("7..7"), of(7, Some(7)));
        for (text, why) in [
            ("4096", "no range"),
            ("8..4", "ends before"),
            ("a..9", "'a' is no size"),
        ] {
            assert!(range(text).unwrap_err().contains(why), "{text}");
        }
    }
}
