//! The benchmarks of files on tiny cases: that everything runs, that every byte is compared, and what
//! their reports say. How fast anything is is no matter for tests.
//!
//! Where network namespaces cannot be made the rows between hosts are absent, with a reason.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::{pario, run};

/// A report, and what was said beside it.
fn report(arguments: &[&str]) -> (Value, String) {
    let output = run(arguments);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {errors}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("nothing but JSON");
    let rows = report["rows"].as_array().expect("rows");
    assert!(!rows.is_empty() && report["machine"]["cores"].is_u64());
    for row in rows {
        assert!(
            row["value"]
                .as_f64()
                .is_some_and(|v| v > 0.0 && v.is_finite()),
            "{row}"
        );
        assert!(row["first"].as_f64().is_some_and(|v| v > 0.0), "{row}");
        for (name, ratio) in row["ratios"].as_object().expect("ratios") {
            assert!(ratio.as_f64().is_some_and(|v| v > 0.0), "{name}: {row}");
        }
    }
    (report, errors)
}

/// The rows whose case begins and ends so.
fn rows<'a>(report: &'a Value, begin: &str, part: &str) -> Vec<&'a Value> {
    let all = report["rows"].as_array().expect("rows");
    let fits = |row: &&Value| {
        let case = row["case"].as_str().unwrap_or("");
        case.starts_with(begin) && case.contains(part)
    };
    all.iter().filter(fits).collect()
}

#[track_caller]
fn has_ratios(rows: &[&Value], count: usize, names: &[&str]) {
    assert_eq!(rows.len() % count, 0, "{rows:?}");
    assert!(rows.len() >= count, "{rows:?}");
    for row in rows {
        for name in names {
            assert!(row["ratios"][name].is_number(), "{name}: {row}");
        }
    }
}

/// All rows have the same number of messages, which is this one. A ratio is a matter for `make bench-check`; what
/// causes it is counted here.
#[track_caller]
fn send(rows: &[&Value], messages: u64) {
    assert!(!rows.is_empty(), "nothing was measured");
    for row in rows {
        assert_eq!(row["columns"]["messages"], messages, "{row}");
    }
}

/// Whether there are hosts; if not, the benchmark has to say why.
#[track_caller]
fn are_there_hosts(report: &Value, errors: &str) -> bool {
    let found = !rows(report, "ns/", "").is_empty();
    assert!(
        found || errors.contains("between hosts are absent"),
        "{errors}"
    );
    found
}

/// What makes a layout by views win: every process finds its block at one server, where stripes send it to all
/// and sieving reads before it writes.
#[test]
fn seed001_s81_blocks_by_views_take_one_message_each_where_stripes_take_one_per_server() {
    let arguments = [
        "bench",
        "strided",
        "--edges",
        "64",
        "--servers",
        "3",
        "--rate",
        "10000",
        "--json",
    ];
    let (report, errors) = report(&arguments);
    assert_eq!(report["bench"], "strided");
    for op in ["/write/", "/read/"] {
        let memory = ["sieve", "striped", "memcpy"];
        has_ratios(&rows(&report, "host/view/", op), 1, &memory);
        has_ratios(
            &rows(&report, "host/striped/", op),
            1,
            &["sieve", "view", "memcpy"],
        );
        has_ratios(&rows(&report, "host/sieve/", op), 1, &["view", "striped"]);
        send(&rows(&report, "host/view/socket", op), 8);
        send(&rows(&report, "host/striped/socket", op), 8 * 3);
        send(&rows(&report, "host/view/direct", op), 0);
        let sieved = if op == "/write/" { 2 * 8 * 3 } else { 8 * 3 };
        send(&rows(&report, "host/sieve/socket", op), sieved);
        if are_there_hosts(&report, &errors) {
            has_ratios(
                &rows(&report, "ns/view/", op),
                1,
                &["sieve", "striped", "link"],
            );
            send(&rows(&report, "ns/view/", op), 8);
            send(&rows(&report, "ns/striped/", op), 8 * 3);
        }
    }
}

