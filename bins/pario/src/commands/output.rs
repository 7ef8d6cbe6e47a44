//! Writing to standard output. A reader that went away (`pario ... | head -1`) is no failure: what
//! it wanted, it has.

use std::io::{ErrorKind, Write};

use super::Error;

/// Writes a text and flushes it.
pub(crate) fn print(text: &str) -> Result<(), Error> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(format!("cannot write to standard output: {error}").into()),
        Ok(()) => Ok(()),
    }
}

/// Writes a message for people to standard error; nobody there is no failure.
pub(crate) fn note(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Writes a file, with an error that names it.
pub(crate) fn write_file(path: &std::path::Path, text: &str) -> Result<(), Error> {
    std::fs::write(path, text)
        .map_err(|error| format!("cannot write {}: {error}", path.display()).into())
}

/// Bytes with a unit where that shortens the number, exact.
pub(crate) fn bytes(count: u64) -> String {
    let units = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    for (unit, shift) in units {
        let one = 1u64 << shift;
        if count >= one && count.is_multiple_of(one) {
            return format!("{} {unit}", count >> shift);
        }
    }
    format!("{count} B")
}

/// `one` for 1, else `many`, after the number.
pub(crate) fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// A text cut to `width` characters, the last one an ellipsis if something was lost.
pub(crate) fn shortened(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{kept}…")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_a_unit_only_where_they_stay_exact() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(1025), "1025 B");
        assert_eq!(bytes(128 << 20), "128 MiB");
        assert_eq!(bytes((1 << 20) + 1024), "1025 KiB");
    }

    #[test]
    fn texts_are_cut_by_characters() {
        assert_eq!(shortened("a…b", 3), "a…b");
        assert_eq!(shortened("abcd", 3), "ab…");
    }
}
