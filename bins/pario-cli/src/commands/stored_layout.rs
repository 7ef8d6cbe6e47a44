//! `pario layout PATH`: how a stored file is cut into subfiles, which server has which, how many bytes
//! that is, and what is lost. Owns the table and its JSON; the picture is that of any layout.

use std::collections::BTreeMap;
use std::fmt::Write;

use client::{FileLayout, Kind, Member, MemberState, Place};
use layout::{ArrayType, ElementType, Order, View};
use serde_json::{Value, json};

use super::Error;
use super::connection::{self, refused};
use super::names::{absolute, shown};
use super::output::{bytes, counted, exact_bytes, shortened};
use crate::draw::text;
use console::subject::{Elements, Subject};

/// Most subfiles in the table.
const LISTED: usize = 32;

/// A stored file and where its bytes are.
pub(crate) struct StoredFile {
    path: String,
    size: u64,
    layout: FileLayout,
    members: BTreeMap<u64, Member>,
    /// The only subfile of interest.
    picked: Option<usize>,
}

/// One place of one subfile.
struct Row {
    generation: u64,
    subfile: usize,
    place: Place,
    bytes: u64,
    falls: String,
    is_lost: bool,
}

impl StoredFile {
    /// Asks the service.
    pub(crate) fn ask(path: &str, element: Option<u64>) -> Result<StoredFile, Error> {
        let client = connection::connect_to_existing()?;
        let attributes = client.stat(path).map_err(refused)?;
        let path = absolute(path);
        if attributes.kind == Kind::Directory {
            let shown = shown(&path);
            return Err(format!("{shown} is a directory, which has no layout; name a file").into());
        }
        let layout = client.layout(&path).map_err(refused)?;
        let members = client.members().map_err(refused)?;
        let stored = StoredFile {
            path,
            size: attributes.size,
            layout,
            members: members.into_iter().map(|m| (m.server.0, m)).collect(),
            picked: element.map(usize::try_from).transpose()?,
        };
        let count = stored.newest_partition().len();
        match stored.picked {
            Some(k) if k >= count => Err(format!(
                "--element: there is no subfile {k} of {}: they are numbered 0 to {}",
                shown(&stored.path),
                count - 1
            )
            .into()),
            _ => Ok(stored),
        }
    }

    /// The one the file is in, or moves to.
    fn newest_partition(&self) -> &layout::Partition {
        // There is always one.
        let newest = self.layout.state.pieces.iter().max_by_key(|p| p.generation);
        &newest.expect("a layout state has a piece").partition
    }

    fn array(&self) -> Option<ArrayType> {
        let array: ArrayType = self.layout.array.as_deref()?.parse().ok()?;
        (array.bytes() > 0).then_some(array)
    }

    /// What is drawn: the array, or the file as it is, or one period of a file without bytes.
    pub(crate) fn subject(&self) -> Result<Subject, Error> {
        let partition = self.newest_partition();
        let (array, is_file) = match self.array() {
            Some(array) => (array, false),
            None => {
                let bytes = match self.size {
                    0 => partition.pattern().period(),
                    size => size,
                };
                (ArrayType::new(ElementType::U8, [bytes], Order::C)?, true)
            }
        };
        let total = partition.len() as u64;
        let elements = match self.picked {
            Some(k) => Elements::Views(vec![View::from(partition.subfile(k))]),
            None => Elements::Partition(partition.clone()),
        };
        Ok(Subject {
            is_file,
            picked: self.picked,
            total,
            ..Subject::new(self.layout.text.clone(), &array, elements)
        })
    }

    fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for piece in &self.layout.state.pieces {
            for (subfile, places) in piece.places.iter().enumerate() {
                if self.picked.is_some_and(|picked| picked != subfile) {
                    continue;
                }
                let element = piece.partition.subfile(subfile);
                // Only what the generation has of the file.
                let below = |offset: u64| element.rank(offset.min(self.size));
                let ranges = piece.ranges.iter();
                let bytes = ranges.map(|r| below(r.end) - below(r.start)).sum();
                rows.extend(places.iter().map(|&place| Row {
                    generation: piece.generation,
                    subfile,
                    place,
                    bytes,
                    falls: element.set().simplify().to_string(),
                    is_lost: self.layout.lost.contains(&place),
                }));
            }
        }
        rows
    }

    fn generations(&self) -> Vec<u64> {
        let pieces = self.layout.state.pieces.iter();
        pieces.map(|piece| piece.generation).collect()
    }

    /// The whole page.
    pub(crate) fn to_text(&self, subject: &Subject) -> String {
        let rows = self.rows();
        let mut page = String::new();
        let mut line = |name: &str, value: &str| {
            // Writing to a string does not fail.
            let _ = writeln!(page, "{name:<10} {value}");
        };
        line("path", &shown(&self.path));
        line(
            "array",
            self.layout.array.as_deref().unwrap_or("none, plain bytes"),
        );
        line("layout", &subject.title());
        line("chosen", &self.layout.distribution);
        let generations: Vec<String> = self.generations().iter().map(u64::to_string).collect();
        match &generations[..] {
            [one] => line("generation", one),
            many => line(
                "generation",
                &format!("{}, the file is being moved", many.join(" and ")),
            ),
        }
        let subfiles = counted(subject.total, "subfile", "subfiles");
        line("size", &format!("{} in {subfiles}", exact_bytes(self.size)));
        line(
            "owner",
            &format!("server {}", self.layout.state.owner.server),
        );
        page.push('\n');
        if self.size == 0 && subject.is_file {
            page += "  (the file has no bytes yet; this is where the first ones will be)\n";
        }
        page += &text::picture(subject);
        page.push('\n');
        page += &self.table(&rows);
        let lost: u64 = rows
            .iter()
            .filter(|row| row.is_lost)
            .map(|row| row.bytes)
            .sum();
        if rows.iter().any(|row| row.is_lost) {
            let _ = writeln!(
                page,
                "\n{} of the file are lost: they were in the memory of servers that ended; store the \
                 file again",
                bytes(lost)
            );
        }
        page
    }

    fn table(&self, rows: &[Row]) -> String {
        let head = [
            "subfile",
            "bytes",
            "share",
            "server",
            "incarnation",
            "state",
            "falls",
        ];
        let mut lines = vec![head.map(str::to_owned)];
        let has_generations = self.layout.state.pieces.len() > 1;
        for row in rows.iter().take(LISTED) {
            let share = 100.0 * row.bytes as f64 / self.size.max(1) as f64;
            let subfile = match has_generations {
                true => format!("{}.{}", row.generation, row.subfile),
                false => row.subfile.to_string(),
            };
            lines.push([
                subfile,
                row.bytes.to_string(),
                format!("{share:.1}%"),
                row.place.server.to_string(),
                row.place.incarnation.to_string(),
                self.state(row).to_owned(),
                match self.picked {
                    Some(_) => row.falls.clone(),
                    None => shortened(&row.falls, 30),
                },
            ]);
        }
        let width = |k: usize| lines.iter().map(|line| line[k].len()).max().unwrap_or(0);
        let widths: [usize; 6] = std::array::from_fn(width);
        let [a, b, c, d, e, f] = widths;
        let mut text = String::new();
        for [subfile, bytes, share, server, incarnation, state, falls] in &lines {
            let _ = writeln!(
                text,
                "  {subfile:>a$} {bytes:>b$} {share:>c$} {server:>d$} {incarnation:>e$} {state:<f$} {falls}"
            );
        }
        if rows.len() > LISTED {
            let more = counted(
                (rows.len() - LISTED) as u64,
                "more subfile",
                "more subfiles",
            );
            let _ = writeln!(text, "  … {more} (--element K shows one, --json all)");
        }
        text
    }

    /// `lost`, or whether its server can be asked.
    fn state(&self, row: &Row) -> &'static str {
        match self.members.get(&row.place.server) {
            _ if row.is_lost => "lost",
            Some(member) if member.state == MemberState::Alive => "alive",
            _ => "away",
        }
    }

    /// Everything, with all subfiles.
    pub(crate) fn to_json(&self) -> Value {
        let subfiles: Vec<Value> = self
            .rows()
            .iter()
            .map(|row| {
                let member = self.members.get(&row.place.server);
                json!({
                    "generation": row.generation,
                    "subfile": row.subfile,
                    "server": row.place.server,
                    "incarnation": row.place.incarnation,
                    "address": member.map(|member| &member.address),
                    "state": self.state(row),
                    "lost": row.is_lost,
                    "bytes": row.bytes,
                    "falls": row.falls,
                })
            })
            .collect();
        json!({
            "path": self.path,
            "array": self.layout.array,
            "layout": self.layout.text,
            "distribution": self.layout.distribution,
            "size": self.size,
            "generation": self.generations().iter().max(),
            "generations": self.generations(),
            "period": self.newest_partition().pattern().period(),
            "owner": self.layout.state.owner.server,
            "subfiles": subfiles,
        })
    }
}
