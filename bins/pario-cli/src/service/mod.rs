//! A service on this host as a set of processes: starting them, watching them, ending them, and the
//! file that says which they are.
//!
//! Left to others: what the processes do (`metaserver`, `ioserver`), and the command line.
//!
//! ```text
//! DIR/lock            held by the supervisor, or by a process that uses the directory without a service
//! DIR/service.json    which service runs here
//! DIR/log             what a detached service has to say
//! DIR/log.1           what it had to say before that
//! DIR/meta/           the catalogue
//! DIR/meta.sock       where clients connect, unless --listen says otherwise
//! DIR/io-K/           subfiles of disk server K
//! DIR/memory-K/       the number of memory server K, which has nothing else to keep
//! DIR/io-K.sock       where server K listens
//! ```

pub(crate) mod addresses;
pub(crate) mod contact;
pub(crate) mod inherited;
pub(crate) mod log;
pub(crate) mod metrics;
pub(crate) mod signals;
pub(crate) mod state;
pub(crate) mod supervisor;
pub(crate) mod target;
pub(crate) mod worker;