#[test]
fn matrices_are_measured_in_all_partitions() {
    let arguments = [
        "bench",
        "matrix",
        "--quick",
        "--sizes",
        "64,512",
        "--filter",
        "c/memory,r/memory,r/disk",
        "--json",
    ];
    let (report, _) = report(&arguments);
    assert_eq!(report["bench"], "matrix");
    let both = ["memcpy", "pwrite-ext4"];
    for op in ["/write/", "/read/"] {
        for (part, needed) in [("c/memory/", 4), ("r/memory/", 1), ("r/disk/", 1)] {
            let found = rows(&report, part, op);
            has_ratios(&found, 2, &both);
            for row in found {
                assert_eq!(row["columns"]["contention"], needed, "{row}");
                let by_message = row["columns"]["messages"].as_u64() > Some(0);
                let is_direct = row["case"]
                    .as_str()
                    .is_some_and(|case| case.contains("/direct/"));
                assert_eq!(by_message, !is_direct, "{row}");
            }
        }
    }
    let wrong = run(&["bench", "matrix", "--sizes", "10"]);
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("--sizes: 10 is not a multiple of 4"));
}

/// As many messages as contiguous parts take: one for each process, whatever the number of strided pieces.
#[test]
fn seed001_s82_strided_reads_take_as_many_messages_as_contiguous_ones() {
    let arguments = [
        "bench",
        "strided",
        "--edges",
        "9",
        "--grid",
        "3x2x1",
        "--no-hosts",
        "--json",
    ];
    let (report, _) = report(&arguments);
    has_ratios(
        &rows(&report, "host/view/", "/read/N=9/c=6/s=4"),
        1,
        &["contiguous"],
    );
    has_ratios(
        &rows(&report, "host/striped/", "/write/N=9/c=6/s=4"),
        1,
        &["contiguous"],
    );
    send(&rows(&report, "host/view/socket", "/read/"), 6);
    let parts = between_hosts().0;
    send(&rows(&parts, "host/view/socket", "/read/MB=1/c=3/s=2"), 3);
}

/// The line that says why there are no hosts.
fn absent(errors: &str) -> String {
    let line = errors
        .lines()
        .find(|line| line.contains("hosts are absent"));
    line.unwrap_or(errors).to_owned()
}

fn between_hosts() -> (Value, String) {
    report(&[
        "bench",
        "contiguous",
        "--megabytes",
        "1",
        "--counts",
        "3x2",
        "--servers",
        "1,2",
        "--between",
        "1",
        "--rate",
        "10000",
        "--json",
    ])
}

/// What lets servers add up: with stripes every one of them has a message of every process to serve at once, with views
/// each serves the processes whose parts it has.
#[test]
fn seed001_s83_every_server_that_is_added_takes_its_share_of_the_messages() {
    let (report, errors) = between_hosts();
    if !are_there_hosts(&report, &errors) {
        testkit::skipped(&absent(&errors));
        return;
    }
    for way in ["ns/view/", "ns/striped/"] {
        for servers in ["s=1", "s=2"] {
            has_ratios(&rows(&report, way, servers), 2, &["link"]);
        }
    }
    send(&rows(&report, "ns/view/", "c=4/s=1"), 4);
    send(&rows(&report, "ns/view/", "c=4/s=2"), 4);
    send(&rows(&report, "ns/striped/", "c=4/s=1"), 4);
    send(&rows(&report, "ns/striped/", "c=4/s=2"), 8);
}

#[test]
fn seed001_s84_remote_memory_is_measured_against_a_local_disk() {
    let (report, errors) = between_hosts();
    // Clients that are no multiple of the servers, too.
    has_ratios(
        &rows(&report, "host/", "/read/MB=1/c=3/s=2"),
        2,
        &["disk-cold", "memcpy"],
    );
    has_ratios(
        &rows(&report, "host/", "/write/MB=1/c=3/s=2"),
        2,
        &["disk-fsync", "memcpy"],
    );
    // Clients of the host copy from the memory of the servers: neither a message nor a disk.
    send(&rows(&report, "host/view/direct", "/read/"), 0);
    for row in rows(&report, "", "/MB=1/") {
        assert_eq!(row["columns"]["disks"], 0, "{row}");
    }
    if !are_there_hosts(&report, &errors) {
        testkit::skipped(&absent(&errors));
        return;
    }
    has_ratios(&rows(&report, "ns/open/", "/read/"), 2, &["disk-cold"]);
    has_ratios(&rows(&report, "ns/open/", "/write/"), 2, &["disk-fsync"]);
    send(&rows(&report, "ns/open/view/", "/read/"), 4);
}

