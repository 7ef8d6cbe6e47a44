//! Reading what users write: arrays, layouts, views and sizes, with errors that name the argument.
//! The languages themselves are in the `layout` crate; here they are applied to an array.

use std::time::Duration;

use falls::{FallsSet, Flaw, Periodic};
use layout::{
    ArrayType, ByteSize, ElementType, Layout, LayoutErrorKind, LayoutForm, Order, Partition,
    Pattern, View,
};

use crate::Error;
use crate::subject::{Elements, Subject, TITLE, cut_in_the_middle};

/// Most elements of a layout that are computed at once: about half a gigabyte.
const MOST_ELEMENTS: u64 = 1 << 20;

/// An array such as `f64[6,8]`, with at least one byte.
pub fn array(text: &str) -> Result<ArrayType, Error> {
    let array = text
        .parse::<ArrayType>()
        .map_err(|error| format!("--array: {error}"))?;
    if array.bytes() == 0 {
        let advice = match array.element().size() {
            0 => "entries of at least 1 byte",
            _ => "extents of at least 1",
        };
        return Err(format!("--array: {array} has no bytes; give {advice}").into());
    }
    Ok(array)
}

/// A plain file of a size such as `1MiB`, as an array of bytes.
pub fn file(text: &str) -> Result<ArrayType, Error> {
    match size("--bytes", text)? {
        0 => Err(no_size("--bytes", text, "is nothing")),
        bytes => Ok(ArrayType::new(ElementType::U8, [bytes], Order::C)?),
    }
}

/// A size such as `1MiB`; `role` names the argument in errors.
pub fn size(role: &str, text: &str) -> Result<u64, Error> {
    match text.parse::<ByteSize>() {
        Err(error) if error.message().contains("2^63") => Err(no_size(role, text, "reaches 2^63")),
        Err(_) => Err(no_size(role, text, "is no size")),
        Ok(ByteSize(bytes)) => Ok(bytes),
    }
}

fn no_size(role: &str, text: &str, what: &str) -> Error {
    let shown = cut_in_the_middle(text, TITLE);
    format!("{role}: '{shown}' {what}; give a size such as 4096, 64KiB or 1MiB").into()
}

/// Reads a size such as 64MiB on the command line.
pub fn size_argument(text: &str) -> Result<u64, String> {
    match text.parse::<ByteSize>() {
        Ok(ByteSize(0)) => Err("is nothing; give a size such as 64MiB".into()),
        Ok(ByteSize(bytes)) => Ok(bytes),
        Err(_) => Err("is no size; give one such as 4096, 64KiB or 1GiB".into()),
    }
}

/// Reads a time such as 500ms on the command line.
pub fn duration_argument(text: &str) -> Result<Duration, String> {
    let wrong = || "is no time; give one such as 250us, 500ms, 2s or 1m".to_owned();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    let micros = match &text[digits.len()..] {
        "us" => 1,
        "ms" => 1_000,
        "s" => 1_000_000,
        "m" => 60_000_000,
        "h" => 3_600_000_000,
        _ => return Err(wrong()),
    };
    match number.checked_mul(micros) {
        Some(0) => Err("is no time at all; give 1us at least".into()),
        Some(micros) => Ok(Duration::from_micros(micros)),
        None => Err(wrong()),
    }
}

/// A number such as the 3 of `--element 3`; `role` names the argument in errors.
pub fn number(role: &str, text: &str) -> Result<u64, Error> {
    text.trim().parse().map_err(|_| {
        let shown = cut_in_the_middle(text, TITLE);
        format!("{role}: '{shown}' is no number; give 0 or more").into()
    })
}

/// A layout on an array as a partition; `role` names the argument in errors. What cannot cover the
/// array is a view: slices, picked elements (`... [2]`), a single element with holes.
pub fn subject(role: &str, text: &str, array: &ArrayType) -> Result<Subject, Error> {
    let layout = parse(role, text)?;
    if layout.picked().is_some() || matches!(layout.form(), LayoutForm::Slice(_)) {
        return views_of(role, &layout, array);
    }
    let (period, sets) = elements_of(role, &layout, array)?;
    let single = sets.len() == 1;
    let pattern = match Pattern::new(period, sets) {
        Ok(pattern) => pattern,
        Err(error) if single && is_gap(&error) => return views_of(role, &layout, array),
        Err(error) => {
            let hint = match error.kind() {
                LayoutErrorKind::Pattern(_) => hint_at_views(role),
                _ => "",
            };
            return Err(format!("{}{hint}", named(role, &layout)(error)).into());
        }
    };
    let elements = Elements::Partition(Partition::from_start(pattern));
    Ok(Subject::new(layout.to_string(), array, elements))
}

/// A layout on an array as views, which may have holes and overlap.
pub fn views(role: &str, text: &str, array: &ArrayType) -> Result<Subject, Error> {
    views_of(role, &parse(role, text)?, array)
}

