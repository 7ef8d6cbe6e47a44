//! Calibrating and explaining as users run them: what is measured is kept and used, what is predicted stands
//! beside what was measured, and running an access changes nothing.

use std::process::Command;

use serde_json::Value;

use crate::{Service, pattern};

fn way<'a>(explained: &'a Value, word: &str) -> Option<&'a Value> {
    let all = explained["alternatives"].as_array().expect("a list");
    all.iter().find(|p| p["way"] == word)
}

fn with_matrix(layout: &str) -> (Service, Vec<u8>) {
    let service = Service::start();
    let bytes = pattern(512 * 512 * 8, 5);
    service.write("m", &bytes);
    let array = ["--array", "f64[512,512]", "--layout", layout];
    service.silent(&[&["put", "m", "/m"], &array[..]].concat());
    (service, bytes)
}

#[test]
fn explaining_an_access_shows_ways_servers_and_the_one_taken() {
    let (service, _) = with_matrix("(block, *) onto 3");
    let columns = ["explain", "/m", "--view", "(*, block) onto 4", "--json"];
    let explained = service.json_of(&columns);
    assert_eq!(explained["op"], "read");
    assert_eq!(explained["processes"], 4);
    assert_eq!(explained["calibration"], "defaults");
    assert_eq!(explained["chosen"], "direct");
    let seconds: Vec<f64> = explained["alternatives"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|p| p["seconds"].as_f64().expect("a number"))
        .collect();
    assert!(seconds.len() >= 8 && seconds.windows(2).all(|w| w[0] <= w[1]));
    let packed = way(&explained, "packed").expect("an alternative");
    assert_eq!(packed["bytes"], 512 * 512 * 8);
    assert_eq!(packed["messages"], 12, "4 processes, 3 servers");
    let servers = packed["servers"].as_array().expect("a list");
    let sum: u64 = servers.iter().filter_map(|s| s["bytes"].as_u64()).sum();
    assert_eq!((servers.len(), sum), (3, 512 * 512 * 8));
    let degree = packed["matching_degree"].as_f64().expect("a number");
    assert_eq!(explained["matching_degree"].as_f64(), Some(degree));
    assert!(degree < 1.0);
    // What the access plan gives each server: a part per process, of rows that are its own.
    let parts_of = |explained: &Value| -> Vec<(u64, u64)> {
        let parts = explained["parts"].as_array().expect("a list").iter();
        let number = |part: &Value, name: &str| part[name].as_u64().expect("a number");
        parts
            .map(|part| (number(part, "parts"), number(part, "bytes")))
            .collect()
    };
    let rows = |count: u64| count * 512 * 8;
    assert_eq!(
        parts_of(&explained),
        [(4, rows(171)), (4, rows(171)), (4, rows(170))]
    );
    // One process alone has nobody to regroup with.
    let one = service.json_of(&["explain", "/m", "--view", "(*, block) onto 4 [2]", "--json"]);
    assert_eq!(one["processes"], 1);
    assert!(way(&one, "two_phase").is_none());
    // The view that is the layout needs no packing.
    let same = service.json_of(&["explain", "/m", "--view", "(block, *) onto 3", "--json"]);
    assert!(way(&same, "message").is_some() && way(&same, "packed").is_none());
    assert_eq!(same["matching_degree"], 1.0);
    assert_eq!(
        parts_of(&same),
        [(1, rows(171)), (1, rows(171)), (1, rows(170))]
    );
    let text = service.text_of(&columns[..4]);
    for word in [
        "chosen",
        "direct",
        "packed",
        "two_phase",
        "busiest",
        "pario calibrate",
    ] {
        assert!(text.contains(word), "{word} in {text}");
    }
}

