//! A team of threads writes a matrix by blocks of rows and reads it back by blocks of columns, all together.
//!
//! `cargo run -p pario --example transpose [URL]`. With processes instead of threads each of them connects and joins by
//! name: `pario.team("transpose", rank, size)`.

use pario::{Pario, Result, Team};

const RANKS: usize = 4;
const ROWS: u64 = 512;
const COLUMNS: u64 = 768;

/// What one member does: rows in, columns out.
fn member(pario: &Pario, team: &Team) -> Result<f64> {
    let matrix = pario
        .create_array::<f64>("/transposed", &[ROWS, COLUMNS])
        .replace()
        .create_together(team)?;
    // The layout was left to the service: these parts become the subfiles.
    let rows = matrix.part_of(&format!("(block, *) onto {RANKS}"), team.rank())?;
    let rows = rows.join(team)?;
    let first = rows.len() * team.rank();
    let values: Vec<f64> = (first..first + rows.len()).map(|k| k as f64).collect();
    rows.write(&values)?;
    team.barrier()?;

    let columns = matrix.part_of(&format!("(*, block) onto {RANKS}"), team.rank())?;
    let values = columns.read_together(team)?;
    let width = COLUMNS as usize / RANKS;
    for (k, value) in values.iter().enumerate() {
        let (row, column) = (k / width, team.rank() * width + k % width);
        assert_eq!(*value, (row * COLUMNS as usize + column) as f64);
    }
    matrix.close()?;
    Ok(values.iter().sum())
}

fn main() -> Result<()> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "dir:demo".into());
    let pario = pario::connect(&url)?;
    let team = Team::threads(RANKS);
    let sums: Vec<Result<f64>> = std::thread::scope(|scope| {
        let threads = team.iter().map(|team| {
            let pario = &pario;
            scope.spawn(move || member(pario, team))
        });
        let threads: Vec<_> = threads.collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| thread.join().expect("no panic");
        threads.into_iter().map(join).collect()
    });
    let sum: f64 = sums.into_iter().sum::<Result<f64>>()?;
    println!("{RANKS} threads read {ROWS} x {COLUMNS} values by columns, their sum is {sum}");
    Ok(())
}
