//! The golden cases of the operations that move bytes: write, read, redistribute, lengths.
//!
//! The file named by `PARIO_VECTORS` when that is set, else the project's own. Expected values come
//! from a brute-force oracle over explicit byte sets.

mod support;

use falls::{FallsSet, Periodic, notation::Term};
use layout::{FileOffset, View};
use serde_json::Value;
use support::{Stored, partition};

fn cases(op: &str) -> Vec<Value> {
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/falls.json");
    let path = std::env::var("PARIO_VECTORS");
    let text = std::fs::read_to_string(path.as_deref().unwrap_or(own)).unwrap();
    let all: Value = serde_json::from_str(&text).unwrap();
    let cases = all["cases"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|c| c["op"] == op);
    let cases: Vec<Value> = cases.cloned().collect();
    assert!(path.is_ok() || !cases.is_empty(), "no case of {op}");
    cases
}

fn term(v: &Value) -> Term {
    Term {
        l: v[0].as_i64().unwrap(),
        r: v[1].as_i64().unwrap(),
        s: v[2].as_i64(),
        n: v[3].as_i64().unwrap(),
        inner: terms(&v[4]),
        at: 0,
    }
}

fn terms(v: &Value) -> Vec<Term> {
    v.as_array().unwrap().iter().map(term).collect()
}

fn set(v: &Value) -> FallsSet {
    Term::to_set(&terms(v)).unwrap()
}

fn number(v: &Value) -> u64 {
    v.as_u64().unwrap()
}

fn hex(v: &Value) -> Vec<u8> {
    let text = v.as_str().unwrap();
    (0..text.len())
        .step_by(2)
        .map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap())
        .collect()
}

fn pairs(v: &Value) -> Vec<(u64, u64)> {
    v.as_array()
        .unwrap()
        .iter()
        .map(|p| (number(&p[0]), number(&p[1])))
        .collect()
}

fn the_partition(v: &Value) -> layout::Partition {
    let sets = v["sets"].as_array().unwrap().iter().map(set).collect();
    partition(number(&v["disp"]), number(&v["period"]), sets)
}

fn view(v: &Value) -> View {
    let bytes = Periodic::new(number(&v["disp"]), number(&v["period"]), set(&v["set"])).unwrap();
    View::from(bytes)
}

#[test]
fn vector_write() {
    for case in cases("write") {
        let (id, input, out) = (&case["id"], &case["in"], &case["out"]);
        let mut stored = Stored::from_bytes(&the_partition(input), &hex(&input["old"]));
        let view = view(&input["view"]);
        let messages = stored.write(&view, number(&input["m"]), &hex(&input["data"]));
        assert_eq!(stored.bytes(), hex(&out["file"]), "{id} file");
        let subfiles: Vec<Vec<u8>> = out["subfiles"]
            .as_array()
            .unwrap()
            .iter()
            .map(hex)
            .collect();
        assert_eq!(stored.subfiles, subfiles, "{id} subfiles");
        let expected = out["messages"].as_array().unwrap();
        assert_eq!(messages.len(), expected.len(), "{id} number of messages");
        for (m, e) in messages.iter().zip(expected) {
            assert_eq!(m.subfile as u64, number(&e["sub"]), "{id}");
            let bounds = vec![m.bounds.0, m.bounds.1];
            assert_eq!(serde_json::json!(bounds), e["bounds"], "{id} bounds");
            let touched = (m.segments[0].0, m.segments[m.segments.len() - 1].1);
            assert_eq!(
                serde_json::json!([touched.0, touched.1]),
                e["touched"],
                "{id} touched"
            );
            assert_eq!(m.segments, pairs(&e["segs"]), "{id} segments");
            assert_eq!(m.payload, hex(&e["payload"]), "{id} payload");
        }
    }
}

#[test]
fn vector_read() {
    for case in cases("read") {
        let (id, input) = (&case["id"], &case["in"]);
        let stored = Stored {
            partition: the_partition(input),
            header: hex(&input["header"]),
            subfiles: input["subfiles"]
                .as_array()
                .unwrap()
                .iter()
                .map(hex)
                .collect(),
            len: number(&input["file_len"]),
        };
        let (m, last) = (number(&input["m"]), number(&input["M"]));
        let data = stored.read(&view(&input["view"]), m, last + 1);
        assert_eq!(data, hex(&case["out"]["data"]), "{id}");
    }
}

#[test]
fn vector_redistribute() {
    for case in cases("redistribute") {
        let (id, input, out) = (&case["id"], &case["in"], &case["out"]);
        let stored = Stored {
            partition: the_partition(&input["from"]),
            header: hex(&input["header_from"]),
            subfiles: input["subfiles"]
                .as_array()
                .unwrap()
                .iter()
                .map(hex)
                .collect(),
            len: number(&input["file_len"]),
        };
        let (moved, plan) = stored.redistribute(&the_partition(&input["to"]));
        let subfiles: Vec<Vec<u8>> = out["subfiles"]
            .as_array()
            .unwrap()
            .iter()
            .map(hex)
            .collect();
        assert_eq!(moved.subfiles, subfiles, "{id} subfiles");
        assert_eq!(moved.header, hex(&out["header_to"]), "{id} header");
        let elements = plan.transfers().iter().filter_map(|t| {
            Some((
                t.source().element()? as u64,
                t.target().element()? as u64,
                t.bytes(),
            ))
        });
        let expected: Vec<(u64, u64, u64)> = out["transfers"]
            .as_array()
            .unwrap()
            .iter()
            .map(|t| (number(&t[0]), number(&t[1]), number(&t[2])))
            .collect();
        assert_eq!(elements.collect::<Vec<_>>(), expected, "{id} transfers");
    }
}

#[test]
fn vector_lengths() {
    for case in cases("lengths") {
        let (id, input) = (&case["id"], &case["in"]);
        let partition = the_partition(input);
        let lens = input["file_lens"].as_array().unwrap().iter().map(number);
        for (len, expected) in lens.zip(case["out"]["sub_lens"].as_array().unwrap()) {
            let found: Vec<u64> = (0..partition.len())
                .map(|e| partition.subfile_len(e, len))
                .collect();
            assert_eq!(serde_json::json!(found), *expected, "{id} length {len}");
            if let Some(shortest) = partition.file_len(&found) {
                let back: Vec<u64> = (0..partition.len())
                    .map(|e| partition.subfile_len(e, shortest))
                    .collect();
                assert_eq!(back, found, "{id}: the shortest file has the same subfiles");
                assert!(shortest <= len.max(FileOffset(0).0));
            }
        }
    }
}
