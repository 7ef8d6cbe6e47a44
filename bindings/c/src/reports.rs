//! What is told as JSON: statistics, hints, layouts, profiles, advice, servers and moves.
//!
//! Members are added, never changed; the commands of `pario` show more with `--json`, in the same words.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::time::Duration;

use client::{Client, Counter, File, MemberState, Phases, StoreKind, View};
use falls::{Meeting, Steps};
use layout::ArrayType;
use serde_json::{Map, Value, json};

use crate::connect::Connection;
use crate::entry::{Failure, Outcome, answer};
use crate::ffi::Text;
use crate::open::OpenFile;
use crate::structs::TextOut;
use crate::table::Handle;

/// Gives JSON to the program.
fn tell(name: &'static str, json: TextOut, report: impl FnOnce() -> Outcome<Value>) -> c_int {
    answer(name, || {
        json.required("json")?.set(std::ptr::null_mut());
        json.set_text(&report()?.to_string())
    })
}

fn counters(all: Vec<Counter>) -> Value {
    let pairs = all.into_iter().map(|c| (c.name, json!(c.value)));
    Value::Object(pairs.collect::<Map<_, _>>())
}

fn state_of(state: MemberState) -> &'static str {
    match state {
        MemberState::Alive => "alive",
        MemberState::Dead => "dead",
        _ => "left",
    }
}

fn store_of(store: StoreKind) -> &'static str {
    match store {
        StoreKind::Disk => "disk",
        _ => "memory",
    }
}

fn servers(client: &Client) -> Outcome<Value> {
    let one = |member: client::Member| {
        let mut facts = json!({
            "server": member.server.0,
            "address": member.address,
            "store": store_of(member.store),
            "state": state_of(member.state),
            "draining": member.is_draining,
            "capacity_bytes": member.capacity_bytes,
            "used_bytes": member.used_bytes,
        });
        if member.state == MemberState::Alive
            && let Ok(counted) = client.server_statistics(member.server)
        {
            facts["counters"] = counters(counted);
        }
        facts
    };
    Ok(Value::Array(
        client.members()?.into_iter().map(one).collect(),
    ))
}

fn statistics(client: &Client) -> Outcome<Value> {
    let direct = client.direct_statistics();
    let (messages, messages_of_bytes) = client.messages_sent();
    let counts = client.counts()?;
    let mut facts = json!({
        "client": client.id().0,
        "messages": messages,
        "messages_of_bytes": messages_of_bytes,
        "direct": {
            "attached": direct.attached,
            "reads": direct.reads,
            "writes": direct.writes,
            "read_bytes": direct.read_bytes,
            "written_bytes": direct.written_bytes,
            "maps_asked": direct.maps_asked,
            "revoked": direct.revoked,
            "fallbacks": direct.fallbacks,
        },
        "files": counts.files,
        "directories": counts.directories,
        "servers": servers(client)?,
    });
    if let Ok(counted) = client.meta_statistics() {
        facts["manager"] = counters(counted);
    }
    Ok(facts)
}

/// What was counted by a client and by the servers of its service.
#[unsafe(no_mangle)]
extern "C" fn pario_statistics(client: Handle<Connection>, json: TextOut) -> c_int {
    tell("pario_statistics", json, || statistics(&client.get()?.0))
}

fn phases_json(last: &Phases) -> Value {
    let part = |p: &client::ServerPhases| {
        json!({
            "server": p.server,
            "bytes": p.bytes,
            "messages": p.messages,
            "waited_ns": p.waited_ns,
            "copied_ns": p.copied_ns,
            "served_ns": p.served_ns,
        })
    };
    json!({
        "requested_bytes": last.requested,
        "moved_bytes": last.moved,
        "end_of_file": last.is_end_of_file,
        "direct": last.is_direct,
        "collective": last.collective.map(client::Collective::word),
        "intersect_ns": last.intersect_ns,
        "map_ns": last.map_ns,
        "gather_ns": last.gather_ns,
        "send_to_last_answer_ns": last.send_to_last_answer_ns,
        "scatter_ns": last.scatter_ns,
        "total_ns": last.total_ns,
        "servers": last.servers.iter().map(part).collect::<Vec<_>>(),
        "bytes_between_servers": last.bytes_between,
        "hops": last.hops,
    })
}

