//! Preparing a job: its files are created, laid out and filled, their space and the servers' buffers
//! are taken, and all of it is in memory before the job makes its first access.
//!
//! A job file has sections with `name = value` lines ([`advise::hints::sections`]):
//!
//! ```text
//! [job]
//! buffers = 16MiB                  staging buffers of every server, taken now
//!
//! [directory /results]
//! striping_unit = 256KiB           a hint, kept with the directory
//!
//! [file /input/matrix]
//! array  = f64[4096,4096]
//! layout = (block, *) onto 4
//! source = matrix.raw              a file of this host, beside the job file
//! access_style = read_once         a hint, kept with the file
//!
//! [file /results/out]
//! size = 64MiB                     space is taken now; what was not written reads as zeros
//! load = off                       not into memory
//! ```
//!
//! Invariants
//! - The whole job file is read and checked before anything is done.
//! - What is there already as it should be is left alone, so a run that was broken off is repaired by
//!   another one.
//! - A source counts as stored when the file carries its mark, which is set after the last byte. The
//!   mark names size and time of the source and the time of the file: if either was changed since,
//!   the file is filled again.
//! - Every error names the line.

use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use advise::hints::{Entry, Life, Section, check, known, number, sections, switch};
use client::{
    Client, Hints, Kind, Layout, LayoutSpec, MemberState, Metadata, OpenOptions, Status, StoreKind,
};
use layout::ArrayType;

use crate::copy::{Copier, cannot};
use crate::error::Error;
use crate::stage::Watcher;

/// The hint that marks what was stored; no name that means anything to others.
const MARK: &str = "prepared";
/// Bytes read at a time while a file is loaded.
const PIECE: usize = 1 << 20;

/// A job file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobFile {
    /// Where it was read from.
    pub path: PathBuf,
    buffers: Option<(usize, u64)>,
    directories: Vec<WantedFile>,
    files: Vec<WantedFile>,
}

/// A file or directory as it should be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct WantedFile {
    line: usize,
    path: String,
    array: Option<String>,
    layout: Option<String>,
    source: Option<PathBuf>,
    size: Option<u64>,
    mode: Option<u32>,
    load: bool,
    hints: Vec<Entry>,
}

/// What is there of a file or directory, and what was done about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PreparedEntry {
    /// The line of the job file.
    pub line: usize,
    /// Its path.
    pub path: String,
    /// Whether it is a directory.
    pub is_directory: bool,
    /// What was done, in words; nothing if all was as it should be.
    pub done: Vec<String>,
    /// What is not as it should be; nothing after it was prepared.
    pub missing: Vec<String>,
    /// Its layout.
    pub layout: String,
    /// Which distribution it has, and why.
    pub distribution: String,
    /// Its size.
    pub size: u64,
    /// Space it takes at all servers.
    pub allocated_bytes: u64,
    /// Bytes that this run stored from its source.
    pub stored_bytes: u64,
    /// Bytes that this run read into the memory of servers.
    pub loaded_bytes: u64,
    /// Hints that are kept with it.
    pub hints: Vec<(String, String)>,
}

/// Buffers of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreparedServer {
    /// Its number.
    pub server: u64,
    /// Bytes of staging buffers that are there.
    pub buffer_bytes: u64,
    /// Bytes that its files have in memory.
    pub memory_bytes: u64,
}

/// What became of a job file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preparation {
    /// Directories and files, in the order of the job file.
    pub entries: Vec<PreparedEntry>,
    /// Servers that take part.
    pub servers: Vec<PreparedServer>,
    /// What is not as it should be beside the files.
    pub missing: Vec<String>,
}

impl Preparation {
    /// Whether everything is as it should be.
    pub fn is_ready(&self) -> bool {
        self.missing.is_empty() && self.entries.iter().all(|e| e.missing.is_empty())
    }
}

/// A line of the job file that cannot be carried out.
fn at(job: &Path, line: usize, text: impl fmt::Display) -> Error {
    Error::Argument {
        name: format!("{}, line {line}", job.display()),
        text: text.to_string(),
    }
}

