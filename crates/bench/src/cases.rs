//! Owns the list of copies that `pario bench kernels` measures: names, shapes and sizes.
//!
//! `b` is the contiguous run on the strided side. Shapes:
//! * `rows`: contiguous, one row of 4096 bytes after another;
//! * `cols`: one column block of a matrix with five such blocks per row; with `/conflict` all
//!   column blocks, one after another, of a matrix whose row is a power of two (4096 bytes, or
//!   four blocks if those are longer), so that a column falls into few cache sets;
//! * `blocks`: one 2-D block of a matrix with three such blocks per row, two with `/conflict`;
//! * `cyc`: one part of a 2 x 2 block-cyclic matrix, every other block of every other row; the
//!   row has an odd number of blocks, a power of two with `/conflict`;
//! * `cyc/../p=N`: one pass deals blocks to N packets, placed by the cache-conflict-free
//!   stride, or at a power of two with `/conflict`;
//! * `transpose`: an N x N matrix of elements of `b` bytes.
//!
//! `cache` jobs of blocks below 64 bytes touch at most 24 KiB on both sides together, so that the
//! copy is measured and not the second cache; with `/l2`, and for longer blocks, 384 KiB.
//! Packets and `cols/../conflict` move 128 KiB, transposes fit the last level. `memory` jobs move
//! 48 MiB, transposes their matrix.

use kernels::{Nest, NestError, Pages};

use super::packers::{CacheLevel, cache_optimal_stride};

/// What one pass does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Gather,
    Scatter,
    Copy,
}

/// Where the bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Cache,
    SecondCache,
    Memory,
}

impl Place {
    /// Bytes that a job moves there.
    fn bytes(self) -> u64 {
        match self {
            Place::Memory => MEMORY,
            _ => 128 << 10,
        }
    }
}

/// How strides lie to the sets of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strides {
    /// Over all of them.
    Free,
    /// Powers of two, which fall into few.
    Conflict,
}

impl Strides {
    pub(crate) const ALL: [Strides; 2] = [Strides::Free, Strides::Conflict];
}

/// One loop level, outermost first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Level {
    pub(crate) count: u64,
    pub(crate) source: u64,
    pub(crate) target: u64,
}

impl Level {
    fn new(count: u64, source: u64, target: u64) -> Level {
        Level {
            count,
            source,
            target,
        }
    }
}

/// One copy to measure.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) verb: Verb,
    pub(crate) pattern: &'static str,
    pub(crate) b: u64,
    pub(crate) pages: Pages,
    /// The outermost level is one packet each.
    pub(crate) packets: bool,
    pub(crate) levels: Vec<Level>,
}

impl Case {
    pub(crate) fn bytes(&self) -> u64 {
        self.levels
            .iter()
            .fold(self.b, |bytes, level| bytes * level.count)
    }

    fn span(&self, stride: fn(&Level) -> u64) -> u64 {
        self.levels.iter().fold(self.b, |span, level| {
            span + (level.count - 1) * stride(level)
        })
    }

    pub(crate) fn source_bytes(&self) -> u64 {
        self.span(|level| level.source)
    }

    pub(crate) fn target_bytes(&self) -> u64 {
        self.span(|level| level.target)
    }

    pub(crate) fn nest(&self) -> Result<Nest, NestError> {
        let mut nest: Option<Nest> = None;
        for level in self.levels.iter().rev() {
            let (source, target) = (level.source as i64, level.target as i64);
            nest = Some(match nest {
                None => Nest::strided(0, 0, level.count, source, target, self.b)?,
                Some(inner) => Nest::nested(0, 0, level.count, source, target, vec![inner])?,
            });
        }
        nest.map_or_else(|| Nest::block(0, 0, self.b), Ok)
    }

    /// The job in the words of the numpy yardstick, on these pages.
    pub(crate) fn numpy_setup(&self, pages: &str) -> String {
        let (source, target) = (self.source_bytes(), self.target_bytes());
        let mut line = format!(
            "setup {pages} {source} {target} {} {}",
            self.b,
            self.levels.len()
        );
        for level in &self.levels {
            line += &format!(" {} {} {}", level.count, level.source, level.target);
        }
        line
    }

