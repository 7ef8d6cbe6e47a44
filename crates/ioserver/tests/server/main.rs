//! An I/O server over real sockets, with a real metadata manager and a raw client.
//!
//! Everything runs in the test's process; what servers store is compared with a byte-by-byte oracle.

mod accesses;
mod ahead;
mod direct;
mod direct_marks;
mod direct_process;
mod direct_revoke;
mod directed;
mod failed_syncs;
mod gateway;
mod holds;
mod hostile;
mod hostile_views;
mod kept_ahead;
mod kinds;
mod life;
mod limits;
mod power;
mod punch;
mod rig;
mod rights;
mod sharer;
mod stalled;
mod write_behind;
