//! The loop of source 003: every node reads its band of rows and one row more on each side, again and again.
//!
//! One host per node, with its server and its process. What counts is the share of the bytes that come from the
//! nearest server: before, after one observed run and `advise --apply`, and with a template on another file.

use std::cell::RefCell;

use console::Error;
use serde_json::{Value, json};
use testkit::hosts::Hosts;

use super::{MeasuredLayout, Run, short};
use crate::contest::{Effort, contest_of};
use crate::site::{ServiceSpec, Site, hosts, spread};
use crate::workers::{Path, Team};
use crate::{Row, digits};

/// Hosts of the loop of source 003.
const NODES: usize = 4;

impl Run<'_> {
    /// SOR: every node reads its band of rows and one row more on each side, again and again.
    pub(super) fn sor(&mut self) -> Result<(), Error> {
        // A band has at least 200 rows. With a quarter of that the rows at its edges are 3 in 100 of what is read, and a
        // layout that moves them to spare messages is good advice with less than 0.95 at the nearest server.
        let (rows, columns) = if self.is_tiny {
            (800_u64, 512_u64)
        } else {
            (2000, 1000)
        };
        let rate = Some(if self.is_tiny { 1000 } else { 400 });
        let hosts = hosts(NODES, rate)?;
        let spread = spread(&hosts, NODES, (0..NODES).collect());
        let array = format!("f32[{rows},{columns}]");
        let bytes = rows * columns * 4;
        let site = Site::start(&ServiceSpec::memory(NODES, bytes * 8), Some(&spread))?;
        let cli = Inside {
            hosts: &hosts,
            site: &site,
        };
        let places: Vec<usize> = (0..NODES).collect();
        let band = |rank: usize| {
            let (rank, n) = (rank as u64, NODES as u64);
            let first = (rank * rows / n).saturating_sub(1);
            let end = ((rank + 1) * rows / n + 1).min(rows);
            format!("slice[{first}:{end}, :]")
        };
        let start = || -> Result<Team, Error> {
            let mut team = Team::start(&site, NODES, Path::Socket, Some((&hosts, &places)))?;
            team.parts(&array, 5, band)?;
            Ok(team)
        };
        let open = |team: &mut Team, file: &str| team.open(file, &format!("/{file}"), "");
        // A run of a few rounds, and the share of its bytes that is at the nearest server.
        let observe = |team: &mut Team, file: &str| -> Result<f64, Error> {
            let path = format!("/{file}");
            team.every(&json!({ "do": "close", "name": file }))?;
            cli.pario(&["profile", &path, "--clear"])?;
            open(team, file)?;
            for _ in 0..3 {
                team.read(file)?;
            }
            team.every(&json!({ "do": "close", "name": file }))?;
            let found: Value = serde_json::from_str(&cli.pario(&["profile", &path, "--json"])?)?;
            open(team, file)?;
            Ok(found["near_share"].as_f64().unwrap_or(0.0))
        };
        let apply = |file: &str| -> Result<String, Error> {
            let path = format!("/{file}");
            let said = cli.pario(&["advise", &path, "--apply", "--force", "--json"])?;
            let found: Value = serde_json::from_str(&said)?;
            Ok(found["moved"].as_str().unwrap_or("not moved").to_owned())
        };
        let mut team = start()?;
        let interleaved = format!("striped(4KiB) over {NODES}");
        for file in ["sor", "before", "other"] {
            team.create(file, &format!("/{file}"), &interleaved)?;
            team.fill(file)?;
        }
        let before = observe(&mut team, "sor")?;
        let template = site.scratch("sor.template").display().to_string();
        cli.pario(&["profile", "/sor", "--export", &template])?;
        // One observed run is enough to move it.
        let layout = apply("sor")?;
        let after = observe(&mut team, "sor")?;
        // The template of the first file, for another that nobody has learned anything about.
        cli.pario(&["profile", "/other", "--import", &template])?;
        apply("other")?;
        let templated = observe(&mut team, "other")?;
        let teams = [RefCell::new(team)];
        let mut measured = [
            MeasuredLayout::new(&teams, vec!["sor".into()], "read"),
            MeasuredLayout::new(&teams, vec!["before".into()], "read"),
        ];
        let effort = Effort::new(self.effort.turns, 0.0);
        let outcomes = contest_of(effort, &mut measured);
        let (now, then) = (
            outcomes[0].ok_or("it did not run")?,
            outcomes[1].ok_or("it did not run")?,
        );
        let mut row = Row::rate(format!("sor/servers={NODES}"), bytes, now);
        row.ratios.push(("before", then.best / now.best));
        row.set("near_before", digits(before, 3));
        row.set("near_after", digits(after, 3));
        row.set("near_template", digits(templated, 3));
        row.set("layout", short(&layout));
        self.sheet.push(row)
    }
}

/// Commands on the host of the metadata manager: this one reaches none of them.
struct Inside<'a> {
    hosts: &'a Hosts,
    site: &'a Site,
}

impl Inside<'_> {
    fn pario(&self, arguments: &[&str]) -> Result<String, Error> {
        let program = console::site::program("pario");
        let mut command = self.hosts.command(NODES, &program);
        command.args(["--url", self.site.url()]).args(arguments);
        if let Some(secret) = &self.site.secret {
            command.env("PARIO_SECRET", secret);
        }
        let output = command.stdin(std::process::Stdio::null()).output()?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(format!("pario {}: {}", arguments.join(" "), said.trim()).into())
    }
}
