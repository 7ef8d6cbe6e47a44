//! The text of directives as statements of tokens, each with its place.
//! Owns what a letter, a number and a continuation are; knows no statement.

use super::{DirectiveError, Place, error_at};
use crate::language::MAX_TEXT;

/// What a token is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A name or word, in capitals.
    Word(String),
    Number(i64),
    /// A character that stands for itself.
    Mark(char),
    /// `::`
    Colons,
    /// `(/`
    ListOpen,
    /// `/)`
    ListClose,
}

#[derive(Clone, Debug)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) place: Place,
}

/// A statement, and where it ends.
#[derive(Clone, Debug, Default)]
pub(super) struct Statement {
    pub(super) tokens: Vec<Token>,
    pub(super) end: Option<Place>,
}

/// Characters before the directive of a line; `None` if the line is a comment or empty.
fn start_of(chars: &[char]) -> Option<usize> {
    let first = chars.iter().position(|c| !c.is_whitespace())?;
    let sentinel: String = chars[first..].iter().take(5).collect();
    match chars[first] {
        '!' | 'C' | 'c' | '*' if sentinel[1..].eq_ignore_ascii_case("HPF$") => Some(first + 5),
        '!' => None,
        _ => Some(first),
    }
}

/// Statements of a text, without empty ones.
pub(super) fn statements(text: &str, lines: &[String]) -> Result<Vec<Statement>, DirectiveError> {
    if text.len() > MAX_TEXT {
        let place = Place {
            line: 0,
            character: 0,
        };
        let message = format!("the text is longer than {MAX_TEXT} characters");
        return Err(error_at(&[], place, message));
    }
    let mut all = Vec::new();
    let mut now = Statement::default();
    let mut goes_on = false;
    for (line, text) in lines.iter().enumerate() {
        let chars: Vec<char> = text.chars().collect();
        let Some(mut at) = start_of(&chars) else {
            continue;
        };
        if !goes_on {
            finish(&mut now, &mut all);
        }
        // A continued line may begin with the sign as well.
        let next = chars[at..].iter().position(|c| !c.is_whitespace());
        if let Some(next) = next.filter(|n| goes_on && chars[at + n] == '&') {
            at += next + 1;
        }
        goes_on = false;
        while at < chars.len() {
            let c = chars[at];
            let place = Place {
                line,
                character: at,
            };
            let is_next = |wanted| chars.get(at + 1) == Some(&wanted);
            let mut len = 1;
            let kind = match c {
                c if c.is_whitespace() => {
                    at += 1;
                    continue;
                }
                '!' => break,
                '&' => {
                    goes_on = true;
                    let rest = chars[at + 1..].iter().find(|c| !c.is_whitespace());
                    if rest.is_some_and(|c| *c != '!') {
                        return Err(error_at(
                            lines,
                            place,
                            "'&' stands only at the end of a line",
                        ));
                    }
                    break;
                }
                ';' => {
                    finish(&mut now, &mut all);
                    at += 1;
                    continue;
                }
                ':' if is_next(':') => {
                    len = 2;
                    Kind::Colons
                }
                '(' if is_next('/') => {
                    len = 2;
                    Kind::ListOpen
                }
                '/' if is_next(')') => {
                    len = 2;
                    Kind::ListClose
                }
                c if c.is_ascii_digit() => {
                    len = chars[at..]
                        .iter()
                        .take_while(|c| c.is_ascii_digit())
                        .count();
                    let digits: String = chars[at..at + len].iter().collect();
                    let number = digits.parse().ok();
                    let number = number.filter(|n: &i64| *n < i64::MAX / 2);
                    Kind::Number(number.ok_or_else(|| {
                        error_at(lines, place, format!("{digits} is too large a number"))
                    })?)
                }
                c if c.is_alphabetic() || c == '_' || c == '%' || c == '$' => {
                    let inside = |c: &&char| c.is_alphanumeric() || matches!(c, '_' | '%' | '$');
                    len = chars[at..].iter().take_while(inside).count();
                    let word: String = chars[at..at + len].iter().collect();
                    Kind::Word(word.to_uppercase())
                }
                c => Kind::Mark(c),
            };
            now.tokens.push(Token { kind, place });
            at += len;
            now.end = Some(Place {
                line,
                character: at,
            });
        }
    }
    finish(&mut now, &mut all);
    Ok(all)
}

fn finish(now: &mut Statement, all: &mut Vec<Statement>) {
    let done = std::mem::take(now);
    if !done.tokens.is_empty() {
        all.push(done);
    }
}
