//! One sample or more of every message, as complete frames: what the golden frames pin and what the
//! hostile tests damage.
//!
//! The values are chosen to show every form a field can take: nested views, layout states with two
//! pieces, names outside ASCII, times before 1970, every variant of every choice, the largest
//! numbers. A sample that does not come back equal fails where it is made.

mod ahead;
mod calibration;
mod catalogue;
mod cluster;
mod direct;
mod directed;
mod file;
mod hints;
mod mapping;
mod profile;
mod session;
mod stamps;
mod team;

use std::fmt::Debug;

use falls::{FallsSet, Periodic};
use layout::{FileOffset, Partition, Pattern, View};
use wire::frame::Header;
use wire::message::access::{self, Access, AccessAnswer};
use wire::message::file::SizeIs;
use wire::message::{self, Bytes, Field, Refusal, Request};
use wire::{DecodeError, LayoutState, Piece, Place, Status};

/// One frame and how its control part is read.
pub(crate) struct Sample {
    /// Kind, and what is special about it behind a slash.
    pub(crate) name: String,
    /// `request` or `answer`.
    pub(crate) direction: &'static str,
    pub(crate) header: Header,
    pub(crate) control: Vec<u8>,
    /// Whether bytes are such a control part.
    pub(crate) check: fn(&[u8]) -> Result<(), DecodeError>,
}

impl Sample {
    /// Header and control part.
    pub(crate) fn frame(&self) -> Vec<u8> {
        let mut frame = self.header.encode(&self.control).to_vec();
        frame.extend_from_slice(&self.control);
        frame
    }
}

/// All samples, in the order of their kinds.
pub(crate) fn all() -> Vec<Sample> {
    let mut list = Samples(Vec::new());
    session::add(&mut list);
    catalogue::add(&mut list);
    calibration::add(&mut list);
    team::add(&mut list);
    hints::add(&mut list);
    cluster::add(&mut list);
    file::add(&mut list);
    direct::add(&mut list);
    mapping::add(&mut list);
    directed::add(&mut list);
    profile::add(&mut list);
    ahead::add(&mut list);
    stamps::add(&mut list);
    add_accesses(&mut list);
    for &status in Status::ALL.iter().filter(|s| !s.is_ok()) {
        add_refusal(&mut list, status);
    }
    list.0
}

/// Samples on their way in.
pub(crate) struct Samples(Vec<Sample>);

impl Samples {
    /// A request and its answer.
    fn pair<R>(&mut self, word: &str, request: R, answer: R::Answer)
    where
        R: Request + PartialEq + Debug,
        R::Answer: PartialEq + Debug,
    {
        let name = match word {
            "" => R::NAME.to_owned(),
            word => format!("{}/{word}", R::NAME),
        };
        let header = header(R::KIND);
        self.one(name.clone(), "request", header, &request);
        self.one(name, "answer", header, &answer);
    }

    fn one<T>(&mut self, name: String, direction: &'static str, header: Header, value: &T)
    where
        T: Field + PartialEq + Debug,
    {
        let mut control = Vec::new();
        message::encode(value, &mut control);
        assert_eq!(
            message::decode::<T>(&control).as_ref(),
            Ok(value),
            "{name} {direction}"
        );
        self.raw(name, direction, header, control, |bytes| {
            message::decode::<T>(bytes).map(drop)
        });
    }

    fn raw(
        &mut self,
        name: String,
        direction: &'static str,
        header: Header,
        control: Vec<u8>,
        check: fn(&[u8]) -> Result<(), DecodeError>,
    ) {
        let header = Header {
            control_bytes: control.len() as u32,
            ..header
        };
        self.0.push(Sample {
            name,
            direction,
            header,
            control,
            check,
        });
    }
}

fn header(kind: u16) -> Header {
    Header {
        kind,
        status: Status::Ok,
        flags: 0,
        request: 0x0123_4567_89ab_cd00 + u64::from(kind),
        control_bytes: 0,
        payload_bytes: 0,
    }
}

fn add_accesses(list: &mut Samples) {
    let mut version = Vec::new();
    two_pieces().version().put(&mut version);
    let plain = Access {
        view: 7,
        lo: 1 << 40,
        hi: (1 << 40) + 4096,
        bytes: 1024,
        epoch: 3,
        number: 0,
        end: 0,
        version: &version,
    };
    let grown = Access {
        view: u64::MAX,
        lo: 0,
        hi: falls::MAX_OFFSET,
        bytes: 1 << 22,
        epoch: 0,
        number: u64::MAX,
        end: 1 << 50,
        version: &version,
    };
    let done = AccessAnswer {
        waited_ns: 12,
        copied_ns: 3_000_000,
        served_ns: u64::MAX,
        rounds: 2,
        verifier: 0x0123_4567_89ab_cdef,
    };
    let ask = |list: &mut Samples, name: &str, kind, flags, payload_bytes, access: &Access<'_>| {
        let mut control = Vec::new();
        access.encode(&mut control);
        assert_eq!(Access::decode(&control).as_ref(), Ok(access), "{name}");
        let header = Header {
            flags,
            payload_bytes,
            ..header(kind)
        };
        list.raw(name.into(), "request", header, control, |bytes| {
            Access::decode(bytes).map(drop)
        });
    };
    let tell = |list: &mut Samples, name: &str, kind, payload_bytes| {
        let mut control = Vec::new();
        done.encode(&mut control);
        assert_eq!(AccessAnswer::decode(&control), Ok(done), "{name}");
        let header = Header {
            payload_bytes,
            ..header(kind)
        };
        list.raw(name.into(), "answer", header, control, |bytes| {
            AccessAnswer::decode(bytes).map(drop)
        });
    };
    let (announced, grow) = (access::ANNOUNCED, access::GROW);
    ask(list, "READ", access::READ, 0, 0, &plain);
    tell(list, "READ", access::READ, plain.bytes);
    ask(list, "WRITE", access::WRITE, 0, plain.bytes, &plain);
    tell(list, "WRITE", access::WRITE, 0);
    ask(list, "WRITE/grow", access::WRITE, grow, 1 << 22, &grown);
    let both = announced | grow;
    ask(list, "WRITE/announced", access::WRITE, both, 0, &grown);
    let go = Header {
        flags: access::GO,
        ..header(access::WRITE)
    };
    list.one("WRITE/go".into(), "answer", go, &());
    let data = Header {
        payload_bytes: 1 << 22,
        ..header(access::DATA)
    };
    list.one("DATA".into(), "request", data, &());
    tell(list, "DATA", access::DATA, 0);
}

