//! A checkpoint: written under a name of its own, made durable, and put in the place of the last one in one step. Then it is
//! read again, and moved into the layout that its next reader wants.
//!
//! `cargo run -p pario --example checkpoint [URL]`

use pario::{Pario, Result};

const SHAPE: [u64; 3] = [16, 64, 64];

fn save(pario: &Pario, step: u64, state: &[f32]) -> Result<()> {
    let new = pario
        .create_array::<f32>("/checkpoints/new", &SHAPE)
        .replace()
        .layout("(block, *, *) onto 2")
        .create()?;
    new.write(state)?;
    let synced = new.sync()?;
    new.close()?;
    // A program that opens the name sees the last checkpoint or this one, nothing between.
    pario.rename("/checkpoints/new", "/checkpoints/last")?;
    println!("step {step} is saved, durable: {}", synced.is_durable);
    Ok(())
}

fn main() -> Result<()> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "dir:demo".into());
    let pario = pario::connect(&url)?;
    pario.make_directory("/checkpoints")?;
    let mut state = vec![0.0; SHAPE.iter().product::<u64>() as usize];
    for step in 1..=3 {
        state.iter_mut().for_each(|value| *value += 0.5);
        save(&pario, step, &state)?;
    }

    let last = pario.open_array::<f32>("/checkpoints/last")?;
    let mut relayout = last.relayout("(*, *, block) onto 2")?;
    let begun = relayout.progress()?;
    println!("moving, {:?}", begun.state);
    relayout.wait()?;
    println!("laid out as {}", last.layout()?.text);
    assert_eq!(last.region(&[3..4, 5..6, 0..64])?.read()?, [1.5; 64]);
    last.close()?;

    for entry in pario.list("/checkpoints")? {
        let entry = entry?;
        let size = pario.stat(&format!("/checkpoints/{}", entry.name))?.size;
        println!("{}: {size} bytes", entry.name);
    }
    Ok(())
}
