//! A server that shares its memory: control table, client page, the connection maps are asked on, and
//! the segments it has handed over.
//!
//! Segments are mapped once and serve all files; one that was mapped for reading is replaced when it
//! comes for writing, and one that the server calls gone is forgotten and unmapped when the last map
//! that names it is. Everything ends with the server's start it belongs to.
//!
//! Invariant: whatever the server says is checked against what it handed over, so a map never
//! leads outside a mapping.

use std::collections::HashMap;
use std::os::fd::AsFd;
use std::sync::Arc;

use ::direct::{ClientPage, ClientTable, ENDS, MARKS, MappedSegment, Touches};
use parking_lot::Mutex;
use wire::ask::AskError;
use wire::link::Link;
use wire::message::direct::{Attach, Map, MapAnswer, READ_ONLY};
use wire::url::Endpoint;

use super::maps::Extent;
use crate::access::plan::SubfileKey;
use crate::session::Session;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Attached {
    pub(crate) server: u64,
    pub(crate) incarnation: u64,
    /// What bytes that are stored live and die with.
    pub(crate) verifier: u64,
    pub(crate) table: ClientTable,
    pub(crate) page: ClientPage,
    /// What is done at first touches of its segments.
    pub(crate) touches: Arc<Touches>,
    asking: Mutex<Channel>,
}

#[derive(Debug)]
struct Channel {
    link: Link,
    out: Vec<u8>,
    segments: HashMap<u64, Arc<MappedSegment>>,
}

/// Where bytes of a file are at one server.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) entry: u32,
    pub(crate) epoch: u64,
    /// Which map of the server it is.
    pub(crate) number: u64,
    /// Ascending by subfile and offset.
    pub(crate) extents: Vec<(SubfileKey, Extent)>,
    /// Where the client says how far it stores.
    pub(crate) ends: Vec<(SubfileKey, u32)>,
}

impl Attached {
    /// Attaches; `None` if the server shares nothing with this client.
    pub(crate) fn attach(
        session: &Session,
        server: u64,
        incarnation: u64,
        address: &str,
    ) -> Option<Attached> {
        let endpoint: Endpoint = address.parse().ok()?;
        if !matches!(endpoint, Endpoint::Unix(_)) {
            return None;
        }
        let (mut link, welcome) = session.introduce(&endpoint).ok()?;
        if (welcome.server.0, welcome.incarnation) != (server, incarnation) {
            return None;
        }
        link.expect_descriptors();
        let mut out = Vec::new();
        session.count_message();
        let answer = link.ask(session.number(), &Attach {}, &mut out).ok()?;
        let files = link.take_descriptors();
        let [table, page] = &files[..] else {
            return None;
        };
        let table = ClientTable::map(table.as_fd(), answer.table_bytes).ok()?;
        let page = ClientPage::map(page.as_fd(), answer.page_bytes).ok()?;
        Some(Attached {
            server,
            incarnation,
            verifier: answer.verifier,
            table,
            page,
            touches: Arc::default(),
            asking: Mutex::new(Channel {
                link,
                out,
                segments: HashMap::new(),
            }),
        })
    }

    /// Whether the server lives.
    #[inline]
    pub(crate) fn is_alive(&self) -> bool {
        self.table.is_alive()
    }

    /// Asks where bytes are. `None` if the server says no, another thread asks right now, or the
    /// connection has failed, which ends the sharing.
    pub(crate) fn ask(&self, session: &Session, request: &Map) -> Option<Answer> {
        let mut asking = self.asking.try_lock()?;
        let Channel {
            link,
            out,
            segments,
        } = &mut *asking;
        session.count_message();
        session.open_files.sharing.counters.asked();
        let scarcity = self.table.scarcity();
        let mapped = match link.ask(session.number(), request, out) {
            Ok(mapped) => mapped,
            Err(AskError::Refused(..)) => {
                // None should come with a refusal; what did is closed.
                drop(link.take_descriptors());
                return None;
            }
            Err(_) => {
                session
                    .open_files
                    .sharing
                    .switch_off(self.server, self.incarnation);
                return None;
            }
        };
        if take_segments(link, &mapped, segments, &self.touches).is_none() {
            session
                .open_files
                .sharing
                .switch_off(self.server, self.incarnation);
            return None;
        }
        let extents = extents(&mapped, segments);
        if request.writes {
            let is_scarce = self.table.scarcity() != scarcity;
            for (_, extent) in extents.iter().filter(|(_, extent)| extent.is_writable()) {
                extent.segment.note_map(extent.at, extent.len, is_scarce);
            }
        }
        Some(Answer {
            entry: mapped.entry,
            epoch: mapped.epoch,
            number: mapped.number,
            extents,
            ends: ends(&mapped),
        })
    }
}

/// Maps what came with an answer; `None` if it is not what the answer says.
fn take_segments(
    link: &mut Link,
    mapped: &MapAnswer,
    segments: &mut HashMap<u64, Arc<MappedSegment>>,
    touches: &Arc<Touches>,
) -> Option<()> {
    let files = link.take_descriptors();
    if files.len() != mapped.segments.len() {
        return None;
    }
    for gone in &mapped.gone {
        segments.remove(gone);
    }
    for (file, is) in files.iter().zip(&mapped.segments) {
        let touches = Arc::clone(touches);
        let segment =
            MappedSegment::map_counted(file.as_fd(), is.bytes, is.is_writable, touches).ok()?;
        segments.insert(is.segment, Arc::new(segment));
    }
    Some(())
}

/// The words of an answer that lie in the page.
fn ends(mapped: &MapAnswer) -> Vec<(SubfileKey, u32)> {
    let good = mapped.ends.iter().filter(|e| e.end < ENDS);
    good.map(|e| ((e.store, e.subfile), e.end)).collect()
}

/// The extents of an answer that lie in segments.
fn extents(
    mapped: &MapAnswer,
    segments: &HashMap<u64, Arc<MappedSegment>>,
) -> Vec<(SubfileKey, Extent)> {
    let found = mapped.extents.iter().filter_map(|e| {
        let segment = segments.get(&e.segment)?;
        let is_good = e.len > 0
            && segment.holds(e.at, e.len)
            && e.offset.checked_add(e.len).is_some()
            && (e.mark <= MARKS || e.mark == READ_ONLY);
        is_good.then(|| {
            let extent = Extent {
                offset: e.offset,
                len: e.len,
                segment: segment.clone(),
                at: e.at,
                mark: e.mark,
            };
            ((e.store, e.subfile), extent)
        })
    });
    found.collect()
}
