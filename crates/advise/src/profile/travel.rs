//! A profile as bytes. The page `docs/formats/profile.md` has every one of them.
//!
//! Numbers in groups of seven bits, lowest first. Decoding takes any bytes and refuses what no profile would be; what it
//! allocates is paid for by the bytes. A newer version is refused by name.

use falls::{Falls, FallsSet, Limits, Segment};
use layout::{FileOffset, View};

use super::record::{
    Entry, Key, MOST_BYTES, MOST_ENTRIES, MOST_NAME_BYTES, MOST_SERVERS, MOST_TEXT_BYTES,
    MOST_VIEW_BYTES, Profile, ServerUse, Summary,
};
use super::tally::{SIZES, Tally, TouchedBlocks};
use crate::predict::travel::{put, take};

const MAGIC: &[u8] = b"pario file profile\n";
/// Version that is written; this one and all before are read.
pub const VERSION: u64 = 1;

/// What a description may cost.
const LIMITS: Limits = Limits {
    depth: 16,
    nodes: MOST_VIEW_BYTES as u64,
};
/// Blocks of a coarse view.
const COARSE_BLOCKS: u64 = 128;

/// Why bytes are no profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// They are something else, or damaged.
    #[error("these bytes are no profile of a file; `pario profile PATH --export FILE` writes one")]
    Malformed,
    /// They were written by a newer program.
    #[error("the profile has version {0}, and this program reads up to {VERSION}; use a newer one")]
    Newer(
        /// Its version.
        u64,
    ),
}

