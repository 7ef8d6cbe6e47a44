//! Another extent of an array along its slowest dimension: records that are added, or given up.
//!
//! The file is where it was. Its subfiles repeat with the period they were made with, as those of any file that grows, so
//! every byte of a longer array has its home already. A layout text that means something else for the new extents is
//! replaced by the sets it stood for.
//!
//! Invariants
//! - The change is made only if the array is still the one that the caller knows: of two who add records at the same time
//!   one is told what the other has made of it, and no record is given out twice.
//! - Entries, order and all other extents stay.

use layout::{ArrayType, Layout, LayoutForm, Order};
use wire::message::catalogue::ArrayIs;

use super::Batch;
use super::access::{Caller, Permission};
use super::layouts::MOST_TEXT;
use super::record::{Body, file_node, layout_state, put_node};
use super::views::file_at;
use crate::error::MetaError;

impl Batch<'_> {
    /// Changes the array of a file, if it is still `from`.
    pub fn change_array(
        &mut self,
        caller: &Caller<'_>,
        path: &str,
        from: &str,
        to: &str,
    ) -> Result<ArrayIs, MetaError> {
        self.one(|b| {
            let file = file_at(&b.rows, caller.credentials, path, Permission::Write)?;
            let (mut node, mut body) = file_node(&b.rows, file)?;
            let Some(present) = body.array.clone() else {
                return Err(MetaError::argument(
                    "path",
                    format!("{path} holds plain bytes and no array"),
                ));
            };
            let (old, new): (ArrayType, ArrayType) = (from.parse()?, to.parse()?);
            if present.parse() != Ok(old.clone()) {
                return Ok(ArrayIs {
                    is_changed: false,
                    array: present,
                });
            }
            if body.next_layout.is_some() {
                return Err(MetaError::Busy("a re-layout of the file is under way"));
            }
            check_change(&old, &new)?;
            if old != new && depends_on_extents(&body.layout)? {
                let state = layout_state(&b.rows, file)?;
                // Not being moved, it has one piece.
                let pattern = state.pieces[0].partition.pattern();
                let text = Layout::from(LayoutForm::Falls {
                    period: pattern.period(),
                    sets: pattern.elements().into(),
                })
                .to_string();
                if text.len() > MOST_TEXT {
                    return Err(MetaError::TooLarge(
                        "the layout that the file has, written down; move it to stripes first",
                    ));
                }
                body.layout = text;
            }
            let array = new.to_string();
            body.array = Some(array.clone());
            node.changed = caller.now;
            node.body = Body::File(body);
            put_node(&mut b.rows, file, &node);
            Ok(ArrayIs {
                is_changed: true,
                array,
            })
        })
    }
}

/// Refuses what is more than another extent along the slowest dimension.
fn check_change(old: &ArrayType, new: &ArrayType) -> Result<(), MetaError> {
    let dimensions = old.dimensions();
    let slowest = match old.order() {
        Order::C => 0,
        Order::Fortran => dimensions.saturating_sub(1),
    };
    let is_as_before = old.element() == new.element()
        && old.order() == new.order()
        && dimensions == new.dimensions()
        && (0..dimensions).all(|d| d == slowest || old.extents()[d] == new.extents()[d]);
    if is_as_before {
        return Ok(());
    }
    Err(MetaError::argument(
        "array",
        format!(
            "{old} cannot become {new}: only dimension {slowest} can get another extent, since no byte moves"
        ),
    ))
}

/// Whether a layout means something else when its array has other extents.
fn depends_on_extents(text: &str) -> Result<bool, MetaError> {
    let layout: Layout = text.parse()?;
    Ok(!matches!(
        layout.form(),
        LayoutForm::Whole | LayoutForm::Striped { .. } | LayoutForm::Falls { .. }
    ))
}
