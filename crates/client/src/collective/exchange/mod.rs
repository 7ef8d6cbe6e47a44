//! The sockets among members of a team: messages and collective operations that go from member to member.
//!
//! ```text
//!  meet once through the metadata manager       then straight from member to member
//!  name, random bytes, where each listens       a connection per direction, made with its first message
//! ```
//!
//! | file | what it owns |
//! |---|---|
//! | `meeting` | meeting by name, the addresses and the secret of a team, the watch over its members |
//! | `mesh` | the connections of a member, what has come, every wait |
//! | `peer` | one connection, read and written without blocking |
//! | `frame` | the bytes on a connection |
//! | `collect` | all-gather, exchange, broadcast, gather |
//! | `reduce` | sums and the like over numbers of all members |
//! | `joint` | two teams that meet by name |
//!
//! Left to others: what teams are for (`team`), members that share memory (`host_team`).

mod collect;
mod frame;
pub(crate) mod joint;
mod meeting;
pub(crate) mod mesh;
mod peer;
pub(crate) mod reduce;
