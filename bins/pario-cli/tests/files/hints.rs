//! `pario hint` and `pario prepare` as users run them.
//!
//! What hints do to layouts is compared with `pario stat` and `pario layout`; bytes with those of the host.

use crate::Service;

#[test]
fn seed004_s43_hints_are_set_listed_and_shown_where_they_count() {
    let service = Service::start();
    service.silent(&["mkdir", "-p", "/data/in"]);
    service.silent(&[
        "hint",
        "/data",
        "striping_unit=4KiB",
        "access_style=read_once",
        "cb_nodes=3",
    ]);
    service.silent(&["hint", "/data/in", "io_node_list=0,2", "striping_unit=8KiB"]);
    service.silent(&["create", "/data/in/f"]);
    let all = service.json_of(&["hint", "--json", "/data/in/f"]);
    assert_eq!(all["effective"]["access_style"]["source"], "directory");
    assert_eq!(all["effective"]["striping_unit"]["place"], "/data/in");
    let hints = all["hints"].as_array().unwrap();
    let row = |name: &str, place: &str| {
        let found = hints
            .iter()
            .find(|h| h["name"] == name && h["place"] == place);
        found
            .unwrap_or_else(|| panic!("no {name} at {place}"))
            .clone()
    };
    assert_eq!(row("striping_unit", "/data")["state"], "overridden");
    assert_eq!(row("cb_nodes", "/data")["state"], "unknown");
    assert!(row("server_list", "/data/in")["precedence"].as_u64() > Some(0));
    let used = all["at_creation"].as_array().unwrap();
    let unit = used
        .iter()
        .find(|u| u["name"] == "striping_unit" && u["outcome"] == "used");
    assert_eq!(unit.expect("used")["value"], "8KiB");
    let stat = service.json_of(&["stat", "--json", "/data/in/f"]);
    assert_eq!(stat["layout"], "striped(8KiB) over 2");
    assert!(
        stat["distribution"]
            .as_str()
            .unwrap()
            .contains("hint striping_unit")
    );
    assert_eq!(stat["hints"]["effective"]["striping_unit"]["value"], "8KiB");
    let text = service.text_of(&["hint", "/data/in/f"]);
    for words in [
        "overridden",
        "by directory /data/in",
        "when it was created",
        "chosen",
    ] {
        assert!(text.contains(words), "no '{words}' in\n{text}");
    }
    service.silent(&["hint", "/data/in", "--unset", "striping_unit"]);
    let status = service.json_of(&["status", "--json"]);
    assert!(
        status["hints"]["used"].as_u64() > Some(1),
        "{}",
        status["hints"]
    );
    assert_eq!(status["failed"], serde_json::json!([]));
    // Wrong words are told to people, who can correct them.
    service.refused(
        &["hint", "/data", "striping_unit=many"],
        &["striping_unit", "number"],
    );
    service.refused(&["hint", "/data", "upcoming=0:1"], &["upcoming", "dynamic"]);
    service.refused(&["hint", "/data", "nonsense"], &["NAME=VALUE"]);
    service.refused(&["hint", "/nowhere"], &["no such file"]);
    service.refused(&["hint", "--clear-failed", "77"], &["server 77"]);
    assert!(
        service
            .text_of(&["hint", "--table"])
            .contains("prefetch_depth")
    );
    // The compiler's file goes before the administrator, for the files it names.
    let hints = service.write("compiled", b"[/data/in/*.c]\nstriping_unit = 1KiB\n");
    let made = service
        .pario(&["create", "/data/in/g.c"])
        .env("PARIO_HINTS", &hints)
        .output();
    assert!(made.expect("pario starts").status.success());
    let stat = service.json_of(&["stat", "--json", "/data/in/g.c"]);
    assert_eq!(stat["layout"], "striped(1KiB) over 2");
    assert!(
        stat["distribution"]
            .as_str()
            .unwrap()
            .contains("compiled:2")
    );
}

