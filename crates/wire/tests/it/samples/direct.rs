//! Samples of what clients ask of I/O servers about shared memory.
//!
//! The descriptors travel beside the frames and are no part of them.

use wire::message::Bytes;
use wire::message::direct::*;

use super::Samples;

pub(super) fn add(list: &mut Samples) {
    let attached = AttachAnswer {
        table_bytes: 1 << 20,
        verifier: 1 << 40,
        page_bytes: 12288,
    };
    list.pair("", Attach {}, attached);
    let range = |subfile, start| SubfileRange {
        store: 300,
        subfile,
        start,
        end: 1 << 40,
    };
    let map = |writes| Map {
        view: 7,
        version: Bytes(vec![1, 8]),
        epoch: 3,
        writes,
        ranges: vec![range(0, 0), range(u32::MAX, 1 << 33)],
    };
    let extent = |subfile, mark| MappedExtent {
        store: u64::MAX,
        subfile,
        offset: 2 << 20,
        len: 65536,
        segment: 5,
        at: 1 << 29,
        mark,
    };
    let mapped = MapAnswer {
        entry: 16383,
        epoch: 1 << 39,
        step: 1 << 14,
        number: 129,
        extents: vec![extent(0, 0), extent(1, READ_ONLY), extent(u32::MAX, 65536)],
        ends: vec![
            SubfileEnd {
                store: 1,
                subfile: 0,
                end: 0,
            },
            SubfileEnd {
                store: u64::MAX,
                subfile: u32::MAX,
                end: 4095,
            },
        ],
        segments: [true, false]
            .map(|is_writable| SegmentIs {
                segment: 5,
                bytes: 1 << 30,
                is_writable,
            })
            .into(),
        gone: vec![0, u64::MAX],
    };
    list.pair("stores", map(true), mapped);
    let nothing = MapAnswer {
        entry: 0,
        epoch: 0,
        step: 0,
        number: 0,
        extents: Vec::new(),
        ends: Vec::new(),
        segments: Vec::new(),
        gone: Vec::new(),
    };
    list.pair("nothing", map(false), nothing);
}
