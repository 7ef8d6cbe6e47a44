//! What users get wrong: the exit code, and a line that says what and where. One case at least for
//! every way to be wrong; no input may show a panic.

use crate::run;

/// Runs, and returns standard error after checking that it is fit for a user: no panic, no backtrace,
/// one line, or a line and the text with a caret below.
#[track_caller]
fn refused(arguments: &[&str], code: i32) -> String {
    let output = run(arguments);
    let errors = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {errors}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{arguments:?}");
    for word in [
        "panick",
        "RUST_BACKTRACE",
        "stack backtrace",
        "bug in pario",
    ] {
        assert!(!errors.contains(word), "{arguments:?}: {errors}");
    }
    if code == 1 {
        let lines: Vec<&str> = errors.lines().collect();
        assert!(lines[0].starts_with("pario: "), "{arguments:?}: {errors}");
        match lines[..] {
            [_] => {}
            [_, text, caret] => {
                assert_eq!(caret.trim(), "^", "{arguments:?}: {errors}");
                assert!(caret.len() <= text.len() + 1, "{arguments:?}: {errors}");
            }
            _ => panic!("{arguments:?}: neither one line nor a line with a caret: {errors}"),
        }
    }
    errors
}

/// A layout on an array is refused with words, and at a character if one is given (from 1).
#[track_caller]
fn layout_refused(layout: &str, array: &str, words: &[&str], character: Option<usize>) {
    let errors = refused(&["layout", layout, "--array", array], 1);
    for word in words {
        assert!(
            errors.contains(word),
            "{layout} on {array}: no '{word}' in: {errors}"
        );
    }
    if let Some(character) = character {
        assert!(
            errors.contains(&format!("(character {character})")),
            "{layout}: {errors}"
        );
        let caret = errors.lines().nth(2).expect("a caret").find('^');
        assert_eq!(caret, Some(character + 1), "{layout}: {errors}");
    }
}

#[test]
fn overlaps_and_gaps_name_elements_and_bytes() {
    layout_refused(
        "falls{(0,3); (2,5)}",
        "u8[6]",
        &["elements 0 and 1", "byte 2"],
        None,
    );
    layout_refused(
        "falls{(0,3); (6,7)}",
        "u8[8]",
        &["no element owns byte 4"],
        None,
    );
    layout_refused(
        "falls{(1,3); (4,7)}",
        "u8[8]",
        &["no element owns byte 0", "add --view"],
        None,
    );
    layout_refused(
        "falls{(0,3,8,2); (4,8)}",
        "u8[12]",
        &["both own byte 8"],
        None,
    );
}

#[test]
fn malformed_sets_are_refused_at_the_character() {
    layout_refused("falls{(0,3,0,2)}", "u8[8]", &["stride 0"], Some(7));
    layout_refused("falls{(5,3)}", "u8[8]", &["before it starts"], Some(7));
    layout_refused("falls{(-1,3)}", "u8[8]", &["-1"], Some(7));
    layout_refused("falls{(0,3,8,0)}", "u8[8]", &["0 blocks"], Some(7));
    layout_refused("falls{(0,3,8,2,{(2,9)})}", "u8[16]", &[], None);
    layout_refused(
        "falls{(0,3)",
        "u8[8]",
        &["expected", "found the end"],
        Some(12),
    );
    layout_refused("falls{(0,3}", "u8[8]", &["expected"], Some(11));
    layout_refused("falls{}", "u8[8]", &[], None);
}

#[test]
fn numbers_that_do_not_fit_are_refused() {
    let huge = "99999999999999999999";
    layout_refused(
        &format!("(block, *) onto {huge}"),
        "u8[8,8]",
        &["2^63"],
        Some(17),
    );
    layout_refused(
        "(block, *) onto 9000000000000000000",
        "u8[8,8]",
        &["too many"],
        None,
    );
    layout_refused(
        "striped(9223372036854775806) over 2",
        "u8[8]",
        &["2^63"],
        None,
    );
    layout_refused(
        "(block) onto 2",
        &format!("u8[{huge}]"),
        &["--array", "2^63"],
        Some(4),
    );
    layout_refused(
        "(block, *) onto 2",
        "u8[4294967296,4294967296]",
        &["--array", "2^63"],
        None,
    );
    layout_refused("falls{(0,3,4611686018427387904,3)}", "u8[8]", &[], None);
    layout_refused(
        "(block) onto 2",
        "u8[-5]",
        &["--array", "negative"],
        Some(4),
    );
    layout_refused("(block) onto -2", "u8[5]", &["negative"], Some(14));
    layout_refused("striped(0) over 2", "u8[5]", &["0"], None);
    layout_refused("(block) onto 0", "u8[5]", &["0 processors"], None);
    layout_refused("(cyclic(0)) onto 2", "u8[5]", &["0"], None);
    layout_refused("(block) onto 2", "u8[0]", &["no bytes"], None);
}

