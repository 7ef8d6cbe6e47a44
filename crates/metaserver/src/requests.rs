//! What clients ask: names, attributes, layouts, views, members. One function per message.
//!
//! Changes go to the committer, reads come from a snapshot. Answers are kept below what a
//! frame carries: lists end early and say so.

use std::sync::atomic::Ordering;

use control::capability::Capability;
use control::settled::Farewell;
use layout::View;
use meta::catalogue as durable;
use meta::catalogue::Trail;
use wire::frame::MAX_CONTROL_BYTES;
use wire::message::catalogue::*;
use wire::message::{Bytes, Field};
use wire::{FileId, LayoutState, Place, Status};

use crate::committer::Refused;
use crate::manager::{Manager, Session, now};

/// Most entries of one answer.
const MAX_ENTRIES: usize = 4096;

/// Bytes that a list may take, with room for what stands around it.
const LIST_BYTES: usize = MAX_CONTROL_BYTES as usize - 4096;

/// Texts of layouts and arrays that are longer are told by `Stat` and `GetLayout` only.
const LISTED_TEXT_BYTES: usize = 4096;

/// Views that are read at a time; each may be as large as a message.
const VIEWS: usize = 16;

/// How often an answer is looked for that is of one moment. Each look that fails has met a commit; who changes a file so often
/// gets attributes and a size that were both so since the question began, if not together.
const MOST_LOOKS: usize = 16;

/// How an answer was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    /// All of it was so at one moment.
    OfOneMoment,
    /// A size is of a later moment than attributes that have changed since.
    Mixed,
}

/// Whether all but the bytes of what was told is as it was: each change of a name or an attribute is in the time of change.
fn is_still(told: &Attributes, later: &Attributes) -> bool {
    (told.file, told.changed) == (later.file, later.changed)
}

fn now_ms() -> u64 {
    now().0.max(0) as u64 / 1_000_000
}

/// Keeps the items that fit into an answer.
pub(crate) fn keep_what_fits<T: Field>(list: &mut Vec<T>) {
    let mut bytes = Vec::new();
    let fits = list
        .iter()
        .take_while(|item| {
            item.put(&mut bytes);
            bytes.len() <= LIST_BYTES
        })
        .count();
    list.truncate(fits);
}

impl Manager {
    /// The seal for what a handle allows, from now on.
    fn seal(&self, opened: &durable::OpenedFile) -> Bytes {
        let expires_ms = now_ms().saturating_add(self.capability_ms);
        Bytes(opened.capability(expires_ms).issue(&self.key).to_vec())
    }

    fn answer_opened(&self, opened: durable::OpenedFile) -> Result<OpenAnswer, Refused> {
        Ok(OpenAnswer {
            handle: opened.handle,
            rights: opened.rights,
            is_new: opened.is_new,
            layout: opened.layout.decode()?,
            capability: self.seal(&opened),
            attributes: opened.attributes,
            hints: opened.hints,
        })
    }

    pub(crate) fn open(&self, session: &mut Session, r: Open) -> Result<OpenAnswer, Refused> {
        let asked = session.asked()?;
        let opened = self.change(session, move |b, caller| {
            b.open_once(caller, asked, &r.path, &r.options)
        })?;
        self.answer_opened(opened)
    }

    pub(crate) fn reopen(&self, session: &mut Session, r: Reopen) -> Result<OpenAnswer, Refused> {
        let client = session.client()?;
        let slip = Capability::unseal(&r.capability.0, &self.key)
            .map_err(|e| Refused::new(e.status(), format!("capability: {e}")))?;
        if slip.client != client {
            return Err(Refused::new(
                Status::BadCapability,
                format!("capability: it was issued to {}", slip.client),
            ));
        }
        if now_ms() > slip.expires_ms {
            return Err(Refused::new(
                Status::ExpiredCapability,
                "capability: it has expired; open the file anew",
            ));
        }
        let asked = session.asked()?;
        let opened = self.change(session, move |b, caller| {
            b.reopen_once(caller, asked, slip.file, (slip.rights, r.unique))
        })?;
        self.answer_opened(opened)
    }

