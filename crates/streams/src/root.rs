//! [`Root`]: what is known about a stream file beside its bytes, and how it is kept: as text, in one record of the catalogue.
//!
//! `docs/formats/stream.md` describes it to the byte. The record is replaced as a whole and durably, so that a file always has
//! the streams of its last flush: whatever else a writer puts into the file before is beyond what the root counts.
//!
//! Invariants
//! - A root that was read is consistent: segments do not overlap, and sizes fit a file.
//! - A newer format is refused with its version.

use std::fmt::Write as _;

use client::{Client, Error, Result, Status, View};

use crate::shape::Shape;

/// The name of the record, among the views that are kept with a file.
pub const RECORD: &str = "pario.stream";

/// The version of the format that this code writes.
pub(crate) const VERSION: u32 = 1;

/// A segment in which block j of VP v lies at `base + (j * V + v) * block`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Regular {
    /// First byte in the file.
    pub(crate) base: u64,
    /// Bytes of a block; 0 before the segment has begun.
    pub(crate) block: u64,
    /// Bytes of every VP in it.
    pub(crate) len: u64,
}

impl Regular {
    /// Bytes that its blocks take in the file, the last one whole; `None` beyond the end of any file.
    pub(crate) fn extent(&self, vps: u64) -> Option<u64> {
        let blocks = match self.block {
            0 => 0,
            block => self.len.div_ceil(block),
        };
        blocks.checked_mul(vps)?.checked_mul(self.block)
    }

    /// The first byte behind it.
    pub(crate) fn end(&self, vps: u64) -> Option<u64> {
        self.extent(vps)?
            .checked_add(self.base)
            .filter(|end| *end <= MAX_END)
    }
}

/// Files end below 2^63.
const MAX_END: u64 = i64::MAX as u64;

/// Most pages of a table, so that the root stays short.
const MOST_PAGES: u64 = 512;

/// Fewest VPs of a page.
const PAGE_VPS: u64 = 1024;

/// Bytes of the table for a VP.
pub(crate) const RECORD_BYTES: u64 = 32;

/// Where the records of a page of VPs are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageHome {
    /// Never written: the VPs have nothing in the segment.
    Nowhere,
    /// In the first table.
    First,
    /// In the second table.
    Second,
}

impl PageHome {
    fn letter(self) -> char {
        match self {
            PageHome::Nowhere => '-',
            PageHome::First => 'a',
            PageHome::Second => 'b',
        }
    }

    /// Where the page is written next.
    pub(crate) fn other(self) -> PageHome {
        match self {
            PageHome::First => PageHome::Second,
            _ => PageHome::First,
        }
    }
}

/// The segment of independent blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IndependentRoot {
    /// Where the first table begins.
    pub(crate) base: u64,
    pub(crate) superblock: u64,
    pub(crate) block: u64,
    /// Pointers of a directory entry.
    pub(crate) pointers: u64,
    /// Marks entries and records as those of this segment.
    pub(crate) stamp: u64,
    /// Superblocks that may be in use.
    pub(crate) superblocks: u64,
    /// By page of VPs.
    pub(crate) homes: Vec<PageHome>,
}

impl IndependentRoot {
    /// VPs whose records are on one page.
    pub(crate) fn page_vps(vps: u64) -> u64 {
        vps.div_ceil(MOST_PAGES).max(PAGE_VPS)
    }

    pub(crate) fn pages(vps: u64) -> usize {
        vps.div_ceil(Self::page_vps(vps)) as usize
    }

    /// Bytes of one table, up to whole superblocks.
    pub(crate) fn table_bytes(&self, vps: u64) -> u64 {
        (vps * RECORD_BYTES).next_multiple_of(self.superblock)
    }

    /// Where the table of a home begins.
    pub(crate) fn table(&self, vps: u64, home: PageHome) -> u64 {
        match home {
            PageHome::Second => self.base + self.table_bytes(vps),
            _ => self.base,
        }
    }

    /// Where superblock 0 begins.
    pub(crate) fn first_superblock(&self, vps: u64) -> u64 {
        self.base + 2 * self.table_bytes(vps)
    }

    /// Bytes of a directory entry.
    pub(crate) fn entry_bytes(&self) -> u64 {
        (self.pointers + 2) * 8
    }
}

/// See the [module](self).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Root {
    pub(crate) shape: Shape,
    pub(crate) distribution: String,
    pub(crate) nb: Regular,
    pub(crate) cb: Regular,
    pub(crate) ib: Option<IndependentRoot>,
    /// What is read where an external file ends within a row of blocks.
    pub(crate) pad: u8,
}

