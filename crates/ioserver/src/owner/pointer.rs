//! The verbs of shared pointers: taking part, leaving, moving.
//!
//! Each is one step of `control::pointers` under the file's mutex; nobody is asked, nobody waits.

use control::locks::Ticket;
use control::pointers::GroupId;
use wire::message::file::PointerMove;

use super::append::pointer_refused;
use super::size::demand_offset;
use super::{Asker, Owner, Refused};

impl Owner {
    /// Takes part, for [`JoinPointer`](wire::message::file::JoinPointer).
    pub fn join_pointer(
        &self,
        asker: &Asker<'_>,
        group: u64,
        position: u64,
    ) -> Result<(), Refused> {
        demand_offset("position", position)?;
        let file = self.file(asker.file)?;
        let mut state = file.enter(self, asker)?;
        state.clients.insert(asker.client);
        state.pointers.join(GroupId(group), asker.client, position);
        Ok(())
    }

    /// Takes part no more, for [`LeavePointer`](wire::message::file::LeavePointer).
    pub fn leave_pointer(&self, asker: &Asker<'_>, group: u64) -> Result<(), Refused> {
        let file = self.file(asker.file)?;
        let mut state = file.enter(self, asker)?;
        state.pointers.leave(GroupId(group), asker.client);
        Ok(())
    }

    /// Moves a pointer; where it stood before, for [`MovePointer`](wire::message::file::MovePointer).
    pub fn move_pointer(
        &self,
        asker: &Asker<'_>,
        group: u64,
        request: u64,
        how: PointerMove,
        amount: u64,
    ) -> Result<u64, Refused> {
        let file = self.file(asker.file)?;
        let mut state = file.enter(self, asker)?;
        let ticket = Ticket {
            client: asker.client,
            request,
        };
        let group = GroupId(group);
        let moved = match how {
            PointerMove::Add => state.pointers.fetch_add(group, ticket, amount),
            PointerMove::To => state.pointers.seek(group, ticket, amount),
            PointerMove::Stay => state.pointers.fetch_add(group, ticket, 0),
        };
        moved.map_err(pointer_refused)
    }
}
