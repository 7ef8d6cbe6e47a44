//! Hints that are kept with files and directories, what became of hints when a file was created, and
//! servers that are out of placement because a disk of theirs failed.
//!
//! Hints of a directory hold for everything below it that has no nearer ones. They are the
//! administrator's: only the owner of a file or directory and root set them. Dynamic ones are refused;
//! what has just come about only a running program knows.
//!
//! A new file is laid out by what counts (`advise::hints`): a layout if there is one that can be had,
//! else stripes, else the rule with what is expected. A value that cannot be used is passed over, and
//! the next one in the order of precedence is tried; a file is never refused because of a hint. What
//! became of each is kept with the file.

use advise::hints::{
    AccessStyle, HintVerdicts, Kind, Life, Source, SourcedHint, UseCounts, Verdict, canonical,
    check, judge, known, number, server_list,
};
use control::hints::{given_of, travelling};
use layout::ByteSize;
use wire::message::Field;
use wire::message::catalogue::{Expectation, LayoutSpec};
use wire::message::hints::{FailedServer, GivenHint, HintOutcome, HintText, HintUse, HintsAre};
use wire::{DecodeError, HandleId, Reader, Status, put_number};

use super::access::{Caller, demand_owner};
use super::choose_layout::LayoutChoice;
use super::member::{candidates, find_member, places_of};
use super::path::{path_of, resolve};
use super::record::{ROOT, decode, find_node, key, layout_state, node, put_text};
use super::rows::{Rows, RowsTransaction};
use super::{Batch, Credentials, Snapshot};
use crate::error::MetaError;
use crate::{FileId, Rights, ServerId, Time};

/// Most hints of one file or directory.
const MOST_HINTS: usize = 256;
/// Longest name.
const NAME_BYTES: usize = 255;
/// All names and values of one file or directory.
const ALL_BYTES: usize = 64 << 10;
/// Hints of directories that travel with an opened file; nearer ones go first.
const TOLD_BYTES: usize = 128 << 10;
/// Longest text of a hint in what became of it.
const USE_BYTES: usize = 256;
/// Longest reason for a failure.
const WHY_BYTES: usize = 1024;

/// A hint as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeptHint {
    pub(crate) name: String,
    pub(crate) value: String,
}

/// What is kept with a file or directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Notes {
    /// By name.
    pub(crate) hints: Vec<KeptHint>,
    /// What became of the hints at its creation.
    pub(crate) uses: Vec<HintUse>,
    /// What observed accesses say.
    pub(crate) observed: Vec<KeptHint>,
}

fn text(r: &mut Reader<'_>) -> Result<String, DecodeError> {
    r.text().map(str::to_owned)
}

pub(crate) fn read_notes(key: &[u8], bytes: &[u8]) -> Result<Notes, MetaError> {
    decode(key, bytes, |r| {
        let list = |r: &mut Reader<'_>| -> Result<Vec<KeptHint>, DecodeError> {
            let mut list = Vec::new();
            for _ in 0..r.length(2)? {
                list.push(KeptHint {
                    name: text(r)?,
                    value: text(r)?,
                });
            }
            Ok(list)
        };
        Ok(Notes {
            hints: list(r)?,
            uses: Field::read(r)?,
            observed: list(r)?,
        })
    })
}

fn notes(rows: &dyn Rows, file: FileId) -> Result<Notes, MetaError> {
    let key = key::hints(file);
    match rows.get(&key)? {
        Some(bytes) => read_notes(&key, &bytes),
        None => Ok(Notes::default()),
    }
}

fn put_notes(rows: &mut RowsTransaction<'_>, file: FileId, notes: &Notes) {
    if *notes == Notes::default() {
        rows.remove(key::hints(file));
        return;
    }
    let put_list = |list: &[KeptHint], out: &mut Vec<u8>| {
        put_number(out, list.len() as u64);
        for kept in list {
            put_text(out, &kept.name);
            put_text(out, &kept.value);
        }
    };
    let mut out = Vec::new();
    put_list(&notes.hints, &mut out);
    notes.uses.put(&mut out);
    put_list(&notes.observed, &mut out);
    rows.put(key::hints(file), out);
}

