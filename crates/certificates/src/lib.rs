//! Making certificates: an authority, and what it signs for servers and users.
//!
//! An authority is a directory with its certificate (`ca.pem`) and its key (`ca.key`). It signs certificates that
//! say whose they are as [`identity::Holder`] writes it; keys are made here, or kept when a certificate is renewed.
//!
//! Invariants
//! - A key is written to a file that nobody else can read, and never overwrites another.
//! - A certificate is replaced whole: servers that read it at that moment see the old or the new one.
//! - What was made is there after a power cut: others may have copies of what an authority has signed, and need it again.
//! - Authorities sign for both purposes only what servers show; users' certificates serve no connections.
//!
//! Left to others: checking certificates (`identity`).
#![forbid(unsafe_code)]

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use identity::{Certificate, Holder, TlsFiles, certificates_in, read_private};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, SanType,
};

/// What a certificate is for, and for how long.
#[derive(Clone, Debug)]
pub struct CertificateRequest {
    /// Whose it is.
    pub holder: Holder,
    /// Names and addresses by which a server is reached.
    pub hosts: Vec<String>,
    /// When it is good.
    pub validity: Validity,
}

/// A span of time, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// Its begin.
    pub from: u64,
    /// Its end.
    pub to: u64,
}

impl Validity {
    /// From now on; an hour earlier, for clocks that differ.
    pub fn days(days: u32) -> Validity {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |d| d.as_secs());
        Validity {
            from: now.saturating_sub(3600),
            to: now + u64::from(days) * 86_400,
        }
    }
}

/// Why nothing was made.
#[derive(Debug)]
pub enum MakeError {
    /// A file.
    File(PathBuf, io::Error),
    /// What was asked for.
    Wanted(String),
}

impl fmt::Display for MakeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MakeError::File(path, e) => {
                let (text, path) = (e.to_string(), path.display().to_string());
                match text.contains(&path) {
                    true => f.write_str(&text),
                    false => write!(f, "{path}: {text}"),
                }
            }
            MakeError::Wanted(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for MakeError {}

impl From<rcgen::Error> for MakeError {
    fn from(error: rcgen::Error) -> Self {
        MakeError::Wanted(error.to_string())
    }
}

fn wanted(text: impl Into<String>) -> MakeError {
    MakeError::Wanted(text.into())
}

/// A certificate with its key, as text.
#[derive(Debug)]
pub struct IssuedCertificate {
    /// In PEM.
    pub certificate: String,
    /// In PEM; private.
    pub key: String,
}

/// An authority.
pub struct Authority {
    dir: PathBuf,
    issuer: Issuer<'static, KeyPair>,
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Authority").field(&self.dir).finish()
    }
}

/// The certificate of an authority in its directory.
pub const CA_CERTIFICATE: &str = "ca.pem";
/// Its key.
pub const CA_KEY: &str = "ca.key";

