//! Which bytes of a view lie at which server, under one layout state.
//!
//! A [`Plan`] joins the [access plan](plan::access) of a view, which knows the order of bytes, with the servers of the
//! state. While a file moves its state changes with every round, and the plans of one generation have their shares in
//! common.
//!
//! Left to others: the order of bytes, connections, sending, what a server answers.

use std::convert::Infallible;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Instant;

use kernels::Share;
use layout::{FileSpan, View};
use plan::access::{AccessPlan, Home, Part, Pieces, Shares};
use wire::{LayoutState, Place};

/// The stored bytes of a subfile: the generation they carry, and the index.
pub(crate) type SubfileKey = (u64, u32);

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) state: Arc<LayoutState>,
    access: AccessPlan,
    /// The encoded version, as it travels.
    pub(crate) version: Vec<u8>,
    /// The servers of the file; an index into it is a *slot*.
    pub(crate) places: Vec<Place>,
    /// By piece and subfile, one piece after the other; `None` if no server holds it.
    slots: Box<[Option<u32>]>,
}

impl Deref for Plan {
    type Target = AccessPlan;

    fn deref(&self) -> &AccessPlan {
        &self.access
    }
}

impl Plan {
    /// The plan for a state; `last` is one of the same view, from which shares are taken over.
    pub(crate) fn new(state: &Arc<LayoutState>, view: &View, last: Option<&Plan>) -> Plan {
        let mut places: Vec<Place> = Vec::new();
        let mut by_server = std::collections::HashMap::new();
        let mut slot = |place: &Place| {
            *by_server.entry(place.server).or_insert_with(|| {
                places.push(*place);
                places.len() as u32 - 1
            })
        };
        let subfiles = state.pieces.iter().flat_map(|piece| &piece.places);
        let slots = subfiles.map(|list| list.first().map(&mut slot)).collect();
        let last = last.map(|last| last.shares());
        Plan::with(state, view, state.plan_pieces(), last, places, slots)
    }

    /// For a client that sends whole requests to one server: as if that server had the file in one piece.
    /// The version is that of the state, which the server splits by.
    pub(crate) fn through(state: &Arc<LayoutState>, view: &View, place: Place) -> Plan {
        let slots = Box::new([Some(0)]);
        Plan::with(state, view, Pieces::undivided(), None, vec![place], slots)
    }

    fn with(
        state: &Arc<LayoutState>,
        view: &View,
        pieces: Pieces,
        last: Option<&Shares>,
        places: Vec<Place>,
        slots: Box<[Option<u32>]>,
    ) -> Plan {
        let mut version = Vec::new();
        state.version().put(&mut version);
        let shares = Shares::new(view.bytes(), &pieces, last);
        Plan {
            state: state.clone(),
            access: AccessPlan::new(pieces, Arc::new(shares)),
            version,
            places,
            slots,
        }
    }

    /// The step of the state.
    pub(crate) fn step(&self) -> u64 {
        self.state.step
    }

    /// Whose stored bytes a part is about.
    pub(crate) fn stored(&self, part: &Part) -> SubfileKey {
        let Home { piece, subfile, .. } = part.home;
        (self.state.pieces[piece].stores[subfile], subfile as u32)
    }

    /// Whether all bytes are in one generation: no re-layout is under way.
    pub(crate) fn is_settled(&self) -> bool {
        self.pieces().list().len() == 1
    }

    /// The server of a home.
    fn slot(&self, home: Home) -> Option<usize> {
        let before: usize = (0..home.piece).map(|p| self.shares().subfiles(p)).sum();
        self.slots[before + home.subfile].map(|slot| slot as usize)
    }

    /// The share of a subfile of the first piece.
    pub(crate) fn share_at(&self, subfile: u32) -> Option<&Share> {
        let subfile = subfile as usize;
        (subfile < self.shares().subfiles(0)).then(|| self.shares().with(0, subfile))
    }

