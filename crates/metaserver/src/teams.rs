//! Teams: processes that open files together tell each other something, through here.
//!
//! A team is known by its user and a name. Its members exchange in rounds; a round is complete when every
//! rank has given its contribution, and then all get all of them. Whoever waits is answered after a
//! while that the others are not there yet, and asks again.
//!
//! Invariants
//! - A round that is complete is told to everybody who took part, whatever happens after.
//! - When a member dies or leaves, or members contradict each other, all others are told at once,
//!   those who come late included. Nobody waits for somebody who cannot come.
//! - A team is forgotten with its last member, and its name is free. A name that is taken again
//!   before that is another team.
//! - What is kept is bounded: by the members that are connected, and one contribution of bounded size for
//!   each in at most two rounds.
//!
//! Nothing of this is durable: after a restart members give their contribution again.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use wire::frame::MAX_CONTROL_BYTES;
use wire::message::Bytes;
use wire::message::team::{Gather, Gathered, LeaveTeam};
use wire::{ClientId, Status};

use crate::committer::Refused;
use crate::manager::{Manager, Session};

/// Longest time that a question waits here.
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// Most ranks of a team.
const MOST_RANKS: u64 = 1 << 16;

/// Longest name.
const NAME_BYTES: usize = 1024;

/// Most teams of a user.
const MOST_TEAMS: usize = 1 << 12;

/// What all contributions of a round may take: they travel in one answer.
const ROUND_BYTES: usize = MAX_CONTROL_BYTES as usize - 4096;

/// A member, as the service knows it.
type Member = (ClientId, u64);

#[derive(Debug, Default)]
struct Round {
    given: BTreeMap<u64, Bytes>,
    bytes: usize,
}

#[derive(Debug)]
struct Team {
    size: u64,
    /// Ranks that ever came.
    came: HashSet<u64>,
    /// Members that are there, with their ranks.
    members: HashMap<Member, u64>,
    /// The last two rounds.
    rounds: BTreeMap<u64, Round>,
    /// Why nothing goes on.
    broken: Option<Refused>,
}

impl Team {
    fn fail(&mut self, status: Status, text: String) {
        if self.broken.is_none() {
            self.broken = Some(Refused::new(status, text));
        }
    }

    fn gone(&mut self, member: Member, how: &str) {
        if let Some(rank) = self.members.remove(&member) {
            self.fail(
                Status::Unreachable,
                format!("rank {rank} of the team {how}"),
            );
        }
    }

    /// What a round has, when all have given to it.
    fn complete(&self, round: u64) -> Option<Vec<Bytes>> {
        let found = self.rounds.get(&round)?;
        (found.given.len() as u64 == self.size).then(|| found.given.values().cloned().collect())
    }
}

/// All teams.
#[derive(Debug, Default)]
pub(crate) struct Teams {
    table: Mutex<HashMap<(u32, String), Vec<Team>>>,
    changed: Condvar,
}

impl Teams {
    fn lock(&self) -> MutexGuard<'_, HashMap<(u32, String), Vec<Team>>> {
        self.table.lock()
    }

    /// A client has died or said goodbye.
    pub(crate) fn client_gone(&self, client: ClientId) {
        let mut table = self.lock();
        let mut is_known = false;
        for team in table.values_mut().flatten() {
            let theirs: Vec<Member> = team.members.keys().copied().collect();
            for member in theirs.into_iter().filter(|m| m.0 == client) {
                team.gone(member, "has ended");
                is_known = true;
            }
        }
        forget(&mut table);
        drop(table);
        if is_known {
            self.changed.notify_all();
        }
    }
}

/// Teams without members are over.
fn forget(table: &mut HashMap<(u32, String), Vec<Team>>) {
    table.retain(|_, teams| {
        teams.retain(|team| !team.members.is_empty());
        !teams.is_empty()
    });
}

fn wrong(text: impl Into<String>) -> Refused {
    Refused::new(Status::InvalidArgument, text)
}

