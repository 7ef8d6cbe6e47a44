//! Where a service is: the values of `PARIO_URL` and of `--listen`.
//!
//! ```text
//! unix:PATH        a socket on this host
//! tcp:HOST:PORT    a socket on a network; IPv6 hosts in brackets
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
    /// The directory, served by whoever uses it.
    Directory(PathBuf),
    /// The servers of this job.
    Job,
}

/// Why a URL was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlError {
    text: String,
    detail: &'static str,
}

impl fmt::Display for UrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}': {}", self.text, self.detail)
    }
}

impl std::error::Error for UrlError {}

impl FromStr for ServiceUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        match text.split_once(':') {
            Some(("dir", "")) => Err(refused(text, "names no directory; write dir:PATH")),
            Some(("dir", path)) => Ok(ServiceUrl::Directory(path.into())),
            Some(("job", "")) => Ok(ServiceUrl::Job),
            Some(("job", _)) => Err(refused(text, "has words after 'job:'")),
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
        ] {
            let error = text.parse::<ServiceUrl>().unwrap_err().to_string();
            assert!(error.contains(remedy), "{error}");
        }
    }
}
