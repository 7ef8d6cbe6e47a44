//! Lower and upper bound of a datatype, with the rule that explicit bounds stick.
//!
//! ```text
//! part without explicit bounds     [--####--]
//! part with explicit bounds                    <....####....>
//! struct of both                               <------------>      only explicit ones count
//! ```
//!
//! Sums are formed in 128 bits, where they saturate, and checked once, when a type is built.

use crate::error::LayoutError;

/// The bounds of a type map that grows part by part.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bounds {
    /// Lower and upper bound; `None` while nothing was placed.
    span: Option<(i128, i128)>,
    explicit: bool,
}

impl Bounds {
    /// The natural bounds of a basic type.
    pub(super) fn natural(lb: i64, ub: i64) -> Self {
        Bounds {
            span: Some((lb.into(), ub.into())),
            explicit: false,
        }
    }

    /// Bounds that replace all others.
    pub(super) fn explicit_at(lb: i128, ub: i128) -> Self {
        Bounds {
            span: Some((lb, ub)),
            explicit: true,
        }
    }

    /// Adds copies of `old`, the lowest at `first` and the highest at `last`.
    pub(super) fn place(&mut self, old: &Bounds, first: i128, last: i128) {
        let Some((lb, ub)) = old.span else { return };
        let placed = (lb.saturating_add(first), ub.saturating_add(last));
        match self.span {
            Some((lb, ub)) if self.explicit == old.explicit => {
                self.span = Some((lb.min(placed.0), ub.max(placed.1)));
            }
            Some(_) if self.explicit => {}
            _ => {
                self.span = Some(placed);
                self.explicit = old.explicit;
            }
        }
    }

    /// Refused when a bound or the extent does not fit 64 bits.
    pub(super) fn check(&self) -> Result<(), LayoutError> {
        let (lb, ub) = self.span.unwrap_or((0, 0));
        for (name, value) in [("lb", lb), ("ub", ub), ("extent", ub.saturating_sub(lb))] {
            i64::try_from(value).map_err(|_| LayoutError::overflow(name))?;
        }
        Ok(())
    }

    pub(super) fn explicit(&self) -> bool {
        self.explicit
    }

    pub(super) fn lb(&self) -> i64 {
        self.span.map_or(0, |s| s.0 as i64)
    }

    pub(super) fn ub(&self) -> i64 {
        self.span.map_or(0, |s| s.1 as i64)
    }
}
