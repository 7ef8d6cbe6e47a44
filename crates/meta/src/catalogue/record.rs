//! What is in the rows: keys, records, and their encodings.
//!
//! Keys are a tag byte and big-endian numbers, so that they sort as they count; records are the
//! variable-length numbers and texts of `wire`. The page `docs/formats/catalogue.md` has every byte.
//! A change of a record here raises [`super::VERSION`] and keeps reading the old form.

use wire::message::catalogue::MoveOptions;
use wire::{DecodeError, LayoutState, Place, Reader, put_number};

use super::rows::{Rows, RowsTransaction};
use super::{Member, MemberState, StoreKind};
use crate::error::MetaError;
use crate::{ClientId, FileId, ServerId, Time};

pub(crate) const FORMAT: u8 = 0;
pub(crate) const NODE: u8 = 1;
pub(crate) const ENTRY: u8 = 2;
pub(crate) const VIEW: u8 = 3;
pub(crate) const MEMBER: u8 = 4;
pub(crate) const REMOVAL: u8 = 5;
const TRANSIENT: u8 = 6;
pub(crate) const COUNTER: u8 = 7;
pub(crate) const LAYOUT: u8 = 8;
pub(crate) const DISTRIBUTION: u8 = 9;
pub(crate) const MOVING: u8 = 10;
pub(crate) const CALIBRATION: u8 = 11;
pub(crate) const PROFILE: u8 = 12;
pub(crate) const HINTS: u8 = 13;
pub(crate) const FAILED: u8 = 14;
pub(super) const ANSWER: u8 = 15;
const IDENTITY: u8 = 16;
pub(crate) const VALUE: u8 = 17;
pub(crate) const TREE: u8 = 18;

/// The root directory.
pub(crate) const ROOT: FileId = FileId(1);

/// Keys, one function per kind of row.
pub(crate) mod key {
    use super::*;

    fn with(tag: u8, numbers: &[u64], name: &str) -> Vec<u8> {
        let mut key = vec![tag];
        for n in numbers {
            key.extend(n.to_be_bytes());
        }
        key.extend(name.as_bytes());
        key
    }

    pub(crate) fn format() -> Vec<u8> {
        vec![FORMAT]
    }

    pub(crate) fn node(file: FileId) -> Vec<u8> {
        with(NODE, &[file.0], "")
    }

    pub(crate) fn nodes() -> Vec<u8> {
        vec![NODE]
    }

    pub(crate) fn entry(directory: FileId, name: &str) -> Vec<u8> {
        with(ENTRY, &[directory.0], name)
    }

    pub(crate) fn entries() -> Vec<u8> {
        vec![ENTRY]
    }

    pub(crate) fn entries_of(directory: FileId) -> Vec<u8> {
        with(ENTRY, &[directory.0], "")
    }

    pub(crate) fn view(file: FileId, name: &str) -> Vec<u8> {
        with(VIEW, &[file.0], name)
    }

    pub(crate) fn views() -> Vec<u8> {
        vec![VIEW]
    }

    pub(crate) fn views_of(file: FileId) -> Vec<u8> {
        with(VIEW, &[file.0], "")
    }

    pub(crate) fn value(file: FileId, name: &str) -> Vec<u8> {
        with(VALUE, &[file.0], name)
    }

    pub(crate) fn values() -> Vec<u8> {
        vec![VALUE]
    }

    pub(crate) fn values_of(file: FileId) -> Vec<u8> {
        with(VALUE, &[file.0], "")
    }

    pub(crate) fn member(server: ServerId) -> Vec<u8> {
        with(MEMBER, &[server.0], "")
    }

    pub(crate) fn identity(server: ServerId) -> Vec<u8> {
        with(IDENTITY, &[server.0], "")
    }

    pub(crate) fn identities() -> Vec<u8> {
        vec![IDENTITY]
    }

    pub(crate) fn members() -> Vec<u8> {
        vec![MEMBER]
    }

    pub(crate) fn removal(server: ServerId, file: FileId, generation: u64) -> Vec<u8> {
        with(REMOVAL, &[server.0, file.0, generation], "")
    }

    pub(crate) fn removals() -> Vec<u8> {
        vec![REMOVAL]
    }

