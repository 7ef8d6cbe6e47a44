//! What members of a team tell each other through the metadata manager.
//!
//! A team is known by the user and a name. Members exchange in rounds: each gives its contribution,
//! and all get those of all, by rank, once the last has come. A contribution may be given again.

use super::field::Bytes;

record! {
    /// Gives a contribution to a round and asks for those of all.
    pub struct Gather {
        /// Name of the team.
        pub team: String,
        /// Which member of the client's this is; several threads of one client may be members.
        pub member: u64,
        /// Its rank.
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
    pub struct Gathered {
        /// Contributions by rank; nothing while some are missing.
        pub contributions: Option<Vec<Bytes>>,
    }

    /// A member leaves its team. The others learn it in their next round.
    pub struct LeaveTeam {
        /// Name of the team.
        pub team: String,
        /// Which member of the client's.
        pub member: u64,
    }
}
