//! Talking through one server: which one it is for a file, and what it is told.
//!
//! A handle has one server at a time. Requests go there whole; the server splits them and may name another
//! one in its answer, which is used from the next operation on, never during one. The history of
//! accesses that comes with such an answer is handed to the new server with the next request: servers keep it,
//! the client only carries it.
//!
//! ```text
//!  open, set_view, hint_next   ->  ChooseServer  ->  server for the next operation
//!  read, write                 ->  Whole         ->  done, and server for the next operation
//! ```
//!
//! A server that cannot be reached is given up, and the buddy (or the next assignment) takes its place: there is
//! a server for every handle at any time, as long as the service has one.
//!
//! Left to others: predicting and matching (the servers), what messages say (`envelope`), sending (`flow`), names and sizes (metadata manager
//! and owner, which are asked directly).

use advise::mapping::Strategy as Mapping;
use parking_lot::Mutex;
use wire::message::Bytes;
use wire::message::mapping::{Assign, Assignment, BuddyIs, Choose, ChooseServer, Upcoming};
use wire::{Place, ServerId};

use crate::access::envelope::{Envelope, Routes, Whole};
use crate::error::{Result, Trouble};
use crate::file::handle::Handle;
use crate::file::view::HandleView;
use crate::session::Session;
use crate::session::lane::Lane;

/// The server of a handle, and what goes with the next request.
#[derive(Debug, Default)]
struct Current {
    server: Option<u64>,
    /// The view that the server was chosen for.
    view: u64,
    /// From the server before.
    history: Vec<u8>,
    /// What the user says will follow the next operation.
    following: Option<Upcoming>,
}

/// How a handle talks to servers.
#[derive(Debug)]
pub(crate) struct Gateway {
    mapping: Mapping,
    current: Mutex<Current>,
}

impl Gateway {
    pub(crate) fn new(mapping: Mapping) -> Gateway {
        Gateway {
            mapping,
            current: Mutex::default(),
        }
    }

    fn by(&self) -> Choose {
        match self.mapping {
            Mapping::Predict => Choose::ByHistory,
            Mapping::Hint => Choose::ByHint,
            _ => Choose::Keep,
        }
    }
}

impl Session {
    /// The buddy of this client, as the metadata manager says.
    pub(crate) fn buddy(&self, lane: &mut Lane) -> Result<BuddyIs> {
        if let Some(buddy) = &*self.open_files.buddy.lock() {
            return Ok(buddy.clone());
        }
        let wanted = self.options.buddy;
        let found = self.manager_on(lane, || wire::message::mapping::Buddy { wanted })?;
        *self.open_files.buddy.lock() = Some(found.clone());
        Ok(found)
    }
}

impl Handle {
    /// How the messages of the next attempt are addressed.
    pub(super) fn envelope(&self, lane: &mut Lane, seen: &HandleView) -> Result<Envelope> {
        let Some(gateway) = &self.gateway else {
            return Ok(Envelope::Parts);
        };
        let known = gateway.current.lock().server;
        let server = match known {
            Some(server) => server,
            None => self.begin_mapping(lane, seen)?,
        };
        let current = gateway.current.lock();
        // A history is about one view.
        let is_same_view = current.view == seen.number;
        Ok(Envelope::Whole(Whole {
            server,
            by: gateway.by(),
            history: match is_same_view {
                true => current.history.clone(),
                false => Vec::new(),
            },
            following: current.following,
        }))
    }

    /// Whether a write that grows the file tells its owner by itself.
    pub(crate) fn grows_at_once(&self) -> bool {
        let owner = self.known.state().owner.server;
        let gateway = self.gateway.as_ref();
        gateway.is_none_or(|g| g.current.lock().server == Some(owner))
    }

    /// The first server of a handle, or of one whose server was lost.
    fn begin_mapping(&self, lane: &mut Lane, seen: &HandleView) -> Result<u64> {
        let gateway = self.gateway.as_ref().expect("asked only then");
        let assign = |lane: &mut Lane, by| -> Result<u64> {
            let assigned = self.session.manager_on(lane, || Assign { by })?;
            Ok(assigned.0)
        };
        let server = match gateway.mapping {
            // A program that names a buddy has named the master.
            Mapping::Master if self.session.options.buddy.is_none() => {
                assign(lane, Assignment::Master)?
            }
            Mapping::RoundRobin => assign(lane, Assignment::RoundRobin)?,
            _ => self.session.buddy(lane)?.server.0,
        };
        {
            let mut current = gateway.current.lock();
            current.server = Some(server);
            current.view = seen.number;
            current.history.clear();
        }
        // Best effort: without an answer it stays, and the next operation finds out why.
        let _ = self.ask_for_server(lane, seen, None);
        let current = gateway.current.lock();
        Ok(current.server.unwrap_or(server))
    }

