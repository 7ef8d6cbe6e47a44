//! Profiles: how the clients of an application accessed their views in an earlier run.
//!
//! Kept in relative terms: where each client began in its view, and its steps from then on. So it fits
//! files of other sizes, and other files. It says for how many clients it was made; another number means
//! other views, and such a profile is refused rather than guessed at.
//!
//! Left to others: where the bytes are kept.

use super::predictor::Predictor;
use super::travel::{put, put_access, put_runs, take, take_access, take_runs};

const MAGIC: &[u8] = b"pario-profile 1\n";

/// What the clients of one application did.
///
/// ```
/// use advise::predict::{NextAccess, Predictor, Profile};
/// let mut observed = Predictor::new();
/// (0..4).for_each(|i| observed.observe(50 * i, 10));
/// let mut profile = Profile::new(2);
/// profile.keep(1, &observed);
///
/// let later = Profile::load(&profile.save())?;
/// let mut p = later.predictor(1, 2)?;
/// p.observe(0, 10);
/// assert_eq!(p.next(), Some(NextAccess { offset: 50, size: 10 }), "after one access");
/// assert!(later.predictor(1, 3).is_err(), "the number of clients is another");
/// # Ok::<(), advise::predict::ProfileError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    clients: u64,
    /// Ascending by rank.
    kept: Vec<(u64, Predictor)>,
}

/// Why a profile is of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// The bytes are no profile.
    #[error("these bytes are no access profile")]
    Malformed,
    /// It was made with another number of clients.
    #[error("clients: the profile was made with {then}, now there are {now}; make another")]
    ClientsChanged {
        /// Then.
        then: u64,
        /// Now.
        now: u64,
    },
}

impl Profile {
    /// Of an application with so many clients.
    pub fn new(clients: u64) -> Profile {
        Profile {
            clients,
            kept: Vec::new(),
        }
    }

    /// Keeps what the client of a rank did, as far as the beginning of it is known.
    pub fn keep(&mut self, rank: u64, observed: &Predictor) {
        let kept = Predictor {
            first: observed.first,
            script: observed.head.clone(),
            ..Predictor::default()
        };
        match self.kept.binary_search_by_key(&rank, |(r, _)| *r) {
            Ok(i) => self.kept[i].1 = kept,
            Err(i) => self.kept.insert(i, (rank, kept)),
        }
    }

    /// A predictor for the client of a rank, which knows from its first access on what comes next. One
    /// that the profile knows nothing about begins without history.
    pub fn predictor(&self, rank: u64, clients: u64) -> Result<Predictor, ProfileError> {
        if clients != self.clients {
            return Err(ProfileError::ClientsChanged {
                then: self.clients,
                now: clients,
            });
        }
        let found = self.kept.binary_search_by_key(&rank, |(r, _)| *r);
        Ok(found.map_or_else(|_| Predictor::new(), |i| self.kept[i].1.clone()))
    }

    /// As bytes.
    pub fn save(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        put(&mut out, self.clients);
        put(&mut out, self.kept.len() as u64);
        for (rank, kept) in &self.kept {
            put(&mut out, *rank);
            put_access(&mut out, kept.first);
            put_runs(&mut out, &kept.script);
        }
        out
    }

    /// From bytes.
    pub fn load(bytes: &[u8]) -> Result<Profile, ProfileError> {
        let read = || {
            let mut r = bytes.strip_prefix(MAGIC)?;
            let r = &mut r;
            let mut profile = Profile::new(take(r)?);
            let count = take(r)?;
            for _ in 0..count {
                let rank = take(r)?;
                if profile.kept.last().is_some_and(|(last, _)| *last >= rank) {
                    return None;
                }
                let first = take_access(r)?;
                let script = take_runs(r)?;
                let kept = Predictor {
                    first,
                    script,
                    ..Predictor::default()
                };
                profile.kept.push((rank, kept));
            }
            r.is_empty().then_some(profile)
        };
        read().ok_or(ProfileError::Malformed)
    }
}
