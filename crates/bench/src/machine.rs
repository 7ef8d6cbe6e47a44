//! Owns the facts about the machine that belong beside every figure: processor, cores, caches,
//! kernel, load and huge pages, as far as the system tells.

use std::fs;

use serde_json::{Map, Value, json};

/// What a reader needs in order to judge the rows.
pub(crate) fn facts() -> Map<String, Value> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let mut facts = Map::new();
    let cpuinfo = read("/proc/cpuinfo");
    if let Some(model) = cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
    {
        let model = model.trim_start_matches([' ', '\t', ':']);
        facts.insert("cpu".to_owned(), json!(model));
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    facts.insert("cores".to_owned(), json!(cores));
    let caches = ::kernels::cache_sizes();
    facts.insert(
        "cache_bytes".to_owned(),
        json!([caches.l1, caches.l2, caches.l3]),
    );
    facts.insert(
        "kernel".to_owned(),
        json!(read("/proc/sys/kernel/osrelease").trim()),
    );
    let load = read("/proc/loadavg");
    facts.insert(
        "load".to_owned(),
        json!(load.split(' ').next().unwrap_or("")),
    );
    let huge = read("/sys/kernel/mm/transparent_hugepage/enabled");
    let huge = huge.split(['[', ']']).nth(1).unwrap_or("").to_owned();
    facts.insert("huge_pages".to_owned(), json!(huge));
    facts
}
