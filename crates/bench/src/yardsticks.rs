//! Owns the yardsticks that live in processes of their own: numpy, and the pack routines of the
//! MPI libraries that are installed. They stay alive for the whole run and answer a line at a
//! time, so that they can take turns with Pario.
//!
//! Whatever is missing (compiler, library, interpreter, numpy) makes the yardstick absent, with
//! the reason on standard error.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use console::driven::DrivenProcess;
use console::preload;

use super::contest::Contestant;

/// A yardstick process.
pub(crate) struct Yardstick {
    pub(crate) name: &'static str,
    process: DrivenProcess,
}

impl Yardstick {
    fn start(name: &'static str, mut command: Command) -> Option<Yardstick> {
        let fail = |reason: &str| {
            eprintln!("yardstick {name} is absent: {reason}");
            None
        };
        command.stderr(Stdio::null());
        let process = match DrivenProcess::start(command) {
            Ok(process) => process,
            Err(error) => return fail(&error.to_string()),
        };
        let mut yardstick = Yardstick { name, process };
        if yardstick.process.answer().as_deref() != Some("ready") {
            return fail("it does not start");
        }
        Some(yardstick)
    }

    fn ask(&mut self, line: &str) -> Option<String> {
        self.process.tell(line);
        self.process.answer()
    }

    /// Prepares a job; false if the yardstick cannot do it.
    pub(crate) fn setup(&mut self, line: &str) -> bool {
        self.ask(line).as_deref() == Some("ok")
    }
}

impl Contestant for Yardstick {
    fn turn(&mut self, passes: u64) -> Option<f64> {
        self.ask(&format!("run {passes}"))?.parse().ok()
    }
}

/// numpy, in the virtual environment at the root of the project.
pub(crate) fn numpy() -> Option<Yardstick> {
    numpy_running(include_str!("../yardsticks/strided.py"))
}

/// numpy with another script that speaks the same lines.
pub(crate) fn numpy_running(script: &str) -> Option<Yardstick> {
    let python = roots()
        .into_iter()
        .map(|root| root.join(".venv/bin/python"))
        .find(|path| path.exists());
    let Some(python) = python else {
        eprintln!(
            "yardstick numpy is absent: no .venv at the root of the project (make setup makes it)"
        );
        return None;
    };
    let mut command = Command::new(python);
    command.arg("-c").arg(script);
    command
        .env("OMP_NUM_THREADS", "1")
        .env("OPENBLAS_NUM_THREADS", "1");
    Yardstick::start("numpy", command)
}

/// Who packs in an MPI program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PackedBy {
    /// The MPI library.
    Host,
    /// Pario, in its place: the library is loaded before it, with `PARIO_MPI_PACK=on`.
    Pario,
}

/// Pack and unpack of one MPI library, or by its functions as Pario takes them over, compiled on first use.
pub(crate) fn pack(name: &'static str, compiler: &str, by: PackedBy) -> Option<Yardstick> {
    let library = preload::library();
    if by == PackedBy::Pario && library.is_none() {
        eprintln!("yardstick {name} is absent: libpario_mpiio.so is not beside the program");
        return None;
    }
    let source = Source {
        name: compiler,
        text: include_str!("../yardsticks/pack.c"),
        options: &[],
    };
    let program = match compile(&source, compiler) {
        Ok(program) => program,
        Err(reason) => {
            eprintln!("yardstick {name} is absent: {reason}");
            return None;
        }
    };
    let mut command = Command::new(program);
    command
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    if let (PackedBy::Pario, Some(library)) = (by, library) {
        command
            .env("LD_PRELOAD", library)
            .env("PARIO_MPI_PACK", "on");
    }
    Yardstick::start(name, command)
}

/// A C program that comes along as text.
pub(crate) struct Source<'a> {
    pub(crate) name: &'a str,
    pub(crate) text: &'a str,
    /// For the compiler.
    pub(crate) options: &'a [&'a str],
}

/// Compiles a program on first use; where it is.
pub(crate) fn compile(source: &Source<'_>, compiler: &str) -> Result<PathBuf, String> {
    let Source {
        name,
        text,
        options,
    } = source;
    let folder = cache_folder()?;
    let path = folder.join(format!("{name}.c"));
    let program = folder.join(name);
    if program.exists() && fs::read_to_string(&path).is_ok_and(|old| old == *text) {
        return Ok(program);
    }
    let _ = fs::remove_file(&program);
    fs::write(&path, text).map_err(|error| error.to_string())?;
    let output = Command::new(compiler)
        .arg("-O2")
        .arg("-o")
        .arg(&program)
        .arg(&path)
        .args(*options)
        .output();
    let output = output.map_err(|error| format!("{compiler}: {error}"))?;
    if !output.status.success() {
        return Err(format!(
            "{compiler} failed: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        ));
    }
    Ok(program)
}

/// Beside the running program, which lies in cargo's target folder; else the temporary folder.
fn cache_folder() -> Result<PathBuf, String> {
    let beside = env::current_exe()
        .ok()
        .and_then(|path| Some(path.parent()?.join("yardsticks")));
    let folder = beside
        .filter(|path| fs::create_dir_all(path).is_ok())
        .unwrap_or_else(|| env::temp_dir().join("pario-yardsticks"));
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(folder)
}

/// Where the project's root may be: the working folder, above the program, or where it was
/// built.
pub(crate) fn roots() -> Vec<PathBuf> {
    let mut roots = Vec::new();
    for start in [env::current_dir().ok(), env::current_exe().ok()]
        .into_iter()
        .flatten()
    {
        roots.extend(start.ancestors().map(Path::to_path_buf));
    }
    roots.extend(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .ancestors()
            .map(Path::to_path_buf),
    );
    roots
}
