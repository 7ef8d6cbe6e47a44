//! Meanings of texts that were found out before the transaction.
//!
//! What a layout text means can take long to say: it may name a million segments. The thread that runs
//! transactions waits for nobody, so it does not parse. An operation that meets a text whose meaning it was not
//! given changes nothing and says which text it [wants](Wanted); the thread that asked finds the meaning out in its own
//! time and asks again. Which texts count (the caller's, or those of hints above the file) is known only inside,
//! and may change between two attempts, so there can be several.
//!
//! Without preparation ([`Batch::prepare`](super::Batch::prepare) was not called) texts are parsed where they are met.

use std::collections::HashMap;

use super::choose_layout::{LayoutChoice, choose};
use crate::error::MetaError;

/// A text whose meaning is wanted: for which array, and when so many servers take subfiles.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LayoutQuestion {
    array: Option<String>,
    text: String,
    servers: usize,
}

impl LayoutQuestion {
    pub(crate) fn new(array: Option<&str>, text: &str, servers: usize) -> Self {
        LayoutQuestion {
            array: array.map(str::to_owned),
            text: text.to_owned(),
            servers,
        }
    }

    fn meaning(&self) -> Result<LayoutChoice, MetaError> {
        choose(
            self.array.as_deref(),
            Some(&self.text),
            self.servers,
            || None,
        )
    }
}

/// Meanings, wrong texts included.
#[derive(Clone, Debug, Default)]
pub struct LayoutMeanings(HashMap<LayoutQuestion, Result<LayoutChoice, MetaError>>);

impl LayoutMeanings {
    /// Finds out what a text means. Takes time in proportion to what it describes.
    pub fn find_out(&mut self, wanted: LayoutQuestion) {
        let meaning = wanted.meaning();
        self.0.insert(wanted, meaning);
    }

    pub(crate) fn get(&self, wanted: &LayoutQuestion) -> Option<&Result<LayoutChoice, MetaError>> {
        self.0.get(wanted)
    }
}
