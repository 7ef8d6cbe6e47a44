//! Samples of what clients ask about stamps.
//!
//! The descriptor travels beside the frame and is no part of it.

use wire::message::stamps::*;

use super::Samples;

/// Stamps of an answer.
pub(super) fn stamped() -> StampList {
    let stamp = |slot, stamp| Stamp { slot, stamp };
    StampList {
        start: 300,
        stamps: vec![stamp(0, 0), stamp(65535, 1 << 40)],
    }
}

pub(super) fn add(list: &mut Samples) {
    list.pair("", AttachStamps {}, StampsAre { bytes: 528_384 });
    let recalls = RecallsAre {
        start: 300,
        number: 1 << 33,
        is_first: true,
        changed: stamped().stamps,
        valid_ms: 1500,
    };
    list.pair("", AwaitRecalls { heard: 1 << 40 }, recalls);
}
