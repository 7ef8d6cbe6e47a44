//! The tables of `standard/` and the sizes in `src/abi.rs`, compared with the headers of the MPIs that are installed.
//!
//! Small C programs are compiled against each header: one prints what its constants are, one assigns every
//! function to a pointer of the type that the table gives it. An MPI that is not installed is passed over; names that a
//! header does not have are counted, so that a table that is compared with nothing fails.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What `src/abi.rs` takes from the library.
mod ffi {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) struct Word(pub(crate) usize);
}

#[allow(dead_code)]
#[path = "../src/abi.rs"]
mod abi;

use abi::{Abi, Constants, Family};

/// An MPI to compare with.
struct InstalledMpi {
    name: &'static str,
    family: Family,
    /// The column of the tables.
    column: usize,
    /// The compiler, with what it needs to find the header.
    compiler: Vec<String>,
    header: &'static str,
}

fn installed() -> Vec<InstalledMpi> {
    let mut found = Vec::new();
    for (name, family, column) in [
        ("mpicc.mpich", Family::Mpich, 2),
        ("mpicc.openmpi", Family::OpenMpi, 3),
    ] {
        if Command::new(name).arg("-show").output().is_ok() {
            found.push(InstalledMpi {
                name,
                family,
                column,
                compiler: vec![name.into()],
                header: "mpi.h",
            });
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.mpi/mpich5/include");
    let plain = |header: &'static str, name, family, column| InstalledMpi {
        name,
        family,
        column,
        compiler: vec!["cc".into(), "-I".into(), root.display().to_string()],
        header,
    };
    if root.join("mpi_abi.h").exists() {
        found.push(plain("mpi_abi.h", "MPI 5", Family::Standard, 4));
        found.push(plain("mpi.h", "MPICH 5", Family::Mpich, 2));
    }
    found
}

impl InstalledMpi {
    fn abi(&self) -> Abi {
        Abi {
            family: self.family,
            constants: match self.family {
                Family::Mpich => Constants::mpich(),
                Family::OpenMpi => Constants::openmpi(&|_| ffi::Word(0)),
                Family::Standard => Constants::standard(),
            },
        }
    }

    /// Compiles a program; where it is, or what the compiler said.
    fn compile(&self, text: &str, what: &str, flags: &[&str]) -> Result<PathBuf, String> {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let number = std::process::id();
        let stem = format!("{}-{what}-{number}", self.name.replace(' ', "-"));
        let (source, program) = (folder.join(format!("{stem}.c")), folder.join(stem));
        fs::write(&source, text).unwrap();
        let output = Command::new(&self.compiler[0])
            .args(&self.compiler[1..])
            .args(["-w", "-o"])
            .arg(&program)
            .args(flags)
            .arg(&source)
            .env("LC_ALL", "C")
            .output()
            .unwrap();
        fs::remove_file(&source).unwrap();
        match output.status.success() {
            true => Ok(program),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }

    /// What a program prints, line by line. Names that the header does not declare are left out of `rows`.
    fn print(&self, what: &str, rows: &mut Vec<Row>) -> HashMap<String, String> {
        for _ in 0..2 {
            let mut text = format!(
                "#include <stddef.h>\n#include <stdio.h>\n#include <{}>\nint main(void) {{\n",
                self.header
            );
            for row in rows.iter() {
                let (name, value) = (&row.name, &row.expression);
                writeln!(text, "printf(\"{name} %lld\\n\", (long long)({value}));").unwrap();
            }
            text.push_str("return 0; }\n");
            match self.compile(&text, what, &[]) {
                Ok(program) => {
                    let output = Command::new(&program).output().unwrap();
                    fs::remove_file(&program).unwrap();
                    let printed = String::from_utf8(output.stdout).unwrap();
                    let pairs = printed.lines().filter_map(|line| line.split_once(' '));
                    return pairs.map(|(a, b)| (a.into(), b.into())).collect();
                }
                Err(said) => {
                    let before = rows.len();
                    rows.retain(|row| !said.contains(&format!("'{}'", row.expression)));
                    assert!(rows.len() < before, "{}: {said}", self.name);
                }
            }
        }
        panic!("{}: the header lacks what it declares", self.name);
    }
}

/// A constant of the tables.
struct Row {
    name: String,
    /// What stands for it in C.
    expression: String,
    value: String,
}

fn table(name: &str) -> Vec<Vec<String>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("standard/{name}.table"));
    let text = fs::read_to_string(path).unwrap();
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect();
    let rows = text.lines().map(words);
    rows.filter(|row: &Vec<String>| row.first().is_some_and(|word| !word.starts_with('#')))
        .collect()
}

