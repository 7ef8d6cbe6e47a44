//! Teams: processes that work together meet here, and hear here that a member has died.
//!
//! A team is known by its user and a name. Its members meet in rounds; a round is complete when every
//! rank has given its contribution, and then all get all of them. A member that waits is answered after a
//! while that the others are not there yet, and asks again. Members that have met talk to each other, and only ask
//! whether all are alive ([`WatchTeam`]).
//!
//! Invariants
//! - A round that is complete is told to everybody who took part, whatever happens after.
//! - When a member dies, or leaves before all have met, or members contradict each other, all others are told at once,
//!   those who come late included. A member that leaves later is missed only by rounds that wait for it.
//! - A team is forgotten with its last member, and its name is free. A name that is taken again
//!   before that is another team.
//! - What is kept is bounded: a user has so many teams, and so many bytes of names, members and contributions in them. What would be
//!   more is refused, and changes nothing.
//!
//! Nothing of this is durable: after a restart members give their contribution again.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use serving::{PerUser, Taken};
use wire::frame::MAX_CONTROL_BYTES;
use wire::message::Bytes;
use wire::message::team::{ANY_RANK, Gather, GatherAnswer, LeaveTeam, WatchTeam};
use wire::{ClientId, Status};

use crate::committer::Refused;
use crate::manager::{Manager, Session};

/// Longest time that a question waits here.
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// Most ranks of a team.
const MOST_RANKS: u64 = 1 << 16;

/// Longest name, and longest text about a failure.
const NAME_BYTES: usize = 1024;

/// Most teams of a user.
const MOST_TEAMS: usize = 1 << 14;

/// Most bytes that a user's teams keep.
const MOST_BYTES: usize = 256 << 20;

/// What a rank, a member or a contribution takes besides its bytes, about.
const ENTRY_BYTES: usize = 64;

/// What all contributions of a round may take: they travel in one answer.
const ROUND_BYTES: usize = MAX_CONTROL_BYTES as usize - 4096;

/// User and name.
type Key = (u32, String);

type Table = HashMap<Key, Vec<Team>>;

/// A member, as the service knows it.
type Member = (ClientId, u64);

#[derive(Debug, Default)]
struct Round {
    given: BTreeMap<u64, (Bytes, Taken)>,
    bytes: usize,
}

/// What users have here.
#[derive(Debug)]
struct Shares {
    teams: Arc<PerUser>,
    bytes: Arc<PerUser>,
}

impl Default for Shares {
    fn default() -> Self {
        Shares {
            teams: PerUser::fixed("teams", MOST_TEAMS),
            bytes: PerUser::fixed("bytes of teams", MOST_BYTES),
        }
    }
}

impl Shares {
    fn team(&self, (user, name): &Key) -> Result<[Taken; 2], Refused> {
        let team = self.teams.take(*user);
        Ok([
            team.map_err(|(status, refusal)| Refused(status, refusal))?,
            self.bytes(*user, name.len())?,
        ])
    }

    /// An entry with so many bytes.
    fn bytes(&self, user: u32, bytes: usize) -> Result<Taken, Refused> {
        let taken = self.bytes.take_many(user, bytes + ENTRY_BYTES);
        taken.map_err(|(status, refusal)| Refused(status, refusal))
    }
}

#[derive(Debug)]
struct Team {
    size: u64,
    /// Ranks that ever came.
    came: HashMap<u64, Taken>,
    /// Members that are there, with their ranks.
    members: HashMap<Member, (u64, Taken)>,
    /// The last two rounds.
    rounds: BTreeMap<u64, Round>,
    /// Whether a round was complete: no more members come.
    has_met: bool,
    /// Why nothing goes on.
    broken: Option<Refused>,
    /// Its place among the teams of its user.
    _taken: [Taken; 2],
}

impl Team {
    fn fail(&mut self, status: Status, text: String) {
        if self.broken.is_none() {
            self.broken = Some(Refused::new(status, text));
        }
    }

