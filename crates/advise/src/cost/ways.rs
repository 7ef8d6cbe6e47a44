//! The ways an access can be done, and what each costs.
//!
//! Each way adds up what it makes every process and every server do (`SpentTime`); one rule for all makes
//! elapsed time of that. Bytes of several processes at one server add up there: contention.

use layout::{FileOffset, View};
use plan::{Counts, Measures, Part};

use super::access::{Access, Home, Op, Process, StoreKind, plan};
use super::machine::{Link, Machine, StoreCost};

/// Longest window of a sieved read and of a sieved write.
const SIEVE_READ_BYTES: u64 = 4 << 20;
const SIEVE_WRITE_BYTES: u64 = 512 << 10;
/// Runs of the user's memory from which on they are sent from and received into where they are.
const LONG_RUN_BYTES: u64 = 16 << 10;
/// Bytes of a message that are packed or spread at a time.
const STEP_BYTES: u64 = 256 << 10;
/// Bytes by which a list describes one piece.
const LISTED_PIECE_BYTES: u64 = 16;
/// Bytes that a disk-directed server handles at a time.
const BLOCK_BYTES: u64 = 64 << 10;
/// Blocks of one round of the multi-block form.
const ROUND_BLOCKS: u64 = 16;

/// Who builds what a disk-directed collective access sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DirectedWay {
    /// The server, piece by piece.
    Piece,
    /// The server, one packet per process and block.
    Packet,
    /// The server, one packet per process and round of so many blocks; processes unpack.
    MultiBlock {
        /// Blocks of a round.
        blocks: u64,
    },
    /// Servers send blocks whole, each to one process; processes exchange.
    TwoPhase,
}

/// How an access is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Way {
    /// Straight between the user's memory and that of servers of the host; others by message.
    Direct,
    /// By message, contiguous on both ends.
    Message,
    /// By message, gathered or scattered on an end: servers know the view.
    Packed,
    /// By message, every request with a list of its pieces.
    List,
    /// One request per piece, one after the other.
    Pieces,
    /// Windows of the file, holes included; writes read first, under a lock.
    Sieved {
        /// Longest window.
        window_bytes: u64,
    },
    /// Regrouped among the processes, each of which accesses one contiguous domain.
    TwoPhase,
    /// One collective request per server, which orders the store's accesses and directs the transfers.
    DiskDirected(DirectedWay),
}

impl Way {
    /// The name in tables and hints.
    pub fn word(self) -> &'static str {
        match self {
            Way::Direct => "direct",
            Way::Message => "message",
            Way::Packed => "packed",
            Way::List => "list",
            Way::Pieces => "pieces",
            Way::Sieved { .. } => "sieving",
            Way::TwoPhase => "two_phase",
            Way::DiskDirected(DirectedWay::Piece) => "ddio",
            Way::DiskDirected(DirectedWay::Packet) => "pb_ddio",
            Way::DiskDirected(DirectedWay::MultiBlock { .. }) => "mb_ddio",
            Way::DiskDirected(DirectedWay::TwoPhase) => "two_phase_ddio",
        }
    }
}

/// What one server does in an access.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ServerLoad {
    /// Bytes that reach or leave it.
    pub bytes: u64,
    /// Requests.
    pub messages: u64,
    /// Pieces it gathers or scatters.
    pub pieces: u64,
    /// Time it is busy.
    pub seconds: f64,
}

/// What one way costs.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// The way.
    pub way: Way,
    /// From the first process that begins to the last that ends.
    pub seconds: f64,
    /// Requests of all processes, and messages between processes.
    pub messages: u64,
    /// Bytes that travel or are copied between processes and servers, holes included.
    pub bytes: u64,
    /// Server by server.
    pub per_server: Vec<ServerLoad>,
    /// How well views and layout match, 0 to 1; the same for all ways.
    pub matching: f64,
}

/// How well the views of an access match a layout.
pub fn matching(access: &Access<'_>, home: &Home<'_>) -> Measures {
    plan(access.processes, home.partition).measures()
}