fn number(text: &str) -> i64 {
    match text.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).unwrap(),
        None => text.parse().unwrap(),
    }
}

/// Rows of a kind that an ABI has.
fn constants(mpi: &InstalledMpi, kinds: &[&str]) -> Vec<Row> {
    let rows = table("constants").into_iter();
    rows.filter(|row| kinds.contains(&row[0].as_str()) && row[mpi.column] != "-")
        .map(|row| Row {
            expression: format!("MPI_{}", row[1]),
            value: row[mpi.column].clone(),
            name: row[1].clone(),
        })
        .collect()
}

#[test]
fn numbers_are_those_of_the_headers() {
    for mpi in installed() {
        let mut rows = constants(&mpi, &["number"]);
        let all = rows.len();
        let printed = mpi.print("numbers", &mut rows);
        for row in &rows {
            let got = number(&printed[&row.name]);
            assert_eq!(got, number(&row.value), "MPI_{} of {}", row.name, mpi.name);
        }
        let missing = all - rows.len();
        assert!(
            missing <= 6,
            "{}: {missing} numbers are not declared",
            mpi.name
        );
    }
}

#[test]
fn handles_are_those_of_the_headers() {
    for mpi in installed() {
        let mut rows = constants(&mpi, &["handle", "type"]);
        let all = rows.len();
        if mpi.family == Family::OpenMpi {
            // Addresses of globals: what the names stand for is seen by the preprocessor.
            let mut text = format!("#include <{}>\n", mpi.header);
            for row in &rows {
                writeln!(text, "@ {} {}", row.name, row.expression).unwrap();
            }
            let output = mpi.compile(&text, "handles", &["-E"]).unwrap();
            let expanded = fs::read_to_string(&output).unwrap();
            fs::remove_file(&output).unwrap();
            let mut seen = 0;
            for line in expanded.lines().filter_map(|line| line.strip_prefix("@ ")) {
                let (name, stands_for) = line.split_once(' ').unwrap();
                let row = rows.iter().find(|row| row.name == name).unwrap();
                if stands_for != row.expression {
                    let symbol = format!("({})", row.value);
                    assert!(stands_for.contains(&symbol), "MPI_{name}: {stands_for}");
                    seen += 1;
                }
            }
            assert!(all - seen <= 6, "{} handles are not declared", all - seen);
            continue;
        }
        let printed = mpi.print("handles", &mut rows);
        let null = number(
            &constants(&mpi, &["handle"])
                .iter()
                .find(|row| row.name == "DATATYPE_NULL")
                .unwrap()
                .value,
        );
        let mut absent = all - rows.len();
        for row in &rows {
            let (got, want) = (number(&printed[&row.name]), number(&row.value));
            let got = match mpi.family {
                Family::Mpich => got & 0xffff_ffff,
                _ => got,
            };
            // Types that a build has not are the null handle there.
            if got == null && row.name != "DATATYPE_NULL" {
                absent += 1;
            } else {
                assert_eq!(got, want, "MPI_{} of {}", row.name, mpi.name);
            }
        }
        assert!(absent <= 24, "{}: {absent} handles are not there", mpi.name);
    }
}

#[test]
fn sizes_and_places_are_those_of_the_headers() {
    for mpi in installed() {
        let abi = mpi.abi();
        let row = |name: &str, expression: &str, value: usize| Row {
            name: name.into(),
            expression: expression.into(),
            value: value.to_string(),
        };
        let handle = abi.handle_bytes();
        let mut rows = vec![
            row("status", "sizeof(MPI_Status)", abi.status_bytes()),
            row(
                "error",
                "offsetof(MPI_Status, MPI_ERROR)",
                abi.status_error_offset(),
            ),
            row("datatype", "sizeof(MPI_Datatype)", handle),
            row("comm", "sizeof(MPI_Comm)", handle),
            row("group", "sizeof(MPI_Group)", handle),
            row("info", "sizeof(MPI_Info)", handle),
            row("request", "sizeof(MPI_Request)", handle),
            row("errhandler", "sizeof(MPI_Errhandler)", handle),
            row("file", "sizeof(MPI_File)", 8),
            row("offset", "sizeof(MPI_Offset)", 8),
            row("aint", "sizeof(MPI_Aint)", 8),
            row("count", "sizeof(MPI_Count)", 8),
            row("null function", "(size_t)MPI_CONVERSION_FN_NULL", 0),
        ];
        for row in &mut rows {
            row.name = row.name.replace(' ', "_");
        }
        let printed = mpi.print("sizes", &mut rows);
        assert_eq!(rows.len(), 13, "{}", mpi.name);
        for row in &rows {
            assert_eq!(
                printed[&row.name], row.value,
                "{} of {}",
                row.expression, mpi.name
            );
        }
    }
}

