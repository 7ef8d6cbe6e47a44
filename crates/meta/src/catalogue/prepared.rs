//! Meanings of texts that were found out before the transaction.
//!
//! What a layout text means can take long to say: it may name a million segments. The thread that runs
//! transactions waits for nobody, so it does not parse. An operation that meets a text whose meaning it was not
//! given changes nothing and says which text it [wants](LayoutQuestion); the thread that asked finds the meaning out in its own
//! time and asks again. Which texts count (the caller's, or those of hints above the file) is known only inside,
//! and may change between two attempts, so there can be several.
//!
//! Without preparation ([`Batch::prepare`](super::Batch::prepare) was not called) texts are parsed where they are met.

use std::collections::HashMap;

use layout::{ArrayType, Layout};

use super::Batch;
use super::choose_layout::{LayoutChoice, choose};
use crate::error::MetaError;

/// A text whose meaning is wanted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LayoutQuestion(Question);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Question {
    /// What a layout is for which array, when so many servers take subfiles.
    Layout {
        array: Option<String>,
        text: String,
        servers: usize,
    },
    /// What an array is.
    Array(String),
    /// Whether a text is a layout.
    IsLayout(String),
}

#[derive(Clone, Debug)]
enum Meaning {
    Layout(Result<LayoutChoice, MetaError>),
    Array(Result<ArrayType, MetaError>),
    IsLayout(bool),
}

impl Question {
    fn meaning(&self) -> Meaning {
        let array = |text: &str| text.parse::<ArrayType>().map_err(MetaError::from);
        match self {
            Question::Layout {
                array: of,
                text,
                servers,
            } => {
                let of = of.as_deref().map(array).transpose();
                let chosen =
                    of.and_then(|of| choose(of.as_ref(), Some(text.as_str()), *servers, || None));
                Meaning::Layout(chosen)
            }
            Question::Array(text) => Meaning::Array(array(text)),
            Question::IsLayout(text) => Meaning::IsLayout(text.parse::<Layout>().is_ok()),
        }
    }
}

/// Meanings, wrong texts included.
#[derive(Clone, Debug, Default)]
pub struct LayoutMeanings(HashMap<Question, Meaning>);

impl LayoutMeanings {
    /// Finds out what a text means. Takes time in proportion to what it describes.
    pub fn find_out(&mut self, LayoutQuestion(question): LayoutQuestion) {
        let meaning = question.meaning();
        self.0.insert(question, meaning);
    }
}

impl Batch<'_> {
    fn meaning(&mut self, question: Question) -> Result<Meaning, MetaError> {
        let Some(prepared) = &self.prepared else {
            return Ok(question.meaning());
        };
        match prepared.0.get(&question) {
            Some(meaning) => Ok(meaning.clone()),
            None => {
                self.wanted = Some(LayoutQuestion(question));
                Err(MetaError::Unprepared)
            }
        }
    }

    /// The layout that a text says for an array, when so many servers take subfiles.
    pub(crate) fn layout_of(
        &mut self,
        array: Option<&str>,
        text: &str,
        servers: usize,
    ) -> Result<LayoutChoice, MetaError> {
        let question = Question::Layout {
            array: array.map(str::to_owned),
            text: text.to_owned(),
            servers,
        };
        match self.meaning(question)? {
            Meaning::Layout(chosen) => chosen,
            other => unreachable!("asked for a layout, got {other:?}"),
        }
    }

    /// The array that a text says.
    pub(crate) fn array_of(&mut self, text: &str) -> Result<ArrayType, MetaError> {
        match self.meaning(Question::Array(text.to_owned()))? {
            Meaning::Array(array) => array,
            other => unreachable!("asked for an array, got {other:?}"),
        }
    }

    /// Whether a text is a layout.
    pub(crate) fn is_layout(&mut self, text: &str) -> Result<bool, MetaError> {
        match self.meaning(Question::IsLayout(text.to_owned()))? {
            Meaning::IsLayout(is_layout) => Ok(is_layout),
            other => unreachable!("asked whether it is a layout, got {other:?}"),
        }
    }
}
