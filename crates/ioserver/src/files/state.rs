//! What the metadata manager said about a file, ready for use: its layout state and the subfiles that are here.
//!
//! A [`LocalState`] is never changed, only replaced; what is derived from it (shares, open subfiles) lives with its
//! [`Shape`], which later steps of the same move share.
//!
//! Left to others: who may use it when (`files`).

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use falls::Periodic;
use kernels::Share;
use layout::FileSpan;
use parking_lot::Mutex;
use plan::access::{AccessPlan, Pieces, Shares};
use store::{Domain, Subfile, SubfileId};
use wire::message::cluster::FileStateIs;
use wire::{FileId, LayoutState, Piece, Place, ServerId, Status};

use crate::context::{Identity, Storage};
use crate::refused::Refused;
use crate::stored::SubfileStore;

/// One subfile of a layout whose place is this server.
pub(crate) struct OwnSubfile {
    /// Its index in the layout.
    pub(crate) index: u32,
    /// Its piece of the layout state.
    pub(crate) piece: usize,
    /// The generation under which its bytes are stored.
    pub(crate) store: u64,
    /// Its bytes in the file.
    pub(crate) bytes: Periodic,
    place: Place,
    open: OnceLock<Arc<dyn Subfile>>,
    /// What it has in common with the subfiles of all pieces, made for a move.
    shares: OnceLock<Arc<Shares>>,
}

/// The subfiles of a file that are here, of all pieces, and what was compiled for them. Lives as long as they stay
/// the same, over many steps of a move.
pub(crate) struct Shape {
    /// By piece, ascending by index.
    pub(crate) own: Vec<OwnSubfile>,
    /// Where the second piece begins in `own`.
    second: usize,
    pub(crate) shares: Mutex<HashMap<Arc<[u8]>, Arc<Shares>>>,
    /// Differs for any two of a process.
    pub(crate) serial: u64,
    /// The earliest start of this server that got a subfile.
    pub(crate) earliest: u64,
}

/// What the metadata manager said about a file, ready for use.
pub(crate) struct LocalState {
    file: FileId,
    told: FileStateIs,
    version: Vec<u8>,
    pieces: Pieces,
    shape: Arc<Shape>,
    newcomer: Option<u64>,
}

impl std::ops::Deref for LocalState {
    type Target = Shape;

    fn deref(&self) -> &Shape {
        &self.shape
    }
}

impl Shape {
    fn new(layout: &LayoutState, server: ServerId) -> Shape {
        static SERIAL: AtomicU64 = AtomicU64::new(1);
        let mut own = own_of(layout, 0, server);
        let second = own.len();
        own.extend(own_of(layout, 1, server));
        let starts = own.iter().map(|own| own.place.incarnation);
        Shape {
            earliest: starts.min().unwrap_or(u64::MAX),
            own,
            second,
            shares: Mutex::default(),
            serial: SERIAL.fetch_add(1, Ordering::Relaxed),
        }
    }
}

fn newcomer(layout: &LayoutState, server: ServerId) -> Option<u64> {
    let [source, target] = &layout.pieces[..] else {
        return None;
    };
    let has = |piece: &Piece| {
        let mut places = piece.places.iter().flatten();
        places.any(|place| place.server == server.0)
    };
    (has(target) && !has(source)).then(|| target.generation.max(source.generation))
}

/// Whether two states differ in ranges and step at most.
fn is_same_shape(a: &LayoutState, b: &LayoutState) -> bool {
    let same = |(a, b): (&Piece, &Piece)| {
        a.generation == b.generation && a.stores == b.stores && a.places == b.places
    };
    a.pieces.len() == b.pieces.len() && a.pieces.iter().zip(&b.pieces).all(same)
}

impl LocalState {
    pub(crate) fn new(
        file: FileId,
        told: FileStateIs,
        server: ServerId,
        before: Option<&LocalState>,
    ) -> LocalState {
        let mut version = Vec::new();
        told.layout.version().put(&mut version);
        let shape = match before.filter(|b| is_same_shape(&b.told.layout, &told.layout)) {
            Some(before) => Arc::clone(&before.shape),
            None => Arc::new(Shape::new(&told.layout, server)),
        };
        LocalState {
            file,
            pieces: told.layout.plan_pieces(),
            newcomer: newcomer(&told.layout, server),
            told,
            version,
            shape,
        }
    }

