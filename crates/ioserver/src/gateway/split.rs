//! Which bytes of a request lie at which server, and moving them between view order and packets.
//!
//! A [`Split`] joins the access plan of a view with the servers of a layout. A packet is what travels between servers:
//! the parts of a server, in the order of the plan, as in any access.
//!
//! Left to others: the order of bytes (`plan::access`), sending packets, the store.

use std::sync::Arc;

use advise::mapping::Matching;
use kernels::SharedBytesMut;
use layout::{FileSpan, ViewOffset};
use plan::access::{AccessPlan, Part};
use wire::Status;

use super::Fault;
use crate::bounded::Search;
use crate::files::LocalState;
use crate::refused::Refused;
use crate::views::RegisteredView;

/// See the [module](self).
pub(crate) struct Split {
    plan: AccessPlan,
    known: Arc<LocalState>,
}

/// The part of a request at one server.
#[derive(Default)]
pub(crate) struct Route {
    pub(crate) server: u64,
    parts: Vec<Part>,
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

    fn add(&mut self, server: u64, part: Part) {
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
pub(crate) struct MissingBytes(u64);

impl From<MissingBytes> for Refused {
    fn from(missing: MissingBytes) -> Self {
        let text = format!("{} bytes lie in subfiles that no server holds", missing.0);
        Refused::new(Status::Lost, text)
    }
}

impl Split {
    /// Of the requests through a view, for a layout.
    pub(crate) fn new(view: &RegisteredView, known: &Arc<LocalState>) -> Split {
        Split {
            plan: view.plan(known),
            known: Arc::clone(known),
        }
    }

    /// Hands out the parts of a span with their servers; bytes that no server has are left out. Counts no further
    /// than `most`.
    fn visit(
        &self,
        file: FileSpan,
        most: u64,
        searching: &mut Search<'_>,
        mut take: impl FnMut(u64, Part),
    ) -> Result<(), Refused> {
        let shares = self.plan.shares();
        self.plan.try_parts(
            file,
            |home, file| {
                let share = shares.with(home.piece, home.subfile);
                searching.count(share, file.raw(), most)
            },
            |part| {
                let piece = &self.known.layout().pieces[part.home.piece];
                if let Some(place) = piece.places[part.home.subfile].first() {
                    take(place.server, part);
                }
            },
        )
    }

    /// Finds the parts of a file range that has `bytes` bytes of the view.
    pub(crate) fn routes(
        &self,
        file: FileSpan,
        bytes: u64,
        searching: &mut Search<'_>,
        routes: &mut Routes,
    ) -> Result<(), Refused> {
        routes.used = 0;
        let mut found = 0;
        self.visit(file, bytes, searching, |server, part| {
            found += part.bytes;
            routes.add(server, part);
        })?;
        match bytes - found.min(bytes) {
            0 => Ok(()),
            missing => Err(MissingBytes(missing).into()),
        }
    }

    /// Where the bytes of a view range lie; nothing if that takes longer than `searching` may.
    pub(crate) fn matching(
        &self,
        view: &RegisteredView,
        offset: u64,
        size: u64,
        searching: &mut Search<'_>,
    ) -> Option<Matching> {
        let mut matching = Matching::default();
        let range = ViewOffset(offset)..ViewOffset(offset.saturating_add(size));
        if let Some(file) = view.view.file_range(range) {
            let add = |server, part: Part| matching.add(server, part.bytes);
            self.visit(file.into(), u64::MAX, searching, add).ok()?;
        }
        Some(matching)
    }

    /// Packs a part from memory in view order that begins at view byte `base`.
    pub(super) fn gather(&self, route: &mut Route, memory: &[u8], base: u64) -> Result<(), Fault> {
        route.room();
        let Route { parts, packet, .. } = route;
        let mut at = 0;
        for part in parts.iter() {
            let end = at + part.bytes as usize;
            let packed = &mut packet[at..end];
            self.plan
                .share(part)
                .gather_left(part.file.raw(), memory.into(), base, packed)?;
            at = end;
        }
        Ok(())
    }

    /// Unpacks a part into memory in view order that begins at view byte `base`.
    pub(super) fn scatter(&self, route: &Route, memory: &mut [u8], base: u64) -> Result<(), Fault> {
        let mut at = 0;
        for part in &route.parts {
            let end = at + part.bytes as usize;
            let packed = &route.packet[at..end];
            let target = SharedBytesMut::from_slice(&mut *memory);
            self.plan
                .share(part)
                .scatter_left(part.file.raw(), packed, target, base)?;
            at = end;
        }
        Ok(())
    }
}
