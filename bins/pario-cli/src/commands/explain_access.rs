//! The part of `pario explain` that is about stored files: what an access will cost each way it can be done,
//! which way is taken, and, with `--analyze`, what it really took.
//!
//! Owns asking the service where subfiles are, the table of alternatives, and running the access: every
//! view is a process, all at once, each with a client of its own. Predicting is `advise::cost`.
//!
//! Invariants
//! - Nothing changes in the file: reads go to scratch memory, and writes write back what the same view
//!   has just read.
//! - Memory for an analysis is bounded; longer accesses are cut, and the prediction with them.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use advise::collective::{Abilities, pick};
use advise::cost::{
    Access, DirectedWay, Home, Machine, Op, Prediction, Process, StoreKind, Way, alternatives,
};
use client::{
    Choice, Client, Collective, ConnectOptions, File, Hints, LayoutState, Mapping, Member,
    OpenOptions, Phases, Places, Strategy, Team, View,
};
use falls::Meeting;
use layout::{FileSpan, ViewOffset};
use plan::access::{AccessPlan, Part, Shares};
use serde_json::{Value, json};

use super::Error;
use super::connection::{self, refused};
use super::names::{absolute, shown};
use super::output::{bytes, counted, time};

/// Most processes of an analysis.
const MOST_PROCESSES: usize = 64;
/// Most memory of an analysis, all processes together.
const MOST_BYTES: u64 = 1 << 30;
/// Timed accesses of an analysis; the best counts.
const TURNS: usize = 7;

/// What is asked about an access to a stored file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question {
    pub(crate) op: Op,
    /// As if servers had nothing of the file in memory.
    pub(crate) is_cold: bool,
    /// Collectively.
    pub(crate) together: bool,
    /// Run it, too.
    pub(crate) analyze: bool,
}

/// What is known about it.
pub(crate) struct Answer {
    question: Question,
    /// Whether this host was calibrated, and whether that still holds.
    calibrated: Option<bool>,
    /// Numbers of the servers, in the order of [`Prediction::per_server`].
    servers: Vec<u64>,
    /// By server number, what the access plan gives it; nothing where that takes too long to count.
    parts: Option<BTreeMap<u64, Parts>>,
    /// Generations of the layout that have bytes of the file: two while it moves.
    generations: usize,
    processes: usize,
    /// The way an access through these views takes.
    chosen: Way,
    /// Best first.
    ways: Vec<Prediction>,
    /// Bytes of the accesses that were run, if they had to be cut.
    cut_to: Option<u64>,
    measured: Option<Measured>,
}

/// What one server gets of the accesses, as clients will send them.
#[derive(Clone, Copy, Default)]
struct Parts {
    /// Bytes of one access in one subfile and one range of the file, which travel together.
    count: u64,
    bytes: u64,
}

/// Steps that counting the parts may take.
const MOST_STEPS: u64 = 1 << 22;

/// Walks the access plan that clients and servers walk: which server gets which parts.
fn parts_of(state: &LayoutState, processes: &[Process]) -> Option<BTreeMap<u64, Parts>> {
    let pieces = state.plan_pieces();
    let mut steps = falls::Steps::new(MOST_STEPS);
    let mut found: BTreeMap<u64, Parts> = BTreeMap::new();
    for process in processes {
        let range = ViewOffset(process.lo)..ViewOffset(process.hi);
        let Some(file) = process.view.file_range(range) else {
            continue;
        };
        let shares = Shares::new(process.view.bytes(), &pieces, None);
        let plan = AccessPlan::new(pieces.clone(), Arc::new(shares));
        let count = |home: plan::access::Home, file: FileSpan| {
            let share = plan.shares().with(home.piece, home.subfile);
            share.count_at_most(file.raw(), u64::MAX, &mut steps)
        };
        let take = |part: Part| {
            let places = &state.pieces[part.home.piece].places[part.home.subfile];
            let parts = places.first().map(|p| found.entry(p.server).or_default());
            if let Some(parts) = parts {
                parts.count += 1;
                parts.bytes += part.bytes;
            }
        };
        plan.try_parts(file.into(), count, take).ok()?;
    }
    Some(found)
}

