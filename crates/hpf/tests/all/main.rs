//! Programs translated, compiled by gfortran with all checks, and run by several processes and by one.
//!
//! | module | what is shown |
//! |---|---|
//! | `programs` | whole programs run |
//! | `statements` | single statements, what is refused and where, what stays as it is |
//! | `distributions` | all small distributions, through a translated program |

mod distributions;
mod programs;
mod statements;