#[test]
fn analyzing_runs_the_access_and_changes_nothing() {
    let (service, bytes) = with_matrix("(block, *) onto 3");
    let read = [
        "explain",
        "/m",
        "--view",
        "(*, block) onto 2",
        "--analyze",
        "--json",
    ];
    let used = || service.json_of(&["profile", "/m", "--json"]);
    let before = used();
    let explained = service.json_of(&read);
    // Looking is no use of the file.
    assert_eq!(used(), before);
    let analyzed = &explained["analyzed"];
    assert_eq!(analyzed["bytes"], 512 * 512 * 8, "{explained}");
    let number = |name: &str| analyzed[name].as_f64().expect("a number");
    assert!(number("measured_s") > 0.0 && number("predicted_s") > 0.0);
    let write = [
        "explain",
        "/m",
        "--view",
        "(*, block) onto 2",
        "--op",
        "write",
    ];
    service.refused(
        &[&write[..], &["--analyze"]].concat(),
        &["--analyze-writes"],
    );
    let both = [&write[..], &["--analyze", "--analyze-writes", "--json"]].concat();
    let explained = service.json_of(&both);
    assert_eq!(explained["op"], "write");
    assert_eq!(explained["analyzed"]["bytes"], 512 * 512 * 8);
    assert!(service.bytes_of(&["cat", "/m"]) == bytes, "the same bytes");
    let text = service.text_of(&["explain", "/m", "--view", "(*, block) onto 2", "--analyze"]);
    assert!(
        text.contains("measured") && text.contains("predicted"),
        "{text}"
    );
    // As a team: what it did is said, and the bytes are the same.
    let team = [&read[..], &["--together"]].concat();
    let explained = service.json_of(&team);
    assert_eq!(explained["analyzed"]["bytes"], 512 * 512 * 8);
    let how = &explained["analyzed"]["collective"]["how"];
    assert!(how.is_string(), "{explained}");
    // Nothing to run.
    service.silent(&[
        "create",
        "/empty",
        "--array",
        "f64[4,4]",
        "--layout",
        "(block, *) onto 2",
    ]);
    let empty = [
        "explain",
        "/empty",
        "--view",
        "(*, block) onto 2",
        "--analyze",
    ];
    service.refused(&empty, &["no bytes"]);
    service.refused(
        &["explain", "/gone", "--view", "(*, block) onto 2"],
        &["/gone"],
    );
}

#[test]
fn what_is_explained_about_a_team_is_what_runs() {
    let (service, _) = with_matrix("(*, block) onto 3");
    let explained = |view: &str, more: &[&str], variables: &[(&str, &str)]| -> Value {
        let arguments = [
            "explain",
            "/m",
            "--view",
            view,
            "--together",
            "--analyze",
            "--json",
        ];
        let run = service
            .pario(&[&arguments[..], more].concat())
            .envs(variables.iter().copied())
            .output();
        let run = run.expect("pario starts");
        assert!(run.status.success(), "{run:?}");
        serde_json::from_slice(&run.stdout).expect("JSON")
    };
    let by_message = ("PARIO_DIRECT", "0");
    let write = ["--op", "write", "--analyze-writes"];
    let mut taken = Vec::new();
    for (view, forced) in [
        ("(*, cyclic(1)) onto 4", &["two_phase"][..]),
        (
            "(block, *) onto 4",
            &["independent", "ddio", "mb_ddio", "sieving"],
        ),
    ] {
        for more in [&[][..], &write] {
            let mut variables = vec![vec![], vec![by_message]];
            for word in forced {
                variables.push(vec![by_message, ("PARIO_STRATEGY", *word)]);
            }
            for variables in variables {
                let explained = explained(view, more, &variables);
                let way = &explained["analyzed"]["way"];
                assert_eq!(&explained["chosen"], way, "{view} {more:?} {variables:?}");
                taken.push(way.as_str().expect("a word").to_owned());
            }
        }
    }
    for way in ["direct", "two_phase", "ddio", "mb_ddio", "sieving"] {
        assert!(taken.iter().any(|taken| taken == way), "{way}: {taken:?}");
    }
}