/// All ways that are possible, the fastest first.
///
/// ```
/// use advise::cost::{Access, Home, Machine, Op, Process, StoreKind, Way, alternatives};
/// use layout::{Partition, Pattern, View};
/// let halves = Pattern::new(1 << 20, vec!["{(0,524287)}".parse().unwrap(), "{(524288,1048575)}".parse().unwrap()]);
/// let partition = Partition::from_start(halves.unwrap());
/// let home = Home { partition: &partition, servers: &[0, 1], server_count: 2, hosts: &[0, 0] };
/// let all = Process { view: View::whole_file(), lo: 0, hi: 1 << 20, near: Some(0) };
/// let access = Access { op: Op::Read, processes: &[all], is_collective: false, store: StoreKind::Memory };
/// let ways = alternatives(&Machine::HOST, &access, &home);
/// assert_eq!(ways[0].way, Way::Direct);
/// assert!(ways.iter().all(|p| p.bytes >= 1 << 20));
/// ```
pub fn alternatives(machine: &Machine, access: &Access<'_>, home: &Home<'_>) -> Vec<Prediction> {
    let case = Case::new(machine, access, home);
    let mut all = vec![case.by_message(case.message_way())];
    if case.processes.iter().any(|p| p.is_direct) {
        all.push(case.direct());
    }
    if case.pairs.iter().any(|p| p.counts.copy_runs > 1) {
        all.push(case.list());
        all.push(case.pieces());
        all.push(case.sieved());
    }
    if access.is_collective && access.processes.len() > 1 {
        all.push(case.two_phase());
        for form in [
            DirectedWay::Piece,
            DirectedWay::Packet,
            DirectedWay::MultiBlock {
                blocks: ROUND_BLOCKS,
            },
            DirectedWay::TwoPhase,
        ] {
            all.push(case.disk_directed(form));
        }
    }
    all.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    all
}

/// One process with what it knows of the servers.
#[derive(Clone, Copy, Debug)]
struct Member {
    bytes: u64,
    /// Bytes of all processes of its host, which share its caches.
    extent: u64,
    host: usize,
    /// Whether all its bytes are at servers of its host, whose memory it can map.
    is_direct: bool,
}

/// What one process has to do with one subfile.
#[derive(Clone, Copy, Debug)]
struct Pair {
    process: usize,
    server: usize,
    counts: Counts,
    is_lazy: bool,
}

/// An access with its counts.
struct Case<'a> {
    machine: &'a Machine,
    access: &'a Access<'a>,
    home: &'a Home<'a>,
    pairs: Vec<Pair>,
    processes: Vec<Member>,
    matching: f64,
}

/// Time spent where, while a way is added up.
#[derive(Clone, Debug)]
struct SpentTime {
    process: Vec<f64>,
    server: Vec<ServerLoad>,
    /// Messages that the longest flow between a process and a server takes: how far they overlap.
    longest_flow: u64,
    waits: f64,
    bytes: u64,
    messages: u64,
}

impl<'a> Case<'a> {
    fn new(machine: &'a Machine, access: &'a Access<'a>, home: &'a Home<'a>) -> Self {
        let plan = plan(access.processes, home.partition);
        let pairs = pairs_of(&plan, home);
        let host_of = |p: &Process, i: usize| match p.near {
            Some(server) => home.host_of(server),
            // A host without servers, unlike all others.
            None => usize::MAX - i,
        };
        let mut processes: Vec<Member> = access
            .processes
            .iter()
            .enumerate()
            .map(|(i, p)| {
                let host = host_of(p, i);
                let mut mine = pairs.iter().filter(|pair| pair.process == i).peekable();
                Member {
                    bytes: p.bytes(),
                    extent: 0,
                    host,
                    is_direct: access.store == StoreKind::Memory
                        && mine.peek().is_some()
                        && mine.all(|pair| home.host_of(pair.server) == host),
                }
            })
            .collect();
        for i in 0..processes.len() {
            let of_host = processes.iter().filter(|p| p.host == processes[i].host);
            processes[i].extent = of_host.map(|p| p.bytes).fold(0, u64::saturating_add);
        }
        Case {
            machine,
            access,
            home,
            pairs,
            processes,
            matching: plan.measures().matching_degree(),
        }
    }

