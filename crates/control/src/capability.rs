//! Sealed permission slips: what a client may do with the bytes of one file.
//!
//! The catalogue's process issues a token when a file is opened; I/O servers check it when a view is
//! registered, without asking anybody. Both know the key of the cluster, clients do not.
//!
//! ```text
//!  0    1         9            17      18        26            34              66
//!  | 1  | file    | generation | rights| client  | expiry (ms) | HMAC-SHA-256  |
//! ```
//!
//! Little endian; the seal covers everything before it and is compared in constant time, before any
//! field is believed. Expiry is on the issuer's clock; the checker passes in its own time and
//! allows for the difference it expects. The generation is that of the layout at the time of
//! issue; a server that has been told to forget older ones passes that as its floor.

use std::fmt;

use hmac::{Hmac, Mac};
use sha2::Sha256;
use wire::Status;

use wire::{ClientId, FileId, Rights, ServerId};

/// Bytes of a token.
pub const TOKEN_BYTES: usize = SEALED_BYTES + 32;

const SEALED_BYTES: usize = 34;
const VERSION: u8 = 1;

/// The secret that all servers of a cluster share.
#[derive(Clone)]
pub struct ClusterKey([u8; 32]);

impl ClusterKey {
    /// From 32 random bytes.
    pub fn new(secret: [u8; 32]) -> Self {
        ClusterKey(secret)
    }

    /// The key itself, for a server that joins.
    pub fn secret(&self) -> &[u8; 32] {
        &self.0
    }

    fn mac(&self, sealed: &[u8]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("any length of key is good");
        mac.update(sealed);
        mac
    }
}

impl fmt::Debug for ClusterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClusterKey(..)")
    }
}

/// HMAC-SHA-256 over the parts in order, each with its length in front.
pub fn seal(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("any length of key is good");
    for part in parts {
        mac.update(&(part.len() as u64).to_le_bytes());
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

/// Whether a seal is the right one; takes the same time whatever differs.
pub fn seals_equal(given: &[u8], right: &[u8; 32]) -> bool {
    let difference = given.iter().zip(right).fold(0, |d, (a, b)| d | (a ^ b));
    given.len() == right.len() && std::hint::black_box(difference) == 0
}

/// Who named the user of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedBy {
    /// A kernel, or a host that is trusted to say it: wherever a kernel names the user of the client, it is the same.
    Host,
    /// A certificate, whose users may have other numbers on their hosts.
    Certificate,
    /// The administrator, for all clients whose hosts are not believed.
    Administrator,
}

/// The user of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionUser {
    /// His number.
    pub user: u32,
    /// Who says so.
    pub named_by: NamedBy,
}

/// What makes a client known to all servers of the cluster: the user it works for, and a seal over
/// both.
pub fn session(key: &ClusterKey, client: ClientId, of: SessionUser) -> Vec<u8> {
    let [a, b, c, d] = of.user.to_le_bytes();
    let user = [a, b, c, d, of.named_by as u8];
    let seal = seal(&key.0, &[b"session", &client.0.to_le_bytes(), &user]);
    [&user[..], &seal].concat()
}

/// The user of a client whose session this is; `None` if no manager of this cluster has sealed it.
pub fn verify_session(key: &ClusterKey, client: ClientId, given: &[u8]) -> Option<SessionUser> {
    let user = u32::from_le_bytes(*given.first_chunk()?);
    let all = [NamedBy::Host, NamedBy::Certificate, NamedBy::Administrator];
    let named_by = *all.get(usize::from(*given.get(4)?))?;
    let of = SessionUser { user, named_by };
    let right = session(key, client, of);
    let right = right.last_chunk().expect("a seal is at the end");
    seals_equal(&given[5..], right).then_some(of)
}

/// The seal by which the servers of the cluster know each other; the metadata manager has the number
/// [`ServerId::MANAGER`].
pub fn server_seal(key: &ClusterKey, server: ServerId) -> [u8; 32] {
    seal(&key.0, &[b"server", &server.0.to_le_bytes()])
}

/// What a token says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capability {
    /// For which file.
    pub file: FileId,
    /// Its layout generation at the time of issue.
    pub generation: u64,
    /// What is allowed.
    pub rights: Rights,
    /// Who may use it.
    pub client: ClientId,
    /// Last millisecond (since 1970) of its life.
    pub expires_ms: u64,
}

/// What a request needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestNeeds {
    /// The file to be accessed.
    pub file: FileId,
    /// The oldest generation that is still honoured.
    pub oldest_generation: u64,
    /// What the request does.
    pub rights: Rights,
    /// Who sent it.
    pub client: ClientId,
}

