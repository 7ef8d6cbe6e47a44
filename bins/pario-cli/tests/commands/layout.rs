//! `pario layout`: pictures of small layouts as they are printed, JSON and SVG. Expected texts stand
//! in full, so that a reader sees what users see.

use crate::{json_of, same_text, scratch_file, text_of, xml};

#[test]
fn rows_are_drawn_with_their_table() {
    same_text(
        &text_of(&["layout", "(block, *) onto 4", "--array", "f64[6,8]"]),
        "
(block, *) onto 4 on f64[6,8]: 384 B in 4 elements

      0 1 2 3 4 5 6 7
  0 | 0 0 0 0 0 0 0 0
  1 | 0 0 0 0 0 0 0 0
  2 | 1 1 1 1 1 1 1 1
  3 | 1 1 1 1 1 1 1 1
  4 | 2 2 2 2 2 2 2 2
  5 | 2 2 2 2 2 2 2 2

  element        bytes  share      runs  falls
        0          128  33.3%         1  {(0,127,-,1)}
        1          128  33.3%         1  {(128,255,-,1)}
        2          128  33.3%         1  {(256,383,-,1)}
        3            0   0.0%         0  {}
",
    );
}

#[test]
fn fortran_order_changes_the_bytes_and_not_the_picture() {
    let c = text_of(&["layout", "(block, cyclic) onto 2x2", "--array", "u8[4,4]"]);
    let fortran = text_of(&[
        "layout",
        "(block, cyclic) onto 2x2",
        "--array",
        "u8[4,4]:fortran",
    ]);
    let picture = |text: &str| text.lines().skip(2).take(5).collect::<Vec<_>>().join("\n");
    assert_eq!(picture(&c), picture(&fortran));
    same_text(
        &picture(&c),
        "
      0 1 2 3
  0 | 0 1 0 1
  1 | 0 1 0 1
  2 | 2 3 2 3
  3 | 2 3 2 3
",
    );
    assert!(c.contains("{(0,0,2,4)}"), "{c}");
    assert!(fortran.contains("{(0,1,8,2)}"), "{fortran}");
}

#[test]
fn large_arrays_are_drawn_in_bands() {
    let text = text_of(&["layout", "(block, *) onto 4", "--array", "f64[4096,4096]"]);
    same_text(
        &text.lines().skip(2).take(6).collect::<Vec<_>>().join("\n"),
        "
              0
     0-1023 | 0
  1024-2047 | 1
  2048-3071 | 2
  3072-4095 | 3
  (neighbours with equal owners are drawn once; columns are labelled by their first index)
",
    );
}

#[test]
fn what_does_not_fit_is_elided() {
    let text = text_of(&["layout", "(cyclic, *) onto 3", "--array", "u8[1000,200]"]);
    assert!(text.lines().any(|line| line.trim() == "… | …"), "{text}");
    assert!(text.lines().any(|line| line.trim() == "999 | 0"), "{text}");
    assert!(
        text.lines().all(|line| line.chars().count() <= 100),
        "{text}"
    );
}

#[test]
fn more_dimensions_are_drawn_as_slices() {
    let text = text_of(&[
        "layout",
        "(block, *, block) onto 2x2",
        "--array",
        "u8[6,2,4]",
    ]);
    same_text(
        &text.lines().skip(2).take(17).collect::<Vec<_>>().join("\n"),
        "
  [0,*,*]
      0 1 2 3
  0 | 0 0 1 1
  1 | 0 0 1 1
  [1,*,*]
      0 1 2 3
  0 | 0 0 1 1
  1 | 0 0 1 1
  [2,*,*]
      0 1 2 3
  0 | 0 0 1 1
  1 | 0 0 1 1
  [3,*,*]
      0 1 2 3
  0 | 2 2 3 3
  1 | 2 2 3 3
  … 2 more slices
",
    );
}

#[test]
fn plain_files_are_drawn_as_a_bar() {
    let text = text_of(&[
        "layout",
        "striped(64KiB) over 4 from 2",
        "--bytes",
        "512KiB",
    ]);
    same_text(
        &text.lines().take(5).collect::<Vec<_>>().join("\n"),
        "
striped(64KiB) over 4 from 2 on a file of 512 KiB in 4 elements, repeating every 256 KiB

  [2222222233333333000000001111111122222222333333330000000011111111]
  0                                                           524288
  (one character stands for about 8192 bytes)
",
    );
}

#[test]
fn views_may_have_holes() {
    let text = text_of(&["layout", "slice[0:4:2, 1:3]", "--array", "u8[4,4]"]);
    same_text(
        &text.lines().skip(2).take(6).collect::<Vec<_>>().join("\n"),
        "
      0 1 2 3
  0 | . 0 0 .
  1 | . . . .
  2 | . 0 0 .
  3 | . . . .
  . no element
",
    );
    let text = text_of(&[
        "layout",
        "falls{(0,3,8,2,{(0,0,2,2)})}",
        "--bytes",
        "12",
        "--view",
    ]);
    assert!(text.contains("[0.0.....0.0.]"), "{text}");
}

#[test]
fn one_element_is_shown_alone() {
    let text = text_of(&[
        "layout",
        "(*, block) onto 4",
        "--array",
        "f64[2,8]",
        "--element",
        "2",
    ]);
    same_text(
        &text,
        "
(*, block) onto 4 on f64[2,8]: 128 B in 4 elements

      0 1 2 3 4 5 6 7
  0 | . . . . 2 2 . .
  1 | . . . . 2 2 . .
  . other elements, or none

  element        bytes  share      runs  falls
        2           32  25.0%         2  {(32,47,64,2)}
",
    );
}