#[test]
fn advice_can_be_followed() {
    layout_refused("(cyclic(-1)) onto 2", "u8[5]", &["at least 1"], Some(9));
    layout_refused("chunks(-2,2)", "u8[5,5]", &["at least 1"], Some(8));
    layout_refused("chunks([2,-3])", "u8[5]", &["at least 1"], Some(11));
    layout_refused("(block) onto -4", "u8[5]", &["at least 1"], Some(14));
    layout_refused("striped(-1) over 2", "u8[5]", &["at least 1"], Some(9));
    layout_refused("falls{(0,3)} period -8", "u8[5]", &["4 or more"], Some(21));
    layout_refused(
        "whole",
        "bytes(0)[6,8]",
        &["entries of at least 1 byte"],
        None,
    );
    layout_refused("slice[8,8]", "u8[8,8]", &["reaches to index 8,"], None);
    let words = ["1 length for an array of 2 dimensions"];
    layout_refused("chunks(2)", "u8[8,8]", &words, None);
    let words = ["2 for an array of 1 dimension;"];
    layout_refused("(block, *) onto 2", "u8[8]", &words, None);
}

#[test]
fn unbalanced_and_unknown_notation_is_refused_at_the_character() {
    layout_refused(
        "(block, *",
        "u8[8,8]",
        &["expected", "found the end"],
        Some(10),
    );
    layout_refused(
        "(block, *) onto",
        "u8[8,8]",
        &["expected", "found the end"],
        Some(16),
    );
    layout_refused(
        "block, *) onto 4",
        "u8[8,8]",
        &["expected", "'block'"],
        Some(1),
    );
    layout_refused(
        "(blok, *) onto 4",
        "u8[8,8]",
        &["expected a distribution", "'blok'"],
        Some(2),
    );
    layout_refused("(block, *) over 4", "u8[8,8]", &["'over'"], Some(12));
    layout_refused("(block, *) onto 4 extra", "u8[8,8]", &["'extra'"], Some(19));
    layout_refused("striped(1MB) over 4", "u8[8]", &["MiB", "'MB'"], None);
    layout_refused("", "u8[8]", &["expected"], None);
    layout_refused(
        "(block, *) onto 4",
        "f65[8,8]",
        &["--array", "element type", "'f65'"],
        Some(1),
    );
    layout_refused(
        "(block, *) onto 4",
        "f64[8,8",
        &["--array", "expected"],
        Some(8),
    );
    layout_refused(
        "(block, *) onto 4",
        "f64",
        &["--array", "expected '['"],
        Some(4),
    );
}

#[test]
fn layouts_that_do_not_suit_the_array_are_refused() {
    layout_refused("(block) onto 4", "u8[8,8]", &["2 dimensions"], None);
    layout_refused("(block, block) onto 4", "u8[8,8]", &["grid", "2"], None);
    layout_refused(
        "(block(1), *) onto 4",
        "u8[8,8]",
        &["BLOCK(1)", "must be 2 or more"],
        None,
    );
    layout_refused(
        "(gen_block(1,2), *) onto 2",
        "u8[8,8]",
        &["add up to"],
        None,
    );
    layout_refused("(indirect(0,1,5), *) onto 2", "u8[3,8]", &[], None);
    layout_refused("chunks(2,2,2)", "u8[8,8]", &[], None);
    layout_refused("slice[0:9, 0:2]", "u8[8,8]", &[], None);
    layout_refused("(block, *) onto 4 [7]", "u8[8,8]", &["7", "0 to 3"], None);
}

#[test]
fn elements_sizes_and_files_that_do_not_exist_are_named() {
    let errors = refused(
        &[
            "layout",
            "(block) onto 4",
            "--array",
            "u8[8]",
            "--element",
            "4",
        ],
        1,
    );
    assert!(
        errors.contains("no element 4") && errors.contains("0 to 3"),
        "{errors}"
    );
    let errors = refused(&["layout", "striped(1) over 2", "--bytes", "many"], 1);
    assert!(errors.contains("--bytes: 'many' is no size"), "{errors}");
    let errors = refused(
        &[
            "layout",
            "(block) onto 2",
            "--array",
            "u8[8]",
            "--svg",
            "/no/such/folder/a.svg",
        ],
        1,
    );
    assert!(errors.contains("/no/such/folder/a.svg"), "{errors}");
}

#[test]
fn negative_numbers_are_refused_by_name() {
    let layout = ["layout", "(block) onto 4", "--array", "u8[8]"];
    let errors = refused(&[&layout[..], &["--element", "-1"]].concat(), 1);
    assert!(errors.starts_with("pario: --element: '-1'"), "{errors}");
    let errors = refused(&["layout", "striped(1) over 2", "--bytes", "-5"], 1);
    assert!(errors.starts_with("pario: --bytes: '-5'"), "{errors}");
    let explain = ["explain", "--from", "whole", "--to", "whole"];
    let more = ["--array", "u8[8]", "--transfers", "-1"];
    let errors = refused(&[&explain[..], &more].concat(), 1);
    assert!(errors.starts_with("pario: --transfers: '-1'"), "{errors}");
}

