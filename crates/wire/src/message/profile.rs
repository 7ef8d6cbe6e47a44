//! What was observed of the use of a file: handed over, asked for, replaced.
//!
//! A profile travels as the bytes of its own format (`docs/formats/profile.md`), which nobody but `advise` reads; so
//! it changes without the messages.

use super::field::Bytes;
use crate::{ClientId, FileId, HandleId};

choice! {
    /// What becomes of the profile that is there.
    pub enum ProfileChange {
        /// It goes.
        Clear = 0,
        /// The given one takes its place.
        Replace = 1,
        /// The given one is added.
        Merge = 2,
    }
}

record! {
    /// A client hands over what it has recorded on a handle. The metadata manager knows which server is nearest to it.
    pub struct PutProfile {
        /// The handle.
        pub handle: HandleId,
        /// The rank of the process in its application; without one it is numbered by its arrival.
        pub rank: Option<u64>,
        /// A profile with the entries of one process.
        pub profile: Bytes,
    }

    /// Asks for the profile of a file.
    pub struct GetProfile {
        /// Which file.
        pub path: String,
    }

    /// The profile of a file.
    pub struct ProfileIs {
        /// The file.
        pub file: FileId,
        /// Empty if nothing was recorded.
        pub profile: Bytes,
        /// What `auto_layout` says: off, suggest or apply.
        pub auto_layout: String,
        /// How often the file was moved by itself.
        pub moves: u64,
        /// The layout that was suggested last, and why; empty without one.
        pub suggestion: String,
        /// Why.
        pub why: String,
    }

    /// Changes the profile of a file.
    pub struct SetProfile {
        /// Which file.
        pub path: String,
        /// How.
        pub change: ProfileChange,
        /// The profile; empty to clear it.
        pub profile: Bytes,
    }

    /// An I/O server reports accesses by message that it has served. The metadata manager takes those of clients that
    /// do not record by themselves.
    pub struct ReportUse {
        /// What it saw.
        pub seen: Vec<SeenUse>,
    }

    /// What one client did with a file by message.
    pub struct SeenUse {
        /// The client.
        pub client: ClientId,
        /// The file.
        pub file: FileId,
        /// A profile with the entries of this client.
        pub profile: Bytes,
    }
}