    pub(crate) fn removals_at(server: ServerId) -> Vec<u8> {
        with(REMOVAL, &[server.0], "")
    }

    pub(crate) fn transient(file: FileId) -> Vec<u8> {
        with(TRANSIENT, &[file.0], "")
    }

    pub(crate) fn transients() -> Vec<u8> {
        vec![TRANSIENT]
    }

    pub(crate) fn counter(counter: Counter) -> Vec<u8> {
        vec![COUNTER, counter as u8]
    }

    pub(crate) fn layout(file: FileId) -> Vec<u8> {
        with(LAYOUT, &[file.0], "")
    }

    pub(crate) fn layouts() -> Vec<u8> {
        vec![LAYOUT]
    }

    pub(crate) fn distribution(file: FileId) -> Vec<u8> {
        with(DISTRIBUTION, &[file.0], "")
    }

    pub(crate) fn distributions() -> Vec<u8> {
        vec![DISTRIBUTION]
    }

    /// Of a client's host, by the server's.
    pub(crate) fn calibration(from: &str, to: &str) -> Vec<u8> {
        with(CALIBRATION, &[from.len() as u64], &format!("{from}{to}"))
    }

    pub(crate) fn calibrations() -> Vec<u8> {
        vec![CALIBRATION]
    }

    pub(crate) fn calibrations_from(from: &str) -> Vec<u8> {
        with(CALIBRATION, &[from.len() as u64], from)
    }

    pub(crate) fn profile(file: FileId) -> Vec<u8> {
        with(PROFILE, &[file.0], "")
    }

    pub(crate) fn profiles() -> Vec<u8> {
        vec![PROFILE]
    }

    pub(crate) fn hints(file: FileId) -> Vec<u8> {
        with(HINTS, &[file.0], "")
    }

    pub(crate) fn all_hints() -> Vec<u8> {
        vec![HINTS]
    }

    pub(crate) fn failed(server: ServerId) -> Vec<u8> {
        with(FAILED, &[server.0], "")
    }

    pub(crate) fn failed_servers() -> Vec<u8> {
        vec![FAILED]
    }

    /// What was answered to a request of a client, in one of its slots.
    pub(crate) fn answer(client: ClientId, slot: u64) -> Vec<u8> {
        with(ANSWER, &[client.0, slot], "")
    }

    pub(crate) fn answers_of(client: ClientId) -> Vec<u8> {
        with(ANSWER, &[client.0], "")
    }

    pub(crate) fn answers() -> Vec<u8> {
        vec![ANSWER]
    }

    /// A directory of a tree that was removed, of which something is left.
    pub(crate) fn tree(root: FileId, directory: FileId) -> Vec<u8> {
        with(TREE, &[root.0, directory.0], "")
    }

    pub(crate) fn trees() -> Vec<u8> {
        vec![TREE]
    }

    pub(crate) fn directories_of_tree(root: FileId) -> Vec<u8> {
        with(TREE, &[root.0], "")
    }

    pub(crate) fn moving(file: FileId) -> Vec<u8> {
        with(MOVING, &[file.0], "")
    }

    pub(crate) fn movings() -> Vec<u8> {
        vec![MOVING]
    }

    /// The `index`-th number of a key.
    pub(crate) fn number(key: &[u8], index: usize) -> Option<u64> {
        let at = 1 + 8 * index;
        let bytes = key.get(at..at + 8)?;
        Some(u64::from_be_bytes(bytes.try_into().ok()?))
    }

    /// What follows `count` numbers.
    pub(crate) fn name(key: &[u8], count: usize) -> Option<&str> {
        std::str::from_utf8(key.get(1 + 8 * count..)?).ok()
    }
}

/// Numbers that the catalogue counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Counter {
    /// The next file number.
    NextFile = 0,
    /// How often the catalogue was opened.
    Starts = 1,
    /// Where the next placement starts.
    Rotation = 2,
    /// The next incarnation of any server.
    NextIncarnation = 3,
    /// The next server number.
    NextServer = 4,
    /// Files with a name, or still open without one.
    Files = 5,
    /// Directories, the root included.
    Directories = 6,
    /// When the backup was made that the catalogue was restored from, in seconds since 1970.
    RestoredFrom = 7,
}

