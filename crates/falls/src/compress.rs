//! Compression of sorted offsets or segments into nested FALLS.
//!
//! ```text
//! 0 1 2   10 11 12   20 21 22   77        ->  {(0,2,10,3),(77,77,-,1)}
//! ```
//!
//! Passes over a list of shapes: a group of 1 to [`MAX_GROUP`] neighbours that recurs at a constant
//! distance becomes one node, and the next pass sees the shorter list. What is regular at several
//! levels nests; what is irregular stays a compact list of segments. Not minimal, never larger than
//! the list. Cost O(n x MAX_GROUP) per pass, at most [`MAX_PASSES`] passes.

use crate::error::{FallsError, Reason};
use crate::segment::Segment;
use crate::set::{Falls, FallsSet};
use crate::simplify::push;

const MAX_GROUP: usize = 16;
const MAX_PASSES: usize = 8;

/// A set from byte offsets in ascending order, each once.
///
/// ```
/// let set = falls::compress_offsets(&[0, 2, 8, 10, 16, 18]).unwrap();
/// assert_eq!(set.to_string(), "{(0,2,8,3,{(0,0,2,2)})}");
/// ```
pub fn compress_offsets(offsets: &[u64]) -> Result<FallsSet, FallsError> {
    let mut segments: Vec<Segment> = Vec::new();
    let mut run: Option<(u64, u64)> = None;
    for (i, &x) in offsets.iter().enumerate() {
        match run {
            Some((start, end)) if x == end => run = Some((start, end + 1)),
            Some((_, end)) if x < end => {
                let reason = if x + 1 == end {
                    Reason::Overlap
                } else {
                    Reason::Order
                };
                return Err(FallsError::new(
                    reason,
                    format!(
                        "offset {x} follows {}; offsets must ascend, each once",
                        end - 1
                    ),
                )
                .inside(i));
            }
            _ => {
                if let Some((start, end)) = run {
                    segments.push(Segment::new(start, end - start)?);
                }
                crate::checked::add(x, 1)?;
                run = Some((x, x + 1));
            }
        }
    }
    if let Some((start, end)) = run {
        segments.push(Segment::new(start, end - start)?);
    }
    compress_segments(&segments)
}

/// A set from ascending, disjoint segments.
pub fn compress_segments(segments: &[Segment]) -> Result<FallsSet, FallsError> {
    let list = FallsSet::from_segments(segments)?.simplify();
    let mut items: Vec<Falls> = list.to_members();
    for _ in 0..MAX_PASSES {
        let before = items.len();
        items = fold(&items);
        if items.len() == before {
            break;
        }
    }
    let tree = FallsSet::trusted(items).simplify();
    // A tree node takes three times the memory of a list entry.
    if tree.node_count() * 3 > list.node_count() && list.is_segment_list() {
        Ok(list)
    } else {
        Ok(tree)
    }
}

/// One pass: at each place take the group whose repetition removes most items.
fn fold(items: &[Falls]) -> Vec<Falls> {
    let mut out: Vec<Falls> = Vec::with_capacity(items.len());
    let mut i = 0;
    while i < items.len() {
        let best = (1..=MAX_GROUP.min((items.len() - i) / 2))
            .map(|group| (group, repeats(items, i, group)))
            .filter(|&(group, times)| {
                times > 1 && (group > 1 || times > 2 || items[i].inner().is_some())
            })
            .max_by_key(|&(group, times)| ((times - 1) * group, std::cmp::Reverse(group)));
        match best {
            Some((group, times)) => {
                let first = items[i].start();
                let distance = items[i + group].start() - first;
                let one: Vec<Falls> = items[i..i + group].to_vec();
                crate::intersect::push_periods(&mut out, one, distance, times as u64);
                i += group * times;
            }
            None => {
                push_pair(&mut out, items[i].clone());
                i += 1;
            }
        }
    }
    out
}

/// A lone item may still continue the progression of the node before it.
fn push_pair(out: &mut Vec<Falls>, item: Falls) {
    match out.last() {
        Some(last) if last.count() > 1 => push(out, item),
        _ => out.push(item),
    }
}

/// How often the `group` items at `i` occur in a row, at a constant distance.
fn repeats(items: &[Falls], i: usize, group: usize) -> usize {
    if i + 2 * group > items.len() {
        return 1;
    }
    let distance = items[i + group].start() - items[i].start();
    let span = items[i + group - 1].end() - items[i].start();
    if distance < span {
        return 1;
    }
    let mut times = 1;
    while i + (times + 1) * group <= items.len() {
        let at = i + times * group;
        let shift = distance * times as u64;
        let same = (0..group).all(|g| {
            items[at + g].start() == items[i + g].start() + shift
                && items[at + g].node().same_shape(items[i + g].node())
        });
        if !same {
            break;
        }
        times += 1;
    }
    times
}
