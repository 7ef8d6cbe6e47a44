//! Programs in C against a service of several processes, and against a directory that they serve themselves.
//!
//! A program ends with the line that says that all is well; what it tests is said at its beginning.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use system_tests::native::{is_there, run};
use system_tests::{ServiceOptions, TempDir};

use crate::{PARIO, VIPIOS};

/// Most seconds of a program.
const LIMIT: &str = "100";

fn start(program: &Path, url: &str, arguments: &[&str]) {
    let printed = run(Command::new("timeout")
        .arg(LIMIT)
        .arg(program)
        .arg(url)
        .args(arguments)
        .env_remove("PARIO_URL"));
    assert!(printed.ends_with("all is well\n"), "{printed}");
}

/// Runs a program everywhere.
fn everywhere(compiler: &str, standard: &str, source: &str, arguments: &[&str]) {
    let program = VIPIOS.compile(compiler, standard, source);
    let service = ServiceOptions::new(2).start();
    start(&program, &service.url().to_string(), arguments);
    drop(service);
    let dir = TempDir::new();
    let url = format!("dir:{}", dir.path().join("d").display());
    start(&program, &url, arguments);
    fs::remove_file(&program).unwrap();
}

/// A seed that is printed, so that a failure can be repeated.
fn seed() -> String {
    let seed = std::env::var("PARIO_SEED").unwrap_or_else(|_| "1".into());
    println!("PARIO_SEED={seed}");
    seed
}

/// Pointers (31), sizes (32), removing (33), the end of a file (34), requests (35), many files (89).
#[test]
fn seed004_s31_the_native_calls_do_what_the_source_says() {
    everywhere("gcc", "c99", "native.c", &[]);
}

/// Walk, extent and positions (19), stride, skip and offset (20), circular use (21), golden cases (22), nothing (23), what is
/// between (25), the pointer (26).
#[test]
fn seed004_s25_descriptors_of_the_source_and_random_ones_hold_through_c() {
    everywhere("gcc", "c11", "golden.c", &[&seed(), "60"]);
}

/// The golden accesses alone: -1, other places, length 0, seeking through a descriptor.
#[test]
fn seed004_s26_accesses_through_descriptors_move_the_pointer_as_the_source_says() {
    everywhere("gcc", "c99", "golden.c", &["1", "0"]);
}

#[test]
#[ignore = "long: thousands of random descriptors"]
fn seed004_s19_thousands_of_random_descriptors_hold_through_c() {
    for round in 1..=3 {
        everywhere("gcc", "c11", "golden.c", &[&round.to_string(), "500"]);
    }
}

/// Reading and seeking (27), writing and inserting (28), mapping functions (29), closing (30); VP-B05, B12, Z42, Z43.
#[test]
fn seed004_s29_the_file_model_of_the_source_holds() {
    everywhere("gcc", "c99", "model.c", &[&seed(), "150"]);
}

#[test]
fn seed004_s90_names_of_the_source_and_unix_calls_use_the_same_files() {
    everywhere("gcc", "c99", "compatible.c", &[]);
}

/// The program of the source (A.2), as an example: what it prints is checked in full.
#[test]
fn the_quick_start_of_the_source_runs() {
    let program = VIPIOS.compile("gcc", "c99", "quick_start.c");
    let dir = TempDir::new();
    let url = format!("dir:{}", dir.path().join("d").display());
    let printed = run(Command::new("timeout")
        .arg(LIMIT)
        .arg(&program)
        .env("PARIO_URL", url));
    assert_eq!(
        printed,
        "the view has 60 bytes within 120\nwritten, the pointer is at 60\n\
         byte 23 of the view is byte 48 of the file: 89:;<=>?@A\nthe copy is the same\nall is well\n"
    );
    fs::remove_file(&program).unwrap();
}

/// As the source starts it: a schema with a line for servers and one for clients.
#[test]
fn an_application_schema_starts_servers_and_clients() {
    let program = VIPIOS.compile("gcc", "c11", "quick_start.c");
    let dir = TempDir::new();
    let schema = dir.path().join("application.schema");
    let lines = format!(
        "localhost 0 /usr/bin/vip_serv\nlocalhost 1 {}\n",
        program.display()
    );
    fs::write(&schema, lines).unwrap();
    let printed = run(Command::new("timeout")
        .arg(LIMIT)
        .arg(system_tests::programs::pario())
        .args(["run", "--quiet", "--schema"])
        .arg(&schema)
        .env_remove("PARIO_URL"));
    assert!(printed.ends_with("all is well\n"), "{printed}");
    fs::remove_file(&program).unwrap();
}

