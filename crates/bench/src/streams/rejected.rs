//! The file models that the source rejects (B-01 to B-05), the access modes that change meaning (C-01 to C-03), and cells as
//! Vesta has them: each writes the same bytes of the same VPs, by the calls that a program would use.
//!
//! Ways that go VP by VP do a part of the work; `share` says which.

use std::io::SeekFrom;
use std::time::Instant;

use client::{File, OpenOptions, Result, Team, View};
use console::refused;
use layout::{ArrayType, ElementType, FileOffset, Layout, Order};
use streams::{Mode, ScalarFile};

use super::lab::{Check, Lab, Trial, Way};
use super::{BYTES, mean};
use crate::contest::Outcome;
use crate::report::{Row, digits};
use crate::sheet::Sheet;

/// VPs that ways have which go VP by VP.
const FEW: u64 = 256;

/// How a model writes; what part of the work it did.
type Model = fn(&Lab, &Team, usize) -> Result<f64>;

const MODELS: [(&str, Model); 9] = [
    ("B-01", element_loop),
    ("B-02", global_view),
    ("B-03", local_view),
    ("B-04", file_of_each_member),
    ("B-05", file_of_each_vp),
    ("C-01", shared_pointer),
    ("C-02", in_turn),
    ("C-03", own_pointers),
    ("cells", cells),
];

/// Measures all models, and Pario in the mode that a program of them would run in.
pub(super) fn run(
    lab: &Lab,
    turns: u64,
    sheet: &mut Sheet,
) -> std::result::Result<(), console::Error> {
    for call in [8, BYTES] {
        let mut own = Vec::new();
        let trial = Trial::write("NB", "/own", lab.options(Mode::Nb), call, Way::Scalar);
        let mut times = vec![Vec::new(); MODELS.len()];
        let wanted = |name: &str| sheet.wants(&format!("rejected/c={call}/{name}"));
        let some: Vec<usize> = (0..MODELS.len())
            .filter(|at| wanted(MODELS[*at].0))
            .collect();
        if some.is_empty() {
            continue;
        }
        for turn in 0..=turns {
            let keep = |list: &mut Vec<f64>, seconds: f64| {
                if turn > 0 {
                    list.push(seconds);
                }
            };
            keep(&mut own, lab.time(&trial, Check::Nothing).map_err(refused)?);
            for &at in &some {
                let begin = Instant::now();
                let shares = lab.members(|team| MODELS[at].1(lab, team, call));
                let spent = begin.elapsed().as_secs_f64();
                let share = shares.map_err(refused)?.into_iter().fold(0.0, f64::max);
                keep(&mut times[at], spent / share);
            }
        }
        let median = |times: &[f64]| Outcome::of(times.to_vec()).map_or(0.0, |o| o.median);
        for &at in &some {
            let (seconds, interval) = mean(&times[at]);
            let rate = lab.bytes() as f64 / seconds / 1e6;
            let case = format!("rejected/c={call}/{}", MODELS[at].0);
            let mut row = Row::new(case, rate, "MB/s");
            // Pario by the model: above 1 Pario is better.
            row.ratios.push(("NB", median(&times[at]) / median(&own)));
            row.set("ci95", digits(interval, 3));
            sheet.push(row)?;
        }
    }
    Ok(())
}

/// A file of one member, from nothing on, as streams begin.
fn own_file(lab: &Lab, path: &str) -> Result<File> {
    let file = lab
        .client
        .open(path, &OpenOptions::new().write().create())?;
    file.resize(0)?;
    Ok(file)
}

/// A file of all members, from nothing on.
fn common_file(lab: &Lab, team: &Team, path: &str) -> Result<File> {
    let options = OpenOptions::new().write().create();
    let file = lab.client.open_together(team, path, &options)?;
    if team.rank() == 0 {
        file.resize(0)?;
    }
    team.barrier()?;
    Ok(file)
}

/// B-01: a scalar file; every element becomes a scalar, which all members have, and one of them writes it.
fn element_loop(lab: &Lab, team: &Team, call: usize) -> Result<f64> {
    let file = ScalarFile::open(
        &lab.client,
        team,
        "/b01",
        &OpenOptions::new().write().create(),
    )?;
    let memory = lab.source(team, call);
    let per_member = lab.shape.count() / team.size() as u64;
    for vp in 0..FEW {
        let owner = (vp * team.size() as u64 / FEW) as usize;
        let local = (vp % (FEW / team.size() as u64).max(1)).min(per_member - 1) as usize;
        let element = team.broadcast(owner, &memory[local * call..][..call])?;
        file.write(&element)?;
    }
    file.close()?;
    Ok(FEW as f64 / lab.shape.count() as f64 / (BYTES / call) as f64)
}

/// The view of a member's block in a row of all VPs' elements, again and again.
fn rows_view(lab: &Lab, team: &Team, call: usize) -> Result<View> {
    let vps = vec![lab.shape.count()];
    let array = ArrayType::new(ElementType::Bytes(call as u64), vps, Order::C)?;
    let layout: Layout = format!("(block) onto {}", team.size()).parse()?;
    let set = layout.on_array(&array)?.element(team.rank() as u64)?;
    Ok(View::new(FileOffset(0), array.bytes(), set)?)
}

