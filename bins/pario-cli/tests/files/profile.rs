//! `pario profile` and `pario advise` on a stored file: what is shown, what is exported, what is refused. What the
//! numbers mean is tested where they are made.

use super::*;

#[test]
fn profiles_are_shown_exported_imported_and_cleared() {
    let service = Service::start();
    service.silent(&[
        "create",
        "/m",
        "--array",
        "u8[64,64]",
        "--layout",
        "(block, *) onto 2",
    ]);
    let empty = service.text_of(&["profile", "/m"]);
    assert!(empty.contains("nothing was observed"), "{empty}");
    let source = service.write("source", &[7; 4096]);
    service.text_of(&["put", &source, "/m", "--quiet"]);
    service.bytes_of(&["cat", "/m"]);
    let facts = service.json_of(&["profile", "/m", "--json"]);
    assert_eq!(facts["read"]["bytes"], 4096, "{facts}");
    assert_eq!(facts["written"]["bytes"], 4096, "{facts}");
    assert_eq!(facts["array"], "u8[64,64]");
    let entry = &facts["entries"][0];
    assert_eq!(entry["application"], "pario");
    let text = service.text_of(&["profile", "/m"]);
    assert!(
        text.contains("used by pario (1 process)") && text.contains("exclusive"),
        "{text}"
    );
    // A template for a file of the same shape, and for one of another.
    let template = service.local_text("m.template");
    service.text_of(&["profile", "/m", "--export", &template]);
    service.silent(&[
        "create",
        "/n",
        "--array",
        "u8[64,64]",
        "--layout",
        "striped(512) over 3",
    ]);
    service.text_of(&["profile", "/n", "--import", &template]);
    let other = service.json_of(&["profile", "/n", "--json"]);
    assert_eq!(other["read"], facts["read"]);
    let svg = service.local_text("p.svg");
    service.text_of(&["profile", "/n", "--svg", &svg]);
    assert!(
        String::from_utf8(service.read("p.svg"))
            .unwrap()
            .starts_with("<svg")
    );
    // Advice is a list, best first.
    let advice = service.json_of(&["advise", "/n", "--json"]);
    let list = advice.as_array().expect("a list");
    assert!(list.len() > 3);
    for one in list {
        assert!(
            one["layout"].is_string() && one["predicted_gain"].is_number(),
            "{one}"
        );
        assert!(
            one["move_cost_s"].as_f64().is_some_and(|s| s >= 0.0),
            "{one}"
        );
    }
    let said = service.text_of(&["advise", "/n", "--apply", "--force"]);
    assert!(
        said.contains("moved into") || said.contains("nothing was moved"),
        "{said}"
    );
    service.text_of(&["profile", "/m", "--clear"]);
    assert!(
        service
            .text_of(&["profile", "/m"])
            .contains("nothing was observed")
    );
}

#[test]
fn what_makes_no_sense_is_refused_with_a_reason() {
    let service = Service::start();
    service.silent(&["create", "/m", "--array", "u8[8,8]", "--layout", "whole"]);
    let refused = |arguments: &[&str]| {
        let output = service.pario(arguments).output().expect("pario starts");
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        String::from_utf8(output.stderr).expect("text")
    };
    assert!(refused(&["advise", "/m"]).contains("nothing was observed"));
    assert!(refused(&["profile", "/m", "--export", "x"]).contains("nothing was observed"));
    assert!(refused(&["profile", "/"]).contains("directory"));
    let odd = service.write("odd", b"no template");
    assert!(refused(&["profile", "/m", "--import", &odd]).contains("no template"));
    assert!(refused(&["profile", "/nothing"]).contains("/nothing"));
}