/// The type in C of an argument.
fn type_in_c(function: &str, name: &str, kind: &str, is_large: bool) -> String {
    let suffix = if is_large { "_c" } else { "" };
    let is_only_read = function.contains("write") || function.contains("Request_get_status_");
    let constant = if is_only_read { "const " } else { "" };
    match (kind, name) {
        ("*offset", "extent") if is_large => "MPI_Count *".into(),
        ("*offset", "extent") => "MPI_Aint *".into(),
        ("int", _) => "int".into(),
        ("offset", _) => "MPI_Offset".into(),
        ("*count", _) if is_large => "MPI_Count *".into(),
        ("*count", _) => "int *".into(),
        ("buffer", "inbuf") => "const void *".into(),
        ("count", _) if is_large => "MPI_Count".into(),
        ("count", _) => "int".into(),
        ("buffer", _) => format!("{constant}void *"),
        ("text", _) => "const char *".into(),
        ("comm", _) => "MPI_Comm".into(),
        ("type", _) => "MPI_Datatype".into(),
        ("info", _) => "MPI_Info".into(),
        ("request", _) => "MPI_Request".into(),
        ("status", _) => "MPI_Status *".into(),
        ("function", "extent") => "MPI_Datarep_extent_function *".into(),
        ("function", _) => format!("MPI_Datarep_conversion_function{suffix} *"),
        ("handler", _) => "MPI_File_errhandler_function *".into(),
        ("pointer", _) => "void *".into(),
        ("*int", _) => "int *".into(),
        ("*offset", _) => "MPI_Offset *".into(),
        ("*text", _) => "char *".into(),
        ("*file", _) => "MPI_File *".into(),
        ("*group", _) => "MPI_Group *".into(),
        ("*errhandler", _) => "MPI_Errhandler *".into(),
        ("*info", _) => "MPI_Info *".into(),
        ("*type", _) => "MPI_Datatype *".into(),
        ("*request", "requests") if function.contains("Request_get_status_") => {
            "const MPI_Request *".into()
        }
        ("*request", _) => "MPI_Request *".into(),
        (kind, _) => panic!("{function}: unknown kind {kind}"),
    }
}

#[test]
fn prototypes_are_those_of_the_headers() {
    let mut pointers = Vec::new();
    for row in table("prototypes") {
        let (how, function) = (row[0].as_str(), &row[1]);
        let is_large = row.last().is_some_and(|word| word == "large");
        for large in [false, true].into_iter().filter(|large| is_large || !large) {
            let mut types: Vec<String> = row[2..]
                .iter()
                .filter_map(|word| word.split_once(':'))
                .map(|(name, kind)| type_in_c(function, name, kind, large))
                .collect();
            if how == "file" {
                types.insert(0, "MPI_File".into());
            }
            let name = if large {
                format!("MPI_{function}_c")
            } else {
                format!("MPI_{function}")
            };
            let pointer = format!("int (*p_{name})({}) = {name};\n", types.join(", "));
            pointers.push((name, pointer));
        }
    }
    assert!(pointers.len() > 100, "{} functions", pointers.len());
    for mpi in installed() {
        let program = |pointers: &[&(String, String)]| {
            let mut text = format!("#include <{}>\n", mpi.header);
            text.extend(pointers.iter().map(|(_, pointer)| pointer.as_str()));
            text
        };
        let strict = ["-fsyntax-only", "-Werror=incompatible-pointer-types"];
        let all: Vec<_> = pointers.iter().collect();
        let said = match mpi.compile(&program(&all), "prototypes", &strict) {
            Ok(_) => continue,
            Err(said) => said,
        };
        // Those that the header does not have are left out; all others have to fit.
        let unknown: Vec<&str> = said
            .split("unknown type name '")
            .skip(1)
            .filter_map(|rest| rest.split('\'').next())
            .collect();
        let is_declared = |(name, pointer): &&(String, String)| {
            !said.contains(&format!("'{name}' undeclared"))
                && !unknown.iter().any(|unknown| pointer.contains(unknown))
        };
        let there: Vec<_> = all.into_iter().filter(is_declared).collect();
        assert!(there.len() > 60, "{}: {} functions", mpi.name, there.len());
        if let Err(said) = mpi.compile(&program(&there), "prototypes", &strict) {
            panic!("{}: {said}", mpi.name);
        }
    }
}

#[test]
fn tables_have_every_column() {
    for row in table("constants") {
        let columns = if row[0] == "type" { 6 } else { 5 };
        assert_eq!(row.len(), columns, "{row:?}");
    }
}
