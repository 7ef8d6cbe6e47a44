//! Who is who between hosts, and what becomes of those that are cut off.
//!
//! One machine plays the hosts: network namespaces around a switch, real servers and clients in them.
//! Without root there are none, and the tests count as skipped.

mod certified;
mod claims;
mod cut_off;
mod growth;
mod site;
