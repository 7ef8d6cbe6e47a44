//! What it costs to move a file into another layout: bytes over links and through stores, all servers at once.
//!
//! Subfiles that are the same on the same server stay where they are. A move beside other work takes its time; the
//! estimate is that of an idle service.

use layout::Partition;

use super::{Question, common_bytes};
use crate::cost::StoreKind;

/// Runs of a pair that are looked at.
const SAMPLED: usize = 64;

/// Seconds to move the file into a layout.
pub fn move_seconds(question: &Question<'_>, partition: &Partition, homes: &[usize]) -> f64 {
    let machine = question.machine;
    let size = question.file_bytes;
    let source = question.partition;
    let mut sent = vec![0.0; question.servers.len().max(1)];
    let mut received = sent.clone();
    let count = sent.len();
    for j in 0..partition.len() {
        let target = partition.subfile(j);
        let to = homes.get(j).copied().unwrap_or(j) % count;
        for i in 0..source.len() {
            let from = question.homes.get(i).copied().unwrap_or(i) % count;
            let subfile = source.subfile(i);
            let meeting = falls::Meeting::new(&subfile, &target);
            let bytes = common_bytes(&meeting, &(0..size));
            if bytes == 0 {
                continue;
            }
            let is_same = from == to && bytes == subfile.rank(size) && bytes == target.rank(size);
            if is_same {
                continue;
            }
            // Runs of a part stand for those of the whole.
            let sample = meeting.runs(0..size).take(SAMPLED).count().max(1);
            let seen: u64 = meeting.runs(0..size).take(SAMPLED).map(|r| r.len).sum();
            let piece = seen as f64 / sample as f64;
            let copied = bytes as f64 * machine.direct.at(piece);
            let hosts = (question.servers.get(from), question.servers.get(to));
            let is_near = matches!(hosts, (Some(a), Some(b)) if a.host == b.host);
            let travel = match is_near {
                true => 0.0,
                false => bytes as f64 * machine.far.byte_s,
            };
            let store = match question.store {
                StoreKind::Memory => &machine.memory,
                StoreKind::Disk => &machine.disk,
            };
            sent[from] += travel + bytes as f64 * store.read_byte_s;
            received[to] += travel + copied + bytes as f64 * store.write_byte_s;
        }
    }
    let slowest = sent
        .iter()
        .zip(&received)
        .map(|(s, r)| s + r)
        .fold(0.0, f64::max);
    // Servers of one host share its cores.
    let all: f64 = received.iter().sum();
    let first = question.servers.first().map(|s| s.host);
    let is_one_host = question.servers.iter().all(|s| Some(s.host) == first);
    let shared = if is_one_host {
        all / machine.cores.max(1.0)
    } else {
        0.0
    };
    slowest.max(shared) + 2e-3
}
