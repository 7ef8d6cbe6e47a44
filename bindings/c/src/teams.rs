//! Teams: joining them, messages among their members, and exchanges.
//!
//! Members are processes that meet by name through a service, threads of one process, or whatever a program gathers bytes
//! with (MPI, say). All members call the same collective functions in the same order.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use client::{Error, Exchange, Jobs, JointTeam, Message, Number, Reduction, Status, Team};

use crate::connect::Connection;
use crate::entry::{Failure, Outcome, answer};
use crate::ffi::{Address, ConstAddress, List, Out, Text, set_struct};
use crate::requests::OperationCount;
use crate::structs::*;
use crate::table::Handle;

/// A member of a team.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) team: Team,
    /// What the team does beside the program, one after the other.
    pub(crate) queue: Jobs<'static>,
    /// How much of that is not done.
    pub(crate) running: OperationCount,
}

/// A team that has met another.
#[derive(Debug)]
pub(crate) struct Meeting(JointTeam);

impl Member {
    pub(crate) fn new(team: Team) -> Member {
        Member {
            team,
            queue: Jobs::new("pario-team", 1, || ()),
            running: OperationCount::default(),
        }
    }

    /// Waits until nothing of the team goes on beside the program: its exchanges have one order.
    pub(crate) fn wait(&self) {
        self.running.wait();
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.queue.stop();
    }
}

/// A rank of the program; nothing for any.
fn rank_of(name: &str, rank: c_int) -> Outcome<Option<usize>> {
    match rank {
        PARIO_ANY_RANK => Ok(None),
        rank => usize::try_from(rank)
            .map(Some)
            .map_err(|_| Failure::argument(name, format!("is {rank}; ranks count from 0"))),
    }
}

fn size_of_team(size: c_int) -> Outcome<usize> {
    let size = usize::try_from(size).ok().filter(|size| *size > 0);
    size.ok_or_else(|| Failure::argument("size", "is not above 0"))
}

/// Joins a team by name; the rank is this one, or the next that is free.
#[unsafe(no_mangle)]
extern "C" fn pario_team_join(
    client: Handle<Connection>,
    name: Text,
    rank: c_int,
    size: c_int,
    team: Out<Handle<Member>>,
) -> c_int {
    answer("pario_team_join", || {
        team.required("team")?.set(Handle::NULL);
        let connection = client.get()?;
        let (name, size) = (name.required("name")?, size_of_team(size)?);
        let joined = match rank_of("rank", rank)? {
            Some(rank) => Team::processes(&connection.0, &name, rank, size)?,
            None => Team::join(&connection.0, &name, size)?,
        };
        team.set(Handle::enter(Member::new(joined), client)?);
        Ok(())
    })
}

/// A team of this process alone.
#[unsafe(no_mangle)]
extern "C" fn pario_team_alone(team: Out<Handle<Member>>) -> c_int {
    answer("pario_team_alone", || {
        team.required("team")?.set(Handle::NULL);
        team.set(Handle::enter(Member::new(Team::alone()), Handle::NULL)?);
        Ok(())
    })
}

/// Members for so many threads of this process, by rank.
#[unsafe(no_mangle)]
extern "C" fn pario_team_threads(size: c_int, teams: Out<Handle<Member>>) -> c_int {
    answer("pario_team_threads", || {
        teams.required("teams")?;
        let size = size_of_team(size)?;
        if size > 1 << 16 {
            return Err(Failure::argument("size", "is more than 65536"));
        }
        for (rank, team) in Team::threads(size).into_iter().enumerate() {
            teams.set_at(rank, Handle::enter(Member::new(team), Handle::NULL)?);
        }
        Ok(())
    })
}

/// Members that gather bytes by a function of the program.
#[derive(Debug)]
struct GatherExchange {
    rank: usize,
    size: usize,
    gather: extern "C" fn(*mut c_void, *const c_void, *const u64, *mut c_void) -> c_int,
    user: Address,
}

// SAFETY: the program says that its function may be called by any thread with what it gave for it.
unsafe impl Sync for GatherExchange {}

