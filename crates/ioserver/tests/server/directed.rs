//! Collective accesses that a server directs, frame by frame: ranks that go away, do not come, or are not who they
//! say they are; what the store does while ranks are served, and where what they write comes to lie.

use std::io;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use ioserver::{Options, StoreOptions};
use layout::{FileOffset, View};
use store::{DiskRequest, WatchedDisk, Watcher};
use wire::message::directed::{
    DirectedAnswer, Follow, Lead, MORE, Packet, Portion, RankRange, WANT,
};
use wire::message::{self, Bytes, Request};
use wire::url::Endpoint;
use wire::{ClientId, Status};

use crate::rig::{Client, File, Rig, header, pattern, refusal};
use crate::sharer::Sharer;

/// Two clients with one file at one server, and a view of it each.
fn two(rig: &Rig) -> (Client, Client, File, u64) {
    let (mut first, mut second) = (rig.client(), rig.client());
    let file = first.open("/f", None, Some("striped(4096) over 1"));
    let same = second.open("/f", None, None);
    let view = View::whole_file();
    first.set_view(&file, 1, &view);
    second.set_view(&same, 1, &view);
    let server = file.servers()[0];
    (first, second, file, server)
}

fn lead(file: &File, ranks: [ClientId; 2], operation: u64) -> Lead {
    let mut version = Vec::new();
    file.state.version().put(&mut version);
    let rank = |client, lo| RankRange {
        client,
        view: 0,
        lo,
        hi: lo + 1000,
    };
    Lead {
        view: 1,
        operation,
        writes: true,
        by_record: false,
        block_bytes: 4096,
        blocks: 1,
        epoch: 0,
        version: Bytes(version),
        ranks: vec![rank(ranks[0], 0), rank(ranks[1], 1000)],
        views: vec![View::whole_file()],
    }
}

fn send<R: Request>(client: &mut Client, server: u64, request: &R, payload: &[u8]) {
    let mut control = Vec::new();
    message::encode(request, &mut control);
    let link = client.lane(server);
    link.send(header(R::KIND, 0), &control, &[payload]).unwrap();
}

/// The next frame: a portion that is wanted, or the answer.
fn next(client: &mut Client, server: u64) -> Result<Option<Portion>, (Status, String)> {
    let (answer, said) = client.lane(server).receive().unwrap();
    if !answer.status.is_ok() {
        return Err(refusal(answer.status, said));
    }
    if answer.flags & WANT != 0 {
        return Ok(Some(message::decode(said).unwrap()));
    }
    let _: DirectedAnswer = message::decode(said).unwrap();
    Ok(None)
}

#[test]
fn a_rank_that_goes_away_ends_the_operation_for_all() {
    let rig = Rig::new(1);
    let (mut first, mut second, file, server) = two(&rig);
    let ids = [first.welcome.client, second.welcome.client];
    send(&mut first, server, &lead(&file, ids, 1), &[]);
    let follow = Follow {
        view: 1,
        leader: ids[0],
        operation: 1,
        rank: 1,
    };
    send(&mut second, server, &follow, &[]);
    assert_eq!(
        next(&mut first, server).unwrap().unwrap().parts[0].bytes,
        1000
    );
    assert_eq!(
        next(&mut second, server).unwrap().unwrap().parts[0].start,
        1000
    );
    // One sends what was wanted, the other goes instead.
    drop(second);
    send(&mut first, server, &Packet { number: 0 }, &pattern(1000, 1));
    let (status, text) = next(&mut first, server).unwrap_err();
    assert_eq!(status, Status::Unreachable, "{text}");
    // The connection is as good as before, and so is the file.
    let view = View::whole_file();
    first.write(&file, 1, &view, 0, &pattern(2000, 2)).unwrap();
    let (back, _) = first.read(&file, 1, &view, 0, 2000).unwrap();
    assert!(back == pattern(2000, 2));
    assert!(rig.count(0, "directed_failed") > 0);
}