/// What an analysis saw.
struct Measured {
    /// From the first process that began to the last that ended: first time, and best of the rest.
    first_s: f64,
    best_s: f64,
    turns: usize,
    is_direct: bool,
    messages: u64,
    bytes: u64,
    /// How a team did it.
    choice: Option<Choice>,
}

/// Where the file is, for the model.
struct Place {
    state: LayoutState,
    partition: layout::Partition,
    servers: Vec<usize>,
    numbers: Vec<u64>,
    hosts: Vec<usize>,
    near: Option<usize>,
    /// What clients reckon with where they choose.
    store: StoreKind,
}

impl Place {
    fn ask(client: &Client, path: &str) -> Result<Place, Error> {
        let layout = client.layout(path).map_err(refused)?;
        let members = client.members().map_err(refused)?;
        let newest = layout.state.pieces.iter().max_by_key(|p| p.generation);
        let piece = newest.ok_or("the file has no layout")?;
        let mut numbers: Vec<u64> = piece
            .places
            .iter()
            .filter_map(|places| places.first().map(|p| p.server))
            .collect();
        numbers.sort_unstable();
        numbers.dedup();
        let index_of = |server: u64| numbers.binary_search(&server).unwrap_or(0);
        let servers = piece
            .places
            .iter()
            .map(|places| places.first().map_or(0, |p| index_of(p.server)))
            .collect();
        let here = client.host_name();
        let host_of = |server: u64| {
            let member: Option<&Member> = members.iter().find(|m| m.server.0 == server);
            member.map_or_else(|| here.clone(), |m| client.host_of(m))
        };
        let mut names: Vec<String> = vec![here.clone()];
        let mut hosts = Vec::new();
        for &server in &numbers {
            let name = host_of(server);
            let known = names.iter().position(|n| *n == name);
            hosts.push(known.unwrap_or_else(|| {
                names.push(name);
                names.len() - 1
            }));
        }
        let is_disk =
            |m: &Member| numbers.contains(&m.server.0) && m.store == client::StoreKind::Disk;
        Ok(Place {
            store: match members.iter().any(is_disk) {
                true => StoreKind::Disk,
                false => StoreKind::Memory,
            },
            partition: piece.partition.clone(),
            state: layout.state.clone(),
            servers,
            near: hosts.iter().position(|&h| h == 0),
            numbers,
            hosts,
        })
    }

    fn home(&self) -> Home<'_> {
        Home {
            partition: &self.partition,
            servers: &self.servers,
            server_count: self.numbers.len(),
            hosts: &self.hosts,
        }
    }
}

/// Asks and predicts, and runs the access if asked for.
pub(crate) fn answer(
    path: &str,
    views: &[View],
    file_bytes: u64,
    question: Question,
) -> Result<Answer, Error> {
    let client = connection::connect_to_existing()?;
    let path = absolute(path);
    let place = Place::ask(&client, &path)?;
    let from = client.host_name();
    let kept = client.calibrations(Some(&from)).map_err(refused)?;
    let calibrated = kept
        .iter()
        .find(|c| c.to == from)
        .or(kept.first())
        .map(|c| !c.is_stale);
    let machine = client.machine();
    let mut cut_to = None;
    let mut lengths: Vec<u64> = views.iter().map(|v| v.len_within(file_bytes)).collect();
    if question.analyze {
        let size = client.stat(&path).map_err(refused)?.size;
        if size == 0 {
            return Err(format!(
                "--analyze: {} has no bytes; write it first, or leave --analyze out",
                shown(&path)
            )
            .into());
        }
        if views.len() > MOST_PROCESSES {
            return Err(format!(
                "--analyze: the view has {} elements, and each is a process; give one of at most {MOST_PROCESSES}, or pick one with [K]",
                views.len()
            )
            .into());
        }
        lengths = views
            .iter()
            .map(|v| v.len_within(size.min(file_bytes)))
            .collect();
        let most = MOST_BYTES / views.len().max(1) as u64;
        if lengths.iter().any(|&len| len > most) {
            cut_to = Some(most);
            lengths.iter_mut().for_each(|len| *len = (*len).min(most));
        }
    }
    let processes: Vec<Process> = views
        .iter()
        .zip(&lengths)
        .map(|(view, &hi)| Process {
            view: view.clone(),
            lo: 0,
            hi,
            near: place.near,
        })
        .collect();
    let options = ConnectOptions::from_env().map_err(refused)?;
    let store = match question.is_cold {
        true => StoreKind::Disk,
        false => StoreKind::Memory,
    };
    let mut ways = predict(&machine, &processes, &place, question.op, store);
    // Nothing goes directly where that is turned off.
    ways.retain(|p| options.direct || p.way != Way::Direct);
    let chosen = chosen(&machine, &processes, &place, question, &options);
    let measured = match question.analyze {
        true => Some(run(&path, views, &lengths, question)?),
        false => None,
    };
    Ok(Answer {
        question,
        calibrated,
        parts: parts_of(&place.state, &processes),
        generations: place.state.pieces.len(),
        servers: place.numbers,
        processes: views.len(),
        chosen,
        ways,
        cut_to,
        measured,
    })
}

