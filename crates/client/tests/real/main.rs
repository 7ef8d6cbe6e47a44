//! The client against real servers, in threads of the test, over Unix sockets in a temporary directory.
//!
//! What the service with scripts cannot show: names, permissions, sizes between clients, locks,
//! several threads at once, and servers that really go away.

mod access_modes;
mod ahead;
mod behind;
mod beside;
mod bytes;
mod calibration;
mod channels;
mod collective;
mod collective_ahead;
mod direct;
mod direct_changes;
mod directed;
mod distribution;
mod exchange;
mod exchange_deaths;
mod exchange_hosts;
mod expected;
mod first_touch;
mod growth;
mod hints;
mod host_teams;
mod many;
mod mapping;
mod memory;
mod moves;
mod names;
mod profile;
mod punch;
mod service;
mod sieving;
mod stamped;
mod subfiles;
mod threads;
mod write_through;