#[test]
fn seed001_s85_the_cost_is_measured_for_every_matching() {
    let (report, errors) = between_hosts();
    if !are_there_hosts(&report, &errors) {
        testkit::skipped(&absent(&errors));
        return;
    }
    // A process whose part matches a subfile has one server; half of a match, two; none at all, one that has it all.
    for (matching, messages) in [("1/", 4), ("0.5/", 8), ("0/", 4)] {
        let found = rows(&report, &format!("ns/matching={matching}"), "");
        assert_eq!(found.len(), 2, "{matching}");
        send(&found, messages);
        for row in found {
            let cost = row["columns"]["cost"].as_f64().expect("a cost");
            // All costs are of this one.
            assert!(cost > 0.0 && (matching != "1/" || cost == 1.0), "{row}");
            // What a process finds on its own host is what the row says that it does.
            let near = row["columns"]["near"].as_f64();
            assert_eq!(near, matching.trim_end_matches('/').parse().ok(), "{row}");
        }
    }
}

#[test]
fn seed001_s86_small_accesses_and_many_files_are_measured() {
    let (report, _) = report(&[
        "bench", "small", "--quick", "--count", "20", "--files", "64", "--json",
    ]);
    for op in ["read", "write"] {
        for store in ["memory/", "disk/"] {
            let found = rows(&report, store, &format!("/{op}/"));
            has_ratios(&found, 3, &[&format!("p{op}-ext4")]);
            // A small access is one message, and most are none where the memory is at hand.
            for row in found {
                let messages = row["columns"]["messages"].as_f64().expect("a number");
                let is_direct = row["case"].as_str().is_some_and(|c| c.contains("/direct/"));
                let is_right = match (is_direct, store) {
                    (false, _) => messages == 1.0,
                    (true, "memory/") => messages < 1.0,
                    (true, _) => messages <= 1.0,
                };
                assert!(is_right, "{row}");
                for percentile in ["p90", "p99", "p99.9"] {
                    assert!(row["columns"][percentile].is_number(), "{row}");
                }
            }
        }
    }
    for op in ["create", "open", "stat", "delete"] {
        has_ratios(&rows(&report, &format!("files/{op}/c="), ""), 2, &["ext4"]);
    }
    // With --quick some cells of those that there are, with each kind of directory and each size.
    for op in ["create", "stat", "read", "readdir", "rename", "unlink"] {
        let is_change = matches!(op, "create" | "rename" | "unlink");
        let name = if is_change { "ext4-fsync" } else { "ext4" };
        has_ratios(
            &rows(&report, &format!("files/{op}/"), "/durable"),
            3,
            &[name],
        );
        for part in [
            "/own/bytes=0/c=1/",
            "/own/bytes=3901/c=16/",
            "/shared/bytes=3901/c=4/",
        ] {
            for life in ["durable", "job"] {
                let case = format!("files/{op}{part}{life}");
                assert_eq!(rows(&report, &case, "").len(), 1, "{case}");
            }
        }
    }
}

/// What `pario bench fresh` is run with: one small cell of each store.
const FRESH: [&str; 15] = [
    "bench",
    "fresh",
    "--patterns",
    "interleaved",
    "--transfers",
    "47008",
    "--processes",
    "2",
    "--megabytes",
    "1",
    "--beyond",
    "2",
    "--turns",
    "3",
    "--json",
];

#[test]
fn new_files_are_measured_through_every_interface() {
    let (report, errors) = report(&FRESH);
    assert_eq!(report["bench"], "fresh");
    let through = |store: &str, interface: &str| {
        let mut found = rows(&report, store, "/t=47008/p=2/");
        found.retain(|row| row["columns"]["interface"] == interface);
        found
    };
    let steps = [
        "new/write",
        "new/read",
        "again/write",
        "again/read",
        "reopened/read",
        "reopened/write",
    ];
    for interface in ["client", "openmpi", "mpich"] {
        if errors.contains(&format!("rows through {interface} are absent")) {
            assert!(through("", interface).is_empty(), "{errors}");
            testkit::skipped(&format!("rows through {interface} are absent"));
            continue;
        }
        let ways: &[&str] = match interface {
            "client" => &["indep"],
            _ => &["indep", "coll"],
        };
        for (store, own) in [("memory/", "own-tmpfs"), ("disk/", "own-ext4")] {
            let mut cases: Vec<String> = through(store, interface)
                .iter()
                .map(|row| row["case"].as_str().unwrap_or("").to_owned())
                .collect();
            let mut expected: Vec<String> = Vec::new();
            for way in ways {
                let name = format!("{store}interleaved/t=47008/p=2/{way}");
                expected.extend(steps.iter().map(|step| format!("{name}/{step}")));
            }
            if store == "disk/" {
                let name = "disk/interleaved/t=47008/p=2/indep";
                expected.extend(["new", "again"].map(|step| format!("{name}/{step}/write+sync")));
            }
            cases.sort();
            expected.sort();
            assert_eq!(cases, expected, "{interface}");
            has_ratios(&through(store, interface), 1, &[own, "memcpy"]);
        }
        for row in through("memory/", interface) {
            assert_eq!(row["columns"]["pool"], "inside", "{row}");
        }
        for row in through("disk/", interface) {
            assert!(row["columns"]["mib"].as_f64() <= Some(1.0), "{row}");
        }
    }
}

