//! Samples of what members of a team tell each other.
//!
//! A round that has all contributions, one of them empty, and one that waits.

use wire::message::Bytes;
use wire::message::team::*;

use super::Samples;

pub(crate) fn add(list: &mut Samples) {
    let gather = |round| Gather {
        team: "job 17, Größe".into(),
        member: 1 << 40,
        rank: 1,
        size: 2,
        round,
        contribution: Bytes(vec![1, 2, 3]),
        wait_ms: 5000,
    };
    let all = GatherAnswer {
        contributions: Some(vec![Bytes(Vec::new()), Bytes(vec![1, 2, 3])]),
    };
    list.pair("complete", gather(0), all);
    let missing = GatherAnswer {
        contributions: None,
    };
    list.pair("waiting", gather(u64::MAX), missing);
    let watch = WatchTeam {
        team: "job 17, Größe".into(),
        member: 1 << 40,
        rank: 1,
        size: 2,
        failed: "rank 0 of the team has ended".into(),
        gone: Some(0),
        wait_ms: 2000,
    };
    list.pair("", watch, ());
    let leave = LeaveTeam {
        team: "job 17, Größe".into(),
        member: 1 << 40,
    };
    list.pair("", leave, ());
}
