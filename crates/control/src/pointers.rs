//! Shared file pointers and append reservations, at the server that owns the file.
//!
//! Both hand out ranges that nobody else gets. A [shared pointer](SharedPointers) belongs to a group
//! of handles (one collective opening) and counts in the units of their view; an access takes its
//! range by adding to it, so concurrent accesses get disjoint ranges in the order in which they ask.
//! An [append](Appends) takes its range behind the size and behind all other appends under way.
//!
//! A client that repeats a question, because the answer was lost, gets the answer it had. A group
//! ends with its last member. A client's reservations are given back only after it is fenced: until
//! then its bytes may still arrive. What is given back in the middle is a hole and reads as zeros.
//!
//! Values in, values out: no I/O, no clock. An owner that gives its duties up [tells](SharedPointers::told)
//! the next one. A restarted owner starts with no pointers; clients open their groups again with the
//! positions they know.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::locks::Ticket;
use wire::ClientId;
use wire::message::cluster::{PointerIs, PointerMember};

/// A collective opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub u64);

/// Why a range was not handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PointerError {
    /// The client is not in the group, or there is none.
    #[error("the handle has no part in this shared pointer")]
    NotMember,
    /// The question is older than one that was answered.
    #[error("the request is older than one that was answered")]
    OldRequest,
    /// The range ends beyond the largest offset.
    #[error("the range ends beyond the largest offset")]
    TooFar,
}

impl PointerError {
    /// The status with which to answer.
    pub fn status(self) -> wire::Status {
        match self {
            PointerError::NotMember => wire::Status::BadHandle,
            PointerError::OldRequest | PointerError::TooFar => wire::Status::InvalidArgument,
        }
    }
}

#[derive(Debug, Default)]
struct Group {
    position: u64,
    members: BTreeSet<ClientId>,
    /// The last question of each member, and its answer.
    answered: BTreeMap<ClientId, (u64, u64)>,
}

/// The shared pointers of a file.
#[derive(Debug, Default)]
pub struct SharedPointers {
    groups: BTreeMap<GroupId, Group>,
}

impl SharedPointers {
    /// A client takes part; the first one sets the position.
    pub fn join(&mut self, group: GroupId, client: ClientId, position: u64) {
        let group = self.groups.entry(group).or_insert_with(|| Group {
            position,
            ..Group::default()
        });
        group.members.insert(client);
    }

    /// A client takes part no more.
    pub fn leave(&mut self, group: GroupId, client: ClientId) {
        if let Some(found) = self.groups.get_mut(&group) {
            found.members.remove(&client);
            found.answered.remove(&client);
            if found.members.is_empty() {
                self.groups.remove(&group);
            }
        }
    }

    /// A client is dead; ranges it took stay taken.
    pub fn died(&mut self, client: ClientId) {
        let groups: Vec<GroupId> = self.groups.keys().copied().collect();
        for group in groups {
            self.leave(group, client);
        }
    }

    /// Takes `count` units; returns the first. The request number rises from question to question
    /// of a client, and the last question may be repeated.
    pub fn fetch_add(
        &mut self,
        group: GroupId,
        ticket: Ticket,
        count: u64,
    ) -> Result<u64, PointerError> {
        self.ask(group, ticket, |position| {
            let end = position.checked_add(count)?;
            (end <= falls::MAX_OFFSET).then_some((end, position))
        })
    }

    /// Sets the position; returns the one before.
    pub fn seek(
        &mut self,
        group: GroupId,
        ticket: Ticket,
        position: u64,
    ) -> Result<u64, PointerError> {
        self.ask(group, ticket, |old| {
            (position <= falls::MAX_OFFSET).then_some((position, old))
        })
    }

    /// All of them, for another owner.
    pub fn told(&self) -> Vec<PointerIs> {
        let group = |(id, group): (&GroupId, &Group)| PointerIs {
            group: id.0,
            position: group.position,
            members: group
                .members
                .iter()
                .map(|&client| {
                    let (request, answer) = group.answered.get(&client).copied().unwrap_or((0, 0));
                    PointerMember {
                        client,
                        request,
                        answer,
                    }
                })
                .collect(),
        };
        self.groups.iter().map(group).collect()
    }

    /// As an owner before has told them.
    pub fn inherited(told: &[PointerIs]) -> SharedPointers {
        let mut pointers = SharedPointers::default();
        for is in told {
            for member in &is.members {
                pointers.join(GroupId(is.group), member.client, is.position);
                if let Some(group) = pointers.groups.get_mut(&GroupId(is.group))
                    && member.request != 0
                {
                    let answer = (member.request, member.answer);
                    group.answered.insert(member.client, answer);
                }
            }
        }
        pointers
    }

