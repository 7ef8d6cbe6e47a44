//! Language: doc comments that stand alone, words with one meaning, tables that name what there is, subjects that fit.
//!
//! A reader comes to an item by search and reads its comment without its neighbour's. A word of the glossary that is
//! defined twice says with each meaning what it is of: `epoch (of a file)`.

use crate::{Complaint, File};

/// A doc comment that opens with "The same", which says nothing to whom the comment before is not in front of.
pub fn check_opening(file: &File) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    let mut is_inside = false;
    for (number, line) in file.text.lines().enumerate() {
        let text = line.trim_start().strip_prefix("///");
        let opens = !is_inside && text.is_some_and(|t| t.trim_start().starts_with("The same"));
        is_inside = text.is_some();
        if opens {
            let what = "opens with \"The same\"; say what it is, for a reader who has not read the item before";
            complaints.push(Complaint::at(&file.path, number + 1, what));
        }
    }
    complaints
}

/// The words that one line of a glossary defines, with what each is of: `**word** (of something), **word** | ...`.
fn defined(line: &str) -> Vec<(String, String)> {
    let Some(cell) = line
        .strip_prefix("| ")
        .and_then(|row| row.split(" | ").next())
    else {
        return Vec::new();
    };
    let mut words = Vec::new();
    let mut parts = cell.split("**").skip(1);
    while let (Some(word), Some(behind)) = (parts.next(), parts.next()) {
        let of = behind.trim_start().strip_prefix('(');
        let of = of.and_then(|of| of.split(')').next()).unwrap_or("");
        words.push((word.to_owned(), of.to_owned()));
    }
    words
}

/// A glossary in which a word is defined twice without saying what each is of.
pub fn check_glossary(page: &File) -> Vec<Complaint> {
    let mut seen: Vec<(String, String)> = Vec::new();
    let mut complaints = Vec::new();
    for (number, line) in page.text.lines().enumerate() {
        for (word, of) in defined(line) {
            let is_unclear = |(other, its): &(String, String)| {
                *other == word && (*its == of || its.is_empty() || of.is_empty())
            };
            if seen.iter().any(is_unclear) {
                let what = format!(
                    "defines `{word}` again; say with both meanings what it is of, as in `**{word}** (of a file)`"
                );
                complaints.push(Complaint::at(&page.path, number + 1, what));
            }
            seen.push((word, of));
        }
    }
    complaints
}

/// A crate with so many modules has a table of them.
const MODULES_WITHOUT_TABLE: usize = 8;

/// The root of a crate whose table of modules misses one that is declared, or names one that is not; or one with many modules
/// and no table.
///
/// A table begins with `//! | module |`. The first cell of a row names one module or several, each in backticks. Modules of
/// tests need no row.
pub fn check_module_table(root: &File) -> Vec<Complaint> {
    let mut listed = Vec::new();
    let mut declared = Vec::new();
    let mut is_table = false;
    let mut before = "";
    for (number, line) in root.text.lines().enumerate() {
        let row = line.strip_prefix("//! | ");
        is_table = row.is_some_and(|row| is_table || row.starts_with("module |"))
            || is_table && line.starts_with("//! |--");
        if let Some(cell) = row
            .filter(|_| is_table)
            .and_then(|row| row.split(" | ").next())
        {
            let names = cell.split('`').skip(1).step_by(2);
            listed.extend(names.map(|name| (number + 1, name)));
        }
        let line = line
            .strip_prefix("pub(crate) ")
            .or(line.strip_prefix("pub "))
            .unwrap_or(line);
        if let Some(name) = line.strip_prefix("mod ").and_then(|m| m.strip_suffix(';'))
            && before != "#[cfg(test)]"
        {
            declared.push((number + 1, name));
        }
        before = line;
    }
    if listed.is_empty() {
        let what = format!(
            "declares {} modules and has no table of them",
            declared.len()
        );
        let complaint = Complaint::at(&root.path, 1, what);
        return Vec::from_iter((declared.len() >= MODULES_WITHOUT_TABLE).then_some(complaint));
    }
    let has = |list: &[(usize, &str)], name: &str| list.iter().any(|(_, other)| *other == name);
    let absent = listed.iter().filter(|(_, name)| !has(&declared, name));
    let absent = absent.map(|(line, name)| {
        Complaint::at(
            &root.path,
            *line,
            format!("lists `{name}`, which is no module of the crate"),
        )
    });
    let unlisted = declared.iter().filter(|(_, name)| !has(&listed, name));
    let unlisted = unlisted.map(|(line, name)| {
        Complaint::at(
            &root.path,
            *line,
            format!("declares `{name}`, which its table of modules does not list"),
        )
    });
    absent.chain(unlisted).collect()
}