impl JobFile {
    /// Reads a job file and checks all of it.
    pub fn read(path: &Path) -> Result<JobFile, Error> {
        let text = fs::read_to_string(path).map_err(|e| cannot("read", path, e))?;
        JobFile::parse(path, &text)
    }

    /// Reads the text of a job file; sources are beside `path`.
    pub fn parse(path: &Path, text: &str) -> Result<JobFile, Error> {
        let mut job = JobFile {
            path: path.to_owned(),
            ..JobFile::default()
        };
        for section in sections(text).map_err(|e| at(path, e.line, e.text))? {
            let title = section.title.as_str();
            let (kind, rest) = title.split_once(char::is_whitespace).unwrap_or((title, ""));
            let rest = rest.trim();
            match kind {
                "job" if rest.is_empty() => job.take_job(&section)?,
                "directory" | "file" if rest.starts_with('/') => {
                    let wanted = job.wanted(&section, rest, kind == "file")?;
                    let list = match kind {
                        "file" => &mut job.files,
                        _ => &mut job.directories,
                    };
                    if let Some(first) = list.iter().find(|w| w.path == wanted.path) {
                        let why = format!("{rest} has a section already, in line {}", first.line);
                        return Err(at(path, section.line, why));
                    }
                    list.push(wanted);
                }
                _ => {
                    let why = format!(
                        "[{title}] is no section; write [job], [directory /PATH] or [file /PATH]"
                    );
                    return Err(at(path, section.line, why));
                }
            }
        }
        Ok(job)
    }

    fn take_job(&mut self, section: &Section) -> Result<(), Error> {
        for entry in &section.entries {
            match entry.name.as_str() {
                "buffers" => self.buffers = Some((entry.line, self.number(entry)?)),
                name => {
                    let why = format!("`{name}` is no entry of [job]; give buffers");
                    return Err(at(&self.path, entry.line, why));
                }
            }
        }
        Ok(())
    }

    fn number(&self, entry: &Entry) -> Result<u64, Error> {
        number(&entry.value).ok_or_else(|| {
            let why = format!(
                "{} is '{}'; give a number of bytes, as 64MiB",
                entry.name, entry.value
            );
            at(&self.path, entry.line, why)
        })
    }

    fn wanted(&self, section: &Section, path: &str, is_file: bool) -> Result<WantedFile, Error> {
        let mut wanted = WantedFile {
            line: section.line,
            path: path.to_owned(),
            load: true,
            ..WantedFile::default()
        };
        for entry in &section.entries {
            let refused = |why: String| Err(at(&self.path, entry.line, why));
            let value = entry.value.clone();
            match entry.name.as_str() {
                "mode" => match u32::from_str_radix(&value, 8) {
                    Ok(bits) if bits <= 0o7777 => wanted.mode = Some(bits),
                    _ => return refused(format!("mode is '{value}'; give octal digits as 640")),
                },
                "array" | "layout" if is_file => {
                    if let Err(why) = check(&entry.name, &value) {
                        return refused(why);
                    }
                    match entry.name.as_str() {
                        "array" => wanted.array = Some(value),
                        _ => wanted.layout = Some(value),
                    }
                }
                "source" if is_file => {
                    let beside = self.path.parent().unwrap_or(Path::new(""));
                    let local = beside.join(&value);
                    match fs::metadata(&local) {
                        Ok(found) if found.is_file() => wanted.source = Some(local),
                        Ok(_) => {
                            let why = format!("source {} is no file", local.display());
                            return refused(why);
                        }
                        Err(e) => {
                            let why = format!(
                                "source {} cannot be read: {e}; name a file of this host, from \
                                 the directory of the job file on",
                                local.display()
                            );
                            return refused(why);
                        }
                    }
                }
                "size" if is_file => wanted.size = Some(self.number(entry)?),
                "load" if is_file => match switch(&value) {
                    Some(is_on) => wanted.load = is_on,
                    None => return refused(format!("load is '{value}'; give on or off")),
                },
                name => {
                    let (name, is_foreign) = match name.strip_prefix("hint.") {
                        Some(name) => (name, true),
                        None => (name, false),
                    };
                    match known(name) {
                        Some(k) if k.life == Life::Dynamic => {
                            let why =
                                format!("{name} is dynamic; only the running job can give it");
                            return refused(why);
                        }
                        None if !is_foreign => {
                            let why = format!(
                                "`{name}` is neither an entry nor a hint that is known; `pario hint \
                                 --table` lists hints, and hint.{name} keeps it for others"
                            );
                            return refused(why);
                        }
                        _ => {}
                    }
                    if let Err(why) = check(name, &value) {
                        return refused(why);
                    }
                    wanted.hints.push(Entry {
                        name: name.to_owned(),
                        ..entry.clone()
                    });
                }
            }
        }
        Ok(wanted)
    }

