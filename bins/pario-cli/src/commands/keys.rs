//! What servers are given to show and to demand: secrets, certificates, and who is believed beyond this host.
//!
//! Files are read where the option stands, so that what is wrong with one is said with its option.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use identity::{Holder, Keys, Secret, Tls, TlsFiles};
use metaserver::{Network, Trust};
use wire::message::session::Credentials;

use super::Error;

/// Options of every server.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct KeyArguments {
    /// The file with the secret that clients over TCP have to know [default: PARIO_SECRET]
    #[arg(long, value_name = "FILE")]
    secret: Option<PathBuf>,

    /// The file with the secret that servers on other hosts have to know [default: PARIO_SERVER_SECRET]
    #[arg(long, value_name = "FILE")]
    server_secret: Option<PathBuf>,

    /// The certificate of the authority; with the next two TCP is under TLS [default: PARIO_TLS_CA]
    #[arg(long, value_name = "FILE")]
    tls_ca: Option<PathBuf>,

    /// The certificate of this server, made with `pario cert server` [default: PARIO_TLS_CERT]
    #[arg(long, value_name = "FILE")]
    tls_cert: Option<PathBuf>,

    /// The key of that certificate [default: PARIO_TLS_KEY]
    #[arg(long, value_name = "FILE")]
    tls_key: Option<PathBuf>,
}

/// Options about clients on other hosts that nobody hears of.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct LeaseArguments {
    /// Seconds after which a client that servers hear nothing of is dead, and its locks are free: one on another host, and any that holds
    /// a lock which another one waits for
    #[arg(long, value_name = "SECONDS", default_value_t = 20, value_parser = clap::value_parser!(u64).range(2..=86_400))]
    client_lease: u64,
}

impl LeaseArguments {
    /// The lease.
    pub(crate) fn lease(self) -> Duration {
        Duration::from_secs(self.client_lease)
    }

    /// These leases as arguments for another process.
    pub(crate) fn arguments(self) -> [OsString; 2] {
        [
            "--client-lease".into(),
            self.client_lease.to_string().into(),
        ]
    }
}

/// Options of the metadata manager.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct TrustArguments {
    /// Believe hosts of this network (10.1.0.0/16) when they say who their users are, root included; may be given several times
    #[arg(long, value_name = "NETWORK")]
    trust_uids: Vec<Network>,

    /// Whom other clients with the secret work for: a user's name, or UID:GID [default: nobody, 65534:65534]
    #[arg(long, value_name = "USER")]
    remote_user: Option<String>,
}

