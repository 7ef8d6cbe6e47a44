//! Hints between what travels (`wire`) and what is judged (`advise`), for clients and the metadata manager alike.
//!
//! Both sides name the same sources; neither crate knows the other, and who judges and who sends must not
//! differ in what a source is. Left to others: which hint counts (`advise::hints::judge`).

use advise::hints::{Source, SourcedHint};
use wire::message::hints::{GivenHint, HintSource};

/// A source that has travelled.
pub fn source_of(source: HintSource) -> Source {
    match source {
        HintSource::Profile => Source::Profile,
        HintSource::Directory => Source::Directory,
        HintSource::File => Source::File,
        HintSource::Compiler => Source::Compiler,
        HintSource::Connect => Source::Connect,
        HintSource::Program => Source::Program,
        HintSource::Dynamic => Source::Dynamic,
    }
}

fn travelling_source(source: Source) -> HintSource {
    match source {
        Source::Profile => HintSource::Profile,
        Source::Directory => HintSource::Directory,
        Source::File => HintSource::File,
        Source::Compiler => HintSource::Compiler,
        Source::Connect => HintSource::Connect,
        Source::Program => HintSource::Program,
        Source::Dynamic => HintSource::Dynamic,
    }
}

/// A hint that has travelled.
pub fn given_of(hint: &GivenHint) -> SourcedHint {
    SourcedHint::new(source_of(hint.source), &hint.name, &hint.value).at(&hint.place, hint.distance)
}

/// A hint as it travels.
pub fn travelling(given: &SourcedHint) -> GivenHint {
    GivenHint {
        name: given.name.clone(),
        value: given.value.clone(),
        source: travelling_source(given.source),
        place: given.place.clone(),
        distance: given.distance,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_is_the_same_after_its_way_and_sources_keep_their_order() {
        let sources = [
            Source::Profile,
            Source::Directory,
            Source::File,
            Source::Compiler,
            Source::Connect,
            Source::Program,
            Source::Dynamic,
        ];
        let mut before = None;
        for (distance, source) in sources.into_iter().enumerate() {
            let given =
                SourcedHint::new(source, "striping_unit", "65536").at("/a/b", distance as u32);
            let hint = travelling(&given);
            assert_eq!(given_of(&hint), given);
            // The stronger source has the higher number on both sides.
            let number = hint.source as u64;
            assert!(before.is_none_or(|(s, n)| s < source && n < number));
            before = Some((source, number));
        }
    }
}