fn of_file(file: &File) -> Value {
    let ahead = file.prefetch_statistics();
    let together = file.collective_statistics();
    json!({
        "last_access": phases_json(&file.last_access()),
        "prefetch": {
            "prefetched_bytes": ahead.prefetched_bytes,
            "hit_bytes": ahead.hit_bytes,
            "hits": ahead.hits,
            "misses": ahead.misses,
            "wasted_bytes": ahead.wasted_bytes,
            "voided": ahead.voided,
            "announced": ahead.announced,
        },
        "collective": {
            "independent": together.independent,
            "two_phase": together.two_phase,
            "sieved": together.sieved,
            "ddio": together.ddio,
            "pb_ddio": together.pb_ddio,
            "mb_ddio": together.mb_ddio,
            "two_phase_ddio": together.two_phase_ddio,
            "packets": together.packets,
            "exchanges": together.exchanges,
            "exchanged_bytes": together.exchanged_bytes,
        },
    })
}

/// How the last access of a file went, and what was counted of its accesses.
#[unsafe(no_mangle)]
extern "C" fn pario_file_statistics(file: Handle<OpenFile>, json: TextOut) -> c_int {
    tell("pario_file_statistics", json, || {
        Ok(of_file(&file.get()?.file))
    })
}

/// What became of the hints that an open file has heard of.
#[unsafe(no_mangle)]
extern "C" fn pario_hint_report(file: Handle<OpenFile>, json: TextOut) -> c_int {
    tell("pario_hint_report", json, || {
        let one = |r: client::HintReport| {
            json!({
                "name": r.name,
                "value": r.value,
                "source": r.source.word(),
                "place": r.place,
                "outcome": format!("{:?}", r.outcome).to_lowercase(),
                "why": r.why,
            })
        };
        let report = file.get()?.file.hint_report()?;
        Ok(Value::Array(report.into_iter().map(one).collect()))
    })
}

/// The layout of a file: how it is cut, which servers have which subfile, and why.
#[unsafe(no_mangle)]
extern "C" fn pario_layout_report(client: Handle<Connection>, path: Text, json: TextOut) -> c_int {
    tell("pario_layout_report", json, || {
        let found = client.get()?.0.layout(&path.required("path")?)?;
        let pieces = found.state.pieces.iter().map(|piece| {
            let places = piece.places.iter();
            let servers = places.map(|list| list.iter().map(|p| p.server).collect::<Vec<u64>>());
            let ranges = piece.ranges.iter().map(|r| json!([r.start, r.end]));
            json!({
                "generation": piece.generation,
                "ranges": ranges.collect::<Vec<_>>(),
                "subfiles": piece.places.len(),
                "servers": servers.collect::<Vec<_>>(),
            })
        });
        Ok(json!({
            "array": found.array,
            "layout": found.text,
            "distribution": found.distribution,
            "step": found.state.step,
            "owner": found.state.owner.server,
            "pieces": pieces.collect::<Vec<_>>(),
            "lost": found.lost.iter().map(|p| p.server).collect::<Vec<_>>(),
        }))
    })
}

/// What was observed of the use of a file.
#[unsafe(no_mangle)]
extern "C" fn pario_profile(client: Handle<Connection>, path: Text, json: TextOut) -> c_int {
    tell("pario_profile", json, || {
        let found = client.get()?.0.profile(&path.required("path")?)?;
        let total = found.profile.total();
        let entries = found.profile.entries().into_iter().map(|(key, entry)| {
            let view = entry.view.bytes();
            json!({
                "application": key.application,
                "rank": key.rank,
                "processes": entry.processes,
                "view": view.set().to_string(),
                "displacement": view.displacement(),
                "period": view.period(),
                "text": entry.text,
                "reads": entry.read.count(),
                "read_bytes": entry.read.bytes,
                "writes": entry.written.count(),
                "written_bytes": entry.written.bytes,
            })
        });
        Ok(json!({
            "entries": entries.collect::<Vec<_>>(),
            "reads": total.read.count(),
            "read_bytes": total.read.bytes,
            "writes": total.written.count(),
            "written_bytes": total.written.bytes,
            "auto_layout": found.auto_layout,
            "moves": found.moves,
            "suggestion": found.suggestion,
            "why": found.why,
        }))
    })
}

/// Forgets what was observed of a file.
#[unsafe(no_mangle)]
extern "C" fn pario_clear_profile(client: Handle<Connection>, path: Text) -> c_int {
    answer("pario_clear_profile", || {
        Ok(client.get()?.0.clear_profile(&path.required("path")?)?)
    })
}