    /// Does everything that is not done yet.
    pub fn carry_out(
        &self,
        client: &Client,
        watcher: &mut dyn Watcher,
    ) -> Result<Preparation, Error> {
        let mut preparation = Preparation::default();
        let sizes = self.files.iter().filter_map(|w| w.source.as_deref());
        let total = sizes.filter_map(|s| fs::metadata(s).ok()).map(|m| m.len());
        watcher.total(total.sum());
        for wanted in &self.directories {
            preparation
                .entries
                .push(self.on_line(wanted.line, self.make_directory(client, wanted))?);
        }
        let mut copier = Copier::default();
        for wanted in &self.files {
            watcher.file(&wanted.path);
            let made = self.make_file(client, wanted, &mut copier, watcher);
            preparation.entries.push(self.on_line(wanted.line, made)?);
        }
        let line = self.buffers.map_or(0, |(line, _)| line);
        for server in self.on_line(line, alive(client))? {
            if let Some((line, bytes)) = self.buffers {
                let made = client.make_buffers(client::ServerId(server), bytes);
                let made = self.on_line(line, made.map_err(Error::from))?;
                if made < bytes {
                    let why = format!(
                        "server {server} has {made} bytes of buffers at most; ask for fewer, or \
                         start the service with more"
                    );
                    return Err(at(&self.path, line, why));
                }
            }
        }
        preparation.servers = servers(client)?;
        Ok(preparation)
    }

    /// What is there and what is missing, without doing anything.
    pub fn status(&self, client: &Client) -> Result<Preparation, Error> {
        let mut preparation = Preparation::default();
        for (wanted, is_file) in (self.directories.iter().map(|w| (w, false)))
            .chain(self.files.iter().map(|w| (w, true)))
        {
            let seen = look(client, wanted, is_file);
            preparation.entries.push(self.on_line(wanted.line, seen)?);
        }
        preparation.servers = servers(client)?;
        if let Some((_, bytes)) = self.buffers {
            for server in &preparation.servers {
                if server.buffer_bytes < bytes {
                    let (number, made) = (server.server, server.buffer_bytes);
                    let why = format!("server {number} has {made} of {bytes} bytes of buffers");
                    preparation.missing.push(why);
                }
            }
        }
        Ok(preparation)
    }

    /// An error of a section with its line.
    fn on_line<T>(&self, line: usize, result: Result<T, Error>) -> Result<T, Error> {
        result.map_err(|error| match error {
            Error::Argument { .. } => error,
            other => at(&self.path, line, other),
        })
    }

    fn make_directory(&self, client: &Client, wanted: &WantedFile) -> Result<PreparedEntry, Error> {
        let mut done = Vec::new();
        let before = look(client, wanted, false)?;
        if !before.missing.is_empty() {
            client.mkdir_all(&wanted.path, None)?;
            if let Some(mode) = wanted.mode {
                client.chmod(&wanted.path, mode)?;
            }
            self.keep_hints(client, wanted)?;
            done = before.missing;
        }
        let after = look(client, wanted, false)?;
        Ok(PreparedEntry { done, ..after })
    }

    /// Keeps those hints that are not only about creation.
    fn keep_hints(&self, client: &Client, wanted: &WantedFile) -> Result<(), Error> {
        let mut hints = Hints::new();
        for entry in &wanted.hints {
            hints.set(&entry.name, &entry.value)?;
        }
        if !hints.is_empty() {
            client.set_hints(&wanted.path, &hints, &[])?;
        }
        Ok(())
    }

