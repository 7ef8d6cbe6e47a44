//! Who said it, whose word counts, and what became of every hint.
//!
//! Hints of several sources stand beside each other. For every name the value of the highest source
//! counts, among equals the later one (directories: the nearest), if it makes sense; one that does not is
//! passed over and the next counts.

use std::cmp::Reverse;

use super::table::{Life, canonical, check, known};

/// Where a hint comes from, lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Source {
    /// Observed accesses, or a template made from them.
    Profile = 1,
    /// The administrator, on a directory above the file.
    Directory = 2,
    /// The administrator, on the file.
    File = 3,
    /// The compiler or a job script, through the file that `PARIO_HINTS` names.
    Compiler = 4,
    /// The program, when it connects.
    Connect = 5,
    /// The program, when it opens the file or later.
    Program = 6,
    /// The program, about what has just come about.
    Dynamic = 7,
}

impl Source {
    /// All, the strongest first.
    pub const ALL: [Source; 7] = [
        Source::Dynamic,
        Source::Program,
        Source::Connect,
        Source::Compiler,
        Source::File,
        Source::Directory,
        Source::Profile,
    ];

    /// One word.
    pub fn word(self) -> &'static str {
        match self {
            Source::Profile => "profile",
            Source::Directory => "directory",
            Source::File => "file",
            Source::Compiler => "compiler",
            Source::Connect => "connect",
            Source::Program => "program",
            Source::Dynamic => "dynamic",
        }
    }

    /// Higher goes first.
    pub fn precedence(self) -> u8 {
        self as u8
    }

    /// By its number.
    pub fn from_precedence(number: u64) -> Option<Source> {
        let mut all = Source::ALL.into_iter();
        all.find(|source| u64::from(source.precedence()) == number)
    }

    /// Whether a hint of this life can come from here.
    pub fn may_give(self, life: Life) -> bool {
        match self {
            Source::Dynamic => life == Life::Dynamic,
            _ => life == Life::Static,
        }
    }
}

/// A hint, and which source gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourcedHint {
    /// Its name, as it was given.
    pub name: String,
    /// Its value.
    pub value: String,
    /// Who gave it.
    pub source: Source,
    /// Where it stands: a path, or a file and line; empty for programs.
    pub place: String,
    /// How near a directory is, 0 for the nearest; 0 for all others.
    pub distance: u32,
}

impl SourcedHint {
    /// Of a source that has one place only, such as a program.
    pub fn new(source: Source, name: &str, value: &str) -> SourcedHint {
        SourcedHint {
            name: name.to_owned(),
            value: value.to_owned(),
            source,
            place: String::new(),
            distance: 0,
        }
    }

    /// Standing at a place.
    pub fn at(mut self, place: &str, distance: u32) -> SourcedHint {
        self.place = place.to_owned();
        self.distance = distance;
        self
    }
}

/// What became of a hint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It counts.
    Counts,
    /// A stronger one counts: the index of that one among those given.
    Overridden(usize),
    /// Passed over, and why.
    Ignored(String),
    /// Nobody here knows the name; kept for others.
    Unknown,
}

/// All hints about one thing, and what became of each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HintVerdicts {
    /// As they were given, with the verdict of each.
    pub hints: Vec<(SourcedHint, Verdict)>,
}

impl HintVerdicts {
    /// The hint that counts for a name; unknown ones too, the strongest of them.
    pub fn get(&self, name: &str) -> Option<&SourcedHint> {
        let name = canonical(name);
        let counts = |verdict: &Verdict| matches!(verdict, Verdict::Counts | Verdict::Unknown);
        self.hints
            .iter()
            .find(|(given, verdict)| canonical(&given.name) == name && counts(verdict))
            .map(|(given, _)| given)
    }

    /// All that count, by their names in the table.
    pub fn counting(&self) -> impl Iterator<Item = (&str, &SourcedHint)> {
        let counts = |verdict: &Verdict| matches!(verdict, Verdict::Counts | Verdict::Unknown);
        let counting = self.hints.iter().filter(move |(_, v)| counts(v));
        counting.map(|(given, _)| (canonical(&given.name), given))
    }

    /// The value that counts cannot be used after all: it is passed over, and the next one counts, if
    /// there is one.
    pub fn pass_over(&mut self, name: &str, why: &str) {
        let name = canonical(name);
        let of_name = |given: &SourcedHint| canonical(&given.name) == name;
        let Some(now) = (self.hints.iter())
            .position(|(given, verdict)| of_name(given) && *verdict == Verdict::Counts)
        else {
            return;
        };
        self.hints[now].1 = Verdict::Ignored(why.to_owned());
        let below: Vec<usize> = (self.hints.iter().enumerate())
            .filter(|(_, (_, verdict))| *verdict == Verdict::Overridden(now))
            .map(|(i, _)| i)
            .collect();
        let next = below.iter().copied().min_by_key(|&i| self.rank(i));
        for i in below {
            self.hints[i].1 = match next {
                Some(next) if next != i => Verdict::Overridden(next),
                _ => Verdict::Counts,
            };
        }
    }

    /// Smaller goes first.
    fn rank(&self, index: usize) -> (Reverse<Source>, u32, Reverse<usize>) {
        let given = &self.hints[index].0;
        (Reverse(given.source), given.distance, Reverse(index))
    }
}

/// Decides what counts. `more` checks what only the caller can.
///
/// ```
/// use advise::hints::{SourcedHint, Source, Verdict, judge};
/// let hints = judge(
///     vec![
///         SourcedHint::new(Source::Directory, "striping_unit", "64KiB").at("/data", 0),
///         SourcedHint::new(Source::Program, "striping_unit", "many"),
///     ],
///     |_, _| Ok(()),
/// );
/// assert_eq!(hints.get("striping_unit").unwrap().value, "64KiB");
/// assert!(matches!(&hints.hints[1].1, Verdict::Ignored(why) if why.contains("number")));
/// ```
pub fn judge(
    given: Vec<SourcedHint>,
    more: impl Fn(&str, &str) -> Result<(), String>,
) -> HintVerdicts {
    let mut standing = HintVerdicts {
        hints: given.into_iter().map(|g| (g, Verdict::Counts)).collect(),
    };
    for (given, verdict) in &mut standing.hints {
        let name = canonical(&given.name);
        if let Some(known) = known(name)
            && !given.source.may_give(known.life)
        {
            let why = match known.life {
                Life::Dynamic => "only a running program that has the file open can know that",
                Life::Static => "it holds for a whole run, so it is no dynamic hint",
            };
            *verdict = Verdict::Ignored(why.to_owned());
        } else if let Err(why) = check(name, &given.value).and_then(|()| more(name, &given.value)) {
            *verdict = Verdict::Ignored(why);
        }
    }
    let mut order: Vec<usize> = (0..standing.hints.len())
        .filter(|&i| standing.hints[i].1 == Verdict::Counts)
        .collect();
    order.sort_by_key(|&i| standing.rank(i));
    let mut first: Vec<usize> = Vec::new();
    for i in order {
        let name = canonical(&standing.hints[i].0.name).to_owned();
        let stronger = first
            .iter()
            .copied()
            .find(|&f| canonical(&standing.hints[f].0.name) == name);
        standing.hints[i].1 = match stronger {
            Some(stronger) => Verdict::Overridden(stronger),
            None => {
                first.push(i);
                match known(&name) {
                    Some(_) => Verdict::Counts,
                    None => Verdict::Unknown,
                }
            }
        };
    }
    standing
}
