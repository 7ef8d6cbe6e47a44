//! What members of a team tell each other through the metadata manager.
//!
//! A team is known by the user and a name. Members meet in rounds: each gives its contribution,
//! and all get those of all, by rank, once the last has come. A contribution may be given again. From then on they talk to
//! each other, and ask here only whether all are alive.

use super::field::Bytes;

/// The rank of a member that gets one from the manager.
pub const ANY_RANK: u64 = u64::MAX;

record! {
    /// Gives a contribution to a round and asks for those of all.
    pub struct Gather {
        /// Name of the team.
        pub team: String,
        /// Which member of the client's this is; several threads of one client may be members.
        pub member: u64,
        /// Its rank, or [`ANY_RANK`]: then the manager gives it a free one.
        pub rank: u64,
        /// Ranks in all.
        pub size: u64,
        /// Which round, from 0.
        pub round: u64,
        /// The contribution.
        pub contribution: Bytes,
        /// How long the manager may wait for the others before it says that they are not there yet.
        pub wait_ms: u64,
    }

    /// What a round has gathered.
    pub struct GatherAnswer {
        /// Contributions by rank; nothing while some are missing.
        pub contributions: Option<Vec<Bytes>>,
    }

    /// Waits while all members of a team live; refused when one has died or failed.
    pub struct WatchTeam {
        /// Name of the team.
        pub team: String,
        /// Which member of the client's.
        pub member: u64,
        /// Its rank.
        pub rank: u64,
        /// Ranks in all.
        pub size: u64,
        /// Why the member goes on no more, for all to hear; empty if it does.
        pub failed: String,
        /// The rank that it is about, if that matters only where the rank has not left.
        pub gone: Option<u64>,
        /// How long the manager may wait before it says that all is well.
        pub wait_ms: u64,
    }

    /// A member leaves its team. Rounds that wait for it are refused.
    pub struct LeaveTeam {
        /// Name of the team.
        pub team: String,
        /// Which member of the client's.
        pub member: u64,
    }
}
