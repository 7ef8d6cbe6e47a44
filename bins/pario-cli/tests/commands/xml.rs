//! A small reader of XML, strict about what pictures use: nested elements, quoted attributes, escaped
//! text. No comments, no declarations.

/// Names of all elements in document order; panics where the text is not well formed.
#[track_caller]
pub(crate) fn elements_of(text: &str) -> Vec<String> {
    let (mut names, mut open) = (Vec::new(), Vec::new());
    let mut rest = text.trim();
    while !rest.is_empty() {
        let Some(start) = rest.find('<') else {
            panic!("text after the last element: {rest}");
        };
        check_text(&rest[..start]);
        let end = rest.find('>').expect("every tag ends");
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(
                open.pop(),
                Some(name.to_owned()),
                "the innermost element ends first"
            );
        } else {
            let (tag, is_empty) = match tag.strip_suffix('/') {
                Some(tag) => (tag, true),
                None => (tag, false),
            };
            let name = tag.split_whitespace().next().expect("a name").to_owned();
            check_attributes(&tag[name.len()..]);
            names.push(name.clone());
            if !is_empty {
                open.push(name);
            }
        }
        assert!(
            !open.is_empty() || rest.trim().is_empty(),
            "one root element"
        );
    }
    assert_eq!(open, Vec::<String>::new(), "every element ends");
    names
}

fn check_text(text: &str) {
    for (at, _) in text.match_indices('&') {
        let known = ["&amp;", "&lt;", "&gt;", "&quot;"];
        assert!(
            known.iter().any(|entity| text[at..].starts_with(entity)),
            "a bare & in {text}"
        );
    }
}

fn check_attributes(text: &str) {
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (name, value) = rest.split_once("=\"").expect("name=\"value\"");
        assert!(
            name.chars()
                .all(|c| c.is_ascii_alphanumeric() || "-:".contains(c)),
            "{name}"
        );
        let (value, after) = value.split_once('"').expect("a closing quote");
        check_text(value);
        rest = after.trim_start();
    }
}

#[test]
fn what_is_not_well_formed_is_found() {
    assert_eq!(
        elements_of("<a x=\"1\"><b/>text &amp; more</a>"),
        ["a", "b"]
    );
    for bad in [
        "<a><b></a></b>",
        "<a>",
        "<a x=1/>",
        "<a>&</a>",
        "<a/><b/>",
        "<a/>tail",
    ] {
        assert!(
            std::panic::catch_unwind(|| elements_of(bad)).is_err(),
            "{bad}"
        );
    }
}
