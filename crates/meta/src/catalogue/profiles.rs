//! The profile of a file: what was observed of its use, and what came of it.
//!
//! Merged by clients that hand something over, replaced and cleared by those that may write the file, read by those that may read
//! it; it goes with the file. What the bytes mean is known to `advise`.

use advise::hints::UseCounts;
use advise::profile::Profile;
use wire::message::Field;
use wire::message::profile::ProfileChange;
use wire::{DecodeError, Reader, put_number};

use super::access::{Caller, Permission, demand};
use super::path::resolve;
use super::record::{decode, file_node, key, put_text};
use super::rows::Rows;
use super::{Batch, Credentials, Snapshot};
use crate::error::MetaError;
use crate::{FileId, ServerId};

/// What was decided about the layout of a file from its profile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AutoState {
    /// How often the file was moved by itself.
    pub moves: u64,
    /// Bytes that were counted when it was last judged.
    pub judged_bytes: u64,
    /// What better layouts would have saved since the last move, in microseconds.
    pub regret_us: u64,
    /// The layout that was suggested last.
    pub suggestion: String,
    /// Why, in words.
    pub why: String,
}

/// A profile with what was decided from it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptProfile {
    /// What was observed.
    pub profile: Profile,
    /// What came of it.
    pub auto: AutoState,
}

impl KeptProfile {
    fn put(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let profile = self.profile.save();
        put_number(&mut out, profile.len() as u64);
        out.extend(profile);
        for n in [self.auto.moves, self.auto.judged_bytes, self.auto.regret_us] {
            put_number(&mut out, n);
        }
        put_text(&mut out, &self.auto.suggestion);
        put_text(&mut out, &self.auto.why);
        out
    }

    fn read(r: &mut Reader<'_>) -> Result<KeptProfile, DecodeError> {
        let bytes = wire::message::Bytes::read(r)?.0;
        // A profile that this program cannot read is none: it is a statistic, and must not keep anybody from the file.
        let profile = Profile::load(&bytes).unwrap_or_default();
        let (moves, judged_bytes, regret_us) = (r.number()?, r.number()?, r.number()?);
        Ok(KeptProfile {
            profile,
            auto: AutoState {
                moves,
                judged_bytes,
                regret_us,
                suggestion: r.text()?.to_owned(),
                why: r.text()?.to_owned(),
            },
        })
    }
}

pub(super) fn read_kept(key: &[u8], bytes: &[u8]) -> Result<KeptProfile, MetaError> {
    decode(key, bytes, KeptProfile::read)
}

fn kept(rows: &dyn Rows, file: FileId) -> Result<KeptProfile, MetaError> {
    let key = key::profile(file);
    match rows.get(&key)? {
        Some(bytes) => read_kept(&key, &bytes),
        None => Ok(KeptProfile::default()),
    }
}

/// What hints are made from: the order of reads, or of writes if nothing was read.
fn observed(profile: &Profile) -> UseCounts {
    let total = profile.total();
    let orders = match total.read.is_empty() {
        true => total.written.orders,
        false => total.read.orders,
    };
    let [sequential, reverse, strided, random] = orders;
    UseCounts {
        sequential,
        reverse,
        strided,
        random,
        read_bytes: total.read.bytes,
        written_bytes: total.written.bytes,
    }
}

impl Batch<'_> {
    /// Adds to the profile of a file. One that is gone has none.
    pub fn merge_profile(&mut self, file: FileId, profile: &Profile) -> Result<(), MetaError> {
        self.one(|b| {
            if profile.is_empty() || file_node(&b.rows, file).is_err() {
                return Ok(());
            }
            let mut kept = kept(&b.rows, file)?;
            kept.profile.merge(profile);
            b.rows.put(key::profile(file), kept.put());
            b.note_observed(file, &observed(&kept.profile))
        })
    }

    /// Changes the profile of a file; which file it was.
    pub fn set_profile(
        &mut self,
        caller: &Caller<'_>,
        path: &str,
        change: ProfileChange,
        profile: &Profile,
    ) -> Result<FileId, MetaError> {
        self.one(|b| {
            let (file, node) = resolve(&b.rows, caller.credentials, path)?;
            if node.is_directory() {
                return Err(MetaError::IsDirectory(path.to_owned()));
            }
            demand(&node, caller.credentials, Permission::Write, path)?;
            let mut kept = kept(&b.rows, file)?;
            match change {
                ProfileChange::Clear => {
                    b.rows.remove(key::profile(file));
                    b.note_observed(file, &UseCounts::default())?;
                    return Ok(file);
                }
                ProfileChange::Replace => kept.profile = profile.clone(),
                ProfileChange::Merge => kept.profile.merge(profile),
            }
            b.rows.put(key::profile(file), kept.put());
            b.note_observed(file, &observed(&kept.profile))?;
            Ok(file)
        })
    }

    /// Keeps what was decided about a file.
    pub fn set_auto_state(&mut self, file: FileId, auto: &AutoState) -> Result<(), MetaError> {
        self.one(|b| {
            if file_node(&b.rows, file).is_err() {
                return Ok(());
            }
            let mut kept = kept(&b.rows, file)?;
            kept.auto = auto.clone();
            b.rows.put(key::profile(file), kept.put());
            Ok(())
        })
    }

    /// Loads of servers, as last reported; not durable.
    pub fn loads(&self) -> Vec<(ServerId, u64)> {
        self.usage.loads()
    }

    /// Keeps half of what was counted for a file, after it was moved by it.
    pub fn age_profile(&mut self, file: FileId) -> Result<(), MetaError> {
        self.one(|b| {
            let mut kept = kept(&b.rows, file)?;
            if !kept.profile.is_empty() {
                kept.profile.age();
                b.rows.put(key::profile(file), kept.put());
            }
            Ok(())
        })
    }
}

impl Snapshot {
    /// The profile of a file by its path.
    pub fn profile(
        &self,
        who: &Credentials,
        path: &str,
    ) -> Result<(FileId, KeptProfile), MetaError> {
        let (file, node) = resolve(&self.rows, who, path)?;
        if node.is_directory() {
            return Err(MetaError::IsDirectory(path.to_owned()));
        }
        demand(&node, who, Permission::Read, path)?;
        Ok((file, kept(&self.rows, file)?))
    }

    /// The profile of a file by its number.
    pub fn profile_of(&self, file: FileId) -> Result<KeptProfile, MetaError> {
        kept(&self.rows, file)
    }
}