fn predict(
    machine: &Machine,
    processes: &[Process],
    place: &Place,
    op: Op,
    store: StoreKind,
) -> Vec<Prediction> {
    let access = Access {
        op,
        processes,
        is_collective: processes.len() > 1,
        store,
    };
    alternatives(machine, &access, &place.home())
}

/// The way that is taken, by the rule that clients follow.
fn chosen(
    machine: &Machine,
    processes: &[Process],
    place: &Place,
    question: Question,
    options: &ConnectOptions,
) -> Way {
    let mut ways = predict(machine, processes, place, question.op, place.store);
    ways.retain(|p| options.direct || p.way != Way::Direct);
    let can = match question.together && processes.len() > 1 {
        true => abilities(processes, place, question.op, options),
        false => Abilities::alone(true),
    };
    let forced = options.strategy;
    let is_forced = |p: &&Prediction| p.way.word() == forced.word() && can.allow(p.way);
    let taken = match forced == Strategy::default() {
        true => pick(&ways, can),
        false => {
            let asked = ways.iter().find(is_forced);
            asked.or_else(|| pick(&ways, Abilities::alone(can.go_directly)))
        }
    };
    taken.map_or(Way::Message, |p| p.way)
}

/// What a team of these processes, all of this host, can do.
fn abilities(processes: &[Process], place: &Place, op: Op, options: &ConnectOptions) -> Abilities {
    let file_of = |p: &Process| {
        let file = p.view.file_range(ViewOffset(p.lo)..ViewOffset(p.hi));
        file.map_or(FileSpan::default(), FileSpan::from)
    };
    let files: Vec<FileSpan> = processes.iter().map(file_of).collect();
    let bytes = processes.iter().map(|p| p.hi - p.lo).sum();
    let are_apart = |a: usize, b: usize, both: FileSpan| {
        let views = (&processes[a].view, &processes[b].view);
        let meeting = Meeting::new(views.0.bytes(), views.1.bytes());
        meeting.is_symbolic() && meeting.count(both.raw()) == 0
    };
    // Through a gateway every process goes for itself.
    let is_mapped = options.mapping != Mapping::default();
    let is_whole = || plan::exchange::is_whole(&files, bytes, are_apart);
    Abilities {
        go_directly: options.direct && place.hosts.iter().all(|host| *host == 0),
        regroup: !is_mapped && (op == Op::Read || is_whole()),
        are_directed: !is_mapped && place.state.pieces.len() == 1,
    }
}

