//! What the fuzz target `hostile_messages` does with its input, shared with a plain test on fixed seeds
//! (`hostile_messages.rs`).
//!
//! Any bytes become trees, and these the content of every message that carries trees. What is encoded is decoded to the
//! same bytes; with some of them changed it is refused, or is again what the encoder writes.

use layout::{FileOffset, Partition, Pattern, View};
use testkit::hostile::{self, Source};
use wire::message::catalogue::{LayOutByViews, NamedView, PutView};
use wire::message::directed::{Lead, RankRange};
use wire::message::file::SetView;
use wire::message::{self, Bytes, KINDS, Request};
use wire::{ClientId, FileId, HandleId, describe};

use super::harness;

/// Feeds one input.
pub(crate) fn messages_with_trees(data: &[u8]) {
    let source = &mut Source::new(data);
    let views: Vec<View> = (0..=source.below(3))
        .map(|_| View::from(hostile::periodic(source)))
        .collect();
    let mut description = Vec::new();
    describe::put_view(&mut description, &views[0]);
    control::<SetView>(
        source,
        &SetView {
            view: source.clone().number(),
            file: FileId(source.clone().number()),
            capability: Bytes(vec![1; 40]),
            description_bytes: description.len() as u64,
            description: Bytes(description.clone()),
        },
    );
    control::<PutView>(
        source,
        &PutView {
            path: "/f".into(),
            name: "bad".into(),
            view: NamedView {
                text: views[0].bytes().set().to_string(),
                view: views[0].clone(),
            },
        },
    );
    control::<LayOutByViews>(
        source,
        &LayOutByViews {
            handle: HandleId(1),
            handles: views.iter().map(|_| HandleId(2)).collect(),
            views: views.clone(),
        },
    );
    let rank = |view: usize| RankRange {
        client: ClientId(view as u64),
        view: view as u32,
        lo: 0,
        hi: views[view].bytes().size(),
    };
    let ranks = (0..views.len()).map(rank).collect();
    control::<Lead>(
        source,
        &Lead {
            view: 1,
            operation: 2,
            writes: false,
            by_record: true,
            block_bytes: u64::MAX,
            blocks: u64::MAX,
            epoch: 0,
            version: Bytes(Vec::new()),
            ranks,
            views: views.clone(),
        },
    );
    // As part of what servers tell each other and clients: two subfiles, one the rest of the other.
    let element = views[0].bytes();
    if let Ok(rest) = element.set().complement(element.period())
        && let Ok(pattern) = Pattern::new(element.period(), vec![element.set().clone(), rest])
        && let Ok(partition) = Partition::new(FileOffset(element.displacement()), pattern)
    {
        let mut bytes = Vec::new();
        describe::put_partition(&mut bytes, &partition);
        let read = describe::partition(&mut wire::Reader::new(&bytes));
        assert_eq!(read.as_ref(), Ok(&partition));
        everywhere(source, bytes);
    }
    everywhere(source, description);
}

/// A message as it is, and damaged.
fn control<R: Request>(source: &mut Source<'_>, request: &R) {
    let mut bytes = Vec::new();
    message::encode(request, &mut bytes);
    let kind = KINDS.iter().find(|kind| kind.number == R::KIND);
    let kind = kind.expect("a kind of the table");
    assert_eq!(
        (kind.recode_request)(&bytes).as_ref(),
        Ok(&bytes),
        "{}",
        R::NAME
    );
    for _ in 0..8 {
        let mut damaged = bytes.clone();
        damage(source, &mut damaged);
        harness::control(kind, &damaged);
    }
}

/// Bytes where any kind expects its own.
fn everywhere(source: &mut Source<'_>, mut bytes: Vec<u8>) {
    for _ in 0..4 {
        let kind = &KINDS[source.below(KINDS.len() as u64) as usize];
        harness::control(kind, &bytes);
        damage(source, &mut bytes);
    }
}

fn damage(source: &mut Source<'_>, bytes: &mut Vec<u8>) {
    let at = source.below(bytes.len() as u64) as usize;
    match source.below(3) {
        0 => bytes.truncate(at),
        1 => bytes.insert(at, source.number() as u8),
        _ if bytes.is_empty() => {}
        _ => bytes[at] ^= 1 << source.below(8),
    }
}
