//! Samples of talking through one server: choosing it, and requests that it splits.
//!
//! With and without a history, an announced access, another server to go to.

use wire::frame::Header;
use wire::message::Bytes;
use wire::message::access::{self, Access, AccessAnswer};
use wire::message::mapping::*;
use wire::{ClientId, ServerId};

use super::{Samples, header, two_pieces};

pub(super) fn add(list: &mut Samples) {
    let upcoming = Upcoming {
        offset: 1 << 40,
        size: 4096,
    };
    let first = ChooseServer {
        view: 9,
        by: Choose::ByHistory,
        size: falls::MAX_OFFSET,
        upcoming: None,
        history: Bytes::default(),
    };
    let chosen = |server, history: &[u8]| ServerChoice {
        server: ServerId(server),
        history: Bytes(history.to_vec()),
    };
    list.pair("", first.clone(), chosen(3, b""));
    let hinted = ChooseServer {
        by: Choose::ByHint,
        upcoming: Some(upcoming),
        history: Bytes(vec![1, 96, 0, 0, 0]),
        ..first.clone()
    };
    list.pair("hint", hinted, chosen(u64::MAX, &[1, 2, 3]));
    let kept = ChooseServer {
        by: Choose::Keep,
        ..first
    };
    list.pair("keep", kept, chosen(0, b""));
    for (word, by) in [("", Assignment::RoundRobin), ("master", Assignment::Master)] {
        list.pair(word, Assign { by }, ServerId(5));
    }
    let buddy = BuddyIs {
        client: ClientId(77),
        server: ServerId(2),
        is_same_host: true,
        distance: 10,
        clients: 300,
    };
    list.pair("", Buddy { wanted: None }, buddy.clone());
    let wanted = Some(ServerId(2));
    let elsewhere = BuddyIs {
        is_same_host: false,
        ..buddy
    };
    list.pair("wanted", Buddy { wanted }, elsewhere);
    add_whole(list, upcoming);
}

fn add_whole(list: &mut Samples, upcoming: Upcoming) {
    let mut version = Vec::new();
    two_pieces().version().put(&mut version);
    let access = Access {
        view: 7,
        lo: 100,
        hi: 4196,
        bytes: 4096,
        epoch: 3,
        number: 0,
        end: 0,
        version: &version,
    };
    let whole = Whole {
        by: Choose::ByHistory,
        size: 1 << 33,
        ends: Some(upcoming),
        upcoming: None,
        history: &[1, 96, 0, 0, 0],
        access,
    };
    let plain = Whole {
        by: Choose::Keep,
        ends: None,
        upcoming: Some(upcoming),
        history: &[],
        ..whole
    };
    let done = AccessAnswer {
        waited_ns: 1,
        copied_ns: 2,
        served_ns: 1 << 30,
        rounds: 0,
        verifier: 0,
    };
    let moved = WholeAnswer {
        done,
        next: Some(4),
        history: &[9; 20],
        internal: 3,
        between: 3 << 20,
        own: 1 << 20,
        ..WholeAnswer::default()
    };
    let written = [(1, 1, 77), (4, u64::MAX, 1 << 63)];
    for (name, kind, whole, routed, written, payload) in [
        (
            "READ/whole",
            access::READ,
            &whole,
            &moved,
            &[][..],
            (0, 4096),
        ),
        (
            "WRITE/whole",
            access::WRITE,
            &plain,
            &WholeAnswer::default(),
            &written[..],
            (4096, 0),
        ),
    ] {
        let mut control = Vec::new();
        whole.encode(&mut control);
        assert_eq!(Whole::decode(&control).as_ref(), Ok(whole), "{name}");
        let ask = Header {
            flags: access::WHOLE,
            payload_bytes: payload.0,
            ..header(kind)
        };
        list.raw(name.into(), "request", ask, control, |bytes| {
            Whole::decode(bytes).map(drop)
        });
        let mut control = Vec::new();
        routed.encode(written, &mut control);
        let found = WholeAnswer::decode(&control).unwrap();
        assert_eq!(found.written().collect::<Vec<_>>(), written, "{name}");
        let facts = |r: &WholeAnswer<'_>| (r.done, r.next, r.internal, r.between, r.own);
        assert_eq!(facts(&found), facts(routed), "{name}");
        assert_eq!(found.history, routed.history);
        let tell = Header {
            payload_bytes: payload.1,
            ..header(kind)
        };
        list.raw(name.into(), "answer", tell, control, |bytes| {
            WholeAnswer::decode(bytes).map(drop)
        });
    }
}
