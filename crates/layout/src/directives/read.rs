//! Statements of directives, read: each is a value or an error at its character.
//! What belongs together is put together when they are applied.

use super::tokens::{Kind, Statement, Token, statements};
use super::{
    Align, Bounds, DirectiveError, Directives, Distribute, Format, Onto, Place, Shape, Source,
    Subscript, error_at,
};
use crate::array::MAX_DIMENSIONS;
use crate::distribution::Distribution;

type Outcome<T> = Result<T, DirectiveError>;

/// Deepest brackets of an expression.
const MAX_DEPTH: usize = 64;

/// Directives that say nothing of where an array lies.
const PASSED_OVER: [&str; 10] = [
    "DYNAMIC",
    "INDEPENDENT",
    "ON",
    "END",
    "RESIDENT",
    "RANGE",
    "SHADOW",
    "SEQUENCE",
    "NOSEQUENCE",
    "INHERIT",
];

/// Reads all directives of a text.
pub(super) fn directives(text: &str) -> Outcome<Directives> {
    let lines: Vec<String> = text
        .split('\n')
        .map(|line| line.trim_end_matches('\r').to_owned())
        .collect();
    let mut found = Directives {
        lines: lines.clone(),
        ..Directives::default()
    };
    for statement in statements(text, &lines)? {
        let mut reader = Reader {
            lines: &lines,
            statement: &statement,
            at: 0,
        };
        reader.directive(&mut found)?;
    }
    Ok(found)
}

/// An attribute of a directive, to be given to names.
enum Attribute {
    Processors,
    Template,
    Dimension(Vec<Bounds>),
    Distribute(Vec<Format>, Option<Onto>),
    Align(Align),
    Nothing,
}

/// `constant + stride * dummy`, as expressions of `ALIGN` are.
#[derive(Clone, Copy)]
struct Linear {
    constant: i64,
    dummy: Option<(usize, i64)>,
}