    /// How many times as long a copy of a process takes beside those of the others of its host.
    fn crowding(&self, process: usize) -> f64 {
        let Member { host, extent, .. } = self.processes[process];
        if extent as f64 <= self.machine.walk.cache_bytes {
            return 1.0;
        }
        let beside = |p: &&Member| p.host == host && p.bytes > 0;
        let count = self.processes.iter().filter(beside).count() as f64;
        let most = self.machine.cores.max(2.0);
        let busy = (count.min(most) - 1.0).max(0.0) / (most - 1.0);
        1.0 + busy * (self.machine.crowd.max(1.0) - 1.0)
    }

    fn nothing_spent(&self) -> SpentTime {
        SpentTime {
            process: vec![0.0; self.processes.len()],
            server: vec![ServerLoad::default(); self.home.server_count.max(1)],
            longest_flow: 1,
            waits: 0.0,
            bytes: 0,
            messages: 0,
        }
    }

    fn link(&self, process: usize, server: usize) -> &Link {
        match self.processes[process].host == self.home.host_of(server) {
            true => &self.machine.near,
            false => &self.machine.far,
        }
    }

    fn store(&self) -> &StoreCost {
        match self.access.store {
            StoreKind::Memory => &self.machine.memory,
            StoreKind::Disk => &self.machine.disk,
        }
    }

    /// What a store takes for `bytes` in `pieces` that are asked for at once.
    fn store_s(&self, op: Op, bytes: u64, pieces: u64) -> f64 {
        let store = self.store();
        let n = bytes as f64 / pieces.max(1) as f64;
        let touched = pieces as f64 * (n + store.block_bytes.saturating_sub(1) as f64);
        // Pieces of one block are there once it is; without more knowledge half of what is between.
        let moved = touched.min(bytes as f64 * 8.0).max(bytes as f64);
        let byte_s = match op {
            Op::Read => store.read_byte_s,
            Op::Write => store.write_byte_s,
        };
        store.latency_s + moved * byte_s
    }

    fn finish(&self, way: Way, spent: SpentTime) -> Prediction {
        let seconds = self.elapsed(&spent);
        Prediction {
            way,
            seconds,
            messages: spent.messages,
            bytes: spent.bytes,
            per_server: spent.server,
            matching: self.matching,
        }
    }

    /// The slowest of busiest process, busiest server and busiest host; see the module.
    fn elapsed(&self, spent: &SpentTime) -> f64 {
        let process = spent.process.iter().copied().fold(0.0, f64::max);
        let server = spent.server.iter().map(|s| s.seconds).fold(0.0, f64::max);
        let flow = spent.longest_flow.max(1) as f64;
        let overlapped = process.max(server) + process.min(server) / flow;
        let mut hosts: Vec<(usize, f64)> = Vec::new();
        let mut add = |host: usize, s: f64| match hosts.iter_mut().find(|h| h.0 == host) {
            Some(known) => known.1 += s,
            None => hosts.push((host, s)),
        };
        for (member, s) in self.processes.iter().zip(&spent.process) {
            add(member.host, *s);
        }
        for (i, load) in spent.server.iter().enumerate() {
            add(self.home.host_of(i), load.seconds);
        }
        let host = hosts.iter().map(|h| h.1).fold(0.0, f64::max) / self.machine.cores.max(1.0);
        spent.waits + overlapped.max(host)
    }

    /// Whether an end has to be gathered or scattered, or goes as it is.
    fn message_way(&self) -> Way {
        let contiguous = |p: &Pair| p.counts.source.runs <= 1 && p.counts.target.runs <= 1;
        match self.pairs.iter().all(contiguous) {
            true => Way::Message,
            false => Way::Packed,
        }
    }

