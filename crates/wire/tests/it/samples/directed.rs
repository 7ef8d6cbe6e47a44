//! Samples of collective accesses that servers direct, and of ranges that are held.
//!
//! Nested views, a rank without bytes, both directions.

use wire::ClientId;
use wire::message::Bytes;
use wire::message::directed::*;

use super::Samples;

pub(crate) fn add(list: &mut Samples) {
    let done = DirectedAnswer {
        blocks: 1 << 33,
        rounds: 7,
        packets: u64::MAX,
        served_ns: 12,
        verifier: 1 << 63,
    };
    let rank = |client, view, lo, hi| RankRange {
        client: ClientId(client),
        view,
        lo,
        hi,
    };
    for (word, writes, by_record) in [("read", false, true), ("write", true, false)] {
        let lead = Lead {
            view: 3,
            operation: u64::MAX,
            writes,
            by_record,
            block_bytes: 65536,
            blocks: 16,
            epoch: 2,
            version: Bytes(vec![1, 4]),
            ranks: vec![rank(9, 0, 0, 1 << 40), rank(u64::MAX, 0, 5, 5)],
            views: vec![super::nested_view()],
        };
        list.pair(word, lead, done);
    }
    let follow = Follow {
        view: 1 << 20,
        leader: ClientId(9),
        operation: 77,
        rank: 1,
    };
    list.pair("", follow, DirectedAnswer::default());
    list.pair("", Packet { number: 300 }, done);
    let hold = HoldRange {
        view: 3,
        lo: 0,
        hi: falls::MAX_OFFSET,
        version: Bytes(vec![1, 2, 3]),
    };
    list.pair("", hold, u64::MAX);
    list.pair("", LetGo { view: 3, number: 1 }, ());
}
