//! Teams: processes that find each other by name and exchange bytes, from Python.
//!
//! Everything that waits for others lets the interpreter go. A failure of one member is told to all of them.

use client::Team as Members;
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::buffer::Purpose;
use crate::connection::Connection;
use crate::error::{OrRaise, value};
use crate::file::bytes_of;
use crate::region::{Region, array_of};

/// A member of a team.
#[pyclass(frozen, module = "pario._native")]
pub(crate) struct Team(Mutex<Option<Members>>);

impl Team {
    pub(crate) fn team(&self) -> PyResult<Members> {
        let team = self.0.lock().clone();
        team.ok_or_else(|| value("the team is closed; join again"))
    }
}

fn told<'py>(py: Python<'py>, parts: &[Vec<u8>]) -> Vec<Bound<'py, PyBytes>> {
    parts.iter().map(|part| PyBytes::new(py, part)).collect()
}

#[pymethods]
impl Team {
    /// Joins; ranks are given in the order in which members come, or as they say.
    #[new]
    #[pyo3(signature = (connection, name, size, rank = None))]
    fn new(
        py: Python<'_>,
        connection: &Connection,
        name: &str,
        size: usize,
        rank: Option<usize>,
    ) -> PyResult<Team> {
        let client = connection.client()?;
        let team = py.detach(|| match rank {
            Some(rank) => Members::processes(&client, name, rank, size),
            None => Members::join(&client, name, size),
        });
        Ok(Team(Mutex::new(Some(team.or_raise()?))))
    }

    /// A team of one.
    #[staticmethod]
    fn alone() -> Team {
        Team(Mutex::new(Some(Members::alone())))
    }

    #[getter]
    fn rank(&self) -> PyResult<usize> {
        Ok(self.team()?.rank())
    }

    #[getter]
    fn size(&self) -> PyResult<usize> {
        Ok(self.team()?.size())
    }

    fn barrier(&self, py: Python<'_>) -> PyResult<()> {
        let team = self.team()?;
        py.detach(|| team.barrier()).or_raise()
    }

    /// What every member gives, by rank.
    fn allgather<'py>(&self, py: Python<'py>, bytes: &[u8]) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let team = self.team()?;
        let all = py.detach(|| team.allgather(bytes)).or_raise()?;
        Ok(told(py, &all))
    }

    /// Gives each member bytes of its own; what all give to this one, by rank.
    fn exchange<'py>(
        &self,
        py: Python<'py>,
        parts: Vec<Vec<u8>>,
    ) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let team = self.team()?;
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        let got = py.detach(|| team.exchange(&parts)).or_raise()?;
        Ok(told(py, &got))
    }

    fn close(&self, py: Python<'_>) {
        let team = self.0.lock().take();
        py.detach(|| drop(team));
    }
}

/// The plan that brings an array of a team from one layout into another, in memory.
#[pyclass(frozen, module = "pario._native")]
pub(crate) struct Redistribution(Mutex<client::Redistribution>);

#[pymethods]
impl Redistribution {
    /// Made by all members together.
    #[new]
    fn new(
        py: Python<'_>,
        team: &Team,
        array: &str,
        source: &str,
        target: &str,
    ) -> PyResult<Redistribution> {
        let team = team.team()?;
        let array = array_of(array)?;
        let rank = team.rank() as u64;
        let source = Region::of_layout(&array, source, rank)?.view()?;
        let target = Region::of_layout(&array, target, rank)?.view()?;
        let len = array.bytes();
        let plan = py.detach(|| client::Redistribution::new(&team, &source, &target, len));
        Ok(Redistribution(Mutex::new(plan.or_raise()?)))
    }

    /// Moves the bytes of this rank's part of the one into its part of the other, together with all members.
    fn run(&self, py: Python<'_>, from: &Bound<'_, PyAny>, to: &Bound<'_, PyAny>) -> PyResult<()> {
        let from = bytes_of(from, Purpose::Take)?;
        let mut to = bytes_of(to, Purpose::Fill)?;
        py.detach(|| self.0.lock().run(from.source(), to.target()))
            .or_raise()
    }
}