#[test]
fn seed004_s44_a_job_is_prepared_before_its_first_access_and_that_can_be_seen() {
    let service = Service::start();
    let bytes: Vec<u8> = (0..8 * 64 * 64).map(|i| (i * 7 % 251) as u8).collect();
    service.write("matrix.raw", &bytes);
    let text = "[job]\nbuffers = 512KiB\n\
                [directory /out]\nstriping_unit = 16KiB\n\
                [file /in/matrix]\narray = f64[64,64]\nlayout = (*, block) onto 4\n\
                source = matrix.raw\naccess_style = read_once\n\
                [file /out/result]\nsize = 1MiB\n";
    let job = service.write("job.pario", text.as_bytes());
    let before = service.json_of(&["prepare", "--status", "--json", &job]);
    assert_eq!(before["is_ready"], false);
    let done = service.json_of(&["prepare", "--json", "--quiet", &job]);
    assert_eq!(done["is_ready"], true, "{done:#}");
    let entry = |all: &serde_json::Value, path: &str| {
        let entries = all["entries"].as_array().unwrap().iter();
        let mut entries = entries.filter(|e| e["path"] == path);
        entries
            .next()
            .unwrap_or_else(|| panic!("no {path}"))
            .clone()
    };
    let matrix = entry(&done, "/in/matrix");
    assert_eq!(matrix["stored_bytes"], bytes.len());
    assert_eq!(matrix["layout"], "(*, block) onto 4");
    assert_eq!(matrix["hints"]["access_style"], "read_once");
    let result = entry(&done, "/out/result");
    assert!(
        result["allocated_bytes"].as_u64() >= Some(1 << 20),
        "{result}"
    );
    assert!(
        result["layout"]
            .as_str()
            .unwrap()
            .starts_with("striped(16KiB)")
    );
    for server in done["servers"].as_array().unwrap() {
        assert!(
            server["buffer_bytes"].as_u64() >= Some(512 << 10),
            "{server}"
        );
    }
    assert_eq!(service.bytes_of(&["cat", "/in/matrix"]), bytes);
    // Again: nothing is left to do. What was spoilt is repaired.
    let again = service.json_of(&["prepare", "--json", "--quiet", &job]);
    let matrix = entry(&again, "/in/matrix");
    assert_eq!(
        (&matrix["stored_bytes"], &matrix["done"]),
        (&0.into(), &serde_json::json!([]))
    );
    service.bytes_with_input(&["put", "-q", "-", "/in/matrix"], &vec![9; bytes.len()]);
    service.silent(&["rm", "/out/result"]);
    let status = service.json_of(&["prepare", "--status", "--json", &job]);
    assert_eq!(status["is_ready"], false);
    assert_eq!(
        entry(&status, "/in/matrix")["missing"],
        serde_json::json!(["bytes of its source"])
    );
    let text = service.text_of(&["prepare", "--quiet", &job]);
    assert!(text.contains("made now: it is not there"), "{text}");
    assert_eq!(service.bytes_of(&["cat", "/in/matrix"]), bytes);
    // Another layout is had by moving, with the bytes as they are.
    let moved = std::fs::read_to_string(&job)
        .unwrap()
        .replace("(*, block) onto 4", "(block, *) onto 3");
    let other = service.write("other.pario", moved.as_bytes());
    let done = service.json_of(&["prepare", "--json", "--quiet", &other]);
    assert_eq!(entry(&done, "/in/matrix")["layout"], "(block, *) onto 3");
    assert_eq!(entry(&done, "/in/matrix")["missing"], serde_json::json!([]));
    assert_eq!(service.bytes_of(&["cat", "/in/matrix"]), bytes);
    // Wrong job files do nothing, and say where.
    let wrong = service.write("wrong.pario", b"[file /new]\n[file /x]\nlayout = (blok)\n");
    service.refused(&["prepare", &wrong], &["wrong.pario, line 3", "layout"]);
    service.refused(&["stat", "/new"], &["no such file"]);
    let wrong = service.write("array.pario", b"[file /in/matrix]\narray = u8[3]\n");
    service.refused(&["prepare", &wrong], &["line 1", "pario rm"]);
    let wrong = service.write("buffers.pario", b"[job]\nbuffers = 1TiB\n");
    service.refused(&["prepare", &wrong], &["line 2", "buffers"]);
}

