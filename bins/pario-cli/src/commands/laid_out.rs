//! The arguments that say what a new file holds and how it is cut, and what they mean for a file that
//! is there already: it keeps what it has, and a user who asks for something else is told.

use clap::Args;
use client::{Client, OpenOptions};
use layout::{ArrayType, Layout};

use super::Error;
use super::connection::refused;
use super::names::{absolute, shown};
use console::notation;
use console::subject::{TITLE, cut_in_the_middle};

/// `--array` and `--layout` of a new file.
#[derive(Args, Clone, Debug)]
pub(crate) struct LaidOut {
    /// What a new file holds, such as 'f64[4096,4096]' [default: plain bytes]
    #[arg(long, value_name = "ARRAY")]
    pub(crate) array: Option<String>,

    /// How a new file is cut, such as '(block, *) onto 4' [default: over all servers]
    #[arg(long, value_name = "LAYOUT")]
    pub(crate) layout: Option<String>,
}

impl LaidOut {
    /// Refuses what cannot be read or does not fit, before anything is sent.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let array = self.array.as_deref().map(notation::array).transpose()?;
        let Some(text) = &self.layout else {
            return Ok(());
        };
        check_layout(text, array.as_ref())
    }

    /// With what is given.
    pub(crate) fn apply(&self, mut options: OpenOptions) -> OpenOptions {
        if let Some(array) = &self.array {
            options = options.array(array.as_str());
        }
        if let Some(layout) = &self.layout {
            options = options.layout(layout.as_str());
        }
        options
    }

    /// Refuses if a file that is there has something else.
    pub(crate) fn compare(&self, client: &Client, path: &str) -> Result<(), Error> {
        if self.array.is_none() && self.layout.is_none() {
            return Ok(());
        }
        let found = client.attributes(path).map_err(refused)?;
        let path = shown(&absolute(path));
        if let Some(asked) = &self.array
            && !is_same::<ArrayType>(asked, found.array.as_deref())
        {
            let holds = found.array.as_deref().unwrap_or("plain bytes");
            return Err(format!(
                "--array: {path} is there already and holds {holds}; leave --array away, or remove \
                 the file first with `pario rm`"
            )
            .into());
        }
        if let Some(asked) = &self.layout
            && !is_same::<Layout>(asked, found.layout.as_deref())
        {
            let has = cut_in_the_middle(found.layout.as_deref().unwrap_or("none"), TITLE);
            return Err(format!(
                "--layout: {path} is there already with layout {has}, and keeps it; leave --layout \
                 away, or change it with `pario relayout`"
            )
            .into());
        }
        Ok(())
    }
}

/// Refuses a layout that cannot be read, is a view, or does not fit the array.
pub(crate) fn check_layout(text: &str, array: Option<&ArrayType>) -> Result<(), Error> {
    let layout: Layout = text.parse().map_err(|error| format!("--layout: {error}"))?;
    let shown = cut_in_the_middle(&layout.to_string(), TITLE);
    if layout.is_view() {
        return Err(format!(
            "--layout: `{shown}` is a view, not a partition; give a layout that covers the file"
        )
        .into());
    }
    let applied = match array {
        Some(array) => layout.on_array(array),
        None => layout.on_bytes(),
    };
    applied
        .map(drop)
        .map_err(|error| format!("--layout: `{shown}`: {error}").into())
}

/// Whether two notations mean the same.
fn is_same<T: std::str::FromStr + ToString>(asked: &str, found: Option<&str>) -> bool {
    let canonical = |text: &str| match text.parse::<T>() {
        Ok(value) => value.to_string(),
        Err(_) => text.to_owned(),
    };
    found.is_some_and(|found| canonical(asked) == canonical(found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notations_are_compared_by_meaning() {
        assert!(is_same::<Layout>(
            "(block,*)  onto 4",
            Some("(block, *) onto 4")
        ));
        assert!(!is_same::<Layout>(
            "(block, *) onto 2",
            Some("(block, *) onto 4")
        ));
        assert!(!is_same::<ArrayType>("u8[4]", None));
    }

    #[test]
    fn layouts_are_refused_before_anything_is_sent() {
        let error = |text: &str, array: Option<&str>| {
            let array = array.map(|a| a.parse::<ArrayType>().expect("an array"));
            check_layout(text, array.as_ref())
                .expect_err(text)
                .to_string()
        };
        assert!(error("(blck, *) onto 4", None).starts_with("--layout: expected"));
        assert!(error("slice[0:2, 0:2]", Some("u8[8,8]")).contains("is a view"));
        assert!(
            error("(block, *) onto 4", Some("u8[8]"))
                .starts_with("--layout: `(block, *) onto 4`: ")
        );
        assert!(error("(block, *) onto 4", None).contains("array"));
        check_layout("striped(1MiB) over 4", None).expect("a partition of bytes");
    }
}
