//! Layout states and how they change.
//!
//! A file has one generation of its layout, or two while it is being moved. Every change takes a new
//! generation number, and numbers of abandoned ones are not used again, since servers may still hold
//! bytes of them. Moves are in `relayout`.

use advise::distribute::{ByViews, ViewRule, by_views};
use control::moves;
use layout::{Layout, LayoutForm, Partition, View};
use wire::message::catalogue::{Expectation, LayoutSpec};
use wire::{HandleId, LayoutState, Piece, Place, put_number};

use super::access::{Caller, Permission, demand};
use super::choose_layout::{LayoutChoice, MAX_SUBFILES, choose};
use super::hints::Wishes;
use super::member::candidates;
use super::path::resolve;
use super::record::{
    Body, By, Counter, Distribution, FileBody, Node, counter, decode, distribution, file_node, key,
    layout_state, put_distribution, put_layout_state, put_node,
};
use super::rows::Rows;
use super::{Batch, Identity, Snapshot};
use crate::error::MetaError;
use crate::{FileId, Rights};

/// Longest text of a layout made from views; text and state of a file travel in one message.
pub(crate) const MOST_TEXT: usize = 256 << 10;

/// A layout state as it is stored, which is as it travels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayoutInfo {
    bytes: Vec<u8>,
}

impl LayoutInfo {
    /// The state in the encoding of `wire`.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The server that owns the file, without looking at the rest.
    pub fn owner(&self) -> Result<Place, MetaError> {
        decode(&key::layouts(), &self.bytes, |r| {
            let owner = Place {
                server: r.number()?,
                incarnation: r.number()?,
            };
            r.take(r.left())?;
            Ok(owner)
        })
    }

    /// The state. Checks the partition again, which takes time in proportion to its description.
    pub fn decode(&self) -> Result<LayoutState, MetaError> {
        decode(&key::layouts(), &self.bytes, LayoutState::read)
    }
}

pub(crate) fn layout_info(rows: &dyn Rows, file: FileId) -> Result<LayoutInfo, MetaError> {
    let bytes = rows
        .get(&key::layout(file))?
        .ok_or(MetaError::NoSuchFile(file))?;
    Ok(LayoutInfo { bytes })
}

/// A file cut by the views of those who opened it together, for servers that were there.
#[derive(Clone, Debug)]
pub struct CutByViews {
    places: Vec<Place>,
    /// Or why not.
    cut: Result<(ByViews, String), String>,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaidOutByViews {
    /// The file.
    pub file: FileId,
    /// The layout that was replaced, if one was.
    pub before: Option<LayoutState>,
    /// Whether the subfiles of the file are the views.
    pub is_by_views: bool,
    /// Which distribution it has, in words.
    pub distribution: String,
    /// Its layout.
    pub layout: LayoutInfo,
}

impl Snapshot {
    /// The layout state of a file.
    pub fn layout(&self, file: FileId) -> Result<LayoutInfo, MetaError> {
        layout_info(&self.rows, file)
    }

    /// Which distribution a file has, in words.
    pub fn distribution(&self, file: FileId) -> Result<String, MetaError> {
        Ok(distribution(&self.rows, file)?.why)
    }

    /// Cuts a file by views, on paper. Takes its time with many or irregular views.
    pub fn cut_by_views(&self, views: &[View]) -> Result<CutByViews, MetaError> {
        let candidates = candidates(&self.rows)?;
        let rule = ViewRule {
            rotation: counter(&self.rows, Counter::Rotation)?,
            most_subfiles: MAX_SUBFILES as usize,
            ..ViewRule::default()
        };
        let cut = match by_views(views, candidates.len(), &rule) {
            Ok(by) => {
                let form = LayoutForm::Falls {
                    period: by.pattern.period(),
                    sets: by.pattern.elements().into(),
                };
                let text = Layout::from(form).to_string();
                match text.len() <= MOST_TEXT {
                    true => Ok((by, text)),
                    false => Err("the text of their layout is too long".to_owned()),
                }
            }
            Err(declined) => Err(declined.to_string()),
        };
        Ok(CutByViews {
            places: candidates.iter().map(|m| m.place()).collect(),
            cut,
        })
    }
}

impl Batch<'_> {
    /// The layout state of a file, with what this batch has changed.
    pub fn layout(&self, file: FileId) -> Result<LayoutInfo, MetaError> {
        layout_info(&self.rows, file)
    }

    /// Gives a file without bytes another layout, and another array if one is given. Nobody else
    /// may have it open for writing: bytes he has written need not be known here yet.
    pub fn set_layout(
        &mut self,
        caller: &Caller<'_>,
        path: &str,
        spec: &LayoutSpec,
    ) -> Result<LayoutInfo, MetaError> {
        self.one(|b| b.set_layout_now(caller, path, spec))
    }