    fn make_file(
        &self,
        client: &Client,
        wanted: &WantedFile,
        copier: &mut Copier,
        watcher: &mut dyn Watcher,
    ) -> Result<PreparedEntry, Error> {
        let path = &wanted.path;
        let before = look(client, wanted, true)?;
        if let Some((parent, _)) = path.rsplit_once('/').filter(|(p, _)| !p.is_empty()) {
            client.mkdir_all(parent, None)?;
        }
        let mut options = OpenOptions::new().read().write().create();
        let mut hints = Hints::new();
        for entry in &wanted.hints {
            hints.set(&entry.name, &entry.value)?;
        }
        options = options.hints(hints);
        if let Some(array) = &wanted.array {
            options = options.array(array.as_str());
        }
        if let Some(layout) = &wanted.layout {
            options = options.layout(layout.as_str());
        }
        if let Some(mode) = wanted.mode {
            options = options.mode(mode);
        }
        let source = match &wanted.source {
            Some(local) => Some(
                fs::metadata(local)
                    .map_err(|e| cannot("read", local, e))?
                    .len(),
            ),
            None => None,
        };
        if let Some(size) = wanted.size.max(source) {
            options = options.expected_size(size);
        }
        if !client.create(path, &options)? {
            self.lay_out(client, wanted)?;
        }
        self.keep_hints(client, wanted)?;
        if let Some(mode) = wanted.mode {
            client.chmod(path, mode)?;
        }
        let file = client.open(path, &OpenOptions::new().read().write())?;
        let mut stored_bytes = 0;
        if let Some(local) = &wanted.source
            && !is_stored(client, path, local)?
        {
            client.set_hints(path, &Hints::new(), &[MARK.to_owned()])?;
            let source = fs::File::open(local).map_err(|e| cannot("read", local, e))?;
            stored_bytes = copier.fill(&file, &source, local, &mut |n| watcher.moved(n))?;
        }
        if let Some(size) = wanted.size
            && (file.size()? < size || file.allocated()? < size)
        {
            file.preallocate(size)?;
        }
        // The time in the mark is the last one.
        file.sync()?;
        file.close()?;
        if stored_bytes > 0
            && let Some(local) = &wanted.source
        {
            let found = client.attributes(path)?;
            let mark = mark(local, &found)?;
            client.set_hints(path, &Hints::new().with(MARK, &mark)?, &[])?;
        }
        let loaded_bytes = match wanted.load && has_disks(client)? {
            true => load(client, path)?,
            false => 0,
        };
        let after = look(client, wanted, true)?;
        Ok(PreparedEntry {
            done: before.missing,
            stored_bytes,
            loaded_bytes,
            ..after
        })
    }

    /// Gives a file that is there the layout it should have.
    fn lay_out(&self, client: &Client, wanted: &WantedFile) -> Result<(), Error> {
        let found = client.attributes(&wanted.path)?;
        if found.kind == Kind::Directory {
            let why = format!("{} is a directory; name a file", wanted.path);
            return Err(at(&self.path, wanted.line, why));
        }
        if !is_same::<ArrayType>(wanted.array.as_deref(), found.array.as_deref()) {
            let holds = found.array.as_deref().unwrap_or("plain bytes");
            let why = format!(
                "{} is there already and holds {holds}; remove it first with `pario rm`, or leave \
                 `array` away",
                wanted.path
            );
            return Err(at(&self.path, wanted.line, why));
        }
        let Some(layout) = &wanted.layout else {
            return Ok(());
        };
        if is_same::<Layout>(Some(layout), found.layout.as_deref()) {
            return Ok(());
        }
        let spec = LayoutSpec {
            array: found.array,
            layout: Some(layout.clone()),
        };
        match client.set_layout(&wanted.path, spec) {
            Err(error) if error.status() == Status::InUse => {
                client.relayout(&wanted.path, layout)?.wait()?;
                Ok(())
            }
            other => Ok(other?),
        }
    }
}