/// One element of a layout as a view; no other element is computed.
pub fn element(role: &str, text: &str, array: &ArrayType, element: u64) -> Result<Subject, Error> {
    let layout = parse(role, text)?;
    let named = named(role, &layout);
    let applied = layout.on_array(array).map_err(&named)?;
    let total = applied.count();
    let there = match layout.picked() {
        Some(picked) => element == picked,
        None => element < total,
    };
    if !there {
        let known = match (layout.picked(), total) {
            (Some(only), _) => format!("only element {only} was picked"),
            (None, 1) => "there is only element 0".to_owned(),
            (None, _) => format!("elements are numbered 0 to {}", total.saturating_sub(1)),
        };
        return Err(format!("there is no element {element}: {known}").into());
    }
    let position = if layout.picked().is_some() {
        0
    } else {
        element
    };
    let set = applied.element(position).map_err(&named)?;
    let view = Periodic::new(0, applied.period(), set).map_err(|error| named(error.into()))?;
    let elements = Elements::Views(vec![View::from(view)]);
    Ok(Subject {
        picked: Some(usize::try_from(element)?),
        total,
        ..Subject::new(layout.to_string(), array, elements)
    })
}

/// A layout on an array as a partition, which it must be.
pub fn partition(role: &str, text: &str, array: &ArrayType) -> Result<Subject, Error> {
    let subject = subject(role, text, array)?;
    match subject.elements {
        Elements::Partition(_) => Ok(subject),
        Elements::Views(_) => Err(format!(
            "{role}: `{}` is a view, not a partition; give a layout that covers the array{}",
            subject.title(),
            if role == "--from" {
                ", or --view instead of --from"
            } else {
                ""
            }
        )
        .into()),
    }
}

fn parse(role: &str, text: &str) -> Result<Layout, Error> {
    text.parse::<Layout>()
        .map_err(|error| format!("{role}: {error}").into())
}

fn named(role: &str, layout: &Layout) -> impl Fn(layout::LayoutError) -> Error {
    let start = format!(
        "{role}: `{}`: ",
        cut_in_the_middle(&layout.to_string(), TITLE)
    );
    move |error| format!("{start}{error}").into()
}

fn is_gap(error: &layout::LayoutError) -> bool {
    matches!(error.kind(), LayoutErrorKind::Pattern(Flaw::Gap { .. }))
}

/// What to do about elements that are no partition.
fn hint_at_views(role: &str) -> &'static str {
    match role {
        "layout" => "; add --view to take the elements as views, which may have holes and overlap",
        "--from" => {
            "; give it as --view LAYOUT instead of --from, views may have holes and overlap"
        }
        _ => "",
    }
}

/// The period and all elements of a layout, if they are not too many.
fn elements_of(
    role: &str,
    layout: &Layout,
    array: &ArrayType,
) -> Result<(u64, Vec<FallsSet>), Error> {
    let named = named(role, layout);
    let applied = layout.on_array(array).map_err(&named)?;
    let count = applied.count();
    if count > MOST_ELEMENTS {
        let advice = match role {
            "layout" => "pick one with a trailing [k] or --element K",
            "--view" => "pick one with a trailing [k]",
            _ => "give a layout with fewer",
        };
        return Err(format!(
            "{role}: `{}` has {count} elements, too many to take at once (at most {MOST_ELEMENTS}); {advice}",
            cut_in_the_middle(&layout.to_string(), TITLE)
        )
        .into());
    }
    let elements = applied.elements().map_err(&named)?;
    Ok((elements.period, elements.sets))
}

fn views_of(role: &str, layout: &Layout, array: &ArrayType) -> Result<Subject, Error> {
    let (period, sets) = elements_of(role, layout, array)?;
    let views: Result<Vec<View>, _> = sets
        .into_iter()
        .map(|set| Periodic::new(0, period, set).map(View::from))
        .collect();
    let views = views.map_err(|error| named(role, layout)(error.into()))?;
    Ok(Subject {
        picked: layout.picked().map(usize::try_from).transpose()?,
        ..Subject::new(layout.to_string(), array, Elements::Views(views))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units_or_are_refused_by_name() {
        assert_eq!(file("1MiB").expect("a size").bytes(), 1 << 20);
        assert_eq!(file("17").expect("a size").bytes(), 17);
        for bad in ["", "-1", "1MB", "0", "1 2", "99999999999GiB", "1)[2"] {
            let error = file(bad).expect_err(bad).to_string();
            assert!(error.starts_with("--bytes: '"), "{bad}: {error}");
        }
    }

    #[test]
    fn errors_name_the_argument() {
        let array = array("f64[6,8]").expect("an array");
        let error = |text: &str| subject("LAYOUT", text, &array).expect_err(text).to_string();
        assert!(error("(block, *) onto").starts_with("LAYOUT: expected"));
        assert!(error("(block) onto 4").starts_with("LAYOUT: `(block) onto 4`: "));
    }
}
