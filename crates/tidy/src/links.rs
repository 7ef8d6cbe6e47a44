//! Relative links in Markdown lead to a file or folder of the repository.
//!
//! Looked at: inline links and images `[text](target)`, and reference definitions `[name]: target`.
//! Code, fenced or inline, is not; nor are addresses with a scheme, nor links within a page.

use crate::{Complaint, File};

/// Complaints about links of `file` whose target `exists` denies. The argument of `exists` is a path
/// relative to the root of the repository.
pub fn check(file: &File, exists: impl Fn(&str) -> bool) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for (line, target) in targets(&file.text) {
        let path = target.split(['#', '?']).next().unwrap_or("");
        if path.is_empty() || has_scheme(&target) {
            continue;
        }
        match resolve(&file.path, path) {
            None => complaints.push(Complaint::at(
                &file.path,
                line,
                format!("link `{target}` leaves the repository"),
            )),
            Some(resolved) if !exists(&resolved) => complaints.push(Complaint::at(
                &file.path,
                line,
                format!("link `{target}` leads to `{resolved}`, which does not exist"),
            )),
            Some(_) => {}
        }
    }
    complaints
}

/// All link targets of a page with their lines.
fn targets(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut fence: Option<&str> = None;
    for (index, line) in text.lines().enumerate() {
        let start = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|m| start.starts_with(m));
        match (fence, mark) {
            (None, Some(m)) => fence = Some(m),
            (Some(open), Some(m)) if open == m => fence = None,
            (None, None) => {
                let prose = without_inline_code(line);
                found.extend(targets_of_line(&prose).into_iter().map(|t| (index + 1, t)));
            }
            _ => {}
        }
    }
    found
}

fn targets_of_line(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    if let Some((name, target)) = line
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("]: "))
        && !name.contains(']')
    {
        found.push(target.split_whitespace().next().unwrap_or("").to_owned());
    }
    for (at, mark) in line.match_indices("](") {
        let rest = &line[at + mark.len()..];
        if let Some(end) = rest.find(')') {
            let target = rest[..end].split_whitespace().next().unwrap_or("");
            found.push(target.trim_matches(['<', '>']).to_owned());
        }
    }
    found
}

/// The line with every `` `span` `` blanked. An unpaired back-quote is text.
fn without_inline_code(line: &str) -> String {
    let parts: Vec<&str> = line.split('`').collect();
    let last = parts.len() - 1;
    let keep = |i: usize| i.is_multiple_of(2) || i == last;
    parts
        .iter()
        .enumerate()
        .map(|(i, part)| if keep(i) { part } else { " " })
        .collect()
}

fn has_scheme(target: &str) -> bool {
    target.split_once(':').is_some_and(|(scheme, _)| {
        !scheme.is_empty()
            && scheme
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '+')
    })
}

/// `target` as seen from the page at `from`, relative to the root; none if it climbs out of it.
fn resolve(from: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    if target.starts_with('/') {
        return None;
    }
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn complaints(text: &str) -> Vec<String> {
        let page = File::new("docs/page.md", text);
        // The empty path is the root itself.
        let exists = |path: &str| matches!(path, "" | "README.md" | "docs" | "docs/glossary.md");
        check(&page, exists)
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn good_links_pass() {
        let text = "[a](glossary.md) ![b](../README.md#x) [c](https://example.org/x) [d](#here)\n\
                    [e]: ./glossary.md\n[f](..) `[g](nowhere.md)`\n```\n[h](nowhere.md)\n```\n";
        assert_eq!(complaints(text), [] as [&str; 0]);
    }

    #[test]
    fn dead_link_is_named_with_its_line() {
        assert_eq!(
            complaints("fine\n[a](gone.md)\n"),
            ["docs/page.md:2: link `gone.md` leads to `docs/gone.md`, which does not exist"]
        );
        assert_eq!(
            complaints("[a]: gone.md\n"),
            ["docs/page.md:1: link `gone.md` leads to `docs/gone.md`, which does not exist"]
        );
    }

    #[test]
    fn link_out_of_the_repository_is_refused() {
        assert_eq!(
            complaints("[a](../../x.md)"),
            ["docs/page.md:1: link `../../x.md` leaves the repository"]
        );
        assert_eq!(
            complaints("[a](/x.md)"),
            ["docs/page.md:1: link `/x.md` leaves the repository"]
        );
    }
}