    fn messages_for(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.machine.message_bytes.max(1)).max(1)
    }

    /// Adds one exchange of a process with a server: both ends and the link between.
    fn add_message(&self, spent: &mut SpentTime, pair: &Pair, extra_bytes: u64) {
        let machine = self.machine;
        let counts = &pair.counts;
        let link = self.link(pair.process, pair.server);
        let messages = self.messages_for(counts.bytes);
        let bytes = counts.bytes + extra_bytes;
        let travel = messages as f64 * link.message_s + bytes as f64 * link.byte_s;
        let op = self.access.op;
        let (near_curve, far_curve) = match op {
            Op::Read => (&machine.unpack, &machine.pack),
            Op::Write => (&machine.pack, &machine.unpack),
        };
        let extent = self.processes[pair.process].extent;
        let copied = |curve, end: &plan::EndCounts| match end.runs <= 1 {
            true => 0.0,
            false => machine.walk_s(curve, counts.bytes, end, extent),
        };
        let is_long = counts.bytes / counts.source.runs.max(1) >= LONG_RUN_BYTES;
        let at_process = match is_long {
            true => 0.0,
            false => copied(near_curve, &counts.source),
        };
        let lazy = match pair.is_lazy {
            true => counts.runs as f64 * machine.lazy_piece_s,
            false => 0.0,
        };
        spent.process[pair.process] += travel + lazy + at_process;
        let load = &mut spent.server[pair.server];
        load.bytes += bytes;
        load.messages += messages;
        load.pieces += counts.target.runs;
        load.seconds += travel
            + lazy
            + copied(far_curve, &counts.target)
            + self.store_s(op, counts.bytes, counts.target.runs);
        // Both ends work at a message in steps, while the rest of it is under way. A disk is read before the first,
        // and what a process packs it packs as a whole.
        let in_steps = self.access.store == StoreKind::Memory
            && (op == Op::Read || is_long || counts.source.runs <= 1);
        let steps = match in_steps {
            true => counts.bytes.div_ceil(STEP_BYTES).max(messages),
            false => messages,
        };
        spent.longest_flow = spent.longest_flow.max(steps);
        spent.waits = spent.waits.max(link.round_trip_s);
        spent.bytes += bytes;
        spent.messages += messages;
    }

    fn by_message(&self, way: Way) -> Prediction {
        let mut spent = self.nothing_spent();
        for pair in &self.pairs {
            self.add_message(&mut spent, pair, 0);
        }
        self.finish(way, spent)
    }

    fn direct(&self) -> Prediction {
        let mut spent = self.nothing_spent();
        let machine = self.machine;
        for pair in &self.pairs {
            if !self.processes[pair.process].is_direct {
                self.add_message(&mut spent, pair, 0);
                continue;
            }
            let c = &pair.counts;
            let n = c.bytes as f64 / c.copy_runs.max(1) as f64;
            let lazy = match pair.is_lazy {
                true => c.runs as f64 * machine.lazy_piece_s,
                false => 0.0,
            };
            let copied = c.bytes as f64 * machine.direct.at(n)
                + walk_both(machine, c, self.processes[pair.process].extent);
            spent.process[pair.process] +=
                machine.direct_s + lazy + copied * self.crowding(pair.process);
            let load = &mut spent.server[pair.server];
            load.bytes += c.bytes;
            load.pieces += c.target.runs;
            spent.bytes += c.bytes;
        }
        self.finish(Way::Direct, spent)
    }

    fn list(&self) -> Prediction {
        let mut spent = self.nothing_spent();
        for pair in &self.pairs {
            let listed = pair.counts.runs.saturating_mul(LISTED_PIECE_BYTES);
            self.add_message(&mut spent, pair, listed);
            // The list is written at one end and followed piece by piece at the other.
            let named = pair.counts.runs as f64 * self.machine.lazy_piece_s;
            spent.process[pair.process] += named;
            spent.server[pair.server].seconds += named;
        }
        self.finish(Way::List, spent)
    }

    fn pieces(&self) -> Prediction {
        let mut spent = self.nothing_spent();
        for pair in &self.pairs {
            let link = self.link(pair.process, pair.server);
            let c = &pair.counts;
            let pieces = c.runs.max(1);
            let travel = pieces as f64 * link.message_s + c.bytes as f64 * link.byte_s;
            // One after the other: every piece waits for its answer.
            let served = travel + self.store_s(self.access.op, c.bytes, pieces);
            spent.process[pair.process] += pieces as f64 * link.round_trip_s + travel + served;
            let load = &mut spent.server[pair.server];
            load.bytes += c.bytes;
            load.messages += pieces;
            load.pieces += pieces;
            load.seconds += served;
            spent.bytes += c.bytes;
            spent.messages += pieces;
            spent.longest_flow = spent.longest_flow.max(pieces);
        }
        self.finish(Way::Pieces, spent)
    }

    /// The processes, each with a contiguous range of the file.
    fn contiguous(&self, ranges: impl Iterator<Item = std::ops::Range<FileOffset>>) -> Vec<Pair> {
        let accesses: Vec<_> = ranges.map(|range| (View::whole_file(), range)).collect();
        pairs_of(
            &plan::Plan::for_accesses(&accesses, self.home.partition),
            self.home,
        )
    }

    fn sieved(&self) -> Prediction {
        let window_bytes = match self.access.op {
            Op::Read => SIEVE_READ_BYTES,
            Op::Write => SIEVE_WRITE_BYTES,
        };
        let mut spent = self.nothing_spent();
        let ranges = self.access.processes.iter().map(Process::file_range);
        let times = match self.access.op {
            Op::Read => 1,
            // The window is read, changed and written.
            Op::Write => 2,
        };
        for pair in self.contiguous(ranges) {
            for _ in 0..times {
                self.add_message(&mut spent, &pair, 0);
            }
        }
        let mut windows = 0f64;
        for (i, process) in self.access.processes.iter().enumerate() {
            let range = process.file_range();
            let span = range.end.0 - range.start.0;
            let count = span.div_ceil(window_bytes).max(1) as f64;
            windows = windows.max(count);
            let pieces = process.view.bytes().window(range.start.0..range.end.0);
            let end = plan::EndCounts {
                runs: pieces.run_count(),
                lines: pieces.granules_touched(64),
                pages: pieces.granules_touched(4096),
            };
            let curve = match self.access.op {
                Op::Read => &self.machine.pack,
                Op::Write => &self.machine.unpack,
            };
            let Member { bytes, extent, .. } = self.processes[i];
            spent.process[i] += self.machine.walk_s(curve, bytes, &end, extent);
        }
        // Windows follow one another, and those of a write are locked and unlocked.
        let steps = match self.access.op {
            Op::Read => 1.0,
            Op::Write => 4.0,
        };
        spent.waits *= windows * steps;
        self.finish(Way::Sieved { window_bytes }, spent)
    }

    /// From the first to the last byte that any process accesses.
    fn hull(&self) -> std::ops::Range<u64> {
        let ranges = self.access.processes.iter().map(Process::file_range);
        let (mut first, mut end) = (u64::MAX, 0);
        for range in ranges.filter(|r| !r.is_empty()) {
            (first, end) = (first.min(range.start.0), end.max(range.end.0));
        }
        first.min(end)..end
    }

    fn two_phase(&self) -> Prediction {
        let hull = self.hull();
        let count = self.processes.len() as u64;
        let share = (hull.end - hull.start).div_ceil(count.max(1));
        let cut = |i: u64| FileOffset((hull.start + i * share).min(hull.end));
        let mut spent = self.nothing_spent();
        for pair in self.contiguous((0..count).map(|i| cut(i)..cut(i + 1))) {
            self.add_message(&mut spent, &pair, 0);
        }
        self.add_exchange(&mut spent);
        self.finish(Way::TwoPhase, spent)
    }

    /// Every process gives and gets its bytes, packed where they leave and unpacked where they arrive.
    fn add_exchange(&self, spent: &mut SpentTime) {
        let machine = self.machine;
        let partners = self.processes.len() as u64;
        let mut steps = 0u64;
        for (i, member) in self.processes.iter().enumerate() {
            let (mut runs, mut lines, mut pages) = (0, 0.0, 0.0);
            for pair in self.pairs.iter().filter(|p| p.process == i) {
                runs += pair.counts.runs;
                lines += pair.counts.source.lines;
                pages += pair.counts.source.pages;
            }
            let end = plan::EndCounts { runs, lines, pages };
            spent.process[i] += machine.walk_s(&machine.pack, member.bytes, &end, member.extent)
                + machine.walk_s(&machine.unpack, member.bytes, &end, member.extent)
                + member.bytes as f64 * machine.exchange.byte_s
                + partners as f64 * machine.exchange.message_s;
            steps = steps.max(member.bytes.div_ceil(machine.exchange_bytes.max(1)));
            spent.bytes += member.bytes;
            spent.messages += partners.saturating_sub(1);
        }
        spent.waits += (steps + 2) as f64 * machine.exchange.round_trip_s;
    }

    fn disk_directed(&self, form: DirectedWay) -> Prediction {
        let mut spent = self.nothing_spent();
        let machine = self.machine;
        let op = self.access.op;
        // The server reads or writes each byte once, in its own order, while it sends or receives.
        let mut stored: Vec<(u64, u64)> = vec![(0, 0); spent.server.len()];
        for pair in &self.pairs {
            stored[pair.server].0 += pair.counts.bytes;
            stored[pair.server].1 += 1;
        }
        for pair in &self.pairs {
            let c = &pair.counts;
            let link = *self.link(pair.process, pair.server);
            // Blocks that a process has bytes in: all of them where its pieces are shorter than blocks.
            let own = c.bytes.div_ceil(BLOCK_BYTES).max(1);
            let all = stored[pair.server].0.div_ceil(BLOCK_BYTES).max(1);
            let blocks = own.saturating_add(c.target.runs.saturating_sub(1)).min(all);
            let (messages, packed, unpacked) = match form {
                // Twice for writes: each piece is asked for and comes.
                DirectedWay::Piece => (c.runs.max(1), false, false),
                DirectedWay::Packet => (blocks, true, true),
                DirectedWay::MultiBlock { blocks: round } => {
                    (blocks.div_ceil(round.max(1)), true, true)
                }
                // Of domains, which are contiguous and as long.
                DirectedWay::TwoPhase => (own.div_ceil(ROUND_BLOCKS), false, false),
            };
            let messages = match (form, op) {
                (DirectedWay::Piece, Op::Write) => 2 * messages,
                _ => messages,
            };
            let travel = messages as f64 * link.message_s + c.bytes as f64 * link.byte_s;
            let (at_process, at_server) = match op {
                Op::Read => (&machine.unpack, &machine.pack),
                Op::Write => (&machine.pack, &machine.unpack),
            };
            let extent = self.processes[pair.process].extent;
            spent.process[pair.process] += travel;
            if unpacked && c.source.runs > 1 {
                spent.process[pair.process] +=
                    machine.walk_s(at_process, c.bytes, &c.source, extent);
            }
            let load = &mut spent.server[pair.server];
            load.seconds += travel;
            if packed && c.target.runs > 1 {
                load.seconds += machine.walk_s(at_server, c.bytes, &c.target, extent);
                // The ranks take their parts of a round one after the other: lines that one touches and does not
                // fill come from afar for one of them, and the others find them near.
                if stored[pair.server].1 > 1 {
                    let excess = machine.walk.excess(c.bytes, &c.target, extent);
                    load.seconds -= excess.far_lines * machine.walk.far_line_s;
                }
            }
            load.bytes += c.bytes;
            load.messages += messages;
            load.pieces += c.target.runs;
            spent.bytes += c.bytes;
            spent.messages += messages;
            spent.longest_flow = spent.longest_flow.max(messages);
            spent.waits = spent.waits.max(link.round_trip_s);
        }
        if form == DirectedWay::TwoPhase {
            self.add_exchange(&mut spent);
        }
        for (load, (bytes, pairs)) in spent.server.iter_mut().zip(stored) {
            let store = self.store_s(op, bytes, 1);
            let requests = pairs.min(1) as f64 * machine.near.message_s;
            load.seconds = load.seconds.max(store) + requests + self.store().latency_s;
        }
        self.finish(Way::DiskDirected(form), spent)
    }
}

/// Lines and pages of both ends; bytes come from afar, and pieces are copied, once.
fn walk_both(machine: &Machine, counts: &Counts, extent: u64) -> f64 {
    let walk = &machine.walk;
    let source = walk.excess(counts.bytes, &counts.source, extent);
    let mut target = walk.excess(counts.bytes, &counts.target, extent);
    (target.far_bytes, target.odd_pieces) = (0.0, 0.0);
    let jumps = source.jumps.max(target.jumps);
    walk.excess_s(&source) + walk.excess_s(&target) + jumps * walk.jump_s
}

fn pairs_of(plan: &plan::Plan, home: &Home<'_>) -> Vec<Pair> {
    let of = |t: &plan::Transfer| Pair {
        process: match t.source() {
            Part::Element(i) => i,
            Part::Header => 0,
        },
        server: home.server_of(t.target()),
        counts: t.counts(),
        is_lazy: !t.meeting().is_symbolic(),
    };
    plan.transfers().iter().map(of).collect()
}
