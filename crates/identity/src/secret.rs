//! Secrets: what the users of a service know, and what its servers know.
//!
//! A secret comes from a file that nobody but its owner can use; what is kept of it is a seal, so that
//! any text is as good as random bytes of the right length. The contents are never printed.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use control::capability::seal;
use wire::message::Field;
use wire::message::session::{Hello, Role};

use crate::tls::Tls;

/// Bytes of nonces, challenges and keys.
pub const KEY_BYTES: usize = 32;
/// Longest file that is read as a secret.
const MAX_SECRET_BYTES: u64 = 64 << 10;

/// What the processes of a service on several hosts share.
#[derive(Clone)]
pub struct Secret([u8; KEY_BYTES]);

impl Secret {
    /// From the contents of a file that nobody but its owner can read: anything of at least 16 bytes,
    /// surrounding white space aside.
    pub fn read(path: &Path) -> io::Result<Secret> {
        let bytes = read_private(path)?;
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

/// The contents of a file that group and others cannot touch. A user who could read it has read it, so a file
/// with a looser mode is refused rather than believed.
pub fn read_private(path: &Path) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let mode = file.metadata()?.mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!(
                "{0}: others than its owner can use it (mode {mode:04o}); run `chmod 600 {0}`, and make \
                 a new one if somebody may have read it",
                path.display()
            ),
        ));
    }
    let mut bytes = Vec::new();
    file.take(MAX_SECRET_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// What a process can show to others, and wants to be shown by them.
#[derive(Clone, Debug, Default)]
pub struct Keys {
    /// What the users of the service know.
    pub user: Option<Secret>,
    /// What its servers know.
    pub server: Option<Secret>,
    /// Certificates; with them connections over TCP are under TLS, and no secret is asked for.
    pub tls: Option<Tls>,
}

impl Keys {
    /// Those of a process that has the secret of users.
    pub fn of_user(secret: Option<Secret>) -> Keys {
        Keys {
            user: secret,
            ..Keys::default()
        }
    }

    /// The secret that a process in this role has to know.
    pub fn secret_for(&self, role: &Role) -> Option<&Secret> {
        match role {
            Role::NewClient | Role::Client { .. } => self.user.as_ref(),
            Role::NewServer | Role::Server { .. } => self.server.as_ref(),
        }
    }
}

pub(crate) fn sealed(
    secret: &Secret,
    word: &[u8],
    challenge: &[u8],
    hello: &Hello,
) -> [u8; KEY_BYTES] {
    let mut said = Vec::new();
    hello.put(&mut said);
    seal(&secret.0, &[word, challenge, &said])
}

/// What proves knowledge of the secret to the sender of the challenge.
pub fn proof(secret: &Secret, challenge: &[u8], hello: &Hello) -> [u8; KEY_BYTES] {
    sealed(secret, b"caller", challenge, hello)
}

/// What proves the same to the process that said hello.
pub fn proof_of_server(secret: &Secret, challenge: &[u8], hello: &Hello) -> [u8; KEY_BYTES] {
    sealed(secret, b"server", challenge, hello)
}

/// 32 bytes that nobody can guess.
pub fn random() -> [u8; KEY_BYTES] {
    let mut bytes = [0; KEY_BYTES];
    let mut filled = 0;
    while filled < bytes.len() {
        match rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty()) {
            Ok(n) => filled += n,
            Err(rustix::io::Errno::INTR) => {}
            Err(e) => panic!("the kernel gives no random bytes: {e}"),
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_file_that_others_can_use_is_no_secret() {
        let dir = std::env::temp_dir().join(format!("pario-secret-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join("secret");
        std::fs::write(&path, "sixteen bytes at least\n").unwrap();
        for mode in [0o644, 0o640, 0o604, 0o620, 0o601, 0o666] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let error = Secret::read(&path).unwrap_err();
            let text = error.to_string();
            let remedy = format!("`chmod 600 {}`", path.display());
            assert!(text.contains(&remedy), "{mode:o}: {text}");
            assert!(text.contains(&format!("{mode:04o}")), "{text}");
        }
        for mode in [0o600, 0o400] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(format!("{:?}", Secret::read(&path).unwrap()), "Secret(..)");
        }
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
