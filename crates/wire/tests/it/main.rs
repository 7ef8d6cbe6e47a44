//! Messages, frames and links from outside, hostile bytes among them.
//! One program: each further one would be linked, and optimised, for itself.

mod golden_frames;
mod harness;
mod hostile;
mod hostile_messages;
mod kinds;
mod link;
mod link_states;
mod round_trip;
mod samples;