    /// The job in the words of the pack yardsticks, on these pages; none if no side is packed.
    pub(crate) fn pack_setup(&self, pages: &str) -> Option<String> {
        let (source, target) = (self.source_bytes(), self.target_bytes());
        let verb = match (self.verb, self.pattern) {
            (Verb::Gather, _) | (Verb::Copy, "transpose") => "gather",
            (Verb::Scatter, _) => "scatter",
            (Verb::Copy, _) => return None,
        };
        let (packets, levels) = match &self.levels[..] {
            [first, rest @ ..] if self.packets => (*first, rest),
            all => (Level::new(1, 0, 0), all),
        };
        let mut line = format!(
            "setup {verb} {pages} {source} {target} {} {} {} {} {}",
            self.b,
            packets.count,
            packets.source,
            packets.target,
            levels.len()
        );
        for level in levels {
            let stride = match verb {
                "scatter" => level.target,
                _ => level.source,
            };
            line += &format!(" {} {stride}", level.count);
        }
        Some(line)
    }
}

/// Bytes moved by a job that is to miss the caches.
const MEMORY: u64 = 48 << 20;

const RUNS: [u64; 8] = [1, 2, 4, 8, 16, 64, 512, 4096];

/// All cases.
pub(crate) fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    for (place, pages) in [
        (Place::Cache, Pages::Small),
        (Place::Memory, Pages::Small),
        (Place::Memory, Pages::Huge),
    ] {
        for verb in [Verb::Gather, Verb::Scatter] {
            cases.push(rows(verb, place, pages));
            for pattern in ["cols", "blocks", "cyc"] {
                for strides in Strides::ALL {
                    for b in RUNS {
                        cases.push(strided(verb, pattern, b, place, strides, pages));
                    }
                }
            }
        }
        for pattern in ["cols", "cyc"] {
            for b in RUNS {
                cases.push(both_strided(pattern, b, place, pages));
            }
        }
        for strides in Strides::ALL {
            for packets in [7, 16, 64, 256] {
                for b in [1, 4, 8, 16, 64, 512] {
                    cases.push(dealt(b, packets, place, strides, pages));
                }
            }
        }
    }
    for b in RUNS.into_iter().filter(|b| *b < 64) {
        for pattern in ["cols", "blocks", "cyc"] {
            for verb in [Verb::Gather, Verb::Scatter] {
                let (place, free) = (Place::SecondCache, Strides::Free);
                cases.push(strided(verb, pattern, b, place, free, Pages::Small));
            }
        }
        cases.push(both_strided("cols", b, Place::SecondCache, Pages::Small));
    }
    for (b, n, place) in [
        (1, 256, Place::Cache),
        (1, 1000, Place::Cache),
        (1, 1024, Place::Cache),
        (2, 512, Place::Cache),
        (4, 500, Place::Cache),
        (4, 512, Place::Cache),
        (8, 256, Place::Cache),
        (16, 128, Place::Cache),
        (1, 4096, Place::Memory),
        (1, 5000, Place::Memory),
        (1, 8192, Place::Memory),
        (2, 4096, Place::Memory),
        (4, 4096, Place::Memory),
        (8, 3000, Place::Memory),
        (8, 4096, Place::Memory),
        (16, 2048, Place::Memory),
    ] {
        cases.push(transpose(b, n, place, Pages::Small));
        if place == Place::Memory {
            cases.push(transpose(b, n, place, Pages::Huge));
        }
    }
    cases
}

fn name(verb: Verb, pattern: &str, b: u64, place: Place, words: &[String]) -> String {
    let verb = match verb {
        Verb::Gather => "gather",
        Verb::Scatter => "scatter",
        Verb::Copy => "copy",
    };
    let level = place;
    let place = match place {
        Place::Cache | Place::SecondCache => "cache",
        Place::Memory => "memory",
    };
    let mut name = format!("{verb}/{pattern}/b={b}/{place}");
    if level == Place::SecondCache {
        name += "/l2";
    }
    for word in words {
        name += "/";
        name += word;
    }
    name
}

fn words(strides: Strides, pages: Pages, rest: Option<String>) -> Vec<String> {
    let conflict = (strides == Strides::Conflict).then(|| "conflict".to_owned());
    let huge = (pages == Pages::Huge).then(|| "huge".to_owned());
    conflict.into_iter().chain(rest).chain(huge).collect()
}

/// Bytes a job may move so that what it touches on both sides stays in the cache meant.
fn cached(place: Place, b: u64, stride: u64) -> u64 {
    let touched = stride.min(b.next_multiple_of(64) + if b.is_multiple_of(64) { 0 } else { 64 });
    let room = if place == Place::SecondCache || b >= 64 {
        384 << 10
    } else {
        24 << 10
    };
    (room * b / (touched + b)).min(128 << 10)
}

fn rows(verb: Verb, place: Place, pages: Pages) -> Case {
    Case {
        name: name(
            verb,
            "rows",
            4096,
            place,
            &words(Strides::Free, pages, None),
        ),
        verb,
        pattern: "rows",
        b: 4096,
        pages,
        packets: false,
        levels: vec![Level::new(place.bytes() / 4096, 4096, 4096)],
    }
}