    /// Sets a layout for a request that may come again: it is done once.
    pub fn set_layout_once(
        &mut self,
        caller: &Caller<'_>,
        identity: Identity,
        path: &str,
        spec: &LayoutSpec,
    ) -> Result<LayoutInfo, MetaError> {
        self.once(
            identity,
            |b| {
                let layout = b.set_layout(caller, path, spec)?;
                let mut note = Vec::new();
                put_number(&mut note, b.find(caller, path)?.0);
                Ok((layout, note))
            },
            |b, note| {
                let file = decode(&key::answers(), note, |r| Ok(FileId(r.number()?)))?;
                layout_info(&b.rows, file)
            },
        )
    }

    fn set_layout_now(
        &mut self,
        caller: &Caller<'_>,
        path: &str,
        spec: &LayoutSpec,
    ) -> Result<LayoutInfo, MetaError> {
        let (file, node) = resolve(&self.rows, caller.credentials, path)?;
        demand(&node, caller.credentials, Permission::Write, path)?;
        let (mut node, mut body) = file_node(&self.rows, file)?;
        if body.size > 0 || body.truncate_to.is_some() {
            return Err(MetaError::NotEmptyFile(file));
        }
        if body.next_layout.is_some() {
            return Err(MetaError::Busy("a re-layout of the file is under way"));
        }
        if self.handles.recovering {
            return Err(MetaError::Busy("clients are still coming back"));
        }
        let writes = |h: &super::handles::Handle| h.rights.allow(Rights::WRITE);
        if self
            .handles
            .of_file(file)
            .any(|(_, h)| h.client != caller.client && writes(&h))
        {
            let how = "somebody else has it open for writing";
            return Err(MetaError::InUse { file, how });
        }
        let array = spec.array.clone().or(body.array.clone());
        let expected = Expectation::default();
        let chosen = self.choose(array.as_deref(), spec.layout.as_deref(), &expected)?;
        let distribution = chosen.distribution();
        let generation = body.next_generation;
        let text = chosen.text.clone();
        let piece = self.piece(chosen, generation)?;
        body.array = array;
        body.layout = text;
        node.changed = caller.now;
        self.replace_layout(file, node, body, piece)?;
        put_distribution(&mut self.rows, file, &distribution);
        layout_info(&self.rows, file)
    }

    /// Gives a file the layout that the views of `handles` make, if it has no bytes, if its layout was
    /// left to the rule, and if nobody else has it open for writing. What stands against it is told and
    /// kept with the file.
    pub fn lay_out_by_views(
        &mut self,
        caller: &Caller<'_>,
        handle: HandleId,
        handles: &[HandleId],
        cut: &CutByViews,
    ) -> Result<LaidOutByViews, MetaError> {
        self.one(|b| {
            let file = b.demand_handle(caller, handle, Rights::WRITE)?;
            let (mut node, mut body) = file_node(&b.rows, file)?;
            if body.next_layout.is_some() {
                return Err(MetaError::Busy("a re-layout of the file is under way"));
            }
            if b.handles.recovering {
                return Err(MetaError::Busy("clients are still coming back"));
            }
            let mut known = distribution(&b.rows, file)?;
            let stranger = |(id, h): (HandleId, super::handles::Handle)| {
                h.rights.allow(Rights::WRITE) && !handles.contains(&id)
            };
            let against = if known.by == By::Given {
                Some("its layout was given")
            } else if known.by == By::Views {
                Some("its layout is made from the views of its first opening")
            } else if body.size > 0 || body.truncate_to.is_some() {
                Some("the file has bytes already")
            } else if b.has_listed_servers(file)? {
                Some("its servers were named by a hint")
            } else if b.handles.of_file(file).any(stranger) {
                Some("somebody else has it open for writing")
            } else {
                cut.cut.as_ref().err().map(String::as_str)
            };
            let (by, text) = match (against, &cut.cut) {
                (None, Ok(cut)) => cut,
                (against, _) => {
                    let against = against.unwrap_or_default();
                    if known.by == By::Rule && !known.why.contains("; views not used") {
                        known.why = format!("{}; views not used: {against}", known.why);
                        put_distribution(&mut b.rows, file, &known);
                    }
                    return Ok(LaidOutByViews {
                        file,
                        before: None,
                        is_by_views: known.by == By::Views,
                        distribution: known.why,
                        layout: layout_info(&b.rows, file)?,
                    });
                }
            };
            let alive = candidates(&b.rows)?;
            let is_there = |place: &Place| alive.iter().any(|m| m.place() == *place);
            if !cut.places.iter().all(is_there) {
                return Err(MetaError::Busy("servers have changed meanwhile"));
            }
            b.turn()?;
            let before = layout_state(&b.rows, file)?;
            let places = by.subfiles.iter();
            let piece = Piece::whole(
                body.next_generation,
                Partition::from_start(by.pattern.clone()),
                places.map(|s| vec![cut.places[s.server]]).collect(),
            );
            body.layout.clone_from(text);
            node.changed = caller.now;
            b.replace_layout(file, node, body, piece)?;
            known = Distribution {
                by: By::Views,
                why: by.why.clone(),
            };
            put_distribution(&mut b.rows, file, &known);
            Ok(LaidOutByViews {
                file,
                before: Some(before),
                is_by_views: true,
                distribution: known.why,
                layout: layout_info(&b.rows, file)?,
            })
        })
    }

