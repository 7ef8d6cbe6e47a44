//! Opening a file together, and setting views together.
//!
//! The first opening by a team is where a file can be cut by its views: while it has no bytes and
//! nobody has said how it is to be laid out, the views of all ranks become its subfiles
//! (`advise::distribute::by_views` has the rule). No hint is needed, and nothing is asked of programs
//! that read it later with other views. Views and hints are also where it is decided what collective
//! accesses do (`collective`).
//!
//! Invariants
//! - Arguments that have to be equal and are not give an error at every rank.
//! - Between the exchange of views and the answer about the layout no rank of the team accesses the file.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use layout::View;
use wire::message::catalogue::{GetLayout, LayOutByViews};
use wire::message::{Bytes, Field};
use wire::{FileId, HandleId, LayoutState, Reader, Rights, describe, put_number};

use crate::client::{Client, FileLayout, absolute};
use crate::collective::agreement::{Agreement, Ready};
use crate::collective::team::Team;
use crate::error::{Error, Result};
use crate::file::options::OpenOptions;
use crate::file::{File, view_of_text};
use crate::hints::Hints;

/// What the leader says after a layout: it follows, or has to be asked for.
const HERE: u8 = 1;
const ASK: u8 = 2;

/// What the leader tells of a layout.
fn told(state: Option<LayoutState>, most_bytes: usize) -> Vec<u8> {
    let Some(state) = state else {
        return Vec::new();
    };
    let mut out = vec![HERE];
    state.put(&mut out);
    match out.len() <= most_bytes {
        true => out,
        false => vec![ASK],
    }
}

/// What a rank says before views are set.
struct HandleView {
    file: FileId,
    handle: HandleId,
    rights: Rights,
    /// The file has bytes, as far as this rank knows.
    has_bytes: bool,
    /// The file is cut by views already, which happens once.
    is_by_views: bool,
    /// How it would access the file together with others.
    ready: Ready,
    /// Nothing if it is too long to be told, or if there is none.
    view: Option<View>,
    /// What the caller has to say to the others.
    note: Bytes,
}

impl HandleView {
    fn put(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.file.put(&mut out);
        self.handle.put(&mut out);
        self.rights.put(&mut out);
        self.has_bytes.put(&mut out);
        self.is_by_views.put(&mut out);
        self.ready.put(&mut out);
        self.note.put(&mut out);
        put_number(&mut out, u64::from(self.view.is_some()));
        if let Some(view) = &self.view {
            describe::put_view(&mut out, view);
        }
        out
    }

    fn read(bytes: &[u8]) -> Result<HandleView> {
        let mut r = Reader::new(bytes);
        let seen = (|| {
            let seen = HandleView {
                file: Field::read(&mut r)?,
                handle: Field::read(&mut r)?,
                rights: Field::read(&mut r)?,
                has_bytes: Field::read(&mut r)?,
                is_by_views: Field::read(&mut r)?,
                ready: Ready::read(&mut r)?,
                note: Field::read(&mut r)?,
                view: match r.number()? {
                    0 => None,
                    _ => Some(describe::view(&mut r)?),
                },
            };
            r.finish()?;
            Ok::<_, wire::DecodeError>(seen)
        })();
        seen.map_err(|e| {
            Error::argument(
                "team",
                format!("a member said something else than a view: {e}"),
            )
        })
    }
}

/// The first rank whose bytes are not those of rank 0.
fn demand_equal(all: &[Vec<u8>], name: &'static str, what: &str) -> Result<()> {
    match all.iter().position(|bytes| *bytes != all[0]) {
        None => Ok(()),
        Some(rank) => Err(Error::argument(
            name,
            format!(
                "{what} of rank {rank} differs from that of rank 0; give the same at all ranks"
            ),
        )),
    }
}

