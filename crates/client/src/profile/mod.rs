//! The profile of a file: asking for it, clearing it, giving it one.
//!
//! What handles record is handed over by themselves (`recording`); here is what users do with it.

pub(crate) mod advice;
pub(crate) mod calibration;
pub(crate) mod recording;

use advise::profile::Profile;
use wire::FileId;
use wire::message::Bytes;
use wire::message::profile::{GetProfile, ProfileChange, SetProfile};

use crate::client::{Client, absolute};
use crate::error::{Error, Result};

/// What is known about the use of a file, and what came of it.
#[derive(Clone, Debug)]
pub struct FileProfile {
    /// The file.
    pub file: FileId,
    /// What was observed; empty if nothing was.
    pub profile: Profile,
    /// What `auto_layout` says: off, suggest or apply.
    pub auto_layout: String,
    /// How often the file was moved by itself.
    pub moves: u64,
    /// The layout that was suggested last; empty without one.
    pub suggestion: String,
    /// Why.
    pub why: String,
}

impl Client {
    /// The profile of a file.
    pub fn profile(&self, path: &str) -> Result<FileProfile> {
        let path = absolute(path);
        let found = self
            .session()
            .manager(|| GetProfile { path: path.clone() })?;
        let profile = match found.profile.0.is_empty() {
            true => Profile::default(),
            false => Profile::load(&found.profile.0)
                .map_err(|e| Error::argument("profile", e.to_string()))?,
        };
        Ok(FileProfile {
            file: found.file,
            profile,
            auto_layout: found.auto_layout,
            moves: found.moves,
            suggestion: found.suggestion,
            why: found.why,
        })
    }

    /// Forgets what was observed of a file.
    pub fn clear_profile(&self, path: &str) -> Result<()> {
        self.change_profile(path, ProfileChange::Clear, Vec::new())
    }

    /// Gives a file a profile in place of what it has: that of another file of the same shape, or of an earlier run.
    pub fn replace_profile(&self, path: &str, profile: &Profile) -> Result<()> {
        self.change_profile(path, ProfileChange::Replace, profile.save())
    }

    /// Adds a profile to what a file has.
    pub fn merge_profile(&self, path: &str, profile: &Profile) -> Result<()> {
        self.change_profile(path, ProfileChange::Merge, profile.save())
    }

    fn change_profile(&self, path: &str, change: ProfileChange, profile: Vec<u8>) -> Result<()> {
        let path = absolute(path);
        self.session().manager(|| SetProfile {
            path: path.clone(),
            change,
            profile: Bytes(profile.clone()),
        })
    }
}
