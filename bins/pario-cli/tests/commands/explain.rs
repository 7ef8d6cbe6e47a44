//! `pario explain`: plans of small arrays as they are printed, JSON and SVG. Times and what a cost
//! model predicts are left out of the comparison.

use crate::{json_of, same_text, scratch_file, text_of, xml};

const ROWS_TO_COLUMNS: [&str; 7] = [
    "explain",
    "--from",
    "(block, *) onto 2",
    "--to",
    "(*, block) onto 4",
    "--array",
    "f64[4,8]",
];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    ROWS_TO_COLUMNS.iter().chain(more).copied().collect()
}

/// The text without the lines that a clock or a cost model decides.
fn timeless(text: &str) -> String {
    let timed = |line: &&str| {
        !["planned in", "matching degree"]
            .iter()
            .any(|w| line.trim().starts_with(w))
    };
    text.lines().filter(timed).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_redistribution_is_explained_in_full() {
    let text = text_of(&ROWS_TO_COLUMNS);
    assert!(text.contains("\n  planned in       "), "{text}");
    same_text(
        &timeless(&text),
        "
f64[4,8] (256 B) from (block, *) onto 2 to (*, block) onto 4

  from                   to
      0 1 2 3 4 5 6 7        0 1 2 3 4 5 6 7
  0 | 0 0 0 0 0 0 0 0    0 | 0 0 1 1 2 2 3 3
  1 | 0 0 0 0 0 0 0 0    1 | 0 0 1 1 2 2 3 3
  2 | 1 1 1 1 1 1 1 1    2 | 0 0 1 1 2 2 3 3
  3 | 1 1 1 1 1 1 1 1    3 | 0 0 1 1 2 2 3 3

  bytes by source (down) and target (across)
             0   1   2   3
        0 |  32  32  32  32
        1 |  32  32  32  32

  transfer          bytes     runs  in the file       in the source   in the target
  0 -> 0               32        2  {(0,15,64,2)}     {(0,15,64,2)}   {(0,31,-,1)}
  0 -> 1               32        2  {(16,31,64,2)}    {(16,31,64,2)}  {(0,31,-,1)}
  0 -> 2               32        2  {(32,47,64,2)}    {(32,47,64,2)}  {(0,31,-,1)}
  0 -> 3               32        2  {(48,63,64,2)}    {(48,63,64,2)}  {(0,31,-,1)}
  1 -> 0               32        2  {(128,143,64,2)}  {(0,15,64,2)}   {(32,63,-,1)}
  1 -> 1               32        2  {(144,159,64,2)}  {(16,31,64,2)}  {(32,63,-,1)}
  1 -> 2               32        2  {(160,175,64,2)}  {(32,47,64,2)}  {(32,63,-,1)}
  1 -> 3               32        2  {(176,191,64,2)}  {(48,63,64,2)}  {(32,63,-,1)}

  volume           256 B
  messages         6 (2 transfers stay on their node)
  bytes            64 B stay (25.0%), 192 B move (75.0%)
  best placement   as numbered
  pairs            8
  contention       2.00 pairs per target
  fan-out          4.00 pairs per source
  joint runs       16
  mean run         16.0 bytes
  fragmentation    0.7500
  locality         0.2500
",
    );
}

#[test]
fn long_lists_are_cut_and_summarised() {
    let text = text_of(&with(&["--transfers", "2"]));
    assert!(text.contains("  0 -> 1 "), "{text}");
    assert!(!text.contains("  0 -> 2 "), "{text}");
    assert!(text.contains("… 6 more transfers with 192 B"), "{text}");
}

#[test]
fn relabelling_keeps_more_bytes_in_place() {
    let plan = [
        "explain",
        "--from",
        "(block) onto 4",
        "--to",
        "(cyclic(2)) onto 2",
        "--array",
        "u8[8]",
    ];
    let before = json_of(&[&plan[..], &["--json"]].concat());
    let after = json_of(&[&plan[..], &["--json", "--relabel"]].concat());
    assert_eq!(before["placement"]["stay_bytes"], after["stay_bytes"]);
    assert!(before["stay_bytes"].as_u64() <= after["stay_bytes"].as_u64());
    let reversed = [
        "explain",
        "--from",
        "falls{(0,3); (4,7)}",
        "--to",
        "falls{(4,7); (0,3)}",
        "--bytes",
        "8",
    ];
    let text = text_of(&reversed);
    assert!(
        text.contains("0 B stay (0.0%), 8 B move (100.0%)"),
        "{text}"
    );
    assert!(
        text.contains("8 B stay (100.0%), 0 B move (0.0%); --relabel takes it"),
        "{text}"
    );
    let text = text_of(&[&reversed[..], &["--relabel"]].concat());
    assert!(
        text.contains("relabelled       target 0 on node 1, 1 on node 0"),
        "{text}"
    );
    assert!(
        text.contains("messages         0 (2 transfers stay on their node)"),
        "{text}"
    );
}

#[test]
fn json_adds_up() {
    let value = json_of(&with(&["--json"]));
    assert_eq!(value["from"], "(block, *) onto 2");
    assert_eq!(value["to"], "(*, block) onto 4");
    assert_eq!(value["volume"], 256);
    assert_eq!(value["messages"], 6);
    let transfers = value["transfers"].as_array().expect("a list");
    assert_eq!(transfers.len(), 8);
    for transfer in transfers {
        for side in ["in_file", "in_source", "in_target"] {
            let text = transfer[side].as_str().expect("text");
            let set: falls::FallsSet = text.parse().expect("the notation of the algebra");
            assert_eq!(transfer["bytes"], set.size(), "{side}");
        }
    }
    let measures = &value["measures"];
    assert_eq!(measures["pairs"], 8);
    assert_eq!(measures["joint_runs"], 16);
    assert_eq!(measures["mean_run"], 16.0);
    let degree = value["matching_degree"].as_f64().expect("a number");
    assert!(degree > 0.0 && degree < 1.0);
}

#[test]
fn a_perfect_match_has_degree_one() {
    let value = json_of(&[
        "explain",
        "--from",
        "(*, block) onto 4",
        "--to",
        "(*, block) onto 4",
        "--array",
        "f64[100,100]",
        "--json",
    ]);
    assert_eq!(value["matching_degree"], 1.0);
    assert_eq!(value["move_bytes"], 0);
}

#[test]
fn a_view_is_explained_against_subfiles() {
    let plan = [
        "explain",
        "--view",
        "(block, *) onto 2 [1]",
        "--to",
        "(*, block) onto 4",
        "--array",
        "f64[4,8]",
    ];
    let text = text_of(&plan);
    assert!(
        text.contains("seen as (block, *) onto 2[1], stored as (*, block) onto 4"),
        "{text}"
    );
    assert!(
        text.contains("messages         4, one per transfer"),
        "{text}"
    );
    let value = json_of(&[&plan[..], &["--json"]].concat());
    assert_eq!(value["volume"], 128);
    assert_eq!(value["transfers"].as_array().map(Vec::len), Some(4));
    assert!(value.get("placement").is_none());
}

#[test]
fn periods_without_a_common_one_are_explained_at_once() {
    let text = text_of(&[
        "explain",
        "--from",
        "falls{(0,1073741822); (1073741823,2147483646)}",
        "--to",
        "falls{(0,1073741829); (1073741830,2147483658)}",
        "--bytes",
        "1TiB",
    ]);
    assert!(text.contains("volume           1 TiB"), "{text}");
}

#[test]
fn pictures_are_well_formed() {
    for (name, arguments) in [
        ("small", ROWS_TO_COLUMNS.to_vec()),
        (
            "line",
            vec![
                "explain",
                "--from",
                "(block) onto 4",
                "--to",
                "(cyclic(7)) onto 3",
                "--array",
                "u8[999]",
            ],
        ),
        (
            "file",
            vec![
                "explain",
                "--from",
                "striped(100) over 50",
                "--to",
                "striped(64) over 50",
                "--bytes",
                "1MiB",
            ],
        ),
        (
            "view",
            vec![
                "explain",
                "--view",
                "slice[0:3, 1:5]",
                "--to",
                "(*, block) onto 4",
                "--array",
                "f64[4,8]",
            ],
        ),
    ] {
        let path = scratch_file(&format!("explain-{name}.svg"));
        let file = path.to_str().expect("a readable path");
        text_of(&[&arguments[..], &["--svg", file]].concat());
        let svg = std::fs::read_to_string(&path).expect("the picture was written");
        assert_eq!(xml::elements_of(&svg)[0], "svg", "{name}");
    }
}

#[test]
fn a_picked_view_keeps_its_number() {
    let access = ["explain", "--view", "(block, *) onto 4 [1]"];
    let more = ["--to", "(*, block) onto 2", "--array", "u8[4,4]"];
    let text = text_of(&[&access[..], &more].concat());
    assert!(
        text.contains("  1 -> 0 ") && text.contains("        1 |"),
        "{text}"
    );
    assert!(text.contains("1 | 1 1 1 1"), "{text}");
    let value = json_of(&[&access[..], &more, &["--json"]].concat());
    assert_eq!(value["transfers"][0]["source"], 1);
    assert_eq!(value["transfers"][1]["target"], 1);
}

#[test]
fn large_volumes_stay_in_short_lines() {
    let layouts = ["--from", "(block, *) onto 8", "--to", "(*, block) onto 8"];
    let array = ["--array", "f64[10000000,1000000]"];
    let text = text_of(&[&["explain"][..], &layouts, &array].concat());
    let row = text.lines().find(|line| line.starts_with("        7 |"));
    let row = row.expect("a line of the table");
    assert!(row.contains("1.14 TiB") && row.len() <= 84, "{text}");
    assert!(text.contains("72.8 TiB (80000000000000 B)"), "{text}");
}
