//! The verbs of shared pointers: taking part, leaving, moving.
//!
//! Each is one step of `control::pointers` under the file's mutex; no server is asked, no client waits.

use control::locks::Ticket;
use control::pointers::GroupId;
use wire::message::cluster::PointerIs;
use wire::message::file::PointerMove;
use wire::{FileId, Status};

use super::append::pointer_refused;
use super::file::State;
use super::size::demand_offset;
use super::{Asker, Owner, Refused, refuse};

/// Refuses to move what another server was told.
fn demand_untold(state: &State) -> Result<(), Refused> {
    match state.has_told_pointers {
        true => refuse(
            Status::Busy,
            "another server is about to own the file; repeat later",
        ),
        false => Ok(()),
    }
}

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
        demand_untold(&state)?;
        state.demand_room(asker, &self.most_claims)?;
        state.clients.insert(asker.client);
        state.pointers.join(GroupId(group), asker.client, position);
        state.settle_claims(asker.client);
        Ok(())
    }

    /// Takes part no more, for [`LeavePointer`](wire::message::file::LeavePointer).
    pub fn leave_pointer(&self, asker: &Asker<'_>, group: u64) -> Result<(), Refused> {
        let file = self.file(asker.file)?;
        let mut state = file.enter(self, asker)?;
        demand_untold(&state)?;
        state.pointers.leave(GroupId(group), asker.client);
        state.settle_claims(asker.client);
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
        demand_untold(&state)?;
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

    /// The pointers of a file whose duties are being handed over.
    pub fn pointers_to_hand_over(&self, file: FileId) -> Result<Vec<PointerIs>, Refused> {
        let file = self.file(file)?;
        let mut state = file.lock();
        // They stand still until a server owns the file for good.
        state.has_told_pointers = true;
        Ok(state.pointers.told())
    }

    /// Keeps what an owner before has told, until a client asks about the file. What this server knows of an
    /// earlier time as owner, if it was not told that that was over, is void.
    pub fn take_pointers(&self, file: FileId, pointers: Vec<PointerIs>) {
        let text = "the server is about to own the file again; repeat later";
        self.let_go(file, Refused::new(Status::Busy, text));
        let mut inherited = self.inherited.lock();
        match pointers.is_empty() {
            true => inherited.remove(&file),
            false => inherited.insert(file, pointers),
        };
    }
}
