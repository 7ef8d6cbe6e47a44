//! Which service a number stands for: the `system_id` of the source.
//!
//! ```text
//!  # number  URL                      further lines and what follows # are left out
//!  1         tcp:storage1:7400
//!  2         dir:/scratch/data
//! ```
//!
//! 0 is what `PARIO_URL` names. The others are in the file that `VIPIOS_SYSTEMS` names, else in `vipios/systems` below the folder of
//! configurations (`XDG_CONFIG_HOME`, `~/.config`), else in `/etc/vipios/systems`.

use std::ffi::c_int;
use std::path::PathBuf;
use std::{env, fs, io};

use border::entry::{Failure, Outcome};
use client::{ServiceUrl, Status};

/// The service that a number stands for.
pub(crate) fn url_of(system: c_int) -> Outcome<ServiceUrl> {
    if system == 0 {
        return Ok(embedded::url_here()?);
    }
    for file in files() {
        let text = match fs::read_to_string(&file) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound && !is_named() => continue,
            Err(e) => {
                let text = format!("system_id: cannot read {}: {e}", file.display());
                return Err(Failure::new(Status::NotFound, text));
            }
        };
        let found = find(&text, system).map_err(|wrong| {
            Failure::argument("system_id", format!("{}: {wrong}", file.display()))
        })?;
        return found.ok_or_else(|| {
            let text = format!("is {system}, which {} does not have", file.display());
            Failure::argument("system_id", text)
        });
    }
    Err(Failure::argument(
        "system_id",
        format!(
            "is {system}, and no file says what that is; name one by VIPIOS_SYSTEMS, with lines \"{system} tcp:HOST:PORT\""
        ),
    ))
}

fn named() -> Option<PathBuf> {
    let name = env::var_os("VIPIOS_SYSTEMS").filter(|name| !name.is_empty())?;
    Some(name.into())
}

fn is_named() -> bool {
    named().is_some()
}

/// Where to look, in this order.
fn files() -> Vec<PathBuf> {
    if let Some(named) = named() {
        return vec![named];
    }
    let folder = |name| {
        env::var_os(name)
            .filter(|name| !name.is_empty())
            .map(PathBuf::from)
    };
    let configurations =
        folder("XDG_CONFIG_HOME").or_else(|| Some(folder("HOME")?.join(".config")));
    let mine = configurations.map(|folder| folder.join("vipios/systems"));
    mine.into_iter()
        .chain(["/etc/vipios/systems".into()])
        .collect()
}

/// The service of a number in such a file; what is wrong with the file.
fn find(text: &str, system: c_int) -> Result<Option<ServiceUrl>, String> {
    let mut found = None;
    for (line, text) in (1..).zip(text.lines()) {
        let text = text.split('#').next().unwrap_or_default();
        let mut words = text.split_whitespace();
        let Some(number) = words.next() else {
            continue;
        };
        let wrong = |what: String| format!("line {line}: {what}");
        let number: c_int = number
            .parse()
            .ok()
            .filter(|n| *n > 0)
            .ok_or_else(|| wrong(format!("'{number}' is no number of 1 or more")))?;
        let (Some(url), None) = (words.next(), words.next()) else {
            return Err(wrong("give a number and the URL of a service".into()));
        };
        let url = url
            .parse::<ServiceUrl>()
            .map_err(|e| wrong(format!("'{url}': {e}")))?;
        if number == system && found.replace(url).is_some() {
            return Err(wrong(format!("{number} is there already")));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_numbers_and_services() {
        let text = "# ours\n\n1 tcp:storage1:7400 # the large one\n  7\tdir:/scratch/data\n";
        assert_eq!(
            find(text, 7).unwrap().unwrap().to_string(),
            "dir:/scratch/data"
        );
        assert_eq!(
            find(text, 1).unwrap().unwrap().to_string(),
            "tcp:storage1:7400"
        );
        assert!(find(text, 2).unwrap().is_none());
        for (text, wrong) in [
            ("x dir:/a", "line 1: 'x' is no number"),
            ("\n0 dir:/a", "line 2: '0' is no number"),
            ("1", "line 1: give a number and the URL"),
            ("1 dir:/a more", "line 1: give a number and the URL"),
            ("1 what", "line 1: 'what': "),
            ("1 dir:/a\n1 dir:/b", "line 2: 1 is there already"),
        ] {
            let said = find(text, 1).unwrap_err();
            assert!(said.starts_with(wrong), "{said}");
        }
    }
}