/// A number that stands for bytes: FNV-1a with a last mix.
pub(super) fn fingerprint(bytes: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in bytes {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash ^ (hash >> 31)
}

pub(super) fn put_text(out: &mut Vec<u8>, text: &str) {
    put(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

pub(super) fn take_text(bytes: &mut &[u8], most: usize) -> Option<String> {
    let len = usize::try_from(take(bytes)?).ok().filter(|n| *n <= most)?;
    let (text, rest) = bytes.split_at_checked(len)?;
    *bytes = rest;
    Some(std::str::from_utf8(text).ok()?.to_owned())
}

fn put_set(out: &mut Vec<u8>, set: &FallsSet) {
    put(out, set.len() as u64);
    let mut end = 0;
    for node in set.nodes() {
        put(out, node.start - end);
        put(out, node.len);
        put(out, (node.count - 1) * 2 + u64::from(node.inner.is_some()));
        if node.count > 1 {
            put(out, node.stride - node.len);
        }
        end = node.end();
        if let Some(inner) = node.inner {
            put_set(out, inner);
        }
    }
}

fn take_set(bytes: &mut &[u8], depth: u32) -> Option<FallsSet> {
    let count = usize::try_from(take(bytes)?).ok()?;
    if depth == 0 || count > bytes.len() {
        return None;
    }
    let mut members = Vec::with_capacity(count);
    let mut end = 0_u64;
    for _ in 0..count {
        let start = end.checked_add(take(bytes)?)?;
        let len = take(bytes)?;
        let head = take(bytes)?;
        let blocks = (head / 2).checked_add(1)?;
        let stride = match blocks {
            1 => len,
            _ => len.checked_add(take(bytes)?)?,
        };
        let member = match head % 2 {
            1 => Falls::nested(start, len, stride, blocks, take_set(bytes, depth - 1)?),
            _ => Falls::family(start, len, stride, blocks),
        };
        let member = member.ok()?;
        end = member.end();
        members.push(member);
    }
    FallsSet::with_limits(members, LIMITS).ok()
}

/// The description of a view.
pub(super) fn view_bytes(view: &View) -> Vec<u8> {
    let bytes = view.bytes();
    let mut out = Vec::new();
    put(&mut out, bytes.displacement());
    put(&mut out, bytes.period());
    put_set(&mut out, bytes.set());
    out
}

fn take_view(bytes: &mut &[u8]) -> Option<View> {
    let (displacement, period) = (take(bytes)?, take(bytes)?);
    let set = take_set(bytes, LIMITS.depth)?;
    View::new(FileOffset(displacement), period, set).ok()
}

/// A view whose description is short enough: itself, simplified, or the blocks of the file that it lies in.
pub(super) fn bounded_view(view: &View, file_bytes: u64) -> (View, bool) {
    let fits = |view: &View| {
        let set = view.bytes().set();
        let is_small = set.node_count() <= LIMITS.nodes && set.depth() <= LIMITS.depth;
        is_small && view_bytes(view).len() <= MOST_VIEW_BYTES
    };
    if fits(view) {
        return (view.clone(), false);
    }
    let bytes = view.bytes();
    let simple = View::new(
        FileOffset(bytes.displacement()),
        bytes.period(),
        bytes.set().simplify(),
    );
    if let Ok(simple) = simple
        && fits(&simple)
    {
        return (simple, false);
    }
    let end = file_bytes
        .max(bytes.displacement().saturating_add(1))
        .min(falls::MAX_OFFSET);
    let block = end.div_ceil(COARSE_BLOCKS).next_power_of_two();
    let mut segments: Vec<Segment> = Vec::new();
    let mut at = 0;
    // One step for a block, not for a segment.
    while let Some(next) = bytes.next_byte(at).filter(|next| *next < end) {
        let start = next / block * block;
        at = start + block;
        let joins = segments.last().is_some_and(|last| last.end() == start);
        let from = match joins {
            true => segments.pop().map_or(start, |last| last.start()),
            false => start,
        };
        segments.extend(Segment::new(from, at - from).ok());
    }
    let set = FallsSet::from_segments(&segments).unwrap_or_else(|_| FallsSet::empty());
    let period = end.next_multiple_of(block);
    match View::new(FileOffset(0), period, set) {
        Ok(view) => (view, true),
        Err(_) => (View::whole_file(), true),
    }
}

fn put_tally(out: &mut Vec<u8>, tally: &Tally) {
    let used = tally.sizes.iter().filter(|n| **n > 0).count();
    put(out, used as u64);
    for (class, n) in tally.sizes.iter().enumerate().filter(|(_, n)| **n > 0) {
        put(out, class as u64);
        put(out, *n);
    }
    if used == 0 {
        return;
    }
    put(out, tally.bytes);
    tally.orders.iter().for_each(|n| put(out, *n));
    put(out, tally.hull.0);
    put(out, tally.hull.1 - tally.hull.0);
    put(out, u64::from(tally.touched.shift));
    for bits in tally.touched.bits {
        out.extend_from_slice(&bits.to_le_bytes());
    }
}

fn take_tally(bytes: &mut &[u8]) -> Option<Tally> {
    let mut tally = Tally::default();
    let used = take(bytes)?;
    let mut next = 0;
    for _ in 0..used {
        let class = take(bytes)?;
        if class < next || class >= SIZES as u64 {
            return None;
        }
        next = class + 1;
        tally.sizes[class as usize] = take(bytes).filter(|n| *n > 0)?;
    }
    if used == 0 {
        return Some(tally);
    }
    tally.bytes = take(bytes)?;
    for n in &mut tally.orders {
        *n = take(bytes)?;
    }
    let low = take(bytes)?;
    tally.hull = (low, low.checked_add(take(bytes)?)?);
    let shift = u32::try_from(take(bytes)?).ok();
    tally.touched.shift = shift.filter(|s| (TouchedBlocks::default().shift..=56).contains(s))?;
    for bits in &mut tally.touched.bits {
        let (word, rest) = bytes.split_first_chunk::<8>()?;
        *bits = u64::from_le_bytes(*word);
        *bytes = rest;
    }
    Some(tally)
}

fn put_servers(out: &mut Vec<u8>, servers: &[ServerUse]) {
    put(out, servers.len() as u64);
    for u in servers {
        for n in [
            u.server,
            u.read,
            u.written,
            u.own_read,
            u.own_written,
            u.near,
        ] {
            put(out, n);
        }
    }
}

fn take_servers(bytes: &mut &[u8]) -> Option<Vec<ServerUse>> {
    let count = take(bytes)?;
    if count > MOST_SERVERS as u64 {
        return None;
    }
    let mut servers: Vec<ServerUse> = Vec::new();
    for _ in 0..count {
        let used = ServerUse {
            server: take(bytes)?,
            read: take(bytes)?,
            written: take(bytes)?,
            own_read: take(bytes)?,
            own_written: take(bytes)?,
            near: take(bytes)?,
        };
        if servers
            .last()
            .is_some_and(|last| last.server >= used.server)
        {
            return None;
        }
        servers.push(used);
    }
    Some(servers)
}

impl Profile {
    /// As bytes; at most [`MOST_BYTES`]. Entries for which there is no room are left out.
    pub fn save(&self) -> Vec<u8> {
        let mut count = self.len();
        loop {
            let out = self.save_first(count);
            if out.len() <= MOST_BYTES || count == 0 {
                return out;
            }
            count = count * 3 / 4;
        }
    }

    fn save_first(&self, count: usize) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        put(&mut out, VERSION);
        let total = self.total();
        put(&mut out, total.reports);
        put_tally(&mut out, &total.read);
        put_tally(&mut out, &total.written);
        put_servers(&mut out, &total.servers);
        let entries = self.first_entries(count);
        put(&mut out, entries.len() as u64);
        for (key, entry) in entries {
            put_text(&mut out, &key.application);
            put(&mut out, key.rank);
            put(&mut out, key.view);
            put(&mut out, u64::from(entry.is_coarse));
            put_text(&mut out, &entry.text);
            put(&mut out, entry.processes);
            put(&mut out, entry.reports);
            out.extend(view_bytes(&entry.view));
            put_tally(&mut out, &entry.read);
            put_tally(&mut out, &entry.written);
            put_servers(&mut out, &entry.servers);
        }
        out
    }

    /// From bytes.
    pub fn load(bytes: &[u8]) -> Result<Profile, ProfileError> {
        let mut r = bytes.strip_prefix(MAGIC).ok_or(ProfileError::Malformed)?;
        let version = take(&mut r).ok_or(ProfileError::Malformed)?;
        if version > VERSION {
            return Err(ProfileError::Newer(version));
        }
        take_profile(r)
            .filter(|_| version == VERSION && bytes.len() <= MOST_BYTES)
            .ok_or(ProfileError::Malformed)
    }
}

fn take_profile(mut r: &[u8]) -> Option<Profile> {
    let r = &mut r;
    let total = Summary {
        reports: take(r)?,
        read: take_tally(r)?,
        written: take_tally(r)?,
        servers: take_servers(r)?,
    };
    let count = take(r)?;
    if count > MOST_ENTRIES as u64 {
        return None;
    }
    let mut profile = Profile::default();
    let mut last: Option<Key> = None;
    for _ in 0..count {
        let key = Key {
            application: take_text(r, MOST_NAME_BYTES)?,
            rank: take(r)?,
            view: take(r)?,
        };
        if last.as_ref().is_some_and(|last| *last >= key) {
            return None;
        }
        last = Some(key.clone());
        let is_coarse = match take(r)? {
            0 => false,
            1 => true,
            _ => return None,
        };
        let text = take_text(r, MOST_TEXT_BYTES)?;
        let (processes, reports) = (take(r)?, take(r)?);
        let before = r.len();
        let view = take_view(r)?;
        if before - r.len() > MOST_VIEW_BYTES {
            return None;
        }
        let entry = Entry {
            view,
            is_coarse,
            text,
            processes,
            reports,
            read: take_tally(r)?,
            written: take_tally(r)?,
            servers: take_servers(r)?,
        };
        profile.insert(key, entry);
    }
    profile.set_total(total);
    r.is_empty().then_some(profile)
}
