//! Getting acquainted: who connects, how that is proven, and whether the other side is alive.
//!
//! The first frame on every connection is [`Hello`]. On a Unix socket the kernel says who is there
//! (peer credentials) and what the caller claims about itself is ignored. On TCP a server that has
//! a secret for callers of this role (users have one, servers another) answers [`Hello`] with
//! `Unauthenticated` and 32 random bytes as detail; the caller proves with [`Prove`] that it knows the
//! secret, and [`Welcome`] proves the same to the caller. What is proven is only that: which claims are
//! believed then is the metadata manager's to decide.
//!
//! A client is numbered by the metadata manager; the sealed session it gets makes it known to all
//! I/O servers, and to a metadata manager that was restarted. One client may have any number of
//! connections; they are one session.

use super::field::Bytes;
use crate::reader::{DecodeError, Reader, put_number};
use crate::{ClientId, ServerId};

record! {
    /// Opens a connection.
    pub struct Hello {
        /// As whom.
        pub role: Role,
        /// The calling process, so that its death can be noticed on the same host.
        pub process: Process,
        /// Whom it claims to work for.
        pub credentials: Credentials,
        /// 32 random bytes, so that the proof of the server is good for this connection only.
        pub nonce: Bytes,
    }

    /// A process, as its host knows it.
    pub struct Process {
        /// Its number; 0 is unknown.
        pub pid: u64,
        /// Its host: the kernel's boot id and the process number space. Equal texts mean that the
        /// number can be looked up here.
        pub host: String,
    }

    /// Whom a process works for.
    pub struct Credentials {
        /// User number; 0 is root.
        pub user: u32,
        /// First group number, which new files get.
        pub group: u32,
        /// Further groups.
        pub groups: Vec<u32>,
    }

    /// The connection is good.
    pub struct Welcome {
        /// The number of the client; 0 for servers.
        pub client: ClientId,
        /// Its seal, to be shown to other servers.
        pub session: Bytes,
        /// The server that speaks, or [`ServerId::MANAGER`].
        pub server: ServerId,
        /// Which start of it.
        pub incarnation: u64,
        /// Writes with a longer payload are announced first (see [`super::access`]).
        pub rendezvous_bytes: u64,
        /// Longest payload that one message is to carry.
        pub message_bytes: u64,
        /// Proof that the server knows the secret too, if it has asked for one: the seal of a [`Prove`] with
        /// the word `server` in front instead of `caller`.
        pub proof: Bytes,
    }

    /// The answer to a challenge.
    pub struct Prove {
        /// HMAC-SHA-256 with the secret over the word `caller`, the challenge and the encoded [`Hello`].
        pub proof: Bytes,
    }

    /// Are you there? Any payload is dropped.
    pub struct Ping {}

    /// A client that holds a lock lives, although it asks for nothing. The answer says after how many milliseconds it says so again.
    pub struct Beat {}

    /// The client ends its session: everything it has open is closed, nothing is declared dead.
    pub struct Goodbye {}

    /// What a server has counted since it started.
    pub struct Statistics {}

    /// One number of a server.
    pub struct Counter {
        /// Its name, in lower case with underscores, unit last.
        pub name: String,
        /// Its value.
        pub value: u64,
    }

    /// Flush everything and end. Only for the user who runs the service, and root.
    pub struct Shutdown {}

    /// What the supervisor of the metadata manager has written down about the service: `service.json`, as text.
    /// Nothing if nobody supervises it.
    pub struct GetSupervisor {}

    /// Why a request was refused: the control part of every answer whose status is not `Ok`.
    pub struct Refusal {
        /// One sentence that names the argument and what would be right.
        pub text: String,
        /// What the status defines: the new layout state for `StaleLayout`, a challenge for
        /// `Unauthenticated`, epoch and size ([`SizeIs`](super::file::SizeIs)) for `StaleEpoch`, else
        /// nothing.
        pub detail: Bytes,
    }
}

impl Refusal {
    /// Without detail.
    pub fn new(text: impl Into<String>) -> Self {
        Refusal {
            text: text.into(),
            detail: Bytes::default(),
        }
    }
}

impl Credentials {
    /// The user who may do everything.
    pub const ROOT: Credentials = Credentials {
        user: 0,
        group: 0,
        groups: Vec::new(),
    };

    /// A user with one group.
    pub fn new(user: u32, group: u32) -> Self {
        Credentials {
            user,
            group,
            groups: Vec::new(),
        }
    }

    /// Whether nothing is forbidden.
    pub fn is_root(&self) -> bool {
        self.user == 0
    }

    /// Whether a group is among these.
    pub fn is_in(&self, group: u32) -> bool {
        self.group == group || self.groups.contains(&group)
    }
}

/// As whom a process connects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// A client without a number, to the metadata manager only.
    NewClient,
    /// A client that has one.
    Client {
        /// Its number.
        client: ClientId,
        /// The seal of its session.
        session: Bytes,
    },
    /// A server that wants to join, to the metadata manager only.
    NewServer,
    /// A server of the cluster, or the metadata manager ([`ServerId::MANAGER`]).
    Server {
        /// Its number.
        server: ServerId,
        /// The seal of the cluster over it.
        seal: Bytes,
    },
}

impl super::Field for Role {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Role::NewClient => put_number(out, 0),
            Role::Client { client, session } => {
                put_number(out, 1);
                client.put(out);
                session.put(out);
            }
            Role::NewServer => put_number(out, 2),
            Role::Server { server, seal } => {
                put_number(out, 3);
                server.put(out);
                seal.put(out);
            }
        }
    }

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        use super::Field;
        Ok(match r.number()? {
            0 => Role::NewClient,
            1 => Role::Client {
                client: Field::read(r)?,
                session: Field::read(r)?,
            },
            2 => Role::NewServer,
            3 => Role::Server {
                server: Field::read(r)?,
                seal: Field::read(r)?,
            },
            other => return Err(DecodeError::BadTag(other)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_user_zero_and_groups_are_the_first_and_all_others() {
        let mut ada = Credentials::new(7, 20);
        assert!(!ada.is_root() && Credentials::new(0, 20).is_root());
        ada.groups = vec![3, 4];
        assert_eq!(
            [20, 3, 4, 7, 0].map(|group| ada.is_in(group)),
            [true, true, true, false, false]
        );
    }
}