    /// Who takes part in any.
    pub fn members(&self) -> impl Iterator<Item = ClientId> + '_ {
        self.groups.values().flat_map(|g| g.members.iter().copied())
    }

    /// How many a client takes part in.
    pub fn claims(&self, client: ClientId) -> usize {
        let groups = self.groups.values();
        groups.filter(|g| g.members.contains(&client)).count()
    }

    /// The position.
    pub fn position(&self, group: GroupId) -> Option<u64> {
        self.groups.get(&group).map(|g| g.position)
    }

    /// Moves the position; `step` gives the new one and the answer.
    fn ask(
        &mut self,
        group: GroupId,
        ticket: Ticket,
        step: impl FnOnce(u64) -> Option<(u64, u64)>,
    ) -> Result<u64, PointerError> {
        let group = self
            .groups
            .get_mut(&group)
            .filter(|g| g.members.contains(&ticket.client))
            .ok_or(PointerError::NotMember)?;
        match group.answered.get(&ticket.client) {
            Some(&(request, answer)) if request == ticket.request => return Ok(answer),
            Some(&(request, _)) if request > ticket.request => {
                return Err(PointerError::OldRequest);
            }
            _ => {}
        }
        let (position, answer) = step(group.position).ok_or(PointerError::TooFar)?;
        group.position = position;
        group
            .answered
            .insert(ticket.client, (ticket.request, answer));
        Ok(answer)
    }
}

/// The appends of a file that are under way.
#[derive(Debug, Default)]
pub struct Appends {
    reserved: BTreeMap<Ticket, Range<u64>>,
}

impl Appends {
    /// A place for `len` bytes behind the present size and behind all appends under way.
    pub fn reserve(&mut self, ticket: Ticket, len: u64, size: u64) -> Result<u64, PointerError> {
        if let Some(range) = self.reserved.get(&ticket) {
            return Ok(range.start);
        }
        let start = self.next(size);
        let end = start
            .checked_add(len)
            .filter(|&end| end <= falls::MAX_OFFSET)
            .ok_or(PointerError::TooFar)?;
        self.reserved.insert(ticket, start..end);
        Ok(start)
    }

    /// Where the next append would go.
    pub fn next(&self, size: u64) -> u64 {
        self.reserved.values().map(|r| r.end).fold(size, u64::max)
    }

    /// What is reserved under this ticket.
    pub fn reserved(&self, ticket: Ticket) -> Option<Range<u64>> {
        self.reserved.get(&ticket).cloned()
    }

    /// Places that a client has reserved.
    pub fn claims(&self, client: ClientId) -> usize {
        self.reserved.keys().filter(|t| t.client == client).count()
    }

    /// The bytes are there and counted in the size; the range.
    pub fn complete(&mut self, ticket: Ticket) -> Option<Range<u64>> {
        self.reserved.remove(&ticket)
    }

