//! `Hello`: who connects, and what proves it.
//!
//! Clients show the session that the metadata manager sealed for them. A session can be overheard, so it is for its user only:
//! where a certificate or the kernel names another one, it is refused. Servers show their seal, and because that can be
//! overheard too they prove the secret of servers, or that they run under the user of this server or root.

use control::capability::{
    ClusterKey, NamedBy, SessionUser, seals_equal, server_seal, verify_session,
};
use serving::{Holder, Peer, Proven};
use wire::Status;
use wire::message::Refusal;
use wire::message::session::{Hello, Role};

use crate::sessions::Who;

/// Finds out who says hello.
pub(crate) fn recognise(
    key: &ClusterKey,
    peer: &Peer,
    hello: &Hello,
    proven: &Proven,
) -> Result<Who, (Status, Refusal)> {
    let no = |text: &str| (Status::Unauthenticated, Refusal::new(text));
    let who = match &hello.role {
        Role::Client { client, session } => {
            let Some(of) = verify_session(key, *client, &session.0) else {
                return Err(no("the session was not sealed by this cluster"));
            };
            if let Some(user) = other_user(peer, proven, of) {
                let text = format!("user {user}: the session is that of user {}", of.user);
                return Err((Status::PermissionDenied, Refusal::new(text)));
            }
            let (client, user) = (*client, of.user);
            Who::Client { client, user }
        }
        Role::Server { server, seal } => {
            if !seals_equal(&seal.0, &server_seal(key, *server)) {
                return Err(no("the seal is not the one of this cluster"));
            }
            // A seal can be overheard; where it can, it is not enough.
            let own = rustix::process::geteuid().as_raw();
            let known = peer.credentials.as_ref().map(|c| c.user);
            let is_user = matches!(proven.holder, Some(Holder::User { .. }));
            if is_user || !proven.is_server() && !known.is_some_and(|user| user == 0 || user == own)
            {
                return Err(no(
                    "servers on other hosts prove that they know the secret of servers; give its \
                     file to all of them (--server-secret, PARIO_SERVER_SECRET)",
                ));
            }
            Who::Server(*server)
        }
        Role::NewClient | Role::NewServer => {
            return Err(no(
                "get a session or join at the metadata manager first, then come here",
            ));
        }
    };
    Ok(who)
}

/// The user at the other end, if he is known to be another one than that of the session, and not root, who could become him.
fn other_user(peer: &Peer, proven: &Proven, of: SessionUser) -> Option<u32> {
    let user = match (&proven.holder, of.named_by) {
        (Some(Holder::User { credentials, .. }), _) => Some(credentials.user),
        // Hosts may have other numbers for those whom the kernel of the manager's host has not named.
        (None, NamedBy::Host) => peer.credentials.as_ref().map(|known| known.user),
        _ => None,
    };
    user.filter(|&user| user != of.user && user != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use control::capability::session;
    use wire::ClientId;
    use wire::message::Bytes;
    use wire::message::session::Credentials;

    /// Shows a session of user 1000 to a server that knows this about its peer.
    fn shown(named_by: NamedBy, kernel: Option<u32>, holder: Option<u32>) -> Result<Who, Status> {
        let (key, client) = (ClusterKey::new([7; 32]), ClientId(5));
        let of = SessionUser {
            user: 1000,
            named_by,
        };
        let session = Bytes(session(&key, client, of));
        let hello = Hello {
            role: Role::Client { client, session },
            process: serving::this_process(),
            credentials: Credentials::new(1000, 1000),
            nonce: Bytes::default(),
        };
        let peer = Peer {
            credentials: kernel.map(|user| Credentials::new(user, user)),
            pid: None,
            is_local: kernel.is_some(),
            address: None,
        };
        let proven = Proven {
            holder: holder.map(|user| Holder::User {
                name: "eva".into(),
                credentials: Credentials::new(user, user),
            }),
            ..Proven::default()
        };
        recognise(&key, &peer, &hello, &proven).map_err(|(status, _)| status)
    }

    #[test]
    fn a_session_is_for_its_user_only() {
        let his = Ok(Who::Client {
            client: ClientId(5),
            user: 1000,
        });
        let no = Err(Status::PermissionDenied);
        use NamedBy::{Administrator, Certificate, Host};
        for (named_by, kernel, holder, expected) in [
            (Host, None, None, his),
            (Host, Some(1000), None, his),
            (Host, Some(0), None, his),
            (Host, Some(1001), None, no),
            (Certificate, None, Some(1000), his),
            (Certificate, None, Some(0), his),
            (Certificate, None, Some(1001), no),
            // A certificate counts more than the numbers of the host, and an administrator's word is about no host.
            (Certificate, Some(1001), Some(1000), his),
            (Certificate, Some(1001), None, his),
            (Administrator, Some(1001), None, his),
            (Administrator, None, Some(1001), no),
        ] {
            let found = shown(named_by, kernel, holder);
            assert_eq!(found, expected, "{named_by:?} {kernel:?} {holder:?}");
        }
    }
}