    pub(crate) fn close(&self, session: &mut Session, r: Close) -> Result<CloseAnswer, Refused> {
        let how = match r.is_counted {
            true => Farewell::Counted,
            false => Farewell::InDoubt,
        };
        let is_removed =
            self.change_once(session, move |b, caller| b.close_as(caller, r.handle, how))?;
        Ok(CloseAnswer { is_removed })
    }

    pub(crate) fn renew_capability(
        &self,
        session: &mut Session,
        r: RenewCapability,
    ) -> Result<Bytes, Refused> {
        let opened = self.change(session, move |b, caller| b.renewed(caller, r.handle))?;
        Ok(self.seal(&opened))
    }

    pub(crate) fn create(&self, session: &mut Session, r: Create) -> Result<CreateAnswer, Refused> {
        self.change_once(session, move |b, caller| {
            b.create(caller, &r.path, &r.options)
        })
    }

    pub(crate) fn mkdir(&self, session: &mut Session, r: Mkdir) -> Result<(), Refused> {
        self.change_once(session, move |b, caller| {
            b.mkdir(caller, &r.path, r.mode).map(drop)
        })
    }

    pub(crate) fn unlink(&self, session: &mut Session, r: Unlink) -> Result<(), Refused> {
        self.change_once(session, move |b, caller| {
            b.unlink(caller, &r.path, r.how).map(drop)
        })
    }

    pub(crate) fn rmdir(&self, session: &mut Session, r: Rmdir) -> Result<(), Refused> {
        self.change_once(session, move |b, caller| b.rmdir(caller, &r.path))
    }

    pub(crate) fn rename(&self, session: &mut Session, r: Rename) -> Result<(), Refused> {
        let to = r.to.clone();
        self.with_domain(session, &r.from.clone(), Some(&to), move |m, session| {
            m.change_once(session, move |b, caller| b.rename(caller, &r.from, &r.to))
        })
    }

    pub(crate) fn stat(&self, session: &mut Session, r: Stat) -> Result<StatAnswer, Refused> {
        self.look_until_it_is_of_one_moment(|| self.look_at(session, &r))
    }

    /// What is at a path, and how it was found.
    fn look_at(&self, session: &Session, r: &Stat) -> Result<(StatAnswer, Look), Refused> {
        let begun = self.stamps_moment();
        let moment = self.settled.lock().moment();
        let snapshot = self.read(session)?;
        let mut trail = Trail::default();
        let found = snapshot.stat_on(&session.credentials, &r.path, &mut trail);
        let mut attributes = match found {
            Err(meta::MetaError::NotFound(_)) if r.wants_stamps => {
                let answer = StatAnswer {
                    found: None,
                    stamped: self.stamped(session, begun, trail),
                };
                return Ok((answer, Look::OfOneMoment));
            }
            found => found?,
        };
        let owner = match attributes.kind {
            Kind::Directory => None,
            Kind::File => Some(snapshot.layout(attributes.file)?.owner()?),
        };
        let (mut is_latest, mut look) = (false, Look::OfOneMoment);
        if r.with_latest_size {
            let sizes = self.put_latest_sizes(&snapshot, moment, &mut [&mut attributes])?;
            is_latest = sizes.are_latest();
            if !sizes.asked.is_empty() && !self.is_unchanged(begun, &trail) {
                let later = self.read(session)?.stat(&session.credentials, &r.path);
                if !later.is_ok_and(|later| is_still(&attributes, &later)) {
                    look = Look::Mixed;
                }
            }
        }
        let is_known = !r.with_latest_size || self.is_settled(&attributes, moment);
        let stamped = match r.wants_stamps && is_known {
            true => self.stamped(session, begun, trail),
            false => None,
        };
        let found = StatEntry {
            attributes,
            is_latest,
            owner,
        };
        let answer = StatAnswer {
            found: Some(found),
            stamped,
        };
        Ok((answer, look))
    }

