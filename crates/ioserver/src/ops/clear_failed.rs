//! `ClearFailed`: an operator says that the disks of this server work again.

use crate::refused::Refused;
use crate::sessions::Session;
use crate::stored::SubfileStore;

/// Serves [`ClearFailed`](wire::message::hints::ClearFailed).
pub(crate) fn clear_failed(stored: &SubfileStore, session: &Session) -> Result<(), Refused> {
    session.demand_operator()?;
    stored.restore_disks();
    Ok(())
}