/// Reads a counter; one that was never written is 0.
pub(crate) fn counter(rows: &dyn Rows, counter: Counter) -> Result<u64, MetaError> {
    let key = key::counter(counter);
    match rows.get(&key)? {
        Some(bytes) => decode(&key, &bytes, |r| r.number()),
        None => Ok(0),
    }
}

/// Sets a counter.
pub(crate) fn set_counter(rows: &mut RowsTransaction<'_>, counter: Counter, value: u64) {
    let mut out = Vec::new();
    put_number(&mut out, value);
    rows.put(key::counter(counter), out);
}

/// The value of a counter, which is one higher afterwards.
pub(crate) fn count_up(rows: &mut RowsTransaction<'_>, which: Counter) -> Result<u64, MetaError> {
    let value = counter(rows, which)?;
    set_counter(rows, which, value + 1);
    Ok(value)
}

/// One less.
pub(crate) fn count_down(rows: &mut RowsTransaction<'_>, which: Counter) -> Result<(), MetaError> {
    let value = counter(rows, which)?;
    set_counter(rows, which, value.saturating_sub(1));
    Ok(())
}

/// Reads a whole row.
pub(crate) fn decode<T>(
    key: &[u8],
    bytes: &[u8],
    read: impl FnOnce(&mut Reader<'_>) -> Result<T, DecodeError>,
) -> Result<T, MetaError> {
    let mut r = Reader::new(bytes);
    read(&mut r)
        .and_then(|value| r.finish().map(|()| value))
        .map_err(|why| MetaError::Corrupt {
            row: row_name(key),
            why,
        })
}

/// A row in words, for messages.
pub(crate) fn row_name(key: &[u8]) -> String {
    let kind = match key.first() {
        Some(&FORMAT) => "format",
        Some(&ANSWER) => "answer",
        Some(&IDENTITY) => "identity",
        Some(&NODE) => "node",
        Some(&ENTRY) => "entry",
        Some(&VIEW) => "view",
        Some(&MEMBER) => "member",
        Some(&REMOVAL) => "removal",
        Some(&TRANSIENT) => "transient",
        Some(&COUNTER) => "counter",
        Some(&LAYOUT) => "layout",
        Some(&DISTRIBUTION) => "distribution",
        Some(&MOVING) => "move",
        Some(&PROFILE) => "profile",
        Some(&HINTS) => "hints",
        Some(&FAILED) => "failed server",
        Some(&VALUE) => "value",
        Some(&TREE) => "tree",
        _ => "unknown",
    };
    let number = key::number(key, 0).map_or(String::new(), |n| format!(" {n}"));
    format!("row `{kind}{number}`")
}

pub(crate) fn put_text(out: &mut Vec<u8>, text: &str) {
    put_number(out, text.len() as u64);
    out.extend(text.as_bytes());
}

fn put_optional_text(out: &mut Vec<u8>, text: Option<&str>) {
    put_number(out, u64::from(text.is_some()));
    if let Some(text) = text {
        put_text(out, text);
    }
}

fn optional_text(r: &mut Reader<'_>) -> Result<Option<String>, DecodeError> {
    Ok(match flag(r)? {
        true => Some(r.text()?.to_owned()),
        false => None,
    })
}

fn flag(r: &mut Reader<'_>) -> Result<bool, DecodeError> {
    match r.number()? {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(DecodeError::BadTag(other)),
    }
}

fn small<T: TryFrom<u64>>(r: &mut Reader<'_>) -> Result<T, DecodeError> {
    T::try_from(r.number()?).map_err(|_| DecodeError::BadNumber)
}

/// Times before 1970 are odd numbers.
fn put_time(out: &mut Vec<u8>, time: Time) {
    put_number(out, ((time.0 << 1) ^ (time.0 >> 63)) as u64);
}

fn time(r: &mut Reader<'_>) -> Result<Time, DecodeError> {
    let n = r.number()?;
    Ok(Time((n >> 1) as i64 ^ -((n & 1) as i64)))
}

/// A file or directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    /// The directory it is in; the root is in itself.
    pub(crate) parent: FileId,
    /// Its name there.
    pub(crate) name: String,
    pub(crate) owner: u32,
    pub(crate) group: u32,
    /// The twelve permission bits.
    pub(crate) mode: u32,
    pub(crate) accessed: Time,
    pub(crate) modified: Time,
    pub(crate) changed: Time,
    pub(crate) body: Body,
}

