//! What administrators ask for, on record: which requests are noted, and with which arguments.
//!
//! Owns the words of actions and arguments; the form of the file is `serving`'s. What programs ask for all the time is not noted: the
//! hints of files, moves that a layout which follows use begins by itself, trials.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use serving::{AuditEntry, Exchange, RequestSummary};
use wire::message::backup::Backup;
use wire::message::calibration::PutCalibration;
use wire::message::catalogue::*;
use wire::message::hints::{ClearFailed, GetHints, HintText, SetHints};
use wire::message::profile::{GetProfile, SetProfile};
use wire::message::session::Shutdown;
use wire::message::stamps::AwaitRecalls;
use wire::message::team::{Gather, WatchTeam};
use wire::message::{Field, Request, decode};
use wire::{HandleId, Reader};

use crate::committer::Refused;
use crate::manager::{Manager, Session, Who};

/// How the metadata manager is called in records.
pub(crate) const MANAGER: &str = "manager";

/// Kinds that begin with a path.
const WITH_PATH: [u16; 26] = [
    Open::KIND,
    Create::KIND,
    Mkdir::KIND,
    Unlink::KIND,
    Rmdir::KIND,
    Rename::KIND,
    Stat::KIND,
    List::KIND,
    Chmod::KIND,
    Chown::KIND,
    Utimes::KIND,
    SetLayout::KIND,
    GetLayout::KIND,
    PutView::KIND,
    GetView::KIND,
    RemoveView::KIND,
    ListViews::KIND,
    ChangeArray::KIND,
    ChangeValues::KIND,
    GetValues::KIND,
    Relayout::KIND,
    Rebalance::KIND,
    SetHints::KIND,
    GetHints::KIND,
    GetProfile::KIND,
    SetProfile::KIND,
];

/// Whether a request takes as long as others like, so that it is never slow.
pub(crate) fn waits_for_others(kind: u16) -> bool {
    matches!(kind, AwaitRecalls::KIND | Gather::KIND | WatchTeam::KIND)
}

/// An action and its arguments.
type Action = (&'static str, Value);

impl Manager {
    /// What a request is about, for the log of slow ones.
    pub(crate) fn summary_of(&self, session: &Session, exchange: &Exchange) -> RequestSummary {
        let kind = exchange.header().kind;
        let path = WITH_PATH.contains(&kind).then(|| {
            let read = String::read(&mut Reader::new(exchange.control()));
            // What is no path is refused in a moment.
            read.unwrap_or_default()
        });
        let client = match session.who {
            Who::Client(client) => Some((client.0, session.credentials.user)),
            _ => None,
        };
        RequestSummary {
            server: MANAGER.into(),
            file: path.unwrap_or_default(),
            client,
            bytes: 0,
        }
    }

    /// Puts a request on record that was done or refused, if it is one of an administrator.
    pub(crate) fn note<T>(
        &self,
        session: &Session,
        (kind, control): (u16, &[u8]),
        result: &Result<T, Refused>,
    ) {
        let (Some(audit), Who::Client(client)) = (&self.audit, session.who) else {
            return;
        };
        let Some((action, arguments)) = self.action(session, kind, control) else {
            return;
        };
        audit.note(&AuditEntry {
            by: MANAGER,
            action,
            user: session.credentials.user,
            client: Some(client.0),
            arguments,
            refusal: result.as_ref().err().map(ToString::to_string),
        });
        self.noted.fetch_add(1, Ordering::Relaxed);
    }

    fn action(&self, session: &Session, kind: u16, control: &[u8]) -> Option<Action> {
        Some(match kind {
            Drain::KIND => {
                let r: Drain = decode(control).ok()?;
                let action = if r.is_over { "drain_over" } else { "drain" };
                (action, json!({ "server": r.server.0 }))
            }
            Rebalance::KIND => {
                let r: Rebalance = decode(control).ok().filter(|r: &Rebalance| !r.is_trial)?;
                ("rebalance", json!({ "path": r.path }))
            }
            Relayout::KIND => {
                let r: Relayout = decode(control).ok()?;
                let arguments = json!({ "path": r.path, "layout": r.layout, "servers": r.servers });
                ("relayout", arguments)
            }
            ControlRelayout::KIND => {
                let r: ControlRelayout = decode(control).ok()?;
                let what = match r.what {
                    MoveControl::Pause => "pause",
                    MoveControl::Resume => "resume",
                    MoveControl::Cancel => "cancel",
                    MoveControl::Limit => "limit",
                };
                let path = self.path_of(r.file);
                let arguments = json!({
                    "path": path, "file": r.file.0, "what": what, "limit_bytes": r.limit_bytes,
                });
                ("control_relayout", arguments)
            }
            SetHints::KIND => {
                let r: SetHints = decode(control).ok()?;
                let found = self.snapshot().ok()?.stat(&session.credentials, &r.path);
                if found.is_ok_and(|found| found.kind == Kind::File) {
                    return None;
                }
                let set: serde_json::Map<String, Value> = r
                    .set
                    .into_iter()
                    .map(|HintText { name, value }| (name, json!(value)))
                    .collect();
                let arguments = json!({ "path": r.path, "set": set, "unset": r.unset });
                ("hint", arguments)
            }
            ClearFailed::KIND => {
                let r: ClearFailed = decode(control).ok()?;
                ("clear_failed", json!({ "server": r.server.0 }))
            }
            GetSubfile::KIND => {
                let r: GetSubfile = decode(control).ok()?;
                let path = self.path_of_handle(session, r.handle);
                ("read_subfile", json!({ "path": path, "subfile": r.index }))
            }
            PutCalibration::KIND => ("calibrate", json!({})),
            Backup::KIND => {
                let first = decode(control).ok().filter(|r: &Backup| r.backup == 0);
                first.map(|_| ("backup", json!({})))?
            }
            Shutdown::KIND => ("shutdown", json!({})),
            _ => return None,
        })
    }

    fn path_of(&self, file: wire::FileId) -> Option<String> {
        self.snapshot().ok()?.path_of(file).ok()?
    }

    fn path_of_handle(&self, session: &Session, handle: HandleId) -> Option<String> {
        let opened = self.change(session, move |b, caller| b.opened(caller, handle));
        self.path_of(opened.ok()?.attributes.file)
    }
}
