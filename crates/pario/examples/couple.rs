//! Two coupled programs: a simulation with rows gives a field to an analysis with columns, step after step, without a file.
//! Neither knows how many processes the other has, nor how they divide the array.
//!
//! `cargo run -p pario --example couple [URL]` runs both, in processes of their own. By hand, each as often as it has members:
//! `couple URL simulation 2` and `couple URL analysis 3`.

use std::process::{Child, Command};

use pario::{Pario, Result, Team};

const SHAPE: [u64; 2] = [240, 180];
const STEPS: u32 = 6;

/// Rows of a field, each step another one.
fn simulation(pario: &Pario, team: &Team) -> Result<()> {
    let field = pario
        .channel::<f64>("temperature", &SHAPE)
        .double_buffered();
    let field = field.source(team, &format!("(block, *) onto {}", team.size()))?;
    let first = team.rank() as u64 * SHAPE[0].div_ceil(team.size() as u64) * SHAPE[1];
    for step in 0..STEPS {
        let value = |i: u64| (first + i) as f64 + f64::from(step) / 10.0;
        let values: Vec<f64> = (0..field.len() as u64).map(value).collect();
        // While the analysis still reads this step, the next one is computed.
        field.put(&values)?;
    }
    field.close()
}

/// Columns of it, of which the sum over all members is told.
fn analysis(pario: &Pario, team: &Team) -> Result<()> {
    let field = pario.channel::<f64>("temperature", &SHAPE);
    let field = field.target(team, &format!("(*, cyclic) onto {}", team.size()))?;
    let mut values = vec![0.0; field.len()];
    while let Some(step) = field.get_into(&mut values)? {
        let own: f64 = values.iter().sum();
        let all = team.all_reduce(&[own], pario::Reduction::Sum)?;
        if team.rank() == 0 {
            let mean = all[0] / (SHAPE[0] * SHAPE[1]) as f64;
            println!("step {step}: mean {mean:.3}");
        }
    }
    field.close()
}

/// Members of one of the programs.
fn start(url: &str, program: &str, size: usize) -> Vec<Child> {
    let this = std::env::current_exe().expect("the name of this program");
    let member = |_| {
        Command::new(&this)
            .args([url, program, &size.to_string()])
            .spawn()
    };
    let all: std::io::Result<Vec<Child>> = (0..size).map(member).collect();
    all.expect("members start")
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().unwrap_or_else(|| "dir:demo".into());
    let program = arguments.next();
    let size: usize = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(1);
    let pario = pario::connect(&url)?;
    match program.as_deref() {
        Some("simulation") => simulation(&pario, &pario.join_team("simulation", size)?),
        Some(_) => analysis(&pario, &pario.join_team("analysis", size)?),
        None => {
            let both = [start(&url, "simulation", 2), start(&url, "analysis", 3)];
            for mut member in both.into_iter().flatten() {
                assert!(member.wait().expect("it was started").success());
            }
            Ok(())
        }
    }
}