    fn new(size: u64, has_met: bool, taken: [Taken; 2]) -> Team {
        Team {
            size,
            came: HashMap::new(),
            members: HashMap::new(),
            rounds: BTreeMap::new(),
            has_met,
            broken: None,
            _taken: taken,
        }
    }

    fn rank_of(&self, member: &Member) -> Option<u64> {
        self.members.get(member).map(|(rank, _)| *rank)
    }

    fn has_rank(&self, rank: u64) -> bool {
        self.members.values().any(|(there, _)| *there == rank)
    }

    fn gone(&mut self, member: Member, how: &str) {
        if let Some((rank, _)) = self.members.remove(&member) {
            self.fail(
                Status::Unreachable,
                format!("rank {rank} of the team {how}"),
            );
        }
    }

    /// A rank that a round waits for and that has left.
    fn missed(&self, round: u64) -> Option<u64> {
        let given = self.rounds.get(&round).map(|round| &round.given);
        let is_missed = |rank: &&u64| {
            !given.is_some_and(|given| given.contains_key(rank)) && !self.has_rank(**rank)
        };
        self.came.keys().find(is_missed).copied()
    }

    /// What a round has, when all have given to it.
    fn complete(&self, round: u64) -> Option<Vec<Bytes>> {
        let found = self.rounds.get(&round)?;
        let all = found.given.values().map(|(bytes, _)| bytes.clone());
        (found.given.len() as u64 == self.size).then(|| all.collect())
    }
}

/// All teams.
#[derive(Debug, Default)]
pub(crate) struct Teams {
    table: Mutex<Table>,
    changed: Condvar,
    shares: Shares,
}

impl Teams {
    fn lock(&self) -> MutexGuard<'_, Table> {
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
fn forget(table: &mut Table) {
    table.retain(|_, teams| {
        teams.retain(|team| !team.members.is_empty());
        !teams.is_empty()
    });
}

fn wrong(text: impl Into<String>) -> Refused {
    Refused::new(Status::InvalidArgument, text)
}

fn check(name: &str, rank: u64, size: u64) -> Result<(), Refused> {
    if size == 0 || size > MOST_RANKS || rank >= size && rank != ANY_RANK {
        let text =
            format!("rank {rank} of {size}: a team has 1 to {MOST_RANKS} ranks, counted from 0");
        return Err(wrong(text));
    }
    if name.is_empty() || name.len() > NAME_BYTES {
        return Err(wrong(format!(
            "team: give a name of 1 to {NAME_BYTES} bytes"
        )));
    }
    Ok(())
}

/// The team of a member, which is still to meet or has met; the member joins one that its rank is missing in, or begins one.
fn find<'t>(
    shares: &Shares,
    key: &Key,
    teams: &'t mut Vec<Team>,
    member: Member,
    (rank, size): (u64, u64),
    has_met: bool,
) -> Result<&'t mut Team, Refused> {
    let known = teams.iter().position(|t| t.members.contains_key(&member));
    let is_missing = |t: &Team| match rank {
        ANY_RANK => (t.came.len() as u64) < t.size,
        rank => !t.came.contains_key(&rank),
    };
    let joins = |t: &Team| t.has_met == has_met && is_missing(t);
    let mut seat = None;
    if known.is_none() {
        seat = Some((shares.bytes(key.0, 0)?, shares.bytes(key.0, 0)?));
    }
    let at = match known.or_else(|| teams.iter().position(joins)) {
        Some(at) => at,
        // Two who say that they are the same: all are told, if the team is still forming.
        None if teams
            .iter()
            .any(|t| !t.has_met && !has_met && rank != ANY_RANK) =>
        {
            let text = format!("two members say that they are rank {rank}");
            for team in teams.iter_mut().filter(|t| !t.has_met) {
                team.fail(Status::InvalidArgument, text.clone());
            }
            return Err(wrong(text));
        }
        None => {
            teams.push(Team::new(size, has_met, shares.team(key)?));
            teams.len() - 1
        }
    };
    let team = &mut teams[at];
    if let Some((comes, stays)) = seat {
        let free = (0..team.size).find(|rank| !team.came.contains_key(rank));
        let rank = free.filter(|_| rank == ANY_RANK).unwrap_or(rank);
        team.came.insert(rank, comes);
        team.members.insert(member, (rank, stays));
    }
    if team.size != size {
        let text = format!(
            "rank {rank} says that the team has {size} ranks, others say {}; different teams need \
             different names",
            team.size
        );
        team.fail(Status::InvalidArgument, text);
    }
    if rank != ANY_RANK && team.rank_of(&member) != Some(rank) {
        team.fail(
            Status::InvalidArgument,
            format!("a member was another rank before it was {rank}"),
        );
    }
    Ok(team)
}