impl GatherExchange {
    /// Bytes of all members, whose lengths everybody knows.
    fn gather(&self, mine: &[u8], lens: &[u64]) -> client::Result<Vec<u8>> {
        let failed = |status: Status, text: String| Error::Refused {
            status,
            text,
            server: None,
        };
        let sum = lens.iter().try_fold(0u64, |sum, len| sum.checked_add(*len));
        let sum = sum.and_then(|sum| usize::try_from(sum).ok());
        let mut all = Vec::new();
        match sum {
            Some(sum) if all.try_reserve_exact(sum).is_ok() => all.resize(sum, 0),
            _ => {
                let text = "no memory for the bytes of all members".to_owned();
                return Err(failed(Status::NoMemory, text));
            }
        }
        let code = (self.gather)(
            self.user.pointer(),
            mine.as_ptr().cast(),
            lens.as_ptr(),
            all.as_mut_ptr().cast(),
        );
        match code {
            0 => Ok(all),
            code => {
                let text = format!("the program's function that gathers bytes answered {code}");
                Err(failed(Status::Io, text))
            }
        }
    }
}

impl Exchange for GatherExchange {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn allgather(&self, bytes: &[u8], _: client::Drive<'_>) -> client::Result<Vec<Vec<u8>>> {
        let mine = (bytes.len() as u64).to_ne_bytes();
        let lens = self.gather(&mine, &vec![8; self.size])?;
        let (lens, _) = lens.as_chunks::<8>();
        let lens: Vec<u64> = lens.iter().map(|len| u64::from_ne_bytes(*len)).collect();
        let all = self.gather(bytes, &lens)?;
        let mut rest = &all[..];
        let part = |len: &u64| {
            let (part, behind) = rest.split_at((*len as usize).min(rest.len()));
            rest = behind;
            part.to_vec()
        };
        Ok(lens.iter().map(part).collect())
    }
}

/// A member of a team that gathers bytes by a function of the program.
#[unsafe(no_mangle)]
extern "C" fn pario_team_by_gathering(
    rank: c_int,
    size: c_int,
    gather: GatherCallback,
    user: Address,
    team: Out<Handle<Member>>,
) -> c_int {
    answer("pario_team_by_gathering", || {
        team.required("team")?.set(Handle::NULL);
        let size = size_of_team(size)?;
        let rank = usize::try_from(rank).ok().filter(|rank| *rank < size);
        let rank = rank.ok_or_else(|| Failure::argument("rank", "is not below the size"))?;
        let gather = gather.ok_or_else(|| Failure::argument("gather", "is a null pointer"))?;
        let exchange = GatherExchange {
            rank,
            size,
            gather,
            user,
        };
        let member = Member::new(Team::of(Arc::new(exchange)));
        team.set(Handle::enter(member, Handle::NULL)?);
        Ok(())
    })
}

/// Leaves a team once what it does beside the program is done.
#[unsafe(no_mangle)]
extern "C" fn pario_team_leave(team: Handle<Member>) -> c_int {
    answer("pario_team_leave", || {
        team.close()?.wait();
        Ok(())
    })
}

/// Rank of a member, and members in all.
#[unsafe(no_mangle)]
extern "C" fn pario_team_rank(team: Handle<Member>, rank: Out<c_int>, size: Out<c_int>) -> c_int {
    answer("pario_team_rank", || {
        let member = team.get()?;
        rank.set(member.team.rank() as c_int);
        size.set(member.team.size() as c_int);
        Ok(())
    })
}

/// A member that does nothing beside the program.
fn quiet(team: Handle<Member>) -> Outcome<Arc<Member>> {
    let member = team.get()?;
    member.wait();
    Ok(member)
}

/// Waits until all members are here.
#[unsafe(no_mangle)]
extern "C" fn pario_team_barrier(team: Handle<Member>) -> c_int {
    answer("pario_team_barrier", || Ok(quiet(team)?.team.barrier()?))
}

fn lengths_differ(rank: usize, has: usize, due: usize) -> Failure {
    Failure::argument(
        "bytes",
        format!("rank {rank} gave {has} bytes where {due} are due"),
    )
}

/// Gives bytes of one member to all.
#[unsafe(no_mangle)]
extern "C" fn pario_team_broadcast(
    team: Handle<Member>,
    root: c_int,
    buffer: Address,
    bytes: usize,
) -> c_int {
    answer("pario_team_broadcast", || {
        let member = quiet(team)?;
        let root = usize::try_from(root)
            .ok()
            .filter(|r| *r < member.team.size());
        let root = root.ok_or_else(|| Failure::argument("root", "is no rank of the team"))?;
        let mine = buffer.slice("buffer", bytes)?;
        let came = member.team.broadcast(root, mine)?;
        if came.len() != bytes {
            return Err(lengths_differ(root, came.len(), bytes));
        }
        mine.copy_from_slice(&came);
        Ok(())
    })
}

