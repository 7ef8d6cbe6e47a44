//! The ways to choose a server, by name.
//!
//! Left to others: acting on the choice.

use std::fmt;
use std::str::FromStr;

/// How a client chooses the servers it talks to.
///
/// ```
/// use advise::mapping::Strategy;
/// assert_eq!("round-robin".parse(), Ok(Strategy::RoundRobin));
/// assert_eq!(Strategy::default().to_string(), "request");
/// assert!("nearest".parse::<Strategy>().unwrap_err().to_string().contains("round-robin"));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// No lasting choice: each request is split by the client and every part goes to its server (M3).
    #[default]
    Request,
    /// All clients talk to one server (M0).
    Master,
    /// Clients take servers in turn, file by file (M1).
    RoundRobin,
    /// The server with most of the bytes that the client's history predicts (M4).
    Predict,
    /// The server with most of the bytes that the client says it will access (M5).
    Hint,
    /// The client's buddy, whatever it accesses.
    Buddy,
}

impl Strategy {
    /// All of them.
    pub const ALL: [Strategy; 6] = [
        Strategy::Request,
        Strategy::Master,
        Strategy::RoundRobin,
        Strategy::Predict,
        Strategy::Hint,
        Strategy::Buddy,
    ];

    /// Its name.
    pub fn word(self) -> &'static str {
        match self {
            Strategy::Request => "request",
            Strategy::Master => "master",
            Strategy::RoundRobin => "round-robin",
            Strategy::Predict => "predict",
            Strategy::Hint => "hint",
            Strategy::Buddy => "buddy",
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// A name that no strategy has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{}' is no mapping; give one of {}", .0, Strategy::ALL.map(Strategy::word).join(", "))]
pub struct UnknownStrategy(String);

impl FromStr for Strategy {
    type Err = UnknownStrategy;

    fn from_str(text: &str) -> Result<Strategy, UnknownStrategy> {
        let found = Strategy::ALL.into_iter().find(|s| s.word() == text);
        found.ok_or_else(|| UnknownStrategy(text.into()))
    }
}