/// Adds a contribution to its round.
fn give(
    shares: &Shares,
    user: u32,
    team: &mut Team,
    member: Member,
    r: &Gather,
) -> Result<(), Refused> {
    let rank = team.members[&member].0;
    if team.broken.is_some() {
        return Ok(());
    }
    let last = team.rounds.keys().next_back().copied();
    if last.is_some_and(|last| r.round > last.saturating_add(1) || r.round.saturating_add(1) < last)
    {
        team.fail(
            Status::InvalidArgument,
            format!("rank {rank} is in another round than the others"),
        );
        return Ok(());
    }
    let round = team.rounds.entry(r.round).or_default();
    match round.given.get(&rank) {
        Some((before, _)) if *before == r.contribution => {}
        Some(_) => {
            let text = format!("rank {rank} says two things in one round");
            team.fail(Status::InvalidArgument, text);
            return Ok(());
        }
        None => {
            let taken = shares.bytes(user, r.contribution.0.len())?;
            round.bytes += r.contribution.0.len() + 5;
            if round.bytes > ROUND_BYTES {
                let text =
                    format!("the contributions of a round take more than {ROUND_BYTES} bytes");
                team.fail(Status::TooLarge, text);
                return Ok(());
            }
            round.given.insert(rank, (r.contribution.clone(), taken));
        }
    }
    // Who gives to a round has what the one before gathered.
    if team.complete(r.round).is_some() {
        team.rounds.retain(|&round, _| round >= r.round);
        team.has_met = true;
    }
    Ok(())
}

impl Manager {
    /// Takes a contribution, and gives all of them back if they come in time.
    pub(crate) fn gather(&self, session: &mut Session, r: Gather) -> Result<GatherAnswer, Refused> {
        check(&r.team, r.rank, r.size)?;
        let (member, key) = self.member(session, r.member, r.team.clone())?;
        let deadline = Instant::now() + Duration::from_millis(r.wait_ms).min(LONGEST_WAIT);
        let mut table = self.teams.lock();
        let shares = &self.teams.shares;
        let teams = table.entry(key.clone()).or_default();
        let given = find(shares, &key, teams, member, (r.rank, r.size), false)
            .and_then(|team| give(shares, key.0, team, member, &r));
        forget(&mut table);
        self.teams.changed.notify_all();
        given?;
        self.wait(&mut table, &key, member, deadline, |team| {
            if let Some(all) = team.complete(r.round) {
                return Some(Ok(all));
            }
            let text = |rank| format!("rank {rank} of the team has left");
            let missed = team.missed(r.round).filter(|_| team.broken.is_none());
            missed.map(|rank| Err(Refused::new(Status::Unreachable, text(rank))))
        })
        .map(|contributions| GatherAnswer { contributions })
    }