impl Client {
    /// Opens a file together with the other members of a team, which all give the same path and
    /// options. It is created once; how many use it is known for its placement.
    pub fn open_together(&self, team: &Team, path: &str, options: &OpenOptions) -> Result<File> {
        let path = absolute(path);
        let mine = options
            .to_message(self.session().creation_hints(&path, &options.hints))
            .map(|message| {
                // What a rank is near to is its own affair.
                let mut message = message;
                if let Some(create) = &mut message.create {
                    create.expected.near = None;
                }
                let mut out = Vec::new();
                path.put(&mut out);
                message.put(&mut out);
                out
            });
        demand_equal(&team.agree(mine)?, "open_together", "path or options")?;
        let mut first = options.clone();
        if options.unique {
            // No two openings of a service have it: members have the file together, nobody else has it.
            let mut hasher = DefaultHasher::new();
            (self.id().0, self.session().number()).hash(&mut hasher);
            first.unique_number = hasher.finish() | 1;
        }
        let clients = first.expected.clients;
        let clients = clients.or_else(|| first.hints.number("expected_clients"));
        first.expected.clients = clients.or(Some(team.size() as u64));
        if team.size() > 1 {
            first.expected.near = None;
        }
        let mut opened = match team.rank() {
            0 => Some(self.open_raw_new(&path, &first, None).and_then(|open| {
                // Before anybody else opens it, so that it can be undone.
                File::new(open.clone()).take_expected(&first)?;
                Ok(open)
            })),
            _ => None,
        };
        let said = team.agree(match &opened {
            Some(Ok(open)) => {
                let number = first.unique_number.to_le_bytes();
                Ok([&[u8::from(open.identity.is_new)], &number[..]].concat())
            }
            Some(Err(error)) => Err(error.clone()),
            None => Ok(Vec::new()),
        });
        let said = match (said, opened.take()) {
            (Ok(said), kept) => {
                opened = kept;
                said
            }
            (Err(_), Some(Err(error))) | (Err(error), _) => return Err(error),
        };
        let is_new = said[0].first() == Some(&1);
        let number = said[0].get(1..9).and_then(|bytes| bytes.try_into().ok());
        let rest = OpenOptions {
            create: false,
            exclusive: false,
            unique_number: number.map_or(0, u64::from_le_bytes),
            ..options.clone()
        };
        let mine = opened.unwrap_or_else(|| self.open_raw_new(&path, &rest, Some(is_new)));
        let mine = mine.and_then(|open| {
            let file = File::new(open);
            let recording = &file.recording;
            recording.set_rank(team.rank() as u64, team.size() as u64);
            file.begin(options).map(|()| file)
        });
        match &mine {
            Ok(file) => file.agree_again(team, Ok(())).map(drop)?,
            Err(error) => team.agree(Err(error.clone())).map(drop)?,
        }
        mine
    }
}

impl File {
    /// Sets the view of this handle while all other members of the team set theirs. If the file has no
    /// bytes and its layout was left to the service, the views become its subfiles.
    ///
    /// All handles were opened by the members of this team, one each.
    pub fn set_view_together(&self, team: &Team, view: &View) -> Result<()> {
        self.set_view_noted(team, Some(view), &[], |_| Ok(()))
    }

    /// Sets a view for callers that have more to agree about, without another exchange: the note of each member is told
    /// to all with its view, and all judge the notes alike, by rank, before anything is done. A member
    /// that has no view says in its note why; then all have to refuse.
    pub fn set_view_noted<E: From<Error>>(
        &self,
        team: &Team,
        view: Option<&View>,
        note: &[u8],
        judge: impl FnOnce(&[&[u8]]) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        // Nothing of this handle is under way until the layout is known.
        let _gate = self.alone();
        let all = self.tell_seen(team, view, note, Ok(()))?;
        let notes: Vec<&[u8]> = all.iter().map(|seen| &seen.note.0[..]).collect();
        judge(&notes)?;
        let view = view.ok_or_else(|| Error::argument("view", "is missing"))?;
        Ok(self.set_view_told(team, view, &all)?)
    }

    /// Sets the view once those of all are known.
    fn set_view_told(&self, team: &Team, view: &View, all: &[HandleView]) -> Result<()> {
        let leader = all.iter().position(|s| s.rights.allow(Rights::WRITE));
        let can = all.iter().all(|s| !s.has_bytes && s.view.is_some())
            && !all.iter().any(|s| s.is_by_views);
        if let Some(leader) = leader.filter(|_| can) {
            let mine = match leader == team.rank() {
                true => self
                    .lay_out(all)
                    .map(|state| told(state, team.most_bytes())),
                false => Ok(Vec::new()),
            };
            let said = team.agree(mine)?;
            self.adopt(&said[leader])?;
            self.take_space_again();
        }
        self.set_view_alone(view)?;
        self.have_agreed(team, all);
        Ok(())
    }

    /// Adds hints, replacing those of the same name, while all other members of the team do the same. What
    /// collective accesses do is decided anew.
    pub fn set_hints_together(&self, team: &Team, hints: &Hints) -> Result<()> {
        let set = self.set_hints(hints);
        self.agree_again(team, set).map(drop)
    }

