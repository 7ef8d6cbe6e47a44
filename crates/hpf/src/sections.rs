//! Items of a list that are a part of an array: `a(1:4,:)`, `a(i,j)`, and loops within a list that run through a part in the order of
//! memory, `((a(i,j), i=1,n), j=1,m)`.
//!
//! A part is told to the calls as an array of its own that is aligned with the whole. Left to others: whether the array is distributed,
//! and what becomes of it (`translate`).

use crate::scopes::{is_name, leading_name, parts};

/// What stands for one dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Subscript {
    At(String),
    /// Empty where nothing stands.
    Range {
        lower: String,
        upper: String,
        stride: String,
    },
}

/// A part of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) name: String,
    pub(crate) subscripts: Vec<Subscript>,
}

/// A text without its outermost brackets, if it begins and ends with them and they belong together.
fn within(text: &str) -> Option<&str> {
    let (mut depth, mut quote) = (0i32, None);
    for (i, c) in text.char_indices() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '(' | '[') => depth += 1,
            (None, ')' | ']') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            let is_last = i + c.len_utf8() == text.len();
            return (is_last && text.starts_with('(')).then(|| &text[1..i]);
        }
    }
    None
}

/// Where a character stands outside of brackets and quotes.
pub(crate) fn outside(text: &str, wanted: char) -> Vec<usize> {
    let (mut depth, mut quote) = (0i32, None);
    let mut all = Vec::new();
    for (i, c) in text.char_indices() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '(' | '[') => depth += 1,
            (None, ')' | ']') => depth -= 1,
            (None, c) if c == wanted && depth == 0 => all.push(i),
            _ => {}
        }
    }
    all
}

/// Whether a name stands in an expression, as a word of its own.
fn mentions(text: &str, name: &str) -> bool {
    let is_inside = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.split(|c| !is_inside(c))
        .any(|word| word.eq_ignore_ascii_case(name))
}

fn subscript(text: &str) -> Option<Subscript> {
    let colons = outside(text, ':');
    Some(match colons[..] {
        [] if text.is_empty() => return None,
        [] => Subscript::At(text.to_owned()),
        [one] => Subscript::Range {
            lower: text[..one].to_owned(),
            upper: text[one + 1..].to_owned(),
            stride: String::new(),
        },
        [one, two] => Subscript::Range {
            lower: text[..one].to_owned(),
            upper: text[one + 1..two].to_owned(),
            stride: text[two + 1..].to_owned(),
        },
        _ => return None,
    })
}

/// A loop within a list: its items, and how its variable runs.
struct LoopWithin<'a> {
    items: Vec<&'a str>,
    variable: &'a str,
    lower: &'a str,
    upper: &'a str,
    stride: &'a str,
}

impl<'a> LoopWithin<'a> {
    /// Reads `(items, variable=lower,upper,stride)`; `None` if it is none.
    fn read(item: &'a str) -> Option<LoopWithin<'a>> {
        let inside = within(item)?;
        let all: Vec<&str> = parts(inside).into_iter().map(|r| &inside[r]).collect();
        let control = all.iter().position(|part| {
            part.split_once('=')
                .is_some_and(|(name, rest)| is_name(name) && !rest.starts_with('='))
        })?;
        let (variable, lower) = all[control].split_once('=')?;
        let rest = &all[control + 1..];
        if control == 0 || rest.is_empty() || rest.len() > 2 {
            return None;
        }
        Some(LoopWithin {
            items: all[..control].to_vec(),
            variable,
            lower,
            upper: rest[0],
            stride: rest.get(1).copied().unwrap_or(""),
        })
    }
}

/// Whether an item is a loop within a list.
pub(crate) fn is_loop(item: &str) -> bool {
    LoopWithin::read(item).is_some()
}

/// The names that begin the items of a loop, of those within it as well; of another item its own.
pub(crate) fn names(item: &str) -> Vec<&str> {
    match LoopWithin::read(item) {
        Some(inner) => inner.items.iter().flat_map(|item| names(item)).collect(),
        None => vec![leading_name(item)],
    }
}

impl Section {
    /// Reads an item with brackets; `None` if it is no part of an array.
    pub(crate) fn read(item: &str) -> Option<Section> {
        let name = leading_name(item);
        let inside = within(&item[name.len()..])?;
        let all = parts(inside).into_iter().map(|r| subscript(&inside[r]));
        let subscripts: Option<Vec<Subscript>> = all.collect();
        let section = Section {
            name: name.to_owned(),
            subscripts: subscripts?,
        };
        (is_name(name) && !section.subscripts.is_empty()).then_some(section)
    }

