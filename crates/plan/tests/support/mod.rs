//! A file in memory, partitioned: what the tests of plans move bytes in.
//!
//! Header, subfiles and naive copies along a joint tree. It follows the write, read and redistribute
//! operations of part 4 of the specification, with the plan and the algebra under test doing the
//! deciding and plain loops the copying.

#![allow(dead_code)] // each test binary uses its part

use falls::{FallsSet, Joint, Meeting, Periodic};
use layout::{FileOffset, Partition, Pattern, View, ViewOffset};
use plan::{Part, Plan};

/// A stored file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stored {
    pub(crate) partition: Partition,
    pub(crate) header: Vec<u8>,
    pub(crate) subfiles: Vec<Vec<u8>>,
    pub(crate) len: u64,
}

/// What one subfile receives in a write.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Message {
    pub(crate) subfile: usize,
    pub(crate) bounds: (u64, u64),
    pub(crate) segments: Vec<(u64, u64)>,
    pub(crate) payload: Vec<u8>,
}

pub(crate) fn partition(displacement: u64, period: u64, sets: Vec<FallsSet>) -> Partition {
    Partition::new(
        FileOffset(displacement),
        Pattern::new(period, sets).unwrap(),
    )
    .unwrap()
}

/// Visits `(left, right, len)` of every leaf block in file order.
pub(crate) fn each_piece(
    joint: &Joint,
    left: u64,
    right: u64,
    visit: &mut dyn FnMut(u64, u64, u64),
) {
    for n in joint.nodes() {
        for k in 0..n.count {
            let (l, r) = (
                left + n.left + k * n.left_stride,
                right + n.right + k * n.right_stride,
            );
            match &n.inner {
                None => visit(l, r, n.unit),
                Some(inner) => each_piece(inner, l, r, visit),
            }
        }
    }
}

impl Stored {
    /// Cuts the bytes of a file into header and subfiles, by owner lookup alone.
    pub(crate) fn from_bytes(partition: &Partition, bytes: &[u8]) -> Stored {
        let mut stored = Stored {
            partition: partition.clone(),
            header: Vec::new(),
            subfiles: vec![Vec::new(); partition.len()],
            len: bytes.len() as u64,
        };
        for (x, &b) in bytes.iter().enumerate() {
            match partition.owner(FileOffset(x as u64)) {
                None => stored.header.push(b),
                Some((e, at)) => {
                    assert_eq!(at.0, stored.subfiles[e].len() as u64);
                    stored.subfiles[e].push(b);
                }
            }
        }
        stored
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let at = |x| match self.partition.owner(FileOffset(x)) {
            None => self.header[x as usize],
            Some((e, k)) => self.subfiles[e][k.0 as usize],
        };
        (0..self.len).map(at).collect()
    }

    fn grow(&mut self, len: u64) {
        self.len = self.len.max(len);
        let header = self.partition.displacement().0.min(self.len) as usize;
        self.header.resize(header.max(self.header.len()), 0);
        for e in 0..self.partition.len() {
            let size = self.partition.subfile_len(e, self.len) as usize;
            let subfile = &mut self.subfiles[e];
            subfile.resize(size.max(subfile.len()), 0);
        }
    }

    /// Writes `data` at view offset `m`.
    pub(crate) fn write(&mut self, view: &View, m: u64, data: &[u8]) -> Vec<Message> {
        if data.is_empty() {
            return Vec::new();
        }
        let end = m + data.len() as u64;
        let range = view.file_range(ViewOffset(m)..ViewOffset(end)).unwrap();
        self.grow(range.end.0);
        let mut messages = Vec::new();
        let first = view.view_to_file(ViewOffset(m)).unwrap();
        let last = view.view_to_file(ViewOffset(end - 1)).unwrap();
        for e in 0..self.partition.len() {
            let map = view.to_subfile(&self.partition, e);
            let joint = map.meeting().joint(range.start.0..range.end.0);
            if joint.is_empty() {
                continue;
            }
            let mut payload = Vec::new();
            each_piece(&joint, 0, 0, &mut |l, r, n| {
                let from = (l - m) as usize;
                let part = &data[from..from + n as usize];
                payload.extend_from_slice(part);
                self.subfiles[e][r as usize..(r + n) as usize].copy_from_slice(part);
            });
            let segments = joint.right_set().segments(0..u64::MAX - 1);
            messages.push(Message {
                subfile: e,
                bounds: (
                    map.view_to_subfile_next(ViewOffset(m)).unwrap().0,
                    map.view_to_subfile_previous(ViewOffset(end - 1)).unwrap().0,
                ),
                segments: segments.map(|s| (s.start(), s.last())).collect(),
                payload,
            });
        }
        let header = self.header_meeting(view);
        if let Some(meeting) = header {
            for run in meeting.runs(first.0..last.0 + 1) {
                let (l, r, n) = (
                    (run.left - m) as usize,
                    run.right as usize,
                    run.len as usize,
                );
                self.header[r..r + n].copy_from_slice(&data[l..l + n]);
            }
        }
        messages
    }

    /// Reads view bytes `m..end`, short at the end of the file.
    pub(crate) fn read(&self, view: &View, m: u64, end: u64) -> Vec<u8> {
        let end = end.min(view.len_within(self.len));
        let Some(range) = view.file_range(ViewOffset(m)..ViewOffset(end)) else {
            return Vec::new();
        };
        let mut data = vec![0; (end - m) as usize];
        for e in 0..self.partition.len() {
            let map = view.to_subfile(&self.partition, e);
            let joint = map.meeting().joint(range.start.0..range.end.0);
            each_piece(&joint, 0, 0, &mut |l, r, n| {
                for i in 0..n {
                    let stored = self.subfiles[e].get((r + i) as usize);
                    data[(l + i - m) as usize] = stored.copied().unwrap_or(0);
                }
            });
        }
        if let Some(meeting) = self.header_meeting(view) {
            for run in meeting.runs(range.start.0..range.end.0) {
                let (l, r, n) = (
                    (run.left - m) as usize,
                    run.right as usize,
                    run.len as usize,
                );
                data[l..l + n].copy_from_slice(&self.header[r..r + n]);
            }
        }
        data
    }

    fn header_meeting(&self, view: &View) -> Option<Meeting> {
        let set = FallsSet::segment(0, self.partition.displacement().0).ok()?;
        let header = Periodic::new(0, falls::MAX_OFFSET, set).unwrap();
        Some(Meeting::new(view.bytes(), &header))
    }

    /// Moves all bytes to another partition along a plan.
    pub(crate) fn redistribute(&self, target: &Partition) -> (Stored, Plan) {
        let plan = Plan::between(&self.partition, target, self.len);
        let mut out = Stored {
            partition: target.clone(),
            header: Vec::new(),
            subfiles: vec![Vec::new(); target.len()],
            len: 0,
        };
        out.grow(self.len);
        for t in plan.transfers() {
            each_piece(&t.joint(), 0, 0, &mut |l, r, n| {
                let from = match t.source() {
                    Part::Header => &self.header,
                    Part::Element(e) => &self.subfiles[e],
                };
                let to = match t.target() {
                    Part::Header => &mut out.header,
                    Part::Element(e) => &mut out.subfiles[e],
                };
                to[r as usize..(r + n) as usize]
                    .copy_from_slice(&from[l as usize..(l + n) as usize]);
            });
        }
        (out, plan)
    }
}