#[test]
fn json_has_every_element() {
    let value = json_of(&[
        "layout",
        "(*, cyclic(3)) onto 20",
        "--array",
        "i32[5,100]",
        "--json",
    ]);
    assert_eq!(value["layout"], "(*, cyclic(3)) onto 20");
    assert_eq!(value["array"], "i32[5,100]");
    assert_eq!(value["period"], 2000);
    let elements = value["elements"].as_array().expect("a list");
    assert_eq!(elements.len(), 20);
    let bytes: u64 = elements
        .iter()
        .map(|e| e["bytes"].as_u64().expect("a number"))
        .sum();
    assert_eq!(bytes, 2000);
    for (number, element) in elements.iter().enumerate() {
        assert_eq!(element["element"], number);
        let falls = element["falls"].as_str().expect("text");
        let set: falls::FallsSet = falls.parse().expect("the notation of the algebra");
        assert_eq!(element["bytes"], set.size());
        assert_eq!(element["runs"], set.run_count());
        assert_eq!(element["nodes"], set.node_count());
    }
}

#[test]
fn pictures_are_well_formed_and_name_the_layout() {
    for (name, layout, space) in [
        ("small", "(block, block) onto 2x2", ["--array", "f64[6,8]"]),
        (
            "large",
            "(block, cyclic(64)) onto 4x2",
            ["--array", "f64[4096,4096]"],
        ),
        (
            "deep",
            "(*, block, *, *) onto 3",
            ["--array", "u8[3,5,7,9]"],
        ),
        ("line", "(cyclic(3)) onto 40", ["--array", "u8[100000]"]),
        ("file", "striped(1000) over 12", ["--bytes", "1MiB"]),
    ] {
        let path = scratch_file(&format!("layout-{name}.svg"));
        let file = path.to_str().expect("a readable path");
        text_of(&["layout", layout, space[0], space[1], "--svg", file]);
        let svg = std::fs::read_to_string(&path).expect("the picture was written");
        let elements = xml::elements_of(&svg);
        assert_eq!(elements[0], "svg");
        assert!(
            elements.iter().filter(|name| *name == "rect").count() > 3,
            "{name}"
        );
        assert!(svg.contains(&format!("<title>{layout} on ")), "{name}");
    }
}

#[test]
fn one_element_of_very_many_is_computed_alone() {
    let huge = ["--array", "u8[1000000000,1000000000]", "--json"];
    for more in [
        &["layout", "chunks(1,1)", "--element", "77"][..],
        &["layout", "chunks(1,1) [77]"],
    ] {
        let value = json_of(&[more, &huge].concat());
        assert_eq!(value["elements"][0]["element"], 77);
        assert_eq!(value["elements"][0]["falls"], "{(77,77,-,1)}");
        assert_eq!(value["elements"].as_array().map(Vec::len), Some(1));
    }
}

#[test]
fn a_picked_element_keeps_its_number() {
    let text = text_of(&["layout", "(block, *) onto 4 [1]", "--array", "u8[4,4]"]);
    same_text(
        &text,
        "
(block, *) onto 4[1] on u8[4,4]: 16 B in 1 element

      0 1 2 3
  0 | . . . .
  1 | 1 1 1 1
  2 | . . . .
  3 | . . . .
  . other elements, or none

  element        bytes  share      runs  falls
        1            4  25.0%         1  {(4,7,-,1)}
",
    );
}

#[test]
fn a_single_element_with_holes_is_a_view() {
    let falls = "falls{(0,3,8,2,{(0,0,2,2)})}";
    let text = text_of(&["layout", falls, "--bytes", "12"]);
    assert!(text.contains("[0.0.....0.0.]"), "{text}");
    let text = text_of(&["layout", "strided(0, 8: 4x32)", "--array", "u8[8,16]"]);
    assert!(text.contains("0  0  0  ."), "{text}");
}

#[test]
fn many_views_are_drawn_at_once() {
    let text = text_of(&["layout", "chunks(1,1)", "--array", "u8[300,300]", "--view"]);
    assert!(text.contains("in 90000 elements"), "{text}");
    let replicated = "align(i, *) template(8, 4) (block, block) onto 2x2";
    let text = text_of(&["layout", replicated, "--array", "u8[8]", "--view"]);
    assert!(text.contains("+ several elements"), "{text}");
}

#[test]
fn large_numbers_keep_their_columns() {
    let array = "f64[1000000,1000000]";
    let text = text_of(&["layout", "(block, *) onto 2", "--array", array]);
    assert!(text.contains("7.28 TiB (8000000000000 B)"), "{text}");
    let column = |line: &str, word: &str| line.find(word).map(|at| at + word.len());
    let lines: Vec<&str> = text.lines().collect();
    let head = lines
        .iter()
        .position(|l| l.contains("element "))
        .expect("a table");
    assert_eq!(
        column(lines[head], "bytes"),
        column(lines[head + 1], "4000000000000"),
        "{text}"
    );
}

#[test]
fn a_small_element_is_found_in_a_large_array() {
    let array = "u8[1000000,1000000]";
    let text = text_of(&["layout", "chunks(1,1) [5000077]", "--array", array]);
    assert!(
        text.contains("       5 |       . 5000077       ."),
        "{text}"
    );
    let array = "u8[1000000,1000000]:fortran";
    let text = text_of(&[
        "layout",
        "chunks(1,1)",
        "--element",
        "5000077",
        "--array",
        array,
    ]);
    assert!(
        text.contains(" 5000077 ") && !text.contains("+ in part"),
        "{text}"
    );
}