/// What only one of the two has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    Directory,
    File(FileBody),
}

/// What only files have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FileBody {
    /// The array it holds, as the user wrote it.
    pub(crate) array: Option<String>,
    /// The layout as the user wrote it, or as the default rule did.
    pub(crate) layout: String,
    /// The layout that a re-layout under way moves to.
    pub(crate) next_layout: Option<String>,
    /// The generation the next layout gets; numbers of abandoned ones are not used again.
    pub(crate) next_generation: u64,
    /// Durable size.
    pub(crate) size: u64,
    /// Counts truncates.
    pub(crate) epoch: u64,
    /// A truncate of this epoch to this size is under way.
    pub(crate) truncate_to: Option<u64>,
    /// The size before it, which is told until all servers have cut.
    pub(crate) size_before: Option<u64>,
    /// Has lost its name, but a client has it open.
    pub(crate) unlinked: bool,
    /// Loses its name with the last close.
    pub(crate) delete_on_close: bool,
}

impl Node {
    pub(crate) fn is_directory(&self) -> bool {
        matches!(self.body, Body::Directory)
    }

    pub(crate) fn file(&self) -> Option<&FileBody> {
        match &self.body {
            Body::File(file) => Some(file),
            Body::Directory => None,
        }
    }

    fn put(&self, out: &mut Vec<u8>) {
        put_number(out, u64::from(!self.is_directory()));
        put_number(out, self.parent.0);
        put_text(out, &self.name);
        for n in [self.owner, self.group, self.mode] {
            put_number(out, u64::from(n));
        }
        for t in [self.accessed, self.modified, self.changed] {
            put_time(out, t);
        }
        if let Body::File(file) = &self.body {
            put_optional_text(out, file.array.as_deref());
            put_text(out, &file.layout);
            put_optional_text(out, file.next_layout.as_deref());
            for n in [file.next_generation, file.size, file.epoch] {
                put_number(out, n);
            }
            let sizes = [file.truncate_to, file.size_before].into_iter().flatten();
            put_number(out, sizes.clone().count() as u64);
            sizes.for_each(|size| put_number(out, size));
            put_number(out, u64::from(file.unlinked));
            put_number(out, u64::from(file.delete_on_close));
        }
    }

    fn read(r: &mut Reader<'_>) -> Result<Node, DecodeError> {
        let is_file = flag(r)?;
        Ok(Node {
            parent: FileId(r.number()?),
            name: r.text()?.to_owned(),
            owner: small(r)?,
            group: small(r)?,
            mode: small(r)?,
            accessed: time(r)?,
            modified: time(r)?,
            changed: time(r)?,
            body: if is_file {
                let mut file = FileBody {
                    array: optional_text(r)?,
                    layout: r.text()?.to_owned(),
                    next_layout: optional_text(r)?,
                    next_generation: r.number()?,
                    size: r.number()?,
                    epoch: r.number()?,
                    ..FileBody::default()
                };
                // Catalogues before version 4 had one of the two.
                let sizes = r.number()?;
                if sizes > 2 {
                    return Err(DecodeError::BadTag(sizes));
                }
                file.truncate_to = (sizes > 0).then(|| r.number()).transpose()?;
                file.size_before = (sizes > 1).then(|| r.number()).transpose()?;
                file.unlinked = flag(r)?;
                file.delete_on_close = flag(r)?;
                Body::File(file)
            } else {
                Body::Directory
            },
        })
    }
}

/// The node with this number, if there is one.
pub(crate) fn find_node(rows: &dyn Rows, file: FileId) -> Result<Option<Node>, MetaError> {
    let key = key::node(file);
    rows.get(&key)?
        .map(|bytes| decode(&key, &bytes, Node::read))
        .transpose()
}

/// The node with this number.
pub(crate) fn node(rows: &dyn Rows, file: FileId) -> Result<Node, MetaError> {
    find_node(rows, file)?.ok_or(MetaError::NoSuchFile(file))
}