pub(crate) fn read_failed(key: &[u8], bytes: &[u8]) -> Result<FailedServer, MetaError> {
    let server = ServerId(key::number(key, 0).unwrap_or(0));
    decode(key, bytes, |r| {
        Ok(FailedServer {
            server,
            why: text(r)?,
            is_hint: Field::read(r)?,
            since: Field::read(r)?,
        })
    })
}

/// The servers that are out of placement.
pub(crate) fn failed_servers(rows: &dyn Rows) -> Result<Vec<FailedServer>, MetaError> {
    let mut failed = Vec::new();
    rows.for_each(&key::failed_servers(), &mut |key, bytes| {
        failed.push(read_failed(key, bytes)?);
        Ok(())
    })?;
    Ok(failed)
}

/// The hints kept with a directory and those above it, nearest first.
fn above(rows: &dyn Rows, mut directory: FileId) -> Result<Vec<SourcedHint>, MetaError> {
    let mut list = Vec::new();
    let mut distance = 0;
    loop {
        let kept = notes(rows, directory)?.hints;
        if !kept.is_empty() {
            let path = path_of(rows, directory)?.unwrap_or_default();
            let given = kept.iter().map(|k| {
                SourcedHint::new(Source::Directory, &k.name, &k.value).at(&path, distance)
            });
            list.extend(given);
        }
        if directory == ROOT {
            return Ok(list);
        }
        // A file that is open can outlive the directory that it was in.
        let Some(here) = find_node(rows, directory)? else {
            return Ok(list);
        };
        directory = here.parent;
        distance += 1;
    }
}

/// The hints kept with a file or directory and with what is above it, the strongest first.
pub(crate) fn kept(rows: &dyn Rows, file: FileId) -> Result<Vec<SourcedHint>, MetaError> {
    let node = node(rows, file)?;
    if node.is_directory() {
        return above(rows, file);
    }
    let path = path_of(rows, file)?.unwrap_or_default();
    let own = notes(rows, file)?;
    let of = |list: &[KeptHint], source| -> Vec<SourcedHint> {
        let given = list
            .iter()
            .map(|k| SourcedHint::new(source, &k.name, &k.value));
        given.map(|given| given.at(&path, 0)).collect()
    };
    let mut list = of(&own.hints, Source::File);
    list.extend(above(rows, node.parent)?);
    list.extend(of(&own.observed, Source::Profile));
    Ok(list)
}

/// Those of them that count for clients that have the file open.
pub(crate) fn for_handle(rows: &dyn Rows, file: FileId) -> Result<Vec<GivenHint>, MetaError> {
    let is_of_handle = |given: &SourcedHint| known(&given.name).is_none_or(|k| !k.is_of_creation);
    let mut bytes = 0;
    let list = kept(rows, file)?;
    let fits = list.iter().filter(|g| is_of_handle(g)).take_while(|g| {
        bytes += g.name.len() + g.value.len() + g.place.len();
        bytes <= TOLD_BYTES
    });
    Ok(fits.map(travelling).collect())
}

/// What hints come to for a new file.
pub(crate) struct HintedLayout {
    pub(crate) chosen: LayoutChoice,
    pub(crate) array: Option<String>,
    uses: Vec<HintUse>,
}

/// Hints of a new file, as they are tried one after the other.
struct Trial {
    standing: HintVerdicts,
    /// Names that the decision rests on, with for what.
    used: Vec<(&'static str, String)>,
}

impl Trial {
    fn number(&self, name: &str) -> Option<u64> {
        number(&self.standing.get(name)?.value)
    }

    fn uses(&mut self, name: &'static str, what: impl Into<String>) {
        self.used.retain(|(known, _)| *known != name);
        self.used.push((name, what.into()));
    }

    fn strength(&self, name: &str) -> Option<(Source, std::cmp::Reverse<u32>)> {
        let given = self.standing.get(name)?;
        Some((given.source, std::cmp::Reverse(given.distance)))
    }