    /// The generation that has brought this server to the file, while it moves there: its owner may not know yet.
    pub(crate) fn newcomer(&self) -> Option<u64> {
        self.newcomer
    }

    /// The state of the file as another server has it.
    pub(crate) fn at_server(&self, server: ServerId) -> LocalState {
        LocalState::new(self.file, self.told.clone(), server, None)
    }

    /// What the metadata manager would say about the file in another step.
    pub(crate) fn with_layout(&self, layout: LayoutState) -> FileStateIs {
        FileStateIs {
            layout,
            ..self.told.clone()
        }
    }

    /// Whether it is just this.
    pub(crate) fn is(&self, told: &FileStateIs) -> bool {
        self.told == *told
    }

    /// Which file it is.
    pub(crate) fn file(&self) -> FileId {
        self.file
    }

    /// The version of the layout state, as it travels.
    pub(crate) fn version(&self) -> &[u8] {
        &self.version
    }

    /// What decides on the order of bytes.
    pub(crate) fn pieces(&self) -> &Pieces {
        &self.pieces
    }

    /// Whether every generation that both have has the same subfiles at the same places.
    pub(crate) fn has_places_of(&self, before: &LocalState) -> bool {
        let (mine, theirs) = (&self.told.layout.pieces, &before.told.layout.pieces);
        mine.iter().all(|a| {
            let mut same = theirs.iter().filter(|b| b.generation == a.generation);
            same.all(|b| a.stores == b.stores && a.places == b.places)
        })
    }

    /// The subfiles of one piece, with the position of the first in `own`.
    pub(crate) fn of_piece(&self, piece: usize) -> (usize, &[OwnSubfile]) {
        match piece {
            0 => (0, &self.own[..self.second]),
            _ => (self.second, &self.own[self.second..]),
        }
    }

    /// Whether bytes that are stored under a generation here belong to the file.
    pub(crate) fn names(&self, store: u64, subfiles: &[u32]) -> bool {
        let is_meant = |own: &OwnSubfile| subfiles.is_empty() || subfiles.contains(&own.index);
        self.own
            .iter()
            .any(|own| own.store == store && is_meant(own))
    }

    /// Whether the subfile of a piece has the same stored bytes in the other one.
    pub(crate) fn stays(&self, own: &OwnSubfile) -> bool {
        match &self.told.layout.pieces[..] {
            [first, second] => control::moves::stays(first, second, own.index as usize),
            _ => true,
        }
    }

    /// Where the bytes are.
    pub(crate) fn layout(&self) -> &LayoutState {
        &self.told.layout
    }

    /// Where the bytes of an own subfile lie, as if it were a view: what a move into it fetches.
    pub(crate) fn plan_into(&self, own: &OwnSubfile) -> AccessPlan {
        let make = || Arc::new(Shares::new(&own.bytes, &self.pieces, None));
        let shares = own.shares.get_or_init(make);
        AccessPlan::new(self.pieces.clone(), Arc::clone(shares))
    }

    /// Visits the positions in `own` of the subfiles that may have a byte of a span, in the order in which bytes
    /// travel, each with the part of the span that its piece governs. Ends at the first visit that fails.
    pub(crate) fn try_visit_own<E>(
        &self,
        file: FileSpan,
        mut visit: impl FnMut(usize, FileSpan) -> Result<(), E>,
    ) -> Result<(), E> {
        self.pieces.try_visit(file, |home, met| {
            let (first, own) = self.of_piece(home.piece);
            match own.binary_search_by_key(&home.subfile, |own| own.index as usize) {
                Ok(slot) => visit(first + slot, met),
                Err(_) => Ok(()),
            }
        })
    }

    /// [`LocalState::try_visit_own`] where no visit fails.
    pub(crate) fn visit_own(&self, file: FileSpan, mut visit: impl FnMut(usize, FileSpan)) {
        let visited: Result<(), std::convert::Infallible> =
            self.try_visit_own(file, |slot, met| {
                visit(slot, met);
                Ok(())
            });
        let Ok(()) = visited;
    }

