//! [`Context`]: which virtual processors take part in an operation (`where` and `everywhere` of C*, L-08 and L-09).
//!
//! A context belongs to a member and says something about its VPs only. Everywhere is known to be everywhere without
//! looking at VPs, which is what makes the fast modes fast (`CS__everywhere`, L-19).

use std::sync::Arc;

/// The VPs of a member that are active.
///
/// ```
/// use streams::Context;
/// let values = [3, -1, 4, -1];
/// let negative = Context::everywhere().narrowed(4, |vp| values[vp] < 0);
/// assert_eq!(negative.active(4).collect::<Vec<_>>(), [1, 3]);
/// let first = negative.narrowed(4, |vp| vp < 2);
/// assert_eq!(first.active(4).collect::<Vec<_>>(), [1]);
/// assert!(!negative.is_everywhere() && Context::everywhere().is_everywhere());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Context {
    mask: Option<Arc<[bool]>>,
    /// Whether the mask is true for all: found once, when it is given.
    is_full: bool,
}

impl Context {
    /// All VPs.
    pub fn everywhere() -> Context {
        Context::default()
    }

    /// The VPs whose entry is true, in the order of the member's VPs.
    pub fn of_mask(mask: impl Into<Arc<[bool]>>) -> Context {
        let mask = mask.into();
        Context {
            is_full: mask.iter().fold(true, |full, active| full & active),
            mask: Some(mask),
        }
    }

    /// Those active VPs among `count` for which a condition holds (`where`); it is asked with the VP's place at this member,
    /// and only for active ones.
    pub fn narrowed(&self, count: usize, mut condition: impl FnMut(usize) -> bool) -> Context {
        let mask = (0..count).map(|vp| self.is_active(vp) && condition(vp));
        Context::of_mask(mask.collect::<Vec<_>>())
    }

    /// Those active VPs of `outer` that are not active here (the `else` of a `where`).
    pub fn otherwise(&self, outer: &Context, count: usize) -> Context {
        outer.narrowed(count, |vp| !self.is_active(vp))
    }

    /// Whether no mask was given. A mask that is true for all is not everywhere, but has the same VPs.
    pub fn is_everywhere(&self) -> bool {
        self.mask.is_none()
    }

    /// Whether the VP at a place is active.
    pub fn is_active(&self, local: usize) -> bool {
        self.mask
            .as_ref()
            .is_none_or(|mask| mask.get(local).copied().unwrap_or(false))
    }

    /// Whether all of `count` VPs are active.
    pub fn has_all(&self, count: usize) -> bool {
        self.mask
            .as_ref()
            .is_none_or(|mask| self.is_full && mask.len() == count)
    }

    /// The places of the active VPs among `count`, ascending.
    pub fn active(&self, count: usize) -> impl Iterator<Item = usize> + '_ {
        (0..count).filter(|local| self.is_active(*local))
    }

    /// Entries of the mask, if there is one.
    pub(crate) fn mask_len(&self) -> Option<usize> {
        self.mask.as_ref().map(|mask| mask.len())
    }
}
