//! Members: the I/O servers, their starts, and where new subfiles go.
//!
//! Each start of a server is an *incarnation*, a number that no start of any server has twice.
//! Subfiles are bound to the incarnation that took them. A server that finds its store again, on its disks or with the keeper of
//! its memory, resumes, and keeps what earlier incarnations
//! took from [`Member::kept_since`] on. What is bound to an earlier one is lost, and is called so.
//!
//! Placement: candidates are the servers that are alive, have no failed disk and have room, by number. A server has room
//! while more than a 64th of its capacity is free; when none has, but some are alive, there is no
//! space. Where the rule for files without a layout has chosen, subfiles go to its servers in its order;
//! a layout that lists servers by number gets exactly those; otherwise subfile `j` goes to
//! candidate `(start + j) mod n`, where `start` counts up by one with every placement, so that many
//! small files spread evenly. The file's owner is the server of subfile 0, so owners spread as files
//! do. The result depends on nothing but the members, their use, and the counter.

use wire::Place;
use wire::message::catalogue::{Member, MemberState, StoreKind};
use wire::message::cluster::{Join, NO_START, Removal};

use super::hints::failed_servers;
use super::record::{
    Counter, count_up, counter, decode, key, layout_state, put_member, read_member, read_removal,
    set_counter,
};
use super::rows::Rows;
use super::{Batch, Snapshot};
use crate::error::MetaError;
use crate::{FileId, ServerId};

pub(crate) fn find_member(rows: &dyn Rows, server: ServerId) -> Result<Option<Member>, MetaError> {
    let key = key::member(server);
    rows.get(&key)?
        .map(|bytes| read_member(&key, &bytes))
        .transpose()
}

pub(crate) fn members(rows: &dyn Rows) -> Result<Vec<Member>, MetaError> {
    let mut members = Vec::new();
    rows.for_each(&key::members(), &mut |key, bytes| {
        members.push(read_member(key, bytes)?);
        Ok(())
    })?;
    Ok(members)
}

/// Servers that take subfiles, by number.
pub(crate) fn candidates(rows: &dyn Rows) -> Result<Vec<Member>, MetaError> {
    let mut alive = members(rows)?;
    alive.retain(|m| m.state == MemberState::Alive && !m.is_draining);
    if alive.is_empty() {
        return Err(MetaError::NoServer);
    }
    let failed = failed_servers(rows)?;
    alive.retain(|m| !failed.iter().any(|f| f.server == m.server));
    if alive.is_empty() {
        return Err(MetaError::AllFailed);
    }
    alive.retain(Member::has_room);
    if alive.is_empty() {
        return Err(MetaError::NoSpace);
    }
    Ok(alive)
}

