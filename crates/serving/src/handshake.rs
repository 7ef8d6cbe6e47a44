//! The secret between hosts, and how a peer proves that it knows it.
//!
//! The secret itself never travels: the server sends random bytes, the peer seals them together with
//! what it said about itself.

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

use control::capability::seal;
use wire::message::{Field, session::Hello};

/// What the processes of a service on several hosts share.
#[derive(Clone)]
pub struct Secret([u8; 32]);

impl Secret {
    /// From the contents of a file: anything of at least 16 bytes, surrounding white space aside.
    pub fn read(path: &Path) -> io::Result<Secret> {
        let bytes = fs::read(path)?;
        let text = bytes.trim_ascii();
        if text.len() < 16 {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!(
                    "{}: a secret has at least 16 bytes; make one with `head -c 32 /dev/urandom | base64`",
                    path.display()
                ),
            ));
        }
        Ok(Secret::new(text))
    }

    /// From any bytes.
    pub fn new(bytes: &[u8]) -> Secret {
        Secret(seal(b"pario secret", &[bytes]))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// What proves knowledge of the secret to whoever sent the challenge.
pub fn proof(secret: &Secret, challenge: &[u8], hello: &Hello) -> [u8; 32] {
    let mut said = Vec::new();
    hello.put(&mut said);
    seal(&secret.0, &[challenge, &said])
}