/// B-02: one stream, global view: all elements of a variable in one transfer.
fn global_view(lab: &Lab, team: &Team, call: usize) -> Result<f64> {
    let file = common_file(lab, team, "/b02")?;
    file.set_view(&rows_view(lab, team, call)?)?;
    let memory = lab.source(team, call);
    let places = client::Places::bytes(memory.len() as u64);
    for round in 0..BYTES / call {
        let bytes = client::SharedBytes::from_slice(memory);
        file.write_at_all(team, (round * memory.len()) as u64, bytes, 0, &places)?;
    }
    file.sync()?;
    file.close()?;
    Ok(1.0)
}

/// B-03: one stream, local view: active VPs append what they have, of a size of its own, behind their predecessors. A member knows
/// where it goes only when the one before it does.
fn local_view(lab: &Lab, team: &Team, call: usize) -> Result<f64> {
    let file = common_file(lab, team, "/b03")?;
    let memory = lab.source(team, call);
    let (rank, size) = (team.rank(), team.size());
    let mut begin = 0u64;
    let few = (FEW as usize / size).max(1);
    for _ in 0..BYTES / call {
        if rank > 0 {
            let bytes = team.receive(Some(rank - 1), Some(3))?.bytes;
            begin = bytes.try_into().map_or(0, u64::from_le_bytes);
        }
        // Element by element: where each goes depends on what those before it had.
        for element in memory.chunks(call).take(few) {
            file.write_at(begin, element)?;
            begin += element.len() as u64;
        }
        if rank + 1 < size {
            team.send(rank + 1, 3, &begin.to_le_bytes())?;
        }
        let last = team.broadcast(size - 1, &begin.to_le_bytes())?;
        begin = last.try_into().map_or(0, u64::from_le_bytes);
    }
    file.sync()?;
    file.close()?;
    Ok((few * size) as f64 / lab.shape.count() as f64)
}

/// B-04: a file of each member.
fn file_of_each_member(lab: &Lab, team: &Team, call: usize) -> Result<f64> {
    let file = own_file(lab, &format!("/b04-{}", team.rank()))?;
    let memory = lab.source(team, call);
    for _ in 0..BYTES / call {
        file.write(memory)?;
    }
    file.sync()?;
    file.close()?;
    Ok(1.0)
}

/// B-05: a file of each VP, open from the first call to the last.
fn file_of_each_vp(lab: &Lab, team: &Team, call: usize) -> Result<f64> {
    let few = (FEW as usize / team.size()).max(1);
    let files: Result<Vec<File>> = (0..few)
        .map(|vp| own_file(lab, &format!("/b05-{}-{vp}", team.rank())))
        .collect();
    let (files, memory) = (files?, lab.source(team, call));
    for _ in 0..BYTES / call {
        for (file, element) in files.iter().zip(memory.chunks(call)) {
            file.write(element)?;
        }
    }
    files.iter().try_for_each(|file| {
        file.sync()?;
        file.close()
    })?;
    Ok((few * team.size()) as f64 / lab.shape.count() as f64)
}

/// C-01: one pointer and the same data: what all members have goes to the file once.
fn shared_pointer(lab: &Lab, team: &Team, call: usize) -> Result<f64> {
    let file = ScalarFile::open(
        &lab.client,
        team,
        "/c01",
        &OpenOptions::new().write().create(),
    )?;
    let memory = lab.source(team, call);
    for _ in 0..BYTES / call {
        for owner in 0..team.size() {
            let all = team.broadcast(owner, memory)?;
            file.write(&all)?;
        }
    }
    file.close()?;
    Ok(1.0)
}

/// C-02: all members meet, and write in the order of their ranks.
fn in_turn(lab: &Lab, team: &Team, call: usize) -> Result<f64> {
    let file = common_file(lab, team, "/c02")?;
    let memory = lab.source(team, call);
    let row = lab.shape.count() * call as u64;
    let mine = row / team.size() as u64 * team.rank() as u64;
    for round in 0..(BYTES / call) as u64 {
        for rank in 0..team.size() {
            if rank == team.rank() {
                file.write_at(round * row + mine, memory)?;
            }
            team.barrier()?;
        }
    }
    file.sync()?;
    file.close()?;
    Ok(1.0)
}

/// C-03: a pointer of each member, who looks after where it goes.
fn own_pointers(lab: &Lab, team: &Team, call: usize) -> Result<f64> {
    let file = common_file(lab, team, "/c03")?;
    let memory = lab.source(team, call);
    let row = lab.shape.count() * call as u64;
    let mine = row / team.size() as u64 * team.rank() as u64;
    for round in 0..(BYTES / call) as u64 {
        file.seek(SeekFrom::Start(round * row + mine))?;
        file.write(memory)?;
    }
    file.sync()?;
    file.close()?;
    Ok(1.0)
}

/// Cells of Vesta: a member opens its partition of the file, and sees one stream of it.
fn cells(lab: &Lab, team: &Team, call: usize) -> Result<f64> {
    let file = common_file(lab, team, "/cells")?;
    file.set_view(&rows_view(lab, team, call)?)?;
    let memory = lab.source(team, call);
    for round in 0..BYTES / call {
        file.write_at((round * memory.len()) as u64, memory)?;
    }
    file.sync()?;
    file.close()?;
    Ok(1.0)
}