    /// Stripes as the hints say, if they say anything, when so many servers take subfiles.
    fn stripes(&self, servers: usize) -> Option<String> {
        let unit = self.number("striping_unit");
        let start = self.number("striping_start");
        let factor = self.number("striping_factor");
        let factor = factor.or(start.map(|_| servers as u64));
        if unit.is_none() && factor.is_none() && start.is_none() {
            return None;
        }
        let unit = ByteSize(self.aligned(unit.unwrap_or(advise::distribute::STRIPE)));
        let mut text = format!("striped({unit})");
        if let Some(factor) = factor {
            text += &format!(" over {factor}");
            if let Some(start) = start {
                text += &format!(" from {}", start % factor.max(1));
            }
        }
        Some(text)
    }

    fn aligned(&self, unit: u64) -> u64 {
        let alignment = self.number("file_alignment").unwrap_or(1);
        let aligned = unit.checked_next_multiple_of(alignment.max(1));
        aligned.filter(|a| *a <= falls::MAX_OFFSET).unwrap_or(unit)
    }

    /// What became of each.
    fn into_uses(self) -> Vec<HintUse> {
        let hints = &self.standing.hints;
        let say = |given: &SourcedHint, verdict: &Verdict| {
            let name = canonical(&given.name);
            let used = self.used.iter().find(|(used, _)| *used == name);
            let (outcome, why) = match verdict {
                Verdict::Counts => match used {
                    Some((_, what)) => (HintOutcome::Used, what.clone()),
                    None => (HintOutcome::Idle, idle(name).to_owned()),
                },
                Verdict::Overridden(by) => {
                    let by = &hints[*by].0;
                    (HintOutcome::Overridden, format!("by {}", whose(by)))
                }
                Verdict::Ignored(why) => (HintOutcome::Ignored, why.clone()),
                Verdict::Unknown => (HintOutcome::Unknown, "kept".into()),
            };
            let mut hint = travelling(given);
            for text in [&mut hint.name, &mut hint.value, &mut hint.place] {
                text.truncate(shortened(text, USE_BYTES).len());
            }
            HintUse { hint, outcome, why }
        };
        let uses = hints.iter().take(MOST_HINTS);
        uses.map(|(g, v)| say(g, v)).collect()
    }
}

fn idle(name: &str) -> &'static str {
    match known(name) {
        Some(k) if k.is_of_creation => "the layout was decided without it",
        Some(k) if k.kind == Kind::File => "counts once the file is used",
        _ => "counts for whoever opens the file",
    }
}

/// The beginning of a text, whole characters of it.
fn shortened(text: &str, most: usize) -> &str {
    let ends = text.char_indices().map(|(at, c)| at + c.len_utf8());
    &text[..ends.take_while(|end| *end <= most).last().unwrap_or(0)]
}

/// A source in words.
fn whose(given: &SourcedHint) -> String {
    match given.place.is_empty() {
        true => given.source.word().to_owned(),
        false => format!("{} {}", given.source.word(), given.place),
    }
}

/// Whether an error is about the layout that was asked for, so that another may be tried.
fn is_about_layout(error: &MetaError) -> bool {
    matches!(
        error.status(),
        Status::InvalidArgument | Status::TooLarge | Status::Unreachable
    ) && !matches!(error, MetaError::NoServer)
}

