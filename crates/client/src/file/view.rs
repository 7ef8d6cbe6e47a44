//! A view as a handle uses it: its number, its description, and which servers know it.
//!
//! Registered at a server when that server is first needed, and again when it has forgotten it.

use std::sync::Arc;

use layout::View;
use parking_lot::Mutex;
use wire::message::Bytes;
use wire::message::file::{SetView, SetViewPart};
use wire::{FileId, LayoutState, Place, describe};

use crate::access::plan::Plan;
use crate::error::Trouble;
use crate::session::Session;
use crate::transport::pipe::Pipe;

/// Bytes of a description in one message.
const PART_BYTES: usize = 256 << 10;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct HandleView {
    /// Its number at all servers.
    pub(crate) number: u64,
    pub(crate) view: View,
    /// Servers that know it.
    known_at: Mutex<Vec<u64>>,
    plan: Mutex<Option<Arc<Plan>>>,
    /// The plan through one server.
    through: Mutex<Option<Arc<Plan>>>,
}

/// The views of a handle.
#[derive(Debug)]
pub(crate) struct Views {
    /// The file as it is; owners are asked through it, and appends written.
    pub(crate) whole: Arc<HandleView>,
    current: Mutex<Arc<HandleView>>,
    /// Views that were replaced while an access used them, and those that are used beside the current one.
    retired: Mutex<Vec<Arc<HandleView>>>,
}

impl Views {
    pub(crate) fn new(whole: Arc<HandleView>) -> Views {
        Views {
            current: Mutex::new(whole.clone()),
            whole,
            retired: Mutex::default(),
        }
    }

    pub(crate) fn current(&self) -> Arc<HandleView> {
        self.current.lock().clone()
    }

    /// Puts another view in place; those that no access uses any more.
    pub(crate) fn replace(&self, seen: Arc<HandleView>) -> Vec<Arc<HandleView>> {
        let old = std::mem::replace(&mut *self.current.lock(), seen);
        let mut retired = self.retired.lock();
        if !Arc::ptr_eq(&old, &self.whole) {
            retired.push(old);
        }
        take_unused(&mut retired)
    }

    /// Takes a view that is used beside the current one, for as long as an access or a side view has it; those that none has any more.
    pub(crate) fn add_beside(&self, seen: Arc<HandleView>) -> Vec<Arc<HandleView>> {
        let mut retired = self.retired.lock();
        retired.push(seen);
        take_unused(&mut retired)
    }

    /// Views that were replaced and may still be known to servers.
    pub(crate) fn take_retired(&self) -> Vec<Arc<HandleView>> {
        std::mem::take(&mut *self.retired.lock())
    }
}

/// Takes those out of a list that nobody else has.
fn take_unused(list: &mut Vec<Arc<HandleView>>) -> Vec<Arc<HandleView>> {
    let (used, unused) = list.drain(..).partition(|seen| Arc::strong_count(seen) > 1);
    *list = used;
    unused
}

impl HandleView {
    pub(crate) fn new(session: &Session, view: &View) -> Arc<HandleView> {
        Arc::new(HandleView {
            number: session.number(),
            view: view.clone(),
            known_at: Mutex::default(),
            plan: Mutex::default(),
            through: Mutex::default(),
        })
    }

    /// The plan for a layout state; made once.
    pub(crate) fn plan(&self, state: &Arc<LayoutState>) -> Arc<Plan> {
        let mut kept = self.plan.lock();
        if let Some(plan) = &*kept
            && Arc::ptr_eq(&plan.state, state)
        {
            return plan.clone();
        }
        let plan = Arc::new(Plan::new(state, &self.view, kept.as_deref()));
        *kept = Some(plan.clone());
        plan
    }

    /// The plan for a layout state through one server.
    pub(crate) fn plan_through(&self, state: &Arc<LayoutState>, server: u64) -> Arc<Plan> {
        let mut kept = self.through.lock();
        if let Some(plan) = &*kept
            && Arc::ptr_eq(&plan.state, state)
            && plan.places[0].server == server
        {
            return plan.clone();
        }
        // Whichever start of it: it only passes bytes on, or has its own part checked by itself.
        let place = Place {
            server,
            incarnation: 0,
        };
        let plan = Arc::new(Plan::through(state, &self.view, place));
        *kept = Some(plan.clone());
        plan
    }

    pub(crate) fn is_known_at(&self, server: u64) -> bool {
        self.known_at.lock().contains(&server)
    }

    /// Whether no server knows it.
    pub(crate) fn is_unknown(&self) -> bool {
        self.known_at.lock().is_empty()
    }

    /// The server does not know it, or has a capability that is no longer good.
    pub(crate) fn forget(&self, server: u64) {
        self.known_at.lock().retain(|s| *s != server);
    }

    /// Takes the list of servers that know it.
    pub(crate) fn take_known(&self) -> Vec<u64> {
        std::mem::take(&mut self.known_at.lock())
    }

    /// Registers it at a server.
    pub(crate) fn register(
        &self,
        session: &Session,
        pipe: &mut Pipe,
        file: FileId,
        capability: Bytes,
    ) -> Result<(), Trouble> {
        let mut description = Vec::new();
        if !is_whole(&self.view) {
            describe::put_view(&mut description, &self.view);
        }
        let mut parts = describe::parts(&description, PART_BYTES);
        let first = SetView {
            view: self.number,
            file,
            capability,
            description_bytes: description.len() as u64,
            description: Bytes(parts.next().unwrap_or_default().to_vec()),
        };
        session.count_message();
        pipe.ask(session.number(), &first)?;
        for part in parts {
            let part = SetViewPart {
                view: self.number,
                part: Bytes(part.to_vec()),
            };
            session.count_message();
            pipe.ask(session.number(), &part)?;
        }
        let server = pipe.welcome.server.0;
        let mut known = self.known_at.lock();
        if !known.contains(&server) {
            known.push(server);
        }
        Ok(())
    }
}

/// Whether a view is the file as it is: every byte, and from the first on.
pub(crate) fn is_whole(view: &View) -> bool {
    view.bytes().is_everything() && view.bytes().displacement() == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use falls::FallsSet;
    use layout::FileOffset;

    #[test]
    fn everything_behind_a_displacement_is_not_the_whole_file() {
        let from = |displacement| {
            let set = FallsSet::segment(0, 5).expect("a set");
            View::new(FileOffset(displacement), 5, set).expect("a view")
        };
        assert!(is_whole(&from(0)) && is_whole(&View::whole_file()));
        assert!(!is_whole(&from(7)));
    }
}
