//! Path names on the command line and in texts.
//!
//! Names are any UTF-8, and a terminal obeys some of it. In texts for people everything that is not
//! printed as it stands is written as `\n` or `\u{1b}`, and the backslash itself as `\\`; JSON has
//! names exactly.

/// A name or an error as a terminal may show it.
pub fn shown(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => safe.push_str("\\\\"),
            '\n' => safe.push_str("\\n"),
            '\r' => safe.push_str("\\r"),
            '\t' => safe.push_str("\\t"),
            c if c.is_control() || changes_direction(c) => safe.extend(c.escape_unicode()),
            c => safe.push(c),
        }
    }
    safe
}

/// Characters that make what follows appear elsewhere, or a line of its own.
fn changes_direction(c: char) -> bool {
    matches!(
        c,
        '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}'
    )
}

/// From the root on.
pub fn absolute(path: &str) -> String {
    match path.starts_with('/') {
        true => path.to_owned(),
        false => format!("/{path}"),
    }
}

/// A name below a directory.
pub fn join(directory: &str, name: &str) -> String {
    format!("{}/{name}", absolute(directory).trim_end_matches('/'))
}

/// The last name of a path; nothing for the root, and where the path goes up at its end.
pub fn last(path: &str) -> Option<&str> {
    let name = path
        .rsplit('/')
        .find(|part| !part.is_empty() && *part != ".");
    name.filter(|name| *name != "..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_escaped() {
        assert_eq!(shown("two words 🦀"), "two words 🦀");
        assert_eq!(shown("a\nb\tc\\"), "a\\nb\\tc\\\\");
        assert_eq!(shown("\u{1b}[31m"), "\\u{1b}[31m");
        assert_eq!(shown("x\u{202e}y\u{85}"), "x\\u{202e}y\\u{85}");
    }

    #[test]
    fn paths_are_joined_and_split() {
        assert_eq!(join("/", "a"), "/a");
        assert_eq!(join("d/", "a"), "/d/a");
        assert_eq!(last("/a/b/"), Some("b"));
        assert_eq!(last("/a/."), Some("a"));
        assert_eq!(last("a"), Some("a"));
        assert_eq!((last("/"), last("."), last("/a/..")), (None, None, None));
    }
}