/// A refusal with this status, and what the status defines as its detail.
fn add_refusal(list: &mut Samples, status: Status) {
    let (kind, detail) = match status {
        Status::Unauthenticated => (0x01, (0..32).collect()),
        Status::StaleLayout => {
            let mut state = Vec::new();
            two_pieces().put(&mut state);
            (access::READ, state)
        }
        Status::StaleEpoch => {
            let mut size = Vec::new();
            SizeIs {
                size: 4096,
                epoch: 4,
            }
            .put(&mut size);
            (access::WRITE, size)
        }
        _ => (0x10, Vec::new()),
    };
    let refusal = Refusal {
        text: format!("/Maße/größe: {status}"),
        detail: Bytes(detail),
    };
    let header = Header {
        status,
        ..header(kind)
    };
    let name = format!("Refusal/{}", status.word());
    list.one(name, "answer", header, &refusal);
}

fn set(text: &str) -> FallsSet {
    text.parse().unwrap()
}

/// Two levels, displaced, with bytes that no period covers.
fn nested_view() -> View {
    let tree = set("{(0,3,8,2,{(0,0,2,2)}),(17,20)}");
    View::from(Periodic::new(5, 32, tree).unwrap())
}

/// Forty segments without a rule.
fn irregular_view() -> View {
    let list: Vec<String> = (0..40u64)
        .map(|i| {
            let start = i * 10 + i * i % 7;
            format!("({start},{})", start + i % 3)
        })
        .collect();
    let tree = set(&format!("{{{}}}", list.join(",")));
    assert!(tree.is_segment_list());
    View::from(Periodic::new(0, 1 << 33, tree).unwrap())
}

fn place(server: u64, incarnation: u64) -> Place {
    Place {
        server,
        incarnation,
    }
}

fn partition(displacement: u64, period: u64, elements: &[&str]) -> Partition {
    let elements = elements.iter().map(|text| set(text)).collect();
    let pattern = Pattern::new(period, elements).unwrap();
    Partition::new(FileOffset(displacement), pattern).unwrap()
}

/// A file in one generation on two servers.
fn one_piece() -> LayoutState {
    LayoutState {
        owner: place(2, 9),
        step: 1,
        pieces: vec![Piece::whole(
            1,
            partition(0, 8, &["{(0,3)}", "{(4,7)}"]),
            vec![vec![place(1, 8)], vec![place(2, 9)]],
        )],
    }
}

/// A file on its way into another generation, in two lanes, one subfile with a replica.
fn two_pieces() -> LayoutState {
    LayoutState {
        owner: place(3, 17),
        step: 1 << 33,
        pieces: vec![
            Piece {
                ranges: vec![100..4096, 5000..8192],
                generation: 7,
                stores: vec![7, 3, 7],
                partition: partition(4, 8, &["{(0,1,4,2)}", "{(2,3,4,2,{(0,0)})}", "{(3,3,4,2)}"]),
                places: vec![vec![place(1, 1)], vec![place(2, 300)], vec![place(3, 17)]],
            },
            Piece {
                ranges: vec![0..100, 4096..5000, 8192..u64::MAX],
                generation: 8,
                stores: vec![8],
                partition: partition(0, 1, &["{(0,0)}"]),
                places: vec![vec![place(3, 17), place(u64::MAX, 1 << 32)]],
            },
        ],
    }
}