/// Gives bytes to all members, and gets as many of each, by rank.
#[unsafe(no_mangle)]
extern "C" fn pario_team_gather_all(
    team: Handle<Member>,
    mine: ConstAddress,
    bytes: usize,
    all: Address,
) -> c_int {
    answer("pario_team_gather_all", || {
        let member = quiet(team)?;
        let room = bytes.saturating_mul(member.team.size());
        let all = all.slice("all", room)?;
        let came = member.team.allgather(mine.slice("mine", bytes)?)?;
        for (rank, part) in came.iter().enumerate() {
            if part.len() != bytes {
                return Err(lengths_differ(rank, part.len(), bytes));
            }
            all[rank * bytes..][..bytes].copy_from_slice(part);
        }
        Ok(())
    })
}

/// Gives each member its bytes, and gets those that each has for this one; parts lie one after the other, by rank.
#[unsafe(no_mangle)]
extern "C" fn pario_team_exchange(
    team: Handle<Member>,
    from: ConstAddress,
    from_bytes: List<u64>,
    to: Address,
    to_bytes: List<u64>,
) -> c_int {
    answer("pario_team_exchange", || {
        let member = quiet(team)?;
        let size = member.team.size();
        let sum = |name: &'static str, lens: &[u64]| {
            let sum = lens.iter().try_fold(0u64, |sum, len| sum.checked_add(*len));
            let sum = sum.and_then(|sum| usize::try_from(sum).ok());
            sum.ok_or_else(|| Failure::argument(name, "are more than memory has"))
        };
        let given = from_bytes.get("from_bytes", size)?;
        let taken = to_bytes.get("to_bytes", size)?;
        let mut rest = from.slice("from", sum("from_bytes", &given)?)?;
        let mut room = to.slice("to", sum("to_bytes", &taken)?)?;
        let mut parts = Vec::with_capacity(size);
        for len in &given {
            let (part, behind) = rest.split_at(*len as usize);
            rest = behind;
            parts.push(part);
        }
        let came = member.team.exchange(&parts)?;
        for (rank, (part, due)) in came.iter().zip(&taken).enumerate() {
            if part.len() as u64 != *due {
                return Err(lengths_differ(rank, part.len(), *due as usize));
            }
            let (place, behind) = room.split_at_mut(part.len());
            place.copy_from_slice(part);
            room = behind;
        }
        Ok(())
    })
}

fn reduce<T: Number>(team: Handle<Member>, values: Out<T>, count: usize, how: c_int) -> Outcome {
    let member = quiet(team)?;
    let how = match how {
        PARIO_SUM => Reduction::Sum,
        PARIO_MIN => Reduction::Min,
        PARIO_MAX => Reduction::Max,
        PARIO_AND => Reduction::And,
        PARIO_OR => Reduction::Or,
        other => {
            return Err(Failure::argument(
                "how",
                format!("is {other}; give PARIO_SUM or another"),
            ));
        }
    };
    let mine: Outcome<Vec<T>> = (0..count).map(|at| values.get_at("values", at)).collect();
    for (at, value) in member.team.all_reduce(&mine?, how)?.into_iter().enumerate() {
        values.set_at(at, value);
    }
    Ok(())
}

macro_rules! reductions {
    ($($(#[$doc:meta])* $name:ident($of:ty);)*) => {$(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        extern "C" fn $name(
            team: Handle<Member>,
            values: Out<$of>,
            count: usize,
            how: c_int,
        ) -> c_int {
            answer(stringify!($name), || reduce(team, values, count, how))
        }
    )*};
}

reductions! {
    /// Combines numbers of all members entry by entry, in their place.
    pario_team_reduce_u64(u64);
    /// Combines numbers of all members entry by entry, in their place.
    pario_team_reduce_i64(i64);
    /// Combines numbers of all members entry by entry, in their place.
    pario_team_reduce_f64(f64);
}

/// Sends a message to a member.
#[unsafe(no_mangle)]
extern "C" fn pario_team_send(
    team: Handle<Member>,
    to: c_int,
    tag: u64,
    buffer: ConstAddress,
    bytes: usize,
) -> c_int {
    answer("pario_team_send", || {
        let member = team.get()?;
        let to =
            rank_of("to", to)?.ok_or_else(|| Failure::argument("to", "is any rank; give one"))?;
        Ok(member.team.send(to, tag, buffer.slice("buffer", bytes)?)?)
    })
}

