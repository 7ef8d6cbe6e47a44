//! Programs whose inputs lie in the file system, run with `PARIO_MPIIO=all`: what only the file system has is read where it
//! lies, what is created is Pario's. The program judges itself; here is where it runs.

use crate::launch::{Mode, Site};
use crate::mpi::Mpi;
use crate::programs;

#[test]
fn a_file_that_only_the_file_system_has_is_read_where_it_lies() {
    for mpi in Mpi::selected() {
        let site = Site::new(Mode::Service);
        let dir = site.dir().join("inputs");
        std::fs::create_dir(&dir).expect("a directory");
        let numbers: Vec<u8> = (0..3u64).flat_map(u64::to_le_bytes).collect();
        std::fs::write(dir.join("input"), numbers).expect("written");
        let program = programs::c(mpi, "inputs.c");
        let run = site.run(mpi, 3, program).argument(&dir);
        run.variable("PARIO_MPIIO", "all").holds();
    }
}
