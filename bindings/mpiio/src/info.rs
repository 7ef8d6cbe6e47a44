//! Hints: what a program gives in an info object, and what it is told is in force.
//!
//! | hint of the program | here |
//! |---|---|
//! | `striping_unit`, `striping_factor`, `start_iodevice` | the layout of a new file |
//! | `io_node_list` | numbers of the servers that may hold a new file |
//! | `access_style` | how far to read ahead, what to keep, and the stripes of a new file |
//! | `chunked`, `chunked_item`, `chunked_size` | array and layout in chunks of a new file |
//! | `file_perm` | permissions of a new file, octal |
//! | `nb_proc` | how many processes a new file is placed for |
//! | `romio_ds_read`, `romio_ds_write` = `enable` | the strategy `sieving` |
//! | `romio_cb_read`, `romio_cb_write` = `enable`; `collective_buffering` = `true` | the strategy `two_phase` |
//! | `cb_buffer_size`, `ind_rd_buffer_size`, `ind_wr_buffer_size` | windows of those strategies |
//! | `pario_NAME` | the hint NAME of `client` |
//! | other hints of the standard and of ROMIO | kept and told, without effect |
//! | all others | passed over |
//!
//! Invariants
//! - Hints are advice: a value that makes no sense is passed over, never an error.
//! - A file is created as rank 0 wishes; other processes may have other hints.
//!
//! Left to others: what a hint of `client` does (`client::Hints`).

use client::{Collective, Hints, OpenOptions};

use crate::entry::{Call, Outcome};
use crate::ffi::Word;
use crate::host::Host;
use crate::open_file::{Mode, OpenFile};

/// Names and values as a program gives them.
pub(crate) type Pairs = Vec<(String, String)>;

/// Hints of others that are told as they were given.
const KEPT: &[&str] = &[
    "collective_buffering",
    "cb_block_size",
    "cb_config_list",
    "cb_nodes",
    "chunked",
    "chunked_item",
    "chunked_size",
    "file_perm",
    "num_io_nodes",
    "romio_cb_read",
    "romio_cb_write",
    "romio_cb_pfr",
    "romio_cb_fr_types",
    "romio_cb_fr_alignment",
    "romio_cb_ds_threshold",
    "romio_cb_alltoall",
    "romio_ds_read",
    "romio_ds_write",
    "romio_ds_wr_lb",
    "romio_no_indep_rw",
    "romio_synchronized_flush",
    "romio_visibility_immediate",
];

/// Hints of `client` that say what a new file is like.
const OF_NEW_FILES: &[&str] = &[
    "array",
    "layout",
    "striping_unit",
    "striping_factor",
    "striping_start",
    "server_list",
    "file_alignment",
    "expected_size",
    "expected_clients",
    "expected_access",
    "near_server",
];

/// Windows and domains unless a hint says otherwise, as `client` has them.
const SIZES: &[(&str, &str)] = &[
    ("cb_buffer_size", "4194304"),
    ("ind_rd_buffer_size", "4194304"),
    ("ind_wr_buffer_size", "524288"),
];

/// Copies of every byte; more are not kept yet, whatever `pario_replicas` asks for.
const REPLICAS: &str = "1";

/// The hint of `client` that a hint of a program means.
fn meaning(name: &str, value: &str) -> Option<(String, String)> {
    let value = value.trim();
    let hint = |name: &str, value: &str| Some((name.to_owned(), value.to_owned()));
    match name {
        "striping_unit" | "striping_factor" | "cb_buffer_size" | "ind_rd_buffer_size"
        | "ind_wr_buffer_size" | "access_style" => hint(name, value),
        "start_iodevice" => hint("striping_start", value),
        "io_node_list" => hint("server_list", value),
        "nb_proc" => hint("expected_clients", value),
        "romio_ds_read" | "romio_ds_write" if value.eq_ignore_ascii_case("enable") => {
            hint("strategy", "sieving")
        }
        "romio_cb_read" | "romio_cb_write" if value.eq_ignore_ascii_case("enable") => {
            hint("strategy", "two_phase")
        }
        "collective_buffering" if value.eq_ignore_ascii_case("true") => {
            hint("strategy", "two_phase")
        }
        // The pointer of a file is that of its opening.
        "pario_shared_pointer_group" => None,
        _ => hint(name.strip_prefix("pario_")?, value),
    }
}

