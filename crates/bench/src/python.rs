//! `pario bench python`: slices of one array in Python, read and written by Pario and by zarr-python, h5py, tensorstore and `numpy.memmap` in turns
//! of one process (`yardsticks/arrays.py`).
//!
//! The interpreter is the one that `PARIO_PYTHON` names, else that of `.venv`; the package `pario` has to be installed in it, or be in
//! `target/python`, where `scripts/test-python` puts it. A library that is not installed there is absent, with the reason on standard error.
//!
//! What is written stays with the system on all sides: nothing is made durable.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use clap::Args;
use console::Error;
use serde_json::Value;

use super::report::{Row, rounded};
use super::sheet::Sheet;
use super::yardsticks;

/// Arguments of `pario bench python`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Arguments {
    /// Folder for the files of all sides [default: one in /dev/shm, which is memory]
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

const YARDSTICKS: [&str; 5] = ["memmap", "zarr", "h5py", "h5py-chunked", "tensorstore"];

/// Runs the benchmark.
pub(crate) fn run(arguments: &Arguments, sheet: &mut Sheet) -> Result<(), Error> {
    let interpreter = std::env::var_os("PARIO_PYTHON").map(PathBuf::from);
    let roots = yardsticks::roots();
    let interpreter = interpreter
        .or_else(|| {
            let all = roots.iter().map(|root| root.join(".venv/bin/python"));
            all.into_iter().find(|path| path.exists())
        })
        .ok_or("no Python: make setup makes .venv, or name one with PARIO_PYTHON")?;
    let base = arguments.folder.clone();
    let base = base.unwrap_or_else(|| match PathBuf::from("/dev/shm") {
        memory if memory.is_dir() => memory,
        _ => std::env::temp_dir(),
    });
    let folder = Folder(base.join(format!("pario-bench-python-{}", std::process::id())));
    let statistic = if sheet.is_quick() {
        "best of 3"
    } else {
        "best of 9"
    };
    sheet.begin("python", "GB/s", statistic);
    let mut command = Command::new(&interpreter);
    command
        .arg("-c")
        .arg(include_str!("../yardsticks/arrays.py"))
        .arg(&folder.0);
    if sheet.is_quick() {
        command.arg("quick");
    }
    let package = roots.iter().map(|root| root.join("target/python"));
    if let Some(package) = package.into_iter().find(|path| path.is_dir()) {
        command.env("PYTHONPATH", package);
    }
    command.env("OMP_NUM_THREADS", "1").stdout(Stdio::piped());
    let mut child = command
        .spawn()
        .map_err(|error| format!("cannot start {}: {error}", interpreter.display()))?;
    if let Some(said) = child.stdout.take() {
        for line in BufReader::new(said).lines() {
            let line = line.map_err(|e| e.to_string())?;
            let said: Value = serde_json::from_str(&line).map_err(|e| format!("{line}: {e}"))?;
            match said["absent"].as_str() {
                Some(name) => eprintln!("yardstick {name} is absent: {}", said["reason"]),
                None => sheet.push(row(&said).ok_or(line)?)?,
            }
        }
    }
    let status = child.wait().map_err(|e| e.to_string())?;
    match status.success() {
        true => Ok(()),
        false => Err("Python has said why it could not go on".into()),
    }
}

/// One case with all its contestants.
fn row(said: &Value) -> Option<Row> {
    let seconds = said["seconds"].as_object()?;
    let (bytes, own) = (said["bytes"].as_f64()?, seconds.get("pario")?.as_f64()?);
    let ratios = YARDSTICKS.iter().filter_map(|&name| {
        let theirs = seconds.get(name)?.as_f64()?;
        Some((name, theirs / own))
    });
    let case = said["case"].as_str()?.replace(' ', "/");
    let row = Row::new(case, bytes / own / 1e9, "GB/s").ratios(ratios);
    Some(row.column("us", rounded(own * 1e6)))
}

/// A folder that goes with the benchmark.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lines_become_rows() {
        let said = json!({
            "case": "read row", "bytes": 2000,
            "seconds": { "pario": 1e-6, "memmap": 5e-7, "zarr": 4e-4 },
        });
        let row = row(&said).expect("a row");
        assert_eq!((row.case.as_str(), row.value), ("read/row", 2.0));
        assert_eq!(row.ratio("memmap"), Some(0.5));
        assert_eq!(row.ratio("h5py"), None);
        assert!(super::row(&json!({ "case": "x" })).is_none());
    }
}
