//! Which server holds which subfile: near to the processes that use it, and evenly.
//!
//! Where all servers are on one host, or nobody knows where processes are, subfiles are dealt in turn and the text of a
//! layout says nothing about servers.

use layout::{Layout, Partition};

use super::{Candidate, Question, common_bytes};
use crate::profile::blocks::AccessMap;

/// Whether it makes a difference which server holds a subfile.
pub(super) fn matters(question: &Question<'_>, map: &AccessMap) -> bool {
    let hosts = question.hosts();
    let open = question.open_servers();
    let is_known = map.processes.iter().any(|p| p.nearest.is_some());
    let differ = hosts.windows(2).any(|w| w[0] != w[1]);
    (is_known && differ) || open.len() < question.servers.len()
}

/// The server of each subfile.
pub(super) fn homes(question: &Question<'_>, map: &AccessMap, partition: &Partition) -> Vec<usize> {
    let open = question.open_servers();
    let count = partition.len();
    if !matters(question, map) {
        return (0..count).map(|j| open[j % open.len()]).collect();
    }
    let wanted = wanted(question, map, partition);
    // As many on each server as there are, up to one: the spread of a layout is its own affair.
    let most = count.div_ceil(open.len());
    let mut order: Vec<usize> = (0..count).collect();
    let best = |j: usize| wanted[j].iter().copied().fold(0.0, f64::max);
    order.sort_by(|a, b| best(*b).total_cmp(&best(*a)).then(a.cmp(b)));
    let mut homes = vec![usize::MAX; count];
    let mut held = vec![0; question.servers.len()];
    for j in order {
        let free = open.iter().copied().filter(|s| held[*s] < most);
        let to = free.max_by(|a, b| {
            let by_use = wanted[j][*a].total_cmp(&wanted[j][*b]);
            by_use.then(held[*b].cmp(&held[*a])).then(b.cmp(a))
        });
        homes[j] = to.unwrap_or(open[0]);
        held[homes[j]] += 1;
    }
    // Exchanges that bring more bytes near, until there is none.
    for _ in 0..count {
        let mut is_better = false;
        for a in 0..count {
            for b in a + 1..count {
                let (x, y) = (homes[a], homes[b]);
                let now = wanted[a][x] + wanted[b][y];
                if wanted[a][y] + wanted[b][x] > now + 0.5 {
                    homes.swap(a, b);
                    is_better = true;
                }
            }
        }
        if !is_better || count > 256 {
            break;
        }
    }
    homes
}

/// Bytes that processes near to each server move in each subfile.
fn wanted(question: &Question<'_>, map: &AccessMap, partition: &Partition) -> Vec<Vec<f64>> {
    let mut wanted = vec![vec![0.0; question.servers.len()]; partition.len()];
    for one in &map.uses {
        let Some(nearest) = map.processes[one.process].nearest else {
            continue;
        };
        let Some(at) = question.servers.iter().position(|s| s.number == nearest) else {
            continue;
        };
        for (j, list) in wanted.iter_mut().enumerate() {
            let subfile = partition.subfile(j);
            let meeting = falls::Meeting::new(&one.view, &subfile);
            let bytes: u64 = one.ranges.iter().map(|r| common_bytes(&meeting, r)).sum();
            list[at] += bytes as f64 * one.times;
        }
    }
    // All servers of a host are as near.
    let hosts = question.hosts();
    for list in &mut wanted {
        let alone = list.clone();
        for (s, sum) in list.iter_mut().enumerate() {
            let others = (0..alone.len()).filter(|o| *o != s && hosts[*o] == hosts[s]);
            *sum += others.map(|o| alone[o]).sum::<f64>();
        }
    }
    wanted
}

/// The text of a candidate, with servers where they are not simply dealt in turn.
pub(super) fn text(question: &Question<'_>, candidate: &Candidate) -> String {
    let layout = candidate.layout.clone().without_places();
    let in_turn =
        (0..candidate.homes.len()).all(|j| candidate.homes[j] == j % question.servers.len().max(1));
    let is_one_host = question.hosts().windows(2).all(|w| w[0] == w[1]);
    let all_open = question.open_servers().len() == question.servers.len();
    if in_turn && is_one_host && all_open {
        return layout.to_string();
    }
    let numbers: Vec<u64> = candidate
        .homes
        .iter()
        .map(|s| question.servers[*s].number)
        .collect();
    let placed: Option<Layout> = layout.clone().with_places(numbers).ok();
    placed.unwrap_or(layout).to_string()
}
