//! From what the user wrote to a partition.
//!
//! The texts are kept as given; what they mean is computed here, once, and kept as a layout state.
//! Without a layout [`advise::distribute::choose`] decides which servers take part, where the first
//! subfile goes and how long a stripe is, from bytes stored, room, load and what the creator expects:
//!
//! - An array of at least one dimension is cut into blocks along its slowest dimension (the first in
//!   C order, the last in Fortran order), one block per server that takes part, but no more blocks
//!   than that dimension has indices.
//! - A scalar is one subfile.
//! - Plain bytes, and arrays without bytes, are striped; `striped(1MiB)` over all servers if nothing
//!   is known and they are alike.
//!
//! A text that deals blocks and does not say over how many servers, as `striped(64KiB)`, means all
//! that take subfiles. Where such a text leaves the servers open, the first one rotates from file to
//! file (see `member`).

use advise::distribute::Choice;
use layout::{ArrayType, ByteSize, Layout, Order, Partition, Pattern};

use super::record::{By, Distribution};
use crate::error::MetaError;

/// Most subfiles of a file. A grid with more chunks says over how many servers they are dealt.
pub const MAX_SUBFILES: u64 = 1 << 16;

/// A partition, and the texts it comes from.
#[derive(Clone, Debug)]
pub(crate) struct LayoutChoice {
    pub(crate) text: String,
    pub(crate) partition: Partition,
    /// Server numbers by subfile, if the text lists them.
    pub(crate) listed: Option<Vec<u64>>,
    /// The decision, if there was no text.
    pub(crate) choice: Option<Choice>,
    /// Who gave the text, if it was not the creator.
    pub(crate) given_by: Option<String>,
    /// The servers that may be used, if not all.
    pub(crate) among: Option<Vec<u64>>,
}

impl LayoutChoice {
    /// Who said it, and why.
    pub(crate) fn distribution(&self) -> Distribution {
        match &self.choice {
            None => {
                let why = self.given_by.as_deref();
                Distribution::given(why.unwrap_or("given by its creator"))
            }
            Some(choice) => Distribution {
                by: By::Rule,
                why: match &self.among {
                    None => format!("by rule: {}", choice.why),
                    Some(list) => {
                        format!("by rule: {}, of servers {list:?} as hinted", choice.why)
                    }
                },
            },
        }
    }
}

/// What a text means, and the text in full.
fn parse(text: String, servers: usize) -> Result<(String, Layout), MetaError> {
    let error = match text.parse() {
        Ok(layout) => return Ok((text, layout)),
        Err(error) => error,
    };
    // The error of the text as it was written says more than that of the completed one.
    let full = format!("{} over {servers}", text.trim());
    match full.parse() {
        Ok(layout) => Ok((full, layout)),
        Err(_) => Err(MetaError::LayoutText(error)),
    }
}

/// The layout for a file that holds `array` or plain bytes, when `servers` take subfiles.
pub(crate) fn choose(
    array: Option<&ArrayType>,
    text: Option<&str>,
    servers: usize,
    decide: impl FnOnce() -> Option<Choice>,
) -> Result<LayoutChoice, MetaError> {
    let choice = match text {
        Some(_) => None,
        None => Some(decide().ok_or(MetaError::NoServer)?),
    };
    let text = match (text, &choice) {
        (Some(text), _) => text.to_owned(),
        (None, Some(choice)) => default_text(array, choice),
        (None, None) => return Err(MetaError::NoServer),
    };
    let (text, layout) = parse(text, servers)?;
    if layout.picked().is_some() {
        return Err(MetaError::argument(
            "layout",
            "names one element; that is a view, a file needs all of them",
        ));
    }
    let applied = match array.filter(|a| a.bytes() > 0) {
        Some(array) => layout.on_array(array)?,
        None => layout.on_bytes()?,
    };
    if applied.count() > MAX_SUBFILES {
        return Err(MetaError::TooLarge(
            "the number of subfiles; deal the chunks, as in `chunks(256,256) over 4`",
        ));
    }
    let elements = applied.elements()?;
    let partition = Partition::from_start(Pattern::new(elements.period, elements.sets)?);
    let listed = layout.places().map(<[u64]>::to_vec);
    Ok(LayoutChoice {
        text,
        partition,
        listed,
        choice,
        given_by: None,
        among: None,
    })
}

fn default_text(array: Option<&ArrayType>, choice: &Choice) -> String {
    let servers = choice.striping.servers().len() as u64;
    let Some(array) = array.filter(|a| a.bytes() > 0) else {
        let stripe = ByteSize(choice.striping.block());
        return format!("striped({stripe}) over {servers}");
    };
    if array.dimensions() == 0 {
        return "whole".to_owned();
    }
    let slowest = match array.order() {
        Order::C => 0,
        Order::Fortran => array.dimensions() - 1,
    };
    let cuts: Vec<&str> = (0..array.dimensions())
        .map(|d| if d == slowest { "block" } else { "*" })
        .collect();
    let onto = servers.min(array.extents()[slowest]);
    format!("({}) onto {onto}", cuts.join(", "))
}

#[cfg(test)]
mod tests {
    use advise::distribute::{Knowledge, ServerKnowledge, choose as decide};

    use super::*;

    #[track_caller]
    fn text(array: Option<&str>, servers: usize) -> String {
        let known = Knowledge {
            servers: (0..servers as u64)
                .map(|server| ServerKnowledge {
                    server,
                    ..ServerKnowledge::default()
                })
                .collect(),
            ..Knowledge::default()
        };
        let array = array.map(|text| text.parse().unwrap());
        let chosen = choose(array.as_ref(), None, servers, || decide(&known)).unwrap();
        assert!(chosen.partition.len() <= servers);
        chosen.text
    }

    #[test]
    fn default_rule() {
        assert_eq!(text(None, 3), "striped(1MiB) over 3");
        assert_eq!(text(Some("f64[100,7]"), 4), "(block, *) onto 4");
        assert_eq!(text(Some("f64[100,7]:fortran"), 4), "(*, block) onto 4");
        assert_eq!(text(Some("u8[3,5]"), 4), "(block, *) onto 3");
        assert_eq!(text(Some("u8[0,5]"), 4), "striped(1MiB) over 4");
        assert_eq!(text(Some("u8[10]"), 1), "(block) onto 1");
    }

    #[test]
    fn what_is_no_partition_is_refused() {
        let refused = |array: Option<&str>, layout| {
            let array = array.map(|text| text.parse().unwrap());
            let chosen = choose(array.as_ref(), Some(layout), 4, || None);
            chosen.unwrap_err().to_string()
        };
        let message = refused(Some("u8[4,4]"), "slice[0:2, :]");
        assert!(message.contains("byte 8"), "{message}");
        let message = refused(Some("u8[4,4]"), "(block, *) onto 2 [1]");
        assert!(message.contains("that is a view"), "{message}");
        let message = refused(None, "(block, *) onto 2");
        assert!(message.contains("cuts an array"), "{message}");
        let message = refused(Some("u8[4096,4096]"), "chunks(4,4)");
        assert!(message.contains("deal the chunks"), "{message}");
        let message = refused(None, "stripd(4)");
        assert!(message.contains("character"), "{message}");
    }
}
