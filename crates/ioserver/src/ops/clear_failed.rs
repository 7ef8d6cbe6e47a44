//! `ClearFailed`: an operator says that the disks of this server work again.
//!
//! They are used again from now on. Left to others: noticing that one fails (the store), and saying so to the manager
//! (`join`).

use crate::refused::Refused;
use crate::sessions::Session;
use crate::stored::SubfileStore;

/// Serves [`ClearFailed`](wire::message::hints::ClearFailed).
pub(crate) fn clear_failed(stored: &SubfileStore, session: &Session) -> Result<(), Refused> {
    session.demand_operator()?;
    stored.restore_disks();
    Ok(())
}