    /// The part that loops within a list run through. Fails if they do so in another order than that of memory, or do something else.
    pub(crate) fn of_loop(item: &str) -> Result<Section, &'static str> {
        const ORDER: &str = "the loops of this list are not in the order of memory, in which the first index runs fastest; write a section such as a(1:n,:)";
        // From the outermost to the innermost.
        let mut loops = Vec::new();
        let mut now = item;
        while let Some(next) = LoopWithin::read(now) {
            let [inner] = next.items[..] else {
                return Err("several items in a loop within a list are not offered");
            };
            loops.push(next);
            now = inner;
        }
        let element = Section::read(now)
            .ok_or("a loop within a list that does not run through an array is not offered")?;
        let mut subscripts = element.subscripts;
        let mut from = 0;
        for inner in loops.iter().rev() {
            let is_it = |s: &Subscript| matches!(s, Subscript::At(text) if text.eq_ignore_ascii_case(inner.variable));
            let found = subscripts.iter().position(is_it).ok_or(ORDER)?;
            if found < from {
                return Err(ORDER);
            }
            from = found + 1;
            subscripts[found] = Subscript::Range {
                lower: inner.lower.to_owned(),
                upper: inner.upper.to_owned(),
                stride: inner.stride.to_owned(),
            };
        }
        let section = Section {
            name: element.name,
            subscripts,
        };
        // Bounds that depend on a loop make a triangle.
        match loops
            .iter()
            .any(|inner| mentions(&section.text(), inner.variable))
        {
            true => Err(ORDER),
            false => Ok(section),
        }
    }

    /// The part as an array: of an element, one whose first dimension has one index.
    pub(crate) fn into_array(mut self) -> Section {
        let has_range = self
            .subscripts
            .iter()
            .any(|s| matches!(s, Subscript::Range { .. }));
        if let (false, Some(Subscript::At(index))) = (has_range, self.subscripts.first()) {
            self.subscripts[0] = Subscript::Range {
                lower: index.clone(),
                upper: index.clone(),
                stride: String::new(),
            };
        }
        self
    }

    /// Whether it is all of the array.
    pub(crate) fn is_whole(&self) -> bool {
        let is_all = |s: &Subscript| {
            matches!(s, Subscript::Range { lower, upper, stride }
                if lower.is_empty() && upper.is_empty() && stride.is_empty())
        };
        self.subscripts.iter().all(is_all)
    }

    /// As Fortran has it.
    pub(crate) fn text(&self) -> String {
        self.with(|index| index.to_owned())
    }

    /// The array that it is aligned with, as the inside of a literal of Fortran.
    pub(crate) fn alignment(&self) -> String {
        let value = |index: &str| match index.chars().all(|c| c.is_ascii_digit()) {
            true => index.to_owned(),
            false => format!("' // pario_hpf_text({index}) // '"),
        };
        let dimensions = self
            .subscripts
            .iter()
            .filter(|s| matches!(s, Subscript::Range { .. }));
        let colons: Vec<&str> = dimensions.map(|_| ":").collect();
        format!(
            "align {}({}) with {}",
            self.own_name(),
            colons.join(","),
            self.with(value)
        )
    }

    /// The name of the part in directives.
    pub(crate) fn own_name(&self) -> String {
        format!("{}$part", self.name)
    }

    fn with(&self, value: impl Fn(&str) -> String) -> String {
        let one = |s: &Subscript| match s {
            Subscript::At(index) => value(index),
            Subscript::Range {
                lower,
                upper,
                stride,
            } => {
                let given = |text: &String| match text.is_empty() {
                    true => String::new(),
                    false => value(text),
                };
                let step = match stride.is_empty() {
                    true => String::new(),
                    false => format!(":{}", value(stride)),
                };
                format!("{}:{}{step}", given(lower), given(upper))
            }
        };
        let all: Vec<String> = self.subscripts.iter().map(one).collect();
        format!("{}({})", self.name, all.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_within_lists_are_sections_if_they_run_as_memory_does() {
        for (item, section) in [
            ("(a(i),i=1,n)", "a(1:n)"),
            ("((a(i,j),i=1,n),j=2,m,2)", "a(1:n,2:m:2)"),
            ("(a(3,i),i=1,n)", "a(3,1:n)"),
            ("((a(I,3,J),i=1,f(n,m)),j=1,m)", "a(1:f(n,m),3,1:m)"),
        ] {
            assert_eq!(
                Section::of_loop(item).map(|s| s.text()),
                Ok(section.to_owned())
            );
            assert_eq!(names(item), ["a"]);
        }
        for item in [
            "((a(i,j),j=1,m),i=1,n)",
            "((a(i,j),i=1,j),j=1,m)",
            "(a(2*i),i=1,n)",
            "(a(i),b(i),i=1,n)",
            "(i,i=1,n)",
        ] {
            assert!(Section::of_loop(item).is_err(), "{item}");
        }
        assert_eq!(names("((a(i),b,i=1,n),c,j=1,2)"), ["a", "b", "c"]);
        for item in ["(x+1)", "a", "a(1)", "(x==1)"] {
            assert!(!is_loop(item), "{item}");
        }
    }

    #[test]
    fn parts_of_arrays_are_read() {
        for item in ["a(1:4,:)", "a(::2)", "a(i,f(1:2),:)", "a(n:)"] {
            assert_eq!(Section::read(item).unwrap().text(), item);
        }
        for item in [
            "a",
            "a()",
            "a(1)(2:3)",
            "a(1)%x",
            "a(1)+b(2)",
            "(a)",
            "3(1)",
            "a(1:2:3:4)",
        ] {
            assert_eq!(Section::read(item), None, "{item}");
        }
        assert!(Section::read("a(:,:)").unwrap().is_whole());
        assert_eq!(
            Section::read("a(i,4)").unwrap().into_array().text(),
            "a(i:i,4)"
        );
        assert_eq!(
            Section::read("a(2:n,:,3)").unwrap().alignment(),
            "align a$part(:,:) with a(2:' // pario_hpf_text(n) // ',:,3)"
        );
    }
}