/// Where a file was named, and the file.
struct NamedFile(&'static str, PathBuf);

fn named(option: &'static str, given: Option<&Path>, variable: &'static str) -> Option<NamedFile> {
    if let Some(path) = given {
        return Some(NamedFile(option, path.to_owned()));
    }
    let path = std::env::var_os(variable).filter(|text| !text.is_empty())?;
    Some(NamedFile(variable, path.into()))
}

impl NamedFile {
    fn secret(&self) -> Result<Secret, Error> {
        Secret::read(&self.1).map_err(|error| self.refused(&error))
    }

    fn refused(&self, error: &dyn std::fmt::Display) -> Error {
        let (text, shown) = (error.to_string(), self.1.display().to_string());
        match text.contains(&shown) {
            true => format!("{}: {text}", self.0).into(),
            false => format!("{}: {shown}: {text}", self.0).into(),
        }
    }

    fn absolute(&self) -> Result<PathBuf, Error> {
        self.1.canonicalize().map_err(|e| self.refused(&e))
    }
}

impl KeyArguments {
    fn user_secret(&self) -> Option<NamedFile> {
        named("--secret", self.secret.as_deref(), "PARIO_SECRET")
    }

    fn server_secret(&self) -> Option<NamedFile> {
        let given = self.server_secret.as_deref();
        named("--server-secret", given, "PARIO_SERVER_SECRET")
    }

    /// What the files say.
    pub(crate) fn keys(&self) -> Result<Keys, Error> {
        let read = |named: Option<NamedFile>| named.map(|n| n.secret()).transpose();
        let (user, server) = (self.user_secret(), self.server_secret());
        if let (Some(user), Some(server)) = (&user, &server)
            && user.absolute()? == server.absolute()?
        {
            return Err(format!(
                "{}: is the file of {} too; servers need a secret that users do not have",
                server.0, user.0
            )
            .into());
        }
        Ok(Keys {
            user: read(user)?,
            server: read(server)?,
            tls: self.tls()?,
        })
    }

    fn tls_files(&self) -> [(&'static str, Option<NamedFile>); 3] {
        [
            ("--tls-ca", &self.tls_ca, "PARIO_TLS_CA"),
            ("--tls-cert", &self.tls_cert, "PARIO_TLS_CERT"),
            ("--tls-key", &self.tls_key, "PARIO_TLS_KEY"),
        ]
        .map(|(option, given, variable)| (option, named(option, given.as_deref(), variable)))
    }

    fn tls(&self) -> Result<Option<Tls>, Error> {
        let [ca, cert, key] = match self.tls_files() {
            [(_, None), (_, None), (_, None)] => return Ok(None),
            [(_, Some(ca)), (_, Some(cert)), (_, Some(key))] => [ca, cert, key],
            some => {
                let missing: Vec<&str> = some
                    .iter()
                    .filter(|(_, n)| n.is_none())
                    .map(|(o, _)| *o)
                    .collect();
                return Err(format!("TLS needs {} too", missing.join(" and ")).into());
            }
        };
        let files = TlsFiles {
            ca: ca.1.clone(),
            cert: cert.1.clone(),
            key: key.1.clone(),
        };
        let tls = Tls::read(files).map_err(|e| cert.refused(&e))?;
        match tls.own().holder {
            Some(Holder::Server) => Ok(Some(tls)),
            _ => Err(cert.refused(&"is not that of a server; make one with `pario cert server`")),
        }
    }

    /// With names that are good everywhere, after a look into the files.
    pub(crate) fn settled(&self) -> Result<KeyArguments, Error> {
        self.keys()?;
        let absolute = |named: Option<NamedFile>| named.map(|n| n.absolute()).transpose();
        let [ca, cert, key] = self.tls_files().map(|(_, named)| absolute(named));
        Ok(KeyArguments {
            secret: absolute(self.user_secret())?,
            server_secret: absolute(self.server_secret())?,
            tls_ca: ca?,
            tls_cert: cert?,
            tls_key: key?,
        })
    }

    /// Whether clients beyond this host can be told from strangers.
    pub(crate) fn keep_strangers_out(&self) -> bool {
        self.secret.is_some() || self.tls_cert.is_some()
    }

    /// The file with the secret of users, once settled.
    pub(crate) fn secret_file(&self) -> Option<&Path> {
        self.secret.as_deref()
    }

    /// These files as arguments for another process.
    pub(crate) fn arguments(&self) -> Vec<OsString> {
        let mut all = Vec::new();
        for (option, path) in [
            ("--secret", &self.secret),
            ("--server-secret", &self.server_secret),
            ("--tls-ca", &self.tls_ca),
            ("--tls-cert", &self.tls_cert),
            ("--tls-key", &self.tls_key),
        ] {
            if let Some(path) = path {
                all.extend([option.into(), path.clone().into_os_string()]);
            }
        }
        all
    }
}

impl TrustArguments {
    /// Who is believed, and who the others are.
    pub(crate) fn trust(&self) -> Result<Trust, Error> {
        let mut trust = Trust::default();
        trust.networks.clone_from(&self.trust_uids);
        if let Some(text) = &self.remote_user {
            trust.others = user(text)?;
        }
        Ok(trust)
    }

    /// These rules as arguments for another process.
    pub(crate) fn arguments(&self) -> Vec<OsString> {
        let mut all = Vec::new();
        for network in &self.trust_uids {
            all.extend(["--trust-uids".into(), network.to_string().into()]);
        }
        if let Some(user) = &self.remote_user {
            all.extend(["--remote-user".into(), user.into()]);
        }
        all
    }
}

/// The numbers of a user and his first group, as this host knows them.
pub(crate) fn user_of_host(name: &str) -> Option<(u32, u32)> {
    let list = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    list.lines().find_map(|line| {
        let mut columns = line.split(':');
        let is_his = columns.next() == Some(name);
        let mut numbers = columns.skip(1).map(|n| n.parse().ok());
        is_his
            .then(|| numbers.next()?.zip(numbers.next()?))
            .flatten()
    })
}

/// A user by name, as this host knows him, or by numbers.
fn user(text: &str) -> Result<Credentials, Error> {
    let numbers = match text.split_once(':') {
        Some((user, group)) => user.parse().ok().zip(group.parse().ok()),
        None => user_of_host(text),
    };
    match numbers {
        Some((0, _)) => {
            Err("--remote-user: is root, who may do everything; name another user".into())
        }
        Some((user, group)) => Ok(Credentials::new(user, group)),
        None => Err(format!(
            "--remote-user: '{text}' is no user of this host; give a name or UID:GID"
        )
        .into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_named_or_numbered_and_never_root() {
        let found = user("1000:100").unwrap();
        assert_eq!((found.user, found.group), (1000, 100));
        for (text, why) in [
            ("root", "is root"),
            ("0:5", "is root"),
            ("no such user", "is no user"),
            ("7:", "is no user"),
        ] {
            let error = user(text).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