    /// Gives back what a client had reserved, once it is fenced; the ranges, in ascending order.
    pub fn fenced(&mut self, client: ClientId) -> Vec<Range<u64>> {
        let tickets: Vec<Ticket> = self
            .reserved
            .keys()
            .filter(|t| t.client == client)
            .copied()
            .collect();
        let mut ranges: Vec<Range<u64>> = tickets
            .iter()
            .filter_map(|t| self.reserved.remove(t))
            .collect();
        ranges.sort_by_key(|r| r.start);
        ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUP: GroupId = GroupId(1);

    fn ticket(client: u64, request: u64) -> Ticket {
        Ticket {
            client: ClientId(client),
            request,
        }
    }

    fn pointers(clients: u64) -> SharedPointers {
        let mut pointers = SharedPointers::default();
        for client in 0..clients {
            pointers.join(GROUP, ClientId(client), 0);
        }
        pointers
    }

    #[test]
    fn ranges_are_disjoint_and_without_gap_in_any_order_of_questions() {
        // All orders of three clients that take twice each, with every answer lost once.
        fn visit(taken: &[(u64, u64, u64)], asked: [u64; 3]) {
            let mut p = pointers(3);
            let mut ranges = Vec::new();
            for &(client, request, count) in taken {
                let start = p.fetch_add(GROUP, ticket(client, request), count).unwrap();
                assert_eq!(
                    p.fetch_add(GROUP, ticket(client, request), count),
                    Ok(start)
                );
                ranges.push(start..start + count);
            }
            let ends: u64 = ranges.iter().map(|r| r.end - r.start).sum();
            assert!(ranges.windows(2).all(|w| w[0].end == w[1].start));
            assert_eq!(p.position(GROUP), Some(ends));
            for client in 0..3 {
                let request = asked[client as usize];
                if request < 2 {
                    let mut taken = taken.to_vec();
                    taken.push((client, request, 1 + client * 3 + request));
                    let mut asked = asked;
                    asked[client as usize] += 1;
                    visit(&taken, asked);
                }
            }
        }
        visit(&[], [0; 3]);
    }

    #[test]
    fn pointers_belong_to_groups() {
        let mut p = pointers(2);
        p.join(GroupId(2), ClientId(0), 100);
        assert_eq!(p.fetch_add(GroupId(2), ticket(0, 1), 5), Ok(100));
        assert_eq!(p.fetch_add(GROUP, ticket(0, 1), 5), Ok(0));
        assert_eq!(
            p.fetch_add(GroupId(2), ticket(1, 1), 5),
            Err(PointerError::NotMember)
        );
        assert_eq!(
            p.fetch_add(GroupId(3), ticket(0, 1), 5),
            Err(PointerError::NotMember)
        );
        assert_eq!(
            p.fetch_add(GROUP, ticket(0, 0), 5),
            Err(PointerError::OldRequest)
        );
        // Joining later does not move it.
        p.join(GROUP, ClientId(7), 999);
        assert_eq!(p.seek(GROUP, ticket(7, 1), 50), Ok(5));
        assert_eq!(p.seek(GROUP, ticket(7, 1), 50), Ok(5));
        assert_eq!(p.position(GROUP), Some(50));
        let far = p.fetch_add(GROUP, ticket(7, 2), u64::MAX);
        assert_eq!(far, Err(PointerError::TooFar));
        assert_eq!(
            p.seek(GROUP, ticket(7, 3), u64::MAX),
            Err(PointerError::TooFar)
        );
        assert_eq!(p.position(GROUP), Some(50));
        p.died(ClientId(0));
        assert_eq!(p.position(GroupId(2)), None);
        p.leave(GROUP, ClientId(1));
        p.leave(GROUP, ClientId(7));
        assert_eq!(p.position(GROUP), None);
    }

    #[test]
    fn another_owner_goes_on_where_the_first_one_stood() {
        let mut p = pointers(2);
        p.join(GroupId(2), ClientId(5), 70);
        assert_eq!(p.fetch_add(GROUP, ticket(0, 4), 10), Ok(0));
        assert_eq!(p.fetch_add(GROUP, ticket(1, 9), 10), Ok(10));
        let mut q = SharedPointers::inherited(&p.told());
        assert_eq!(q.told(), p.told());
        // A question whose answer was lost on the way is not counted twice.
        assert_eq!(q.fetch_add(GROUP, ticket(1, 9), 10), Ok(10));
        assert_eq!(q.fetch_add(GROUP, ticket(0, 5), 1), Ok(20));
        assert_eq!(q.fetch_add(GroupId(2), ticket(5, 1), 1), Ok(70));
        let members: Vec<u64> = q.members().map(|c| c.0).collect();
        assert_eq!(members, [0, 1, 5]);
    }

    #[test]
    fn pointers_of_a_client_are_counted() {
        let mut p = SharedPointers::default();
        for (group, client) in [(3, 1), (4, 1), (4, 2)] {
            p.join(GroupId(group), ClientId(client), 0);
        }
        assert_eq!([1, 2, 3].map(|c| p.claims(ClientId(c))), [2, 1, 0]);
    }

    #[test]
    fn appends_go_behind_each_other() {
        let mut a = Appends::default();
        assert_eq!(a.reserve(ticket(0, 1), 10, 100), Ok(100));
        assert_eq!(a.reserve(ticket(1, 1), 5, 100), Ok(110));
        assert_eq!(a.reserve(ticket(0, 1), 10, 100), Ok(100)); // asked again
        assert_eq!(a.reserved(ticket(1, 1)), Some(110..115));
        assert_eq!((a.claims(ClientId(1)), a.claims(ClientId(2))), (1, 0));
        // The second is done first: the size is behind both.
        assert_eq!(a.complete(ticket(1, 1)), Some(110..115));
        assert_eq!(a.reserve(ticket(1, 2), 5, 115), Ok(115));
        // A dead client's place in the middle is a hole, at the end it is used again.
        assert_eq!(
            a.fenced(ClientId(0)),
            vec![Range {
                start: 100,
                end: 110
            }]
        );
        assert_eq!(
            a.fenced(ClientId(1)),
            vec![Range {
                start: 115,
                end: 120
            }]
        );
        assert_eq!(a.next(115), 115);
        assert_eq!(a.complete(ticket(0, 1)), None);
        let far = a.reserve(ticket(2, 1), u64::MAX, 1);
        assert_eq!(far, Err(PointerError::TooFar));
    }
}