/// Whether two texts mean the same; nothing wanted is always had.
fn is_same<T: std::str::FromStr + PartialEq>(wanted: Option<&str>, found: Option<&str>) -> bool {
    let Some(wanted) = wanted else {
        return true;
    };
    let Some(found) = found else {
        return false;
    };
    let same = |wanted: &str| match (wanted.parse::<T>(), found.parse::<T>()) {
        (Ok(wanted), Ok(found)) => wanted == found,
        _ => wanted.trim() == found.trim(),
    };
    // The service completes a text that leaves the number of servers open.
    same(wanted)
        || found
            .strip_prefix(wanted.trim())
            .and_then(|rest| rest.trim_start().strip_prefix("over "))
            .is_some_and(|rest| rest.trim().parse::<u64>().is_ok())
}

/// What a stored source is recognised by.
fn mark(local: &Path, found: &Metadata) -> Result<String, Error> {
    let source = fs::metadata(local).map_err(|e| cannot("read", local, e))?;
    Ok(format!(
        "{}:{}.{:09}:{}",
        source.len(),
        source.mtime(),
        source.mtime_nsec(),
        found.modified.0
    ))
}

fn is_stored(client: &Client, path: &str, local: &Path) -> Result<bool, Error> {
    let found = client.stat(path)?;
    let kept = client.hints(path)?;
    let own = kept.standing.get(MARK).map(|given| given.value.clone());
    let len = fs::metadata(local)
        .map_err(|e| cannot("read", local, e))?
        .len();
    Ok(own == Some(mark(local, &found)?) && found.size >= len)
}

fn alive(client: &Client) -> Result<Vec<u64>, Error> {
    let mut members = client.members()?;
    members.retain(|m| m.state == MemberState::Alive);
    Ok(members.iter().map(|m| m.server.0).collect())
}

fn has_disks(client: &Client) -> Result<bool, Error> {
    let mut members = client.members()?.into_iter();
    Ok(members.any(|m| m.state == MemberState::Alive && m.store == StoreKind::Disk))
}

fn servers(client: &Client) -> Result<Vec<PreparedServer>, Error> {
    let mut list = Vec::new();
    for server in alive(client)? {
        let counters = client.server_statistics(client::ServerId(server))?;
        let counter = |name: &str| {
            let found = counters.iter().find(|c| c.name == name);
            found.map_or(0, |c| c.value)
        };
        list.push(PreparedServer {
            server,
            buffer_bytes: counter("buffers_made_bytes"),
            memory_bytes: counter("memory_bytes"),
        });
    }
    Ok(list)
}

/// Reads all of a file through its servers, which leaves it in their memory as far as it fits.
fn load(client: &Client, path: &str) -> Result<u64, Error> {
    // By message: then servers read, and keep, what they have on disk.
    let hints = Hints::new().with("direct", "off")?;
    let file = client.open(path, &OpenOptions::new().read().hints(hints))?;
    let mut buffer = vec![0; PIECE];
    let mut at = 0;
    loop {
        let got = file.read_at(at, &mut buffer)?;
        at += got as u64;
        if got < buffer.len() {
            file.close()?;
            return Ok(at);
        }
    }
}

