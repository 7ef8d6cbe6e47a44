//! Statements of input and output: what stands in their brackets, and behind them.
//! What becomes of them is left to `translate`.

use std::ops::Range;

use crate::scopes::{assigns, parts};
use crate::sections::outside;
use crate::source::Statement;

/// Which statement it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Open,
    Close,
    Read,
    Write,
    Inquire,
    Rewind,
    Backspace,
    Endfile,
    Flush,
    Wait,
    Print,
}

impl Verb {
    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Verb::Open => "OPEN",
            Verb::Close => "CLOSE",
            Verb::Read => "READ",
            Verb::Write => "WRITE",
            Verb::Inquire => "INQUIRE",
            Verb::Rewind => "REWIND",
            Verb::Backspace => "BACKSPACE",
            Verb::Endfile => "ENDFILE",
            Verb::Flush => "FLUSH",
            Verb::Wait => "WAIT",
            Verb::Print => "PRINT",
        }
    }
}

const VERBS: [(&str, Verb); 11] = [
    ("open", Verb::Open),
    ("close", Verb::Close),
    ("read", Verb::Read),
    ("write", Verb::Write),
    ("inquire", Verb::Inquire),
    ("rewind", Verb::Rewind),
    ("backspace", Verb::Backspace),
    ("endfile", Verb::Endfile),
    ("flush", Verb::Flush),
    ("wait", Verb::Wait),
    ("print", Verb::Print),
];

/// An argument in the brackets.
#[derive(Clone, Debug)]
pub(crate) struct Argument {
    /// In small letters.
    pub(crate) key: Option<String>,
    pub(crate) value: String,
    /// The byte of the program where it begins.
    pub(crate) at: usize,
}

/// An item behind the brackets.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) value: String,
    pub(crate) at: usize,
}

/// A statement of input or output.
#[derive(Clone, Debug)]
pub(crate) struct Io {
    pub(crate) verb: Verb,
    /// What stands before it: `if(...)`.
    pub(crate) condition: Option<String>,
    pub(crate) arguments: Vec<Argument>,
    pub(crate) items: Vec<Item>,
    /// The byte of the program where the verb begins.
    pub(crate) at: usize,
}

/// The end of the brackets that begin at a place, which has to be `(`.
fn close_of(letters: &[crate::source::Letter], open: usize) -> Option<usize> {
    let mut depth = 0i32;
    for (i, letter) in letters.iter().enumerate().skip(open) {
        if letter.is_quoted {
            continue;
        }
        depth += i32::from(letter.c == '(') - i32::from(letter.c == ')');
        if depth == 0 {
            return Some(i);
        }
    }
    None
}

impl Io {
    /// Reads a statement; `None` if it is no input or output.
    pub(crate) fn read(statement: &Statement) -> Option<Io> {
        let letters = &statement.letters;
        let small = |range: Range<usize>| -> String {
            letters[range]
                .iter()
                .map(|l| {
                    if l.is_quoted {
                        l.c
                    } else {
                        l.c.to_ascii_lowercase()
                    }
                })
                .collect()
        };
        let mut from = 0;
        let mut condition = None;
        if small(0..letters.len().min(3)) == "if(" {
            let end = close_of(letters, 2)? + 1;
            condition = Some(letters[..end].iter().map(|l| l.c).collect());
            from = end;
        }
        let rest = small(from..letters.len());
        let (word, verb) = *VERBS.iter().find(|(word, _)| rest.starts_with(word))?;
        let is_declaration = outside(&rest, ':')
            .windows(2)
            .any(|two| two[1] == two[0] + 1);
        if assigns(&rest) || is_declaration {
            return None;
        }
        let open = from + word.len();
        let at = letters.get(from)?.at;
        let mut io = Io {
            verb,
            condition,
            arguments: Vec::new(),
            items: Vec::new(),
            at,
        };
        let next = letters.get(open)?;
        let list = |range: Range<usize>| {
            let text: String = letters[range.clone()].iter().map(|l| l.c).collect();
            // Ranges of bytes as ranges of letters.
            let count = |upto: usize| text[..upto].chars().count() + range.start;
            parts(&text)
                .into_iter()
                .map(|r| count(r.start)..count(r.end))
                .collect::<Vec<_>>()
        };
        let value =
            |range: Range<usize>| -> String { letters[range].iter().map(|l| l.c).collect() };
        let place = |range: &Range<usize>| {
            letters
                .get(range.start)
                .or(letters.last())
                .map_or(at, |l| l.at)
        };
        let behind;
        if next.c == '(' && verb != Verb::Print {
            let close = close_of(letters, open)?;
            for range in list(open + 1..close) {
                let equals = range.clone().find(|i| {
                    letters[*i].c == '='
                        && !letters[*i].is_quoted
                        && letters.get(i + 1).is_none_or(|l| l.c != '=')
                });
                let key = equals
                    .map(|i| small(range.start..i))
                    .filter(|key| crate::scopes::is_name(key));
                let from = match (&key, equals) {
                    (Some(_), Some(i)) => i + 1,
                    _ => range.start,
                };
                io.arguments.push(Argument {
                    key,
                    value: value(from..range.end),
                    at: place(&range),
                });
            }
            behind = close + 1;
        } else if matches!(
            verb,
            Verb::Rewind | Verb::Backspace | Verb::Endfile | Verb::Flush
        ) {
            // REWIND 10
            let range = open..letters.len();
            if !next.c.is_ascii_alphanumeric() {
                return None;
            }
            io.arguments.push(Argument {
                key: None,
                value: value(range.clone()),
                at: place(&range),
            });
            return Some(io);
        } else if matches!(verb, Verb::Read | Verb::Print)
            && (next.c == '*' || next.is_quoted || next.c.is_ascii_digit())
        {
            // PRINT *, A and READ *, A: formatted, to no unit of ours.
            let all = list(open..letters.len());
            io.arguments.push(Argument {
                key: Some("fmt".into()),
                value: value(all.first()?.clone()),
                at,
            });
            for range in all.into_iter().skip(1) {
                io.items.push(Item {
                    value: value(range.clone()),
                    at: place(&range),
                });
            }
            return Some(io);
        } else {
            return None;
        }
        for range in list(behind..letters.len()) {
            io.items.push(Item {
                value: value(range.clone()),
                at: place(&range),
            });
        }
        Some(io)
    }

    /// The argument of a key, or at a place without one.
    pub(crate) fn argument(&self, key: &str, position: Option<usize>) -> Option<&Argument> {
        let by_key = self
            .arguments
            .iter()
            .find(|a| a.key.as_deref() == Some(key));
        by_key.or_else(|| self.arguments.get(position?).filter(|a| a.key.is_none()))
    }

    /// The unit.
    pub(crate) fn unit(&self) -> Option<&Argument> {
        match self.verb {
            Verb::Print => None,
            Verb::Open => self
                .argument("newunit", None)
                .or_else(|| self.argument("unit", Some(0))),
            _ => self.argument("unit", Some(0)),
        }
    }

    /// The format, or the namelist.
    pub(crate) fn format(&self) -> Option<&Argument> {
        match self.verb {
            Verb::Read | Verb::Write | Verb::Print => {
                let namelist = self.argument("nml", None);
                namelist.or_else(|| self.argument("fmt", Some(1)))
            }
            _ => None,
        }
    }
}