struct Reader<'a> {
    lines: &'a [String],
    statement: &'a Statement,
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<&Kind> {
        self.statement.tokens.get(self.at).map(|token| &token.kind)
    }

    /// Where the next token stands, or the statement ends.
    fn place(&self) -> Place {
        let next = self
            .statement
            .tokens
            .get(self.at)
            .map(|token: &Token| token.place);
        let end = self.statement.end.unwrap_or(Place {
            line: 0,
            character: 0,
        });
        next.unwrap_or(end)
    }

    fn error(&self, place: Place, message: impl Into<String>) -> DirectiveError {
        error_at(self.lines, place, message)
    }

    fn expected(&self, wanted: &str) -> DirectiveError {
        let found = match self.peek() {
            None => "the end".to_owned(),
            Some(Kind::Word(word)) => word.clone(),
            Some(Kind::Number(n)) => n.to_string(),
            Some(Kind::Mark(c)) => format!("'{c}'"),
            Some(Kind::Colons) => "'::'".to_owned(),
            Some(Kind::ListOpen) => "'(/'".to_owned(),
            Some(Kind::ListClose) => "'/)'".to_owned(),
        };
        self.error(self.place(), format!("expected {wanted}, found {found}"))
    }

    fn take(&mut self, kind: &Kind) -> bool {
        let is_next = self.peek() == Some(kind);
        self.at += usize::from(is_next);
        is_next
    }

    fn take_mark(&mut self, mark: char) -> bool {
        self.take(&Kind::Mark(mark))
    }

    fn expect_mark(&mut self, mark: char, role: &str) -> Outcome<()> {
        match self.take_mark(mark) {
            true => Ok(()),
            false => Err(self.expected(&format!("'{mark}' {role}"))),
        }
    }

    fn word(&mut self, wanted: &str) -> Outcome<String> {
        match self.peek() {
            Some(Kind::Word(word)) => {
                let word = word.clone();
                self.at += 1;
                Ok(word)
            }
            _ => Err(self.expected(wanted)),
        }
    }

    fn take_word(&mut self, wanted: &str) -> bool {
        let is_next = matches!(self.peek(), Some(Kind::Word(word)) if word == wanted);
        self.at += usize::from(is_next);
        is_next
    }

    /// Whether `::` stands outside of brackets.
    fn has_colons(&self) -> bool {
        let mut depth = 0i64;
        self.statement.tokens.iter().any(|token| {
            match token.kind {
                Kind::Mark('(') => depth += 1,
                Kind::Mark(')') => depth -= 1,
                _ => {}
            }
            depth == 0 && token.kind == Kind::Colons
        })
    }

    fn directive(&mut self, found: &mut Directives) -> Outcome<()> {
        let first = self.place();
        if let Some(Kind::Word(word)) = self.peek() {
            if PASSED_OVER.contains(&word.as_str()) && !self.has_colons() {
                return Ok(());
            }
            if word == "REDISTRIBUTE" || word == "REALIGN" {
                let text = format!(
                    "{word} moves an array while the program runs, which directives cannot say; use the module's calls"
                );
                return Err(self.error(first, text));
            }
        }
        match self.has_colons() {
            true => self.combined(found),
            false => self.single(found),
        }
    }

    /// `attribute, attribute :: name, name(bounds)`
    fn combined(&mut self, found: &mut Directives) -> Outcome<()> {
        let mut attributes = Vec::new();
        loop {
            attributes.push(self.attribute()?);
            if !self.take_mark(',') {
                break;
            }
        }
        if !self.take(&Kind::Colons) {
            return Err(self.expected("',' or '::'"));
        }
        let is_known = |a: &Attribute| matches!(a, Attribute::Processors | Attribute::Template);
        let declares = attributes.iter().any(is_known);
        loop {
            let place = self.place();
            let name = self.word("a name")?;
            let mut bounds = match self.peek() {
                Some(Kind::Mark('(')) => Some(self.bounds_list()?),
                _ => None,
            };
            for attribute in &attributes {
                if let Attribute::Dimension(shape) = attribute {
                    bounds.get_or_insert_with(|| shape.clone());
                }
            }
            let shape = bounds.map(|bounds| Shape { bounds, place });
            if let Some(shape) = shape.clone().filter(|_| !declares) {
                self.declare(&mut found.arrays, &name, shape)?;
            }
            for attribute in &attributes {
                match attribute {
                    Attribute::Processors => {
                        let shape = shape.clone().unwrap_or(Shape {
                            bounds: Vec::new(),
                            place,
                        });
                        self.declare(&mut found.processors, &name, shape)?;
                    }
                    Attribute::Template => {
                        let shape = shape.clone();
                        let none = || {
                            self.error(
                                place,
                                format!("template {name} has no bounds; write {name}(extent)"),
                            )
                        };
                        let shape = shape.ok_or_else(none)?;
                        self.declare(&mut found.templates, &name, shape)?;
                    }
                    Attribute::Distribute(formats, onto) => {
                        let distribute = Distribute {
                            formats: formats.clone(),
                            onto: onto.clone(),
                            place,
                        };
                        self.map(found, &name, place)?;
                        found.distributions.insert(name.clone(), distribute);
                    }
                    Attribute::Align(align) => {
                        self.map(found, &name, place)?;
                        found.alignments.insert(name.clone(), align.clone());
                    }
                    Attribute::Dimension(_) | Attribute::Nothing => {}
                }
            }
            if !self.take_mark(',') {
                break;
            }
        }
        self.end()
    }

    fn attribute(&mut self) -> Outcome<Attribute> {
        let place = self.place();
        let word = self.word("a directive")?;
        Ok(match word.as_str() {
            "PROCESSORS" => Attribute::Processors,
            "TEMPLATE" => Attribute::Template,
            "DIMENSION" => Attribute::Dimension(self.bounds_list()?),
            "DISTRIBUTE" => {
                let formats = self.formats()?;
                Attribute::Distribute(formats, self.onto()?)
            }
            "ALIGN" => {
                let sources = match self.peek() {
                    Some(Kind::Mark('(')) => Some(self.sources()?),
                    _ => None,
                };
                Attribute::Align(self.with(sources)?)
            }
            word if PASSED_OVER.contains(&word) => Attribute::Nothing,
            _ => return Err(self.unknown(place, &word)),
        })
    }

    fn unknown(&self, place: Place, word: &str) -> DirectiveError {
        let text = format!(
            "{word} is no directive; there are PROCESSORS, TEMPLATE, DISTRIBUTE, ALIGN and DIMENSION"
        );
        self.error(place, text)
    }

    /// A directive with its names inside.
    fn single(&mut self, found: &mut Directives) -> Outcome<()> {
        let first = self.place();
        let word = self.word("a directive")?;
        match word.as_str() {
            "PROCESSORS" | "TEMPLATE" | "DIMENSION" => loop {
                let place = self.place();
                let name = self.word("a name")?;
                let bounds = match self.peek() {
                    Some(Kind::Mark('(')) => self.bounds_list()?,
                    _ if word == "PROCESSORS" => Vec::new(),
                    _ => return Err(self.expected("'(' and bounds")),
                };
                let shape = Shape { bounds, place };
                let table = match word.as_str() {
                    "PROCESSORS" => &mut found.processors,
                    "TEMPLATE" => &mut found.templates,
                    _ => &mut found.arrays,
                };
                self.declare(table, &name, shape)?;
                if !self.take_mark(',') {
                    break;
                }
            },
            "DISTRIBUTE" => {
                let place = self.place();
                let name = self.word("the name of an array or template")?;
                let formats = self.formats()?;
                let onto = self.onto()?;
                self.map(found, &name, place)?;
                found.distributions.insert(
                    name,
                    Distribute {
                        formats,
                        onto,
                        place,
                    },
                );
            }
            "ALIGN" => {
                let place = self.place();
                let name = self.word("the name of an array")?;
                let sources = match self.peek() {
                    Some(Kind::Mark('(')) => Some(self.sources()?),
                    _ => None,
                };
                let align = self.with(sources)?;
                self.map(found, &name, place)?;
                found.alignments.insert(name, align);
            }
            _ => return Err(self.unknown(first, &word)),
        }
        self.end()
    }

    fn end(&self) -> Outcome<()> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.expected("the end of the directive")),
        }
    }

    fn declare(
        &self,
        table: &mut std::collections::BTreeMap<String, Shape>,
        name: &str,
        shape: Shape,
    ) -> Outcome<()> {
        let place = shape.place;
        match table.insert(name.to_owned(), shape) {
            None => Ok(()),
            Some(_) => Err(self.error(place, format!("{name} was declared before"))),
        }
    }

    /// Refuses a second place for an array.
    fn map(&self, found: &Directives, name: &str, place: Place) -> Outcome<()> {
        if found.distributions.contains_key(name) || found.alignments.contains_key(name) {
            let text = format!("{name} was distributed or aligned before");
            return Err(self.error(place, text));
        }
        Ok(())
    }

    /// `(bound, lower:upper)`
    fn bounds_list(&mut self) -> Outcome<Vec<Bounds>> {
        self.expect_mark('(', "and extents")?;
        let mut all = Vec::new();
        loop {
            let place = self.place();
            let first = self.constant()?;
            let (lower, upper) = match self.take_mark(':') {
                true => (first, self.constant()?),
                false => (1, first),
            };
            let extent = upper.checked_sub(lower).and_then(|n| n.checked_add(1));
            let extent = extent.and_then(|n| u64::try_from(n).ok());
            let refuse = || {
                self.error(
                    place,
                    format!("{lower}:{upper} has fewer indices than none"),
                )
            };
            all.push(Bounds {
                lower,
                extent: extent.ok_or_else(refuse)?,
            });
            self.check_dimensions(all.len(), place)?;
            if !self.take_mark(',') {
                break;
            }
        }
        self.expect_mark(')', "or ',' and another extent")?;
        Ok(all)
    }

    fn check_dimensions(&self, count: usize, place: Place) -> Outcome<()> {
        match count > MAX_DIMENSIONS {
            true => Err(self.error(place, format!("more than {MAX_DIMENSIONS} dimensions"))),
            false => Ok(()),
        }
    }

    /// `(BLOCK, CYCLIC(3), *)`
    fn formats(&mut self) -> Outcome<Vec<Format>> {
        self.expect_mark('(', "and a distribution for each dimension")?;
        let mut all = Vec::new();
        loop {
            let place = self.place();
            let distribution = self.distribution()?;
            all.push(Format {
                distribution,
                place,
            });
            self.check_dimensions(all.len(), place)?;
            if !self.take_mark(',') {
                break;
            }
        }
        self.expect_mark(')', "or ',' and another distribution")?;
        Ok(all)
    }

    fn distribution(&mut self) -> Outcome<Distribution> {
        if self.take_mark('*') {
            return Ok(Distribution::Collapsed);
        }
        let place = self.place();
        let word = self.word("a distribution: BLOCK, CYCLIC, GEN_BLOCK, INDIRECT or *")?;
        Ok(match word.as_str() {
            "BLOCK" => self
                .argument()?
                .map_or(Distribution::Block, Distribution::BlockOf),
            "CYCLIC" => self
                .argument()?
                .map_or(Distribution::Cyclic, Distribution::CyclicOf),
            "GEN_BLOCK" => {
                let lengths = self.list("GEN_BLOCK", 0)?;
                Distribution::gen_block(&lengths).map_err(|e| self.error(place, e.detail()))?
            }
            "INDIRECT" => {
                let coordinates = self.list("INDIRECT", 1)?;
                let owners: Vec<u64> = coordinates.iter().map(|c| c - 1).collect();
                Distribution::indirect(&owners)
            }
            _ => {
                let text = format!(
                    "{word} is no distribution; give BLOCK, CYCLIC, GEN_BLOCK, INDIRECT or *"
                );
                return Err(self.error(place, text));
            }
        })
    }

    /// `(n)`, a length of at least 1, if it is there.
    fn argument(&mut self) -> Outcome<Option<u64>> {
        if !self.take_mark('(') {
            return Ok(None);
        }
        let n = self.number("a length of blocks", 1)?;
        self.expect_mark(')', "behind the length")?;
        Ok(Some(n))
    }

    fn number(&mut self, what: &str, least: i64) -> Outcome<u64> {
        let place = self.place();
        let n = self.constant()?;
        match u64::try_from(n) {
            Ok(positive) if n >= least => Ok(positive),
            _ => Err(self.error(
                place,
                format!(
                    "{n} is no {}; give {least} or more",
                    what.trim_start_matches("a ")
                ),
            )),
        }
    }

    /// `(/ 1, 2 /)`, `[1, 2]` or `1, 2`, in brackets.
    fn list(&mut self, of: &str, least: i64) -> Outcome<Vec<u64>> {
        let is_bare = self.take(&Kind::ListOpen); // (1,2) written as GEN_BLOCK(/1,2/)
        if !is_bare {
            self.expect_mark('(', &format!("and the list of {of}"))?;
        }
        let is_list = !is_bare && self.take(&Kind::ListOpen);
        let is_square = !is_bare && !is_list && self.take_mark('[');
        if let Some(Kind::Word(name)) = self.peek() {
            let text =
                format!("the values of {name} are not known here; give them as {of}((/1,2,3/))");
            return Err(self.error(self.place(), text));
        }
        let mut all = Vec::new();
        loop {
            all.push(self.number("an entry", least)?);
            if !self.take_mark(',') {
                break;
            }
        }
        if (is_bare || is_list) && !self.take(&Kind::ListClose) {
            return Err(self.expected("'/)' or ',' and another entry"));
        }
        if is_square {
            self.expect_mark(']', "or ',' and another entry")?;
        }
        if !is_bare {
            self.expect_mark(')', "behind the list")?;
        }
        Ok(all)
    }

    /// `ONTO name` or `ONTO name(extents)`, if it is there.
    fn onto(&mut self) -> Outcome<Option<Onto>> {
        if !self.take_word("ONTO") {
            return Ok(None);
        }
        let place = self.place();
        let name = self.word("the name of processors")?;
        let extents = match self.peek() {
            Some(Kind::Mark('(')) => {
                let all = self.bounds_list()?;
                Some(all.iter().map(|b| b.extent).collect())
            }
            _ => None,
        };
        Ok(Some(Onto {
            name,
            extents,
            place,
        }))
    }

    /// `(I, :, *)`
    fn sources(&mut self) -> Outcome<Vec<Source>> {
        self.expect_mark('(', "and a name for each dimension")?;
        let mut all: Vec<Source> = Vec::new();
        loop {
            let place = self.place();
            let source = match self.peek() {
                Some(Kind::Mark(':')) => Source::Next,
                Some(Kind::Mark('*')) => Source::Collapsed,
                Some(Kind::Word(name)) => Source::Dummy(name.clone()),
                _ => return Err(self.expected("a name, ':' or '*'")),
            };
            if let Source::Dummy(name) = &source {
                let is_double = |s: &Source| matches!(s, Source::Dummy(other) if other == name);
                if all.iter().any(is_double) {
                    return Err(self.error(place, format!("{name} stands for two dimensions")));
                }
            }
            self.at += 1;
            all.push(source);
            self.check_dimensions(all.len(), place)?;
            if !self.take_mark(',') {
                break;
            }
        }
        self.expect_mark(')', "or ',' and another dimension")?;
        Ok(all)
    }

    /// `WITH base(subscripts)`
    fn with(&mut self, sources: Option<Vec<Source>>) -> Outcome<Align> {
        if !self.take_word("WITH") {
            return Err(self.expected("WITH"));
        }
        let place = self.place();
        let base = self.word("the name of a template or array")?;
        let open = self.place();
        let subscripts = match (self.peek(), &sources) {
            (Some(Kind::Mark('(')), Some(sources)) => Some(self.subscripts(sources)?),
            (Some(Kind::Mark('(')), None) => {
                let text = "the dimensions of the array are not named; write ALIGN A(I) WITH T(I)";
                return Err(self.error(open, text));
            }
            (_, Some(sources)) if sources.iter().any(|s| !matches!(s, Source::Next)) => {
                return Err(self.expected("'(' and a place for each dimension"));
            }
            _ => None,
        };
        Ok(Align {
            dimensions: sources.map(|s| s.len()),
            base,
            subscripts,
            place,
        })
    }

    fn subscripts(&mut self, sources: &[Source]) -> Outcome<Vec<(Subscript, Place)>> {
        self.expect_mark('(', "and a place for each dimension")?;
        let mut nexts = sources
            .iter()
            .enumerate()
            .filter(|(_, s)| matches!(s, Source::Next))
            .map(|(d, _)| d);
        let mut seen = vec![false; sources.len()];
        let mut all = Vec::new();
        loop {
            let place = self.place();
            let subscript = self.subscript(sources, &mut nexts)?;
            if let Subscript::Linear { dimension, .. } | Subscript::Range { dimension, .. } =
                subscript
                && std::mem::replace(&mut seen[dimension], true)
            {
                let text = "this dimension of the array has a place already";
                return Err(self.error(place, text));
            }
            all.push((subscript, place));
            self.check_dimensions(all.len(), place)?;
            if !self.take_mark(',') {
                break;
            }
        }
        if nexts.next().is_some() {
            return Err(self.expected("',' and ':' for each ':' on the left"));
        }
        self.expect_mark(')', "or ',' and another place")?;
        Ok(all)
    }

    fn subscript(
        &mut self,
        sources: &[Source],
        nexts: &mut impl Iterator<Item = usize>,
    ) -> Outcome<Subscript> {
        let place = self.place();
        if self.take_mark('*') {
            return Ok(Subscript::Replicated);
        }
        let first = match self.peek() {
            Some(Kind::Mark(':')) => None,
            _ => Some(self.linear(sources, 0)?),
        };
        if !self.take_mark(':') {
            let linear = first.expect("read above");
            return match linear.dummy {
                None => Ok(Subscript::At(linear.constant)),
                Some((_, stride)) if stride < 1 => {
                    let text = format!(
                        "the array runs through it in steps of {stride}; steps are 1 or more"
                    );
                    Err(self.error(place, text))
                }
                Some((dimension, stride)) => Ok(Subscript::Linear {
                    dimension,
                    stride,
                    offset: linear.constant,
                }),
            };
        }
        let constant = |reader: &Self, linear: Linear| match linear.dummy {
            None => Ok(linear.constant),
            Some(_) => Err(reader.error(place, "bounds of a range are constants")),
        };
        let lower = first.map(|linear| constant(self, linear)).transpose()?;
        let is_bound =
            |kind: Option<&Kind>| !matches!(kind, None | Some(Kind::Mark(',' | ')' | ':')));
        let upper = match is_bound(self.peek()) {
            true => Some(self.constant()?),
            false => None,
        };
        let step = self.place();
        let stride = match self.take_mark(':') {
            true => self.constant()?,
            false => 1,
        };
        if stride < 1 {
            return Err(self.error(step, format!("steps of {stride}; steps are 1 or more")));
        }
        let dimension = nexts
            .next()
            .ok_or_else(|| self.error(place, "there is no ':' on the left for this one"))?;
        Ok(Subscript::Range {
            dimension,
            lower,
            upper,
            stride,
        })
    }

    fn constant(&mut self) -> Outcome<i64> {
        Ok(self.linear(&[], 0)?.constant)
    }

    /// A sum.
    fn linear(&mut self, sources: &[Source], depth: usize) -> Outcome<Linear> {
        let mut sum = self.product(sources, depth)?;
        loop {
            let place = self.place();
            let sign = match self.peek() {
                Some(Kind::Mark('+')) => 1,
                Some(Kind::Mark('-')) => -1,
                _ => return Ok(sum),
            };
            self.at += 1;
            let right = self.product(sources, depth)?;
            let right = self.scaled(right, sign, place)?;
            let too_large = || self.error(place, "the numbers here are too large");
            let constant = sum
                .constant
                .checked_add(right.constant)
                .ok_or_else(too_large)?;
            let dummy = match (sum.dummy, right.dummy) {
                (Some((a, m)), Some((b, n))) if a == b => {
                    Some((a, m.checked_add(n).ok_or_else(too_large)?))
                }
                (Some(_), Some(_)) => {
                    return Err(self.error(place, "one index of the array at most, in a place"));
                }
                (left, right) => left.or(right),
            };
            sum = Linear {
                constant,
                dummy: dummy.filter(|(_, stride)| *stride != 0),
            };
        }
    }

    fn scaled(&self, of: Linear, by: i64, place: Place) -> Outcome<Linear> {
        let times = |n: i64| {
            n.checked_mul(by)
                .ok_or_else(|| self.error(place, "the numbers here are too large"))
        };
        let constant = times(of.constant)?;
        let dummy = of
            .dummy
            .map(|(d, stride)| Ok((d, times(stride)?)))
            .transpose()?;
        Ok(Linear { constant, dummy })
    }

    fn product(&mut self, sources: &[Source], depth: usize) -> Outcome<Linear> {
        let mut all = self.factor(sources, depth)?;
        loop {
            let place = self.place();
            if self.take_mark('*') {
                let right = self.factor(sources, depth)?;
                all = match (all.dummy, right.dummy) {
                    (_, None) => self.scaled(all, right.constant, place)?,
                    (None, Some(_)) => self.scaled(right, all.constant, place)?,
                    _ => {
                        return Err(
                            self.error(place, "an index of the array times another is no place")
                        );
                    }
                };
            } else if self.take_mark('/') {
                let right = self.factor(sources, depth)?;
                if all.dummy.is_some() || right.dummy.is_some() {
                    return Err(self.error(place, "an index of the array cannot be divided"));
                }
                let quotient = all.constant.checked_div(right.constant);
                let constant = quotient.ok_or_else(|| self.error(place, "division by 0"))?;
                all = Linear {
                    constant,
                    dummy: None,
                };
            } else {
                return Ok(all);
            }
        }
    }

    fn factor(&mut self, sources: &[Source], depth: usize) -> Outcome<Linear> {
        let place = self.place();
        if depth > MAX_DEPTH {
            return Err(self.error(place, format!("brackets deeper than {MAX_DEPTH}")));
        }
        match self.peek() {
            Some(Kind::Number(n)) => {
                let constant = *n;
                self.at += 1;
                Ok(Linear {
                    constant,
                    dummy: None,
                })
            }
            Some(Kind::Mark(sign @ ('-' | '+'))) => {
                let by = if *sign == '-' { -1 } else { 1 };
                self.at += 1;
                let of = self.factor(sources, depth + 1)?;
                self.scaled(of, by, place)
            }
            Some(Kind::Mark('(')) => {
                self.at += 1;
                let inside = self.linear(sources, depth + 1)?;
                self.expect_mark(')', "behind the expression")?;
                Ok(inside)
            }
            Some(Kind::Word(name)) => {
                let is_it = |s: &Source| matches!(s, Source::Dummy(other) if other == name);
                let Some(dimension) = sources.iter().position(is_it) else {
                    let text = match sources.is_empty() {
                        true => format!("the value of {name} is not known here; give a number"),
                        false => format!("{name} is no dimension of the array, nor a number"),
                    };
                    return Err(self.error(place, text));
                };
                self.at += 1;
                Ok(Linear {
                    constant: 0,
                    dummy: Some((dimension, 1)),
                })
            }
            _ => Err(self.expected("a number")),
        }
    }
}
