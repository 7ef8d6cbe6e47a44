//! Layouts whose description is longer than a frame: irregular maps of a million segments.
//!
//! Text and state of such a file take several frames wherever they travel: to create it, to open it, from the metadata
//! manager to the I/O servers, with a refusal, and when its layout changes.

use client::{LayoutSpec, OpenOptions};
use falls::{FallsSet, Segment};
use layout::{Layout, LayoutForm};
use system_tests::{Random, ServiceOptions};

use crate::{create, open, read_all};

/// Segments of each of two elements.
const SEGMENTS: u64 = 500_000;

/// Bytes in which each element has a segment.
const CELL: u64 = 16;

/// Two elements without any regularity.
fn irregular(random: &mut Random) -> String {
    let mut sets = [Vec::new(), Vec::new()];
    for cell in 0..SEGMENTS {
        let cut = 1 + random.below(CELL - 1);
        let start = cell * CELL;
        // Which comes first is chance, too.
        let first = random.below(2) as usize;
        sets[first].push(Segment::new(start, cut).expect("a segment"));
        sets[1 - first].push(Segment::new(start + cut, CELL - cut).expect("a segment"));
    }
    let sets = sets.map(|list| FallsSet::from_segments(&merged(list)).expect("a set"));
    let form = LayoutForm::Falls {
        period: SEGMENTS * CELL,
        sets: sets.into(),
    };
    Layout::from(form).to_string()
}

/// Segments that touch are one.
fn merged(list: Vec<Segment>) -> Vec<Segment> {
    let mut out: Vec<Segment> = Vec::with_capacity(list.len());
    for segment in list {
        match out.last_mut() {
            Some(last) if last.end() == segment.start() => {
                let len = segment.end() - last.start();
                *last = Segment::new(last.start(), len).expect("a segment");
            }
            _ => out.push(segment),
        }
    }
    out
}

#[test]
fn layouts_longer_than_a_frame_are_created_opened_replaced_and_used() {
    let mut random = Random::of_run(14);
    let (first, second) = (irregular(&mut random), irregular(&mut random));
    assert!(first.len() > 4 << 20, "{} bytes of text", first.len());
    let mut service = ServiceOptions::new(2).disk().start();
    let client = service.client();
    let file = create(&client, "/irregular", None, &first);
    let whole: Vec<u8> = (0..SEGMENTS * CELL + 1000)
        .map(|_| random.below(256) as u8)
        .collect();
    file.write_at(0, &whole).expect("written");
    file.sync().expect("synced");
    let state = file.layout();
    let mut bytes = Vec::new();
    state.put(&mut bytes);
    assert!(bytes.len() > 1 << 20, "the state has {} bytes", bytes.len());
    assert_eq!(client.layout("/irregular").expect("a layout").text, first);
    // Others open it, and servers that were started again ask for it.
    let other = service.client();
    assert!(read_all(&open(&other, "/irregular")) == whole);
    service.kill_all();
    service.start_all();
    service.wait_for_members(2);
    assert!(read_all(&file) == whole, "with the handle it had");
    assert!(read_all(&open(&service.client(), "/irregular")) == whole);
    // An empty file gets another one.
    let spec = |layout: &str| LayoutSpec {
        array: None,
        layout: Some(layout.into()),
    };
    let options = OpenOptions::new().read().write().create();
    client.create("/empty", &options).expect("created");
    client
        .set_layout("/empty", spec(&second))
        .expect("laid out");
    assert_eq!(client.layout("/empty").expect("a layout").text, second);
    let empty = open(&client, "/empty");
    empty.write_at(0, &whole).expect("written");
    assert!(read_all(&empty) == whole);
    // What is longer than any message is refused clearly.
    let long = format!("falls{{{}}}", "(0,0,2,1),".repeat(7 << 20));
    let error = client
        .set_layout("/empty", spec(&long))
        .expect_err("too long");
    assert_eq!(error.status(), client::Status::TooLarge, "{error}");
    client.mkdir("/still", None).expect("the connection lives");
}
