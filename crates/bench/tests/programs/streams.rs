//! The benchmark of streams, small: that it measures what statements 91 to 94 of source 002 ask for, and reads what was written.
//! How fast streams are is a claim of `make bench-check`.

use serde_json::Value;

use crate::run;

/// Rows of a run with a few virtual processors.
fn rows(arguments: &[&str]) -> Vec<Value> {
    let small = [
        "bench", "streams", "--vps", "256", "--stores", "memory", "--json",
    ];
    let output = run(&[&small[..], arguments].concat());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
    let rows = report["rows"].as_array().expect("rows");
    let is_measured = |row: &Value| row["value"].as_f64() > Some(0.0);
    assert!(rows.iter().all(is_measured), "{report}");
    rows.clone()
}

fn find<'a>(rows: &'a [Value], case: &str) -> &'a Value {
    let found = rows.iter().find(|row| row["case"] == case);
    found.unwrap_or_else(|| panic!("no row {case} in {rows:#?}"))
}

#[test]
fn seed002_s91_all_modes_are_measured_with_one_to_four_servers() {
    let rows = rows(&["--filter", "fig3"]);
    for servers in 1..=4 {
        for call in [8, 512] {
            for mode in ["NB", "CB", "IB"] {
                for figure in ["fig3.7/memory/write", "fig3.10/memory/read"] {
                    let row = find(&rows, &format!("{figure}/c={call}/s={servers}/{mode}"));
                    assert!(row["columns"]["ci95"].is_number(), "{row}");
                    assert_eq!(row["ratios"]["NB"].is_number(), mode != "NB", "{row}");
                }
            }
            let other = find(
                &rows,
                &format!("fig3.10/memory/read/c={call}/s={servers}/IB-other"),
            );
            assert!(other["ratios"]["IB"].is_number(), "{other}");
        }
    }
}

#[test]
fn seed002_s92_blocks_pointers_and_read_buffers_are_swept() {
    let rows = rows(&["--servers", "1", "--filter", "table3,sweep"]);
    for (table, printed) in [("table3.2", 0.45), ("table3.3", 0.63)] {
        for block in [64, 32, 16] {
            find(&rows, &format!("{table}/memory/s=1/b={block}"));
        }
        let row = find(&rows, &format!("{table}/memory/s=1/b=8"));
        assert_eq!(row["columns"]["printed"], printed);
        assert!(row["ratios"]["b=64"].is_number(), "{row}");
    }
    for word in [
        "write/cb=8",
        "write/cb=32",
        "write/k=2",
        "read/k=6",
        "read/k=14",
    ] {
        find(&rows, &format!("sweep/memory/{word}"));
    }
    find(&rows, "sweep/memory/read/buffers=2");
    find(&rows, "sweep/memory/read/buffers=64");
}

#[test]
fn seed002_s93_the_latency_of_asynchronous_calls_is_told_by_vp() {
    let rows = rows(&["--servers", "1", "--filter", "latency"]);
    for mode in ["NB", "CB", "IB"] {
        let row = find(&rows, &format!("latency/{mode}"));
        assert_eq!(row["unit"], "ns");
        // The program goes on before the call is done.
        assert!(
            row["columns"]["done_ns"].as_f64() > row["value"].as_f64(),
            "{row}"
        );
    }
}

#[test]
fn seed002_s94_finding_the_mode_by_every_vp_is_compared_with_not_looking() {
    let rows = rows(&["--servers", "1", "--filter", "NB-masked,rejected"]);
    for case in ["fig3.7/memory/write", "fig3.10/memory/read"] {
        let row = find(&rows, &format!("{case}/c=8/s=1/NB-masked"));
        assert!(row["ratios"]["NB"].is_number(), "{row}");
    }
    for model in [
        "B-01", "B-02", "B-03", "B-04", "B-05", "C-01", "C-02", "C-03", "cells",
    ] {
        for call in [8, 512] {
            let row = find(&rows, &format!("rejected/c={call}/{model}"));
            assert!(row["ratios"]["NB"].is_number(), "{row}");
        }
    }
}
