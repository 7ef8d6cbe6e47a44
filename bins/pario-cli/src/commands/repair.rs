//! What `pario doctor` can repair by itself: what it would do, in words, and doing it.
//!
//! Invariants
//! - Nothing that may hold bytes of a user is removed unless the operator says so (`--remove`): data files are put aside, where the
//!   finding `aside` shows them from then on.
//! - The server that has a subfile asks the metadata manager once more before it lets go of it.

use client::{Client, ServerId, Status, SubfileName};
use serde_json::{Value, json};

use super::output::{bytes, counted};

/// What is done with bytes that no file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leftovers {
    /// They are put aside on their disks.
    Aside,
    /// They are removed.
    Removed,
}

/// Something that can be done about a finding.
#[derive(Clone, Debug)]
pub(super) enum Repair {
    /// Subfiles of a server that no file has.
    Discard {
        /// Where.
        server: ServerId,
        /// Which.
        subfiles: Vec<SubfileName>,
        /// Their lengths together.
        len: u64,
    },
}

impl Repair {
    /// What it does.
    pub(super) fn what(&self, leftovers: Leftovers) -> String {
        match self {
            Repair::Discard {
                server,
                subfiles,
                len,
            } => {
                let count = counted(subfiles.len() as u64, "subfile", "subfiles");
                let how = match leftovers {
                    Leftovers::Aside => "put aside",
                    Leftovers::Removed => "remove",
                };
                format!("{how} {count} of {server}, {}", bytes(*len))
            }
        }
    }

    /// Does it; where things are now.
    pub(super) fn carry_out(
        &self,
        client: &Client,
        leftovers: Leftovers,
    ) -> Result<Vec<String>, client::Error> {
        match self {
            Repair::Discard {
                server, subfiles, ..
            } => {
                let mut places = Vec::new();
                for &subfile in subfiles {
                    let done = match leftovers {
                        Leftovers::Aside => client.put_aside(*server, subfile).map(Some),
                        Leftovers::Removed => {
                            client.remove_subfile(*server, subfile).map(|()| None)
                        }
                    };
                    match done {
                        Ok(place) => places.extend(place),
                        // Of a file that is open and has lost its name: no orphan after all.
                        Err(e) if e.status() == Status::InvalidArgument => {}
                        Err(e) => return Err(e),
                    }
                }
                Ok(places)
            }
        }
    }
}

/// What became of a repair.
#[derive(Clone, Debug)]
pub(super) enum RepairOutcome {
    /// Nothing was asked for.
    NotTried,
    /// Done; where things are now.
    Done(Vec<String>),
    /// Why not.
    Failed(String),
}

/// What can be done and what was, for machines.
pub(super) fn to_json(repair: &Repair, repaired: &RepairOutcome, leftovers: Leftovers) -> Value {
    let (state, places, why) = match repaired {
        RepairOutcome::NotTried => ("possible", &[][..], None),
        RepairOutcome::Done(places) => ("done", &places[..], None),
        RepairOutcome::Failed(why) => ("failed", &[][..], Some(why)),
    };
    json!({ "what": repair.what(leftovers), "state": state, "places": places, "why": why })
}

/// What can be done and what was, for people.
pub(super) fn to_text(repair: &Repair, repaired: &RepairOutcome, leftovers: Leftovers) -> String {
    let what = repair.what(leftovers);
    match repaired {
        RepairOutcome::NotTried => format!("--repair would {what}"),
        RepairOutcome::Done(places) => match &places[..] {
            [] => format!("done: {what}"),
            [place] => format!("done: {what}; now {place}"),
            [place, ..] => format!("done: {what}; now {place}, ..."),
        },
        RepairOutcome::Failed(why) => format!("not done: {what}: {why}"),
    }
}
