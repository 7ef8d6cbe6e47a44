//! Whom clients on other hosts work for.
//!
//! A host can say anything about its users. So a client that has only proven to know the secret works for one user
//! whom the administrator names for all such clients, and who can do no harm: `nobody` if nothing is said.
//! Networks whose hosts are run by the administrator himself can be trusted to say who their users are, root
//! included, as NFS does. Of a client on this host the kernel says it; one that the kernel does not name is no user at all.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serving::Peer;
use wire::message::session::Credentials;

/// `nobody` and `nogroup`, as hosts agree.
const NOBODY: u32 = 65534;

/// Addresses that begin alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

/// Why a text is no network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is no network; write an address, or an address and the bits that count: 10.1.0.0/16, \
     fd00::/8"
)]
pub struct NetworkError(String);

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let wrong = || NetworkError(text.into());
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let address = address.to_canonical();
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            Some(bits) => bits.parse().map_err(|_| wrong())?,
            None => most,
        };
        if bits > most {
            return Err(wrong());
        }
        Ok(Network { address, bits })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

impl Network {
    /// Whether an address belongs to it.
    pub fn has(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(a), IpAddr::V4(b)) => {
                let differ = u64::from(a.to_bits() ^ b.to_bits());
                differ >> (32 - u32::from(self.bits)) == 0
            }
            (IpAddr::V6(a), IpAddr::V6(b)) => {
                let differ = a.to_bits() ^ b.to_bits();
                self.bits == 0 || differ >> (128 - u32::from(self.bits)) == 0
            }
            _ => false,
        }
    }
}

/// Who is believed, and who the others are.
#[derive(Clone, Debug)]
pub struct Trust {
    /// Networks whose hosts are believed when they say who their users are.
    pub networks: Vec<Network>,
    /// Whom all other clients with the secret work for.
    pub others: Credentials,
}

impl Default for Trust {
    fn default() -> Self {
        Trust {
            networks: Vec::new(),
            others: Credentials::new(NOBODY, NOBODY),
        }
    }
}

impl Trust {
    /// Believes everybody who knows the secret: for services whose secret only one user has.
    pub fn everybody() -> Trust {
        let all = |text: &str| text.parse().expect("a network");
        Trust {
            networks: vec![all("0.0.0.0/0"), all("::/0")],
            ..Trust::default()
        }
    }

    /// Whether the word of a peer's host counts.
    pub(crate) fn believes(&self, peer: &Peer) -> bool {
        let is_trusted = |ip| self.networks.iter().any(|network| network.has(ip));
        peer.address.is_some_and(is_trusted)
    }

    /// Whom a client works for that has proven the secret, and of whom the kernel knows nothing; `None` on this host, where
    /// the kernel should.
    pub(crate) fn of<'c>(
        &'c self,
        peer: &Peer,
        claimed: &'c Credentials,
    ) -> Option<&'c Credentials> {
        match self.believes(peer) {
            true => Some(claimed),
            false => (!peer.is_local).then_some(&self.others),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_have_the_addresses_that_begin_alike() {
        for (network, address, has) in [
            ("10.1.0.0/16", "10.1.255.3", true),
            ("10.1.0.0/16", "10.2.0.0", false),
            ("10.1.2.3", "10.1.2.3", true),
            ("10.1.2.3", "10.1.2.2", false),
            ("0.0.0.0/0", "255.255.255.255", true),
            ("0.0.0.0/0", "::1", false),
            ("10.1.0.0/16", "::ffff:10.1.7.7", true),
            ("fd00::/8", "fdff::1", true),
            ("fd00::/8", "fe00::1", false),
            ("::/0", "fe80::1", true),
            ("::/0", "10.0.0.1", false),
            ("fe80::1", "fe80::1", true),
            ("fe80::1", "fe80::2", false),
        ] {
            let parsed: Network = network.parse().unwrap();
            assert_eq!(
                parsed.has(address.parse().unwrap()),
                has,
                "{network} {address}"
            );
        }
        for text in [
            "",
            "node",
            "10.0.0.0/33",
            "fd00::/129",
            "10.0.0.0/",
            "10.0.0.0/-1",
            "/8",
        ] {
            let error = text.parse::<Network>().unwrap_err().to_string();
            assert!(error.contains("is no network"), "{error}");
        }
    }

    #[test]
    fn a_claim_from_elsewhere_is_believed_from_trusted_networks_only() {
        let from = |address: &str, is_local: bool| Peer {
            credentials: None,
            pid: None,
            is_local,
            address: Some(address.parse().unwrap()),
        };
        let root = Credentials::ROOT;
        let mut trust = Trust::default();
        let user = |trust: &Trust, peer: &Peer| trust.of(peer, &root).map(|c| c.user);
        assert_eq!(user(&trust, &from("10.0.0.9", false)), Some(NOBODY));
        let found = trust.of(&from("10.0.0.9", false), &root).unwrap();
        assert_eq!(found.group, NOBODY);
        // On this host the kernel did not say who it is: its own word makes it nobody's.
        for address in ["127.0.0.1", "::1", "10.0.0.9"] {
            assert_eq!(user(&trust, &from(address, true)), None, "{address}");
        }
        trust.networks.push("10.0.0.0/24".parse().unwrap());
        assert_eq!(user(&trust, &from("10.0.0.9", false)), Some(0));
        assert_eq!(user(&trust, &from("10.0.1.9", false)), Some(NOBODY));
        assert_eq!(user(&trust, &from("127.0.0.1", true)), None);
        trust.networks.push("127.0.0.0/8".parse().unwrap());
        assert_eq!(user(&trust, &from("127.0.0.1", true)), Some(0));
        let everybody = Trust::everybody();
        assert_eq!(user(&everybody, &from("2001:db8::1", false)), Some(0));
        assert_eq!(user(&everybody, &from("::1", true)), Some(0));
    }
}