impl Batch<'_> {
    /// A server starts: it gets a new incarnation, and a number if it had none. One that
    /// continues keeps its incarnation, unless it was replaced by a later start of itself. A server that says that
    /// it had a number shows the identity that was shown when the number was given; a server of a catalogue
    /// from before there were identities shows it now. One that says no number has the one that was given to
    /// its identity: it was cut off in its first join, or has lost the note of its number.
    pub fn join(&mut self, join: &Join) -> Result<Member, MetaError> {
        self.one(|b| b.join_now(join))
    }

    fn join_now(&mut self, join: &Join) -> Result<Member, MetaError> {
        if join.address.len() > super::path::MAX_PATH_BYTES {
            return Err(MetaError::TooLarge("the address of a server"));
        }
        let before = match join.server {
            Some(server) => {
                Some(find_member(&self.rows, server)?.ok_or(MetaError::NoSuchServer(server))?)
            }
            None if join.continues.is_none() => self.find_by_identity(&join.identity.0)?,
            None => None,
        };
        if let Some(server) = join.server {
            let known = self.rows.get(&key::identity(server))?;
            if known.is_some_and(|known| known != join.identity.0) {
                return Err(MetaError::NotThatServer(server));
            }
        }
        if let Some(incarnation) = join.continues {
            return self.continue_now(join, incarnation, before);
        }
        let incarnation = count_up(&mut self.rows, Counter::NextIncarnation)? + 1;
        let resumed = before
            .as_ref()
            .filter(|m| join.store == m.store)
            .filter(|m| match (join.server, join.resumes) {
                // What memory has is known by the start that left it, and that server knows its number.
                (None, Some(resumes)) => m.store == StoreKind::Disk && resumes == NO_START,
                (Some(_), Some(resumes)) => m.keeps(resumes),
                (_, None) => false,
            });
        let member = Member {
            server: match &before {
                Some(m) => m.server,
                None => ServerId(count_up(&mut self.rows, Counter::NextServer)?),
            },
            address: join.address.clone(),
            local: None,
            incarnation,
            kept_since: resumed.map_or(incarnation, |m| m.kept_since),
            store: join.store,
            capacity_bytes: join.capacity_bytes,
            used_bytes: join.used_bytes,
            distance: join.distance,
            state: MemberState::Alive,
            is_draining: before.as_ref().is_some_and(|m| m.is_draining),
        };
        put_member(&mut self.rows, &member);
        self.put_identity(member.server, join);
        // What it has lost need not be removed.
        let mut gone = Vec::new();
        self.rows
            .for_each(&key::removals_at(member.server), &mut |key, bytes| {
                if !member.keeps(read_removal(key, bytes)?.0) {
                    gone.push(key.to_vec());
                }
                Ok(())
            })?;
        for key in gone {
            self.rows.remove(key);
        }
        Ok(member)
    }

    /// The server that was given a number when it showed this identity; of several numbers the one of the last start.
    fn find_by_identity(&self, identity: &[u8]) -> Result<Option<Member>, MetaError> {
        let mut last: Option<Member> = None;
        if identity.is_empty() {
            return Ok(last);
        }
        for member in members(&self.rows)? {
            let shown = self.rows.get(&key::identity(member.server))?;
            let is_later = |last: &Member| member.incarnation > last.incarnation;
            if shown.is_some_and(|shown| shown == identity) && last.as_ref().is_none_or(is_later) {
                last = Some(member);
            }
        }
        Ok(last)
    }

    /// A process that was a member already is one again, with everything it has.
    fn continue_now(
        &mut self,
        join: &Join,
        incarnation: u64,
        before: Option<Member>,
    ) -> Result<Member, MetaError> {
        let before = before.ok_or_else(|| {
            MetaError::argument("server", "a server that continues says its number")
        })?;
        if before.incarnation != incarnation || before.store != join.store {
            return Err(MetaError::StaleIncarnation(before.server));
        }
        let member = Member {
            address: join.address.clone(),
            capacity_bytes: join.capacity_bytes,
            used_bytes: join.used_bytes,
            distance: join.distance,
            state: MemberState::Alive,
            ..before
        };
        put_member(&mut self.rows, &member);
        self.put_identity(member.server, join);
        Ok(member)
    }

    fn put_identity(&mut self, server: ServerId, join: &Join) {
        if !join.identity.0.is_empty() {
            self.rows
                .put(key::identity(server), join.identity.0.clone());
        }
    }

    /// A server takes nothing new any more; what it has stays bound to it.
    pub fn leave(&mut self, server: ServerId) -> Result<(), MetaError> {
        self.one(|b| b.set_state(server, None, MemberState::Left))
    }

    /// A server takes nothing new any more, since what it has is moved away; or takes part again.
    pub fn set_draining(
        &mut self,
        server: ServerId,
        is_draining: bool,
    ) -> Result<Member, MetaError> {
        self.one(|b| {
            let mut member =
                find_member(&b.rows, server)?.ok_or(MetaError::NoSuchServer(server))?;
            if member.is_draining != is_draining {
                member.is_draining = is_draining;
                put_member(&mut b.rows, &member);
            }
            Ok(member)
        })
    }

    /// A start of a server is found dead. A report about an earlier start changes nothing.
    pub fn mark_dead(&mut self, server: ServerId, incarnation: u64) -> Result<(), MetaError> {
        self.one(|b| b.set_state(server, Some(incarnation), MemberState::Dead))
    }

    fn set_state(
        &mut self,
        server: ServerId,
        incarnation: Option<u64>,
        state: MemberState,
    ) -> Result<(), MetaError> {
        let mut member = find_member(&self.rows, server)?.ok_or(MetaError::NoSuchServer(server))?;
        if incarnation.is_some_and(|i| i != member.incarnation) {
            return Err(MetaError::StaleIncarnation(server));
        }
        member.state = state;
        put_member(&mut self.rows, &member);
        Ok(())
    }

    /// What a server reports about its room, and how much it had to do.
    pub fn report_room(
        &mut self,
        server: ServerId,
        incarnation: u64,
        capacity_bytes: u64,
        used_bytes: u64,
        load: u64,
    ) -> Result<(), MetaError> {
        self.one(|b| {
            b.usage.reported(server, load);
            let mut member =
                find_member(&b.rows, server)?.ok_or(MetaError::NoSuchServer(server))?;
            if incarnation != member.incarnation {
                return Err(MetaError::StaleIncarnation(server));
            }
            if (member.capacity_bytes, member.used_bytes) != (capacity_bytes, used_bytes) {
                member.capacity_bytes = capacity_bytes;
                member.used_bytes = used_bytes;
                put_member(&mut b.rows, &member);
            }
            Ok(())
        })
    }

    /// Forgets a server that is not alive and that no file names.
    pub fn forget(&mut self, server: ServerId) -> Result<(), MetaError> {
        self.one(|b| {
            let member = find_member(&b.rows, server)?.ok_or(MetaError::NoSuchServer(server))?;
            if member.state == MemberState::Alive {
                return Err(MetaError::argument(
                    "server",
                    "is alive; let it leave first",
                ));
            }
            let mut used_by = None;
            b.rows.for_each(&key::layouts(), &mut |key, bytes| {
                let state = decode(key, bytes, wire::LayoutState::read)?;
                if places_of(&state).any(|(_, p)| p.server == server.0) {
                    used_by = key::number(key, 0).map(FileId);
                }
                Ok(())
            })?;
            if let Some(file) = used_by {
                let how = "its layout names the server";
                return Err(MetaError::InUse { file, how });
            }
            let mut removals = Vec::new();
            b.rows.for_each(&key::removals_at(server), &mut |key, _| {
                removals.push(key.to_vec());
                Ok(())
            })?;
            for key in removals {
                b.rows.remove(key);
            }
            b.rows.remove(key::member(server));
            b.rows.remove(key::identity(server));
            b.rows.remove(key::failed(server));
            Ok(())
        })
    }

    /// Places for `count` subfiles.
    pub(crate) fn place(
        &mut self,
        count: usize,
        listed: Option<&[u64]>,
        among: Option<&[u64]>,
    ) -> Result<Vec<Place>, MetaError> {
        if let Some(list) = listed {
            return self.check_listed(list);
        }
        let mut candidates = candidates(&self.rows)?;
        if let Some(among) = among {
            candidates.retain(|m| among.contains(&m.server.0));
        }
        if candidates.is_empty() {
            return Err(MetaError::NoServer);
        }
        let start = self.turn()?;
        let n = candidates.len();
        let first = (start % n as u64) as usize;
        Ok((0..count)
            .map(|j| candidates[(first + j) % n].place())
            .collect())
    }

    /// The places of servers that a layout lists; they are alive and have not failed.
    pub(crate) fn check_listed(&self, list: &[u64]) -> Result<Vec<Place>, MetaError> {
        let failed = failed_servers(&self.rows)?;
        let place = |&number: &u64| {
            let server = ServerId(number);
            if failed.iter().any(|f| f.server == server) {
                return Err(MetaError::ServerFailed(server));
            }
            let member = find_member(&self.rows, server)?
                .filter(|m| m.state == MemberState::Alive)
                .ok_or(MetaError::ServerNotAlive(server))?;
            match member.is_draining {
                true => Err(MetaError::ServerDraining(server)),
                false => Ok(member.place()),
            }
        };
        list.iter().map(place).collect()
    }

    /// The number of this placement, and the next one is one higher.
    pub(crate) fn turn(&mut self) -> Result<u64, MetaError> {
        let turn = counter(&self.rows, Counter::Rotation)?;
        set_counter(&mut self.rows, Counter::Rotation, turn.wrapping_add(1));
        Ok(turn)
    }
}