/// Why a token was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CapabilityError {
    /// Not the length or version of a token.
    #[error("these bytes are no capability")]
    Malformed,
    /// The seal does not fit: another process made or changed it.
    #[error("the capability was not issued by this cluster")]
    Forged,
    /// Its time is over.
    #[error("the capability has expired; open the file again")]
    Expired,
    /// It is for another file.
    #[error("the capability is for another file")]
    WrongFile,
    /// It was issued to another client.
    #[error("the capability was issued to another client")]
    WrongClient,
    /// The layout it was issued for is forgotten.
    #[error("the capability is for a layout that is gone")]
    OldGeneration,
    /// It does not allow this.
    #[error("the capability does not allow this access")]
    InsufficientRights,
}

impl CapabilityError {
    /// The status with which to answer.
    pub fn status(self) -> Status {
        match self {
            CapabilityError::Malformed => Status::Malformed,
            CapabilityError::Expired => Status::ExpiredCapability,
            CapabilityError::OldGeneration => Status::StaleLayout,
            CapabilityError::Forged
            | CapabilityError::WrongFile
            | CapabilityError::WrongClient
            | CapabilityError::InsufficientRights => Status::BadCapability,
        }
    }
}

impl Capability {
    /// Seals it.
    pub fn issue(&self, key: &ClusterKey) -> [u8; TOKEN_BYTES] {
        let mut token = [0; TOKEN_BYTES];
        token[0] = VERSION;
        token[1..9].copy_from_slice(&self.file.0.to_le_bytes());
        token[9..17].copy_from_slice(&self.generation.to_le_bytes());
        token[17] = self.rights.bits();
        token[18..26].copy_from_slice(&self.client.0.to_le_bytes());
        token[26..34].copy_from_slice(&self.expires_ms.to_le_bytes());
        let seal = key.mac(&token[..SEALED_BYTES]).finalize().into_bytes();
        token[SEALED_BYTES..].copy_from_slice(&seal);
        token
    }

    /// Checks a token against what a request needs, at `now_ms` on the checker's clock.
    pub fn verify(
        token: &[u8],
        key: &ClusterKey,
        now_ms: u64,
        wanted: &RequestNeeds,
    ) -> Result<Capability, CapabilityError> {
        let capability = Capability::unseal(token, key)?;
        if now_ms > capability.expires_ms {
            return Err(CapabilityError::Expired);
        }
        if capability.file != wanted.file {
            return Err(CapabilityError::WrongFile);
        }
        if capability.client != wanted.client {
            return Err(CapabilityError::WrongClient);
        }
        if capability.generation < wanted.oldest_generation {
            return Err(CapabilityError::OldGeneration);
        }
        if !capability.rights.allow(wanted.rights) {
            return Err(CapabilityError::InsufficientRights);
        }
        Ok(capability)
    }

