//! Looking at stream files: what is in which segment and why, whether the directory is whole, and making roots for files of
//! other programs.
//!
//! What is looked at is the file as its root says. Nothing is repaired: what a root counts is there, or the file is damaged.

use client::{Client, Error, Result, Status, Team};

use crate::context::Context;
use crate::emulation::Emulation;
use crate::options::{Access, Mode, StreamOptions};
use crate::root::{Regular, Root};
use crate::shape::Shape;
use crate::stream::Stream;
use crate::transfer::Counts;

/// A part of every stream, and why it is in its mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its mode.
    pub mode: Mode,
    /// Bytes of a block.
    pub block: u64,
    /// Bytes of all VPs in it.
    pub bytes: u64,
    /// The rule that made it so.
    pub rule: &'static str,
    /// What the program would have to change to stay in a faster mode; empty for the fastest.
    pub remedy: &'static str,
}

/// What there is in a stream file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The arrangement of its VPs.
    pub shape: Shape,
    /// How its writer dealt VPs to members.
    pub distribution: String,
    /// Its segments that have something, in their order.
    pub parts: Vec<Part>,
    /// Bytes of the shortest and of the longest stream.
    pub lengths: (u64, u64),
    /// What is damaged.
    pub findings: Vec<String>,
}

impl Report {
    /// Whether the file is the plain array, which any program can read.
    pub fn is_plain_array(&self) -> bool {
        self.parts.iter().all(|part| part.mode == Mode::Nb)
    }
}

const NB_RULE: &str = "all VPs active, equal sizes, dense variables";
const CB_RULE: &str = "a write had another size than the first, or a variable with a stride, or was not at a multiple of the block";
const CB_REMEDY: &str = "write the same number of bytes in every call, whole variables and no members of arrays or structures";
const IB_RULE: &str =
    "a write was under a mask, had sizes that differ by VP, or came from an elemental function";
const IB_REMEDY: &str = "write with all VPs active and one size, outside elemental functions";

/// One finding for each VP that is damaged would be too many.
const MOST_FINDINGS: usize = 20;

impl Report {
    /// Looks at a stream file, the whole directory included.
    pub fn of_file(client: &Client, path: &str) -> Result<Report> {
        let mut stream = open_alone(client, path)?;
        let vps = stream.all_vps();
        let mut parts = Vec::new();
        for (mode, segment, rule, remedy) in [
            (Mode::Nb, stream.nb, NB_RULE, ""),
            (Mode::Cb, stream.cb, CB_RULE, CB_REMEDY),
        ] {
            let Regular { block, len, .. } = segment;
            if len > 0 {
                let bytes = len * vps;
                parts.push(Part {
                    mode,
                    block,
                    bytes,
                    rule,
                    remedy,
                });
            }
        }
        let mut findings = Vec::new();
        let lengths = match stream.lengths() {
            Ok(lengths) => lengths,
            Err(error) => {
                findings.push(error.to_string());
                Counts::Uniform(stream.uniform_len())
            }
        };
        let uniform = stream.uniform_len();
        let each = (0..stream.emulation().count()).map(|local| lengths.of(local));
        let (shortest, longest) = each
            .clone()
            .fold((u64::MAX, 0), |(low, high), n| (low.min(n), high.max(n)));
        let independent: u64 = each.map(|n| n - uniform).sum();
        if let Some(root) = &stream.root.ib {
            parts.push(Part {
                mode: Mode::Ib,
                block: root.block,
                bytes: independent,
                rule: IB_RULE,
                remedy: IB_REMEDY,
            });
        }
        if findings.is_empty() {
            findings = stream.walk();
        }
        let report = Report {
            shape: stream.root.shape.clone(),
            distribution: stream.root.distribution.clone(),
            parts,
            lengths: (shortest, longest),
            findings,
        };
        stream.close()?;
        Ok(report)
    }
}

/// Opens a stream file with all VPs at one member.
pub fn open_alone(client: &Client, path: &str) -> Result<Stream> {
    let record = Stream::record(client, path)?.ok_or_else(|| Error::Argument {
        name: "path",
        text: format!("{path} is no stream file; say what its shape is with `pario stream meta`"),
    })?;
    let team = Team::alone();
    let emulation = Emulation::block(&record.shape, &team)?;
    Stream::open(
        client,
        &team,
        path,
        &emulation,
        &StreamOptions::new(Access::Read),
    )
}

