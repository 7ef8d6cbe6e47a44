//! The walk of a byte in `ARCHITECTURE.md` names functions that exist.
//!
//! Looked at: `` `Type::function` `` and `` `module::function` `` in the sections whose titles begin with "The way of". A
//! type has the function if some `impl` or `trait` block of its name has; a module if its file has. That steps follow each
//! other as the page says is for its readers.

use crate::lexer::{code_only, has_word};
use crate::{Complaint, File};

/// Complaints about functions that the walk names and no source has.
pub fn check(page: &File, sources: &[File]) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    let mut is_walk = false;
    for (index, line) in page.text.lines().enumerate() {
        if line.starts_with('#') {
            is_walk = line.trim_start_matches('#').starts_with(" The way of");
        }
        let quoted = line.split('`').skip(1).step_by(2).filter(|_| is_walk);
        for (owner, function) in quoted.filter_map(|name| name.rsplit_once("::")) {
            if !sources.iter().any(|file| has(file, owner, function)) {
                let what = format!("`{owner}::{function}` is nowhere; name the function that runs");
                complaints.push(Complaint::at(&page.path, index + 1, what));
            }
        }
    }
    complaints
}

fn has(file: &File, owner: &str, function: &str) -> bool {
    if !file.text.contains(function) {
        return false;
    }
    let code = code_only(&file.text);
    let defines = |line: &str| has_word(line, "fn") && has_word(line, function);
    if owner.starts_with(char::is_lowercase) {
        let path = owner.replace("::", "/");
        let is_module = [".rs", "/mod.rs"].map(|end| format!("/{path}{end}"));
        return is_module
            .iter()
            .any(|end| file.path.ends_with(end.as_str()))
            && code.lines().any(defines);
    }
    let mut is_inside = false;
    code.lines().any(|line| {
        if !line.starts_with([' ', '}']) && !line.is_empty() {
            let is_block = ["impl", "trait"].iter().any(|word| has_word(line, word));
            is_inside = is_block && has_word(line, owner);
        }
        is_inside && defines(line)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_functions_that_are_gone_are_named() {
        let sources = [
            File::new(
                "crates/a/src/flow.rs",
                "impl<'a> Flow<'a> {\n    fn issue(&self) {}\n}\nfn serve() {}\n\
                 impl Other {\n    // fn gone()\n    fn late() {}\n}\n",
            ),
            File::new("crates/a/src/access/mod.rs", "pub(crate) fn admit() {}\n"),
        ];
        let complaints = |walk: &str| -> Vec<String> {
            let text =
                format!("# A\n`Flow::gone`\n### The way of a byte\n{walk}\n## B\n`Flow::gone`\n");
            let page = File::new("ARCHITECTURE.md", text);
            let all = check(&page, &sources);
            all.iter().map(ToString::to_string).collect()
        };
        assert!(complaints("`Flow::issue`, `flow::serve`, `access::admit`, `Memory`").is_empty());
        for gone in ["Flow::gone", "Flow::late", "Other::gone", "access::serve"] {
            assert_eq!(
                complaints(&format!("one\n`Flow::issue` and `{gone}`")),
                [format!(
                    "ARCHITECTURE.md:5: `{gone}` is nowhere; name the function that runs"
                )]
            );
        }
    }
}
