//! `pario-bench`, the program behind `pario bench`: see the library.
//! It lies beside `pario`, which it starts as a service.

use std::process::ExitCode;

fn main() -> ExitCode {
    bench::main()
}
