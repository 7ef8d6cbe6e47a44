//! All hints that a handle has heard of, from whomever, and what became of them.
//!
//! Hints of the program's connection, of its compiler, of the administrator and of the program itself
//! stand beside each other; [`advise::hints::judge`] says which count, and those are the handle's
//! [`Hints`]. Dynamic hints are acted on when they are given.
//!
//! Invariants
//! - A hint that cannot be used is passed over with a reason; it never makes an access fail.
//! - What counts changes only while nobody accesses the file through the handle.

use advise::hints::{
    AccessStyle, HintVerdicts, Life, ReadAhead, Section, Source, SourcedHint, Verdict, canonical,
    judge, known, matches, server_list, upcoming,
};
use control::hints::{given_of, source_of, travelling};
use wire::message::hints::{
    ClearFailed, DiskFailed, FailedServer, GetHints, GivenHint, HintOutcome, HintText, HintUse,
    HintsAre, ListFailed, MakeBuffers, SetHints,
};
use wire::{ServerId, Status};

use crate::client::{Client, absolute};
use crate::error::{Error, Result};
use crate::file::handle::Handle;
use crate::file::{File, view_of_text};
use crate::hints::{Hints, check_value};
use crate::session::Session;

/// Hints that a compiler or a job script left for its programs, in a file.
#[derive(Clone, Debug, Default)]
pub struct CompilerHints {
    file: String,
    sections: Vec<Section>,
}

impl CompilerHints {
    /// Reads the text of a file; the name is for messages.
    pub fn parse(file: &str, text: &str) -> Result<CompilerHints> {
        let sections = advise::hints::sections(text).map_err(|e| {
            let why = format!("{file}, {e}; write [PATTERN] lines with name = value lines below");
            Error::argument("PARIO_HINTS", why)
        })?;
        Ok(CompilerHints {
            file: file.to_owned(),
            sections,
        })
    }

    /// Reads a file.
    pub fn read(path: &std::path::Path) -> Result<CompilerHints> {
        let text = std::fs::read_to_string(path).map_err(|e| {
            let why = format!("cannot read {}: {e}", path.display());
            Error::argument("PARIO_HINTS", why)
        })?;
        CompilerHints::parse(&path.display().to_string(), &text)
    }

    fn of(&self, path: &str) -> impl Iterator<Item = SourcedHint> {
        let sections = self.sections.iter().filter(|s| matches(&s.title, path));
        sections.flat_map(|s| &s.entries).map(|entry| {
            let place = format!("{}:{}", self.file, entry.line);
            SourcedHint::new(Source::Compiler, &entry.name, &entry.value).at(&place, 0)
        })
    }
}

/// What became of a hint of an open file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HintReport {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
    /// Who gave it.
    pub source: Source,
    /// Where it stands; empty for programs.
    pub place: String,
    /// Whether it is used.
    pub outcome: HintOutcome,
    /// For what, or why not.
    pub why: String,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct HandleHints {
    given: Vec<SourcedHint>,
    standing: HintVerdicts,
    /// What came of dynamic hints, by name.
    acted: Vec<(String, std::result::Result<String, String>)>,
}

fn of_program(hints: &Hints) -> impl Iterator<Item = SourcedHint> {
    hints.iter().map(|(name, value)| {
        let source = match known(name).map(|k| k.life) {
            Some(Life::Dynamic) => Source::Dynamic,
            _ => Source::Program,
        };
        SourcedHint::new(source, name, value)
    })
}

impl Session {
    /// What connection and compiler say about a path.
    fn hints_of(&self, path: &str) -> impl Iterator<Item = SourcedHint> {
        let own = self.options.hints.iter();
        let own = own.map(|(name, value)| SourcedHint::new(Source::Connect, name, value));
        self.options.compiler_hints.of(path).chain(own)
    }

    /// All hints that go with the creation of a file.
    pub(crate) fn creation_hints(&self, path: &str, program: &Hints) -> Vec<GivenHint> {
        let all = self.hints_of(path).chain(of_program(program));
        all.filter(|given| given.source != Source::Dynamic)
            .map(|given| travelling(&given))
            .collect()
    }
}

impl HandleHints {
    /// What is known when a file is opened.
    pub(crate) fn at_open(session: &Session, path: &str, kept: &[GivenHint]) -> HandleHints {
        let mut given: Vec<SourcedHint> = kept.iter().map(given_of).collect();
        given.extend(session.hints_of(path));
        HandleHints {
            given,
            ..HandleHints::default()
        }
    }

    /// Takes hints of the program and says what counts now.
    pub(crate) fn take(&mut self, hints: &Hints) -> Hints {
        for new in of_program(hints) {
            let is_same = |g: &SourcedHint| {
                g.source == new.source && canonical(&g.name) == canonical(&new.name)
            };
            self.given.retain(|g| !is_same(g));
            self.given.push(new);
        }
        self.standing = judge(self.given.clone(), check_value);
        let mut counting = Hints::new();
        for (name, given) in self.standing.counting() {
            counting.keep(name, &given.value);
        }
        counting
    }

