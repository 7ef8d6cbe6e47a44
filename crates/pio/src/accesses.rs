//! Who read and wrote which block of a file while a program ran, and the same as a profile that is kept with the file.
//!
//! A profile has views, and tallies of what was done through them. Here a view is the blocks of one process, exactly: where their description is
//! too long for one entry they are several.

use advise::profile::blocks::AccessMap;
use advise::profile::template::Template;
use advise::profile::{Entry, MOST_ENTRIES, Profile, Recorder};
use dsm::{Access, PAGE_BYTES};
use layout::{BlockMap, FileOffset, OwnerRuns, View};

const BLOCK: u64 = PAGE_BYTES as u64;

/// Most bytes of the name of an application; a profile keeps no longer ones.
const MOST_NAME_BYTES: usize = 40;

/// Under which name accesses of an application to its shared memory are kept: apart from those of its file handles, by which it may have written the whole
/// file in one process.
pub(crate) fn name_of(application: &str) -> String {
    let mut end = application.len().min(MOST_NAME_BYTES);
    while !application.is_char_boundary(end) {
        end -= 1;
    }
    format!("dsm:{}", &application[..end])
}

/// Which process read and wrote each block of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accesses {
    processes: usize,
    bytes: u64,
    /// By process and block: whether it read, and whether it wrote.
    read: Vec<Vec<bool>>,
    written: Vec<Vec<bool>>,
}

impl Accesses {
    pub(crate) fn none(processes: usize, bytes: u64) -> Accesses {
        let blocks = bytes.div_ceil(BLOCK) as usize;
        Accesses {
            processes,
            bytes,
            read: vec![vec![false; blocks]; processes],
            written: vec![vec![false; blocks]; processes],
        }
    }

    /// Notes blocks that a process read or wrote, as first and count.
    pub(crate) fn note(&mut self, process: usize, runs: &[(u32, u32)], kind: Access) {
        let blocks = match kind {
            Access::Write => &mut self.written[process],
            Access::Read => &mut self.read[process],
        };
        for (first, count) in runs {
            let end = (*first as usize + *count as usize).min(blocks.len());
            blocks[(*first as usize).min(end)..end].fill(true);
        }
    }

    /// How many processes there were.
    pub fn processes(&self) -> usize {
        self.processes
    }

    /// Blocks of the file.
    pub fn blocks(&self) -> usize {
        self.bytes.div_ceil(BLOCK) as usize
    }

    /// Which processes accessed each block, ascending.
    pub fn accessors(&self) -> Vec<Vec<usize>> {
        let has = |block: usize, process: &usize| {
            self.read[*process][block] || self.written[*process][block]
        };
        let of_block = |block| (0..self.processes).filter(|p| has(block, p)).collect();
        (0..self.blocks()).map(of_block).collect()
    }

    /// Which processes wrote a block.
    pub fn writers(&self, block: usize) -> Vec<usize> {
        (0..self.processes)
            .filter(|process| self.written[*process][block])
            .collect()
    }

    /// As a profile, under the name of an application.
    pub fn profile(&self, application: &str) -> Profile {
        let mut profile = Profile::default();
        // A process may have so many entries that none is dropped.
        let most = (MOST_ENTRIES / (2 * self.processes).max(1)).max(1);
        for process in 0..self.processes {
            for kind in [Access::Read, Access::Write] {
                let blocks = match kind {
                    Access::Write => &self.written[process],
                    Access::Read => &self.read[process],
                };
                for mut entry in self.entries(blocks, most, kind) {
                    entry.processes = self.processes as u64;
                    profile.add(application, process as u64, entry);
                }
            }
        }
        profile
    }

    /// Entries of which each describes its blocks exactly, unless there would be too many of them.
    fn entries(&self, blocks: &[bool], most: usize, kind: Access) -> Vec<Entry> {
        let runs: Vec<(u64, u64)> = blocks
            .chunk_by(|a, b| a == b)
            .map(|run| (u64::from(run[0]), run.len() as u64))
            .collect();
        let touched = runs.iter().filter(|(owner, _)| *owner == 1).count();
        if touched == 0 {
            return Vec::new();
        }
        let mut parts = 1;
        loop {
            let each = touched.div_ceil(parts);
            let mut views = (0..parts).filter_map(|part| self.view(&runs, part * each, each));
            let entries: Option<Vec<Entry>> = views.try_fold(Vec::new(), |mut entries, view| {
                let mut entry = Entry::new(&view, "", self.bytes);
                if entry.is_coarse && parts < most {
                    return None;
                }
                let len = entry.view.len_within(self.bytes);
                let recorder = Recorder::default();
                recorder.record(kind == Access::Write, 0, len);
                [entry.read, entry.written] = recorder.take();
                entries.push(entry);
                Some(entries)
            });
            match entries {
                Some(entries) => return entries,
                None => parts = (parts * 2).min(most),
            }
        }
    }