    /// Agrees with the team about collective accesses through the views as they are.
    pub(crate) fn agree_again(&self, team: &Team, mine: Result<()>) -> Result<Arc<Agreement>> {
        let _gate = self.alone();
        let view = self.views.current().view.clone();
        let all = self.tell_seen(team, Some(&view), &[], mine)?;
        Ok(self.have_agreed(team, &all))
    }

    /// Tells what this rank sees, or why it cannot, and hears what the others do.
    fn tell_seen(
        &self,
        team: &Team,
        view: Option<&View>,
        note: &[u8],
        mine: Result<()>,
    ) -> Result<Vec<HandleView>> {
        let mine = mine.and_then(|()| self.check()).map(|()| {
            let mut seen = HandleView {
                file: self.id(),
                handle: self.handle_id(),
                rights: self.rights(),
                has_bytes: self.known.size().size > 0,
                is_by_views: self.known.is_by_views.load(Ordering::Acquire),
                ready: self.readiness(),
                view: view.cloned(),
                note: Bytes(note.to_vec()),
            };
            let bytes = seen.put();
            if bytes.len() <= team.most_bytes() {
                return bytes;
            }
            seen.view = None;
            seen.put()
        });
        let all = team.agree(mine)?;
        let all: Vec<HandleView> = all
            .iter()
            .map(|b| HandleView::read(b))
            .collect::<Result<_>>()?;
        match all.iter().position(|seen| seen.file != all[0].file) {
            None => Ok(all),
            Some(rank) => Err(Error::argument(
                "team",
                format!("rank {rank} has another file open than rank 0"),
            )),
        }
    }

    /// Remembers what follows for collective accesses; all ranks have heard the same.
    fn have_agreed(&self, team: &Team, all: &[HandleView]) -> Arc<Agreement> {
        let ready = all.iter().map(|seen| seen.ready);
        let views = all.iter().map(|seen| seen.view.clone());
        let agreed = Agreement::new(team, ready, views.collect(), self.views.current().number);
        self.together.keep(agreed)
    }

    /// Sets a view of all ranks in the layout language, applied to the file's array or to plain bytes.
    pub fn set_view_text_together(&self, team: &Team, text: &str) -> Result<()> {
        let view = view_of_text(self.array(), 0, text);
        match &view {
            Ok(view) => {
                self.set_view_together(team, view)?;
                self.recording.set_text(text);
                Ok(())
            }
            // The others are told, so that nobody waits.
            Err(error) => team.agree(Err(error.clone())).map(drop),
        }
    }

    /// Asks for a layout by views, if there are no bytes; where bytes are by then, if there may be another layout.
    fn lay_out(&self, all: &[HandleView]) -> Result<Option<LayoutState>> {
        let session = &self.session;
        session.with_lane(|lane| {
            if self.ask_size(lane)?.size > 0 {
                return Ok(None);
            }
            let views: Vec<View> = all.iter().filter_map(|s| s.view.clone()).collect();
            let laid_out = session.manager_on(lane, || LayOutByViews {
                handle: self.handle_id(),
                handles: all.iter().map(|s| s.handle).collect(),
                views: views.clone(),
            })?;
            Ok(laid_out.is_by_views.then_some(laid_out.state))
        })
    }

    /// Takes over the layout that the leader was told, so that not everybody asks.
    fn adopt(&self, said: &[u8]) -> Result<()> {
        match said.split_first() {
            None => Ok(()),
            Some((kind, state)) => {
                self.known.is_by_views.store(true, Ordering::Release);
                if *kind != HERE {
                    let session = &self.session;
                    return session.with_lane(|lane| self.fetch_state(lane));
                }
                let mut r = Reader::new(state);
                let state = LayoutState::read(&mut r).map_err(|e| {
                    Error::argument("team", format!("the leader told no layout: {e}"))
                })?;
                self.known.take_state(state);
                Ok(())
            }
        }
    }

    /// Which distribution the file has, and why, in words.
    pub fn distribution(&self) -> Result<String> {
        Ok(self.layout_answer()?.distribution)
    }

    /// How the file is cut and where its bytes are, in words and in full, as the metadata manager knows it.
    pub fn layout_answer(&self) -> Result<FileLayout> {
        self.check()?;
        let path = self.path().to_owned();
        let session = &self.session;
        session.manager(|| GetLayout { path: path.clone() })
    }
}