/// Says of a file of another program what its shape and its block are. Its bytes are not touched; it has to be a
/// whole number of blocks of all VPs, unless a pad is given.
pub fn describe(
    client: &Client,
    path: &str,
    shape: &Shape,
    distribution: &str,
    (block, pad): (u64, Option<u8>),
) -> Result<()> {
    let size = client.stat(path)?.size;
    let row = shape.count().checked_mul(block).filter(|row| *row > 0);
    let row = row.ok_or_else(|| Error::Argument {
        name: "block",
        text: format!("{block} bytes for each of {} VPs", shape.count()),
    })?;
    // It has to mean something for that shape.
    Emulation::of_rank(shape, distribution, 0, 1)?;
    if !size.is_multiple_of(row) && pad.is_none() {
        return Err(Error::Argument {
            name: "block",
            text: format!(
                "{path} has {size} bytes, no multiple of {} VPs of {block} bytes; give a pad for what is missing",
                shape.count()
            ),
        });
    }
    let root = Root {
        nb: Regular {
            base: 0,
            block,
            len: size.div_ceil(row) * block,
        },
        pad: pad.unwrap_or(0),
        ..Root::empty(shape, distribution)
    };
    root.keep(client, path)
}

/// Writes the streams of a file as the plain array of them: every stream is as long as the longest, rounded up to
/// blocks, and has the pad behind its end. The bytes of each stream.
pub fn convert(
    client: &Client,
    source: &str,
    target: &str,
    (block, pad): (Option<u64>, u8),
) -> Result<u64> {
    let mut from = open_alone(client, source)?;
    let team = Team::alone();
    let emulation = from.emulation().clone();
    let count = emulation.count();
    let lengths = from.lengths()?;
    let longest = (0..count).map(|vp| lengths.of(vp)).max().unwrap_or(0);
    let usual = match longest.saturating_mul(count as u64) <= WHOLE {
        true => longest,
        false => 64,
    };
    let block = block.unwrap_or(usual).max(1) as usize;
    let options = StreamOptions::new(Access::Write);
    let mut to = Stream::open(client, &team, target, &emulation, &options)?;
    let everywhere = Context::everywhere();
    let mut done = 0;
    while done < longest {
        let mut memory = vec![pad; block * count];
        from.read(&everywhere, &mut memory, block)?;
        to.write(&everywhere, &memory, block)?;
        done += block as u64;
    }
    to.close()?;
    from.close()?;
    Ok(done)
}

/// Bytes of all streams that are converted in one block.
const WHOLE: u64 = 64 << 20;

impl Stream {
    /// What is wrong with the directory: every block of every VP has to be reached once.
    fn walk(&mut self) -> Vec<String> {
        let mut findings = Vec::new();
        let mut seen = Vec::new();
        for local in 0..self.vps.len() {
            let who = self.who(local);
            let Stream {
                vps,
                ib,
                pages,
                raw,
                ..
            } = &mut *self;
            let Some(ib) = ib else { break };
            if let Err(error) = ib.walk(raw, pages, who, &mut vps[local], |at| seen.push(at)) {
                findings.push(error.to_string());
            }
            if findings.len() >= MOST_FINDINGS {
                findings.push("and more".to_owned());
                return findings;
            }
        }
        seen.sort_unstable();
        if let Some(pair) = seen.windows(2).find(|pair| pair[0] == pair[1]) {
            findings.push(format!("two blocks of streams are at byte {}", pair[0]));
        }
        findings
    }
}

/// All bytes of one stream.
pub fn read_stream(client: &Client, path: &str, vp: u64) -> Result<Vec<u8>> {
    let mut stream = open_alone(client, path)?;
    let count = stream.emulation().count();
    let Some(local) = stream.emulation().local(vp) else {
        return Err(Error::Argument {
            name: "vp",
            text: format!("{vp}, but VPs of {path} are numbered 0 to {}", count - 1),
        });
    };
    let len = stream.lengths()?.of(local) as usize;
    stream.become_each()?;
    let mut bytes = vec![0; len];
    let who = stream.who(local);
    let read = stream.read_vp(who, &mut bytes)?;
    bytes.truncate(read);
    stream.close()?;
    Ok(bytes)
}

/// What says which bytes of a file are whose, as text, for keeping it beside a copy of the file; `None` for a file of another
/// program.
pub fn root_text(client: &Client, path: &str) -> Result<Option<String>> {
    let text = Root::of_file(client, path)?;
    if let Some(text) = &text {
        Root::parse(text)?;
    }
    Ok(text)
}

/// Gives a file the root that its copy had, or none: then it is a file of another program.
pub fn keep_root_text(client: &Client, path: &str, text: Option<&str>) -> Result<()> {
    match text {
        Some(text) => Root::parse(text)?.keep(client, path),
        None => match client.remove_view(path, crate::root::RECORD) {
            Err(e) if e.status() != Status::NotFound => Err(e),
            _ => Ok(()),
        },
    }
}