/// Bytes that servers with disks had to fetch from them for readers.
fn missed(service: &Service) -> u64 {
    let status = service.json_of(&["status", "--json"]);
    let servers = status["servers"].as_array().unwrap().iter();
    servers
        .map(|s| s["counters"]["cache_miss_bytes"].as_u64().unwrap())
        .sum()
}

/// What a job reads is in the memory of servers with disks before it starts, also when these have started anew.
#[test]
fn prepared_files_are_read_from_the_memory_of_disk_servers() {
    let service = Service::start_on("disk");
    let bytes = crate::pattern(3 << 20, 5);
    service.write("in.raw", &bytes);
    let text = "[file /warm]\nsource = in.raw\n[file /cold]\nsource = in.raw\nload = off\n";
    let job = service.write("job.pario", text.as_bytes());
    service.json_of(&["prepare", "--json", "--quiet", &job]);
    service.text_of(&["down"]);
    service.up("disk");
    let done = service.json_of(&["prepare", "--json", "--quiet", &job]);
    assert_eq!(done["is_ready"], true, "{done:#}");
    let loaded = missed(&service);
    assert!(service.bytes_of(&["cat", "/warm"]) == bytes);
    assert_eq!(missed(&service), loaded, "nothing came from a disk");
    assert!(service.bytes_of(&["cat", "/cold"]) == bytes);
    assert!(missed(&service) >= loaded + bytes.len() as u64);
}

#[test]
fn a_job_file_is_prepared_before_a_command_runs() {
    let service = Service::start();
    service.write("input", b"for the job");
    let job = service.write("job.pario", b"[file /input]\nsource = input\n");
    let program = env!("CARGO_BIN_EXE_pario");
    let text = service.text_of(&[
        "run",
        "-q",
        "--prepare",
        &job,
        "--",
        program,
        "cat",
        "/input",
    ]);
    assert_eq!(text, "for the job");
    let wrong = service.write("wrong.pario", b"[file /input]\nsource = missing\n");
    let words = ["line 2", "missing"];
    service.refused(&["run", "-q", "--prepare", &wrong, "--", "true"], &words);
}

#[test]
fn seed004_s82_the_administrator_sees_everything_and_moves_parts() {
    let service = Service::start_on("disk");
    let bytes: Vec<u8> = (0..300_000u32).map(|i| (i * 13 % 249) as u8).collect();
    let local = service.write("raw", &bytes);
    service.silent(&["mkdir", "/d"]);
    service.silent(&["hint", "/d", "access_style=read_mostly"]);
    service.silent(&[
        "put",
        "-q",
        &local,
        "/d/f",
        "--layout",
        "striped(10KiB) over [0,1]",
    ]);
    // Servers and disks.
    let status = service.json_of(&["status", "--json"]);
    let servers = status["servers"].as_array().unwrap();
    assert_eq!(servers.len(), 3);
    for server in servers {
        assert_eq!(
            (&server["store"], &server["state"]),
            (&"disk".into(), &"alive".into())
        );
        let counters = &server["counters"];
        assert_eq!(
            (&counters["disks"], &counters["disks_failed"]),
            (&1.into(), &0.into())
        );
    }
    // Files, their maps, their hints.
    let listed = service.text_of(&["ls", "/d"]);
    assert!(listed.contains('f'), "{listed}");
    let map = |service: &Service| service.json_of(&["layout", "--json", "/d/f"]).to_string();
    let before = map(&service);
    assert!(before.contains("striped(10KiB) over [0,1]"), "{before}");
    let hints = service.json_of(&["hint", "--json", "/d/f"]);
    assert_eq!(hints["effective"]["access_style"]["place"], "/d");
    // Parts move to other servers, and nothing changes but where they are.
    for servers in ["[1,2]", "[2]", "[2,1,0]"] {
        let layout = format!("striped(10KiB) over {servers}");
        service.text_of(&["relayout", "/d/f", "--layout", &layout]);
        assert!(map(&service).contains(&layout), "{}", map(&service));
        assert_eq!(service.bytes_of(&["cat", "/d/f"]), bytes, "{servers}");
    }
    let hints = service.json_of(&["hint", "--json", "/d/f"]);
    assert_eq!(hints["effective"]["access_style"]["value"], "read_mostly");
}