impl Root {
    /// Of a file with nothing in it.
    pub(crate) fn empty(shape: &Shape, distribution: &str) -> Root {
        Root {
            shape: shape.clone(),
            distribution: distribution.to_owned(),
            nb: Regular::default(),
            cb: Regular::default(),
            ib: None,
            pad: 0,
        }
    }

    pub(crate) fn text(&self) -> String {
        let mut out = format!("pario-stream {VERSION}\n");
        let _ = writeln!(out, "shape {}", self.shape);
        let _ = writeln!(out, "distribution {}", self.distribution);
        for (name, segment) in [("nb", self.nb), ("cb", self.cb)] {
            let Regular { base, block, len } = segment;
            let _ = writeln!(out, "{name} base {base} block {block} bytes {len}");
        }
        if let Some(ib) = &self.ib {
            let _ = writeln!(
                out,
                "ib base {} superblock {} block {} pointers {} stamp {} superblocks {}",
                ib.base, ib.superblock, ib.block, ib.pointers, ib.stamp, ib.superblocks
            );
            let homes: String = ib.homes.iter().map(|home| home.letter()).collect();
            let _ = writeln!(out, "table {homes}");
        }
        let _ = writeln!(out, "pad {}", self.pad);
        out
    }

    pub(crate) fn parse(text: &str) -> Result<Root> {
        parse(text).map_err(|what| Error::Refused {
            status: Status::Malformed,
            text: what,
            server: None,
        })
    }

    /// Replaces the root of a file, durably.
    pub(crate) fn keep(&self, client: &Client, path: &str) -> Result<()> {
        client.put_view(path, RECORD, &self.text(), &View::whole_file())
    }