    /// Hands every part of a span to `take` with the slot of its server, in the order in which bytes travel; bytes
    /// that no server holds have no slot. What it took to compile shares is added to `intersect_ns`.
    pub(crate) fn parts(
        &self,
        file: FileSpan,
        intersect_ns: &mut u64,
        mut take: impl FnMut(Option<usize>, Part),
    ) {
        let count = |home: Home, file: FileSpan| {
            let (piece, subfile) = (home.piece, home.subfile);
            let share = self.shares().compiled(piece, subfile).unwrap_or_else(|| {
                let started = Instant::now();
                let share = self.shares().with(piece, subfile);
                *intersect_ns += started.elapsed().as_nanos() as u64;
                share
            });
            Ok::<_, Infallible>(share.count(file.raw()))
        };
        let Ok(()) = self.try_parts(file, count, |part| {
            take(self.slot(part.home), part);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use layout::{ArrayType, FileOffset, Layout, Partition};
    use std::ops::Range;

    fn piece(generation: u64, text: &str, ranges: &[Range<u64>], servers: &[u64]) -> wire::Piece {
        let layout: Layout = text.parse().unwrap();
        let array: ArrayType = "u8[12,10]".parse().unwrap();
        let elements = layout.on_array(&array).unwrap().elements().unwrap();
        let pattern = layout::Pattern::new(elements.period, elements.sets).unwrap();
        let partition = Partition::from_start(pattern);
        let place = |i: usize| Place {
            server: servers[i % servers.len()],
            incarnation: 1,
        };
        let places = (0..partition.len()).map(|i| vec![place(i)]).collect();
        wire::Piece {
            ranges: ranges.to_vec(),
            ..wire::Piece::whole(generation, partition, places)
        }
    }

    fn state(step: u64, frontier: u64) -> Arc<LayoutState> {
        let old = piece(
            1,
            "(block, *) onto 3",
            &[frontier..600, 700..900],
            &[1, 2, 3],
        );
        let new = piece(
            2,
            "(*, cyclic(3)) onto 2",
            &[0..frontier, 600..700, 900..u64::MAX],
            &[3, 4],
        );
        Arc::new(LayoutState {
            owner: old.places[0][0],
            step,
            pieces: vec![old, new],
        })
    }

    #[test]
    fn every_part_of_a_file_that_moves_is_at_a_server_of_its_piece() {
        let layout: Layout = "(cyclic(2), block) onto 2x2 [1]".parse().unwrap();
        let array: ArrayType = "u8[12,10]".parse().unwrap();
        let applied = layout.on_array(&array).unwrap();
        let view = View::new(FileOffset(5), applied.period(), applied.element(0).unwrap()).unwrap();
        let plan = Plan::new(&state(7, 130), &view, None);
        assert_eq!(plan.step(), 7);
        for file in [0..1000, 100..140, 595..905, 130..131, 899..2000] {
            let mut bytes = 0;
            plan.parts(FileSpan::from_raw(file.clone()), &mut 0, |slot, part| {
                bytes += part.bytes;
                let Home { piece, subfile, .. } = part.home;
                let place = plan.places[slot.unwrap()];
                assert_eq!(place, plan.state.pieces[piece].places[subfile][0]);
                assert_eq!(plan.stored(&part), (piece as u64 + 1, subfile as u32));
            });
            let shown = view.bytes().rank(file.end) - view.bytes().rank(file.start);
            assert_eq!(bytes, shown);
        }
    }

    #[test]
    fn the_next_step_of_a_move_computes_nothing_again() {
        let view = View::whole_file();
        let first = Plan::new(&state(7, 130), &view, None);
        let mut spent = 0;
        first.parts(FileSpan::from_raw(0..2000), &mut spent, |_, _| {});
        let next = Plan::new(&state(8, 400), &view, Some(&first));
        let mut spent = 0;
        next.parts(FileSpan::from_raw(0..2000), &mut spent, |_, _| {});
        assert_eq!(spent, 0, "shares are those of before");
    }

    #[test]
    fn subfiles_that_no_server_holds_have_no_slot() {
        let mut lost = LayoutState::clone(&state(7, 130));
        lost.pieces[0].places[1].clear();
        let plan = Plan::new(&Arc::new(lost), &View::whole_file(), None);
        plan.parts(FileSpan::from_raw(0..1000), &mut 0, |slot, part| {
            assert_eq!(
                slot.is_none(),
                (part.home.piece, part.home.subfile) == (0, 1)
            );
        });
    }
}
