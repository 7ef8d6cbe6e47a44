//! `pario hpf`: translates a program in HPF, so that its input and output of distributed arrays goes to Pario. Owns the command line and
//! its JSON; the translation is `hpf`'s.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use hpf::{Arrays, Form, Hints, Options};
use serde_json::json;

use super::{Error, output};

/// How the lines of a program are read.
#[derive(Clone, Copy, ValueEnum)]
enum Lines {
    /// Statements anywhere
    Free,
    /// Statements in columns 7 to 72
    Fixed,
}

/// What the declarations of distributed arrays say.
#[derive(Clone, Copy, Default, ValueEnum)]
enum Declaration {
    /// The whole array, which every process has in memory
    #[default]
    Global,
    /// The part of each process
    Local,
}

/// Arguments of `pario hpf`.
#[derive(Args)]
#[command(after_help = "\
OPEN, READ, WRITE, CLOSE, REWIND, ENDFILE, FLUSH and INQUIRE of units on which distributed arrays, or
parts of them, are read or written become calls of the module pario_hpf; all else stays as it is,
byte for byte. What cannot be translated (formatted input and output of a file, say) is refused at
its line and character; what is printed on the terminal stays, with a note. The output is compiled
with the modules that `make install` brings:
  gfortran jacobi.pario.f90 $(pkg-config --cflags --libs pario-fortran)

Examples:
  pario hpf jacobi.f90 --output jacobi.pario.f90
  pario hpf old.f --form fixed --arrays local > new.f
  pario hpf jacobi.f90 --output jacobi.pario.f90 --json")]
pub(crate) struct Arguments {
    /// The program
    file: PathBuf,

    /// Where the translated program goes [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    /// How lines are read [default: fixed for .f, .for, .ftn and .hpf, else free]
    #[arg(long, value_enum)]
    form: Option<Lines>,

    /// What declarations of distributed arrays say
    #[arg(long, value_enum, default_value_t)]
    arrays: Declaration,

    /// Leave out hints of the compiler: what a file will hold, how it is used, which branch was entered
    #[arg(long)]
    no_hints: bool,

    /// Print what was translated as JSON; the program itself is in it if it goes nowhere else
    #[arg(long)]
    json: bool,
}

/// The form that the name of a file stands for.
fn form_of(path: &Path) -> Form {
    let ending = path.extension().map(|e| e.to_string_lossy().to_lowercase());
    match ending.as_deref() {
        Some("f" | "for" | "ftn" | "hpf") => Form::Fixed,
        _ => Form::Free,
    }
}

/// Translates a program.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    let name = arguments.file.display();
    let text = fs::read_to_string(&arguments.file).map_err(|e| format!("{name}: {e}"))?;
    let options = Options {
        form: match arguments.form {
            Some(Lines::Free) => Form::Free,
            Some(Lines::Fixed) => Form::Fixed,
            None => form_of(&arguments.file),
        },
        arrays: match arguments.arrays {
            Declaration::Global => Arrays::Global,
            Declaration::Local => Arrays::Local,
        },
        hints: match arguments.no_hints {
            true => Hints::Omitted,
            false => Hints::Written,
        },
    };
    let done = hpf::translate(&text, &options).map_err(|e| format!("{name}: {e}"))?;
    if let Some(path) = &arguments.output {
        output::write_file(path, &done.text)?;
    }
    if !arguments.json {
        for note in &done.notes {
            let _ = writeln!(
                std::io::stderr(),
                "{name}: line {}, character {}: {}",
                note.line,
                note.character,
                note.message
            );
        }
        if arguments.output.is_none() {
            output::print(&done.text)?;
        }
        return Ok(());
    }
    let statements = done.statements.iter().map(|s| {
        json!({ "line": s.line, "character": s.character, "statement": s.statement, "unit": s.unit, "arrays": s.arrays })
    });
    let notes = done
        .notes
        .iter()
        .map(|n| json!({ "line": n.line, "character": n.character, "message": n.message }));
    let mut report = json!({
        "file": name.to_string(),
        "statements": statements.collect::<Vec<_>>(),
        "notes": notes.collect::<Vec<_>>(),
    });
    match &arguments.output {
        Some(path) => report["output"] = json!(path.display().to_string()),
        None => report["text"] = json!(done.text),
    }
    output::print(&format!("{report:#}\n"))
}
