//! How keys travel between two processes that have got acquainted.
//!
//! On a Unix socket and under TLS nobody else can read the connection, and a key travels as it is. On plain
//! TCP it is masked with, and sealed under, a key that follows from the secret of the servers, the challenge
//! and the nonce of this connection. A listener that recorded the connection learns nothing without the secret, and
//! what he sends again on another one does not fit.
//!
//! ```text
//!  under = seal(secret, "wrap", challenge, hello)
//!  0                                32                              64
//!  | key xor seal(under, "mask", name) | seal(under, "end", name, left) |
//! ```

use std::fmt;

use control::capability::{seal, seals_equal};
use wire::message::session::Hello;

use crate::secret::{KEY_BYTES, Secret, sealed};

/// What keys travel in: as they are where nobody else can read the connection, and wrapped elsewhere.
#[derive(Clone, Default)]
pub struct Channel(Option<[u8; KEY_BYTES]>);

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Some(_) => "Channel(wrapped)",
            None => "Channel(private)",
        })
    }
}

impl Channel {
    /// Of a connection that nobody else can read.
    pub fn private() -> Channel {
        Channel(None)
    }

    /// Of a connection that others could read, between two ends that know a secret.
    pub fn wrapped(secret: &Secret, challenge: &[u8], hello: &Hello) -> Channel {
        Channel(Some(sealed(secret, b"wrap", challenge, hello)))
    }

    /// A key as it travels. One name is for one key of a connection.
    pub fn wrap(&self, name: &str, key: &[u8; KEY_BYTES]) -> Vec<u8> {
        let Some(under) = &self.0 else {
            return key.to_vec();
        };
        let mut out = masked(under, name, key).to_vec();
        let end = seal(under, &[b"end", name.as_bytes(), &out]);
        out.extend(end);
        out
    }

    /// The key of what came; nothing if it was made with another secret.
    pub fn unwrap(&self, name: &str, bytes: &[u8]) -> Option<[u8; KEY_BYTES]> {
        let Some(under) = &self.0 else {
            return bytes.try_into().ok();
        };
        let (body, end) = bytes.split_first_chunk::<KEY_BYTES>()?;
        let right = seal(under, &[b"end", name.as_bytes(), body]);
        seals_equal(end, &right).then(|| masked(under, name, body))
    }
}

fn masked(under: &[u8; KEY_BYTES], name: &str, key: &[u8; KEY_BYTES]) -> [u8; KEY_BYTES] {
    let mask = seal(under, &[b"mask", name.as_bytes()]);
    std::array::from_fn(|i| mask[i] ^ key[i])
}
