//! Mutual TLS: certificates of both ends, for hosts that are not one trust domain.
//!
//! A process has a [`Tls`]: the certificate of the authority that it believes, its own certificate and its key.
//! Both ends of a connection show theirs. What the peer's says about its [holder](Holder) is then as good as the
//! authority.
//!
//! Invariants
//! - TLS 1.3 only, no resumption: every connection sees the certificates of that moment.
//! - Files are looked at again for every connection, so renewed ones count without a restart; while a new set is
//!   not readable or does not fit together, the last good one counts.
//! - A caller checks the name or address by which it reached the server, and that the certificate is a server's.

use std::io;
use std::net::TcpStream;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{
    ClientConfig, ClientConnection, Connection, RootCertStore, ServerConfig, ServerConnection,
};
use wire::link::{Link, PeerName, Relay};

use crate::certificate::{Certificate, Holder};
use crate::relay;
use crate::secret::read_private;

/// First byte of every TLS connection.
const HANDSHAKE: u8 = 0x16;

/// Where certificates and the key are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// Of the authorities that are believed, in PEM.
    pub ca: PathBuf,
    /// The own certificate, in PEM.
    pub cert: PathBuf,
    /// Its key, in PEM; nobody else can read it.
    pub key: PathBuf,
}

/// When and how large a file was, and which.
type Stamp = (i64, i64, u64, u64);

struct Loaded {
    stamps: Option<[Stamp; 3]>,
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
    own: Certificate,
}

/// What a process shows of itself and believes of others.
#[derive(Clone)]
pub struct Tls {
    files: TlsFiles,
    loaded: Arc<Mutex<Loaded>>,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Tls").field(&self.files).finish()
    }
}

/// Why a connection is not protected.
#[derive(Debug)]
pub enum TlsError {
    /// The connection failed.
    Io(io::Error),
    /// The peer is not who it has to be, or takes this process for nobody.
    Refused(String),
    /// The peer speaks without TLS; it has not been answered.
    Plain(Box<Link>),
}

impl From<io::Error> for TlsError {
    fn from(error: io::Error) -> Self {
        TlsError::Io(error)
    }
}

impl Tls {
    /// Reads the files, which have to fit together.
    pub fn read(files: TlsFiles) -> io::Result<Tls> {
        let loaded = load(&files)?;
        Ok(Tls {
            files,
            loaded: Arc::new(Mutex::new(loaded)),
        })
    }

    /// Where they are.
    pub fn files(&self) -> &TlsFiles {
        &self.files
    }

    /// The own certificate.
    pub fn own(&self) -> Certificate {
        self.with(|loaded| loaded.own.clone())
    }

    /// What the files say now.
    fn with<T>(&self, take: impl FnOnce(&Loaded) -> T) -> T {
        let mut loaded = self.loaded.lock();
        let now = stamps(&self.files);
        if now != loaded.stamps
            && let Ok(new) = load(&self.files)
        {
            *loaded = new;
        }
        take(&loaded)
    }

    /// Protects a connection that this process made to a host.
    pub fn connect(&self, link: Link, host: &str, limit: Duration) -> Result<Link, TlsError> {
        let config = self.with(|loaded| Arc::clone(&loaded.client));
        let name = ServerName::try_from(host.to_owned()).map_err(|_| {
            TlsError::Refused(format!("'{host}' is no name that a certificate could have"))
        })?;
        let connection =
            ClientConnection::new(config, name).map_err(|e| TlsError::Refused(e.to_string()))?;
        let (link, holder) = protect(connection.into(), link, limit)?;
        match holder {
            Some(Holder::Server) => Ok(link),
            _ => Err(TlsError::Refused(
                "its certificate is not that of a server".into(),
            )),
        }
    }

    /// Protects a connection that was accepted: with whose certificate.
    pub fn accept(&self, link: Link, limit: Duration) -> Result<(Link, Holder), TlsError> {
        let deadline = Instant::now() + limit;
        if first_byte(&link, deadline)? != HANDSHAKE {
            return Err(TlsError::Plain(Box::new(link)));
        }
        let config = self.with(|loaded| Arc::clone(&loaded.server));
        let connection =
            ServerConnection::new(config).map_err(|e| TlsError::Refused(e.to_string()))?;
        let (link, holder) = protect(connection.into(), link, limit)?;
        let holder = holder.ok_or_else(|| {
            TlsError::Refused("its certificate says neither user nor server".into())
        })?;
        Ok((link, holder))
    }
}

/// The first byte that will be read.
fn first_byte(link: &Link, deadline: Instant) -> io::Result<u8> {
    use rustix::net::{RecvFlags, recv};
    let left = deadline.saturating_duration_since(Instant::now());
    link.set_timeout(Some(left.max(Duration::from_millis(1))))?;
    let mut byte = [0; 1];
    match recv(link, &mut byte, RecvFlags::PEEK)? {
        (_, 0) => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(byte[0]),
    }
}

/// Shakes hands and leaves the rest to a relay.
fn protect(
    mut tls: Connection,
    link: Link,
    limit: Duration,
) -> Result<(Link, Option<Holder>), TlsError> {
    let peer = link.peer()?;
    let PeerName::Tcp { .. } = peer else {
        return Err(TlsError::Refused("only TCP is protected by TLS".into()));
    };
    let mut tcp = link.into_tcp()?;
    shake_hands(&mut tls, &mut tcp, limit)?;
    let shown = tls.peer_certificates().and_then(<[_]>::first);
    let shown = shown.ok_or_else(|| TlsError::Refused("it shows no certificate".into()))?;
    let shown = Certificate::parse(shown).map_err(|e| TlsError::Refused(e.to_string()))?;
    tcp.set_read_timeout(None)?;
    tcp.set_write_timeout(None)?;
    let relay = Arc::new(Relay::new(peer));
    let stream = relay::start(tls, tcp, Arc::clone(&relay))?;
    Ok((Link::relayed(stream, relay), shown.holder))
}

