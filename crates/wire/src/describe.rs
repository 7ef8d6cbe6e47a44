//! Sets, elements and partitions as bytes.
//!
//! A set is its tree in pre-order: per node the distance from the member before, the length, the
//! count, the gap between blocks if there are several, and the inner set if there is one. Numbers
//! are variable-length, so a regular pattern of a terabyte takes a few dozen bytes; an irregular
//! list takes two small numbers a segment.
//!
//! Equal trees have equal bytes, and bytes that are not what the encoder would have written are
//! refused: a description can be compared, hashed and sealed without being read.
//!
//! The receiver of a tree rebuilds it through the constructors of the algebra, so it is well
//! formed or refused; depth and node count are limited, and a node cannot cost more memory than the
//! bytes that describe it by more than a constant factor. That the elements of a partition are
//! disjoint is checked within a number of steps of its own ([`falls::Overlay`]); only servers send
//! partitions.
//!
//! Descriptions longer than a control part travel in [`parts`]; the receiver collects them
//! in an [`Assembly`] under a quota.

use falls::{Falls, FallsSet, Limits, Periodic, Segment};
use layout::{FileOffset, Partition, Pattern, View};

use crate::reader::{DecodeError, Reader, put_number};

/// What a receiver takes of one description.
pub const LIMITS: Limits = Limits::DEFAULT;

/// How the members of a set are written.
const NODES: u64 = 0;
const SEGMENTS: u64 = 1;

/// From this many members on, a set of plain segments is written as a list of segments; a shorter
/// one as nodes. How the set is kept in memory has no influence.
const LIST_FROM: usize = 32;

/// Appends a set.
pub fn put_set(out: &mut Vec<u8>, set: &FallsSet) {
    let is_list = set.len() >= LIST_FROM
        && (set.is_segment_list() || set.nodes().all(|n| n.count == 1 && n.inner.is_none()));
    let form = if is_list { SEGMENTS } else { NODES };
    put_number(out, set.len() as u64 * 2 + form);
    let mut end = 0;
    for node in set.nodes() {
        put_number(out, node.start - end);
        put_number(out, node.len - 1);
        end = node.end();
        if is_list {
            continue;
        }
        put_number(out, (node.count - 1) * 2 + u64::from(node.inner.is_some()));
        if node.count > 1 {
            put_number(out, node.stride - node.len);
        }
        if let Some(inner) = node.inner {
            put_set(out, inner);
        }
    }
}

/// Reads a set.
pub fn set(r: &mut Reader<'_>) -> Result<FallsSet, DecodeError> {
    let mut nodes = LIMITS.nodes;
    set_within(r, LIMITS.depth, &mut nodes)
}

fn set_within(r: &mut Reader<'_>, depth: u32, nodes: &mut u64) -> Result<FallsSet, DecodeError> {
    let head = r.number()?;
    let (count, form) = (head / 2, head % 2);
    if count > 0 && depth == 0 {
        return Err(DecodeError::TooDeep);
    }
    *nodes = nodes.checked_sub(count).ok_or(DecodeError::TooLarge)?;
    // Two bytes at least per member: nothing is allocated that the input does not pay for.
    if usize::try_from(count)
        .ok()
        .and_then(|n| n.checked_mul(2))
        .is_none_or(|n| n > r.left())
    {
        return Err(DecodeError::Truncated);
    }
    let count = count as usize;
    let mut end = 0u64;
    if form == SEGMENTS {
        if count < LIST_FROM {
            return Err(DecodeError::BadTag(head));
        }
        let mut list = Vec::with_capacity(count);
        for _ in 0..count {
            let (start, len) = span(r, end)?;
            let segment = Segment::new(start, len)?;
            end = segment.end();
            list.push(segment);
        }
        return Ok(FallsSet::from_segments(&list)?);
    }
    let mut members = Vec::with_capacity(count);
    let mut is_list = count >= LIST_FROM;
    for _ in 0..count {
        let (start, len) = span(r, end)?;
        let head = r.number()?;
        is_list &= head == 0;
        let blocks = (head / 2).checked_add(1).ok_or(DecodeError::BadNumber)?;
        let stride = if blocks == 1 {
            len
        } else {
            len.checked_add(r.number()?).ok_or(DecodeError::BadNumber)?
        };
        let falls = if head % 2 == 1 {
            let inner = set_within(r, depth - 1, nodes)?;
            Falls::nested(start, len, stride, blocks, inner)?
        } else {
            Falls::family(start, len, stride, blocks)?
        };
        end = falls.end();
        members.push(falls);
    }
    if is_list {
        return Err(DecodeError::BadTag(head));
    }
    Ok(FallsSet::with_limits(members, LIMITS)?)
}