    /// Looks again while an answer mixes a size that an owner said with attributes that had changed by then.
    fn look_until_it_is_of_one_moment<T>(
        &self,
        mut look: impl FnMut() -> Result<(T, Look), Refused>,
    ) -> Result<T, Refused> {
        for _ in 1..MOST_LOOKS {
            match look()? {
                (answer, Look::OfOneMoment) => return Ok(answer),
                (_, Look::Mixed) => {
                    self.looks_again.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        look().map(|(answer, _)| answer)
    }

    /// Whether what is told of a size stays so until a client opens the file for writing.
    fn is_settled(&self, attributes: &Attributes, moment: u64) -> bool {
        attributes.kind == Kind::Directory
            || self
                .settled
                .lock()
                .is_settled_since(attributes.file, moment)
    }

    pub(crate) fn list(&self, session: &mut Session, r: List) -> Result<Listing, Refused> {
        self.look_until_it_is_of_one_moment(|| self.look_into(session, &r))
    }

    /// What is in a directory, and how it was found.
    fn look_into(&self, session: &Session, r: &List) -> Result<(Listing, Look), Refused> {
        let begun = self.stamps_moment();
        let moment = self.settled.lock().moment();
        let snapshot = self.read(session)?;
        let limit = (r.limit as usize).min(MAX_ENTRIES);
        let after = r.after.as_deref();
        let mut trail = Trail::default();
        let who = &session.credentials;
        let mut listing = snapshot.list_on(who, &r.path, after, limit, &mut trail)?;
        let mut bytes = Vec::new();
        let mut fits = 0;
        for entry in &mut listing.entries {
            if r.with_attributes {
                let mut attributes = snapshot.stat_file_on(entry.file, &mut trail)?;
                for text in [&mut attributes.array, &mut attributes.layout] {
                    text.take_if(|text| text.len() > LISTED_TEXT_BYTES);
                }
                entry.attributes = Some(attributes);
            }
            entry.put(&mut bytes);
            if bytes.len() > LIST_BYTES {
                break;
            }
            fits += 1;
        }
        listing.has_more |= fits < listing.entries.len();
        listing.entries.truncate(fits);
        let attributes = listing.entries.iter_mut();
        let mut attributes: Vec<&mut Attributes> = attributes
            .filter_map(|entry| entry.attributes.as_mut())
            .collect();
        let sizes = self.put_latest_sizes(&snapshot, moment, &mut attributes)?;
        let mut look = Look::OfOneMoment;
        if !sizes.asked.is_empty() && !self.is_unchanged(begun, &trail) {
            let later = self.read(session)?;
            let is_still_so = |index: &usize| {
                let told = &*attributes[*index];
                later
                    .stat_file(told.file)
                    .is_ok_and(|later| is_still(told, &later))
            };
            let directory = |snapshot: &durable::Snapshot| {
                let found = snapshot.stat(who, &r.path);
                found.ok().map(|found| found.file)
            };
            if directory(&later) != directory(&snapshot) || !sizes.asked.iter().all(is_still_so) {
                look = Look::Mixed;
            }
        }
        let mut listed = listing.entries.iter().filter_map(|e| e.attributes.as_ref());
        if r.wants_stamps && listed.all(|attributes| self.is_settled(attributes, moment)) {
            listing.stamped = self.stamped(session, begun, trail);
        }
        Ok((listing, look))
    }

    pub(crate) fn chmod(&self, session: &mut Session, r: Chmod) -> Result<(), Refused> {
        self.with_domain(session, &r.path.clone(), None, move |m, session| {
            m.change_once(session, move |b, caller| b.chmod(caller, &r.path, r.mode))
        })
    }

    pub(crate) fn chown(&self, session: &mut Session, r: Chown) -> Result<(), Refused> {
        self.with_domain(session, &r.path.clone(), None, move |m, session| {
            m.change_once(session, move |b, caller| {
                b.chown(caller, &r.path, r.owner, r.group)
            })
        })
    }

    pub(crate) fn utimes(&self, session: &mut Session, r: Utimes) -> Result<(), Refused> {
        self.change_once(session, move |b, caller| {
            b.utimes(caller, &r.path, r.accessed, r.modified)
        })
    }

    pub(crate) fn set_layout(
        &self,
        session: &mut Session,
        r: SetLayout,
    ) -> Result<LayoutState, Refused> {
        let snapshot = self.read(session)?;
        let found = snapshot.stat(&session.credentials, &r.path);
        // One that comes again need not find the file any more.
        let before = found.ok().and_then(|found| {
            let layout = snapshot.layout(found.file).and_then(|l| l.decode());
            Some((found.file, layout.ok()?))
        });
        let asked = session.asked()?;
        let layout = self.change(session, move |b, caller| {
            b.set_layout_once(caller, asked, &r.path, &r.spec)
        })?;
        if let Some((file, before)) = before {
            self.tell_layout(file, &before)?;
        }
        Ok(layout.decode()?)
    }

    pub(crate) fn lay_out_by_views(
        &self,
        session: &mut Session,
        r: LayOutByViews,
    ) -> Result<LayOutAnswer, Refused> {
        let snapshot = self.read(session)?;
        // Takes its time with many views, so not in a transaction.
        let cut = snapshot.cut_by_views(&r.views)?;
        let (handle, handles) = (r.handle, r.handles);
        let asked = session.asked()?;
        let laid_out = self.change(session, move |b, caller| {
            b.lay_out_by_views_once(caller, asked, handle, &handles, &cut)
        })?;
        if let Some(before) = &laid_out.before {
            self.tell_layout(laid_out.file, before)?;
        }
        Ok(LayOutAnswer {
            is_by_views: laid_out.is_by_views,
            distribution: laid_out.distribution,
            state: laid_out.layout.decode()?,
        })
    }

    /// Lets the servers of a layout that was replaced look at the new one. Those that do not hear it
    /// now are told later; clients that come with the new one tell them too.
    fn tell_layout(&self, file: FileId, before: &LayoutState) -> Result<(), Refused> {
        let places = before.pieces.iter().flat_map(|p| p.places.iter().flatten());
        let mut servers: Vec<u64> = places.map(|place| place.server).collect();
        servers.push(before.owner.server);
        let mut members = self.snapshot()?.members()?;
        members
            .retain(|m| servers.contains(&m.server.0) && self.members.has(m.server, m.incarnation));
        self.send_layout(file, members);
        Ok(())
    }

    pub(crate) fn get_layout(
        &self,
        session: &mut Session,
        r: GetLayout,
    ) -> Result<LayoutAnswer, Refused> {
        let snapshot = self.read(session)?;
        let attributes = snapshot.stat(&session.credentials, &r.path)?;
        let Some(text) = attributes.layout else {
            return Err(meta::MetaError::IsDirectory(r.path).into());
        };
        let mut lost: Vec<Place> = Vec::new();
        for (_, place) in snapshot.lost(attributes.file)? {
            if !lost.contains(&place) {
                lost.push(place);
            }
        }
        Ok(LayoutAnswer {
            file: attributes.file,
            array: attributes.array,
            text,
            state: snapshot.layout(attributes.file)?.decode()?,
            lost,
            distribution: snapshot.distribution(attributes.file)?,
        })
    }

    pub(crate) fn get_state(
        &self,
        session: &mut Session,
        r: GetState,
    ) -> Result<LayoutState, Refused> {
        let opened = self.change(session, move |b, caller| b.opened(caller, r.handle))?;
        Ok(opened.layout.decode()?)
    }

    /// Tells an operator of the service where a subfile lies.
    pub(crate) fn get_subfile(
        &self,
        session: &mut Session,
        r: GetSubfile,
    ) -> Result<SubfileIs, Refused> {
        self.demand_operator(session)?;
        let opened = self.change(session, move |b, caller| b.opened(caller, r.handle))?;
        let state = opened.layout.decode()?;
        let [piece] = &state.pieces[..] else {
            let text = "the file is being given another layout; wait for its end";
            return Err(Refused::new(Status::Busy, text));
        };
        let count = piece.partition.len() as u64;
        if r.index >= count {
            let text = format!(
                "subfile: {}, but the file has {count}; they count from 0",
                r.index
            );
            return Err(Refused::new(Status::InvalidArgument, text));
        }
        let index = r.index as usize;
        Ok(SubfileIs {
            generation: piece.generation,
            count,
            view: View::from(piece.partition.subfile(index)),
            places: piece.places[index].clone(),
        })
    }

    pub(crate) fn put_view(&self, session: &mut Session, r: PutView) -> Result<(), Refused> {
        self.change_once(session, move |b, caller| {
            b.put_view(caller, &r.path, &r.name, &r.view)
        })
    }

    pub(crate) fn get_view(&self, session: &mut Session, r: GetView) -> Result<NamedView, Refused> {
        let snapshot = self.read(session)?;
        Ok(snapshot.view(&session.credentials, &r.path, &r.name)?)
    }

    pub(crate) fn remove_view(&self, session: &mut Session, r: RemoveView) -> Result<(), Refused> {
        self.change_once(session, move |b, caller| {
            b.remove_view(caller, &r.path, &r.name)
        })
    }

    /// A client that gets fewer than it asked for asks again behind the last; the end is an empty answer.
    pub(crate) fn list_views(
        &self,
        session: &mut Session,
        r: ListViews,
    ) -> Result<Vec<ViewName>, Refused> {
        let snapshot = self.read(session)?;
        let limit = (r.limit as usize).min(MAX_ENTRIES);
        let mut list: Vec<ViewName> = Vec::new();
        let mut bytes = Vec::new();
        while list.len() < limit {
            let after = list.last().map(|view| &view.name).or(r.after.as_ref());
            let count = VIEWS.min(limit - list.len());
            let found = snapshot.views(
                &session.credentials,
                &r.path,
                after.map(String::as_str),
                count,
            )?;
            let is_last = found.len() < count;
            for (name, text) in found {
                let view = ViewName { name, text };
                view.put(&mut bytes);
                if bytes.len() > LIST_BYTES && !list.is_empty() {
                    return Ok(list);
                }
                list.push(view);
            }
            if is_last {
                break;
            }
        }
        Ok(list)
    }

    pub(crate) fn change_values(
        &self,
        session: &mut Session,
        r: ChangeValues,
    ) -> Result<(), Refused> {
        self.change_once(session, move |b, caller| {
            b.change_values(caller, &r.path, &r.put, &r.remove)
        })
    }

    pub(crate) fn get_values(
        &self,
        session: &mut Session,
        r: GetValues,
    ) -> Result<Vec<NamedValue>, Refused> {
        let snapshot = self.read(session)?;
        Ok(snapshot.values(&session.credentials, &r.path)?)
    }

    pub(crate) fn change_array(
        &self,
        session: &mut Session,
        r: ChangeArray,
    ) -> Result<ArrayIs, Refused> {
        self.change_once(session, move |b, caller| {
            b.change_array(caller, &r.path, &r.from, &r.to)
        })
    }

    pub(crate) fn list_members(&self, _: &mut Session, _: Members) -> Result<Vec<Member>, Refused> {
        self.members_now()
    }

    pub(crate) fn count(&self, session: &mut Session, _: Count) -> Result<Counts, Refused> {
        Ok(self.read(session)?.counts()?)
    }

    pub(crate) fn check(&self, session: &mut Session, _: Check) -> Result<Vec<Finding>, Refused> {
        self.demand_operator(session)?;
        let found = self.snapshot()?.check()?;
        let count = found.len();
        let mut list: Vec<Finding> = found
            .iter()
            .take(MAX_ENTRIES)
            .map(|finding| Finding {
                severity: finding.severity(),
                text: finding.to_string(),
            })
            .collect();
        keep_what_fits(&mut list);
        if list.len() < count {
            let severity = Severity::Broken;
            let text = format!("{} more findings", count - list.len());
            list.push(Finding { severity, text });
        }
        Ok(list)
    }
}