    pub(crate) fn acted(&mut self, name: &str, came: std::result::Result<String, String>) {
        self.acted.retain(|(known, _)| known != name);
        self.acted.push((name.to_owned(), came));
    }
}

impl Handle {
    /// How the program uses the file, as far as hints say.
    pub(crate) fn style(&self) -> AccessStyle {
        let hints = self.settings.hints.lock();
        let style = hints.get("access_style").map(AccessStyle::parse);
        style.and_then(std::result::Result::ok).unwrap_or_default()
    }
}

/// Of a view that will be set so much is announced: more would drive out what was loaded first.
const UPCOMING_VIEW_BYTES: u64 = 8 << 20;

/// What a style does, in words.
fn style_in_words(style: AccessStyle) -> String {
    let ahead = match style.read_ahead() {
        ReadAhead::Predict => "reads ahead as predicted",
        ReadAhead::Forward => "reads ahead",
        ReadAhead::Backward => "reads ahead backwards",
        ReadAhead::Off => "reads nothing ahead",
    };
    match style.frees_early() {
        true => format!("{ahead}, frees what was used"),
        false => ahead.to_owned(),
    }
}

impl File {
    /// How the program uses the file, as far as hints say.
    pub fn access_style(&self) -> AccessStyle {
        self.style()
    }

    /// Does what dynamic hints say; what came of each is told by [`File::hint_report`].
    pub(crate) fn act_on(&self, hints: &Hints) {
        for name in ["disk_failed", "upcoming", "upcoming_view"] {
            let Some(value) = hints.get(name) else {
                continue;
            };
            let came = match name {
                "disk_failed" => self.failed_as_hinted(value),
                "upcoming" => self.upcoming_as_hinted(value),
                _ => self.upcoming_view_as_hinted(value),
            };
            let came = came.map_err(|error| error.to_string());
            self.settings.heard.lock().acted(name, came);
        }
    }

    fn failed_as_hinted(&self, value: &str) -> Result<String> {
        let servers = server_list(value).map_err(|why| Error::argument("disk_failed", why))?;
        for server in &servers {
            self.disk_failed(ServerId(*server), "a program says so")?;
        }
        Ok("out of placement until the administrator clears it".into())
    }

    fn upcoming_as_hinted(&self, value: &str) -> Result<String> {
        let ranges = upcoming(value).map_err(|why| Error::argument("upcoming", why))?;
        let mut bytes = 0u64;
        for range in &ranges {
            self.hint_next(range.offset, range.size)?;
            if self.identity.rights.allow(wire::Rights::READ) {
                self.will_read(range.offset..range.offset.saturating_add(range.size))?;
            }
            bytes = bytes.saturating_add(range.size);
        }
        Ok(format!("{bytes} bytes announced"))
    }

    fn upcoming_view_as_hinted(&self, value: &str) -> Result<String> {
        let view = view_of_text(self.array(), 0, value)?;
        if self.identity.rights.allow(wire::Rights::READ) {
            let shown = view.len_within(self.known.size().size);
            self.will_read_view(&view, 0..shown.min(UPCOMING_VIEW_BYTES))?;
        }
        Ok("announced".into())
    }

    /// Tells the service that a disk of a server has failed: the server takes no new subfiles until the
    /// administrator clears it. The file has to be partly there.
    pub fn disk_failed(&self, server: ServerId, why: &str) -> Result<()> {
        self.check()?;
        let handle = self.handle_id();
        self.session.manager(|| DiskFailed {
            handle: Some(handle),
            server,
            why: why.into(),
        })
    }