/// Array and layout of a file that is accessed by sub-arrays, as the standard says it: `chunked` has the extents,
/// the most significant first, `chunked_size` those of a chunk, `chunked_item` the bytes of an item.
fn chunked(pairs: &[(String, String)]) -> Option<(String, String)> {
    let value = |name: &str| {
        let found = pairs.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.trim())
    };
    let numbers = |text: &str| -> Option<Vec<u64>> {
        let numbers = text.split(',').map(|n| n.trim().parse().ok());
        numbers.collect::<Option<Vec<u64>>>()
    };
    let item = match value("chunked_item").unwrap_or("1") {
        "1" => "u8",
        "2" => "u16",
        "4" => "u32",
        "8" => "u64",
        _ => return None,
    };
    let extents = numbers(value("chunked")?)?;
    let chunk = numbers(value("chunked_size")?)?;
    if extents.len() != chunk.len() || extents.contains(&0) || chunk.contains(&0) {
        return None;
    }
    let text = |list: &[u64]| {
        let list: Vec<String> = list.iter().map(u64::to_string).collect();
        list.join(",")
    };
    let array = format!("{item}[{}]", text(&extents));
    // The service deals them over all servers.
    Some((array, format!("chunks({})", text(&chunk))))
}

/// Those that mean something, as hints of `client`. What is said in its own words comes last, and so goes first.
fn meant(pairs: &[(String, String)]) -> Hints {
    let mut hints = Hints::new();
    if let Some((array, layout)) = chunked(pairs) {
        let _ = hints.set("array", &array);
        let _ = hints.set("layout", &layout);
    }
    for own in [false, true] {
        for (name, value) in pairs {
            if name.starts_with("pario_") == own
                && let Some((name, value)) = meaning(name, value)
            {
                // What `client` does not take is passed over.
                let _ = hints.set(&name, &value);
            }
        }
    }
    hints
}

/// Those that say what a new file is like.
pub(crate) fn of_new_file(pairs: &[(String, String)]) -> Pairs {
    let is_one = |name: &str, value: &str| {
        name == "file_perm"
            || matches!(name, "chunked" | "chunked_item" | "chunked_size")
            || meaning(name, value).is_some_and(|(name, _)| OF_NEW_FILES.contains(&&*name))
    };
    let chosen = pairs.iter().filter(|(name, value)| is_one(name, value));
    chosen.cloned().collect()
}

/// The others.
pub(crate) fn of_access(pairs: &[(String, String)]) -> Pairs {
    let new = of_new_file(pairs);
    let chosen = pairs.iter().filter(|pair| !new.contains(pair));
    chosen.cloned().collect()
}

/// How a file is opened with these hints.
pub(crate) fn options(pairs: &[(String, String)], how: &Mode) -> OpenOptions {
    let options = OpenOptions::new().hints(meant(pairs));
    let mode = pairs.iter().find(|(name, _)| name == "file_perm");
    let mode = mode.and_then(|(_, value)| u32::from_str_radix(value.trim(), 8).ok());
    match mode.filter(|mode| how.is_create && *mode <= 0o777) {
        Some(mode) => options.mode(mode),
        None => options,
    }
}

/// Hints as bytes, for other processes.
pub(crate) fn put(pairs: &[(String, String)]) -> Vec<u8> {
    let mut out = Vec::new();
    for text in pairs.iter().flat_map(|(name, value)| [name, value]) {
        out.extend_from_slice(&(text.len() as u32).to_le_bytes());
        out.extend_from_slice(text.as_bytes());
    }
    out
}

/// Hints of another process.
pub(crate) fn read(bytes: &[u8]) -> Pairs {
    let mut texts = Vec::new();
    let mut rest = bytes;
    while let Some((len, after)) = rest.split_first_chunk::<4>() {
        let len = (u32::from_le_bytes(*len) as usize).min(after.len());
        texts.push(String::from_utf8_lossy(&after[..len]).into_owned());
        rest = &after[len..];
    }
    let pairs = texts.chunks_exact(2);
    pairs.map(|p| (p[0].clone(), p[1].clone())).collect()
}

