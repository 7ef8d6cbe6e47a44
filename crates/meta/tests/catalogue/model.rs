//! The catalogue as a few plain maps, with the rules written down a second time.
//!
//! It knows root only, keeps nothing on a disk, and says for every step which status is due. What it
//! looks like is compared with what the real one shows.

use std::collections::{BTreeMap, BTreeSet};

use meta::catalogue::{
    Batch, Caller, Catalogue, CreateOptions, Credentials, Join, LayoutSpec, MAX_VALUE_BYTES,
    NamedValue, NamedView, OpenOptions, StoreKind, UnlinkHow,
};
use meta::{ClientId, FileId, HandleId, MetaError, Rights, ServerId, Time};
use wire::Status;

use crate::dump::{Dump, dump};
use crate::moving::{begin_move, end_move, removed};
use random::Random;

pub(crate) const CLIENTS: [u64; 2] = [1, 2];
const LAYOUTS: [Option<&str>; 3] = [None, Some("whole"), Some("striped(4KiB) over 2")];

/// One operation.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Create {
        path: String,
        exclusive: bool,
        layout: usize,
    },
    Mkdir(String),
    Unlink(String, UnlinkHow),
    Rmdir(String),
    Rename(String, String),
    Chmod(String, u32),
    PutView(String, String),
    RemoveView(String, String),
    /// Keeps one value and removes another, or fails as a whole for a value that is too long.
    ChangeValues {
        path: String,
        put: String,
        bytes: usize,
        remove: String,
    },
    SetLayout(String, usize),
    Relayout(String, usize),
    EndRelayout(u64, bool),
    Open {
        client: u64,
        path: String,
        doomed: bool,
    },
    Close(usize),
    Release(u64),
    ReportSize {
        file: u64,
        back: u64,
        size: u64,
    },
    Truncate(usize, u64),
    FinishTruncate(u64),
    Join {
        server: u64,
        disk: bool,
        resumes: bool,
    },
    MarkDead(u64),
    ConfirmRemoval(usize),
}

impl Step {
    pub(crate) fn random(r: &mut Random, model: &Model) -> Step {
        let file = |r: &mut Random| r.below(model.next_file + 1);
        match r.below(42) {
            0..=8 => Step::Create {
                path: path(r),
                exclusive: r.below(2) == 0,
                layout: r.below(3) as usize,
            },
            9..=11 => Step::Mkdir(path(r)),
            12..=14 => {
                let how = [UnlinkHow::EvenIfOpen, UnlinkHow::UnlessOpen][r.below(2) as usize];
                Step::Unlink(path(r), how)
            }
            15 => Step::Rmdir(path(r)),
            16..=18 => Step::Rename(path(r), path(r)),
            19 => Step::Chmod(path(r), r.below(0o2000) as u32),
            20 => Step::PutView(path(r), format!("v{}", r.below(2))),
            21 => Step::RemoveView(path(r), format!("v{}", r.below(2))),
            22 => Step::SetLayout(path(r), r.below(3) as usize),
            23..=24 => Step::Relayout(path(r), 1 + r.below(2) as usize),
            25..=26 => Step::EndRelayout(file(r), r.below(2) == 0),
            27..=29 => Step::Open {
                client: *r.pick(&CLIENTS),
                path: path(r),
                doomed: r.below(4) == 0,
            },
            30..=31 => Step::Close(r.below(4) as usize),
            32 => Step::Release(*r.pick(&CLIENTS)),
            33 => Step::ReportSize {
                file: file(r),
                back: r.below(2),
                size: r.below(100),
            },
            34 => Step::Truncate(r.below(4) as usize, r.below(100)),
            35 => Step::FinishTruncate(file(r)),
            36 => Step::Join {
                server: r.below(4),
                disk: r.below(2) == 0,
                resumes: r.below(2) == 0,
            },
            37 => Step::MarkDead(r.below(3)),
            40..=41 => Step::ChangeValues {
                path: path(r),
                put: format!("w{}", r.below(3)),
                bytes: match r.below(4) {
                    0 => MAX_VALUE_BYTES + 1,
                    n => n as usize,
                },
                remove: format!("w{}", r.below(3)),
            },
            _ => Step::ConfirmRemoval(r.below(8) as usize),
        }
    }
}