fn authority_params(name: &str, validity: Validity) -> CertificateParams {
    let mut params = params(name, validity);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

fn params(name: &str, validity: Validity) -> CertificateParams {
    let mut params = CertificateParams::default();
    let mut subject = DistinguishedName::new();
    subject.push(DnType::CommonName, name);
    params.distinguished_name = subject;
    let begin = rcgen::date_time_ymd(1970, 1, 1);
    params.not_before = begin + Duration::from_secs(validity.from);
    params.not_after = begin + Duration::from_secs(validity.to);
    params.use_authority_key_identifier_extension = true;
    params
}

impl Authority {
    /// Makes one in a directory, which is made if it does not exist.
    pub fn make(dir: &Path, name: &str, validity: Validity) -> Result<Authority, MakeError> {
        let failed = |e| MakeError::File(dir.to_owned(), e);
        lockfile::make_directory(dir, 0o777).map_err(failed)?;
        let key = KeyPair::generate()?;
        let params = authority_params(name, validity);
        let certificate = params.self_signed(&key)?.pem();
        write_key(&dir.join(CA_KEY), &key.serialize_pem())?;
        replace(&dir.join(CA_CERTIFICATE), &certificate)?;
        Ok(Authority {
            dir: dir.to_owned(),
            issuer: Issuer::new(params, key),
        })
    }

    /// The one in a directory.
    pub fn open(dir: &Path) -> Result<Authority, MakeError> {
        let path = dir.join(CA_CERTIFICATE);
        let said = read(&path)?;
        if !said.is_authority {
            return Err(wanted(format!(
                "{}: is not the certificate of an authority",
                path.display()
            )));
        }
        let key = read_key(&dir.join(CA_KEY))?;
        let params = authority_params(&said.subject, Validity::days(1));
        Ok(Authority {
            dir: dir.to_owned(),
            issuer: Issuer::new(params, key),
        })
    }

    /// Its certificate.
    pub fn certificate(&self) -> PathBuf {
        self.dir.join(CA_CERTIFICATE)
    }

    /// Signs a certificate for a new key.
    pub fn sign(&self, wanted: &CertificateRequest) -> Result<IssuedCertificate, MakeError> {
        let key = KeyPair::generate()?;
        Ok(IssuedCertificate {
            certificate: self.sign_for(wanted, &key)?,
            key: key.serialize_pem(),
        })
    }

    fn sign_for(&self, wanted: &CertificateRequest, key: &KeyPair) -> Result<String, MakeError> {
        let name = match (&wanted.holder, wanted.hosts.first()) {
            (Holder::User { name, .. }, _) => name.clone(),
            (Holder::Server, Some(host)) => host.clone(),
            (Holder::Server, None) => {
                let text = "a server's certificate has the names and addresses it is reached by; give some";
                return Err(MakeError::Wanted(text.into()));
            }
        };
        let mut params = params(&name, wanted.validity);
        let uri = wanted.holder.to_uri();
        params.subject_alt_names.push(SanType::URI(uri.try_into()?));
        for host in &wanted.hosts {
            params.subject_alt_names.push(match host.parse::<IpAddr>() {
                Ok(address) => SanType::IpAddress(address),
                Err(_) => SanType::DnsName(host.clone().try_into()?),
            });
        }
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        if wanted.holder == Holder::Server {
            let serves = ExtendedKeyUsagePurpose::ServerAuth;
            params.extended_key_usages.push(serves);
        }
        Ok(params.signed_by(key, &self.issuer)?.pem())
    }

    /// Signs a certificate and leaves it with its key and the authority's certificate in a directory, under a name.
    pub fn issue(
        &self,
        wanted: &CertificateRequest,
        out: &Path,
        name: &str,
    ) -> Result<TlsFiles, MakeError> {
        let made = lockfile::make_directory(out, 0o777);
        made.map_err(|e| MakeError::File(out.to_owned(), e))?;
        let files = TlsFiles {
            ca: out.join(CA_CERTIFICATE),
            cert: out.join(format!("{name}.pem")),
            key: out.join(format!("{name}.key")),
        };
        let made = self.sign(wanted)?;
        write_key(&files.key, &made.key)?;
        replace(&files.cert, &made.certificate)?;
        let ca = self.certificate();
        let text = fs::read_to_string(&ca).map_err(|e| MakeError::File(ca.clone(), e))?;
        let is_there = fs::read_to_string(&files.ca).is_ok_and(|found| found == text);
        if !is_there {
            replace(&files.ca, &text)?;
        }
        Ok(files)
    }

    /// Signs a certificate again, for the same holder, hosts and key, and puts it in the place of the old one. The
    /// authority's own is renewed in the same way.
    pub fn renew(&self, path: &Path, validity: Validity) -> Result<Certificate, MakeError> {
        let said = read(path)?;
        let key = read_key(&path.with_extension("key"))?;
        let text = match said.holder {
            Some(holder) => {
                let addresses = said.addresses.iter().map(IpAddr::to_string);
                // The first name is whom it names.
                let mut hosts: Vec<String> = said.names.into_iter().chain(addresses).collect();
                if let Some(at) = hosts.iter().position(|host| *host == said.subject) {
                    hosts[..=at].rotate_right(1);
                }
                let wanted = CertificateRequest {
                    holder,
                    hosts,
                    validity,
                };
                self.sign_for(&wanted, &key)?
            }
            None if said.is_authority => authority_params(&said.subject, validity)
                .self_signed(&key)?
                .pem(),
            None => {
                return Err(wanted(format!(
                    "{}: says neither user nor server; it was not made by `pario cert`",
                    path.display()
                )));
            }
        };
        replace(path, &text)?;
        read(path)
    }
}

/// What the first certificate in a file says.
pub fn read(path: &Path) -> Result<Certificate, MakeError> {
    let failed = |e| MakeError::File(path.to_owned(), e);
    let all = certificates_in(path).map_err(failed)?;
    let first = all.into_iter().next();
    first.ok_or_else(|| wanted(format!("{}: has no certificate", path.display())))
}

fn read_key(path: &Path) -> Result<KeyPair, MakeError> {
    let bytes = read_private(path).map_err(|e| MakeError::File(path.to_owned(), e))?;
    let text = String::from_utf8(bytes).unwrap_or_default();
    KeyPair::from_pem(&text).map_err(|e| wanted(format!("{}: {e}", path.display())))
}

fn write_key(path: &Path, text: &str) -> Result<(), MakeError> {
    let write = || {
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        lockfile::sync_name(path)
    };
    write().map_err(|e: io::Error| match e.kind() {
        io::ErrorKind::AlreadyExists => wanted(format!(
            "{}: is there already; renew its certificate with `pario cert renew`, or choose another place",
            path.display()
        )),
        _ => MakeError::File(path.to_owned(), e),
    })
}

/// Puts a file in the place of another, whole.
fn replace(path: &Path, text: &str) -> Result<(), MakeError> {
    let write = || {
        let fresh = path.with_extension("pem.new");
        let mut file = File::create(&fresh)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&fresh, path)?;
        lockfile::sync_name(path)
    };
    write().map_err(|e: io::Error| MakeError::File(path.to_owned(), e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn power_takes_no_key_and_no_certificate_that_was_made() {
        if let Some(why) = lossyfs::lacks() {
            testkit::skipped(&why);
            return;
        }
        let place = testkit::TempDir::new();
        let mut disk = lossyfs::Disk::mount(place.path()).unwrap();
        let (dir, out) = (place.path().join("site/ca"), place.path().join("certs/a"));
        Authority::make(&dir, "test", Validity::days(2)).unwrap();
        disk.restart(lossyfs::Loss::Everything).unwrap();
        let authority = Authority::open(&dir).unwrap();
        let request = CertificateRequest {
            holder: Holder::Server,
            hosts: vec!["here".into()],
            validity: Validity::days(1),
        };
        let files = authority.issue(&request, &out, "server").unwrap();
        disk.restart(lossyfs::Loss::Everything).unwrap();
        assert_eq!(read(&files.cert).unwrap().names, ["here"]);
        assert!(read(&files.ca).unwrap().is_authority);
        let before = read(&files.cert).unwrap();
        authority.renew(&files.cert, Validity::days(9)).unwrap();
        disk.restart(lossyfs::Loss::Everything).unwrap();
        let renewed = fs::read_to_string(&files.cert).unwrap();
        assert!(!renewed.is_empty());
        assert_ne!(read(&files.cert).unwrap().not_after, before.not_after);
    }
}
