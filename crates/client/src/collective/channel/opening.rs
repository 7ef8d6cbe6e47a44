//! Opening a channel: two programs meet by name and see whether they mean the same.
//!
//! ```text
//!  each program for itself    what its members say, compared: one side, one array, one kind of buffering
//!  both, by name              the first to come waits, as long as its patience lasts
//!  all members together       one gives and the other takes, the arrays are equal; then each plans
//! ```
//!
//! Invariants
//! - What is refused is refused to all members of both programs, with the same text.
//! - Opened again under the same name it is a new channel; nothing of an old one comes through it.

use std::time::Duration;

use falls::FallsSet;
use layout::{ArrayType, FileOffset, FileSpan, View};
use plan::exchange::MemberShares;
use wire::{DecodeError, Reader, describe, put_number};

use super::Link;
use super::source::ChannelMode;
use crate::client::Client;
use crate::collective::team::{TIMEOUT, Team};
use crate::error::{Error, Result};

/// What a member gives or takes of which array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelArray {
    /// The whole array; both programs have to say the same.
    pub array: ArrayType,
    /// The part of this member.
    pub part: View,
}

impl ChannelArray {
    /// Checks that the part cuts no entries.
    pub fn new(array: ArrayType, part: View) -> Result<ChannelArray> {
        let entry = array.element().size();
        if array.bytes() > 0 && !part.has_whole_units(entry) {
            let text = format!("cuts entries of {array}; give multiples of {entry} bytes");
            return Err(Error::argument("part", text));
        }
        Ok(ChannelArray { array, part })
    }
}

/// How a channel is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChannelOptions {
    /// How long to wait for the other program; without a limit if there is none. Once it has come nothing has a limit but
    /// the life of both.
    pub patience: Option<Duration>,
}

impl Default for ChannelOptions {
    fn default() -> Self {
        ChannelOptions {
            patience: Some(TIMEOUT),
        }
    }
}

impl ChannelOptions {
    /// With another limit for the wait, or none.
    pub fn with_patience(self, patience: impl Into<Option<Duration>>) -> Self {
        ChannelOptions {
            patience: patience.into(),
        }
    }
}

/// The side of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Gives,
    Takes,
}

impl Role {
    pub(super) fn verb(self) -> &'static str {
        match self {
            Role::Gives => "gives",
            Role::Takes => "takes",
        }
    }
}

/// What a member says of itself.
#[derive(Debug, PartialEq)]
struct Introduction {
    role: Role,
    buffering: ChannelMode,
    array: ArrayType,
    part: View,
}

impl Introduction {
    fn put(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_number(&mut out, self.role as u64);
        put_number(&mut out, self.buffering as u64);
        let array = self.array.to_string();
        put_number(&mut out, array.len() as u64);
        out.extend(array.as_bytes());
        describe::put_view(&mut out, &self.part);
        out
    }

    fn read(bytes: &[u8]) -> std::result::Result<Introduction, DecodeError> {
        let mut r = Reader::new(bytes);
        let role = match r.number()? {
            0 => Role::Gives,
            1 => Role::Takes,
            other => return Err(DecodeError::BadTag(other)),
        };
        let buffering = match r.number()? {
            0 => ChannelMode::Blocking,
            1 => ChannelMode::Double,
            other => return Err(DecodeError::BadTag(other)),
        };
        let array = r.text()?.parse().map_err(|_| DecodeError::BadText)?;
        let part = describe::view(&mut r)?;
        r.finish()?;
        Ok(Introduction {
            role,
            buffering,
            array,
            part,
        })
    }

    fn read_all(said: &[Vec<u8>]) -> Result<Vec<Introduction>> {
        let read = |(rank, bytes): (usize, &Vec<u8>)| {
            Introduction::read(bytes).map_err(|e| {
                let text = format!("rank {rank} opens something else than a channel: {e}");
                Error::argument("team", text)
            })
        };
        said.iter().enumerate().map(read).collect()
    }
}

/// The members of one program say the same but for their parts.
fn check_program(name: &str, said: &[Introduction]) -> Result<()> {
    let first = &said[0];
    for (rank, other) in said.iter().enumerate() {
        let differs = |what: &'static str, here: String, there: String| {
            let text = format!(
                "rank 0 says {here} for channel '{name}' and rank {rank} {there}; give the same at all ranks"
            );
            Err(Error::argument(what, text))
        };
        if other.role != first.role {
            let verb = |role: Role| format!("that it {}", role.verb());
            return differs("direction", verb(first.role), verb(other.role));
        }
        if other.array != first.array {
            return differs("array", first.array.to_string(), other.array.to_string());
        }
        if other.buffering != first.buffering {
            let text = |b: ChannelMode| format!("{b:?}").to_lowercase();
            return differs("buffering", text(first.buffering), text(other.buffering));
        }
    }
    Ok(())
}

