//! What can be seen of a catalogue, in a form that the model has too.
//!
//! Files without a name are found by their numbers, which are small.

use std::collections::{BTreeMap, BTreeSet};

use meta::FileId;
use meta::catalogue::{Catalogue, Credentials, Kind, MemberState, StoreKind};

/// What can be seen of either side.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Dump {
    pub(crate) nodes: BTreeMap<u64, (Option<String>, String)>,
    pub(crate) members: BTreeMap<u64, String>,
    pub(crate) removals: Vec<(u64, u64, u64)>,
}

/// What a catalogue shows.
pub(crate) fn dump(catalogue: &Catalogue) -> Dump {
    let mut dump = Dump::default();
    let snapshot = catalogue.snapshot().unwrap();
    let root = &Credentials::ROOT;
    // Numbers are small, so files without a name are found by trying.
    for id in 2..2000 {
        let Ok(a) = snapshot.stat_file(FileId(id)) else {
            continue;
        };
        let path = snapshot.path_of(a.file).unwrap();
        if let Some(path) = &path {
            assert_eq!(snapshot.stat(root, path).unwrap().file, a.file);
            let (parent, name) = path.rsplit_once('/').unwrap();
            let listing = snapshot
                .list(root, &format!("{parent}/"), None, 100)
                .unwrap();
            assert!(
                listing
                    .entries
                    .iter()
                    .any(|e| e.name == name && e.file == a.file)
            );
        }
        let mut line = format!("mode {:o}", a.mode);
        if a.kind == Kind::File {
            let state = snapshot.layout(a.file).unwrap().decode().unwrap();
            let places: BTreeMap<u64, Vec<(u64, u64)>> = state
                .pieces
                .iter()
                .map(|p| {
                    let flat = p.places.iter().flatten();
                    (
                        p.generation,
                        flat.map(|p| (p.server, p.incarnation)).collect(),
                    )
                })
                .collect();
            let views: BTreeSet<String> = match &path {
                Some(path) => {
                    let list = snapshot.views(root, path, None, 100).unwrap();
                    list.into_iter().map(|(name, _)| name).collect()
                }
                None => BTreeSet::new(),
            };
            let values: BTreeMap<String, usize> = match &path {
                Some(path) => {
                    let list = snapshot.values(root, path).unwrap();
                    list.into_iter()
                        .map(|v| (v.name, v.value.0.len()))
                        .collect()
                }
                None => BTreeMap::new(),
            };
            line += &format!(
                " step {} size {} epoch {} truncate {:?} layout {} places {:?} views {:?} values {:?} linked {} doomed {}",
                state.step,
                a.size,
                a.epoch,
                a.truncate_to,
                a.layout.unwrap(),
                places,
                views,
                values,
                a.is_linked,
                a.delete_on_close
            );
        }
        dump.nodes.insert(id, (path, line));
    }
    for m in snapshot.members().unwrap() {
        let line = format!(
            "{} since {} disk {} alive {}",
            m.incarnation,
            m.kept_since,
            m.store == StoreKind::Disk,
            m.state == MemberState::Alive
        );
        dump.members.insert(m.server.0, line);
        for r in snapshot.removals(m.server, None, 10_000).unwrap() {
            dump.removals.push((m.server.0, r.file.0, r.generation));
        }
    }
    dump
}