    /// All hints that this handle has heard of, the strongest of each name first as it counts, and what
    /// became of them. Those about the creation of the file are asked of the metadata manager.
    pub fn hint_report(&self) -> Result<Vec<HintReport>> {
        self.check()?;
        let mut report = self.access_hint_report();
        let path = self.identity.path.clone();
        let kept = self.session.manager(|| GetHints { path: path.clone() });
        let uses = match kept {
            Ok(kept) => kept.uses,
            // It has another name by now, or none.
            Err(error) if error.status() == Status::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        let is_of_creation = |name: &str| known(name).is_some_and(|k| k.is_of_creation);
        if self.identity.is_new {
            report.retain(|r| !is_of_creation(&r.name));
            let of_creation = uses.iter().filter(|u| is_of_creation(&u.hint.name));
            report.extend(of_creation.map(report_of));
            self.report_space(&mut report);
        }
        Ok(report)
    }

    /// The metadata manager has placed the file by its expected size; space is what this handle has asked its servers for.
    fn report_space(&self, report: &mut [HintReport]) {
        let heard = self.settings.heard.lock();
        let Some((name, came)) = heard.acted.iter().find(|(name, _)| name == "expected_size")
        else {
            return;
        };
        let decides = |r: &&mut HintReport| {
            r.name == *name && matches!(r.outcome, HintOutcome::Used | HintOutcome::Idle)
        };
        for row in report.iter_mut().filter(decides) {
            let why = came.as_ref().unwrap_or_else(|why| why);
            row.why = format!("{}; {why}", row.why);
            if came.is_ok() {
                row.outcome = HintOutcome::Used;
            }
        }
    }

    /// What became of hints about accesses; sends nothing.
    pub fn access_hint_report(&self) -> Vec<HintReport> {
        let heard = self.settings.heard.lock();
        let hints = &heard.standing.hints;
        let say = |given: &SourcedHint, verdict: &Verdict| {
            let name = canonical(&given.name);
            match verdict {
                Verdict::Counts => {
                    if let Some((_, came)) = heard.acted.iter().find(|(n, _)| n == name) {
                        return match came {
                            Ok(what) => (HintOutcome::Used, what.clone()),
                            Err(why) => (HintOutcome::Ignored, why.clone()),
                        };
                    }
                    match known(name) {
                        Some(k) if k.is_of_creation => {
                            let why = match self.identity.is_new {
                                true => "told when the file was created",
                                false => "the file was there already",
                            };
                            (HintOutcome::Idle, why.into())
                        }
                        _ if name == "access_style" => {
                            let style = AccessStyle::parse(&given.value).unwrap_or_default();
                            (HintOutcome::Used, style_in_words(style))
                        }
                        _ if name == "auto_layout" && given.source >= Source::Compiler => {
                            let why = "counts on a file or directory; see pario hint";
                            (HintOutcome::Idle, why.into())
                        }
                        _ => (HintOutcome::Used, "in force".into()),
                    }
                }
                Verdict::Overridden(by) => {
                    let by = &hints[*by].0;
                    let by = format!("by {} {}", by.source.word(), by.place);
                    (HintOutcome::Overridden, by.trim_end().to_owned())
                }
                Verdict::Ignored(why) => (HintOutcome::Ignored, why.clone()),
                Verdict::Unknown => (HintOutcome::Unknown, "kept".into()),
            }
        };
        hints
            .iter()
            .map(|(given, verdict)| {
                let (outcome, why) = say(given, verdict);
                HintReport {
                    name: canonical(&given.name).to_owned(),
                    value: given.value.clone(),
                    source: given.source,
                    place: given.place.clone(),
                    outcome,
                    why,
                }
            })
            .collect()
    }
}

fn report_of(used: &HintUse) -> HintReport {
    HintReport {
        name: canonical(&used.hint.name).to_owned(),
        value: used.hint.value.clone(),
        source: source_of(used.hint.source),
        place: used.hint.place.clone(),
        outcome: used.outcome,
        why: used.why.clone(),
    }
}

/// Hints that are kept with a file or directory. See [`Client::hints`].
#[derive(Clone, Debug)]
pub struct KeptHints {
    /// Those kept with it and above it, with what counts of them.
    pub standing: HintVerdicts,
    /// What became of hints when the file was created.
    pub uses: Vec<HintReport>,
    /// Which distribution it has, and why; empty for directories.
    pub distribution: String,
}

impl Client {
    /// Hints that are kept with a file or directory and the directories above it.
    pub fn hints(&self, path: &str) -> Result<KeptHints> {
        let path = absolute(path);
        let kept: HintsAre = self.session().manager(|| GetHints { path: path.clone() })?;
        let given = kept.given.iter().map(given_of);
        Ok(KeptHints {
            standing: judge(given.collect(), check_value),
            uses: kept.uses.iter().map(report_of).collect(),
            distribution: kept.distribution,
        })
    }

    /// Keeps hints with a file or directory, for it and everything below it; only its owner and root may.
    pub fn set_hints(&self, path: &str, set: &Hints, unset: &[String]) -> Result<()> {
        let path = absolute(path);
        let set: Vec<HintText> = set
            .iter()
            .map(|(name, value)| HintText {
                name: name.into(),
                value: value.into(),
            })
            .collect();
        self.session().manager(|| SetHints {
            path: path.clone(),
            set: set.clone(),
            unset: unset.to_vec(),
        })
    }

    /// Servers that take no new subfiles because a disk of theirs failed.
    pub fn failed_servers(&self) -> Result<Vec<FailedServer>> {
        self.session().manager(|| ListFailed {})
    }

    /// Lets a server take new subfiles again; for the administrator. A server that is not there now
    /// looks at its disks when it starts.
    pub fn clear_failed(&self, server: ServerId) -> Result<()> {
        match self.session().server(server, &ClearFailed { server }) {
            Err(Error::Unreachable { .. }) | Ok(()) => {}
            Err(error) => return Err(error),
        }
        self.session().manager(|| ClearFailed { server })
    }

    /// Has a server take memory for its staging buffers now; how many bytes they have.
    pub fn make_buffers(&self, server: ServerId, bytes: u64) -> Result<u64> {
        self.session().server(server, &MakeBuffers { bytes })
    }
}
