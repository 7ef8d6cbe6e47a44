//! What the system tests share: services of real processes, and plain files to compare with.
//!
//! ```text
//!  test --- Service: pario serve meta, N x pario serve io      (kill -9, end, start again)
//!    |
//!    +----- Worker: processes with clients of their own        (driven line by line)
//!    |
//!    +----- PlainFile: what the bytes must be
//! ```
//!
//! | module | owns |
//! |---|---|
//! | `service`, `server`, `programs`, `process`, `waiting` | services of real processes, what the kernel says about them, and waiting |
//! | `worker`, `pounding`, `firing` | client processes, and what they are driven to do |
//! | `mounted` | directories on file systems of other kinds |
//! | `raw`, `relay` | a peer that speaks by hand, and a network that turns bits |
//! | `native` | libraries of the C interfaces, and programs compiled against them |
//! | `plain_file`, `files`, `seed` | what the bytes must be |
//! | `matrix`, `cases`, `covering`, `layouts`, `random_layout` | the matrix: few cases that meet everything |
//!
//! Programs are looked for beside the test's own: build them with `cargo build -p pario-cli -p
//! system-tests`. Everything here panics where a test should fail, and a test that fails prints what
//! its servers had to say. With `PARIO_KEEP=1` directories are left behind.
//!
//! Nothing that ships depends on it.
#![forbid(unsafe_code)]

pub mod cases;
pub mod covering;
pub mod files;
pub mod firing;
pub mod layouts;
pub mod matrix;
pub mod mounted;
pub mod native;
pub mod plain_file;
pub mod pounding;
pub mod process;
pub mod programs;
pub mod random_layout;
pub mod raw;
pub mod relay;
pub mod seed;
pub mod server;
pub mod service;
pub mod waiting;
pub mod worker;

pub use plain_file::PlainFile;
pub use relay::{Direction, Relay};
pub use seed::{Random, digest, pattern, pattern_byte};
pub use service::{Mode, Service, ServiceOptions, Store, Transport};
pub use testkit::TempDir;
pub use waiting::{pause, until};
pub use worker::{OpenHow, Worker, Workers};