/// Adds the hints of an info object to those of a file; all processes do.
pub(crate) fn add_together(call: &Call, info: Word) -> Outcome {
    let file = &call.file;
    let new = file.agree(hints_of(call.host, info), &[], "")?;
    file.file.set_hints_together(&file.driven, &meant(&new))?;
    keep(file, new);
    Ok(())
}

/// Adds them for this process; what collective accesses do is decided with the next view.
pub(crate) fn add(call: &Call, info: Word) -> Outcome {
    let new = hints_of(call.host, info)?;
    if !new.is_empty() {
        call.file.file.set_hints(&meant(&new))?;
        keep(&call.file, new);
    }
    Ok(())
}

/// The hints of an info object.
pub(crate) fn hints_of(host: &Host, info: Word) -> Outcome<Pairs> {
    host.info(info)
}

fn keep(file: &OpenFile, new: Pairs) {
    let mut hints = file.hints.lock();
    for (name, value) in new {
        hints.retain(|(known, _)| *known != name);
        hints.push((name, value));
    }
}

/// What is in force for a file.
pub(crate) fn in_force(file: &OpenFile) -> Pairs {
    let mut told: Pairs = Vec::new();
    let mut tell = |name: &str, value: &str| {
        if !value.is_empty() && told.iter().all(|(known, _)| known != name) {
            told.push((name.to_owned(), value.to_owned()));
        }
    };
    tell("filename", &file.name);
    let hints = file.file.hints();
    let layout = file.file.layout();
    if let Some(piece) = layout.pieces.last() {
        tell("striping_factor", &piece.places.len().to_string());
    }
    if let Ok(answer) = file.file.layout_answer() {
        if let Some(unit) = unit_of(&answer.text) {
            tell("striping_unit", &unit.to_string());
        }
        tell("pario_layout", &answer.text);
        tell("pario_array", answer.array.as_deref().unwrap_or_default());
    }
    let used = file.file.last_access().collective.map(|how| match how {
        Collective::Independent => "views",
        how => how.word(),
    });
    let strategy = hints.get("strategy").or(used).unwrap_or("views");
    tell("pario_strategy", strategy);
    let pending = if file.refuses_pending() {
        "refuse"
    } else {
        "wait"
    };
    tell("pario_pending", pending);
    let done = file.file.collective_statistics();
    let accesses = format!(
        "views={} two_phase={} sieving={} ddio={} pb_ddio={} mb_ddio={} two_phase_ddio={} exchanges={}",
        done.independent,
        done.two_phase,
        done.sieved,
        done.ddio,
        done.pb_ddio,
        done.mb_ddio,
        done.two_phase_ddio,
        done.exchanges
    );
    tell("pario_collective_accesses", &accesses);
    if let Some(choice) = file.file.last_choice() {
        tell("pario_collective_reason", choice.reason.text());
        if let Some(seconds) = choice.predicted_s {
            tell("pario_collective_predicted_s", &format!("{seconds:.6}"));
        }
    }
    tell("pario_replicas", REPLICAS);
    tell("pario_direct", hints.get("direct").unwrap_or("on"));
    let barrier = hints.get("collective_barrier").unwrap_or("off");
    tell("pario_collective_barrier", barrier);
    for (name, usual) in SIZES {
        tell(name, hints.get(name).unwrap_or(usual));
    }
    let size = file.team.size().to_string();
    tell("nb_proc", &size);
    for (name, value) in &*file.hints.lock() {
        if KEPT.contains(&&**name) {
            tell(name, value);
        }
    }
    if let Some(piece) = layout.pieces.last() {
        let mut servers: Vec<u64> = piece.places.iter().flatten().map(|p| p.server).collect();
        servers.sort_unstable();
        servers.dedup();
        let servers: Vec<String> = servers.iter().map(u64::to_string).collect();
        tell("io_node_list", &servers.join(","));
    }
    tell(
        "access_style",
        hints.get("access_style").unwrap_or_default(),
    );
    tell("cb_nodes", &size);
    for name in ["romio_cb_read", "romio_cb_write"] {
        tell(
            name,
            if strategy == "two_phase" {
                "enable"
            } else {
                "automatic"
            },
        );
    }
    for name in ["romio_ds_read", "romio_ds_write"] {
        tell(
            name,
            if strategy == "sieving" {
                "enable"
            } else {
                "automatic"
            },
        );
    }
    for (name, value) in hints.iter() {
        if client::Hints::is_known(name) && !OF_NEW_FILES.contains(&name) {
            tell(&format!("pario_{name}"), value);
        }
    }
    told
}

