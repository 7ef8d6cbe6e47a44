//! Text files of hints: sections with `name = value` lines, as compilers, job scripts and people
//! write them.
//!
//! ```text
//! # comment, to the end of the line
//! [/data/*.f64]                  a section: what stands between the brackets
//! access_style = read_once,sequential
//! layout = (block, *) onto 4     the value is the rest of the line, without blanks around it
//! ```
//!
//! A `#` begins a comment at the start of a line or after a blank. Errors name the line.
//!
//! Patterns of paths: `*` stands for any characters of one name, `**` also over slashes, `?` for one
//! character; a pattern without a slash is compared with the last name of a path.

/// A line that says something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// In which line, from 1.
    pub line: usize,
    /// What stands before the `=`.
    pub name: String,
    /// What stands behind it.
    pub value: String,
}

/// What stands under one pair of brackets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// In which line it begins, from 1.
    pub line: usize,
    /// What stands between the brackets.
    pub title: String,
    /// Its lines.
    pub entries: Vec<Entry>,
}

/// A line that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {text}")]
pub struct SectionError {
    /// Which, from 1.
    pub line: usize,
    /// What is wrong and what would be right.
    pub text: String,
}

/// Reads a text.
///
/// ```
/// use advise::hints::sections;
/// let read = sections("[*.f64]\nstriping_unit = 64KiB # large\n").unwrap();
/// assert_eq!((read[0].title.as_str(), read[0].entries[0].value.as_str()), ("*.f64", "64KiB"));
/// assert_eq!(sections("a = b").unwrap_err().line, 1);
/// ```
pub fn sections(text: &str) -> Result<Vec<Section>, SectionError> {
    let mut read: Vec<Section> = Vec::new();
    for (index, whole) in text.lines().enumerate() {
        let line = index + 1;
        let error = |text: String| Err(SectionError { line, text });
        let content = without_comment(whole).trim();
        if content.is_empty() {
            continue;
        }
        if let Some(rest) = content.strip_prefix('[')
            && split_pair(content).is_none()
        {
            let Some(title) = rest.strip_suffix(']').map(str::trim) else {
                return error(format!("`{content}` has no closing bracket"));
            };
            if title.is_empty() {
                return error("`[]` names nothing; write a path between the brackets".into());
            }
            read.push(Section {
                line,
                title: title.to_owned(),
                entries: Vec::new(),
            });
            continue;
        }
        let Some((name, value)) = split_pair(content) else {
            return error(format!("`{content}` is no `name = value`"));
        };
        let Some(section) = read.last_mut() else {
            return error(format!(
                "`{name}` stands before the first section; begin with a line as `[/path]`"
            ));
        };
        section.entries.push(Entry {
            line,
            name: name.to_owned(),
            value: value.to_owned(),
        });
    }
    Ok(read)
}

/// `name = value`; the name has letters, digits, `_`, `.` and `-` only.
pub fn split_pair(text: &str) -> Option<(&str, &str)> {
    let (name, value) = text.split_once('=')?;
    let (name, value) = (name.trim(), value.trim());
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    (!name.is_empty() && name.chars().all(is_name)).then_some((name, value))
}

fn without_comment(line: &str) -> &str {
    let mut before = ' ';
    for (at, c) in line.char_indices() {
        if c == '#' && before.is_whitespace() {
            return &line[..at];
        }
        before = c;
    }
    line
}

/// Whether a path fits a pattern. Takes time in proportion to the product of both lengths.
///
/// ```
/// use advise::hints::matches;
/// assert!(matches("/data/*.f64", "/data/a.f64") && !matches("/data/*.f64", "/data/b/a.f64"));
/// assert!(matches("/data/**", "/data/b/a.f64") && matches("*.f64", "/data/b/a.f64"));
/// ```
pub fn matches(pattern: &str, path: &str) -> bool {
    let path = match pattern.contains('/') {
        true => path,
        false => path.rsplit('/').next().unwrap_or(path),
    };
    let pattern: Vec<char> = pattern.chars().collect();
    let path: Vec<char> = path.chars().collect();
    // Row j: whether the first j characters of the path fit what was read of the pattern.
    let mut fits = vec![false; path.len() + 1];
    fits[0] = true;
    let mut at = 0;
    while at < pattern.len() {
        let is_deep = pattern[at] == '*' && pattern.get(at + 1) == Some(&'*');
        let mut next = vec![false; path.len() + 1];
        match pattern[at] {
            '*' => {
                next[0] = fits[0];
                for j in 1..=path.len() {
                    next[j] = fits[j] || (next[j - 1] && (is_deep || path[j - 1] != '/'));
                }
            }
            c => {
                for j in 1..=path.len() {
                    let is_same = c == path[j - 1] || (c == '?' && path[j - 1] != '/');
                    next[j] = fits[j - 1] && is_same;
                }
            }
        }
        fits = next;
        at += if is_deep { 2 } else { 1 };
    }
    fits[path.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_read_with_their_lines() {
        let text = "# head\n\n[ /a/b ]  # here\nlayout = striped(4) over 2\nx=#1 # no\n[c]\n";
        let read = sections(text).unwrap();
        assert_eq!(read.len(), 2);
        assert_eq!((read[0].line, read[0].title.as_str()), (3, "/a/b"));
        let pairs: Vec<(usize, &str, &str)> = (read[0].entries.iter())
            .map(|e| (e.line, e.name.as_str(), e.value.as_str()))
            .collect();
        assert_eq!(pairs, [(4, "layout", "striped(4) over 2"), (5, "x", "#1")]);
    }

    #[test]
    fn wrong_lines_are_named() {
        for (text, line, part) in [
            ("\n[a", 2, "no closing bracket"),
            ("[]", 1, "names nothing"),
            ("[a]\nhello", 2, "no `name = value`"),
            ("a = 1", 1, "before the first section"),
            ("[a]\na b = 1", 2, "no `name = value`"),
        ] {
            let error = sections(text).unwrap_err();
            assert_eq!(error.line, line, "{text}");
            assert!(error.to_string().contains(part), "{error}");
        }
    }

    #[test]
    fn patterns_fit_whole_names() {
        for (pattern, path, fits) in [
            ("/a", "/a", true),
            ("/a", "/ab", false),
            ("/?", "/a", true),
            ("/?", "//", false),
            ("/**/x", "/a/b/x", true),
            ("*", "/a/b", true),
            ("/*", "/a/b", false),
            ("/a*c*e", "/abcde", true),
            ("", "/a", false),
        ] {
            assert_eq!(matches(pattern, path), fits, "{pattern} {path}");
        }
    }
}
