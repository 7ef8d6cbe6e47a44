//! Owns the way from a pair of projections to a program: `compile_joint`.
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

/// One of the two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hand {
    Left,
    Right,
}

/// Compiles the copy from one side of a joint to the other, between memories that begin at these bytes of the source and
/// of the target, as part of a job of `job_bytes` bytes, see [`Program::compile_for`]. Offsets that do not fit 63 bits are
/// refused; an empty joint is the empty program.
pub(crate) fn compile_joint(
    joint: &Joint,
    from: Hand,
    (source_base, target_base): (u64, u64),
    job_bytes: u64,
) -> Result<Disjoint<Program>, NestError> {
    let mut shared = HashMap::new();
    let nests = nests(joint, from, &mut shared)?;
    let back = |base: u64, error| i64::try_from(base).map(|b| -b).map_err(|_| error);
    let source = back(source_base, NestError::SourceOverflow)?;
    let target = back(target_base, NestError::TargetOverflow)?;
    let program = match (source, target) {
        (0, 0) => Program::compile_disjoint(&nests, job_bytes),
        _ => Program::compile_disjoint(&[Nest::nested(source, target, 1, 0, 0, nests)?], job_bytes),
    };
    Ok(Disjoint::proved(program))
}

fn nests(
    joint: &Joint,
    from: Hand,
    shared: &mut HashMap<*const JointNode, Arc<[Nest]>>,
) -> Result<Arc<[Nest]>, NestError> {
    let key = joint.nodes().as_ptr();
    if let Some(known) = shared.get(&key) {
        return Ok(Arc::clone(known));
    }
    let list: Result<Vec<Nest>, NestError> = joint
        .nodes()
        .iter()
        .map(|node| nest(node, from, shared))
        .collect();
    let list: Arc<[Nest]> = list?.into();
    shared.insert(key, Arc::clone(&list));
    Ok(list)
}

fn nest(
    node: &JointNode,
    from: Hand,
    shared: &mut HashMap<*const JointNode, Arc<[Nest]>>,
) -> Result<Nest, NestError> {
    let (left, right) = (
        (node.left, node.left_stride),
        (node.right, node.right_stride),
    );
    let ((source, source_stride), (target, target_stride)) = match from {
        Hand::Left => (left, right),
        Hand::Right => (right, left),
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
            let children = nests(inner, from, shared)?;
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

#[cfg(test)]
mod tests {
    use falls::{Meeting, Periodic};

    use super::*;
    use crate::copy::{copy, copy_split};

    fn periodic(displacement: u64, period: u64, text: &str) -> Periodic {
        Periodic::new(displacement, period, text.parse().expect("notation")).expect("valid")
    }

    /// Both directions against the runs of the meeting, whole and on threads.
    fn check(left: &Periodic, right: &Periodic, end: u64) {
        let meeting = Meeting::new(left, right);
        let joint = meeting.joint(0..end);
        let runs: Vec<_> = meeting.runs(0..end).collect();
        let left_len = runs.iter().map(|run| run.left + run.len).max().unwrap_or(0) as usize;
        let right_len = runs
            .iter()
            .map(|run| run.right + run.len)
            .max()
            .unwrap_or(0) as usize;
        for side in [Hand::Left, Hand::Right] {
            let program = compile_joint(&joint, side, (0, 0), 0).expect("small");
            let (from, to) = match side {
                Hand::Left => (left_len, right_len),
                Hand::Right => (right_len, left_len),
            };
            let source: Vec<u8> = (0..from).map(|i| (i * 11 % 251) as u8 + 1).collect();
            let mut expected = vec![0; to];
            for run in &runs {
                let (read, write) = match side {
                    Hand::Left => (run.left as usize, run.right as usize),
                    Hand::Right => (run.right as usize, run.left as usize),
                };
                expected[write..write + run.len as usize]
                    .copy_from_slice(&source[read..read + run.len as usize]);
            }
            assert_eq!(program.bytes(), runs.iter().map(|run| run.len).sum::<u64>());
            let mut target = vec![0; to];
            copy(&program, &source, &mut target).expect("in bounds");
            assert!(target == expected, "{side:?}\n{}", program.describe());
            for threads in 2..=3 {
                let mut target = vec![0; to];
                copy_split(
                    &program,
                    source[..].into(),
                    target[..].as_mut().into(),
                    threads,
                )
                .expect("in bounds");
                assert!(target == expected, "{side:?} on {threads} threads");
            }
        }
    }

    #[test]
    fn joints_compile_into_the_runs_of_their_meeting() {
        let views = [
            periodic(0, 32, "{(0,7,16,2,{(0,1,4,2)})}"),
            periodic(0, 32, "{(0,3,8,4,{(0,0,2,2)})}"),
            periodic(0, 64, "{(0,15,16,4)}"),
            periodic(0, 64, "{(0,1,4,16)}"),
            periodic(3, 60, "{(0,2,5,12)}"),
            periodic(1, 7, "{(0,1,7,1)}"),
            periodic(0, 256, "{(0,15,64,4,{(0,0,2,8)})}"),
            periodic(0, 11, "{(0,2,3,1),(5,6,2,1),(9,9,1,1)}"),
        ];
        for left in &views {
            for right in &views {
                check(left, right, 1000);
                check(left, right, 10);
            }
        }
    }

    #[test]
    fn the_empty_joint_is_the_empty_program() {
        let even = periodic(0, 2, "{(0,0,1,1)}");
        let odd = periodic(0, 2, "{(1,1,1,1)}");
        let joint = Meeting::new(&even, &odd).joint(0..100);
        let program = compile_joint(&joint, Hand::Left, (0, 0), 0).expect("empty");
        assert_eq!(program.bytes(), 0);
        copy(&program, &[], &mut []).expect("nothing to do");
    }
}
