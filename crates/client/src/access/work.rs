//! What the accesses of a lane reuse: flows with their parts, what is done already, memory for packed bytes.
//!
//! [`Work::spread`] gives every server its parts of an access, in the order of the access plan; bytes that were
//! confirmed in an earlier attempt are left out.

use std::sync::Arc;
use std::time::Instant;

use layout::{FileOffset, FileSpan};
use wire::Status;

use crate::access::flow::Flow;
use crate::access::phases::Phases;
use crate::access::plan::Plan;
use crate::error::{Error, Result};
use crate::file::view::HandleView;

/// What accesses of a lane reuse.
#[derive(Debug, Default)]
pub(crate) struct Work {
    /// Only the first `used` are part of the access.
    pub(crate) flows: Vec<Flow>,
    pub(crate) used: usize,
    /// What servers have confirmed in an attempt that failed elsewhere: server, view offset.
    pub(super) progress: Vec<(u64, u64)>,
    /// Everything before this view offset is done, at whichever server it was.
    floor: u64,
    /// Memory for packed bytes.
    pub(crate) packed: Vec<u8>,
    pub(super) failed: Vec<usize>,
}

/// What an attempt was planned with: layout, epoch, bytes.
pub(super) type Planned = Option<(Arc<Plan>, u64, u64)>;

impl Work {
    pub(super) fn forget_progress(&mut self) {
        self.progress.clear();
        self.floor = 0;
    }

    /// Forgets what servers have confirmed if it may have been cut off. With another layout, what all of them have
    /// confirmed stays done: bytes that move are taken along.
    pub(super) fn replan(
        &mut self,
        planned: &mut Planned,
        plan: &Arc<Plan>,
        epoch: u64,
        bytes: u64,
    ) {
        match planned {
            Some((p, e, b)) if (*e, *b) == (epoch, bytes) => {
                if Arc::ptr_eq(p, plan) {
                    return;
                }
                let done = self
                    .progress
                    .drain(..)
                    .map(|(_, confirmed)| confirmed)
                    .min();
                self.floor = self.floor.max(done.unwrap_or(0));
            }
            _ => self.forget_progress(),
        }
        *planned = Some((plan.clone(), epoch, bytes));
    }

    /// Spreads an access over flows, one per server that has bytes of it; whether there is one only.
    pub(super) fn spread(
        &mut self,
        plan: &Plan,
        seen: &HandleView,
        lo: u64,
        len: u64,
        file: FileSpan,
        phases: &mut Phases,
    ) -> Result<bool> {
        let started = Instant::now();
        let intersected = phases.intersect_ns;
        let Work {
            flows,
            used,
            progress,
            floor,
            ..
        } = self;
        *used = 0;
        let mut found = 0;
        let mut nobody = 0;
        let mut intersect_ns = 0;
        plan.parts(file, &mut intersect_ns, |slot, part| {
            let Some(slot) = slot else {
                nobody += part.bytes;
                return;
            };
            found += part.bytes;
            let i = match flows[..*used].iter().position(|flow| flow.slot == slot) {
                Some(i) => i,
                None => {
                    if flows.len() == *used {
                        flows.push(Flow::default());
                    }
                    let flow = &mut flows[*used];
                    flow.slot = slot;
                    flow.place = Some(plan.places[slot]);
                    flow.parts.clear();
                    *used += 1;
                    *used - 1
                }
            };
            flows[i].parts.push(part);
        });
        if found != len {
            let text = match nobody {
                0 => format!("{} bytes lie in no subfile of the file", len - found),
                n => format!("{n} bytes lie in subfiles that no server holds"),
            };
            let status = match nobody {
                0 => Status::InvalidArgument,
                _ => Status::Lost,
            };
            return Err(Error::Refused {
                status,
                text,
                server: None,
            });
        }
        let is_alone = *used == 1;
        let hi = lo + len;
        for flow in &mut flows[..*used] {
            let server = flow.place.map_or(0, |p| p.server);
            let done = progress.iter().find(|(s, _)| *s == server).map(|p| p.1);
            match done.unwrap_or(0).max(*floor) {
                from if from >= hi => {
                    flow.parts.clear();
                    flow.begin(hi, hi);
                }
                from if from > lo => {
                    let start = seen.view.bytes().select(from).expect("inside the access");
                    let rest = FileSpan::new(FileOffset(start), file.end);
                    flow.parts = flow
                        .parts
                        .iter()
                        .filter_map(|part| plan.clip(part, rest))
                        .collect();
                    flow.begin(from, hi);
                }
                _ => flow.begin(lo, hi),
            }
        }
        phases.intersect_ns += intersect_ns;
        let spent = started.elapsed().as_nanos() as u64;
        phases.map_ns += spent.saturating_sub(phases.intersect_ns - intersected);
        Ok(is_alone)
    }
}
