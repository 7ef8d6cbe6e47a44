//! Owns the way from a pair of projections to a program: [`compile_joint`].
//!
//! A [`falls::Joint`] is two sets of equal shape, byte j of one side belonging to byte j of the
//! other. `falls` builds only well-formed ones, so no byte occurs twice on either side: the
//! joint is the proof of disjointness that reordering and threads need, and nobody else can
//! make one.
//!
//! Cost: O(distinct nodes); inner trees that nodes share stay shared.

use std::collections::HashMap;
use std::sync::Arc;

use falls::{Joint, JointNode};

use crate::disjoint::Disjoint;
use crate::nest::{Nest, NestError};
use crate::program::Program;

/// Which side of a joint is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Read the left side, write the right one.
    LeftToRight,
    /// Read the right side, write the left one.
    RightToLeft,
}

/// Compiles the copy between the two sides of a joint. Offsets that do not fit 63 bits are
/// refused; an empty joint is the empty program.
pub fn compile_joint(joint: &Joint, direction: Direction) -> Result<Disjoint<Program>, NestError> {
    let mut shared = HashMap::new();
    let nests = nests(joint, direction, &mut shared)?;
    Ok(Disjoint::proved(Program::compile_disjoint(&nests)))
}

fn nests(
    joint: &Joint,
    direction: Direction,
    shared: &mut HashMap<*const JointNode, Arc<[Nest]>>,
) -> Result<Arc<[Nest]>, NestError> {
    let key = joint.nodes().as_ptr();
    if let Some(known) = shared.get(&key) {
        return Ok(Arc::clone(known));
    }
    let list: Result<Vec<Nest>, NestError> = joint
        .nodes()
        .iter()
        .map(|node| nest(node, direction, shared))
        .collect();
    let list: Arc<[Nest]> = list?.into();
    shared.insert(key, Arc::clone(&list));
    Ok(list)
}

fn nest(
    node: &JointNode,
    direction: Direction,
    shared: &mut HashMap<*const JointNode, Arc<[Nest]>>,
) -> Result<Nest, NestError> {
    let (left, right) = (
        (node.left, node.left_stride),
        (node.right, node.right_stride),
    );
    let ((source, source_stride), (target, target_stride)) = match direction {
        Direction::LeftToRight => (left, right),
        Direction::RightToLeft => (right, left),
    };
    let offset = |value: u64, error| i64::try_from(value).map_err(|_| error);
    let source = offset(source, NestError::SourceOverflow)?;
    let target = offset(target, NestError::TargetOverflow)?;
    // The stride of a single block says nothing.
    let (source_stride, target_stride) = if node.count == 1 {
        (0, 0)
    } else {
        (source_stride, target_stride)
    };
    let source_stride = offset(source_stride, NestError::SourceOverflow)?;
    let target_stride = offset(target_stride, NestError::TargetOverflow)?;
    match &node.inner {
        None => Nest::strided(
            source,
            target,
            node.count,
            source_stride,
            target_stride,
            node.unit,
        ),
        Some(inner) => {
            let children = nests(inner, direction, shared)?;
            Nest::nested(
                source,
                target,
                node.count,
                source_stride,
                target_stride,
                children,
            )
        }
    }
}
