//! Many files open in many processes, with direct access: what that costs is per process and server,
//! not per file, and within the limits that `docs/recipes/direct-access.md` states.

use client::OpenOptions;
use system_tests::pounding::numbered;
use system_tests::process::{Holds, holds, wait_within};

use crate::{print_seed, service, sum};

const FILES: u64 = 1000;
const PROCESSES: usize = 16;
const SERVERS: usize = 2;
const LEN: usize = 64 << 10;

/// The limits that the recipe states.
mod limits {
    /// Connections of a client: to the metadata manager, and to every I/O server.
    pub(super) const CLIENT_SOCKETS: usize = 1;
    pub(super) const CLIENT_SOCKETS_PER_SERVER: usize = 2;
    /// Descriptors of segments that a client keeps.
    pub(super) const CLIENT_SEGMENTS: usize = 128;
    /// Mappings of shared memory per server, beside one per segment of it.
    pub(super) const CLIENT_MAPPINGS_PER_SERVER: usize = 2;
    /// Memory of a client per open file.
    pub(super) const CLIENT_BYTES_PER_FILE: u64 = 8 << 10;
    /// Descriptors of a server, beside two per segment: whatever happens, and per client. What its keeper holds it has twice.
    pub(super) const SERVER_DESCRIPTORS: usize = 32;
    pub(super) const SERVER_DESCRIPTORS_PER_CLIENT: usize = 11;
    /// Memory of a server per client and file that it has open.
    pub(super) const SERVER_BYTES_PER_OPEN: u64 = 2 << 10;
    /// Memory of files at a server, per byte that they hold.
    pub(super) const FILE_BYTES_PER_BYTE: u64 = 2;
}

#[test]
fn a_thousand_files_in_sixteen_processes_stay_within_the_limits() {
    print_seed();
    let mut service = service(SERVERS);
    let client = service.client();
    client.mkdir("/many", None).unwrap();
    let new = OpenOptions::new().read().write().exclusive();
    let new = new.layout("striped(64KiB) over 1");
    for number in 0..FILES {
        let file = client.open(&format!("/many/{number}"), &new).unwrap();
        file.write_at(0, &numbered(number, LEN)).unwrap();
        file.close().unwrap();
    }
    let pids: Vec<u32> = (0..SERVERS).map(|i| service.io(i).pid()).collect();
    let mut workers: Vec<_> = (0..PROCESSES).map(|_| service.worker()).collect();
    let idle = holds(workers[0].pid());
    let mut servers_before: Vec<Holds> = pids.iter().map(|pid| holds(*pid)).collect();
    for worker in &mut workers {
        worker.send(&format!("many\t/many\t{FILES}\t{LEN}"));
    }
    for worker in &mut workers {
        assert_eq!(worker.answered(), "true", "read directly");
    }
    let segments = holds(pids[0]).kinds["/memfd:pario-segment"];
    for worker in &workers {
        let now = holds(worker.pid());
        eprintln!(
            "client: {} descriptors {:?}, {} mappings ({} shared), {} KiB of its own (idle {}), {} KiB shared",
            now.descriptors,
            now.kinds,
            now.mappings,
            now.shared_mappings,
            now.own_bytes >> 10,
            idle.own_bytes >> 10,
            now.shared_bytes >> 10,
        );
        let sockets = limits::CLIENT_SOCKETS + SERVERS * limits::CLIENT_SOCKETS_PER_SERVER;
        assert!(now.of_kind("socket") <= sockets, "{:?}", now.kinds);
        // Segments stay open, so that new bytes can be stored through them; 128 at most, however many there are.
        let open_segments = now.of_kind("/memfd:pario-segment");
        assert!(open_segments <= limits::CLIENT_SEGMENTS, "{:?}", now.kinds);
        // Nothing else is open that was not before it opened a file.
        let others = now.descriptors - now.of_kind("socket") - open_segments;
        let others_before = idle.descriptors - idle.of_kind("socket");
        assert_eq!(others, others_before, "{:?}", now.kinds);
        let mappings = SERVERS * (limits::CLIENT_MAPPINGS_PER_SERVER + segments);
        assert!(now.shared_mappings <= mappings, "{}", now.shared_mappings);
        let more = now.own_bytes.saturating_sub(idle.own_bytes);
        assert!(more <= FILES * limits::CLIENT_BYTES_PER_FILE, "{more}");
        // Shared memory is the servers' own, counted once more for whoever touched it.
        assert!(now.shared_bytes >= FILES * LEN as u64);
    }
    for (pid, before) in pids.iter().zip(&servers_before) {
        let now = holds(*pid);
        eprintln!(
            "server: {} descriptors {:?}, {} mappings, {} KiB of its own (before {}), {} KiB shared",
            now.descriptors,
            now.kinds,
            now.mappings,
            now.own_bytes >> 10,
            before.own_bytes >> 10,
            now.shared_bytes >> 10,
        );
        // The client of this process counts too.
        let all = (PROCESSES + 1) * limits::SERVER_DESCRIPTORS_PER_CLIENT + 2 * segments;
        assert!(
            now.descriptors <= limits::SERVER_DESCRIPTORS + all,
            "{:?}",
            now.kinds
        );
        let more = now.own_bytes.saturating_sub(before.own_bytes);
        let most = FILES * PROCESSES as u64 * limits::SERVER_BYTES_PER_OPEN;
        assert!(more <= most, "{more}");
    }
    let entries = sum(&service, &client, "direct_entries");
    assert_eq!(
        entries, FILES,
        "one per file and server, however many open it"
    );
    let memory = sum(&service, &client, "memory_bytes");
    let held = FILES * LEN as u64;
    assert!(
        memory <= held * limits::FILE_BYTES_PER_BYTE,
        "{memory} for {held}"
    );
    for worker in workers {
        worker.end();
    }
    // Each goes with its process.
    system_tests::until("goodbyes", || {
        sum(&service, &client, "direct_clients") <= SERVERS as u64
    });
    for (pid, before) in pids.iter().zip(&mut servers_before) {
        // The table was made for the first of them, and stays: for the server, for clients, for the keeper.
        before.kinds.insert("/memfd:pario-table".into(), 3);
        wait_within(*pid, before);
    }
}
