//! Which bytes of a request lie at which server, and moving them between view order and packets.
//!
//! A [`Split`] belongs to one view and one layout: what the view shares with every subfile, whoever has it,
//! made when first met. A packet is what travels between servers: the subfiles of a server in ascending
//! index, of each the bytes of the range in ascending file order, as in any access.
//!
//! Left to others: sending packets, the store.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use advise::mapping::Matching;
use kernels::{Share, SharedBytesMut};
use layout::FileOffset;
use wire::Status;

use super::Fault;
use crate::bounded::Searching;
use crate::files::Known;
use crate::refused::Refused;
use crate::views::Registered;

/// See the [module](self).
pub(crate) struct Split {
    pub(crate) serial: u64,
    pub(crate) step: u64,
    pieces: Vec<SplitPiece>,
}

struct SplitPiece {
    ranges: Vec<Range<u64>>,
    partition: layout::Partition,
    subfiles: Arc<[Subfile]>,
}

struct Subfile {
    server: Option<u64>,
    share: OnceLock<Share>,
}

/// Bytes of a request in one subfile.
#[derive(Clone)]
struct RoutePart {
    piece: usize,
    index: usize,
    file: Range<u64>,
    bytes: u64,
}

/// The part of a request at one server.
#[derive(Default)]
pub(crate) struct Route {
    pub(crate) server: u64,
    parts: Vec<RoutePart>,
    pub(crate) bytes: u64,
    packet: Vec<u8>,
}

impl Route {
    /// Memory for all bytes of it.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        let len = self.bytes as usize;
        if self.packet.len() < len {
            self.packet.resize(len, 0);
        }
        &mut self.packet[..len]
    }

    /// Its bytes.
    pub(crate) fn packet(&self) -> &[u8] {
        &self.packet[..self.bytes as usize]
    }
}

/// The parts of a request, reused from one to the next.
#[derive(Default)]
pub(crate) struct Routes {
    list: Vec<Route>,
    used: usize,
}

impl Routes {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Route> {
        self.list[..self.used].iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Route> {
        self.list[..self.used].iter_mut()
    }

    /// Bytes at a server.
    pub(crate) fn bytes_of(&self, server: u64) -> u64 {
        let found = self.iter().find(|r| r.server == server);
        found.map_or(0, |r| r.bytes)
    }

    fn add(&mut self, server: u64, part: RoutePart) {
        let found = self.iter().position(|r| r.server == server);
        let i = match found {
            Some(i) => i,
            None => {
                if self.list.len() == self.used {
                    self.list.push(Route::default());
                }
                let route = &mut self.list[self.used];
                route.server = server;
                route.bytes = 0;
                route.parts.clear();
                self.used += 1;
                self.used - 1
            }
        };
        self.list[i].bytes += part.bytes;
        self.list[i].parts.push(part);
    }
}

/// Bytes that no server has.
pub(crate) struct Nobody(u64);

impl From<Nobody> for Refused {
    fn from(nobody: Nobody) -> Self {
        let text = format!("{} bytes lie in subfiles that no server holds", nobody.0);
        Refused::new(Status::Lost, text)
    }
}

impl Split {
    /// For a layout; what was compiled for an earlier step of the same layout is taken over.
    pub(crate) fn new(known: &Known, before: Option<&Split>) -> Split {
        let before = before.filter(|before| before.serial == known.serial);
        let subfile = |places: &Vec<wire::Place>| Subfile {
            server: places.first().map(|place| place.server),
            share: OnceLock::new(),
        };
        let pieces = known.layout().pieces.iter().enumerate();
        let pieces = pieces.map(|(i, piece)| SplitPiece {
            ranges: piece.ranges.clone(),
            partition: piece.partition.clone(),
            subfiles: match before {
                Some(before) => Arc::clone(&before.pieces[i].subfiles),
                None => piece.places.iter().map(subfile).collect(),
            },
        });
        Split {
            serial: known.serial,
            step: known.step(),
            pieces: pieces.collect(),
        }
    }

    fn share(&self, view: &Registered, piece: usize, index: usize) -> &Share {
        let piece = &self.pieces[piece];
        piece.subfiles[index]
            .share
            .get_or_init(|| Share::new(view.view.bytes(), &piece.partition.subfile(index)))
    }