/// Compares what is there with what should be.
fn look(client: &Client, wanted: &WantedFile, is_file: bool) -> Result<PreparedEntry, Error> {
    let mut seen = PreparedEntry {
        line: wanted.line,
        path: wanted.path.clone(),
        is_directory: !is_file,
        ..PreparedEntry::default()
    };
    let found = match client.stat(&wanted.path) {
        Ok(found) => found,
        Err(error) if matches!(error.status(), Status::NotFound | Status::NotDirectory) => {
            seen.missing.push("it is not there".into());
            return Ok(seen);
        }
        Err(error) => return Err(error.into()),
    };
    if (found.kind == Kind::File) != is_file {
        let what = if is_file { "a directory" } else { "a file" };
        seen.missing.push(format!("it is {what}"));
        return Ok(seen);
    }
    let kept = client.hints(&wanted.path)?;
    seen.distribution = kept.distribution;
    let own = kept.standing.hints.iter();
    let own = own.filter(|(given, _)| given.place == wanted.path && given.name != MARK);
    seen.hints = own
        .map(|(given, _)| (given.name.clone(), given.value.clone()))
        .collect();
    for entry in &wanted.hints {
        let name = advise::hints::canonical(&entry.name);
        if !seen
            .hints
            .iter()
            .any(|(n, v)| n == name && *v == entry.value)
        {
            seen.missing.push(format!("hint {name}"));
        }
    }
    if wanted.mode.is_some_and(|mode| mode != found.mode) {
        seen.missing.push("mode".into());
    }
    if !is_file {
        return Ok(seen);
    }
    seen.size = found.size;
    seen.layout = found.layout.clone().unwrap_or_default();
    seen.allocated_bytes = client.allocated(&wanted.path)?;
    if !is_same::<ArrayType>(wanted.array.as_deref(), found.array.as_deref()) {
        seen.missing.push("array".into());
    }
    if !is_same::<Layout>(wanted.layout.as_deref(), found.layout.as_deref()) {
        seen.missing.push("layout".into());
    }
    if let Some(local) = &wanted.source
        && !is_stored(client, &wanted.path, local)?
    {
        seen.missing.push("bytes of its source".into());
    }
    if wanted
        .size
        .is_some_and(|size| found.size < size || seen.allocated_bytes < size)
    {
        seen.missing.push("space".into());
    }
    Ok(seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<JobFile, String> {
        JobFile::parse(Path::new("/nowhere/job"), text).map_err(|e| e.to_string())
    }

    #[test]
    fn a_job_file_is_read_as_a_whole() {
        let text = "[job]\nbuffers = 1MiB\n[directory /out]\nstriping_unit = 64KiB\nmode = 750\n\
                    [file /out/a]\narray = f64[4,4]\nlayout = (block, *) onto 2\nsize = 128\n\
                    load = off\nhint.cb_nodes = 4\n";
        let job = parse(text).unwrap();
        assert_eq!(job.buffers, Some((2, 1 << 20)));
        assert_eq!(job.directories[0].mode, Some(0o750));
        let file = &job.files[0];
        assert_eq!((file.line, file.size, file.load), (6, Some(128), false));
        assert_eq!(file.hints[0].name, "cb_nodes");
        assert_eq!(parse("").unwrap().files, []);
    }

    #[test]
    fn errors_name_line_and_remedy() {
        for (text, line, part) in [
            ("[fil /a]", 1, "[file /PATH]"),
            ("[file a]", 1, "[file /PATH]"),
            ("[file /a]\nlyaout = x", 2, "hint.lyaout"),
            ("[file /a]\nlayout = (blok)", 2, "layout"),
            ("[file /a]\nsize = much", 2, "give a number"),
            ("[file /a]\nload = maybe", 2, "on or off"),
            ("[file /a]\nsource = missing", 2, "cannot be read"),
            ("[file /a]\ndisk_failed = 1", 2, "dynamic"),
            ("[file /a]\n[file /a]", 2, "already, in line 1"),
            ("[file /a]\nmode = 9", 2, "octal"),
            ("[job]\nbuffer = 1", 2, "give buffers"),
            ("[directory /a]\narray = f64[1]\nsize = 1", 3, "neither"),
            ("buffers = 1", 1, "before the first section"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(
                error.contains(&format!("job, line {line}:")),
                "{text}: {error}"
            );
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn texts_of_layouts_are_compared_by_what_they_mean() {
        assert!(is_same::<Layout>(
            Some("striped(64KiB)"),
            Some("striped(64KiB) over 3")
        ));
        assert!(is_same::<Layout>(
            Some("striped(65536) over 3"),
            Some("striped(64KiB) over 3")
        ));
        assert!(!is_same::<Layout>(
            Some("striped(4) over 3"),
            Some("striped(8) over 3")
        ));
        assert!(is_same::<Layout>(None, Some("whole")));
        assert!(!is_same::<ArrayType>(Some("f64[4]"), None));
    }
}
