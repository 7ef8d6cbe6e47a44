//! `Hello`: who connects, and what proves it.
//!
//! Clients show the session that the metadata manager sealed for them. Servers show their seal, and because that can be
//! overheard they prove the secret of servers too, or that they run under the user of this server or root.

use control::capability::{ClusterKey, seals_equal, server_seal, verify_session};
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
        Role::Client { client, session } => match verify_session(key, *client, &session.0) {
            Some(user) => Who::Client {
                client: *client,
                user,
            },
            None => return Err(no("the session was not sealed by this cluster")),
        },
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