    /// In the order in which bytes travel.
    fn visit(
        &self,
        view: &Registered,
        file: &Range<u64>,
        most: u64,
        searching: &mut Searching<'_>,
        mut take: impl FnMut(u64, RoutePart),
    ) -> Result<(), Refused> {
        for (p, piece) in self.pieces.iter().enumerate() {
            for range in &piece.ranges {
                let range = range.start.max(file.start)..range.end.min(file.end);
                if range.is_empty() {
                    continue;
                }
                let meeting = FileOffset(range.start)..FileOffset(range.end);
                let mut visited = Ok(());
                piece.partition.visit_meeting(meeting, |index| {
                    if visited.is_err() {
                        return;
                    }
                    let share = self.share(view, p, index);
                    let bytes = match searching.count(share, range.clone(), most) {
                        Ok(bytes) => bytes,
                        Err(refused) => {
                            visited = Err(refused);
                            return;
                        }
                    };
                    if let Some(server) = piece.subfiles[index].server.filter(|_| bytes > 0) {
                        let part = RoutePart {
                            piece: p,
                            index,
                            file: range.clone(),
                            bytes,
                        };
                        take(server, part);
                    }
                });
                visited?;
            }
        }
        Ok(())
    }

    /// Finds the parts of a file range that has `bytes` bytes of the view.
    pub(crate) fn routes(
        &self,
        view: &Registered,
        file: &Range<u64>,
        bytes: u64,
        searching: &mut Searching<'_>,
        routes: &mut Routes,
    ) -> Result<(), Refused> {
        routes.used = 0;
        let mut found = 0;
        self.visit(view, file, bytes, searching, |server, part| {
            found += part.bytes;
            routes.add(server, part);
        })?;
        match bytes - found.min(bytes) {
            0 => Ok(()),
            missing => Err(Nobody(missing).into()),
        }
    }

    /// Where the bytes of a view range lie; nothing if that takes more than `steps` to find out. Nobody has to move
    /// the bytes that a hint names, so nothing else pays for the search.
    pub(crate) fn matching(
        &self,
        view: &Registered,
        offset: u64,
        size: u64,
        steps: u64,
    ) -> Option<Matching> {
        let mut matching = Matching::default();
        let range = layout::ViewOffset(offset)..layout::ViewOffset(offset.saturating_add(size));
        if let Some(file) = view.view.file_range(range) {
            let file = file.start.0..file.end.0;
            let mut searching = Searching::new(steps, 0, view.description_bytes(), None);
            let add = |server, part: RoutePart| matching.add(server, part.bytes);
            self.visit(view, &file, u64::MAX, &mut searching, add)
                .ok()?;
        }
        Some(matching)
    }

    /// Packs a part from memory in view order that begins at view byte `base`.
    pub(super) fn gather(
        &self,
        view: &Registered,
        route: &mut Route,
        memory: &[u8],
        base: u64,
    ) -> Result<(), Fault> {
        route.room();
        let Route { parts, packet, .. } = route;
        let mut at = 0;
        for part in parts.iter() {
            let end = at + part.bytes as usize;
            let packed = &mut packet[at..end];
            let share = self.share(view, part.piece, part.index);
            share
                .gather_left(part.file.clone(), memory.into(), base, packed)
                .map_err(|e| crate::access::write::internal(&e))?;
            at = end;
        }
        Ok(())
    }

    /// Unpacks a part into memory in view order that begins at view byte `base`.
    pub(super) fn scatter(
        &self,
        view: &Registered,
        route: &Route,
        memory: &mut [u8],
        base: u64,
    ) -> Result<(), Fault> {
        let mut at = 0;
        for part in &route.parts {
            let end = at + part.bytes as usize;
            let packed = &route.packet[at..end];
            let target = SharedBytesMut::from_slice(&mut *memory);
            self.share(view, part.piece, part.index)
                .scatter_left(part.file.clone(), packed, target, base)
                .map_err(|e| crate::access::write::internal(&e))?;
            at = end;
        }
        Ok(())
    }
}