/// Levels of the strided side: count and stride, outermost first.
fn shape(pattern: &'static str, b: u64, place: Place, strides: Strides) -> Vec<(u64, u64)> {
    let bytes = |stride| match place {
        Place::Memory => MEMORY,
        _ => cached(place, b, stride),
    };
    match (pattern, strides) {
        ("cols", Strides::Free) => vec![(bytes(5 * b) / b, 5 * b)],
        ("cols", Strides::Conflict) => {
            let row = (4 * b).max(4096);
            let columns = match place {
                Place::Memory => (3072 / b).max(1),
                _ => (1024 / b).max(1),
            };
            vec![(columns, b), (place.bytes() / (columns * b), row)]
        }
        ("blocks", Strides::Free) => vec![(bytes(3 * b) / b, 3 * b)],
        ("blocks", Strides::Conflict) => vec![(bytes(2 * b) / b, 2 * b)],
        (_, strides) => {
            let in_row = (1024 / b).max(4);
            let row = (2 * in_row + u64::from(strides == Strides::Free)) * b;
            vec![
                ((bytes(4 * b) / (in_row * b)).max(1), 2 * row),
                (in_row, 2 * b),
            ]
        }
    }
}

fn strided(
    verb: Verb,
    pattern: &'static str,
    b: u64,
    place: Place,
    strides: Strides,
    pages: Pages,
) -> Case {
    let shape = shape(pattern, b, place, strides);
    let mut levels = Vec::new();
    let mut packed = b;
    for (count, stride) in shape.into_iter().rev() {
        levels.push(match verb {
            Verb::Scatter => Level::new(count, packed, stride),
            _ => Level::new(count, stride, packed),
        });
        packed *= count;
    }
    levels.reverse();
    let name = name(verb, pattern, b, place, &words(strides, pages, None));
    Case {
        name,
        verb,
        pattern,
        b,
        pages,
        packets: false,
        levels,
    }
}

/// Strided to strided: the same blocks, three apart in the target.
fn both_strided(pattern: &'static str, b: u64, place: Place, pages: Pages) -> Case {
    let mut case = strided(Verb::Gather, pattern, b, place, Strides::Free, pages);
    case.verb = Verb::Copy;
    case.name = case.name.replace("gather", "copy");
    let shrink = if place != Place::Memory { 2 } else { 1 };
    if let Some(outermost) = case.levels.first_mut() {
        outermost.count = (outermost.count / shrink).max(1);
    }
    for level in &mut case.levels {
        level.target *= 3;
    }
    case
}

/// Blocks dealt to packets in turn.
fn dealt(b: u64, packets: u64, place: Place, strides: Strides, pages: Pages) -> Case {
    let count = (place.bytes() / (b * packets)).max(1);
    let stride = if strides == Strides::Conflict {
        (count * b).next_power_of_two().max(4096)
    } else {
        cache_optimal_stride(count * b, packets, b, CacheLevel::second()).bytes
    };
    Case {
        name: name(
            Verb::Gather,
            "cyc",
            b,
            place,
            &words(strides, pages, Some(format!("p={packets}"))),
        ),
        verb: Verb::Gather,
        pattern: "cyc",
        b,
        pages,
        packets: true,
        levels: vec![
            Level::new(packets, b, stride),
            Level::new(count, packets * b, b),
        ],
    }
}

fn transpose(b: u64, n: u64, place: Place, pages: Pages) -> Case {
    Case {
        name: name(
            Verb::Copy,
            "transpose",
            b,
            place,
            &words(Strides::Free, pages, Some(format!("N={n}"))),
        ),
        verb: Verb::Copy,
        pattern: "transpose",
        b,
        pages,
        packets: false,
        levels: vec![Level::new(n, b, n * b), Level::new(n, n * b, b)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_shapes_are_valid() {
        let cases = all();
        let mut names: Vec<&str> = cases.iter().map(|case| &case.name[..]).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
        for case in &cases {
            let nest = case.nest().expect("valid");
            assert_eq!(nest.bytes(), case.bytes(), "{}", case.name);
            assert_eq!(
                nest.source_span().end as u64,
                case.source_bytes(),
                "{}",
                case.name
            );
            assert_eq!(
                nest.target_span().end as u64,
                case.target_bytes(),
                "{}",
                case.name
            );
            assert!(
                !case.name.contains("/memory") || case.bytes() >= 15 << 20,
                "{}",
                case.name
            );
        }
    }
}
