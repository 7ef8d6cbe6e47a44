//! Hints of files and directories, and servers that are out of placement because a disk of theirs failed.
//!
//! What a hint means is not known here: names and values travel as texts, with who gave them. The numbers of
//! [`HintSource`] are the order of precedence, higher goes first.

use crate::{HandleId, ServerId, Time};

record! {
    /// A hint that a user gave, with where it stands.
    pub struct GivenHint {
        /// Its name.
        pub name: String,
        /// Its value.
        pub value: String,
        /// Who gave it.
        pub source: HintSource,
        /// A path, or a file and a line; empty for programs.
        pub place: String,
        /// How near a directory is, 0 for the nearest; 0 for all others.
        pub distance: u32,
    }

    /// A name with its value.
    pub struct HintText {
        /// The name.
        pub name: String,
        /// The value.
        pub value: String,
    }

    /// Sets and removes hints that are kept with a file or directory; only its owner and root may.
    pub struct SetHints {
        /// With what.
        pub path: String,
        /// To be set; those of the same name are replaced.
        pub set: Vec<HintText>,
        /// Names to be removed; those that are not there are no mistake.
        pub unset: Vec<String>,
    }

    /// Asks for the hints of a file or directory.
    pub struct GetHints {
        /// Of what.
        pub path: String,
    }

    /// The hints of a file or directory.
    pub struct HintsAre {
        /// Those kept with it and with the directories above it, nearest first.
        pub given: Vec<GivenHint>,
        /// What became of every hint when the file was created.
        pub uses: Vec<HintUse>,
        /// Which distribution it has, and why; empty for directories.
        pub distribution: String,
    }

    /// What became of a hint.
    pub struct HintUse {
        /// The hint.
        pub hint: GivenHint,
        /// Whether it was used.
        pub outcome: HintOutcome,
        /// For what, or why not.
        pub why: String,
    }

    /// A disk of a server has failed: it takes no new subfiles from now on. Said by the server itself, or by
    /// a program that has a file open which is partly there.
    pub struct DiskFailed {
        /// The handle of the program; nothing from a server.
        pub handle: Option<HandleId>,
        /// The server.
        pub server: ServerId,
        /// What happened.
        pub why: String,
    }

    /// Takes memory for staging buffers now, so that nobody pays for it later; an I/O server is asked. The limit of
    /// its buffers holds. Answered with the bytes that are there.
    pub struct MakeBuffers {
        /// Bytes in all.
        pub bytes: u64,
    }

    /// A server takes new subfiles again; only root and the user who runs the service may say so. The metadata
    /// manager is asked, and the server itself for its disks.
    pub struct ClearFailed {
        /// The server.
        pub server: ServerId,
    }

    /// Asks for the servers that are out of placement.
    pub struct ListFailed {}

    /// A server that is out of placement.
    pub struct FailedServer {
        /// The server.
        pub server: ServerId,
        /// What happened.
        pub why: String,
        /// Whether a program said so; else the server itself did.
        pub is_hint: bool,
        /// When it was said first.
        pub since: Time,
    }
}

choice! {
    /// Who gave a hint.
    pub enum HintSource {
        /// Observed accesses.
        Profile = 1,
        /// The administrator, on a directory.
        Directory = 2,
        /// The administrator, on the file.
        File = 3,
        /// The compiler or a job script.
        Compiler = 4,
        /// The program, when it connected.
        Connect = 5,
        /// The program.
        Program = 6,
        /// The program, about what has just come about.
        Dynamic = 7,
    }

    /// What became of a hint.
    pub enum HintOutcome {
        /// It was used.
        Used = 0,
        /// It counts and there was nothing to use it for.
        Idle = 1,
        /// A stronger one counted.
        Overridden = 2,
        /// It made no sense.
        Ignored = 3,
        /// Nobody knows the name; it is kept.
        Unknown = 4,
    }
}