    /// The view of some of the touched runs.
    fn view(&self, runs: &[(u64, u64)], from: usize, count: usize) -> Option<View> {
        let mut at = 0;
        let picked = runs.iter().map(|(owner, len)| {
            let is_mine = *owner == 1 && (from..from + count).contains(&at);
            at += usize::from(*owner == 1);
            (u64::from(is_mine), *len)
        });
        let picked: Vec<(u64, u64)> = picked.collect();
        if picked.iter().all(|(owner, _)| *owner == 0) {
            return None;
        }
        let map = BlockMap::new(BLOCK, OwnerRuns::from_runs(&picked).ok()?, 2).ok()?;
        View::new(FileOffset(0), map.period(), map.element(1).ok()?).ok()
    }

    /// What a profile says about an application with so many processes; nothing if it does not know it, or another file was meant.
    pub fn of_template(
        template: &Template,
        application: &str,
        array: Option<&layout::ArrayType>,
        bytes: u64,
        processes: usize,
    ) -> Option<Accesses> {
        let profile = template.fit(array, bytes, processes as u64).ok()?;
        let mut mine = Profile::default();
        for (key, entry) in profile.entries() {
            if key.application == application {
                mine.add(&key.application, key.rank, entry.clone());
            }
        }
        if mine.is_empty() {
            return None;
        }
        let mut accesses = Accesses::none(processes, bytes);
        let map = AccessMap::new(&mine, bytes);
        for one in &map.uses {
            let rank = map.processes[one.process].rank as usize;
            if rank >= processes {
                continue;
            }
            for block in 0..accesses.blocks() {
                let start = block as u64 * BLOCK;
                if one.bytes_in(start..start + BLOCK) == 0 {
                    continue;
                }
                match one.writes {
                    true => accesses.written[rank][block] = true,
                    false => accesses.read[rank][block] = true,
                }
            }
        }
        Some(accesses)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_apart_and_short_enough_to_be_found_again() {
        assert_eq!(name_of("sor"), "dsm:sor");
        let long = name_of(&"ä".repeat(50));
        let mut bands = Accesses::none(1, BLOCK);
        bands.note(0, &[(0, 1)], Access::Read);
        let profile = bands.profile(&long);
        assert_eq!(profile.entries()[0].0.application, long);
    }

    fn back(accesses: &Accesses) -> Option<Accesses> {
        let template = Template {
            array: String::new(),
            file_bytes: accesses.bytes,
            profile: accesses.profile("sor"),
        };
        let template = Template::load(&template.save()).expect("a template");
        Accesses::of_template(&template, "sor", None, accesses.bytes, accesses.processes)
    }

    #[test]
    fn accesses_come_back_from_a_profile_block_by_block() {
        let mut bands = Accesses::none(3, 10 * BLOCK - 7);
        bands.note(0, &[(0, 4)], Access::Read);
        bands.note(0, &[(0, 3)], Access::Write);
        bands.note(1, &[(3, 4)], Access::Read);
        bands.note(2, &[(6, 4)], Access::Read);
        bands.note(2, &[(9, 1)], Access::Write);
        assert_eq!(bands.accessors()[3], [0, 1]);
        assert_eq!(bands.writers(9), [2]);
        assert_eq!(back(&bands), Some(bands.clone()));
        assert_eq!(
            Accesses::of_template(
                &Template {
                    array: String::new(),
                    file_bytes: bands.bytes,
                    profile: bands.profile("sor"),
                },
                "another",
                None,
                bands.bytes,
                3
            ),
            None
        );
        // No order at all: described by several entries, and nothing is lost.
        let mut irregular = Accesses::none(4, 3000 * BLOCK);
        let mut state = 7u32;
        for block in 0..3000 {
            for process in 0..4 {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                if state >> 30 == 0 {
                    let kind = match state >> 29 & 1 {
                        1 => Access::Write,
                        _ => Access::Read,
                    };
                    irregular.note(process, &[(block, 1)], kind);
                }
            }
        }
        assert_eq!(back(&irregular), Some(irregular));
    }
}
