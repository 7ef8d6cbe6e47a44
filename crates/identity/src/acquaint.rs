//! How two processes get acquainted: the secrets between hosts, the proofs that both ends know one, and
//! how a process names itself.
//!
//! A service has two secrets. Its *users* know the one, its *servers* the other; a process that knows only the
//! users' can neither join nor learn the key of the cluster. A secret itself never travels: the server
//! sends random bytes, so does the caller, and each seals both together with what was said.
//!
//! ```text
//!  caller                              server
//!    Hello, with a nonce           ->
//!                                  <-  a challenge
//!    seal(secret, "caller", both)  ->
//!                                  <-  Welcome, seal(secret, "server", both)
//! ```
//!
//! Invariants
//! - A caller that has a secret for its role does not go on with a server over TCP that has not proven to
//!   know it.
//! - Keys travel wrapped where others could read the connection: under a key that follows from the secret
//!   of the servers, the challenge and the nonce ([`Channel`]).
//!
//! Left to others: which claims are believed.

use std::time::Duration;

use control::capability::seals_equal;
use wire::Status;
use wire::ask::AskError;
use wire::link::{Link, LinkError, PeerName};
use wire::message::session::{Credentials, Hello, Prove, Role, Welcome};
use wire::message::{Bytes, Refusal};
use wire::url::Endpoint;

use crate::channel::Channel;
use crate::process::this_process;
use crate::secret::{Keys, proof, proof_of_server, random};
use crate::tls::TlsError;

/// A connection on which both ends know each other.
#[derive(Debug)]
pub struct Acquainted {
    /// The connection.
    pub link: Link,
    /// What the server said.
    pub welcome: Welcome,
    /// What keys travel in.
    pub channel: Channel,
}

/// Connects to the server that listens at an endpoint, and gets acquainted. Both may take as long as `patience`,
/// which is also the limit of every answer from then on.
pub fn connect(
    endpoint: &Endpoint,
    role: Role,
    credentials: Credentials,
    keys: &Keys,
    patience: Duration,
) -> Result<Acquainted, AskError> {
    let link = reach(endpoint, keys, patience)?;
    introduce(link, endpoint, role, credentials, keys, patience)
}

/// A connection to the server that listens at an endpoint, under TLS if there are certificates and it is TCP; nobody has
/// said anything yet.
pub fn reach(endpoint: &Endpoint, keys: &Keys, patience: Duration) -> Result<Link, AskError> {
    let link = Link::connect(endpoint, patience).map_err(LinkError::Io)?;
    let (Some(tls), Endpoint::Tcp { host, .. }) = (&keys.tls, endpoint) else {
        return Ok(link);
    };
    tls.connect(link, host, patience).map_err(|e| match e {
        TlsError::Io(e) => AskError::Link(LinkError::Io(e)),
        TlsError::Refused(why) => refused(format!("{endpoint}: {why}")),
        TlsError::Plain(_) => refused(format!("{endpoint}: it does not speak TLS")),
    })
}

/// Gets acquainted over a connection.
pub fn introduce(
    mut link: Link,
    endpoint: &Endpoint,
    role: Role,
    credentials: Credentials,
    keys: &Keys,
    patience: Duration,
) -> Result<Acquainted, AskError> {
    link.set_timeout(Some(patience)).map_err(LinkError::Io)?;
    let is_private = link.is_relayed() || matches!(link.peer(), Ok(PeerName::Unix { .. }));
    let hello = Hello {
        role,
        process: this_process(),
        credentials,
        nonce: Bytes(random().to_vec()),
    };
    let secret = keys.secret_for(&hello.role).filter(|_| !is_private);
    let mut out = Vec::new();
    let (welcome, channel) = match link.ask(0, &hello, &mut out) {
        Err(AskError::Refused(Status::Unauthenticated, refusal))
            if !refusal.detail.0.is_empty() =>
        {
            let secret = secret.ok_or_else(|| wants_secret(endpoint, &hello.role))?;
            let challenge = &refusal.detail.0;
            let proof = Bytes(proof(secret, challenge, &hello).to_vec());
            let welcome = link.ask::<Prove>(1, &Prove { proof }, &mut out)?;
            let right = proof_of_server(secret, challenge, &hello);
            if !seals_equal(&welcome.proof.0, &right) {
                return Err(is_nobody(endpoint));
            }
            (welcome, Channel::wrapped(secret, challenge, &hello))
        }
        // A server that does not ask may not know it; a service that has none is not entered with one.
        Ok(_) if secret.is_some() => {
            return Err(is_nobody(endpoint));
        }
        // The server looks at certificates after the caller has, and says so in place of an answer.
        Err(AskError::Link(LinkError::Io(e)))
            if link.is_relayed() && e.kind() == std::io::ErrorKind::PermissionDenied =>
        {
            return Err(refused(format!("{endpoint}: {e}")));
        }
        answer => (answer?, Channel::private()),
    };
    Ok(Acquainted {
        link,
        welcome,
        channel,
    })
}

fn wants_secret(endpoint: &Endpoint, role: &Role) -> AskError {
    let text = match role {
        Role::NewClient | Role::Client { .. } => {
            format!("{endpoint} wants the secret of the service; set PARIO_SECRET to its file")
        }
        Role::NewServer | Role::Server { .. } => format!(
            "{endpoint} wants the secret of servers; give its file with --server-secret or \
             PARIO_SERVER_SECRET"
        ),
    };
    refused(text)
}

fn refused(text: String) -> AskError {
    AskError::Refused(Status::Unauthenticated, Refusal::new(text))
}

fn is_nobody(endpoint: &Endpoint) -> AskError {
    let text = format!(
        "{endpoint} has not proven that it knows the secret: it is another service, or it was started \
         without one"
    );
    refused(text)
}
