//! SIMPLIFY: fewer nodes, same bytes, same order (section 4.4 with the order-preserving rules of
//! the specification, 3.10).
//!
//! The rules, applied bottom-up in one pass per level:
//! 1. an inner set that is the whole block becomes a leaf;
//! 2. blocks shrink to their first and last inner byte;
//! 3. a single inner member with one block is pulled up;
//! 4. a leaf whose blocks touch becomes one segment;
//! 5. a parent with one block is replaced by its members;
//! 6. adjoining segments join;
//! 7. neighbours of equal shape whose starts continue an arithmetic progression become one node.
//!
//! The result is not canonical. The printed rule "promote every child with one block" is not here:
//! with several children it interleaves siblings and breaks order (E-07).

use crate::segment::Segment;
use crate::set::{Falls, FallsSet, Node};

impl FallsSet {
    /// An equal set with at most as many nodes.
    ///
    /// ```
    /// use falls::FallsSet;
    /// let set: FallsSet = "{(0,15,32,2,{(1,3,-,1),(4,6,-,1)})}".parse().unwrap();
    /// assert_eq!(set.simplify().to_string(), "{(1,6,32,2)}");
    /// ```
    pub fn simplify(&self) -> FallsSet {
        if self.is_segment_list() {
            return join_touching(self);
        }
        let mut out = Vec::with_capacity(self.len());
        for node in self.nodes() {
            simplify_node(node, &mut out);
        }
        FallsSet::trusted(out)
    }
}

fn join_touching(set: &FallsSet) -> FallsSet {
    let joined: Vec<Segment> = set.segments(0..set.end()).collect();
    if joined.len() == set.len() {
        set.clone()
    } else {
        FallsSet::trusted_segments(&joined)
    }
}

fn simplify_node(node: Node<'_>, out: &mut Vec<Falls>) {
    let Some(inner) = node.inner else {
        let falls = if node.stride == node.len {
            Falls::trusted_segment(node.start, node.len * node.count)
        } else {
            node.to_falls()
        };
        return push(out, falls);
    };
    if node.unit == node.len {
        // The inner set covers its block (rule 1), since unit is its number of bytes.
        return simplify_node(
            Node {
                inner: None,
                ..node
            },
            out,
        );
    }
    let inner = inner.simplify();
    if node.count == 1 {
        for member in inner.to_members() {
            push(out, member.shifted(node.start));
        }
        return;
    }
    if inner.len() == 1 && inner.node(0).count == 1 {
        let child = inner.node(0);
        let pulled = Node {
            start: node.start + child.start,
            len: child.len,
            stride: node.stride,
            count: node.count,
            unit: child.unit,
            inner: child.inner,
        };
        let falls = if pulled.is_segment() {
            Falls::trusted_segment(pulled.start, pulled.len * pulled.count)
        } else {
            pulled.to_falls()
        };
        return push(out, falls);
    }
    let first = inner.start();
    let len = inner.end() - first;
    let trimmed = if first == 0 {
        inner
    } else {
        inner.shifted_back(first)
    };
    push(
        out,
        Falls::trusted(
            node.start + first,
            len,
            node.stride,
            node.count,
            Some(trimmed),
        ),
    );
}

/// Appends a node, merging it with the last one where rules 6 and 7 allow.
pub(crate) fn push(out: &mut Vec<Falls>, next: Falls) {
    if let Some(last) = out.last()
        && let Some(merged) = merge(last, &next)
    {
        out.pop();
        // A longer segment may now continue the progression before it.
        return push(out, merged);
    }
    out.push(next);
}

fn merge(a: &Falls, b: &Falls) -> Option<Falls> {
    if a.node().is_segment() && b.node().is_segment() && a.end() == b.start() {
        return Some(Falls::trusted_segment(a.start(), b.end() - a.start()));
    }
    if a.len() != b.len() || a.inner() != b.inner() {
        return None;
    }
    let distance = b.start() - a.start();
    let (stride, count) = match (a.count(), b.count()) {
        (1, 1) => (distance, 2),
        (n, 1) if distance == n.checked_mul(a.stride())? => (a.stride(), n + 1),
        (1, n) if distance == b.stride() => (b.stride(), n + 1),
        (n, m) if a.stride() == b.stride() && distance == n.checked_mul(a.stride())? => {
            (a.stride(), n + m)
        }
        _ => return None,
    };
    Some(Falls::trusted(
        a.start(),
        a.len(),
        stride,
        count,
        a.inner().cloned(),
    ))
}