/// The body of the file with this number, inside its node.
pub(crate) fn file_node(rows: &dyn Rows, file: FileId) -> Result<(Node, FileBody), MetaError> {
    let node = node(rows, file)?;
    match &node.body {
        Body::File(body) => {
            let body = body.clone();
            Ok((node, body))
        }
        Body::Directory => Err(MetaError::IsDirectory(node.name)),
    }
}

pub(crate) fn read_node(key: &[u8], bytes: &[u8]) -> Result<Node, MetaError> {
    decode(key, bytes, Node::read)
}

pub(crate) fn put_node(rows: &mut RowsTransaction<'_>, file: FileId, node: &Node) {
    let mut out = Vec::new();
    node.put(&mut out);
    rows.put(key::node(file), out);
}

/// What an entry of a directory leads to.
pub(crate) fn find_entry(
    rows: &dyn Rows,
    directory: FileId,
    name: &str,
) -> Result<Option<FileId>, MetaError> {
    let key = key::entry(directory, name);
    rows.get(&key)?
        .map(|bytes| read_entry(&key, &bytes))
        .transpose()
}

pub(crate) fn read_entry(key: &[u8], bytes: &[u8]) -> Result<FileId, MetaError> {
    decode(key, bytes, |r| Ok(FileId(r.number()?)))
}

pub(crate) fn put_entry(
    rows: &mut RowsTransaction<'_>,
    directory: FileId,
    name: &str,
    child: FileId,
) {
    let mut out = Vec::new();
    put_number(&mut out, child.0);
    rows.put(key::entry(directory, name), out);
}

pub(crate) fn put_member(rows: &mut RowsTransaction<'_>, member: &Member) {
    let mut out = Vec::new();
    put_text(&mut out, &member.address);
    for n in [
        member.incarnation,
        member.kept_since,
        match member.store {
            StoreKind::Memory => 0,
            StoreKind::Disk => 1,
        },
        member.capacity_bytes,
        member.used_bytes,
        member.distance,
        match member.state {
            MemberState::Alive => 0,
            MemberState::Dead => 1,
            MemberState::Left => 2,
        },
        u64::from(member.is_draining),
    ] {
        put_number(&mut out, n);
    }
    rows.put(key::member(member.server), out);
}

pub(crate) fn read_member(key: &[u8], bytes: &[u8]) -> Result<Member, MetaError> {
    let server = ServerId(key::number(key, 0).unwrap_or(0));
    decode(key, bytes, |r| {
        Ok(Member {
            server,
            address: r.text()?.to_owned(),
            // Belongs to a connection, and the catalogue knows of none.
            local: None,
            incarnation: r.number()?,
            kept_since: r.number()?,
            store: match r.number()? {
                0 => StoreKind::Memory,
                1 => StoreKind::Disk,
                other => return Err(DecodeError::BadTag(other)),
            },
            capacity_bytes: r.number()?,
            used_bytes: r.number()?,
            distance: r.number()?,
            state: match r.number()? {
                0 => MemberState::Alive,
                1 => MemberState::Dead,
                2 => MemberState::Left,
                other => return Err(DecodeError::BadTag(other)),
            },
            // Version 1 ends here.
            is_draining: r.left() > 0 && flag(r)?,
        })
    })
}

/// The layout state of a file.
pub(crate) fn layout_state(rows: &dyn Rows, file: FileId) -> Result<LayoutState, MetaError> {
    let key = key::layout(file);
    let bytes = rows.get(&key)?.ok_or(MetaError::NoSuchFile(file))?;
    decode(&key, &bytes, LayoutState::read)
}

pub(crate) fn put_layout_state(rows: &mut RowsTransaction<'_>, file: FileId, state: &LayoutState) {
    let mut out = Vec::new();
    state.put(&mut out);
    rows.put(key::layout(file), out);
}