    /// The root of a file; `None` if it has none, as plain files have.
    pub(crate) fn of_file(client: &Client, path: &str) -> Result<Option<String>> {
        match client.get_view(path, RECORD) {
            Ok(kept) => Ok(Some(kept.text)),
            Err(e) if e.status() == Status::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }
}

fn parse(text: &str) -> std::result::Result<Root, String> {
    let damaged = |what: &str| format!("the root of the stream file is damaged: {what}");
    let mut lines = text.lines();
    let version = lines
        .next()
        .and_then(|line| line.strip_prefix("pario-stream "));
    let version = version.ok_or_else(|| damaged("it has no version"))?;
    match version.parse::<u32>() {
        Ok(VERSION) => {}
        Ok(newer) => {
            return Err(format!(
                "the stream file has format {newer}, and this program reads {VERSION}; use a newer one"
            ));
        }
        Err(_) => return Err(damaged("its version is no number")),
    }
    let rest = |line: Option<&str>, name: &str| {
        let line = line.and_then(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.map(str::to_owned)
            .ok_or_else(|| damaged(&format!("no line `{name}`")))
    };
    let shape: Shape = rest(lines.next(), "shape")?
        .parse()
        .map_err(|e| damaged(&format!("{e}")))?;
    let distribution = rest(lines.next(), "distribution")?;
    let regular = |line: Option<&str>, name: &str| {
        let [base, block, len] = numbers(&rest(line, name)?, ["base", "block", "bytes"])
            .ok_or_else(|| damaged(&format!("line `{name}`")))?;
        Ok::<_, String>(Regular { base, block, len })
    };
    let nb = regular(lines.next(), "nb")?;
    let cb = regular(lines.next(), "cb")?;
    let mut line = lines.next();
    let mut ib = None;
    if line.is_some_and(|line| line.starts_with("ib ")) {
        let names = [
            "base",
            "superblock",
            "block",
            "pointers",
            "stamp",
            "superblocks",
        ];
        let [base, superblock, block, pointers, stamp, superblocks] =
            numbers(&rest(line, "ib")?, names).ok_or_else(|| damaged("line `ib`"))?;
        let homes = rest(lines.next(), "table")?;
        let homes = homes.chars().map(|letter| match letter {
            '-' => Some(PageHome::Nowhere),
            'a' => Some(PageHome::First),
            'b' => Some(PageHome::Second),
            _ => None,
        });
        let homes: Option<Vec<PageHome>> = homes.collect();
        ib = Some(IndependentRoot {
            base,
            superblock,
            block,
            pointers,
            stamp,
            superblocks,
            homes: homes.ok_or_else(|| damaged("line `table`"))?,
        });
        line = lines.next();
    }
    let [pad] =
        numbers(line.unwrap_or_default(), ["pad"]).ok_or_else(|| damaged("no line `pad`"))?;
    let pad = u8::try_from(pad).map_err(|_| damaged("line `pad`"))?;
    let root = Root {
        shape,
        distribution,
        nb,
        cb,
        ib,
        pad,
    };
    is_consistent(&root)
        .then_some(root)
        .ok_or_else(|| damaged("its segments do not fit"))
}

/// The numbers behind these names, each once and in this order.
fn numbers<const N: usize>(text: &str, names: [&str; N]) -> Option<[u64; N]> {
    let mut words = text.split(' ');
    let mut out = [0; N];
    for (name, number) in names.iter().zip(&mut out) {
        if words.next() != Some(name) {
            return None;
        }
        *number = words.next()?.parse().ok()?;
    }
    words.next().is_none().then_some(out)
}

fn is_consistent(root: &Root) -> bool {
    let vps = root.shape.count();
    let (Some(nb_end), Some(cb_end)) = (root.nb.end(vps), root.cb.end(vps)) else {
        return false;
    };
    let is_whole = |n: u64, unit: u64| {
        if unit == 0 {
            n == 0
        } else {
            n.is_multiple_of(unit)
        }
    };
    if root.nb.base != 0 || !is_whole(root.nb.len, root.nb.block) {
        return false;
    }
    if root.cb.block > 0 && root.cb.base < nb_end || root.cb.block == 0 && root.cb.len > 0 {
        return false;
    }
    let Some(ib) = &root.ib else { return true };
    let is_sized = ib.superblock.is_power_of_two()
        && (MIN_SUPERBLOCK..=MAX_SUPERBLOCK).contains(&ib.superblock)
        && (1..=ib.superblock).contains(&ib.block)
        && (ib.pointers + 2).is_power_of_two()
        && (2..=MAX_POINTERS).contains(&ib.pointers)
        && ib.homes.len() == IndependentRoot::pages(vps);
    let end = ib.superblocks.checked_mul(ib.superblock);
    let end = end.and_then(|n| {
        n.checked_add(ib.base)?
            .checked_add(2 * (vps * RECORD_BYTES).checked_next_multiple_of(ib.superblock)?)
    });
    is_sized
        && ib.base >= nb_end.max(if root.cb.block > 0 { cb_end } else { 0 })
        && end.is_some_and(|end| end <= MAX_END)
}

/// Superblocks have at least so many bytes.
pub(crate) const MIN_SUPERBLOCK: u64 = 4 << 10;
/// Superblocks have at most so many bytes.
pub(crate) const MAX_SUPERBLOCK: u64 = 16 << 20;
/// Directory entries have at most so many pointers.
pub(crate) const MAX_POINTERS: u64 = 254;

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Root {
        let shape = Shape::new(&[40, 30]).unwrap();
        Root {
            nb: Regular {
                base: 0,
                block: 8,
                len: 16,
            },
            cb: Regular {
                base: 20480,
                block: 32,
                len: 40,
            },
            ib: Some(IndependentRoot {
                base: 1 << 20,
                superblock: 32768,
                block: 64,
                pointers: 6,
                stamp: 77,
                superblocks: 9,
                homes: vec![PageHome::First, PageHome::Nowhere],
            }),
            pad: 7,
            ..Root::empty(&shape, "(block, *)")
        }
    }

    #[test]
    fn a_root_is_read_as_it_was_written() {
        let root = sample();
        assert_eq!(Root::parse(&root.text()).unwrap(), root);
        let plain = Root { ib: None, ..root };
        assert_eq!(Root::parse(&plain.text()).unwrap(), plain);
    }

    #[test]
    fn newer_and_damaged_roots_are_refused() {
        let text = sample().text();
        let newer = text.replace("pario-stream 1", "pario-stream 2");
        let error = Root::parse(&newer).unwrap_err().to_string();
        assert!(error.contains("format 2"), "{error}");
        for (from, to) in [
            ("superblock 32768", "superblock 32767"),
            ("pointers 6", "pointers 5"),
            ("base 1048576", "base 1024"),
            ("base 20480", "base 8"),
            ("bytes 16", "bytes 17"),
            ("superblocks 9", "superblocks 18446744073709551615"),
            ("table a-", "table a-x"),
            ("table a-", "table a"),
            ("pad 7", "pad 256"),
            ("shape [40][30]", "shape [40][0]"),
        ] {
            let wrong = text.replace(from, to);
            assert_ne!(wrong, text);
            let error = Root::parse(&wrong).unwrap_err().to_string();
            assert!(error.contains("damaged"), "{to}: {error}");
        }
        // Every line that is missing is missed.
        for gone in 0..text.lines().count() {
            let lines = text.lines().enumerate().filter(|(n, _)| *n != gone);
            let rest: Vec<&str> = lines.map(|(_, line)| line).collect();
            let is_ib = text.lines().nth(gone).unwrap().starts_with("ib ");
            assert!(Root::parse(&rest.join("\n")).is_err(), "{gone} {is_ib}");
        }
    }
}
