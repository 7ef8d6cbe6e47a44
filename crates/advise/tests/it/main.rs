//! Costs, hints, placement and recommendations from outside.
//! One program: each further one would be linked, and optimised, for itself.

mod cost;
mod hints;
mod hostile_views;
mod mapping;
mod place;
mod predict;
mod profile;
mod recommend;
mod views;