fn shake_hands(tls: &mut Connection, tcp: &mut TcpStream, limit: Duration) -> Result<(), TlsError> {
    let deadline = Instant::now() + limit;
    while tls.is_handshaking() || tls.wants_write() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::Error::from(io::ErrorKind::TimedOut).into());
        }
        tcp.set_read_timeout(Some(left))?;
        tcp.set_write_timeout(Some(left))?;
        if tls.wants_write() {
            tls.write_tls(&mut relay::Quiet(tcp))?;
        } else if tls.read_tls(tcp)? == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        } else if let Err(error) = tls.process_new_packets() {
            // The alert that says why.
            let _ = tls.write_tls(&mut relay::Quiet(tcp));
            return Err(TlsError::Refused(in_words(&error)));
        }
    }
    Ok(())
}

/// What went wrong, for people.
pub(crate) fn in_words(error: &rustls::Error) -> String {
    use rustls::{AlertDescription, CertificateError, Error};
    let text = match error {
        Error::InvalidCertificate(why) => match why {
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                "its certificate was signed by an authority that is not believed here (ca)"
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "its certificate has expired; renew it with `pario cert renew`"
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                "its certificate is not good yet; compare the clocks"
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "its certificate is for other names and addresses than the one it was reached by"
            }
            CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
                "its certificate is not meant for this end of a connection"
            }
            _ => return format!("its certificate is not good: {why:?}"),
        },
        Error::NoCertificatesPresented => "it shows no certificate",
        Error::AlertReceived(AlertDescription::CertificateExpired) => {
            "it takes this certificate for expired; renew it with `pario cert renew`"
        }
        // The second is said of an authority that only has the name of one that is believed.
        Error::AlertReceived(AlertDescription::UnknownCA | AlertDescription::DecryptError) => {
            "it does not believe the authority of this certificate; use one of the service's own authority"
        }
        Error::AlertReceived(
            AlertDescription::BadCertificate | AlertDescription::CertificateUnknown,
        ) => "it does not take this certificate; look at it with `pario cert show`",
        Error::AlertReceived(AlertDescription::CertificateRequired) => {
            "it wants a certificate (cert, key); name it in the URL or in PARIO_TLS_CERT and PARIO_TLS_KEY"
        }
        Error::InvalidMessage(_) => "it does not speak TLS",
        other => return other.to_string(),
    };
    text.into()
}

fn stamps(files: &TlsFiles) -> Option<[Stamp; 3]> {
    let of = |path: &Path| {
        let found = std::fs::metadata(path).ok()?;
        Some((found.mtime(), found.mtime_nsec(), found.size(), found.ino()))
    };
    Some([of(&files.ca)?, of(&files.cert)?, of(&files.key)?])
}

fn wrong(path: &Path, why: impl std::fmt::Display) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("{}: {why}", path.display()),
    )
}

/// What the certificates in a file say.
pub fn certificates_in(path: &Path) -> io::Result<Vec<Certificate>> {
    let parse = |der: &CertificateDer<'_>| Certificate::parse(der).map_err(|e| wrong(path, e));
    chain(path)?.iter().map(parse).collect()
}

/// The certificates in a file.
fn chain(path: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let bytes = std::fs::read(path).map_err(|e| wrong(path, e))?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        _ => Err(wrong(path, "has no certificate in PEM")),
    }
}

fn load(files: &TlsFiles) -> io::Result<Loaded> {
    // Before the files: one that changes meanwhile is read again.
    let stamps = stamps(files);
    let provider: Arc<CryptoProvider> = Arc::new(ring::default_provider());
    let mut roots = RootCertStore::empty();
    for der in chain(&files.ca)? {
        let said = Certificate::parse(&der).map_err(|e| wrong(&files.ca, e))?;
        if !said.is_authority {
            return Err(wrong(&files.ca, "is not the certificate of an authority"));
        }
        roots.add(der).map_err(|e| wrong(&files.ca, e))?;
    }
    let roots = Arc::new(roots);
    let own = chain(&files.cert)?;
    let said = Certificate::parse(&own[0]).map_err(|e| wrong(&files.cert, e))?;
    if said.holder.is_none() {
        let why = "says neither user nor server; make one with `pario cert`";
        return Err(wrong(&files.cert, why));
    }
    let bytes = read_private(&files.key).map_err(|e| wrong(&files.key, e))?;
    let key = || {
        PrivateKeyDer::from_pem_slice(&bytes).map_err(|_| wrong(&files.key, "has no key in PEM"))
    };
    let fits = |e: rustls::Error| {
        wrong(
            &files.cert,
            format!("does not fit the key in {}: {e}", files.key.display()),
        )
    };
    let version = |e: rustls::Error| io::Error::other(e.to_string());
    let mut client = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(version)?
        .with_root_certificates(Arc::clone(&roots))
        .with_client_auth_cert(own.clone(), key()?)
        .map_err(fits)?;
    client.resumption = Resumption::disabled();
    let verifier = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(&provider))
        .build()
        .map_err(|e| wrong(&files.ca, e))?;
    let mut server = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(version)?
        .with_client_cert_verifier(verifier)
        .with_single_cert(own, key()?)
        .map_err(fits)?;
    server.session_storage = Arc::new(NoServerSessionStorage {});
    server.send_tls13_tickets = 0;
    Ok(Loaded {
        stamps,
        client: Arc::new(client),
        server: Arc::new(server),
        own: said,
    })
}
