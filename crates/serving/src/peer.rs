//! Who is at the other end of a connection, as the kernel says it.
//!
//! Unix sockets: user, group and process from the peer credentials, further groups from the process's
//! own status. TCP: nothing but what the peer proves; of a peer on this host, by the loopback interface or by
//! its own address, the owner of the other socket stands in the kernel's table of connections.

use std::fs;
use std::net::{IpAddr, SocketAddr};

use wire::link::{Link, PeerName};
use wire::message::session::Credentials;

/// `nogroup`, as hosts agree.
const NO_GROUP: u32 = 65534;

/// How often the kernel's table is read for an owner: a row can be missed while others come and go.
const LOOKS: u32 = 4;

/// The other end of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Whom it works for, if the kernel knows.
    pub credentials: Option<Credentials>,
    /// Its process number, if the kernel knows.
    pub pid: Option<u64>,
    /// Whether it is on this host for sure.
    pub is_local: bool,
    /// The address that it comes from over a network; processes of one host have the same, unless it is one of the loopback.
    pub address: Option<IpAddr>,
}

impl Peer {
    /// Looks at a connection.
    pub fn of(link: &Link) -> Peer {
        match link.peer() {
            Ok(PeerName::Unix { pid, user, group }) => Peer {
                credentials: Some(Credentials {
                    user,
                    group,
                    groups: groups_of(pid, user),
                }),
                pid: Some(pid),
                is_local: true,
                address: None,
            },
            Ok(PeerName::Tcp { peer, here }) if is_of_this_host(peer.ip(), here.ip()) => Peer {
                credentials: (0..LOOKS)
                    .find_map(|_| owner_of_tcp(peer, here))
                    .map(user_alone),
                pid: None,
                is_local: true,
                address: Some(peer.ip().to_canonical()),
            },
            other => Peer {
                credentials: None,
                pid: None,
                is_local: false,
                address: match other {
                    Ok(PeerName::Tcp { peer, .. }) => Some(peer.ip().to_canonical()),
                    _ => None,
                },
            },
        }
    }
}

/// Whether a peer can only be on this host: on the loopback interface, or with the address of this end, which
/// the kernel takes from nobody else.
fn is_of_this_host(peer: IpAddr, here: IpAddr) -> bool {
    let (peer, here) = (peer.to_canonical(), here.to_canonical());
    peer.is_loopback() || peer == here
}

fn groups_of(pid: u64, user: u32) -> Vec<u32> {
    groups_in(
        &fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default(),
        user,
    )
}

/// The groups of a process that still works for `user`. The number may belong to another process by
/// now, whose groups are not the peer's.
fn groups_in(status: &str, user: u32) -> Vec<u32> {
    let line = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
    let numbers = |list: &str| -> Vec<u32> {
        let words = list.split_whitespace();
        words.filter_map(|word| word.parse().ok()).collect()
    };
    // Real, effective, saved, file system: the kernel notes the effective one at the connection.
    match line("Uid:").map(numbers) {
        Some(users) if users.get(1) == Some(&user) => {
            line("Groups:").map(numbers).unwrap_or_default()
        }
        _ => Vec::new(),
    }
}

/// A user about whom nothing but the number is known: with his first group, if this host has it in its
/// list of users, and else with the one that owns nothing.
fn user_alone(user: u32) -> Credentials {
    let list = fs::read_to_string("/etc/passwd").unwrap_or_default();
    Credentials::new(user, first_group_in(&list, user).unwrap_or(NO_GROUP))
}

fn first_group_in(list: &str, user: u32) -> Option<u32> {
    list.lines().find_map(|line| {
        let mut columns = line.split(':').skip(2);
        let is_his = columns.next()?.parse() == Ok(user);
        is_his.then(|| columns.next()?.parse().ok()).flatten()
    })
}

/// The user whose socket is at the other end of a loopback connection.
fn owner_of_tcp(peer: SocketAddr, here: SocketAddr) -> Option<u32> {
    // An IPv4 peer of an IPv6 listener has a socket of either family.
    let v4 = match (peer.ip().to_canonical(), here.ip().to_canonical()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => Some((from, to)),
        _ => None,
    };
    let found = v4.and_then(|(from, to)| {
        let ends = [(from, peer.port()), (to, here.port())]
            .map(|(ip, port)| ip_column(&ip.octets(), port));
        owner_in(&fs::read_to_string("/proc/net/tcp").ok()?, &ends)
    });
    found.or_else(|| {
        let ends = [peer, here].map(|end| {
            let ip = match end.ip() {
                IpAddr::V4(ip) => ip.to_ipv6_mapped(),
                IpAddr::V6(ip) => ip,
            };
            ip_column(&ip.octets(), end.port())
        });
        owner_in(&fs::read_to_string("/proc/net/tcp6").ok()?, &ends)
    })
}