#[test]
fn new_files_are_measured_without_mpi_too() {
    let mut command = pario();
    // Neither compilers nor launchers.
    command.env("PATH", "/nonexistent").args(FRESH);
    let output = command.output().expect("pario starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    for interface in ["openmpi", "mpich"] {
        assert!(
            errors.contains(&format!("rows through {interface} are absent: ")),
            "{errors}"
        );
    }
    let report: Value = serde_json::from_slice(&output.stdout).expect("nothing but JSON");
    let rows = report["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 6 + 6 + 2, "{errors}");
    assert!(
        rows.iter()
            .all(|row| row["columns"]["interface"] == "client")
    );
}

/// A file beyond ready memory is one that is much larger; transfers have to fit into words.
#[test]
fn new_files_beyond_ready_memory_have_rows_of_their_own() {
    let (report, _) = report(&[
        "bench",
        "fresh",
        "--stores",
        "memory",
        "--interfaces",
        "client",
        "--patterns",
        "sequential",
        "--transfers",
        "65536",
        "--processes",
        "1",
        "--megabytes",
        "1",
        "--beyond",
        "3",
        "--filter",
        "new/write",
        "--turns",
        "3",
        "--json",
    ]);
    let found = rows(&report, "memory/sequential/t=65536/p=1/indep/new/write", "");
    let columns = |name: &str| -> Vec<Value> {
        found
            .iter()
            .map(|row| row["columns"][name].clone())
            .collect()
    };
    assert_eq!(columns("pool"), [json!("inside"), json!("beyond")]);
    assert_eq!(columns("mib"), [json!(1.0), json!(3.0)]);
    assert_eq!(found.len(), report["rows"].as_array().map_or(0, Vec::len));
    for name in ["open_us", "own_open_us", "close_us", "own_close_us"] {
        assert!(columns(name).iter().all(Value::is_number), "{name}");
    }
    let wrong = run(&["bench", "fresh", "--transfers", "4099"]);
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("a multiple of 8"));
}

/// A client process of the benchmarks, driven by hand.
struct Worker {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
}