#[test]
fn late_ranks_hear_of_a_failure_and_strangers_are_refused() {
    let rig = Rig::new(1);
    let (mut first, mut second, file, server) = two(&rig);
    let ids = [first.welcome.client, second.welcome.client];
    // A distribution that makes no sense ends the operation before anybody else has come.
    let mut wrong = lead(&file, ids, 5);
    wrong.ranks[1].view = 7;
    send(&mut first, server, &wrong, &[]);
    assert_eq!(
        next(&mut first, server).unwrap_err().0,
        Status::InvalidArgument
    );
    let follow = |operation, rank| Follow {
        view: 1,
        leader: ids[0],
        operation,
        rank,
    };
    send(&mut second, server, &follow(5, 1), &[]);
    assert_eq!(
        next(&mut second, server).unwrap_err().0,
        Status::InvalidArgument
    );
    // Whoever says that he is another rank ends it too: nobody knows what the others would write.
    send(&mut first, server, &lead(&file, ids, 6), &[]);
    assert!(next(&mut first, server).unwrap().is_some());
    send(&mut second, server, &follow(6, 0), &[]);
    assert_eq!(
        next(&mut second, server).unwrap_err().0,
        Status::PermissionDenied
    );
    send(&mut first, server, &Packet { number: 0 }, &pattern(1000, 1));
    assert_eq!(
        next(&mut first, server).unwrap_err().0,
        Status::PermissionDenied
    );
    // And the next one goes well, whatever strangers say.
    let mut stranger = rig.client();
    let same = stranger.open("/f", None, None);
    stranger.set_view(&same, 1, &View::whole_file());
    send(&mut first, server, &lead(&file, ids, 7), &[]);
    for rank in [0, 1, 2, u64::MAX] {
        send(&mut stranger, server, &follow(7, rank), &[]);
        let refused = next(&mut stranger, server).unwrap_err();
        assert_eq!(refused.0, Status::PermissionDenied, "{}", refused.1);
    }
    send(&mut second, server, &follow(7, 1), &[]);
    for (client, salt) in [(&mut first, 3), (&mut second, 4)] {
        assert!(next(client, server).unwrap().is_some());
        send(client, server, &Packet { number: 0 }, &pattern(1000, salt));
    }
    assert_eq!(next(&mut first, server), Ok(None));
    assert_eq!(next(&mut second, server), Ok(None));
}

/// Reads from this length on are of data, shorter ones of tables of checksums.
const DATA_BYTES: u64 = 16 << 10;
/// How long a test waits for something that has to come.
const LIMIT: Duration = Duration::from_secs(20);

/// Data reads that have begun, and how many may end.
#[derive(Debug, Default)]
struct Reads {
    begun: usize,
    allowed: usize,
}

/// Lets reads of data begin when they are allowed to end.
#[derive(Debug, Default)]
struct Gate {
    reads: Mutex<Reads>,
    changed: Condvar,
}

impl Watcher for Gate {
    fn asked(&self, name: &str, what: DiskRequest) -> io::Result<()> {
        if let DiskRequest::Read(_, len) = what
            && len >= DATA_BYTES
            && name.ends_with(".sub")
        {
            let mut reads = self.reads.lock().unwrap();
            reads.begun += 1;
            let number = reads.begun;
            self.changed.notify_all();
            let is_early = |reads: &mut Reads| reads.allowed < number;
            let waited = self.changed.wait_timeout_while(reads, LIMIT, is_early);
            if waited.unwrap().1.timed_out() {
                return Err(io::Error::other("nobody allows the read to end"));
            }
        }
        Ok(())
    }
}

/// Receives the next packet of a read as a whole; its first part and its bytes.
fn packet(client: &mut Client, server: u64) -> (Portion, Vec<u8>) {
    let link = client.lane(server);
    let (answer, said) = link.receive().unwrap();
    assert!(answer.status.is_ok() && answer.flags & MORE != 0);
    let portion = message::decode(said).unwrap();
    let mut bytes = vec![0; answer.payload_bytes as usize];
    link.receive_payload(&mut bytes).unwrap();
    (portion, bytes)
}