    /// Lays a file out by views for a request that may come again: it is done once.
    pub fn lay_out_by_views_once(
        &mut self,
        caller: &Caller<'_>,
        identity: Identity,
        handle: HandleId,
        handles: &[HandleId],
        cut: &CutByViews,
    ) -> Result<LaidOutByViews, MetaError> {
        self.once(
            identity,
            |b| {
                let laid_out = b.lay_out_by_views(caller, handle, handles, cut)?;
                let mut note = Vec::new();
                put_number(&mut note, laid_out.file.0);
                put_number(&mut note, u64::from(laid_out.is_by_views));
                Ok((laid_out, note))
            },
            |b, note| {
                let (file, is_by_views) = decode(&key::answers(), note, |r| {
                    Ok((FileId(r.number()?), r.number()? != 0))
                })?;
                Ok(LaidOutByViews {
                    file,
                    before: None,
                    is_by_views,
                    distribution: distribution(&b.rows, file)?.why,
                    layout: layout_info(&b.rows, file)?,
                })
            },
        )
    }

    /// Puts another piece in the place of a layout that has no bytes.
    fn replace_layout(
        &mut self,
        file: FileId,
        mut node: Node,
        mut body: FileBody,
        piece: Piece,
    ) -> Result<(), MetaError> {
        let old = layout_state(&self.rows, file)?;
        self.remove_bytes(file, &old)?;
        // Locks and pointers are with the owner; one that still holds a part stays.
        let state = LayoutState {
            owner: moves::owner_of(old.owner, &piece),
            step: old.step + 1,
            pieces: vec![piece],
        };
        put_layout_state(&mut self.rows, file, &state);
        body.next_generation += 1;
        node.body = Body::File(body);
        put_node(&mut self.rows, file, &node);
        Ok(())
    }

    /// What a text means, or the rule decides.
    pub(crate) fn choose(
        &mut self,
        array: Option<&str>,
        text: Option<&str>,
        expected: &Expectation,
    ) -> Result<LayoutChoice, MetaError> {
        self.choose_by(array, text, expected, &Wishes::default())
    }

    /// Chooses a layout by an array and by what hints say.
    pub(crate) fn choose_by(
        &mut self,
        array: Option<&str>,
        text: Option<&str>,
        expected: &Expectation,
        wishes: &Wishes,
    ) -> Result<LayoutChoice, MetaError> {
        let mut candidates = candidates(&self.rows)?;
        if let Some(list) = &wishes.among {
            candidates.retain(|m| list.contains(&m.server.0));
        }
        let rotation = counter(&self.rows, Counter::Rotation)?;
        let mut chosen = match text {
            Some(text) => self.layout_of(array, text, candidates.len())?,
            None => {
                let array = array.map(|text| self.array_of(text)).transpose()?;
                choose(array.as_ref(), None, candidates.len(), || {
                    let mut known = self.usage.knowledge(&candidates, rotation, expected);
                    (known.style, known.alignment) = (wishes.style, wishes.alignment);
                    advise::distribute::choose(&known)
                })?
            }
        };
        chosen.among.clone_from(&wishes.among);
        if let (Some(choice), Some(size)) = (&chosen.choice, expected.size) {
            self.usage.placed(choice, size);
        }
        Ok(chosen)
    }

    pub(crate) fn piece(
        &mut self,
        chosen: LayoutChoice,
        generation: u64,
    ) -> Result<Piece, MetaError> {
        let count = chosen.partition.len();
        let places = match &chosen.choice {
            Some(choice) => {
                self.turn()?;
                // One block for a server, and no more than there are servers.
                let order: Vec<u64> = choice.in_order().into_iter().take(count).collect();
                self.place(count, Some(&order), None)?
            }
            None => {
                let among = chosen.among.as_deref();
                self.place(count, chosen.listed.as_deref(), among)?
            }
        };
        let places = places.into_iter().map(|p| vec![p]).collect();
        Ok(Piece::whole(generation, chosen.partition, places))
    }
}