#[test]
fn too_many_elements_are_refused_before_they_are_built() {
    let advice = "pick one with a trailing [k] or --element K";
    for (layout, array) in [
        ("chunks(1,1)", "u8[1000000000,1000000000]"),
        ("chunks(1,1)", "u8[4000,4000]"),
        ("striped(1) over 1048577", "u8[8]"),
    ] {
        layout_refused(layout, array, &["elements, too many", advice], None);
    }
}

#[test]
fn long_layouts_are_cut_in_errors() {
    let layout = format!("(gen_block({}1), *) onto 30001", "1,".repeat(30000));
    let errors = refused(&["layout", &layout, "--array", "u8[8,8]"], 1);
    assert!(errors.len() < 400 && errors.contains(" … "), "{errors}");
}

#[test]
fn layouts_need_an_array_and_files_a_view() {
    let errors = refused(&["layout", "(block, *) onto 4"], 1);
    let words = [
        "'(block, *) onto 4' is a layout",
        "--array",
        "/results/matrix",
    ];
    assert!(words.iter().all(|word| errors.contains(word)), "{errors}");
    let errors = refused(&["explain", "/data/matrix"], 1);
    assert!(errors.contains("--view"), "{errors}");
    let errors = refused(&["layout", "/data/matrix", "--view"], 1);
    assert!(errors.contains("--view"), "{errors}");
}

#[test]
fn stored_files_need_a_service() {
    let none = "dir:/no/such/directory";
    for arguments in [
        &["layout", "/data/matrix"][..],
        &["explain", "/data/matrix", "--view", "(block, *) onto 4"],
        &["ls"],
        &["cat", "/data/matrix"],
    ] {
        let errors = refused(&[&["--url", none], arguments].concat(), 1);
        assert!(
            errors.contains("nothing is stored in /no/such/directory"),
            "{errors}"
        );
        assert!(errors.contains("pario up"), "{errors}");
        let errors = refused(&[arguments, &["--url", "http://x"]].concat(), 1);
        assert!(
            errors.contains("--url: 'http://x': is not unix:PATH"),
            "{errors}"
        );
    }
}

#[test]
fn explain_names_the_side_that_is_wrong() {
    let explain = |from: &str, to: &str| {
        refused(
            &["explain", "--from", from, "--to", to, "--array", "u8[8,8]"],
            1,
        )
    };
    let good = "(block, *) onto 4";
    assert!(explain("(blck, *) onto 4", good).starts_with("pario: --from: expected"));
    assert!(explain(good, "(block, *) on 4").starts_with("pario: --to: "));
    assert!(explain(good, "slice[0:2, 0:2]").contains("--to: `slice[:2, :2]` is a view"));
    let errors = refused(&["explain", "--from", good, "--to", good], 1);
    assert!(errors.contains("--array"), "{errors}");
}

#[test]
fn wrong_usage_is_code_2() {
    for arguments in [
        &[][..],
        &["no-such-command"],
        &["layout"],
        &["layout", "(block) onto 2", "--array"],
        &[
            "layout",
            "(block) onto 2",
            "--array",
            "u8[8]",
            "--bytes",
            "8",
        ],
        &["layout", "(block) onto 2", "--array", "u8[8]", "--nonsense"],
        &["explain"],
        &["explain", "--from", "(block) onto 2", "--array", "u8[8]"],
        &[
            "explain",
            "--from",
            "(block) onto 2",
            "--view",
            "whole",
            "--to",
            "whole",
            "--array",
            "u8[8]",
        ],
    ] {
        let errors = refused(arguments, 2);
        let helps = errors.contains("Usage:") || errors.contains("--help");
        assert!(helps, "{arguments:?}: {errors}");
    }
}

#[test]
fn no_text_makes_the_program_panic() {
    let pieces = [
        "(",
        ")",
        "{",
        "}",
        "[",
        "]",
        ",",
        ";",
        ":",
        "*",
        "-",
        "0",
        "1",
        "9223372036854775807",
        "18446744073709551616",
        "block",
        "cyclic",
        "onto",
        "falls",
        "slice",
        "chunks",
        "striped",
        "over",
        "from",
        "period",
        "align",
        "template",
        "blocks",
        "whole",
        "x",
        " ",
        "é",
        "\u{0}",
    ];
    // A fixed sequence of short and long nonsense.
    let mut random = random::Random::new(12345);
    let mut next = |limit: usize| random.index(limit);
    for _ in 0..60 {
        let length = 1 + next(12);
        let text: String = (0..length)
            .map(|_| pieces[next(pieces.len() - 1)])
            .collect();
        let output = run(&["layout", &format!(" {text}"), "--array", "u8[4,4]"]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            matches!(output.status.code(), Some(0 | 1)),
            "{text}: {errors}"
        );
        assert!(!errors.contains("bug in pario"), "{text}: {errors}");
    }
}
