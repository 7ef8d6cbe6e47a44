//! The golden cases of the operations that move bytes: write, read, redistribute.
//!
//! `testdata/README.md` explains the schema; `PARIO_VECTORS` names another file of it. A test of
//! `falls` checks that every operation of the file is run by some crate.

mod support;

use layout::{Partition, View};
use serde_json::{Value, json};
use support::{Stored, partition};
use testkit::golden::{element, hex, list, number, pairs, run, set};

fn partition_of(v: &Value) -> Partition {
    let sets = list(&v["sets"]).iter().map(set).collect();
    partition(number(&v["disp"]), number(&v["period"]), sets)
}

fn all_hex(v: &Value) -> Vec<Vec<u8>> {
    list(v).iter().map(hex).collect()
}

#[test]
fn vector_write() {
    run("write", |case| {
        let (input, out) = (&case.input, &case.output);
        let mut stored = Stored::from_bytes(&partition_of(input), &hex(&input["old"]));
        let view = View::from(element(&input["view"]));
        let messages = stored.write(&view, number(&input["m"]), &hex(&input["data"]));
        assert_eq!(stored.bytes(), hex(&out["file"]), "file");
        assert_eq!(stored.subfiles, all_hex(&out["subfiles"]), "subfiles");
        let expected = list(&out["messages"]);
        assert_eq!(messages.len(), expected.len(), "number of messages");
        for (m, e) in messages.iter().zip(expected) {
            assert_eq!(m.subfile as u64, number(&e["sub"]));
            assert_eq!(json!([m.bounds.0, m.bounds.1]), e["bounds"], "bounds");
            let touched = [m.segments[0].0, m.segments[m.segments.len() - 1].1];
            assert_eq!(json!(touched), e["touched"], "touched");
            assert_eq!(m.segments, pairs(&e["segs"]), "segments");
            assert_eq!(m.payload, hex(&e["payload"]), "payload");
        }
    });
}

#[test]
fn vector_read() {
    run("read", |case| {
        let input = &case.input;
        let stored = Stored {
            partition: partition_of(input),
            header: hex(&input["header"]),
            subfiles: all_hex(&input["subfiles"]),
            len: number(&input["file_len"]),
        };
        let (m, last) = (number(&input["m"]), number(&input["M"]));
        let data = stored.read(&View::from(element(&input["view"])), m, last + 1);
        assert_eq!(data, hex(&case.output["data"]));
    });
}

#[test]
fn vector_redistribute() {
    run("redistribute", |case| {
        let (input, out) = (&case.input, &case.output);
        let stored = Stored {
            partition: partition_of(&input["from"]),
            header: hex(&input["header_from"]),
            subfiles: all_hex(&input["subfiles"]),
            len: number(&input["file_len"]),
        };
        let (moved, plan) = stored.redistribute(&partition_of(&input["to"]));
        assert_eq!(moved.subfiles, all_hex(&out["subfiles"]), "subfiles");
        assert_eq!(moved.header, hex(&out["header_to"]), "header");
        let elements = plan.transfers().iter().filter_map(|t| {
            Some(json!([
                t.source().element()?,
                t.target().element()?,
                t.bytes()
            ]))
        });
        assert_eq!(
            Value::Array(elements.collect()),
            out["transfers"],
            "transfers"
        );
    });
}