fn check(r: &Gather) -> Result<(), Refused> {
    if r.size == 0 || r.size > MOST_RANKS || r.rank >= r.size {
        let text = format!(
            "rank {} of {}: a team has 1 to {MOST_RANKS} ranks, counted from 0",
            r.rank, r.size
        );
        return Err(wrong(text));
    }
    if r.team.is_empty() || r.team.len() > NAME_BYTES {
        return Err(wrong(format!(
            "team: give a name of 1 to {NAME_BYTES} bytes"
        )));
    }
    Ok(())
}

/// The team of a member; it joins one that its rank is missing in, or begins one.
fn find<'t>(teams: &'t mut Vec<Team>, member: Member, r: &Gather) -> Result<&'t mut Team, Refused> {
    let known = teams.iter().position(|t| t.members.contains_key(&member));
    let at = match known.or_else(|| teams.iter().position(|t| !t.came.contains(&r.rank))) {
        Some(at) => at,
        // Two who say that they are the same: everybody is told, if the team is still forming.
        None if teams.iter().any(|t| (t.came.len() as u64) < t.size) => {
            let text = format!("two members say that they are rank {}", r.rank);
            for team in teams.iter_mut() {
                if (team.came.len() as u64) < team.size {
                    team.fail(Status::InvalidArgument, text.clone());
                }
            }
            return Err(wrong(text));
        }
        None => {
            teams.push(Team {
                size: r.size,
                came: HashSet::new(),
                members: HashMap::new(),
                rounds: BTreeMap::new(),
                broken: None,
            });
            teams.len() - 1
        }
    };
    let team = &mut teams[at];
    if known.is_none() {
        team.came.insert(r.rank);
        team.members.insert(member, r.rank);
    }
    if team.size != r.size {
        let text = format!(
            "rank {} says that the team has {} ranks, others say {}; different teams need \
             different names",
            r.rank, r.size, team.size
        );
        team.fail(Status::InvalidArgument, text);
    }
    if team.members.get(&member) != Some(&r.rank) {
        team.fail(
            Status::InvalidArgument,
            format!("a member was another rank before it was {}", r.rank),
        );
    }
    Ok(team)
}

/// Adds a contribution to its round.
fn give(team: &mut Team, r: &Gather) {
    if team.broken.is_some() {
        return;
    }
    let last = team.rounds.keys().next_back().copied();
    if last.is_some_and(|last| r.round > last.saturating_add(1) || r.round.saturating_add(1) < last)
    {
        team.fail(
            Status::InvalidArgument,
            format!("rank {} is in another round than the others", r.rank),
        );
        return;
    }
    let round = team.rounds.entry(r.round).or_default();
    match round.given.get(&r.rank) {
        Some(before) if *before == r.contribution => {}
        Some(_) => {
            let text = format!("rank {} says two things in one round", r.rank);
            team.fail(Status::InvalidArgument, text);
            return;
        }
        None => {
            round.bytes += r.contribution.0.len() + 5;
            if round.bytes > ROUND_BYTES {
                let text =
                    format!("the contributions of a round take more than {ROUND_BYTES} bytes");
                team.fail(Status::TooLarge, text);
                return;
            }
            round.given.insert(r.rank, r.contribution.clone());
        }
    }
    // Who gives to a round has what the one before gathered.
    if team.complete(r.round).is_some() {
        team.rounds.retain(|&round, _| round >= r.round);
    }
}