/// While the ranks are sent one round, the store reads the next one, and the other way round: with the store held in a read
/// all packets of the round before arrive, and before anybody has taken a byte of a round the next one is read.
#[test]
fn seed002_s63_the_store_reads_a_round_while_another_one_is_sent() {
    // Packets that no socket's buffer holds: a rank that does not receive holds up its round.
    const BLOCK: u64 = 8 << 20;
    const BLOCKS: u64 = 3;
    const RECORD: u64 = 64 << 10;
    let gate = Arc::new(Gate::default());
    let mut rig = Rig::new(0);
    let start = |rig: &mut Rig| {
        let socket = Endpoint::Unix(rig.dir.path().join("io-0.sock"));
        let dirs = vec![rig.dir.path().join("disk-0")];
        std::fs::create_dir_all(&dirs[0]).unwrap();
        let store = StoreOptions::Disk {
            dirs,
            memory_limit_bytes: 256 << 20,
        };
        let mut options = Options::new(rig.meta_endpoint.clone(), socket, store);
        options.write_through = true;
        let gate = gate.clone();
        let server = ioserver::start_on(options, |directory| {
            Arc::new(WatchedDisk::by(Arc::new(directory), gate.clone()))
        });
        rig.servers = vec![Some(server.unwrap())];
    };
    start(&mut rig);
    let data = pattern(BLOCKS * BLOCK, 9);
    {
        let mut writer = rig.client();
        let file = writer.open("/f", None, Some("striped(1GiB) over 1"));
        writer.set_view(&file, 1, &View::whole_file());
        let number = file.servers()[0];
        for at in (0..data.len()).step_by(1 << 20) {
            let (lo, hi) = (at as u64, at as u64 + (1 << 20));
            let access = file.access(1, lo, hi, 1 << 20);
            let part = &data[at..at + (1 << 20)];
            writer.write_at(number, access, &file, part).unwrap();
        }
    }
    // Another start has nothing in its cache.
    rig.servers.pop().unwrap().unwrap().stop();
    start(&mut rig);
    let (mut first, mut second, file, server) = two(&rig);
    let ids = [first.welcome.client, second.welcome.client];
    let view = |rank: u64| {
        let set = falls::FallsSet::segment(rank * RECORD, RECORD).unwrap();
        View::new(FileOffset(0), 2 * RECORD, set).unwrap()
    };
    let mut request = lead(&file, ids, 1);
    request.writes = false;
    request.block_bytes = BLOCK;
    request.views = vec![view(0), view(1)];
    for (rank, range) in request.ranks.iter_mut().enumerate() {
        range.view = rank as u32;
        (range.lo, range.hi) = (0, BLOCKS * BLOCK / 2);
    }
    let begun = |wanted: &dyn Fn(&Reads) -> bool| {
        let reads = gate.reads.lock().unwrap();
        let waited = gate
            .changed
            .wait_timeout_while(reads, LIMIT, |reads| !wanted(reads));
        let (reads, waited) = waited.unwrap();
        assert!(!waited.timed_out(), "{reads:?}");
        reads.begun
    };
    let allow = |reads: usize| {
        gate.reads.lock().unwrap().allowed = reads;
        gate.changed.notify_all();
    };
    send(&mut first, server, &request, &[]);
    // The second rank has not come, so no round is over. All reads of the first are allowed, and the store
    // still goes on to the second one.
    let one = begun(&|reads| reads.begun > 0);
    assert_eq!(one, 1, "a read at a time");
    allow(usize::MAX);
    let (portion, bytes) = packet(&mut first, server);
    let check = |rank: u64, block: u64, portion: &Portion, bytes: &[u8]| {
        assert_eq!(bytes.len() as u64, BLOCK / 2);
        assert_eq!(portion.parts[0].start / BLOCK, block);
        for (at, byte) in bytes.iter().enumerate() {
            let (record, inside) = (at as u64 / RECORD, at as u64 % RECORD);
            let file = block * BLOCK + (2 * record + rank) * RECORD + inside;
            assert_eq!(*byte, data[file as usize], "byte {file}");
        }
    };
    check(0, 0, &portion, &bytes);
    let rounds = || rig.count(0, "directed_rounds");
    let until = std::time::Instant::now() + LIMIT;
    while rounds() < 2 {
        assert!(std::time::Instant::now() < until, "the store is not ahead");
        std::thread::yield_now();
    }
    // Two buffers: the third round has to wait for the first. From here on the store is held in its next read.
    let before = gate.reads.lock().unwrap().begun;
    allow(before);
    let follow = Follow {
        view: 1,
        leader: ids[0],
        operation: 1,
        rank: 1,
    };
    send(&mut second, server, &follow, &[]);
    let (portion, bytes) = packet(&mut second, server);
    check(1, 0, &portion, &bytes);
    assert_eq!(begun(&|reads| reads.begun > before), before + 1);
    // Nobody has received a packet of the second round yet, and they are longer than what sockets hold: all of
    // this goes over the network while the store reads.
    for (rank, client) in [(0, &mut first), (1, &mut second)] {
        let (portion, bytes) = packet(client, server);
        check(rank, 1, &portion, &bytes);
    }
    assert_eq!(gate.reads.lock().unwrap().begun, before + 1, "still in it");
    assert_eq!(rounds(), 2);
    allow(usize::MAX);
    for (rank, client) in [(0, &mut first), (1, &mut second)] {
        let (portion, bytes) = packet(client, server);
        check(rank, 2, &portion, &bytes);
    }
    for client in [&mut first, &mut second] {
        assert_eq!(next(client, server), Ok(None));
    }
    assert!(rig.count(0, "directed_overlaps") > 0);
}