fn path(r: &mut Random) -> String {
    let depth = 1 + r.below(3);
    (0..depth)
        .map(|_| format!("/{}", r.pick(&["a", "b", "ç"])))
        .collect()
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct MFile {
    size: u64,
    epoch: u64,
    truncate_to: Option<u64>,
    size_before: Option<u64>,
    layout: String,
    generation: u64,
    next_generation: u64,
    /// Places by generation.
    places: BTreeMap<u64, Vec<(u64, u64)>>,
    next_layout: Option<String>,
    /// Steps of the layout state, and where the bytes that have still to move end.
    step: u64,
    left: u64,
    views: BTreeSet<String>,
    values: BTreeMap<String, usize>,
    unlinked: bool,
    doomed: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct MNode {
    mode: u32,
    file: Option<MFile>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct MMember {
    incarnation: u64,
    kept_since: u64,
    disk: bool,
    alive: bool,
}

/// Everything.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    next_file: u64,
    names: BTreeMap<String, u64>,
    nodes: BTreeMap<u64, MNode>,
    members: BTreeMap<u64, MMember>,
    next_incarnation: u64,
    rotation: u64,
    removals: BTreeSet<(u64, u64, u64)>,
    /// Real handles, so that both close the same.
    handles: Vec<(u64, HandleId, u64)>,
}

type Reply = Result<(), Status>;

fn parent_of(path: &str) -> &str {
    &path[..path.rfind('/').unwrap()]
}

impl Model {
    pub(crate) fn new() -> Self {
        Model {
            next_file: 2,
            ..Model::default()
        }
    }

    fn is_directory(&self, path: &str) -> bool {
        path.is_empty()
            || self
                .find(path)
                .is_some_and(|id| self.nodes[&id].file.is_none())
    }

    fn find(&self, path: &str) -> Option<u64> {
        self.names.get(path).copied()
    }

    /// The status for a path whose way does not exist or leads through a file.
    fn way(&self, path: &str) -> Reply {
        let mut at = parent_of(path);
        let mut missing = Ok(());
        while !at.is_empty() {
            match self.find(at) {
                None => missing = Err(Status::NotFound),
                Some(_) if !self.is_directory(at) => return Err(Status::NotDirectory),
                Some(_) => {}
            }
            at = parent_of(at);
        }
        missing
    }

    fn existing(&self, path: &str) -> Result<u64, Status> {
        self.way(path)?;
        self.find(path).ok_or(Status::NotFound)
    }

    fn existing_file(&self, path: &str) -> Result<u64, Status> {
        let id = self.existing(path)?;
        match self.nodes[&id].file {
            Some(_) => Ok(id),
            None => Err(Status::IsDirectory),
        }
    }

    fn by_number(&mut self, id: u64) -> Result<&mut MFile, Status> {
        match self.nodes.get_mut(&id) {
            Some(node) => node.file.as_mut().ok_or(Status::IsDirectory),
            None if id == 1 => Err(Status::IsDirectory),
            None => Err(Status::NotFound),
        }
    }

    fn file(&mut self, id: u64) -> &mut MFile {
        self.nodes.get_mut(&id).unwrap().file.as_mut().unwrap()
    }

    fn place(&mut self, layout: usize) -> Result<(String, Vec<(u64, u64)>), Status> {
        let alive: Vec<(u64, u64)> = self
            .members
            .iter()
            .filter(|(_, m)| m.alive)
            .map(|(id, m)| (*id, m.incarnation))
            .collect();
        if alive.is_empty() {
            return Err(Status::Unreachable);
        }
        let count = [alive.len(), 1, 2][layout];
        let text = match LAYOUTS[layout] {
            Some(text) => text.to_owned(),
            None => format!("striped(1MiB) over {count}"),
        };
        let first = self.rotation as usize;
        self.rotation += 1;
        let places = (0..count)
            .map(|j| alive[(first + j) % alive.len()])
            .collect();
        Ok((text, places))
    }

    fn remove_places(&mut self, id: u64, generation: u64) {
        for (server, incarnation) in self.file(id).places.remove(&generation).unwrap() {
            let m = &self.members[&server];
            if (m.kept_since..=m.incarnation).contains(&incarnation) {
                self.removals.insert((server, id, generation));
            }
        }
    }

    fn is_open(&self, id: u64) -> bool {
        self.handles.iter().any(|(_, _, file)| *file == id)
    }

    fn remove(&mut self, id: u64) {
        let generations: Vec<u64> = self.file(id).places.keys().copied().collect();
        for generation in generations {
            self.remove_places(id, generation);
        }
        self.nodes.remove(&id);
        self.names.retain(|_, n| *n != id);
    }

    fn take_name(&mut self, id: u64) {
        self.names.retain(|_, n| *n != id);
        if self.is_open(id) {
            self.file(id).unlinked = true;
        } else {
            self.remove(id);
        }
    }

    fn after_close(&mut self, id: u64) {
        if self.is_open(id) || !self.nodes.contains_key(&id) {
            return;
        }
        let file = self.file(id);
        if file.unlinked || file.doomed {
            self.remove(id);
        }
    }

    /// All handles are gone, and nobody comes back.
    pub(crate) fn restart(&mut self) {
        self.handles.clear();
    }

    pub(crate) fn end_recovery(&mut self) {
        let ids: Vec<u64> = self
            .nodes
            .iter()
            .filter(|(_, n)| n.file.is_some())
            .map(|(id, _)| *id)
            .collect();
        for id in ids {
            self.after_close(id);
        }
    }

    /// Does a step on both sides and demands the same status.
    pub(crate) fn step(&mut self, b: &mut Batch<'_>, step: &Step) -> Result<(), MetaError> {
        let before = self.clone();
        let (due, real) = self.both(b, step);
        if let Err(error) = &real
            && error.status() == Status::Io
        {
            *self = before;
            return Err(error.clone());
        }
        let status = real
            .as_ref()
            .map_or_else(MetaError::status, |()| Status::Ok);
        assert_eq!(
            status,
            due.err().unwrap_or(Status::Ok),
            "{step:?}: {real:?}\n{before:#?}"
        );
        if due.is_err() {
            *self = before;
        }
        Ok(())
    }

    fn both(&mut self, b: &mut Batch<'_>, step: &Step) -> (Reply, Result<(), MetaError>) {
        let root = Credentials::ROOT;
        let caller = |client: u64| Caller {
            client: ClientId(client),
            credentials: &root,
            now: Time(7),
        };
        let c = &caller(1);
        match step {
            Step::Create {
                path,
                exclusive,
                layout,
            } => {
                let options = create_options(*exclusive, *layout);
                (
                    self.create(path, *exclusive, *layout).map(drop),
                    b.create(c, path, &options).map(drop),
                )
            }
            Step::Mkdir(path) => (self.mkdir(path), b.mkdir(c, path, 0o755).map(drop)),
            Step::Unlink(path, how) => (
                self.existing_file(path).and_then(|id| {
                    if *how == UnlinkHow::UnlessOpen && self.is_open(id) {
                        return Err(Status::InUse);
                    }
                    self.take_name(id);
                    Ok(())
                }),
                b.unlink(c, path, *how).map(drop),
            ),
            Step::Rmdir(path) => (self.rmdir(path), b.rmdir(c, path)),
            Step::Rename(from, to) => (self.rename(from, to), b.rename(c, from, to)),
            Step::Chmod(path, mode) => (
                self.existing(path)
                    .map(|id| self.nodes.get_mut(&id).unwrap().mode = *mode),
                b.chmod(c, path, *mode),
            ),
            Step::PutView(path, name) => (
                self.existing_file(path).map(|id| {
                    self.file(id).views.insert(name.clone());
                }),
                b.put_view(c, path, name, &view()),
            ),
            Step::RemoveView(path, name) => (
                self.existing_file(path).and_then(|id| {
                    let removed = self.file(id).views.remove(name);
                    if removed {
                        Ok(())
                    } else {
                        Err(Status::NotFound)
                    }
                }),
                b.remove_view(c, path, name),
            ),
            Step::ChangeValues {
                path,
                put,
                bytes,
                remove,
            } => (
                self.existing_file(path).and_then(|id| {
                    if *bytes > MAX_VALUE_BYTES {
                        return Err(Status::InvalidArgument);
                    }
                    let values = &mut self.file(id).values;
                    values.remove(remove);
                    values.insert(put.clone(), *bytes);
                    Ok(())
                }),
                b.change_values(c, path, &[value(put, *bytes)], std::slice::from_ref(remove)),
            ),
            Step::SetLayout(path, layout) => (
                self.set_layout(path, *layout),
                b.set_layout(c, path, &spec(*layout)).map(drop),
            ),
            Step::Relayout(path, layout) => {
                let size = self.find(path).and_then(|id| self.nodes[&id].file.as_ref());
                let size = size.map_or(0, |f| f.size);
                let text = LAYOUTS[*layout].unwrap();
                (
                    self.relayout(path, *layout),
                    begin_move(b, c, path, text, size),
                )
            }
            Step::EndRelayout(id, commit) => {
                let found = self.nodes.get(id).and_then(|n| n.file.as_ref());
                let (step, left, size) = found.map_or((0, 0, 0), |f| (f.step, f.left, f.size));
                let is_back = !*commit;
                (
                    self.end_relayout(*id, *commit),
                    end_move(b, FileId(*id), step, left, is_back.then_some(size)),
                )
            }
            Step::Open {
                client,
                path,
                doomed,
            } => {
                let options = OpenOptions {
                    rights: Rights::BOTH,
                    delete_on_close: *doomed,
                    ..OpenOptions::default()
                };
                let real = b.open(&caller(*client), path, &options);
                let due = self.existing_file(path).map(|id| {
                    if let Ok(opened) = &real {
                        self.handles.push((*client, opened.handle, id));
                        self.file(id).doomed |= doomed;
                    }
                });
                (due, real.map(drop))
            }
            Step::Close(index) => match self.handles.get(*index).copied() {
                None => (
                    Err(Status::BadHandle),
                    b.close(c, HandleId(u64::MAX)).map(drop),
                ),
                Some((client, handle, id)) => {
                    self.handles.remove(*index);
                    self.after_close(id);
                    (Ok(()), b.close(&caller(client), handle).map(drop))
                }
            },
            Step::Release(client) => {
                let (gone, kept): (Vec<_>, Vec<_>) = std::mem::take(&mut self.handles)
                    .into_iter()
                    .partition(|h| h.0 == *client);
                self.handles = kept;
                for (_, _, id) in gone {
                    self.after_close(id);
                }
                (Ok(()), b.release(ClientId(*client)).map(drop))
            }
            Step::ReportSize { file, back, size } => {
                let epoch = self
                    .by_number(*file)
                    .map_or(0, |f| f.epoch)
                    .saturating_sub(*back);
                let due = self.by_number(*file).map(|f| {
                    if epoch == f.epoch {
                        f.size = f.size.max(*size);
                    }
                });
                (
                    due,
                    b.report_size(FileId(*file), epoch, *size, Time(8))
                        .map(drop),
                )
            }
            Step::Truncate(index, to) => match self.handles.get(*index).copied() {
                None => (
                    Err(Status::BadHandle),
                    b.begin_truncate(c, HandleId(u64::MAX), *to).map(drop),
                ),
                Some((client, handle, id)) => {
                    let f = self.file(id);
                    let busy = f.truncate_to.is_some();
                    if !busy && f.next_layout.is_some() && *to < f.left {
                        (f.left, f.step) = (*to, f.step + 1);
                    }
                    if !busy {
                        f.size_before = Some(f.size);
                        (f.size, f.epoch, f.truncate_to) = (*to, f.epoch + 1, Some(*to));
                    }
                    (
                        if busy { Err(Status::Busy) } else { Ok(()) },
                        b.begin_truncate(&caller(client), handle, *to).map(drop),
                    )
                }
            },
            Step::FinishTruncate(file) => {
                let epoch = self.by_number(*file).map_or(0, |f| f.epoch);
                (
                    self.by_number(*file)
                        .map(|f| (f.truncate_to, f.size_before) = (None, None)),
                    b.finish_truncate(FileId(*file), epoch).map(drop),
                )
            }
            Step::Join {
                server,
                disk,
                resumes,
            } => self.join(b, *server, *disk, *resumes),
            Step::MarkDead(server) => match self.members.get_mut(server) {
                None => (
                    Err(Status::InvalidArgument),
                    b.mark_dead(ServerId(*server), 1),
                ),
                Some(m) => {
                    m.alive = false;
                    (Ok(()), b.mark_dead(ServerId(*server), m.incarnation))
                }
            },
            Step::ConfirmRemoval(index) => {
                let Some(removal) = self.removals.iter().nth(*index).copied() else {
                    return (Ok(()), Ok(()));
                };
                self.removals.remove(&removal);
                let (server, file, generation) = removal;
                (
                    Ok(()),
                    b.confirm_removal(ServerId(server), &removed(file, generation)),
                )
            }
        }
    }

    fn add(&mut self, path: &str, mode: u32, file: Option<MFile>) -> u64 {
        let id = self.next_file;
        self.next_file += 1;
        self.names.insert(path.to_owned(), id);
        self.nodes.insert(id, MNode { mode, file });
        id
    }

    fn create(&mut self, path: &str, exclusive: bool, layout: usize) -> Result<u64, Status> {
        self.way(path)?;
        if let Some(id) = self.find(path) {
            return match (exclusive, self.is_directory(path)) {
                (true, _) => Err(Status::Exists),
                (false, true) => Err(Status::IsDirectory),
                (false, false) => Ok(id),
            };
        }
        let (layout, places) = self.place(layout)?;
        let file = MFile {
            size: 0,
            epoch: 0,
            truncate_to: None,
            size_before: None,
            layout,
            generation: 1,
            next_generation: 2,
            places: BTreeMap::from([(1, places)]),
            next_layout: None,
            step: 1,
            left: 0,
            views: BTreeSet::new(),
            values: BTreeMap::new(),
            unlinked: false,
            doomed: false,
        };
        Ok(self.add(path, 0o644, Some(file)))
    }

    fn mkdir(&mut self, path: &str) -> Reply {
        self.way(path)?;
        if self.find(path).is_some() {
            return Err(Status::Exists);
        }
        self.add(path, 0o755, None);
        Ok(())
    }

    fn has_entries(&self, path: &str) -> bool {
        let below = format!("{path}/");
        self.names.keys().any(|p| p.starts_with(&below))
    }

    fn rmdir(&mut self, path: &str) -> Reply {
        let id = self.existing(path)?;
        if !self.is_directory(path) {
            return Err(Status::NotDirectory);
        }
        if self.has_entries(path) {
            return Err(Status::NotEmpty);
        }
        self.names.remove(path);
        self.nodes.remove(&id);
        Ok(())
    }

    fn rename(&mut self, from: &str, to: &str) -> Reply {
        self.way(from)?;
        self.way(to)?;
        let id = self.find(from).ok_or(Status::NotFound)?;
        let directory = self.is_directory(from);
        if directory && to.starts_with(&format!("{from}/")) {
            return Err(Status::InvalidArgument);
        }
        match self.find(to) {
            Some(other) if other == id => return Ok(()),
            Some(other) => match (directory, self.is_directory(to)) {
                (true, false) => return Err(Status::NotDirectory),
                (false, true) => return Err(Status::IsDirectory),
                (true, true) if self.has_entries(to) => return Err(Status::NotEmpty),
                (true, true) => {
                    self.names.remove(to);
                    self.nodes.remove(&other);
                }
                (false, false) => self.take_name(other),
            },
            None => {}
        }
        let below = format!("{from}/");
        let moved: Vec<(String, u64)> = self
            .names
            .iter()
            .filter(|(p, _)| *p == from || p.starts_with(&below))
            .map(|(p, id)| (p.clone(), *id))
            .collect();
        for (p, id) in moved {
            self.names.remove(&p);
            self.names.insert(format!("{to}{}", &p[from.len()..]), id);
        }
        Ok(())
    }

    fn set_layout(&mut self, path: &str, layout: usize) -> Reply {
        let id = self.existing_file(path)?;
        let others = self.handles.iter().any(|(c, _, f)| *f == id && *c != 1);
        let file = self.file(id);
        if file.size > 0 || file.truncate_to.is_some() {
            return Err(Status::InUse);
        }
        if file.next_layout.is_some() {
            return Err(Status::Busy);
        }
        if others {
            return Err(Status::InUse);
        }
        let (text, places) = self.place(layout)?;
        let old = self.file(id).generation;
        self.remove_places(id, old);
        let file = self.file(id);
        file.generation = file.next_generation;
        file.next_generation += 1;
        file.layout = text;
        file.step += 1;
        file.places.insert(file.generation, places);
        Ok(())
    }

    fn relayout(&mut self, path: &str, layout: usize) -> Reply {
        let id = self.existing_file(path)?;
        let file = self.file(id);
        if file.next_layout.is_some() || file.truncate_to.is_some() {
            return Err(Status::Busy);
        }
        let (text, places) = self.place(layout)?;
        let file = self.file(id);
        file.places.insert(file.next_generation, places);
        file.next_generation += 1;
        file.next_layout = Some(text);
        file.left = file.size;
        file.step += 1;
        Ok(())
    }

    fn end_relayout(&mut self, id: u64, commit: bool) -> Reply {
        if self.nodes.get(&id).is_none_or(|n| n.file.is_none()) {
            return Err(Status::NotFound);
        }
        let file = self.file(id);
        let text = file.next_layout.take().ok_or(Status::StaleLayout)?;
        let (old, new) = (file.generation, file.next_generation - 1);
        // What moved, all bytes of the file in the new layout, and the end.
        let grown = file.size > file.left;
        file.step += match commit {
            true => u64::from(file.left > 0) + 1,
            false => 1 + u64::from(grown) + 1,
        };
        self.remove_places(id, if commit { old } else { new });
        if commit {
            let file = self.file(id);
            file.generation = new;
            file.layout = text;
        }
        Ok(())
    }

    fn join(
        &mut self,
        b: &mut Batch<'_>,
        server: u64,
        disk: bool,
        resumes: bool,
    ) -> (Reply, Result<(), MetaError>) {
        let known = self.members.get(&server).cloned();
        let join = Join {
            server: known.as_ref().map(|_| ServerId(server)),
            resumes: known.as_ref().filter(|_| resumes).map(|m| m.incarnation),
            continues: None,
            address: format!("unix:/io{server}"),
            local: None,
            store: if disk {
                StoreKind::Disk
            } else {
                StoreKind::Memory
            },
            capacity_bytes: 0,
            used_bytes: 0,
            distance: 0,
            identity: wire::message::Bytes::default(),
        };
        self.next_incarnation += 1;
        let incarnation = self.next_incarnation;
        let id = known.as_ref().map_or(self.members.len() as u64, |_| server);
        let kept_since = match known {
            Some(m) if m.disk == disk && resumes => m.kept_since,
            _ => {
                self.removals.retain(|(s, _, _)| *s != id);
                incarnation
            }
        };
        let member = MMember {
            incarnation,
            kept_since,
            disk,
            alive: true,
        };
        self.members.insert(id, member);
        (Ok(()), b.join(&join).map(drop))
    }

    /// Compares everything that can be seen; the first difference in words.
    pub(crate) fn differs(&self, catalogue: &Catalogue) -> Option<String> {
        let real = dump(catalogue);
        let due = self.dump();
        (real != due).then(|| format!("catalogue {real:#?}\nmodel {due:#?}"))
    }

    fn dump(&self) -> Dump {
        let (none, no_values) = (BTreeSet::new(), BTreeMap::new());
        let mut dump = Dump::default();
        for (id, node) in &self.nodes {
            let path = self
                .names
                .iter()
                .find(|(_, n)| *n == id)
                .map(|(p, _)| p.clone());
            let mut line = format!("mode {:o}", node.mode);
            if let Some(f) = &node.file {
                line += &format!(
                    " step {} size {} epoch {} truncate {:?} layout {} places {:?} views {:?} values {:?} linked {} doomed {}",
                    f.step,
                    f.size_before.unwrap_or(f.size),
                    f.epoch - u64::from(f.size_before.is_some()),
                    f.truncate_to,
                    f.layout,
                    f.places,
                    if f.unlinked { &none } else { &f.views },
                    if f.unlinked { &no_values } else { &f.values },
                    !f.unlinked,
                    f.doomed
                );
            }
            dump.nodes.insert(*id, (path, line));
        }
        for (id, m) in &self.members {
            let line = format!(
                "{} since {} disk {} alive {}",
                m.incarnation, m.kept_since, m.disk, m.alive
            );
            dump.members.insert(*id, line);
        }
        dump.removals = self.removals.iter().copied().collect();
        dump
    }
}

fn spec(layout: usize) -> LayoutSpec {
    LayoutSpec {
        array: None,
        layout: LAYOUTS[layout].map(str::to_owned),
    }
}

fn create_options(exclusive: bool, layout: usize) -> CreateOptions {
    CreateOptions {
        mode: 0o644,
        exclusive,
        layout: spec(layout),
        ..CreateOptions::default()
    }
}

fn value(name: &str, bytes: usize) -> NamedValue {
    NamedValue {
        name: name.into(),
        value: wire::message::Bytes(vec![b'v'; bytes]),
    }
}

fn view() -> NamedView {
    NamedView {
        text: "one byte of four".into(),
        view: layout::View::new(layout::FileOffset(0), 4, "{(0,0)}".parse().unwrap()).unwrap(),
    }
}
