//! Blanking of comments and literals in Rust text, so that checks see code and nothing else.
//!
//! The result has the same number of lines and the same columns: every blanked character becomes a
//! space, so that line numbers found in it are line numbers of the file. Known forms: line and
//! nested block comments, strings with escapes, raw strings, byte and C strings, character
//! literals (told apart from lifetimes).

/// The code of `text`, with comments and the insides of literals replaced by spaces.
pub fn code_only(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = match (chars[at], chars.get(at + 1)) {
            ('/', Some('/')) => line_end(&chars, at),
            ('/', Some('*')) => block_comment_end(&chars, at),
            ('"', _) => string_end(&chars, at),
            ('r', Some('"' | '#')) if !continues_word(&chars, at) => {
                raw_string_end(&chars, at).unwrap_or(at)
            }
            ('\'', _) => char_literal_end(&chars, at).unwrap_or(at),
            _ => at,
        };
        if end == at {
            out.push(chars[at]);
            at += 1;
        } else {
            out.extend(
                chars[at..end]
                    .iter()
                    .map(|&c| if c == '\n' { '\n' } else { ' ' }),
            );
            at = end;
        }
    }
    out
}

/// Whether `word` stands in `line` as a whole word (letters, digits and `_` make words).
pub fn has_word(line: &str, word: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        !line[..at].chars().next_back().is_some_and(is_word)
            && !line[at + word.len()..].chars().next().is_some_and(is_word)
    })
}

fn line_end(chars: &[char], at: usize) -> usize {
    chars[at..]
        .iter()
        .position(|&c| c == '\n')
        .map_or(chars.len(), |n| at + n)
}

fn block_comment_end(chars: &[char], at: usize) -> usize {
    let (mut depth, mut at) = (0usize, at);
    while at < chars.len() {
        match (chars[at], chars.get(at + 1)) {
            ('/', Some('*')) => (depth, at) = (depth + 1, at + 2),
            ('*', Some('/')) => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    chars.len()
}

fn string_end(chars: &[char], at: usize) -> usize {
    let mut at = at + 1;
    while at < chars.len() {
        match chars[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    chars.len()
}

/// The end of `r"..."` or `r#"..."#`; none for a raw identifier such as `r#type`.
fn raw_string_end(chars: &[char], at: usize) -> Option<usize> {
    let hashes = chars[at + 1..].iter().take_while(|&&c| c == '#').count();
    let open = at + 1 + hashes;
    if chars.get(open) != Some(&'"') {
        return None;
    }
    let closes = |&i: &usize| {
        chars[i] == '"'
            && chars[i + 1..]
                .iter()
                .take(hashes)
                .filter(|&&c| c == '#')
                .count()
                == hashes
    };
    Some(
        (open + 1..chars.len())
            .find(closes)
            .map_or(chars.len(), |i| i + 1 + hashes),
    )
}

/// The end of a character literal; none for a lifetime or a loop label.
fn char_literal_end(chars: &[char], at: usize) -> Option<usize> {
    match (chars.get(at + 1)?, chars.get(at + 2)?) {
        ('\\', _) => {
            let close = chars[at + 3..].iter().position(|&c| c == '\'')?;
            Some(at + 3 + close + 1)
        }
        (_, '\'') => Some(at + 3),
        _ => None,
    }
}

/// Whether the character at `at` belongs to a word that began before it. The `b` and `c` of `br"`
/// and `cr"` begin a literal, not a word.
fn continues_word(chars: &[char], at: usize) -> bool {
    let is_word = |i: usize| chars[i].is_alphanumeric() || chars[i] == '_';
    let Some(before) = at.checked_sub(1).filter(|&i| is_word(i)) else {
        return false;
    };
    let prefix = matches!(chars[before], 'b' | 'c');
    !(prefix && before.checked_sub(1).is_none_or(|i| !is_word(i)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Text in, text out, with each blank shown as a dot where the input was not blank.
    #[track_caller]
    fn check(text: &str, expected: &str) {
        let found = code_only(text);
        assert_eq!(found.chars().count(), text.chars().count());
        let shown: String = text
            .chars()
            .zip(found.chars())
            .map(|(was, is)| if is == ' ' && was != ' ' { '.' } else { is })
            .collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn comments_are_blanked() {
        check("a // b\nc", "a .. .\nc");
        check("a /* b /* c */ d */ e", "a .. . .. . .. . .. e");
        check("//! x", "... .");
    }

    #[test]
    fn literals_are_blanked() {
        check(r#"f("a\"b", c)"#, "f(......, c)");
        check(r##"f(r#"a"b"#, c)"##, "f(........, c)");
        check(r#"br"a" r"\" x"#, "b.... .... x");
        check("let c = '\\''; d", "let c = ....; d");
        check("let c = '\"'; d", "let c = ...; d");
    }

    #[test]
    fn lifetimes_and_raw_names_are_code() {
        check("fn f<'a>(x: &'a str) {}", "fn f<'a>(x: &'a str) {}");
        check("r#type for r in x", "r#type for r in x");
        check("for \"x\"", "for ...");
    }

    #[test]
    fn unclosed_text_ends_at_the_end() {
        check("a \"b", "a ..");
        check("a /* b", "a .. .");
        check("a '", "a '");
    }

    #[test]
    fn words_are_whole() {
        assert!(has_word("x = key;", "key"));
        assert!(!has_word("x = key_word;", "key"));
        assert!(!has_word("monkey", "key"));
    }
}
