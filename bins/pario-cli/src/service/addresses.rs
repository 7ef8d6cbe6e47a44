//! Where the processes of a service listen when nobody says it in full: sockets in its directory,
//! free ports on its host.
//!
//! Paths become absolute, so that the URL that is printed works from anywhere.

use std::net::{IpAddr, TcpListener};
use std::path::{Path, PathBuf, absolute};

use wire::url::Endpoint;

use crate::commands::Error;

/// Longest path of a socket that the kernel takes.
const LONGEST_SOCKET_PATH: usize = 107;

/// Reads `unix:PATH` or `tcp:HOST:PORT` on the command line.
pub(crate) fn parse(text: &str) -> Result<Endpoint, String> {
    text.parse::<Endpoint>().map_err(|error| {
        if text.starts_with("unix:") || text.starts_with("tcp:") {
            error.to_string()
        } else {
            format!("'{text}' is not unix:PATH or tcp:HOST:PORT")
        }
    })
}

/// Where the metadata manager of a directory listens unless told otherwise.
pub(crate) fn meta(dir: &Path) -> Endpoint {
    Endpoint::Unix(dir.join("meta.sock"))
}

/// Where I/O server `index` listens, next to its metadata manager.
pub(crate) fn io(meta: &Endpoint, dir: &Path, index: usize) -> Endpoint {
    match meta {
        Endpoint::Unix(path) if path.parent() == Some(dir) => {
            Endpoint::Unix(dir.join(format!("io-{index}.sock")))
        }
        // Where the user has chosen a place, the others are beside it.
        Endpoint::Unix(path) => Endpoint::Unix(beside(path, &format!("-io-{index}"))),
        Endpoint::Tcp { host, .. } => Endpoint::Tcp {
            host: host.clone(),
            port: 0,
        },
    }
}

/// Where an I/O server listens that was told nothing but where its metadata manager is.
pub(crate) fn io_alone(meta: &Endpoint) -> Result<Endpoint, Error> {
    match meta {
        Endpoint::Unix(path) => {
            let suffix = format!("-io-{}", std::process::id());
            Ok(Endpoint::Unix(beside(path, &suffix)))
        }
        Endpoint::Tcp { host, .. } if is_loopback(host) => Ok(Endpoint::Tcp {
            host: host.clone(),
            port: 0,
        }),
        Endpoint::Tcp { .. } => Err(format!(
            "--listen: the metadata manager at {meta} is reached over a network; say where this \
             server is reached, as in --listen tcp:{}:0",
            host_name()
        )
        .into()),
    }
}

/// With an absolute path, which the kernel has to take.
pub(crate) fn checked(endpoint: Endpoint) -> Result<Endpoint, Error> {
    let Endpoint::Unix(path) = endpoint else {
        return Ok(endpoint);
    };
    let path = absolute(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let len = path.as_os_str().len();
    if len > LONGEST_SOCKET_PATH {
        return Err(format!(
            "the path of the socket {} has {len} bytes, and the kernel takes {LONGEST_SOCKET_PATH}; \
             give a shorter one, as in --listen unix:/tmp/pario-{}/meta.sock",
            path.display(),
            rustix::process::getuid().as_raw()
        )
        .into());
    }
    Ok(Endpoint::Unix(path))
}

/// What clients connect to: a server that listens on all addresses is reached by the host's name.
pub(crate) fn reached(endpoint: &Endpoint) -> Endpoint {
    match endpoint {
        Endpoint::Tcp { host, port } if is_unspecified(host) => Endpoint::Tcp {
            host: host_name(),
            port: *port,
        },
        other => other.clone(),
    }
}

/// What a process of this host connects to.
pub(crate) fn from_here(endpoint: &Endpoint) -> Endpoint {
    match endpoint {
        Endpoint::Tcp { host, port } if is_unspecified(host) => Endpoint::Tcp {
            host: if host.contains(':') {
                "::1"
            } else {
                "127.0.0.1"
            }
            .into(),
            port: *port,
        },
        other => other.clone(),
    }
}

/// An address whose port is known, so that it can be announced before anybody listens there.
pub(crate) fn with_port(endpoint: Endpoint) -> Result<Endpoint, Error> {
    match endpoint {
        Endpoint::Tcp { host, port: 0 } => {
            let free = TcpListener::bind((host.as_str(), 0)).and_then(|l| l.local_addr());
            let port = free
                .map_err(|e| format!("--listen: tcp:{host}:0: {e}"))?
                .port();
            Ok(Endpoint::Tcp { host, port })
        }
        other => Ok(other),
    }
}

/// Whether a host stands for all addresses of this one.
pub(crate) fn is_unspecified(host: &str) -> bool {
    host.parse::<IpAddr>().is_ok_and(|ip| ip.is_unspecified())
}

/// Whether nobody outside this host can connect.
pub(crate) fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// What this host calls itself.
pub(crate) fn host_name() -> String {
    rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned()
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_listen_beside_their_metadata_manager() {
        let dir = Path::new("/x/.pario");
        let at = |text: &str| parse(text).expect("a URL");
        assert_eq!(io(&meta(dir), dir, 2), at("unix:/x/.pario/io-2.sock"));
        assert_eq!(io(&at("unix:/t/s"), dir, 0), at("unix:/t/s-io-0"));
        assert_eq!(io(&at("tcp:n:7"), dir, 0), at("tcp:n:0"));
        assert_eq!(
            io_alone(&at("tcp:[::1]:7")).expect("here"),
            at("tcp:[::1]:0")
        );
        let error = io_alone(&at("tcp:node:7"))
            .expect_err("elsewhere")
            .to_string();
        assert!(error.contains("--listen tcp:"), "{error}");
    }

    #[test]
    fn long_paths_are_refused_with_the_remedy() {
        let long = Endpoint::Unix(format!("/{}", "d".repeat(LONGEST_SOCKET_PATH)).into());
        let error = checked(long).expect_err("too long").to_string();
        assert!(
            error.contains("108 bytes") && error.contains("--listen unix:/tmp/"),
            "{error}"
        );
        let fits = Endpoint::Unix(format!("/{}", "d".repeat(LONGEST_SOCKET_PATH - 1)).into());
        assert_eq!(checked(fits.clone()).expect("fits"), fits);
        let relative = checked(Endpoint::Unix("s".into())).expect("fits");
        assert!(matches!(relative, Endpoint::Unix(p) if p.is_absolute()));
    }

    #[test]
    fn only_sockets_can_be_listened_on() {
        for (text, word) in [
            ("dir:.pario", "not unix:PATH or tcp:"),
            ("tcp:x", "no port"),
        ] {
            assert!(parse(text).expect_err(text).contains(word), "{text}");
        }
        let all = parse("tcp:0.0.0.0:7").expect("a URL");
        assert_eq!(from_here(&all).to_string(), "tcp:127.0.0.1:7");
        assert_eq!(
            reached(&parse("tcp:0.0.0.0:7").expect("a URL")).to_string(),
            format!("tcp:{}:7", host_name())
        );
    }
}