impl Worker {
    fn start(service: Option<&str>) -> Worker {
        let mut command = pario();
        command.args(["bench", "worker"]);
        if let Some(url) = service {
            command.args(["--service", url]);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let lines = BufReader::new(child.stdout.take().expect("piped"));
        Worker { child, lines }
    }

    #[track_caller]
    fn tell(&mut self, order: Value) -> Value {
        let input = self.child.stdin.as_mut().expect("piped");
        writeln!(input, "{order}").expect("it listens");
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("it answers");
        serde_json::from_str(&line).expect("JSON")
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

#[test]
fn seed001_s87_a_benchmark_notices_every_wrong_byte() {
    let dir = std::env::temp_dir().join(format!("pario-s87-{}", std::process::id()));
    let at = dir.display().to_string();
    let up = run(&[
        "up",
        "--detach",
        "--json",
        "--store",
        "memory",
        "--memory",
        "64MiB",
        "--servers",
        "2",
        "--dir",
        &at,
    ]);
    let said: Value = serde_json::from_slice(&up.stdout).expect("JSON");
    let url = said["url"].as_str().expect("a URL").to_owned();
    let part = |salt: u64| json!({ "do": "part", "array": "i32[8,8,8]", "view": "(block, block, block) onto 2x2x2 [6]", "salt": salt });
    let open = json!({ "do": "open", "name": "f", "path": "/f", "layout": "striped(100)", "create": true });
    let write = |stamp: u64| json!({ "do": "write", "name": "f", "stamp": stamp });
    let read = json!({ "do": "read", "name": "f" });
    let mut workers = [Worker::start(Some(&url)), Worker::start(Some(&url))];
    for (salt, worker) in workers.iter_mut().enumerate() {
        assert_eq!(worker.tell(part(salt as u64))["bytes"], 256);
        assert_eq!(worker.tell(open.clone())["wrong"], 0);
    }
    let [one, other] = &mut workers;
    assert_eq!(one.tell(write(0))["wrong"], 0);
    assert_eq!(one.tell(read.clone())["wrong"], 0);
    // The same bytes written later are other bytes to the process that wrote before.
    assert_eq!(one.tell(write(9))["wrong"], 0);
    assert_eq!(one.tell(read.clone())["wrong"], 0);
    assert_eq!(
        other.tell(read.clone())["wrong"].as_u64().map(|n| n > 200),
        Some(true)
    );
    assert_eq!(other.tell(write(0))["wrong"], 0);
    assert_eq!(
        one.tell(read.clone())["wrong"].as_u64().map(|n| n > 200),
        Some(true)
    );
    // Seen as a whole, the file has one block of eight, and nothing behind it.
    let seen = other.tell(json!({ "do": "check", "name": "f" }));
    assert!(seen["wrong"].as_u64().is_some_and(|n| n > 0), "{seen}");
    // A plain file too: one byte is turned by hand.
    let plain = dir.join("plain");
    one.tell(json!({ "do": "plain", "name": "p", "path": plain, "at": 5 }));
    one.tell(json!({ "do": "plain-write", "name": "p", "stamp": 1 }));
    assert_eq!(
        one.tell(json!({ "do": "plain-read", "name": "p" }))["wrong"],
        0
    );
    let mut bytes = std::fs::read(&plain).expect("it was written");
    bytes[77] ^= 4;
    std::fs::write(&plain, bytes).expect("written");
    assert_eq!(
        one.tell(json!({ "do": "plain-read", "name": "p" }))["wrong"],
        1
    );
    // And a share of a new file: what another process wrote to it, and what is behind its end.
    let fresh = |order: Value| {
        let mut order = order;
        order["do"] = json!("fresh");
        order
    };
    for (rank, worker) in [&mut *one, &mut *other].into_iter().enumerate() {
        let deal = json!({ "step": "deal", "pattern": "interleaved", "transfer": 64, "count": 5, "rank": rank,
                           "processes": 2, "seed": 1 });
        assert_eq!(worker.tell(fresh(deal))["wrong"], 0);
        let open = json!({ "step": "open", "path": "/fresh", "plain": false, "create": rank == 0 });
        assert_eq!(worker.tell(fresh(open))["wrong"], 0);
        worker.tell(fresh(json!({ "step": "fill", "generation": 1 + rank })));
        let wrote = worker.tell(fresh(json!({ "step": "write" })));
        assert_eq!(wrote["wrong"], 0, "{wrote}");
    }
    for (whose, generation, is_right) in [
        ("own", 1, true),
        ("own", 2, false),
        ("neighbours", 2, true),
        ("neighbours", 1, false),
    ] {
        one.tell(fresh(json!({ "step": "read", "whose": whose })));
        let seen = one.tell(fresh(
            json!({ "step": "compare", "whose": whose, "generation": generation }),
        ));
        let wrong = seen["wrong"].as_u64().expect("a number");
        assert_eq!(wrong == 0, is_right, "{whose} {generation}: {seen}");
        assert!(is_right || wrong > 200, "{whose} {generation}: {seen}");
    }
    assert_eq!(
        one.tell(fresh(json!({ "step": "size", "bytes": 640 })))["wrong"],
        0
    );
    assert_eq!(
        one.tell(fresh(json!({ "step": "size", "bytes": 600 })))["wrong"],
        40
    );
    let again = json!({ "step": "open", "path": "/fresh", "plain": false, "create": true });
    assert!(one.tell(fresh(again))["error"].is_string());
    let nonsense = one.tell(json!({ "do": "fly" }));
    assert!(
        nonsense["error"]
            .as_str()
            .is_some_and(|e| e.contains("fly")),
        "{nonsense}"
    );
    drop(workers);
    run(&["down", "--dir", &at]);
    let _ = std::fs::remove_dir_all(&dir);
}

#[test]
#[ignore = "4096 MiB, takes minutes"]
fn seed001_s88_blocks_of_4096_mib_are_written_and_read() {
    let (report, errors) = report(&[
        "bench",
        "strided",
        "--edges",
        "1024",
        "--no-hosts",
        "--json",
    ]);
    let found = rows(&report, "host/striped/", "/N=1024/");
    assert!(found.len() >= 2, "{errors}");
}

#[test]
fn seed004_s73_overhead_and_near_and_far_servers_are_measured() {
    let (report, errors) = report(&[
        "bench", "vipios", "--tiny", "--only", "E2,E4", "--rate", "10000", "--json",
    ]);
    has_ratios(&rows(&report, "E4/host/", "/read/"), 1, &["read+transfer"]);
    // What keeps the overhead small: the bytes of a process come in one message.
    send(&rows(&report, "E4/", "/read/"), 1);
    for row in rows(&report, "E4/", "/read/") {
        for figure in ["overhead_percent", "read_us", "transfer_us"] {
            assert!(row["columns"][figure].is_number(), "{row}");
        }
    }
    if rows(&report, "E2/", "").is_empty() {
        assert!(errors.contains("absent"), "{errors}");
        testkit::skipped(&absent(&errors));
        return;
    }
    has_ratios(&rows(&report, "E4/ns/", "/read/"), 1, &["read+transfer"]);
    for n in ["n=2", "n=4"] {
        has_ratios(&rows(&report, "E2/", n), 2, &["E3"]);
        has_ratios(&rows(&report, "E3/", n), 2, &["link"]);
        // Clients of E2 have their bytes beside them, those of E3 none; direct accesses do not say where they went.
        for (name, near) in [("E2/", 1.0), ("E3/", 0.0)] {
            for row in rows(&report, name, n) {
                let found = row["columns"]["near"].as_f64();
                let is_direct = row["case"].as_str().is_some_and(|c| c.contains("/direct/"));
                assert!(is_direct || found == Some(near), "{row}");
            }
        }
    }
}

#[test]
fn seed004_s74_one_to_four_servers_take_turns() {
    let arguments = [
        "bench", "vipios", "--tiny", "--only", "E1,E6", "--rate", "10000", "--json",
    ];
    let said = String::from_utf8_lossy(&run(&arguments).stderr).into_owned();
    if let Some(why) = said.lines().find(|line| line.contains("hosts are absent")) {
        testkit::skipped(why);
        return;
    }
    let (report, errors) = report(&arguments);
    for name in ["E1/memory/", "E1/disk/", "E6/memory/"] {
        let found = rows(&report, name, "/read/");
        has_ratios(&found, 4, &["one", "link"]);
        assert_eq!(found.len(), 4, "{errors}");
        // What lets servers add up: each has a message of every process to serve.
        for servers in 1..=4u64 {
            send(&rows(&report, name, &format!("/s={servers}")), 4 * servers);
        }
    }
}

#[test]
fn seed004_s75_buffers_and_sparse_types_are_measured() {
    let (report, _) = report(&["bench", "vipios", "--tiny", "--only", "E8,E9", "--json"]);
    for kind in ["whole", "cut"] {
        for store in ["memory", "disk"] {
            let found = rows(&report, &format!("E9/{store}/{kind}/"), "/b=");
            assert_eq!(found.len(), 13);
            has_ratios(&found, 13, &["b=256K"]);
        }
    }
    has_ratios(&rows(&report, "E8/redistribute/", ""), 2, &["sieve"]);
    has_ratios(&rows(&report, "E8/sparse/", ""), 2, &["sieve"]);
    // Sparse bytes of one server each take one message for each process, redistributed ones one for each pair.
    send(&rows(&report, "E8/sparse/socket", ""), 8);
    send(&rows(&report, "E8/redistribute/socket", ""), 16);
}

/// Written and read back over MPI-IO, against ROMIO (E7 of the source).
#[test]
fn files_over_mpi_are_measured_against_romio() {
    let has = |program: &str| {
        std::process::Command::new(program)
            .arg("--version")
            .output()
            .is_ok()
    };
    if !has("mpicc.mpich") || !has("mpiexec.mpich") {
        return testkit::skipped("MPICH is not installed");
    }
    let (report, errors) = report(&["bench", "vipios", "--tiny", "--only", "E7", "--json"]);
    for op in ["write", "read"] {
        let found = rows(&report, &format!("E7/{op}/"), "MB=");
        assert_eq!(found.len(), 3, "{errors}");
        has_ratios(&found, 3, &["romio-tmpfs"]);
    }
}

#[test]
fn names_and_sizes_that_make_no_sense_are_refused() {
    for (arguments, word) in [
        (vec!["bench", "vipios", "--only", "E10"], "E10"),
        (vec!["bench", "strided", "--grid", "2x2"], "2x2x2"),
        (vec!["bench", "contiguous", "--counts", "4"], "5x3"),
        (vec!["bench", "contiguous", "--turns", "3"], "7"),
    ] {
        let output = run(&arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && errors.contains(word),
            "{errors}"
        );
    }
}
