//! What the fuzz target `hostile_trees` does with its input, shared with a plain test that feeds it from fixed seeds
//! (`hostile_trees.rs`), so that `cargo test` exercises it too.
//!
//! Any bytes become a view and a subfile. Everything a server asks about the two before bytes move is asked: each answer
//! comes within the steps that were given, and answers agree with each other. It panics when one does not.

use falls::{Budget, Meeting, OutOfSteps, Periodic, Steps};
use kernels::Share;
use testkit::hostile::{self, Source};

/// Steps for one input: little, so that running out happens.
const STEPS: u64 = 1 << 14;
/// Bytes of a request.
const MOST: u64 = 1 << 12;

/// Feeds one input.
pub(crate) fn hostile_trees(data: &[u8]) {
    let source = &mut Source::new(data);
    let view = hostile::periodic(source);
    let subfile = match source.below(3) {
        0 => hostile::periodic(source),
        1 => stripe(source),
        _ => rest(&hostile::periodic(source)),
    };
    let lo = source.any_size(falls::MAX_OFFSET);
    let file = match source.below(2) {
        0 => lo..lo.saturating_add(source.any_size(1 << 62)),
        _ => view.displacement()..falls::MAX_OFFSET,
    };
    let usual = Share::new(&view, &subfile);
    let lazy = Share::of(Meeting::with_budget(&view, &subfile, Budget(0)));
    let counted = ask(&usual, file.clone());
    let again = ask(&lazy, file);
    if let (Some(a), Some(b)) = (counted, again) {
        assert_eq!(a.min(MOST + 1), b.min(MOST + 1), "both forms count alike");
    }
}

/// Every n-th block, as a layout has them.
fn stripe(source: &mut Source<'_>) -> Periodic {
    let unit = source.pick(&[1, 7, 4096, 65_536, 1 << 20]);
    let (count, index) = (1 + source.below(64), source.below(64));
    let index = index % count;
    let block = falls::FallsSet::segment(index * unit, unit).expect("a stripe");
    Periodic::new(0, count * unit, block).expect("inside its period")
}

/// What an element leaves to the other of two subfiles, if that can be said.
fn rest(element: &Periodic) -> Periodic {
    let other = element.set().complement(element.period());
    let other = other.and_then(|set| Periodic::new(element.displacement(), element.period(), set));
    other.unwrap_or_else(|_| Periodic::everything())
}

/// Counts as a server does, and asks about what was counted.
fn ask(share: &Share, file: std::ops::Range<u64>) -> Option<u64> {
    let mut steps = Steps::new(STEPS);
    let counted = share.count_at_most(file.clone(), MOST, &mut steps);
    assert!(steps.left() <= STEPS);
    let count = match counted {
        Ok(count) => count,
        Err(OutOfSteps) => {
            assert!(!share.is_symbolic(), "written down, so nothing is searched");
            return None;
        }
    };
    let mut steps = Steps::new(STEPS);
    match share.first_within(file.clone(), &mut steps) {
        Ok(first) => assert_eq!(first.is_some(), count > 0),
        Err(OutOfSteps) => panic!("counting found more than looking for the first"),
    }
    if count > MOST {
        return Some(count);
    }
    // All of it was counted, so all of it can be walked.
    let end = share.after(file.clone(), count);
    assert_eq!(share.count(file.start..end), count);
    let mut sum = 0;
    share.each_run(file.clone(), |_, _, len| {
        sum += len;
        true
    });
    assert_eq!(sum, count);
    // Where nothing is, any answer is right; it only has to come.
    let _ = share.right_run(file.clone());
    Some(count)
}