/// Address and port as the table shows them: words of four bytes in the host's order.
fn ip_column(octets: &[u8], port: u16) -> String {
    let words = octets.chunks_exact(4).map(|word| {
        let word = u32::from_ne_bytes(word.try_into().expect("four"));
        format!("{word:08X}")
    });
    format!("{}:{port:04X}", words.collect::<String>())
}

/// The owner of the socket from the first to the second end in the kernel's table.
///
/// A socket that its process has closed stands there with user 0 and inode 0 until the
/// connection is gone: it is nobody's, and above all not root's.
fn owner_in(table: &str, [from, to]: &[String; 2]) -> Option<u32> {
    table.lines().find_map(|line| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let [
            _,
            local,
            remote,
            _state,
            _queues,
            _timer,
            _again,
            user,
            _timeout,
            inode,
            ..,
        ] = columns[..]
        else {
            return None;
        };
        let is_held = inode != "0";
        let matches = local == from && remote == to && is_held;
        matches.then(|| user.parse().ok()).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use wire::link::Listener;
    use wire::url::Endpoint;

    const TABLE: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 0100007F:A0B0 01 00000000:00000000 00:00000000 00000000   112        0 5501 1 0
   1: 0100007F:A0B0 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1000        0 5502 1 0
   2: 0100007F:A0B1 0100007F:1F90 05 00000000:00000000 00:00000000 00000000     0        0 0 1 0
   3: broken line
";

    #[test]
    fn the_owner_of_the_other_socket_is_found() {
        let ends = |from: &str, to: &str| [from.to_owned(), to.to_owned()];
        let (a, b, c) = ("0100007F:A0B0", "0100007F:1F90", "0100007F:A0B1");
        assert_eq!(owner_in(TABLE, &ends(a, b)), Some(1000));
        assert_eq!(owner_in(TABLE, &ends(b, a)), Some(112));
        assert_eq!(owner_in(TABLE, &ends(a, c)), None);
        assert_eq!(owner_in(TABLE, &ends(c, b)), None, "closed by its process");
        assert_eq!(ip_column(&[127, 0, 0, 1], 0xa0b0), a);
    }

    /// The other end of a connection to a listener of this host, kept open or closed.
    fn peer_of(listening: &str, connecting: &str, is_open: bool) -> Option<Peer> {
        let end = |host: &str, port| Endpoint::Tcp {
            host: host.into(),
            port,
        };
        // A host without IPv6 has no such listener.
        let listener = Listener::bind(&end(listening, 0)).ok()?;
        let Endpoint::Tcp { port, .. } = listener.endpoint().unwrap() else {
            unreachable!("bound to TCP")
        };
        let wait = Duration::from_secs(20);
        let client = Link::connect(&end(connecting, port), wait).unwrap();
        let client = is_open.then_some(client);
        let link = listener.accept().unwrap();
        let peer = Peer::of(&link);
        drop(client);
        Some(peer)
    }

    #[test]
    fn a_loopback_peer_is_known_while_it_holds_its_socket() {
        let user = rustix::process::getuid().as_raw();
        for (listening, connecting) in [
            ("127.0.0.1", "127.0.0.1"),
            ("::1", "::1"),
            ("::", "127.0.0.1"),
        ] {
            let Some(peer) = peer_of(listening, connecting, true) else {
                assert!(listening.contains(':'));
                continue;
            };
            assert!(peer.is_local, "{listening}");
            assert_eq!(peer.credentials, Some(user_alone(user)));
            // What was closed belongs to nobody; the kernel's table says root.
            let gone = peer_of(listening, connecting, false).unwrap();
            assert_eq!(gone.credentials, None, "{listening}");
        }
    }

    #[test]
    fn the_first_group_stands_in_the_list_of_users() {
        let list = "root:x:0:0:root:/root:/bin/sh\nbroken\neva:x:1000:100:Eva:/home/eva:/bin/sh\n";
        assert_eq!(first_group_in(list, 0), Some(0));
        assert_eq!(first_group_in(list, 1000), Some(100));
        assert_eq!(first_group_in(list, 100), None);
    }

    #[test]
    fn groups_are_those_of_the_user_who_connected() {
        let status = "Name:\tx\nUid:\t1000\t1001\t1000\t1001\nGroups:\t4 27 1000 \n";
        assert_eq!(groups_in(status, 1001), [4, 27, 1000]);
        assert_eq!(groups_in(status, 1000), [0; 0], "another process by now");
        assert_eq!(groups_in("", 0), [0; 0]);
    }
}
