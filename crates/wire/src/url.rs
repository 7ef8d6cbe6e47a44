//! Where a service is: the values of `PARIO_URL` and of `--listen`.
//!
//! ```text
//! unix:PATH        a socket on this host
//! tcp:HOST:PORT    a socket on a network; IPv6 hosts in brackets
//! tcp:HOST:PORT?ca=FILE&cert=FILE&key=FILE
//!                  the same under TLS, with these certificates; what is not named is named elsewhere
//! dir:PATH         no service: this process serves the directory itself
//! job:             servers that live with the job
//! ```

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// A socket that can be connected to or listened on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// A Unix socket.
    Unix(PathBuf),
    /// Host and port.
    Tcp {
        /// Name or address, without brackets.
        host: String,
        /// Port; 0 asks for a free one when listening.
        port: u16,
    },
}

/// What `PARIO_URL` may name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ServiceUrl {
    /// A running service.
    At(Endpoint),
    /// A running service that is reached under TLS.
    Protected(Endpoint, TlsNames),
    /// The directory, served by the processes that use it.
    Directory(PathBuf),
    /// The servers of this job.
    Job,
}

/// Files for TLS, as far as a URL names them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TlsNames {
    /// The certificate of the authority.
    pub ca: Option<PathBuf>,
    /// The own certificate.
    pub cert: Option<PathBuf>,
    /// Its key.
    pub key: Option<PathBuf>,
}

impl TlsNames {
    fn parse(text: &str, options: &str) -> Result<TlsNames, UrlError> {
        let mut names = TlsNames::default();
        for option in options.split('&') {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            let slot = match name {
                "ca" => &mut names.ca,
                "cert" => &mut names.cert,
                "key" => &mut names.key,
                _ => {
                    return Err(refused(
                        text,
                        "has an option that is none of ca, cert and key",
                    ));
                }
            };
            if value.is_empty() {
                return Err(refused(text, "has an option without a file; write ca=FILE"));
            }
            *slot = Some(value.into());
        }
        Ok(names)
    }
}

impl fmt::Display for TlsNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut mark = '?';
        for (name, file) in [("ca", &self.ca), ("cert", &self.cert), ("key", &self.key)] {
            if let Some(file) = file {
                write!(f, "{mark}{name}={}", file.display())?;
                mark = '&';
            }
        }
        Ok(())
    }
}

/// Why a URL was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}': {detail}")]
pub struct UrlError {
    text: String,
    detail: &'static str,
}

impl FromStr for ServiceUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        match text.split_once(':') {
            Some(("dir", "")) => Err(refused(text, "names no directory; write dir:PATH")),
            Some(("dir", path)) => Ok(ServiceUrl::Directory(path.into())),
            Some(("job", "")) => Ok(ServiceUrl::Job),
            Some(("job", _)) => Err(refused(text, "has words after 'job:'")),
            Some(("tcp", rest)) if rest.contains('?') => {
                let (at, options) = text.split_once('?').expect("it has one");
                let names = TlsNames::parse(text, options)?;
                Ok(ServiceUrl::Protected(at.parse()?, names))
            }
            _ => Ok(ServiceUrl::At(text.parse()?)),
        }
    }
}

impl FromStr for Endpoint {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        match text.split_once(':') {
            Some(("unix", "")) => Err(refused(text, "names no socket; write unix:PATH")),
            Some(("unix", path)) => Ok(Endpoint::Unix(path.into())),
            Some(("tcp", address)) => {
                let (host, port) = address
                    .rsplit_once(':')
                    .ok_or_else(|| refused(text, "has no port; write tcp:HOST:PORT"))?;
                let port = port
                    .parse()
                    .map_err(|_| refused(text, "has a port that is no number below 65536"))?;
                let bare = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
                let host = match bare {
                    Some(v6) => v6,
                    None if host.contains(':') => {
                        return Err(refused(text, "has an IPv6 host without brackets"));
                    }
                    None => host,
                };
                if host.is_empty() {
                    return Err(refused(text, "has no host; write tcp:HOST:PORT"));
                }
                Ok(Endpoint::Tcp {
                    host: host.into(),
                    port,
                })
            }
            _ => Err(refused(
                text,
                "is not unix:PATH, tcp:HOST:PORT, dir:PATH or job:",
            )),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Unix(path) => write!(f, "unix:{}", path.display()),
            Endpoint::Tcp { host, port } if host.contains(':') => write!(f, "tcp:[{host}]:{port}"),
            Endpoint::Tcp { host, port } => write!(f, "tcp:{host}:{port}"),
        }
    }
}

impl fmt::Display for ServiceUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServiceUrl::At(endpoint) => endpoint.fmt(f),
            ServiceUrl::Protected(endpoint, names) => write!(f, "{endpoint}{names}"),
            ServiceUrl::Directory(path) => write!(f, "dir:{}", path.display()),
            ServiceUrl::Job => f.write_str("job:"),
        }
    }
}

fn refused(text: &str, detail: &'static str) -> UrlError {
    UrlError {
        text: text.into(),
        detail,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_print_as_they_are_read() {
        for text in [
            "unix:/run/p.sock",
            "tcp:node7:4711",
            "tcp:[::1]:9",
            "tcp:node7:4711?ca=/a/ca.pem&cert=ada.pem&key=ada.key",
            "tcp:node7:4711?cert=ada.pem",
            "dir:.pario",
            "job:",
        ] {
            assert_eq!(text.parse::<ServiceUrl>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn bad_urls_name_the_remedy() {
        for (text, remedy) in [
            ("", "is not unix:PATH"),
            ("http://x", "is not unix:PATH"),
            ("unix:", "write unix:PATH"),
            ("dir:", "write dir:PATH"),
            ("tcp:node", "has no port"),
            ("tcp::80", "has no host"),
            ("tcp:node:99999", "no number below 65536"),
            ("tcp:::1:80", "without brackets"),
            ("job:7", "after 'job:'"),
            ("tcp:node:7?", "none of ca, cert and key"),
            ("tcp:node:7?ca", "without a file"),
            ("tcp:node:7?ca=a&more=b", "none of ca, cert and key"),
            ("tcp:node?ca=a", "has no port"),
        ] {
            let error = text.parse::<ServiceUrl>().unwrap_err().to_string();
            assert!(error.contains(remedy), "{error}");
        }
    }
}
