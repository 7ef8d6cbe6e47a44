//! Samples of hints: every source and every outcome, names and values outside ASCII.
//! Servers that failed are among them, said by a program and by themselves.

use wire::message::hints::*;
use wire::{HandleId, ServerId, Time};

use super::Samples;

const PATH: &str = "/daten/Größe π";

pub(super) fn given(source: HintSource) -> GivenHint {
    GivenHint {
        name: "access_style".into(),
        value: "read_once,sequential".into(),
        source,
        place: match source {
            HintSource::Directory | HintSource::File => PATH.into(),
            HintSource::Compiler => "hints.txt:7".into(),
            _ => String::new(),
        },
        distance: u32::from(source == HintSource::Directory) * 300,
    }
}

pub(super) fn add(list: &mut Samples) {
    let path = || PATH.to_owned();
    let text = |name: &str, value: &str| HintText {
        name: name.into(),
        value: value.into(),
    };
    let set = SetHints {
        path: path(),
        set: vec![text("layout", "(block, *) onto 4"), text("größe", "")],
        unset: vec!["striping_unit".into()],
    };
    list.pair("", set, ());
    use HintSource::*;
    let sources = [
        Profile, Directory, File, Compiler, Connect, Program, Dynamic,
    ];
    let outcomes = [
        HintOutcome::Used,
        HintOutcome::Idle,
        HintOutcome::Overridden,
        HintOutcome::Ignored,
        HintOutcome::Unknown,
    ];
    let uses = outcomes.map(|outcome| HintUse {
        hint: given(Program),
        outcome,
        why: "nothing to do".into(),
    });
    let answer = HintsAre {
        given: sources.map(given).into(),
        uses: uses.into(),
        distribution: "by rule: 3 servers".into(),
    };
    list.pair("", GetHints { path: path() }, answer);
    for (word, handle) in [("hint", Some(HandleId(9))), ("server", None)] {
        let failed = DiskFailed {
            handle,
            server: ServerId(3),
            why: "input/output error".into(),
        };
        list.pair(word, failed, ());
    }
    list.pair("", MakeBuffers { bytes: 1 << 40 }, 1 << 30);
    let server = ServerId(u64::MAX);
    list.pair("", ClearFailed { server }, ());
    let failed = [false, true].map(|is_hint| FailedServer {
        server,
        why: "cannot be read".into(),
        is_hint,
        since: Time(-5),
    });
    list.pair("", ListFailed {}, failed.into());
}
