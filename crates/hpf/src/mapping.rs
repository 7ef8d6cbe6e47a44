//! Directives of a program: which names they are about, and those of one array as an expression of Fortran.
//!
//! What only the running program knows (`PROCESSORS P(N)`) becomes a part of that expression: `'PROCESSORS P(' // pario_hpf_text(N) // ')'`.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::source::Statement;

/// A directive.
#[derive(Debug)]
pub(crate) struct Directive {
    /// Its statement.
    pub(crate) index: usize,
    /// Its words, in small letters: DISTRIBUTE, TEMPLATE and so on.
    pub(crate) words: BTreeSet<String>,
    /// Names that it is about, in small letters, with where they stand among the letters.
    pub(crate) entities: Vec<(String, usize)>,
    /// Names behind ONTO and WITH.
    pub(crate) others: Vec<String>,
    /// Letters that only the program knows the value of.
    values: Vec<Range<usize>>,
    /// Bounds of each entity, as letters.
    bounds: Vec<(String, Range<usize>)>,
    /// Whether what is behind WITH goes dimension by dimension.
    pub(crate) is_plain: bool,
    letters: Vec<char>,
}

const WORDS: [&str; 8] = [
    "processors",
    "template",
    "dimension",
    "distribute",
    "align",
    "onto",
    "with",
    "dynamic",
];

impl Directive {
    /// Reads as much of a directive as the translation needs; the rest is for `layout`.
    pub(crate) fn read(index: usize, statement: &Statement) -> Directive {
        let letters: Vec<char> = statement.letters.iter().map(|l| l.c).collect();
        let small: Vec<char> = letters.iter().map(|c| c.to_ascii_lowercase()).collect();
        let mut found = Directive {
            index,
            words: BTreeSet::new(),
            entities: Vec::new(),
            others: Vec::new(),
            values: Vec::new(),
            bounds: Vec::new(),
            is_plain: true,
            letters,
        };
        let depths = |upto: usize| {
            small[..upto]
                .iter()
                .fold(0i32, |d, c| d + i32::from(*c == '(') - i32::from(*c == ')'))
        };
        let colons = (0..small.len().saturating_sub(1))
            .find(|i| small[*i] == ':' && small[i + 1] == ':' && depths(*i) == 0);
        let (mut at, mut depth) = (0, 0i32);
        let mut mode = String::new();
        let mut sources: Vec<String> = Vec::new();
        let mut targets: Vec<String> = Vec::new();
        let is_inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '%' | '$');
        while at < small.len() {
            let c = small[at];
            if !c.is_ascii_alphabetic() && c != '_' {
                match c {
                    '(' => {
                        depth += 1;
                        if depth == 1
                            && matches!(
                                mode.as_str(),
                                "entities" | "processors" | "template" | "dimension"
                            )
                            && let Some((name, _)) = found.entities.last()
                        {
                            let end = (at..small.len())
                                .find(|i| depths(i + 1) == 0)
                                .unwrap_or(small.len());
                            found.bounds.push((name.clone(), at + 1..end));
                        }
                    }
                    ')' => depth -= 1,
                    ':' if colons == Some(at) => mode = "entities".into(),
                    '*' | '+' | '-' if mode == "with" && depth > 0 => found.is_plain = false,
                    c if c.is_ascii_digit() => {
                        while at + 1 < small.len() && is_inside(small[at + 1]) {
                            at += 1;
                        }
                        found.is_plain &= mode != "with" || depth == 0;
                    }
                    _ => {}
                }
                at += 1;
                continue;
            }
            let from = at;
            while at < small.len() && is_inside(small[at]) {
                at += 1;
            }
            let name: String = small[from..at].iter().collect();
            if depth == 0 {
                if WORDS.contains(&name.as_str()) && mode != "entities" {
                    found.words.insert(name.clone());
                    mode = name;
                } else if mode == "onto" || mode == "with" {
                    found.others.push(name);
                } else {
                    found.entities.push((name, from));
                }
                continue;
            }
            match mode.as_str() {
                "distribute" if depth == 1 => continue,
                "align" => {
                    sources.push(name);
                    continue;
                }
                "with" if sources.contains(&name) => {
                    targets.push(name);
                    continue;
                }
                _ => {}
            }
            found.is_plain &= mode != "with";
            // A call such as NUMBER_OF_PROCESSORS() is a value as a whole.
            let next = (at..small.len()).find(|i| small[*i] != ' ');
            if let Some(open) = next.filter(|i| small[*i] == '(') {
                let before = depths(open);
                at = (open..small.len())
                    .find(|i| depths(i + 1) == before)
                    .map_or(small.len(), |i| i + 1);
            }
            found.values.push(from..at);
        }
        found.is_plain &= targets == sources;
        found
    }

    /// Whether it has a value that only the program knows.
    pub(crate) fn has_values(&self) -> bool {
        !self.values.is_empty()
    }

    /// Whether it says something of a name.
    pub(crate) fn is_about(&self, name: &str) -> bool {
        self.entities.iter().any(|(entity, _)| entity == name)
    }

    /// Letters with those of values by what a function makes of them.
    fn rewritten(&self, range: Range<usize>, value: impl Fn(&str) -> String) -> String {
        let mut text = String::new();
        let mut at = range.start;
        for values in self
            .values
            .iter()
            .filter(|v| v.start >= range.start && v.end <= range.end)
        {
            text.extend(&self.letters[at..values.start]);
            let own: String = self.letters[values.clone()].iter().collect();
            text += &value(&own);
            at = values.end;
        }
        text.extend(&self.letters[at..range.end]);
        text
    }

    /// The directive as the inside of a literal of Fortran.
    pub(crate) fn literal(&self) -> String {
        let value = |own: &str| format!("' // pario_hpf_text({}) // '", called(own));
        self.rewritten(0..self.letters.len(), value)
            .trim()
            .to_owned()
    }

    /// Where values stand, among the letters, for a text in which they are numbers.
    pub(crate) fn value_letters(&self) -> &[Range<usize>] {
        &self.values
    }

    /// Extents of an entity as expressions of Fortran.
    pub(crate) fn extents(&self, name: &str) -> Option<Vec<String>> {
        let (_, range) = self.bounds.iter().find(|(entity, _)| entity == name)?;
        let text = self.rewritten(range.clone(), called);
        let extent = |part: &str| match part.split_once(':') {
            None => part.trim().to_owned(),
            Some((lower, upper)) => format!("({}) - ({}) + 1", upper.trim(), lower.trim()),
        };
        Some(
            crate::scopes::parts(&text)
                .into_iter()
                .map(|r| extent(&text[r]))
                .collect(),
        )
    }

    /// Bounds of an entity as the inside of a literal.
    pub(crate) fn bounds_literal(&self, name: &str) -> Option<String> {
        let (_, range) = self.bounds.iter().find(|(entity, _)| entity == name)?;
        let value = |own: &str| format!("' // pario_hpf_text({}) // '", called(own));
        Some(self.rewritten(range.clone(), value))
    }
}

/// A value as Fortran has it.
fn called(own: &str) -> String {
    let word: String = own.chars().filter(|c| !c.is_whitespace()).collect();
    match word.eq_ignore_ascii_case("number_of_processors()") {
        true => "pario_hpf_processes()".into(),
        false => word,
    }
}
