//! Agreement among the members of a team: one exchange, in which each says what it has, or why it failed (M-06, G-10).
//!
//! An error of one member becomes the error of all, so that nobody goes on alone.

use client::{Error, Result, Status, Team};

const GIVEN: u8 = 0;
const FAILED: u8 = 1;

/// What a member is about to do, as far as the mode depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Proposal {
    /// Whether the rules of the collective modes hold at this member.
    pub(crate) is_regular: Regularity,
    /// Bytes of every VP; [`ANY`] where there is none.
    pub(crate) bytes: u64,
    /// The regular segments, in short; the same at all members that have done the same.
    pub(crate) segments: u64,
    /// Block of the independent segment, if it has begun here; else 0.
    pub(crate) ib_block: u64,
}

/// What a member without VPs says about their bytes.
pub(crate) const ANY: u64 = u64::MAX;

/// Whether VPs of a member can go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Regularity {
    /// All active, all with the same bytes, all at the same position. A member without VPs is all of that.
    Regular,
    /// Every VP for itself.
    Independent,
}

/// What the members came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) is_regular: Regularity,
    /// Bytes of every VP, where all have the same.
    pub(crate) bytes: u64,
    /// Block of the independent segment, if it has begun anywhere; else 0.
    pub(crate) ib_block: u64,
}

impl Proposal {
    fn put(self) -> Vec<u8> {
        let flag = u64::from(self.is_regular == Regularity::Regular);
        let words = [flag, self.bytes, self.segments, self.ib_block];
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    fn read(bytes: &[u8]) -> Option<Proposal> {
        let words = words(bytes)?;
        let [flag, bytes, segments, ib_block] = words[..] else {
            return None;
        };
        let is_regular = match flag {
            1 => Regularity::Regular,
            _ => Regularity::Independent,
        };
        Some(Proposal {
            is_regular,
            bytes,
            segments,
            ib_block,
        })
    }
}

/// The numbers that bytes are.
pub(crate) fn words(bytes: &[u8]) -> Option<Vec<u64>> {
    let (words, rest) = bytes.as_chunks::<8>();
    rest.is_empty()
        .then(|| words.iter().map(|word| u64::from_le_bytes(*word)).collect())
}

/// The mode that fits all: regular if all are, with the same bytes.
pub(crate) fn judge(proposals: &[Proposal]) -> Verdict {
    let said = proposals.iter().map(|p| p.bytes).find(|n| *n != ANY);
    let bytes = said.unwrap_or(0);
    let is_same = |p: &Proposal| p.bytes == ANY || p.bytes == bytes;
    let regular = proposals
        .iter()
        .all(|p| p.is_regular == Regularity::Regular && is_same(p));
    Verdict {
        is_regular: match regular {
            true => Regularity::Regular,
            false => Regularity::Independent,
        },
        bytes,
        ib_block: proposals.iter().map(|p| p.ib_block).max().unwrap_or(0),
    }
}

/// Agrees about the next operation.
pub(crate) fn agree(team: &Team, mine: Result<Proposal>) -> Result<Verdict> {
    let all = tell(team, mine.map(Proposal::put))?;
    let proposals: Option<Vec<Proposal>> = all.iter().map(|b| Proposal::read(b)).collect();
    let proposals = proposals.ok_or_else(another_call)?;
    match proposals
        .iter()
        .position(|p| p.segments != proposals[0].segments)
    {
        None => Ok(judge(&proposals)),
        Some(rank) => Err(Error::Argument {
            name: "bytes",
            text: format!(
                "rank {rank} of the team has not written what rank 0 has in calls with one size for all VPs; \
                 give the same size at all members, or sizes of each VP"
            ),
        }),
    }
}

pub(crate) fn another_call() -> Error {
    Error::Argument {
        name: "team",
        text: "a member does something else; all call the same operations in the same order".into(),
    }
}

/// Gives what this member has, or says that it failed; then all fail.
pub(crate) fn tell(team: &Team, mine: Result<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
    let mut given = match &mine {
        Ok(bytes) => [&[GIVEN], &bytes[..]].concat(),
        Err(error) => {
            let status = error.status().code().to_le_bytes();
            [&[FAILED], &status[..], error.to_string().as_bytes()].concat()
        }
    };
    if mine.is_err() {
        given.truncate(team.most_bytes());
    }
    let all = team.allgather(&given);
    // What is wrong here says more than that others heard of it.
    mine?;
    let mut all = all?;
    for (rank, bytes) in all.iter().enumerate() {
        if bytes.first() != Some(&GIVEN) {
            let code = bytes.get(1..3).map(|c| u16::from_le_bytes([c[0], c[1]]));
            let why = String::from_utf8_lossy(bytes.get(3..).unwrap_or_default());
            return Err(Error::Refused {
                status: code
                    .and_then(Status::from_code)
                    .filter(|status| !status.is_ok())
                    .unwrap_or(Status::InvalidArgument),
                text: format!("rank {rank} of the team failed: {why}"),
                server: None,
            });
        }
    }
    for bytes in &mut all {
        bytes.remove(0);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_member_makes_all_independent() {
        let regular = |bytes| Proposal {
            is_regular: Regularity::Regular,
            bytes,
            segments: 0,
            ib_block: 0,
        };
        let judged = |all: &[Proposal]| judge(all).is_regular;
        assert_eq!(judged(&[regular(8), regular(8)]), Regularity::Regular);
        assert_eq!(judged(&[regular(8), regular(9)]), Regularity::Independent);
        let with_none = judge(&[regular(ANY), regular(9), regular(ANY)]);
        assert_eq!(
            (with_none.is_regular, with_none.bytes),
            (Regularity::Regular, 9)
        );
        let alone = Proposal {
            is_regular: Regularity::Independent,
            ib_block: 64,
            ..regular(8)
        };
        let verdict = judge(&[regular(8), alone]);
        assert_eq!(
            (verdict.is_regular, verdict.ib_block),
            (Regularity::Independent, 64)
        );
    }

    #[test]
    fn an_error_of_one_is_told_to_all() {
        let team = Team::threads(2);
        std::thread::scope(|scope| {
            let other = scope.spawn(|| tell(&team[1], Ok(vec![1])));
            let mine = tell(&team[0], Err(Error::Closed));
            assert_eq!(mine, Err(Error::Closed));
            let text = other.join().unwrap().unwrap_err().to_string();
            assert!(text.starts_with("rank 0 of the team failed: "), "{text}");
        });
    }
}