fn span(r: &mut Reader<'_>, end: u64) -> Result<(u64, u64), DecodeError> {
    let start = end.checked_add(r.number()?).ok_or(DecodeError::BadNumber)?;
    let len = r.number()?.checked_add(1).ok_or(DecodeError::BadNumber)?;
    Ok((start, len))
}

/// Appends an element: displacement, period, set.
pub fn put_periodic(out: &mut Vec<u8>, element: &Periodic) {
    put_number(out, element.displacement());
    put_number(out, element.period());
    put_set(out, element.set());
}

/// Reads an element.
pub fn periodic(r: &mut Reader<'_>) -> Result<Periodic, DecodeError> {
    let (displacement, period) = (r.number()?, r.number()?);
    Ok(Periodic::new(displacement, period, set(r)?)?)
}

/// Appends a view.
pub fn put_view(out: &mut Vec<u8>, view: &View) {
    put_periodic(out, view.bytes());
}

/// Reads a view.
pub fn view(r: &mut Reader<'_>) -> Result<View, DecodeError> {
    Ok(View::from(periodic(r)?))
}

/// Appends a partition: displacement, period, elements.
pub fn put_partition(out: &mut Vec<u8>, partition: &Partition) {
    put_number(out, partition.displacement().get());
    put_number(out, partition.pattern().period());
    put_number(out, partition.len() as u64);
    for element in partition.pattern().elements() {
        put_set(out, element);
    }
}

/// Reads a partition and checks that it is one.
pub fn partition(r: &mut Reader<'_>) -> Result<Partition, DecodeError> {
    let (displacement, period) = (r.number()?, r.number()?);
    let count = r.length(1)?;
    let mut nodes = LIMITS.nodes;
    let mut elements = Vec::with_capacity(count);
    for _ in 0..count {
        elements.push(set_within(r, LIMITS.depth, &mut nodes)?);
    }
    Ok(Partition::new(
        FileOffset(displacement),
        Pattern::new(period, elements)?,
    )?)
}

/// A long description cut into parts of at most `part_bytes`.
pub fn parts(description: &[u8], part_bytes: usize) -> impl Iterator<Item = &[u8]> {
    description.chunks(part_bytes.max(1))
}

/// Parts of a description on their way in.
#[derive(Clone, Debug)]
pub struct Assembly {
    bytes: Vec<u8>,
    announced: u64,
}

impl Assembly {
    /// For a description of `announced` bytes, refused when that exceeds the quota left.
    pub fn new(announced: u64, quota_left: u64) -> Result<Self, DecodeError> {
        if announced > quota_left {
            return Err(DecodeError::TooLarge);
        }
        Ok(Assembly {
            bytes: Vec::new(),
            announced,
        })
    }

    /// Adds the next part; parts come in order.
    pub fn add(&mut self, part: &[u8]) -> Result<(), DecodeError> {
        if self.bytes.len() as u64 + part.len() as u64 > self.announced {
            return Err(DecodeError::TooLarge);
        }
        self.bytes.extend_from_slice(part);
        Ok(())
    }

