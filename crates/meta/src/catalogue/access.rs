//! Who may do what: owner, group and mode bits, as POSIX has them.
//!
//! The first class that fits decides alone: the owner's bits for the owner even if the group's would
//! allow more. Root may do everything. Searching a directory needs its execute bit, changing its
//! entries needs write and execute; in a sticky directory only the owner of the entry or of the
//! directory removes or renames one. There are no access lists and no read-only mounts.

use wire::message::session::Credentials;

use super::record::Node;
use crate::error::MetaError;
use crate::{ClientId, Time};

/// Who asks, and when.
#[derive(Clone, Copy, Debug)]
pub struct Caller<'a> {
    /// The connection.
    pub client: ClientId,
    /// The person behind it.
    pub credentials: &'a Credentials,
    /// The time of the request, for the attributes.
    pub now: Time,
}

/// One permission bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Permission {
    Read = 4,
    Write = 2,
    Execute = 1,
}

/// The bit of a directory that protects entries from other writers.
pub(crate) const STICKY: u32 = 0o1000;
/// The bit of a directory that hands its group on.
pub(crate) const SET_GROUP: u32 = 0o2000;
/// All bits of a mode.
pub(crate) const MODE_BITS: u32 = 0o7777;

/// Whether the mode bits allow it.
pub(crate) fn allows(node: &Node, who: &Credentials, permission: Permission) -> bool {
    if who.is_root() {
        return true;
    }
    let class = if who.user == node.owner {
        node.mode >> 6
    } else if who.is_in(node.group) {
        node.mode >> 3
    } else {
        node.mode
    };
    class & permission as u32 != 0
}

/// Refuses what the mode bits do not allow.
pub(crate) fn demand(
    node: &Node,
    who: &Credentials,
    permission: Permission,
    path: &str,
) -> Result<(), MetaError> {
    if allows(node, who, permission) {
        return Ok(());
    }
    let needs = match (node.is_directory(), permission) {
        (false, Permission::Read) => "read permission",
        (false, Permission::Write) => "write permission",
        (false, Permission::Execute) => "execute permission",
        (true, Permission::Read) => "read permission on the directory",
        (true, Permission::Write) => "write permission on the directory",
        (true, Permission::Execute) => "search permission on the directory",
    };
    Err(denied(path, needs))
}

/// Refuses changes of the entries of a directory.
pub(crate) fn demand_change(
    directory: &Node,
    who: &Credentials,
    path: &str,
) -> Result<(), MetaError> {
    demand(directory, who, Permission::Execute, path)?;
    demand(directory, who, Permission::Write, path)
}

/// Refuses the removal or renaming of an entry.
pub(crate) fn demand_removal(
    directory: &Node,
    entry: &Node,
    who: &Credentials,
    path: &str,
) -> Result<(), MetaError> {
    demand_change(directory, who, path)?;
    let owns = who.is_root() || who.user == entry.owner || who.user == directory.owner;
    if directory.mode & STICKY != 0 && !owns {
        return Err(denied(path, "to own it or its directory, which is sticky"));
    }
    Ok(())
}

/// Refuses everybody but the owner and root.
pub(crate) fn demand_owner(node: &Node, who: &Credentials, path: &str) -> Result<(), MetaError> {
    if who.is_root() || who.user == node.owner {
        Ok(())
    } else {
        Err(denied(path, "to be its owner"))
    }
}

pub(crate) fn denied(path: &str, needs: &'static str) -> MetaError {
    MetaError::PermissionDenied {
        path: path.to_owned(),
        needs,
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::{Body, ROOT};
    use super::*;

    fn node(owner: u32, group: u32, mode: u32) -> Node {
        Node {
            parent: ROOT,
            name: "n".into(),
            owner,
            group,
            mode,
            accessed: Time(0),
            modified: Time(0),
            changed: Time(0),
            body: Body::Directory,
        }
    }

    #[test]
    fn first_class_that_fits_decides_alone() {
        let n = node(5, 50, 0o077);
        assert!(!allows(&n, &Credentials::new(5, 50), Permission::Read));
        assert!(allows(&n, &Credentials::new(6, 50), Permission::Read));
        let n = node(5, 50, 0o707);
        assert!(!allows(&n, &Credentials::new(6, 50), Permission::Write));
        assert!(allows(&n, &Credentials::new(6, 60), Permission::Write));
        let member = Credentials {
            user: 6,
            group: 60,
            groups: vec![49, 50],
        };
        assert!(!allows(&n, &member, Permission::Execute));
        assert!(allows(
            &node(5, 50, 0),
            &Credentials::ROOT,
            Permission::Write
        ));
    }

    #[test]
    fn sticky_directory_protects_entries() {
        let directory = node(1, 1, 0o1777);
        let entry = node(2, 2, 0o666);
        for (user, may) in [(0, true), (1, true), (2, true), (3, false)] {
            let who = Credentials::new(user, 9);
            assert_eq!(
                demand_removal(&directory, &entry, &who, "/d/e").is_ok(),
                may,
                "{user}"
            );
        }
    }
}
