//! Which state of a file is known here, what earlier ones looked like, and whether the owner knows of this server.
//!
//! Every request names the step that it was planned with ([`Version::age`]). One of an earlier step is served if its
//! range has the same parts in the same order now; a step that was passed over here is not known, and counts as changed.
//!
//! Invariant: what is known is never changed, only replaced, and never by an earlier step.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use layout::FileSpan;
use plan::access::Pieces;
use wire::message::cluster::FileStateIs;
use wire::{FileId, Reader, ServerId, StateVersion};

use super::LocalState;

/// Steps that are remembered.
const REMEMBERED: usize = 256;

/// See the [module](self).
#[derive(Default)]
pub(super) struct Version {
    known: Option<Arc<LocalState>>,
    /// What is known may be older than what happened.
    is_stale: bool,
    /// Steps that were known here, oldest first, with what requests of that step were planned by.
    earlier: VecDeque<(u64, Pieces)>,
    /// The generation with which the owner has taken this server among those of the file.
    taken: u64,
    /// The start of this server.
    start: u64,
    /// The owner has told this start who is fenced and which lease numbers are refused.
    is_told: bool,
}

/// How the state that a request was planned with compares with what is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Age {
    /// The request knows more.
    Newer,
    Same,
    /// An earlier state, with the same parts of the range in the same order.
    Older,
    /// Its bytes may be elsewhere now, or it names no state.
    Changed,
}

impl Version {
    /// Nothing is known yet at this start of the server.
    pub(super) fn new(start: u64) -> Self {
        Version {
            start,
            ..Version::default()
        }
    }

    /// What is known, if nothing newer has to be asked for.
    pub(super) fn known(&self) -> Option<&Arc<LocalState>> {
        self.known.as_ref().filter(|_| !self.is_stale)
    }

    /// The last step that was known; 0 if none was.
    pub(super) fn step(&self) -> u64 {
        self.known.as_ref().map_or(0, |known| known.step())
    }

    /// Takes what the metadata manager said, unless it is older than what is known; whether it is another state.
    pub(super) fn learn(&mut self, file: FileId, told: FileStateIs, server: ServerId) -> bool {
        self.is_stale = false;
        let before = self.known.as_ref();
        if before.is_some_and(|known| known.is(&told) || told.layout.step < known.step()) {
            return false;
        }
        let known = LocalState::new(file, told, server, before.map(|known| &**known));
        if let Some(before) = before.filter(|before| before.step() < known.step()) {
            match known.has_places_of(before) {
                true => {
                    let pieces = before.pieces().clone();
                    self.earlier.push_back((before.step(), pieces));
                }
                false => self.earlier.clear(),
            }
            if self.earlier.len() > REMEMBERED {
                self.earlier.pop_front();
            }
        }
        self.known = Some(Arc::new(known));
        true
    }

    /// There may be a later state: the next access asks for it.
    pub(super) fn forget(&mut self) {
        self.is_stale = true;
    }

    /// How old a request for a range of the file is.
    pub(super) fn age(&self, version: &[u8], file: Option<&Range<u64>>) -> Age {
        let version = StateVersion::read(&mut Reader::new(version));
        let (Ok(StateVersion { step }), Some(known)) = (version, &self.known) else {
            return Age::Changed;
        };
        if step >= known.step() {
            return match step == known.step() {
                true => Age::Same,
                false => Age::Newer,
            };
        }
        let Some(file) = file else {
            return Age::Older;
        };
        match self.earlier.binary_search_by_key(&step, |(step, _)| *step) {
            Ok(at) => {
                let earlier = &self.earlier[at].1;
                match earlier.is_same_within(known.pieces(), FileSpan::from_raw(file.clone())) {
                    true => Age::Older,
                    false => Age::Changed,
                }
            }
            Err(_) => Age::Changed,
        }
    }

    /// Whether direct clients have to ask: there may be a later step, or the owner does not know of this server.
    pub(super) fn is_closed(&self) -> bool {
        self.is_stale || self.is_new_here()
    }

    /// Whether the owner has still to take this server among those of the file: until then a truncate or a lease
    /// number would not come here.
    pub(super) fn is_new_here(&self) -> bool {
        let known = self.known.as_ref();
        known.is_some_and(|known| {
            known.newcomer().is_some_and(|g| g != self.taken) || self.untold_start(known).is_some()
        })
    }

    /// The start of this server, if an earlier one had bytes of the file and was told fences and lease numbers, which
    /// this one does not know yet.
    pub(super) fn untold_start(&self, known: &LocalState) -> Option<u64> {
        (!self.is_told && known.earliest < self.start).then_some(self.start)
    }

    /// The owner knows of this server, in what is known now.
    pub(super) fn taken(&mut self, known: &LocalState) {
        self.taken = known.newcomer().unwrap_or(self.taken);
    }

    /// The owner has told this start everything that earlier ones knew.
    pub(super) fn told(&mut self) {
        self.is_told = true;
    }