/// A number selects a service of the file that is named; the last of two services that are up is used.
#[test]
fn a_system_number_selects_a_service() {
    let program = VIPIOS.compile("gcc", "c99", "systems.c");
    let dir = TempDir::new();
    let services = [
        ServiceOptions::new(1).start(),
        ServiceOptions::new(1).start(),
    ];
    let lines = format!("# ours\n1 {}\n7 {}\n", services[0].url(), services[1].url());
    let systems = dir.path().join("systems");
    fs::write(&systems, lines).unwrap();
    let start = |configured: &Path| {
        run(Command::new("timeout")
            .arg(LIMIT)
            .arg(&program)
            .env("VIPIOS_SYSTEMS", configured)
            .env(
                "PARIO_URL",
                format!("dir:{}", dir.path().join("d").display()),
            ))
    };
    assert_eq!(start(&systems), "all is well\n");
    for (service, holds) in services.iter().zip(["1", "7"]) {
        let client = service.client();
        let options = client::OpenOptions::new().read();
        let mut byte = [0];
        client
            .open("/which", &options)
            .unwrap()
            .read_at(0, &mut byte)
            .unwrap();
        assert_eq!(byte, holds.as_bytes());
    }
    fs::remove_file(&program).unwrap();
}

/// The model with other steps: what is refused changes nothing.
#[test]
fn seed004_s27_reading_and_seeking_keep_to_the_model() {
    everywhere("gcc", "c11", "model.c", &["27", "300"]);
}

#[test]
fn seed004_s24_mistakes_are_codes_and_never_a_crash() {
    everywhere("gcc", "c11", "mistakes.c", &[]);
}

#[test]
fn clang_takes_the_header_too() {
    if !is_there("clang") {
        return testkit::skipped("clang is not installed");
    }
    everywhere("clang", "c99", "compatible.c", &[]);
}

/// The names of ViMPIOS over MPI, in C and in Fortran: clients are the world, requests are waited for, bytes are counted; and one file
/// through MPI-IO and native calls.
#[test]
fn programs_for_vimpios_run_over_mpi() {
    for (compiler, source) in [
        ("mpicc.mpich", "over_mpi.c"),
        ("mpif90.mpich", "over_mpi.f90"),
    ] {
        if !is_there(compiler) || !is_there("mpiexec.mpich") {
            return testkit::skipped("MPICH is not installed");
        }
        let dir = TempDir::new();
        let program = dir.path().join("program");
        let home = Path::new(VIPIOS.home);
        let mut command = Command::new(compiler);
        if source.ends_with(".f90") {
            // The module is made in the directory of the test.
            command
                .arg(home.join("include/vipmpi.f90"))
                .current_dir(dir.path());
        }
        command
            .arg(home.join("programs").join(source))
            .arg("-o")
            .arg(&program);
        VIPIOS.link(&mut command);
        run(&mut command);
        let service = ServiceOptions::new(2).start();
        let printed = run(Command::new("timeout")
            .arg(LIMIT)
            .arg(system_tests::programs::pario())
            .args(["run", "--quiet", "--", "mpiexec.mpich", "-n", "3"])
            .arg(&program)
            .env("PARIO_URL", service.url().to_string()));
        assert!(printed.ends_with("all is well\n"), "{source}: {printed}");
    }
}

/// One file at the same time through native C, ViPIOS, MPI-IO and Unix-style calls; the program shows the bytes.
#[test]
fn seed004_s90_one_file_is_the_same_through_all_interfaces() {
    const RANKS: usize = 4;
    if !is_there("mpicc.mpich") || !is_there("mpiexec.mpich") {
        return testkit::skipped("MPICH is not installed");
    }
    let dir = TempDir::new();
    let program = dir.path().join("program");
    let mut command = Command::new("mpicc.mpich");
    command
        .arg(Path::new(VIPIOS.home).join("programs/one_file.c"))
        .arg("-o")
        .arg(&program);
    VIPIOS.link(&mut command);
    PARIO.link(&mut command);
    run(&mut command);
    let service = ServiceOptions::new(3).start();
    let pario = |arguments: &[&str]| {
        let mut command = Command::new("timeout");
        command
            .arg(LIMIT)
            .arg(system_tests::programs::pario())
            .args(arguments);
        command.env("PARIO_URL", service.url().to_string());
        command
    };
    run(&mut pario(&[
        "create",
        "/one",
        "--layout",
        "striped(100) over 3",
    ]));
    let ranks = RANKS.to_string();
    let mut start = pario(&["run", "--quiet", "--", "mpiexec.mpich", "-n", &ranks]);
    let printed = run(start.arg(&program));
    assert!(printed.ends_with("all is well\n"), "{printed}");
    let shown = pario(&["cat", "/one"]).output().unwrap();
    let expected: Vec<u8> = (0..RANKS * 50 * 30)
        .map(|i| (i * 7 + i / 250) as u8)
        .collect();
    assert!(shown.status.success() && shown.stdout == expected);
}

