//! Who is who between processes of a service: [secrets](Secret), [certificates](Tls), proofs, and how a
//! connection begins.
//!
//! | file | what it owns |
//! |---|---|
//! | `secret` | secrets, the files they come from, the proofs made with them |
//! | `channel` | how keys travel where others could read the connection |
//! | `acquaint` | the caller's side of an introduction |
//! | `certificate` | what a certificate says |
//! | `tls` | certificates of this process, and connections protected with them |
//! | `relay` | the thread behind a protected connection |
//! | `process` | how a process names itself and its host |
//!
//! Left to others: the listening side (`serving`), and what users may do (`metaserver`, `ioserver`).
#![forbid(unsafe_code)]

mod acquaint;
mod certificate;
mod channel;
mod process;
mod relay;
mod secret;
mod tls;

pub use acquaint::{Acquainted, connect, introduce, reach};
pub use certificate::{Certificate, CertificateError, Holder, Moment, is_user_name};
pub use channel::Channel;
pub use process::{boot, checksums, local_host, this_process};
pub use secret::{KEY_BYTES, Keys, Secret, proof, proof_of_server, random, read_private};
pub use tls::{Tls, TlsError, TlsFiles, certificates_in};