    /// What a token says, once its seal was found good; its expiry is not looked at. The catalogue
    /// uses this when a client that outlived it opens its handles again.
    pub fn unseal(token: &[u8], key: &ClusterKey) -> Result<Capability, CapabilityError> {
        if token.len() != TOKEN_BYTES || token[0] != VERSION {
            return Err(CapabilityError::Malformed);
        }
        let (sealed, seal) = token.split_at(SEALED_BYTES);
        key.mac(sealed)
            .verify_slice(seal)
            .map_err(|_| CapabilityError::Forged)?;
        let word = |at: usize| u64::from_le_bytes(sealed[at..at + 8].try_into().expect("eight"));
        Ok(Capability {
            file: FileId(word(1)),
            generation: word(9),
            rights: Rights::from_bits(sealed[17]).ok_or(CapabilityError::Malformed)?,
            client: ClientId(word(18)),
            expires_ms: word(26),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_of_seals_do_not_make_up_for_each_other() {
        let right = [7; 32];
        assert!(seals_equal(&right, &right));
        for changed in [1, 2, 3, 32] {
            let mut given = right;
            given[..changed].iter_mut().for_each(|byte| *byte ^= 0x10);
            assert!(!seals_equal(&given, &right), "{changed} bytes differ");
        }
        assert!(!seals_equal(&right[..31], &right));
    }

    const CAPABILITY: Capability = Capability {
        file: FileId(7),
        generation: 3,
        rights: Rights::READ,
        client: ClientId(11),
        expires_ms: 1000,
    };
    const WANTED: RequestNeeds = RequestNeeds {
        file: FileId(7),
        oldest_generation: 3,
        rights: Rights::READ,
        client: ClientId(11),
    };

    fn key() -> ClusterKey {
        ClusterKey::new([5; 32])
    }

    #[track_caller]
    fn refused(now_ms: u64, wanted: RequestNeeds, why: CapabilityError) {
        let token = CAPABILITY.issue(&key());
        assert_eq!(
            Capability::verify(&token, &key(), now_ms, &wanted),
            Err(why)
        );
    }

    #[test]
    fn a_server_that_joins_gets_the_key_itself() {
        let secret: [u8; 32] = std::array::from_fn(|i| i as u8 + 3);
        assert_eq!(ClusterKey::new(secret).secret(), &secret);
    }

    #[test]
    fn good_token_is_accepted_until_it_expires() {
        let token = CAPABILITY.issue(&key());
        let verified = Capability::verify(&token, &key(), 1000, &WANTED);
        assert_eq!(verified, Ok(CAPABILITY));
        refused(1001, WANTED, CapabilityError::Expired);
    }

    #[test]
    fn every_reason_is_told_apart() {
        refused(
            0,
            RequestNeeds {
                file: FileId(8),
                ..WANTED
            },
            CapabilityError::WrongFile,
        );
        refused(
            0,
            RequestNeeds {
                client: ClientId(1),
                ..WANTED
            },
            CapabilityError::WrongClient,
        );
        refused(
            0,
            RequestNeeds {
                oldest_generation: 4,
                ..WANTED
            },
            CapabilityError::OldGeneration,
        );
        refused(
            0,
            RequestNeeds {
                rights: Rights::WRITE,
                ..WANTED
            },
            CapabilityError::InsufficientRights,
        );
        refused(
            0,
            RequestNeeds {
                rights: Rights::BOTH,
                ..WANTED
            },
            CapabilityError::InsufficientRights,
        );
    }

    #[test]
    fn any_changed_bit_is_noticed() {
        let token = CAPABILITY.issue(&key());
        for bit in 0..TOKEN_BYTES * 8 {
            let mut forged = token;
            forged[bit / 8] ^= 1 << (bit % 8);
            let expected = if bit < 8 {
                CapabilityError::Malformed
            } else {
                CapabilityError::Forged
            };
            assert_eq!(
                Capability::verify(&forged, &key(), 0, &WANTED),
                Err(expected),
                "bit {bit}"
            );
        }
        for len in 0..TOKEN_BYTES {
            assert_eq!(
                Capability::unseal(&token[..len], &key()),
                Err(CapabilityError::Malformed)
            );
        }
        let other = ClusterKey::new([6; 32]);
        assert_eq!(
            Capability::unseal(&token, &other),
            Err(CapabilityError::Forged)
        );
    }

    #[test]
    fn golden_token() {
        let token = CAPABILITY.issue(&key());
        let sealed = [
            1, 7, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 1, 11, 0, 0, 0, 0, 0, 0, 0, 0xe8, 3,
            0, 0, 0, 0, 0, 0,
        ];
        assert_eq!(token[..SEALED_BYTES], sealed);
        let hex: String = token[SEALED_BYTES..]
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect();
        assert_eq!(
            hex,
            "62b256b400a9ae5c1143cd5bd3bee1b211772bace61696e9215991d8c6f42ec7"
        );
    }

    #[test]
    fn session_is_for_one_client_and_user() {
        let of = SessionUser {
            user: 1000,
            named_by: NamedBy::Certificate,
        };
        let good = session(&key(), ClientId(7), of);
        assert_eq!(verify_session(&key(), ClientId(7), &good), Some(of));
        assert_eq!(verify_session(&key(), ClientId(8), &good), None);
        for i in 0..good.len() {
            let mut bad = good.clone();
            bad[i] ^= 1;
            assert_eq!(verify_session(&key(), ClientId(7), &bad), None, "byte {i}");
            assert_eq!(verify_session(&key(), ClientId(7), &good[..i]), None);
        }
    }

    #[test]
    fn seals_of_servers_are_their_own_and_the_cluster_s() {
        let seals = [0, 1, 2].map(|server| server_seal(&key(), ServerId(server)));
        assert_eq!(seals[1], server_seal(&key(), ServerId(1)));
        let other = server_seal(&ClusterKey::new([9; 32]), ServerId(1));
        let mut all = vec![seals[0], seals[1], seals[2], other, [0; 32], [1; 32]];
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 6, "no two are equal, and none is a constant");
    }

    #[test]
    fn key_is_not_printed() {
        assert_eq!(format!("{:?}", key()), "ClusterKey(..)");
    }
}
