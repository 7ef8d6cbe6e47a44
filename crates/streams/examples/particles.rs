//! A particle code: every cell of a grid is a virtual processor, and writes the particles that are in it, step by step. Three
//! members write, two others read.
//!
//! `cargo run -p streams --example particles [DIRECTORY]`

use std::io::{Read, Write};

use client::{Client, ConnectOptions, Result, Team};
use streams::{Access, Context, Emulation, Shape, Stream, StreamOptions};

/// Particles of a cell in a step.
fn particles(cell: u64, step: u64) -> u64 {
    (cell * 7 + step * 3) % 5
}

/// Where a particle of a cell is.
fn place(cell: u64, step: u64, particle: u64) -> f64 {
    cell as f64 + step as f64 / 16.0 + particle as f64 / 256.0
}

fn write(client: &Client, team: &Team, grid: &Shape) -> Result<()> {
    let cells = Emulation::block(grid, team)?;
    let options = StreamOptions::new(Access::Write);
    let mut stream = Stream::open(client, team, "/particles", &cells, &options)?;
    let everywhere = Context::everywhere();
    for step in 0..8 {
        // How many there are is one number of every cell, so all cells go together ...
        let counts: Vec<u8> = (0..cells.count())
            .flat_map(|local| particles(cells.vp(local), step).to_le_bytes())
            .collect();
        stream.write(&everywhere, &counts, 8)?;
        // ... the particles are not.
        stream
            .elemental(&everywhere, |cell| {
                let number = cell.number();
                (0..particles(number, step))
                    .try_for_each(|n| cell.write_all(&place(number, step, n).to_le_bytes()))
            })
            .map_err(failed)?;
    }
    stream.close()
}

fn read(client: &Client, team: &Team, grid: &Shape) -> Result<u64> {
    // Another number of members, and another distribution.
    let cells = Emulation::new(grid, "(*, cyclic)", team)?;
    let options = StreamOptions::new(Access::Read);
    let mut stream = Stream::open(client, team, "/particles", &cells, &options)?;
    let mut found = 0;
    stream
        .elemental(&Context::everywhere(), |cell| {
            let number = cell.number();
            for step in 0..8 {
                let mut word = [0; 8];
                cell.read_exact(&mut word)?;
                let count = u64::from_le_bytes(word);
                assert_eq!(count, particles(number, step));
                for n in 0..count {
                    cell.read_exact(&mut word)?;
                    assert_eq!(f64::from_le_bytes(word), place(number, step, n));
                }
                found += count;
            }
            Ok(())
        })
        .map_err(failed)?;
    stream.close()?;
    Ok(found)
}

fn failed(error: std::io::Error) -> client::Error {
    client::Error::Argument {
        name: "particles",
        text: error.to_string(),
    }
}

fn members<T: Send>(count: usize, member: impl Fn(&Team) -> Result<T> + Sync) -> Result<Vec<T>> {
    let team = Team::threads(count);
    std::thread::scope(|scope| {
        let threads: Vec<_> = team.iter().map(|one| scope.spawn(|| member(one))).collect();
        let ended = threads.into_iter().map(|thread| thread.join());
        ended.map(|done| done.expect("no member panics")).collect()
    })
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let directory = std::env::args().nth(1).unwrap_or_else(|| "demo".into());
    let url = format!("dir:{directory}").parse()?;
    let client = embedded::connect(
        &url,
        ConnectOptions::from_env()?,
        &embedded::Options::from_env(),
    )?;
    let grid = Shape::new(&[12, 10])?;
    members(3, |team| write(&client, team, &grid))?;
    let found = members(2, |team| read(&client, team, &grid))?;
    let all: u64 = (0..grid.count())
        .map(|cell| (0..8).map(|step| particles(cell, step)).sum::<u64>())
        .sum();
    assert_eq!(found.iter().sum::<u64>(), all);
    println!(
        "{all} particles of {} cells, written by 3 members and read by 2",
        grid.count()
    );
    Ok(())
}