    /// What a view shares with the subfile at a position of `own`.
    pub(crate) fn share<'a>(&self, shares: &'a Shares, slot: usize) -> &'a Share {
        let own = &self.own[slot];
        shares.with(own.piece, own.index as usize)
    }

    /// The server that keeps size, locks and pointers.
    pub(crate) fn owner(&self) -> Place {
        self.told.layout.owner
    }

    /// Who may share memory with its bytes.
    pub(crate) fn domain(&self) -> Domain {
        Domain {
            owner: self.told.owner,
            group: self.told.group,
            mode: self.told.mode,
            directory: self.told.directory.0,
        }
    }

    /// Name of a subfile in the store.
    pub(crate) fn id(&self, own: &OwnSubfile) -> SubfileId {
        SubfileId {
            file: self.file.0,
            generation: own.store,
            index: own.index,
        }
    }

    /// The subfile if anything was ever written to it. One that may be on a disk that is missing is an error.
    pub(crate) fn find<'a>(
        &self,
        own: &'a OwnSubfile,
        store: &SubfileStore,
    ) -> Result<Option<&'a Arc<dyn Subfile>>, Refused> {
        if let Some(open) = own.open.get() {
            return Ok(Some(open));
        }
        match store.open_bound(self.id(own), own.place.incarnation) {
            Ok(open) => Ok(Some(own.open.get_or_init(|| open))),
            Err(store::Error::NotFound(_)) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    /// The subfile if it was used before.
    pub(crate) fn opened(&self, own: &OwnSubfile) -> Option<Arc<dyn Subfile>> {
        own.open.get().cloned()
    }

    /// The subfile, made if there is none.
    pub(crate) fn make<'a>(
        &self,
        own: &'a OwnSubfile,
        storage: &Storage,
    ) -> store::Result<&'a Arc<dyn Subfile>> {
        if let Some(open) = own.open.get() {
            return Ok(open);
        }
        let (id, store) = (self.id(own), &storage.stored);
        let made = match store.open_bound(id, own.place.incarnation) {
            Err(store::Error::NotFound(_)) => {
                let start = storage.identity.incarnation();
                let mut identity = store::Identity::new(id, self.domain(), start);
                identity.note = self.told.note.0.clone();
                identity.note.truncate(::store::NOTE_BYTES);
                match store.create(&identity) {
                    Err(store::Error::Exists(_)) => store.open(id)?,
                    other => other?,
                }
            }
            other => other?,
        };
        Ok(own.open.get_or_init(|| made))
    }

    /// The subfile of an index whose stored bytes carry a generation; it must be here.
    pub(crate) fn own_at(&self, generation: u64, index: u32) -> Result<&OwnSubfile, Refused> {
        let mut own = self.own.iter();
        let found = own.find(|own| own.index == index && own.store == generation);
        found.ok_or_else(|| {
            Refused::new(
                Status::InvalidArgument,
                format!(
                    "subfile {index} of generation {generation} of {} is not at this server",
                    self.file
                ),
            )
        })
    }

    /// The step of the layout state.
    pub(crate) fn step(&self) -> u64 {
        self.told.layout.step
    }

    /// Refuses a subfile whose bytes are not those of this start of the server.
    pub(crate) fn check_place(&self, own: &OwnSubfile, server: &Identity) -> Result<(), Refused> {
        let (kept_since, incarnation) = (server.kept_since(), server.incarnation());
        let bound = own.place.incarnation;
        if (kept_since..=incarnation).contains(&bound) {
            return Ok(());
        }
        if bound < kept_since {
            let text = format!(
                "subfile {} of {} was in the memory of an earlier start of this server and is lost",
                own.index, self.file
            );
            return Err(Refused::new(Status::Lost, text));
        }
        Err(Refused::new(
            Status::WrongIncarnation,
            format!(
                "the layout names start {bound} of this server, which is start {incarnation}; ask again for the layout"
            ),
        ))
    }

    pub(crate) fn stale(&self) -> Refused {
        Refused::with_detail(
            Status::StaleLayout,
            format!("{} has another layout now; the answer has it", self.file),
            &self.told.layout,
        )
    }
}

/// The subfiles of one piece of a state whose place is `server`.
pub(crate) fn own_of(layout: &LayoutState, number: usize, server: ServerId) -> Vec<OwnSubfile> {
    let Some(piece) = layout.pieces.get(number) else {
        return Vec::new();
    };
    let places = piece.places.iter().enumerate();
    places
        .filter_map(|(index, places)| {
            let place = places.iter().find(|p| p.server == server.0)?;
            Some(OwnSubfile {
                index: u32::try_from(index).ok()?,
                piece: number,
                store: piece.stores[index],
                bytes: piece.partition.subfile(index),
                place: *place,
                open: OnceLock::new(),
                shares: OnceLock::new(),
            })
        })
        .collect()
}