    /// The description once all parts are there.
    pub fn complete(&self) -> Option<&[u8]> {
        (self.bytes.len() as u64 == self.announced).then_some(&self.bytes[..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(text: &str) -> Vec<u8> {
        let mut out = Vec::new();
        put_set(&mut out, &text.parse().unwrap());
        out
    }

    #[test]
    fn golden_sets() {
        assert_eq!(encoded("{}"), [0]);
        assert_eq!(encoded("{(3,5,6,5)}"), [2, 3, 2, 8, 3]);
        assert_eq!(
            encoded("{(0,3,8,2,{(0,0,2,2)})}"),
            [2, 0, 3, 3, 4, 2, 0, 0, 2, 1]
        );
    }

    #[test]
    fn a_set_has_one_form_however_it_is_kept() {
        for count in [0, 1, 31, 32, 33] {
            let list: Vec<Segment> = (0..count)
                .map(|i| Segment::new(i * i * 3, 2).unwrap())
                .collect();
            let nodes = list
                .iter()
                .map(|s| Falls::segment(s.start(), s.len()).unwrap())
                .collect();
            let (list, nodes) = (
                FallsSet::from_segments(&list).unwrap(),
                FallsSet::new(nodes).unwrap(),
            );
            let (mut a, mut b) = (Vec::new(), Vec::new());
            put_set(&mut a, &list);
            put_set(&mut b, &nodes);
            assert_eq!(a, b, "{count} segments");
            assert_eq!(set(&mut Reader::new(&a)), Ok(list));
        }
        // The other form of either is refused.
        let short = [2 * 2 + 1, 0, 0, 1, 0];
        assert_eq!(
            set(&mut Reader::new(&short)),
            Err(DecodeError::BadTag(2 * 2 + 1))
        );
        let mut long = vec![2 * 32];
        long.extend([1, 0, 0].repeat(32));
        assert_eq!(
            set(&mut Reader::new(&long)),
            Err(DecodeError::BadTag(2 * 32))
        );
    }

    #[test]
    fn many_members_that_are_no_segments_keep_their_form() {
        let families = (0..40).map(|i| Falls::family(i * 100, 2, 5, 3).unwrap());
        let inner: FallsSet = "{(0,0,2,2)}".parse().unwrap();
        let nested = (0..40).map(|i| Falls::nested(i * 100, 4, 4, 1, inner.clone()).unwrap());
        for members in [families.collect(), nested.collect()] {
            let members = FallsSet::new(members).unwrap();
            let mut out = Vec::new();
            put_set(&mut out, &members);
            assert_eq!(set(&mut Reader::new(&out)), Ok(members));
        }
    }

    #[test]
    fn a_column_of_a_terabyte_takes_few_bytes() {
        let n = 1u64 << 20;
        let column = FallsSet::new(vec![Falls::family(12, 4, n, n).unwrap()]).unwrap();
        let mut out = Vec::new();
        put_periodic(&mut out, &Periodic::new(0, n * n, column).unwrap());
        assert!(out.len() < 20, "{} bytes", out.len());
    }

    #[test]
    fn what_is_not_well_formed_is_refused() {
        // An inner set that reaches outside its block.
        assert!(matches!(
            set(&mut Reader::new(&[2, 0, 0, 1, 2, 5, 0, 0])),
            Err(DecodeError::Set(_))
        ));
        // An empty inner set.
        assert!(matches!(
            set(&mut Reader::new(&[2, 0, 0, 1, 0])),
            Err(DecodeError::Set(_))
        ));
        // A count without members.
        assert_eq!(
            set(&mut Reader::new(&[0xfe, 0x7f])),
            Err(DecodeError::Truncated)
        );
        // Nesting without end.
        let mut deep = Vec::new();
        for _ in 0..100 {
            deep.extend([2, 0, 0, 1]);
        }
        assert_eq!(set(&mut Reader::new(&deep)), Err(DecodeError::TooDeep));
    }

    #[test]
    fn parts_come_together_under_a_quota() {
        let description: Vec<u8> = (0..=255).collect();
        let mut assembly = Assembly::new(256, 1000).unwrap();
        for part in parts(&description, 100) {
            assert_eq!(assembly.complete(), None);
            assembly.add(part).unwrap();
        }
        assert_eq!(assembly.complete(), Some(&description[..]));
        assert_eq!(assembly.add(&[1]), Err(DecodeError::TooLarge));
        assert!(Assembly::new(256, 255).is_err());
    }
}
