//! Samples of profiles: with and without a rank, every way to change one, reports of servers.
//!
//! The profile itself is bytes here; its format has images of its own.

use wire::message::Bytes;
use wire::message::profile::*;
use wire::{ClientId, FileId, HandleId};

use super::Samples;

pub(super) fn add(list: &mut Samples) {
    let profile = || Bytes(b"pario file profile\n\x01".to_vec());
    for (word, rank) in [("", None), ("rank", Some(4095))] {
        let put = PutProfile {
            handle: HandleId(7),
            rank,
            profile: profile(),
        };
        list.pair(word, put, ());
    }
    let path = || "/results/größe".to_owned();
    let is = ProfileIs {
        file: FileId(99),
        profile: profile(),
        auto_layout: "suggest".into(),
        moves: 3,
        suggestion: "(block, *) onto 4 at [2,0,1,3]".into(),
        why: "saves 2.5 s of 10 s, moving takes 1.0 s".into(),
    };
    list.pair("", GetProfile { path: path() }, is);
    for (word, change, profile) in [
        ("", ProfileChange::Clear, Bytes::default()),
        ("replace", ProfileChange::Replace, profile()),
        ("merge", ProfileChange::Merge, profile()),
    ] {
        let set = SetProfile {
            path: path(),
            change,
            profile,
        };
        list.pair(word, set, ());
    }
    let seen = vec![SeenUse {
        client: ClientId(1 << 33),
        file: FileId(99),
        profile: profile(),
    }];
    list.pair("", ReportUse { seen }, ());
}