impl Batch<'_> {
    /// Lays out a new file by what its creator says and by hints.
    pub(crate) fn choose_hinted(
        &mut self,
        directory: FileId,
        spec: &LayoutSpec,
        expected: &Expectation,
        hints: &[GivenHint],
    ) -> Result<HintedLayout, MetaError> {
        let mut given: Vec<SourcedHint> = hints.iter().map(given_of).collect();
        given.extend(above(&self.rows, directory)?);
        let mut trial = Trial {
            standing: judge(given, |_, _| Ok(())),
            used: Vec::new(),
        };
        // Each turn passes over one value, so there is an end.
        loop {
            trial.used.clear();
            let error = match self.try_hinted(&mut trial, spec, expected) {
                Ok((chosen, array)) => {
                    return Ok(HintedLayout {
                        chosen,
                        array,
                        uses: trial.into_uses(),
                    });
                }
                Err(error) if is_about_layout(&error) => error,
                Err(error) => return Err(error),
            };
            // The weakest of those that the decision rested on may be the reason; the layout is the first
            // to go, since an array and servers fit most layouts.
            let blamed = [
                "layout",
                "striping_factor",
                "striping_unit",
                "striping_start",
            ]
            .into_iter()
            .chain(["array", "server_list"])
            .find(|name| trial.used.iter().any(|(used, _)| used == name));
            match blamed {
                Some(name) => trial.standing.pass_over(name, &error.to_string()),
                None => return Err(error),
            }
        }
    }

    fn try_hinted(
        &mut self,
        trial: &mut Trial,
        spec: &LayoutSpec,
        expected: &Expectation,
    ) -> Result<(LayoutChoice, Option<String>), MetaError> {
        let value = |trial: &Trial, name: &str| trial.standing.get(name).map(|g| g.value.clone());
        let mut array = spec.array.clone();
        if array.is_none()
            && let Some(text) = value(trial, "array")
        {
            trial.uses("array", "what the file holds");
            array = Some(text);
        }
        let mut among = None;
        let mut servers = candidates(&self.rows)?;
        if let Some(list) = value(trial, "server_list") {
            trial.uses("server_list", "servers of the file");
            let list = server_list(&list).unwrap_or_default();
            servers.retain(|m| list.contains(&m.server.0));
            if servers.is_empty() {
                let why = format!("{list:?}: none of these servers takes new subfiles");
                return Err(MetaError::argument("server_list", why));
            }
            among = Some(list);
        }
        let stripes = trial.stripes(servers.len());
        let striping = ["striping_unit", "striping_factor", "striping_start"];
        let strongest = striping.iter().filter_map(|n| trial.strength(n)).max();
        let mut hinted = None;
        if spec.layout.is_none() {
            let layout = value(trial, "layout");
            match (layout, stripes) {
                (Some(text), _) if trial.strength("layout") >= strongest => {
                    trial.uses("layout", "how the file is cut");
                    hinted = Some((text, "layout"));
                }
                (_, Some(text)) => {
                    for name in striping {
                        if trial.standing.get(name).is_some() {
                            trial.uses(name, "how the file is cut");
                        }
                    }
                    if trial.standing.get("file_alignment").is_some() {
                        trial.uses("file_alignment", "length of a stripe");
                    }
                    hinted = Some((text, striping[0]));
                }
                _ => {}
            }
        }
        let mut expected = expected.clone();
        let mut wishes = Wishes {
            among,
            ..Wishes::default()
        };
        let is_by_rule = spec.layout.is_none() && hinted.is_none();
        if is_by_rule {
            fill(trial, "expected_size", &mut expected.size);
            fill(trial, "expected_clients", &mut expected.clients);
            fill(trial, "expected_access", &mut expected.access_bytes);
            let mut near = expected.near.map(|s| s.0);
            fill(trial, "near_server", &mut near);
            expected.near = near.map(ServerId);
            fill(trial, "file_alignment", &mut wishes.alignment);
            if let Some(text) = value(trial, "access_style")
                && let Ok(style) = AccessStyle::parse(&text)
            {
                trial.uses(
                    "access_style",
                    "length of a stripe, and for whoever opens the file",
                );
                wishes.style = style;
            }
        }
        let layout = hinted.as_ref().map(|(text, _)| text.clone());
        let layout = spec.layout.clone().or(layout);
        let mut chosen = self.choose_by(array.as_deref(), layout.as_deref(), &expected, &wishes)?;
        if let Some((_, name)) = hinted {
            let name = striping
                .iter()
                .chain([&name])
                .filter(|n| trial.used.iter().any(|(used, _)| used == *n))
                .max_by_key(|n| trial.strength(n))
                .copied()
                .unwrap_or(name);
            if let Some(given) = trial.standing.get(name) {
                chosen.given_by = Some(format!("given by the hint {name} of {}", whose(given)));
            }
        }
        // Servers that are not alive are found out here, while another layout can be tried.
        if let Some(listed) = &chosen.listed {
            self.check_listed(listed)?;
        }
        Ok((chosen, array))
    }

    /// Keeps what became of the hints of a new file.
    pub(crate) fn keep_uses(&mut self, file: FileId, hinted: HintedLayout) {
        let uses = hinted.uses;
        for used in &uses {
            self.usage.hinted(used.outcome);
        }
        if !uses.is_empty() {
            let notes = Notes {
                uses,
                ..Notes::default()
            };
            put_notes(&mut self.rows, file, &notes);
        }
    }

    /// Whether the servers of a file were named by a hint.
    pub(crate) fn has_listed_servers(&self, file: FileId) -> Result<bool, MetaError> {
        let is_list = |u: &HintUse| {
            canonical(&u.hint.name) == "server_list" && u.outcome == HintOutcome::Used
        };
        Ok(notes(&self.rows, file)?.uses.iter().any(is_list))
    }

    /// Sets and removes hints of a file or directory.
    pub fn set_hints(
        &mut self,
        caller: &Caller<'_>,
        path: &str,
        set: &[HintText],
        unset: &[String],
    ) -> Result<(), MetaError> {
        self.one(|b| {
            let (file, node) = resolve(&b.rows, caller.credentials, path)?;
            demand_owner(&node, caller.credentials, path)?;
            let mut notes = notes(&b.rows, file)?;
            for name in unset {
                let name = canonical(name);
                notes.hints.retain(|kept| kept.name != name);
            }
            for hint in set {
                demand_static(hint)?;
                let name = canonical(&hint.name);
                notes.hints.retain(|kept| kept.name != name);
                notes.hints.push(KeptHint {
                    name: name.to_owned(),
                    value: hint.value.clone(),
                });
            }
            notes.hints.sort_by(|a, b| a.name.cmp(&b.name));
            let bytes: usize = (notes.hints.iter())
                .map(|kept| kept.name.len() + kept.value.len())
                .sum();
            if notes.hints.len() > MOST_HINTS || bytes > ALL_BYTES {
                return Err(MetaError::TooLarge(
                    "the hints of one file or directory; 256 of them and 64 KiB in all can be kept",
                ));
            }
            put_notes(&mut b.rows, file, &notes);
            Ok(())
        })
    }

    /// Keeps what observed accesses of a file say, as hints of the weakest source.
    pub fn keep_observed(&mut self, file: FileId, seen: &UseCounts) -> Result<(), MetaError> {
        self.one(|b| b.note_observed(file, seen))
    }

    /// Notes it, if that is something new.
    pub(crate) fn note_observed(
        &mut self,
        file: FileId,
        seen: &UseCounts,
    ) -> Result<(), MetaError> {
        let mut notes = notes(&self.rows, file)?;
        let style = seen.style();
        let observed: Vec<KeptHint> = (!style.is_silent())
            .then(|| KeptHint {
                name: "access_style".into(),
                value: style.to_string(),
            })
            .into_iter()
            .collect();
        if notes.observed != observed {
            notes.observed = observed;
            put_notes(&mut self.rows, file, &notes);
        }
        Ok(())
    }

    /// Takes a server out of placement.
    pub fn disk_failed(
        &mut self,
        server: ServerId,
        why: &str,
        is_hint: bool,
        now: Time,
    ) -> Result<(), MetaError> {
        self.one(|b| b.fail_now(server, why, is_hint, now))
    }

    fn fail_now(
        &mut self,
        server: ServerId,
        why: &str,
        is_hint: bool,
        now: Time,
    ) -> Result<(), MetaError> {
        find_member(&self.rows, server)?.ok_or(MetaError::NoSuchServer(server))?;
        let key = key::failed(server);
        if let Some(bytes) = self.rows.get(&key)? {
            let known = read_failed(&key, &bytes)?;
            // What the server says itself counts more than what others say.
            if is_hint || !known.is_hint {
                return Ok(());
            }
        }
        let mut out = Vec::new();
        put_text(&mut out, shortened(why, WHY_BYTES));
        is_hint.put(&mut out);
        now.put(&mut out);
        self.rows.put(key, out);
        Ok(())
    }

    /// A program says that a disk failed. It has to have a file open that is partly there.
    pub fn disk_failed_hint(
        &mut self,
        caller: &Caller<'_>,
        handle: HandleId,
        server: ServerId,
        why: &str,
    ) -> Result<(), MetaError> {
        self.one(|b| {
            let open = b.handles.get(caller.client, handle);
            let open = open.ok_or(MetaError::BadHandle(handle))?;
            // A client that only asks questions has not met the disk.
            if open.rights == Rights::NONE {
                return Err(MetaError::HandleLacks(handle, "reading or writing"));
            }
            let file = open.file;
            let state = layout_state(&b.rows, file)?;
            let mut places = places_of(&state);
            if !places.any(|(_, place)| place.server == server.0) {
                return Err(MetaError::argument(
                    "disk_failed",
                    format!("the file has no bytes at {server}; only its users can say that"),
                ));
            }
            b.fail_now(server, why, true, caller.now)
        })
    }

    /// Lets a server take new subfiles again.
    pub fn clear_failed(&mut self, server: ServerId) -> Result<(), MetaError> {
        self.one(|b| {
            find_member(&b.rows, server)?.ok_or(MetaError::NoSuchServer(server))?;
            if b.rows.get(&key::failed(server))?.is_some() {
                b.rows.remove(key::failed(server));
            }
            Ok(())
        })
    }
}