#[test]
fn a_calibration_is_kept_used_and_shown() {
    let (service, _) = with_matrix("(block, *) onto 3");
    let nothing = service.text_of(&["calibrate", "--show"]);
    assert!(nothing.contains("nothing is kept"), "{nothing}");
    let measured = service.json_of(&["calibrate", "--if-stale", "--json"]);
    assert_eq!(measured["is_kept"], true, "{measured}");
    let pair = &measured["pairs"][0];
    assert_eq!(pair["is_near"], true);
    for name in ["near.round_trip_s", "near.byte_s"] {
        let value = pair["parameters"][name].as_f64().expect("a number");
        assert!((0.0..1.0).contains(&value), "{name} {value}");
    }
    let kept = service.json_of(&["calibrate", "--show", "--json"]);
    assert_eq!(kept["kept"].as_array().map(Vec::len), Some(1));
    assert_eq!(kept["kept"][0]["is_stale"], false);
    let taken = kept["kept"][0]["taken_ns"].clone();
    // Good as it is: not measured again.
    let again = service.json_of(&["calibrate", "--if-stale", "--json"]);
    assert_eq!(again["kept"][0]["taken_ns"], taken);
    let explained = service.json_of(&["explain", "/m", "--view", "(*, block) onto 2", "--json"]);
    assert_eq!(explained["calibration"], "good");
    // Another host has none.
    let elsewhere = service
        .pario(&["explain", "/m", "--view", "(*, block) onto 2", "--json"])
        .env("PARIO_HOST", "elsewhere")
        .output()
        .expect("pario starts");
    let elsewhere: Value = serde_json::from_slice(&elsewhere.stdout).expect("JSON");
    assert_eq!(elsewhere["calibration"], "defaults");
    // No file is left behind.
    assert_eq!(service.text_of(&["ls"]).trim(), "m");
}

/// The error to expect is stated: of lengths that were left out of fits, and of lengths and strides that no fit has seen.
/// Whether the second is about the first is a matter of the clock, and `make bench-check` says so.
#[test]
fn seed002_s88_a_calibration_of_this_host_predicts_copies_that_it_has_not_seen() {
    let output = Command::new(env!("CARGO_BIN_EXE_pario"))
        .args(["calibrate", "--local", "--json"])
        .output()
        .expect("pario starts");
    assert!(output.status.success(), "{output:?}");
    let measured: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(measured["is_kept"], false);
    let fits = measured["fits"].as_array().expect("a list");
    let error = |name: &str| {
        let fit = fits.iter().find(|f| f["name"] == name).expect("a part");
        assert!(fit["count"].as_u64() >= Some(12), "{fit}");
        let stated = fit["left_out_90"].as_f64().or(fit["error_90"].as_f64());
        stated.expect("a number")
    };
    for name in ["pack", "unpack", "direct", "unseen"] {
        let error = error(name);
        assert!(error.is_finite() && error > 0.0, "{name}: {error}");
    }
    // The worst error is that of the cells, which are all there.
    let cells = |name: &str| {
        let fit = fits.iter().find(|f| f["name"] == name).expect("a part");
        fit["cells"].as_array().expect("cells").clone()
    };
    for fit in fits {
        let number = |of: &Value, name: &str| of[name].as_f64().expect("a number");
        let errors = fit["cells"].as_array().expect("cells").iter().map(|cell| {
            let (measured, predicted) = (number(cell, "measured_s"), number(cell, "predicted_s"));
            (predicted - measured).abs() / measured
        });
        let worst = errors.fold(0.0, f64::max);
        assert!((worst - number(fit, "max_error")).abs() < 1e-6, "{fit}");
    }
    // Unseen are lengths and strides that are in no fit.
    for unseen in cells("unseen") {
        let what = unseen["what"].as_str().expect("a name");
        let fitted = cells(what.split('/').next().expect("a part"));
        let is_in = |cell: &Value| {
            cell["what"]
                .as_str()
                .is_some_and(|w| w.starts_with(&format!("{what}/")))
        };
        assert!(!fitted.iter().any(is_in), "{what} was fitted");
    }
    // What no fit has seen is judged by parameters that were fitted to something else.
    let fit = |name: &str| fits.iter().find(|f| f["name"] == name).expect("a part");
    assert!(fit("unseen")["left_out_90"].is_null(), "{}", fit("unseen"));
    for name in ["pack", "unpack", "direct"] {
        let left_out = &fit(name)["left_out_90"];
        assert!(left_out.is_number(), "{}", fit(name));
        // Of other pairs than the fit's own: times of a clock never agree to the last digit.
        assert_ne!(*left_out, fit(name)["error_90"], "{}", fit(name));
    }
}