/// Bytes that are stored under this generation of a file are to be removed at a server: those of some
/// subfiles, or of all if the list is empty. Adds to what waits already.
pub(crate) fn put_removal(
    rows: &mut RowsTransaction<'_>,
    file: FileId,
    generation: u64,
    place: Place,
    subfiles: &[u32],
) -> Result<(), MetaError> {
    let key = key::removal(ServerId(place.server), file, generation);
    let mut list = subfiles.to_vec();
    if let Some(bytes) = rows.get(&key)? {
        let (_, before) = read_removal(&key, &bytes)?;
        match before.is_empty() || list.is_empty() {
            true => list.clear(),
            false => list.extend(before),
        }
    }
    list.sort_unstable();
    list.dedup();
    let mut out = Vec::new();
    put_number(&mut out, place.incarnation);
    put_number(&mut out, list.len() as u64);
    for subfile in list {
        put_number(&mut out, u64::from(subfile));
    }
    rows.put(key, out);
    Ok(())
}

/// The start of the server that has the bytes, and which subfiles; empty is all.
pub(crate) fn read_removal(key: &[u8], bytes: &[u8]) -> Result<(u64, Vec<u32>), MetaError> {
    decode(key, bytes, |r| {
        let incarnation = r.number()?;
        // Version 1 ends here.
        let count = if r.left() > 0 { r.length(1)? } else { 0 };
        let subfiles = (0..count).map(|_| small(r)).collect::<Result<_, _>>()?;
        Ok((incarnation, subfiles))
    })
}

/// How a move of a file goes on after a restart; where it is stands in the layout state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MoveRecord {
    /// What was asked for.
    pub options: MoveOptions,
    /// A user wants it to rest, or it cannot go on by itself.
    pub is_paused: bool,
    /// Everything is to move back.
    pub wants_cancel: bool,
    /// Why.
    pub why: String,
    /// Bytes to move when it began, or when it was cancelled.
    pub total_bytes: u64,
}

pub(crate) fn put_move(rows: &mut RowsTransaction<'_>, file: FileId, record: &MoveRecord) {
    let mut out = Vec::new();
    let options = &record.options;
    for n in [
        options.limit_bytes,
        options.window_bytes,
        options.lanes,
        u64::from(options.in_place),
        u64::from(record.is_paused),
        u64::from(record.wants_cancel),
        record.total_bytes,
    ] {
        put_number(&mut out, n);
    }
    put_text(&mut out, &record.why);
    rows.put(key::moving(file), out);
}

pub(crate) fn read_move(key: &[u8], bytes: &[u8]) -> Result<MoveRecord, MetaError> {
    decode(key, bytes, |r| {
        Ok(MoveRecord {
            options: MoveOptions {
                limit_bytes: r.number()?,
                window_bytes: r.number()?,
                lanes: r.number()?,
                in_place: flag(r)?,
            },
            is_paused: flag(r)?,
            wants_cancel: flag(r)?,
            total_bytes: r.number()?,
            why: r.text()?.to_owned(),
        })
    })
}

/// Who said how a file is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// The rule for files without a layout.
    Rule = 0,
    /// A user.
    Given = 1,
    /// The views of those who opened it together.
    Views = 2,
}

/// Which distribution a file has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Distribution {
    pub(crate) by: By,
    /// In words, for people.
    pub(crate) why: String,
}

impl Distribution {
    pub(crate) fn given(why: &str) -> Self {
        let why = why.to_owned();
        Distribution { by: By::Given, why }
    }
}

pub(crate) fn read_distribution(key: &[u8], bytes: &[u8]) -> Result<Distribution, MetaError> {
    decode(key, bytes, |r| {
        Ok(Distribution {
            by: match r.number()? {
                0 => By::Rule,
                1 => By::Given,
                2 => By::Views,
                other => return Err(DecodeError::BadTag(other)),
            },
            why: r.text()?.to_owned(),
        })
    })
}

/// The distribution of a file. Files of catalogues from before it was kept count as given.
pub(crate) fn distribution(rows: &dyn Rows, file: FileId) -> Result<Distribution, MetaError> {
    let key = key::distribution(file);
    match rows.get(&key)? {
        Some(bytes) => read_distribution(&key, &bytes),
        None => Ok(Distribution::given("not recorded")),
    }
}

pub(crate) fn put_distribution(rows: &mut RowsTransaction<'_>, file: FileId, value: &Distribution) {
    let mut out = Vec::new();
    put_number(&mut out, value.by as u64);
    put_text(&mut out, &value.why);
    rows.put(key::distribution(file), out);
}
