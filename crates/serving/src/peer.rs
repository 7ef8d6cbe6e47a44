//! Who is at the other end of a connection, as the kernel says it.
//!
//! Unix sockets: user, group and process from the peer credentials, further groups from the process's
//! own status. TCP: nothing but what the peer proves; on the loopback interface the owner of the
//! other socket stands in the kernel's table of connections.

use std::fs;
use std::net::SocketAddr;

use wire::link::{Link, PeerName};
use wire::message::session::Credentials;

/// The other end of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Whom it works for, if the kernel knows.
    pub credentials: Option<Credentials>,
    /// Its process number, if the kernel knows.
    pub pid: Option<u64>,
    /// Whether it is on this host for sure.
    pub is_local: bool,
}

impl Peer {
    /// Looks at a connection.
    pub fn of(link: &Link) -> Peer {
        match link.peer() {
            Ok(PeerName::Unix { pid, user, group }) => Peer {
                credentials: Some(Credentials {
                    user,
                    group,
                    groups: groups_of(pid),
                }),
                pid: Some(pid),
                is_local: true,
            },
            Ok(PeerName::Tcp { peer, here }) if peer.ip().is_loopback() => Peer {
                credentials: owner_of_tcp(peer, here).map(|user| Credentials::new(user, user)),
                pid: None,
                is_local: true,
            },
            _ => Peer {
                credentials: None,
                pid: None,
                is_local: false,
            },
        }
    }
}

fn groups_of(pid: u64) -> Vec<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("Groups:"))
        .map(|list| {
            list.split_whitespace()
                .filter_map(|g| g.parse().ok())
                .collect()
        })
        .unwrap_or_default()
}

/// The user whose socket is at the other end of a loopback connection.
fn owner_of_tcp(peer: SocketAddr, here: SocketAddr) -> Option<u32> {
    let (table, address): (&str, fn(SocketAddr) -> String) = match peer {
        SocketAddr::V4(_) => ("/proc/net/tcp", |a| match a {
            SocketAddr::V4(v4) => {
                let bytes = u32::from_ne_bytes(v4.ip().octets());
                format!("{bytes:08X}:{:04X}", v4.port())
            }
            SocketAddr::V6(_) => String::new(),
        }),
        SocketAddr::V6(_) => ("/proc/net/tcp6", |a| match a {
            SocketAddr::V6(v6) => {
                let words = v6.ip().octets();
                let text: String = words
                    .chunks_exact(4)
                    .map(|w| {
                        let word = u32::from_ne_bytes(w.try_into().expect("four"));
                        format!("{word:08X}")
                    })
                    .collect();
                format!("{text}:{:04X}", v6.port())
            }
            SocketAddr::V4(_) => String::new(),
        }),
    };
    let (local, remote) = (address(peer), address(here));
    fs::read_to_string(table).ok()?.lines().find_map(|line| {
        let mut columns = line.split_whitespace().skip(1);
        let matches = columns.next() == Some(&local) && columns.next() == Some(&remote);
        matches.then(|| columns.nth(4)?.parse().ok()).flatten()
    })
}
