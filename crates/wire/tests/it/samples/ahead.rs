//! Samples of what clients say about reads to come.
//!
//! Every way to prefetch collective reads, with and without a range.

use wire::message::ahead::*;
use wire::message::mapping::Upcoming;

use wire::message::Bytes;
use wire::{ClientId, FileId, ServerId};

use super::Samples;

pub(super) fn add(list: &mut Samples) {
    let usual = ReadAhead {
        view: 3,
        depth: u64::MAX,
        upcoming: None,
        collective: Collective::Nothing,
        bytes: 0,
    };
    list.pair("", usual.clone(), ());
    let upcoming = Some(Upcoming {
        offset: 1 << 40,
        size: 65536,
    });
    let ranged = ReadAhead {
        depth: 0,
        upcoming,
        ..usual.clone()
    };
    list.pair("range", ranged, ());
    let ways = [
        ("disk", Collective::Disk),
        ("packets", Collective::Packets),
        ("exchanged", Collective::Exchanged),
    ];
    for (word, collective) in ways {
        let way = ReadAhead {
            collective,
            bytes: 8 << 20,
            ..usual.clone()
        };
        list.pair(word, way, ());
    }
    let deposit = Deposit {
        file: FileId(7),
        key: u64::MAX,
        from: ServerId(2),
        serial: 9,
        rank: 3,
        portion: Bytes(vec![1, 2]),
        bytes: Bytes(vec![0; 5]),
    };
    list.pair("", deposit, true);
    let confirm = Confirm {
        file: FileId(7),
        key: 1,
        from: ServerId(2),
        serial: 9,
        packets: 4,
        leader: ClientId(1 << 40),
        operation: 77,
    };
    list.pair("", confirm, false);
}