/// The unit of a layout in stripes.
fn unit_of(layout: &str) -> Option<u64> {
    let (unit, _) = layout.strip_prefix("striped(")?.split_once(')')?;
    unit.parse::<layout::ByteSize>().ok().map(|size| size.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(list: &[(&str, &str)]) -> Pairs {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        list.iter().map(own).collect()
    }

    #[test]
    fn hints_travel_as_they_are() {
        let given = pairs(&[("striping_unit", "65536"), ("empty", ""), ("é", "ü")]);
        assert_eq!(read(&put(&given)), given);
        assert!(read(&[]).is_empty());
        assert!(read(&[255, 255, 255, 255, 1]).is_empty());
    }

    #[test]
    fn hints_mean_what_the_table_says_and_nonsense_is_passed_over() {
        let hints = meant(&pairs(&[
            ("striping_unit", " 4096 "),
            ("striping_factor", "many"),
            ("nb_proc", "8"),
            ("romio_ds_write", "ENABLE"),
            ("romio_cb_read", "automatic"),
            ("pario_direct", "sideways"),
            ("unheard_of", "1"),
        ]));
        let all: Vec<(&str, &str)> = hints.iter().collect();
        let expected = [
            ("expected_clients", "8"),
            ("strategy", "sieving"),
            ("striping_unit", "4096"),
        ];
        assert_eq!(all, expected);
        // Our own words win over those that only suggest it.
        let both = [("pario_strategy", "views"), ("romio_cb_write", "enable")];
        assert_eq!(meant(&pairs(&both)).get("strategy"), Some("views"));
    }

    #[test]
    fn keys_of_the_standard_are_hints_of_the_file() {
        let hints = meant(&pairs(&[
            ("io_node_list", "0,2"),
            ("access_style", "read_once,sequential"),
            ("start_iodevice", "1"),
            ("chunked", "100, 60"),
            ("chunked_item", "8"),
            ("chunked_size", "10,20"),
        ]));
        for (name, value) in [
            ("server_list", "0,2"),
            ("access_style", "read_once,sequential"),
            ("striping_start", "1"),
            ("array", "u64[100,60]"),
            ("layout", "chunks(10,20)"),
        ] {
            assert_eq!(hints.get(name), Some(value), "{name}");
        }
        // Names of devices, styles and chunks that are none of ours are passed over.
        let odd = [
            ("io_node_list", "node17:/dev/sda"),
            ("access_style", "sometimes"),
            ("chunked", "100"),
            ("chunked_size", "10,20"),
        ];
        assert!(meant(&pairs(&odd)).is_empty());
        let given = pairs(&[("chunked", "4"), ("access_style", "random")]);
        assert_eq!(of_new_file(&given), given[..1]);
    }

    #[test]
    fn what_a_new_file_is_like_is_told_apart() {
        let given = pairs(&[
            ("file_perm", "600"),
            ("pario_layout", "striped(10) over 2"),
            ("romio_ds_read", "enable"),
            ("other", "x"),
        ]);
        assert_eq!(of_new_file(&given), given[..2]);
        assert_eq!(of_access(&given), given[2..]);
        assert_eq!(unit_of("striped(10) over 2"), Some(10));
        assert_eq!(unit_of("striped(1MiB) over 2"), Some(1 << 20));
        assert_eq!(unit_of("(block, *) onto 4"), None);
    }
}