/// Layouts that would suit what was observed of a file, best first; the search takes no longer than so many milliseconds, or
/// as long as it is worth for 0.
#[unsafe(no_mangle)]
extern "C" fn pario_advise(
    client: Handle<Connection>,
    path: Text,
    budget_ms: u64,
    json: TextOut,
) -> c_int {
    tell("pario_advise", json, || {
        let budget = Some(budget_ms)
            .filter(|ms| *ms > 0)
            .map(Duration::from_millis);
        let advice = client.get()?.0.advise(&path.required("path")?, budget)?;
        let ranked = advice.advised.ranked.iter().map(|a| {
            json!({
                "layout": a.layout,
                "kind": a.kind.word(),
                "predicted_s": a.seconds,
                "predicted_gain": a.gain_s,
                "move_cost_s": a.move_s,
                "phases_s": a.phases,
            })
        });
        Ok(json!({
            "layout": advice.layout,
            "file_bytes": advice.bytes,
            "judged": advice.advised.judged,
            "cut_short": advice.advised.is_cut_short,
            "compromise": advice.advised.compromise,
            "ranked": ranked.collect::<Vec<_>>(),
        }))
    })
}

/// Subfiles up to which an access is explained one by one.
const MOST_SUBFILES: usize = 1 << 16;

/// Steps that counting the pieces of an access may take.
const MOST_STEPS: u64 = 1 << 20;

/// Where the bytes of a view lie: how many in which subfile, and at which server.
fn explain(client: &Client, path: &str, view: Option<&str>) -> Outcome<Value> {
    let found = client.layout(path)?;
    let size = client.stat(path)?.size;
    let array: Option<ArrayType> = found.array.as_deref().and_then(|text| text.parse().ok());
    let array = array.filter(|array| array.bytes() > 0);
    let end = array.as_ref().map_or(size, |array| size.max(array.bytes()));
    let view = match view {
        Some(text) => crate::views::of_text(text, array.as_ref())?,
        None => View::whole_file(),
    };
    let pieces = &found.state.pieces;
    let count: usize = pieces.iter().map(|piece| piece.places.len()).sum();
    if count > MOST_SUBFILES {
        let text = format!("has {count} subfiles; {MOST_SUBFILES} are explained at most");
        return Err(Failure::argument("path", text));
    }
    let mut subfiles = Vec::new();
    let mut by_server: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    let mut is_counted = true;
    let mut steps = Steps::new(MOST_STEPS);
    for piece in pieces {
        for (number, places) in piece.places.iter().enumerate() {
            let meeting = Meeting::new(view.bytes(), &piece.partition.subfile(number));
            // What is not regular is counted piece by piece, as long as that takes no time to speak of.
            let mut inside = piece
                .ranges
                .iter()
                .map(|r| r.start.min(end)..r.end.min(end));
            let bytes = inside.try_fold(0, |sum, range| {
                let counted = meeting.count_at_most(range, u64::MAX, &mut steps);
                counted.map(|bytes| sum + bytes)
            });
            let Ok(bytes) = bytes else {
                is_counted = false;
                continue;
            };
            let server = places.first().map_or(0, |place| place.server);
            if bytes > 0 {
                let sum = by_server.entry(server).or_default();
                (sum.0, sum.1) = (sum.0 + bytes, sum.1 + 1);
                subfiles.push(json!({
                    "generation": piece.generation,
                    "subfile": number,
                    "server": server,
                    "bytes": bytes,
                }));
            }
        }
    }
    let server = |(server, (bytes, subfiles)): (&u64, &(u64, u64))| json!({"server": server, "bytes": bytes, "subfiles": subfiles});
    Ok(json!({
        "layout": found.text,
        "view_bytes": view.len_within(end),
        "counted": is_counted,
        "servers": by_server.iter().map(server).collect::<Vec<_>>(),
        "subfiles": subfiles,
    }))
}

/// Where the bytes of a view of a file lie: which servers an access reaches, and how many bytes each has of it. What it costs
/// says the command `pario explain`.
#[unsafe(no_mangle)]
extern "C" fn pario_explain(
    client: Handle<Connection>,
    path: Text,
    view: Text,
    json: TextOut,
) -> c_int {
    tell("pario_explain", json, || {
        let client = client.get()?;
        let view = view.get("view")?;
        explain(&client.0, &path.required("path")?, view.as_deref())
    })
}
