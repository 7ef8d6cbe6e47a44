//! What one source element sends to one target element.
//!
//! A transfer owns the meeting of the two and the window of the file it was planned for; volumes,
//! runs and the tree to copy along are derived when asked for.

use std::fmt;
use std::ops::Range;
use std::sync::OnceLock;

use falls::{Joint, Meeting};
use layout::FileOffset;

use crate::measures::Counts;

/// One end of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// The bytes before the displacement, which belong to no element.
    Header,
    /// An element of the partition, or a view.
    Element(usize),
}

impl Part {
    /// The element number; `None` for the header.
    pub fn element(self) -> Option<usize> {
        match self {
            Part::Header => None,
            Part::Element(e) => Some(e),
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Part::Header => f.write_str("header"),
            Part::Element(e) => write!(f, "{e}"),
        }
    }
}

/// The bytes that a source and a target share inside the window of a plan.
#[derive(Clone, Debug)]
pub struct Transfer {
    source: Part,
    target: Part,
    meeting: Meeting,
    window: Range<u64>,
    counted: OnceLock<Counts>,
}

impl Transfer {
    pub(crate) fn new(source: Part, target: Part, meeting: Meeting, window: Range<u64>) -> Self {
        Transfer {
            source,
            target,
            meeting,
            window,
            counted: OnceLock::new(),
        }
    }

    /// Who holds the bytes now.
    pub fn source(&self) -> Part {
        self.source
    }

    /// Who gets them.
    pub fn target(&self) -> Part {
        self.target
    }

    /// The intersection and its projections; left is the source, right the target.
    pub fn meeting(&self) -> &Meeting {
        &self.meeting
    }

    /// The file range the plan was made for.
    pub fn window(&self) -> Range<FileOffset> {
        FileOffset(self.window.start)..FileOffset(self.window.end)
    }

    /// Number of bytes: exact when the meeting is symbolic or has few runs, else extrapolated from
    /// the first ones ([`Transfer::is_exact`]). The exact number of a lazy meeting costs a walk:
    /// [`Meeting::count`].
    pub fn bytes(&self) -> u64 {
        self.counted().bytes
    }

    /// Number of runs contiguous in file, source and target at once; exact as [`Transfer::bytes`].
    pub fn run_count(&self) -> u64 {
        self.counted().runs
    }

    /// Whether bytes and runs were counted and not extrapolated.
    pub fn is_exact(&self) -> bool {
        !self.counted().sampled
    }

    /// What a copy along the transfer walks over on either end, counted once.
    pub fn counts(&self) -> Counts {
        *self.counted()
    }

    /// What planning wants to know of the transfer, counted once.
    pub(crate) fn counted(&self) -> &Counts {
        self.counted.get_or_init(|| Counts::of(self))
    }

    /// The pieces as one tree: file offsets, offsets in the source, offsets in the target. A lazy
    /// meeting lists its runs here; go window by window with [`Meeting::joint`] where they are many.
    pub fn joint(&self) -> Joint {
        self.meeting.joint(self.window.clone())
    }

    pub(crate) fn retargeted(&self, target: Part) -> Transfer {
        Transfer {
            target,
            ..self.clone()
        }
    }
}
