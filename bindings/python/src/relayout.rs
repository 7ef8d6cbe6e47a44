//! A move of a file into another layout, followed from Python.
//!
//! The service moves; a program that goes away changes nothing about it. Waiting looks for signals, so that Ctrl-C ends the
//! waiting and not the move.

use client::{Error, MoveState, Progress, Relayout as Move, Status};
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::{OrRaise, raised};

/// A move under way.
#[pyclass(frozen, module = "pario._native")]
pub(crate) struct Relayout(Mutex<Move>);

fn word(state: MoveState) -> &'static str {
    match state {
        MoveState::Moving => "moving",
        MoveState::Done => "done",
        MoveState::Failed => "failed",
        MoveState::Paused => "paused",
        MoveState::Waiting => "waiting",
        MoveState::Cancelling => "cancelling",
        MoveState::Cancelled => "cancelled",
    }
}

fn told<'py>(py: Python<'py>, progress: &Progress) -> PyResult<Bound<'py, PyDict>> {
    let facts = PyDict::new(py);
    facts.set_item("state", word(progress.state))?;
    facts.set_item("is_over", progress.state.is_over())?;
    facts.set_item("moved_bytes", progress.moved_bytes)?;
    facts.set_item("total_bytes", progress.total_bytes)?;
    facts.set_item("rate_bytes", progress.rate_bytes)?;
    facts.set_item("failure", &progress.failure)?;
    Ok(facts)
}

impl Relayout {
    pub(crate) fn of(begun: Move) -> Relayout {
        Relayout(Mutex::new(begun))
    }
}

#[pymethods]
impl Relayout {
    /// How far it has come; a move that cannot go on raises.
    fn progress<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let progress = py.detach(|| self.0.lock().progress()).or_raise()?;
        if progress.state == MoveState::Failed {
            return Err(raised(Error::Refused {
                status: Status::Io,
                text: format!("the move cannot go on: {}", progress.failure),
                server: None,
            }));
        }
        told(py, &progress)
    }

    fn pause<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let progress = py.detach(|| self.0.lock().pause()).or_raise()?;
        told(py, &progress)
    }

    fn resume<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let progress = py.detach(|| self.0.lock().resume()).or_raise()?;
        told(py, &progress)
    }

    fn cancel<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let progress = py.detach(|| self.0.lock().cancel()).or_raise()?;
        told(py, &progress)
    }
}
