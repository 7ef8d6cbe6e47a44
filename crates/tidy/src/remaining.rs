//! What is still to be said better, counted by member of the workspace: the numbers can only fall.
//!
//! `crates/tidy/remaining.txt` has a line for each kind and member with something left. More than that is a complaint at
//! the member; less is one too, until the file says the lower number: `PARIO_TIDY=lower cargo test -p tidy` writes it.

use std::collections::BTreeMap;

use crate::lexer::{code_only, has_word};
use crate::{Complaint, File};

/// Where the numbers are.
pub const PAGE: &str = "crates/tidy/remaining.txt";

/// What is counted: its name, what would be right, and how many a file has.
type Kind = (&'static str, &'static str, fn(&File) -> usize);

const KINDS: [Kind; 3] = [
    ("participles", "name a type by a noun", participles),
    ("persons", "name who acts in a comment", persons),
    (
        "flags",
        "take an enum of two variants, or write two functions",
        flags,
    ),
];

/// Nouns and verbs that look like participles.
const NOUNS: [&str; 24] = [
    "Backing",
    "Beginning",
    "Between",
    "Drawing",
    "Ending",
    "Finding",
    "Keeping",
    "Listing",
    "Mapping",
    "Matching",
    "Meaning",
    "Meeting",
    "Open",
    "Opening",
    "Ping",
    "Recording",
    "Reopen",
    "Seed",
    "Setting",
    "Speed",
    "Standing",
    "Striping",
    "Token",
    "Tuning",
];

/// Participles that do not look like one.
const IRREGULAR: [&str; 20] = [
    "Begun", "Built", "Came", "Dealt", "Done", "Found", "Gone", "Heard", "Held", "Kept", "Known",
    "Left", "Lent", "Made", "Met", "Said", "Sent", "Spent", "Told", "Torn",
];

/// Types whose last word is a participle.
fn participles(file: &File) -> usize {
    let code = code_only(&file.text);
    let mut words = code.split_whitespace();
    let mut count = 0;
    while let Some(word) = words.next() {
        if matches!(word, "struct" | "enum" | "trait" | "type" | "union") {
            let name = words.next().unwrap_or("");
            let end = name.find(|c: char| !c.is_alphanumeric());
            let name = &name[..end.unwrap_or(name.len())];
            let last = name.rfind(char::is_uppercase).map_or("", |at| &name[at..]);
            let looks = ["ed", "en", "ing"].iter().any(|end| last.ends_with(end));
            count += usize::from(looks && !NOUNS.contains(&last) || IRREGULAR.contains(&last));
        }
    }
    count
}

/// Lines of comments that do not say who acts.
fn persons(file: &File) -> usize {
    let unclear = |line: &&str| {
        let comment = line
            .split_once("//")
            .map_or("", |(_, text)| text)
            .to_lowercase();
        let words = ["whoever", "somebody", "someone"];
        words.iter().any(|word| has_word(&comment, word))
    };
    file.text.lines().filter(unclear).count()
}

/// Parameters of functions that are a bare `bool`.
fn flags(file: &File) -> usize {
    let code = code_only(&file.text);
    let mut count = 0;
    for (at, _) in code.match_indices("fn ") {
        let Some(open) = code[at..].find('(') else {
            continue;
        };
        let mut depth = 0;
        let parameters = code[at + open..].split_inclusive([',', '(', ')', '{']);
        for parameter in parameters {
            let is_flag = parameter[..parameter.len() - 1]
                .trim_end()
                .ends_with(": bool");
            count += usize::from(depth == 1 && is_flag);
            depth += match parameter.as_bytes()[parameter.len() - 1] {
                b'(' => 1,
                b')' => -1,
                _ => 0,
            };
            if depth == 0 {
                break;
            }
        }
    }
    count
}

/// The numbers of the tree, as the page has them.
pub fn page<'a>(files: impl Iterator<Item = &'a File>) -> String {
    let mut counts: BTreeMap<(&str, String), usize> = BTreeMap::new();
    for file in files {
        for (kind, _, count) in KINDS {
            let member = file.member().unwrap_or("elsewhere").to_owned();
            *counts.entry((kind, member)).or_default() += count(file);
        }
    }
    let left = counts.iter().filter(|(_, count)| **count > 0);
    left.map(|((kind, member), count)| format!("{kind} {member} {count}\n"))
        .collect()
}

/// Numbers that are not those of the page.
pub fn check(noted: &str, found: &str) -> Vec<Complaint> {
    let numbers = |page: &str| -> BTreeMap<String, usize> {
        let lines = page.lines().filter_map(|line| line.rsplit_once(' '));
        lines
            .map(|(of, count)| (of.to_owned(), count.parse().unwrap_or(0)))
            .collect()
    };
    let (noted, found) = (numbers(noted), numbers(found));
    let mut complaints = Vec::new();
    for of in noted
        .keys()
        .chain(found.keys().filter(|of| !noted.contains_key(*of)))
    {
        let number = |of_page: &BTreeMap<String, usize>| of_page.get(of).copied().unwrap_or(0);
        let (kind, member) = of.split_once(' ').unwrap_or((of, ""));
        let right = KINDS
            .iter()
            .find(|(name, ..)| *name == kind)
            .map_or("", |(_, right, _)| right);
        let (was, is) = (number(&noted), number(&found));
        match is.cmp(&was) {
            std::cmp::Ordering::Greater => complaints.push(Complaint::about(
                member,
                format!("has {is} {kind}, {was} before; {right}"),
            )),
            std::cmp::Ordering::Less => complaints.push(Complaint::about(
                PAGE,
                format!(
                    "{of}: there are {is} by now, not {was}; PARIO_TIDY=lower cargo test -p tidy"
                ),
            )),
            std::cmp::Ordering::Equal => {}
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(kind: &str, text: &str) -> usize {
        let page = page([File::new("crates/a/src/lib.rs", text)].iter());
        let line = page.lines().find(|line| line.starts_with(kind));
        line.map_or(0, |line| line.rsplit(' ').next().unwrap().parse().unwrap())
    }

    #[test]
    fn types_that_are_participles_are_counted() {
        let text = "struct Seen;\npub(crate) enum DiskFailed<T> {}\ntype Known = u8;\nstruct Meeting(Seen);\n// struct Held\nstruct HeldFile {}";
        assert_eq!(count("participles", text), 3);
    }

    #[test]
    fn comments_without_an_actor_are_counted() {
        let text = "/// Somebody opens it.\nlet somebody = 1; // whoever\nfn someone() {}\n//! Whoever and somebody.";
        assert_eq!(count("persons", text), 3);
    }

    #[test]
    fn flags_among_parameters_are_counted() {
        let text = "fn f(a: bool, b: &mut bool, c: impl Fn(bool) -> bool, d: bool) -> bool { g(|x: bool| x) }\nstruct S { is: bool }\nfn h(\n    self,\n    is: bool,\n) {}";
        assert_eq!(count("flags", text), 3);
    }

    #[test]
    fn numbers_can_only_fall() {
        let noted = "flags crates/a 2\npersons crates/a 1\n";
        assert!(check(noted, noted).is_empty());
        let complaints = check(noted, "flags crates/a 3\nflags crates/b 1\n");
        let about: Vec<&str> = complaints.iter().map(|c| c.path.as_str()).collect();
        assert_eq!(about, ["crates/a", PAGE, "crates/b"]);
    }
}