impl Manager {
    /// Takes a contribution, and gives all of them back if they come in time.
    pub(crate) fn gather(&self, session: &mut Session, r: Gather) -> Result<Gathered, Refused> {
        self.read(session)?;
        check(&r)?;
        let member = (session.client()?, r.member);
        let user = session.credentials.user;
        let key = (user, r.team.clone());
        let deadline = Instant::now() + Duration::from_millis(r.wait_ms).min(LONGEST_WAIT);
        let mut table = self.teams.lock();
        if !table.contains_key(&key) && table.keys().filter(|k| k.0 == user).count() >= MOST_TEAMS {
            let text = format!("user {user} has {MOST_TEAMS} teams already");
            return Err(Refused::new(Status::TooLarge, text));
        }
        let team = find(table.entry(key.clone()).or_default(), member, &r);
        let given = team.map(|team| give(team, &r));
        forget(&mut table);
        self.teams.changed.notify_all();
        given?;
        loop {
            let teams = table.get(&key).into_iter().flatten();
            let mut teams = teams.filter(|t| t.members.contains_key(&member));
            let Some(team) = teams.next() else {
                return Err(Refused::new(Status::Fenced, "the member has left its team"));
            };
            if let Some(all) = team.complete(r.round) {
                return Ok(Gathered {
                    contributions: Some(all),
                });
            }
            if let Some(broken) = &team.broken {
                return Err(broken.clone());
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || self.is_ending() {
                return Ok(Gathered {
                    contributions: None,
                });
            }
            self.teams.changed.wait_for(&mut table, left);
        }
    }

    /// A member leaves.
    pub(crate) fn leave_team(&self, session: &mut Session, r: LeaveTeam) -> Result<(), Refused> {
        let member = (session.client()?, r.member);
        let key = (session.credentials.user, r.team);
        let mut table = self.teams.lock();
        for team in table.get_mut(&key).into_iter().flatten() {
            team.gone(member, "has left");
        }
        forget(&mut table);
        drop(table);
        self.teams.changed.notify_all();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gather(rank: u64, size: u64, round: u64, bytes: &[u8]) -> Gather {
        Gather {
            team: "t".into(),
            member: rank,
            rank,
            size,
            round,
            contribution: Bytes(bytes.to_vec()),
            wait_ms: 0,
        }
    }

    fn give_to(teams: &mut Vec<Team>, r: &Gather) -> Option<Vec<Bytes>> {
        let member = (ClientId(r.member), r.member);
        let team = find(teams, member, r).ok()?;
        give(team, r);
        team.complete(r.round)
    }

    #[test]
    fn rounds_gather_by_rank_and_may_be_asked_again() {
        let mut teams = Vec::new();
        assert_eq!(give_to(&mut teams, &gather(1, 2, 0, b"b")), None);
        let all = Some(vec![Bytes(b"a".to_vec()), Bytes(b"b".to_vec())]);
        assert_eq!(give_to(&mut teams, &gather(0, 2, 0, b"a")), all);
        assert_eq!(give_to(&mut teams, &gather(1, 2, 0, b"b")), all);
        assert_eq!(give_to(&mut teams, &gather(0, 2, 1, b"c")), None);
        // The slower one still gets the round before.
        assert_eq!(give_to(&mut teams, &gather(1, 2, 0, b"b")), all);
        assert!(give_to(&mut teams, &gather(1, 2, 1, b"d")).is_some());
        assert!(teams[0].broken.is_none());
        assert_eq!(teams[0].rounds.len(), 1);
    }

    #[test]
    fn contradictions_break_the_team_for_everybody() {
        for bad in [
            gather(1, 3, 0, b""),
            gather(1, 2, 7, b""),
            gather(1, 2, 0, &vec![0; ROUND_BYTES]),
        ] {
            let mut teams = Vec::new();
            give_to(&mut teams, &gather(0, 2, 0, b"a"));
            assert_eq!(give_to(&mut teams, &bad), None);
            assert_eq!(teams.len(), 1);
            assert!(teams[0].broken.is_some(), "{bad:?}");
        }
        let mut teams = Vec::new();
        give_to(&mut teams, &gather(0, 2, 0, b"a"));
        let twin = Gather {
            member: 9,
            ..gather(0, 2, 0, b"a")
        };
        assert_eq!(give_to(&mut teams, &twin), None);
        assert!(teams[0].broken.is_some());
    }

    #[test]
    fn a_name_can_be_used_again_while_the_last_members_of_a_team_are_leaving() {
        let mut teams = Vec::new();
        give_to(&mut teams, &gather(0, 2, 0, b"a"));
        give_to(&mut teams, &gather(1, 2, 0, b"b"));
        teams[0].gone((ClientId(1), 1), "has left");
        let again = Gather {
            member: 5,
            ..gather(0, 2, 0, b"new")
        };
        give_to(&mut teams, &again);
        let again = Gather {
            member: 6,
            ..gather(1, 2, 0, b"new")
        };
        assert!(give_to(&mut teams, &again).is_some());
        assert_eq!(teams.len(), 2);
        assert!(teams[0].broken.is_some() && teams[1].broken.is_none());
    }
}
