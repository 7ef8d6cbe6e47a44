//! Figures 6.1 to 6.9 as the equations give them: `model/fig6.1/PB-PRE/buffer=8192KiB`.
//!
//! Random workloads (an exponential time to compute before the request) are the mean of 1000 runs of a
//! generator with a fixed seed; figures 6.8 and 6.9 prefetch the whole file and half of it. The large-grained
//! figures 6.2, 6.4, 6.5 and 6.7 are known to reproduce in order and trend only.

use crate::models::figures::{BUFFERS, Workload, prefetch_figures};
use crate::models::prefetch::Prefetch;
use serde_json::json;

use crate::sheet::{Sheet, modelled};
use console::Error;

/// Runs of a random workload, as in the thesis.
const RUNS: u64 = 1000;

pub(super) fn add(sheet: &mut Sheet) -> Result<(), Error> {
    for figure in prefetch_figures() {
        let workload = match figure.workload {
            Workload::Random { .. } => "random",
            Workload::Whole => "whole",
            Workload::Half => "half",
        };
        for (how, printed) in Prefetch::ALL.into_iter().zip(figure.printed) {
            for (buffer, printed) in BUFFERS.into_iter().zip(printed) {
                let case = format!(
                    "model/fig{}/{}/buffer={}KiB",
                    figure.figure,
                    how.word(),
                    buffer >> 10
                );
                let none = |buffer| figure.model(Prefetch::None, buffer, 1);
                sheet.add(case, |case| {
                    let value = figure.model(how, buffer, RUNS);
                    let gain = (1000.0 * value / none(buffer)).round() / 1000.0;
                    let columns = [("workload", json!(workload)), ("of_none", json!(gain))];
                    modelled(case, value, Some(printed), &columns)
                })?;
            }
        }
    }
    Ok(())
}
