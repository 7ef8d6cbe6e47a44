//! A first use: an array in a directory, written by rows and read by columns. No service is needed.
//!
//! `cargo run -p pario --example first_use [DIRECTORY]`

fn main() -> pario::Result<()> {
    let directory = std::env::args().nth(1).unwrap_or_else(|| "demo".into());
    let pario = pario::connect(&format!("dir:{directory}"))?;
    let matrix = pario
        .create_array::<f64>("/matrix", &[8, 6])
        .replace()
        .layout("(block, *) onto 2")
        .create()?;

    for rank in 0..2 {
        let rows = matrix.part_of("(block, *) onto 2", rank)?;
        rows.write(&vec![rank as f64; rows.len()])?;
    }
    let columns = matrix.part("(*, block) onto 3 [1]")?;
    println!("columns {:?}: {:?}", columns.shape(), columns.read()?);

    let corner = matrix.region(&[3..5, 0..2])?;
    println!("corner {:?}: {:?}", corner.shape(), corner.read()?);
    matrix.sync()?;
    matrix.close()
}
