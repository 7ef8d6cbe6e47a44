//! Memory that a server shares with the clients of its host: control tables, client pages and
//! mapped segments.
#![allow(unsafe_code)]