/// Gives a message to the program.
fn deliver(came: Option<Message>, bytes: TextOut, message: Out<pario_message>) -> Outcome {
    let shown = match &came {
        Some(came) => pario_message {
            size: 0,
            tag: came.tag,
            bytes: came.bytes.len() as u64,
            from: came.from as c_int,
            has_come: 1,
        },
        None => crate::ffi::Options::DEFAULT,
    };
    if !message.address().is_null() {
        set_struct(message, "message", &shown)?;
    }
    match came {
        Some(came) => bytes.set_bytes(&came.bytes),
        None => Ok(()),
    }
}

fn tag_of(tag: u64) -> Option<u64> {
    Some(tag).filter(|tag| *tag != u64::MAX)
}

/// Waits for a message of a rank, or of any, with a tag, or with any.
#[unsafe(no_mangle)]
extern "C" fn pario_team_receive(
    team: Handle<Member>,
    from: c_int,
    tag: u64,
    bytes: TextOut,
    message: Out<pario_message>,
) -> c_int {
    answer("pario_team_receive", || {
        bytes.required("bytes")?.set(std::ptr::null_mut());
        let member = team.get()?;
        let came = member.team.receive(rank_of("from", from)?, tag_of(tag))?;
        deliver(Some(came), bytes, message)
    })
}

/// The next message of a rank, or of any, if one has come.
#[unsafe(no_mangle)]
extern "C" fn pario_team_try_receive(
    team: Handle<Member>,
    from: c_int,
    tag: u64,
    bytes: TextOut,
    message: Out<pario_message>,
) -> c_int {
    answer("pario_team_try_receive", || {
        bytes.required("bytes")?.set(std::ptr::null_mut());
        let member = team.get()?;
        let came = member
            .team
            .try_receive(rank_of("from", from)?, tag_of(tag))?;
        deliver(came, bytes, message)
    })
}

/// Lets a team meet another that gives the same name; all members of both call it.
#[unsafe(no_mangle)]
extern "C" fn pario_team_meet(
    team: Handle<Member>,
    client: Handle<Connection>,
    name: Text,
    meeting: Out<Handle<Meeting>>,
) -> c_int {
    answer("pario_team_meet", || {
        meeting.required("meeting")?.set(Handle::NULL);
        let (member, connection) = (quiet(team)?, client.get()?);
        let joint = member
            .team
            .meet_team(&connection.0, &name.required("name")?)?;
        meeting.set(Handle::enter(Meeting(joint), client)?);
        Ok(())
    })
}

/// Members of the other team.
#[unsafe(no_mangle)]
extern "C" fn pario_meeting_size(meeting: Handle<Meeting>, other_size: Out<c_int>) -> c_int {
    answer("pario_meeting_size", || {
        let size = meeting.get()?.0.other_size();
        other_size.required("other_size")?.set(size as c_int);
        Ok(())
    })
}

/// Sends a message to a rank of the other team.
#[unsafe(no_mangle)]
extern "C" fn pario_meeting_send(
    meeting: Handle<Meeting>,
    to: c_int,
    tag: u64,
    buffer: ConstAddress,
    bytes: usize,
) -> c_int {
    answer("pario_meeting_send", || {
        let meeting = meeting.get()?;
        let to =
            rank_of("to", to)?.ok_or_else(|| Failure::argument("to", "is any rank; give one"))?;
        Ok(meeting.0.send(to, tag, buffer.slice("buffer", bytes)?)?)
    })
}

/// Waits for a message of a rank of the other team, or of any.
#[unsafe(no_mangle)]
extern "C" fn pario_meeting_receive(
    meeting: Handle<Meeting>,
    from: c_int,
    tag: u64,
    bytes: TextOut,
    message: Out<pario_message>,
) -> c_int {
    answer("pario_meeting_receive", || {
        bytes.required("bytes")?.set(std::ptr::null_mut());
        let meeting = meeting.get()?;
        let came = meeting.0.receive(rank_of("from", from)?, tag_of(tag))?;
        deliver(Some(came), bytes, message)
    })
}

/// The team of the members of both.
#[unsafe(no_mangle)]
extern "C" fn pario_meeting_team(meeting: Handle<Meeting>, team: Out<Handle<Member>>) -> c_int {
    answer("pario_meeting_team", || {
        team.required("team")?.set(Handle::NULL);
        let all = meeting.get()?.0.all().clone();
        team.set(Handle::enter(Member::new(all), meeting.owner()?)?);
        Ok(())
    })
}

/// Ends a meeting; the teams go on.
#[unsafe(no_mangle)]
extern "C" fn pario_meeting_end(meeting: Handle<Meeting>) -> c_int {
    answer("pario_meeting_end", || meeting.close().map(drop))
}