/// Runs the access: a thread with a client of its own for every view, all at once.
fn run(path: &str, views: &[View], lengths: &[u64], question: Question) -> Result<Measured, Error> {
    // Looking is no use of the file: advice is for the programs.
    let unseen = Hints::new().with("profile", "off").map_err(refused)?;
    let options = OpenOptions::new().read().hints(unseen);
    let options = match question.op {
        Op::Read => options,
        Op::Write => options.write(),
    };
    let mut clients = Vec::new();
    for _ in views {
        clients.push(connection::connect_to_existing()?);
    }
    // Members of a team have to come together within its limit, so that none is waited for in vain.
    let teams = match question.together {
        true => Team::threads_for(views.len(), Duration::from_secs(60)),
        false => views.iter().map(|_| Team::alone()).collect(),
    };
    let barrier = Barrier::new(views.len());
    let zero = Instant::now();
    let outcomes: Vec<Result<Turns, client::Error>> = std::thread::scope(|scope| {
        let (options, barrier) = (&options, &barrier);
        let ranks = clients.iter().zip(teams).zip(views).zip(lengths);
        let threads: Vec<_> = ranks
            .map(|(((client, team), view), &len)| {
                scope.spawn(move || {
                    let opened = Rank::open(client, team, path, options, view, question.together);
                    process(opened, len, question.op, barrier, zero)
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| match thread.join() {
                Ok(outcome) => outcome,
                Err(panic) => std::panic::resume_unwind(panic),
            })
            .collect()
    });
    let mut all = Vec::new();
    for outcome in outcomes {
        all.push(outcome.map_err(refused)?);
    }
    let elapsed = |turn: usize| {
        let begin = all.iter().map(|t| t.times[turn].0).fold(f64::MAX, f64::min);
        let end = all.iter().map(|t| t.times[turn].1).fold(0.0, f64::max);
        end - begin
    };
    Ok(Measured {
        first_s: elapsed(0),
        best_s: (1..=TURNS).map(elapsed).fold(f64::MAX, f64::min),
        turns: TURNS,
        is_direct: all.iter().all(|t| t.phases.is_direct),
        messages: all.iter().map(|t| t.phases.messages()).sum(),
        bytes: all.iter().map(|t| t.phases.moved).sum(),
        choice: all.iter().find_map(|t| t.choice.clone()),
    })
}

/// One process: alone, or a member of a team.
struct Rank {
    file: File,
    team: Option<Team>,
}

impl Rank {
    fn open(
        client: &Client,
        team: Team,
        path: &str,
        options: &OpenOptions,
        view: &View,
        together: bool,
    ) -> Result<Rank, client::Error> {
        if !together {
            let file = client.open(path, options)?;
            file.set_view(view)?;
            return Ok(Rank { file, team: None });
        }
        let file = client.open_together(&team, path, options)?;
        file.set_view_together(&team, view)?;
        Ok(Rank {
            file,
            team: Some(team),
        })
    }

    fn access(&self, op: Op, buffer: &mut [u8]) -> Result<(), client::Error> {
        let places = Places::bytes(buffer.len() as u64);
        let moved = match (&self.team, op) {
            (None, Op::Read) => self.file.read_at(0, buffer),
            (None, Op::Write) => self.file.write_at(0, buffer),
            (Some(team), Op::Read) => self.file.read_at_all(team, 0, buffer.into(), 0, &places),
            (Some(team), Op::Write) => {
                let memory = (&*buffer).into();
                self.file.write_at_all(team, 0, memory, 0, &places)
            }
        };
        moved.map(drop)
    }
}

/// When each turn of a process began and ended, and how the last one went.
struct Turns {
    times: Vec<(f64, f64)>,
    phases: Phases,
    choice: Option<Choice>,
}

fn process(
    rank: Result<Rank, client::Error>,
    len: u64,
    op: Op,
    barrier: &Barrier,
    zero: Instant,
) -> Result<Turns, client::Error> {
    let mut buffer = vec![0u8; len as usize];
    let mut outcome = match (&rank, op) {
        // What is there is what will be written.
        (Ok(rank), Op::Write) => rank.file.read_at(0, &mut buffer).map(drop),
        _ => Ok(()),
    };
    let mut times = Vec::new();
    for _ in 0..=TURNS {
        // Everybody comes to every turn, also who has failed: nobody waits for ever.
        barrier.wait();
        let begin = zero.elapsed().as_secs_f64();
        if let (Ok(rank), true) = (&rank, outcome.is_ok()) {
            outcome = rank.access(op, &mut buffer);
        }
        times.push((begin, zero.elapsed().as_secs_f64()));
    }
    let rank = rank?;
    outcome.map(|()| Turns {
        times,
        phases: rank.file.last_access(),
        choice: rank.team.and_then(|_| rank.file.last_choice()),
    })
}

fn needs_team(way: Way) -> bool {
    matches!(way, Way::TwoPhase | Way::DiskDirected(_))
}

fn what(way: Way) -> String {
    match way {
        Way::Direct => "between your memory and that of servers of this host".to_owned(),
        Way::Message => "by message, contiguous on both ends".to_owned(),
        Way::Packed => "by message; servers know the view, and only its bytes travel".to_owned(),
        Way::List => "by message with a list of pieces".to_owned(),
        Way::Pieces => "a request for every piece".to_owned(),
        Way::Sieved { window_bytes } => {
            format!("windows of {}, holes included", bytes(window_bytes))
        }
        Way::TwoPhase => "regrouped among the processes first".to_owned(),
        Way::DiskDirected(DirectedWay::Piece) => "servers send every piece by itself".to_owned(),
        Way::DiskDirected(DirectedWay::Packet) => {
            "servers send a packet per process and block".to_owned()
        }
        Way::DiskDirected(DirectedWay::MultiBlock { blocks }) => {
            format!("servers send a packet per process and {blocks} blocks")
        }
        Way::DiskDirected(DirectedWay::TwoPhase) => {
            "servers send blocks whole; processes exchange".to_owned()
        }
    }
}

impl Answer {
    fn op_word(&self) -> &'static str {
        match self.question.op {
            Op::Read => "read",
            Op::Write => "write",
        }
    }

    fn of_chosen(&self) -> Option<&Prediction> {
        self.ways.iter().find(|p| p.way == self.chosen)
    }

    /// What was predicted of the way that was really taken: direct access may be off, or not yet possible.
    fn of_taken(&self, measured: &Measured) -> Option<&Prediction> {
        let how = measured.choice.as_ref().map(|choice| choice.how);
        let is_taken = |p: &&Prediction| match how {
            Some(how) if how != Collective::Independent => p.way.word() == how.word(),
            _ if measured.is_direct => p.way == Way::Direct,
            _ => matches!(p.way, Way::Message | Way::Packed),
        };
        self.ways.iter().find(is_taken)
    }

    pub(crate) fn to_text(&self) -> String {
        let processes = counted(self.processes as u64, "process", "processes at once");
        let mut text = format!("\n  {} by {processes}\n", self.op_word());
        if let Some(chosen) = self.of_chosen() {
            let _ = writeln!(
                text,
                "  {:<16} {} ({}): {}",
                "chosen",
                chosen.way.word(),
                what(chosen.way),
                time(chosen.seconds)
            );
        }
        let basis = match (self.calibrated, self.question.is_cold) {
            (None, _) => "defaults; `pario calibrate` measures this host".to_owned(),
            (Some(false), _) => {
                "calibration is stale; measure again with `pario calibrate --if-stale`".to_owned()
            }
            (Some(true), true) => "calibrated; nothing in the memory of servers".to_owned(),
            (Some(true), false) => "calibrated; bytes in the memory of servers".to_owned(),
        };
        let _ = writeln!(text, "  {:<16} {basis}", "predicted from");
        let _ = writeln!(
            text,
            "\n  {:<24} {:>10} {:>9} {:>10} {:>12}  how",
            "way", "predicted", "messages", "travels", "busiest"
        );
        for p in &self.ways {
            let mark = if p.way == self.chosen { '*' } else { ' ' };
            let busiest = p.per_server.iter().map(|s| s.bytes).max().unwrap_or(0);
            let team = if needs_team(p.way) { ", together" } else { "" };
            let _ = writeln!(
                text,
                "{mark} {:<24} {:>10} {:>9} {:>10} {:>12}  {}{team}",
                p.way.word(),
                time(p.seconds),
                p.messages,
                bytes(p.bytes),
                bytes(busiest),
                what(p.way)
            );
        }
        self.write_servers(&mut text);
        self.write_measured(&mut text);
        text
    }

    /// What each server has to do the chosen way.
    fn write_servers(&self, text: &mut String) {
        let Some(chosen) = self.of_chosen() else {
            return;
        };
        let _ = writeln!(
            text,
            "\n  {:<10} {:>12} {:>7} {:>9} {:>10} {:>10}   the chosen way",
            "server", "bytes", "parts", "messages", "pieces", "busy"
        );
        const LISTED: usize = 16;
        for (number, load) in self.servers.iter().zip(&chosen.per_server).take(LISTED) {
            // What the plan has counts; the model knows the newest generation of the layout.
            let parts = self.parts_at(*number);
            let _ = writeln!(
                text,
                "  {number:<10} {:>12} {:>7} {:>9} {:>10} {:>10}",
                bytes(parts.map_or(load.bytes, |p| p.bytes)),
                parts.map_or("-".to_owned(), |p| p.count.to_string()),
                load.messages,
                load.pieces,
                time(load.seconds)
            );
        }
        if self.servers.len() > LISTED {
            let more = self.servers.len() - LISTED;
            let _ = writeln!(text, "  … {more} more servers (--json lists all)");
        }
        if self.generations > 1 {
            let _ = writeln!(
                text,
                "  the file moves to another layout: bytes and parts are those of this moment, times those of the new layout"
            );
        }
    }

    /// What the access plan gives to a server.
    fn parts_at(&self, server: u64) -> Option<Parts> {
        let parts = self.parts.as_ref()?;
        Some(parts.get(&server).copied().unwrap_or_default())
    }

    fn write_measured(&self, text: &mut String) {
        let Some(measured) = &self.measured else {
            return;
        };
        let Some(taken) = self.of_taken(measured) else {
            return;
        };
        let took = match (&measured.choice, measured.is_direct) {
            (Some(choice), false) => format!("{}, {}", choice.how.word(), choice.reason.text()),
            (_, true) => "directly".to_owned(),
            _ => format!("with {}", counted(measured.messages, "message", "messages")),
        };
        let _ = writeln!(
            text,
            "\n  {:<16} {} of {} {took}, {} the first time; predicted {}, {:.2} of what was measured",
            "measured",
            time(measured.best_s),
            bytes(measured.bytes),
            time(measured.first_s),
            time(taken.seconds),
            taken.seconds / measured.best_s.max(1e-9)
        );
        if let Some(cut) = self.cut_to {
            let _ = writeln!(
                text,
                "  {:<16} the first {} of every view, here and in the predictions",
                "",
                bytes(cut)
            );
        }
    }

    /// Adds what is known to the JSON of the plan.
    pub(crate) fn add_to(&self, value: &mut Value) {
        let ways: Vec<Value> = self
            .ways
            .iter()
            .map(|p| {
                let servers: Vec<Value> = self
                    .servers
                    .iter()
                    .zip(&p.per_server)
                    .map(|(number, s)| {
                        json!({"server": number, "bytes": s.bytes, "messages": s.messages, "pieces": s.pieces, "seconds": s.seconds})
                    })
                    .collect();
                json!({
                    "way": p.way.word(), "seconds": p.seconds, "messages": p.messages, "bytes": p.bytes,
                    "matching_degree": p.matching, "is_collective": needs_team(p.way), "servers": servers,
                })
            })
            .collect();
        let parts = self.parts.as_ref().map(|parts| {
            let of = |(server, p): (&u64, &Parts)| json!({"server": server, "parts": p.count, "bytes": p.bytes});
            parts.iter().map(of).collect::<Vec<Value>>()
        });
        value["parts"] = json!(parts);
        value["op"] = json!(self.op_word());
        value["processes"] = json!(self.processes);
        value["chosen"] = json!(self.chosen.word());
        value["alternatives"] = json!(ways);
        value["calibration"] = json!(match self.calibrated {
            None => "defaults",
            Some(true) => "good",
            Some(false) => "stale",
        });
        let taken = |m| self.of_taken(m).map(|taken| (m, taken));
        if let Some((m, taken)) = self.measured.as_ref().and_then(taken) {
            value["analyzed"] = json!({
                "way": taken.way.word(), "predicted_s": taken.seconds, "measured_s": m.best_s, "first_s": m.first_s, "turns": m.turns,
                "is_direct": m.is_direct, "messages": m.messages, "bytes": m.bytes, "cut_to": self.cut_to,
                "collective": m.choice.as_ref().map(|c| json!({"how": c.how.word(), "reason": c.reason.text()})),
            });
        }
    }
}
