//! `ListDisks`: the disks of this server and how they are, for operators.
//!
//! Nothing is changed. Left to others: what is on them (`list_subfiles`).

use wire::message::file::DiskList;

use crate::refused::Refused;
use crate::sessions::Session;
use crate::stored::SubfileStore;

/// Serves [`ListDisks`](wire::message::file::ListDisks).
pub(crate) fn list_disks(stored: &SubfileStore, session: &Session) -> Result<DiskList, Refused> {
    session.demand_operator()?;
    Ok(stored.disk_list())
}