    /// Lets the present server choose the next one.
    fn ask_for_server(
        &self,
        lane: &mut Lane,
        seen: &HandleView,
        upcoming: Option<Upcoming>,
    ) -> Result<()> {
        let Some(gateway) = &self.gateway else {
            return Ok(());
        };
        if gateway.by() == Choose::Keep {
            return Ok(());
        }
        let (server, history) = {
            let current = gateway.current.lock();
            let Some(server) = current.server else {
                return Ok(());
            };
            (server, current.history.clone())
        };
        let place = Place {
            server,
            incarnation: 0,
        };
        let by = gateway.by();
        let asked = self.ask_once(lane, seen, place, |view| ChooseServer {
            view,
            by,
            size: falls::MAX_OFFSET,
            upcoming,
            history: Bytes(history.clone()),
        });
        match asked {
            Ok(chosen) => {
                let mut current = gateway.current.lock();
                if current.server == Some(server) {
                    current.server = Some(chosen.server.0);
                    current.history = chosen.history.0;
                }
                Ok(())
            }
            Err(trouble) => {
                if !matches!(trouble, Trouble::Refused(..)) {
                    lane.drop_pipe(server);
                    self.lost_server(server);
                } else {
                    seen.forget(server);
                }
                Err(trouble.into_error(Some(ServerId(server)), &self.session.address(server)))
            }
        }
    }

    /// After a file was opened or a view set: the server of the first bytes.
    pub(crate) fn remap(&self, lane: &mut Lane) {
        let Some(gateway) = &self.gateway else {
            return;
        };
        let seen = self.views.current();
        let has_server = {
            let mut current = gateway.current.lock();
            current.history.clear();
            current.following = None;
            current.view = seen.number;
            current.server.is_some()
        };
        // What cannot be asked now is found out by the first operation.
        let _ = match has_server {
            true => self.ask_for_server(lane, &seen, None),
            false => self.begin_mapping(lane, &seen).map(drop),
        };
    }

    /// The user says what the next operation will access.
    pub(crate) fn choose_for(&self, lane: &mut Lane, offset: u64, size: u64) -> Result<()> {
        let seen = self.views.current();
        if let Envelope::Whole(_) = self.envelope(lane, &seen)? {
            self.ask_for_server(lane, &seen, Some(Upcoming { offset, size }))?;
        }
        Ok(())
    }

    /// The user says what the operation after the next one will access.
    pub(crate) fn expect_following(&self, offset: u64, size: u64) {
        if let Some(gateway) = &self.gateway {
            gateway.current.lock().following = Some(Upcoming { offset, size });
        }
    }

    /// An operation is over: its answer counts from now on.
    pub(super) fn routed(&self, routes: &Routes) {
        let Some(gateway) = &self.gateway else {
            return;
        };
        let mut current = gateway.current.lock();
        current.following = None;
        current.history.clear();
        if let Some(next) = routes.next {
            current.server = Some(next);
            current.history.extend_from_slice(&routes.history);
        }
    }

    /// A server that cannot be reached; another one is found by the next attempt.
    fn lost_server(&self, server: u64) {
        if let Some(gateway) = &self.gateway {
            let mut current = gateway.current.lock();
            if current.server == Some(server) {
                current.server = None;
            }
        }
        let mut buddy = self.session.open_files.buddy.lock();
        if buddy.as_ref().is_some_and(|b| b.server.0 == server) {
            *buddy = None;
        }
    }

    /// Something went wrong at a gateway: if it cannot be reached, another one is used.
    pub(crate) fn gateway_trouble(&self, server: u64, trouble: &Trouble) {
        if self.gateway.is_some() && matches!(trouble, Trouble::Broken(_)) {
            self.lost_server(server);
        }
    }

    /// The server that the next operation goes to, if it goes to one.
    pub(crate) fn server_now(&self) -> Option<ServerId> {
        let gateway = self.gateway.as_ref()?;
        gateway.current.lock().server.map(ServerId)
    }
}