/// Administrative messages reach all servers through the one that clients are connected to, and nobody else may give them; what is stored is
/// there again after the next start.
#[test]
fn seed004_s12_an_administrator_alone_ends_all_servers() {
    let program = VIPIOS.compile("gcc", "c99", "shutdown.c");
    let mut service = ServiceOptions::new(2).disk().start();
    let options = client::OpenOptions::new().write().create().mode(0o666);
    let file = service.client().open("/kept", &options).unwrap();
    file.write_at(0, b"kept\n").unwrap();
    file.close().unwrap();
    let url = service.url().to_string();
    let is_root = run(Command::new("id").arg("-u")) == "0\n";
    match is_root && is_there("setpriv") {
        true => {
            // Another user has to reach the socket.
            let permit = fs::Permissions::from_mode(0o777);
            fs::set_permissions(service.dir().path(), permit.clone()).unwrap();
            for socket in fs::read_dir(service.dir().path()).unwrap().flatten() {
                if socket.path().extension().is_some_and(|end| end == "sock") {
                    fs::set_permissions(socket.path(), permit.clone()).unwrap();
                }
            }
            // And the program with its library, wherever they were built.
            let place = service.dir().path();
            let (copy, library) = (place.join("shutdown"), place.join("libvipios.so.0"));
            fs::copy(&program, &copy).unwrap();
            fs::copy(VIPIOS.folder().join("libvipios.so.0"), &library).unwrap();
            let printed = run(Command::new("timeout")
                .args([
                    LIMIT,
                    "setpriv",
                    "--reuid=65534",
                    "--regid=65534",
                    "--clear-groups",
                ])
                .arg(&copy)
                .args([&url, "refused"])
                .env("LD_LIBRARY_PATH", place)
                .env_remove("PARIO_URL"));
            assert!(printed.ends_with("all is well\n"), "{printed}");
        }
        false => testkit::skipped("another user needs root and setpriv"),
    }
    start(&program, &url, &["done"]);
    for index in 0..2 {
        assert!(service.io(index).wait().is_some(), "server {index} goes on");
    }
    assert!(service.meta().wait().is_some(), "the manager goes on");
    service.start_all();
    let mut read = [0; 8];
    let options = client::OpenOptions::new().read();
    let file = service.client().open("/kept", &options).unwrap();
    assert_eq!(file.read_at(0, &mut read).unwrap(), 5);
    assert_eq!(&read[..5], b"kept\n");
    fs::remove_file(&program).unwrap();
}

/// No call of a program tells where bytes lie: not in its name, nor in what it returns.
#[test]
fn seed004_s12_no_call_reveals_where_bytes_lie() {
    let mut count = 0;
    for header in ["include/vipios.h", "include/vip_unix.h"] {
        let text = fs::read_to_string(Path::new(VIPIOS.home).join(header)).unwrap();
        let up_to = |part: &str, end| part.split(end).next().unwrap().to_lowercase();
        let calls = text
            .split("\nVIPIOS_API ")
            .skip(1)
            .map(|part| up_to(part, ';'));
        let state = text
            .split("typedef struct ViPIOS_State {")
            .skip(1)
            .map(|part| up_to(part, '}'));
        for declaration in calls.chain(state) {
            for word in [
                "disk", "subfile", "server", "node", "layout", "stripe", "place",
            ] {
                assert!(
                    !declaration.contains(word),
                    "{header}: {declaration} has '{word}'"
                );
            }
            count += 1;
        }
    }
    assert!(count > 60, "{count} declarations");
}

/// Every configuration has one process that connects clients and dispatches administrative messages, and says so: the metadata manager.
#[test]
fn seed004_s11_every_configuration_has_its_controllers() {
    let service = ServiceOptions::new(2).start();
    let dir = TempDir::new();
    let directory = format!("dir:{}", dir.path().join("d").display());
    let status = |url: &str| {
        run(Command::new(system_tests::programs::pario())
            .args(["status", "--json"])
            .env("PARIO_URL", url))
    };
    let in_job = run(Command::new(system_tests::programs::pario())
        .args(["run", "--quiet", "--servers", "1", "--"])
        .arg(system_tests::programs::pario())
        .args(["status", "--json"])
        .env_remove("PARIO_URL"));
    // A directory is one when something is stored there.
    run(Command::new(system_tests::programs::pario())
        .args(["create", "/f"])
        .env("PARIO_URL", &directory));
    for told in [
        status(&service.url().to_string()),
        status(&directory),
        in_job,
    ] {
        let told: serde_json::Value = serde_json::from_str(&told).unwrap();
        let roles = &told["roles"];
        assert_eq!(roles["system_controller"], "metadata manager", "{told}");
        assert_eq!(roles["connection_controller"], "metadata manager");
        assert!(
            told["meta"]["clients"].as_u64().unwrap() >= 1,
            "it is the one that answers"
        );
    }
    // Without one no server takes part.
    let alone = Command::new(system_tests::programs::pario())
        .args(["serve", "io", "--memory", "1MiB"])
        .output()
        .unwrap();
    assert!(!alone.status.success());
}
