//! Layouts from outside: arrays, MPI datatypes, the language, golden cases.
//! One program: each further one would be linked, and optimised, for itself.

mod access_desc;
mod arrays;
mod cuts;
mod directives;
mod language;
mod mpi;
mod mpi_arrays;
mod ownership;
mod partition;
mod sequence;
mod type_maps;
mod vectors;
