//! The C interface as programs in C and C++ see it.
//!
//! | module | what is shown |
//! |---|---|
//! | `header` | header, list of symbols and Rust signatures say the same |
//! | `build` | the shared library, and programs compiled against it |
//! | `programs` | programs against a service of processes, and against a directory |
//! | `treadmarks` | programs written for TreadMarks, and parallel files under their memory |
//! | `hosts` | a team of processes on two hosts |
//! | `installed` | what is installed, and projects that are built against it |

mod build;
mod header;
mod hosts;
mod installed;
mod programs;
mod treadmarks;