/// What a collective write makes lies in memory in as few stretches as its length needs, block behind block, however
/// small the blocks are in which it comes, and although somebody else takes memory between any two of them.
#[test]
fn seed002_s67_blocks_of_a_collective_write_are_contiguous_in_memory() {
    const BLOCK: u64 = 4096;
    const BLOCKS: u64 = 1024;
    let rig = Rig::new(1);
    let (mut first, mut second, file, server) = two(&rig);
    let ids = [first.welcome.client, second.welcome.client];
    let mut request = lead(&file, ids, 1);
    request.block_bytes = BLOCK;
    request.blocks = 4;
    let half = BLOCK * BLOCKS / 2;
    for (rank, range) in request.ranks.iter_mut().enumerate() {
        (range.lo, range.hi) = (rank as u64 * half, (rank as u64 + 1) * half);
    }
    let follow = Follow {
        view: 1,
        leader: ids[0],
        operation: 1,
        rank: 1,
    };
    send(&mut first, server, &request, &[]);
    send(&mut second, server, &follow, &[]);
    let data = pattern(BLOCK * BLOCKS, 3);
    std::thread::scope(|scope| {
        for (rank, client) in [&mut first, &mut second].into_iter().enumerate() {
            let (data, rig) = (&data, &rig);
            scope.spawn(move || {
                let mut number = 0;
                let mut beside = rig.client();
                let path = format!("/beside-{rank}");
                let other = beside.open(&path, None, Some("striped(4096) over 1"));
                beside.set_view(&other, 1, &View::whole_file());
                while let Some(portion) = next(client, server).unwrap() {
                    let at = number * BLOCK;
                    let access = other.access(1, at, at + BLOCK, BLOCK);
                    let one = vec![7; BLOCK as usize];
                    beside.write_at(server, access, &other, &one).unwrap();
                    let part = &portion.parts[0];
                    let bytes = &data[part.start as usize..part.end as usize];
                    send(client, server, &Packet { number }, bytes);
                    number += 1;
                }
                assert_eq!(number, half / BLOCK / 4);
            });
        }
    });
    let map = |client: &mut Client, file: &File, end: u64| {
        let mut sharer = Sharer::attach(client, server).unwrap();
        sharer.map(file, 1, false, &[(0, 0, end)]).unwrap().extents
    };
    let extents = map(&mut first, &file, BLOCK * BLOCKS);
    // Extents have powers of two of blocks, up to the longest that there are.
    assert!(extents.len() <= 3, "{extents:?}");
    let mut next = 0;
    for extent in &extents {
        assert_eq!(extent.offset, next, "block behind block: {extents:?}");
        next += extent.len;
    }
    assert!(next >= BLOCK * BLOCKS);
    let (back, _) = first
        .read(&file, 1, &View::whole_file(), 0, BLOCK * BLOCKS)
        .unwrap();
    assert!(back == data);
}