/// A decision (`docs/adr/NNNN-title.md`) that does not say its status, or that the page on the architecture does not link.
pub fn check_decision(page: &File, architecture: &str) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    if !page.text.lines().any(|line| line.starts_with("Status: ")) {
        let what = "has no line `Status: proposed`, `accepted` or `replaced by NNNN`";
        complaints.push(Complaint::about(&page.path, what));
    }
    if !architecture.contains(&format!("({})", page.path)) {
        let what = "is not linked in ARCHITECTURE.md, under Decisions";
        complaints.push(Complaint::about(&page.path, what));
    }
    complaints
}

/// Longest subject of a commit.
pub const LONGEST_SUBJECT: usize = 72;

/// Subjects of commits, one per line, that are too long to be read in a list.
pub fn check_subjects(log: &str) -> Vec<Complaint> {
    let too_long = log.lines().filter(|s| s.chars().count() > LONGEST_SUBJECT);
    let complaint = |subject: &str| {
        let what = format!("has more than {LONGEST_SUBJECT} characters; say the rest in the body");
        Complaint::about(&format!("commit \"{subject}\""), what)
    };
    too_long.map(complaint).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_that_lean_on_their_neighbour_are_found() {
        let text = "/// Opens it.\nfn a() {}\n    /// The same with hints.\nfn b() {}\n/// One thing.\n/// The same bytes.\n";
        let complaints = check_opening(&File::new("crates/a/src/lib.rs", text));
        assert_eq!(complaints.len(), 1);
        assert_eq!(complaints[0].line, 3);
    }

    #[test]
    fn words_with_two_meanings_say_what_they_are_of() {
        let page = |rows: &str| File::new("docs/glossary.md", rows);
        let good = "| **epoch** (of a file), **x** | a |\n| **epoch** (of a store) | **bold** |\n";
        assert!(check_glossary(&page(good)).is_empty());
        let bad = "| **epoch** | a |\n| **epoch** (of a store) | b |\n| **y** (of a) | c |\n| **y** (of a) | d |\n";
        let lines: Vec<usize> = check_glossary(&page(bad)).iter().map(|c| c.line).collect();
        assert_eq!(lines, [2, 4]);
    }

    #[test]
    fn tables_of_modules_name_what_there_is() {
        let root = |text: &str| File::new("crates/a/src/lib.rs", text);
        assert!(check_module_table(&root("//! Prose.\nmod a;\n")).is_empty());
        let good = "//! | module | owns |\n//! |---|---|\n//! | [`a`](fn@a), `c` | does `x` |\n//! | [`b`] | does |\nmod a;\npub mod b;\nmod c;\n";
        assert!(check_module_table(&root(good)).is_empty());
        let bad = "//! | module | owns |\n//! |---|---|\n//! | [`a`] | does |\n//! | `gone` | did |\nmod a;\npub(crate) mod new;\n";
        let lines: Vec<usize> = check_module_table(&root(bad))
            .iter()
            .map(|c| c.line)
            .collect();
        assert_eq!(lines, [4, 6]);
        let many: String = (1..8).map(|n| format!("mod m{n};\n")).collect();
        let with_tests = format!("{many}#[cfg(test)]\nmod tests;\n");
        assert!(check_module_table(&root(&with_tests)).is_empty());
        assert_eq!(
            check_module_table(&root(&format!("{many}mod m8;\n"))).len(),
            1
        );
    }

    #[test]
    fn decisions_have_a_status_and_a_link() {
        let page = |text: &str| File::new("docs/adr/0001-x.md", text);
        let links = "[x](docs/adr/0001-x.md)";
        assert!(check_decision(&page("# X\n\nStatus: accepted.\n"), links).is_empty());
        assert_eq!(check_decision(&page("# X\n"), links).len(), 1);
        assert_eq!(check_decision(&page("Status: accepted"), "").len(), 1);
    }

    #[test]
    fn long_subjects_are_found() {
        let long = "x".repeat(LONGEST_SUBJECT + 1);
        let log = format!("Say it shortly\n{long}\n{}\n", &long[1..]);
        assert_eq!(check_subjects(&log).len(), 1);
    }
}