    /// Whether the owner has never taken this server.
    pub(super) fn is_untaken(&self) -> bool {
        self.taken == 0
    }
}

#[cfg(test)]
mod tests {
    use layout::{Partition, Pattern};
    use wire::message::Bytes;
    use wire::{LayoutState, Piece, Place, SizeState};

    use super::*;

    const HERE: ServerId = ServerId(1);

    /// Alternating bytes at servers, which are in their first start.
    fn piece(generation: u64, servers: &[u64]) -> Piece {
        let count = servers.len() as u64;
        let sets = (0..count).map(|i| falls::FallsSet::segment(i, 1).unwrap());
        let pattern = Pattern::new(count, sets.collect()).unwrap();
        let place = |server: &u64| Place {
            server: *server,
            incarnation: 1,
        };
        let places = servers.iter().map(|server| vec![place(server)]).collect();
        Piece::whole(generation, Partition::from_start(pattern), places)
    }

    fn told(step: u64, pieces: Vec<Piece>) -> FileStateIs {
        let owner = Place {
            server: 1,
            incarnation: 1,
        };
        FileStateIs {
            layout: LayoutState {
                owner,
                step,
                pieces,
            },
            size: SizeState {
                size: 0,
                epoch: 0,
                truncate_to: None,
            },
            owner: 0,
            group: 0,
            mode: 0o600,
            directory: FileId(0),
            note: Bytes::default(),
        }
    }

    fn learn(version: &mut Version, step: u64, pieces: Vec<Piece>) -> bool {
        version.learn(FileId(1), told(step, pieces), HERE)
    }

    fn age(version: &Version, step: u64, range: Option<Range<u64>>) -> Age {
        let mut bytes = Vec::new();
        StateVersion { step }.put(&mut bytes);
        version.age(&bytes, range.as_ref())
    }

    #[test]
    fn a_request_is_as_old_as_its_step_unless_its_bytes_have_changed() {
        let mut version = Version::new(1);
        assert!(version.known().is_none() && age(&version, 1, None) == Age::Changed);
        assert!(learn(&mut version, 2, vec![piece(1, &[1, 2])]));
        assert_eq!(version.age(&[], None), Age::Changed, "no version at all");
        assert_eq!(age(&version, 3, None), Age::Newer);
        assert_eq!(age(&version, 2, Some(0..9)), Age::Same);
        assert_eq!(age(&version, 1, None), Age::Older, "it touches no bytes");
        assert_eq!(
            age(&version, 1, Some(0..9)),
            Age::Changed,
            "never known here"
        );
        // The first ten bytes go to another layout.
        let (mut first, mut second) = (piece(1, &[1, 2]), piece(2, &[2, 1, 3]));
        first.ranges = std::iter::once(10..u64::MAX).collect();
        second.ranges = std::iter::once(0..10).collect();
        assert!(learn(&mut version, 4, vec![first, second]));
        assert_eq!(age(&version, 2, Some(10..99)), Age::Older);
        assert_eq!(age(&version, 2, Some(9..99)), Age::Changed);
        assert_eq!(age(&version, 3, Some(10..99)), Age::Changed, "passed over");
        // What is older, or the same, is no news.
        assert!(!learn(&mut version, 3, vec![piece(1, &[1, 2])]));
        assert_eq!(version.step(), 4);
        // Other places of the same generation: nothing of before can be compared.
        assert!(learn(&mut version, 5, vec![piece(1, &[2, 1])]));
        assert_eq!(age(&version, 2, Some(10..99)), Age::Changed);
    }

    #[test]
    fn what_is_stale_is_asked_for_and_may_turn_out_to_be_the_same() {
        let mut version = Version::new(1);
        learn(&mut version, 1, vec![piece(1, &[1])]);
        assert!(version.known().is_some() && !version.is_closed());
        version.forget();
        assert!(version.known().is_none() && version.is_closed() && version.step() == 1);
        assert!(!learn(&mut version, 1, vec![piece(1, &[1])]));
        assert!(version.known().is_some() && !version.is_closed());
    }

    #[test]
    fn the_owner_has_to_know_of_a_newcomer_and_of_a_new_start() {
        let mut version = Version::new(1);
        let pieces = vec![piece(1, &[2]), piece(7, &[1])];
        learn(&mut version, 1, pieces);
        assert!(version.is_new_here() && version.is_untaken());
        let known = Arc::clone(version.known().unwrap());
        assert_eq!(version.untold_start(&known), None);
        version.taken(&known);
        assert!(!version.is_new_here() && !version.is_untaken());
        // A later start of this server has bytes of the first.
        let mut version = Version::new(2);
        learn(&mut version, 1, vec![piece(1, &[1])]);
        let known = Arc::clone(version.known().unwrap());
        assert!(version.is_new_here() && version.untold_start(&known) == Some(2));
        version.told();
        assert!(!version.is_closed() && version.untold_start(&known).is_none());
    }
}
