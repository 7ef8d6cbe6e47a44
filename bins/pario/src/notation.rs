//! Reading what users write: arrays, layouts, views and sizes, with errors that name the argument.
//! The languages themselves are in the `layout` crate; here they are applied to an array.

use falls::Periodic;
use layout::{ArrayType, ElementType, Layout, LayoutForm, Order, Partition, Pattern, View};

use crate::commands::Error;
use crate::subject::{Elements, Subject};

/// An array such as `f64[6,8]`, with at least one byte.
pub(crate) fn array(text: &str) -> Result<ArrayType, Error> {
    let array = text
        .parse::<ArrayType>()
        .map_err(|error| format!("--array: {error}"))?;
    if array.bytes() == 0 {
        return Err(format!("--array: {array} has no bytes; give extents of at least 1").into());
    }
    Ok(array)
}

/// A plain file of a size such as `1MiB`, as an array of bytes.
pub(crate) fn file(text: &str) -> Result<ArrayType, Error> {
    let refuse = |what: &str| -> Error {
        format!("--bytes: '{text}' {what}; give a size such as 4096, 64KiB or 1MiB").into()
    };
    // The notation of arrays has sizes, in the type of their entries.
    let entry = format!("bytes({text})[1]").parse::<ArrayType>();
    match entry.map(|array| array.element().size()) {
        Err(error) if error.message().contains("2^63") => Err(refuse("reaches 2^63")),
        Err(_) => Err(refuse("is no size")),
        Ok(0) => Err(refuse("is nothing")),
        Ok(bytes) => Ok(ArrayType::new(ElementType::U8, [bytes], Order::C)?),
    }
}

/// A layout on an array as a partition; `role` names the argument in errors. Slices and picked
/// elements (`... [2]`), which cannot cover the array, are views.
pub(crate) fn subject(role: &str, text: &str, array: &ArrayType) -> Result<Subject, Error> {
    let layout = parse(role, text)?;
    if layout.picked().is_some() || matches!(layout.form(), LayoutForm::Slice(_)) {
        return views_of(role, &layout, array);
    }
    let partition = partition_of(role, &layout, array)?;
    Ok(Subject {
        text: layout.to_string(),
        array: array.clone(),
        is_file: false,
        elements: Elements::Partition(partition),
    })
}

/// A layout on an array as views, which may have holes and overlap.
pub(crate) fn views(role: &str, text: &str, array: &ArrayType) -> Result<Subject, Error> {
    views_of(role, &parse(role, text)?, array)
}

/// A layout on an array as a partition, which it must be.
pub(crate) fn partition(role: &str, text: &str, array: &ArrayType) -> Result<Subject, Error> {
    let subject = subject(role, text, array)?;
    match subject.elements {
        Elements::Partition(_) => Ok(subject),
        Elements::Views(_) => Err(format!(
            "{role}: `{}` is a view, not a partition; give a layout that covers the array",
            subject.text
        )
        .into()),
    }
}

fn parse(role: &str, text: &str) -> Result<Layout, Error> {
    text.parse::<Layout>()
        .map_err(|error| format!("{role}: {error}").into())
}

fn named(role: &str, text: &impl std::fmt::Display) -> impl Fn(layout::LayoutError) -> Error {
    let start = format!("{role}: `{text}`: ");
    move |error| format!("{start}{error}").into()
}

fn partition_of(role: &str, layout: &Layout, array: &ArrayType) -> Result<Partition, Error> {
    let named = named(role, layout);
    let elements = layout
        .on_array(array)
        .and_then(|applied| applied.elements());
    let elements = elements.map_err(&named)?;
    let pattern = Pattern::new(elements.period, elements.sets).map_err(&named)?;
    Ok(Partition::from_start(pattern))
}

fn views_of(role: &str, layout: &Layout, array: &ArrayType) -> Result<Subject, Error> {
    let named = named(role, layout);
    let elements = layout
        .on_array(array)
        .and_then(|applied| applied.elements());
    let elements = elements.map_err(&named)?;
    let views: Result<Vec<View>, _> = elements
        .sets
        .into_iter()
        .map(|set| Periodic::new(0, elements.period, set).map(View::from))
        .collect();
    Ok(Subject {
        text: layout.to_string(),
        array: array.clone(),
        is_file: false,
        elements: Elements::Views(views.map_err(|error| named(error.into()))?),
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