/// All places of a layout state, with the generation under which bytes are stored there.
pub(crate) fn places_of(state: &wire::LayoutState) -> impl Iterator<Item = (u64, Place)> + '_ {
    state.pieces.iter().flat_map(|piece| {
        let subfiles = piece.places.iter().zip(&piece.stores);
        subfiles.flat_map(|(places, &store)| places.iter().map(move |&place| (store, place)))
    })
}

impl Batch<'_> {
    /// A server has removed bytes. Saying so twice is no mistake; if more is to be removed by now, all of it
    /// is asked for again.
    pub fn confirm_removal(&mut self, server: ServerId, done: &Removal) -> Result<(), MetaError> {
        self.one(|b| {
            let key = key::removal(server, done.file, done.generation);
            if let Some(bytes) = b.rows.get(&key)?
                && read_removal(&key, &bytes)?.1 == done.subfiles
            {
                b.rows.remove(key);
            }
            Ok(())
        })
    }
}

impl Snapshot {
    /// All servers that ever joined and were not forgotten.
    pub fn members(&self) -> Result<Vec<Member>, MetaError> {
        members(&self.rows)
    }

    /// Up to `limit` removals that wait for a server, behind the given one.
    pub fn removals(
        &self,
        server: ServerId,
        after: Option<Removal>,
        limit: usize,
    ) -> Result<Vec<Removal>, MetaError> {
        let after = after.map(|r| key::removal(server, r.file, r.generation));
        self.rows
            .scan(&key::removals_at(server), after.as_deref(), limit)?
            .iter()
            .map(|(key, bytes)| {
                let (incarnation, subfiles) = read_removal(key, bytes)?;
                Ok(Removal {
                    file: FileId(key::number(key, 1).unwrap_or(0)),
                    generation: key::number(key, 2).unwrap_or(0),
                    incarnation,
                    subfiles,
                })
            })
            .collect()
    }

    /// Places of a file whose bytes no longer exist, with the generation they belong to.
    pub fn lost(&self, file: FileId) -> Result<Vec<(u64, Place)>, MetaError> {
        let state = layout_state(&self.rows, file)?;
        let members = self.members()?;
        Ok(places_of(&state)
            .filter(|(_, place)| {
                !members
                    .iter()
                    .any(|m| m.server.0 == place.server && m.keeps(place.incarnation))
            })
            .collect())
    }
}