/// What the rule for files without a layout is told beside what is expected.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wishes {
    /// The servers that may be used.
    pub(crate) among: Option<Vec<u64>>,
    pub(crate) style: AccessStyle,
    pub(crate) alignment: Option<u64>,
}

fn fill(trial: &mut Trial, name: &'static str, slot: &mut Option<u64>) {
    if slot.is_none()
        && let Some(n) = trial.number(name)
    {
        *slot = Some(n);
        trial.uses(name, "what the rule decides by");
    }
}

/// Refuses what an administrator cannot say, and values that make no sense: he is there to be told.
fn demand_static(hint: &HintText) -> Result<(), MetaError> {
    if hint.name.is_empty() || hint.name.len() > NAME_BYTES {
        let detail = format!("`{}` has 0 or more than {NAME_BYTES} bytes", hint.name);
        return Err(MetaError::argument("hint", detail));
    }
    let life = known(&hint.name).map(|k| k.life);
    if life == Some(Life::Dynamic) {
        let detail = format!(
            "{} is dynamic; only a running program that has the file open can give it",
            hint.name
        );
        return Err(MetaError::argument("hint", detail));
    }
    check(&hint.name, &hint.value).map_err(|why| MetaError::argument("hint", why))
}

impl Snapshot {
    /// Hints kept with a file or directory and above it, and what became of them at its creation.
    pub fn hints(&self, who: &Credentials, path: &str) -> Result<HintsAre, MetaError> {
        let (file, node) = resolve(&self.rows, who, path)?;
        let given = kept(&self.rows, file)?;
        Ok(HintsAre {
            given: given.iter().map(travelling).collect(),
            uses: notes(&self.rows, file)?.uses,
            distribution: match node.is_directory() {
                true => String::new(),
                false => self.distribution(file)?,
            },
        })
    }

    /// The hint of this name that counts for a file or directory, of those kept with it and above it.
    pub fn hint(&self, file: FileId, name: &str) -> Result<Option<SourcedHint>, MetaError> {
        let mut list = kept(&self.rows, file)?;
        list.retain(|given| canonical(&given.name) == canonical(name));
        let standing = judge(list, |_, _| Ok(()));
        Ok(standing.get(name).cloned())
    }

    /// The servers that are out of placement.
    pub fn failed_servers(&self) -> Result<Vec<FailedServer>, MetaError> {
        failed_servers(&self.rows)
    }
}