/// One program gives, the other takes, and they mean the same array.
fn check_both(name: &str, a: &Introduction, b: &Introduction) -> Result<()> {
    if a.role == b.role {
        let (verb, other) = match a.role {
            Role::Gives => ("give", "takes"),
            Role::Takes => ("take", "gives"),
        };
        let text =
            format!("both programs {verb} through channel '{name}'; open it in one that {other}");
        return Err(Error::argument("direction", text));
    }
    let (giver, taker) = match a.role {
        Role::Gives => (a, b),
        Role::Takes => (b, a),
    };
    if giver.array == taker.array {
        return Ok(());
    }
    let what = match giver.array.element() == taker.array.element() {
        true if giver.array.extents() == taker.array.extents() => "orders",
        true => "shapes",
        false => "element types",
    };
    let text = format!(
        "the {what} of channel '{name}' differ: the program that gives has {}, the one that takes {}; give the same",
        giver.array, taker.array
    );
    Err(Error::argument("array", text))
}

/// Opens one side of a channel, with all members of the program.
pub(super) fn open(
    client: &Client,
    team: &Team,
    name: &str,
    (role, buffering): (Role, ChannelMode),
    mine: Result<ChannelArray>,
    options: &ChannelOptions,
) -> Result<Link> {
    let mine = mine.and_then(|mine| match name.is_empty() {
        true => Err(Error::argument(
            "name",
            "is empty; both programs give the same",
        )),
        false => Ok(mine),
    });
    let mine = mine.map(|mine| Introduction {
        role,
        buffering,
        array: mine.array,
        part: mine.part,
    });
    let said = team.agree(mine.as_ref().map(Introduction::put).map_err(Error::clone))?;
    check_program(name, &Introduction::read_all(&said)?)?;
    let mine = mine?;
    let meeting = format!("channel {name}");
    let joint = team.meet_team_for(client, &meeting, options.patience, None);
    let joint = joint.map_err(|error| not_met(name, role, error))?;
    // Without connections among the members there is nothing to send through.
    joint.all().mesh()?;
    let all = Introduction::read_all(&joint.all().allgather(&mine.put())?)?;
    let others = joint.others();
    let own = match others.start {
        0 => others.end..all.len(),
        start => 0..start,
    };
    // In the order of the ranks, so that both programs find the same.
    let (first, second) = match own.start {
        0 => (own.clone(), others.clone()),
        _ => (others.clone(), own.clone()),
    };
    check_both(name, &all[first.start], &all[second.start])?;
    let (givers, takers) = match mine.role {
        Role::Gives => (own, others),
        Role::Takes => (others, own),
    };
    let len = mine.array.bytes();
    let nothing = View::new(FileOffset(0), len.max(1), FallsSet::empty())?;
    let parts = |member: &'_ Introduction| match member.role {
        Role::Gives => (member.part.clone(), nothing.clone()),
        Role::Takes => (nothing.clone(), member.part.clone()),
    };
    let members: Vec<(View, View)> = all.iter().map(parts).collect();
    let (source, target) = &members[joint.all().rank()];
    let pairs = members.iter().map(|(source, target)| (source, target));
    let shares = MemberShares::new(FileSpan::from_raw(0..len), source, target, pairs);
    let partners = partners(&shares, mine.role, joint.all().rank(), &givers, &takers);
    Ok(Link {
        name: name.into(),
        client: client.clone(),
        part_bytes: mine.part.len_within(len),
        // What the program that gives says.
        buffering: all[givers.start].buffering,
        joint,
        shares,
        givers,
        takers,
        partners,
        broken: Default::default(),
    })
}

/// Members of the other program that this one has bytes in common with; everybody has one at least, to hear of the end.
fn partners(
    shares: &MemberShares,
    role: Role,
    rank: usize,
    givers: &std::ops::Range<usize>,
    takers: &std::ops::Range<usize>,
) -> Vec<usize> {
    let is_pair = |giver: usize, taker: usize, bytes: u64| {
        let (g, t) = (giver - givers.start, taker - takers.start);
        bytes > 0 || g == t % givers.len() || t == g % takers.len()
    };
    match role {
        Role::Gives => {
            let fits = |&taker: &usize| is_pair(rank, taker, shares.given_bytes(taker));
            takers.clone().filter(fits).collect()
        }
        // The last first: of a byte that several give the lowest rank's is stored last.
        Role::Takes => {
            let fits = |&giver: &usize| is_pair(giver, rank, shares.taken_bytes(giver));
            givers.clone().rev().filter(fits).collect()
        }
    }
}

fn not_met(name: &str, role: Role, error: Error) -> Error {
    let other = match role {
        Role::Gives => Role::Takes,
        Role::Takes => Role::Gives,
    };
    let text = match error.status() {
        wire::Status::TimedOut => format!(
            "channel '{name}': no program that {} has come in time; start it, give it the same name and service",
            other.verb()
        ),
        _ => format!("channel '{name}': {error}"),
    };
    match error {
        Error::Argument { .. } | Error::Forked => error,
        _ => Error::Refused {
            status: error.status(),
            text,
            server: None,
        },
    }
}