    /// Waits while all members of a team that has met are alive, and hears from one that it failed.
    pub(crate) fn watch_team(&self, session: &mut Session, r: WatchTeam) -> Result<(), Refused> {
        check(&r.team, r.rank, r.size)?;
        let (member, key) = self.member(session, r.member, r.team)?;
        let deadline = Instant::now() + Duration::from_millis(r.wait_ms).min(LONGEST_WAIT);
        let mut table = self.teams.lock();
        // A manager that was started again has not seen them meet.
        let teams = table.entry(key.clone()).or_default();
        match find(
            &self.teams.shares,
            &key,
            teams,
            member,
            (r.rank, r.size),
            true,
        ) {
            Ok(team) => {
                if !r.failed.is_empty() && r.gone.is_none_or(|rank| team.has_rank(rank)) {
                    let text = r.failed.chars().take(NAME_BYTES).collect();
                    team.fail(Status::Unreachable, text);
                    self.teams.changed.notify_all();
                }
            }
            Err(refused) => {
                forget(&mut table);
                return Err(refused);
            }
        }
        self.wait(
            &mut table,
            &key,
            member,
            deadline,
            |_| None::<Result<(), _>>,
        )?;
        Ok(())
    }

    fn member(
        &self,
        session: &mut Session,
        number: u64,
        team: String,
    ) -> Result<(Member, Key), Refused> {
        self.read(session)?;
        Ok((
            (session.client()?, number),
            (session.credentials.user, team),
        ))
    }

    /// Waits until something is found at the team of a member, or the team is broken; nothing when the time is over.
    fn wait<T>(
        &self,
        table: &mut MutexGuard<'_, Table>,
        key: &Key,
        member: Member,
        deadline: Instant,
        found: impl Fn(&Team) -> Option<Result<T, Refused>>,
    ) -> Result<Option<T>, Refused> {
        loop {
            let teams = table.get(key).into_iter().flatten();
            let mut teams = teams.filter(|t| t.members.contains_key(&member));
            let Some(team) = teams.next() else {
                return Err(Refused::new(Status::Fenced, "the member has left its team"));
            };
            if let Some(found) = found(team) {
                return found.map(Some);
            }
            if let Some(broken) = &team.broken {
                return Err(broken.clone());
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || self.is_ending() {
                return Ok(None);
            }
            self.teams.changed.wait_for(table, left);
        }
    }

    /// A member leaves.
    pub(crate) fn leave_team(&self, session: &mut Session, r: LeaveTeam) -> Result<(), Refused> {
        let member = (session.client()?, r.member);
        let key = (session.credentials.user, r.team);
        let mut table = self.teams.lock();
        for team in table.get_mut(&key).into_iter().flatten() {
            match team.has_met {
                true => drop(team.members.remove(&member)),
                false => team.gone(member, "has left"),
            }
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
        let (shares, key) = (Shares::default(), (7, r.team.clone()));
        let team = find(&shares, &key, teams, member, (r.rank, r.size), false).ok()?;
        give(&shares, key.0, team, member, r).ok()?;
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

    #[test]
    fn members_without_ranks_get_those_that_are_free() {
        let mut teams = Vec::new();
        let any = |member: u64, name: &[u8]| Gather {
            member,
            ..gather(ANY_RANK, 3, 0, name)
        };
        assert_eq!(give_to(&mut teams, &any(7, b"x")), None);
        let second = Gather {
            member: 8,
            ..gather(1, 3, 0, b"y")
        };
        assert_eq!(give_to(&mut teams, &second), None);
        let all = give_to(&mut teams, &any(9, b"z")).expect("all are there");
        assert_eq!(all, [b"x", b"y", b"z"].map(|b| Bytes(b.to_vec())));
        // The next three are another team.
        assert_eq!(give_to(&mut teams, &any(10, b"x")), None);
        assert_eq!(teams.len(), 2);
        assert!(teams.iter().all(|team| team.broken.is_none()));
    }

    #[test]
    fn a_member_that_leaves_is_missed_by_rounds_that_wait_for_it_only() {
        let mut teams = Vec::new();
        give_to(&mut teams, &gather(0, 2, 0, b"a"));
        give_to(&mut teams, &gather(1, 2, 0, b"b"));
        teams[0].members.remove(&(ClientId(1), 1));
        assert_eq!(teams[0].missed(0), None);
        give_to(&mut teams, &gather(0, 2, 1, b"c"));
        assert_eq!(teams[0].missed(1), Some(1));
        assert!(teams[0].broken.is_none());
    }
}
